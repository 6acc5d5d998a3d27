"""Outcomes that a session has not seen yet: handed over once, acknowledged, or not.

Statements on the caller's connection, so that hooks, commands and the service share
them. An outcome is *read* once it was handed to its session; it stays *unacknowledged*
until the session shows a sign of life after it (C9.4).
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from policies.codec import outcome_of
from policies.model import Json, Outcome

_MOST = 50  # outcomes that are handed over at once; the rest comes next time


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An outcome that a waiter was told."""

    watch_id: str
    number: int
    lang: str
    project: str | None
    outcome: Outcome


def take_unread(
    connection: sqlite3.Connection,
    *,
    session: str | None,
    project: str | None,
    now_s: float,
) -> list[Told]:
    """Return the unread outcomes of a session or project, oldest first, and mark them.

    What another session of the same project waited for is its own business, unless that
    named no session: then whoever comes to the project first is told.
    """
    rows = connection.execute(
        "SELECT * FROM waiters WHERE state = 'told' AND read_at IS NULL"
        " AND (session = ?1 OR"
        " (session IS NULL AND project = ?2)) ORDER BY told_at LIMIT ?3",
        (session, project, _MOST),
    ).fetchall()
    return [
        told
        for told in _readable(rows)
        if connection.execute(
            "UPDATE waiters SET read_at = ?"
            " WHERE watch_id = ? AND number = ? AND read_at IS NULL",
            (now_s, told.watch_id, told.number),
        ).rowcount
    ]


def put_back(connection: sqlite3.Connection, told: Iterable[Told]) -> None:
    """Mark outcomes as unread again: there was no room for them."""
    connection.executemany(
        "UPDATE waiters SET read_at = NULL WHERE watch_id = ? AND number = ?",
        [(one.watch_id, one.number) for one in told],
    )


def sign_of_life(connection: sqlite3.Connection, session: str, now_s: float) -> int:
    """Acknowledge what a session was told so far; return how many outcomes."""
    return connection.execute(
        "UPDATE waiters SET acknowledged_at = ?1 WHERE session = ?2"
        " AND state = 'told' AND acknowledged_at IS NULL AND told_at <= ?1",
        (now_s, session),
    ).rowcount


def owes_a_sign(connection: sqlite3.Connection, session: str) -> bool:
    """Say whether a sign of life would change anything: most write nothing."""
    row = connection.execute(
        "SELECT 1 FROM waiters WHERE session = ? AND state = 'told'"
        " AND acknowledged_at IS NULL LIMIT 1",
        (session,),
    ).fetchone()
    return row is not None


def overdue(connection: sqlite3.Connection, told_before_s: float) -> list[Told]:
    """Return outcomes that their sessions have not acknowledged in time.

    Only a session can show signs of life; a removal is a person's own doing.
    """
    rows = connection.execute(
        "SELECT * FROM waiters WHERE state = 'told' AND acknowledged_at IS NULL"
        " AND reminded_at IS NULL AND session IS NOT NULL AND told_at <= ?"
        " AND iif(json_valid(outcome), json_extract(outcome, '$.ending'), '')"
        " <> 'removed' ORDER BY told_at LIMIT ?",
        (told_before_s, _MOST),
    ).fetchall()
    return list(_readable(rows))


def claim_reminder(
    connection: sqlite3.Connection, told: Told, now_s: float, *, wakes: bool
) -> bool:
    """Note that the operator is pinged once more; False when nobody has to be.

    Args:
        connection: in the transaction that adds the ping.
        told: the outcome.
        now_s: the time.
        wakes: the session is woken as well; noted first, so that it never is twice.
    """
    return bool(
        connection.execute(
            "UPDATE waiters SET reminded_at = ?1, woken_at = iif(?2, ?1, woken_at)"
            " WHERE watch_id = ?3 AND number = ?4"
            " AND reminded_at IS NULL AND acknowledged_at IS NULL",
            (now_s, wakes, told.watch_id, told.number),
        ).rowcount
    )


def _readable(rows: Sequence[sqlite3.Row]) -> list[Told]:
    """Return what rows hold; one that is damaged holds up no other."""
    found = []
    for row in rows:
        try:
            outcome = outcome_of(cast("dict[str, Json]", json.loads(row["outcome"])))
        except (KeyError, TypeError, ValueError):
            continue
        found.append(
            Told(
                watch_id=row["watch_id"],
                number=row["number"],
                lang=row["lang"],
                project=row["project"],
                outcome=outcome,
            )
        )
    return found
