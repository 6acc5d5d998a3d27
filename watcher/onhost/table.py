"""The process table of the machine that this runs on: proc(5), or ps(1) without it."""

from __future__ import annotations

import copy
import errno
import math
import os
import subprocess
import threading
from collections.abc import Collection
from typing import Any

from policies.proctable import (
    PS_FIELDS,
    UNKNOWN_START,
    Row,
    cpu_ticks,
    hides_processes,
    parse_ps,
    parse_stat,
)

COMMAND_LIMIT = 65536
"""Bytes of a command line that are read."""

_PS_LIMIT_S = 8.0  # for ps(1) to list all processes
_SCAN_LIMIT_S = 3.0  # for a scan of /proc; what blocks it longer is left out
_MOST_STUCK = 8  # threads that processes which cannot be read may cost us


def host_table() -> ProcFs | PsTable:
    """Return the table of the machine that we run on."""
    return ProcFs() if os.path.exists("/proc/self/stat") else PsTable()


def about_us() -> dict[str, str]:
    """Return the boot id and the PID namespace that this runs in; nothing elsewhere."""
    try:
        boot = ProcFs().boot_id()
        return {"boot_id": boot, "pid_namespace": os.readlink("/proc/self/ns/pid")}
    except OSError:
        return {}


def line_of(pid: int) -> list[tuple[int, int]]:
    """Return PID and start of a process and its ancestors, where there is /proc."""
    return ProcFs().line(pid)


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
        return unseen_row(pid)

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
                table[pid] = unseen_row(pid)
            finally:
                self.reading = 0
        return table

    def shows(self, pid: int) -> bool:
        """Say whether there is such a process, without looking at it."""
        return os.path.exists(f"{self._root}/{pid}")

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

    def cpu(self) -> list[tuple[int, int, int]]:
        """Return PID, parent and ticks of CPU of every process that can be seen."""
        names = filter(str.isdigit, os.listdir(self._root))
        found = (self._cpu_of(name) for name in names)
        return [one for one in found if one is not None]

    def _cpu_of(self, name: str) -> tuple[int, int, int] | None:
        try:
            text = self._read(f"{name}/stat").decode("utf-8", "surrogateescape")
            row = parse_stat(text)
            return row.pid, row.ppid, cpu_ticks(text)
        except (OSError, ValueError):
            return None  # ended meanwhile, or not for us to see

    def line(self, pid: int) -> list[tuple[int, int]]:
        """Return PID and start of a process and its ancestors; blocks on none."""
        found: dict[int, Row] = {}
        try:
            while pid and pid not in found:
                found[pid] = self._stat(pid)
                pid = found[pid].ppid
        except OSError:
            pass  # ended meanwhile
        return [(row.pid, row.start) for row in found.values()]

    def _stat(self, pid: int) -> Row:
        text = self._read(f"{pid}/stat").decode("utf-8", "surrogateescape")
        try:
            return parse_stat(text)
        except ValueError as error:
            raise OSError(errno.EIO, f"not the stat of a process: {error}") from error

    def _with_command(self, row: Row) -> Row:
        readable = True
        try:
            raw = self._read(f"{row.pid}/cmdline", COMMAND_LIMIT)
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
            while len(content) < limit and (piece := os.read(fd, COMMAND_LIMIT)):
                content += piece
            return bytes(content)
        finally:
            os.close(fd)


def unseen_row(pid: int) -> Row:
    """Return the row of a process that lives but may not be looked at."""
    return Row(pid=pid, ppid=0, start=UNKNOWN_START, state="?", readable=False)


class PsTable:
    """Systems without /proc: ps(1), whose start times are in whole seconds."""

    def __init__(self, ps: str = "ps", sysctl: str = "sysctl") -> None:
        """Ask these programs."""
        self._ps = ps
        self._sysctl = sysctl
        self.reading = 0

    def boot_id(self) -> str:
        """Return what names this boot: nothing where the system has no such name.

        Its boot time is no name: it moves when somebody sets the clock.
        """
        names = ("kern.bootsessionuuid", "kern.boot_id")  # macOS, FreeBSD
        return next(filter(None, map(self._setting, names)), "")

    def row(self, pid: int) -> Row | None:
        """Return a process, or None when the kernel says that there is none."""
        found = self.rows(()).get(pid)
        if found is not None:
            return found
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            pass
        return unseen_row(pid)

    def rows(self, skip: Collection[int]) -> dict[int, Row]:
        """Return all processes that ps(1) lists."""
        rows = (row for row, _ in self._list())
        return {row.pid: row for row in rows if row.pid not in skip}

    def shows(self, pid: int) -> bool:  # noqa: ARG002
        """Say yes: ps(1) blocks on no single process."""
        return True

    def hidden(self) -> bool:
        """Say whether a FreeBSD hides other users' processes from us."""
        return self._setting("security.bsd.see_other_uids") == "0" and os.geteuid() != 0

    def started_at(self, row: Row) -> float | None:
        """Return the start in seconds since the epoch."""
        return float(row.start)

    def cpu(self) -> list[tuple[int, int, int]]:
        """Return PID, parent and 1/100 s of CPU of every process."""
        return [(row.pid, row.ppid, used) for row, used in self._list()]

    def _list(self) -> list[tuple[Row, int]]:
        words = [word for name in PS_FIELDS for word in ("-o", f"{name}=")]
        said = self._said([self._ps, "-A", "-ww", *words])
        if said is None:
            raise OSError(errno.EIO, "ps does not list the processes")
        try:
            rows = parse_ps(said)
        except ValueError as error:
            raise OSError(errno.EIO, f"not a line of ps: {error}") from error
        if all(row.pid != os.getpid() for row, _ in rows):
            raise OSError(errno.EIO, "ps does not list the process that asks")
        return rows

    def _setting(self, name: str) -> str:
        return (self._said([self._sysctl, "-n", name]) or "").strip()

    def _said(self, words: list[str]) -> str | None:
        try:
            ran = subprocess.run(  # noqa: S603 - no foreign word is in it
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_PS_LIMIT_S,
                check=False,
                env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        if ran.returncode:
            return None
        return ran.stdout.decode("utf-8", "surrogateescape")


_stuck: set[int] = set()
"""Processes whose files block us just now; each costs a thread."""


def all_rows(table: ProcFs | PsTable) -> tuple[dict[int, Row], list[int]]:
    """Return all rows, and who was left out since reading it blocks.

    Raises:
        OSError: the table could not be read, or not in time.
    """
    _stuck.intersection_update({pid for pid in _stuck if table.shows(pid)})
    while True:
        found: dict[str, Any] = {}
        scan = threading.Thread(target=_scan, args=(table, found), daemon=True)
        scan.start()
        scan.join(_SCAN_LIMIT_S if isinstance(table, ProcFs) else None)
        if "rows" in found:
            return found["rows"], sorted(_stuck)
        if "error" in found:
            raise found["error"]
        pid = table.reading
        if not pid or pid in _stuck or len(_stuck) >= _MOST_STUCK:
            raise OSError(errno.ETIMEDOUT, "reading the processes takes too long")
        found["stuck"] = pid
        _stuck.add(pid)
        if not scan.is_alive():  # it came back just now
            _stuck.discard(pid)
        table = copy.copy(table)  # the scan that hangs keeps its own


def _scan(table: ProcFs | PsTable, found: dict[str, Any]) -> None:
    try:
        found["rows"] = table.rows(tuple(_stuck))
    except OSError as error:
        found["error"] = error
    _stuck.discard(found.get("stuck", 0))
