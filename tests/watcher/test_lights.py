"""Which waits are lights, and in which order (C8.2)."""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from policies.statusline import OUTCOME_S, Light
from tests.rows import HOUR_S, add_waiter, add_watch, fill, opened
from watcher.lights import is_looked_at, lights, waits_of

NOW_S = 1_800_000_000.0


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = opened(tmp_path / "state")
    yield connection
    connection.close()


def wait(
    db: sqlite3.Connection, name: str, *, age_s: float = 60, **waiter: object
) -> None:
    add_watch(db, name, at=NOW_S - age_s)
    add_waiter(db, name, 1, at=NOW_S - age_s, **waiter)


def end(
    db: sqlite3.Connection, name: str, *, ago_s: float = 60, **outcome: object
) -> None:
    """Have a wait told how it ended."""
    db.execute(
        "UPDATE watches SET state = ?, ended_at = ? WHERE id = ?",
        (outcome["ending"], NOW_S - ago_s, name),
    )
    told(db, name, ago_s=ago_s, **outcome)


def told(
    db: sqlite3.Connection, name: str, *, ago_s: float = 60, **outcome: object
) -> None:
    """Have one waiter told, whatever becomes of its watch."""
    parts = ", ".join(f"'$.{key}', '{value}'" for key, value in outcome.items())
    db.execute(
        f"UPDATE waiters SET state = 'told', told_at = ?,"
        f" outcome = json_set('{{}}', {parts}) WHERE watch_id = ? AND number = 1",
        (NOW_S - ago_s, name),
    )


def names(
    db: sqlite3.Connection,
    sessions: Sequence[str] = ("s",),
    projects: Sequence[str] = ("/p",),
) -> list[str]:
    return [light.label for light in lights(db, sessions, projects, NOW_S)]


def test_a_wait_has_its_age_and_the_time_to_the_deadline_of_its_waiter(
    db: sqlite3.Connection,
) -> None:
    add_watch(db, "x", at=NOW_S - 900, host="box", observation="unknown", kind="log")
    add_waiter(
        db,
        "x",
        at=NOW_S - 600,
        session="s",
        label="soak \\udcff",
        deadline_at=NOW_S + 30,
    )
    (light,) = lights(db, ["s"], [], NOW_S)
    assert light == Light("log", "soak \udcff", "box", "unknown", None, 600, 30)


def test_the_waits_of_the_session_come_first_and_the_most_urgent_ahead(
    db: sqlite3.Connection,
) -> None:
    wait(db, "project", age_s=9000, session="other", project="/p")
    wait(db, "late", session="s", project="/p", deadline_at=NOW_S + 2 * HOUR_S)
    wait(db, "soon", session="s", project="/q")
    wait(db, "foreign", session="other", project="/q")
    wait(db, "nobody", project="/p")
    assert names(db) == ["soon", "late", "project", "nobody"]
    assert [light.ours for light in lights(db, ["s"], ["/p"], NOW_S)] == [
        True,
        True,
        False,
        False,
    ]


def test_two_ids_of_a_session_and_two_folders_of_its_project_are_one(
    db: sqlite3.Connection,
) -> None:
    for number, (session, project) in enumerate(
        [("s", None), ("alias", None), (None, "/p"), (None, "/q"), (None, None)]
    ):
        wait(db, str(number), session=session, project=project)
    assert names(db, ["s", "alias"], ["/p", "/q"]) == ["0", "1", "2", "3"]
    assert names(db, [], ["/q"]) == ["3"]
    assert names(db, [], []) == []


def test_a_project_of_odd_bytes_is_found(db: sqlite3.Connection) -> None:
    wait(db, "x", project="/p\\udcff")
    assert names(db, [], ["/p\udcff"]) == ["x"]


def test_outcomes_stay_for_minutes_behind_what_still_waits(
    db: sqlite3.Connection,
) -> None:
    for name, ago_s in (("older", 200), ("newer", 20), ("over", OUTCOME_S + 1)):
        wait(db, name, age_s=9000, session="s")
        end(db, name, ago_s=ago_s, ending="released")
    wait(db, "waits", session="s")
    assert names(db) == ["waits", "newer", "older"]


def test_an_outcome_says_how_it_ended_and_how_long_ago(db: sqlite3.Connection) -> None:
    wait(db, "x", age_s=9000, session="s")
    end(db, "x", ago_s=42, ending="ended", result="FAIL")
    (light,) = lights(db, ["s"], [], NOW_S)
    assert light == Light("lock", "x", None, "ended", "FAIL", 42, None)


def test_a_waiter_that_expired_alone_is_an_outcome(db: sqlite3.Connection) -> None:
    wait(db, "x", session="s")
    add_waiter(db, "x", 2, at=NOW_S, session="other", project="/p", label="x2")
    told(db, "x", ending="expired")
    found = lights(db, ["s"], ["/p"], NOW_S)
    assert [(light.label, light.state) for light in found] == [
        ("x2", "held"),
        ("x", "expired"),
    ]


def test_several_waiters_of_one_condition_are_one_light(db: sqlite3.Connection) -> None:
    wait(db, "x", session="other", project="/p")
    add_waiter(db, "x", 2, at=NOW_S, session="s", label="mine")
    assert names(db) == ["mine"]


def test_a_waiter_that_left_is_none(db: sqlite3.Connection) -> None:
    wait(db, "x", session="s", state="left")
    assert names(db) == []


def test_a_damaged_outcome_is_still_one(db: sqlite3.Connection) -> None:
    wait(db, "x", session="s")
    end(db, "x", ending="released")
    db.execute("UPDATE waiters SET outcome = 'no json'")
    (light,) = lights(db, ["s"], [], NOW_S)
    assert (light.label, light.left_s) == ("x", None)


def test_times_never_run_backwards(db: sqlite3.Connection) -> None:
    wait(db, "x", age_s=-60, session="s", deadline_at=NOW_S - 9)
    (light,) = lights(db, ["s"], [], NOW_S)
    assert (light.age_s, light.left_s) == (0, 0)


def test_of_very_many_waits_enough_are_read(db: sqlite3.Connection) -> None:
    fill(db, 1000, at=NOW_S)
    assert len(lights(db, ["s-1"], [], NOW_S)) == 200


def test_the_waits_of_a_session_are_those_that_are_armed(
    db: sqlite3.Connection,
) -> None:
    for name, session in (("b", "s"), ("a", "alias"), ("c", "other"), ("d", "s")):
        wait(db, name, session=session)
    add_waiter(db, "b", 2, at=NOW_S, session="s")
    end(db, "d", ending="released")
    assert waits_of(db, ["s", "alias"]) == ["a", "b"]
    assert waits_of(db, []) == []


@pytest.mark.parametrize(("ago_s", "looked_at"), [(59, True), (61, False)])
def test_somebody_looks_where_two_intervals_have_not_passed(
    db: sqlite3.Connection, ago_s: float, looked_at: bool
) -> None:
    assert not is_looked_at(db, NOW_S)
    wait(db, "x", age_s=ago_s)
    assert is_looked_at(db, NOW_S) is looked_at
