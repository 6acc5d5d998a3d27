"""The rows of the store as programs read them (appendix; C9.3).

One view for the commands, the API and the page. It stays on the standard library's
light half: `list` is called all day. Every text is cleaned (C2.4). Instants in rows are
seconds since the epoch; in objects RFC 3339 with the offset of `zone`, which is the
local zone, as it was at that instant, when it is None.
"""

import json
import os
import re
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from functools import cache
from typing import Final, NamedTuple

from notify.marker import Marker
from policies.text import clean

Object = dict[str, object]

DAY_S = 86400.0
"""How long `list --all`, `outbox` and `koder-job list` keep what is over."""

ALWAYS: Final = 0.0
NEVER: Final = float("inf")
"""Bounds for what ended or was delivered: since ever, and none of it."""

_encode = json.JSONEncoder(ensure_ascii=False).encode
_ESCAPED = re.compile(r"\\udc([89a-f][0-9a-f])")  # how the store keeps odd bytes


class Watch(NamedTuple):
    """A watch as `views.sql` gives it.

    No sqlite3.Row, which seeks each name among all columns each time it is asked: this
    takes a tenth off what it costs to list a thousand.
    """

    id: str
    target: str
    kind: str
    label: str
    host: str | None
    state: str
    observation: str
    result: str | None
    armed_at: float
    deadline_at: float
    ended_at: float | None
    last_probe_at: float | None
    looks: int
    unknown_s: float
    every_s: int
    ttl_s: int
    renewals: int
    session: str | None
    resume: str | None
    waiters: int
    unread: int
    holder: str | None
    evidence: str
    sound: int
    line: str | None
    detached: int


def watch_rows(
    connection: sqlite3.Connection, *, ended_after_s: float = NEVER
) -> list[Watch]:
    """Return the watches: what ended since then in that order, then what is armed."""
    # Two indexes, so that a long history costs nothing; an OR would read it all.
    chosen = (
        "SELECT rowid FROM watches WHERE state = 'armed'"
        " UNION ALL SELECT rowid FROM watches WHERE ended_at >= ?"
    )
    return _watches(connection, chosen, ended_after_s)


def newest_rows(connection: sqlite3.Connection, count: int) -> list[Watch]:
    """Return the watches that ended last, the newest first."""
    chosen = (
        "SELECT rowid FROM (SELECT rowid FROM watches WHERE ended_at IS NOT NULL"
        " ORDER BY ended_at DESC LIMIT ?)"
    )
    return _watches(connection, chosen, count)[::-1]


def watch_row(connection: sqlite3.Connection, watch_id: str) -> Watch | None:
    """Return one watch by its whole id."""
    rows = _watches(connection, "SELECT rowid FROM watches WHERE id = ?", watch_id)
    return rows[0] if rows else None


def _watches(
    connection: sqlite3.Connection, chosen: str, value: float | str
) -> list[Watch]:
    """Return the watches whose rowids the query `chosen` gives."""
    path = os.path.join(os.path.dirname(__file__), "views.sql")
    with open(path, encoding="utf-8") as file:
        query = f"WITH chosen AS ({chosen}) {file.read()}"
    cursor = connection.cursor()
    cursor.row_factory = None
    return [*map(Watch._make, cursor.execute(query, (value,)))]


def matching(connection: sqlite3.Connection, prefix: str) -> list[str]:
    """Return the ids that begin so, the newest first; a whole id is the only one."""
    rows = connection.execute(
        "SELECT id FROM watches WHERE substr(id, 1, length(?1)) = ?1"
        " ORDER BY armed_at DESC",
        (prefix,),
    )
    ids = [row["id"] for row in rows]
    return [prefix] if prefix in ids else ids


def watch_object(watch: Watch, zone: tzinfo | None = None) -> Object:
    """Return a watch as the appendix has it.

    `acknowledged` is null while it is armed, then whether every waiter that was told
    the outcome has acknowledged it. `holder` is who held the lock when it was last
    seen held. `session` and `resume` are those of the first waiter that still waits,
    or, once it has ended, that was told.
    """
    return {
        **_plain_fields(watch, zone),
        "holder": json_object(watch.holder) or None,
        "evidence": json_object(watch.evidence),
    }


def watch_text(watch: Watch, zone: tzinfo | None = None) -> str:
    """Return `watch_object` as JSON.

    What is JSON in the store and has nothing in it to clean goes through as it is: that
    is a fifth of what it costs to list a thousand watches.
    """
    fields = _encode(_plain_fields(watch, zone))[:-1]
    holder, evidence = watch.holder, watch.evidence
    if holder is None or not _is_plain(holder):
        holder = _encode(json_object(holder) or None)
    if not (watch.sound and _is_plain(evidence)):
        evidence = _encode(json_object(evidence))
    return f'{fields}, "holder": {holder}, "evidence": {evidence}}}'


def _plain_fields(watch: Watch, zone: tzinfo | None) -> Object:
    return {
        "id": watch.id,
        "target": shown(watch.target),
        "kind": watch.kind,
        "label": shown(watch.label),
        "host": optional(watch.host),
        "state": watch.state,
        "observation": watch.observation,
        "result": watch.result,
        "armed_at": rfc3339(watch.armed_at, zone),
        "deadline": rfc3339(watch.deadline_at, zone),
        "ended_at": rfc3339(watch.ended_at, zone),
        "last_probe_at": rfc3339(watch.last_probe_at, zone),
        "unknown_s": round(watch.unknown_s, 3),
        "every_s": watch.every_s,
        "ttl_s": watch.ttl_s,
        "renewals": watch.renewals,
        "session": optional(watch.session),
        "resume": optional(watch.resume),
        "waiters": watch.waiters,
        "detached": bool(watch.detached),
        "acknowledged": None if watch.state == "armed" else watch.unread == 0,
        "line": optional(watch.line),
        "observations": watch.looks,
    }


def waiter_rows(connection: sqlite3.Connection, watch_id: str) -> list[sqlite3.Row]:
    """Return the waiters of a watch in the order they came."""
    return connection.execute(
        "SELECT * FROM waiters WHERE watch_id = ? ORDER BY number", (watch_id,)
    ).fetchall()


def open_rows(connection: sqlite3.Connection, count: int) -> list[sqlite3.Row]:
    """Return the waiters whose outcome nobody has acknowledged, the newest first."""
    return connection.execute(
        "SELECT waiters.*, watches.target, watches.host, watches.line FROM waiters"
        " JOIN watches ON id = watch_id WHERE waiters.state = 'told'"
        " AND acknowledged_at IS NULL ORDER BY told_at DESC, id, number LIMIT ?",
        (count,),
    ).fetchall()


def trail_rows(connection: sqlite3.Connection, watch_id: str) -> list[sqlite3.Row]:
    """Return what was done to a watch, in its order."""
    return connection.execute(
        "SELECT at, event, detail FROM trail WHERE watch_id = ? ORDER BY id",
        (watch_id,),
    ).fetchall()


def detail_object(
    watch: Watch,
    waiters: Iterable[sqlite3.Row],
    trail: Iterable[sqlite3.Row],
    zone: tzinfo | None = None,
) -> Object:
    """Return a watch with its waiters in their order and what was done to it."""
    return {**watch_object(watch, zone), **company_object(waiters, trail, zone)}


def company_object(
    waiters: Iterable[sqlite3.Row],
    trail: Iterable[sqlite3.Row],
    zone: tzinfo | None = None,
) -> Object:
    """Return the waiters of a watch in their order and what was done to it."""
    return {
        "waiter_list": [_waiter_object(waiter, zone) for waiter in waiters],
        "trail": [
            {
                "at": rfc3339(step["at"], zone),
                "event": shown(step["event"]),
                "detail": json_value(step["detail"]),
            }
            for step in trail
        ],
    }


def _waiter_object(row: sqlite3.Row, zone: tzinfo | None) -> Object:
    return {
        "number": row["number"],
        "label": shown(row["label"]),
        "resume": optional(row["resume"]),
        "session": optional(row["session"]),
        "state": row["state"],
        "outcome": told(row),
        "armed_at": rfc3339(row["armed_at"], zone),
        "deadline": rfc3339(row["deadline_at"], zone),
        "ttl_s": row["ttl_s"],
        "takes": bool(row["takes"]),
        "acknowledged_at": rfc3339(row["acknowledged_at"], zone),
    }


def told(row: sqlite3.Row) -> object:
    """Return how the watch ended for a waiter, None while it is not told."""
    return _cleaned(_object(row["outcome"]).get("ending"))


def ping_rows(
    connection: sqlite3.Connection, *, delivered_after_s: float = NEVER
) -> list[sqlite3.Row]:
    """Return the pings that are pending or dead, or were delivered since then."""
    return connection.execute(
        "SELECT * FROM pings WHERE state != 'delivered' OR delivered_at >= ?"
        " ORDER BY created_at, id",
        (delivered_after_s,),
    ).fetchall()


def ping_object(row: sqlite3.Row, zone: tzinfo | None = None) -> Object:
    """Return a ping as the appendix has it; the next attempt only of a pending one."""
    return {
        "id": row["id"],
        "channel": shown(row["channel"]),
        "state": row["state"],
        "attempts": row["attempts"],
        "next_attempt_at": rfc3339(row["due_at"], zone)
        if row["state"] == "pending"
        else None,
        "message": message(row),
        "idempotency_key": shown(row["key"]),
        "created_at": rfc3339(row["created_at"], zone),
        "delivered_at": rfc3339(row["delivered_at"], zone),
        "last_error": optional(row["last_error"]),
    }


def marker_object(marker: Marker, zone: tzinfo | None = None) -> Object:
    """Return a marker as the appendix has it.

    `watch_state` is null for a job; for a watch it is that watch's own state.
    """
    return {
        "id": marker.id,
        "label": shown(marker.label),
        "state": marker.state,
        "started_at": rfc3339(marker.started_at, zone),
        "ended_at": rfc3339(marker.ended_at, zone),
        "notify_after_s": marker.notify_after_s,
        "session": optional(marker.session),
        "watch_state": marker.watch_state,
    }


def message(row: sqlite3.Row) -> str:
    """Return the message of a ping; of a damaged one whatever its row holds."""
    return shown(str(_object(row["body"]).get("message", row["body"])))


def shown(text: str) -> str:
    """Return a text of the store, cleaned."""
    if "\\udc" in text:
        text = _ESCAPED.sub(r"\\x\1", text)
    return _clean(text)


def json_value(text: str) -> object:
    """Return what a JSON text of the store holds, cleaned; None for a damaged one."""
    return _cleaned(_value(text))


def json_object(text: str | None) -> Object:
    """Return the object of a JSON text, cleaned; an empty one where it holds none."""
    value = _cleaned(_object(text))
    return value if isinstance(value, dict) else {}


def rfc3339(at_s: float | None, zone: tzinfo | None = None) -> str | None:
    """Return an instant with its offset, to the millisecond."""
    if at_s is None:
        return None
    if zone is not None:
        return datetime.fromtimestamp(at_s, zone).isoformat("T", "milliseconds")
    # Three times as fast as an aware time, which matters for a thousand watches.
    here = datetime.fromtimestamp(at_s)  # noqa: DTZ006 - its offset comes behind it
    return here.isoformat("T", "milliseconds") + _offset(at_s // 900 * 900)


@cache
def _offset(quarter_s: float) -> str:
    """Return the local offset in a quarter of an hour; no zone changes it within."""
    return datetime.fromtimestamp(quarter_s, UTC).astimezone().isoformat()[-6:]


def optional(text: str | None) -> str | None:
    """Return a text of the store, cleaned, where there is one."""
    return None if text is None else shown(text)


def _cleaned(value: object) -> object:
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, dict):
        return {_clean(name): _cleaned(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    return value


def _value(text: str) -> object:
    try:
        value: object = json.loads(text)
    except ValueError:
        return None
    return value


def _object(text: str | None) -> Object:
    value = _value(text) if text else None
    return value if isinstance(value, dict) else {}


def _is_plain(text: str) -> bool:
    """Say whether JSON holds nothing to clean: without escapes it shows all it has."""
    return "\\" not in text and text.isprintable()


def _clean(text: str) -> str:
    # What is printable holds nothing to escape; `clean` would look at each character.
    return text if text.isprintable() else clean(text)
