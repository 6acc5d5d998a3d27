"""Says how watches ended: stored first, with the pings, in one transaction (C6.1)."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from notify import outbox
from notify.dispatcher import SELFTEST, Dispatcher
from policies.clock import Clock
from policies.lines import outcome_line
from policies.model import Ending, Outcome, Ping
from policies.shapes import outcome_ping
from policies.wording import Lang, Phrase, phrase
from watcher import store
from watcher.app import KODER
from watcher.config import Config
from watcher.hosted import Hosted, for_waiter
from watcher.keeping import Change, Keeping
from watcher.ownership import LostError
from watcher.store import WaiterRow
from watcher.tasks import Tasks

_log = logging.getLogger(__name__)

_LOG_LIMIT_S = 2.0  # a line to a file takes no time, unless its disk hangs


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """An outcome that a detached watcher saw first.

    Attributes:
        waiter: the one to whom it is told there, whose number is part of its key.
        delivered_at: when its ping was delivered from there, if it was.
    """

    waiter: int
    delivered_at: float | None


class Telling:
    """The only way by which an outcome or a ping leaves the service."""

    def __init__(
        self,
        *,
        config: Config,
        clock: Clock,
        keeping: Keeping,
        dispatcher: Dispatcher,
        tasks: Tasks,
    ) -> None:
        """Tell nothing yet."""
        self.after_outcome: Callable[[], object] = bool
        """Called when pings were put into the outbox."""
        self.after_told: Callable[[Outcome], object] = lambda outcome: None  # noqa: ARG005
        """Called when a waiter was told an outcome."""
        self.after_end: Callable[[str, str], object] = lambda ending, watch_id: None  # noqa: ARG005
        """Called when everybody was told how a watch ended."""
        self._config = config
        self._clock = clock
        self._keeping = keeping
        self._dispatcher = dispatcher
        self._tasks = tasks
        self._sent_without_store: set[str] = set()

    async def tell_all(
        self,
        hosted: Hosted,
        outcome: Outcome,
        rows: Sequence[WaiterRow],
        *,
        seen: Elsewhere | None = None,
    ) -> None:
        """End a watch and tell those who still waited for it."""
        told = [(row.number, for_waiter(outcome, row)) for row in rows]
        lang = self._lang(rows[0].lang) if rows else self._config.lang
        mine = for_waiter(outcome, rows[0]) if rows else outcome
        line = outcome_line(mine, lang, self._clock.zone())
        pings = self._pings(outcome, rows, seen)
        channels = self._channels(hosted)

        def change(connection: sqlite3.Connection) -> None:
            if store.end_watch(connection, outcome, told, line):
                self.add_pings(connection, outcome.watch_id, pings, seen, channels)

        if await self._say(hosted, change, told, _to_send(pings, seen)):
            self.after_end(outcome.ending, outcome.watch_id)

    async def tell_some(
        self,
        hosted: Hosted,
        outcome: Outcome,
        rows: Sequence[WaiterRow],
        *,
        seen: Elsewhere | None = None,
    ) -> None:
        """Tell some of a watch's waiters; it goes on for the others."""
        told = [(row.number, for_waiter(outcome, row)) for row in rows]
        pings = self._pings(outcome, rows, seen)
        channels = self._channels(hosted)

        def change(connection: sqlite3.Connection) -> None:
            if store.tell_waiters(connection, outcome.watch_id, told):
                self.add_pings(connection, outcome.watch_id, pings, seen, channels)

        await self._say(hosted, change, told, _to_send(pings, seen))

    async def ping(self, hosted: Hosted, change: Change, ping: Ping) -> None:
        """Store a change together with one ping; without the store, send that."""
        watch_id, channels = hosted.watch.id, self._channels(hosted)

        def both(connection: sqlite3.Connection) -> None:
            change(connection)
            self.add_pings(connection, watch_id, [ping], channels=channels)

        await self._store_or_send(hosted, both, [ping])
        self.after_outcome()

    async def _say(
        self,
        hosted: Hosted,
        change: Change,
        told: Sequence[tuple[int, Outcome]],
        pings: Sequence[Ping],
    ) -> bool:
        """Store an outcome with its pings, then say it: never the other way round.

        Where the store cannot take it in time the outcome is said all the same and its
        pings are sent from here, once (C5.6); the store gets it when it can, and does
        not send again what was delivered. False where it is for another to say.
        """
        try:
            await self._store_or_send(hosted, change, pings)
        except LostError:
            return False  # the new owner tells it
        hosted.told.update(told)
        hosted.news()
        for _, outcome in told:
            self.after_told(outcome)
        self.after_outcome()
        return True

    async def _store_or_send(
        self, hosted: Hosted, change: Change, pings: Sequence[Ping]
    ) -> None:
        """Store a change with its pings, or send those from here.

        Raises:
            LostError: somebody else is the owner now.
        """
        try:
            stored = await self._keeping.durably(change)
        except LostError:
            raise
        except Exception:  # noqa: BLE001 - a fault of ours must not hide an outcome
            _log.exception("outcome.not_stored", extra={"watch_id": hosted.watch.id})
            stored = False
        if stored:
            return
        if self._keeping.degraded is not None:
            hosted.notes.append(self._keeping.degraded)
        for ping in pings:
            self._sent_without_store.add(ping.idempotency_key)
            sending = self._tasks.start(self._send_directly(hosted, ping))
            if not self._dispatcher.needs_network:
                await asyncio.wait({sending}, timeout=_LOG_LIMIT_S)

    async def _send_directly(self, hosted: Hosted, ping: Ping) -> None:
        """Send past the outbox; what no channel took goes into it after all (C6.1)."""
        network = self._dispatcher.needs_network and not hosted.log_only
        if hosted.log_only:
            note: Phrase | None
            note = self._dispatcher.write_down(ping, phrase("selftest_ping"))
        else:
            note = await self._dispatcher.send(ping)
        if note is not None:
            hosted.say(note)
            if network or note.key == "ping_lost":
                self._sent_without_store.discard(ping.idempotency_key)
                watch_id, channels = hosted.watch.id, self._channels(hosted)
                await self._keeping.durably(
                    lambda c: self.add_pings(c, watch_id, [ping], channels=channels)
                )

    def _pings(
        self,
        outcome: Outcome,
        rows: Sequence[WaiterRow],
        seen: Elsewhere | None = None,
    ) -> list[Ping]:
        """Return the one ping of an outcome, told as to the first who waited (C5.2)."""
        if outcome.ending is Ending.REMOVED or not rows:
            return []
        first, zone = rows[0], self._clock.zone()
        mine, lang = for_waiter(outcome, first), self._lang(first.lang)
        number = first.number if seen is None else seen.waiter
        return [outcome_ping(mine, lang, zone, waiter=number)]

    def _channels(self, hosted: Hosted) -> Sequence[str]:
        return (SELFTEST,) if hosted.log_only else self._dispatcher.names

    def add_pings(
        self,
        connection: sqlite3.Connection,
        watch_id: str,
        pings: Sequence[Ping],
        seen: Elsewhere | None = None,
        channels: Sequence[str] = (),
    ) -> None:
        """Put pings into the outbox, but those that were sent without it.

        Args:
            connection: in the caller's transaction.
            watch_id: the watch that they are about.
            pings: one or more.
            seen: how the host's own watcher has told it, if it has.
            channels: the configured ones if not given.
        """
        for ping in pings:
            if ping.idempotency_key in self._sent_without_store:
                continue
            outbox.add(
                connection,
                ping,
                channels=channels or self._dispatcher.names,
                now_s=self._clock.wall().timestamp(),
                give_up_s=self._config.notify.give_up_after,
                watch_id=watch_id,
            )
            if seen is not None and seen.delivered_at is not None:
                outbox.delivered_elsewhere(
                    connection,
                    ping.idempotency_key,
                    channel=KODER,
                    at_s=seen.delivered_at,
                )

    def _lang(self, name: str) -> Lang:
        """Return a waiter's language; one that is not known hides no outcome."""
        return Lang(name) if name in set(Lang) else self._config.lang


def _to_send(pings: Sequence[Ping], seen: Elsewhere | None) -> Sequence[Ping]:
    """Return what has to be sent from here where the store cannot take it."""
    return [] if seen is not None and seen.delivered_at is not None else pings
