"""koder-notify: one JSON request a ping (C6.2)."""

import asyncio
import ipaddress
import json
import socket
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from notify.errors import DeliveryError, PermanentDeliveryError
from notify.lookup import LookupThreads
from notify.secret import Secret
from policies.delivery import (
    FIELD_LIMIT,
    MESSAGE_LIMIT,
    Answer,
    classify,
    excerpt,
    http_date,
    retry_after,
)
from policies.model import Json, Ping
from policies.text import clean

if TYPE_CHECKING:
    import ssl

    import httpx

ATTEMPT_LIMIT_S = 5.0
"""Seconds for one attempt, from the name look-up to the answer's last byte."""

_BODY_LIMIT = 8192  # bytes of an answer that are read at all


class KoderChannel:
    """One koder-notify server."""

    def __init__(
        self,
        url: str,
        *,
        key: Secret | None,
        auth: str,
        channel: str,
        user_agent: str,
        limit_s: float = ATTEMPT_LIMIT_S,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        """Send to `url`.

        Args:
            url: checked before: http or https, a host, no credentials.
            key: None sends no key at all.
            auth: "bearer" or "x-api-key": which header carries the key.
            channel: the operator's channel on that server.
            user_agent: name and version of the product.
            limit_s: seconds for one attempt.
            now: the time, for a Retry-After that is a date in an answer without one.
        """
        self._url = url
        self._key = key
        self._auth = auth
        self._channel = channel
        self._user_agent = user_agent
        self._limit_s = limit_s
        self._now = now

    async def send(self, ping: Ping) -> None:
        """Make one attempt; redirects are not followed, or the key would go along.

        Raises:
            DeliveryError: no answer at all, 408, 425, 429 or 5xx.
            PermanentDeliveryError: any other answer but 2xx.
        """
        asyncio.get_running_loop().set_default_executor(LookupThreads())
        phase = _Phase()
        status, words = await self._attempt(ping, phase)
        # Raised out here: an exception of the transport, which may hold the request's
        # headers, is not even the context of these.
        if status is None:
            raise DeliveryError(words, unknown=phase.sent)
        said = f"HTTP {status} {words}".strip()
        match classify(status):
            case Answer.DELIVERED:
                return
            case Answer.TRY_LATER:
                raise DeliveryError(said, retry_after_s=phase.retry_after_s)
            case Answer.REFUSED:
                raise PermanentDeliveryError(said)

    async def _attempt(self, ping: Ping, phase: "_Phase") -> tuple[int | None, str]:
        """Return the status of the answer, if there was one, and what is to be said.

        Once there is a status it decides, whatever becomes of the rest of the answer.
        """
        status: int | None = None
        failure, body = "", bytearray()
        try:
            async with (
                self._client() as client,
                asyncio.timeout(self._limit_s),
                client.stream(
                    "POST",
                    self._url,
                    content=self._body(ping),
                    headers=self._head(ping),
                    extensions={"trace": phase.trace},
                ) as response,
            ):
                status = response.status_code
                phase.retry_after_s = self._asked_s(response)
                if classify(status) is not Answer.DELIVERED:
                    await _read_into(body, response)
        except (TimeoutError, _timeout()) as error:
            failure = f"no answer within {self._limit_s:g} s"
            phase.failed(error)
        except _foreign_errors() as error:
            failure = self._said(error)
            phase.failed(error)
        return status, failure if status is None else self._quoted(body)

    def _asked_s(self, response: "httpx.Response") -> float | None:
        """Return how long the server asks to be left alone, by its own clock."""
        by = http_date(response.headers.get("Date", ""))
        if by is None and self._now is not None:
            by = self._now()
        return retry_after(response.headers.get("Retry-After"), now=by)

    def _client(self) -> "httpx.AsyncClient":
        """Return a client for one attempt.

        Raises:
            DeliveryError: variables of the environment make no sense.
        """
        import httpx  # noqa: PLC0415

        parts = urlsplit(self._url)
        verify: ssl.SSLContext | bool = False
        try:
            if parts.scheme == "https":
                verify = httpx.create_ssl_context()
            return httpx.AsyncClient(
                verify=verify,
                # Proxy variables are honoured, but never for loopback (C6.2).
                trust_env=not is_loopback(parts.hostname or ""),
                follow_redirects=False,
                # The limit of all stands around it; this one comes before it, since
                # what is cancelled in a TLS handshake is left open by httpcore 1.0.
                timeout=httpx.Timeout(None, connect=0.9 * self._limit_s),
            )
        except OSError as error:
            problem = f"SSL_CERT_FILE or SSL_CERT_DIR cannot be used ({error.strerror})"
        except (httpx.InvalidURL, ValueError) as error:
            # Not what it says, which may be a piece of the proxy's password.
            problem = f"the proxy variables cannot be used ({type(error).__name__})"
        raise DeliveryError(problem)

    def _secret(self) -> str:
        return self._key.reveal() if self._key else ""

    def _head(self, ping: Ping) -> dict[str, str]:
        headers = {
            "Accept-Encoding": "identity",  # an error's words are read as they come
            "Content-Type": "application/json; charset=utf-8",
            "Idempotency-Key": ping.idempotency_key,
            "User-Agent": self._user_agent,
        }
        if self._key is not None:
            if self._auth == "bearer":
                headers["Authorization"] = f"Bearer {self._key.reveal()}"
            else:
                headers["X-API-Key"] = self._key.reveal()
        return headers

    def _body(self, ping: Ping) -> bytes:
        request: dict[str, Json] = {
            "channel": self._channel,
            "title": clean(ping.title, FIELD_LIMIT),
            "message": clean(ping.message, MESSAGE_LIMIT),
            "severity": ping.severity,
            "source": "koder-monitor",
            "idempotency_key": ping.idempotency_key,
            "occurred_at": ping.occurred_at.isoformat(),
            "watch": _fit(ping.watch or {}),
        }
        return json.dumps(request, ensure_ascii=False).encode()

    def _quoted(self, body: bytearray) -> str:
        """Return a short excerpt of an answer without the key that it may echo."""
        secret = self._secret()
        text = body[:_BODY_LIMIT].decode("utf-8", "replace")
        if secret and len(body) > _BODY_LIMIT:
            # The end may be the start of the key, at most in percent-encoding.
            text = text[: -3 * len(secret)]
        return excerpt(text, secret)

    def _said(self, error: Exception) -> str:
        """Return what went wrong before there was a status."""
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        said = excerpt(str(error), self._secret())
        return f"{type(error).__name__}: {said}".rstrip(": ")


class _Phase:
    """How far an attempt has come: what its failure means depends on it.

    Attributes:
        sent: the request may have reached the server.
        retry_after_s: seconds that the server asked for, if it did.
    """

    def __init__(self) -> None:
        self.sent = False
        self.retry_after_s: float | None = None

    async def trace(self, event: str, _info: object) -> None:
        """Follow what httpcore does."""
        self.sent = self.sent or event.endswith("send_request_headers.started")

    def failed(self, error: Exception) -> None:
        """Take into account what an error tells: no proxy that says no has sent it."""
        import httpx  # noqa: PLC0415

        late = httpx.ReadError | httpx.WriteError | httpx.RemoteProtocolError
        late |= httpx.ReadTimeout | httpx.WriteTimeout
        refused = isinstance(error, httpx.ProxyError)
        self.sent = not refused and (self.sent or isinstance(error, late))


async def _read_into(body: bytearray, response: "httpx.Response") -> None:
    """Read an answer; of a long one no more than is looked at."""
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > _BODY_LIMIT:
            return


def _timeout() -> type[Exception]:
    import httpx  # noqa: PLC0415

    return httpx.TimeoutException


def _foreign_errors() -> tuple[type[Exception], ...]:
    """Return all that an attempt may raise, for a useless proxy setting too."""
    import httpx  # noqa: PLC0415

    return (
        httpx.HTTPError,
        httpx.InvalidURL,
        httpx.StreamError,
        httpx.CookieConflict,
        OSError,
        ValueError,
        ImportError,
        OverflowError,
        ExceptionGroup,
    )


def _fit(value: Json) -> Json:
    """Return what a request may hold of a value from anywhere."""
    if isinstance(value, str):
        return clean(value, FIELD_LIMIT)
    if isinstance(value, Mapping):
        return {clean(name, FIELD_LIMIT): _fit(item) for name, item in value.items()}
    if isinstance(value, Sequence):
        return [_fit(item) for item in value]
    return value


def is_loopback(host: str) -> bool:
    """Say whether a host of an address is this machine itself, however written."""
    name = host.rstrip(".").casefold()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        # The resolver takes 127.1 and 0x7f000001 too: inet_aton(3).
        address = ipaddress.ip_address(socket.inet_aton(name))
    except OSError:
        try:
            address = ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
    mapped = address.ipv4_mapped if address.version == 6 else None
    return (mapped or address).is_loopback or (mapped or address).is_unspecified
