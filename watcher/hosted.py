"""The watches that a service hosts, each with those who wait for it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from policies.codec import instant
from policies.model import Ending, Evidence, Memory, Outcome, Sight
from policies.verdict import Rules
from policies.wording import Lang, Phrase
from watcher.engine import Engine, Watch
from watcher.store import WaiterRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What one waiting command asks for."""

    target: str
    ttl_s: int
    every_s: int | None
    lang: Lang
    label: str | None = None
    resume: str | None = None
    session: str | None = None
    start_within_s: int = 0
    launcher: int = 0
    takes: bool = False
    nonce: str | None = None
    project: str | None = None
    detach: bool = False
    log_only: bool = False
    """Its ping goes to the fallback log: a selftest wakes nobody."""


@dataclass(slots=True, kw_only=True)
class Hosted:
    """A watch with those who wait for it."""

    watch: Watch
    waiters: dict[int, WaiterRow]
    last_number: int
    renewals: int = 0
    decided: set[int] = field(default_factory=set)
    told: dict[int, Outcome] = field(default_factory=dict)
    notes: list[Phrase] = field(default_factory=list)
    looked: bool = False
    log_only: bool = False
    """As everybody who waits asked; forgotten in a restart: rather a ping too many."""
    awaited: asyncio.Event | None = None
    """Made for whoever waits for news: an event costs more than the watch itself."""
    saved: tuple[Sight, Memory] | None = None
    grace_s: float = 0.0
    """How long an expiry may be held back, for news from a detached watcher."""

    def waiting(self) -> list[WaiterRow]:
        """Return those whose outcome is open, in the order they came."""
        return [
            self.waiters[number]
            for number in sorted(self.waiters)
            if number not in self.decided
        ]

    def news(self) -> None:
        """Wake everybody who follows this watch."""
        if self.awaited is not None:
            self.awaited.set()
            self.awaited = None

    async def changed(self) -> None:
        """Return with the next news."""
        if self.awaited is None:
            self.awaited = asyncio.Event()
        await self.awaited.wait()

    def say(self, note: Phrase) -> None:
        """Hand a note to every command that waits."""
        self.notes.append(note)
        self.news()

    def rules(
        self,
        settle_s: float,
        *,
        armed_s: float | None = None,
        start_within_s: float | None = None,
    ) -> Rules:
        """Return the rules for the waiter whose deadline is nearest."""
        old = self.watch.rules
        return Rules(
            armed_s=old.armed_s if armed_s is None else armed_s,
            deadline_s=min(waiter.deadline_boot_s for waiter in self.waiting()),
            settle_s=settle_s if self.watch.condition.settle else 0.0,
            start_within_s=old.start_within_s
            if start_within_s is None
            else start_within_s,
        )

    def ended(
        self,
        ending: Ending,
        now: datetime,
        *,
        reason: Phrase | None = None,
        evidence: Evidence | None = None,
    ) -> Outcome:
        """Return an outcome that no look of the engine brought."""
        watch = self.watch
        return Outcome(
            ending=ending,
            watch_id=watch.id,
            target=watch.condition.target,
            label=watch.label,
            armed_at=watch.armed_at,
            ended_at=now,
            waited_s=max((now - watch.armed_at).total_seconds(), 0.0),
            ttl_s=watch.ttl_s,
            reason=reason,
            observations=watch.looks,
            unknown_s=watch.unknown_s,
            evidence=evidence or {},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What a following command learns: notes from `after` on, and its outcome."""

    waiting: bool
    notes: Sequence[Phrase]
    deadline_at: float | None
    outcome: Outcome | None


class Watches:
    """What is hosted now, and what was told a short while ago."""

    def __init__(self, engine: Engine) -> None:
        """Host nothing yet."""
        self.engine = engine
        self.happened: Callable[[str, str], object] = lambda name, watch_id: None  # noqa: ARG005
        """Told when a watch is armed or renewed: by what name, and which."""
        self.hosted: dict[str, Hosted] = {}
        self._by_target: dict[str, str] = {}
        self._told: dict[str, tuple[float, Hosted]] = {}

    def host(self, hosted: Hosted) -> None:
        """Look at a watch from now on."""
        watch = hosted.watch
        self._told.pop(watch.id, None)
        self.hosted[watch.id] = hosted
        self._by_target[watch.condition.target.text] = watch.id
        self.engine.arm(watch)

    def retire(self, hosted: Hosted, now_s: float) -> None:
        """Host a watch no more; its outcome stays at hand for a while."""
        watch, text = hosted.watch, hosted.watch.condition.target.text
        self.hosted.pop(watch.id, None)
        if self._by_target.get(text) == watch.id:
            del self._by_target[text]
        self._told[watch.id] = (now_s, hosted)
        hosted.looked = True
        hosted.news()

    def of_target(self, text: str) -> Hosted | None:
        """Return the one watch of a condition (C5.2)."""
        watch_id = self._by_target.get(text)
        return None if watch_id is None else self.hosted[watch_id]

    def at_hand(self, watch_id: str) -> Hosted | None:
        """Return a watch that is hosted, or was until a short while ago."""
        if watch_id in self.hosted:
            return self.hosted[watch_id]
        return self._told[watch_id][1] if watch_id in self._told else None

    def ids(self, prefix: str) -> list[str]:
        """Return the ids at hand that begin so."""
        return [i for i in (*self.hosted, *self._told) if i.startswith(prefix)]

    def forget(self, before_s: float) -> None:
        """Let go of what was told before an instant."""
        self._told = {i: kept for i, kept in self._told.items() if kept[0] > before_s}

    def wake_all(self) -> None:
        """Wake everybody who follows anything."""
        for hosted in (*self.hosted.values(), *(h for _, h in self._told.values())):
            hosted.news()


def for_waiter(outcome: Outcome, row: WaiterRow) -> Outcome:
    """Return an outcome as one waiter is told it."""
    armed_at = instant(row.armed_at)
    return replace(
        outcome,
        label=row.label,
        resume=row.resume,
        session=row.session,
        ttl_s=row.ttl_s,
        armed_at=armed_at,
        waited_s=max((outcome.ended_at - armed_at).total_seconds(), 0.0),
    )


def session_of(memory: Memory) -> str | None:
    """Return the session that a lock names as its holder."""
    holder = memory.get("holder")
    session = holder.get("session") if isinstance(holder, Mapping) else None
    return session if isinstance(session, str) else None
