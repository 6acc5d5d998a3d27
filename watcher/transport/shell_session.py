"""Rounds of looks by a POSIX shell, for hosts without a usable Python (C7.2)."""

import asyncio
import importlib
import json
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from policies.model import Json
from policies.wording import phrase
from watcher.errors import TransportError
from watcher.onhost import PARTS, at_home
from watcher.transport import Answer, Reply, Request
from watcher.transport.bundle import NAME
from watcher.transport.scripts import Rounds, Said
from watcher.transport.session import Channel
from watcher.transport.wire import Wire

SHELL = f"exec /bin/sh -s {NAME}"

ROUND_LIMIT_S = 9.0
"""What has come by then is the reply; looks that hang must not cost the others it."""

_LAST_WORDS_S = 0.5  # for what it said before it ended
_MOST_SLOW = 256  # looks that are remembered

_ABOUT = """\
read -r boot </proc/sys/kernel/random/boot_id || boot=
printf '%s\\n' "$boot" "$(readlink /proc/self/ns/pid)" "$(uname -s)" "$(uname -n)" \\
  "${HOME:-/}"
"""


class ShellPart(Protocol):
    """A module of `watcher.transport.shell`; that package says what it does."""

    @staticmethod
    def script(request: Request) -> str:
        """Return what to run."""

    @staticmethod
    def answer(request: Request, output: bytes) -> Answer:
        """Return what its output means."""


class ShellSession:
    """Asks a shell that reads its scripts one after the other."""

    def __init__(self, channel: Channel, nonce: str) -> None:
        """Listen on a channel on which `SHELL` is being started."""
        self._rounds = Rounds(nonce)
        self._wire: Wire[Said] = Wire(channel, self._feed)
        self._one = asyncio.Lock()
        self._about: dict[str, Json] = {}
        self._slow: list[str] = []

    async def start(self, limit_s: float) -> None:
        """Prepare the shell and learn where it is.

        Raises:
            TransportError: it is no shell, or the channel has ended.
        """
        text = self._rounds.setup() + self._rounds.begin([_ABOUT])
        try:
            said = await self._wire.exchange(text.encode(), limit_s)
        except TransportError as error:
            await self._wire.read_on(_LAST_WORDS_S)
            if not (last := self._rounds.noise()):
                raise
            raise TransportError(phrase("session_said", said=last)) from error
        status, output = said.ended.get(0, (1, b""))
        lines = output.decode("utf-8", "replace").splitlines()
        if status or len(lines) != 5:
            raise TransportError(phrase("session_garbled"))
        names = ("boot_id", "pid_namespace", "system", "hostname", "home")
        self._about = {**dict(zip(names, lines, strict=True)), "means": "sh"}

    async def ask(self, requests: Sequence[Request]) -> Reply:
        """Ask everything in one round.

        Raises:
            TransportError: there was no answer; the session is of no more use.
        """
        async with self._one:
            home = str(self._about["home"])
            looks = [_Look(at_home(request, home)) for request in requests]
            asked = {one.key for one in looks}
            held_back = [key for key in self._slow if key in asked][1:]
            taken = [one for one in looks if one.script and one.key not in held_back]
            text = self._rounds.begin([one.script for one in taken])
            said = await self._wire.exchange(
                text.encode(), ROUND_LIMIT_S, self._rounds.part
            )
            for number, look in enumerate(taken):
                look.hear(said, number)
            self._remember(taken, [said.slow(number) for number in range(len(taken))])
        answers = [one.answer or _TOO_SLOW for one in looks]
        return Reply(answers=answers, about=self._about)

    def follow(
        self,
        pid: int,  # noqa: ARG002 - a shell can only be asked
        start: int,  # noqa: ARG002
        wake: Callable[[], None],  # noqa: ARG002
    ) -> Callable[[], None]:
        """Do nothing: the rounds see the end."""
        return lambda: None

    @property
    def lost(self) -> bool:
        """Say whether it has ended."""
        return self._wire.lost

    async def close(self) -> None:
        """End the shell: its input ends."""
        await self._wire.close()

    def _feed(self, data: bytes) -> None:
        said = self._rounds.feed(data)
        if said is not None:
            self._wire.bring(said)

    def _remember(self, taken: Sequence["_Look"], slow: Sequence[bool]) -> None:
        """Keep what was too slow: only one such look a round, in turns."""
        asked = {one.key for one in taken}
        late = [one.key for one, is_slow in zip(taken, slow, strict=True) if is_slow]
        others = [key for key in self._slow if key not in asked]
        self._slow = [*others, *late][-_MOST_SLOW:]


def _error(name: str, text: str) -> Answer:
    return {"error": {"errno": name, "text": text}}


_TOO_SLOW = _error("ETIMEDOUT", "the look did not come back")
_TOO_LONG = _error("EFBIG", "the look said more than it may")


class _Look:
    """One request of a round."""

    def __init__(self, request: Request) -> None:
        """Make its script; where there is none, that is the answer."""
        self.key = json.dumps(dict(request), sort_keys=True)
        self.script = ""
        self.answer: Answer | None = None
        self._request = request
        try:
            self._part = _part(str(request["op"]))
            self.script = self._part.script(request)
        except Exception as error:  # noqa: BLE001 - one must not cost the others theirs
            self.answer = _fault(error)

    def hear(self, said: Said, number: int) -> None:
        """Take what its script said, if that came to its end."""
        status, output = said.ended.get(number, (0, None))
        if said.slow(number) or (output is None and not said.whole):
            self.answer = _TOO_SLOW
        elif output is None:
            self.answer = _TOO_LONG
        elif status > 125:
            self.answer = _error("EIO", f"the look ended with status {status}")
        else:
            self.answer = self._answer(output)

    def _answer(self, output: bytes) -> Answer:
        try:
            return self._part.answer(self._request, output)
        except Exception as error:  # noqa: BLE001 - as above
            return _fault(error)


def _part(name: str) -> ShellPart:
    if name not in PARTS:
        raise KeyError(name)
    module = importlib.import_module(f"watcher.transport.shell.{name}")
    return cast("ShellPart", module)


def _fault(error: Exception) -> Answer:
    return _error("", f"{type(error).__name__}: {error}")
