"""Commands by POSIX sh: the same answers, without what was said."""

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.e2e.command import until
from tests.watcher.transport.shell.shells import NAMES, SHELLS, program, run
from tests.watcher.work import state
from watcher.onhost import answer
from watcher.onhost import command as part
from watcher.transport.shell import command as shell_part

each_shell = pytest.mark.parametrize("shell", SHELLS, ids=NAMES)


def ask(shell: list[str], *argv: str) -> dict[str, Any]:
    return run(shell, shell_part, {"argv": list(argv), "limit_s": 60.0})


def sight(argv: list[str], found: dict[str, Any]) -> str:
    return str(
        part.judge({"argv": argv, "limit_s": 2}, {}, [found], {"up_s": 0, "at": 0})[
            "sight"
        ]
    )


@each_shell
@pytest.mark.parametrize(
    "argv",
    [
        pytest.param(["true"], id="success"),
        pytest.param(["false"], id="failure"),
        pytest.param(["sh", "-c", "exit 7"], id="a status"),
        pytest.param(["sh", "-c", "exit 255"], id="the largest"),
        pytest.param(["no-such-program-of-ours"], id="not found"),
        pytest.param(["/etc/passwd"], id="not executable"),
        pytest.param(["/"], id="a directory"),
        pytest.param(["sh", "-c", "kill -KILL $$"], id="a signal"),
        pytest.param(["test", "a b", "=", "a b"], id="a space"),
        pytest.param(["test", "$HOME'\n`x`", "=", "$HOME'\n`x`"], id="shell syntax"),
        pytest.param(["test", "{argv}", "=", "{limit}"], id="braces"),
        pytest.param(["test", "-z", ""], id="an empty word"),
        pytest.param(["test", "\udcff", "!=", "\udcfe"], id="no UTF-8"),
        pytest.param(["sh", "-c", 'test "$PWD" = /'], id="the root directory"),
        pytest.param(["sh", "-c", "! read x"], id="nothing to read"),
        pytest.param(["sh", "-c", "echo slow; echo exit 0; exit 1"], id="lies"),
        pytest.param(["if"], id="a word of the shell"),
        pytest.param(["A=b"], id="an assignment"),
    ],
)
def test_a_shell_sees_what_the_part_sees(shell: list[str], argv: list[str]) -> None:
    own = answer({"op": "command", "argv": argv, "limit_s": 60})
    found = ask(shell, *argv)
    assert sight(argv, found) == sight(argv, own)
    for name in ("exit", "signal") if "error" not in own else ():
        assert found[name] == own[name]


@each_shell
def test_a_program_that_is_left_behind_holds_nobody_up(
    shell: list[str], tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    script = 'sleep 1000 & echo $! >"$1"'
    try:
        assert ask(shell, "sh", "-c", script, "sh", str(pid))["exit"] == 0
        assert state(int(pid.read_text())) not in {"", "Z"}
    finally:
        with suppress(ProcessLookupError):
            os.kill(int(pid.read_text()), signal.SIGKILL)


@each_shell
def test_one_that_takes_too_long_is_ended_with_all_it_started(
    shell: list[str], tmp_path: Path
) -> None:
    """The time is up once it runs: the timer's `sleep` is one of ours."""
    pid = tmp_path / "pid"
    program(tmp_path, "sleep", f"until [ -s '{pid}' ]; do /bin/sleep 0.01; done")
    begin = f"/bin/sleep 1000 & echo $! >'{pid}'"
    argv = ["sh", "-c", f"trap '' TERM; {begin}; wait; /bin/sleep 1000"]
    found = run(shell, shell_part, {"argv": argv, "limit_s": 2.5}, tmp_path)
    assert found["slow"]
    assert sight(argv, found) == "unknown"
    until(lambda: state(int(pid.read_text())) in {"", "Z"})


@each_shell
def test_it_is_ended_though_the_script_is_cut_short(
    shell: list[str], tmp_path: Path
) -> None:
    """As a limit of the session does it."""
    pid = tmp_path / "pid"
    timing, cut = tmp_path / "timing", tmp_path / "cut"
    waits = f": >'{timing}'; until [ -e '{cut}' ]; do /bin/sleep 0.01; done"
    program(tmp_path, "sleep", waits)
    argv = ["sh", "-c", f"trap '' TERM; echo $$ >'{pid}'; exec /bin/sleep 1000"]
    script = shell_part.script({"argv": argv, "limit_s": 2.5})
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with subprocess.Popen(
        [*shell, "-s"], stdin=subprocess.PIPE, env=env, start_new_session=True
    ) as session:
        assert session.stdin is not None
        session.stdin.write(script.encode())
        session.stdin.flush()
        until(lambda: timing.exists() and pid.exists() and pid.read_text())
        os.killpg(session.pid, signal.SIGKILL)
    assert state(int(pid.read_text())) not in {"", "Z"}
    cut.touch()
    until(lambda: state(int(pid.read_text())) in {"", "Z"})


@each_shell
@pytest.mark.parametrize(
    ("script", "limit_s", "said"),
    [
        ("exit 5", 60, b"exit 5\n"),
        ("trap '' TERM; while :; do sleep 1; done", 1, b"slow\n"),
    ],
)
def test_where_there_is_no_setsid_it_is_ended_alone(
    shell: list[str], tmp_path: Path, script: str, limit_s: int, said: bytes
) -> None:
    for name in ("sh", "sleep", shell[0].rpartition("/")[2]):
        found = shutil.which(name)
        assert found is not None
        if not (tmp_path / name).exists():
            (tmp_path / name).symlink_to(found)
    request: dict[str, Any] = {"argv": ["/bin/sh", "-c", script], "limit_s": limit_s}
    ended = subprocess.run(
        [*shell, "-s"],
        input=shell_part.script(request).encode(),
        stdout=subprocess.PIPE,
        env={"PATH": str(tmp_path)},
        timeout=120,
        check=True,
    )
    assert ended.stdout == said


ANY_WORD = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@settings(
    max_examples=25,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(words=st.lists(ANY_WORD))
def test_every_word_reaches_it_as_it_is(tmp_path: Path, words: list[str]) -> None:
    path = tmp_path / "said"
    script = 'out=$1; shift; printf "%s\\0" "$@" >"$out"'
    assert ask(SHELLS[0], "sh", "-c", script, "sh", str(path), *words)["exit"] == 0
    assert path.read_bytes().decode() == "".join(f"{w}\0" for w in words or [""])


@pytest.mark.parametrize(
    "said", [b"", b"exit", b"exit x", b"exit -1", b"exit 0 0", b"slow 0", b"\xff 0"]
)
def test_what_is_no_answer_is_unknown(said: bytes) -> None:
    found = dict(shell_part.answer({"argv": ["x"]}, said))
    assert sight(["x"], found) == "unknown"
