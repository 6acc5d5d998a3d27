"""`serve` under systemd, and what it logs and counts (C10.1, C10.2)."""

import json
import select
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.command import Place, Running, until
from tests.servers import Server
from watcher.serve.metrics import CONTENT_TYPE


class Systemd:
    """The socket that a unit of `Type=notify` is given."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.said: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))

    def listen(self, seconds: float = 0.0) -> list[str]:
        """Return what was said so far, having waited for the next word."""
        while select.select([self._socket], [], [], seconds)[0]:
            self.said.append(self._socket.recv(4096).decode())
            seconds = 0.0
        return self.said

    def forget(self) -> None:
        self.listen()
        self.said.clear()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Systemd]:
    systemd = Systemd(tmp_path / "systemd")
    yield systemd
    systemd.close()


def supervised(place: Place, systemd: Systemd, watchdog_s: float | None) -> Running:
    env = {"NOTIFY_SOCKET": str(systemd.path)}
    if watchdog_s is not None:
        env["WATCHDOG_USEC"] = str(round(watchdog_s * 1_000_000))
    return place.start("serve", env=env)


def events(running: Running) -> list[dict[str, Any]]:
    """Return what a service logged; each whole line is one object."""
    lines = running.stderr().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def logged(running: Running, event: str) -> dict[str, Any]:
    """Wait for an event and return it."""

    def look() -> list[dict[str, Any]]:
        return [found for found in events(running) if found["event"] == event]

    return until(look)[0]


@pytest.mark.slow
def test_systemd_is_told_of_the_start_the_life_and_the_end(
    place: Place, systemd: Systemd
) -> None:
    served = supervised(place, systemd, 0.2)
    until(lambda: systemd.listen(0.1).count("WATCHDOG=1") > 2)
    assert systemd.said[0] == "READY=1"
    assert set(systemd.said) == {"READY=1", "WATCHDOG=1"}
    assert place.service() == served.process.pid
    systemd.forget()
    served.send(signal.SIGTERM)
    assert served.process.wait(20) == 0
    assert systemd.listen()[-1] == "STOPPING=1"
    assert systemd.said.count("STOPPING=1") == 1


@pytest.mark.slow
def test_systemd_is_told_that_it_is_ready_only_when_it_answers(
    place: Place, systemd: Systemd
) -> None:
    supervised(place, systemd, None)
    until(lambda: systemd.listen(0.1))
    assert health(place)["status"] == "ok"  # no wait before
    assert systemd.said == ["READY=1"]


@pytest.mark.slow
def test_a_service_that_stands_still_does_not_feed_its_watchdog(
    place: Place, systemd: Systemd
) -> None:
    served = supervised(place, systemd, 0.1)
    until(lambda: "WATCHDOG=1" in systemd.listen(0.1))
    served.send(signal.SIGSTOP)
    stat = Path(f"/proc/{served.process.pid}/stat")
    until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
    systemd.forget()
    assert systemd.listen(1.0) == []
    served.send(signal.SIGCONT)
    until(lambda: "WATCHDOG=1" in systemd.listen(0.1))


@pytest.mark.slow
def test_a_service_that_a_command_starts_is_none_of_systemd_s(
    place: Place, systemd: Systemd
) -> None:
    place.hold()
    env = {"NOTIFY_SOCKET": str(systemd.path), "WATCHDOG_USEC": "100000"}
    place.start("lock", "demo", env=env).armed()
    environ = Path(f"/proc/{place.service()}/environ").read_bytes()
    assert b"NOTIFY_SOCKET" in environ  # it was there, and was let go of
    assert systemd.listen() == []


@pytest.mark.slow
def test_the_log_of_serve_is_one_object_a_line(place: Place, server: Server) -> None:
    place.env["KODER_MONITOR_NOTIFY_URL"] = server.url()
    place.env["KODER_MONITOR_NOTIFY_KEY"] = "hush-hush"
    path = place.hold()
    served = place.start("serve")
    assert logged(served, "service.ready")["armed"] == 0
    running = place.start("lock", "demo")
    running.armed()
    path.unlink()
    running.end()
    told = logged(served, "outcome.told")
    sent = logged(served, "ping.attempted")
    assert (told["level"], told["outcome"]) == ("info", "released")
    assert sent["ping"] == f"{told['watch_id']}-1-released"
    assert (sent["channel"], sent["state"]) == ("koder-notify", "delivered")
    served.send(signal.SIGTERM)
    assert served.process.wait(20) == 0
    assert served.stdout() == ""
    assert "hush" not in served.stderr()
    assert all({"ts", "level", "event"} <= set(line) for line in events(served))


def test_a_second_serve_says_why_it_ends_in_a_line_of_its_own(place: Place) -> None:
    place.start("serve")
    place.service()
    second = place.start("serve")
    assert second.process.wait(20) not in {0, 2}
    assert "já há um serviço" in second.stderr().splitlines()[-1]


# a zone that is none (B130)


@pytest.mark.slow
@pytest.mark.parametrize("zone", [":bogus", "Nowhere/Land", "", "<+99>-99"])
def test_it_starts_whatever_zone_it_is_told(place: Place, zone: str) -> None:
    path = place.hold()
    served = place.start("serve", env={"TZ": zone})
    assert place.service() == served.process.pid
    running = place.start("lock", "demo", env={"TZ": zone})
    running.armed()
    path.unlink()
    assert running.end().line.startswith("✅ LIBERADO: lock demo em ")


# health and metrics


def asked(place: Place, path: str) -> httpx.Response:
    transport = httpx.HTTPTransport(uds=str(place.state / "monitor.sock"))
    with httpx.Client(transport=transport, timeout=60) as client:
        return client.get(f"http://localhost{path}")


def health(place: Place) -> dict[str, Any]:
    found = asked(place, "/healthz").json()
    assert isinstance(found, dict)
    return found


@pytest.mark.slow
def test_metrics_are_answered_on_the_socket(place: Place) -> None:
    place.hold()
    served = place.start("serve")
    assert place.service() == served.process.pid
    place.start("lock", "demo").armed()
    answer = asked(place, "/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == CONTENT_TYPE
    lines = answer.text.splitlines()
    assert 'koder_monitor_watches{kind="lock",state="armed"} 1.0' in lines
    assert 'koder_monitor_blind_watches{host="",kind="lock"} 0.0' in lines
    assert "koder_monitor_degraded 0.0" in lines


# the log of pings is full: B106


@pytest.mark.slow
def test_a_full_log_and_a_server_that_is_down_lose_no_ping_and_show(
    place: Place,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    place.env["KODER_MONITOR_NOTIFY_URL"] = f"http://127.0.0.1:{port}/"
    place.state.mkdir()
    place.log.symlink_to("/dev/full")
    served = place.start("serve")
    assert place.service() == served.process.pid
    first, second = place.hold("first"), place.hold("second")
    commands = [place.start("lock", name) for name in ("first", "second")]
    for command in commands:
        command.armed()
    first.unlink()
    ended = commands[0].end()
    assert ended.line.startswith("✅ LIBERADO: lock first em ")
    assert sum("LIBERADO: lock first" in line for line in ended.err) <= 1
    until(lambda: "koder_monitor_pings_unrecorded 1.0" in asked(place, "/metrics").text)
    lost = logged(served, "ping_lost")
    assert "LIBERADO: lock first" in lost["sentence"]
    second.unlink()  # the others go on
    assert commands[1].end().line.startswith("✅ LIBERADO: lock second em ")
    until(lambda: "koder_monitor_pings_unrecorded 2.0" in asked(place, "/metrics").text)
    place.log.unlink()  # there is room again
    place.run("outbox", "flush")
    until(lambda: len(place.pings()) == 2)
    until(lambda: "koder_monitor_pings_unrecorded 0.0" in asked(place, "/metrics").text)
