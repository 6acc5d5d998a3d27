"""The near side of `watcher.onhost.agent`."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from policies.model import Json
from policies.wording import phrase
from watcher.errors import TransportError
from watcher.onhost import frames
from watcher.tasks import Tasks
from watcher.transport import Answer, Reply, Request
from watcher.transport.session import Channel
from watcher.transport.wire import Wire

ROUND_LIMIT_S = 9.0
"""An agent that is alive answers long before: `watcher.onhost.rounds.LIMIT_S`."""

_CLOSE_S = 1.0

Message = Mapping[str, Json]
End = tuple[int, int]


class AgentSession:
    """Asks an agent one round at a time, and hears of ends in between."""

    def __init__(self, channel: Channel, nonce: str) -> None:
        """Listen on a channel on which the agent is being started."""
        self._asking = frames.asking(nonce)
        self._frames = frames.Frames(frames.telling(nonce))
        self._wire: Wire[Message] = Wire(channel, self._feed)
        self._one = asyncio.Lock()
        self._number = 0
        self._wakes: dict[End, list[Callable[[], None]]] = {}
        self._told: list[End] | None = []
        self._tasks = Tasks()

    async def start(self, program: bytes, limit_s: float) -> None:
        """Hand the program over and wait for the agent to say that it is there.

        Raises:
            TransportError: it does not, or the channel has ended.
        """
        await self._wire.exchange(program, limit_s)

    async def ask(self, requests: Sequence[Request]) -> Reply:
        """Ask everything in one round.

        Raises:
            TransportError: there was no whole answer; the session is of no more use.
        """
        async with self._one:
            self._number += 1
            asked: dict[str, Json] = {
                "number": self._number,
                "requests": [dict(r) for r in requests],
            }
            try:
                data = self._framed({**asked, **self._changes()})
                message = await self._wire.exchange(data, ROUND_LIMIT_S)
            except BaseException:
                self._told = None
                raise
        reply = _reply(message, len(requests))
        if reply is None:
            self._wire.lose(phrase("session_garbled"))
            raise TransportError(phrase("session_garbled"))
        return reply

    def follow(
        self, pid: int, start: int, wake: Callable[[], None]
    ) -> Callable[[], None]:
        """Call `wake` once the process ends."""
        wakes = self._wakes.setdefault((pid, start), [])
        wakes.append(wake)
        self._tasks.spawn(self._tell_changes())

        def end() -> None:
            if wake in wakes:
                wakes.remove(wake)
            if not wakes and self._wakes.get((pid, start)) is wakes:
                del self._wakes[pid, start]
                self._tasks.spawn(self._tell_changes())

        return end

    @property
    def lost(self) -> bool:
        """Say whether it has ended."""
        return self._wire.lost

    async def close(self) -> None:
        """End the agent: its input ends."""
        await self._wire.close()
        await self._tasks.close(_CLOSE_S)

    async def _tell_changes(self) -> None:
        """Tell the agent whom to follow; the next round does so too."""
        changes = self._changes()
        if changes and not self.lost:
            try:
                await self._wire.send(self._framed(changes))
            except TransportError:
                self._told = None  # whoever asks next hears of it

    def _changes(self) -> dict[str, Json]:
        wanted = sorted(self._wakes)
        if wanted == self._told:
            return {}
        self._told = wanted
        return {"follow": [list(end) for end in wanted]}

    def _framed(self, message: Mapping[str, Json]) -> bytes:
        return frames.frame(self._asking, json.dumps(message))

    def _feed(self, data: bytes) -> None:
        for message in self._frames.feed(data):
            if "exit" in message:
                self._ended(message["exit"])
            elif message.get("number", 0) == self._number:
                self._wire.bring(message)
            elif not _is_late(message.get("number"), self._number):
                raise ValueError(message)

    def _ended(self, exit_: object) -> None:
        match exit_:
            case [int(pid), int(start), _]:
                for wake in self._wakes.get((pid, start), ()):
                    asyncio.get_running_loop().call_soon(wake)
            case _:
                raise ValueError(exit_)


def _is_late(number: object, asked: int) -> bool:
    """Say whether it answers a round that nobody waits for any more."""
    return isinstance(number, int) and 0 < number < asked


def _reply(message: Message, count: int) -> Reply | None:
    about, answers = message.get("about"), message.get("answers")
    if not isinstance(about, dict) or not isinstance(answers, list):
        return None
    if len(answers) != count or not all(isinstance(one, dict) for one in answers):
        return None
    return Reply(answers=cast("list[Answer]", answers), about=about)
