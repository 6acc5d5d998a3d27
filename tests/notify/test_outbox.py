"""Rows of the outbox: put in, claimed, settled, flushed, shown (C6.1, C6.2, C6.7)."""

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from notify import outbox
from policies.delivery import (
    GIVE_UP_S,
    LONGEST_WAIT_S,
    Answer,
    Attempt,
    PingState,
    Settlement,
    settlement,
)
from policies.wording import Lang
from tests.notify.rig import a_ping
from watcher.database import open_database

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NOW_S = NOW.timestamp()
LEASE_S = 15.0
DELIVERED = Settlement(state=PingState.DELIVERED)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection, _ = open_database(str(tmp_path))
    yield connection
    connection.close()


def put(
    db: sqlite3.Connection,
    *keys: str,
    channel: str = "koder",
    now_s: float = NOW_S,
) -> None:
    for key in keys:
        outbox.add(db, a_ping(key), channels=[channel], now_s=now_s, watch_id="4f1c")


def take(
    db: sqlite3.Connection,
    *,
    channel: str = "koder",
    now_s: float = NOW_S,
    claim: str = "me-1",
    most: int = 10,
) -> list[outbox.Delivery]:
    return outbox.claim(
        db, channel=channel, now_s=now_s, lease_s=LEASE_S, claim=claim, most=most
    )


def keys(rows: list[outbox.Delivery]) -> list[str]:
    return [row.ping.idempotency_key for row in rows]


def failed(row: outbox.Delivery, now_s: float = NOW_S, error: str = "x") -> Settlement:
    return settlement(
        Attempt(answer=Answer.TRY_LATER, error=error),
        row.attempts + 1,
        now=datetime.fromtimestamp(now_s, UTC),
        give_up_at=row.give_up_at,
        jitter=0.0,
    )


def refused(row: outbox.Delivery) -> Settlement:
    attempt = Attempt(answer=Answer.REFUSED, error="HTTP 400")
    return settlement(
        attempt, row.attempts + 1, now=NOW, give_up_at=row.give_up_at, jitter=0.0
    )


def shown(db: sqlite3.Connection, key: str = "a") -> dict[str, object]:
    rows = outbox.listing(db, zone=UTC)
    (row,) = [row for row in rows if row["idempotency_key"] == key]
    return dict(row)


# put in


def test_a_ping_is_put_in_once_for_each_channel(db: sqlite3.Connection) -> None:
    channels = ["koder", "apprise:json#1"]
    for expected in (2, 0):
        made = outbox.add(db, a_ping(), channels=channels, now_s=NOW_S, watch_id="4f1c")
        assert made == expected
    assert [row["channel"] for row in outbox.listing(db, zone=UTC)] == channels


def test_an_outcome_told_twice_keeps_the_row_that_was_delivered(
    db: sqlite3.Connection,
) -> None:
    put(db, "a")
    (row,) = take(db)
    outbox.settle(db, row, DELIVERED, now_s=NOW_S)
    put(db, "a", now_s=NOW_S + 60)
    assert take(db, now_s=NOW_S + 60) == []
    assert shown(db)["state"] == "delivered"


def test_a_ping_shares_the_fate_of_its_transaction(db: sqlite3.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    put(db, "a")
    db.execute("ROLLBACK")
    assert outbox.listing(db, zone=UTC) == []


def test_the_ping_that_comes_out_is_the_one_that_went_in(
    db: sqlite3.Connection,
) -> None:
    ping = a_ping("k", "bytes that are no UTF-8: \udcff, \x1b[2J, 日本 ✅")
    outbox.add(db, ping, channels=["koder"], now_s=NOW_S, watch_id=None)
    (row,) = take(db)
    assert row.ping == ping
    assert (row.attempts, row.logged) == (0, False)
    assert row.give_up_at == NOW + timedelta(seconds=GIVE_UP_S)


# claimed


def test_rows_are_claimed_once_and_only_of_their_channel(
    db: sqlite3.Connection,
) -> None:
    put(db, "a", "b", "c")
    put(db, "other", channel="apprise:json#1")
    assert keys(take(db, claim="me-1", most=2)) == ["a", "b"]
    assert keys(take(db, claim="you-1")) == ["c"]
    assert take(db, claim="you-2") == []
    assert outbox.due(db, now_s=NOW_S) == {"apprise:json#1": 1}


def test_a_claim_whose_owner_died_is_void_after_its_lease(
    db: sqlite3.Connection,
) -> None:
    put(db, "a")
    take(db, claim="dead")
    assert take(db, now_s=NOW_S + LEASE_S - 0.1) == []
    assert keys(take(db, now_s=NOW_S + LEASE_S)) == ["a"]


def test_rows_are_claimed_when_they_are_due_and_not_before(
    db: sqlite3.Connection,
) -> None:
    put(db, "a")
    (row,) = take(db)
    assert outbox.settle(db, row, failed(row), now_s=NOW_S)
    assert take(db, now_s=NOW_S + 4.9) == []
    (again,) = take(db, now_s=NOW_S + 5, claim="me-2")
    assert again.attempts == 1


def test_what_was_never_tried_goes_before_what_failed(db: sqlite3.Connection) -> None:
    put(db, "old1", "old2")
    for row in take(db):
        outbox.settle(db, row, failed(row), now_s=NOW_S)
    put(db, "new", now_s=NOW_S + 60)
    assert keys(take(db, now_s=NOW_S + 60, claim="me-2")) == ["new", "old1", "old2"]


@pytest.mark.parametrize("back_s", [LONGEST_WAIT_S + 6, 86400.0 * 365])
def test_a_wall_clock_that_was_stepped_back_holds_no_ping_up(
    db: sqlite3.Connection, back_s: float
) -> None:
    put(db, "waits", "claimed")
    for row in take(db):
        if row.ping.idempotency_key == "waits":
            outbox.settle(db, row, failed(row), now_s=NOW_S)
    then_s = NOW_S - back_s
    assert outbox.due(db, now_s=then_s) == {"koder": 2}
    assert sorted(keys(take(db, now_s=then_s, claim="me-2"))) == ["claimed", "waits"]


# rows that nobody can read: B110

POISON = {
    "no JSON": b"{",
    "no object": b"[1]",
    "a number": b"7",
    "null": b"null",
    "nothing": b"",
    "no field": b"{}",
    "no severity": b'{"idempotency_key":"k","title":"t","message":"m",'
    b'"severity":"huge","occurred_at":1,"watch":null}',
    "no time": b'{"idempotency_key":"k","title":"t","message":"m",'
    b'"severity":"info","occurred_at":"noon","watch":null}',
    "no time of ours": b'{"idempotency_key":"k","title":"t","message":"m",'
    b'"severity":"info","occurred_at":1e300,"watch":null}',
    "not UTF-8": b'{"idempotency_key":"\xff\xfe"}',
    "too deep": b"[" * 100_000,
}


@pytest.mark.parametrize("body", POISON.values(), ids=POISON)
def test_b110_a_row_that_cannot_be_read_is_dead_and_holds_up_nothing(
    db: sqlite3.Connection, body: bytes
) -> None:
    put(db, "bad1", "bad2", "good")
    statement = "UPDATE pings SET body = CAST(? AS TEXT) WHERE key LIKE 'bad%'"
    db.execute(statement, (body,))
    assert keys(take(db, most=1)) == ["good"]
    for key in ("bad1", "bad2"):
        row = shown(db, key)
        assert (row["state"], row["next_attempt_at"]) == ("dead", None)
        assert str(row["last_error"]).startswith("registro ilegível: ")
        assert row["message"] in {"", "m"}


def test_b110_a_row_with_a_time_beyond_all_calendars_is_dead(
    db: sqlite3.Connection,
) -> None:
    put(db, "bad", "good")
    db.execute("UPDATE pings SET give_up_at = 1e300 WHERE key = 'bad'")
    assert keys(take(db)) == ["good"]
    assert shown(db, "bad")["state"] == "dead"


def test_the_error_of_an_unreadable_row_is_in_the_language_asked_for(
    db: sqlite3.Connection,
) -> None:
    put(db, "a")
    db.execute("UPDATE pings SET body = '\x1b'")
    outbox.claim(
        db,
        channel="koder",
        now_s=NOW_S,
        lease_s=LEASE_S,
        claim="me",
        most=1,
        lang=Lang.EN,
    )
    error = str(shown(db)["last_error"])
    assert error.startswith("unreadable row: JSONDecodeError: ")


# settled


def test_a_delivered_row_is_never_claimed_again(db: sqlite3.Connection) -> None:
    put(db, "a")
    (row,) = take(db)
    assert outbox.settle(db, row, DELIVERED, now_s=NOW_S + 1)
    found = shown(db)
    assert (found["state"], found["attempts"]) == ("delivered", 1)
    assert found["delivered_at"] == "2026-03-01T12:00:01.000+00:00"
    assert found["last_error"] is None
    assert outbox.flush(db, dead=True, now_s=NOW_S + 2) == 0
    assert take(db, now_s=NOW_S + 10**9) == []


@pytest.mark.parametrize("late", [DELIVERED, None], ids=["delivered", "failed"])
def test_the_late_result_of_a_paused_sender_changes_nothing(
    db: sqlite3.Connection, late: Settlement | None
) -> None:
    put(db, "a")
    (paused,) = take(db, claim="paused")
    (row,) = take(db, claim="other", now_s=NOW_S + LEASE_S)
    before = shown(db)
    assert not outbox.settle(db, paused, late or failed(paused), now_s=NOW_S + LEASE_S)
    assert shown(db) == before
    assert outbox.settle(db, row, DELIVERED, now_s=NOW_S + LEASE_S)
    assert not outbox.settle(db, paused, failed(paused), now_s=NOW_S + LEASE_S)
    assert shown(db)["state"] == "delivered"


def test_a_result_that_comes_late_counts_while_nobody_else_has_the_row(
    db: sqlite3.Connection,
) -> None:
    put(db, "a")
    (row,) = take(db)
    assert outbox.settle(db, row, DELIVERED, now_s=NOW_S + 10 * LEASE_S)
    assert shown(db)["state"] == "delivered"


def test_that_the_log_has_it_is_kept_with_its_first_time(
    db: sqlite3.Connection,
) -> None:
    put(db, "a")
    for number in (0, 1):
        (row,) = take(db, now_s=NOW_S + 60 * number, claim=f"me-{number}")
        assert row.logged is bool(number)
        outbox.settle(db, row, failed(row), now_s=NOW_S + 60 * number, logged=True)
    assert shown(db)["logged_at"] == "2026-03-01T12:00:00.000+00:00"


# flushed


def test_a_flush_makes_every_pending_row_due(db: sqlite3.Connection) -> None:
    put(db, "waits", "dead")
    for row in take(db):
        result = failed if row.ping.idempotency_key == "waits" else refused
        outbox.settle(db, row, result(row), now_s=NOW_S)
    assert outbox.flush(db, dead=False, now_s=NOW_S + 1) == 1
    assert keys(take(db, now_s=NOW_S + 1, claim="me-2")) == ["waits"]


def test_a_flush_of_dead_rows_tries_them_for_another_day(
    db: sqlite3.Connection,
) -> None:
    put(db, "a")
    (row,) = take(db)
    outbox.settle(db, row, refused(row), now_s=NOW_S)
    later_s = NOW_S + 10 * GIVE_UP_S
    assert outbox.flush(db, dead=True, now_s=later_s) == 1
    (again,) = take(db, now_s=later_s, claim="me-2")
    assert again.give_up_at.timestamp() == later_s + GIVE_UP_S
    assert again.ping == row.ping


def test_a_flush_leaves_a_row_that_is_being_sent_to_its_sender(
    db: sqlite3.Connection,
) -> None:
    put(db, "a")
    (row,) = take(db)
    outbox.flush(db, dead=True, now_s=NOW_S + 1)
    assert take(db, now_s=NOW_S + 1, claim="me-2") == []
    assert outbox.settle(db, row, DELIVERED, now_s=NOW_S + 2)


# shown


def test_what_waits_is_known(db: sqlite3.Connection) -> None:
    assert outbox.oldest_pending_s(db, now_s=NOW_S) is None
    put(db, "a")
    put(db, "b", now_s=NOW_S + 10)
    assert outbox.oldest_pending_s(db, now_s=NOW_S + 30) == 30
    assert outbox.oldest_pending_s(db, now_s=NOW_S - 30) == 0


def test_the_listing_has_the_shape_of_the_contract(db: sqlite3.Connection) -> None:
    ping = a_ping("a", "line \x1b[2J")
    outbox.add(db, ping, channels=["koder"], now_s=NOW_S, watch_id="4f1c")
    (row,) = take(db)
    outbox.settle(db, row, failed(row, error="HTTP 502"), now_s=NOW_S, logged=True)
    zone = timezone(timedelta(hours=-3))
    assert outbox.listing(db, zone=zone) == [
        {
            "id": row.row,
            "channel": "koder",
            "state": "pending",
            "attempts": 1,
            "next_attempt_at": "2026-03-01T09:00:05.000-03:00",
            "message": r"line \x1b[2J",
            "idempotency_key": "a",
            "created_at": "2026-03-01T09:00:00.000-03:00",
            "delivered_at": None,
            "last_error": "não entregue: HTTP 502",
            "watch_id": "4f1c",
            "logged_at": "2026-03-01T09:00:00.000-03:00",
        }
    ]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([], []),
        ([PingState.PENDING], ["c"]),
        ([PingState.PENDING, PingState.DEAD], ["b", "c"]),
        (tuple(PingState), ["a", "b", "c"]),
    ],
)
def test_the_listing_shows_the_states_asked_for(
    db: sqlite3.Connection, states: list[PingState], expected: list[str]
) -> None:
    put(db, "a", "b", "c")
    first, second = take(db, most=2)
    outbox.settle(db, first, DELIVERED, now_s=NOW_S)
    outbox.settle(db, second, refused(second), now_s=NOW_S)
    rows = outbox.listing(db, zone=UTC, states=states)
    assert [row["idempotency_key"] for row in rows] == expected


def test_what_somebody_else_has_delivered_is_not_sent_again(
    db: sqlite3.Connection,
) -> None:
    put(db, "k1", "k2")
    put(db, "k1", channel="other")
    (claimed, _) = take(db)
    at_s = NOW_S + 1
    assert outbox.delivered_elsewhere(db, "k1", channel="koder", at_s=at_s) == 1
    assert outbox.delivered_elsewhere(db, "k1", channel="koder", at_s=at_s + 1) == 0
    later = Settlement(state=PingState.PENDING, due_at=NOW)
    assert not outbox.settle(db, claimed, later, now_s=NOW_S + 2)
    rows = db.execute("SELECT channel, state, delivered_at FROM pings WHERE key = 'k1'")
    assert sorted(map(tuple, rows)) == [
        ("koder", "delivered", at_s),
        ("other", "pending", None),
    ]
    assert keys(take(db, now_s=NOW_S + 100)) == ["k2"]
