"""What goes to stdout and stderr, whatever the locale and whoever reads (C1.7)."""

import os
import select
import sys

from policies.text import clean

_PATIENCE_MS = 5000  # for a reader that has stopped reading


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


def write_line(fd: int, line: str) -> bool:
    """Write one line as UTF-8, unbuffered; say whether somebody could take it.

    Nobody who has stopped reading can hold us up: a pipe that says it has room takes
    `PIPE_BUF` bytes without blocking (pipe(7)), and we wait for room a few seconds.
    """
    data = (line + "\n").encode("utf-8", "backslashreplace")
    room = select.poll()
    room.register(fd, select.POLLOUT)
    try:
        while data:
            if not room.poll(_PATIENCE_MS):
                return False
            data = data[os.write(fd, data[: select.PIPE_BUF]) :]
    except OSError:
        return False
    return True


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
        self.active = os.isatty(2)
        self._shown = False

    def show(self, text: str) -> None:
        """Put `text` on the last line."""
        if self.active:
            self._shown = True
            self._write(f"\r\x1b[K{clean(text, self._width())}")

    def clear(self) -> None:
        """Take it away, so that something else can be written."""
        if self._shown:
            self._shown = False
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        try:
            os.write(2, text.encode())
        except OSError:
            self.active = False

    def _width(self) -> int:
        try:
            return max(os.get_terminal_size(2).columns - 2, 20)
        except OSError:
            return 78


def debugging() -> bool:
    """Say whether a traceback is wanted."""
    return bool(os.environ.get("KODER_MONITOR_DEBUG"))


def fail(line: str) -> None:
    """Write an error's one line; with debugging on, the traceback above it."""
    if debugging() and sys.exc_info()[0] is not None:
        import traceback  # noqa: PLC0415

        traceback.print_exc()
    tell(line)
