"""Job markers: what a status line shows of work under way (C8.1).

Functions on a connection, each inside the caller's transaction. Every watch is a marker
too; those are views of the rows of `watches` and are only listed here, never changed.
Instants are seconds since the epoch (UTC).
"""

import sqlite3
from collections.abc import Mapping
from typing import Literal, NamedTuple

from policies.text import clean

LABEL_LIMIT = 200  # characters; what a line of a terminal can still show

_JOB = """
    SELECT id, label, state, started_at, ended_at, notify_after_s, session,
        NULL AS watch_state
    FROM jobs
"""
# A watch has the session of its first waiter, of those that still wait where any does.
# Its end is `done` where what was waited for came about, else `failed`; removed, too.
_WATCH = """
    SELECT id, label,
        CASE
            WHEN state = 'armed' THEN 'running'
            WHEN state IN ('released', 'ended') AND coalesce(result, 'PASS') = 'PASS'
            THEN 'done'
            ELSE 'failed'
        END AS state,
        armed_at AS started_at, ended_at, NULL AS notify_after_s,
        (
            SELECT session FROM waiters
            WHERE watch_id = watches.id
            ORDER BY state = 'waiting' DESC, state = 'told' DESC, number
            LIMIT 1
        ) AS session,
        state AS watch_state
    FROM watches
"""
_BEGINS = "substr(id, 1, length(:name)) = :name"


class Marker(NamedTuple):
    """A job, or a watch seen as one; `watch_state` is None for a job."""

    id: str
    label: str
    state: str
    started_at: float
    ended_at: float | None
    notify_after_s: int | None
    session: str | None
    watch_state: str | None


def new(
    job_id: str,
    label: str,
    *,
    now_s: float,
    notify_after_s: int | None = None,
    session: str | None = None,
) -> Marker:
    """Return the marker of a job that starts now, its label cleaned."""
    return Marker(
        id=job_id,
        label=clean(label, LABEL_LIMIT),
        state="running",
        started_at=now_s,
        ended_at=None,
        notify_after_s=notify_after_s,
        session=session,
        watch_state=None,
    )


def start(connection: sqlite3.Connection, job: Marker) -> None:
    """Leave the marker of a job.

    Raises:
        sqlite3.IntegrityError: there is one of this id.
    """
    connection.execute(
        "INSERT INTO jobs (id, label, started_at, notify_after_s, session)"
        " VALUES (?, ?, ?, ?, ?)",
        (job.id, job.label, job.started_at, job.notify_after_s, job.session),
    )


def finish(
    connection: sqlite3.Connection,
    job_id: str,
    state: Literal["done", "failed"],
    *,
    now_s: float,
) -> bool:
    """End a job that runs; False when it does not run any more."""
    return bool(
        connection.execute(
            "UPDATE jobs SET state = ?, ended_at = ?"
            " WHERE id = ? AND state = 'running'",
            (state, now_s, job_id),
        ).rowcount
    )


def listed(connection: sqlite3.Connection, *, ended_after_s: float) -> list[Marker]:
    """Return what runs and what ended since, jobs and watches, the newest last."""
    return _markers(
        connection,
        f"{_JOB} WHERE state = 'running' OR ended_at >= :since UNION ALL"
        f" {_WATCH} WHERE state = 'armed' OR ended_at >= :since"
        " ORDER BY started_at, id",
        {"since": ended_after_s},
    )


def running(connection: sqlite3.Connection, session: str | None) -> list[Marker]:
    """Return the jobs of a session that run; of none, for None."""
    return _markers(
        connection,
        f"{_JOB} WHERE state = 'running' AND session IS :session"
        " ORDER BY started_at, id",
        {"session": session},
    )


def named(connection: sqlite3.Connection, name: str) -> list[Marker]:
    """Return what a name may mean, by the first reading that finds anything.

    The job of this very id; the jobs of this very label that run; those that run whose
    id begins so; those that ended; the watches whose id begins so, which nobody ends by
    hand, but whoever names one should be told.
    """
    values = {"name": name, "label": clean(name, LABEL_LIMIT)}
    for query in (
        f"{_JOB} WHERE id = :name",
        f"{_JOB} WHERE state = 'running' AND label = :label ORDER BY started_at, id",
        f"{_JOB} WHERE state = 'running' AND {_BEGINS} ORDER BY started_at, id",
        f"{_JOB} WHERE {_BEGINS} ORDER BY started_at, id",
        f"{_WATCH} WHERE {_BEGINS} ORDER BY started_at, id",
    ):
        found = _markers(connection, query, values)
        if found:
            return found
    return []


def due(connection: sqlite3.Connection, now_s: float) -> list[Marker]:
    """Return the jobs that still run though their `--notify-after` has passed.

    Each until `notified` is told of it, the longest overdue first.
    """
    return _markers(
        connection,
        f"{_JOB} WHERE state = 'running' AND notified_at IS NULL"
        " AND started_at + notify_after_s <= :now"
        " ORDER BY started_at + notify_after_s, id",
        {"now": now_s},
    )


def notified(connection: sqlite3.Connection, job_id: str, now_s: float) -> bool:
    """Note that the ping is in the outbox, in the transaction that puts it there.

    False when it was there already or the job has ended: then there is nothing to send.
    """
    return bool(
        connection.execute(
            "UPDATE jobs SET notified_at = ?"
            " WHERE id = ? AND state = 'running' AND notified_at IS NULL",
            (now_s, job_id),
        ).rowcount
    )


def _markers(
    connection: sqlite3.Connection, query: str, values: Mapping[str, object]
) -> list[Marker]:
    return [Marker(*row) for row in connection.execute(query, values)]
