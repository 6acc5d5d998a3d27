"""Files of other programs, read and replaced whole (C11.1)."""

import contextlib
import hashlib
import os
import stat
import tempfile
from dataclasses import dataclass

_BACKUP = ".before-koder-monitor"
_NEW_MODE = 0o600  # of a file that was not there
_MOST = 16 * 1024 * 1024  # bytes; what is longer is no settings file


@dataclass(frozen=True, slots=True)
class Placed:
    """What a file holds, and whose it is."""

    data: bytes
    status: os.stat_result | None = None


def taken(path: str) -> Placed | None:
    """Return what a file holds, or None where there is none.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"no regular file: {path}")
        data = file.read(_MOST + 1)
        if len(data) > _MOST:
            raise OSError(f"too long: {path}")
        return Placed(data, status)


def place(path: str, placed: Placed) -> None:
    """Replace a file at once and whole; a link stays, mode and owner too.

    Raises:
        OSError: it cannot be written; the old one is still there.
    """
    target = os.path.realpath(path)
    fd, beside = tempfile.mkstemp(prefix=".koder-monitor-", dir=os.path.dirname(target))
    try:
        with open(fd, "wb") as file:
            file.write(placed.data)
            file.flush()
            _like(fd, placed.status)
            os.fsync(fd)
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
    _sync_folder(os.path.dirname(target))


def back_up(path: str, placed: Placed) -> str:
    """Return where a copy of a file now lies, beside it.

    Raises:
        OSError: it cannot be written.
    """
    number = 1
    while True:
        backup = path + _BACKUP + (f".{number}" if number > 1 else "")
        there = taken(backup)
        if there is not None and there.data == placed.data:
            return backup
        if there is None and not os.path.lexists(backup):
            place(backup, placed)
            return backup
        number += 1


def make_folder(path: str) -> list[str]:
    """Make a folder, and return all that had to be made, the outer ones first.

    Raises:
        OSError: it cannot be made.
    """
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    missing.reverse()
    for folder in missing:
        os.mkdir(folder, 0o755)
    return missing


def remove(path: str) -> None:
    """Remove a file, if it is there; a link goes, not what it leads to.

    Raises:
        OSError: it cannot be removed.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def obstacle(path: str, placed: Placed | None, *, forced: bool) -> str | None:
    """Return why a file cannot be replaced, if so."""
    status = None if placed is None else placed.status
    if status is not None and not forced and not status.st_mode & 0o222:
        return "read-only"
    for end in (os.path.realpath(path), path):  # the backup lies beside the link
        folder = os.path.dirname(end)
        while not os.path.lexists(folder):
            folder = os.path.dirname(folder)
        if not os.path.isdir(folder) or not os.access(folder, os.W_OK | os.X_OK):
            return f"cannot write in {folder}"
    return None


def hash_of(data: bytes) -> str:
    """Return what tells one content from another."""
    return hashlib.sha256(data).hexdigest()


def _like(fd: int, status: os.stat_result | None) -> None:
    """Give a new file the owner and mode of the one that it replaces."""
    if status is None:
        os.fchmod(fd, _NEW_MODE)
        return
    mine = os.fstat(fd)
    if (mine.st_uid, mine.st_gid) != (status.st_uid, status.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(fd, status.st_uid, status.st_gid)
    os.fchmod(fd, stat.S_IMODE(status.st_mode))


def _sync_folder(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
