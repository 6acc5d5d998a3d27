"""A terminal that a command writes to, and what its user sees there."""

import os
import pty
import select
import termios
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager


class Terminal:
    """One end of a pseudo-terminal; `slave` is the other, for the command."""

    def __init__(self, master: int, slave: int, columns: int) -> None:
        self.slave = slave
        self.columns = columns
        self._master = master
        self._bytes = b""

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def written(self) -> str:
        """Return all that was written to it so far."""
        while select.select([self._master], [], [], 0)[0]:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # nobody has the other end any more
                break
            self._bytes += data
        return self._bytes.decode("utf-8", "ignore")

    def rows(self) -> list[str]:
        """Return what stands on it now, empty rows left out."""
        return [row for row in _rows(self.written(), self.columns) if row]


@contextmanager
def terminal(columns: int = 80) -> Iterator[Terminal]:
    """Open a terminal of so many columns."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, columns))
    try:
        yield Terminal(master, slave, columns)
    finally:
        os.close(slave)
        os.close(master)


def stop_on_ctrl_s(slave: int) -> None:
    """Let Ctrl-S stop the output, as it does where a person types."""
    attributes = termios.tcgetattr(slave)
    attributes[0] |= termios.IXON
    termios.tcsetattr(slave, termios.TCSANOW, attributes)


def _rows(written: str, columns: int) -> Iterator[str]:
    """Give the rows: CR, LF and "erase to the end" are all that is understood."""
    rows, row, column = [""], 0, 0
    text = written.replace("\x1b[K", "\0")
    for char in text:
        width = 2 if unicodedata.east_asian_width(char) in "FW" else 1
        if char == "\r":
            column = 0
        elif char == "\0":
            rows[row] = rows[row][:column]
        else:
            if char == "\n" or column + width > columns:
                rows.append("")
                row, column = row + 1, 0 if char != "\n" else column
            if char != "\n":
                # A wide character takes a second cell, which holds nothing.
                cells = char + "\N{ZERO WIDTH SPACE}" * (width - 1)
                rows[row] = rows[row][:column] + cells + rows[row][column + width :]
                column += width
    for shown in rows:
        yield shown.replace("\N{ZERO WIDTH SPACE}", "").rstrip()
