"""The service with what keeps it going: store, outbox, rounds, and its end."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta

from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_MAX_INSTANCES, JobEvent
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

from notify import marker, outbox
from notify.dispatcher import Dispatcher
from policies.model import Ping, Severity
from policies.wording import phrase
from watcher import views
from watcher.database import open_for_reading
from watcher.errors import StoreError
from watcher.keeping import within_patience
from watcher.ownership import Ownership
from watcher.serve.checking import Checking
from watcher.serve.events import Events
from watcher.serve.remembered import remembered
from watcher.service import Service
from watcher.writer import Writer

IDLE_S = 600.0
"""A service that was started on demand ends when idle for so long (C5.1b)."""

_SWEEP_S = 5  # timers stand still in suspend: a deadline is noticed so long after it
_OUTBOX_S = 1
_MARKERS_S = 5
_HOSTS_S = 1
_SAVE_S = 60
_WAKE_S = 5
_HOUSEKEEPING_S = 60
_SEND_LIMIT_S = 2.0  # at the end; a send that is cut off is made again, same key
_GATHER_S = 0.02  # what comes meanwhile is sent with the next lot

_log = logging.getLogger(__name__)


class Hosting:
    """Drives a service: APScheduler calls the few rounds, never a job a watch."""

    def __init__(
        self,
        service: Service,
        *,
        state: str,
        writer: Writer,
        dispatcher: Dispatcher,
        ownership: Ownership,
        on_demand: bool,
    ) -> None:
        """Drive nothing yet."""
        self.service = service
        self.on_demand = on_demand
        self.stopped = service.stopping
        self.read: sqlite3.Connection | None = open_for_reading(state)
        self.requests = 0
        self._state = state
        self._writer = writer
        self._dispatcher = dispatcher
        self._ownership = ownership
        self._busy_at_s = service.clock.boot()
        self._outbox_has = asyncio.Event()
        self._swept_s = service.clock.awake()
        self._called_for_s = -1.0
        """The instant for which the scheduler has been asked to call."""
        self._scheduler = AsyncIOScheduler(
            timezone=UTC,
            job_defaults={
                "misfire_grace_time": None,
                "coalesce": True,
                "max_instances": 1,
            },
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._sending: set[asyncio.Task[object]] = set()
        service.telling.after_outcome = self._outbox_has.set
        self.checking = Checking(service.config, service.clock, service.hosts)
        self.events = Events(
            service.clock, watch=self.watch_object, reading=self.reading
        )
        service.tell_events(self.events.happened)

    async def start(self) -> None:
        """Take up what is armed and start the rounds."""
        await self.service.recover(self.reading())
        for forever in (
            self._follow_changes,
            self._follow_outbox,
            self.idle_watch,
            self._end_events,
        ):
            self._tasks.append(asyncio.get_running_loop().create_task(forever()))
        for work, every_s in (
            (self._sweep, _SWEEP_S),
            (self._drain, _OUTBOX_S),
            (self._tell_pings, _OUTBOX_S),
            (self._markers, _MARKERS_S),
            (self.service.detaching.round, _HOSTS_S),
            (self.service.save_all, _SAVE_S),
            (self._wake, _WAKE_S),
            (self._housekeeping, _HOUSEKEEPING_S),
        ):
            self._every(work, every_s)
        self._scheduler.add_listener(
            self._missed, EVENT_JOB_MAX_INSTANCES | EVENT_JOB_ERROR
        )
        self._scheduler.start()

    def stop(self) -> None:
        """End soon: no new looks, what is armed stays armed in the store."""
        self.service.stop()

    async def close(self) -> None:
        """Let sends end within a limit, store what is new, and let go of everything."""
        self._scheduler.pause()
        for task in self._tasks:
            task.cancel()
        await self.service.close()
        if self._sending:
            await asyncio.wait(self._sending, timeout=_SEND_LIMIT_S)
        self._scheduler.shutdown(wait=False)
        if self.read is not None:
            self.read.close()
        self._writer.close(2.0)

    def reading(self) -> sqlite3.Connection:
        """Return the connection for looking things up.

        Raises:
            StoreError: there is none to be had.
        """
        if self.read is None:
            self.read = open_for_reading(self._state)
        if self.read is None:
            why = phrase("store_unusable", path=self._state, error="?")
            raise StoreError(why)
        return self.read

    def watch_object(self, watch_id: str) -> views.Object:
        """Return a watch as programs read it, be it stored or not."""
        try:
            row = views.watch_row(self.reading(), watch_id)
        except (StoreError, sqlite3.Error):
            row = None
        hosted = self.service.at_hand(watch_id)
        if row is None and hosted is not None:
            row = remembered(hosted, self.service.clock, self.service.config.lang)
        if row is None:
            why = phrase("store_unusable", path=self._state, error="?")
            raise StoreError(why)
        return views.watch_object(row)

    async def flush(self, *, dead: bool) -> int:
        """Make every pending ping due and try them all; return how many.

        Raises:
            StoreError: the store does not take that, or not in time.
        """
        now = self.service.clock.wall().timestamp()
        flushing = self._writer.submit(lambda c: outbox.flush(c, dead=dead, now_s=now))
        count = await within_patience(asyncio.ensure_future(flushing))
        self._outbox_has.set()
        return count

    async def first_attempts(self, watch_id: str, wait_s: float) -> None:
        """Return when no ping of a watch waits for its first attempt, or too late."""
        until_s = self.service.clock.boot() + wait_s
        while self.service.clock.boot() < until_s and not self.stopped.is_set():
            open_now = self._count(
                "SELECT count(*) FROM pings WHERE watch_id = ?"
                " AND state = 'pending' AND attempts = 0",
                watch_id,
            )
            if not open_now:
                return
            await self.service.clock.sleep(0.05)

    def _every(
        self, work: Callable[[], Coroutine[object, object, None]], every_s: float
    ) -> None:
        """Run a round now and then every so often; its first run is at once."""
        self._scheduler.add_job(
            work,
            IntervalTrigger(seconds=every_s, timezone=UTC),
            id=work.__name__.strip("_"),
            next_run_time=datetime.now(UTC),  # noqa: TID251 - the scheduler's own time
        )

    def _missed(self, event: JobEvent) -> None:
        """Count a round that failed, or found the one before still at work."""
        counts = self.service.metrics.counts
        failed = event.code == EVENT_JOB_ERROR
        (counts.failed if failed else counts.skipped)[event.job_id] += 1

    async def _follow_changes(self) -> None:
        """Take the looks that are due; the scheduler calls for the next ones."""
        while True:
            await self._sweep()
            await self.service.engine.changed()

    async def _follow_outbox(self) -> None:
        """Send what an outcome has just put into the outbox, many at a time.

        Beside the round of every second, which may wait for a channel that hangs.
        """
        while True:
            await self._outbox_has.wait()
            self._outbox_has.clear()
            task: asyncio.Task[object]
            task = asyncio.get_running_loop().create_task(self._drain())
            self._hold(task)
            await self.service.clock.sleep(_GATHER_S)

    def _hold(self, task: "asyncio.Task[object] | None") -> None:
        """Keep what sends, so that it is neither collected nor cut off at the end."""
        if task is not None and task not in self._sending:
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _drain(self) -> None:
        self._hold(asyncio.current_task())
        try:
            await self._dispatcher.drain()
        except (StoreError, sqlite3.Error):
            _log.warning("outbox.unavailable", exc_info=True)

    async def _tell_pings(self) -> None:
        self.events.follow_pings()

    async def _end_events(self) -> None:
        """Let those who listen go at once: the end must not wait for them."""
        await self.stopped.wait()
        self.events.close()

    def sweeps(self, within_s: float) -> bool:
        """Say whether looks are really started, on the clock that sleeps with us."""
        ago_s = self.service.clock.awake() - self._swept_s
        return ago_s < max(within_s, 2.0 * _SWEEP_S)

    async def _sweep(self) -> None:
        self.service.engine.step()
        self._swept_s = self.service.clock.awake()
        due_s = self.service.engine.next_due_s()
        if due_s is None or due_s == self._called_for_s:
            return
        self._called_for_s = due_s
        left_s = max(due_s - self.service.clock.boot(), 0.0)
        when = datetime.now(UTC) + timedelta(seconds=left_s)  # noqa: TID251 - as above
        self._scheduler.add_job(
            self._sweep, DateTrigger(when, UTC), id="due", replace_existing=True
        )

    async def _markers(self) -> None:
        """Ping for every job that still runs when its time has come (C8.1)."""
        now = self.service.clock.wall()
        if not marker.due(self.reading(), now.timestamp()):
            return

        def change(connection: sqlite3.Connection) -> None:
            for job in marker.due(connection, now.timestamp()):
                if not marker.notified(connection, job.id, now.timestamp()):
                    continue
                outbox.add(
                    connection,
                    _marker_ping(job, now),
                    channels=self._dispatcher.names,
                    now_s=now.timestamp(),
                    give_up_s=self.service.config.notify.give_up_after,
                    watch_id=None,
                )

        await self._writer.submit(change)

    async def _wake(self) -> None:
        """Ping once more, and wake, where a session shows no sign of life (C9.4)."""
        try:
            if await self.service.waking.round(self.reading()):
                self._outbox_has.set()
        except (StoreError, sqlite3.Error):
            _log.warning("store.unreadable", exc_info=True)

    async def _housekeeping(self) -> None:
        """Let go of what nobody asks for any more; make sure that the file is ours."""
        self.service.forget_told()
        if not await self._ownership.renew():
            self.stop()

    async def idle_watch(self) -> None:
        """Stop a service started on demand once nobody has needed it for a while."""
        clock = self.service.clock
        while not self.stopped.is_set():
            if self._is_busy():
                self._busy_at_s = clock.boot()
            elif self.on_demand and clock.boot() - self._busy_at_s > IDLE_S:
                self.stop()
            await clock.sleep(min(IDLE_S / 20, 30.0))

    def _is_busy(self) -> bool:
        """Say whether anything is armed, unsent, attached, or still on a host."""
        if self.service.armed_count or self.requests:
            return True
        return bool(
            self._count(
                "SELECT (SELECT count(*) FROM pings WHERE state = 'pending')"
                " + (SELECT count(*) FROM waiters WHERE state = 'told' AND session"
                " IS NOT NULL AND acknowledged_at IS NULL AND reminded_at IS NULL)"
                " + (SELECT count(*) FROM jobs WHERE state = 'running'"
                " AND notify_after_s IS NOT NULL AND notified_at IS NULL)"
                " + (SELECT count(*) FROM detached JOIN watches ON id = watch_id"
                " WHERE gone_at IS NULL AND deadline_at > ?)",
                self.service.clock.wall().timestamp(),
            )
        )

    def _count(self, query: str, *values: str | float) -> int:
        """Return what a query counts; nothing where the store cannot be read."""
        try:
            (count,) = self.reading().execute(query, values).fetchone()
        except (StoreError, sqlite3.Error):
            _log.warning("store.unreadable", exc_info=True)
            return 0
        return int(count)


def _marker_ping(job: marker.Marker, now: datetime) -> Ping:
    minutes = round((now.timestamp() - job.started_at) / 60)
    text = f"⏳ {job.label} ainda rodando após {minutes}min"
    return Ping(
        idempotency_key=f"job-{job.id}-running",
        title=f"{job.label} ainda rodando",
        message=text,
        severity=Severity.INFO,
        occurred_at=now,
        watch={"id": job.id, "kind": "job", "label": job.label},
    )
