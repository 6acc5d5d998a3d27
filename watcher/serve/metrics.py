"""`GET /metrics`: what the service counted and what its store holds, for Prometheus.

It is written down in a thread with a connection of its own, so that a long history or a
slow disk delays no look.
"""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from notify import outbox
from watcher import __version__
from watcher.database import open_for_reading
from watcher.metrics import BOUNDS_S, Counts, Spread
from watcher.serve.hosting import Hosting
from watcher.views import DAY_S

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The text format that every Prometheus reads."""

_PREFIX: Final = "koder_monitor_"

_WATCHES: Final = """
SELECT kind, state, count(*) FROM (
    SELECT kind, state FROM watches WHERE state = 'armed'
    UNION ALL SELECT kind, state FROM watches WHERE ended_at >= ?
) GROUP BY kind, state
"""
_PINGS: Final = "SELECT channel, state, count(*) FROM pings GROUP BY channel, state"
_UNRECORDED: Final = """
SELECT count(*) FROM pings
WHERE state = 'pending' AND attempts > 0 AND logged_at IS NULL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """What is in memory at one instant."""

    counts: Counts
    now_s: float
    blind: Mapping[tuple[str, str], int]
    """How many armed watches could not be seen just now, by kind and host."""
    overdue_s: float
    degraded: bool


async def answer(hosting: Hosting) -> Response:
    """Return the metrics of a service."""
    text = await asyncio.to_thread(
        _written, _shot(hosting), hosting.service.config.state
    )
    return Response(text, media_type=CONTENT_TYPE)


def _shot(hosting: Hosting) -> Shot:
    service = hosting.service
    blind: Counter[tuple[str, str]] = Counter()
    for watch in service.engine.hosted():
        target = watch.condition.target
        blind[target.kind, target.host or ""] += watch.blind
    due_s, now_s = service.engine.next_due_s(), service.clock.boot()
    return Shot(
        counts=service.metrics.snapshot(),
        now_s=service.clock.wall().timestamp(),
        blind=blind,
        overdue_s=max(now_s - due_s, 0.0) if due_s is not None else 0.0,
        degraded=service.degraded is not None,
    )


def _written(shot: Shot, state: str) -> bytes:
    # Loading it takes 0.2 s, which no service should pay that nobody asks.
    from prometheus_client import (  # noqa: PLC0415 - see above
        CollectorRegistry,
        ProcessCollector,
        generate_latest,
    )

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Now(shot, state))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


class _Now:
    """A collector for one answer."""

    def __init__(self, shot: Shot, state: str) -> None:
        self._shot = shot
        self._state = state

    def collect(self) -> Iterator["Metric"]:
        """Give every metric, with its samples where there are any."""
        yield from _of_memory(self._shot)
        yield from _of_counts(self._shot.counts)
        yield from _of_store(self._state, self._shot.now_s)


def _of_memory(shot: Shot) -> Iterator["Metric"]:
    yield _gauge("info", "The version that runs.", ["version"], [((__version__,), 1)])
    yield _gauge(
        "blind_watches",
        "Armed watches whose latest look could not see the condition.",
        ["kind", "host"],
        shot.blind.items(),
    )
    yield _gauge(
        "overdue_seconds", "How late the next look is.", [], [((), shot.overdue_s)]
    )
    yield _gauge(
        "degraded",
        "1 while the store does not take what is to be kept.",
        [],
        [((), shot.degraded)],
    )


def _of_counts(counts: Counts) -> Iterator["Metric"]:
    yield _counter(
        "probes",
        "Looks taken, by what they saw.",
        ["kind", "observation"],
        counts.looks.items(),
    )
    yield _counter(
        "probes_hung", "Looks that were given up.", ["kind"], _by_one(counts.hung)
    )
    yield _counter(
        "unknown_seconds",
        "Seconds for which a watch could not be seen.",
        ["kind"],
        _by_one(counts.unknown_s),
    )
    yield _counter(
        "outcomes",
        "Outcomes told, one for each waiter.",
        ["kind", "outcome"],
        counts.outcomes.items(),
    )
    yield _histogram(
        "release_to_line_seconds",
        "From the look that saw a release to its line.",
        "kind",
        counts.to_line,
    )
    yield _counter(
        "delivery_attempts",
        "Attempts to deliver a ping, by what became of them.",
        ["channel", "answer"],
        counts.attempts.items(),
    )
    yield _histogram(
        "line_to_delivery_seconds",
        "From the line, when its ping is in the outbox, to the delivery.",
        "channel",
        counts.to_delivery,
    )
    yield _counter(
        "rounds_skipped",
        "Rounds that found the one before still at work.",
        ["round"],
        _by_one(counts.skipped),
    )
    yield _counter(
        "rounds_failed", "Rounds that broke down.", ["round"], _by_one(counts.failed)
    )


def _of_store(state: str, now_s: float) -> Iterator["Metric"]:
    """Give what the file holds; nothing of it where it cannot be read."""
    families = _read(state, now_s)
    yield _gauge(
        "store_readable",
        "0 while the store cannot be read.",
        [],
        [((), families is not None)],
    )
    yield from families or ()


def _read(state: str, now_s: float) -> "list[Metric] | None":
    connection = open_for_reading(state)
    if connection is None:
        return None
    with closing(connection):
        try:
            return [*_of_rows(connection, now_s)]
        except sqlite3.Error:
            return None


def _of_rows(connection: sqlite3.Connection, now_s: float) -> Iterator["Metric"]:
    watches = connection.execute(_WATCHES, (now_s - DAY_S,))
    pings = connection.execute(_PINGS)
    (unrecorded,) = connection.execute(_UNRECORDED).fetchone()
    oldest_s = outbox.oldest_pending_s(connection, now_s=now_s)
    yield _gauge(
        "watches",
        "Watches that are armed, or ended within a day.",
        ["kind", "state"],
        [((kind, state), count) for kind, state, count in watches],
    )
    yield _gauge(
        "pings",
        "Rows of the outbox.",
        ["channel", "state"],
        [((channel, state), count) for channel, state, count in pings],
    )
    yield _gauge(
        "pings_unrecorded",
        "Pings that neither a channel nor the fallback log has taken yet.",
        [],
        [((), unrecorded)],
    )
    yield _gauge(
        "outbox_oldest_seconds",
        "How long the oldest ping that is not delivered has waited.",
        [],
        [((), oldest_s or 0.0)],
    )


_Samples = Iterable[tuple[tuple[str, ...], float]]


def _by_one(values: Mapping[str, float]) -> _Samples:
    return [((name,), value) for name, value in values.items()]


def _gauge(name: str, text: str, labels: list[str], samples: _Samples) -> "Metric":
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 - as above

    family = GaugeMetricFamily(_PREFIX + name, text, labels=labels)
    for of, value in samples:
        family.add_metric(of, value)
    return family


def _counter(name: str, text: str, labels: list[str], samples: _Samples) -> "Metric":
    from prometheus_client.core import CounterMetricFamily  # noqa: PLC0415 - as above

    family = CounterMetricFamily(_PREFIX + name, text, labels=labels)
    for of, value in samples:
        family.add_metric(of, value)
    return family


def _histogram(
    name: str, text: str, label: str, spreads: Mapping[str, Spread]
) -> "Metric":
    from prometheus_client.core import HistogramMetricFamily  # noqa: PLC0415 - as above

    family = HistogramMetricFamily(_PREFIX + name, text, labels=[label])
    bounds = [*(f"{bound:g}" for bound in BOUNDS_S), "+Inf"]
    for of, spread in spreads.items():
        buckets = zip(bounds, accumulate(spread.counts), strict=True)
        family.add_metric([of], [*buckets], spread.sum_s)
    return family
