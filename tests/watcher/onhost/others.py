"""Processes whose parent is another process, which reaps them when a test says so."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from policies.proctable import parse_stat

_PARENT = """
import subprocess, sys
child = subprocess.Popen(["/bin/sh", "-c", 'read x; eval "$x"'], stdin=subprocess.PIPE)
print(child.pid, flush=True)
child.stdin.write(sys.stdin.buffer.readline())
child.stdin.close()
sys.stdin.readline()
child.wait()
print("reaped", flush=True)
sys.stdin.read()
"""


class Child:
    """One child of another process."""

    def __init__(self, parent: "subprocess.Popen[str]") -> None:
        self._parent = parent
        assert parent.stdout is not None
        self.pid = int(parent.stdout.readline())
        self.start = start_of(self.pid)

    def end(self, how: str) -> None:
        """Let it run its last command; it stays a zombie."""
        self._say(how)

    def reap(self) -> None:
        """Let its parent take its status."""
        self._say("")
        assert self._parent.stdout is not None
        assert self._parent.stdout.readline() == "reaped\n"

    def _say(self, line: str) -> None:
        assert self._parent.stdin is not None
        self._parent.stdin.write(line + "\n")
        self._parent.stdin.flush()


def start_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as file:
        return parse_stat(file.read()).start


def state_of(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return parse_stat(file.read()).state


@contextmanager
def child_of_another() -> Iterator[Child]:
    parent = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _PARENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        try:
            yield Child(parent)
        finally:
            parent.kill()
