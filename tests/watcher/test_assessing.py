"""Evidence gathered from real locks, processes, logs and repositories (C9.2, R5)."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from policies.assess import Advice, Assessment, assess, count_renewal
from policies.evidence import Found, Life, LockEvidence, ProcessEvidence, WorkEvidence
from policies.model import Json, Memory, Observation, Sight
from policies.proctable import Row
from policies.target import lock_target
from tests.fakes import FakeClock
from watcher import limited
from watcher.assessing import Machine, gather, this_machine
from watcher.clock import SystemClock
from watcher.commits import commits_since
from watcher.conditions.lock import LockCondition
from watcher.cpu import Busy, ProcCpu, PsutilCpu, below, cpu_table
from watcher.identity import Identity
from watcher.limited import MOST_LOST, within
from watcher.procfs import UNKNOWN_START, ProcessTable, process_table

HERE = socket.gethostname()
DEAD_PID = 4194303
LIMIT_S = 5.0

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="proc(5)")
with_git = pytest.mark.skipif(shutil.which("git") is None, reason="no git here")


def now() -> datetime:
    return datetime.now(UTC)


def until(look: Callable[[], bool]) -> None:
    """Wait for a condition, with a limit."""
    end = time.monotonic() + LIMIT_S
    while not look():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


@contextlib.contextmanager
def child(code: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run Python in a child that has said that it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"ready\n"
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=LIMIT_S)


SLEEPS = "import sys; print('ready', flush=True); sys.stdin.read()"
SPINS = "print('ready', flush=True)\nwhile True: pass"
WORKS_BY_A_CHILD = f"""
import subprocess, sys
subprocess.call([sys.executable, "-c", {SPINS!r}])
"""
WORKS_HALF_A_SECOND = "import time\nwhile time.process_time() < 0.5: pass"
WORKED_BY_A_CHILD = f"""
import subprocess, sys
subprocess.call([sys.executable, "-c", {WORKS_HALF_A_SECOND!r}])
print("ready", flush=True)
sys.stdin.read()
"""


def identity(pid: int) -> dict[str, Json]:
    table = process_table()
    row = table.row(pid)
    assert row is not None
    return {"boot_id": table.boot_id(), "pid": pid, "start_ticks": row.start}


def seen(
    memory: Memory | None = None,
    *,
    sight: Sight = Sight.HELD,
    evidence: dict[str, Json] | None = None,
) -> Observation:
    return Observation(
        sight=sight, at=now(), memory=memory or {}, evidence=evidence or {}
    )


def work_of(
    look: Observation,
    *,
    machine: Machine | None = None,
    log: Path | None = None,
    host: str | None = None,
) -> WorkEvidence:
    found = gather(
        "process",
        look,
        clock=SystemClock(),
        machine=machine,
        log=None if log is None else str(log),
        host=host,
    )
    assert isinstance(found, WorkEvidence)
    return found


def only(work: WorkEvidence) -> ProcessEvidence:
    (process,) = work.processes
    return process


def lock_of(
    path: Path,
    *,
    project: Path | None = None,
    before: Found | None = None,
    machine: Machine | None = None,
    at: datetime | None = None,
) -> LockEvidence:
    """Look at a lock as `check` does, then gather."""
    condition = LockCondition(lock_target(str(path), None), str(path))
    try:
        look = condition.look({}, at or now())
    finally:
        condition.close()
    found = gather(
        "lock",
        look,
        clock=SystemClock(),
        machine=machine,
        project=None if project is None else str(project),
        before=before,
    )
    assert isinstance(found, LockEvidence)
    return found


def age(path: Path, seconds: float) -> None:
    moment = now().timestamp() - seconds
    os.utime(path, (moment, moment))


def front_matter(**fields: object) -> str:
    lines = [f"{name}: {value}" for name, value in fields.items()]
    return "\n".join(["---", *lines, "---", ""])


# --- locks


def test_b09_a_dead_holder_is_told_and_its_lock_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "L"
    path.write_text(f"{DEAD_PID}\n{HERE}\n")
    before = path.stat()
    found = assess(lock_of(path), None, 0)
    assert found.verdict is Advice.REMOVE
    assert [reason.key for reason in found.reasons] == [
        "orphan",
        "assess_age",
        "assess_take_over",
    ]
    assert path.read_text() == f"{DEAD_PID}\n{HERE}\n"
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
    )


@pytest.mark.parametrize(
    ("content", "life"),
    [
        pytest.param(f"{os.getpid()}\n{HERE}\n", Life.ALIVE, id="a living PID"),
        pytest.param(f"{DEAD_PID}\n{HERE.upper()}\n", Life.DEAD, id="host in capitals"),
        pytest.param(f"{DEAD_PID}\nelsewhere\n", Life.UNKNOWN, id="B09: another host"),
        pytest.param(
            front_matter(pid=DEAD_PID), Life.UNKNOWN, id="a lock that names no host"
        ),
        pytest.param(front_matter(host=HERE), Life.UNKNOWN, id="no PID"),
        pytest.param("", Life.UNKNOWN, id="empty"),
    ],
)
def test_a_holder_is_looked_for_only_on_its_own_host(
    tmp_path: Path, content: str, life: Life
) -> None:
    path = tmp_path / "L"
    path.write_text(content)
    assert lock_of(path).life is life


def test_a_holder_that_is_a_zombie_is_dead(tmp_path: Path) -> None:
    path = tmp_path / "L"
    with child("print('ready', flush=True)") as process:
        until(lambda: _state_of(process.pid) == "Z")
        path.write_text(f"{process.pid}\n{HERE}\n")
        assert lock_of(path).life is Life.DEAD


def test_a_holder_younger_than_its_lock_proves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "L"
    path.write_text(f"{os.getpid()}\n{HERE}\n")
    age(path, 30 * 86400)
    assert lock_of(path).life is Life.UNKNOWN


def test_what_a_lock_says_is_in_the_evidence(tmp_path: Path) -> None:
    path = tmp_path / "L"
    path.write_text(
        front_matter(
            session="s-1", host="box", pid=7, since="2026-01-01", paths="[src, doc/*]"
        )
    )
    age(path, 120)
    found = lock_of(path)
    assert (found.session, found.host, found.pid) == ("s-1", "box", 7)
    assert (found.since, found.paths) == ("2026-01-01", ("src", "doc/*"))
    assert found.age_s == pytest.approx(120, abs=5)


def test_a_lock_written_in_the_future_has_no_age(tmp_path: Path) -> None:
    path = tmp_path / "L"
    path.touch()
    age(path, -3600)
    found = lock_of(path)
    assert (found.age_s, found.future_mtime) == (None, True)
    assert assess(found, None, 0).verdict is Advice.ASK


def test_a_lock_that_is_rewritten_shows_progress(tmp_path: Path) -> None:
    path = tmp_path / "L"
    path.touch()
    age(path, 86400)
    first = assess(lock_of(path), None, 0)
    frozen = assess(lock_of(path), first, 0)
    age(path, 80000)
    moved = assess(lock_of(path), frozen, 0)
    assert [item.verdict for item in (first, frozen, moved)] == [
        Advice.ASK,
        Advice.ASK,
        Advice.RENEW,
    ]
    assert [item.progress for item in (first, frozen, moved)] == [False, False, True]


@pytest.mark.parametrize(
    ("make", "sight", "verdict"),
    [
        pytest.param(lambda _: None, Sight.RELEASED, Advice.REMOVE, id="gone"),
        pytest.param(
            lambda path: path.parent.rmdir(), Sight.UNKNOWN, Advice.ASK, id="no folder"
        ),
    ],
)
def test_a_lock_that_is_not_there_is_told_from_one_that_is_not_seen(
    tmp_path: Path,
    make: Callable[[Path], object],
    sight: Sight,
    verdict: Advice,
) -> None:
    path = tmp_path / "locks" / "L"
    path.parent.mkdir()
    make(path)
    found = lock_of(path)
    assert found.sight is sight
    assert assess(found, None, 0).verdict is verdict


@pytest.mark.parametrize(
    "evidence",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"modified_s": "late"}, id="no time"),
        pytest.param(
            {"modified_s": 1.0, "holder": 7, "entry": 7, "path": 7}, id="odd parts"
        ),
        pytest.param(
            {
                "modified_s": 1.0,
                "holder": {"pid": "x", "paths": 7, "session": [], "since": "\0"},
                "entry": [],
                "path": "L",
            },
            id="odd holder",
        ),
    ],
)
def test_a_look_that_brought_little_gives_little_evidence(
    evidence: dict[str, Json],
) -> None:
    found = gather("lock", seen(evidence=evidence), clock=FakeClock())
    assert isinstance(found, LockEvidence)
    assert (found.life, found.commits, found.pid) == (Life.UNKNOWN, None, None)
    assert assess(found, None, 0).verdict is Advice.ASK


def test_a_frozen_lock_is_asked_about_at_the_fourth_renewal(tmp_path: Path) -> None:
    path = tmp_path / "L"
    path.write_text(f"{os.getpid()}\n{HERE}\n")
    last: Assessment | None = None
    idle, verdicts = 0, []
    for _ in range(4):
        last = assess(lock_of(path), last, idle)
        verdicts.append(last.verdict)
        idle = count_renewal(last, last.idle_renewals, renewed_at=None)
    assert verdicts == [Advice.RENEW] * 3 + [Advice.ASK]


# --- commits


class Project:
    """A real repository whose commits are made when a test says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str, at: datetime | None = None) -> str:
        made = f"{(at or now()).timestamp():.0f} +0000"
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("GIT_")
        }
        who = {"NAME": "a", "EMAIL": "a@b", "DATE": made}
        for role in ("AUTHOR", "COMMITTER"):
            environment |= {f"GIT_{role}_{name}": value for name, value in who.items()}
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env=environment | {"GIT_CONFIG_GLOBAL": os.devnull},
            check=True,
            capture_output=True,
            timeout=20,
        )
        return done.stdout.decode()

    def commit(self, name: str, at: datetime | None = None) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write("x")
        self.git("add", "-f", name)
        self.git("commit", "-q", "-m", name, at=at)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def component_lock(project: Project, *, paths: str = "[src]", days: float = 2) -> Path:
    """Take an old lock of a component whose holder is not said."""
    path = project.folder / "notices" / "lock-src.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(front_matter(paths=paths))
    age(path, days * 86400)
    return path


@with_git
def test_an_old_lock_with_commits_is_alive_and_one_without_is_asked_about(
    project: Project,
) -> None:
    project.commit("src/old.py", now() - timedelta(days=3))
    project.commit("doc/new.md")
    path = component_lock(project)
    without = lock_of(path)
    assert (without.commits, without.commit_age_s) == (0, None)
    assert assess(without, None, 0).verdict is Advice.ASK
    project.commit("src/deep/new.py")
    within_it = lock_of(path)
    assert within_it.commits == 1
    assert within_it.commit_age_s == pytest.approx(0, abs=5)
    assert assess(within_it, None, 0).verdict is Advice.RENEW


@with_git
def test_only_new_commits_are_progress(project: Project) -> None:
    project.commit("src/a.py", now() - timedelta(days=1))
    path = component_lock(project)
    first = assess(lock_of(path), None, 0)
    same = assess(lock_of(path, before=first.evidence), first, 0)
    project.commit("src/b.py")
    project.commit("src/c.py")
    moved = assess(lock_of(path, before=same.evidence), same, 0)
    rested = assess(lock_of(path, before=moved.evidence), moved, 0)
    counts = [
        (item.evidence.commits, item.evidence.new_commits)
        for item in (first, same, moved, rested)
        if isinstance(item.evidence, LockEvidence)
    ]
    assert counts == [(1, None), (1, 0), (3, 2), (3, 0)]
    assert [item.progress for item in (first, same, moved, rested)] == [
        False,
        False,
        True,
        False,
    ]


@with_git
def test_the_first_commit_after_an_assessment_is_new(project: Project) -> None:
    project.commit("doc/a.md", now() - timedelta(days=9))
    path = component_lock(project)
    first = lock_of(path)
    project.commit("src/a.py")
    assert lock_of(path, before=first).new_commits == 1


@with_git
def test_commits_are_told_by_their_times_where_history_was_rewritten(
    project: Project,
) -> None:
    project.commit("src/a.py", now() - timedelta(days=1))
    path = component_lock(project)
    before = lock_of(path, at=now() - timedelta(hours=1))
    project.git("commit", "-q", "--amend", "-m", "again")
    assert before.commits == 1
    found = lock_of(path, before=before)
    assert (found.commits, found.new_commits) == (1, 1)


@with_git
def test_a_commit_dated_in_the_future_counts_for_nothing(project: Project) -> None:
    project.commit("src/a.py", now() + timedelta(days=1))
    assert lock_of(component_lock(project)).commits == 0


@with_git
def test_the_time_that_a_lock_names_counts_before_that_of_its_file(
    project: Project,
) -> None:
    project.commit("src/a.py", now() - timedelta(days=3))
    project.commit("src/b.py", now() - timedelta(days=1))
    path = component_lock(project, days=2)
    counts = {}
    for days in (4, 0.5, -1):
        since = (now() - timedelta(days=days)).isoformat()
        path.write_text(front_matter(paths="[src]", since=since))
        age(path, 2 * 86400)
        counts[days] = lock_of(path).commits
    assert counts == {4: 2, 0.5: 0, -1: 1}


@with_git
def test_one_path_outside_the_project_hides_no_commits_of_the_others(
    project: Project,
) -> None:
    project.commit("src/a.py")
    found = commits_since(str(project.folder), ["../x", "src", "/etc"], 0)
    assert found is not None
    assert len(found) == 1


@with_git
@pytest.mark.parametrize(
    ("path", "counts"),
    [
        pytest.param("src", 1, id="a folder covers what is in it"),
        pytest.param("./src/", 1, id="written otherwise"),
        pytest.param("src/deep/f.py", 1, id="a file"),
        pytest.param("src/*/f.py", 1, id="a glob"),
        pytest.param("s*", 1, id="a glob of folders"),
        pytest.param("**/f.py", 1, id="a glob over folders"),
        pytest.param("doc", 0, id="another folder"),
        pytest.param("src/dee", 0, id="half a name"),
        pytest.param(":(exclude)doc", 0, id="no magic of git's"),
        pytest.param("--output=stolen", 0, id="no option of git's"),
        pytest.param("../project", None, id="outside"),
        pytest.param("/etc", None, id="absolute"),
        pytest.param(".", None, id="nothing in particular"),
        pytest.param("a\0b", None, id="no path at all"),
    ],
)
def test_paths_of_a_lock_are_globs_in_its_project(
    project: Project, path: str, counts: int | None
) -> None:
    project.commit("src/deep/f.py")
    found = commits_since(str(project.folder), [path], 0)
    assert (None if found is None else len(found)) == counts
    assert not (project.folder / "stolen").exists()


@with_git
def test_commits_of_every_local_branch_count(project: Project) -> None:
    project.commit("doc/a.md")
    project.git("switch", "-q", "-c", "work")
    project.commit("src/a.py")
    project.git("switch", "-q", "main")
    found = commits_since(str(project.folder), ["src"], 0)
    assert found is not None
    assert len(found) == 1


@with_git
def test_a_repository_further_up_is_not_the_project(project: Project) -> None:
    project.commit("src/a.py")
    inside = project.folder / "src"
    assert commits_since(str(inside), ["a.py"], 0) is None


@with_git
def test_git_obeys_no_environment_and_starts_nothing_of_the_repository(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.commit("src/a.py")
    trap, sprung = tmp_path / "trap", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {sprung}\n")
    trap.chmod(0o755)
    for name in ("core.pager", "core.fsmonitor", "gpg.program", "pager.rev-list"):
        project.git("config", name, str(trap))
    project.git("config", "log.showSignature", "true")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_PAGER", str(trap))
    monkeypatch.setenv("GIT_TRACE", str(sprung))
    found = commits_since(str(project.folder), ["src"], 0)
    assert found is not None
    assert len(found) == 1
    assert not sprung.exists()


@with_git
def test_git_fetches_nothing_that_a_partial_clone_left_out(
    project: Project, tmp_path: Path
) -> None:
    project.commit("src/a.py")
    project.commit("src/b.py")
    project.git("config", "uploadpack.allowFilter", "true")
    there = tmp_path / "clone"
    project.git(
        "clone",
        "-q",
        "--filter=tree:0",
        "--no-checkout",
        f"file://{project.folder}",
        str(there),
    )
    for protocol in ("file", "ssh"):
        project.git("-C", str(there), "config", f"protocol.{protocol}.allow", "always")
    packs = sorted(there.glob(".git/objects/pack/*"))
    assert packs
    assert commits_since(str(there), ["src"], 0) is None
    assert sorted(there.glob(".git/objects/pack/*")) == packs


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("exit 1", id="fails"),
        pytest.param("echo what is this", id="says something else"),
        pytest.param("printf '1 \\377\\n'", id="says no text"),
    ],
)
def test_a_git_that_fails_leaves_commits_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    _install_git(tmp_path, monkeypatch, script)
    assert commits_since(str(tmp_path), ["src"], 0) is None


def test_a_git_that_hangs_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "pid"
    _install_git(tmp_path, monkeypatch, f"echo $$ > {told}; exec sleep 60")
    monkeypatch.setattr("watcher.commits.GIT_LIMIT_S", 0.5)
    began = time.monotonic()
    assert commits_since(str(tmp_path), ["src"], 0) is None
    assert time.monotonic() - began < LIMIT_S
    pid = int(told.read_text())
    until(lambda: process_table().row(pid) is None)


def test_without_git_commits_are_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "L"
    path.write_text(front_matter(paths="[src]"))
    age(path, 86400)
    found = lock_of(path)
    assert found.commits is None
    reasons = [reason.key for reason in assess(found, None, 0).reasons]
    assert "assess_commits_unseen" in reasons


def _install_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text(f"#!/bin/sh\n{script}\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{git.parent}:{os.environ['PATH']}")


# --- processes


def test_a_busy_child_is_renewed_at_the_first_look() -> None:
    with child(SPINS) as process:
        found = assess(work_of(seen({"identity": identity(process.pid)})), None, 0)
    assert found.verdict is Advice.RENEW
    assert found.progress


def test_cpu_is_counted_from_one_assessment_to_the_next() -> None:
    with child(SPINS) as process:
        look = seen({"identity": identity(process.pid)})
        first = assess(work_of(look), None, 0)
        before = only_of(first).cpu_s
        assert before is not None
        until(lambda: (only(work_of(look)).cpu_s or 0.0) > before)
        second = assess(work_of(look), first, 0)
    used = only_of(second).cpu_progress_s
    assert used is not None
    assert used > 0
    assert second.progress


def only_of(assessment: Assessment) -> ProcessEvidence:
    assert isinstance(assessment.evidence, WorkEvidence)
    return only(assessment.evidence)


def test_the_work_of_a_child_is_the_work_of_its_parent() -> None:
    with child(WORKS_BY_A_CHILD) as process:
        found = assess(work_of(seen({"identity": identity(process.pid)})), None, 0)
    assert only_of(found).on_cpu
    assert found.verdict is Advice.RENEW


def test_a_stopped_child_is_for_triage_and_stays_stopped() -> None:
    with child(SPINS) as process:
        process.send_signal(signal.SIGSTOP)
        until(lambda: _state_of(process.pid) == "T")
        found = assess(work_of(seen({"identity": identity(process.pid)})), None, 0)
        assert found.verdict is Advice.REMOVE
        assert found.reasons[-1].key == "assess_triage"
        assert _state_of(process.pid) == "T"


def test_a_child_that_stands_still_is_hung_after_the_span_and_not_before() -> None:
    with child(SLEEPS) as process:
        until(lambda: _rests(process.pid))
        look = seen({"identity": identity(process.pid)})
        verdicts = []
        last: Assessment | None = None
        clock = FakeClock()
        for awake_s in (0.0, 300.0, 600.0):
            clock._awake = awake_s
            last = assess(gather("process", look, clock=clock), last, 0)
            verdicts.append(last.verdict)
        assert process.poll() is None
    assert verdicts == [Advice.ASK, Advice.ASK, Advice.REMOVE]


def test_a_zombie_has_ended() -> None:
    with child("print('ready', flush=True)") as process:
        until(lambda: _state_of(process.pid) == "Z")
        released = seen({"identity": identity(process.pid)}, sight=Sight.RELEASED)
        found = assess(work_of(released), None, 0)
    assert (only_of(found).life, only_of(found).state) == (Life.DEAD, "Z")
    assert found.verdict is Advice.REMOVE
    assert [reason.key for reason in found.reasons] == ["assess_over", "assess_zombie"]


def test_a_zombie_found_by_its_number_alone_is_named() -> None:
    with child("print('ready', flush=True)") as process:
        until(lambda: _state_of(process.pid) == "Z")
        look = seen(sight=Sight.RELEASED, evidence={"pid": process.pid})
        assert only(work_of(look)).state == "Z"


def test_all_processes_that_a_pattern_matched_are_looked_at() -> None:
    with child(SLEEPS) as one, child(SLEEPS) as other:
        memory: Memory = {
            "seen": [identity(one.pid), identity(other.pid), "odd", {"pid": 1}]
        }
        found = work_of(seen(memory))
    assert [item.pid for item in found.processes] == [one.pid, other.pid]
    assert {item.life for item in found.processes} == {Life.ALIVE}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"boot_id": "an earlier boot"}, id="of an earlier boot"),
        pytest.param({"start_ticks": 1}, id="whose PID was used again"),
        pytest.param({"pid": DEAD_PID}, id="that is gone"),
    ],
)
def test_a_process_is_dead(change: dict[str, Json]) -> None:
    memory: Memory = {"identity": {**identity(os.getpid()), **change}}
    assert only(work_of(seen(memory))).life is Life.DEAD


def test_a_process_is_described() -> None:
    with child(SLEEPS) as process:
        found = only(work_of(seen({"identity": identity(process.pid)})))
    assert found.cpu_s is not None
    assert found.running_s == pytest.approx(0, abs=10)
    assert found.state in set("RSD")


def _state_of(pid: int) -> str | None:
    item = cpu_table().busy().get(pid)
    return None if item is None else item.row.state


def _rests(pid: int) -> bool:
    """Say whether a process sleeps and used no CPU for a while."""
    before = cpu_table().busy()[pid]
    time.sleep(0.1)
    return before.row.state == "S" and cpu_table().busy()[pid] == before


# --- looks that fail


class Blind:
    """A machine on which one kind of look fails."""

    reading = 0

    def __init__(self, *, blind: Sequence[str] = (), rows: Sequence[Row] = ()) -> None:
        self._blind = blind
        self._rows = {row.pid: row for row in rows}

    def boot_id(self) -> str:
        self._fail("boot_id")
        return "b"

    def row(self, pid: int) -> Row | None:
        self._fail("row")
        return self._rows.get(pid)

    def rows(self, skip: object) -> dict[int, Row]:
        return self._rows

    def hidden(self) -> bool:
        return False

    def started_at(self, row: Row) -> float | None:
        self._fail("started_at")
        return None

    def busy(self) -> dict[int, Busy]:
        self._fail("busy")
        return {} if "stat" in self._blind else self._all()

    def _all(self) -> dict[int, Busy]:
        used = None if "times" in self._blind else 2.0
        return {pid: Busy(row, used) for pid, row in self._rows.items()}

    def _fail(self, name: str) -> None:
        if name in self._blind:
            raise PermissionError(name)
        if f"{name} hangs" in self._blind:
            threading.Event().wait(LIMIT_S)


def blind_machine(*blind: str, rows: Sequence[Row] = ()) -> Machine:
    fake = Blind(blind=blind, rows=rows)
    table: ProcessTable = fake
    return Machine(HERE, table, fake)


SLEEPER = Row(pid=7, ppid=1, start=3, state="S")
ENDED = Row(pid=7, ppid=1, start=3, state="Z")


@pytest.mark.parametrize(
    ("machine", "life", "cpu_s"),
    [
        pytest.param(blind_machine(rows=[SLEEPER]), Life.ALIVE, 2.0, id="all is seen"),
        pytest.param(
            blind_machine("boot_id", rows=[SLEEPER]),
            Life.UNKNOWN,
            None,
            id="no boot id",
        ),
        pytest.param(
            blind_machine("busy", rows=[SLEEPER]), Life.UNKNOWN, None, id="no table"
        ),
        pytest.param(
            blind_machine("times", rows=[SLEEPER]), Life.ALIVE, None, id="no times"
        ),
        pytest.param(
            blind_machine("started_at", rows=[SLEEPER]), Life.ALIVE, 2.0, id="no start"
        ),
        pytest.param(
            blind_machine("stat", rows=[SLEEPER]), Life.ALIVE, None, id="hidden, alive"
        ),
        pytest.param(
            blind_machine("stat", rows=[ENDED]), Life.DEAD, None, id="hidden, ended"
        ),
        pytest.param(blind_machine("stat"), Life.DEAD, None, id="no such process"),
        pytest.param(
            blind_machine("stat", "row"), Life.UNKNOWN, None, id="hidden altogether"
        ),
        pytest.param(blind_machine(rows=[ENDED]), Life.DEAD, None, id="ended"),
    ],
)
def test_a_look_at_a_process_that_fails_is_unknown(
    machine: Machine, life: Life, cpu_s: float | None
) -> None:
    memory: Memory = {"identity": {"boot_id": "b", "pid": 7, "start_ticks": 3}}
    found = only(work_of(seen(memory), machine=machine))
    assert (found.life, found.cpu_s) == (life, cpu_s)


@pytest.mark.parametrize(
    ("machine", "life"),
    [
        pytest.param(blind_machine(rows=[SLEEPER]), Life.ALIVE, id="seen"),
        pytest.param(blind_machine("row"), Life.UNKNOWN, id="cannot be looked at"),
        pytest.param(
            blind_machine("started_at", rows=[SLEEPER]), Life.UNKNOWN, id="no start"
        ),
        pytest.param(
            blind_machine(
                "started_at", rows=[Row(pid=7, ppid=1, start=UNKNOWN_START, state="?")]
            ),
            Life.ALIVE,
            id="not permitted proves that it lives",
        ),
        pytest.param(blind_machine(), Life.DEAD, id="no such process"),
    ],
)
def test_a_look_at_a_holder_that_fails_is_unknown(
    tmp_path: Path, machine: Machine, life: Life
) -> None:
    path = tmp_path / "L"
    path.write_text(f"7\n{HERE}\n")
    assert lock_of(path, machine=machine).life is life


@pytest.mark.parametrize("name", ["row", "busy"])
def test_a_look_that_hangs_is_given_up(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("watcher.assessing.LOOK_LIMIT_S", 0.1)
    machine = blind_machine(f"{name} hangs", rows=[SLEEPER])
    path = tmp_path / "L"
    path.write_text(f"7\n{HERE}\n")
    memory: Memory = {"identity": {"boot_id": "b", "pid": 7, "start_ticks": 3}}
    began = time.monotonic()
    lives = {
        "row": lambda: lock_of(path, machine=machine).life,
        "busy": lambda: only(work_of(seen(memory), machine=machine)).life,
    }
    assert lives[name]() is Life.UNKNOWN
    assert time.monotonic() - began < 2


def test_a_folder_that_hangs_leaves_commits_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "L"
    path.write_text(front_matter(paths="[src]"))

    def hang(_: str) -> str:
        threading.Event().wait(1)
        return str(tmp_path)

    monkeypatch.setattr("watcher.assessing.project_directory", hang)
    monkeypatch.setattr("watcher.assessing.LOOK_LIMIT_S", 0.1)
    assert lock_of(path).commits is None


def test_looks_that_never_came_back_are_limited_in_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limited, "_out", threading.BoundedSemaphore(MOST_LOST))
    free = threading.Event()
    for _ in range(MOST_LOST):
        with pytest.raises(TimeoutError):
            within(0.01, free.wait)
    with pytest.raises(TimeoutError):
        within(LIMIT_S, lambda: True)
    free.set()
    until(_comes_back)


def _comes_back() -> bool:
    try:
        return within(LIMIT_S, lambda: True)
    except TimeoutError:
        return False


def test_what_a_look_raises_is_raised() -> None:
    def fail() -> None:
        raise PermissionError

    with pytest.raises(PermissionError):
        within(LIMIT_S, fail)


# --- logs, other hosts, other kinds


def test_a_log_is_measured_from_one_assessment_to_the_next(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("one\n")
    first = assess(work_of(seen(), log=log), None, 0)
    with log.open("a") as file:
        file.write("two\n")
    second = assess(work_of(seen(), log=log), first, 0)
    assert isinstance(second.evidence, WorkEvidence)
    assert (second.evidence.log_size, second.evidence.log_growth) == (8, 4)
    assert second.verdict is Advice.RENEW


@pytest.mark.parametrize("name", ["missing/x.log", "odd\0name"])
def test_a_log_that_cannot_be_read_has_no_size(tmp_path: Path, name: str) -> None:
    assert work_of(seen(), log=tmp_path / name).log_size is None


def test_nothing_of_another_host_is_read_here(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("one\n")
    memory: Memory = {"identity": {**identity(os.getpid()), "boot_id": "theirs"}}
    found = work_of(seen(memory), log=log, host="box")
    assert (found.processes, found.log, found.log_size) == ((), None, None)
    lock = gather("lock", seen(), clock=FakeClock(), host="box")
    assert isinstance(lock, WorkEvidence)
    assert assess(found, None, 0).verdict is Advice.ASK


def test_another_kind_of_wait_is_asked_about() -> None:
    found = gather("port", seen(), clock=FakeClock())
    assert assess(found, None, 0).verdict is Advice.ASK


# --- the tables of CPU use


@pytest.mark.parametrize("table", [ProcCpu, PsutilCpu])
@on_linux
def test_every_table_sees_a_child_at_work_and_stopped(
    table: Callable[[], ProcCpu | PsutilCpu],
) -> None:
    with child(SPINS) as process:
        until(lambda: (table().busy()[process.pid].cpu_s or 0) > 0)
        assert table().busy()[process.pid].row.state == "R"
        assert table().busy()[process.pid].row.ppid == os.getpid()
        process.send_signal(signal.SIGSTOP)
        until(lambda: table().busy()[process.pid].row.state == "T")


@pytest.mark.parametrize("table", [ProcCpu, PsutilCpu])
@on_linux
def test_the_work_of_children_that_ended_still_counts(
    table: Callable[[], ProcCpu | PsutilCpu],
) -> None:
    with child(WORKED_BY_A_CHILD) as process:
        used_s = table().busy()[process.pid].cpu_s
    assert used_s is not None
    assert used_s >= 0.5


@on_linux
def test_the_table_of_proc_leaves_out_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "12").mkdir()
    (tmp_path / "self").mkdir()
    assert ProcCpu(str(tmp_path)).busy() == {}


def test_a_process_that_ends_while_psutil_looks_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(psutil, "pids", lambda: [DEAD_PID, os.getpid()])
    assert list(PsutilCpu().busy()) == [os.getpid()]


def test_the_descendants_of_a_process_are_found_without_ourselves() -> None:
    rows = [
        Row(pid=2, ppid=1, start=1, state="S"),
        Row(pid=3, ppid=2, start=1, state="S"),
        Row(pid=4, ppid=3, start=1, state="S"),
        Row(pid=5, ppid=1, start=1, state="S"),
        Row(pid=os.getpid(), ppid=3, start=1, state="R"),
    ]
    table = {row.pid: Busy(row, 0.0) for row in rows}
    assert {item.row.pid for item in below(2, table)} == {3, 4}
    loop = {7: Busy(Row(pid=7, ppid=7, start=1, state="S"), 0.0)}
    assert {item.row.pid for item in below(7, loop)} == {7}


@pytest.mark.parametrize(
    ("platform", "kind"), [("linux", ProcCpu), ("darwin", PsutilCpu)]
)
def test_each_system_has_its_table(
    platform: str, kind: type[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert isinstance(cpu_table(), kind)


def test_this_machine_is_the_one_whose_name_locks_use() -> None:
    assert this_machine().name == HERE
    assert Identity.from_json(identity(os.getpid())) is not None
