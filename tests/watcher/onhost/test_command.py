"""Commands: how they ended, and what they can do to us."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.text import clean
from tests.e2e.command import steering, until
from tests.watcher.rights import open_files
from tests.watcher.work import state
from watcher.onhost import answer
from watcher.onhost import command as part

NOW = {"up_s": 100.0, "at": 0.0}


def run(*argv: str, limit_s: float = 60) -> dict[str, Any]:
    """Run a command once, and leave nothing open and no zombie."""
    files = open_files()
    (request,) = part.ask({"argv": list(argv), "limit_s": limit_s}, {})
    found = answer(request)
    assert open_files() == files
    return found


def sh(script: str, *words: str, limit_s: float = 60) -> dict[str, Any]:
    return run("sh", "-c", script, "sh", *words, limit_s=limit_s)


def judged(found: dict[str, Any]) -> dict[str, Any]:
    seen = part.judge({"argv": ["prog"], "limit_s": 2.5}, {}, [found], NOW)
    assert ("reason" in seen) is (seen["sight"] == "unknown")
    return seen


def gone(pid: int) -> bool:
    return state(pid) in {"", "Z"}


@contextmanager
def ended_with_the_test(path: Path) -> Iterator[None]:
    """End what wrote its PID to a file."""
    try:
        yield
    finally:
        if path.exists():
            with suppress(ProcessLookupError):
                os.kill(int(path.read_text()), signal.SIGKILL)


# How it ended


@pytest.mark.parametrize(
    ("script", "code", "sight"),
    [
        pytest.param("exit 0", 0, "released", id="success"),
        pytest.param("exit 1", 1, "held", id="failure"),
        pytest.param("exit 125", 125, "held", id="below those of a shell"),
        pytest.param("exit 126", 126, "unknown", id="not executable, says a shell"),
        pytest.param("no-such-program", 127, "unknown", id="not found, says a shell"),
        pytest.param("exit 255", 255, "held", id="the largest"),
    ],
)
def test_only_zero_is_a_release(script: str, code: int, sight: str) -> None:
    found = sh(script)
    assert found["exit"] == code
    seen = judged(found)
    assert seen["sight"] == sight
    assert seen["evidence"]["exit"] == code
    assert seen["evidence"]["means"] == "exec"


def test_one_that_a_signal_ended_is_unknown() -> None:
    found = sh("kill -KILL $$")
    assert (found["exit"], found["signal"]) == (None, signal.SIGKILL)
    seen = judged(found)
    assert seen["reason"] == ["command_killed", {"program": "prog", "signal": 9}]
    assert seen["evidence"]["signal"] == 9


@pytest.mark.parametrize(
    ("argv", "errno"),
    [
        pytest.param(["no-such-program-of-ours"], "ENOENT", id="not found"),
        pytest.param(["/"], "EACCES", id="a directory"),
        pytest.param(["/etc/passwd"], "EACCES", id="not executable"),
        pytest.param(["/etc/passwd/x"], "ENOTDIR", id="below a file"),
        pytest.param(["true", "x" * 200_000], "E2BIG", id="too long"),
    ],
)
def test_one_that_could_not_be_run_is_unknown(argv: list[str], errno: str) -> None:
    found = run(*argv)
    assert found["error"]["errno"] == errno
    seen = judged(found)
    assert seen["reason"] == ["command_not_run", {"program": "prog", "error": errno}]


def test_what_is_no_program_is_no_script_for_a_shell(tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text("exit 0\n")
    path.chmod(0o755)
    assert run(str(path))["error"]["errno"] == "ENOEXEC"


def test_a_word_that_no_program_can_be_given_is_unknown() -> None:
    seen = judged(run("true", "a\0b"))
    assert seen["sight"] == "unknown"
    assert "null byte" in seen["reason"][1]["error"]


def test_a_status_that_the_system_threw_away_is_unknown() -> None:
    """Where SIGCHLD is ignored; Popen would call it a success."""
    script = """
import json, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
from watcher.onhost import answer
print(json.dumps(answer({"op": "command", "argv": ["false"], "limit_s": 60})))
"""
    said = subprocess.check_output([sys.executable, "-c", script], timeout=120)
    found = json.loads(said)
    assert found["error"]["errno"] == "ECHILD"
    assert judged(found)["sight"] == "unknown"


# What it is given


def test_its_words_reach_it_as_they_are() -> None:
    words = ["a b", "", "$HOME", "'", '"', "\n", "*", "--ttl", "\udcff", "é"]
    found = sh(r'for word; do printf "<%s>" "$word"; done', *words)
    assert found["output"] == "<a b><><$HOME><'><\"><\\n><*><--ttl><\ufffd><é>"


def test_it_runs_in_the_root_with_nothing_to_read_in_a_session_of_its_own() -> None:
    found = sh('pwd; cat; cut -d " " -f 6 /proc/$$/stat; echo $$')
    where, sid, pid = found["output"].split("\\n")
    assert where == "/"
    assert sid == pid
    assert int(sid) != os.getsid(0)


def test_it_is_told_all_but_our_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NOTIFY_KEY", "TOKEN", "NOTIFY_KEY_FILE", "SERVE_SECRET", "PASSWORD"):
        monkeypatch.setenv(f"KODER_MONITOR_{name}", "hidden-from-it")
    monkeypatch.setenv("KODER_MONITOR_STATE", "/shown")
    monkeypatch.setenv("API_TOKEN", "its-own")
    found = run("env")["output"]
    assert "hidden-from-it" not in found
    told = part.environment(os.environ)
    assert told["KODER_MONITOR_STATE"] == "/shown"
    assert told["API_TOKEN"] == "its-own"
    assert "PATH" in told


# What it says


def test_the_end_of_what_it_says_is_kept() -> None:
    found = sh("seq 200000; echo the end >&2; exit 3")
    assert found["exit"] == 3
    assert found["output"].endswith("199999\\n200000\\nthe end")
    assert len(found["output"]) < 3 * 2048


def test_nothing_that_it_says_steers_a_terminal() -> None:
    found = sh(r"printf 'a\033[31mb\r\n\007\302\205\342\200\256\377c  \n'")
    assert found["output"] == "a\\x1b[31mb\\r\\n\\x07\\x85\\u202e\ufffdc"


@given(st.binary(max_size=200))
def test_whatever_it_says_is_harmless_text(output: bytes) -> None:
    text = part.shown(output)
    assert steering(text) == []
    assert clean(text) == text
    assert json.loads(json.dumps(text)) == text


def test_one_that_closes_its_output_is_waited_for() -> None:
    assert sh("exec >/dev/null 2>&1; sleep 0.2; exit 4")["exit"] == 4


def test_a_program_that_it_leaves_behind_holds_nobody_up(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with ended_with_the_test(pid):
        found = sh('sleep 1000 & echo $! >"$1"; echo started', str(pid))
        assert (found["exit"], found["output"]) == (0, "started")
        assert not gone(int(pid.read_text()))


# What takes too long

STUBBORN = """
trap '' TERM
echo "working"
sleep 1000 &
echo $! >"$1"
wait
sleep 1000
"""


def ends_once(monkeypatch: pytest.MonkeyPatch, ready: Path) -> None:
    """Let the time be up once a file is written, however long that takes."""

    class UntilReady(part.Tail):
        waits = True

        def ended_within(self, limit_s: float) -> bool:
            if not self.waits:
                return super().ended_within(limit_s)
            while not (ready.exists() and ready.read_text()):
                assert not super().ended_within(0.01)
            self.waits = False
            return False

    monkeypatch.setattr(part, "Tail", UntilReady)
    monkeypatch.setattr(part, "_REAP_S", 60)


def test_one_that_takes_too_long_is_ended_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = tmp_path / "pid"
    ends_once(monkeypatch, pid)
    with ended_with_the_test(pid):
        threads = threading.active_count()
        found = sh(STUBBORN, str(pid))
        assert found["slow"]
        assert found["signal"] == signal.SIGKILL
        assert found["output"] == "working"
        until(lambda: gone(int(pid.read_text())))
        assert threading.active_count() == threads
    seen = judged(found)
    assert seen["reason"] == ["command_slow", {"program": "prog", "limit": "2.5"}]
    assert seen["sight"] == "unknown"


def test_one_that_ends_well_only_because_it_must_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = tmp_path / "ready"
    ends_once(monkeypatch, ready)
    monkeypatch.setattr(part, "_GRACE_S", 60)
    script = "trap 'exit 0' TERM; echo 1 >\"$1\"; while :; do sleep 0.01; done"
    found = sh(script, str(ready))
    assert (found["exit"], found["slow"]) == (0, True)
    assert judged(found)["sight"] == "unknown"


@pytest.mark.slow
def test_the_limit_is_kept() -> None:
    assert run("sleep", "1000", limit_s=0.05)["slow"]


def test_what_may_not_be_ended_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has taken other rights, as sudo does."""
    ended = os.killpg

    def not_permitted(group: int, number: int) -> None:
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(part, "_GRACE_S", 0.01)
    monkeypatch.setattr(part, "_REAP_S", 0.01)
    monkeypatch.setattr(os, "killpg", not_permitted)
    pids: list[int] = []
    plain = part.Tail

    def noted(child: "subprocess.Popen[bytes]") -> part.Tail:
        pids.append(child.pid)
        return plain(child)

    monkeypatch.setattr(part, "Tail", noted)
    with pytest.warns(ResourceWarning, match="still running"):
        found = run("sleep", "1000", limit_s=0.01)
    assert (found["exit"], found["signal"], found["slow"]) == (None, None, True)
    assert judged(found)["sight"] == "unknown"
    ended(pids[0], signal.SIGKILL)


def test_one_that_whoever_ran_it_gave_up_took_too_long() -> None:
    error = {"errno": "ETIMEDOUT", "text": "the look did not come back"}
    seen = judged({"error": error})
    assert seen["reason"] == ["command_slow", {"program": "prog", "limit": "2.5"}]


def test_a_command_without_a_pipe_cannot_be_followed() -> None:
    with subprocess.Popen(["true"]) as child, pytest.raises(ValueError, match="pipe"):
        part.Tail(child)


def test_it_follows_no_process() -> None:
    assert part.follows({"argv": ["true"]}, {}) == []


@given(
    code=st.none() | st.integers(0, 255),
    number=st.none() | st.integers(1, 64),
    slow=st.booleans(),
)
def test_nothing_but_a_zero_in_time_is_a_release(
    code: int | None, number: int | None, slow: bool
) -> None:
    found = {"exit": code, "signal": number, "slow": slow, "output": ""}
    released = judged(found)["sight"] == "released"
    assert released is (code == 0 and number is None and not slow)
