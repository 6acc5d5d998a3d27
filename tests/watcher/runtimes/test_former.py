"""The command that a user had before: its first line, or nothing (C11.1)."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command import until
from watcher.runtimes.chained import previous
from watcher.runtimes.former import CHAINED, Former

PAYLOAD = b'{"session_id": "abc"}'
LONG_S = 60.0  # what ends by itself ends long before, on any machine


def line(command: str, *, limit_s: float = LONG_S, payload: bytes = PAYLOAD) -> object:
    return Former(command, payload, os.environ).line(limit_s)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo one; echo two", "one"),
        ("printf 'no end'", "no end"),
        ("printf '\\n\\r\\none\\r\\ntwo'", "one"),
        ("cat", PAYLOAD.decode()),
        ("cat | wc -c", str(len(PAYLOAD))),
        (f"printf %s ${CHAINED}", "koder-monitor"),
        ("printf '\\377'", "\udcff"),
        ("echo said >&2", None),
        ("true", None),
        ("echo one; exit 3", None),
        ("exec /no/such/program", None),
        ("kill -9 $$", None),
    ],
)
def test_its_first_line_is_kept_unless_it_failed(command: str, said: str) -> None:
    assert line(command) == said


def test_it_may_leave_its_stdin_unread_and_say_very_much() -> None:
    much = "head -c 1000000 /dev/zero | tr '\\0' x"
    found = line(much, payload=b"{}" * 500_000)
    assert found == "x" * 16384


@pytest.fixture
def marked(tmp_path: Path) -> Iterator[Path]:
    """Give a file for a PID, and end that process if the test did not."""
    path = tmp_path / "pid"
    yield path
    if path.exists() and alive(int(path.read_text())):
        os.kill(int(path.read_text()), signal.SIGKILL)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    "command",
    [
        "echo $$ >{}; echo said; exec sleep 300",
        "echo $$ >{}; exec >&-; exec sleep 300",
        "sleep 300 & echo $! >{}; echo said; wait",
        "sleep 300 & echo $! >{}; echo said",
    ],
)
def test_one_that_takes_too_long_is_left_out_and_ended(
    command: str, marked: Path
) -> None:
    former = Former(command.format(marked), PAYLOAD, os.environ)
    until(lambda: marked.exists() and marked.read_text().endswith("\n"))
    assert former.line(0.0) is None
    pid = int(marked.read_text())
    until(lambda: not alive(pid))


def test_one_that_leaves_a_child_behind_is_not_waited_for_longer(marked: Path) -> None:
    """The child has its own session, so it lives on; its pipe holds nobody up."""
    command = f"setsid sh -c 'echo $$ >{marked}; exec sleep 300' & echo said"
    former = Former(command, PAYLOAD, os.environ)
    until(lambda: marked.exists() and marked.read_text().endswith("\n"))
    assert former.line(0.0) is None


def test_one_that_may_not_be_ended_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As one that `sudo` runs: a signal from us is refused."""

    def refused(group: int, number: int) -> None:
        raise PermissionError

    former = Former("exec sleep 30", PAYLOAD, os.environ)
    with monkeypatch.context() as patched:
        patched.setattr(os, "killpg", refused)
        assert former.line(0.1) is None
    os.killpg(former._process.pid, signal.SIGKILL)
    former._process.wait(LONG_S)


# where it is kept


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    folder.mkdir()
    monkeypatch.setenv("KODER_MONITOR_STATE", str(folder))
    return folder


@pytest.mark.parametrize(
    ("kept", "command"),
    [
        ({"claude-code": {"command": "mine --x"}, "qwen": {}}, "mine --x"),
        ({"qwen": {"command": "other"}}, None),
        ({"claude-code": {"command": " "}}, None),
        ({"claude-code": {"command": 5}}, None),
        ({"claude-code": "mine"}, None),
        ([], None),
        (None, None),
    ],
)
def test_the_former_command_is_what_the_installer_kept(
    state: Path, kept: object, command: str | None
) -> None:
    (state / "statusline.json").write_text(json.dumps(kept))
    assert previous("claude-code") == command


def test_where_nothing_was_kept_there_is_no_former_command(state: Path) -> None:
    assert previous("claude-code") is None
    (state / "statusline.json").write_text("{")
    assert previous("claude-code") is None
