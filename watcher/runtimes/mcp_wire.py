"""The two descriptors of an MCP client: one message a line (MCP, stdio transport)."""

import asyncio
import json
import os
import select
from collections.abc import Mapping
from typing import Self

import anyio

from watcher.offload import Worker

_CHUNK = 1 << 16  # bytes, as much as a pipe holds
_LINE_LIMIT = 1 << 24  # bytes; what is longer is no message of ours
_GRACE_S = 0.7  # for what was asked just before stdin ended


class Wire:
    """The client's two descriptors, as lines that are read and written.

    Each is used on a thread that holds no exit up, however long a read or a write to a
    client that has stopped reading takes.
    """

    def __init__(self, reading: int, writing: int) -> None:
        """Read nothing yet."""
        self._reading, self._writing = reading, writing
        self._read = bytearray()
        self._reader, self._writer = Worker("mcp.read"), Worker("mcp.write")
        self._unsent: list[str] = []
        self._unanswered: set[object] = set()
        self._answered = asyncio.Event()
        self.over = anyio.CancelScope()
        """Is cancelled when the client is gone."""

    def __aiter__(self) -> Self:
        """Read from here on."""
        return self

    async def __anext__(self) -> str:
        """Return the next line; at the end, once what was asked has its answer."""
        line = await self._reader.call(self._line)
        if not line:
            await self._finish()
            raise StopAsyncIteration
        text = line.decode("utf-8", "replace")
        self._unanswered |= _asked_in(text)
        return text

    def _line(self) -> bytes:
        """Read up to the end of a line; of one that is far too long, to that of it.

        No file object: its lock, held by a thread that still reads, would crash the
        interpreter's exit.
        """
        seen = 0
        while (end := self._read.find(b"\n", seen)) < 0:
            seen = len(self._read)
            if seen > _LINE_LIMIT:
                del self._read[1:]
                seen = 0
            if not (chunk := _chunk(self._reading)):
                end = len(self._read)
                break
            self._read += chunk
        line = bytes(self._read[: end + 1])
        del self._read[: end + 1]
        return line

    async def write(self, text: str) -> None:
        """Take a line, to be sent by `flush`."""
        self._unsent.append(text)

    async def flush(self) -> None:
        """Send what was written."""
        text, self._unsent = "".join(self._unsent), []
        data = text.encode("utf-8", "backslashreplace")
        try:
            await self._writer.call(lambda: _write(self._writing, data))
        except OSError:
            self.over.cancel()
            return
        self._unanswered -= _answered_in(text)
        self._answered.set()

    async def _finish(self) -> None:
        """Give answers that are due a moment; then the end is near in any case."""
        with anyio.move_on_after(_GRACE_S):
            while self._unanswered:
                self._answered.clear()
                await self._answered.wait()
        self.over.deadline = anyio.current_time() + _GRACE_S / 4


def _chunk(fd: int) -> bytes:
    """Read some bytes; none at the end, nor from a terminal that has gone."""
    select.select([fd], [], [])  # some clients leave it non-blocking
    try:
        return os.read(fd, _CHUNK)
    except OSError:
        return b""


def _write(fd: int, data: bytes) -> None:
    while data:
        select.select([], [fd], [])
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:
            continue  # there is room, but not for all of it


def _asked_in(line: str) -> set[object]:
    """Return the id of the request that a line holds, if it is one."""
    message = _message(line)
    return {str(message["id"])} if "method" in message and "id" in message else set()


def _answered_in(line: str) -> set[object]:
    message = _message(line)
    return (
        {str(message["id"])} if "method" not in message and "id" in message else set()
    )


def _message(line: str) -> Mapping[str, object]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
