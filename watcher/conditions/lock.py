"""A lock file: present in its directory means held (C3.1, C3.2, C3.8).

The directory is kept open, so that a lock that is not to be seen can be told from a
directory that is not to be seen.
"""

import argparse
import errno
import os
import shlex
import socket
import stat
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import cast

from policies.holder import CONTENT_LIMIT, Holder, parse_holder, same_host
from policies.model import Evidence, Json, Memory, Observation, Sight, Target
from policies.nearby import near_names, same_but_form
from policies.sight import released, unknown
from policies.target import (
    absolute,
    is_possible_path,
    is_slug,
    lock_file,
    lock_target,
    slug_of,
)
from policies.wording import Phrase, phrase
from watcher.conditions import DirectoryHint, Hint, Place
from watcher.errors import UsageError
from watcher.paths import project_directory

_OPEN_DIRECTORY = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_OPEN_CONTENT = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_CHANGES_KEPT = 10


DEFAULT_DIRECTORY = "context/notices/active"
"""Below the project folder: where sessions of this house announce their locks."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what a lock is named by."""
    parser.add_argument(
        "lock",
        metavar="SLUG|PATH",
        help="a slug means lock-<slug>.md in the lock directory; "
        "anything with a '/' is a path",
    )


def target_of(options: argparse.Namespace, place: Place) -> Target:
    """Return the target of a lock, by its slug where it has one."""
    return _target(*_locate(options.lock, place), place)


def build(options: argparse.Namespace, place: Place) -> "LockCondition":
    """Return the condition of a lock."""
    path, directory = _locate(options.lock, place)
    return LockCondition(_target(path, directory, place), path)


def _target(path: str, directory: str, place: Place) -> Target:
    """Return the target: by its path where its slug means another file elsewhere."""
    target = lock_target(path, directory)
    if _chosen(place).startswith("/"):
        return target
    return replace(target, text=shlex.join(["lock", path]))


def _locate(text: str, place: Place) -> tuple[str, str]:
    """Return the absolute path that a slug or path means, and the lock directory.

    Raises:
        UsageError: it is neither, or there is no directory to look for a slug in.
    """
    directory = lock_directory(place)
    if "/" in text:
        if text.endswith("/"):
            raise UsageError(phrase("is_directory", path=text))
        if not is_possible_path(text):
            raise UsageError(phrase("bad_path", name="lock", path=text))
        path = absolute(text, place.cwd)
        parent, _, name = path.rpartition("/")
        if slug_of(name) and parent.endswith(f"/{_chosen(place)}"):
            return path, parent  # of whatever project: a relative one is everywhere
        if slug_of(name) and parent != directory and _same(parent, directory):
            path = f"{directory}/{name}"  # one condition, by whatever links it is named
        return path, directory
    if not is_slug(text):
        raise UsageError(phrase("bad_slug", slug=text))
    if place.config.locks.dir is None and not os.path.isdir(directory):
        raise UsageError(phrase("no_lock_dir", path=directory))
    return f"{directory.rstrip('/')}/{lock_file(text)}", directory


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def lock_directory(place: Place) -> str:
    """Return the absolute lock directory; a relative one is the project folder's."""
    return absolute(_chosen(place), project_directory(place.cwd))


def _chosen(place: Place) -> str:
    return os.path.expanduser(place.config.locks.dir or DEFAULT_DIRECTORY)


class UnseenError(Exception):
    """The lock's absence was not proved."""

    def __init__(self, reason: Phrase, evidence: Evidence) -> None:
        """Keep why not, and what was seen instead."""
        super().__init__(reason)
        self.reason = reason
        self.evidence = evidence


class Directory:
    """A directory that is kept open for all locks in it (C3.2)."""

    def __init__(self, path: str) -> None:
        """Open nothing yet."""
        self.path = path
        self.handle: int | None = None
        self.users = 0
        self.looking = threading.Lock()
        """A look that was given up may come back while another thread looks."""

    def keep(self) -> None:
        """Keep that directory open in which the path shows a lock now."""
        try:
            if self.handle is not None:
                kept, now = os.fstat(self.handle), os.stat(self.path)
                if os.path.samestat(kept, now):
                    return
            self.forget()
            self.handle = os.open(self.path, _OPEN_DIRECTORY)
        except OSError:
            return  # held all the same; a release will have to be proved later

    def opened(self, memory: Memory) -> int:
        """Return the handle, opened for the first time where it is not yet.

        Raises:
            UnseenError: there is none, or it is on another device than before a
                restart.
            OSError: it is there and cannot be opened.
        """
        if self.handle is not None:
            return self.handle
        try:
            handle = os.open(self.path, _OPEN_DIRECTORY)
        except FileNotFoundError as error:
            raise UnseenError(
                phrase("directory_missing", path=self.path),
                {"means": "open", "errno": "ENOENT", "path": self.path},
            ) from error
        known = memory.get("device")
        if known is not None and os.fstat(handle).st_dev != known:
            os.close(handle)
            raise UnseenError(
                phrase("unmounted", path=self.path),
                {"means": "fstat", "path": self.path, "device_before": known},
            )
        self.handle = handle
        return handle

    def forget(self) -> None:
        """Close it."""
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None

    def prove_sight(self, lock: str) -> Evidence:
        """Return the evidence that what the open directory shows can be believed.

        1. It has no links left: it was deleted, and its locks with it.
        2. Its path still leads to it.
        3. Its path leads to another one on the same device, or nowhere, but it lives
           on a mounted file system: it was renamed, and is followed.

        Raises:
            UnseenError: none of these, so the lock is only not to be seen any more.
        """
        if self.handle is None:
            msg = "no handle on the directory"
            raise RuntimeError(msg)
        kept = os.fstat(self.handle)
        seen: dict[str, Json] = {
            "means": "lstat",
            "errno": "ENOENT",
            "path": lock,
            "directory": [kept.st_dev, kept.st_ino],
        }
        if kept.st_nlink == 0:
            return {**seen, "directory_deleted": True}
        try:
            now = os.stat(self.path)
        except FileNotFoundError:
            gone = "directory_vanished"
        else:
            if os.path.samestat(kept, now):
                return seen
            gone = "unmounted"
            if now.st_dev != kept.st_dev:
                raise UnseenError(
                    phrase(gone, path=self.path), {**seen, "device_now": now.st_dev}
                )
        moved_to = _still_mounted_at(self.handle)
        if moved_to is None:
            raise UnseenError(phrase(gone, path=self.path), seen)
        return {**seen, "directory_renamed_to": moved_to}


_directories: dict[str, Directory] = {}
_registry = threading.Lock()  # conditions are closed where their looks are taken


class LockCondition:
    """A lock file by its absolute path."""

    settle = True

    def __init__(self, target: Target, path: str) -> None:
        """Look at `path` whenever asked."""
        self.target = target
        self._path = path
        directory, _, self._name = path.rpartition("/")
        with _registry:
            self._directory = _directories.setdefault(
                directory or "/", Directory(directory or "/")
            )
            self._directory.users += 1

    @property
    def group(self) -> str:
        """Locks of one directory are looked at together."""
        return self._directory.path

    @property
    def path(self) -> str:
        """The absolute path of the lock file."""
        return self._path

    def looker(self) -> None:
        """Let a thread take the looks."""

    def joined(self, launcher: int) -> None:
        """Whoever waits makes no difference."""

    def refusal(self) -> Phrase | None:
        """Every lock path can be watched."""
        return None

    def hints(self) -> Sequence[Hint]:
        """Follow the directory, not the inode: a rename over the path keeps it held."""
        return (DirectoryHint(self._directory.path, self._name),)

    def close(self) -> None:
        """Let the directory go with its last lock."""
        with _registry:
            self._directory.users -= 1
            if not self._directory.users:
                self._directory.forget()
                del _directories[self._directory.path]

    def look(self, memory: Memory, at: datetime) -> Observation:
        """Return one observation; blocks as long as the file system does."""
        try:
            with self._directory.looking:
                return self._look(memory, at)
        except UnseenError as error:
            return unknown(memory, at, error.reason, error.evidence)
        except OSError as error:
            reason = _reason(error, self._path)
            return unknown(memory, at, reason, _evidence_of(error, self._path))

    def _look(self, memory: Memory, at: datetime) -> Observation:
        try:
            entry = os.lstat(self._path)
        except FileNotFoundError:
            return self._look_inside(memory, at)
        self._directory.keep()
        return self._held(memory, at, entry)

    def unchanged(self, memory: Memory) -> bool:
        """Say whether the path shows the very entry that was seen before.

        By the path, as a look does: the open directory may be unmounted by now. A
        holder that died meanwhile is a change (C3.8).
        """
        if self._directory.handle is None:
            return False
        try:
            entry = os.lstat(self._path)
        except OSError:
            return False
        same = _mark(entry) == memory.get("entry")
        return same and not _orphan(memory.get("holder"))

    def hung(self, memory: Memory, at: datetime) -> Observation:
        """Say that the file system does not answer."""
        evidence: Evidence = {"means": "lstat", "path": self._path, "hung": True}
        return unknown(memory, at, phrase("hung", what=self._path), evidence)

    def _look_inside(self, memory: Memory, at: datetime) -> Observation:
        """Ask the directory itself for a lock that its path does not show.

        Raises:
            UnseenError: the directory is not to be seen either.
        """
        handle = self._directory.opened(memory)
        seen = self._directory.prove_sight(self._path)
        try:
            entry = os.stat(self._name, dir_fd=handle, follow_symlinks=False)
        except FileNotFoundError:
            return self._released(memory, at, seen)
        return self._held(memory, at, entry)

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
            names = os.listdir(self.group)
        except OSError:
            return ()
        if slug is None:
            # Whatever else lies in that folder need not be a lock.
            forms = same_but_form(self._name, names)
            return tuple(phrase("near_lock", name=name) for name in forms)
        slugs = [found for found in map(slug_of, names) if found]
        return tuple(phrase("near_lock", name=name) for name in near_names(slug, slugs))

    def _held(self, memory: Memory, at: datetime, entry: os.stat_result) -> Observation:
        """Say who holds it, and whether that changed since the look before."""
        mark = _mark(entry)
        before = memory.get("entry")
        holder = memory.get("holder")
        notes: tuple[Phrase, ...] = ()
        changes = list(cast("Sequence[Json]", memory.get("changes", [])))
        if before != mark:
            holder = _describe(self._read_holder(entry))
            if before is not None:
                notes = self._change(memory.get("named"), holder)
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
            # Who was named last: a lock just taken may be seen before it is written.
            "named": holder or memory.get("named"),
            "changes": changes[-_CHANGES_KEPT:],
            "device": os.fstat(self._directory.handle).st_dev
            if self._directory.handle is not None
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
        if before and after:
            who = cast("dict[str, Json]", after)
            name = who.get("session") or who.get("host") or who.get("pid")
            shown = str(name) if name else phrase("someone")
            return (phrase("retaken", label=self.target.label, holder=shown),)
        return (phrase("maybe_retaken", label=self.target.label),)

    def _read_holder(self, entry: os.stat_result) -> Holder:
        """Read what the file says; a FIFO or device is never opened."""
        if self._directory.handle is None or not stat.S_ISREG(entry.st_mode):
            return Holder()
        try:
            fd = os.open(self._name, _OPEN_CONTENT, dir_fd=self._directory.handle)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    return Holder()
                return parse_holder(os.read(fd, CONTENT_LIMIT))
            finally:
                os.close(fd)
        except OSError:
            return Holder()


def _mark(entry: os.stat_result) -> list[Json]:
    """Return what tells one entry from another, and from itself rewritten."""
    return [entry.st_dev, entry.st_ino, entry.st_ctime_ns]


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
        "monitor": holder.monitor,
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
