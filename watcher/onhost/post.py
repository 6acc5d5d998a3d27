"""One ping to koder-notify by the standard library alone (C6.1, C6.2).

The same request, and the same answers to what comes back, as `notify.channels.koder`
and `policies.delivery` have it, which no host can run; tests hold them together.
"""

from __future__ import annotations

import base64
import http.client
import ipaddress
import json
import re
import socket
import ssl
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from policies.text import clean

MESSAGE_LIMIT, FIELD_LIMIT, EXCERPT_LIMIT = 4000, 1000, 200
_TRANSIENT = {408, 425, 429}
_FIRST_WAIT_S, _LONGEST_BACKOFF_S, _LONGEST_ASKED_S = 5.0, 900.0, 3600.0
_DOUBLINGS, _BELIEVED, _SHORTEST_RETRY_S = 8, 3, 1.0
_BODY_LIMIT = 8192  # bytes of an answer that are read at all


def request(
    notify: dict[str, Any], key: str, ping: dict[str, Any]
) -> tuple[dict[str, str], bytes]:
    """Return the headers and the body of a ping."""
    headers = {
        "Accept-Encoding": "identity",
        "Connection": "close",
        "Content-Type": "application/json; charset=utf-8",
        "Idempotency-Key": ping["idempotency_key"],
        "User-Agent": notify["user_agent"],
    }
    if key and notify["auth"] == "bearer":
        headers["Authorization"] = f"Bearer {key}"
    elif key:
        headers["X-API-Key"] = key
    body = {
        "channel": notify["channel"],
        "title": clean(ping["title"], FIELD_LIMIT),
        "message": clean(ping["message"], MESSAGE_LIMIT),
        "severity": ping["severity"],
        "source": "koder-monitor",
        "idempotency_key": ping["idempotency_key"],
        "occurred_at": ping["occurred_at"],
        "watch": ping["watch"],
    }
    return headers, json.dumps(body, ensure_ascii=False).encode()


def send(notify: dict[str, Any], key: str, ping: dict[str, Any]) -> dict[str, Any]:
    """Make one attempt; redirects are not followed, or the key would go along.

    Whoever calls puts a limit around it: a name look-up knows none.

    Returns:
        `answer` (delivered, try_later, refused), `error` without the key, and the
        seconds of `retry_after_s` that the server asked for, or None.
    """
    headers, body = request(notify, key, ping)
    try:
        status, asked, text = _exchange(notify, headers, body)
    except (OSError, http.client.HTTPException, ValueError) as error:
        said = excerpt(f"{type(error).__name__}: {error}", key)
        return {"answer": "try_later", "error": said, "retry_after_s": None}
    said = f"HTTP {status} {excerpt(text, key)}".strip()
    answer = classify(status)
    why = "" if answer == "delivered" else said
    return {"answer": answer, "error": why, "retry_after_s": asked}


def classify(status: int) -> str:
    """Return what a status code means for the ping; a redirect is final."""
    if 200 <= status < 300:
        return "delivered"
    return "try_later" if status in _TRANSIENT or status >= 500 else "refused"


def next_wait(
    attempts: int,
    *,
    left_s: float,
    jitter: float,
    retry_after_s: float | None = None,
) -> float | None:
    """Return the seconds until the next attempt, None once it is too late.

    Args:
        attempts: failed attempts so far, at least 1.
        left_s: seconds until it has been tried for long enough.
        jitter: 0.0 to 1.0, drawn by the caller.
        retry_after_s: seconds that the server asked for, if it did.
    """
    if left_s <= 0:
        return None
    doubled_s = _FIRST_WAIT_S * 2.0 ** min(attempts - 1, _DOUBLINGS)
    wait_s = min(doubled_s, _LONGEST_BACKOFF_S) * (1 + jitter)
    if retry_after_s is None:
        return min(wait_s, left_s)
    asked_s = max(_SHORTEST_RETRY_S, retry_after_s)
    if attempts > _BELIEVED:
        asked_s = max(asked_s, wait_s)
    return asked_s if asked_s <= left_s else None


def excerpt(text: str, secret: str) -> str:
    """Return a short piece of foreign words without the secret they may echo."""
    if secret:
        quoted = json.dumps(secret)[1:-1]
        echoes = {secret, quoted, quoted.replace("/", "\\/"), quote(secret, safe="")}
        for echo in sorted(echoes, key=len, reverse=True):
            text = text.replace(echo, "***")
    return clean(" ".join(text.split()), EXCERPT_LIMIT)


def retry_after(value: str | None, date: str | None) -> float | None:
    """Return the seconds that a server asks for, by its own clock, at most an hour."""
    text = (value or "").strip()[:64]
    if text.isascii() and re.fullmatch("[0-9]+", text):
        return min(float(text), _LONGEST_ASKED_S)
    until = _http_date(text)
    if until is None:
        return None
    now = _http_date(date or "") or datetime.now(timezone.utc)
    return min(max(0.0, (until - now).total_seconds()), _LONGEST_ASKED_S)


def is_loopback(host: str) -> bool:
    """Say whether a host of an address is this machine itself, however written."""
    name = host.rstrip(".").casefold()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address: Any = ipaddress.ip_address(socket.inet_aton(name))
    except OSError:
        try:
            address = ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
    address = getattr(address, "ipv4_mapped", None) or address
    return bool(address.is_loopback or address.is_unspecified)


def proxy_for(url: str, proxies: dict[str, str]) -> str | None:
    """Return the proxy that the standard variables name for an address (C6.2).

    Args:
        url: where the ping goes; loopback is never proxied.
        proxies: the variables by their names in lower case, without `_proxy`.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").casefold()
    if is_loopback(host):
        return None
    for entry in proxies.get("no", "").split(","):
        name = entry.strip().lstrip("*").lstrip(".").casefold().partition(":")[0]
        if entry.strip() == "*" or (
            name and (host == name or host.endswith(f".{name}"))
        ):
            return None
    return proxies.get(parts.scheme) or proxies.get("all") or None


def _exchange(
    notify: dict[str, Any], headers: dict[str, str], body: bytes
) -> tuple[int, float | None, str]:
    url = notify["url"]
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    proxy = proxy_for(url, notify.get("proxies") or {})
    connection = _connect(parts, proxy, notify["timeout_s"])
    try:
        if proxy and parts.scheme == "http":
            path, headers = url, {**headers, **_proxy_key(urlsplit(proxy))}
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        asked = retry_after(
            response.getheader("Retry-After"), response.getheader("Date")
        )
        text = ""
        if classify(response.status) != "delivered":
            text = _rest(response)
        return response.status, asked, text
    finally:
        connection.close()


def _rest(response: http.client.HTTPResponse) -> str:
    """Return what is left of an answer: the status decides, whatever becomes of it."""
    try:
        return response.read(_BODY_LIMIT).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return ""


def _connect(
    parts: Any, proxy: str | None, timeout_s: float
) -> http.client.HTTPConnection:
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    if proxy is None:
        if secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(
                parts.hostname, port, timeout=timeout_s, context=context
            )
        return http.client.HTTPConnection(parts.hostname, port, timeout=timeout_s)
    by = urlsplit(proxy if "//" in proxy else f"http://{proxy}")
    if by.scheme != "http" or not by.hostname:
        raise ValueError("the proxy variables cannot be used")
    if not secure:
        return http.client.HTTPConnection(by.hostname, by.port or 80, timeout=timeout_s)
    context = ssl.create_default_context()
    tunnel = http.client.HTTPSConnection(
        by.hostname, by.port or 80, timeout=timeout_s, context=context
    )
    tunnel.set_tunnel(parts.hostname, port, _proxy_key(by))
    return tunnel


def _proxy_key(proxy: Any) -> dict[str, str]:
    if not proxy.username:
        return {}
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


def _http_date(text: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(text)
        return at if at.tzinfo else at.replace(tzinfo=timezone.utc)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
