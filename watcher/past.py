"""The history of the store in numbers, for the page, the API and `report` (C10.1)."""

import sqlite3
from datetime import datetime, timedelta, tzinfo
from itertools import pairwise
from typing import Final

from policies.history import Day, History, Wait, history_of
from watcher.views import optional, shown

MOST_DAYS: Final = 366
USUAL_DAYS: Final = 30
_MOST = 10_000  # watches that are looked at; the newest

# What ended lies in an index of its own, as in `views.watch_rows`.
_WAITS = """
SELECT kind, label, host, state, armed_at, ended_at, iif(
    state IN ('released', 'ended') AND json_valid(evidence),
    json_extract(evidence, '$.seen_at'), NULL
) AS seen_at,
(SELECT max(told_at) FROM waiters WHERE watch_id = id) AS told_at
FROM watches WHERE rowid IN (
    SELECT rowid FROM watches WHERE state = 'armed'
    UNION ALL SELECT rowid FROM watches WHERE ended_at >= ?
) ORDER BY ended_at IS NULL DESC, ended_at DESC LIMIT ?
"""
# A ping is stored in the same step as its line (C6.1).
_DELIVERIES = """
SELECT delivered_at - created_at FROM pings
WHERE state = 'delivered' AND delivered_at >= ? AND watch_id IS NOT NULL
ORDER BY delivered_at DESC LIMIT ?
"""


def history(
    connection: sqlite3.Connection,
    *,
    now_s: float,
    days: int,
    zone: tzinfo | None = None,
) -> History:
    """Return what the last days were like, today among them.

    Args:
        connection: for reading.
        now_s: the time.
        days: how many, from 1 to `MOST_DAYS`.
        zone: whose days; the local ones if None.
    """
    wanted = days_until(now_s, days, zone)
    since_s = wanted[0].from_s
    rows = connection.execute(_WAITS, (since_s, _MOST + 1)).fetchall()
    delivered = connection.execute(_DELIVERIES, (since_s, _MOST)).fetchall()
    return history_of(
        [_wait(row) for row in rows[:_MOST]],
        [took_s for (took_s,) in delivered],
        wanted,
        now_s=now_s,
        left_out=len(rows) > _MOST,
    )


def days_until(now_s: float, count: int, zone: tzinfo | None = None) -> list[Day]:
    """Return the last days up to the one of `now_s`, from midnight to midnight."""
    today = datetime.fromtimestamp(now_s, zone).replace(
        hour=0, minute=0, second=0, microsecond=0
    )
    starts = [today + timedelta(days=back) for back in range(1 - count, 2)]
    return [
        Day(day.date().isoformat(), day.timestamp(), after.timestamp())
        for day, after in pairwise(starts)
    ]


def _wait(row: sqlite3.Row) -> Wait:
    return Wait(
        kind=row["kind"],
        label=shown(row["label"]),
        host=optional(row["host"]),
        state=row["state"],
        armed_at=row["armed_at"],
        ended_at=row["ended_at"],
        told_s=_told_s(row["seen_at"], row["told_at"]),
    )


def _told_s(seen_at: object, told_at: float | None) -> float | None:
    """Return from when it was seen to when it was told; None where that is damaged."""
    if not isinstance(seen_at, str) or told_at is None:
        return None
    try:
        return told_at - datetime.fromisoformat(seen_at).timestamp()
    except (ValueError, OverflowError):
        return None
