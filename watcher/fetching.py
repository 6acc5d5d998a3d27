"""One GET within a limit, and why there was no answer to it."""

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from notify.channels.koder import is_loopback
from notify.lookup import LookupThreads
from policies.wording import Phrase, phrase
from watcher import __version__

LIMIT_S = 8.0
"""Seconds for all of it, from the name look-up to the last byte that is read."""

BODY_LIMIT = 1 << 20
"""Bytes of a body that are read at all."""

_HEADERS = {"Accept-Encoding": "identity", "User-Agent": f"koder-monitor/{__version__}"}
_FOREIGN = (
    httpx.HTTPError,
    httpx.InvalidURL,
    httpx.StreamError,
    httpx.CookieConflict,
    OSError,
    ValueError,
    ImportError,
    ExceptionGroup,
)


class FetchError(Exception):
    """There was no answer, or none that could be read.

    Attributes:
        phrase: why, for a person.
        error: the error's own words, for the evidence.
    """

    def __init__(self, why: Phrase, error: str) -> None:
        """Keep both."""
        super().__init__(why)
        self.phrase = why
        self.error = error


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """An answer; `text` is the start of its body, where that was wanted."""

    status: int
    text: str | None = None


def is_address(url: str) -> bool:
    """Say whether a request could be made to it at all."""
    try:
        return bool(httpx.URL(url).raw_host)
    except (httpx.InvalidURL, ValueError):
        return False


def fetch(
    url: str,
    *,
    body_of: Callable[[int], bool] | None = None,
    limit_s: float = LIMIT_S,
) -> Page:
    """Return what a GET answers; blocks, but never longer than the limit.

    On an event loop of its own: httpx limits each step, and only a loop can limit all
    of them together, against a server that sends a byte now and then.

    Args:
        url: http or https, without user and password.
        body_of: says of a status whether its body is wanted; None wants none.
        limit_s: seconds for all of it.

    Raises:
        FetchError: no whole answer came.
    """
    return asyncio.run(_fetch(url, body_of, limit_s))


async def _fetch(
    url: str, body_of: Callable[[int], bool] | None, limit_s: float
) -> Page:
    asyncio.get_running_loop().set_default_executor(LookupThreads())
    host = urlsplit(url).netloc
    try:
        async with (
            _client(url, limit_s) as client,
            asyncio.timeout(limit_s),
            client.stream("GET", url, headers=_HEADERS) as response,
        ):
            status = response.status_code
            if body_of is None or not body_of(status):
                return Page(status=status)
            return Page(status=status, text=await _text(response, host))
    except (TimeoutError, httpx.TimeoutException) as error:
        why = phrase("http_silent", host=host, limit=f"{limit_s:g} s")
        raise FetchError(why, _said(error)) from error
    except _FOREIGN as error:
        raise FetchError(_why(error, host), _said(error)) from error


def _client(url: str, limit_s: float) -> httpx.AsyncClient:
    """Return a client for one request; certificates are always verified.

    Raises:
        FetchError: variables of the environment make no sense.
    """
    parts = urlsplit(url)
    verify: ssl.SSLContext | bool = False
    try:
        if parts.scheme == "https":
            verify = httpx.create_ssl_context()
        return httpx.AsyncClient(
            verify=verify,
            # Proxy variables are honoured, but never for loopback.
            trust_env=not is_loopback(parts.hostname or ""),
            follow_redirects=False,
            # The limit of all stands around it; this one comes before it, since what
            # is cancelled in a TLS handshake is left open by httpcore 1.0.
            timeout=httpx.Timeout(None, connect=0.9 * limit_s),
        )
    except OSError as error:
        said = error.strerror or str(error)
        raise FetchError(phrase("http_ca", error=said), _said(error)) from error
    except (httpx.InvalidURL, ValueError) as error:
        # Not what it says, which may be a piece of the proxy's password.
        name = type(error).__name__
        raise FetchError(phrase("http_proxy", error=name), name) from None


async def _text(response: httpx.Response, host: str) -> str:
    """Return the start of a body, whatever its bytes are.

    Raises:
        FetchError: it is compressed, though that was not asked for.
    """
    coding = response.headers.get("Content-Encoding", "identity")
    if coding.strip().lower() not in {"", "identity"}:
        why = phrase("http_coded", host=host, coding=coding)
        raise FetchError(why, f"Content-Encoding: {coding}")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) >= BODY_LIMIT:
            break
    return _decoded(bytes(body[:BODY_LIMIT]), response.charset_encoding)


def _decoded(body: bytes, charset: str | None) -> str:
    """Return a body's text; UTF-8 where its charset is unknown or cannot be read by."""
    try:
        return body.decode(charset or "utf-8", "replace")
    except (LookupError, ValueError):
        return body.decode("utf-8", "replace")


def _why(error: BaseException, host: str) -> Phrase:
    """Return what an error of the transport means, for a person."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLError):
            said = getattr(cause, "verify_message", "") or cause.reason or str(cause)
            return phrase("http_tls", host=host, error=said)
        if isinstance(cause, socket.gaierror):
            said = cause.strerror or str(cause)
            return phrase("http_no_name", host=host, error=said)
        if isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED:
            return phrase("http_refused", host=host)
    return phrase("http_failed", host=host, error=_said(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Give an error and all that stands behind it."""
    yield error
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _causes(inner)
    behind = error.__cause__ or error.__context__
    if behind is not None:
        yield from _causes(behind)


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
