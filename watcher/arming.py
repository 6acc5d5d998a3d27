"""Arms watches and lets commands join them: one watch a condition (C5.2)."""

import asyncio
import contextlib
import os
import sqlite3
from typing import cast

from policies.cadence import cadence
from policies.clock import Clock
from policies.model import Memory, Target
from policies.verdict import Rules
from policies.wording import Phrase
from watcher import inbox, store
from watcher.app import key_problem
from watcher.circling import Circling
from watcher.conditions import Condition, LocalCondition, Place
from watcher.config import Config
from watcher.engine import Watch
from watcher.errors import UsageError
from watcher.hosted import Hosted, Order, Watches
from watcher.keeping import Keeping
from watcher.offload import HungError, Worker
from watcher.sightings import Sightings
from watcher.store import WaiterRow, WatchRow
from watcher.targets import condition_of
from watcher.transport import Hosts

_FIRST_LOOK_S = 1.0  # an arming command is answered by then, seen or not


class Arming:
    """Takes the orders of commands."""

    def __init__(
        self,
        *,
        config: Config,
        clock: Clock,
        boot_id: str,
        watches: Watches,
        keeping: Keeping,
        sightings: Sightings,
        circling: Circling,
        hosts: Hosts | None,
    ) -> None:
        """Arm nothing yet."""
        self.set_aside: Phrase | None = None
        """A store that could not be used, said to the first command that arms."""
        self.read: sqlite3.Connection | None = None
        """Where to find what a command asked of a service before this one."""
        self._config = config
        self._clock = clock
        self._boot_id = boot_id
        self._watches = watches
        self._keeping = keeping
        self._sightings = sightings
        self._circling = circling
        self._hosts = hosts
        self._one_by_one = asyncio.Lock()
        self._refusals = Worker("refusal")
        self._asked: dict[str, tuple[str, int]] = {}
        self._key_problem = key_problem(config)

    async def arm(self, order: Order) -> tuple[str, int, bool]:
        """Arm a watch, or join the one of the same condition (C5.2).

        It is stored, and its first look taken where that is quick, before this returns.

        Returns:
            The watch's id, the waiter's number in it, and whether the watch is new.

        Raises:
            UsageError: it cannot be watched at all.
            LostError: somebody else is the owner now.
        """
        place = Place(
            config=self._config,
            cwd="/",
            launcher=order.launcher,
            clock=self._clock,
            hosts=self._hosts,
        )
        condition = condition_of(order.target, place)
        await self._reach_host(condition)
        async with self._one_by_one:
            asked = self._asked_before(order.nonce)
            if asked is not None:
                condition.close()
                return (*asked, True)
            hosted = self._watches.of_target(condition.target.text)
            if hosted is not None:
                condition.close()
                return hosted.watch.id, await self._join(hosted, order), False
            hosted = await self._arm_new(condition, order)
        await self._first_look(hosted)
        return hosted.watch.id, 1, True

    def forget(self) -> None:
        """Forget who asked for what is no longer at hand: the store knows it."""
        self._asked = {
            nonce: asked
            for nonce, asked in self._asked.items()
            if self._watches.at_hand(asked[0]) is not None
        }

    def close(self) -> None:
        """Let the thread end."""
        self._refusals.close()

    async def _arm_new(self, condition: Condition, order: Order) -> Hosted:
        if condition.looker() is None:
            refusal = await self._refusal(cast("LocalCondition", condition))
            if refusal is not None:
                condition.close()
                raise UsageError(refusal)
        every_s = self._every_s(order.every_s, condition.target)
        watch_id = os.urandom(6).hex()
        waiter = self._waiter(1, order, condition.target.label)
        memory: Memory = {"awaits_start": True} if order.start_within_s else {}
        watch = Watch(
            id=watch_id,
            condition=condition,
            rules=Rules(armed_s=0, deadline_s=0, settle_s=0),
            every_s=every_s,
            ttl_s=order.ttl_s,
            label=waiter.label,
            armed_at=self._clock.wall(),
            armed_awake_s=self._clock.awake(),
            memory=memory,
        )
        hosted = Hosted(watch=watch, waiters={1: waiter}, last_number=1)
        hosted.log_only = order.log_only
        for note in (self.set_aside, self._key_problem):
            if note is not None:
                hosted.notes.append(note)
        self.set_aside = None
        watch.rules = hosted.rules(
            self._config.cadence.settle,
            armed_s=self._clock.boot(),
            start_within_s=order.start_within_s,
        )
        row = WatchRow(
            id=watch_id,
            target=condition.target.text,
            kind=condition.target.kind,
            label=waiter.label,
            host=condition.target.host,
            armed_at=waiter.armed_at,
            deadline_at=waiter.deadline_at,
            every_s=every_s,
            ttl_s=order.ttl_s,
            start_within_s=order.start_within_s,
            looks=0,
            unknown_s=0,
            renewals=0,
            memory=memory,
        )

        def insert(connection: sqlite3.Connection) -> None:
            store.insert_watch(connection, row)
            self._insert_waiter(connection, watch_id, waiter)

        try:
            await self._keeping.durably(insert)
        except BaseException:
            condition.close()
            raise
        self._note_asked(waiter, watch_id)
        self._watches.host(hosted)
        self._watches.happened("armed", watch_id)
        return hosted

    @staticmethod
    def _insert_waiter(
        connection: sqlite3.Connection, watch_id: str, waiter: WaiterRow
    ) -> None:
        """Store a waiter; its session has seen what it was told before (C9.4)."""
        store.insert_waiter(connection, watch_id, waiter)
        if waiter.session is not None:
            inbox.sign_of_life(connection, waiter.session, waiter.armed_at)

    def _note_asked(self, waiter: WaiterRow, watch_id: str) -> None:
        """Remember who asked, even where the store cannot take it just now."""
        if waiter.nonce is not None:
            self._asked[waiter.nonce] = (watch_id, waiter.number)

    async def _reach_host(self, condition: Condition) -> None:
        """Reach for a host first, which may take long: other commands do not wait.

        Raises:
            UsageError: it can never be used as it stands.
        """
        looker = condition.looker()
        if looker is None or self._watches.of_target(condition.target.text):
            return
        refusal = await looker.refusal(condition)
        looker.close()
        if refusal is not None:
            condition.close()
            raise UsageError(refusal)

    def _every_s(self, asked_s: int | None, target: Target) -> int:
        """Return how often to look, never below the floor (C4.1)."""
        times = self._config.cadence
        far = target.far
        return cadence(
            asked_s=asked_s,
            default_s=int(times.remote if far else times.local),
            floor_s=int(times.floor_remote if far else times.floor_local),
        ).every_s

    async def _refusal(self, condition: LocalCondition) -> Phrase | None:
        if self._refusals.hung:  # on a dead mount; the next one gets another thread
            self._refusals.close()
            self._refusals = Worker("refusal")
        try:
            async with asyncio.timeout(_FIRST_LOOK_S):
                return await self._refusals.call(condition.refusal)
        except (TimeoutError, HungError):
            return None  # the first look will hang likewise, and be unknown

    async def _join(self, hosted: Hosted, order: Order) -> int:
        """Let one more command wait for the same, with a deadline of its own."""
        number = hosted.last_number = hosted.last_number + 1
        watch = hosted.watch
        waiter = self._waiter(number, order, watch.condition.target.label)
        hosted.waiters[number] = waiter
        hosted.log_only = hosted.log_only and order.log_only
        self._note_asked(waiter, watch.id)
        watch.condition.joined(order.launcher)
        within_s = watch.rules.start_within_s
        if order.start_within_s:
            waited_s = self._clock.boot() - watch.rules.armed_s
            within_s = max(within_s, waited_s + order.start_within_s)
        await self._keeping.durably(lambda c: self._insert_waiter(c, watch.id, waiter))
        self._circling.look(self._watches.hosted.values())
        if hosted.waiting():
            rules = hosted.rules(self._config.cadence.settle, start_within_s=within_s)
            self._watches.engine.change_rules(watch.id, rules)
        return number

    async def _first_look(self, hosted: Hosted) -> None:
        """Wait for the first look, and for what it must never forget to be stored."""
        try:
            async with asyncio.timeout(_FIRST_LOOK_S):
                while not hosted.looked:
                    await hosted.changed()
        except TimeoutError:
            return
        await self._sightings.save()

    def _waiter(self, number: int, order: Order, default_label: str) -> WaiterRow:
        now = self._clock.wall().timestamp()
        return WaiterRow(
            number=number,
            label=order.label or default_label,
            resume=order.resume,
            session=order.session,
            lang=order.lang,
            ttl_s=order.ttl_s,
            armed_at=now,
            deadline_at=now + order.ttl_s,
            deadline_boot_s=self._clock.boot() + order.ttl_s,
            boot_id=self._boot_id,
            takes=order.takes,
            nonce=order.nonce,
            project=order.project,
        )

    def _asked_before(self, nonce: str | None) -> tuple[str, int] | None:
        """Find the waiter of a command whose first question got no answer."""
        if nonce is None:
            return None
        asked = self._asked.get(nonce)
        if asked is None and self.read is not None:
            with contextlib.suppress(sqlite3.Error):
                asked = store.find_waiter(self.read, nonce)
        return asked
