"""Processes as a POSIX shell sees them: the same answers as the part's own."""

import json
import os
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from policies.proctable import UNKNOWN_START, row_of
from tests.fakes import START
from tests.watcher.rights import NOBODY, open_folder
from tests.watcher.work import leaderless, working
from watcher.onhost import process as part
from watcher.transport.shell.process import answer, script

SHELLS = {
    "dash": ["dash"],
    "bash": ["bash", "--posix"],
    "busybox": ["busybox", "sh"],
}
_LIMIT_S = 60.0

# What a session sets up for every script.
_BEFORE = (
    "LC_ALL=C; export LC_ALL; cd /; exec 2>/dev/null; session=$$; export session\n"
)


class Shell:
    """Runs scripts as a session does."""

    def __init__(self, argv: list[str]) -> None:
        self.argv = argv
        self.env: dict[str, str] = {}
        self.without_proc = False
        self.user: int | None = None

    def output(self, request: Mapping[str, Any]) -> bytes:
        text = script(request)
        if self.without_proc:
            text = text.replace("/proc", "/no-such-proc")
        inner = f"{shlex.join(self.argv)} -c {shlex.quote(text)}"
        ran = subprocess.run(
            [*self.argv, "-c", _BEFORE + inner],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={**os.environ, **self.env},
            timeout=_LIMIT_S,
            check=False,
            user=self.user,
            group=self.user,
        )
        return ran.stdout

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        found = json.loads(json.dumps(answer(request, self.output(request))))
        assert isinstance(found, dict)
        return found


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> Shell:
    argv = SHELLS[request.param]
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not installed")
    return Shell(argv)


def told(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the part itself reads here."""
    found = json.loads(json.dumps(part.read(dict(request))))
    assert isinstance(found, dict)
    return found


def who(values: Sequence[Any]) -> tuple[object, ...]:
    """Return of a row what does not change from moment to moment."""
    row = row_of(values)
    return row.pid, row.ppid, row.start, row.threads, row.argv, row.readable


def test_a_process_is_told_as_the_part_tells_it(shell: Shell) -> None:
    with working("a b", "", "c)\nd", "é") as work:
        request = {"op": "process", "pid": work.pid}
        here, there = told(request), shell.ask(request)
        assert here["row"][6][-4:] == ["a b", "", "c)\nd", "é"]
        for name in ("boot_id", "pid_namespace"):
            assert there[name] == here[name]
        assert who(there["row"]) == who(here["row"])
        assert there["means"] == "/proc"


def test_one_that_is_gone_has_no_row(shell: Shell) -> None:
    with working() as work:
        pid = work.pid
    assert shell.ask({"op": "process", "pid": pid})["row"] is None


def test_a_zombie_tells_how_it_ended(shell: Shell) -> None:
    with working(program=["sh", "-c", "read line; exit 3"]) as work:
        start = told({"op": "process", "pid": work.pid})["row"][2]
        request = {"op": "process", "pid": work.pid, "start": start}
        assert "status" not in shell.ask(request)
        work.end_as_zombie()
        assert row_of(shell.ask(request)["row"]).finished
        assert shell.ask(request)["status"] == 3 << 8
        assert "status" not in shell.ask({**request, "start": start + 1})


def test_one_whose_first_thread_is_a_zombie_lives(shell: Shell) -> None:
    with leaderless() as work:
        row = row_of(shell.ask({"op": "process", "pid": work.pid})["row"])
        assert row.state == "Z"
        assert not row.finished


def test_the_whole_table_is_told(shell: Shell) -> None:
    with working("a\nstat 1 (x) Z 0 b", "kill alive") as work:
        there = shell.ask({"op": "process", "table": 1})
        rows = {row.pid: row for row in map(row_of, there["rows"])}
        here = {
            row.pid: row
            for row in map(row_of, told({"op": "process", "table": 1})["rows"])
        }
        assert who(rows[work.pid]) == who(here[work.pid])
        assert rows[os.getpid()].argv == here[os.getpid()].argv
        assert not any(row.kernel_thread for row in rows.values())
        assert there["hidden"] is False
        assert os.getpid() in there["own"], "the shell's ancestors"
        assert work.pid not in there["own"]
        assert not rows[1].finished


def test_it_never_matches_the_text_that_it_runs(shell: Shell) -> None:
    """B24: the pattern is in no command line, and the shells are our own side."""
    spec = {"match": "while IFS= read -r"}
    there = shell.ask({"op": "process", "table": 1})
    now = {"up_s": 0.0, "at": START.timestamp()}
    seen = part.judge(spec, {}, [there], now)
    assert seen["sight"] == "absent", seen


def test_what_is_used_of_the_cpu_is_told_of_all(shell: Shell) -> None:
    for request in ({"op": "process", "pid": 1}, {"op": "process", "table": 1}):
        cpu = shell.ask({**request, "cpu": 1})["cpu"]
        used = {pid: ticks for pid, _, ticks in cpu}
        assert used[os.getpid()] > 0
        parents = {pid: ppid for pid, ppid, _ in cpu}
        assert parents[os.getpid()] == os.getppid()


@pytest.mark.parametrize("name", ["pid", "a b'c;$(d)"])
def test_a_pidfile_is_read(shell: Shell, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with working("job") as work:
        path.write_text(f"\n  {work.pid} box\nstat 1\n")
        request = {"op": "process", "pidfile": str(path)}
        here, there = told(request), shell.ask(request)
        assert who(there["row"]) == who(here["row"])
        assert there["pidfile"]["pid"] == work.pid
        assert there["pidfile"]["written_at"] == int(path.stat().st_mtime)
        assert abs(there["started_at"] - here["started_at"]) < 1


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "pidfile_missing"),
        ("", "no_pid_in"),
        ("soak\n", "no_pid_in"),
        ("0\n", "no_pid_in"),
        ("-1\n", "no_pid_in"),
        ("4194305\n", "no_pid_in"),
        ("*\n", "no_pid_in"),
        ("9" * 5000, "no_pid_in"),
        ("a folder", "no_pid_in"),
    ],
)
def test_a_pidfile_without_a_pid_is_told(
    shell: Shell, tmp_path: Path, content: str | None, problem: str
) -> None:
    path = tmp_path / "pid"
    if content == "a folder":
        path.mkdir()
    elif content is not None:
        path.write_text(content)
    found = shell.ask({"op": "process", "pidfile": str(path)})["pidfile"]
    assert found["problem"] == problem
    assert part.read_pidfile(str(path))["problem"] == problem


def test_a_pidfile_in_a_folder_that_is_missing_is_missing(
    shell: Shell, tmp_path: Path
) -> None:
    path = str(tmp_path / "no" / "such" / "pid")
    found = shell.ask({"op": "process", "pidfile": path})
    assert found["pidfile"] == {"problem": "pidfile_missing"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
@pytest.mark.parametrize("closed", ["the file", "its folder"])
def test_a_pidfile_that_may_not_be_read_is_denied(shell: Shell, closed: str) -> None:
    shell.user = NOBODY
    with open_folder() as folder:
        path = folder / "sub" / "pid"
        path.parent.mkdir()
        path.write_text("1")
        (path if closed == "the file" else path.parent).chmod(0)
        found = shell.ask({"op": "process", "pidfile": str(path)})
        assert found["pidfile"] == {"problem": "denied"}
        path.parent.chmod(0o755)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may hide processes")
def test_where_processes_are_hidden_that_is_said_and_one_is_asked_for() -> None:
    hide = "mount -t proc -o hidepid=2 proc /proc"
    user = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups"
    words = f"{hide} && {user} dash -c {{}}"
    with working() as work:

        def ask(request: dict[str, Any]) -> dict[str, Any]:
            inner = words.format(shlex.quote(_BEFORE + script(request)))
            ran = subprocess.run(
                ["unshare", "-m", "sh", "-c", inner],
                stdout=subprocess.PIPE,
                timeout=_LIMIT_S,
                check=True,
            )
            return answer(request, ran.stdout)

        table = ask({"op": "process", "table": 1})
        assert table["hidden"]
        assert work.pid not in {row.pid for row in table["rows"]}
        row = ask({"op": "process", "pid": work.pid})["row"]
        assert row.start == UNKNOWN_START, "not permitted proves that it lives"
        work.end()
        assert ask({"op": "process", "pid": work.pid})["row"] is None


class TestWithoutProc:
    """A system that has ps(1) alone; busybox has none that would do."""

    @pytest.fixture
    def shell(self, shell: Shell) -> Shell:
        shell.without_proc = True
        return shell

    def test_a_process_is_told_by_ps(self, shell: Shell) -> None:
        before_s = int(time.time()) - 2
        with working("a b") as work:
            found = shell.ask({"op": "process", "pid": work.pid})
            row = row_of(found["row"])
            assert found["means"] == "ps"
            assert "pid_namespace" not in found
            assert row.ppid == os.getpid()
            assert row.command.endswith(" a b")
            assert before_s <= row.start <= time.time() + 2
            work.end()
            assert shell.ask({"op": "process", "pid": work.pid})["row"] is None

    def test_the_whole_table_is_told_by_ps(self, shell: Shell) -> None:
        with working("a b") as work:
            found = shell.ask({"op": "process", "table": 1, "cpu": 1})
            rows = {row.pid: row for row in map(row_of, found["rows"])}
            assert rows[work.pid].command.endswith(" a b")
            assert found["hidden"] is False
            assert os.getpid() in found["own"]
            assert work.pid in {pid for pid, _, _ in found["cpu"]}

    def test_a_pidfile_is_read(self, shell: Shell, tmp_path: Path) -> None:
        with working("job") as work:
            (tmp_path / "pid").write_text(str(work.pid))
            request = {"op": "process", "pidfile": str(tmp_path / "pid")}
            found = shell.ask(request)
            assert found["pidfile"]["pid"] == work.pid
            assert found["started_at"] == row_of(found["row"]).start

    @pytest.mark.parametrize(
        "ps",
        [
            pytest.param("cat {data}/busybox.txt; exit 1", id="other fields"),
            pytest.param("exit 0", id="nothing"),
            pytest.param("echo '1 0 S 0:00.01 Mon Nov'", id="half a line"),
        ],
    )
    def test_a_ps_that_says_something_else_is_no_answer(
        self, shell: Shell, tmp_path: Path, ps: str
    ) -> None:
        data = Path(__file__).parents[3] / "data" / "ps"
        fake = tmp_path / "ps"
        fake.write_text(f"#!/bin/sh\n{ps.format(data=data)}\n")
        fake.chmod(0o755)
        shell.env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        for request in ({"op": "process", "table": 1}, {"op": "process", "pid": 1}):
            with pytest.raises(ValueError):  # noqa: PT011 - whatever says so
                shell.ask(request)

    @pytest.mark.parametrize("system", ["macos", "freebsd"])
    def test_other_systems_are_understood(
        self, shell: Shell, tmp_path: Path, system: str
    ) -> None:
        data = Path(__file__).parents[3] / "data" / "ps"
        for name, text in {
            "ps": f"cat {data}/{system}.txt; echo $session {LINE}",
            "sysctl": f'[ "$2" = {SYSCTL[system]} ] && echo {VALUE[system]}',
        }.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / name).chmod(0o755)
        shell.env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        found = shell.ask({"op": "process", "table": 1})
        commands = [row_of(row).command for row in found["rows"]]
        assert any("soak.py" in command for command in commands)
        assert found["boot_id"] == VALUE[system]


LINE = "1 S 0:00.00 Mon Nov 23 08:00:01 2026 sh"
SYSCTL = {"macos": "kern.bootsessionuuid", "freebsd": "kern.boot_id"}
VALUE = {"macos": "7B1C-UUID", "freebsd": "5f0c"}


def test_half_of_what_a_shell_said_is_no_answer() -> None:
    request = {"op": "process", "table": 1}
    whole = Shell(["sh"]).output(request)
    for end in (0, 5, 20, 60):
        with pytest.raises(ValueError):  # noqa: PT011 - whatever says so
            answer(request, whole[:end])


def test_processes_that_come_and_go_meanwhile_do_not_disturb(shell: Shell) -> None:
    over = threading.Event()

    def fork() -> None:
        while not over.is_set():
            subprocess.run(["true"], check=False)

    thread = threading.Thread(target=fork)
    thread.start()
    try:
        for _ in range(5):
            found = shell.ask({"op": "process", "table": 1})
            rows = [row_of(row) for row in found["rows"]]
            assert all(row.readable for row in rows if not row.finished)
    finally:
        over.set()
        thread.join()
