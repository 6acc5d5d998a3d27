"""Addresses: released when a GET answers as it should (C1.2)."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import watcher.fetching
from policies.model import Observation, Sight
from policies.wording import Lang
from tests.fakes import START
from tests.servers import Answer, Certificates, serve
from tests.suites.condition import ConditionSuite, Scene, closing
from watcher.conditions import Place
from watcher.conditions.http import HttpCondition
from watcher.config import Config
from watcher.errors import UsageError
from watcher.fetching import BODY_LIMIT, FetchError, fetch
from watcher.targets import condition_of

PLACE = Place(config=Config(), cwd="/", launcher=0)
CERTIFICATES = Certificates()


def condition(url: str, *words: str) -> HttpCondition:
    made = condition_of(["http", url, *words], PLACE)
    assert isinstance(made, HttpCondition)
    return made


def look(url: str, *words: str) -> Observation:
    made = condition(url, *words)
    try:
        return made.look({}, START)
    finally:
        made.close()


def answered(answer: Answer, *words: str) -> Observation:
    with serve(answer) as server:
        return look(server.url("/"), *words)


def why(seen: Observation) -> str:
    assert seen.sight is Sight.UNKNOWN
    assert seen.reason is not None
    assert not seen.absent
    return seen.reason.render(Lang.EN)


# Answers a connection by what a file says; in a process of its own, so that what the
# suite counts as open is not the server's.
ELSEWHERE = """
import socket, struct, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    connection = listener.accept()[0]
    with connection:
        data = b""
        while not data.endswith(b"\\r\\n\\r\\n"):
            data += connection.recv(4096) or b"\\r\\n\\r\\n"
        say = open(sys.argv[1]).read()
        if say == "reset":
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        elif say:
            connection.sendall(say.encode() + b"\\r\\nContent-Length: 0\\r\\n\\r\\n")
"""


class TestHttp(ConditionSuite):
    @pytest.fixture
    def scene(self, tmp_path: Path) -> Iterator[Scene]:
        says = tmp_path / "says"
        says.write_text("HTTP/1.1 503 Not yet")

        @contextmanager
        def instead(answer: str) -> Iterator[None]:
            before = says.read_text()
            says.write_text(answer)
            try:
                yield
            finally:
                says.write_text(before)

        def release() -> None:
            says.write_text("HTTP/1.1 204 Fine")

        with subprocess.Popen(
            [sys.executable, "-S", "-c", ELSEWHERE, str(says)], stdout=subprocess.PIPE
        ) as server:
            try:
                assert server.stdout is not None
                url = f"http://127.0.0.1:{int(server.stdout.readline())}/"
                yield Scene(
                    build=lambda: condition(url),
                    release=release,
                    blind={
                        "unreachable": lambda: instead("reset"),
                        "denied": lambda: instead("no HTTP at all"),
                        "vanished": lambda: instead(""),
                    },
                )
            finally:
                server.kill()

    def test_its_hints_are_there_after_a_look(self, scene: Scene) -> None:
        """There is none: nothing tells that an address would answer otherwise now."""
        with closing(scene.build()) as made:
            made.look({}, START)
            assert made.hints() == ()

    def test_a_look_that_hangs_is_named_by_its_address(self, scene: Scene) -> None:
        with closing(scene.build()) as made:
            assert made.target.label in why(made.hung({}, START))


@pytest.mark.parametrize(
    ("status", "words", "sight"),
    [
        (200, [], "released"),
        (204, [], "released"),
        (299, [], "released"),
        (302, [], "held"),
        (404, [], "held"),
        (500, [], "held"),
        (404, ["--status", "404"], "released"),
        (200, ["--status", "404"], "held"),
        (410, ["--status", "4xx"], "released"),
        (302, ["--status", "302"], "released"),
        (201, ["--status", "200"], "held"),
        (503, ["--status", "5XX"], "released"),
    ],
)
def test_the_status_decides(status: int, words: list[str], sight: str) -> None:
    seen = answered(Answer(status=status), *words)
    assert seen.sight == sight
    assert seen.evidence == {"means": "GET", "status": status}
    said = [remark.render(Lang.EN) for remark in seen.remarks]
    assert said == ([] if sight == "released" else [f"last answer: HTTP {status}"])


@pytest.mark.parametrize(
    ("body", "words", "sight"),
    [
        (b"all is well", ["--body", "is w.ll"], "released"),
        (b"all is well", ["--body", "^is"], "held"),
        (b"a\nready\n", ["--body", "(?m)^ready$"], "released"),
        (b"\xff\xfe ready \xff", ["--body", "ready"], "released"),
        ("pronto: é".encode(), ["--body", "é$"], "released"),
        (b"", ["--body", "."], "held"),
        (b"", ["--body", "^$"], "released"),
        (b"oops", ["--body", "oops", "--status", "500"], "held"),
    ],
)
def test_the_body_must_match_too_where_that_is_asked(
    body: bytes, words: list[str], sight: str
) -> None:
    seen = answered(Answer(body=body), *words)
    assert seen.sight == sight
    assert seen.evidence["status"] == 200


def test_evidence_holds_what_matched_and_how_much_was_read() -> None:
    seen = answered(Answer(body=b"x" * 500), "--body", "x+")
    assert seen.evidence == {
        "means": "GET",
        "status": 200,
        "read": 500,
        "matched": "x" * 120,
    }
    seen = answered(Answer(body=b"x"), "--body", "y")
    assert seen.evidence == {"means": "GET", "status": 200, "read": 1}
    assert "without the text" in seen.remarks[0].render(Lang.EN)


@pytest.mark.parametrize(
    ("charset", "body", "text"),
    [
        ("iso-8859-1", b"caf\xe9", "café"),
        ("utf-16-le", "café".encode("utf-16-le"), "café"),
        ("no-such-charset", b"cafe", "cafe"),
        ("hex", b"cafe", "cafe"),
        ("idna", b"\xff cafe", "cafe"),
    ],
)
def test_a_body_is_read_by_its_charset_or_leniently(
    charset: str, body: bytes, text: str
) -> None:
    headers = {"Content-Type": f"text/plain; charset={charset}"}
    answer = Answer(body=body, headers=headers)
    assert answered(answer, "--body", text).sight is Sight.RELEASED


def test_no_more_than_the_start_of_a_body_is_read() -> None:
    body = b"x" * (BODY_LIMIT - 5) + b"start" + b"behind"
    assert answered(Answer(body=body), "--body", "start").sight is Sight.RELEASED
    seen = answered(Answer(body=body), "--body", "behind")
    assert (seen.sight, seen.evidence["read"]) == (Sight.HELD, BODY_LIMIT)


def test_an_expression_that_takes_too_long_has_seen_nothing() -> None:
    seen = answered(Answer(body=b"a" * 5000 + b"!"), "--body", "(a|aa)+$")
    assert "takes too long" in why(seen)


def test_a_wrong_status_is_told_without_its_body() -> None:
    answer = Answer(status=500, body=b"x", length=100)
    assert answered(answer, "--body", "x").sight is Sight.HELD
    assert answered(Answer(body=b"x", length=100)).sight is Sight.RELEASED


# No whole answer is unknown, and says why


def test_a_body_that_was_cut_off_is_no_answer() -> None:
    answer = Answer(body=b"ready", length=100)
    assert "RemoteProtocolError" in why(answered(answer, "--body", "ready"))


def test_a_body_in_a_coding_that_was_not_asked_for_is_not_read() -> None:
    answer = Answer(body=b"ready", headers={"Content-Encoding": "gzip"})
    assert "gzip" in why(answered(answer, "--body", "ready"))
    assert answered(answer).sight is Sight.RELEASED
    plain = Answer(body=b"ready", headers={"Content-Encoding": "Identity"})
    assert answered(plain, "--body", "ready").sight is Sight.RELEASED


def test_a_refused_connection_says_so() -> None:
    with socket.socket() as taken:  # bound and deaf: nobody else gets the port
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        for host in ("127.0.0.1", "localhost"):
            seen = look(f"http://{host}:{port}/")
            assert why(seen) == f"{host}:{port} refuses the connection"


def test_a_name_that_does_not_exist_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(*words: object, **more: object) -> object:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    seen = look("http://no-such-host.invalid/")
    assert why(seen) == (
        "the name no-such-host.invalid was not found: Name or service not known"
    )


@pytest.mark.parametrize(
    ("served", "said"),
    [
        ("expired", "expired"),
        ("wrong_name", "not valid for"),
        ("foreign", "issuer"),
        ("self_signed", "self-signed"),
        ("plain", "TLS"),
    ],
)
def test_a_certificate_that_cannot_be_trusted_is_never_a_release(
    served: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATES.authority(tmp_path)))
    tls = None if served == "plain" else getattr(CERTIFICATES, served)()
    with serve(tls=tls) as server:
        url = server.url().replace("http:", "https:")
        told = why(look(url))
        assert "TLS connection not trusted" in told
        assert said in told


def test_an_authority_of_ones_own_is_trusted_by_ssl_cert_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(tls=CERTIFICATES.good()) as server:
        for host in ("127.0.0.1", "localhost"):
            assert look(server.url(host=host)).sight is Sight.UNKNOWN
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATES.authority(tmp_path)))
        for host in ("127.0.0.1", "localhost"):
            assert look(server.url(host=host)).sight is Sight.RELEASED


def test_an_authority_that_is_not_there_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/file")
    assert "SSL_CERT_FILE" in why(look("https://127.0.0.1:1/"))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Answer(delay_s=600), id="in silence"),
        pytest.param(Answer(trickle_s=0.05, body=b"x" * 9999), id="by bytes"),
        pytest.param(Answer(body_trickle_s=0.05, body=b"x" * 9999), id="by its body"),
    ],
)
def test_a_server_that_never_comes_to_an_end_is_given_up(
    answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(answer) as server, pytest.raises(FetchError) as caught:
        fetch(server.url(), body_of=lambda status: True, limit_s=0.3)
    assert "no whole answer within 0.3 s" in caught.value.phrase.render(Lang.EN)


def test_a_name_look_up_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    hang = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *words, **more: hang.wait())
    try:
        with pytest.raises(FetchError):
            fetch("http://slow.invalid/", limit_s=0.3)
    finally:
        hang.set()


def test_every_error_of_the_library_is_mapped() -> None:
    errors = [
        found
        for found in vars(httpx).values()
        if isinstance(found, type) and issubclass(found, Exception)
    ]
    assert len(errors) > 20
    for error in errors:
        assert issubclass(error, watcher.fetching._FOREIGN), error


def test_what_stands_behind_a_group_of_errors_is_told() -> None:
    refused = ConnectionRefusedError(111, "refused")
    group = ExceptionGroup("all failed", [OSError("x"), refused])
    told = watcher.fetching._why(group, "a").render(Lang.EN)
    assert told == "a refuses the connection"
    plain = watcher.fetching._why(ValueError("odd"), "a").render(Lang.EN)
    assert plain == "a: ValueError: odd"


# What is asked, and how


def test_it_asks_by_get_and_follows_no_redirect(tmp_path: Path) -> None:
    with serve() as other:
        answer = Answer(status=302, headers={"Location": other.url()})
        with serve(answer) as server:
            assert look(server.url("/a?b=c#d")).sight is Sight.HELD
            request = server.request()
            assert (request.method, request.target) == ("GET", "/a?b=c")
            assert request.headers["accept-encoding"] == "identity"
            assert request.headers["user-agent"].startswith("koder-monitor/")
        assert other.requests == []


def test_no_credentials_of_the_home_folder_go_along() -> None:
    netrc = Path(os.environ["HOME"]) / ".netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    netrc.chmod(0o600)
    with serve() as server:
        look(server.url())
        assert "authorization" not in server.request().headers


def proxied(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, proxy)


def test_a_proxy_is_asked_but_never_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serve() as proxy, serve() as server:
        proxied(monkeypatch, proxy.url(""))
        assert look("http://far.invalid/x").sight is Sight.RELEASED
        assert proxy.request().target == "http://far.invalid/x"
        assert look(server.url()).sight is Sight.RELEASED
        assert (len(proxy.requests), len(server.requests)) == (1, 1)


def test_a_proxy_setting_that_makes_no_sense_is_said_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxied(monkeypatch, "http://me:secret@host:x/")
    seen = look("http://far.invalid/x")
    assert "proxy variables" in why(seen)
    assert "secret" not in f"{seen}"


# What is refused


@pytest.mark.parametrize("url", ["http://[::zz]/", "http://-é.com/"])
def test_what_no_client_can_ask_is_refused_at_arming(url: str) -> None:
    refusal = HttpCondition(
        condition("http://a/").target, url, status="2xx", body=None
    ).refusal()
    assert refusal is not None
    assert refusal.key == "bad_url"


@pytest.mark.parametrize("expression", ["(", "(?P<a>x)(?P<a>y)", "a" * 10 + "{2,1}"])
def test_an_expression_that_is_none_is_refused(expression: str) -> None:
    with pytest.raises(UsageError):
        condition("http://a/", "--body", expression)


def test_what_only_one_of_the_two_engines_takes_is_refused() -> None:
    target = condition("http://a/").target
    with pytest.raises(UsageError):
        HttpCondition(target, "http://a/", status="2xx", body="a{e<}")


def test_addresses_do_not_hold_each_other_up() -> None:
    one, other = condition("http://a/x"), condition("http://a/y")
    same = condition("http://a/x", "--status", "404")
    assert one.group != other.group
    assert one.group == same.group
