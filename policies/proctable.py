"""The process table as rows, and which of them a pattern means (C3.3).

Sent to hosts, too: Python 3.9 and the standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, NamedTuple

_KERNEL_THREAD = 0x00200000  # PF_KTHREAD of linux/sched.h
_FINISHED = frozenset("ZXx")
_PROGRAM = "koder-monitor"
_AGENT = "koder-monitor-agent"  # likewise, of what looks there
_DETACHED = "koder-monitor-detached"  # in the command line of ours on a host
UNKNOWN_START = -1
"""Start of a process that lives but may not be looked at."""

_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})  # python(1)


class Row(NamedTuple):
    """One process.

    Attributes:
        start: kernel start ticks since boot where there is /proc, else the start time.
        state: the letter of proc(5) or ps(1).
        argv: its command line; for a kernel thread its name in brackets.
        readable: its command line could be read.
    """

    pid: int
    ppid: int
    start: int
    state: str
    threads: int = 1
    flags: int = 0
    argv: tuple[str, ...] = ()
    readable: bool = True

    @property
    def command(self) -> str:
        """The command line as one text."""
        return " ".join(self.argv)

    @property
    def finished(self) -> bool:
        """A zombie has ended, unless its other threads still run (C3.3)."""
        return self.state in _FINISHED and self.threads <= 1

    @property
    def kernel_thread(self) -> bool:
        """It belongs to the kernel and never ends."""
        return bool(self.flags & _KERNEL_THREAD)


def parse_stat(text: str) -> Row:
    """Return the row that a `/proc/PID/stat` describes, its command line left out.

    The name in brackets may itself hold spaces, brackets and newlines: proc(5).

    Raises:
        ValueError: for anything else.
    """
    head, bracket, rest = text.rpartition(")")
    pid, _, name = head.partition(" (")
    fields = rest.split()
    if not bracket or len(fields) < 20:
        raise ValueError(text[:80])
    return Row(
        pid=int(pid),
        ppid=int(fields[1]),
        start=int(fields[19]),
        state=fields[0],
        threads=int(fields[17]),
        flags=int(fields[6]),
        argv=(f"[{name}]",),
    )


def cpu_ticks(text: str) -> int:
    """Return what a `/proc/PID/stat` says of the CPU used, by its ended children too.

    Raises:
        ValueError: for anything else.
    """
    times = text.rpartition(")")[2].split()[11:15]
    if len(times) < 4:
        raise ValueError(text[:80])
    return sum(map(int, times))


PS_FIELDS = ("pid", "ppid", "state", "time", "lstart", "args")
"""What ps(1) is asked for where there is no /proc, each as `-o FIELD=`."""

_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()  # noqa: SIM905
_PS_LINE = re.compile(
    r" *([0-9]+) +([0-9]+) +(\S+) +"
    r"(?:([0-9]+)-)?(?:([0-9]+):)?([0-9]+):([0-9]{2})(?:[.,]([0-9]{2}))? +"
    rf"(?:[A-Z][a-z][a-z] +({'|'.join(_MONTHS)}) +([0-9]+) "
    r"([0-9]{2}):([0-9]{2}):([0-9]{2}) ([0-9]{4})|-)(?: +(.*?))? *"
)


def parse_ps(text: str) -> list[tuple[Row, int]]:
    """Return the rows of ps(1) with the CPU that each has used, in 1/100 s.

    It was run with LC_ALL=C, TZ=UTC and `PS_FIELDS`. The start is in seconds since the
    epoch; the BSDs leave that of a zombie out.

    Raises:
        ValueError: a line is none of it: then nobody knows what else is missing.
    """
    return [_ps_row(line) for line in text.splitlines() if line.strip()]


def _ps_row(line: str) -> tuple[Row, int]:
    found = _PS_LINE.fullmatch(line)
    if found is None:
        raise ValueError(line[:80])
    pid, ppid, state, *spent = found.group(1, 2, 3, 4, 5, 6, 7, 8)
    days, hours, minutes, seconds, parts = (int(part or 0) for part in spent)
    month, *rest = found.group(9, 10, 11, 12, 13, 14)
    start = UNKNOWN_START
    if month is not None:
        day, hour, minute, second, year = map(int, rest)
        date = (year, _MONTHS.index(month) + 1, day, hour, minute, second)
        start = int(datetime(*date, tzinfo=timezone.utc).timestamp())  # noqa: UP017
    row = Row(
        pid=int(pid),
        ppid=int(ppid),
        start=start,
        state=state[0],
        argv=tuple((found[15] or "[]").split(" ")),
    )
    used_s = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return row, used_s * 100 + parts


def row_of(values: Sequence[Any]) -> Row:
    """Return the row that JSON holds as a list.

    Raises:
        TypeError, ValueError: it is none.
    """
    pid, ppid, start, state, threads, flags, argv, readable = values
    return Row(pid, ppid, start, state, threads, flags, tuple(argv), readable)


def used_by(pids: Collection[int], cpu: Iterable[Sequence[int]]) -> int | None:
    """Return the CPU that processes and all below them have used; None without them.

    Args:
        pids: whose.
        cpu: of each process of the table its PID, its parent's and what it has used.
    """
    used: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for pid, ppid, spent in cpu:
        used[pid] = spent
        children.setdefault(ppid, []).append(pid)
    queue, tree = list(pids), set[int]()
    while queue:
        pid = queue.pop()
        if pid in used and pid not in tree:
            tree.add(pid)
            queue += children.get(pid, [])
    return sum(used[pid] for pid in tree) if tree else None


def lineage(pid: int, rows: Mapping[int, Row]) -> set[int]:
    """Return a process and its ancestors."""
    line: set[int] = set()
    while pid in rows and pid not in line:
        line.add(pid)
        pid = rows[pid].ppid
    return line


def below(pid: int, rows: Mapping[int, Row]) -> set[int]:
    """Return all that descend from a process."""
    found: set[int] = set()
    while born := {row.pid for row in rows.values() if row.ppid in {pid, *found}} - {
        pid,
        *found,
    }:
        found |= born
    return found


def is_watch(argv: tuple[str, ...]) -> bool:
    """Say whether a command line is a koder-monitor: run by itself or by a Python."""
    if not argv:
        return False
    left_there = _AGENT in argv or any(_DETACHED in word for word in argv)
    if left_there or _base(argv[0]) == _PROGRAM:
        return True
    if not _base(argv[0]).startswith(("python", "pypy")):
        return False
    words = iter(argv[1:])
    for word in words:
        if word == "-m":
            return next(words, "") == "watcher"
        if word in _WITH_VALUE:
            next(words, "")
        elif not word.startswith("-"):
            return _base(word) == _PROGRAM
    return False


def own_side(rows: Mapping[int, Row], launchers: Collection[int]) -> set[int]:
    """Return the processes that carry a pattern only because they wait for it (C3.3).

    1. The launchers: the monitor itself and its ancestors.
    2. Forked copies of a launcher: a subshell has its parent's command line.
    3. Every other watch, and those of its ancestors that name koder-monitor: the shell
       whose `-c` text holds the pattern. Other ancestors stay: they may be the work.
    4. The ssh sessions behind which something of ours looks.
    """
    own = {pid for pid in launchers if pid in rows}
    for row in rows.values():
        if is_watch(row.argv):
            own.add(row.pid)
            own |= {
                pid
                for pid in lineage(row.ppid, rows)
                if _PROGRAM in rows[pid].command
                or (_AGENT in row.argv and _is_session(rows[pid].command))
            }
    while copies := _forked_copies(rows, own):
        own |= copies
    return own


def _is_session(command: str) -> bool:
    """Say whether this is what sshd runs for one connection, by its title."""
    return command.startswith("sshd") and ("@" in command or "[priv]" in command)


def _forked_copies(rows: Mapping[int, Row], own: Collection[int]) -> set[int]:
    return {
        row.pid
        for row in rows.values()
        if row.pid not in own and row.ppid in own and row.argv == rows[row.ppid].argv
    }


def matching(
    rows: Mapping[int, Row],
    own: Collection[int],
    matches: Callable[[str], bool],
) -> list[Row]:
    """Return the live processes whose command line matches, our own side left out."""
    return [
        row
        for row in rows.values()
        if row.pid not in own and not row.finished and matches(row.command)
    ]


def hides_processes(mountinfo: Iterable[str], uid: int, gids: Collection[int]) -> bool:
    """Say whether /proc is mounted so that other users' processes are hidden.

    Args:
        mountinfo: the lines of `/proc/self/mountinfo`: proc(5).
        uid: the effective user id; root sees everything.
        gids: the group ids, of which the option `gid=` exempts one (0 when not set).
    """
    options: dict[str, str] = {}
    for line in mountinfo:
        fields, _, source = line.partition(" - ")
        words = fields.split()
        if len(words) > 4 and words[4] == "/proc" and source.startswith("proc "):
            pairs = [pair.partition("=") for pair in source.split()[-1].split(",")]
            options = {
                name: value for name, _, value in pairs
            }  # the last mount is on top
    if options.get("hidepid", "0") in {"0", "off"} or uid == 0:
        return False
    return int(options.get("gid", "0")) not in gids


def _base(path: str) -> str:
    return path.rpartition("/")[2]
