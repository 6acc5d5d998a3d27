"""Whom the service answers: before any route, and around every answer (C10.3).

Nothing on the unix socket but what its file mode lets in, and no browser; over TCP
whoever has the token, or a browser with the session that an address used once gave it.
"""

from collections.abc import Sequence
from html import escape
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from policies.wording import Lang, Phrase, phrase
from watcher.loopback import is_loopback
from watcher.serve.problems import Kind, problem
from watcher.serve.tokens import Tokens

READS = frozenset({"GET", "HEAD"})

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_DEFAULTS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'"
    ),
}

_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="koder-monitor"'}
_HEAD = "<!DOCTYPE html>\n"
_TITLE = '<meta charset="utf-8"><title>koder-monitor</title>'
_ICON = '<link rel="icon" href="/page/icon.svg">'


def is_local(scope: Scope) -> bool:
    """Say whether a request came by the unix socket.

    By the socket's own address, which no header changes; what is unclear is not local.
    """
    server = scope.get("server")
    return server is not None and server[1] is None


class Guard:
    """Lets through what may be asked; plain ASGI, so that streams stay streams."""

    def __init__(self, app: ASGIApp, *, tokens: Tokens | None, lang: Lang) -> None:
        """Stand before `app`; without `tokens` nobody comes in over TCP."""
        self._app = app
        self._tokens = tokens
        self._lang = lang

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            return  # no websockets, and no lifespan

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                for name, value in _DEFAULTS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._refusal(scope) or self._entry(scope)
        await (answer or self._app)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        origins = headers.getlist("origin")
        if is_local(scope):
            return self._no(Kind.FOREIGN_ORIGIN, _foreign(origins)) if origins else None
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not is_ours(hosts[0], scope["server"]):
            why = phrase("api_foreign_host", host=", ".join(hosts))
            return self._no(Kind.FOREIGN_HOST, why)
        if origins and origins != [f"http://{hosts[0].lower()}"]:
            return self._no(Kind.FOREIGN_ORIGIN, _foreign(origins))
        return None

    def _entry(self, scope: Scope) -> Response | None:
        """Ask who comes over TCP; None lets the request pass."""
        if is_local(scope):
            return None
        if self._tokens is None:
            return self._unknown()
        headers = Headers(scope=scope)
        kind, _, token = headers.get("authorization", "").partition(" ")
        if not kind:
            return self._entry_of_browser(scope, headers, self._tokens)
        known = kind.lower() == "bearer" and self._tokens.is_token(token.strip())
        return None if known else self._unknown()

    def _entry_of_browser(
        self, scope: Scope, headers: Headers, tokens: Tokens
    ) -> Response | None:
        """Give a session for a token; let a session read, and write from our page."""
        cookies = cookie_parser(headers.get("cookie", ""))
        session = tokens.sessions.holds(cookies.get(_cookie_name(scope), ""))
        once = _once_of(scope)
        if once is not None and tokens.once.spend(once):
            return _welcome(scope, tokens)
        if not session:
            wanted = headers.get("accept", "")
            opens = scope["path"] == "/" and "text/html" in wanted
            return self._closed() if opens else self._unknown()
        if once is not None:
            return _onward()
        own = "origin" in headers or headers.get("sec-fetch-site") == "same-origin"
        if scope["method"] in READS or own:
            return None
        return self._no(Kind.FOREIGN_ORIGIN, _foreign([]))

    def _unknown(self) -> Response:
        why = phrase("api_no_token")
        return problem(Kind.NO_TOKEN, why, self._lang, _CHALLENGE)

    def _closed(self) -> Response:
        """Tell a person who opens the page without a session where to get one."""
        said = escape(phrase("page_closed").render(self._lang))
        page = f'{_HEAD}<html lang="{self._lang}">{_TITLE}<p>{said}</p>\n'
        return HTMLResponse(page, Kind.NO_TOKEN.status, _CHALLENGE)

    def _no(self, kind: Kind, why: Phrase) -> Response:
        return problem(kind, why, self._lang)


def _once_of(scope: Scope) -> str | None:
    """Return the token in the address of the page, if a browser opens that."""
    if scope["path"] != "/" or scope["method"] != "GET":
        return None
    found = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
    return found[0] if found else None


def _welcome(scope: Scope, tokens: Tokens) -> Response:
    """Give a browser its session, and an address without the token in it."""
    answer = _onward()
    answer.set_cookie(
        _cookie_name(scope),
        tokens.sessions.make(),
        path="/",
        httponly=True,
        samesite="strict",
    )
    return answer


def _onward() -> Response:
    """Send a browser on to the page, from a page of ours.

    No redirect: behind a link of another site, of a terminal in a browser, say, it
    would carry no cookie that is SameSite=Strict.
    """
    onward = '<meta http-equiv="refresh" content="0;url=/"><a href="/">→</a>'
    return HTMLResponse(f"{_HEAD}{_TITLE}{_ICON}{onward}\n")


def is_ours(host: str, server: Sequence[object]) -> bool:
    """Say whether a Host header names this machine's loopback, and our port.

    A name that somebody's name server points here (DNS rebinding) does not.
    """
    name, colon, port = host.lower().rpartition(":")
    if not colon or name.endswith(":") or "]" in port:
        name, port = host.lower(), "80"
    return port == str(server[1]) and is_loopback(name)


def _foreign(origins: Sequence[str]) -> Phrase:
    return phrase("api_foreign_origin", origin=", ".join(origins) or "?")


def _cookie_name(scope: Scope) -> str:
    """Return the name of our cookie: browsers keep one jar for all ports."""
    return f"koder-monitor-{scope['server'][1]}"
