"""Waiting in this very process, where there is no service to be had (C5.1b, C5.6)."""

import asyncio
import contextlib
import logging
import os
import signal
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from notify.dispatcher import Dispatcher, Submit
from policies.duration import format_countdown, format_minutes
from policies.lines import local_time, outcome_line
from policies.model import Ending, Observation, Outcome, Ping, Target
from policies.shapes import outcome_ping
from policies.verdict import Progress, Rules
from policies.wording import Phrase, phrase
from watcher.app import build_dispatcher
from watcher.cli.common import Order, Whereabouts, exit_status
from watcher.cli.output import Countdown, tell
from watcher.cli.watch import print_outcome
from watcher.clock import SystemClock
from watcher.conditions import Condition, Place
from watcher.conditions.lock import LockCondition
from watcher.config import Config
from watcher.database import open_database
from watcher.engine import LOOK_LIMIT_S, Engine, Listener, Watch
from watcher.errors import StoreError, UsageError
from watcher.hints import SystemHints
from watcher.looking import OnThread
from watcher.offload import HungError
from watcher.settling import settle
from watcher.taking import lock_entry, take_lock
from watcher.targets import condition_of
from watcher.transport import Hosts
from watcher.transport.hosts import SshHosts

T = TypeVar("T")

_STORE_MS = 1000  # for the store, before the outcome is told without it
_PING_S = 5.0  # what delivery gets before the command ends (C6.1)


def wait_alone(
    target: Target,
    order: Order,
    config: Config,
    *,
    left_s: float,
    start_within_s: int,
    takes: bool,
    watch_id: str | None,
    number: int,
    nonce: str | None,
    waited: bool,
) -> int:
    """Wait in this very process and return the exit status.

    Args:
        target: what to wait for.
        order: how it was asked for.
        config: the settings in force.
        left_s: seconds to the deadline.
        start_within_s: what work that has yet to begin may take.
        takes: take the lock itself once it is free.
        watch_id: of the watch that a service had, so that its ping keeps its key.
        number: of the waiter in it.
        nonce: what a service was asked with, which may have stored it.
        waited: the condition was seen not to be clear, by that service.

    Raises:
        UsageError: the condition cannot be watched at all.
    """
    # What is logged is for a service's log; a command tells a person in one line.
    logging.getLogger("watcher").addHandler(logging.NullHandler())
    hosts = SshHosts(config.ssh, clock=SystemClock())
    place = Place(config=config, cwd="/", launcher=os.getpid(), hosts=hosts)
    condition = condition_of(target.text, place)
    command = WaitingAlone(
        condition,
        order,
        config,
        number=number,
        nonce=nonce,
        takes=takes,
        waited=waited,
        hosts=hosts,
    )
    return asyncio.run(command.run(watch_id, left_s, start_within_s))


class WaitingAlone(Listener):
    """The engine in this very process, for one watch and one reader."""

    def __init__(
        self,
        condition: Condition,
        order: Order,
        config: Config,
        *,
        number: int,
        nonce: str | None,
        takes: bool,
        waited: bool,
        hosts: Hosts,
    ) -> None:
        """Prepare; nothing is looked at yet."""
        self._condition = condition
        self._order = order
        self._config = config
        self._number = number
        self._nonce = nonce
        self._takes = takes
        self._took = False
        self._hosts = hosts
        self._waited = waited
        self._clock = SystemClock()
        self._dispatcher = self._build_dispatcher(None)
        self._countdown = Countdown()
        self._notes: list[Phrase] = []
        self._outcome: Outcome | None = None
        self._signal: signal.Signals | None = None

    async def run(
        self, watch_id: str | None, left_s: float, start_within_s: int
    ) -> int:
        """Do the whole job.

        1. Refuse what cannot be watched.
        2. Look until the outcome, or until a signal ends the command.
        3. Write the ping down or print the line first, whichever cannot wait; then
           give delivery its few seconds.
        """
        self._stop = asyncio.Event()
        self._engine = Engine(clock=self._clock, listener=self)
        self._take_signals()
        await self._refuse()
        watch = self._watch(watch_id, left_s, start_within_s)
        self._engine.arm(watch)
        ticking = asyncio.ensure_future(self._tick(watch))
        await self._engine.run(self._stop)
        ticking.cancel()
        await self._hosts.close()
        self._countdown.clear()
        if self._outcome is None:
            return self._stopped(watch)
        await self._report(self._outcome)
        return exit_status(self._outcome) if self._order.exit_codes else 0

    def armed(self, watch: Watch, observation: Observation) -> None:
        """Say that it waits, and until when; only now load what wakes it early."""
        left = timedelta(seconds=watch.rules.deadline_s - self._clock.boot())
        self._tell(
            phrase(
                "armed",
                target=self._condition.target.text,
                until=local_time(self._clock.wall() + left, self._clock.zone()),
                ttl=format_minutes(self._order.ttl_s),
            )
        )
        for note in self._notes:
            self._tell(note)
        if observation.absent and watch.rules.start_within_s:
            span = format_minutes(watch.rules.start_within_s)
            self._tell(phrase("start_awaited", start_within=span))
        self._engine.use_hints(SystemHints(self._engine.look_now, self._tell))

    def noted(self, watch: Watch, note: Phrase) -> None:
        """Say what a person must know, behind the armed line."""
        if watch.waiting:
            self._tell(note)
        else:
            self._notes.append(note)

    async def ended(self, watch: Watch, outcome: Outcome) -> Rules | None:
        """Take the outcome and stop looking, unless somebody else took the lock."""
        if self._takes and outcome.ending is Ending.RELEASED:
            taken = await self._take(watch, outcome)
            if not taken:
                return watch.rules
        self._outcome = outcome
        self._stop.set()
        return None

    async def _take(self, watch: Watch, outcome: Outcome) -> bool:
        """Take the lock; True too when it cannot be made, which is said (C5.5)."""
        if not isinstance(self._condition, LockCondition):
            return True
        mark = f"{watch.id}-{self._number}"
        entry = lock_entry(self._order.session, mark, outcome.ended_at)
        try:
            take_lock(self._condition.path, entry)
        except FileExistsError:
            return False
        except OSError as error:
            self._tell(phrase("not_taken", error=str(error)))
        else:
            self._took = True
        return True

    async def _refuse(self) -> None:
        looker = self._condition.looker() or OnThread("refusal")
        try:
            async with asyncio.timeout(LOOK_LIMIT_S):
                refusal = await looker.refusal(self._condition)
        except (TimeoutError, HungError):
            return  # the first look will hang likewise, and be unknown
        finally:
            looker.close()
        if refusal is not None:
            raise UsageError(refusal)

    def _watch(self, watch_id: str | None, left_s: float, start_within_s: int) -> Watch:
        now_s = self._clock.boot()
        ttl_s = self._order.ttl_s
        return Watch(
            id=watch_id or os.urandom(6).hex(),
            condition=self._condition,
            rules=Rules(
                armed_s=now_s,
                deadline_s=now_s + left_s,
                settle_s=self._config.cadence.settle if self._condition.settle else 0.0,
                start_within_s=start_within_s,
            ),
            every_s=self._order.every_s,
            ttl_s=ttl_s,
            label=self._order.label or self._condition.target.label,
            armed_at=self._clock.wall(),
            armed_awake_s=self._clock.awake(),
            resume=self._order.resume,
            session=self._order.session,
            progress=Progress(ever_blocked=self._waited),
            memory={"awaits_start": True} if start_within_s else {},
        )

    async def _report(self, outcome: Outcome) -> None:
        """Print the line and send the ping, by the outbox where there is one."""
        connection = self._open_store()
        if connection is None:
            await self._report_without_store(outcome)
            return
        try:
            await self._report_with_store(connection, outcome)
        finally:
            connection.close()

    async def _report_with_store(
        self, connection: sqlite3.Connection, outcome: Outcome
    ) -> None:
        """Settle it as a service would; what cannot be sent now is left to the next."""

        async def submit(change: Callable[[sqlite3.Connection], T], /) -> T:
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = change(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            return result

        lang, zone = self._order.lang, self._clock.zone()
        dispatcher = self._build_dispatcher(submit)
        try:
            outcome, key = settle(
                connection,
                outcome,
                self._number,
                self._nonce,
                line=outcome_line(outcome, lang, zone),
                ping_of=lambda told, n: outcome_ping(told, lang, zone, waiter=n),
                channels=dispatcher.names,
                give_up_s=self._config.notify.give_up_after,
                mine_alone=self._took,
            )
        except sqlite3.Error:
            await self._report_without_store(outcome)
            return
        self._outcome = outcome
        print_outcome(outcome, self._order, self._clock)
        if key is None:
            return
        with contextlib.suppress(TimeoutError, sqlite3.Error):
            async with asyncio.timeout(_PING_S):
                await dispatcher.drain()
        rows = connection.execute("SELECT * FROM pings WHERE key = ?", (key,))
        for row in rows.fetchall():
            place = Whereabouts(
                channel=row["channel"],
                message=outcome_line(outcome, lang, zone),
                delivered=row["state"] == "delivered",
                logged=row["logged_at"] is not None,
                error=row["last_error"],
            )
            note = place.note(self._config)
            if note is not None:
                self._tell(note)

    def _open_store(self) -> sqlite3.Connection | None:
        try:
            return open_database(self._config.state, busy_ms=_STORE_MS)[0]
        except StoreError:
            return None

    def _build_dispatcher(self, submit: Submit | None) -> Dispatcher:
        return build_dispatcher(
            self._config, clock=self._clock, lang=self._order.lang, submit=submit
        )

    async def _report_without_store(self, outcome: Outcome) -> None:
        """Print the line and send the ping; a log entry comes first, a request after.

        A signal that comes meanwhile sends the ping to the fallback log at once.
        """
        ping = outcome_ping(
            outcome, self._order.lang, self._clock.zone(), waiter=self._number
        )
        if not self._dispatcher.needs_network:
            note = await self._dispatcher.send(ping)
            print_outcome(outcome, self._order, self._clock)
        else:
            print_outcome(outcome, self._order, self._clock)
            note = await self._send(ping)
        if note is not None:
            self._tell(note)

    async def _send(self, ping: Ping) -> Phrase | None:
        self._stop.clear()
        sending = asyncio.ensure_future(self._dispatcher.send(ping))
        stopping = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({sending, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if sending.done():
            return sending.result()
        sending.cancel()
        return self._dispatcher.write_down(ping, phrase("cut_short"))

    def _stopped(self, watch: Watch) -> int:
        """Say why no outcome came and return 128 + n."""
        number = self._signal or signal.SIGTERM
        if number is signal.SIGINT:
            self._tell(phrase("interrupted"))
        else:
            label = watch.label
            self._tell(phrase("stopped", signal=number.name, label=label))
        return 128 + number

    def _take_signals(self) -> None:
        """Turn signals into the stop event; what the launcher ignores stays ignored."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._on_signal, number)

    def _on_signal(self, number: signal.Signals) -> None:
        self._signal = number
        self._stop.set()

    async def _tick(self, watch: Watch) -> None:
        """Keep the countdown of a terminal going."""
        while self._countdown.active:
            if watch.waiting:
                left_s = watch.rules.deadline_s - self._clock.boot()
                shown = phrase(
                    "countdown",
                    label=self._condition.target.text,
                    left=format_countdown(left_s),
                )
                self._countdown.show(shown.render(self._order.lang))
            await self._clock.sleep(1.0)

    def _tell(self, note: Phrase) -> None:
        self._countdown.clear()
        tell(note.render(self._order.lang))
