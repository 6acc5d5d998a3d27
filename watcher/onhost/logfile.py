"""The files of a log: the one that is followed, and the one that its path names now."""

from __future__ import annotations

import errno
import os
import stat
from typing import Any

from policies.logscan import LIMIT, PRINTED, fingerprint

MOST_HERE = 8 << 20
"""Bytes that a look reads at most, so that it ends in good time."""

_TAIL = LIMIT + 1 + PRINTED  # enough to tell a line that is too long
_MOST_SIBLINGS = 10000  # names that are looked through for a file that was renamed
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class Reader:
    """Reads a log and keeps its files open from look to look.

    So what is renamed or deleted meanwhile is read to its end all the same, and no
    other file can get its inode number.
    """

    def __init__(self, most: int = MOST_HERE) -> None:
        """Open nothing yet.

        Args:
            most: bytes that one look reads.
        """
        self._most = most
        self._fds: dict[int, int] = {}
        self._sizes: dict[int, int] = {}

    def files(self) -> list[tuple[int, int, int]]:
        """Return descriptor, inode and size of the files that the last look saw."""
        sizes = self._sizes.items()
        return [(self._fds[i], i, size) for i, size in sizes if i in self._fds]

    def close(self) -> None:
        """Give the files back."""
        while self._fds:
            os.close(self._fds.popitem()[1])

    def read(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return what the path names by now, and what is new in the file followed.

        In this order: what a writer does to the old file before it begins the new one
        is never missed.

        Returns:
            device: of the directory.
            there: inode and size of what the path names, or None: there is no file.
            file: inode, size and device of the file that was read; None where the one
                followed is nowhere to be found.
            same: the bytes before the offset are those that were there before.
            unread: nothing was read, since the size was the one that is known.
            offset, before, data: where the new data begins, how many bytes of `data`
                stand before that, and all of them.
            copied: what the path names now begins with all that was read before.

        Raises:
            OSError: it could not be seen.
        """
        path = request["path"]
        folder = os.stat(os.path.dirname(path))
        there = self._at_path(path)
        named = there.st_ino if there is not None else None
        inode = request.get("inode", named)
        self._keep({inode, named, *request.get("next", ())})
        answer = {
            "device": folder.st_dev,
            "there": None if there is None else [there.st_ino, there.st_size],
            "file": None,
            "same": True,
            "unread": True,
            "offset": request.get("offset", 0),
            "before": 0,
            "data": b"",
            "copied": False,
        }
        if inode is not None and inode not in self._fds:
            self._find(os.path.realpath(path), inode, request["offset"])
        fd = None if inode is None else self._fds.get(inode)
        if fd is not None:
            answer.update(self._of_file(fd, request))
        if named is not None and named != inode:
            answer["copied"] = self._is_copy(self._fds[named], request)
        return answer

    def _at_path(self, path: str) -> os.stat_result | None:
        """Open what the path names, unless it is open; None where there is no file."""
        self._sizes = {}
        try:
            found = os.stat(path)
            if not stat.S_ISREG(found.st_mode):
                raise OSError(errno.EINVAL, "not a regular file", path)
            if not self._holds(found):
                found = self._take(os.open(path, _OPEN))
        except FileNotFoundError:
            return None
        self._sizes[found.st_ino] = found.st_size
        return found

    def _holds(self, found: os.stat_result) -> bool:
        fd = self._fds.get(found.st_ino)
        return fd is not None and os.fstat(fd).st_dev == found.st_dev

    def _take(self, fd: int) -> os.stat_result:
        found = os.fstat(fd)
        if found.st_ino in self._fds:
            os.close(self._fds.pop(found.st_ino))
        self._fds[found.st_ino] = fd
        return found

    def _keep(self, inodes: set[Any]) -> None:
        for inode in set(self._fds) - inodes:
            os.close(self._fds.pop(inode))

    def _find(self, path: str, inode: int, offset: int) -> None:
        """Open a file that has another name by now, if it is still there.

        Any name will do where bytes before the offset tell that it is the file.
        """
        folder, name = os.path.split(path)
        try:
            with os.scandir(folder) as entries:
                for _, entry in zip(range(_MOST_SIBLINGS), entries):
                    known = offset or name in entry.name
                    if entry.inode() == inode and known and entry.is_file():
                        self._take(os.open(entry.path, _OPEN))
                        return
        except (FileNotFoundError, PermissionError):
            return

    def _of_file(self, fd: int, request: dict[str, Any]) -> dict[str, Any]:
        found = os.fstat(fd)
        size = self._sizes[found.st_ino] = found.st_size
        answer: dict[str, Any] = {"file": [found.st_ino, size, found.st_dev]}
        if request.get("measure"):
            return answer
        if "offset" not in request:
            offset = max(0, size - _TAIL)
            data = os.pread(fd, size - offset, offset)
            return {**answer, "unread": False, "offset": offset, "data": data}
        offset, known = request["offset"], request.get("size") == size
        before = min(PRINTED, offset)
        data = os.pread(fd, before + (0 if known else self._most), offset - before)
        if len(data) < before or fingerprint(data[:before]) != request.get("print", ""):
            return {**answer, "same": False}
        if known:
            return answer
        if len(data) == before + self._most and not data[before:].strip(b"\0"):
            offset = _behind_hole(fd, offset, size)
            before = PRINTED
            data = os.pread(fd, before + self._most, offset - before)
        read = {"unread": False, "offset": offset, "before": before, "data": data}
        return {**answer, **read}

    @staticmethod
    def _is_copy(fd: int, request: dict[str, Any]) -> bool:
        before = min(PRINTED, request["offset"])
        data = os.pread(fd, before, request["offset"] - before)
        return len(data) == before > 0 and bool(fingerprint(data) == request["print"])


def _behind_hole(fd: int, offset: int, size: int) -> int:
    """Return where data begins behind an offset: holes of many GB cost nothing so."""
    try:
        return os.lseek(fd, offset, os.SEEK_DATA)
    except OSError as error:
        return size if error.errno == errno.ENXIO else offset
