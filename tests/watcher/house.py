"""A service in this process, on a real store and a clock that the test moves."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Self

from notify.channels.fallback import FallbackLog
from notify.dispatcher import Dispatcher
from notify.errors import DeliveryError
from policies.model import Ping
from policies.wording import Lang, Phrase
from tests.fakes import FakeClock, settle, until
from watcher.app import build_dispatcher
from watcher.config import Cadences, Config, Locks, Notify, Settle
from watcher.database import NAME, open_database, open_for_reading
from watcher.hosted import News, Order
from watcher.ownership import LocalOwnership
from watcher.serve.hosting import Hosting
from watcher.service import Service
from watcher.transport import Hosts
from watcher.writer import Writer

BUSY_MS = 20
SETTLE_S = 0.25


class Channel:
    """Keeps what was sent; fails while it is told to."""

    def __init__(self) -> None:
        self.sent: list[Ping] = []
        self.fails = False

    async def send(self, ping: Ping) -> None:
        self.sent.append(ping)
        if self.fails:
            raise DeliveryError("out of order")

    @property
    def keys(self) -> list[str]:
        return [ping.idempotency_key for ping in self.sent]


class House:
    """One service of a state directory, and everything around it."""

    def __init__(
        self,
        folder: Path,
        *,
        clock: FakeClock | None = None,
        boot_id: str = "boot-1",
        on_demand: bool = True,
        hosts: Hosts | None = None,
        notify: Notify | None = None,
    ) -> None:
        self.folder = folder
        self.state, self.locks = folder / "state", folder / "locks"
        self.locks.mkdir(exist_ok=True)
        self.config = Config(
            locks=Locks(dir=str(self.locks)),
            cadence=Cadences(settle=Settle(SETTLE_S)),
            notify=notify or Notify(),
            lang=Lang.EN,
            state=str(self.state),
        )
        self.clock = clock or FakeClock()
        self.channel = Channel()
        self.notices: list[Phrase] = []
        self.connection, self.set_aside = open_database(
            str(self.state), busy_ms=BUSY_MS
        )
        self.connection.execute("PRAGMA synchronous = OFF")
        self.writer = Writer(self.connection)
        self.ownership = LocalOwnership(self.writer)
        self.dispatcher = Dispatcher(
            {"fake": self.channel},
            FallbackLog(self.config.fallback_log, self.clock.zone()),
            lang=Lang.EN,
            submit=self.writer.submit,
            now=self.clock.wall,
            jitter=lambda: 0.0,
            notice=self.notices.append,
        )
        if notify is not None:
            self.dispatcher = build_dispatcher(
                self.config,
                clock=self.clock,
                submit=self.writer.submit,
                notice=self.notices.append,
            )
        self.service = Service(
            config=self.config,
            clock=self.clock,
            ownership=self.ownership,
            dispatcher=self.dispatcher,
            boot_id=boot_id,
            hosts=hosts,
        )
        self.hosting = Hosting(
            self.service,
            state=str(self.state),
            writer=self.writer,
            dispatcher=self.dispatcher,
            ownership=self.ownership,
            on_demand=on_demand,
        )
        reading = open_for_reading(str(self.state))
        assert reading is not None
        self.read = reading
        self._looking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.service.recover(self.read)
        self._looking = asyncio.create_task(self._look())
        await self.idle()
        return self

    async def __aexit__(self, *args: object) -> None:
        await self.crash()

    async def crash(self) -> None:
        """Be gone without a word; what was handed to the writer is written."""
        if self._looking is None:
            return
        self._looking.cancel()
        self._looking = None
        self.service.engine.close()
        await settle()  # what is cancelled before its start would be warned of
        for task in list(self.service._tasks._tasks):
            task.cancel()
        await settle()
        self.read.close()
        if self.hosting.read is not None:
            self.hosting.read.close()
        self.writer.close(5.0)

    async def _look(self) -> None:
        while True:
            self.service.engine.step()
            await self.service.engine.changed()

    # what happens

    def hold(self, slug: str, content: str = "") -> Path:
        """Let somebody hold a lock."""
        path = self.locks / f"lock-{slug}.md"
        path.write_text(content)
        return path

    def free(self, slug: str) -> None:
        (self.locks / f"lock-{slug}.md").unlink()

    async def idle(self) -> None:
        """Wait until every look that is due is taken, and what follows is done."""

        def is_idle() -> bool:
            engine = self.service.engine
            due_s = engine.next_due_s()
            looking = any(group.busy for group in engine._groups.values())
            return not looking and (due_s is None or due_s > self.clock.boot())

        await settle()
        await until(is_idle)
        await settle()

    async def go(self, seconds: float) -> None:
        """Let time pass, each look at its own instant."""
        end_s = self.clock.boot() + seconds
        while True:
            await self.idle()
            due_s = self.service.engine.next_due_s()
            if due_s is None or due_s > end_s:
                break
            await self.clock.advance(max(due_s - self.clock.boot(), 0.0))
            self.service.engine.step()
        await self.clock.advance(end_s - self.clock.boot())
        self.service.engine.step()
        await self.idle()

    async def arm(self, target: str = "lock a", **order: object) -> tuple[str, int]:
        """Arm or join, and return the watch's id and the waiter's number."""
        options: dict[str, object] = {"ttl_s": 3600, "every_s": 30, "lang": Lang.EN}
        made = Order(target=target, **(options | order))  # type: ignore[arg-type]  # a test's own
        watch_id, number, _ = await self.service.arm(made)
        return watch_id, number

    async def news(self, watch_id: str, number: int = 1, *, after: int = 0) -> News:
        """Return what a waiter knows by now."""
        news = await self.service.follow(
            watch_id, number, after=after, wait_s=0, read=self.read
        )
        assert news is not None
        return news

    async def told(self, watch_id: str, number: int = 1) -> str:
        """Wait for a waiter's outcome and return how it ended."""
        news = await self.service.follow(
            watch_id, number, after=1 << 20, wait_s=20, read=self.read
        )
        assert news is not None
        assert news.outcome is not None, "no outcome"
        return news.outcome.ending.value

    async def notes(self, watch_id: str, number: int = 1) -> str:
        """Return what a waiter was told beside its outcome."""
        news = await self.news(watch_id, number)
        return " | ".join(note.render(Lang.EN) for note in news.notes)

    # what is stored

    def rows(self, query: str, *values: object) -> list[tuple[object, ...]]:
        return [tuple(row) for row in self.read.execute(query, values)]

    def one(self, query: str, *values: object) -> object:
        ((value,),) = self.rows(query, *values)
        return value

    @property
    def pings(self) -> Sequence[object]:
        """The keys in the outbox."""
        return [key for (key,) in self.rows("SELECT key FROM pings ORDER BY id")]

    # what goes wrong with the store

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let another program keep the file locked."""
        other = sqlite3.connect(self.state / NAME, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")
            other.close()

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Let SQLite refuse every write, as on a file system turned read-only."""
        self.connection.execute("PRAGMA query_only = ON")
        try:
            yield
        finally:
            self.connection.execute("PRAGMA query_only = OFF")

    @contextmanager
    def full(self) -> Iterator[None]:
        """Let there be no page more, as on a full disk."""
        (pages,) = self.connection.execute("PRAGMA page_count").fetchone()
        (most,) = self.connection.execute("PRAGMA max_page_count").fetchone()
        self.connection.execute(f"PRAGMA max_page_count = {pages}")
        try:
            yield
        finally:
            self.connection.execute(f"PRAGMA max_page_count = {most}")


@asynccontextmanager
async def following(
    house: House, watch_id: str, number: int = 1, *, wait_s: float = 60, after: int = 0
) -> AsyncIterator["asyncio.Task[News | None]"]:
    """Follow a watch beside, as a command does."""
    task = asyncio.create_task(
        house.service.follow(
            watch_id, number, after=after, wait_s=wait_s, read=house.read
        )
    )
    await settle()
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
