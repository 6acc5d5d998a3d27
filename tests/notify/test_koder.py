"""What koder-notify receives, and what it never receives (C6.2)."""

import asyncio
import inspect
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import respx

from notify.channels.koder import KoderChannel, is_loopback
from notify.errors import DeliveryError, PermanentDeliveryError
from notify.secret import Secret
from policies.model import Json, Severity
from tests.e2e.command import steering, until
from tests.notify.samples import AT, a_ping
from tests.servers import Answer, Certificates, Request, serve
from tests.suites.channel import (
    LIMIT_S,
    REDIRECTS,
    SECRET,
    SLACK_S,
    ChannelSuite,
    everything_in,
)

ELSEWHERE = "http://notify.example.invalid/v1/notify"
"""An address that only a proxy can reach; nobody looks its name up."""


def koder(
    url: str,
    *,
    key: str | None = SECRET,
    auth: str = "bearer",
    limit_s: float = LIMIT_S,
) -> KoderChannel:
    return KoderChannel(
        url,
        key=Secret(key) if key else None,
        auth=auth,
        channel="kchat",
        user_agent="koder-monitor/1.2.3",
        limit_s=limit_s,
    )


async def failure(channel: KoderChannel) -> DeliveryError:
    with pytest.raises(DeliveryError) as caught:
        await channel.send(a_ping())
    return caught.value


def strings(value: object) -> Iterator[str]:
    """Walk all texts of a JSON value, the names of its fields too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from (name, *strings(item))
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


class TestKoderChannel(ChannelSuite):
    def channel(self, url: str) -> KoderChannel:
        return koder(url)


# the request


async def test_the_request_is_what_the_contract_says() -> None:
    watch: dict[str, Json] = {
        "id": "4f1c",
        "kind": "lock",
        "label": "demo",
        "host": None,
        "waited_s": 12.5,
        "ttl_s": 3600,
    }
    with serve() as server:
        url = server.url("/v1/notify?tenant=a")
        await koder(url).send(a_ping("✅ a linha", title="o título", watch=watch))
    request = server.request()
    assert (request.method, request.target) == ("POST", "/v1/notify?tenant=a")
    assert request.object == {
        "channel": "kchat",
        "title": "o título",
        "message": "✅ a linha",
        "severity": "info",
        "source": "koder-monitor",
        "idempotency_key": "4f1c-1-released",
        "occurred_at": AT.isoformat(),
        "watch": watch,
    }
    assert request.headers["content-type"] == "application/json; charset=utf-8"
    assert request.headers["idempotency-key"] == "4f1c-1-released"
    assert request.headers["user-agent"] == "koder-monitor/1.2.3"
    assert request.headers["host"] == f"127.0.0.1:{server.port}"


@pytest.mark.parametrize("severity", Severity)
async def test_the_severity_is_the_pings(severity: Severity) -> None:
    with serve() as server:
        await koder(server.url()).send(a_ping(severity=severity))
    assert server.request().object["severity"] == severity.value


async def test_a_ping_without_a_watch_has_an_empty_one() -> None:
    with serve() as server:
        await koder(server.url()).send(a_ping(watch=None))
    assert server.request().object["watch"] == {}


@pytest.mark.parametrize(
    ("auth", "key", "expected"),
    [
        ("bearer", SECRET, {"authorization": f"Bearer {SECRET}"}),
        ("x-api-key", SECRET, {"x-api-key": SECRET}),
        ("bearer", None, {}),
        ("x-api-key", None, {}),
    ],
)
async def test_the_key_goes_in_one_header_and_nowhere_else(
    auth: str, key: str | None, expected: dict[str, str]
) -> None:
    with serve() as server:
        await koder(server.url(), key=key, auth=auth).send(a_ping())
    request = server.request()
    names = {"authorization", "x-api-key", "proxy-authorization", "cookie"}
    found = {name: text for name, text in request.headers.items() if name in names}
    assert found == expected
    assert SECRET not in request.target + request.body.decode()


async def test_each_attempt_opens_its_own_connection_and_closes_it() -> None:
    with serve() as server:
        channel = koder(server.url())
        await channel.send(a_ping())
        await channel.send(a_ping())
    assert len(server.requests) == server.connections == 2


async def test_giving_an_attempt_up_is_no_error_of_delivery() -> None:
    with serve(Answer(delay_s=60)) as server:
        sending = asyncio.ensure_future(koder(server.url(), limit_s=60).send(a_ping()))
        await asyncio.to_thread(until, lambda: server.requests)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending


# texts from anywhere (B100, B102, B104)

HOSTILE = (
    "\x1b]0;x\x07\x1b[2J \x9b31m \u202eabc\u2066 \u2028 a\nb\r\tc \udcff \x00 \x7f"
)


@pytest.mark.parametrize(
    "text",
    ["✅ café ☕ 日本", "👩‍👩‍👧 e\u0301", '"quoted" \\ {"a": 1}', "x" * 900],
    ids=["symbols", "joined", "JSON", "long"],
)
async def test_a_text_of_any_script_arrives_as_it_is(text: str) -> None:
    with serve() as server:
        await koder(server.url()).send(a_ping(text, title=text, watch={"label": text}))
    found = server.request().object
    assert (found["message"], found["title"], found["watch"]) == (
        text,
        text,
        {"label": text},
    )


async def test_what_could_steer_a_terminal_arrives_escaped() -> None:
    watch: dict[str, Json] = {
        "label": HOSTILE,
        "evidence": {HOSTILE: [HOSTILE, {"deep": HOSTILE}, 1, None, True]},
    }
    with serve() as server:
        await koder(server.url()).send(a_ping(HOSTILE, title=HOSTILE, watch=watch))
    found = server.request().object
    assert [text for text in strings(found) if steering(text)] == []
    assert found["message"].startswith(r"\x1b]0;x\x07\x1b[2J \x9b31m \u202eabc")
    assert r"a\nb\r\tc \xff \x00 \x7f" in found["message"]
    (inner,) = found["watch"]["evidence"].values()
    assert inner[2:] == [1, None, True]


def picky(request: Request) -> Answer:
    """Refuse what chat services refuse."""
    if len(request.body) > 65536:
        return Answer(status=413)
    return Answer(status=400 if len(request.object["message"]) > 4096 else 200)


@pytest.mark.parametrize("char", ["x", "é", "日", "🔥", '"', "\x1b", "\udcff"])
async def test_a_text_over_the_services_limit_is_cut_at_a_character(char: str) -> None:
    flood = char * 300_000
    watch: dict[str, Json] = dict.fromkeys(
        ("label", "target", "resume", "session"), flood
    )
    with serve(picky) as server:
        await koder(server.url()).send(a_ping(flood, title=flood, watch=watch))
    found = server.request().object
    for text in (found["message"], found["title"], *found["watch"].values()):
        assert text.endswith("…(cortado)")
        assert "\ufffd" not in text


# where a redirect leads, the key would go along (B94)


@pytest.mark.parametrize("auth", ["bearer", "x-api-key"])
@pytest.mark.parametrize("status", REDIRECTS)
async def test_a_redirect_is_not_followed_so_the_key_stays_here(
    status: int, auth: str
) -> None:
    with serve() as other:
        headers = {"Location": other.url(host="localhost")}
        with serve(Answer(status=status, headers=headers)) as server:
            error = await failure(koder(server.url(), auth=auth))
    assert isinstance(error, PermanentDeliveryError)
    assert len(server.requests) == 1
    assert (other.connections, other.requests) == (0, [])


# bad certificates, and those of the house (B98)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Certificates, str]:
    """Give an authority and the file that makes a client trust it."""
    certificates = Certificates()
    return certificates, str(certificates.authority(tmp_path_factory.mktemp("tls")))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("expired", "certificate has expired"),
        ("wrong_name", "IP address mismatch"),
        ("foreign", "unable to get local issuer certificate"),
        ("self_signed", "self-signed certificate"),
    ],
)
async def test_a_bad_certificate_is_told_and_the_key_not_sent(
    kind: str,
    reason: str,
    authority: tuple[Certificates, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    certificates, trusted = authority
    monkeypatch.setenv("SSL_CERT_FILE", trusted)
    with serve(tls=getattr(certificates, kind)()) as server:
        start_s = time.monotonic()
        error = await failure(koder(server.url(), limit_s=30))
        took_s = time.monotonic() - start_s
    assert "certificate verify failed" in str(error)
    assert reason in str(error)
    assert not isinstance(error, PermanentDeliveryError)
    assert (server.connections, server.requests) == (1, [])
    assert took_s < SLACK_S


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_an_authority_of_the_house_is_trusted_when_it_is_named(
    host: str, authority: tuple[Certificates, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates, trusted = authority
    with serve(tls=certificates.good()) as server:
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        await failure(koder(server.url(host=host), limit_s=30))
        assert server.requests == []
        monkeypatch.setenv("SSL_CERT_FILE", trusted)
        await koder(server.url(host=host), limit_s=30).send(a_ping())
    assert server.request().headers["authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize("content", [None, b"", b"no certificate", b"\0\xff"])
async def test_certificates_that_cannot_be_read_are_named(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "authority.pem"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    error = await failure(koder("https://127.0.0.1:9/"))
    assert str(error).startswith("SSL_CERT_FILE or SSL_CERT_DIR cannot be used (")
    assert not isinstance(error, PermanentDeliveryError)


async def test_a_server_without_tls_is_no_crash() -> None:
    with serve() as server:
        url = server.url().replace("http:", "https:")
        error = await failure(koder(url, limit_s=30))
    assert str(error).startswith("ConnectError: ")
    assert not isinstance(error, PermanentDeliveryError)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_server_that_never_speaks_is_left_at_the_limit(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        start_s = time.monotonic()
        error = await failure(koder(f"{scheme}://127.0.0.1:{port}/"))
        took_s = time.monotonic() - start_s
    assert str(error) == f"no answer within {LIMIT_S} s"
    assert took_s < LIMIT_S + SLACK_S


# proxies


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "ALL_PROXY"])
async def test_a_proxy_of_the_environment_is_used(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve() as proxy:
        monkeypatch.setenv(variable, proxy.url(""))
        await koder(ELSEWHERE, limit_s=30).send(a_ping())
    request = proxy.request()
    assert (request.method, request.target) == ("POST", ELSEWHERE)
    assert request.headers["host"] == "notify.example.invalid"
    assert request.object["message"] == a_ping().message


async def test_a_tunnel_is_asked_for_without_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serve(Answer(status=407)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url(""))
        error = await failure(koder(ELSEWHERE.replace("http:", "https:"), limit_s=30))
    request = proxy.request()
    assert (request.method, request.target) == ("CONNECT", "notify.example.invalid:443")
    assert SECRET not in str(request)
    assert "407" in str(error)
    assert not isinstance(error, PermanentDeliveryError)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LocalHost", "127.1"])
async def test_loopback_is_never_proxied(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(Answer(status=502)) as proxy, serve() as server:
        for variable in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
            monkeypatch.setenv(variable, proxy.url(""))
        await koder(server.url(host=host), limit_s=30).send(a_ping())
    assert (proxy.connections, len(server.requests)) == (0, 1)


@pytest.mark.parametrize(
    "proxy",
    [
        "socks5://127.0.0.1:9",
        "socks5h://user:pa55word@127.0.0.1:9",
        "://",
        "ftp://user:pa55word@127.0.0.1:9",
        "http://user:pa55word/x@127.0.0.1:9",
        "http://user:pa55word@127.0.0.1:port",
        "http://user:pa55word@127.0.0.1:99999",
        "http://user:pa55word@[::1",
        "http://127.0.0.1:9\n",
        "\x01",
    ],
)
async def test_a_proxy_that_makes_no_sense_is_an_error_and_no_crash(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    error = await failure(koder(ELSEWHERE, limit_s=30))
    assert not isinstance(error, PermanentDeliveryError)
    assert str(error) == str(error).strip() != ""
    assert steering(str(error)) == []
    assert "pa55word" not in everything_in(error)


@pytest.mark.parametrize("name", ["[::1]", "é", "127.0.0.1:80:80"])
async def test_exceptions_from_the_proxy_that_make_no_sense_are_no_crash(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", name)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert "proxy" in str(await failure(koder(ELSEWHERE, limit_s=30)))


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("localhost", True),
        ("LOCALHOST.", True),
        ("koder.localhost", True),
        ("127.0.0.1", True),
        ("127.255.255.254", True),
        ("127.1", True),
        ("0x7f000001", True),
        ("2130706433", True),
        ("0177.0.0.1", True),
        ("0.0.0.0", True),
        ("::1", True),
        ("[::1]", True),
        ("::", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:192.0.2.1", False),
        ("192.0.2.1", False),
        ("128.0.0.1", False),
        ("fe80::1%2", False),
        ("localhost.example", False),
        ("notlocalhost", False),
        ("127.0.0.1.example", False),
        ("127.0.0.1x", False),
        ("café.example", False),
        ("", False),
    ],
)
def test_this_machine_is_known_by_any_of_its_names(host: str, ours: bool) -> None:
    assert is_loopback(host) is ours


# every error of the library


def exceptions(*roots: type[Exception]) -> Iterator[type[Exception]]:
    for root in roots:
        yield root
        yield from exceptions(*root.__subclasses__())


HTTPX_ERRORS = sorted(
    set(
        exceptions(
            httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, httpx.CookieConflict
        )
    ),
    key=lambda kind: kind.__name__,
)


def made(kind: type[Exception]) -> Exception:
    """Return an exception of httpx, which are built in four different ways."""
    request = httpx.Request("POST", "http://127.0.0.1:9/")
    names = set(inspect.signature(kind).parameters)
    values = {
        "message": f"it broke, {SECRET}",
        "request": request,
        "response": httpx.Response(500, request=request),
    }
    return kind(**{name: values[name] for name in names & set(values)})


def test_the_walk_over_the_library_misses_no_exception() -> None:
    public = {
        found
        for found in vars(httpx).values()
        if inspect.isclass(found) and issubclass(found, Exception)
    }
    assert public == {kind for kind in HTTPX_ERRORS if kind.__name__ in httpx.__all__}
    assert len(public) > 20


@pytest.mark.parametrize("kind", HTTPX_ERRORS)
async def test_every_exception_of_httpx_is_a_failed_delivery(
    kind: type[Exception],
) -> None:
    with respx.mock:
        respx.post("http://127.0.0.1:9/").mock(side_effect=made(kind))
        error = await failure(koder("http://127.0.0.1:9/"))
    assert not isinstance(error, PermanentDeliveryError)
    timeout = issubclass(kind, httpx.TimeoutException)
    assert str(error).startswith("no answer within" if timeout else kind.__name__)
    assert SECRET not in everything_in(error)


@pytest.mark.parametrize(
    "raised",
    [
        OSError(24, "Too many open files"),
        ssl.SSLError(1, "bad record"),
        socket.gaierror(-2, "Name or service not known"),
        UnicodeError("label too long"),
        OverflowError("port must be 0-65535"),
        ImportError("no socksio"),
        ExceptionGroup("all attempts", [ExceptionGroup("", [OSError(101, "net")])]),
    ],
    ids=lambda raised: type(raised).__name__,
)
async def test_what_comes_from_below_httpx_is_a_failed_delivery(
    raised: Exception,
) -> None:
    with respx.mock:
        respx.post("http://127.0.0.1:9/").mock(side_effect=raised)
        error = await failure(koder("http://127.0.0.1:9/"))
    assert not isinstance(error, PermanentDeliveryError)
    assert "sub-exception" not in str(error)
