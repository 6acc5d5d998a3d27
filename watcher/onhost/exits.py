"""How processes end that are not our children: when, and with which wait status."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from policies.proctable import parse_stat

_MOST_HELD = 200  # descriptors; a process has 1,024 by default, and looks need some
_MOST_KNOWN = 1000  # statuses that are kept, the oldest go first
_GRACE_S = 0.05  # for a parent to reap its child: only then the kernel tells others
_STEP_S = 0.005

# linux/pidfd.h, first version of the structure: mask, cgroup id, 11 ids, exit code.
_INFO = struct.Struct("=QQ11Ii")
_INFO_EXIT = 1 << 3
_GET_INFO = (3 << 30) | (_INFO.size << 16) | (0xFF << 8) | 11
_EXIT_CODE = 49  # field 52 of proc(5), counted from behind the name

End = tuple[int, int]
"""PID and kernel start ticks: whose end it is."""

_known: OrderedDict[End, int] = OrderedDict()
_known_lock = threading.Lock()


class Exits:
    """Holds descriptors that tell the end of processes: pidfd_open(2).

    Of use from any thread. Where there are no such descriptors it holds none.
    """

    def __init__(self) -> None:
        """Hold none yet."""
        self._held: dict[End, int] = {}
        self._told: set[End] = set()
        self._lock = threading.Lock()
        with _known_lock:
            _everywhere.add(self)

    def hold(self, pid: int, start: int) -> bool | None:
        """Take a descriptor, if it is this process; the same one is held once.

        Returns:
            True when it is held, False when the process has provably ended, and None
            where nothing can be said: looks have to do.
        """
        opener = getattr(os, "pidfd_open", None)
        with self._lock:
            if (pid, start) in self._held:
                return True
            if opener is None or start < 0 or len(self._held) >= _MOST_HELD:
                return None
            try:
                fd = opener(pid)
            except ProcessLookupError:
                return False
            except OSError:
                return None
            found = _start_of(pid)
            if found != start:
                ended = found is not None or _readable(fd)
                os.close(fd)
                return False if ended else None
            self._held[pid, start] = fd
            return True

    def fds(self) -> list[int]:
        """Return the descriptors that will become readable, one an end."""
        with self._lock:
            return [fd for end, fd in self._held.items() if end not in self._told]

    def poll(self) -> list[tuple[int, int, int | None]]:
        """Return what has ended since the last call: PID, start and wait status.

        The status is None where the kernel does not tell it, or not yet.
        """
        with self._lock:
            new = [end for end in self._held if end not in self._told]
            ended = [end for end in new if _readable(self._held[end])]
            self._told.update(ended)
            return [(*end, self._look(end)) for end in ended]

    def ended(self, pid: int, start: int) -> bool:
        """Say whether it holds this process, and that has ended."""
        with self._lock:
            fd = self._held.get((pid, start))
            return fd is not None and _readable(fd)

    def status(self, pid: int, start: int) -> int | None:
        """Return the wait status of a held process, if it can be told by now."""
        with self._lock:
            return self._look((pid, start))

    def keep_only(self, ends: Iterable[End]) -> None:
        """Give up all others; what is known of them stays known."""
        kept = set(ends)
        with self._lock:
            for end in [held for held in self._held if held not in kept]:
                self._look(end)
                os.close(self._held.pop(end))
                self._told.discard(end)

    def close(self) -> None:
        """Give them all up."""
        self.keep_only(())

    def _look(self, end: End) -> int | None:
        fd = self._held.get(end)
        status = None
        if fd is not None and _readable(fd):
            status = reaped_status(fd)
            status = _zombie_status(*end) if status is None else status
        if status is not None:
            _remember(end, status)
        return status


_everywhere: weakref.WeakSet[Exits] = weakref.WeakSet()


def known_status(pid: int, start: int) -> int | None:
    """Return the wait status of a process that has ended, where it is known.

    One that was held but is not yet reaped by its parent is given a moment: other
    users' processes tell nothing before that.
    """
    give_up_at = time.monotonic() + _GRACE_S
    while True:
        status = _status_now((pid, start))
        ended = any(exits.ended(pid, start) for exits in _all())
        if status is not None or not ended or time.monotonic() > give_up_at:
            return status
        time.sleep(_STEP_S)


def ended_as(status: int) -> dict[str, Any]:
    """Return what a wait status means: `result` and `decided` of what was seen."""
    number = status & 0x7F
    if number:
        return {
            "result": "DIED",
            "decided": ["exit_signal", {"signal": _signal_name(number)}],
        }
    code = status >> 8 & 0xFF
    result = "FAIL" if code else "PASS"
    return {"result": result, "decided": ["exit_code", {"code": code}]}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _all() -> list[Exits]:
    with _known_lock:
        return list(_everywhere)


def _status_now(end: End) -> int | None:
    with _known_lock:
        status = _known.get(end)
    if status is None:
        told = (exits.status(*end) for exits in _all())
        status = next((one for one in told if one is not None), None)
    return _zombie_status(*end) if status is None else status


def _remember(end: End, status: int) -> None:
    with _known_lock:
        _known[end] = status
        while len(_known) > _MOST_KNOWN:
            _known.popitem(last=False)


def _readable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


def reaped_status(fd: int) -> int | None:
    """Return what the kernel keeps for whoever holds a descriptor: Linux 6.15."""
    empty = _INFO.pack(_INFO_EXIT, *[0] * 13)
    try:
        mask, *_, status = _INFO.unpack(fcntl.ioctl(fd, _GET_INFO, empty))
    except OSError:
        return None  # an older kernel
    return status if mask & _INFO_EXIT else None


def _zombie_status(pid: int, start: int) -> int | None:
    """Return the status of one that its parent has yet to reap.

    The kernel shows 0 to those who may not know; the links in /proc/PID/ns are read by
    the same rule (proc(5): PTRACE_MODE_READ_FSCREDS), and refused.
    """
    try:
        text = _stat(pid)
        row = parse_stat(text)
        status = int(text.rpartition(")")[2].split()[_EXIT_CODE])
        if row.start != start or not row.finished:
            return None
        if not status:
            os.readlink(f"/proc/{pid}/ns/user")
    except (OSError, ValueError, IndexError):
        return None
    return status


def _start_of(pid: int) -> int | None:
    try:
        return parse_stat(_stat(pid)).start
    except (OSError, ValueError):
        return None


def _stat(pid: int) -> str:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="surrogateescape") as file:
        return file.read()
