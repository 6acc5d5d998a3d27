"""Who a process is, for good, and the descriptors that tell its end (C3.3)."""

import os
import select
from collections.abc import Sequence
from dataclasses import dataclass

from policies.model import Json
from watcher.onhost import exits
from watcher.procfs import ProcessTable

_WATCHED = 64  # processes that get a descriptor each; the rest are looked at by /proc


@dataclass(frozen=True, slots=True)
class Identity:
    """A process for good: a reused PID has another start, a new boot another id."""

    boot: str
    pid: int
    start: int

    def as_json(self) -> Json:
        """Return what memory and evidence keep of it."""
        return {"boot_id": self.boot, "pid": self.pid, "start_ticks": self.start}

    @staticmethod
    def from_json(value: Json) -> "Identity | None":
        """Return the identity that a memory holds, if it holds one."""
        if not isinstance(value, dict):
            return None
        boot, pid = value.get("boot_id"), value.get("pid")
        start = value.get("start_ticks")
        if isinstance(boot, str) and isinstance(pid, int) and isinstance(start, int):
            return Identity(boot, pid, start)
        return None


class ExitDescriptors:
    """Descriptors that become readable when a process ends: pidfd_open(2)."""

    def __init__(self) -> None:
        """Hold none yet."""
        self._held: dict[Identity, int] = {}
        self._told: dict[Identity, int] = {}

    def hold(self, identity: Identity, table: ProcessTable) -> None:
        """Take a descriptor where the system has them, if it is this process."""
        opener = getattr(os, "pidfd_open", None)
        if opener is None or identity in self._held or len(self._held) >= _WATCHED:
            return
        try:
            fd = opener(identity.pid)
        except OSError:
            return  # gone already, or a thread, or too old a kernel: looked at by /proc
        row = table.row(identity.pid)
        if row is None or row.start != identity.start:
            os.close(fd)
        else:
            self._held[identity] = fd

    def ended(self, identity: Identity) -> bool | None:
        """Say whether it has ended; None where no descriptor tells."""
        fd = self._held.get(identity)
        if fd is None:
            return True if identity in self._told else None
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return bool(poll.poll(0))

    def status(self, identity: Identity) -> int | None:
        """Return the wait status of one that has ended, where the kernel tells it."""
        if identity in self._told:
            return self._told[identity]
        status = exits.known_status(identity.pid, identity.start)
        fd = self._held.get(identity)
        return exits.reaped_status(fd) if status is None and fd is not None else status

    def keep_only(self, identities: Sequence[Identity]) -> None:
        """Close the descriptors of all others; how the last ones ended stays known."""
        others = [held for held in self._held if held not in identities]
        if others:
            ended = {who: self.status(who) for who in others if self.ended(who)}
            self._told = {who: end for who, end in ended.items() if end is not None}
        for identity in others:
            os.close(self._held.pop(identity))

    def close(self) -> None:
        """Close them all."""
        self.keep_only([])

    def fds(self) -> dict[Identity, int]:
        """Return the descriptors held, by whose end they tell."""
        return dict(self._held)
