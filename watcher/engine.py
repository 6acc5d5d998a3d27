"""Looks, waits, and says how watches ended.

One engine for any number of watches. Those that are due are looked at in groups, a
thread or a host each, so that ten thousand locks of a directory cost one hand-over and
a directory that hangs holds no other up. A hint says "look now"; the timer is the
truth.
"""

import asyncio
import heapq
import logging
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from policies.cadence import next_look
from policies.clock import Clock
from policies.lines import cleared_ending
from policies.model import Ending, Memory, Observation, Outcome, Sight
from policies.verdict import Decision, Progress, Rules, Verdict, decide
from policies.wording import Phrase, phrase
from watcher.conditions import Condition, Hint, Look, Looker
from watcher.hints import Hints
from watcher.looking import OnThread, given_up
from watcher.offload import HungError

_log = logging.getLogger(__name__)

LOOK_LIMIT_S = 10.0
"""A look that takes longer has seen nothing."""

_MOST_AT_ONCE = 512  # looks that one hand-over to a thread takes


@dataclass(slots=True, kw_only=True)
class Watch:
    """One armed wait; `Rules` and every `_s` instant are seconds of `Clock.boot`."""

    id: str
    condition: Condition
    rules: Rules
    every_s: float
    ttl_s: int
    label: str
    armed_at: datetime
    armed_awake_s: float
    resume: str | None = None
    session: str | None = None
    progress: Progress = field(default_factory=Progress)
    memory: Memory = field(default_factory=dict)
    group: str = ""
    blind: bool = False
    """The latest look could not see it."""
    last_look_s: float = 0.0
    looks: int = 0
    unknown_s: float = 0.0
    due_s: float = 0.0
    looking: bool = False
    hinted: bool = False
    waiting: bool = False
    """It was not clear at arming."""
    told: set[str] | None = None


class Listener:
    """Is told what a person or a program should know. Every method may be left out."""

    def armed(self, watch: Watch, observation: Observation) -> None:
        """It waits: the first look did not end it."""

    def saw(self, watch: Watch, observation: Observation) -> None:
        """A whole look was taken; a quick one that changed nothing is not told."""

    def looked(self, watch: Watch, sight: Sight, unknown_s: float) -> None:
        """A look was taken, a quick one too; so long before it nothing was seen."""

    def hung(self, watch: Watch) -> None:
        """A look did not come back in time."""

    def noted(self, watch: Watch, note: Phrase) -> None:
        """Something that a person must know; each sentence once a watch."""

    async def ended(self, watch: Watch, outcome: Outcome) -> Rules | None:  # noqa: ARG002
        """It ended; new rules let it go on instead, for those who wait longer."""
        return None


class _Group:
    """The watches that are looked at together, and those of them that are due."""

    def __init__(self, name: str, looker: Looker) -> None:
        self.name = name
        self.looker = looker
        self.due: list[Watch] = []
        self.busy = False
        self.size = 0


class Engine:
    """Hosts watches. Nothing in it knows signals, stores or the network."""

    def __init__(self, *, clock: Clock, listener: Listener) -> None:
        """Host nothing yet; `use_hints` may follow."""
        self._clock = clock
        self._listener = listener
        self._hints: Hints | None = None
        self._watches: dict[str, Watch] = {}
        self._groups: dict[str, _Group] = {}
        self._due: list[tuple[float, str]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._unfollowed: dict[str, Sequence[Hint]] = {}
        self._following = False
        self._wake = asyncio.Event()

    def use_hints(self, hints: Hints) -> None:
        """Let hints wake watches early; they are closed with the engine."""
        self._hints = hints

    def arm(self, watch: Watch) -> None:
        """Host a watch from now on; its first look is due at once."""
        self._watches[watch.id] = watch
        self._enter_group(watch)
        self._set_due(watch, self._clock.boot())

    def change_rules(self, watch_id: str, rules: Rules) -> None:
        """Move the deadline of a watch, which is looked at anew at once."""
        watch = self._watches.get(watch_id)
        if watch is not None:
            watch.rules = rules
            self.look_now(watch_id)

    def look_now(self, watch_id: str) -> None:
        """Take a hint: look at once, or again once the look under way is back.

        A release that must settle is not hurried: its second look has its own time.
        """
        watch = self._watches.get(watch_id)
        if watch is None:
            return
        watch.hinted = True
        if not watch.looking and watch.progress.candidate_s is None:
            self._set_due(watch, self._clock.boot())

    def drop(self, watch_id: str) -> None:
        """Stop hosting a watch."""
        watch = self._watches.pop(watch_id, None)
        if watch is None:
            return
        if self._hints is not None:
            self._hints.drop(watch_id)
        self._groups[watch.group].looker.later(watch.condition.close)
        self._leave_group(watch)

    def hosted(self) -> Sequence[Watch]:
        """Return the watches hosted now."""
        return list(self._watches.values())

    def close(self) -> None:
        """Stop all looks and let every watch go."""
        for task in self._tasks:
            task.cancel()
        self._unfollowed.clear()
        for watch_id in list(self._watches):
            self.drop(watch_id)
        if self._hints is not None:
            self._hints.close()

    def next_due_s(self) -> float | None:
        """Return when the next look is due, None when none is."""
        while self._due:
            due_s, watch_id = self._due[0]
            watch = self._watches.get(watch_id)
            if watch is not None and not watch.looking and watch.due_s == due_s:
                return due_s
            heapq.heappop(self._due)  # dropped, or due at another time by now
        return None

    def step(self) -> None:
        """Start all looks that are due; needs a running event loop."""
        self._wake.clear()
        now_s = self._clock.boot()
        touched: set[str] = set()
        while (due_s := self.next_due_s()) is not None and due_s <= now_s:
            watch = self._watches[heapq.heappop(self._due)[1]]
            watch.looking = True
            self._groups[watch.group].due.append(watch)
            touched.add(watch.group)
        for name in touched:
            self._look_at(self._groups[name])

    async def run(self, stop: asyncio.Event) -> None:
        """Look until told to stop; then let go of what is still armed."""
        stopping = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set():
                self.step()
                await self._pause(stopping)
        finally:
            stopping.cancel()
            self.close()

    async def changed(self) -> None:
        """Return when something became due earlier than it was, or may have."""
        await self._wake.wait()

    async def _pause(self, stopping: "asyncio.Task[Literal[True]]") -> None:
        waits: list[asyncio.Task[object]] = [asyncio.ensure_future(self._wake.wait())]
        due_s = self.next_due_s()
        if due_s is not None:
            left_s = max(due_s - self._clock.boot(), 0.0)
            waits.append(asyncio.ensure_future(self._clock.sleep(left_s)))
        await asyncio.wait({*waits, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    def _enter_group(self, watch: Watch) -> None:
        name = watch.group = watch.condition.group
        if name not in self._groups:
            looker = watch.condition.looker() or OnThread(f"look {name}")
            self._groups[name] = _Group(name, looker)
        self._groups[name].size += 1

    def _leave_group(self, watch: Watch) -> None:
        group = self._groups[watch.group]
        group.size -= 1
        if not group.size:
            del self._groups[watch.group]
            group.looker.close()

    def _set_due(self, watch: Watch, due_s: float) -> None:
        watch.due_s = due_s
        heapq.heappush(self._due, (due_s, watch.id))
        self._wake.set()

    def _look_at(self, group: _Group) -> None:
        if group.busy or not group.due:
            return
        group.busy = True
        self._begin(self._look(group))

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)  # which nobody else holds: it might be collected
        task.add_done_callback(self._tasks.discard)

    async def _look(self, group: _Group) -> None:
        """Look at what is due in a group, until nothing is."""
        try:
            while group.due:
                batch = [w for w in group.due[:_MOST_AT_ONCE] if self._hosts(w)]
                del group.due[:_MOST_AT_ONCE]
                if not batch:  # all were dropped meanwhile, and are closed
                    continue
                at = self._clock.wall()
                seen = await self._take_looks(group, batch, at)
                for watch, observation in zip(batch, seen, strict=True):
                    try:
                        await self._observed(watch, observation)
                    except Exception:  # noqa: BLE001 - one must not stop another
                        _log.exception("look.failed", extra={"watch_id": watch.id})
                        self._try_again(watch)
        finally:
            group.busy = False

    async def _take_looks(
        self, group: _Group, batch: Sequence[Watch], at: datetime
    ) -> Sequence[Observation | None]:
        """Return what was seen, None for what is held as before (C3.1).

        The limit never goes far past the nearest deadline; what hangs is unknown.
        """
        now_s = self._clock.boot()
        deadline_s = min(watch.rules.deadline_s for watch in batch)
        limit_s = min(deadline_s - now_s, LOOK_LIMIT_S)
        looks = [
            Look(
                watch.condition,
                watch.memory,
                quick=_may_be_quick(watch, now_s),
                last=now_s >= watch.rules.deadline_s,
            )
            for watch in batch
        ]
        for watch in batch:
            watch.hinted = False
        try:
            async with asyncio.timeout(max(limit_s, group.looker.last_limit_s)):
                return await group.looker.take(looks, at)
        except (TimeoutError, HungError):
            for watch in batch:
                self._listener.hung(watch)
            return [given_up(look, at) for look in looks]

    def _hosts(self, watch: Watch) -> bool:
        return self._watches.get(watch.id) is watch

    def _try_again(self, watch: Watch) -> None:
        """Set the next look of a watch whose last one could not be dealt with."""
        now_s, deadline_s = self._clock.boot(), watch.rules.deadline_s
        due_s = now_s + watch.every_s
        self._set_due(watch, min(due_s, deadline_s) if deadline_s > now_s else due_s)

    async def _observed(self, watch: Watch, observation: Observation | None) -> None:
        """Do what follows from one look.

        1. Count it and say what a person must know.
        2. End the watch, or set its next look.
        3. Follow the hints that this look brought; what changed before they were in
           place is seen by one more look.
        """
        now_s = self._clock.boot()
        watch.looking = False
        if not self._hosts(watch):
            return
        if observation is None and now_s < watch.rules.deadline_s:
            self._count(watch, now_s, Sight.HELD, blind=False)
            self._wait_on(watch, now_s, overdue_s=None, again_in_s=None)
            return
        if observation is None:  # the deadline came meanwhile: it wants a whole look
            watch.hinted = True
            self._set_due(watch, now_s)
            return
        if watch.condition.group != watch.group:  # it gave up a thread that hangs
            self._leave_group(watch)
            self._enter_group(watch)
        self._count(watch, now_s, observation.sight, blind=_is_blind(observation))
        watch.memory = observation.memory
        decision = decide(watch.rules, watch.progress, observation, now_s=now_s)
        watch.progress = decision.progress
        self._tell(watch, observation)
        self._listener.saw(watch, observation)
        if decision.verdict is Verdict.WAIT:
            self._wait(watch, observation, now_s)
        elif decision.verdict is Verdict.LOOK_AGAIN:
            self._set_due(watch, now_s + decision.again_in_s)
        else:
            await self._end(watch, self._outcome(watch, decision, observation, now_s))

    async def _end(self, watch: Watch, outcome: Outcome) -> None:
        rules = await self._listener.ended(watch, outcome)
        if rules is None:
            self.drop(watch.id)
            return
        watch.rules = rules
        watch.progress = replace(watch.progress, candidate_s=None, ever_blocked=True)
        self._set_due(watch, min(rules.deadline_s, self._clock.boot() + watch.every_s))

    def _count(self, watch: Watch, now_s: float, sight: Sight, *, blind: bool) -> None:
        unknown_s = now_s - watch.last_look_s if watch.blind else 0.0
        watch.unknown_s += unknown_s
        watch.blind = blind
        watch.last_look_s = now_s
        watch.looks += 1
        self._listener.looked(watch, sight, unknown_s)

    def _tell(self, watch: Watch, observation: Observation) -> None:
        """Say what a person must know, each sentence once a watch."""
        notes = list(observation.notes)
        if watch.blind and observation.reason is not None:
            label, reason = watch.condition.target.label, observation.reason
            notes.append(phrase("cannot_see", label=label, reason=reason))
        for note in notes:
            watch.told = watch.told or set()
            if repr(note) not in watch.told:
                watch.told.add(repr(note))
                self._listener.noted(watch, note)

    def _wait(self, watch: Watch, observation: Observation, now_s: float) -> None:
        overdue_s = None
        if observation.absent and not watch.progress.ever_seen:
            overdue_s = watch.rules.armed_s + watch.rules.start_within_s
        if not watch.waiting:
            watch.waiting = True
            self._listener.armed(watch, observation)
        again_in_s = observation.again_in_s
        self._wait_on(watch, now_s, overdue_s=overdue_s, again_in_s=again_in_s)
        if self._hints is None or watch.blind:
            return
        self._unfollowed[watch.id] = watch.condition.hints()
        if not self._following:
            self._following = True
            self._begin(self._follow(self._hints))

    async def _follow(self, hints: Hints) -> None:
        """Follow what looks brought; that may take long, which holds no look up."""
        try:
            while self._unfollowed:
                watch_id = next(iter(self._unfollowed))
                wanted = self._unfollowed.pop(watch_id)
                try:
                    fresh = await hints.follow(watch_id, wanted)
                except Exception:  # noqa: BLE001 - one watch must not stop another
                    _log.exception("hints.failed", extra={"watch_id": watch_id})
                    fresh = False
                if watch_id not in self._watches:  # dropped meanwhile
                    hints.drop(watch_id)
                elif fresh:
                    self.look_now(watch_id)
        finally:
            self._following = False

    def _wait_on(
        self,
        watch: Watch,
        now_s: float,
        *,
        overdue_s: float | None,
        again_in_s: float | None,
    ) -> None:
        due_s = next_look(
            now_s=now_s,
            every_s=watch.every_s,
            deadline_s=watch.rules.deadline_s,
            start_due_s=overdue_s,
            in_rounds=watch.condition.target.far,
        )
        if again_in_s is not None:
            due_s = min(due_s, now_s + again_in_s)
        self._set_due(watch, now_s if watch.hinted else due_s)

    def _outcome(
        self, watch: Watch, decision: Decision, observation: Observation, now_s: float
    ) -> Outcome:
        ended_at = self._clock.wall()
        waited_s = now_s - watch.rules.armed_s
        awake_s = self._clock.awake() - watch.armed_awake_s
        unknown_since = None
        if watch.blind and decision.progress.unknown_s is not None:
            blind_s = now_s - decision.progress.unknown_s
            unknown_since = ended_at - timedelta(seconds=blind_s)
        return Outcome(
            ending=_ENDINGS.get(decision.verdict)
            or cleared_ending(watch.condition.target.kind),
            watch_id=watch.id,
            target=watch.condition.target,
            label=watch.label,
            armed_at=watch.armed_at,
            ended_at=ended_at,
            waited_s=waited_s,
            ttl_s=watch.ttl_s,
            result=observation.result,
            already_clear=not decision.progress.ever_blocked,
            unknown_since=unknown_since,
            out_of_reach=observation.out_of_reach,
            reason=observation.reason,
            decided=observation.decided,
            tail=observation.remarks,
            resume=watch.resume,
            session=watch.session,
            observations=watch.looks,
            unknown_s=watch.unknown_s,
            suspended_s=max(0.0, waited_s - awake_s),
            evidence={**observation.evidence, "seen_at": observation.at.isoformat()},
        )


_ENDINGS = {Verdict.EXPIRED: Ending.EXPIRED, Verdict.UNSEEN: Ending.UNSEEN}


def _may_be_quick(watch: Watch, now_s: float) -> bool:
    """Say whether to ask only if anything changed: on the timer, while it is held."""
    return (
        watch.waiting
        and not watch.hinted
        and not watch.blind
        and watch.progress.candidate_s is None
        and now_s < watch.rules.deadline_s
    )


def _is_blind(observation: Observation) -> bool:
    """Say whether a look could not see; nothing being there yet is no such look."""
    return observation.sight is Sight.UNKNOWN and not observation.absent
