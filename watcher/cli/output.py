"""What goes to stdout and stderr, whatever the locale and whoever reads (C1.7)."""

import os
import select
import sys
import time

from policies.text import clean

_PATIENCE_MS = 5000  # for a reader that has stopped reading
_stuck: set[int] = set()  # descriptors whose reader used it up: once is enough
_opened: set[int] = set()  # descriptors that were closed when we began

_ROW = 80  # columns of a terminal that does not say
_TAIL = 16  # characters at the end of a countdown: the time that is left


def secure_descriptors() -> None:
    """Open what is closed of the first three descriptors.

    Else the next file opened would take the number, and a line meant for stdout would
    be written into it.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
            _opened.add(fd)


def was_closed(fd: int) -> bool:
    """Say whether a descriptor was closed when we began: nobody reads from it."""
    return fd in _opened


def secure_zone() -> None:
    """Read times in UTC where TZ names a zone that no time can have.

    POSIX allows a day and more of difference to UTC, Python less than a day.
    """
    if os.environ.get("TZ"):
        from datetime import UTC, datetime  # noqa: PLC0415 - start-up time

        try:
            datetime.now(UTC).astimezone()  # noqa: TID251 - only whether it can be said
        except ValueError:
            os.environ["TZ"] = "UTC"
            time.tzset()


def write_line(fd: int, line: str) -> bool:
    """Write one line as UTF-8, unbuffered; say whether somebody could take it.

    Nobody who has stopped reading can hold us up: a pipe that says it has room takes
    `PIPE_BUF` bytes without blocking (pipe(7)), and we wait for room a few seconds,
    once for each descriptor.
    """
    data = (line + "\n").encode("utf-8", "backslashreplace")
    patience_ms = 0 if fd in _stuck else _PATIENCE_MS
    try:
        while data:
            if not _has_room(fd, patience_ms):
                _stuck.add(fd)
                return False
            data = data[os.write(fd, data[: select.PIPE_BUF]) :]
    except OSError:
        return False
    return True


def _has_room(fd: int, patience_ms: int) -> bool:
    room = select.poll()
    room.register(fd, select.POLLOUT)
    return bool(room.poll(patience_ms))


def say(line: str) -> bool:
    """Write the outcome line, or the JSON, to stdout."""
    return write_line(1, line)


def tell(line: str) -> bool:
    """Write one line to stderr, cleaned of what could steer a terminal."""
    return write_line(2, clean(line))


class Countdown:
    """A line on a terminal's stderr that is written over and over (C1.7)."""

    def __init__(self) -> None:
        """Show nothing yet."""
        self.active = os.isatty(2) and os.environ.get("TERM") != "dumb"
        self._shown = False

    def show(self, text: str) -> None:
        """Put `text` on the last line, unless somebody else types there."""
        if self.active:
            self._shown = _in_foreground()
        if self._shown:
            self._write(f"\r\x1b[K{_fitted(clean(text), self._columns())}")

    def clear(self) -> None:
        """Take it away, so that something else can be written."""
        if self._shown:
            self._shown = False
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        """Write now or not at all: a terminal stopped by Ctrl-S must not hold us up."""
        try:
            if _has_room(2, 0):
                os.write(2, text.encode())
        except OSError:
            self.active = False

    def _columns(self) -> int:
        try:
            return max((os.get_terminal_size(2).columns or _ROW) - 2, _TAIL + 4)
        except OSError:
            return _ROW - 2


def _in_foreground() -> bool:
    """Say whether the terminal is ours: behind `&` its user has a prompt there."""
    try:
        return os.tcgetpgrp(2) == os.getpgrp()
    except OSError:
        return True  # not our controlling terminal, so nobody's prompt either


def _fitted(text: str, columns: int) -> str:
    """Return `text` no wider than a row; what is too much goes from its middle."""
    if sum(map(_width, text)) <= columns:
        return text
    tail = text[-_TAIL:]
    room = columns - 1 - sum(map(_width, tail))
    head = ""
    for char in text:
        room -= _width(char)
        if room < 0:
            break
        head += char
    return f"{head}…{tail}"


def _width(char: str) -> int:
    """Return how many columns a character takes: Unicode annex 11."""
    import unicodedata  # noqa: PLC0415 - start-up time: for a terminal only

    if unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"F", "W"} else 1


def debugging() -> bool:
    """Say whether a traceback is wanted."""
    return bool(os.environ.get("KODER_MONITOR_DEBUG"))


def fail(line: str) -> None:
    """Write an error's one line; with debugging on, the traceback above it."""
    if debugging() and sys.exc_info()[0] is not None:
        import traceback  # noqa: PLC0415

        traceback.print_exc()
    tell(line)
