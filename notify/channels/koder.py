"""koder-notify: one JSON request a ping (C6.2)."""

import asyncio
import ipaddress
import json
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from notify.errors import DeliveryError, PermanentDeliveryError
from policies.delivery import (
    FIELD_LIMIT,
    MESSAGE_LIMIT,
    Answer,
    classify,
    excerpt,
)
from policies.model import Json, Ping
from policies.text import clean

if TYPE_CHECKING:
    import ssl

    import httpx

ATTEMPT_LIMIT_S = 5.0
"""Seconds for one attempt, from the name look-up to the answer's last byte."""

_BODY_LIMIT = 8192  # bytes of an answer that are read at all


class Secret:
    """The key of a service; its repr shows nothing."""

    def __init__(self, value: str) -> None:
        """Keep the key."""
        self._value = value

    def reveal(self) -> str:
        """Return the key, for a request's header only."""
        return self._value

    def __repr__(self) -> str:
        """Hide the key from every log and traceback."""
        return "***"


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
    ) -> None:
        """Send to `url`.

        Args:
            url: checked before: http or https, a host, no credentials.
            key: None sends no key at all.
            auth: "bearer" or "x-api-key": which header carries the key.
            channel: the operator's channel on that server.
            user_agent: name and version of the product.
            limit_s: seconds for one attempt.
        """
        self._url = url
        self._key = key
        self._auth = auth
        self._channel = channel
        self._user_agent = user_agent
        self._limit_s = limit_s

    async def send(self, ping: Ping) -> None:
        """Make one attempt; redirects are not followed, or the key would go along.

        Raises:
            DeliveryError: connect error, timeout, 408, 425, 429 or 5xx.
            PermanentDeliveryError: any other answer but 2xx.
        """
        try:
            async with (
                asyncio.timeout(self._limit_s),
                self._client() as client,
                client.stream(
                    "POST",
                    self._url,
                    content=self._body(ping),
                    headers=self._head(ping),
                ) as response,
            ):
                status = response.status_code
                answer = classify(status)
                words = ""
                if answer is not Answer.DELIVERED:
                    words = await self._words(response)
        except TimeoutError:
            msg = f"no answer within {self._limit_s:g} s"
            raise DeliveryError(msg) from None
        except _foreign_errors() as error:
            # Not chained: an exception of the transport may hold the request's headers.
            said = excerpt(str(error), self._secret())
            msg = f"{type(error).__name__}: {said}"
            raise DeliveryError(msg) from None
        if answer is Answer.DELIVERED:
            return
        kind = DeliveryError if answer is Answer.TRY_LATER else PermanentDeliveryError
        raise kind(f"HTTP {status} {words}".strip())

    def _client(self) -> "httpx.AsyncClient":
        import httpx  # noqa: PLC0415

        parts = urlsplit(self._url)
        verify: ssl.SSLContext | bool = False
        if parts.scheme == "https":
            verify = httpx.create_ssl_context()
        return httpx.AsyncClient(
            verify=verify,
            # Proxy variables are honoured, but never for loopback (C6.2).
            trust_env=not is_loopback(parts.hostname or ""),
            follow_redirects=False,
            timeout=self._limit_s,
        )

    def _secret(self) -> str:
        return self._key.reveal() if self._key else ""

    def _head(self, ping: Ping) -> dict[str, str]:
        headers = {
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
        watch = {
            name: clean(value, FIELD_LIMIT) if isinstance(value, str) else value
            for name, value in (ping.watch or {}).items()
        }
        request: dict[str, Json] = {
            "channel": self._channel,
            "title": clean(ping.title, FIELD_LIMIT),
            "message": clean(ping.message, MESSAGE_LIMIT),
            "severity": ping.severity,
            "source": "koder-monitor",
            "idempotency_key": ping.idempotency_key,
            "occurred_at": ping.occurred_at.isoformat(),
            "watch": watch,
        }
        return json.dumps(request, ensure_ascii=False).encode()

    async def _words(self, response: "httpx.Response") -> str:
        """Return a short excerpt of the answer; of a long one no more is read."""
        body = b""
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) >= _BODY_LIMIT:
                break
        secret = self._secret()
        text = body[:_BODY_LIMIT].decode("utf-8", "replace")
        if secret and len(body) > _BODY_LIMIT:
            text = text[: -len(secret)]  # it may be the start of the key
        return excerpt(text, secret)


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
    )


def is_loopback(host: str) -> bool:
    """Say whether a host of an address is this machine itself."""
    name = host.rstrip(".").casefold()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
