"""The history of the store: which rows count, and on which days."""

import sqlite3
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from policies.history import History
from tests.rows import add_ping, add_waiter, add_watch, opened
from watcher import past
from watcher.past import days_until, history

NOW = datetime(2026, 3, 10, 12, 0, tzinfo=UTC).timestamp()
HOUR_S = 3600.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = opened(tmp_path / "state")
    yield connection
    connection.close()


def found(store: sqlite3.Connection, days: int = 7) -> History:
    return history(store, now_s=NOW, days=days, zone=UTC)


def ended(store: sqlite3.Connection, name: str, *, at: float, **more: object) -> None:
    row: dict[str, object] = {"state": "released", "ended_at": at}
    add_watch(store, name, at=at - HOUR_S, **(row | more))


def test_what_ended_in_these_days_and_what_waits_counts(
    store: sqlite3.Connection,
) -> None:
    ended(store, "a", at=NOW - HOUR_S)
    ended(store, "old", at=NOW - 30 * 24 * HOUR_S)
    add_watch(store, "b", at=NOW - 2 * HOUR_S, host="box")
    seen = found(store)
    assert [day.hours for day in seen.days] == [0, 0, 0, 0, 0, 0, 3.0]
    assert seen.days[-1].day == "2026-03-10"
    assert {one.name: one.waits for one in seen.locks} == {"a": 1, "b": 1}
    assert {one.name: one.waits for one in seen.hosts} == {"box": 1, None: 1}
    assert seen.endings == {"released": 1}


def test_from_the_look_to_the_line_is_known_by_the_evidence(
    store: sqlite3.Connection,
) -> None:
    at = NOW - HOUR_S
    seen_at = datetime.fromtimestamp(at - 0.25, UTC).isoformat()
    ended(store, "a", at=at, evidence={"seen_at": seen_at})
    add_waiter(store, "a", at=at, state="told", told_at=at)
    for number, evidence in enumerate(
        ['{"seen_at": 7}', '{"seen_at": "x"}', "{", "{}"]
    ):
        ended(store, f"odd{number}", at=at, evidence=evidence)
        add_waiter(store, f"odd{number}", at=at, state="told", told_at=at)
    ended(store, "late", at=at, state="expired", evidence={"seen_at": seen_at})
    add_waiter(store, "late", at=at, state="told", told_at=at)
    ended(store, "alone", at=at, evidence={"seen_at": seen_at})
    seen = found(store)
    assert (seen.release_to_line.count, seen.release_to_line.median_s) == (1, 0.25)


def test_from_the_line_to_the_delivery_is_known_by_the_ping(
    store: sqlite3.Connection,
) -> None:
    at, done = NOW - HOUR_S, {"state": "delivered", "watch_id": "a"}
    add_ping(store, "k1", at=at, delivered_at=at + 2, **done)
    add_ping(store, "k2", at=at, watch_id="a")
    add_ping(store, "k3", at=at, delivered_at=at + 9, state="delivered")
    add_ping(store, "k4", at=at - 40 * 24 * HOUR_S, delivered_at=1.0, **done)
    seen = found(store)
    assert (seen.line_to_delivery.count, seen.line_to_delivery.longest_s) == (1, 2.0)


def test_only_the_newest_count_where_there_are_too_many(
    store: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "_MOST", 2)
    for number in range(3):
        ended(store, f"w{number}", at=NOW - HOUR_S * (3 - number))
    seen = found(store)
    assert {one.name for one in seen.locks} == {"w1", "w2"}
    assert seen.left_out


def test_foreign_text_is_cleaned(store: sqlite3.Connection) -> None:
    ended(store, "a", at=NOW, label="a\x1b[2J")
    assert [one.name for one in found(store).locks] == ["a\\x1b[2J"]


def test_a_day_is_from_midnight_to_midnight_where_the_clock_is_set() -> None:
    zone = ZoneInfo("Europe/Berlin")
    at = datetime(2026, 3, 29, 12, 0, tzinfo=zone).timestamp()
    before, changed = days_until(at, 2, zone)
    assert (before.name, changed.name) == ("2026-03-28", "2026-03-29")
    assert before.until_s - before.from_s == 24 * HOUR_S
    assert changed.until_s - changed.from_s == 23 * HOUR_S
    assert before.until_s == changed.from_s


def test_without_a_zone_the_days_are_those_of_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "America/Sao_Paulo")
    time.tzset()
    try:
        (day,) = days_until(NOW - 11 * HOUR_S, 1)
    finally:
        monkeypatch.setenv("TZ", "UTC")
        time.tzset()
    assert day.name == "2026-03-09"
    assert day.from_s == datetime(2026, 3, 9, 3, 0, tzinfo=UTC).timestamp()
