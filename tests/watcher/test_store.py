"""Rows of watches and waiters: conditional changes make a second outcome impossible."""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.codec import outcome_of
from policies.model import Ending, Outcome, Result, Sight
from policies.target import lock_target
from tests.policies.samples import ALWAYS
from tests.rows import opened
from watcher import store
from watcher.store import Sighting, WaiterRow, WatchRow

AT = 1_700_000_000.0
OUTCOME = Outcome(
    ending=Ending.RELEASED,
    watch_id="a1",
    target=lock_target("/l/lock-a.md", "/l"),
    label="a",
    armed_at=datetime.fromtimestamp(AT, UTC),
    ended_at=datetime.fromtimestamp(AT + 60, UTC),
    waited_s=60,
    ttl_s=100,
    observations=3,
    unknown_s=1.5,
    evidence={"errno": "ENOENT"},
)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = opened(tmp_path)
    yield connection
    connection.close()


def watch(watch_id: str = "a1", **values: object) -> WatchRow:
    row: dict[str, object] = {
        "id": watch_id,
        "target": f"lock {watch_id}",
        "kind": "lock",
        "label": watch_id,
        "host": None,
        "armed_at": AT,
        "deadline_at": AT + 100,
        "every_s": 30,
        "ttl_s": 100,
        "start_within_s": 5,
        "looks": 0,
        "unknown_s": 0.0,
        "renewals": 0,
        "memory": {"entry": [1, 2]},
    }
    return WatchRow(**(row | values))  # type: ignore[arg-type]  # a test's own


def waiter(number: int = 1, **values: object) -> WaiterRow:
    row: dict[str, object] = {
        "number": number,
        "label": "a",
        "resume": "go on",
        "session": "s1",
        "lang": "en",
        "ttl_s": 100,
        "armed_at": AT,
        "deadline_at": AT + 100,
        "deadline_boot_s": 1100.0,
        "boot_id": "boot-1",
        "takes": True,
        "nonce": f"n{number}",
    }
    return WaiterRow(**(row | values))  # type: ignore[arg-type]  # a test's own


def arm(connection: sqlite3.Connection, *waiters: WaiterRow, **values: object) -> None:
    store.insert_watch(connection, watch(**values))  # type: ignore[arg-type]  # as above
    for row in waiters or (waiter(),):
        store.insert_waiter(connection, "a1", row)


def one(connection: sqlite3.Connection, query: str) -> object:
    (value,) = connection.execute(query).fetchone()
    return value


def told(connection: sqlite3.Connection) -> list[tuple[int, str]]:
    query = "SELECT number, state FROM waiters ORDER BY number"
    return [(row["number"], row["state"]) for row in connection.execute(query)]


def test_what_is_stored_comes_back_whole(connection: sqlite3.Connection) -> None:
    odd = {"target": "lock '/l/\udcff'", "label": "\udcfe"}
    arm(connection, waiter(label="\udcfd", resume="\udcfc"), host="box", **odd)
    ((row, waiters),) = store.armed_watches(connection)
    assert row == watch(host="box", **odd)
    assert waiters == [waiter(label="\udcfd", resume="\udcfc")]


@ALWAYS
@given(st.text() | st.binary().map(lambda b: b.decode("utf-8", "surrogateescape")))
def test_any_text_of_the_system_survives_the_store(text: str) -> None:
    if "\\udc" not in text and text.isprintable():
        assert store.from_text(store.to_text(text)) == text
    kept = store.to_text(text)
    assert not any(0xDC80 <= ord(char) <= 0xDCFF for char in kept)


def test_a_condition_is_watched_once(connection: sqlite3.Connection) -> None:
    arm(connection)
    with pytest.raises(sqlite3.IntegrityError):
        store.insert_watch(connection, watch("b2", target="lock a1"))
    store.end_watch(connection, OUTCOME, [], "line")
    store.insert_watch(connection, watch("b2", target="lock a1"))


def test_a_watch_ends_once(connection: sqlite3.Connection) -> None:
    arm(connection, waiter(1), waiter(2))
    both = [(1, OUTCOME), (2, replace(OUTCOME, label="b"))]
    assert store.end_watch(connection, OUTCOME, both, "the line")
    other = replace(OUTCOME, ending=Ending.EXPIRED)
    assert not store.end_watch(connection, other, [(1, other)], "another")
    assert not store.end_watch(connection, replace(other, watch_id="b2"), [], "")
    assert store.tell_waiters(connection, "a1", [(1, other), (2, other)]) == 0
    row = connection.execute("SELECT * FROM watches").fetchone()
    assert (row["state"], row["observation"], row["line"]) == (
        "released",
        "released",
        "the line",
    )
    assert (row["looks"], row["unknown_s"], row["ended_at"]) == (3, 1.5, AT + 60)
    assert json.loads(row["evidence"]) == {"errno": "ENOENT"}
    records = [
        outcome_of(json.loads(row["outcome"]))
        for row in connection.execute("SELECT outcome FROM waiters ORDER BY number")
    ]
    assert records == [OUTCOME, replace(OUTCOME, label="b")]
    assert store.armed_watches(connection) == []


@pytest.mark.parametrize(
    ("change", "sight"),
    [
        ({"ending": Ending.ENDED, "result": Result.FAIL}, Sight.RELEASED),
        ({"ending": Ending.EXPIRED}, Sight.HELD),
        ({"ending": Ending.EXPIRED, "unknown_since": OUTCOME.armed_at}, Sight.UNKNOWN),
        ({"ending": Ending.UNSEEN}, Sight.UNKNOWN),
        ({"ending": Ending.REMOVED}, Sight.HELD),
    ],
    ids=str,
)
def test_the_last_observation_is_what_the_outcome_says(
    change: dict[str, object], sight: Sight, connection: sqlite3.Connection
) -> None:
    arm(connection)
    outcome = replace(OUTCOME, **change)  # type: ignore[arg-type]  # one of the table
    store.end_watch(connection, outcome, [], "")
    assert one(connection, "SELECT observation FROM watches") == sight
    assert one(connection, "SELECT result FROM watches") == outcome.result


def test_some_waiters_are_told_and_the_others_wait(
    connection: sqlite3.Connection,
) -> None:
    arm(connection, waiter(1), waiter(2))
    assert store.tell_waiters(connection, "a1", [(1, OUTCOME), (7, OUTCOME)]) == 1
    assert told(connection) == [(1, "told"), (2, "waiting")]
    ((_, waiting),) = store.armed_watches(connection)
    assert [row.number for row in waiting] == [2]
    assert store.last_number(connection, "a1") == 2
    assert store.last_number(connection, "b2") == 0


def test_a_watch_lives_until_its_last_waiters_deadline(
    connection: sqlite3.Connection,
) -> None:
    deadline = "SELECT deadline_at - 1700000000 FROM watches"
    arm(connection, waiter(1), waiter(2, deadline_at=AT + 500))
    store.insert_waiter(connection, "a1", waiter(3, deadline_at=AT + 200))
    assert one(connection, deadline) == 500
    assert store.leave(connection, "a1", 2, AT + 1)
    assert not store.leave(connection, "a1", 2, AT + 1)
    assert one(connection, deadline) == 200
    store.leave(connection, "a1", 3, AT + 1)
    store.leave(connection, "a1", 1, AT + 1)
    assert one(connection, deadline) == 100
    events = [r["event"] for r in connection.execute("SELECT event FROM trail")]
    assert events == ["joined", "joined", "left", "left", "left"]


def test_a_nonce_finds_its_waiter(connection: sqlite3.Connection) -> None:
    arm(connection, waiter(1), waiter(2))
    assert store.find_waiter(connection, "n2") == ("a1", 2)
    assert store.find_waiter(connection, "n3") is None
    with pytest.raises(sqlite3.IntegrityError):
        store.insert_waiter(connection, "a1", waiter(3, nonce="n1"))


def test_sightings_change_what_they_bring_and_only_what_is_armed(
    connection: sqlite3.Connection,
) -> None:
    arm(connection)
    seen = Sighting(
        watch_id="a1", observation=Sight.HELD, last_probe_at=AT, looks=2, unknown_s=0
    )
    more = replace(seen, looks=3, memory={"m": 1}, evidence={"e": 1})
    fields = "SELECT observation || looks || memory || evidence FROM watches"
    store.save_sightings(connection, [seen])
    assert one(connection, fields) == 'held2{"entry":[1,2]}{}'
    store.save_sightings(connection, [more, replace(more, watch_id="b2")])
    assert one(connection, fields) == 'held3{"m":1}{"e":1}'
    store.end_watch(connection, OUTCOME, [], "")
    store.save_sightings(connection, [replace(more, looks=9)])
    assert one(connection, "SELECT looks FROM watches") == 3


def test_a_renewal_moves_only_what_still_waits(connection: sqlite3.Connection) -> None:
    arm(connection, waiter(1), waiter(2))
    store.tell_waiters(connection, "a1", [(1, OUTCOME)])
    moved = [waiter(n, deadline_at=AT + 900, deadline_boot_s=1900.0) for n in (1, 2)]
    store.move_deadlines(connection, "a1", moved, idle_renewals=2)
    query = "SELECT deadline_at - ? FROM waiters ORDER BY number"
    assert [row[0] for row in connection.execute(query, (AT,))] == [100, 900]
    assert one(connection, "SELECT renewals * 10 + idle_renewals FROM watches") == 12
    store.end_watch(connection, OUTCOME, [], "")
    store.move_deadlines(connection, "a1", moved, idle_renewals=5)
    assert one(connection, "SELECT renewals * 10 + idle_renewals FROM watches") == 12


@pytest.mark.parametrize("ending", [e for e in Ending if e is not Ending.EXPIRED])
def test_only_what_expired_is_armed_again(
    ending: Ending, connection: sqlite3.Connection
) -> None:
    arm(connection)
    assert not store.revive(connection, "a1")
    store.end_watch(connection, replace(OUTCOME, ending=ending), [], "line")
    assert not store.revive(connection, "a1")


def test_what_is_armed_again_has_neither_line_nor_end(
    connection: sqlite3.Connection,
) -> None:
    arm(connection)
    expired = replace(OUTCOME, ending=Ending.EXPIRED)
    store.end_watch(connection, expired, [(1, expired)], "line")
    connection.execute("UPDATE owner SET token = 7")
    assert store.revive(connection, "a1")
    row = connection.execute("SELECT * FROM watches").fetchone()
    assert (row["state"], row["ended_at"], row["line"], row["token"]) == (
        "armed",
        None,
        None,
        7,
    )
    store.end_watch(connection, expired, [], "line")
    store.insert_watch(connection, watch("b2", target="lock a1"))
    with pytest.raises(sqlite3.IntegrityError):
        store.revive(connection, "a1")


def test_only_what_was_told_is_acknowledged_and_once(
    connection: sqlite3.Connection,
) -> None:
    arm(connection, waiter(1), waiter(2))
    store.tell_waiters(connection, "a1", [(1, OUTCOME)])
    assert store.acknowledge(connection, "a1", AT + 1) == 1
    assert store.acknowledge(connection, "a1", AT + 2) == 0
    assert one(connection, "SELECT sum(acknowledged_at) FROM waiters") == AT + 1


@pytest.mark.parametrize("memory", ['{"a": [1', "", "[]", "5", "null", '"text"'])
def test_a_damaged_memory_is_empty(memory: str, connection: sqlite3.Connection) -> None:
    arm(connection)
    connection.execute("UPDATE watches SET memory = ?", (memory,))
    ((row, _),) = store.armed_watches(connection)
    assert row.memory == {}
