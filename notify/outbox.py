"""The outbox: one row a ping and channel, until it is delivered or dead (C6.1, C6.7).

Plain functions on a connection, inside the caller's transaction: so an outcome and its
pings are one commit. Instants are seconds since the epoch, by the wall clock. Where
that was stepped back, a row seems due, or claimed, in a far future: what is further
off than any row ever waits does not count.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from sqlite3 import Connection
from typing import Any

from policies.codec import dumps, instant, ping_of, ping_record
from policies.delivery import GIVE_UP_S, LONGEST_WAIT_S, PingState, Settlement
from policies.model import Json, Ping
from policies.shapes import rfc3339
from policies.text import clean
from policies.wording import Lang, phrase

_UNREADABLE = (
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    OSError,
    RecursionError,
)

_ADD = """
INSERT INTO pings (channel, key, watch_id, body, created_at, due_at, give_up_at)
VALUES (:channel, :key, :watch_id, :body, :now, :now, :give_up)
ON CONFLICT (channel, key) DO NOTHING
"""

_DUE = f"""
state = 'pending'
AND (due_at <= :now OR due_at > :now + {LONGEST_WAIT_S})
AND (claimed_until <= :now OR claimed_until > :now + {LONGEST_WAIT_S})
"""

# The plus sign keeps it to the index of what is pending, in its order, whatever lies in
# the history. The body is read as bytes: one that is no UTF-8 would fail the statement.
_CLAIM = f"""
UPDATE pings SET claim = :claim, claimed_until = :now + :lease
WHERE id IN (
    SELECT id FROM pings
    WHERE +channel = :channel AND (attempts = 0) = :fresh AND {_DUE}
    ORDER BY due_at, id LIMIT :most
)
RETURNING due_at, id, CAST(body AS BLOB), attempts, created_at, give_up_at,
    logged_at IS NOT NULL
"""  # noqa: S608 - a constant

_KILL = """
UPDATE pings SET state = 'dead', claim = NULL, claimed_until = 0, last_error = ?
WHERE id = ?
"""

_SETTLE = """
UPDATE pings SET
    state = :state,
    attempts = attempts + 1,
    due_at = coalesce(:due, due_at),
    claim = NULL,
    claimed_until = 0,
    delivered_at = CASE :state WHEN 'delivered' THEN :now END,
    logged_at = coalesce(logged_at, CASE WHEN :logged THEN :now END),
    last_error = :error
WHERE id = :id AND claim = :claim
"""

_REVIVE = """
UPDATE pings SET state = 'pending', due_at = :now, give_up_at = :give_up
WHERE state = 'dead'
"""

_LISTING = """
SELECT id, channel, state, attempts, due_at, CAST(body AS BLOB), key, created_at,
    delivered_at, last_error, watch_id, logged_at
FROM pings WHERE state IN ({marks}) ORDER BY id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A row that somebody has claimed to send.

    Attributes:
        row: its id.
        attempts: how many were made before.
        created_s: when it was put into the outbox.
        logged: the fallback log has the ping already.
        claim: what proves, when it is settled, that it still is the claimant's.
    """

    row: int
    ping: Ping
    attempts: int
    created_s: float
    give_up_at: datetime
    logged: bool
    claim: str


def add(
    connection: Connection,
    ping: Ping,
    *,
    channels: Collection[str],
    now_s: float,
    give_up_s: float = GIVE_UP_S,
    watch_id: str | None,
) -> int:
    """Put a ping in for each channel and return how many rows that made.

    A channel that has the key already keeps what it has: to tell an outcome twice is
    harmless.

    Args:
        channels: the names of those that are configured; see `Dispatcher.names`.
        give_up_s: seconds for which the ping is tried.
        watch_id: the watch that it is about, if any.
    """
    before = connection.total_changes
    body = dumps(ping_record(ping))
    for channel in channels:
        connection.execute(
            _ADD,
            {
                "channel": channel,
                "key": ping.idempotency_key,
                "watch_id": watch_id,
                "body": body,
                "now": now_s,
                "give_up": now_s + give_up_s,
            },
        )
    return connection.total_changes - before


def due(connection: Connection, *, now_s: float) -> dict[str, int]:
    """Return how many rows could be claimed now, for each channel that has any."""
    statement = f"SELECT channel, count(*) FROM pings WHERE {_DUE} GROUP BY +channel"  # noqa: S608 - a constant
    return dict(connection.execute(statement, {"now": now_s}).fetchall())


def claim(
    connection: Connection,
    *,
    channel: str,
    now_s: float,
    lease_s: float,
    claim: str,
    most: int,
    lang: Lang = Lang.PT,
) -> list[Delivery]:
    """Claim rows of a channel that are due and return them, the most urgent first.

    A row that cannot even be read is dead at once, with its error, and another one is
    claimed in its place.

    Args:
        lease_s: seconds after which the claim of somebody who died is void.
        claim: a token that no other call uses.
        most: how many rows.
        lang: of that error.
    """
    values = {"channel": channel, "now": now_s, "lease": lease_s, "claim": claim}
    claimed: list[Delivery] = []
    # Never tried comes first: rows that always fail hold up no new one.
    for fresh in (True, False):
        while len(claimed) < most:
            values |= {"fresh": fresh, "most": most - len(claimed)}
            rows = connection.execute(_CLAIM, values).fetchall()
            if not rows:
                break
            for _, *row in sorted(rows, key=lambda row: (row[0], row[1])):
                delivery = _read(connection, row, claim, lang)
                if delivery is not None:
                    claimed.append(delivery)
    return claimed


def _read(
    connection: Connection, row: Sequence[Any], claim: str, lang: Lang
) -> Delivery | None:
    """Return a row that was claimed; one that cannot be read is dead instead."""
    number, body, attempts, created, give_up, logged = row
    try:
        return Delivery(
            row=number,
            ping=ping_of(json.loads(body)),
            attempts=attempts,
            created_s=created,
            give_up_at=instant(give_up),
            logged=bool(logged),
            claim=claim,
        )
    except _UNREADABLE as error:
        what = f"{type(error).__name__}: {error}"
        reason = phrase("unreadable_row", error=what).render(lang)
        connection.execute(_KILL, (reason, number))
        return None


def settle(
    connection: Connection,
    delivery: Delivery,
    result: Settlement,
    *,
    now_s: float,
    logged: bool = False,
    lang: Lang = Lang.PT,
) -> bool:
    """Write down how an attempt went; return False where the row is another's by now.

    So a sender that was paused for longer than its lease changes nothing.

    Args:
        logged: the fallback log has the ping.
        lang: of the error.
    """
    changed = connection.execute(
        _SETTLE,
        {
            "id": delivery.row,
            "claim": delivery.claim,
            "state": result.state,
            "due": result.due_at.timestamp() if result.due_at else None,
            "now": now_s,
            "logged": logged,
            "error": result.reason.render(lang) if result.reason else None,
        },
    )
    return changed.rowcount == 1


def delivered_elsewhere(
    connection: Connection, key: str, *, channel: str, at_s: float
) -> int:
    """Mark a ping as delivered that somebody else has sent under the same key (C7.4).

    Args:
        channel: the one on which it went out.
        at_s: when that was.
    """
    return connection.execute(
        "UPDATE pings SET state = 'delivered', delivered_at = ?, claim = NULL,"
        " claimed_until = 0, last_error = NULL"
        " WHERE key = ? AND channel = ? AND state != 'delivered'",
        (at_s, key, channel),
    ).rowcount


def flush(
    connection: Connection,
    *,
    dead: bool,
    now_s: float,
    give_up_s: float = GIVE_UP_S,
) -> int:
    """Make every pending row due now and return how many rows that are (C6.7).

    Args:
        dead: dead rows become pending again too (C6.2).
        give_up_s: seconds for which those are tried anew.
    """
    values = {"now": now_s, "give_up": now_s + give_up_s}
    if dead:
        connection.execute(_REVIVE, values)
    return connection.execute(
        "UPDATE pings SET due_at = :now WHERE state = 'pending'", values
    ).rowcount


def oldest_pending_s(connection: Connection, *, now_s: float) -> float | None:
    """Return the seconds that the oldest pending row has waited, if any waits."""
    statement = "SELECT min(created_at) FROM pings WHERE state = 'pending'"
    (at,) = connection.execute(statement).fetchone()
    return None if at is None else max(0.0, now_s - at)


def listing(
    connection: Connection,
    *,
    zone: tzinfo,
    states: Collection[PingState] = tuple(PingState),
) -> list[dict[str, Json]]:
    """Return rows in the shape of `outbox --json`, the oldest first."""

    def at(seconds: float | None) -> str | None:
        if seconds is None:
            return None
        return rfc3339(datetime.fromtimestamp(seconds, UTC), zone)

    statement = _LISTING.format(marks=", ".join("?" for _ in states))
    return [
        {
            "id": number,
            "channel": channel,
            "state": state,
            "attempts": attempts,
            "next_attempt_at": at(due_at) if state == PingState.PENDING else None,
            "message": _message(body),
            "idempotency_key": key,
            "created_at": at(created_at),
            "delivered_at": at(delivered_at),
            "last_error": error,
            "watch_id": watch_id,
            "logged_at": at(logged_at),
        }
        for (
            number,
            channel,
            state,
            attempts,
            due_at,
            body,
            key,
            created_at,
            delivered_at,
            error,
            watch_id,
            logged_at,
        ) in connection.execute(statement, tuple(states))
    ]


def _message(body: bytes) -> str:
    """Return what a row says, as far as it can be read."""
    try:
        record = json.loads(body)
    except _UNREADABLE:
        record = None
    if not isinstance(record, Mapping):
        return ""
    return clean(str(record.get("message", "")))
