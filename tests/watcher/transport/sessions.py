"""The far side of a host as small as it can be: a shell that repeats numbers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from policies.wording import phrase
from watcher.errors import TransportError
from watcher.transport import Reply, Request
from watcher.transport.session import Channel


class LineSession:
    """A `Session` over /bin/sh; each request is a word that comes back."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.lost = False
        self.closed = False
        self.followed: list[tuple[int, int, Callable[[], None]]] = []
        self.rounds = 0

    async def ask(self, requests: Sequence[Request]) -> Reply:
        self.rounds += 1
        end = f"end-{self.rounds}"
        words = [str(request["op"]) for request in requests]
        text = "".join(f"echo {word}\n" for word in [*words, end])
        heard = b""
        try:
            await self.channel.write(text.encode())
            while f"{end}\n".encode() not in heard:
                heard += await self._more()
        except TransportError:
            self.lost = True
            raise
        lines = heard.decode().split()[-len(words) - 1 : -1]
        return Reply(answers=[{"said": line} for line in lines], about={"means": "sh"})

    async def _more(self) -> bytes:
        data = await self.channel.read(65536)
        if not data:
            raise TransportError(phrase("probe_failed", error="end"))
        return data

    def follow(
        self, pid: int, start: int, wake: Callable[[], None]
    ) -> Callable[[], None]:
        entry = (pid, start, wake)
        self.followed.append(entry)
        return lambda: self.followed.remove(entry)

    async def close(self) -> None:
        self.closed = True
        await self.channel.close()


class Opener:
    """Opens such sessions and keeps them; it may hold them up or fail."""

    def __init__(self, command: str = "exec /bin/sh") -> None:
        self.command = command
        self.sessions: list[LineSession] = []
        self.error: Exception | None = None
        self.gate: asyncio.Event | None = None

    async def __call__(
        self, run: Callable[[str], Awaitable[Channel]], *, limit_s: float
    ) -> LineSession:
        assert limit_s > 0
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        session = LineSession(await run(self.command))
        self.sessions.append(session)
        return session
