"""Rows of watches and waiters: each change inside the caller's transaction."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from policies.codec import dumps, outcome_record
from policies.model import Ending, Evidence, Json, Memory, Outcome, Sight
from watcher.stored_text import from_text as from_text  # noqa: PLC0414 - it is found here too
from watcher.stored_text import to_text as to_text  # noqa: PLC0414 - it is found here too


@dataclass(slots=True, kw_only=True)
class WaiterRow:
    """One waiting command; instants are seconds since the epoch but for `boot`."""

    number: int
    label: str
    resume: str | None
    session: str | None
    lang: str
    ttl_s: int
    armed_at: float
    deadline_at: float
    deadline_boot_s: float
    boot_id: str
    takes: bool
    nonce: str | None
    project: str | None = None


@dataclass(slots=True, kw_only=True)
class WatchRow:
    """One watch as it is stored; instants are seconds since the epoch."""

    id: str
    target: str
    kind: str
    label: str
    host: str | None
    armed_at: float
    deadline_at: float
    every_s: int
    ttl_s: int
    start_within_s: int
    looks: int
    unknown_s: float
    renewals: int
    memory: Memory


@dataclass(slots=True, kw_only=True)
class Sighting:
    """What the latest looks at a watch came to."""

    watch_id: str
    observation: Sight
    last_probe_at: float
    looks: int
    unknown_s: float
    memory: Memory | None = None
    evidence: Evidence | None = None


def insert_watch(connection: sqlite3.Connection, watch: WatchRow) -> None:
    """Store a watch under the token of its owner.

    Raises:
        sqlite3.IntegrityError: the condition is watched already.
    """
    connection.execute(
        "INSERT INTO watches (id, target, kind, label, host, armed_at, deadline_at,"
        " every_s, ttl_s, start_within_s, memory, token)"
        " SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, token FROM owner WHERE id = 1",
        (
            watch.id,
            to_text(watch.target),
            watch.kind,
            to_text(watch.label),
            watch.host,
            watch.armed_at,
            watch.deadline_at,
            watch.every_s,
            watch.ttl_s,
            watch.start_within_s,
            dumps(watch.memory),
        ),
    )


def insert_waiter(
    connection: sqlite3.Connection, watch_id: str, waiter: WaiterRow
) -> None:
    """Store one more waiter of a watch, which lives until the last one's deadline."""
    connection.execute(
        "INSERT INTO waiters (watch_id, number, label, resume, session, lang, ttl_s,"
        " armed_at, deadline_at, deadline_boot_s, boot_id, takes, nonce, project)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            watch_id,
            waiter.number,
            to_text(waiter.label),
            to_text(waiter.resume) if waiter.resume else None,
            waiter.session,
            waiter.lang,
            waiter.ttl_s,
            waiter.armed_at,
            waiter.deadline_at,
            waiter.deadline_boot_s,
            waiter.boot_id,
            int(waiter.takes),
            waiter.nonce,
            to_text(waiter.project) if waiter.project else None,
        ),
    )
    connection.execute(
        "UPDATE watches SET deadline_at = max(deadline_at, ?) WHERE id = ?",
        (waiter.deadline_at, watch_id),
    )
    if waiter.number > 1:
        add_trail(connection, watch_id, waiter.armed_at, "joined", waiter.number)


def add_trail(
    connection: sqlite3.Connection, watch_id: str, at: float, event: str, detail: Json
) -> None:
    """Note what was done to a watch."""
    connection.execute(
        "INSERT INTO trail (watch_id, at, event, detail) VALUES (?, ?, ?, ?)",
        (watch_id, at, event, dumps(detail)),
    )


def armed_watches(
    connection: sqlite3.Connection,
) -> list[tuple[WatchRow, list[WaiterRow]]]:
    """Return every armed watch with the waiters that still wait, in their order."""
    waiters: dict[str, list[WaiterRow]] = {}
    for row in connection.execute(
        "SELECT * FROM waiters WHERE state = 'waiting' ORDER BY watch_id, number"
    ):
        waiters.setdefault(row["watch_id"], []).append(_waiter(row))
    return [
        (_watch(row), waiters.get(row["id"], []))
        for row in connection.execute("SELECT * FROM watches WHERE state = 'armed'")
    ]


def last_number(connection: sqlite3.Connection, watch_id: str) -> int:
    """Return the number of the watch's newest waiter, 0 without any."""
    row = connection.execute(
        "SELECT max(number) AS number FROM waiters WHERE watch_id = ?", (watch_id,)
    ).fetchone()
    return int(row["number"] or 0)


def waiting(connection: sqlite3.Connection, watch_id: str) -> list[WaiterRow]:
    """Return those who still wait for a watch, in the order they came."""
    rows = connection.execute(
        "SELECT * FROM waiters WHERE watch_id = ? AND state = 'waiting'"
        " ORDER BY number",
        (watch_id,),
    )
    return [_waiter(row) for row in rows]


def find_waiter(connection: sqlite3.Connection, nonce: str) -> tuple[str, int] | None:
    """Return the watch and number of the waiter that a command asked for before."""
    row = connection.execute(
        "SELECT watch_id, number FROM waiters WHERE nonce = ?", (nonce,)
    ).fetchone()
    return None if row is None else (row["watch_id"], row["number"])


def end_watch(
    connection: sqlite3.Connection,
    outcome: Outcome,
    told: Sequence[tuple[int, Outcome]],
    line: str,
) -> bool:
    """End a watch once and tell its waiters; False when it had ended already.

    The conditional update is what makes a second outcome impossible.
    """
    ended_at = outcome.ended_at.timestamp()
    changed = connection.execute(
        "UPDATE watches SET state = ?, observation = ?, result = ?, ended_at = ?,"
        " last_probe_at = ?, looks = ?, unknown_s = ?, evidence = ?, line = ?"
        " WHERE id = ? AND state = 'armed'",
        (
            outcome.ending,
            _sight_at(outcome),
            outcome.result,
            ended_at,
            ended_at,
            outcome.observations,
            outcome.unknown_s,
            dumps(outcome.evidence),
            line,
            outcome.watch_id,
        ),
    ).rowcount
    if not changed:
        return False
    tell_waiters(connection, outcome.watch_id, told)
    return True


def tell_waiters(
    connection: sqlite3.Connection, watch_id: str, told: Iterable[tuple[int, Outcome]]
) -> int:
    """Give waiters their outcomes; return how many still waited for one."""
    return sum(
        connection.execute(
            "UPDATE waiters SET state = 'told', outcome = ?, told_at = ?"
            " WHERE watch_id = ? AND number = ? AND state = 'waiting'",
            (
                dumps(outcome_record(outcome)),
                outcome.ended_at.timestamp(),
                watch_id,
                number,
            ),
        ).rowcount
        for number, outcome in told
    )


def leave(
    connection: sqlite3.Connection, watch_id: str, number: int, at: float
) -> bool:
    """Take a waiter out; False when it did not wait any more."""
    changed = connection.execute(
        "UPDATE waiters SET state = 'left'"
        " WHERE watch_id = ? AND number = ? AND state = 'waiting'",
        (watch_id, number),
    ).rowcount
    if changed:
        add_trail(connection, watch_id, at, "left", number)
        connection.execute(
            "UPDATE watches SET deadline_at = coalesce((SELECT max(deadline_at)"
            " FROM waiters WHERE watch_id = watches.id AND state = 'waiting'),"
            " deadline_at) WHERE id = ?",
            (watch_id,),
        )
    return bool(changed)


def save_sightings(
    connection: sqlite3.Connection, sightings: Sequence[Sighting]
) -> None:
    """Keep what was seen; memory and evidence only where they changed."""
    connection.executemany(
        "UPDATE watches SET observation = ?, last_probe_at = ?, looks = ?,"
        " unknown_s = ?, memory = coalesce(?, memory), evidence = coalesce(?, evidence)"
        " WHERE id = ? AND state = 'armed'",
        [
            (
                item.observation,
                item.last_probe_at,
                item.looks,
                item.unknown_s,
                None if item.memory is None else dumps(item.memory),
                None if item.evidence is None else dumps(item.evidence),
                item.watch_id,
            )
            for item in sightings
        ],
    )


def move_deadlines(
    connection: sqlite3.Connection,
    watch_id: str,
    waiters: Iterable[WaiterRow],
    *,
    idle_renewals: int,
) -> None:
    """Store the new deadlines of a renewed watch and of its waiters."""
    latest = 0.0
    for waiter in waiters:
        latest = max(latest, waiter.deadline_at)
        connection.execute(
            "UPDATE waiters SET deadline_at = ?, deadline_boot_s = ?, boot_id = ?,"
            " ttl_s = ? WHERE watch_id = ? AND number = ? AND state = 'waiting'",
            (
                waiter.deadline_at,
                waiter.deadline_boot_s,
                waiter.boot_id,
                waiter.ttl_s,
                watch_id,
                waiter.number,
            ),
        )
    connection.execute(
        "UPDATE watches SET deadline_at = ?, renewals = renewals + 1,"
        " idle_renewals = ? WHERE id = ? AND state = 'armed'",
        (latest, idle_renewals, watch_id),
    )


def revive(connection: sqlite3.Connection, watch_id: str) -> bool:
    """Arm a watch again that has just expired; False when it cannot be.

    Raises:
        sqlite3.IntegrityError: the condition is watched by another watch meanwhile.
    """
    return bool(
        connection.execute(
            "UPDATE watches SET state = 'armed', ended_at = NULL, line = NULL,"
            " token = (SELECT token FROM owner WHERE id = 1)"
            " WHERE id = ? AND state = 'expired'",
            (watch_id,),
        ).rowcount
    )


def acknowledge(connection: sqlite3.Connection, watch_id: str, at: float) -> int:
    """Mark a watch's outcomes as read; return how many were not."""
    return connection.execute(
        "UPDATE waiters SET acknowledged_at = ?1, read_at = coalesce(read_at, ?1)"
        " WHERE watch_id = ?2 AND state = 'told' AND acknowledged_at IS NULL",
        (at, watch_id),
    ).rowcount


def load_memory(row: sqlite3.Row) -> Memory:
    """Return the memory of a row; a damaged one is empty."""
    try:
        memory = json.loads(row["memory"])
    except ValueError:
        return {}
    return cast("Memory", memory) if isinstance(memory, dict) else {}


def _sight_at(outcome: Outcome) -> Sight:
    if outcome.ending in {Ending.RELEASED, Ending.ENDED}:
        return Sight.RELEASED
    if outcome.unknown_since is not None or outcome.ending is Ending.UNSEEN:
        return Sight.UNKNOWN
    return Sight.HELD


def _watch(row: sqlite3.Row) -> WatchRow:
    return WatchRow(
        id=row["id"],
        target=from_text(row["target"]),
        kind=row["kind"],
        label=from_text(row["label"]),
        host=row["host"],
        armed_at=row["armed_at"],
        deadline_at=row["deadline_at"],
        every_s=row["every_s"],
        ttl_s=row["ttl_s"],
        start_within_s=row["start_within_s"],
        looks=row["looks"],
        unknown_s=row["unknown_s"],
        renewals=row["renewals"],
        memory=load_memory(row),
    )


def _waiter(row: sqlite3.Row) -> WaiterRow:
    return WaiterRow(
        number=row["number"],
        label=from_text(row["label"]),
        resume=from_text(row["resume"]) if row["resume"] else None,
        session=row["session"],
        lang=row["lang"],
        ttl_s=row["ttl_s"],
        armed_at=row["armed_at"],
        deadline_at=row["deadline_at"],
        deadline_boot_s=row["deadline_boot_s"],
        boot_id=row["boot_id"],
        takes=bool(row["takes"]),
        nonce=row["nonce"],
        project=from_text(row["project"]) if row["project"] else None,
    )
