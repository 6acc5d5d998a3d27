"""The process table as rows, and which of them a pattern means (C3.3)."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

_KERNEL_THREAD = 0x00200000  # PF_KTHREAD of linux/sched.h
_FINISHED = frozenset("ZXx")
_PROGRAM = "koder-monitor"
_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})  # python(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
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


def lineage(pid: int, rows: Mapping[int, Row]) -> set[int]:
    """Return a process and its ancestors."""
    line: set[int] = set()
    while pid in rows and pid not in line:
        line.add(pid)
        pid = rows[pid].ppid
    return line


def is_watch(argv: tuple[str, ...]) -> bool:
    """Say whether a command line is a koder-monitor: run by itself or by a Python."""
    if not argv:
        return False
    if _base(argv[0]) == _PROGRAM:
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
    """
    own = {pid for pid in launchers if pid in rows}
    for row in rows.values():
        if is_watch(row.argv):
            own.add(row.pid)
            own |= {
                pid for pid in lineage(row.ppid, rows) if _PROGRAM in rows[pid].command
            }
    while copies := _forked_copies(rows, own):
        own |= copies
    return own


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
