"""Looks, waits, and says how watches ended.

One loop for any number of watches: it takes the looks that are due, each in a task with
a limit of its own so that one that hangs holds no other up, and sleeps until the next
is due or a hint says "look now".
"""

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from policies.cadence import next_look
from policies.clock import Clock
from policies.lines import cleared_ending
from policies.model import Ending, Memory, Observation, Outcome, Sight
from policies.verdict import Decision, Progress, Rules, Verdict, decide
from policies.wording import Phrase, phrase
from watcher.conditions import Condition
from watcher.hints import Hints

_log = logging.getLogger(__name__)

LOOK_LIMIT_S = 10.0
"""A look that takes longer has seen nothing."""

_LAST_LOOK_LIMIT_S = 2.0  # at the deadline nobody should wait much longer


@dataclass(slots=True, kw_only=True)
class Watch:
    """One armed wait; `Rules` and `due_s` are in seconds of `Clock.boot`."""

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
    last: Observation | None = None
    last_look_s: float = 0.0
    looks: int = 0
    unknown_s: float = 0.0
    due_s: float = 0.0
    looking: bool = False
    hinted: bool = False
    waiting: bool = False
    """It was not clear at arming: the armed line has been due."""
    told: set[str] = field(default_factory=set)


class Listener:
    """Is told what a person or a program should know. Every method may be left out."""

    def armed(self, watch: Watch) -> None:
        """It waits: the first look did not end it."""

    def noted(self, watch: Watch, note: Phrase) -> None:
        """Something that a person must know; each sentence once a watch."""

    def ended(self, watch: Watch, outcome: Outcome) -> None:
        """It ended; it is not looked at any more."""


class Engine:
    """Hosts watches. Nothing in it knows signals, files or the network."""

    def __init__(self, *, clock: Clock, listener: Listener) -> None:
        """Host nothing yet; `use_hints` may follow."""
        self._clock = clock
        self._listener = listener
        self._hints: Hints | None = None
        self._watches: dict[str, Watch] = {}
        self._wake = asyncio.Event()

    def use_hints(self, hints: Hints) -> None:
        """Let hints wake watches early."""
        self._hints = hints

    def arm(self, watch: Watch) -> None:
        """Host a watch from now on; its first look is due at once."""
        watch.due_s = self._clock.boot()
        self._watches[watch.id] = watch
        self._wake.set()

    def look_now(self, watch_id: str) -> None:
        """Take a hint: look at once, or again once the look under way is back."""
        watch = self._watches.get(watch_id)
        if watch is None:
            return
        if watch.looking:
            watch.hinted = True
        elif watch.progress.candidate_s is None:
            watch.due_s = self._clock.boot()
            self._wake.set()

    def drop(self, watch_id: str) -> None:
        """Stop hosting a watch."""
        watch = self._watches.pop(watch_id, None)
        if watch is not None:
            if self._hints is not None:
                self._hints.drop(watch_id)
            watch.condition.close()

    async def run(self, stop: asyncio.Event) -> None:
        """Look until told to stop; what is still armed then is only let go."""
        stopping = asyncio.create_task(stop.wait())
        looks: set[asyncio.Task[None]] = set()
        try:
            async with asyncio.TaskGroup() as group:
                while not stop.is_set():
                    self._wake.clear()
                    for watch in self._due():
                        watch.looking = True
                        look = group.create_task(self._look(watch))
                        looks.add(look)
                        look.add_done_callback(looks.discard)
                    await self._pause(stopping)
                for look in looks:
                    look.cancel()
        finally:
            stopping.cancel()
            for watch_id in list(self._watches):
                self.drop(watch_id)

    def _due(self) -> list[Watch]:
        now_s = self._clock.boot()
        return [
            watch
            for watch in self._watches.values()
            if not watch.looking and watch.due_s <= now_s
        ]

    async def _pause(self, stopping: "asyncio.Task[Literal[True]]") -> None:
        """Wait for the next look that is due, a hint, or the end."""
        waits: list[asyncio.Task[object]] = [asyncio.ensure_future(self._wake.wait())]
        due = [watch.due_s for watch in self._watches.values() if not watch.looking]
        if due:
            left_s = max(min(due) - self._clock.boot(), 0.0)
            waits.append(asyncio.ensure_future(self._clock.sleep(left_s)))
        await asyncio.wait({*waits, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def _look(self, watch: Watch) -> None:
        """Take one look and do what follows from it.

        1. Probe, within a limit that never goes far past the deadline.
        2. Count it and say what a person must know.
        3. End the watch, or set its next look.
        4. Follow the hints that this look brought; what changed before they were in
           place is seen by one more look.
        """
        observation = await self._probe(watch)
        now_s = self._clock.boot()
        self._count(watch, observation, now_s)
        decision = decide(watch.rules, watch.progress, observation, now_s=now_s)
        watch.progress = decision.progress
        watch.looking = False
        if watch.id not in self._watches:
            return
        self._tell(watch, observation)
        if decision.verdict is Verdict.WAIT:
            await self._wait_on(watch, observation, now_s)
        elif decision.verdict is Verdict.LOOK_AGAIN:
            watch.due_s = now_s + decision.again_in_s
        else:
            outcome = self._outcome(watch, decision, observation, now_s)
            self.drop(watch.id)
            self._listener.ended(watch, outcome)
        self._wake.set()

    async def _probe(self, watch: Watch) -> Observation:
        """Return what was seen; whatever goes wrong, it is unknown (C3.1)."""
        left_s = watch.rules.deadline_s - self._clock.boot()
        limit_s = max(min(left_s, LOOK_LIMIT_S), _LAST_LOOK_LIMIT_S)
        try:
            async with asyncio.timeout(limit_s):
                return await watch.condition.probe(watch.memory)
        except TimeoutError:
            reason = phrase("hung", what=watch.condition.target.text)
        except Exception as error:  # noqa: BLE001 - one watch must not stop another
            _log.exception("probe.failed", extra={"watch_id": watch.id})
            reason = phrase("probe_failed", error=f"{type(error).__name__}: {error}")
        return Observation(
            sight=Sight.UNKNOWN,
            at=self._clock.wall(),
            reason=reason,
            memory=watch.memory,
        )

    def _count(self, watch: Watch, observation: Observation, now_s: float) -> None:
        if _blind(watch.last):
            watch.unknown_s += now_s - watch.last_look_s
        watch.memory = observation.memory
        watch.last = observation
        watch.last_look_s = now_s
        watch.looks += 1

    def _tell(self, watch: Watch, observation: Observation) -> None:
        """Say what a person must know, each sentence once a watch."""
        notes = list(observation.notes)
        if _blind(observation) and observation.reason is not None:
            label, reason = watch.condition.target.label, observation.reason
            notes.append(phrase("cannot_see", label=label, reason=reason))
        for note in notes:
            if repr(note) not in watch.told:
                watch.told.add(repr(note))
                self._listener.noted(watch, note)

    async def _wait_on(
        self, watch: Watch, observation: Observation, now_s: float
    ) -> None:
        overdue_s = None
        if observation.absent and not watch.progress.ever_seen:
            overdue_s = watch.rules.armed_s + watch.rules.start_within_s
        watch.due_s = next_look(
            now_s=now_s,
            every_s=watch.every_s,
            deadline_s=watch.rules.deadline_s,
            start_due_s=overdue_s,
        )
        if not watch.waiting:
            watch.waiting = True
            self._listener.armed(watch)
        hinted, watch.hinted = watch.hinted, False
        if self._hints is not None and not _blind(observation):
            hinted |= await self._hints.follow(watch.id, watch.condition.hints())
        if hinted:
            watch.due_s = now_s

    def _outcome(
        self, watch: Watch, decision: Decision, observation: Observation, now_s: float
    ) -> Outcome:
        ended_at = self._clock.wall()
        waited_s = now_s - watch.rules.armed_s
        awake_s = self._clock.awake() - watch.armed_awake_s
        unknown_since = None
        if _blind(observation) and decision.progress.unknown_s is not None:
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
            reason=observation.reason,
            tail=observation.remarks,
            resume=watch.resume,
            session=watch.session,
            observations=watch.looks,
            unknown_s=watch.unknown_s,
            suspended_s=max(0.0, waited_s - awake_s),
            evidence={**observation.evidence, "seen_at": observation.at.isoformat()},
        )


_ENDINGS = {Verdict.EXPIRED: Ending.EXPIRED, Verdict.UNSEEN: Ending.UNSEEN}


def _blind(observation: Observation | None) -> bool:
    """Say whether a look could not see; nothing being there yet is no such look."""
    return (
        observation is not None
        and observation.sight is Sight.UNKNOWN
        and not observation.absent
    )
