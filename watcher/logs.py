"""Logs of this machine, which stay open from look to look."""

from collections.abc import Sequence
from typing import Any

from watcher.conditions import DirectoryHint, FileHint, Hint
from watcher.onhost.logfile import Reader


class LogReader:
    """Reads a log of this machine and keeps it open from look to look."""

    def __init__(self, path: str, reader: Reader) -> None:
        """Open nothing yet."""
        self._path = path
        self._reader = reader

    def read(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return what is new."""
        return self._reader.read(request)

    def hints(self) -> Sequence[Hint]:
        """Follow writes to what is open, and another file that takes the name."""
        directory, _, name = self._path.rpartition("/")
        files = self._reader.files()
        return [
            DirectoryHint(directory or "/", name),
            *(
                FileHint(f"/proc/self/fd/{fd}", inode, size)
                for fd, inode, size in files
            ),
        ]

    def close(self) -> None:
        """Give its files back."""
        self._reader.close()
