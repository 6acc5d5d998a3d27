"""What koder-monitor costs beside what people type instead: `make bench`.

Prints medians, never judges them: other work on the machine shows in every figure.
Each way to wait gets the same treatment: start it, see that it waits, let go at a
random moment of its interval, take the time until its line can be read. What is said
in times `python3 -c pass` is measured in turns with it.
"""

import argparse
import itertools
import json
import os
import platform
import random
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.bench import far, logs, many

LIMIT_S = 60.0
"""For any one line; more than the poll of 30 s, for a system without events."""

CALM_S = 0.2  # between "armed" and the release: what is loaded after arming is there
LOOP_S = 1  # how long the loops sleep; their median is about half of it

LOCK_BOUND = "contract: 300 ms"
PROCESS_BOUND = "contract: 20 ms"
ARMED_BOUND = "issue: 12x"
STARTED_BOUND = "issue: 45x"
READ_BOUND = "issue: 6x"
HOOK_BOUND = "issue: 4x"

ROWS = 1000
"""Armed watches that the reading commands have to show."""

MANY = 10_000
MANY_QUICK = 1_000
PARTS = ("lock", "process", "start", "reads", "hooks", "far", "logs", "many")

_PAYLOADS = Path(__file__).parent.parent / "data/hooks/claude-code"
_EVENTS = (
    "session-start",
    "user-prompt-submit",
    "pre-tool-use",
    "post-tool-use",
    "stop",
)

_LOCK_LOOP = f'echo ready >&2; while [ -e "$0" ]; do sleep {LOOP_S}; done; echo gone'
_KILL_LOOP = (
    'echo ready >&2; while kill -0 "$0" 2>/dev/null; do '
    f"sleep {LOOP_S}; done; echo gone"
)
_TAIL = 'echo ready >&2; tail --pid="$0" -f /dev/null; echo gone'
_PIDFD = """\
import os, select, sys
poll = select.poll()
poll.register(os.pidfd_open(int(sys.argv[1])), select.POLLIN)
print("ready", file=sys.stderr, flush=True)
poll.poll()
print("gone", flush=True)
"""
_WAITPID = """\
import subprocess, sys
child = subprocess.Popen(["sleep", "600"])
print("ready", child.pid, file=sys.stderr, flush=True)
child.wait()
print("gone", flush=True)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to wait, by its command line.

    Attributes:
        ready: how the line on stderr begins that says "I wait".
        phase_s: the interval of its looks, which the release falls into at random.
        bound: what the contract asks of it.
    """

    name: str
    argv: Sequence[str]
    ready: str = "ready"
    phase_s: float = 0.0
    bound: str = ""


class Lines:
    """The lines of a pipe, each waited for with a limit."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        """Read from `stream`."""
        if stream is None:
            msg = "no pipe"
            raise ValueError(msg)
        self._fd = stream.fileno()
        self._rest = b""

    def next(self) -> str:
        """Return the next line.

        Raises:
            SystemExit: it did not come; a figure without it would be a lie.
        """
        while b"\n" not in self._rest:
            data = self.read()
            if not data:
                sys.exit(f"bench: ended without its line; said: {self._rest!r}")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "replace")

    def read(self) -> bytes:
        """Return what comes next, empty at the end.

        Raises:
            SystemExit: nothing came.
        """
        if not select.select([self._fd], [], [], LIMIT_S)[0]:
            sys.exit(f"bench: nothing within {LIMIT_S:g} s")
        return os.read(self._fd, 65536)

    def starting(self, beginning: str) -> str:
        """Return the next line that begins so."""
        while not (line := self.next()).startswith(beginning):
            pass
        return line


class Bench:
    """Takes the figures, one at a time so that none disturbs another."""

    def __init__(self, *, koder: str, folder: Path, rounds: int) -> None:
        """Measure the command `koder` in `folder`."""
        self._koder = koder
        self._folder = folder
        self._rounds = rounds
        self._random = random.Random(2)
        self._numbers = itertools.count(1)
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("KODER_MONITOR_", "XDG_")) and name != "TTL"
        }
        self._env = kept | {"HOME": str(folder)}

    def lock(self) -> None:
        """From the removal of a lock file to the line."""
        path = str(self._folder / "bench.lock")
        ways = [
            Way(
                name="koder-monitor lock",
                argv=[self._koder, "lock", path],
                ready="armado: ",
                bound=LOCK_BOUND,
            ),
            Way(
                name="inotifywait -e delete_self",
                argv=["inotifywait", "-e", "delete_self", path],
                ready="Watches established",
            ),
            Way(
                name=f"bash: while [ -e ]; sleep {LOOP_S}",
                argv=["bash", "-c", _LOCK_LOOP, path],
                phase_s=LOOP_S,
            ),
        ]
        self._compare(
            "lock removed -> line", ways, lambda way: self._removal(way, path)
        )
        print("  (koder-monitor waits its settle time of 250 ms; the others do not)")

    def process(self) -> None:
        """From the exit of a process to the line; the bench reaps it at once."""
        ways = [
            Way(
                name="koder-monitor process --pid",
                argv=[self._koder, "process", "--pid"],
                ready="armado: ",
                bound=PROCESS_BOUND,
            ),
            Way(name="python: pidfd, poll", argv=[sys.executable, "-c", _PIDFD]),
            Way(
                name="tail --pid",
                argv=["bash", "-c", _TAIL],
                phase_s=1.0,  # how often it looks, by its manual
            ),
            Way(
                name=f"bash: while kill -0; sleep {LOOP_S}",
                argv=["bash", "-c", _KILL_LOOP],
                phase_s=LOOP_S,
            ),
        ]
        self._compare("process ends -> line", ways, self._exit)
        parent = Way(name="python: waitpid (its parent)", argv=[sys.executable, "-c"])
        self._show(parent, [self._child_exit() for _ in range(self._rounds)])

    def start(self) -> None:
        """From start to the armed line, in turns with a bare interpreter.

        Each turn arms something new: joining what is armed already costs less.
        """
        self._ratios(
            "start -> armed",
            [
                ("lock, service running", self._arm_lock, ARMED_BOUND),
                ("process --pid, service running", self._arm_process, ARMED_BOUND),
                ("lock, service to be started", self._arm_anew, STARTED_BOUND),
            ],
        )

    def reads(self) -> None:
        """What it costs to show a thousand armed watches."""
        folder = self._folder / "reads"
        with many.service(self._koder, folder, self._env) as hosted:
            ids = hosted.arm(ROWS)
            env = {**self._env, "KODER_MONITOR_STATE": str(hosted.state)}
            beside = str(Path(self._koder).parent)
            job = shutil.which("koder-job", path=beside) or "koder-job"

            def read(*argv: str) -> Callable[[], float]:
                return lambda: self._whole(argv, env)

            self._ratios(
                f"reading, {ROWS:,} armed",
                [
                    ("list", read(self._koder, "list"), READ_BOUND),
                    ("list --json", read(self._koder, "list", "--json"), READ_BOUND),
                    ("koder-job list", read(job, "list"), READ_BOUND),
                    ("show ID", read(self._koder, "show", ids[0]), READ_BOUND),
                ],
            )

    def hooks(self) -> None:
        """What a coding agent pays at each of its events, and for its status line."""
        folder = self._folder / "hooks"
        with many.service(self._koder, folder, self._env) as hosted:
            hosted.arm(ROWS)
            env = {**self._env, "KODER_MONITOR_STATE": str(hosted.state)}

            def fed(name: str, *argv: str) -> Callable[[], float]:
                recorded = json.loads((_PAYLOADS / name).read_text("utf-8"))
                payload = folder / name
                payload.write_text(json.dumps(recorded["payload"]), "utf-8")
                words = [self._koder, *argv, "--runtime", "claude-code"]
                return lambda: self._whole(words, env, payload)

            measured = [
                (event, fed(f"{event}.json", "hook", event), HOOK_BOUND)
                for event in _EVENTS
            ]
            measured.append(
                ("statusline", fed("statusline.json", "statusline"), HOOK_BOUND)
            )
            node = shutil.which("node")
            if node is not None:
                bare = [node, "-e", "0"]
                measured.append(
                    ("node -e 0", lambda: self._whole(bare, self._env), "to compare")
                )
            self._ratios(f"hooks, {ROWS:,} armed", measured)

    def far(self) -> None:
        """What a host costs."""
        far.measure(self._koder, self._folder, self._env, self._rounds)

    def logs(self) -> None:
        """What logs cost."""
        logs.measure(self._koder, self._folder, self._env)

    def many(self, count: int, idle_s: float) -> None:
        """What thousands of armed locks cost."""
        folder = self._folder / "many"
        many.measure(self._koder, folder, self._env, count=count, idle_s=idle_s)

    def _ratios(
        self, title: str, measured: Sequence[tuple[str, Callable[[], float], str]]
    ) -> None:
        print(f"\n{title}, in turns with a bare interpreter")
        bare: list[float] = []
        taken: list[list[float]] = [[] for _ in measured]
        for turn in range(self._rounds + 1):
            base = self._whole([sys.executable, "-c", "pass"], self._env)
            figures = [measure() for _, measure, _ in measured]
            if turn:  # the first one warms the caches
                bare.append(base)
                for kept, figure in zip(taken, figures, strict=True):
                    kept.append(figure)
        self._show(Way(name="python3 -c pass", argv=()), bare)
        for (name, _, bound), figures in zip(measured, taken, strict=True):
            ratio = statistics.median(figures) / statistics.median(bare)
            self._show(Way(name=name, argv=(), bound=f"{ratio:.1f}x; {bound}"), figures)

    def _compare(
        self, title: str, ways: Sequence[Way], measure: Callable[[Way], float]
    ) -> None:
        print(f"\n{title}")
        for way in ways:
            if shutil.which(way.argv[0]) is None:
                print(f"  {way.name:<34} not installed", flush=True)
            else:
                self._show(way, [measure(way) for _ in range(self._rounds)])

    def _show(self, way: Way, taken: Sequence[float]) -> None:
        figures = (statistics.median(taken), min(taken), max(taken))
        median, least, most = (f"{figure * 1000:.1f}" for figure in figures)
        spread = f"({least} to {most})"
        row = f"  {way.name:<34} {median:>7} ms  {spread:<20} {way.bound}"
        print(row.rstrip(), flush=True)

    def _removal(self, way: Way, path: str) -> float:
        with open(path, "xb"):
            pass
        with self._running(way.argv) as (out, err):
            err.starting(way.ready)
            self._pause(way)
            since = time.perf_counter()
            os.unlink(path)
            out.next()
            return time.perf_counter() - since

    def _exit(self, way: Way) -> float:
        with (
            self._child(["sleep", "600"]) as work,
            self._running([*way.argv, str(work.pid)]) as (out, err),
        ):
            err.starting(way.ready)
            self._pause(way)
            since = time.perf_counter()
            work.kill()
            work.wait()  # with a limit it would look at intervals of its own
            out.next()
            return time.perf_counter() - since

    def _child_exit(self) -> float:
        with self._running([sys.executable, "-c", _WAITPID]) as (out, err):
            pid = int(err.starting("ready").split()[1])
            time.sleep(CALM_S)
            since = time.perf_counter()
            os.kill(pid, 9)
            out.next()
            return time.perf_counter() - since

    def _whole(
        self, argv: Sequence[str], env: Mapping[str, str], given: Path | None = None
    ) -> float:
        """Take the time of a program from start to end.

        Args:
            argv: the program.
            env: its environment.
            given: the file that is its standard input.
        """
        since = time.perf_counter()
        with self._running(argv, env, given) as (out, _):
            while out.read():
                pass  # its end closes the pipe
            return time.perf_counter() - since

    def _arm_lock(self) -> float:
        return self._arming(["lock", self._new_lock()], self._env)

    def _arm_process(self) -> float:
        with self._child(["sleep", "600"]) as work:
            return self._arming(["process", "--pid", str(work.pid)], self._env)

    def _arm_anew(self) -> float:
        state = self._folder / f"state-{next(self._numbers)}"
        env = {**self._env, "KODER_MONITOR_STATE": str(state)}
        taken = self._arming(["lock", self._new_lock()], env)
        many.stop_services(state)
        return taken

    def _new_lock(self) -> str:
        path = self._folder / f"held-{next(self._numbers)}.lock"
        path.touch()
        return str(path)

    def _arming(self, words: Sequence[str], env: Mapping[str, str]) -> float:
        since = time.perf_counter()
        with self._running([self._koder, *words], env) as (_, err):
            err.starting("armado: ")
            return time.perf_counter() - since

    def _pause(self, way: Way) -> None:
        time.sleep(CALM_S + self._random.uniform(0, way.phase_s))

    @contextmanager
    def _running(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        given: Path | None = None,
    ) -> Iterator[tuple[Lines, Lines]]:
        with self._child(argv, env, given) as child:
            yield Lines(child.stdout), Lines(child.stderr)

    @contextmanager
    def _child(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        given: Path | None = None,
    ) -> "Iterator[subprocess.Popen[bytes]]":
        """Run a program for as long as the block lasts, never longer."""
        with open(given or os.devnull, "rb") as stdin:
            child = subprocess.Popen(
                argv,
                env=env or self._env,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        with child:
            try:
                yield child
            finally:
                with suppress(ProcessLookupError):
                    child.kill()


def main() -> None:
    """Take all figures."""
    parser = argparse.ArgumentParser(description="Measure; about five minutes.")
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"5 rounds instead of 20, {MANY_QUICK:,} armed locks, 10 s of idleness",
    )
    parser.add_argument(
        "--many", type=int, metavar="N", help=f"armed locks (default {MANY:,})"
    )
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=PARTS, help="these parts alone"
    )
    options = parser.parse_args()
    beside = str(Path(sys.executable).parent)
    koder = shutil.which("koder-monitor", path=beside)
    if koder is None:
        sys.exit(f"bench: no koder-monitor in {beside}; run 'make bench'")
    rounds = 5 if options.quick else 20
    load = os.getloadavg()[0]
    print(
        f"median (least to most) of {rounds}; Python {platform.python_version()}, "
        f"{platform.system()} {platform.release()}, {os.cpu_count()} CPUs, "
        f"load {load:.1f} at the start"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench = Bench(koder=koder, folder=folder, rounds=rounds)
        count = options.many or (MANY_QUICK if options.quick else MANY)
        parts: dict[str, Callable[[], None]] = {
            "lock": bench.lock,
            "process": bench.process,
            "start": bench.start,
            "reads": bench.reads,
            "hooks": bench.hooks,
            "far": bench.far,
            "logs": bench.logs,
            "many": lambda: bench.many(count, 10.0 if options.quick else 30.0),
        }
        try:
            for part in options.only:
                parts[part]()
        finally:
            many.stop_services(folder)
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
