"""Processes: by PID, by pidfile, or by what their command lines say (C3.3)."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.model import Memory, Observation, Sight
from policies.proctable import Row
from policies.target import match_target, pid_target, pidfile_target, regex_target
from policies.wording import Phrase, phrase
from tests.e2e.command import COMMAND, Place
from tests.fakes import START, FakeTable, until
from tests.suites.condition import (
    ConditionSuite,
    Scene,
    closing,
    on_threads,
    remembered,
)
from tests.watcher.rights import NOBODY, as_another_user, open_files, open_folder
from tests.watcher.work import SLEEPER, Work, leaderless, working
from watcher import processes
from watcher.clock import SystemClock
from watcher.conditions import LocalCondition, ReadableHint
from watcher.conditions import Place as Where
from watcher.conditions import process as module
from watcher.conditions.process import expression, literal
from watcher.config import Config
from watcher.errors import UsageError
from watcher.limited import within
from watcher.processes import MatchingProcesses, OneProcess
from watcher.procfs import UNKNOWN_START, ProcessTable, ProcFs
from watcher.targets import condition_of, target_of

NO_PID = 4194304
"""One more than any PID that a Linux gives away."""

OTHER, JOB, THIRD = range(NO_PID, NO_PID + 3)
"""Processes of a table that a test has written."""


def unique() -> str:
    """Return a word that no other command line holds."""
    return f"work-{uuid.uuid4().hex}"


def by_pid(
    pid: int, table: ProcessTable | None = None, launcher: int | None = None
) -> OneProcess:
    return OneProcess(
        pid_target(pid),
        {"pid": pid},
        table=table or ProcFs(),
        launcher=os.getpid() if launcher is None else launcher,
        clock=SystemClock(),
    )


def by_pidfile(
    path: Path, table: ProcessTable | None = None, launcher: int | None = None
) -> OneProcess:
    return OneProcess(
        pidfile_target(str(path)),
        {"pidfile": str(path)},
        table=table or ProcFs(),
        launcher=os.getpid() if launcher is None else launcher,
        clock=SystemClock(),
    )


def by_match(
    text: str, table: ProcessTable | None = None, launcher: int | None = None
) -> MatchingProcesses:
    return MatchingProcesses(
        match_target(text),
        {"match": text},
        literal(text),
        table=table or ProcFs(),
        launcher=os.getpid() if launcher is None else launcher,
        clock=SystemClock(),
    )


def by_regex(regex: str, table: ProcessTable | None = None) -> MatchingProcesses:
    return MatchingProcesses(
        regex_target(regex),
        {"regex": regex},
        expression(regex),
        table=table or ProcFs(),
        launcher=os.getpid(),
        clock=SystemClock(),
    )


AWAITED: Memory = {"awaits_start": True}
"""What a watch starts with whose work has yet to begin."""


class Looks:
    """Looks that hand their memory on."""

    def __init__(self, condition: LocalCondition, memory: Memory | None = None) -> None:
        self.condition = condition
        self.memory = memory or {}

    def take(self) -> Observation:
        observation = self.condition.look(self.memory, START)
        self.memory = remembered(observation)
        return observation

    def sight(self) -> Sight:
        return self.take().sight

    def same(self) -> bool:
        """Take a quick look."""
        return self.condition.unchanged(self.memory)


@contextmanager
def looking(condition: LocalCondition, memory: Memory | None = None) -> Iterator[Looks]:
    """Give looks at a condition that is closed with the test."""
    with closing(condition):
        yield Looks(condition, memory)


class ProcessSuite(ConditionSuite):
    """A process table whose place a test can take away."""

    def build(self, work: Work, folder: Path, table: ProcessTable) -> LocalCondition:
        raise NotImplementedError

    @pytest.fixture
    def scene(self) -> Iterator[Scene]:
        with open_folder() as folder, working(self.word) as work:
            (folder / "pid").write_text(f"{work.pid}\n")
            (folder / "system").mkdir()
            proc = folder / "system" / "proc"
            proc.symlink_to("/proc")

            @contextmanager
            def instead(what: Path | str) -> Iterator[None]:
                proc.unlink()
                proc.symlink_to(what)
                try:
                    yield
                finally:
                    proc.unlink()
                    proc.symlink_to("/proc")

            @contextmanager
            def closed() -> Iterator[None]:
                proc.parent.chmod(0)
                try:
                    with as_another_user():
                        yield
                finally:
                    proc.parent.chmod(0o755)

            yield Scene(
                build=lambda: self.build(work, folder, ProcFs(str(proc))),
                release=work.end,
                blind={
                    "unreachable": lambda: instead("/dev/null"),
                    "denied": closed,
                    "vanished": lambda: instead(folder / "system"),
                },
            )

    word = "a-work-of-the-suite"


class TestPid(ProcessSuite):
    def build(self, work: Work, folder: Path, table: ProcessTable) -> LocalCondition:
        return by_pid(work.pid, table)


class TestPidfile(ProcessSuite):
    def build(self, work: Work, folder: Path, table: ProcessTable) -> LocalCondition:
        return by_pidfile(folder / "pid", table)


class TestMatch(ProcessSuite):
    word = unique()

    def build(self, work: Work, folder: Path, table: ProcessTable) -> LocalCondition:
        return by_match(self.word, table)


class TestRegex(ProcessSuite):
    word = unique()

    def build(self, work: Work, folder: Path, table: ProcessTable) -> LocalCondition:
        return by_regex(rf"\b{self.word}$", table)


def row(
    pid: int,
    *argv: str,
    ppid: int = 1,
    start: int = 1000,
    state: str = "S",
    flags: int = 0,
    readable: bool = True,
) -> Row:
    return Row(
        pid=pid,
        ppid=ppid,
        start=start,
        state=state,
        flags=flags,
        argv=argv,
        readable=readable,
    )


def proc(folder: Path, files: dict[str, str | bytes]) -> ProcFs:
    """Write a /proc of our own."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return ProcFs(str(folder))


def stat(pid: int, *, start: int = 4711, state: str = "S") -> str:
    return f"{pid} (x) {state} 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {start} 0 0"


SYSTEM: dict[str, str | bytes] = {
    "sys/kernel/random/boot_id": "boot-1\n",
    "self/mountinfo": "22 27 0:21 / /proc rw - proc proc rw\n",
    "stat": "btime 1000000000\n",
}

FORMS = ("pid", "pidfile", "match")


@pytest.fixture(params=FORMS)
def form(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Callable[..., LocalCondition]:
    """Give each way to name a process in turn."""

    def build(work: Work, table: ProcessTable | None = None) -> LocalCondition:
        if request.param == "pid":
            return by_pid(work.pid, table)
        if request.param == "match":
            return by_match(work.word, table)
        path = tmp_path / "pid"
        path.write_text(str(work.pid))
        return by_pidfile(path, table)

    return build


class TestNames:
    """From what a person writes to what is looked for."""

    WHERE = Where(config=Config(), cwd="/run", launcher=NO_PID)

    @pytest.mark.parametrize(
        ("words", "text"),
        [
            pytest.param(["--pid", "{pid}"], "--pid {pid}", id="pid"),
            pytest.param(["--pid", "00{pid}"], "--pid {pid}", id="zeros"),
            pytest.param(
                ["--pidfile", "x.pid"], "--pidfile /run/x.pid", id="a pidfile"
            ),
            pytest.param(["--match", "a b"], "--match 'a b'", id="a text"),
            pytest.param(["--regex", "a+"], "--regex a+", id="an expression"),
        ],
    )
    def test_processes_are_named_in_four_ways(
        self, words: list[str], text: str
    ) -> None:
        pid = str(os.getpid())
        written = ["process", *(word.format(pid=pid) for word in words)]
        condition = condition_of(written, self.WHERE)
        assert condition.target.text == "process " + text.format(pid=pid)
        assert target_of(written, self.WHERE) == condition.target
        assert target_of(condition.target.text, self.WHERE) == condition.target
        condition.close()

    @pytest.mark.parametrize(
        ("words", "key"),
        [
            pytest.param(["--pid", "0"], "bad_pid", id="zero"),
            pytest.param(["--pid", "-1"], "bad_pid", id="negative"),
            pytest.param(["--pid", "4194305"], "bad_pid", id="too large"),
            pytest.param(["--pid", "1" * 5000], "bad_pid", id="much too large"),
            pytest.param(["--pid", "٣"], "bad_pid", id="other digits"),
            pytest.param(["--pid", "x"], "bad_pid", id="a word"),
            pytest.param(["--pidfile", ""], "bad_path", id="no path"),
            pytest.param(["--match", " "], "empty_pattern", id="a blank text"),
            pytest.param(["--regex", ""], "empty_pattern", id="an empty expression"),
            pytest.param(["--regex", "("], "bad_regex", id="a broken expression"),
        ],
    )
    def test_what_names_none_is_refused(self, words: list[str], key: str) -> None:
        with pytest.raises(UsageError) as caught:
            target_of(["process", f"{words[0]}={words[1]}"], self.WHERE)
        assert caught.value.phrase.key == key

    @pytest.mark.parametrize("words", [[], ["--pid", "1", "--match", "x"]])
    def test_one_way_must_be_chosen(self, words: list[str]) -> None:
        with pytest.raises(UsageError):
            target_of(["process", *words], self.WHERE)

    def test_what_only_one_of_the_two_engines_takes_is_refused(self) -> None:
        re.compile("a{e<}")
        with pytest.raises(UsageError) as caught:
            expression("a{e<}")
        assert caught.value.phrase.key == "bad_regex"


class TestEnd:
    def test_a_process_that_is_gone_has_ended(
        self, form: Callable[..., LocalCondition]
    ) -> None:
        with working(unique()) as work, looking(form(work)) as looks:
            assert looks.sight() is Sight.HELD
            work.end()
            assert looks.sight() is Sight.RELEASED

    def test_a_zombie_has_ended(self, form: Callable[..., LocalCondition]) -> None:
        with working(unique()) as work, looking(form(work)) as looks:
            assert looks.sight() is Sight.HELD
            work.end_as_zombie()
            assert looks.sight() is Sight.RELEASED

    @pytest.mark.parametrize("name", ["pid", "pidfile"])
    def test_a_zombie_whose_other_threads_run_has_not_ended(
        self, tmp_path: Path, name: str
    ) -> None:
        with leaderless() as work:
            proc(tmp_path, {"pid": str(work.pid)})
            build: Callable[[], LocalCondition] = {
                "pid": lambda: by_pid(work.pid),
                "pidfile": lambda: by_pidfile(tmp_path / "pid"),
            }[name]
            with looking(build()) as looks:
                assert looks.sight() is Sight.HELD
                assert looks.sight() is Sight.HELD
                work.end()
                assert looks.sight() is Sight.RELEASED

    async def test_a_thread_is_followed_to_its_own_end(self) -> None:
        release = threading.Event()
        thread = threading.Thread(target=release.wait)
        thread.start()
        assert thread.native_id is not None
        with looking(by_pid(thread.native_id)) as looks:
            try:
                assert looks.sight() is Sight.HELD
            finally:
                release.set()
                thread.join()
            await until(lambda: not os.path.exists(f"/proc/{thread.native_id}"))
            assert looks.sight() is Sight.RELEASED

    @pytest.mark.parametrize("means", ["pidfd", "kill", "state"])
    def test_the_evidence_says_by_which_means(
        self, monkeypatch: pytest.MonkeyPatch, means: str
    ) -> None:
        if means != "pidfd":
            monkeypatch.delattr(os, "pidfd_open")
        with working() as work, looking(by_pid(work.pid)) as looks:
            held = looks.take()
            assert list(looks.condition.hints()) == [] or means == "pidfd"
            if means == "state":
                work.end_as_zombie()
            else:
                work.end()
            ended = looks.take()
            assert ended.sight is Sight.RELEASED
            assert ended.evidence["means"] == means
            assert ended.evidence["identity"] == held.memory["identity"]

    def test_a_pid_that_is_gone_was_over_when_armed(self) -> None:
        with working() as work:
            pid = work.pid
        with looking(by_pid(pid)) as looks:
            observation = looks.take()
            assert observation.sight is Sight.RELEASED
            assert observation.evidence["pid"] == pid
            assert observation.evidence["seen"] == "no such process"

    def test_what_runs_is_told_once_by_pid_and_command(self) -> None:
        with working("a b") as work, looking(by_pid(work.pid)) as looks:
            (note,) = looks.take().notes
            command = " ".join([*SLEEPER, "a b"])
            assert note == phrase("matched", pid=work.pid, command=command)
            assert looks.take().notes == ()


class TestIdentity:
    """Boot id, PID and start ticks, never a date."""

    def test_a_stepped_clock_ends_nothing(self, tmp_path: Path) -> None:
        table = proc(tmp_path, {**SYSTEM, f"{NO_PID}/stat": stat(NO_PID)})
        proc(tmp_path, {f"{NO_PID}/cmdline": "work\0"})
        with looking(by_pid(NO_PID, table)) as looks:
            for btime in (1000000000, 1000000180, 999999000):
                proc(tmp_path, {"stat": f"btime {btime}\n"})
                assert looks.sight() is Sight.HELD

    def test_a_reused_pid_is_an_end(self, tmp_path: Path) -> None:
        table = proc(tmp_path, {**SYSTEM, f"{NO_PID}/stat": stat(NO_PID)})
        proc(tmp_path, {f"{NO_PID}/cmdline": "work\0"})
        with looking(by_pid(NO_PID, table)) as looks:
            assert looks.sight() is Sight.HELD
            proc(tmp_path, {f"{NO_PID}/stat": stat(NO_PID, start=4712)})
            ended = looks.take()
            assert ended.sight is Sight.RELEASED
            assert ended.evidence["means"] == "start ticks"
            assert ended.evidence["start_now"] == 4712

    def test_a_process_of_an_earlier_boot_has_ended(self) -> None:
        table = FakeTable(row(JOB, "work"))
        with looking(by_pid(JOB, table)) as looks:
            assert looks.sight() is Sight.HELD
            table.boot = "boot-2"
            ended = looks.take()
            assert ended.sight is Sight.RELEASED
            assert ended.evidence["boot_now"] == "boot-2"

    def test_a_start_that_may_not_be_seen_is_no_other_start(self) -> None:
        table = FakeTable(row(JOB, "work"))
        with looking(by_pid(JOB, table)) as looks:
            assert looks.sight() is Sight.HELD
            table.table[JOB] = row(JOB, start=UNKNOWN_START, state="?")
            assert looks.sight() is Sight.HELD
            table.table[JOB] = row(JOB, "work")
            assert looks.sight() is Sight.HELD
            del table.table[JOB]
            assert looks.sight() is Sight.RELEASED

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root may set the next PID")
    @pytest.mark.parametrize("means", ["pidfd", "start ticks"])
    def test_a_pid_that_the_kernel_gives_away_again_is_an_end(self, means: str) -> None:
        space = ["unshare", "-p", "-f", "--mount-proc"]
        ended = subprocess.run(
            [*space, sys.executable, "-c", _REUSED, means],
            stdout=subprocess.PIPE,
            timeout=20,
            check=True,
        )
        assert ended.stdout.decode().splitlines() == ["held -", f"released {means}"]


_REUSED = """
import os, subprocess, sys
from policies.target import pid_target
from watcher.clock import SystemClock
from watcher.processes import OneProcess
from watcher.procfs import ProcFs
clock, table = SystemClock(), ProcFs()
if sys.argv[1] != "pidfd":
    del os.pidfd_open
def start():
    return subprocess.Popen(["cat"], stdin=subprocess.PIPE)
first = start()
pid = first.pid
condition = OneProcess(
    pid_target(pid), {"pid": pid}, table=table, launcher=0, clock=clock
)
held = condition.look({}, clock.wall())
print(held.sight, "-")
ticks = table.row(first.pid).start
first.communicate()
while int(clock.boot() * os.sysconf("SC_CLK_TCK")) <= ticks + 1:
    pass
with open("/proc/sys/kernel/ns_last_pid", "w") as last:
    last.write(str(first.pid - 1))
second = start()
assert second.pid == first.pid
seen = condition.look(held.memory, clock.wall())
print(seen.sight, seen.evidence["means"])
second.communicate()
"""


class TestAnotherUser:
    @pytest.mark.parametrize("means", ["pidfd", "kill"])
    def test_not_permitted_proves_that_it_lives(
        self, monkeypatch: pytest.MonkeyPatch, means: str
    ) -> None:
        if means == "kill":
            monkeypatch.delattr(os, "pidfd_open")
        with open_folder() as folder, working() as work:
            table = proc(folder, SYSTEM)  # it shows no process at all
            with looking(by_pid(work.pid, table)) as looks:
                with as_another_user():
                    assert looks.sight() is Sight.HELD
                    assert looks.sight() is Sight.HELD
                    work.end()
                    ended = looks.take()
                assert ended.sight is Sight.RELEASED
                assert ended.evidence["means"] == means

    @pytest.mark.parametrize("blind", ["a mount option", "one that is unreadable"])
    def test_an_empty_list_proves_nothing_where_processes_are_hidden(
        self, blind: str
    ) -> None:
        table = FakeTable(row(JOB, "soak.py"))
        with looking(by_match("soak.py", table)) as looks:
            assert looks.sight() is Sight.HELD
            del table.table[JOB]
            if blind == "a mount option":
                table.hides = True
            else:
                table.table[OTHER] = row(OTHER, readable=False)
            hidden = looks.take()
            assert hidden.sight is Sight.UNKNOWN
            assert hidden.reason == phrase("proc_hidden")
            table.hides, table.table = False, {}
            assert looks.sight() is Sight.RELEASED

    def test_what_is_seen_counts_also_where_others_are_hidden(self) -> None:
        table = FakeTable(row(JOB, "soak.py"))
        table.hides = True
        with looking(by_match("soak.py", table)) as looks:
            assert looks.sight() is Sight.HELD

    def test_what_was_never_seen_there_is_unknown(self) -> None:
        table = FakeTable()
        table.hides = True
        with looking(by_match("soak.py", table)) as looks:
            observation = looks.take()
            assert observation.sight is Sight.UNKNOWN
            assert not observation.absent


class TestPidfiles:
    @pytest.mark.parametrize(
        "content",
        [
            pytest.param("", id="empty"),
            pytest.param(" \n", id="blank"),
            pytest.param("soak\n", id="a word"),
            pytest.param("12a\n", id="digits and more"),
            pytest.param("-1\n", id="negative"),
            pytest.param("0\n", id="zero"),
            pytest.param("4194305\n", id="too large"),
            pytest.param("9" * 5000, id="much too large"),
            pytest.param("٣\n", id="other digits"),
            pytest.param(b"\xff\xfe1", id="no text"),
        ],
    )
    def test_a_file_that_holds_no_pid_is_unknown(
        self, tmp_path: Path, content: str | bytes
    ) -> None:
        proc(tmp_path, {"pid": content})
        with looking(by_pidfile(tmp_path / "pid")) as looks:
            assert looks.condition.refusal() is None
            observation = looks.take()
            assert observation.sight is Sight.UNKNOWN
            path = str(tmp_path / "pid")
            assert observation.reason == phrase("no_pid_in", path=path)

    @pytest.mark.parametrize("content", ["{}", "{}\n", "  {}  \n", "{}\nbox\n"])
    def test_the_first_word_is_the_pid(self, tmp_path: Path, content: str) -> None:
        with working() as work:
            proc(tmp_path, {"pid": content.format(work.pid)})
            with looking(by_pidfile(tmp_path / "pid")) as looks:
                assert looks.sight() is Sight.HELD

    @pytest.mark.parametrize("kind", ["a directory", "a FIFO"])
    def test_what_is_no_file_is_unknown(self, tmp_path: Path, kind: str) -> None:
        path = tmp_path / "pid"
        if kind == "a FIFO":
            os.mkfifo(path)
        else:
            os.mkdir(path)
        with looking(by_pidfile(path)) as looks:
            assert within(5, looks.condition.refusal) is None
            observation = within(5, looks.take)
            assert observation.sight is Sight.UNKNOWN
            assert observation.reason == phrase("no_pid_in", path=str(path))

    def test_one_that_leads_round_in_a_circle_is_unknown(self, tmp_path: Path) -> None:
        path = tmp_path / "pid"
        os.symlink(path, path)
        with looking(by_pidfile(path)) as looks:
            assert looks.condition.refusal() is None
            observation = looks.take()
            assert observation.sight is Sight.UNKNOWN
            assert observation.reason is not None
            assert observation.reason.key == "probe_failed"

    def test_one_that_may_not_be_read_is_unknown(self) -> None:
        with open_folder() as folder:
            path = folder / "pid"
            proc(folder, {"pid": str(os.getpid())})
            os.chmod(path, 0)
            with looking(by_pidfile(path)) as looks, as_another_user():
                assert looks.condition.refusal() is None
                observation = looks.take()
            assert observation.reason == phrase("denied", path=str(path))

    def test_one_that_is_missing_was_never_seen(self, tmp_path: Path) -> None:
        path = tmp_path / "pid"
        with looking(by_pidfile(path)) as looks:
            assert looks.condition.refusal() is None
            observation = looks.take()
            assert observation.absent
            assert observation.reason == phrase("pidfile_missing", path=str(path))
            assert observation.evidence["errno"] == "ENOENT"
            with working() as work:
                proc(tmp_path, {"pid": str(work.pid)})
                assert looks.sight() is Sight.HELD

    def test_the_process_is_followed_whatever_becomes_of_the_file(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / "pid"
        with working() as work, working() as other:
            proc(tmp_path, {"pid": str(work.pid)})
            with looking(by_pidfile(path)) as looks:
                assert looks.sight() is Sight.HELD
                proc(tmp_path, {"pid": str(other.pid)})
                assert looks.sight() is Sight.HELD
                os.remove(path)
                assert looks.sight() is Sight.HELD
                work.end()
                assert looks.sight() is Sight.RELEASED

    def test_one_whose_process_is_gone_is_over(self, tmp_path: Path) -> None:
        with working() as work:
            proc(tmp_path, {"pid": str(work.pid)})
        with looking(by_pidfile(tmp_path / "pid")) as looks:
            assert looks.sight() is Sight.RELEASED

    def test_a_stale_one_is_waited_past_where_work_has_yet_to_begin(
        self, tmp_path: Path
    ) -> None:
        with working() as work:
            proc(tmp_path, {"pid": str(work.pid)})
        path = tmp_path / "pid"
        with looking(by_pidfile(path), AWAITED) as looks:
            assert looks.take().absent
            with working() as work:
                proc(tmp_path, {"pid": str(work.pid)})
                assert looks.sight() is Sight.HELD
                work.end()
                assert looks.sight() is Sight.RELEASED


class TestForeignPidfiles:
    """A PID that cannot be what the writer of the file meant."""

    def refusal(self, condition: LocalCondition) -> Phrase | None:
        with closing(condition):
            return condition.refusal()

    def test_the_monitor_itself_is_refused(self, tmp_path: Path) -> None:
        pid, path = os.getpid(), tmp_path / "pid"
        proc(tmp_path, {"pid": str(pid)})
        assert self.refusal(by_pid(pid)) == phrase("own_pid", pid=pid)
        refusal = phrase("own_pidfile", pid=pid, path=str(path))
        assert self.refusal(by_pidfile(path)) == refusal

    def test_the_command_that_waits_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "pid"
        with working() as work:
            proc(tmp_path, {"pid": str(work.pid)})
            pid = work.pid
            assert self.refusal(by_pid(pid, launcher=pid)) == phrase("own_pid", pid=pid)
            refusal = phrase("own_pidfile", pid=pid, path=str(path))
            assert self.refusal(by_pidfile(path, launcher=pid)) == refusal
            with looking(by_pidfile(path, launcher=pid)) as looks:
                observation = looks.take()
                assert observation.sight is Sight.UNKNOWN
                assert observation.reason == refusal

    def test_a_process_younger_than_the_file_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "pid"
        with working("job") as work:
            proc(tmp_path, {"pid": str(work.pid)})
            assert self.refusal(by_pidfile(path)) is None
            os.utime(path, (0, time.time() - 60))
            command = " ".join([*SLEEPER, "job"])
            refusal = phrase(
                "foreign_pidfile", pid=work.pid, path=str(path), command=command
            )
            assert self.refusal(by_pidfile(path)) == refusal
            with looking(by_pidfile(path)) as looks:
                observation = looks.take()
                assert observation.sight is Sight.UNKNOWN
                assert observation.reason == refusal

    def test_a_kernel_thread_is_refused_as_a_writer_but_may_be_watched(
        self, tmp_path: Path
    ) -> None:
        table = FakeTable(row(OTHER, "[kworker]", flags=0x00200000))
        table.started = 0.0
        proc(tmp_path, {"pid": str(OTHER)})
        refusal = self.refusal(by_pidfile(tmp_path / "pid", table))
        assert refusal is not None
        assert refusal.key == "foreign_pidfile"
        with looking(by_pid(OTHER, table)) as looks:
            assert looks.condition.refusal() is None
            (note,) = looks.take().notes
            assert note == phrase("kernel_thread", pid=OTHER, command="[kworker]")

    @pytest.mark.parametrize(
        "what", ["gone", "its start may not be seen", "no boot time", "an older one"]
    )
    def test_without_proof_nobody_is_refused(self, tmp_path: Path, what: str) -> None:
        table = FakeTable(row(OTHER, "job"))
        table.started = time.time() + 1000
        if what == "gone":
            table.table = {}
        elif what == "its start may not be seen":
            table.table[OTHER] = row(OTHER, start=UNKNOWN_START)
        else:
            table.started = None if what == "no boot time" else time.time() - 1000
        proc(tmp_path, {"pid": str(OTHER)})
        assert self.refusal(by_pidfile(tmp_path / "pid", table)) is None

    def test_where_work_has_yet_to_begin_the_file_may_be_written_anew(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / "pid"
        proc(tmp_path, {"pid": str(os.getpid())})
        with looking(by_pidfile(path), AWAITED) as looks:
            assert looks.take().absent
            with working() as work:
                proc(tmp_path, {"pid": str(work.pid)})
                assert looks.sight() is Sight.HELD

    def test_a_table_that_cannot_be_read_refuses_nothing(self, tmp_path: Path) -> None:
        table = FakeTable()
        table.error = PermissionError(13, "no")
        proc(tmp_path, {"pid": str(OTHER)})
        assert self.refusal(by_pidfile(tmp_path / "pid", table)) is None


class TestMatching:
    def test_all_that_match_are_told_and_the_last_one_ends_it(self) -> None:
        word = unique()
        with (
            working(word) as one,
            working("--name", word) as two,
            looking(by_match(word)) as looks,
        ):
            first = looks.take()
            pids = {note.values["pid"] for note in first.notes}
            assert pids == {one.pid, two.pid}
            assert first.evidence["matches"] == 2
            assert len(list(looks.condition.hints())) == 2
            one.end()
            second = looks.take()
            assert second.sight is Sight.HELD
            assert second.notes == ()
            assert len(list(looks.condition.hints())) == 1
            two.end()
            ended = looks.take()
            assert ended.sight is Sight.RELEASED
            assert ended.evidence["last_seen"] == second.evidence["seen"]

    def test_a_long_list_is_told_in_short(self) -> None:
        table = FakeTable(*(row(pid, f"soak {pid}") for pid in range(100, 125)))
        with looking(by_match("soak", table)) as looks:
            observation = looks.take()
            assert len(observation.notes) == 11
            assert observation.notes[-1] == phrase("matched_more", count=15)
            assert observation.evidence["matches"] == 25
            assert len(json.dumps(observation.memory)) < 2000

    def test_what_never_matched_was_never_seen(self) -> None:
        with looking(by_match(unique())) as looks:
            observation = looks.take()
            assert observation.absent
            assert observation.reason == phrase("nothing_matches")
            assert observation.evidence["matches"] == 0

    def test_what_begins_later_is_followed_from_then(self) -> None:
        word = unique()
        with looking(by_match(word)) as looks:
            assert looks.take().absent
            with working(word) as work:
                found = looks.take()
                assert found.sight is Sight.HELD
                assert [note.values["pid"] for note in found.notes] == [work.pid]
            assert looks.sight() is Sight.RELEASED

    def test_a_name_longer_than_the_kernel_keeps_is_found(self, tmp_path: Path) -> None:
        sleep = shutil.which("sleep")
        assert sleep is not None
        program = shutil.copy(sleep, tmp_path / "averyveryverylongname-worker")
        with (
            working("60", program=[str(program)]) as work,
            looking(by_match("averyveryverylongname-worker")) as looks,
        ):
            assert looks.sight() is Sight.HELD
            work.kill()
            work.end()
            assert looks.sight() is Sight.RELEASED

    def test_a_literal_text_is_no_expression(self) -> None:
        with working("train(1", "a.*b") as work:
            for text in ("train(1", "a.*b"):
                with looking(by_match(text)) as looks:
                    found = looks.take()
                    assert work.pid in {note.values["pid"] for note in found.notes}
        with looking(by_match(f"{unique()[:-1]}.")) as looks:
            assert looks.take().absent

    def test_the_launcher_and_its_ancestors_never_match(self) -> None:
        table = FakeTable(
            row(1, "init", ppid=0),
            row(10, "bash", "-c", "run soak.py; wait soak.py"),
            row(11, "python", "watch soak.py", ppid=10),
            row(12, "python", "other soak.py", ppid=10),
        )
        with looking(by_match("soak.py", table, launcher=11)) as looks:
            found = looks.take()
            assert found.sight is Sight.HELD
            assert [note.values["pid"] for note in found.notes] == [12]
            del table.table[12]
            assert looks.sight() is Sight.RELEASED

    def test_the_launchers_stay_out_when_their_tree_changes(self) -> None:
        table = FakeTable(
            row(1, "init", ppid=0),
            row(10, "bash", "-c", "soak.py"),
            row(11, "python", "watch soak.py", ppid=10),
            row(12, "soak.py"),
        )
        with looking(by_match("soak.py", table, launcher=11)) as looks:
            assert looks.sight() is Sight.HELD
            table.table[11] = row(11, "python", "watch soak.py", ppid=1)
            del table.table[12]
            assert looks.sight() is Sight.RELEASED, "10 is no parent any more"
            table.table[10] = row(10, "soak.py", start=2000)
            found = looks.take()
            assert found.sight is Sight.HELD, "another process got its number"
            table.boot = "boot-2"
            table.table[10] = row(10, "soak.py")
            assert looks.sight() is Sight.HELD, "another boot, another process"

    @pytest.mark.parametrize(
        "memory",
        [
            pytest.param({"launchers": ["x", {}, None]}, id="no identities"),
            pytest.param({"launchers": "x"}, id="no list"),
            pytest.param({"seen": "x"}, id="seen what"),
        ],
    )
    def test_an_odd_memory_is_no_reason_to_fail(self, memory: Memory) -> None:
        table = FakeTable(row(12, "soak.py"))
        with closing(by_match("soak.py", table)) as condition:
            assert condition.look(memory, START).sight is Sight.HELD
            del table.table[12]
            seen = condition.look(memory, START)
            assert seen.sight is Sight.RELEASED or seen.absent

    def test_in_the_middle_of_an_exec_there_is_no_command_line(self) -> None:
        table = FakeTable(row(JOB, "soak.py"))
        with looking(by_match("soak.py", table)) as looks:
            assert looks.sight() is Sight.HELD
            table.table[JOB] = row(JOB, "[python3]")
            between = looks.take()
            assert between.sight is Sight.UNKNOWN
            assert between.reason == phrase("pids_stuck", pids=str(JOB))
            table.table[JOB] = row(JOB, "soak.py", "--again")
            assert looks.sight() is Sight.HELD
            table.table[JOB] = row(JOB, "another program")
            assert looks.sight() is Sight.RELEASED

    @pytest.mark.parametrize(
        "then",
        [
            pytest.param(None, id="gone"),
            pytest.param(row(JOB, "[python3]", state="Z"), id="a zombie"),
            pytest.param(row(JOB, "[kworker]", start=2000), id="another one"),
        ],
    )
    def test_what_ended_is_in_no_exec(self, then: Row | None) -> None:
        table = FakeTable(row(JOB, "soak.py"))
        with looking(by_match("soak.py", table)) as looks:
            assert looks.sight() is Sight.HELD
            table.table = {} if then is None else {JOB: then}
            assert looks.sight() is Sight.RELEASED


class TestPatterns:
    @pytest.mark.parametrize("regex", ["train(1", "*", "[", "a{2,1}", "(?P<x", "\\"])
    def test_a_broken_expression_is_refused(self, regex: str) -> None:
        with pytest.raises(UsageError) as caught:
            expression(regex)
        assert caught.value.phrase.key == "bad_regex"

    @pytest.mark.parametrize("regex", ["(" * 20000 + ")" * 20000, "a{99999999999}"])
    def test_an_expression_that_is_too_much_is_refused(self, regex: str) -> None:
        with pytest.raises(UsageError):
            expression(regex)

    @pytest.mark.parametrize("make", [literal, expression])
    def test_an_empty_pattern_is_refused(
        self, make: Callable[[str], Callable[[str], bool]]
    ) -> None:
        with pytest.raises(UsageError) as caught:
            make("")
        assert caught.value.phrase.key == "empty_pattern"

    def test_a_blank_text_is_refused(self) -> None:
        with pytest.raises(UsageError):
            literal(" \t")

    @pytest.mark.parametrize(
        ("regex", "command", "found"),
        [
            ("a\\b", "a b", True),
            ("a\\b", "ab", False),
            ("soak.*--seed 7", "python soak.py --seed 7", True),
            ("^python", "/usr/bin/python", False),
            ("(?i)SOAK", "soak", True),
            ("é+", "café", True),
        ],
    )
    def test_an_expression_is_searched_as_python_does(
        self, regex: str, command: str, found: bool
    ) -> None:
        assert expression(regex)(command) is found

    @settings(deadline=None)
    @given(st.text(max_size=20), st.text(max_size=20))
    def test_an_expression_is_refused_or_says_yes_or_no(
        self, regex: str, command: str
    ) -> None:
        try:
            matches = expression(regex)
        except UsageError:
            return
        assert matches(command) in {True, False}
        re.compile(regex)

    @given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
    def test_a_literal_text_matches_where_it_stands(
        self, before: str, text: str, behind: str
    ) -> None:
        if text.strip():
            assert literal(text)(before + text + behind)

    async def test_an_expression_that_never_ends_stalls_nothing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "_REGEX_LIMIT_S", 0.1)
        table = FakeTable(row(JOB, "a" * 5000 + "b"))
        condition = by_regex("(a+)+$", table)
        with looking(condition) as looks:
            look = asyncio.create_task(asyncio.to_thread(looks.take))
            ticks = 0
            while not look.done():
                await asyncio.sleep(0.005)
                ticks += 1
            observation = await look
            assert observation.sight is Sight.UNKNOWN
            assert observation.reason == phrase("slow_regex", regex="(a+)+$")
            assert ticks >= 5, "the loop went on meanwhile"
            table.table[JOB] = row(JOB, "aaa")
            assert looks.sight() is Sight.HELD


class TestStuck:
    """A process whose files block whoever reads them."""

    async def test_it_is_skipped_and_named_and_the_others_are_seen(
        self, tmp_path: Path
    ) -> None:
        stuck, job = NO_PID - 1, NO_PID
        table = proc(
            tmp_path,
            {
                **SYSTEM,
                f"{stuck}/stat": stat(stuck),
                f"{job}/stat": stat(job),
                f"{job}/cmdline": "soak.py\0",
            },
        )
        fifo = tmp_path / str(stuck) / "cmdline"
        os.mkfifo(fifo)
        async with on_threads(by_match("soak.py", table)) as looks:
            observation = await looks.take()
            assert observation.sight is Sight.UNKNOWN
            assert observation.reason == phrase("pids_stuck", pids=stuck)
            assert observation.evidence["stuck_pid"] == stuck
            for _ in range(5):
                assert await looks.sight() is Sight.HELD
            shutil.rmtree(tmp_path / str(job))
            for _ in range(5):
                observation = await looks.take()
                assert observation.sight is Sight.UNKNOWN
                assert observation.reason == phrase("pids_stuck", pids=str(stuck))
            assert len(looks.workers) == 2
            os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
            os.remove(fifo)
            await until(lambda: not looks.busy)

    async def test_two_that_block_cost_a_thread_each(self) -> None:
        table = FakeTable(row(JOB, "soak.py"), row(OTHER, "a"), row(THIRD, "b"))
        table.stuck = {OTHER: threading.Event(), THIRD: threading.Event()}
        async with on_threads(by_match("soak.py", table)) as looks:
            for _ in range(2):
                assert await looks.sight() is Sight.UNKNOWN
            for _ in range(5):
                assert await looks.sight() is Sight.HELD
            assert len(looks.workers) == 3
            for gate in table.stuck.values():
                gate.set()

    async def test_there_is_an_end_to_the_threads_that_it_may_cost(self) -> None:
        table = FakeTable(*(row(pid, "a") for pid in range(OTHER, OTHER + 12)))
        gate = threading.Event()
        table.stuck = dict.fromkeys(table.table, gate)
        async with on_threads(by_match("soak.py", table)) as looks:
            for _ in range(12):
                assert await looks.sight() is Sight.UNKNOWN
            assert len(looks.workers) == processes._MOST_STUCK + 1
            gate.set()

    @pytest.mark.parametrize("late", ["it still runs", "it has ended"])
    async def test_what_comes_back_late_disturbs_no_later_look(
        self, tmp_path: Path, late: str
    ) -> None:
        word = unique()
        proc(tmp_path, {**SYSTEM, f"{NO_PID}/stat": stat(NO_PID)})
        proc(tmp_path, {f"{NO_PID}/cmdline": "other\0"})
        table = Slow(str(tmp_path), NO_PID)
        with working(word) as work:
            shown = copied(work.pid, tmp_path)
            async with on_threads(by_match(word, table)) as looks:
                assert await looks.sight() is Sight.HELD
                files = open_files()
                table.gate.clear()
                assert await looks.sight() is Sight.UNKNOWN
                if late == "it has ended":
                    shutil.rmtree(shown)
                assert await looks.sight() is (
                    Sight.HELD if late == "it still runs" else Sight.UNKNOWN
                )
                table.gate.set()
                await until(lambda: not looks.busy)
                await until(lambda: open_files() <= files)
                if late == "it still runs":
                    assert await looks.sight() is Sight.HELD
                    (hint,) = looks.condition.hints()
                    assert isinstance(hint, ReadableHint)
                    os.fstat(hint.fd)
                    shutil.rmtree(shown)
                assert await looks.sight() is Sight.UNKNOWN, "one is left out for good"
                assert list(looks.condition.hints()) == []

    async def test_who_launched_it_stays_out_when_the_look_that_noted_it_hung(
        self,
    ) -> None:
        table = FakeTable(
            row(1, "init", ppid=0),
            row(11, "watch soak.py"),
            row(12, "watch soak.py"),
            row(JOB, "soak.py"),
        )
        gate = threading.Event()

        def matches(command: str) -> bool:
            gate.wait()
            return "soak.py" in command

        target = match_target("soak.py")
        condition = MatchingProcesses(
            target,
            {"match": "soak.py"},
            matches,
            table=table,
            launcher=11,
            clock=SystemClock(),
        )
        async with on_threads(condition) as looks:
            assert await looks.sight() is Sight.UNKNOWN
            condition.joined(12)
            gate.set()
            await until(lambda: not looks.busy)
            assert await looks.sight() is Sight.HELD
            del table.table[JOB]
            assert await looks.sight() is Sight.RELEASED

    async def test_a_scan_that_hangs_elsewhere_names_no_process(self) -> None:
        table = FakeTable(row(JOB, "soak.py"))
        gate = threading.Event()

        def matches(command: str) -> bool:
            gate.wait()
            return True

        condition = MatchingProcesses(
            match_target("soak.py"),
            {"match": "soak.py"},
            matches,
            table=table,
            launcher=os.getpid(),
            clock=SystemClock(),
        )
        async with on_threads(condition) as looks:
            for _ in range(3):
                observation = await looks.take()
                assert observation.sight is Sight.UNKNOWN
                assert observation.reason is not None
                assert observation.reason.key == "hung"
            assert len(looks.workers) == 1
            gate.set()
            await until(lambda: not looks.busy)
            assert await looks.sight() is Sight.HELD

    @pytest.mark.parametrize("name", ["pid", "pidfile"])
    async def test_one_process_that_blocks_is_unknown(
        self, name: str, tmp_path: Path
    ) -> None:
        table = Slow()
        with working() as work:
            proc(tmp_path, {"pid": str(work.pid)})
            condition = (
                by_pid(work.pid, table)
                if name == "pid"
                else by_pidfile(tmp_path / "pid", table)
            )
            async with on_threads(condition) as looks:
                assert await looks.sight() is Sight.HELD
                table.gate.clear()
                for _ in range(3):
                    observation = await looks.take()
                    assert observation.sight is Sight.UNKNOWN
                    assert observation.reason is not None
                    assert observation.reason.key == "hung"
                assert len(looks.workers) == 1
                table.gate.set()
                await until(lambda: not looks.busy)
                assert await looks.sight() is Sight.HELD


class TestQuickLooks:
    """A descriptor on the process says that it runs; nothing else is quick."""

    @pytest.mark.parametrize("name", ["pid", "pidfile"])
    @pytest.mark.parametrize("end", ["gone", "zombie"])
    def test_one_that_runs_is_confirmed_and_its_end_never(
        self, tmp_path: Path, name: str, end: str
    ) -> None:
        with working() as work:
            proc(tmp_path, {"pid": str(work.pid)})
            condition = (
                by_pid(work.pid) if name == "pid" else by_pidfile(tmp_path / "pid")
            )
            with looking(condition) as looks:
                assert not looks.same()
                assert looks.sight() is Sight.HELD
                assert looks.same()
                (tmp_path / "pid").unlink()
                assert looks.same(), "it is followed whatever becomes of the file"
                work.end_as_zombie() if end == "zombie" else work.end()
                assert not looks.same()
                assert looks.sight() is Sight.RELEASED
                assert not looks.same()

    def test_without_a_descriptor_nothing_is_confirmed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delattr(os, "pidfd_open")
        with working() as work, looking(by_pid(work.pid)) as looks:
            assert looks.sight() is Sight.HELD
            assert not looks.same()

    def test_what_has_yet_to_begin_is_not_confirmed(self, tmp_path: Path) -> None:
        with looking(by_pidfile(tmp_path / "pid"), AWAITED) as looks:
            assert looks.take().absent
            assert not looks.same()

    def test_a_pattern_takes_a_whole_look_each_time(self) -> None:
        table = FakeTable(row(JOB, "soak.py"))
        with looking(by_match("soak.py", table)) as looks:
            assert looks.sight() is Sight.HELD
            assert not looks.same()


class TestGroups:
    def test_what_can_hang_together_shares_a_thread(self, tmp_path: Path) -> None:
        assert by_pid(1).group == by_pid(2).group
        assert by_pidfile(tmp_path / "a").group == by_pidfile(tmp_path / "b").group
        folder = str(tmp_path)
        assert by_pidfile(tmp_path / "a").group == folder
        assert by_match("a").group != by_match("b").group


def copied(pid: int, folder: Path) -> Path:
    """Show a real process in a /proc of our own, which is read in no time."""
    real = Path(f"/proc/{pid}")
    names = ("stat", "cmdline")
    proc(folder, {f"{pid}/{name}": (real / name).read_bytes() for name in names})
    return folder / str(pid)


class Slow(ProcFs):
    """A table whose reading of a process, or of any, waits for a gate."""

    def __init__(self, root: str = "/proc", stuck: int | None = None) -> None:
        super().__init__(root)
        self._stuck = stuck
        self.gate = threading.Event()
        self.gate.set()

    def _stat(self, pid: int) -> Row:
        if self._stuck in {pid, None}:
            self.gate.wait()
        return super()._stat(pid)


class TestCommand:
    """What a user meets."""

    @pytest.mark.parametrize(
        "script",
        [
            pytest.param(
                "koder-monitor process --match {word} | while read l; do echo $l; done",
                id="a pipe into a loop",
            ),
            pytest.param(
                "(true; koder-monitor process --match {word}; true)", id="a subshell"
            ),
            pytest.param(
                "echo $(koder-monitor process --match {word})", id="a substitution"
            ),
            pytest.param(
                "timeout 30 sh -c 'koder-monitor process --match {word}; true'",
                id="shells and wrappers",
            ),
        ],
    )
    def test_who_carries_the_pattern_only_to_wait_for_it_never_matches(
        self, place: Place, script: str
    ) -> None:
        word = unique()
        ended = place.shell(script.format(word=word)).end()
        assert ended.line == f"❓ NÃO VISTO: nada casa com {word} — confira o padrão"

    def test_an_exit_is_reported_long_before_the_poll(self, place: Place) -> None:
        work = place.work()
        env = {"KODER_MONITOR_FLOOR": "5m"}
        running = place.start("process", "--pid", str(work.pid), env=env)
        running.armed()
        work.end()
        ended = running.end()
        assert ended.line.startswith(f"✅ TERMINOU: PID {work.pid} em ")

    @pytest.mark.slow
    def test_many_exits_at_once_are_one_end(self, place: Place) -> None:
        word = unique()
        works = [place.work(word) for _ in range(20)]
        env = {"KODER_MONITOR_FLOOR": "5m"}
        running = place.start("process", "--match", word, env=env)
        running.armed()
        for work in works:
            work.end()
        ended = running.end()
        assert ended.line.startswith(f"✅ TERMINOU: {word} em ")


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may hide processes")
class TestHiddenProcesses:
    """A /proc that shows other users' processes to nobody: `hidepid` of proc(5)."""

    # The other user may go everywhere, to find the interpreter, but sees no process.
    USER = f"--reuid={NOBODY} --regid={NOBODY} --clear-groups"
    FILES = "--inh-caps=+dac_override --ambient-caps=+dac_override"
    HIDE = f'mount -t proc -o hidepid=2 proc /proc && exec setpriv {USER} {FILES} "$@"'
    PROGRAM = ("unshare", "-m", "sh", "-c", HIDE, "sh", *COMMAND)

    def test_a_pid_is_followed_to_its_end(self, place: Place) -> None:
        work = place.work()
        running = place.start("process", "--pid", str(work.pid), program=self.PROGRAM)
        running.armed()
        work.end()
        ended = running.end()
        assert ended.line.startswith(f"✅ TERMINOU: PID {work.pid} em ")

    def test_a_pattern_is_never_reported_ended(self, place: Place) -> None:
        word = unique()
        work = place.work(word)
        words = ("process", "--match", word, "--ttl", "2s")
        running = place.start(*words, program=self.PROGRAM)
        running.armed()
        work.end()
        ended = running.end()
        assert ended.line.startswith(f"⏰ EXPIROU: {word} sem leitura há ")
        assert "esconde processos" in ended.line
