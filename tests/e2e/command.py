"""A command as a user starts it: a child process with directories of its own."""

import json
import os
import re
import select
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
import unicodedata
import uuid
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeVar

from tests.services import service_pid
from watcher.socket_path import service_answers

T = TypeVar("T")

LIMIT_S = 45.0
"""Seconds until a test gives up on something that takes milliseconds."""

COMMAND = (sys.executable, "-m", "watcher")
TIME = r"\d\d:\d\d:\d\d"

_UNBUFFERED = "PYTHONUNBUFFERED"  # it would hide whatever forgets to flush


def until(look: Callable[[], T], *, limit_s: float = LIMIT_S) -> T:
    """Return what `look` returns once that is something.

    Raises:
        AssertionError: it still is not after `limit_s` seconds.
    """
    end_s = time.monotonic() + limit_s
    while not (found := look()):
        assert time.monotonic() < end_s, f"not within {limit_s} s"
        time.sleep(0.005)
    return found


def steering(text: str) -> list[str]:
    """Return what in a text could steer a terminal, break a line or turn its order."""
    return [
        f"U+{ord(char):04X}"
        for char in text
        if unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"}
        or unicodedata.bidirectional(char)
        in {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What a command left behind."""

    status: int
    out: str
    err: tuple[str, ...]

    @property
    def line(self) -> str:
        """The one line on stdout; more, less or half a line fails the test."""
        line, newline, rest = self.out.partition("\n")
        assert (newline, rest) == ("\n", ""), self
        return line

    @property
    def object(self) -> dict[str, object]:
        """The one JSON object on stdout."""
        found = json.loads(self.line)
        assert isinstance(found, dict)
        return found


class Running:
    """A command under way; its stdout and stderr go to files unless handed over."""

    def __init__(self, process: subprocess.Popen[bytes], out: Path, err: Path) -> None:
        self.process = process
        self._out = out
        self._err = err

    def said(self, text: str) -> str:
        """Wait for a whole line on stderr that holds `text`, and return it."""

        def look() -> str | None:
            lines = _text(self._err).splitlines(keepends=True)
            found = [line for line in lines if text in line and line.endswith("\n")]
            assert found or self.process.poll() is None, self.end()
            return found[0].rstrip("\n") if found else None

        found = until(look)
        assert found is not None
        return found

    def stdout(self) -> str:
        """Return what it wrote so far."""
        return _text(self._out)

    def stderr(self) -> str:
        """Return what it told so far."""
        return _text(self._err)

    def armed(self) -> str:
        """Wait for the line that says that it waits."""
        return self.said("armado: ")

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self, *, limit_s: float = LIMIT_S) -> Ended:
        """Wait for its end; whatever it wrote is UTF-8, harmless and no traceback."""
        status = self.process.wait(limit_s)
        ended = Ended(
            status=status,
            out=_text(self._out),
            err=tuple(_text(self._err).splitlines()),
        )
        everything = "\n".join([*ended.out.splitlines(), *ended.err])
        assert "Traceback" not in everything, everything
        assert "Exception" not in everything, everything
        assert steering(everything.replace("\n", "")) == [], everything
        return ended


@dataclass(slots=True, kw_only=True)
class Place:
    """Where commands run: lock and state directories that no other test knows."""

    folder: Path
    env: dict[str, str]
    _children: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _count: int = 0

    @classmethod
    def below(cls, folder: Path, env: Mapping[str, str]) -> "Place":
        """Make the directories; floors and settle time are short unless overridden."""
        locks = folder / "locks"
        locks.mkdir()
        own = {
            "KODER_MONITOR_FLOOR": "1s",
            "KODER_MONITOR_LOCKS_DIR": str(locks),
            "KODER_MONITOR_SETTLE": "20ms",
            "KODER_MONITOR_STATE": str(folder / "state"),
            "PYTHON": sys.executable,
        }
        kept = {name: value for name, value in env.items() if name != _UNBUFFERED}
        return cls(folder=folder, env={**kept, **own})

    @property
    def locks(self) -> Path:
        return self.folder / "locks"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def database(self) -> Path:
        return self.state / "monitor.db"

    @property
    def log(self) -> Path:
        """The fallback log."""
        return self.state / "release-pings.log"

    def service(self) -> int:
        """Wait for a service that answers, and return its PID."""

        def look() -> int | None:
            pid = service_pid(self.state)
            return pid if pid and service_answers(str(self.state)) else None

        pid = until(look)
        assert pid is not None
        return pid

    def end_service(
        self, number: signal.Signals = signal.SIGKILL, *, limit_s: float = LIMIT_S
    ) -> int:
        """End the service by a signal, wait until it is gone, and return its PID."""
        pid = self.service()
        handle = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(handle, number)
            ended = select.select([handle], [], [], limit_s)[0]
        finally:
            os.close(handle)
        assert ended, f"the service {pid} still runs {limit_s} s after {number.name}"
        return pid

    def rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        """Ask the store, or change it."""
        with closing(sqlite3.connect(self.database, timeout=LIMIT_S)) as connection:
            connection.row_factory = sqlite3.Row
            with connection:
                return connection.execute(query, values).fetchall()

    def watches(self, *words: str) -> list[dict[str, Any]]:
        """Return what `list --json` says."""
        found = json.loads(self.run("list", "--json", *words).line)
        assert isinstance(found, list)
        return found

    def watch(self, *words: str) -> dict[str, Any]:
        """Return the watch that `list --json` says; it is the only one."""
        (watch,) = self.watches(*words)
        return watch

    def pings(self) -> list[str]:
        """Return the whole lines of the fallback log."""
        if not self.log.exists():
            return []
        text = _text(self.log)
        assert steering(text.replace("\n", "")) == [], text
        return [line for line in text.splitlines(keepends=True) if line[-1] == "\n"]

    def ping(self, text: str) -> str:
        """Wait for the ping that holds `text`; it is the only one."""
        until(lambda: [ping for ping in self.pings() if text in ping])
        (ping,) = self.pings()
        return ping.rstrip("\n")

    def hold(self, slug: str = "demo", content: str | bytes = b"") -> Path:
        """Make the lock file of a slug."""
        path = self.locks / f"lock-{slug}.md"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def work(self, *words: str | bytes) -> "Work":
        """Start a child process that runs until it is told to end."""
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", "import sys; sys.stdin.read()", *words],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
        )
        self._children.append(process)
        return Work(process)

    def start(
        self,
        *words: str | bytes,
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
        stdin: int | IO[bytes] = subprocess.DEVNULL,
        stdout: int | IO[bytes] | None = None,
        stderr: int | IO[bytes] | None = None,
        program: tuple[str, ...] = COMMAND,
        pass_fds: tuple[int, ...] = (),
    ) -> Running:
        """Start a command.

        Args:
            words: what stands behind the program on the command line.
            env: what its environment has more, or with None less, than the place's.
            cwd: where it runs, if not in `folder`.
            stdin: nothing to read, unless given.
            stdout: a file that `Running.end` reads, unless given.
            stderr: likewise.
            program: the command itself, or what starts it.
            pass_fds: descriptors that it inherits.
        """
        self._count += 1
        out = self.folder / f"out-{self._count}"
        err = self.folder / f"err-{self._count}"
        merged = {**self.env, **(env or {})}
        with out.open("wb") as out_file, err.open("wb") as err_file:
            process = subprocess.Popen(
                [*program, *words],
                stdin=stdin,
                stdout=out_file if stdout is None else stdout,
                stderr=err_file if stderr is None else stderr,
                env={name: text for name, text in merged.items() if text is not None},
                cwd=cwd or self.folder,
                pass_fds=pass_fds,
            )
        self._children.append(process)
        return Running(process, out, err)

    def run(
        self,
        *words: str | bytes,
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
    ) -> Ended:
        """Start a command and wait for its end."""
        return self.start(*words, env=env, cwd=cwd).end()

    def shell(
        self, script: str, env: Mapping[str, str | None] | None = None
    ) -> Running:
        """Start a bash script; `koder-monitor` in it is the command under test."""
        command = shlex.join(COMMAND)
        return self.start(
            script.replace("koder-monitor", command), env=env, program=("bash", "-c")
        )

    def clear(self) -> None:
        """End what was started here, and what that started in turn."""
        for child in self._children:
            child.kill()
            if child.stdin is not None:
                child.stdin.close()
            if child.stdout is not None:
                child.stdout.close()
            child.wait(LIMIT_S)
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def processes(self) -> list[int]:
        """Return all that run with the state directory of this place, on Linux."""
        mark = f"KODER_MONITOR_STATE={self.folder / 'state'}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return found


class Work:
    """A child process whose end a test decides."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.pid = process.pid

    def end(self) -> None:
        """Let it end and take its status, so that nothing is left of it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(LIMIT_S)

    def end_as_zombie(self) -> None:
        """Let it end and leave its status untaken."""
        self.process.kill()
        stat = Path(f"/proc/{self.pid}/stat")
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z")


def unique() -> str:
    """Return a word that no other command line holds."""
    return f"work-{uuid.uuid4().hex}"


def outcome(pattern: str) -> re.Pattern[str]:
    """Return a pattern of a whole line, with `HH:MM:SS` and `<N>` filled in."""
    escaped = re.escape(pattern)
    return re.compile(escaped.replace("HH:MM:SS", TIME).replace("<N>", r"\d+"))


def _text(path: Path) -> str:
    """Return a file's text; not UTF-8 fails the test."""
    return path.read_bytes().decode("utf-8")
