"""How a waiting command ends by a signal, and what it ignores (C1.6, C5.4)."""

import os
import shutil
import signal
import socket
from pathlib import Path

import pytest

from tests.e2e.command import COMMAND, LIMIT_S, Place, until
from tests.e2e.screen import terminal


@pytest.mark.parametrize(
    ("command", "number", "status"),
    [
        ("lock", signal.SIGHUP, 129),
        ("lock", signal.SIGINT, 130),
        ("lock", signal.SIGTERM, 143),
        ("process", signal.SIGINT, 130),
        ("process", signal.SIGTERM, 143),
    ],
)
def test_a_signal_ends_the_command_with_128_plus_its_number_and_one_sentence(
    place: Place, command: str, number: signal.Signals, status: int
) -> None:
    place.hold()
    named = "demo" if command == "lock" else f"--pid={place.work().pid}"
    running = place.start(command, named)
    running.armed()
    running.send(number)
    ended = running.end(limit_s=10)
    assert (ended.status, ended.out) == (status, "")
    said = [line for line in ended.err if not line.startswith(("armado: ", "casou: "))]
    assert len(said) == 1
    assert (place.locks / "lock-demo.md").exists()


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGHUP, 129), (signal.SIGTERM, 143), (signal.SIGKILL, -9)],
)
@pytest.mark.parametrize("command", ["lock", "process"])
def test_a_session_that_ends_leaves_the_watch_to_the_service_and_the_ping_comes(
    place: Place, command: str, number: signal.Signals, status: int
) -> None:
    path, work = place.hold(), place.work()
    named = "demo" if command == "lock" else f"--pid={work.pid}"
    running = place.start(command, named, "--resume", "migrar")
    running.armed()
    watch = place.watch()
    running.send(number)
    ended = running.end(limit_s=10)
    assert (ended.status, ended.out) == (status, "")
    if number is not signal.SIGKILL:
        assert watch["id"] in ended.err[-1]
        assert number.name in ended.err[-1]
    after = place.watch()
    assert (after["id"], after["state"]) == (watch["id"], "armed")
    assert after["deadline"] == watch["deadline"]
    path.unlink()
    work.end()
    assert place.ping("retomar migrar")
    assert place.watches() == []


def test_ctrl_c_ends_the_watch_and_no_ping_comes(place: Place) -> None:
    path = place.hold()
    running = place.start("lock", "demo")
    running.armed()
    running.send(signal.SIGINT)
    assert running.end(limit_s=10).status == 130
    assert place.watches() == []
    path.unlink()
    place.run("lock", "other")  # whose ping comes behind any other
    assert "lock other" in place.ping("lock other")


def test_a_session_that_is_killed_with_all_its_children_ends_no_watch(
    place: Place,
) -> None:
    """A runtime ends a whole process group: the service is in none of it."""
    path = place.hold()
    shell = place.shell("set -m; koder-monitor lock demo & wait")
    shell.armed()
    watch = place.rows("SELECT 1 FROM watches WHERE state = 'armed'")
    assert watch
    pid = place.service()
    children = Path(f"/proc/{shell.process.pid}/task/{shell.process.pid}/children")
    for child in children.read_text().split():
        os.killpg(int(child), signal.SIGKILL)
    shell.process.kill()
    shell.process.wait(LIMIT_S)
    assert place.service() == pid
    path.unlink()
    place.ping("lock demo liberado")


def test_ctrl_c_says_how_to_keep_the_wait_next_time(place: Place) -> None:
    place.hold()
    running = place.start("lock", "demo", "--lang", "en")
    running.said("armed: ")
    running.send(signal.SIGINT)
    assert "run it in the background (&)" in running.end().err[-1]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("setsid") is None, reason="needs util-linux")
def test_ctrl_c_on_a_terminal_leaves_no_countdown_behind(place: Place) -> None:
    place.hold()
    with terminal() as screen:
        running = place.start(
            *("setsid", "--ctty", "--wait", *COMMAND, "lock", "demo"),
            program=(),
            stdin=screen.slave,
            stdout=screen.slave,
            stderr=screen.slave,
        )
        until(lambda: "faltam" in screen.written())
        screen.type(b"\x03")
        assert running.process.wait(LIMIT_S) == 130
        assert "Traceback" not in screen.written()
        assert "faltam" not in "".join(screen.rows())
        assert "segundo plano (&)" in screen.rows()[-1]


def test_under_nohup_a_hang_up_does_not_end_the_wait(place: Place) -> None:
    path = place.hold()
    running = place.start("lock", "demo", program=("nohup", *COMMAND))
    running.armed()
    running.send(signal.SIGHUP)
    path.unlink()
    assert running.end().line.startswith("✅ LIBERADO: ")


def test_in_a_shell_s_background_ctrl_c_does_not_end_the_wait(place: Place) -> None:
    """A shell without job control starts such commands with SIGINT ignored."""
    path = place.hold()
    shell = place.shell("koder-monitor lock demo & echo $! > pid; wait")
    shell.armed()
    pid = int((place.folder / "pid").read_text())
    os.kill(pid, signal.SIGINT)
    path.unlink()
    assert shell.end().line.startswith("✅ LIBERADO: ")


def test_ctrl_c_before_anything_is_armed_leaves_no_traceback(place: Place) -> None:
    """Importing takes longest where a person is most likely to lose patience."""
    slow = place.folder / "slow"
    slow.mkdir()
    (slow / "argparse.py").write_text(
        "import sys, time\nprint('importing', file=sys.stderr, flush=True)\n"
        "time.sleep(60)\n"
    )
    path = os.pathsep.join([str(slow), place.env.get("PYTHONPATH", "")])
    measured = {name: None for name in place.env if name.startswith("COVERAGE_")}
    running = place.start("lock", "demo", env={**measured, "PYTHONPATH": path})
    running.said("importing")
    running.send(signal.SIGINT)
    ended = running.end(limit_s=10)
    assert (ended.status, ended.out, ended.err) == (130, "", ("importing",))


def test_a_signal_while_the_ping_is_under_way_loses_neither_line_nor_ping(
    place: Place,
) -> None:
    out = place.folder / "out-1"
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}/"
        running = place.start("lock", "demo", env={"KODER_MONITOR_NOTIFY_URL": url})
        until(lambda: _has_line(out))
        running.send(signal.SIGTERM)
        ended = running.end(limit_s=10)
    assert ended.status in {0, 143}
    assert place.ping("lock demo liberado").endswith(ended.line)


def _has_line(path: Path) -> bool:
    return path.read_bytes().endswith(b"\n")
