"""`koder-monitor http` as a user meets it (C1.2)."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.command import Place, outcome, until
from tests.servers import Answer, Certificates, Request, Server, serve

LINE = "✅ LIBERADO: {} em HH:MM:SS — retomar a atividade bloqueada"


@contextmanager
def answering(status: int, body: bytes = b"") -> Iterator[tuple[Server, list[Answer]]]:
    """Serve what a list holds, which a test may change meanwhile."""
    now = [Answer(status=status, body=body)]

    def play(request: Request) -> Answer:
        return now[0]

    with serve(play) as server:
        yield server, now


def test_it_is_released_once_the_answer_is_as_it_should(place: Place) -> None:
    with answering(503) as (server, now):
        running = place.start("http", server.url("/health"), "--ttl", "1m")
        assert f"armado: http {server.url('/health')} até " in running.armed()
        now[0] = Answer(status=200)
        line = running.end().line
    assert outcome(LINE.format(server.url("/health"))).fullmatch(line)
    assert server.requests[0].method == "GET"
    assert line in place.ping(server.url("/health"))


def test_the_body_must_match_too(place: Place) -> None:
    with answering(200, b"starting") as (server, now):
        words = ["http", server.url("/"), "--body", "^ready$", "--ttl", "1m", "--json"]
        running = place.start(*words)
        running.armed()
        now[0] = Answer(body=b"ready")
        ended = running.end().object
    assert (ended["outcome"], ended["result"]) == ("released", None)
    assert ended["target"] == f"http {server.url('/')} --body '^ready$'"
    evidence = ended["evidence"]
    assert isinstance(evidence, dict)
    assert (evidence["status"], evidence["matched"]) == (200, "ready")


def test_what_is_right_already_says_so_at_once(place: Place) -> None:
    with serve() as server:
        line = place.run("http", server.url("/"), "--resume", "x").line
    assert line.endswith(" — retomar x — já estava livre ao armar")


def test_a_wrong_answer_is_held_until_the_deadline_which_names_it(
    place: Place,
) -> None:
    with answering(302) as (server, _):
        words = ["http", server.url("/"), "--ttl", "2s", "--exit-codes"]
        ended = place.run(*words)
    assert ended.status == 124
    assert f"EXPIROU: {server.url('/')} ainda ativo após 2s" in ended.line
    assert ended.line.endswith(" — última resposta: HTTP 302")


def test_no_answer_is_unknown_and_says_why(place: Place) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/"
        running = place.start("http", url, "--ttl", "2s", "--lang", "en")
        assert "refuses the connection" in running.said("cannot see")
        line = running.end().line
    assert line.startswith(f"⏰ EXPIROU: {url} could not be seen for ")
    assert "refuses the connection" in line


def test_a_server_that_comes_up_meanwhile_is_seen(place: Place) -> None:
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        deaf.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/"
        running = place.start("http", url, "--ttl", "1m")
        running.said("recusa a conexão")
        deaf.listen()
        deaf.settimeout(20)
        with deaf.accept()[0] as connection:
            connection.recv(4096)
            answer = b"HTTP/1.1 204 Fine\r\nConnection: close\r\n\r\n"
            connection.sendall(answer)
            # A release is looked at twice.
            with deaf.accept()[0] as again:
                again.recv(4096)
                again.sendall(answer)
        assert running.end().line.startswith(f"✅ LIBERADO: {url} em ")


def test_a_certificate_of_nobody_we_trust_is_no_release(
    place: Place, tmp_path: Path
) -> None:
    certificates = Certificates()
    with serve(tls=certificates.good()) as server:
        url = server.url("/")
        checked = place.run("check", f"http {url}", "--exit-codes", "--lang", "en")
        assert checked.status == 5
        assert "TLS connection not trusted" in checked.line
        trusted = {"SSL_CERT_FILE": str(certificates.authority(tmp_path))}
        checked = place.run("check", f"http {url}", "--exit-codes", env=trusted)
        assert checked.status == 0


def test_it_is_joined_by_whatever_form_of_the_address(place: Place) -> None:
    with answering(503) as (server, now):
        first = place.start("http", server.url("/"), "--ttl", "1m")
        first.armed()
        other = server.url("/#part").replace("http:", "HTTP:")
        second = place.start("http", other, "--status", "2XX", "--ttl", "1m")
        second.said("já monitorado")
        now[0] = Answer(status=204)
        assert first.end().line.startswith("✅ LIBERADO: ")
        assert second.end().line.startswith("✅ LIBERADO: ")
    until(lambda: len(place.pings()) == 1)


@pytest.mark.parametrize(
    "words",
    [
        ["ftp://127.0.0.1/"],
        ["http://me:secret@127.0.0.1/"],
        ["http://127.0.0.1/\x1b[2J"],
        ["http://127.0.0.1/", "--status", "999"],
        ["http://127.0.0.1/", "--body", "("],
        ["http://127.0.0.1/", "--host", "box"],
        ["http://-é.com/"],
    ],
)
def test_what_can_never_be_watched_is_refused(place: Place, words: list[str]) -> None:
    ended = place.run("http", *words)
    assert (ended.status, ended.out) == (2, "")
    assert len(ended.err) == 1
    assert "secret" not in ended.err[0]
    assert place.watches("--all") == []
