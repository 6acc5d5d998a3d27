"""Real implementations of the product's protocols that a test can steer."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from notify.errors import DeliveryError
from policies.model import Memory, Observation, Ping, Target
from watcher.conditions import Hint

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class FakeClock:
    """Time that moves only when told to: an hour of polling costs milliseconds."""

    def __init__(self) -> None:
        self._wall = START
        self._boot = 1000.0
        self._awake = 1000.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def wall(self) -> datetime:
        return self._wall

    def boot(self) -> float:
        return self._boot

    def awake(self) -> float:
        return self._awake

    def zone(self) -> tzinfo:
        return UTC

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._boot + seconds, future))
        await future

    def step_wall(self, seconds: float) -> None:
        """Let somebody set the wall clock."""
        self._wall += timedelta(seconds=seconds)

    async def advance(self, seconds: float, *, asleep: bool = False) -> None:
        """Let time pass, waking every sleeper at its own instant.

        Args:
            seconds: how much.
            asleep: the machine is suspended: nobody wakes before the end.
        """
        end = self._boot + seconds
        await settle()
        while not asleep:
            due = sorted(at for at, future in self._sleepers if not future.done())
            if not due or due[0] > end:
                break
            self._move(max(due[0], self._boot), awake=True)
            self._wake()
            await settle()
        self._move(end, awake=not asleep)
        self._wake()
        await settle()

    def _move(self, boot: float, *, awake: bool) -> None:
        passed = boot - self._boot
        self._boot = boot
        self._wall += timedelta(seconds=passed)
        if awake:
            self._awake += passed

    def _wake(self) -> None:
        waiting = [(at, f) for at, f in self._sleepers if not f.done()]
        for at, future in waiting:
            if at <= self._boot:
                future.set_result(None)
        self._sleepers = [(at, f) for at, f in waiting if not f.done()]


async def settle(turns: int = 20) -> None:
    """Let everything that can run without time passing do so."""
    for _ in range(turns):
        await asyncio.sleep(0)


class FakeCondition:
    """A condition that sees what a test says; a probe may also hang or raise."""

    settle = True

    def __init__(self, target: Target, see: Callable[[], Observation]) -> None:
        self.target = target
        self.see = see
        self.probes = 0
        self.closed = False
        self.wanted: Sequence[Hint] = ()
        self.hang: asyncio.Event | None = None

    async def admit(self) -> None:
        return

    async def probe(self, memory: Memory) -> Observation:
        self.probes += 1
        if self.hang is not None:
            await self.hang.wait()
        return self.see()

    def hints(self) -> Sequence[Hint]:
        return self.wanted

    def close(self) -> None:
        self.closed = True


class FakeChannel:
    """A channel that plays a list of answers and keeps what was sent."""

    def __init__(self, *answers: DeliveryError | None) -> None:
        self.answers = list(answers)
        self.sent: list[Ping] = []

    async def send(self, ping: Ping) -> None:
        self.sent.append(ping)
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer
