"""The process table of this machine: /proc on Linux, psutil elsewhere."""

import errno
import math
import os
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

from policies.proctable import Row, hides_processes, parse_stat

if TYPE_CHECKING:
    import psutil

_COMMAND_LIMIT = 65536  # bytes of a command line that are read
UNKNOWN_START = -1
"""Start of a process that lives but may not be looked at."""


class ProcessTable(Protocol):
    """Where processes are looked up."""

    reading: int
    """The PID whose files are being read just now: one may block for ever."""

    def boot_id(self) -> str:
        """Return what names this boot of the machine."""
        ...

    def row(self, pid: int) -> Row | None:
        """Return a process, or None when it provably does not exist.

        Raises:
            OSError: it could not be seen.
        """
        ...

    def rows(self, skip: Collection[int]) -> dict[int, Row]:
        """Return all processes that can be seen, but those to skip.

        Raises:
            OSError: the table could not be read.
        """
        ...

    def hidden(self) -> bool:
        """Say whether processes of other users are hidden from us."""
        ...

    def started_at(self, row: Row) -> float | None:
        """Return the wall-clock time of a start, which a clock step may have moved."""
        ...


def process_table() -> ProcessTable:
    """Return the table of the machine that we run on."""
    if sys.platform == "linux":
        return ProcFs()
    return PsutilTable()


class ProcFs:
    """Linux: proc(5)."""

    def __init__(self, root: str = "/proc") -> None:
        """Read below `root`."""
        self._root = root
        self.reading = 0

    def boot_id(self) -> str:
        """Return the kernel's random boot id."""
        return self._read("sys/kernel/random/boot_id").decode("ascii").strip()

    def row(self, pid: int) -> Row | None:
        """Return a process, or None when the kernel says that there is none.

        Where /proc shows nothing, because it hides other users' processes, the kernel
        is asked by signal 0: "not permitted" proves that it lives (C3.3).
        """
        self.reading = pid
        try:
            return self._with_command(self._stat(pid))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            pass
        finally:
            self.reading = 0
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            pass
        return _unseen_row(pid)

    def rows(self, skip: Collection[int]) -> dict[int, Row]:
        """Return all processes of /proc; one that ends meanwhile is left out."""
        table: dict[int, Row] = {}
        for name in os.listdir(self._root):
            pid = int(name) if name.isdigit() else 0
            if not pid or pid in skip:
                continue
            self.reading = pid
            try:
                table[pid] = self._with_command(self._stat(pid))
            except (FileNotFoundError, ProcessLookupError):
                continue
            except PermissionError:
                table[pid] = _unseen_row(pid)
            finally:
                self.reading = 0
        return table

    def hidden(self) -> bool:
        """Say whether /proc is mounted with `hidepid` and we are not exempt."""
        lines = self._read("self/mountinfo").decode("utf-8", "replace").splitlines()
        return hides_processes(lines, os.geteuid(), {*os.getgroups(), os.getegid()})

    def started_at(self, row: Row) -> float | None:
        """Return boot time plus start ticks, in seconds since the epoch."""
        for line in self._read("stat").splitlines():
            if line.startswith(b"btime "):
                boot = int(line.split()[1])
                return boot + row.start / os.sysconf("SC_CLK_TCK")
        return None

    def _stat(self, pid: int) -> Row:
        text = self._read(f"{pid}/stat").decode("utf-8", "surrogateescape")
        try:
            return parse_stat(text)
        except ValueError as error:
            raise OSError(errno.EIO, f"not the stat of a process: {error}") from error

    def _with_command(self, row: Row) -> Row:
        readable = True
        try:
            raw = self._read(f"{row.pid}/cmdline", _COMMAND_LIMIT)
        except PermissionError:
            raw, readable = b"", False
        words = raw.rstrip(b"\0").decode("utf-8", "surrogateescape").split("\0")
        return Row(
            pid=row.pid,
            ppid=row.ppid,
            start=row.start,
            state=row.state,
            threads=row.threads,
            flags=row.flags,
            argv=tuple(words) if raw else row.argv,
            readable=readable,
        )

    def _read(self, name: str, limit: float = math.inf) -> bytes:
        """Read a file, which the kernel gives piece by piece."""
        fd = os.open(f"{self._root}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            content = bytearray()
            while len(content) < limit and (piece := os.read(fd, _COMMAND_LIMIT)):
                content += piece
            return bytes(content)
        finally:
            os.close(fd)


def _unseen_row(pid: int) -> Row:
    return Row(pid=pid, ppid=0, start=UNKNOWN_START, state="?", readable=False)


class PsutilTable:
    """Any other system: psutil. Its start times come from the kernel's table."""

    _STATES = {"zombie": "Z", "dead": "X"}  # noqa: RUF012 - a constant

    def __init__(self) -> None:
        """Import psutil only here: on Linux nobody needs it."""
        import psutil  # noqa: PLC0415

        self._psutil = psutil
        self.reading = 0

    def boot_id(self) -> str:
        """Return nothing: the start times of psutil tell one boot from another."""
        return ""

    def row(self, pid: int) -> Row | None:
        """Return a process, or None when psutil finds none."""
        self.reading = pid
        try:
            return self._row(self._psutil.Process(pid))
        except self._psutil.NoSuchProcess:
            return None
        except self._psutil.AccessDenied:
            return _unseen_row(pid)
        finally:
            self.reading = 0

    def rows(self, skip: Collection[int]) -> dict[int, Row]:
        """Return all processes of psutil's table."""
        table: dict[int, Row] = {}
        for pid in self._psutil.pids():
            if pid in skip:
                continue
            row = self.row(pid)
            if row is not None:
                table[pid] = row
        return table

    def hidden(self) -> bool:
        """Say no: these systems show every process's existence."""
        return False

    def started_at(self, row: Row) -> float | None:
        """Return the start in seconds since the epoch."""
        return row.start / 100

    def _row(self, process: "psutil.Process") -> Row:
        with process.oneshot():
            try:
                argv, readable = tuple(process.cmdline()), True
            except (self._psutil.AccessDenied, self._psutil.ZombieProcess):
                argv, readable = (), False
            status = process.status()
            return Row(
                pid=process.pid,
                ppid=process.ppid(),
                start=round(process.create_time() * 100),
                state=self._STATES.get(status, "S"),
                argv=argv or (f"[{process.name()}]",),
                readable=readable or status in self._STATES,
            )
