"""A lock file: present in its directory means held (C3.1, C3.2, C3.8).

The directory is kept open, so that a lock that is not to be seen can be told from a
directory that is not to be seen.
"""

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Sequence
from datetime import datetime
from typing import cast

from policies.clock import Clock
from policies.holder import CONTENT_LIMIT, Holder, parse_holder, same_host
from policies.model import Evidence, Json, Memory, Observation, Sight, Target
from policies.nearby import near_names
from policies.sight import released, unknown
from policies.target import slug_of
from policies.wording import Phrase, phrase
from watcher.conditions import DirectoryHint, Hint
from watcher.offload import HungError, Worker

_OPEN_DIRECTORY = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_OPEN_CONTENT = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_CHANGES_KEPT = 10


class UnseenError(Exception):
    """The lock's absence was not proved."""

    def __init__(self, reason: Phrase, evidence: Evidence) -> None:
        """Keep why not, and what was seen instead."""
        super().__init__(reason)
        self.reason = reason
        self.evidence = evidence


class LockCondition:
    """A lock file by its absolute path."""

    settle = True

    def __init__(self, target: Target, path: str, *, clock: Clock) -> None:
        """Look at `path` whenever probed."""
        self.target = target
        self._path = path
        self._directory, _, self._name = path.rpartition("/")
        self._directory = self._directory or "/"
        self._clock = clock
        self._worker = Worker(f"look-{target.label}")
        self._handle: int | None = None

    async def admit(self) -> None:
        """Every lock path can be watched."""

    async def probe(self, memory: Memory) -> Observation:
        """Take one look on a thread that may be lost to a dead mount."""
        at = self._clock.wall()
        try:
            return await self._worker.call(lambda: self.look(memory, at))
        except HungError:
            reason = phrase("hung", what=self._path)
            return unknown(memory, at, reason, {"means": "lstat", "hung": True})

    def hints(self) -> Sequence[Hint]:
        """Follow the directory, not the inode: a rename over the path keeps it held."""
        return (DirectoryHint(self._directory, self._name),)

    def close(self) -> None:
        """Let the directory and the thread go."""
        self._worker.close()
        if not self._worker.busy:
            self._forget_directory()

    def look(self, memory: Memory, at: datetime) -> Observation:
        """Return one observation; blocks as long as the file system does."""
        try:
            entry = self._entry(memory)
            if entry is None:
                return self._released(memory, at, self._prove_absent())
            return self._held(memory, at, entry)
        except UnseenError as error:
            return unknown(memory, at, error.reason, error.evidence)
        except OSError as error:
            reason = _reason(error, self._path)
            return unknown(memory, at, reason, _evidence_of(error, self._path))

    def _entry(self, memory: Memory) -> os.stat_result | None:
        """Return the lock's own entry, a link not followed, or None for ENOENT."""
        try:
            entry = os.lstat(self._path)
        except FileNotFoundError:
            pass
        else:
            self._keep_directory(memory)
            return entry
        self._keep_directory(memory)
        if self._handle is None:
            raise UnseenError(
                phrase("directory_missing", path=self._directory),
                {"means": "open", "errno": "ENOENT", "path": self._directory},
            )
        try:
            return os.stat(self._name, dir_fd=self._handle, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _keep_directory(self, memory: Memory) -> None:
        """Open the directory once and keep it; a missing one leaves no handle.

        Raises:
            UnseenError: it is on another device than before a restart.
        """
        if self._handle is not None:
            return
        with contextlib.suppress(FileNotFoundError):
            self._handle = os.open(self._directory, _OPEN_DIRECTORY)
        known = memory.get("device")
        if self._handle is None or known is None:
            return
        if os.fstat(self._handle).st_dev != known:
            self._forget_directory()
            raise UnseenError(
                phrase("unmounted", path=self._directory),
                {"means": "fstat", "path": self._directory, "device_before": known},
            )

    def _forget_directory(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _prove_absent(self) -> Evidence:
        """Return the evidence that the lock is gone, after both looks said ENOENT.

        1. The directory has no links left: it was deleted, and its locks with it.
        2. Its path still leads to it, or to another one on the same device.
        3. Its path leads nowhere, but it lives on a mounted file system: renamed.

        Raises:
            UnseenError: none of these, so it was only not to be seen.
        """
        if self._handle is None:
            msg = "no handle on the directory"
            raise RuntimeError(msg)
        kept = os.fstat(self._handle)
        try:
            now: os.stat_result | None = os.stat(self._directory)
        except FileNotFoundError:
            now = None
        seen: dict[str, Json] = {
            "means": "lstat",
            "errno": "ENOENT",
            "path": self._path,
            "directory": [kept.st_dev, kept.st_ino],
        }
        if now is not None and now.st_dev != kept.st_dev:
            raise UnseenError(
                phrase("unmounted", path=self._directory),
                {**seen, "device_now": now.st_dev},
            )
        if kept.st_nlink == 0:
            if now is not None:
                self._forget_directory()  # the next look opens the new one
            return {**seen, "directory_deleted": True}
        if now is None:
            moved_to = _still_mounted_at(self._handle)
            if moved_to is None:
                raise UnseenError(
                    phrase("directory_vanished", path=self._directory), seen
                )
            return {**seen, "directory_renamed_to": moved_to}
        return seen

    def _released(self, memory: Memory, at: datetime, seen: Evidence) -> Observation:
        remarks: tuple[Phrase, ...] = ()
        if "entry" not in memory:
            remarks = self._near_locks()
        changes = cast("Sequence[Json]", memory.get("changes", []))
        evidence: Evidence = {
            **seen,
            "last_entry": memory.get("entry"),
            "last_holder": memory.get("holder"),
            "changes": changes,
        }
        return released(at, evidence, memory, remarks)

    def _near_locks(self) -> tuple[Phrase, ...]:
        slug = slug_of(self._name)
        try:
            names = os.listdir(self._directory)
        except OSError:
            return ()
        if slug is None:
            return tuple(
                phrase("near_lock", name=name) for name in near_names(self._name, names)
            )
        slugs = [found for found in map(slug_of, names) if found]
        return tuple(phrase("near_lock", name=name) for name in near_names(slug, slugs))

    def _held(self, memory: Memory, at: datetime, entry: os.stat_result) -> Observation:
        """Say who holds it, and whether that changed since the look before."""
        mark: list[Json] = [entry.st_dev, entry.st_ino, entry.st_ctime_ns]
        before = memory.get("entry")
        holder = memory.get("holder")
        notes: tuple[Phrase, ...] = ()
        changes = list(cast("Sequence[Json]", memory.get("changes", [])))
        if before != mark:
            holder = _describe(self._read_holder(entry))
            if before is not None:
                notes = self._change(memory.get("holder"), holder)
                changes.append(
                    {
                        "at": at.isoformat(),
                        "before": before,
                        "after": mark,
                        "holder": holder,
                    }
                )
        remarks = _orphan(holder)
        kept: Memory = {
            "entry": mark,
            "holder": holder,
            "changes": changes[-_CHANGES_KEPT:],
            "device": os.fstat(self._handle).st_dev
            if self._handle is not None
            else None,
        }
        return Observation(
            sight=Sight.HELD,
            at=at,
            evidence={
                "means": "lstat",
                "path": self._path,
                "entry": mark,
                "modified_s": entry.st_mtime,
                "holder": holder,
                "orphan": bool(remarks),
                "changes": kept["changes"],
            },
            memory=kept,
            notes=notes,
            remarks=remarks,
        )

    def _change(self, before: Json, after: Json) -> tuple[Phrase, ...]:
        if before and before == after:
            return ()  # the same holder touched or rewrote its own lock
        if before or after:
            who = cast("dict[str, Json]", after) if after else {}
            name = who.get("session") or who.get("host") or who.get("pid")
            shown = str(name) if name else phrase("someone")
            return (phrase("retaken", label=self.target.label, holder=shown),)
        return (phrase("maybe_retaken", label=self.target.label),)

    def _read_holder(self, entry: os.stat_result) -> Holder:
        """Read what the file says; a FIFO or device is never opened."""
        if not stat.S_ISREG(entry.st_mode):
            return Holder()
        try:
            fd = os.open(self._name, _OPEN_CONTENT, dir_fd=self._handle)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    return Holder()
                return parse_holder(os.read(fd, CONTENT_LIMIT))
            finally:
                os.close(fd)
        except OSError:
            return Holder()


def _reason(error: OSError, path: str) -> Phrase:
    if error.errno in {errno.EACCES, errno.EPERM}:
        return phrase("denied", path=path)
    return phrase("errno", name=_errno_name(error), path=path)


def _errno_name(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, str(error))


def _evidence_of(error: OSError, path: str) -> Evidence:
    return {"means": "lstat", "errno": _errno_name(error), "path": path}


def _describe(holder: Holder) -> Json:
    if not holder:
        return None
    return {
        "session": holder.session,
        "host": holder.host,
        "pid": holder.pid,
        "since": holder.since,
        "paths": list(holder.paths),
    }


def _orphan(holder: Json) -> tuple[Phrase, ...]:
    """Return the remark that the holder is provably dead, if it is (C3.8)."""
    if not isinstance(holder, dict):
        return ()
    host, pid = holder.get("host"), holder.get("pid")
    if not isinstance(pid, int) or not isinstance(host, str):
        return ()
    if not same_host(host, socket.gethostname()):
        return ()
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return (phrase("orphan", pid=pid),)
    except OSError:
        return ()
    return ()


def _still_mounted_at(handle: int) -> str | None:
    """Return where an open directory is now, or None when that cannot be proved.

    Linux only: its mount must still stand in the table of mounts, else it was
    detached by a lazy umount and shows a file system that nobody can see any more.
    """
    try:
        with open(f"/proc/self/fdinfo/{handle}", encoding="ascii") as info:
            mount = next(line.split()[1] for line in info if line.startswith("mnt_id:"))
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as table:
            if not any(line.split(" ", 1)[0] == mount for line in table):
                return None
        return os.readlink(f"/proc/self/fd/{handle}")
    except (OSError, StopIteration):
        return None
