"""Messages on a channel that others may write to as well, both ways.

A frame is a mark that nobody else can know, the length, so many bytes of JSON and the
mark again: what stands between frames is noise, and half a frame is none.
"""

from __future__ import annotations

import json
from typing import Any

MOST = 64 * 1024 * 1024
"""Bytes of one message; whoever announces more is not believed."""

_DIGITS = 8


def asking(nonce: str) -> bytes:
    """Return the mark of what we send."""
    return f"<{nonce}?".encode("ascii")


def telling(nonce: str) -> bytes:
    """Return the mark of what a host sends: other, since a terminal may echo ours."""
    return f"<{nonce}!".encode("ascii")


def frame(mark: bytes, text: str) -> bytes:
    """Return the frame around a JSON text.

    Raises:
        ValueError: it is too long.
    """
    body = text.encode("ascii")
    if len(body) > MOST:
        raise ValueError("too long for a frame")
    return b"%s%0*d\n%s\n%s\n" % (mark, _DIGITS, len(body), body, mark)


class Frames:
    """Takes bytes as they come and gives whole messages."""

    def __init__(self, mark: bytes) -> None:
        """Expect noise or the first frame."""
        self._mark = mark
        self._head = len(mark) + _DIGITS + 1
        self._buffer = bytearray()
        self._needed = self._head
        self._inside = False

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Return the messages that are whole by now.

        Raises:
            ValueError: it is no frame, though the mark is there.
        """
        self._buffer += data
        found = []
        while self._enter() and len(self._buffer) >= self._needed:
            found.append(self._message())
        return found

    def _enter(self) -> bool:
        """Drop noise up to a frame and read its head, if that is there."""
        if self._inside:
            return True
        at = self._buffer.find(self._mark)
        del self._buffer[
            : at if at >= 0 else max(len(self._buffer) - len(self._mark), 0)
        ]
        if at < 0 or len(self._buffer) < self._head:
            return False
        digits = bytes(self._buffer[len(self._mark) : self._head])
        if not digits[:-1].isdigit() or digits[-1:] != b"\n" or int(digits) > MOST:
            raise ValueError("not the length of a frame")
        self._needed = self._head + int(digits) + len(self._mark) + 2
        self._inside = True
        return True

    def _message(self) -> dict[str, Any]:
        end = self._needed - len(self._mark) - 2
        body = bytes(self._buffer[self._head : end])
        closing = bytes(self._buffer[end : self._needed])
        del self._buffer[: self._needed]
        self._inside = False
        if closing != b"\n%s\n" % self._mark:
            raise ValueError("a frame without its end")
        message = json.loads(body)
        if not isinstance(message, dict):
            raise ValueError("a frame without a message")  # noqa: TRY004 - a bad frame
        return message
