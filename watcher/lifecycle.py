"""What people and programs do to a watch: leave, remove, renew, acknowledge (C9.3)."""

import contextlib
import json
import sqlite3
from dataclasses import dataclass
from datetime import datetime

from policies.assess import Assessment, count_renewal, may_renew
from policies.clock import Clock
from policies.codec import instant
from policies.model import Ending, Json
from policies.wording import Phrase, phrase
from watcher import store
from watcher.config import Config
from watcher.errors import UsageError
from watcher.hosted import Hosted, Watches
from watcher.keeping import Keeping, within_patience
from watcher.recovery import Recovery
from watcher.store import WaiterRow, WatchRow
from watcher.tasks import Tasks
from watcher.telling import Telling

_REVIVABLE_S = 86400.0  # how long after its expiry a watch may be renewed


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeCycle:
    """Changes watches by somebody's will, not by what was seen."""

    config: Config
    clock: Clock
    boot_id: str
    watches: Watches
    keeping: Keeping
    telling: Telling
    recovery: Recovery
    tasks: Tasks

    async def leave(self, watch_id: str, number: int) -> bool:
        """Take a waiter out; the watch ends with its last one (C5.4)."""
        hosted = self.watches.hosted.get(watch_id)
        waiting = hosted.waiting() if hosted is not None else []
        if hosted is None or number not in {waiter.number for waiter in waiting}:
            return False
        if len(waiting) == 1:
            return await self.remove(watch_id, phrase("left"))
        hosted.decided.add(number)
        now = self.clock.wall().timestamp()

        def change(connection: sqlite3.Connection) -> None:
            store.leave(connection, watch_id, number, now)

        await self.keeping.durably(change)
        self.change_rules(hosted)
        return True

    async def remove(self, watch_id: str, why: Phrase) -> bool:
        """End a watch by a person's will; its waiters are told why."""
        hosted = self.watches.hosted.get(watch_id)
        if hosted is None:
            return False
        now, rows = self.clock.wall(), hosted.waiting()
        hosted.decided |= {waiter.number for waiter in rows}
        self.watches.retire(hosted, self.clock.boot())
        self.watches.engine.drop(watch_id)
        outcome = hosted.ended(Ending.REMOVED, now, reason=why)
        await self.telling.tell_all(hosted, outcome, rows)
        return True

    async def renew(
        self, watch_id: str, ttl_s: int, why: str | None, read: sqlite3.Connection
    ) -> None:
        """Give everybody who still waits `ttl_s` from now; revive a watch just expired.

        Raises:
            UsageError: no such watch, it ended otherwise, or the last assessment showed
                no progress and no reason is given (C9.3).
            StoreError: a watch that has expired cannot be armed again without it.
        """
        row = read.execute(
            "SELECT state, ended_at, assessment, idle_renewals FROM watches"
            " WHERE id = ?",
            (watch_id,),
        ).fetchone()
        hosted = self.watches.hosted.get(watch_id)
        if row is None and hosted is None:
            raise UsageError(phrase("no_watch", id=watch_id))
        last = _assessment(row["assessment"]) if row is not None else None
        refusal = may_renew(last, why)
        if refusal is not None:
            raise UsageError(refusal)
        idle = count_renewal(
            last,
            row["idle_renewals"] if row is not None else 0,
            renewed_at=_renewed_at(read, watch_id),
        )
        if hosted is None:
            hosted = await self._revived(watch_id, row, ttl_s, read)
        now, now_s = self.clock.wall().timestamp(), self.clock.boot()
        waiters = hosted.waiting()
        for waiter in waiters:
            waiter.deadline_at, waiter.deadline_boot_s = now + ttl_s, now_s + ttl_s
            waiter.boot_id = self.boot_id
            waiter.ttl_s = max(round(now + ttl_s - waiter.armed_at), 1)
        hosted.renewals += 1
        self.change_rules(hosted)  # before the store: it must not expire meanwhile

        def change(connection: sqlite3.Connection) -> None:
            store.move_deadlines(connection, watch_id, waiters, idle_renewals=idle)
            detail: Json = {"ttl_s": ttl_s, "why": why}
            store.add_trail(connection, watch_id, now, "renewed", detail)

        await self.keeping.durably(change)
        hosted.news()
        self.watches.happened("renewed", watch_id)

    async def acknowledge(self, watch_id: str) -> None:
        """Mark the outcomes of a watch as read.

        Raises:
            StoreError: that cannot be stored.
        """
        now = self.clock.wall().timestamp()
        await self.keeping.firmly(lambda c: store.acknowledge(c, watch_id, now))

    def change_rules(self, hosted: Hosted) -> None:
        """Let the nearest deadline of a watch count, unless it has ended meanwhile."""
        if hosted.waiting():
            rules = hosted.rules(self.config.cadence.settle)
            self.watches.engine.change_rules(hosted.watch.id, rules)

    async def _revived(
        self, watch_id: str, row: sqlite3.Row, ttl_s: int, read: sqlite3.Connection
    ) -> Hosted:
        """Arm an expired watch again; for the ping, since no command waits.

        Whenever the store takes it, it is hosted, even when nobody waits so long.

        Raises:
            UsageError: it cannot be.
            StoreError: the store does not take it, or not yet.
        """
        now = self.clock.wall().timestamp()
        old = row["state"] != "expired" or row["ended_at"] < now - _REVIVABLE_S
        last = read.execute(
            "SELECT * FROM waiters WHERE watch_id = ? ORDER BY number DESC LIMIT 1",
            (watch_id,),
        ).fetchone()
        if old or last is None:
            raise UsageError(phrase("not_renewable", id=watch_id, state=row["state"]))
        waiter = WaiterRow(
            number=last["number"] + 1,
            label=store.from_text(last["label"]),
            resume=last["resume"] and store.from_text(last["resume"]),
            session=last["session"],
            lang=last["lang"],
            ttl_s=ttl_s,
            armed_at=now,
            deadline_at=now + ttl_s,
            deadline_boot_s=self.clock.boot() + ttl_s,
            boot_id=self.boot_id,
            takes=False,
            nonce=None,
        )
        reviving = self.tasks.start(self._revive(watch_id, waiter))
        return await within_patience(reviving)

    async def _revive(self, watch_id: str, waiter: WaiterRow) -> Hosted:
        def change(connection: sqlite3.Connection) -> WatchRow:
            try:
                if not store.revive(connection, watch_id):
                    raise UsageError(phrase("no_watch", id=watch_id))
            except sqlite3.IntegrityError as error:
                raise UsageError(phrase("watched_anew", id=watch_id)) from error
            store.insert_waiter(connection, watch_id, waiter)
            return next(
                r for r, _ in store.armed_watches(connection) if r.id == watch_id
            )

        row = await self.keeping.patiently(change)
        hosted = self.recovery.watch_of(row, [waiter], waiter.number)
        self.watches.host(hosted)
        return hosted


def _assessment(text: str | None) -> Assessment | None:
    """Return the last assessment; one that cannot be read is none."""
    with contextlib.suppress(ValueError, TypeError):
        return Assessment.from_record(json.loads(text)) if text else None
    return None


def _renewed_at(read: sqlite3.Connection, watch_id: str) -> datetime | None:
    row = read.execute(
        "SELECT max(at) AS at FROM trail WHERE watch_id = ? AND event = 'renewed'",
        (watch_id,),
    ).fetchone()
    return instant(row["at"]) if row["at"] is not None else None
