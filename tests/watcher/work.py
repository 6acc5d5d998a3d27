"""Real processes whose life a test decides."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.command import until

LIMIT_S = 20.0

# Ends when its stdin does, so it cannot outlive the test.
SLEEPER = (sys.executable, "-S", "-c", "import sys; sys.stdin.read()")

# The first thread ends and leaves a zombie; the other goes on until stdin ends.
_LEADERLESS = """
import ctypes, threading, sys
threading.Thread(target=sys.stdin.read).start()
print(flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


def state(pid: int) -> str:
    """Return the letter of proc(5), or nothing when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


@contextmanager
def working(*words: str, program: Sequence[str] = SLEEPER) -> Iterator["Work"]:
    """Run a process until it is told to end, or until the test is over."""
    child = subprocess.Popen(
        [*program, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    work = Work(child, words[-1] if words else "")
    line = Path(f"/proc/{child.pid}/cmdline")
    try:
        until(line.read_bytes)  # the kernel fills it only behind the exec
        yield work
    finally:
        work.kill()
        work.end()


@contextmanager
def leaderless() -> Iterator["Work"]:
    """Run a process whose first thread is a zombie while another one runs."""
    with working(program=(sys.executable, "-c", _LEADERLESS)) as work:
        until(lambda: state(work.pid) == "Z")
        yield work


class Work:
    """A child process."""

    def __init__(self, child: "subprocess.Popen[bytes]", word: str) -> None:
        self._child = child
        self.pid = child.pid
        self.word = word
        """The last word of its command line."""

    def end(self) -> None:
        """Let it end and take its status, so that nothing is left of it."""
        self.let_end()
        self._child.wait(LIMIT_S)
        if self._child.stdout is not None:
            self._child.stdout.close()

    def kill(self) -> None:
        """End it, whatever it does."""
        self._child.kill()

    def let_end(self) -> None:
        """Let it end without taking its status: a zombie stays."""
        if self._child.stdin is not None:
            self._child.stdin.close()

    def end_as_zombie(self) -> None:
        """Let it end and wait for what stays of it."""
        self.let_end()
        until(lambda: state(self.pid) == "Z")
