"""What each hook owes the store, whatever its event: a look, and a sign of life."""

import sqlite3
from contextlib import suppress

from watcher.cli.reading import read
from watcher.database import open_for_reading
from watcher.paths import state_directory
from watcher.runtimes import HookCall
from watcher.runtimes.calls import sessions_of

_BUSY_MS = 500  # a hook has no time; the next one comes soon

_OWES = (
    "SELECT 1 FROM waiters WHERE session = ? AND state = 'told'"
    " AND acknowledged_at IS NULL AND read_at IS NOT NULL AND told_at <= ? LIMIT 1"
)
_ACKNOWLEDGE = (
    "UPDATE waiters SET acknowledged_at = ?2 WHERE session = ?1 AND state = 'told'"
    " AND acknowledged_at IS NULL AND read_at IS NOT NULL AND told_at <= ?2"
)


def show_life(call: HookCall) -> None:
    """Acknowledge what this session read at an event before this one (C9.4).

    What it has not read yet stays so: it must still be handed over. A service that is
    missed is brought back on the way (C5.3).
    """
    sessions, now_s = sessions_of(call), call.at.timestamp()
    owing, _ = read(
        lambda c: [one for one in sessions if c.execute(_OWES, (one, now_s)).fetchone()]
    )
    if not owing:
        return
    connection = writable(call)
    if connection is None:
        return
    with suppress(sqlite3.Error):
        for session in owing:
            connection.execute(_ACKNOWLEDGE, (session, now_s))
    connection.close()


def writable(call: HookCall) -> sqlite3.Connection | None:
    """Return a connection that gives up soon; None without a store of our version."""
    connection = open_for_reading(state_directory(call.env))
    if connection is not None:
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
    return connection
