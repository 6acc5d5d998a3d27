"""The process table of this machine: /proc on Linux, psutil elsewhere."""

import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

from policies.proctable import UNKNOWN_START, Row
from watcher.onhost.table import ProcFs, unseen_row

if TYPE_CHECKING:
    import psutil

__all__ = ["UNKNOWN_START", "ProcFs", "ProcessTable", "PsutilTable", "process_table"]


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
            return unseen_row(pid)
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
