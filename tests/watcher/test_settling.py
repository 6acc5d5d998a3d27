"""A command that works alone tells what a service would, once (C5.2, C5.3)."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, timedelta
from pathlib import Path

import pytest

from policies.model import Ending, Outcome, Ping, Target
from policies.shapes import outcome_ping
from policies.wording import Lang
from tests.fakes import START
from watcher import store
from watcher.database import open_database
from watcher.settling import settle
from watcher.store import WaiterRow, WatchRow

ID = "4f1c00000001"
AT = START.timestamp()
RELEASED = Outcome(
    ending=Ending.RELEASED,
    watch_id=ID,
    target=Target(kind="lock", text="lock a", label="a"),
    label="a",
    armed_at=START,
    ended_at=START + timedelta(seconds=9),
    waited_s=9,
    ttl_s=60,
)
EXPIRED = replace(RELEASED, ending=Ending.EXPIRED)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection, _ = open_database(str(tmp_path / "state"))
    watch = WatchRow(
        id=ID,
        target="lock a",
        kind="lock",
        label="a",
        host=None,
        armed_at=AT,
        deadline_at=AT + 60,
        every_s=30,
        ttl_s=60,
        start_within_s=0,
        looks=1,
        unknown_s=0,
        renewals=0,
        memory={},
    )
    store.insert_watch(connection, watch)
    for number in (1, 2):
        store.insert_waiter(connection, ID, waiter(number))
    yield connection
    connection.close()


def waiter(number: int) -> WaiterRow:
    return WaiterRow(
        number=number,
        label=f"label {number}",
        resume=None,
        session=None,
        lang="pt",
        ttl_s=60,
        armed_at=AT,
        deadline_at=AT + 60,
        deadline_boot_s=60,
        boot_id="boot",
        takes=False,
        nonce=f"nonce-{number}",
    )


def settled(
    db: sqlite3.Connection,
    outcome: Outcome,
    number: int,
    nonce: str | None = None,
    *,
    mine_alone: bool = False,
) -> tuple[Outcome, str | None]:
    def ping_of(told: Outcome, number: int) -> Ping:
        return outcome_ping(told, Lang.PT, UTC, waiter=number)

    return settle(
        db,
        outcome,
        number,
        nonce,
        line="line",
        ping_of=ping_of,
        channels=["log"],
        give_up_s=60,
        mine_alone=mine_alone,
    )


def states(db: sqlite3.Connection) -> tuple[str, list[str], list[str]]:
    (watch,) = db.execute("SELECT state FROM watches").fetchall()
    waiters = db.execute("SELECT state FROM waiters ORDER BY number").fetchall()
    pings = db.execute("SELECT key FROM pings ORDER BY id").fetchall()
    return watch[0], [row[0] for row in waiters], [row[0] for row in pings]


def test_a_release_ends_the_watch_for_all_with_one_ping(db: sqlite3.Connection) -> None:
    """Told to one waiter alone, a service pinged the same release once more."""
    assert settled(db, RELEASED, 1) == (RELEASED, f"{ID}-1-released")
    assert states(db) == ("released", ["told", "told"], [f"{ID}-1-released"])
    other, key = settled(db, EXPIRED, 2)
    assert (other.ending, other.label, key) == (Ending.RELEASED, "label 2", None)
    assert states(db)[2] == [f"{ID}-1-released"]


def test_an_expiry_is_that_of_one_waiter_until_the_last(db: sqlite3.Connection) -> None:
    settled(db, EXPIRED, 2)
    assert states(db) == ("armed", ["waiting", "told"], [f"{ID}-2-expired"])
    settled(db, EXPIRED, 1)
    assert states(db)[:2] == ("expired", ["told", "told"])


def test_a_lock_that_was_taken_is_told_to_its_taker_alone(
    db: sqlite3.Connection,
) -> None:
    """C5.5: the others went on as if it were free for them."""
    settled(db, RELEASED, 2, mine_alone=True)
    assert states(db) == ("armed", ["waiting", "told"], [f"{ID}-2-released"])


def test_what_a_service_has_told_holds(db: sqlite3.Connection) -> None:
    store.end_watch(db, RELEASED, [(1, RELEASED), (2, RELEASED)], "line")
    assert settled(db, EXPIRED, 1) == (RELEASED, None)
    assert states(db)[2] == []


def test_a_question_that_got_no_answer_is_found_by_its_nonce(
    db: sqlite3.Connection,
) -> None:
    lost = replace(RELEASED, watch_id="other0000000")
    found, key = settled(db, lost, 1, "nonce-2")
    assert (found.watch_id, key) == (ID, f"{ID}-2-released")
    assert states(db)[0] == "released"


def test_a_watch_that_no_service_knew_is_pinged_all_the_same(
    db: sqlite3.Connection,
) -> None:
    alone = replace(RELEASED, watch_id="other0000000")
    assert settled(db, alone, 1, "never asked")[1] == "other0000000-1-released"
    assert states(db)[:2] == ("armed", ["waiting", "waiting"])


def test_a_store_that_cannot_take_it_is_left_as_it_was(db: sqlite3.Connection) -> None:
    db.execute("DROP TABLE pings")
    with pytest.raises(sqlite3.Error):
        settled(db, RELEASED, 1)
    assert not db.in_transaction
    assert db.execute("SELECT state FROM watches").fetchone()[0] == "armed"
