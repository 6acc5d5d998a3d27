"""What a command that works alone owes to the store, where it can be had (C5.3, C5.6).

The watch may be in the store, and a service may come back for it: so the outcome is
settled there as a service would, in one transaction with its ping. Whoever comes second
finds the waiter told, and says what it was told.
"""

import json
import sqlite3
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import cast

from notify import outbox
from policies.codec import outcome_of
from policies.model import Ending, Json, Outcome, Ping
from watcher import store
from watcher.hosted import for_waiter


def settle(
    connection: sqlite3.Connection,
    outcome: Outcome,
    number: int,
    nonce: str | None,
    *,
    line: str,
    ping_of: Callable[[Outcome, int], Ping],
    channels: Collection[str],
    give_up_s: float,
    mine_alone: bool = False,
) -> tuple[Outcome, str | None]:
    """Tell one waiter its outcome, unless a service has done so already.

    Args:
        connection: in autocommit mode.
        outcome: what this command has seen.
        number: of the waiter in the outcome's watch.
        nonce: what the command asked a service with, if it did.
        line: the outcome's line.
        ping_of: makes the ping of an outcome as a waiter is told it.
        channels: where pings go.
        give_up_s: seconds for which the ping is tried.
        mine_alone: the lock was taken for this waiter: the others wait on (C5.5).

    Returns:
        The outcome that holds, and the key of its ping; None where that is the business
        of whoever told it.

    Raises:
        sqlite3.Error: the store cannot take it; nothing was changed.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        asked = store.find_waiter(connection, nonce) if nonce else None
        watch_id, number = asked or (outcome.watch_id, number)
        told = _told(connection, watch_id, number)
        if told is not None:
            connection.execute("ROLLBACK")
            return told, None
        outcome = replace(outcome, watch_id=watch_id)
        mine_alone = mine_alone or outcome.ending is Ending.EXPIRED
        _tell(connection, outcome, number, line, mine_alone=mine_alone)
        ping = ping_of(outcome, number)
        outbox.add(
            connection,
            ping,
            channels=channels,
            now_s=outcome.ended_at.timestamp(),
            give_up_s=give_up_s,
            watch_id=watch_id,
        )
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return outcome, ping.idempotency_key


def _tell(
    connection: sqlite3.Connection,
    outcome: Outcome,
    number: int,
    line: str,
    *,
    mine_alone: bool,
) -> None:
    """Tell whoever an outcome concerns: one waiter, or all who wait for the watch."""
    watch_id = outcome.watch_id
    if mine_alone:
        store.tell_waiters(connection, watch_id, [(number, outcome)])
        if not store.waiting(connection, watch_id):
            store.end_watch(connection, outcome, [], line)
        return
    told = [
        (row.number, outcome if row.number == number else for_waiter(outcome, row))
        for row in store.waiting(connection, watch_id)
    ]
    store.end_watch(connection, outcome, told, line)


def _told(connection: sqlite3.Connection, watch_id: str, number: int) -> Outcome | None:
    row = connection.execute(
        "SELECT outcome FROM waiters WHERE watch_id = ? AND number = ?",
        (watch_id, number),
    ).fetchone()
    if row is None or row["outcome"] is None:
        return None
    return outcome_of(cast("Mapping[str, Json]", json.loads(row["outcome"])))
