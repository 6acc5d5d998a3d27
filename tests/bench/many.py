"""What thousands of armed locks cost in one service, beside loops that wait for them.

Everything lies in a scratch folder and is said on a unix socket; the pings go to the
fallback log. Every wait has a limit, and whatever was started is ended.
"""

import json
import os
import queue
import resource
import signal
import sqlite3
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from watcher.client import Client
from watcher.errors import ServiceError

MEMORY_BOUND = "issue: 80 MiB for 10,000"
IDLE_BOUND = "issue: 1 s for 10,000"
RELEASE_BOUND = "contract: 350 ms"

LOOPS = 100
"""Bash loops; ten thousand would be 20,000 processes."""

LOOP_S = 1
START_LIMIT_S = 30.0
TELL_LIMIT_S = 300.0
_LOOPS_RUN_S = 10.0
_ARMING_THREADS = 16
_SINGLES = 10  # releases of one lock among all the others
_TICKS = os.sysconf("SC_CLK_TCK")
_LOOP = f'while [ -e "$0" ]; do sleep {LOOP_S}; done; echo gone'


@dataclass(frozen=True, slots=True)
class Service:
    """A service of a state directory of its own."""

    state: Path
    locks: Path
    pid: int

    @property
    def client(self) -> Client:
        """Requests to it."""
        return Client(str(self.state))

    def cpu_s(self) -> float:
        """Return the CPU time that it has used so far."""
        stat = Path(f"/proc/{self.pid}/stat").read_text("utf-8")
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def rows(self, query: str) -> int:
        """Return a number out of its store."""
        with closing(sqlite3.connect(self.state / "monitor.db", timeout=30)) as store:
            (number,) = store.execute(query).fetchone()
            return int(number)

    def lock(self, number: int) -> Path:
        """Return the lock file of a number."""
        return self.locks / f"lock-s{number}.md"

    def arm(self, count: int) -> list[str]:
        """Make so many lock files, arm a watch for each, and return their ids."""
        for number in range(count):
            self.lock(number).touch()
        todo: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in range(count):
            todo.put(number)
        ids = [""] * count

        def work() -> None:
            while True:
                try:
                    number = todo.get_nowait()
                except queue.Empty:
                    return
                body = {"target": f"lock s{number}", "ttl_s": 7200}
                _, watch = self.client.request("POST", "/v1/watches", body)
                ids[number] = str(cast("Mapping[str, object]", watch)["id"])

        threads = [threading.Thread(target=work) for _ in range(_ARMING_THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if not all(ids):
            sys.exit("bench: not every lock could be armed")
        return ids


@contextmanager
def service(koder: str, folder: Path, env: Mapping[str, str]) -> Iterator[Service]:
    """Run a service in a folder for as long as the block lasts.

    Raises:
        SystemExit: it does not answer.
    """
    state, locks = folder / "state", folder / "locks"
    locks.mkdir(parents=True)
    places = {
        "KODER_MONITOR_STATE": str(state),
        "KODER_MONITOR_LOCKS_DIR": str(locks),
    }
    child = subprocess.Popen(
        [koder, "serve"],
        env={**env, **places},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        hosted = Service(state, locks, child.pid)
        _wait_until_it_answers(hosted)
        yield hosted
    finally:
        child.terminate()
        try:
            child.wait(START_LIMIT_S)
        finally:
            child.kill()


def stop_services(below: Path) -> None:
    """End every service that a command has started below a folder, and wait for it."""
    for lock in below.rglob("service.lock"):
        with suppress(OSError, ValueError, KeyError):
            pid = int(json.loads(lock.read_text("utf-8"))["pid"])
            if b"watcher" not in Path(f"/proc/{pid}/cmdline").read_bytes():
                continue
            os.kill(pid, signal.SIGTERM)
            until_s = time.monotonic() + START_LIMIT_S
            while Path(f"/proc/{pid}").exists() and time.monotonic() < until_s:
                time.sleep(0.01)


def measure(
    koder: str, folder: Path, env: Mapping[str, str], *, count: int, idle_s: float
) -> None:
    """Print what `count` armed locks cost, and what loops do."""
    print(f"\n{count:,} armed locks in one service")
    if not Path("/proc/self/smaps_rollup").exists():
        print("  needs /proc/PID/smaps_rollup, which this system does not have")
        return
    with service(koder, folder, env) as hosted:
        _row("PSS with nothing armed", f"{_pss_mib([hosted.pid]):.1f} MiB")
        since, used_s = time.perf_counter(), hosted.cpu_s()
        ids = hosted.arm(count)
        took_s, used_s = time.perf_counter() - since, hosted.cpu_s() - used_s
        _row("armed in", f"{took_s:.1f} s", f"{1000 * used_s / count:.2f} ms CPU each")
        _until_calm(hosted)
        used_s = hosted.cpu_s()
        time.sleep(idle_s)
        idle = (hosted.cpu_s() - used_s) * 60 / idle_s
        _row("PSS", f"{_pss_mib([hosted.pid]):.1f} MiB", MEMORY_BOUND)
        _row(f"CPU a minute, over {idle_s:g} s", f"{idle:.2f} s", IDLE_BOUND)
        _release_some(hosted, ids)
        _release_all(hosted, count)
        _row("PSS at the end", f"{_pss_mib([hosted.pid]):.1f} MiB")
    _loops(folder, env)


def _release_some(hosted: Service, ids: Sequence[str]) -> None:
    """Take the time from the removal of one lock to its outcome."""
    taken: list[float] = []
    step = max(len(ids) // _SINGLES, 1)
    for number in range(0, len(ids), step):
        path = f"/v1/watches/{ids[number]}/outcome?wait_s=30"
        with hosted.client.send("GET", path, limit_s=45) as pending:
            time.sleep(0.2)  # the question is there before the answer
            since = time.perf_counter()
            hosted.lock(number).unlink()
            status, _ = pending.read()
            taken.append(time.perf_counter() - since)
        if status != 200:
            sys.exit("bench: a release was not told")
    median, most = (
        f"{1000 * x:.0f} ms" for x in (statistics.median(taken), max(taken))
    )
    _row("one removed -> told, median", median, RELEASE_BOUND)
    _row("one removed -> told, longest", most)


def _release_all(hosted: Service, count: int) -> None:
    """Take the time until every outcome is stored, and until every ping is out."""
    since, used_s = time.perf_counter(), hosted.cpu_s()
    for number in range(count):
        hosted.lock(number).unlink(missing_ok=True)
    _row("the rest removed in", f"{time.perf_counter() - since:.2f} s")
    for what, query in (
        ("all told", "SELECT count(*) FROM watches WHERE state = 'armed'"),
        ("all pings out", "SELECT count(*) FROM pings WHERE state = 'pending'"),
    ):
        while left := hosted.rows(query):
            if time.perf_counter() - since > TELL_LIMIT_S:
                sys.exit(f"bench: {left} left after {TELL_LIMIT_S:g} s")
            time.sleep(0.05)
        _row(what, f"{time.perf_counter() - since:.2f} s")
    _row("CPU of it", f"{hosted.cpu_s() - used_s:.1f} s")
    told = hosted.rows("SELECT count(*) FROM watches WHERE state = 'released'")
    pinged = hosted.rows("SELECT count(*) FROM pings WHERE state = 'delivered'")
    with open(hosted.state / "release-pings.log", "rb") as log:
        logged = sum(1 for _ in log)
    wanted = "" if {told, pinged, logged} == {count} else f"NOT {count:,} each"
    _row("released, pings, lines in the log", f"{told} {pinged} {logged}", wanted)


def _loops(folder: Path, env: Mapping[str, str]) -> None:
    """Measure bash loops that wait for one file, all at once."""
    print(f"\n{LOOPS} bash loops, each with a sleep of {LOOP_S} s")
    path = folder / "looped.lock"
    path.touch()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    children = [
        subprocess.Popen(
            ["bash", "-c", _LOOP, str(path)],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        for _ in range(LOOPS)
    ]
    try:
        time.sleep(_LOOPS_RUN_S)
        pids = [pid for child in children for pid in (child.pid, *_below(child.pid))]
        _row("processes", str(len(pids)))
        _row("PSS", f"{_pss_mib(pids):.1f} MiB", "10,000: 100 times that")
        since = time.perf_counter()
        path.unlink()
        for child in children:
            child.wait(START_LIMIT_S)
        _row("all removed -> all ended", f"{time.perf_counter() - since:.2f} s")
    finally:
        for child in children:
            with suppress(ProcessLookupError):
                child.kill()
            child.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    minute_s = used_s * 60 / _LOOPS_RUN_S
    often = f"{minute_s / 30:.2f} s if they slept for 30 s"
    _row("CPU a minute", f"{minute_s:.1f} s", often)


def _until_calm(hosted: Service) -> None:
    """Return once what arming left to do is done; at the latest after a while."""
    until_s = time.monotonic() + START_LIMIT_S
    used_s = -1.0
    while time.monotonic() < until_s and hosted.cpu_s() - used_s > 0.05:
        used_s = hosted.cpu_s()
        time.sleep(1.0)


def _wait_until_it_answers(hosted: Service) -> None:
    until_s = time.monotonic() + START_LIMIT_S
    while time.monotonic() < until_s:
        with suppress(ServiceError):
            hosted.client.request("GET", "/healthz")
            return
        time.sleep(0.02)
    sys.exit("bench: the service does not answer")


def _pss_mib(pids: Sequence[int]) -> float:
    """Return the proportional memory of processes; one that has just ended has none."""
    total_kib = 0
    for pid in pids:
        with suppress(OSError):
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8")
            total_kib += sum(
                int(line.split()[1])
                for line in rollup.splitlines()
                if line.startswith("Pss:")
            )
    return total_kib / 1024


def _below(pid: int) -> list[int]:
    with suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8")
        return [int(word) for word in children.split()]
    return []


def _row(name: str, figure: str, remark: str = "") -> None:
    print(f"  {name:<34} {figure:>12}  {remark}".rstrip(), flush=True)
