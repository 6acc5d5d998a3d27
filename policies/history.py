"""What the past says: hours blocked, how long waits were, how soon they were told."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

_HOUR_S = 3600.0
_MOST = 12  # locks, or hosts: a plot with more of them says less

_WAITS_S = (10.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)
_TOLD_S = (0.1, 0.5, 1.0, 5.0, 30.0, 300.0, 3600.0)


class Day(NamedTuple):
    """A day of wherever the reader lives: the clock may be set in it."""

    name: str
    from_s: float
    until_s: float


class Wait(NamedTuple):
    """One watch of the past, or one that still waits.

    Attributes:
        ended_at: None while it waits.
        told_s: from the look that saw the release to the line, where there was one.
    """

    kind: str
    label: str
    host: str | None
    state: str
    armed_at: float
    ended_at: float | None
    told_s: float | None = None


class Blocked(msgspec.Struct, frozen=True, kw_only=True):
    """How long something was waited for on one day; many waits add up."""

    day: str
    hours: float


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """What one lock, or one host, has cost; no name is this machine's."""

    name: str | None
    hours: float
    waits: int


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """How many took so long and no longer; the last has no end."""

    up_to_s: float | None
    count: int


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """How long something took, of all its cases."""

    count: int
    median_s: float | None
    p95_s: float | None
    longest_s: float | None
    buckets: list[Bucket]


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The waits of some days in numbers.

    Attributes:
        endings: state to how many, of those that ended.
        left_out: there was too much; only the newest waits are counted.
    """

    days: list[Blocked]
    locks: list[Share]
    hosts: list[Share]
    endings: dict[str, int]
    waits: Times
    release_to_line: Times
    line_to_delivery: Times
    left_out: bool = False


def history_of(
    waits: Sequence[Wait],
    deliveries_s: Sequence[float],
    days: Sequence[Day],
    *,
    now_s: float,
    left_out: bool = False,
) -> History:
    """Return what some days were like.

    Args:
        waits: every watch that waited in these days; what was before is cut off.
        deliveries_s: from the line to the delivery of its ping, in seconds.
        days: in their order, one behind the other.
        now_s: until when those wait that still do.
        left_out: not all waits were given.
    """
    ended = [wait for wait in waits if wait.ended_at is not None]
    told = [wait.told_s for wait in ended if wait.told_s is not None]
    spans = [_end(wait, now_s) - wait.armed_at for wait in ended]
    return History(
        days=[
            Blocked(day=day.name, hours=_hours([span]))
            for day, span in zip(days, _by_day(waits, days, now_s), strict=True)
        ],
        locks=_shares(
            ((w.label, w) for w in waits if w.kind == "lock"), days, now_s=now_s
        ),
        hosts=_shares(((w.host, w) for w in waits), days, now_s=now_s),
        endings=dict(sorted(Counter(wait.state for wait in ended).items())),
        waits=_times(spans, _WAITS_S),
        release_to_line=_times(told, _TOLD_S),
        line_to_delivery=_times(deliveries_s, _TOLD_S),
        left_out=left_out,
    )


def _by_day(
    waits: Sequence[Wait], days: Sequence[Day], now_s: float
) -> Sequence[float]:
    """Return the seconds of each day; each wait is asked for its own days only."""
    starts = [day.from_s for day in days]
    spans = [0.0] * len(days)
    for wait in waits:
        first = max(bisect_right(starts, wait.armed_at) - 1, 0)
        last = bisect_left(starts, _end(wait, now_s))
        for number in range(first, last):
            spans[number] += _within(wait, days[number], now_s)
    return spans


def _within(wait: Wait, day: Day, now_s: float) -> float:
    """Return the seconds of a day in which a watch waited."""
    until_s = min(_end(wait, now_s), day.until_s)
    return max(0.0, until_s - max(wait.armed_at, day.from_s))


def _end(wait: Wait, now_s: float) -> float:
    return now_s if wait.ended_at is None else wait.ended_at


def _shares(
    named: Iterable[tuple[str | None, Wait]], days: Sequence[Day], *, now_s: float
) -> list[Share]:
    """Return who has cost most, first; all days are taken as one."""
    whole = Day("", days[0].from_s, days[-1].until_s)
    spans: dict[str | None, list[float]] = defaultdict(list)
    for name, wait in named:
        spans[name].append(_within(wait, whole, now_s))
    shares = [
        Share(name=name, hours=_hours(items), waits=len(items))
        for name, items in spans.items()
    ]
    return sorted(shares, key=lambda one: (-one.hours, one.name or ""))[:_MOST]


def _times(spans: Sequence[float], bounds: Sequence[float]) -> Times:
    """Sort time spans into buckets; a clock that was set back gives none below 0."""
    ordered = sorted(max(0.0, span) for span in spans)
    counts = [0] * (len(bounds) + 1)
    for span in ordered:
        counts[bisect_left(bounds, span)] += 1
    return Times(
        count=len(ordered),
        median_s=_quantile(ordered, 0.5),
        p95_s=_quantile(ordered, 0.95),
        longest_s=_quantile(ordered, 1.0),
        buckets=[
            Bucket(up_to_s=bound, count=count)
            for bound, count in zip((*bounds, None), counts, strict=True)
        ],
    )


def _quantile(ordered: Sequence[float], share: float) -> float | None:
    """Return the value that `share` of all do not exceed, by nearest rank."""
    if not ordered:
        return None
    rank = -int(-share * len(ordered) // 1)  # rounded up
    return round(ordered[max(rank, 1) - 1], 3)


def _hours(spans_s: Iterable[float]) -> float:
    return round(sum(spans_s) / _HOUR_S, 4)
