"""The service behind the commands: killed, stopped, replaced; nothing is lost."""

import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.command import LIMIT_S, Place, Running, outcome, until
from tests.servers import Answer, Server, serve
from tests.services import service_pid

RELEASED = outcome("✅ LIBERADO: lock demo em HH:MM:SS — retomar a atividade bloqueada")


def one_ping(server: Server) -> str:
    """Wait for the ping and return its message; it is the only one."""
    until(lambda: server.requests)
    return str(server.request().object["message"])


def notifying(place: Place, server: Server) -> None:
    """Have the service of a place send its pings to a server."""
    place.env["KODER_MONITOR_NOTIFY_URL"] = server.url()


def settled(place: Place) -> bool:
    """Say whether the store holds nothing that is armed or unsent."""
    query = (
        "SELECT (SELECT count(*) FROM watches WHERE state = 'armed')"
        " + (SELECT count(*) FROM pings WHERE state = 'pending') AS open"
    )
    return not place.rows(query)[0]["open"]


# It starts on demand and belongs to nobody: C5.1, C5.1b


def test_the_first_watch_starts_one_service_and_the_next_ones_use_it(
    place: Place,
) -> None:
    for slug in ("demo", "other", "third"):
        place.hold(slug)
    place.start("lock", "demo").armed()
    first = place.service()
    place.start("lock", "other").armed()
    place.start("process", "--pid", str(place.work().pid)).armed()
    assert place.service() == first
    assert [w["state"] for w in place.watches()] == ["armed"] * 3


def test_commands_that_start_at_once_start_one_service(place: Place) -> None:
    slugs = [f"s{number}" for number in range(6)]
    for slug in slugs:
        place.hold(slug)
    commands = [place.start("lock", slug) for slug in slugs]
    for command in commands:
        command.armed()
    words = [f"/proc/{pid}/cmdline" for pid in place.processes()]
    services = [path for path in words if b"\0serve\0" in _read(path)]
    assert len(services) == 1
    assert len(place.watches()) == len(slugs)


def test_the_service_is_nobody_s_child_and_in_no_folder_that_it_could_block(
    place: Place,
) -> None:
    place.hold()
    place.start("lock", "demo").armed()
    pid = place.service()
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert os.getsid(pid) not in {os.getsid(0), 0}
    for fd in (0, 1, 2):
        assert not os.readlink(f"/proc/{pid}/fd/{fd}").startswith("pipe:")


def test_the_service_keeps_no_descriptor_of_whoever_started_it(place: Place) -> None:
    """A script that holds `flock 9`, or reads a pipe to its end, must not hang."""
    place.hold()
    reading, writing = os.pipe()
    try:
        started = place.start("lock", "demo", "--detach", pass_fds=(writing,))
        os.close(writing)
        assert started.end().status == 0
        place.service()
        assert select.select([reading], [], [], LIMIT_S)[0]
        assert os.read(reading, 1) == b""
    finally:
        os.close(reading)


def test_state_directory_and_files_are_the_user_s_alone(place: Place) -> None:
    place.hold()
    place.start("lock", "demo").armed()
    assert place.state.stat().st_mode & 0o777 == 0o700
    modes = {path.name: path.stat().st_mode & 0o777 for path in place.state.iterdir()}
    assert {"monitor.db", "monitor.sock", "service.lock"} <= {*modes}
    assert {name: mode for name, mode in modes.items() if mode != 0o600} == {}


# It dies: C5.3


def killed_service(place: Place, command: Running) -> None:
    place.end_service()


def killed_command(place: Place, command: Running) -> None:
    command.process.kill()
    command.process.wait()


def killed_both(place: Place, command: Running) -> None:
    killed_command(place, command)
    place.end_service()


@pytest.mark.slow
@pytest.mark.parametrize("kill", [killed_service, killed_command, killed_both])
def test_whoever_is_killed_while_waiting_the_release_is_told_once(
    place: Place, server: Server, kill: Callable[[Place, Running], None]
) -> None:
    notifying(place, server)
    path = place.hold()
    running = place.start("lock", "demo")
    running.armed()
    watch = place.watch()
    kill(place, running)
    if kill is not killed_service:
        assert place.run("list").status == 0  # brings it back, if it is gone
    place.service()
    path.unlink()
    assert RELEASED.fullmatch(one_ping(server))
    if kill is killed_service:
        ended = running.end()
        assert ended.line == one_ping(server)
        assert not any("sem serviço" in line for line in ended.err)
        assert sum("armado: " in line for line in ended.err) == 1
    until(lambda: settled(place))
    after = place.watch("--all")
    assert (after["id"], after["state"]) == (watch["id"], "released")
    assert after["deadline"] == watch["deadline"]
    one_ping(server)


@pytest.mark.slow
def test_a_killed_service_comes_back_with_the_original_deadline(place: Place) -> None:
    place.hold()
    start_s = time.monotonic()
    running = place.start("lock", "demo", "--ttl", "6s", "--json")
    running.armed()
    for _ in range(3):
        killed = place.end_service()
        until(lambda: service_pid(place.state) not in {None, killed})  # noqa: B023
    found = running.end().object
    took_s = time.monotonic() - start_s
    assert found["outcome"] == "expired"
    assert found["ttl_s"] == 6
    assert 6 <= took_s < 12
    assert found["waited_s"] == pytest.approx(6, abs=2)
    place.ping("lock demo EXPIR")


@pytest.mark.slow
def test_the_next_list_brings_the_service_of_an_abandoned_watch_back(
    place: Place, server: Server
) -> None:
    """Released while neither command nor service lives: the next look finds it."""
    notifying(place, server)
    path = place.hold()
    running = place.start("lock", "demo", "--detach")
    assert running.end().status == 0
    place.end_service()
    path.unlink()
    assert server.requests == []
    assert place.watch()["state"] == "armed"
    assert RELEASED.match(one_ping(server))
    until(lambda: settled(place))
    assert place.watch("--all")["state"] == "released"
    one_ping(server)


@pytest.mark.slow
def test_a_deadline_that_passed_while_nobody_lived_is_told_after_a_last_look(
    place: Place, server: Server
) -> None:
    notifying(place, server)
    free = place.hold("free")
    for slug in ("free", "held"):
        place.hold(slug)
        place.run("lock", slug, "--ttl", "2s", "--detach")
    place.end_service()
    free.unlink()
    dead_s = time.monotonic()
    until(lambda: time.monotonic() > dead_s + 2.1)
    place.run("list")
    until(lambda: len(server.requests) == 2)
    until(lambda: settled(place))
    states = {w["target"]: w["state"] for w in place.watches("--all")}
    assert states == {"lock free": "released", "lock held": "expired"}
    assert len(server.requests) == 2


@pytest.mark.slow
def test_an_outcome_is_told_once_however_often_the_service_is_killed_afterwards(
    place: Place, server: Server
) -> None:
    """B89: the notice of a deadline fired again on each restart."""
    notifying(place, server)
    place.hold()
    place.hold("other")
    place.start("lock", "other")
    running = place.start("lock", "demo", "--ttl", "1s")
    assert "EXPIROU" in running.end().line
    for _ in range(3):
        place.end_service()
        place.run("list")
        place.service()
        assert place.run("outbox", "flush").status == 0
    assert "EXPIROU" in one_ping(server)


@pytest.mark.slow
def test_a_ping_that_was_under_way_when_the_service_was_killed_comes_with_its_key(
    place: Place,
) -> None:
    with serve(Answer(delay_s=60), Answer()) as server:
        notifying(place, server)
        running = place.start("lock", "demo")
        until(lambda: server.requests)
        place.end_service()
        assert RELEASED.match(running.end().line)
        until(lambda: place.run("outbox", "flush").status == 0)
        until(lambda: len(server.requests) > 1)
        keys = {r.headers["idempotency-key"] for r in server.requests}
        assert len(keys) == 1
        until(lambda: settled(place))


@pytest.mark.slow
def test_kill_9_at_any_instant_of_arming_leaves_no_armed_line_without_a_watch(
    place: Place,
) -> None:
    """The nonce of a command makes its order count once, however often it asks."""
    place.hold("keeper")
    place.start("lock", "keeper").armed()
    commands = []
    for number in range(6):
        path = place.hold(f"s{number}")
        command = place.start("lock", f"s{number}")
        commands.append((command, path))
        pause_s = time.monotonic() + number * 0.06
        until(lambda: time.monotonic() > pause_s)  # noqa: B023
        place.end_service()
    for command, path in commands:
        command.armed()
        path.unlink()
    for command, _ in commands:
        assert command.end().line.startswith("✅ LIBERADO: lock s")
    waiters = place.rows("SELECT watch_id FROM waiters")
    assert len(waiters) == len({row["watch_id"] for row in waiters}) == 7


# It is stopped: C5.3, and the promise that nothing waits for ever


@pytest.mark.slow
def test_a_stopped_service_holds_nobody_beyond_the_deadline_nor_a_new_command_up(
    place: Place,
) -> None:
    paths = {slug: place.hold(slug) for slug in ("held", "free", "new")}
    waiting = {
        slug: place.start("lock", slug, "--ttl", "3s") for slug in ("held", "free")
    }
    for command in waiting.values():
        command.armed()
    pid = place.service()
    os.kill(pid, signal.SIGSTOP)
    paths["free"].unlink()
    new = place.start("lock", "new", "--ttl", "90s")
    ended = {slug: command.end(limit_s=60) for slug, command in waiting.items()}
    assert ended["held"].line.startswith("⏰ EXPIROU: lock held ainda ativo após 3s")
    assert ended["free"].line.startswith("✅ LIBERADO: lock free em ")
    until(lambda: "armado: " in new.stderr(), limit_s=70)
    paths["new"].unlink()
    ended["new"] = new.end()
    assert ended["new"].line.startswith("✅ LIBERADO: lock new em ")
    for command_ended in ended.values():
        assert any("sem serviço" in line for line in command_ended.err)
    os.kill(pid, signal.SIGCONT)
    until(lambda: settled(place))
    # What it tells late, too, it tells under the same key: at least once.
    keys = {ping.split()[2] for ping in place.pings() if "lock new" not in ping}
    assert len(keys) == 2


@pytest.mark.slow
def test_a_stopped_service_that_goes_on_in_time_has_lost_nothing(
    place: Place, server: Server
) -> None:
    notifying(place, server)
    path = place.hold()
    running = place.start("lock", "demo")
    running.armed()
    pid = place.service()
    os.kill(pid, signal.SIGSTOP)
    path.unlink()
    stopped_s = time.monotonic()
    until(lambda: time.monotonic() > stopped_s + 3)
    os.kill(pid, signal.SIGCONT)
    assert running.end().line == one_ping(server)


@pytest.mark.slow
def test_a_stopped_service_keeps_no_command_from_ending_by_a_signal(
    place: Place,
) -> None:
    place.hold()
    commands = [place.start("lock", "demo") for _ in range(2)]
    for command in commands:
        command.armed()
    os.kill(place.service(), signal.SIGSTOP)
    commands[0].send(signal.SIGTERM)
    commands[1].send(signal.SIGINT)
    assert [c.end(limit_s=10).status for c in commands] == [143, 130]


# It is ended: C10.2


@contextmanager
def mute() -> Iterator[str]:
    """Give the address of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_service_that_is_told_to_end_does_so_within_5_s_and_loses_nothing(
    place: Place, server: Server, number: signal.Signals
) -> None:
    notifying(place, server)
    path = place.hold()
    running = place.start("lock", "demo", "--ttl", "1h")
    running.armed()
    watch = place.watch()
    pid = place.end_service(number, limit_s=5)
    until(lambda: service_pid(place.state) not in {None, pid})
    place.service()
    assert place.watch()["deadline"] == watch["deadline"]
    path.unlink()
    ended = running.end()
    assert ended.line == one_ping(server)
    assert not any("sem serviço" in line for line in ended.err)


@pytest.mark.slow
def test_a_service_ends_within_5_s_also_while_a_channel_and_a_look_hang(
    place: Place,
) -> None:
    fifo = place.folder / "pidfile"
    os.mkfifo(fifo)
    with mute() as url:
        place.env["KODER_MONITOR_NOTIFY_URL"] = url
        place.start("process", "--pidfile", str(fifo))
        place.hold("keeper")
        place.start("lock", "keeper").armed()
        running = place.start("lock", "demo")
        until(lambda: running.stdout().endswith("\n"))
        place.end_service(signal.SIGTERM, limit_s=5)
        assert RELEASED.match(running.end().line)
        (ping,) = place.rows("SELECT state FROM pings")
        assert ping["state"] == "pending"


@pytest.mark.slow
def test_many_waiting_commands_outlive_the_end_of_their_service(place: Place) -> None:
    paths = [place.hold(f"s{number}") for number in range(8)]
    commands = [place.start("lock", f"s{number}") for number in range(8)]
    for command in commands:
        command.armed()
    place.end_service(signal.SIGTERM, limit_s=5)
    place.service()
    for path in paths:
        path.unlink()
    for command in commands:
        ended = command.end()
        assert ended.line.startswith("✅ LIBERADO: lock s")
        assert not any("sem serviço" in line for line in ended.err), ended.err
    until(lambda: settled(place))
    assert len(place.pings()) == 8


# `serve`: C5.1b


@pytest.mark.slow
def test_serve_takes_over_from_a_service_that_was_started_on_demand(
    place: Place, server: Server
) -> None:
    notifying(place, server)
    path = place.hold()
    commands = [place.start("lock", "demo"), place.start("lock", "demo")]
    for command in commands:
        command.armed()
    on_demand = place.service()
    served = place.start("serve")
    until(lambda: service_pid(place.state) == served.process.pid)
    assert place.service() == served.process.pid != on_demand
    path.unlink()
    lines = {command.end().line for command in commands}
    assert lines == {one_ping(server)}
    served.send(signal.SIGTERM)
    assert served.process.wait(5) == 0


@pytest.mark.slow
def test_a_second_serve_is_refused_with_one_sentence(place: Place) -> None:
    first = place.start("serve")
    assert place.service() == first.process.pid
    second = place.run("serve")
    assert second.status != 0
    assert sum("já há um serviço" in line for line in second.err) == 1
    assert place.service() == first.process.pid


@pytest.mark.slow
def test_of_many_services_started_at_once_one_runs(place: Place) -> None:
    place.hold()
    served = [place.start("serve") for _ in range(3)]
    served += [place.start("serve", "--on-demand") for _ in range(3)]
    place.service()
    running = place.start("lock", "demo")
    running.armed()
    refused = [s for s in served if s.process.poll() is not None]
    until(lambda: len([p for p in place.processes() if _serves(p)]) == 1)
    assert refused
    assert len(place.watches()) == 1


def test_one_whose_environment_differs_from_the_service_s_says_so(
    place: Place,
) -> None:
    place.hold()
    place.start("lock", "demo").armed()
    env = {
        "KODER_MONITOR_NOTIFY_URL": "http://127.0.0.1:9/",
        "KODER_MONITOR_FLOOR": "2s",
    }
    running = place.start("lock", "demo", env=env)
    running.armed()
    said = running.said("este ambiente difere do serviço em")
    assert "[notify] url" in said
    assert "[cadence] floor_local" in said
    assert "127.0.0.1:9" not in said
    found = place.run("doctor", env=env)
    assert any(
        "settings" in line and "[notify] url" in line for line in found.out.splitlines()
    )


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _serves(pid: int) -> bool:
    return b"\0serve\0" in _read(f"/proc/{pid}/cmdline")
