"""The waits of a session and of its project, as the status line shows them (C8.2)."""

import sqlite3
from collections.abc import Sequence

from policies.statusline import OUTCOME_S, Light
from watcher.stored_text import from_text, to_text

_MOST = 200  # rows; a line has room for a dozen

# Two indexes, so that a long history costs nothing. A waiter may have been told while
# others still wait.
_LIGHTS = """
WITH seen AS (
    SELECT rowid FROM watches WHERE state = 'armed'
    UNION ALL SELECT rowid FROM watches WHERE ended_at >= :since
)
SELECT
    watches.id,
    watches.kind,
    waiters.label,
    watches.host,
    waiters.state = 'waiting' AS waits,
    watches.observation,
    iif(json_valid(waiters.outcome), json_extract(waiters.outcome, '$.ending'), NULL)
        AS ending,
    iif(json_valid(waiters.outcome), json_extract(waiters.outcome, '$.result'), NULL)
        AS result,
    waiters.armed_at,
    waiters.deadline_at,
    waiters.told_at,
    coalesce(waiters.session IN (:session, :alias), 0) AS ours,
    EXISTS (
        SELECT 1 FROM detached WHERE watch_id = watches.id AND gone_at IS NULL
    ) AS detached
FROM watches
JOIN waiters ON waiters.watch_id = watches.id
WHERE watches.rowid IN seen
AND (
    (watches.state = 'armed' AND waiters.state = 'waiting')
    OR (waiters.state = 'told' AND waiters.told_at >= :since)
)
AND (
    waiters.session IN (:session, :alias)
    OR waiters.project IN (:project, :folder)
)
ORDER BY waits DESC, ours DESC, iif(waits, waiters.deadline_at, -told_at), watches.id
LIMIT :most
"""


def lights(
    connection: sqlite3.Connection,
    sessions: Sequence[str],
    projects: Sequence[str],
    now_s: float,
) -> list[Light]:
    """Return a light for each wait, those of the session first, the most urgent ahead.

    Behind them stand the outcomes of the last minutes, the newest first.

    Args:
        connection: to the store.
        sessions: whose waits come first: up to two ids of one session.
        projects: up to two folders that may be its project's.
        now_s: the time.
    """
    rows = connection.execute(
        _LIGHTS,
        {
            "since": now_s - OUTCOME_S,
            **_two("session", "alias", sessions),
            **_two("project", "folder", [to_text(path) for path in projects]),
            "most": _MOST,
        },
    )
    found: dict[tuple[str, bool], Light] = {}
    for row in rows:
        # Several waiters of one condition are one light.
        found.setdefault((row["id"], bool(row["waits"])), _light(row, now_s))
    return [*found.values()]


def is_looked_at(connection: sqlite3.Connection, now_s: float) -> bool:
    """Say whether somebody looks at what is armed, as often as it should be."""
    (looked,) = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM watches WHERE state = 'armed'"
        " AND last_probe_at >= ? - 2 * every_s)",
        (now_s,),
    ).fetchone()
    return bool(looked)


def waits_of(connection: sqlite3.Connection, sessions: Sequence[str]) -> list[str]:
    """Return the ids of the watches that a session waits for."""
    rows = connection.execute(
        "SELECT DISTINCT watches.id FROM watches"
        " JOIN waiters ON waiters.watch_id = watches.id"
        " WHERE watches.state = 'armed' AND waiters.state = 'waiting'"
        " AND waiters.session IN (:session, :alias) ORDER BY watches.id",
        _two("session", "alias", sessions),
    )
    return [row["id"] for row in rows]


def _two(first: str, second: str, values: Sequence[str]) -> dict[str, str | None]:
    """Return two values of a statement, however many there are."""
    return {
        first: values[0] if values else None,
        second: values[-1] if values else None,
    }


def _light(row: sqlite3.Row, now_s: float) -> Light:
    waits = bool(row["waits"])
    since_s = row["armed_at"] if waits else row["told_at"]
    return Light(
        kind=row["kind"],
        label=from_text(row["label"]),
        host=row["host"],
        state=row["observation"] if waits else str(row["ending"]),
        result=None if waits else row["result"],
        age_s=max(0.0, now_s - since_s),
        left_s=max(0.0, row["deadline_at"] - now_s) if waits else None,
        ours=bool(row["ours"]),
        detached=bool(row["detached"]),
    )
