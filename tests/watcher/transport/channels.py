"""Channels to programs on this machine, as a host would run them."""

import asyncio
import os
import shlex
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from policies.wording import phrase
from watcher.errors import TransportError


class LocalChannel:
    """A child process by its pipes."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.received = 0
        self.sent = 0
        self.closed = False

    async def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.sent += len(data)
        try:
            self.process.stdin.write(data)
            await self.process.stdin.drain()
        except (ConnectionError, RuntimeError) as error:
            raise TransportError(phrase("session_ended")) from error

    async def read(self, most: int) -> bytes:
        assert self.process.stdout is not None
        data = await self.process.stdout.read(most)
        self.received += len(data)
        return data

    async def close(self) -> None:
        self.closed = True
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            await self.process.wait()
        finally:
            with suppress(ProcessLookupError):
                self.process.kill()


class LoginShells:
    """Starts commands as sshd does: by the login shell of an account."""

    def __init__(self, folder: Path, shell: Sequence[str] = ("/bin/sh", "-c")) -> None:
        self.shell = list(shell)
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.commands: list[str] = []
        self.channels: list[LocalChannel] = []

    def put(self, name: str, text: str) -> Path:
        """Put a program in the path of the account."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def put_python(self, python: str = sys.executable) -> None:
        self.put("python3", f'exec {shlex.quote(python)} "$@"')

    async def run(self, command: str) -> LocalChannel:
        self.commands.append(command)
        process = await asyncio.create_subprocess_exec(
            *self.shell,
            command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=self.bin,
            env={"PATH": f"{self.bin}:{os.defpath}", "HOME": str(self.bin)},
        )
        channel = LocalChannel(process)
        self.channels.append(channel)
        return channel

    async def close(self) -> None:
        """End whatever a test left."""
        for channel in self.channels:
            with suppress(ProcessLookupError):
                channel.process.kill()
            # What a profile left behind holds the pipe: its end is not waited for.
            channel.process._transport.close()  # type: ignore[attr-defined]
            await channel.process.wait()


class FakeChannel:
    """A far side that a test plays: each write is answered by what `answer` returns."""

    def __init__(self, answer: Callable[[bytes], bytes] = lambda _: b"") -> None:
        self.answer = answer
        self.written = bytearray()
        self.closed = False
        self.stuck = asyncio.Event()
        self.stuck.set()
        self._coming: asyncio.Queue[bytes | Exception] = asyncio.Queue()

    async def write(self, data: bytes) -> None:
        await self.stuck.wait()
        self.written += data
        if said := self.answer(data):
            self.say(said)

    def say(self, what: bytes | Exception) -> None:
        """Let something come; empty is the end."""
        self._coming.put_nowait(what)

    async def read(self, most: int) -> bytes:
        said = await self._coming.get()
        if isinstance(said, Exception):
            raise said
        return said

    async def close(self) -> None:
        self.closed = True
        self.say(b"")
