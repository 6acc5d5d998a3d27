"""Counts what the service does, for whoever asks at `/metrics` (C10.1).

Plain numbers, all kept on the event loop: what writes them down for Prometheus costs a
fifth of a second to load, and is loaded with the first question (serve/metrics.py).
"""

import copy
from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from policies.clock import Clock
from policies.delivery import Answer
from policies.model import Ending, Outcome, Ping, Sight
from watcher.engine import Watch

BOUNDS_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of the latencies, in seconds; what is longer has none."""

_CLEARED = frozenset({Ending.RELEASED, Ending.ENDED})


@dataclass(slots=True)
class Spread:
    """How many latencies lie between each bound and the one before, and their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    sum_s: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one; a clock that was set back meanwhile makes none negative."""
        seconds = max(seconds, 0.0)
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.sum_s += seconds


@dataclass(slots=True)
class Counts:
    """What was counted since the service began."""

    looks: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By kind and what was seen."""
    hung: Counter[str] = field(default_factory=Counter)
    unknown_s: defaultdict[str, float] = field(
        default_factory=lambda: defaultdict(float)
    )
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By kind and ending; one for each waiter."""
    to_line: defaultdict[str, Spread] = field(
        default_factory=lambda: defaultdict(Spread)
    )
    attempts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By channel and answer."""
    to_delivery: defaultdict[str, Spread] = field(
        default_factory=lambda: defaultdict(Spread)
    )
    skipped: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    """Rounds, by their names."""


class Metrics:
    """Is told what happens in one service."""

    def __init__(self, clock: Clock) -> None:
        """Have counted nothing yet."""
        self._clock = clock
        self.counts = Counts()

    def snapshot(self) -> Counts:
        """Return the counts as they are now, for another thread to read."""
        return copy.deepcopy(self.counts)

    def looked(self, watch: Watch, sight: Sight, unknown_s: float) -> None:
        """Count a look, and the time without sight that lies behind it."""
        kind = watch.condition.target.kind
        self.counts.looks[kind, sight] += 1
        self.counts.unknown_s[kind] += unknown_s

    def hung(self, watch: Watch) -> None:
        """Count a look that did not come back in time."""
        self.counts.hung[watch.condition.target.kind] += 1

    def told(self, outcome: Outcome) -> None:
        """Count an outcome, and how long it took from the look that saw it."""
        kind = outcome.target.kind
        self.counts.outcomes[kind, outcome.ending] += 1
        seen_at = outcome.evidence.get("seen_at")
        if outcome.ending in _CLEARED and isinstance(seen_at, str):
            seen_s = datetime.fromisoformat(seen_at).timestamp()
            self.counts.to_line[kind].add(self._since(seen_s))

    def attempted(
        self, channel: str, ping: Ping, answer: Answer, created_s: float | None
    ) -> None:
        """Count an attempt, and how long a ping took from its line to its delivery.

        Args:
            channel: the name of the channel.
            ping: what was sent.
            answer: what became of it.
            created_s: when it was put into the outbox; None past that.
        """
        self.counts.attempts[channel, answer] += 1
        if answer is Answer.DELIVERED:
            since_s = created_s or ping.occurred_at.timestamp()
            self.counts.to_delivery[channel].add(self._since(since_s))

    def _since(self, at_s: float) -> float:
        return self._clock.wall().timestamp() - at_s
