"""Many who wait for one condition: one watch, one ping, each its line (C5.2, C5.5)."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.e2e.command import Place, Running, outcome, until
from tests.e2e.test_service_life import notifying, one_ping, settled
from tests.servers import Server

TAKEN = outcome("✅ LIBERADO: lock demo em HH:MM:SS — retomar a atividade bloqueada")


def joined(running: Running) -> str:
    """Wait for the line that says that a command joined; return the watch's id."""
    said = running.said("já monitorado como ")
    return said.removeprefix("já monitorado como ").partition(":")[0]


def waiters(place: Place, count: int) -> None:
    """Wait until so many commands wait, or have waited."""
    until(lambda: len(place.rows("SELECT 1 FROM waiters")) >= count)


# Joining: C5.2


def test_a_second_command_for_the_same_condition_joins_and_both_print(
    place: Place, server: Server
) -> None:
    """B121: after a compaction an agent started the same watch again."""
    notifying(place, server)
    path = place.hold()
    first = place.start("lock", "demo", "--label", "o primeiro", "--session", "s-1")
    first.armed()
    second = place.start(
        "lock", "./locks/lock-demo.md", "--label", "o segundo", "--json"
    )
    second.armed()
    watch = place.watch()
    assert joined(second) == watch["id"]
    assert watch["waiters"] == 2
    path.unlink()
    found = second.end().object
    line = first.end().line
    assert outcome(
        "✅ LIBERADO: lock demo em HH:MM:SS — retomar <x>".replace(
            "<x>", "a atividade bloqueada"
        )
    ).fullmatch(line)
    assert found["watch_id"] == watch["id"]
    assert found["label"] == "o segundo"
    assert one_ping(server) == line
    until(lambda: settled(place))
    one_ping(server)


def test_each_waiter_s_line_names_its_own_activity_in_its_own_language(
    place: Place,
) -> None:
    path = place.hold()
    commands = [
        place.start("lock", "demo", "--resume", "migrar"),
        place.start("lock", "demo", "--resume", "merging", "--lang", "en"),
    ]
    for command in commands:
        until(lambda: "demo" in command.stderr())  # noqa: B023
    waiters(place, 2)
    path.unlink()
    first, second = (command.end().line for command in commands)
    assert first.endswith(" — retomar migrar")
    assert second.endswith(" — resume merging")


def test_another_pattern_or_path_is_another_condition(place: Place) -> None:
    place.hold("demo")
    place.hold("demo2")
    for slug in ("demo", "demo2"):
        place.start("lock", slug).armed()
    pid = place.work().pid
    place.start("process", "--pid", str(pid)).armed()
    assert len(place.watches()) == 3


@pytest.mark.slow
def test_the_shorter_ttl_ends_with_its_own_expiry_and_ping_and_the_watch_lives_on(
    place: Place, server: Server
) -> None:
    notifying(place, server)
    path = place.hold()
    long = place.start("lock", "demo", "--ttl", "1h", "--session", "long")
    long.armed()
    words = ["--ttl", "2s", "--session", "short", "--resume", "y", "--exit-codes"]
    short = place.start("lock", "demo", *words)
    ended = short.end()
    assert ended.line == (
        "⏰ EXPIROU: lock demo ainda ativo após 2s — renovar prazo ou remover monitor?"
    )
    assert ended.status == 124
    assert one_ping(server) == ended.line
    assert place.watch()["waiters"] == 1
    assert long.process.poll() is None
    path.unlink()
    line = long.end().line
    until(lambda: settled(place))
    assert [r.object["message"] for r in server.requests] == [ended.line, line]
    assert len({r.headers["idempotency-key"] for r in server.requests}) == 2


@pytest.mark.slow
def test_the_first_waiter_s_expiry_leaves_the_second_waiting_to_its_own(
    place: Place,
) -> None:
    place.hold()
    first = place.start("lock", "demo", "--ttl", "2s")
    first.armed()
    second = place.start("lock", "demo", "--ttl", "5s")
    joined(second)
    assert "após 2s" in first.end().line
    assert second.process.poll() is None
    assert "após 5s" in second.end().line
    until(lambda: settled(place))
    assert len(place.pings()) == 2
    assert place.watch("--all")["state"] == "expired"


def test_a_waiter_that_joined_gets_what_was_noted_before_it_came(place: Place) -> None:
    work = place.work("marked-" + place.folder.name)
    words = ("process", "--match", "marked-" + place.folder.name)
    place.start(*words).armed()
    second = place.start(*words)
    assert str(work.pid) in second.said("casou: ")


def test_ctrl_c_takes_one_waiter_out_and_leaves_the_others(
    place: Place, server: Server
) -> None:
    notifying(place, server)
    path = place.hold()
    first, second = place.start("lock", "demo"), place.start("lock", "demo")
    for command in (first, second):
        command.armed()
    first.send(signal.SIGINT)
    assert first.end().status == 130
    assert place.watch()["waiters"] == 1
    path.unlink()
    line = second.end().line
    assert TAKEN.fullmatch(line)
    assert one_ping(server) == line


def test_ctrl_c_of_the_last_waiter_ends_the_watch_without_a_ping(place: Place) -> None:
    path = place.hold()
    running = place.start("lock", "demo")
    running.armed()
    running.send(signal.SIGINT)
    assert running.end().status == 130
    assert place.watch("--all")["state"] == "removed"
    path.unlink()
    assert place.watches() == []
    assert place.pings() == []


def test_what_ended_is_armed_anew_as_another_watch(place: Place) -> None:
    first = place.run("lock", "demo", "--json").object
    second = place.run("lock", "demo", "--json").object
    assert first["watch_id"] != second["watch_id"]
    assert len(place.pings()) == 2


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("times", [100])
def test_two_simultaneous_starts_are_one_watch_one_ping_two_lines(
    place: Place, server: Server, times: int
) -> None:
    notifying(place, server)
    for number in range(times):
        slug = f"s{number}"
        path = place.hold(slug)
        pair = [place.start("lock", slug, "--ttl", ttl) for ttl in ("50m", "70m")]
        for command in pair:
            command.armed()
        assert [w["waiters"] for w in place.watches()] == [2]
        path.unlink()
        lines = {command.end().line for command in pair}
        assert len(lines) == 1
        until(lambda: settled(place))
        messages = [r.object["message"] for r in server.requests]
        assert messages.count(*lines) == 1
        assert len(messages) == number + 1


@pytest.mark.slow
def test_two_that_start_while_no_service_runs_are_one_watch_too(place: Place) -> None:
    for number in range(3):
        path = place.hold()
        pair = [place.start("lock", "demo") for _ in range(2)]
        for command in pair:
            command.armed()
        (watch,) = place.watches()
        assert watch["waiters"] == 2
        path.unlink()
        assert len({command.end().line for command in pair}) == 1
        until(lambda: settled(place))
        assert len(place.pings()) == number + 1
        place.end_service(signal.SIGTERM, limit_s=5)


# Taking the lock: C5.5


def entry(path: Path) -> str:
    """Wait for the lock file and return what it says."""
    until(path.exists)
    return path.read_text()


def test_who_asks_for_the_lock_gets_the_file_before_its_line_is_printed(
    place: Place, server: Server
) -> None:
    notifying(place, server)
    path = place.hold()
    words = ["--take", "--session", "sess-a", "--json"]
    running = place.start("lock", "demo", *words)
    running.armed()
    path.unlink()
    found = running.end().object
    assert found["outcome"] == "released"
    assert 'session: "sess-a"' in entry(path)
    assert "pid:" not in entry(path)
    assert path.stat().st_mode & 0o777 == 0o644
    assert found["line"] == one_ping(server)
    assert [p.name for p in place.locks.iterdir()] == [path.name]


def test_a_lock_that_is_free_at_arming_is_taken_too(place: Place) -> None:
    ended = place.run("lock", "demo", "--take", "--session", "sess-a")
    assert ended.line.startswith("✅ LIBERADO: lock demo em ")
    assert "sess-a" in entry(place.locks / "lock-demo.md")


@pytest.mark.slow
def test_the_lock_goes_from_taker_to_taker_in_the_order_they_came(
    place: Place, server: Server
) -> None:
    notifying(place, server)
    path = place.hold()
    waiting = {}
    for session in ("a", "b", "c"):
        words = ["--session", session, *([] if session == "b" else ["--take"])]
        waiting[session] = place.start("lock", "demo", *words)
        waiting[session].armed()
        waiters(place, len(waiting))
    path.unlink()
    assert TAKEN.fullmatch(waiting["a"].end().line)
    assert 'session: "a"' in path.read_text()
    assert [waiting[s].process.poll() for s in ("b", "c")] == [None, None]
    assert place.watch()["waiters"] == 2
    path.unlink()
    assert TAKEN.fullmatch(waiting["c"].end().line)
    assert 'session: "c"' in path.read_text()
    assert waiting["b"].process.poll() is None
    path.unlink()
    assert TAKEN.fullmatch(waiting["b"].end().line)
    assert not path.exists()
    until(lambda: settled(place))
    assert len(server.requests) == 3


@pytest.mark.slow
def test_a_lock_that_somebody_else_takes_first_is_not_overwritten(place: Place) -> None:
    path = place.hold(content='{"session": "before"}')
    env = {"KODER_MONITOR_SETTLE": "1s"}
    running = place.start("lock", "demo", "--take", env=env)
    running.armed()
    path.unlink()
    gone_s = time.monotonic()
    until(lambda: time.monotonic() > gone_s + 0.5)
    path.write_text('{"session": "faster"}')
    running.said("retomado por faster")
    assert json.loads(path.read_text()) == {"session": "faster"}
    assert running.process.poll() is None
    path.unlink()
    running.end()
    assert "monitor: " in path.read_text()


@pytest.mark.slow
def test_a_lock_that_cannot_be_made_is_told_as_free_with_a_hint(place: Place) -> None:
    path = place.hold()
    running = place.start("lock", "demo", "--take")
    running.armed()
    beside = place.locks / f".{path.name}.{place.service()}"
    beside.mkdir()  # where the entry is written before it gets its name
    path.unlink()
    ended = running.end()
    assert TAKEN.fullmatch(ended.line)
    assert any("crie-o à mão" in line for line in ended.err)
    assert not path.exists()


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(3))
def test_a_service_killed_right_after_it_made_the_lock_tells_its_taker_all_the_same(
    place: Place, server: Server, attempt: int
) -> None:
    """Else the taker waited for a lock that was its own."""
    notifying(place, server)
    path = place.hold()
    running = place.start("lock", "demo", "--take", "--session", "sess-a", "--json")
    other = place.start("lock", "demo", "--session", "sess-b")
    for command in (running, other):
        command.armed()
    waiters(place, 2)
    pid = place.service()
    # An observer as fast as can be: the file is there, the outcome not yet told.
    path.unlink()
    while not path.exists():
        assert running.process.poll() is None
    os.kill(pid, signal.SIGKILL)
    taken = running.end().object
    assert taken["outcome"] == "released"
    assert "sess-a" in path.read_text()
    assert other.process.poll() is None
    until(lambda: server.requests)
    path.unlink()
    assert TAKEN.fullmatch(other.end().line)
    until(lambda: settled(place))
    keys = [request.headers["idempotency-key"] for request in server.requests]
    assert sorted(key[-10:] for key in keys) == ["1-released", "2-released"], attempt


# Circles: C3.8


@pytest.mark.slow
def test_two_sessions_that_wait_for_each_other_s_locks_are_told_once_all_round(
    place: Place, server: Server
) -> None:
    notifying(place, server)
    place.hold("a", '{"session": "sess-a"}')
    place.hold("b", '{"session": "sess-b"}')
    first = place.start("lock", "b", "--session", "sess-a")
    first.armed()
    assert "CÍRCULO" not in first.stderr()
    second = place.start("lock", "a", "--session", "sess-b")
    for command in (first, second):
        said = command.said("⚠️ CÍRCULO: ")
        assert "sess-a" in said
        assert "sess-b" in said
    message = one_ping(server)
    assert message.startswith("⚠️ CÍRCULO: ")
    place.end_service()  # neither does a restart tell it again
    place.run("list")
    place.service()
    until(lambda: settled_circle(place))
    third = place.start("lock", "a", "--session", "sess-c")
    third.armed()
    assert one_ping(server) == message


@pytest.mark.slow
def test_a_circle_that_forms_while_all_wait_is_told(place: Place) -> None:
    """B has waited for A long before A's lock names B's session."""
    a = place.hold("a", '{"session": "other"}')
    place.hold("b", '{"session": "sess-b"}')
    first = place.start("lock", "b", "--session", "sess-a")
    second = place.start("lock", "a", "--session", "sess-b")
    for command in (first, second):
        command.armed()
    beside = place.folder / "beside"
    beside.write_text('{"session": "sess-a"}')
    beside.replace(a)
    for command in (first, second):
        command.said("⚠️ CÍRCULO: ")


def test_who_waits_for_its_own_session_s_lock_or_in_a_line_is_in_no_circle(
    place: Place,
) -> None:
    place.hold("a", '{"session": "sess-a"}')
    place.hold("b", '{"session": "sess-b"}')
    first = place.start("lock", "b", "--session", "sess-a")
    second = place.start("lock", "a", "--session", "sess-c")
    for command in (first, second):
        command.armed()
    assert place.pings() == []
    assert "CÍRCULO" not in first.stderr() + second.stderr()


def settled_circle(place: Place) -> bool:
    """Say whether the restarted service has looked at both locks again."""
    rows = place.rows("SELECT 1 FROM watches WHERE state = 'armed' AND looks > 1")
    return len(rows) == 2
