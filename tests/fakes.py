"""Real implementations of the product's protocols that a test can steer."""

import asyncio
import threading
import time
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from notify.errors import DeliveryError
from policies.model import Json, Memory, Observation, Outcome, Ping, Sight, Target
from policies.proctable import Row
from policies.sight import unknown
from policies.verdict import Rules
from policies.wording import Phrase, phrase
from watcher.conditions import Hint, Looker
from watcher.engine import Listener, Watch
from watcher.errors import TransportError
from watcher.onhost import answer, at_home
from watcher.transport import Answer, HostState, Reply, Request

_LIMIT_S = 60.0  # of what takes milliseconds, on a machine that is busy

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class FakeClock:
    """Time that moves only when told to: an hour of polling costs milliseconds."""

    def __init__(self) -> None:
        self._wall = START
        self._boot = 1000.0
        self._awake = 1000.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self.busy: Callable[[], bool] = lambda: False
        """Says whether somebody is at work on a thread, for whom time waits."""

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
        await self.settle()
        while not asleep:
            due = sorted(at for at, future in self._sleepers if not future.done())
            if not due or due[0] > end:
                break
            self._move(max(due[0], self._boot), awake=True)
            self._wake()
            await self.settle()
        self._move(end, awake=not asleep)
        self._wake()
        await self.settle()

    async def settle(self) -> None:
        """Let everything that can run without time passing do so, on threads too.

        Raises:
            AssertionError: somebody is still at work after a long while.
        """
        end_s = time.monotonic() + _LIMIT_S
        idle = 0
        while idle < 2:  # what came back last still has to be dealt with
            assert time.monotonic() < end_s, "it does not come to rest"
            await settle()
            idle = 0 if self.busy() else idle + 1

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


async def until(look: Callable[[], object], *, limit_s: float = _LIMIT_S) -> None:
    """Wait in real time until `look` returns something.

    Raises:
        AssertionError: it still does not after `limit_s` seconds.
    """
    end_s = time.monotonic() + limit_s
    while not look():
        assert time.monotonic() < end_s, f"not within {limit_s} s"
        await asyncio.sleep(0.002)


class FakeListener(Listener):
    """Keeps what it was told; it may raise, or let a watch go on instead."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.seen: list[tuple[str, Sight]] = []
        self.notes: list[tuple[str, Phrase]] = []
        self.outcomes: dict[str, Outcome] = {}
        self.gone_on: list[Outcome] = []
        self.rules: list[Rules] = []
        """For the watches that end next: they go on by these instead."""
        self.error: Exception | None = None

    def armed(self, watch: Watch, observation: Observation) -> None:
        assert watch.waiting
        self.waiting.append(watch.id)

    def saw(self, watch: Watch, observation: Observation) -> None:
        self.seen.append((watch.id, observation.sight))

    def noted(self, watch: Watch, note: Phrase) -> None:
        self.notes.append((watch.id, note))

    async def ended(self, watch: Watch, outcome: Outcome) -> Rules | None:
        if self.error is not None:
            raise self.error
        assert watch.id not in self.outcomes, "no watch ends twice"
        if self.rules:
            self.gone_on.append(outcome)
            return self.rules.pop(0)
        self.outcomes[watch.id] = outcome
        return None


class FakeHints:
    """Hints that a test gives; following them may take long or raise."""

    def __init__(self) -> None:
        self.followed: dict[str, list[Hint]] = {}
        self.closed = False
        self.fresh: list[bool] = []
        self.error: Exception | None = None
        self.hang: asyncio.Event | None = None

    async def follow(self, watch_id: str, wanted: Sequence[Hint]) -> bool:
        if self.hang is not None:
            await self.hang.wait()
        if self.error is not None:
            raise self.error
        self.followed[watch_id] = list(wanted)
        return self.fresh.pop(0) if self.fresh else False

    def drop(self, watch_id: str) -> None:
        self.followed.pop(watch_id, None)

    def close(self) -> None:
        self.closed = True


class FakeTable:
    """A process table that a test writes; reading one of its rows may hang."""

    def __init__(self, *rows: Row) -> None:
        self.table = {row.pid: row for row in rows}
        self.boot = "boot-1"
        self.hides = False
        self.error: OSError | None = None
        self.started: float | None = None
        self.stuck: dict[int, threading.Event] = {}
        self.reading = 0

    def boot_id(self) -> str:
        if self.error is not None:
            raise self.error
        return self.boot

    def row(self, pid: int) -> Row | None:
        if self.error is not None:
            raise self.error
        return self.table.get(pid)

    def rows(self, skip: Collection[int]) -> dict[int, Row]:
        for pid in self.table.keys() - set(skip):
            if pid in self.stuck:
                self.reading = pid
                self.stuck[pid].wait()
                self.reading = 0
        return {pid: row for pid, row in self.table.items() if pid not in skip}

    def hidden(self) -> bool:
        return self.hides

    def started_at(self, row: Row) -> float | None:
        return self.started


class FakeCondition:
    """A condition that sees what a test says; a look may also hang or raise."""

    settle = True

    def __init__(
        self, target: Target, see: Callable[[], Observation], group: str = "fake"
    ) -> None:
        self.target = target
        self.see = see
        self.group = group
        self.probes = 0
        """Whole looks so far."""
        self.asked = 0
        """Quick looks so far."""
        self.same = False
        """What a quick look says."""
        self.threads: set[int] = set()
        """On which looks were taken."""
        self.closed: list[int] = []
        """Each thread that closed it."""
        self.wanted: Sequence[Hint] = ()
        self.hang: threading.Event | None = None
        self.hanging = ""
        """The group on whose thread a look hangs."""
        self.takes_looks: Looker | None = None

    def looker(self) -> Looker | None:
        return self.takes_looks

    def joined(self, launcher: int) -> None:
        return

    def refusal(self) -> Phrase | None:
        return None

    def look(self, memory: Memory, at: datetime) -> Observation:
        assert not self.closed, "looked at when closed"
        self.probes += 1
        self.threads.add(threading.get_ident())
        if self.hang is not None:
            self.hanging = self.group
            self.hang.wait()
            self.hanging = ""
        return self.see()

    def unchanged(self, memory: Memory) -> bool:
        self.asked += 1
        return self.same

    def hung(self, memory: Memory, at: datetime) -> Observation:
        reason = phrase("hung", what=self.target.text)
        return unknown(memory, at, reason, {"means": "fake", "hung": True})

    def hints(self) -> Sequence[Hint]:
        return self.wanted

    def close(self) -> None:
        self.closed.append(threading.get_ident())


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


class FakeHost:
    """A host that is this machine, or out of reach when a test says so."""

    def __init__(self, name: str = "box") -> None:
        self.name = name
        self.silent: Phrase | None = None
        """Why it gives no answer."""
        self.refused: Phrase | None = None
        self.answers: dict[str, Answer] = {}
        """By `op`: what it says instead of looking."""
        self.asked: list[Sequence[Request]] = []
        self.followed: list[tuple[int, int, Callable[[], None]]] = []
        self.logouts = 0
        self.about: dict[str, Json] = {"means": "agent", "boot_id": "boot-of-box"}

    async def reach(self) -> Phrase | None:
        return self.refused

    async def ask(self, requests: Sequence[Request], *, last: bool = False) -> Reply:
        self.asked.append(requests)
        if self.silent is not None:
            raise TransportError(self.silent)
        return Reply(answers=[self._answer(one) for one in requests], about=self.about)

    async def anew(self) -> None:
        self.logouts += 1

    def _answer(self, request: Request) -> Answer:
        said = self.answers.get(str(request["op"]))
        home = str(self.about.get("home", "/"))
        return said if said is not None else answer(at_home(request, home))

    def follow(
        self, pid: int, start: int, wake: Callable[[], None]
    ) -> Callable[[], None]:
        entry = (pid, start, wake)
        self.followed.append(entry)
        return lambda: self.followed.remove(entry)

    async def close(self) -> None:
        return


class FakeHosts:
    """Hosts that a test steers, by their names."""

    def __init__(self, *hosts: FakeHost) -> None:
        self.hosts = {host.name: host for host in hosts}
        self.answered: dict[str, HostState] = {}

    def of(self, name: str) -> FakeHost:
        return self.hosts.setdefault(name, FakeHost(name))

    def states(self) -> list[HostState]:
        return [
            self.answered.get(name, HostState(name=name, last_error=host.silent))
            for name, host in self.hosts.items()
        ]

    async def close(self) -> None:
        return
