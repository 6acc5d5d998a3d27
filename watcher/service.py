"""The watches of one state directory: armed, joined, looked at, told, followed.

Everything that a command asks of the service is a method here or of the life cycle; the
socket only carries it. An outcome and its pings are one transaction; nothing is said
before it (C5, C6).
"""

import asyncio
import json
import logging
import sqlite3
from collections.abc import Callable
from typing import cast

from notify.dispatcher import Dispatcher
from policies.clock import Clock
from policies.codec import outcome_of
from policies.model import Ending, Json, Observation, Outcome, Sight
from policies.verdict import Rules
from policies.wording import Lang, Phrase, phrase
from watcher import store
from watcher.arming import Arming
from watcher.circling import Circling
from watcher.conditions.lock import LockCondition
from watcher.config import Config
from watcher.detaching import Detaching
from watcher.engine import Engine, Listener, Watch
from watcher.hosted import Hosted, News, Order, Watches, session_of
from watcher.keeping import PATIENCE_S, Keeping
from watcher.lifecycle import LifeCycle
from watcher.metrics import Metrics
from watcher.ownership import Ownership
from watcher.recovery import Recovery
from watcher.sightings import Sightings
from watcher.store import WaiterRow
from watcher.taking import Taking, granted
from watcher.tasks import Tasks
from watcher.telling import Telling
from watcher.transport import Hosts
from watcher.waking import Waking

_log = logging.getLogger(__name__)

_KEPT_S = 600.0  # how long a told outcome stays in memory for a command that asks


class Service(Listener):
    """Hosts watches over one store."""

    def __init__(
        self,
        *,
        config: Config,
        clock: Clock,
        ownership: Ownership,
        dispatcher: Dispatcher,
        boot_id: str,
        hosts: Hosts | None = None,
    ) -> None:
        """Host nothing yet; `recover` takes up what is armed in the store."""
        self.config = config
        self.clock = clock
        self.engine = Engine(clock=clock, listener=self)
        self.stopping = asyncio.Event()
        self.metrics = metrics = Metrics(clock)
        dispatcher.after_attempt = metrics.attempted
        self._ownership = ownership
        self._tasks = tasks = Tasks()
        self._watches = watches = Watches(self.engine)
        self._keeping = keeping = Keeping(ownership, tasks)
        keeping.lost = self.stop
        self.telling = telling = Telling(
            config=config,
            clock=clock,
            keeping=keeping,
            dispatcher=dispatcher,
            tasks=tasks,
        )
        telling.after_told = self._told
        self._hosts = hosts
        self._recovery = Recovery(
            config=config, clock=clock, boot_id=boot_id, hosts=hosts
        )
        self.life = LifeCycle(
            config=config,
            clock=clock,
            boot_id=boot_id,
            watches=watches,
            keeping=keeping,
            telling=telling,
            recovery=self._recovery,
            tasks=tasks,
        )
        self.detaching = Detaching(
            config=config,
            clock=clock,
            watches=watches,
            keeping=keeping,
            telling=telling,
            tasks=tasks,
            hosts=hosts,
        )
        self.detaching.change_rules = self.life.change_rules
        self._circling = Circling(
            clock=clock, lang=config.lang, telling=telling, tasks=tasks
        )
        self._taking = Taking(clock=clock)
        self._sightings = sightings = Sightings(
            clock=clock, watches=watches, keeping=keeping, tasks=tasks
        )
        self.waking = Waking(
            config=config,
            clock=clock,
            keeping=keeping,
            tasks=tasks,
            add_pings=telling.add_pings,
        )
        self._arming = Arming(
            config=config,
            clock=clock,
            boot_id=boot_id,
            watches=watches,
            keeping=keeping,
            sightings=sightings,
            circling=self._circling,
            hosts=hosts,
        )

    async def arm(self, order: Order) -> tuple[str, int, bool]:
        """Arm a watch, or join the one of the same condition (C5.2).

        Returns:
            The watch's id, the waiter's number in it, and whether the watch is new.

        Raises:
            UsageError: it cannot be watched at all, or not by its host itself.
            LostError: somebody else is the owner now.
        """
        if order.detach:
            await self.detaching.check(order.target)
        return await self._arming.arm(order)

    @property
    def armed_count(self) -> int:
        """How many watches are hosted."""
        return len(self._watches.hosted)

    @property
    def hosts(self) -> Hosts | None:
        """How other machines are reached."""
        return self._hosts

    def at_hand(self, watch_id: str) -> Hosted | None:
        """Return a watch that is hosted, or was until a short while ago."""
        return self._watches.at_hand(watch_id)

    def tell_events(self, happened: Callable[[str, str], object]) -> None:
        """Have every change of a watch told, by its name and the watch's id."""
        self._watches.happened = happened
        self.telling.after_end = happened

    @property
    def degraded(self) -> Phrase | None:
        """Why the store does not take what is to be kept, if it does not."""
        return self._keeping.degraded

    def known(self, prefix: str) -> list[str]:
        """Return the ids at hand that begin so, in the store or not."""
        return self._watches.ids(prefix)

    async def recover(self, read: sqlite3.Connection) -> None:
        """Take up every armed watch of the store with its original deadline (C5.3)."""
        self._arming.read = read
        await self._ownership.claim()
        for row, waiters in store.armed_watches(read):
            last = store.last_number(read, row.id)
            self._watches.host(self._recovery.watch_of(row, waiters, last))
        await self.detaching.recover(read)

    @property
    def set_aside(self) -> Phrase | None:
        """A store that could not be used, said to the first command that arms."""
        return self._arming.set_aside

    @set_aside.setter
    def set_aside(self, note: Phrase | None) -> None:
        self._arming.set_aside = note

    def warn(self, note: Phrase) -> None:
        """Tell every command that waits what concerns all of them."""
        _log.warning(note.key, extra={"sentence": note.render(Lang.EN)})
        for hosted in self._watches.hosted.values():
            hosted.say(note)

    # -- what the engine tells --------------------------------------------------

    def armed(self, watch: Watch, observation: Observation) -> None:
        """Let the command that armed it say so."""
        hosted = self._watches.hosted.get(watch.id)
        if hosted is None:
            return
        if observation.absent and watch.rules.start_within_s:
            within = f"{watch.rules.start_within_s:.0f}s"
            hosted.notes.append(phrase("start_awaited", start_within=within))
        hosted.looked = True
        hosted.news()

    def saw(self, watch: Watch, observation: Observation) -> None:
        """Remember to store what is new: what is held as before is stored in rounds."""
        self.detaching.saw(watch, observation)
        hosted = self._watches.hosted.get(watch.id)
        if hosted is None or hosted.saved == (observation.sight, observation.memory):
            return
        before = hosted.saved
        hosted.saved = (observation.sight, observation.memory)
        waiter = granted(hosted, observation.memory)
        if waiter is not None:
            self._grant(hosted, waiter, observation)
        if watch.id in self._watches.hosted:
            self._sightings.add(watch.id, observation)
        known = session_of(before[1]) if before is not None else None
        if session_of(observation.memory) != known:
            self._look_for_circles()

    def looked(self, watch: Watch, sight: Sight, unknown_s: float) -> None:
        """Count a look."""
        self.metrics.looked(watch, sight, unknown_s)

    def hung(self, watch: Watch) -> None:
        """Count a look that did not come back."""
        self.metrics.hung(watch)

    def noted(self, watch: Watch, note: Phrase) -> None:
        """Hand a note to the commands that wait."""
        hosted = self._watches.hosted.get(watch.id)
        if hosted is not None:
            hosted.say(note)

    async def ended(self, watch: Watch, outcome: Outcome) -> Rules | None:
        """Tell whoever is due; the watch goes on for those who wait longer.

        1. At a deadline only the waiters whose own it is are told, and not before a
           host out of reach that watches by itself has had time to answer.
        2. With `--take` the first who asked for the lock gets it, and only he is told.
        3. Else all are.
        """
        hosted = self._watches.hosted.get(watch.id)
        if hosted is None:
            return None
        if outcome.out_of_reach:
            rules = self.detaching.grace(hosted)
            if rules is not None:
                return rules
        elif await self.detaching.heard(hosted):
            return None
        due = hosted.waiting()
        condition = watch.condition
        if outcome.ending is Ending.EXPIRED:
            now_s = self.clock.boot()
            due = [waiter for waiter in due if waiter.deadline_boot_s <= now_s]
        elif outcome.ending is Ending.RELEASED and isinstance(condition, LockCondition):
            taken = await self._taking.take(hosted, condition.path, outcome)
            if watch.id not in self._watches.hosted:  # removed meanwhile
                return None
            # Who came or left while the lock was being made counts.
            due, outcome = taken or (hosted.waiting(), outcome)
        hosted.decided |= {waiter.number for waiter in due}
        if not hosted.waiting():
            self._retire(hosted)
            self._tasks.spawn(self.telling.tell_all(hosted, outcome, due))
            return None
        if due:
            self._tasks.spawn(self.telling.tell_some(hosted, outcome, due))
        return hosted.rules(self.config.cadence.settle)

    def _grant(
        self, hosted: Hosted, waiter: WaiterRow, observation: Observation
    ) -> None:
        """Tell a waiter that the lock was taken for it before a restart."""
        outcome = hosted.ended(
            Ending.RELEASED, self.clock.wall(), evidence=observation.evidence
        )
        hosted.decided.add(waiter.number)
        if hosted.waiting():
            self._tasks.spawn(self.telling.tell_some(hosted, outcome, [waiter]))
            self.life.change_rules(hosted)
            return
        self._retire(hosted)
        self.engine.drop(hosted.watch.id)
        self._tasks.spawn(self.telling.tell_all(hosted, outcome, [waiter]))

    def _told(self, outcome: Outcome) -> None:
        self.metrics.told(outcome)
        extra = {"watch_id": outcome.watch_id, "outcome": outcome.ending.value}
        _log.info("outcome.told", extra=extra)

    def _retire(self, hosted: Hosted) -> None:
        self._watches.retire(hosted, self.clock.boot())

    def _look_for_circles(self) -> None:
        self._circling.look(self._watches.hosted.values())

    # -- following ----------------------------------------------------------------

    async def follow(
        self,
        watch_id: str,
        number: int,
        *,
        after: int,
        wait_s: float,
        read: sqlite3.Connection | None,
        knows_waiting: bool = True,
    ) -> News | None:
        """Return what is new for a waiter, as soon as anything is, or after `wait_s`.

        Args:
            watch_id: of the watch.
            number: of the waiter in it.
            after: how many notes it has had already.
            wait_s: how long to wait for anything new.
            read: for outcomes that are no longer in memory.
            knows_waiting: False where it is news already that the watch waits.

        Returns:
            None when there is no such waiter.
        """
        try:
            async with asyncio.timeout(wait_s):
                while True:
                    hosted = self._watches.at_hand(watch_id)
                    news = _news(hosted, number, after)
                    if hosted is None or news is None:
                        return _stored_news(watch_id, number, read)
                    if news.outcome or news.notes or self.stopping.is_set():
                        return news
                    if news.waiting and not knows_waiting:
                        return news
                    await hosted.changed()
        except TimeoutError:
            news = _news(self._watches.at_hand(watch_id), number, after)
            return news or _stored_news(watch_id, number, read)

    # -- rounds -------------------------------------------------------------------

    async def save_all(self) -> None:
        """Store when each watch was last looked at; a round of every minute."""
        await self._sightings.save_all()

    def forget_told(self) -> None:
        """Let outcomes go that every command has had time to ask for."""
        self._watches.forget(self.clock.boot() - _KEPT_S)
        self._arming.forget()

    def stop(self) -> None:
        """Let everybody who follows know that it is over here."""
        self.stopping.set()
        self._watches.wake_all()

    async def close(self) -> None:
        """Store what is new and let every watch go; they stay armed in the store."""
        self.stop()
        try:
            await self.save_all()
        finally:
            self.engine.close()
            self._arming.close()
            await self._tasks.close(PATIENCE_S)
            if self._hosts is not None:
                await self._hosts.close()


def _news(hosted: Hosted | None, number: int, after: int) -> News | None:
    """Return what a waiter of a watch at hand does not know yet."""
    if hosted is None or number not in hosted.waiters:
        return None
    return News(
        waiting=hosted.watch.waiting,
        notes=hosted.notes[after:],
        deadline_at=hosted.waiters[number].deadline_at + hosted.grace_s,
        outcome=hosted.told.get(number),
    )


def _stored_news(
    watch_id: str, number: int, read: sqlite3.Connection | None
) -> News | None:
    """Return the outcome that the store has for a waiter."""
    if read is None:
        return None
    row = read.execute(
        "SELECT outcome FROM waiters WHERE watch_id = ? AND number = ?",
        (watch_id, number),
    ).fetchone()
    if row is None or row["outcome"] is None:
        return None
    outcome = outcome_of(cast("dict[str, Json]", json.loads(row["outcome"])))
    return News(waiting=False, notes=(), deadline_at=None, outcome=outcome)
