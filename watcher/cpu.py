"""How much CPU processes have used: /proc on Linux, psutil elsewhere."""

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from policies.proctable import Row, parse_stat
from watcher.procfs import UNKNOWN_START


class Busy(NamedTuple):
    """A process and the CPU seconds that it and its ended children have used."""

    row: Row
    cpu_s: float | None


class CpuTable(Protocol):
    """Where the use of CPU is looked up."""

    def busy(self) -> dict[int, Busy]:
        """Return all processes that can be seen; their command lines are left out.

        Raises:
            OSError: none can be.
        """
        ...


def cpu_table() -> CpuTable:
    """Return the table of the machine that we run on."""
    if sys.platform == "linux":
        return ProcCpu()
    return PsutilCpu()


def below(pid: int, table: Mapping[int, Busy]) -> list[Busy]:
    """Return the descendants of a process: a build's work is done by its children.

    Ourselves are left out, who run just now whatever the work does.
    """
    children: dict[int, list[Busy]] = {}
    for item in table.values():
        children.setdefault(item.row.ppid, []).append(item)
    found: list[Busy] = []
    queue = [pid]
    while queue:
        born = children.pop(queue.pop(), [])
        found += born
        queue += [item.row.pid for item in born]
    return [item for item in found if item.row.pid != os.getpid()]


class ProcCpu:
    """Linux: proc(5)."""

    def __init__(self, root: str = "/proc") -> None:
        """Read below `root`."""
        self._root = root

    def busy(self) -> dict[int, Busy]:
        """Read each `stat`, which does not block as command lines may."""
        ticks_a_second = os.sysconf("SC_CLK_TCK")
        table: dict[int, Busy] = {}
        for name in filter(str.isdigit, os.listdir(self._root)):
            try:
                with open(f"{self._root}/{name}/stat", "rb") as stat:
                    text = stat.read().decode("utf-8", "replace")
            except OSError:
                continue  # ended meanwhile, or not for us to see
            row = parse_stat(text)
            ticks = sum(map(int, text.rpartition(")")[2].split()[11:15]))
            table[row.pid] = Busy(row, round(ticks / ticks_a_second, 3))
        return table


_STATES = {
    "running": "R",
    "disk-sleep": "D",
    "stopped": "T",
    "tracing-stop": "t",
    "zombie": "Z",
    "dead": "X",
}
"""psutil's words for the letters of proc(5); any other is a kind of sleep."""


class PsutilCpu:
    """Any other system: psutil."""

    def busy(self) -> dict[int, Busy]:
        """Walk psutil's table; what it may not see of a process is left unknown."""
        import psutil  # noqa: PLC0415 - on Linux nobody needs it

        table: dict[int, Busy] = {}
        for pid in psutil.pids():
            try:
                seen = psutil.Process(pid).as_dict(
                    ("ppid", "status", "create_time", "cpu_times")
                )
            except psutil.Error:
                continue
            started_s, times = seen["create_time"], seen["cpu_times"]
            row = Row(
                pid=pid,
                ppid=seen["ppid"] or 0,
                start=UNKNOWN_START if started_s is None else round(started_s * 100),
                state=_STATES.get(seen["status"], "S"),
            )
            table[pid] = Busy(row, None if times is None else round(sum(times[:4]), 3))
        return table
