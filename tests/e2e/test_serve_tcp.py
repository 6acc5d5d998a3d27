"""`serve --listen` and `page`: TCP, for programs and browsers (C10.1, C10.3)."""

import os
import re
import signal
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
import pytest

from tests.e2e.command import LIMIT_S, Place, Running, until

ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+)/\?token=[\w-]+")


def token(place: Place) -> str:
    return (place.state / "token").read_text().strip()


def address(command: Running) -> str:
    """Wait for the address of the page on a command's stdout."""

    def look() -> str | None:
        found = ADDRESS.fullmatch(command.stdout().strip())
        assert found or command.process.poll() is None, command.end()
        return found[0] if found else None

    found = until(look)
    assert found is not None
    return found


@contextmanager
def serving(place: Place, *words: str, **env: str) -> Iterator[Running]:
    command = place.start("serve", *words, env=env)
    try:
        yield command
    finally:
        command.send(signal.SIGTERM)
        assert command.process.wait(LIMIT_S) == 0


def client(url: str, bearer: str | None = None) -> httpx.Client:
    headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
    return httpx.Client(base_url=url, headers=headers, timeout=LIMIT_S, trust_env=False)


def test_serve_prints_an_address_that_opens_the_page_once(place: Place) -> None:
    with serving(place, "--listen", "127.0.0.1:0") as command:
        opened = address(command)
        url = opened.partition("/?")[0]
        with client(url) as browser:
            assert browser.get("/v1/watches").status_code == 401
            answer = browser.get(opened)
            assert answer.status_code == 200
            assert browser.get("/").status_code == 200
            assert browser.get("/v1/watches").json() == []
        with client(url) as other:
            assert other.get(opened).status_code == 401
        mode = (place.state / "token").stat().st_mode
        assert stat.S_IMODE(mode) == 0o600


def test_a_program_arms_with_the_token_and_is_told_the_outcome(place: Place) -> None:
    lock = place.hold()
    with serving(place, "--listen", "127.0.0.1:0") as command:
        url = address(command).partition("/?")[0]
        with client(url, token(place)) as program:
            armed = program.post("/v1/watches", json={"target": "lock demo"})
            assert armed.status_code == 201
            path = f"/v1/watches/{armed.json()['id']}/outcome"
            assert program.get(path).status_code == 204
            lock.unlink()
            told = program.get(path, params={"wait_s": LIMIT_S})
            assert told.json()["outcome"] == "released"
            assert "server" not in told.headers


def test_the_events_come_over_tcp_as_they_happen(place: Place) -> None:
    place.hold()
    with serving(place, "--listen", "127.0.0.1:0") as command:
        url = address(command).partition("/?")[0]
        with (
            client(url, token(place)) as program,
            program.stream("GET", "/v1/events") as stream,
        ):
            lines = stream.iter_lines()
            assert next(lines).startswith(":")
            place.start("lock", "demo").armed()
            assert "event: armed" in lines


def test_a_connection_by_a_foreign_name_is_refused(place: Place) -> None:
    with serving(place, "--listen", "127.0.0.1:0") as command:
        url = address(command).partition("/?")[0]
        with client(url, token(place)) as program:
            host = {"Host": f"evil.example:{urlsplit(url).port}"}
            assert program.get("/v1/watches", headers=host).status_code == 421
            forwarded = {
                "X-Forwarded-For": "127.0.0.1",
                "X-Forwarded-Proto": "https",
                "X-Forwarded-Host": "evil.example",
            }
            assert program.get("/healthz", headers=forwarded).status_code == 200


def test_page_prints_an_address_of_the_service_that_runs(place: Place) -> None:
    with serving(place, "--listen", "127.0.0.1:0") as command:
        first = address(command)
        second = place.run("page")
        assert second.status == 0
        assert ADDRESS.fullmatch(second.line)
        assert second.line != first
        with client(first.partition("/?")[0]) as browser:
            assert browser.get(second.line).status_code == 200


def test_page_says_what_to_do_where_there_is_no_address(place: Place) -> None:
    ended = place.run("page", "--lang", "en")
    assert ended.status == 2
    assert ended.out == ""
    (line,) = ended.err
    assert "serve --listen" in line


def test_a_service_that_commands_start_listens_where_it_is_configured(
    place: Place,
) -> None:
    config = place.folder / "config.toml"
    config.write_text('[serve]\nlisten = "127.0.0.1:0"\n')
    place.env["KODER_MONITOR_CONFIG"] = str(config)
    ended = place.run("page")
    url = ended.line.partition("/?")[0]
    with client(url, token(place)) as program:
        assert program.get("/healthz").json()["on_demand"] is True
    assert "token=" not in (place.state / "service.log").read_text()


def test_a_service_that_commands_start_watches_even_where_it_cannot_listen(
    place: Place,
) -> None:
    """A port that somebody else has must cost nobody a watch."""
    place.hold()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config = place.folder / "config.toml"
        config.write_text(f'[serve]\nlisten = "127.0.0.1:{port}"\n')
        place.env["KODER_MONITOR_CONFIG"] = str(config)
        place.start("lock", "demo").armed()
        place.service()
        assert place.run("page").status == 2
    assert "listen_failed" in (place.state / "service.log").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ["--listen", "0.0.0.0:8765"],
        ["--listen", "[::]:8765"],
        ["--listen", "192.0.2.1:8765"],
        ["--listen", "example.org:8765"],
        ["--listen", "127.0.0.1"],
        ["--listen", ""],
        ["--socket", ""],
    ],
)
def test_an_address_that_others_could_reach_is_a_usage_error(
    words: list[str], place: Place
) -> None:
    ended = place.run("serve", *words)
    assert ended.status == 2
    assert len(ended.err) == 1
    assert not place.state.exists()


def test_a_port_that_is_taken_is_a_usage_error(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = place.run("serve", "--listen", f"127.0.0.1:{port}")
    assert ended.status == 2
    assert f"127.0.0.1:{port}" in ended.err[-1]


def test_commands_find_a_socket_that_lies_elsewhere(place: Place) -> None:
    place.hold()
    path = place.folder / "own.sock"
    with serving(place, "--socket", str(path)):
        until(path.exists)
        pid = place.service()
        assert stat.S_ISSOCK(path.stat().st_mode)
        place.start("lock", "demo").armed()
        assert place.service() == pid
    assert not path.exists()


def test_the_token_of_the_environment_is_the_one_and_reaches_no_child_or_log(
    place: Place,
) -> None:
    with serving(
        place, "--listen", "127.0.0.1:0", KODER_MONITOR_TOKEN="of-this-test"
    ) as command:
        url = address(command).partition("/?")[0]
        with client(url, "of-this-test") as program:
            assert program.get("/healthz").status_code == 200
            assert "of-this-test" not in program.get("/v1/settings").text
        assert not (place.state / "token").exists()
        assert "of-this-test" not in command.stderr()
        words = f"/proc/{command.process.pid}/cmdline"
        with open(words, "rb") as file:
            assert b"of-this-test" not in file.read()
    assert os.path.exists(place.state)
