"""Job markers in the store (C8.1)."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from notify import marker
from notify.marker import Marker
from tests.rows import add_waiter, add_watch, opened

T = 1_800_000_000.0


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = opened(tmp_path)
    yield connection
    connection.close()


def start(
    db: sqlite3.Connection,
    job_id: str,
    label: str = "build",
    *,
    at: float = T,
    after_s: int | None = None,
    session: str | None = None,
) -> Marker:
    job = marker.new(job_id, label, now_s=at, notify_after_s=after_s, session=session)
    marker.start(db, job)
    return job


def ids(markers: list[Marker]) -> list[str]:
    return [item.id for item in markers]


def test_a_job_that_starts_runs_until_it_is_finished(db: sqlite3.Connection) -> None:
    job = start(db, "a1", "API build", after_s=600, session="s-1")
    assert marker.listed(db, ended_after_s=T) == [job]
    assert job == Marker("a1", "API build", "running", T, None, 600, "s-1", None)
    assert marker.finish(db, "a1", "done", now_s=T + 60)
    (ended,) = marker.listed(db, ended_after_s=T)
    assert ended == job._replace(state="done", ended_at=T + 60)


def test_a_job_is_finished_once_and_only_where_it_runs(db: sqlite3.Connection) -> None:
    start(db, "a1")
    assert marker.finish(db, "a1", "failed", now_s=T + 1)
    assert not marker.finish(db, "a1", "done", now_s=T + 2)
    assert not marker.finish(db, "zz", "done", now_s=T + 2)
    (ended,) = marker.listed(db, ended_after_s=T)
    assert (ended.state, ended.ended_at) == ("failed", T + 1)


def test_no_two_jobs_have_one_id(db: sqlite3.Connection) -> None:
    start(db, "a1")
    with pytest.raises(sqlite3.IntegrityError):
        start(db, "a1")


def test_a_label_is_stored_cleaned_and_not_without_end(db: sqlite3.Connection) -> None:
    job = start(db, "a1", "\x1b[2J\udc80" + "x" * 300)
    assert job.label.startswith("\\x1b[2J\\x80xxx")
    assert len(job.label) == marker.LABEL_LIMIT
    assert marker.named(db, "\x1b[2J\udc80".replace("\udc80", "\\x80")) == []
    assert marker.named(db, job.label) == [job]


def test_what_ended_before_the_bound_is_not_listed(db: sqlite3.Connection) -> None:
    for job_id, ended_at in (("a1", T + 1), ("a2", T + 2), ("a3", T + 3)):
        start(db, job_id)
        marker.finish(db, job_id, "done", now_s=ended_at)
    start(db, "a0", at=T - 10)
    assert ids(marker.listed(db, ended_after_s=T + 2)) == ["a0", "a2", "a3"]


@pytest.mark.parametrize(
    ("state", "result", "shown"),
    [
        pytest.param("armed", None, "running", id="armed"),
        pytest.param("released", None, "done", id="released"),
        pytest.param("ended", None, "done", id="ended, how is not known"),
        pytest.param("ended", "PASS", "done", id="passed"),
        pytest.param("ended", "FAIL", "failed", id="failed"),
        pytest.param("ended", "STALLED", "failed", id="stalled"),
        pytest.param("ended", "DIED", "failed", id="died"),
        pytest.param("expired", None, "failed", id="expired"),
        pytest.param("removed", None, "failed", id="removed"),
        pytest.param("unseen", None, "failed", id="never seen"),
    ],
)
def test_a_watch_is_a_marker(
    db: sqlite3.Connection, state: str, result: str | None, shown: str
) -> None:
    ended_at = None if state == "armed" else T + 5
    add_watch(db, "w1", at=T, state=state, result=result, ended_at=ended_at)
    add_waiter(db, "w1", at=T, session="s-1")
    (found,) = marker.listed(db, ended_after_s=T)
    assert found == Marker("w1", "w1", shown, T, ended_at, None, "s-1", state)


def test_a_watch_has_the_session_of_the_first_that_still_waits(
    db: sqlite3.Connection,
) -> None:
    add_watch(db, "w1", at=T)
    add_waiter(db, "w1", 1, at=T, session="gone", state="left")
    add_waiter(db, "w1", 2, at=T, session="told", state="told")
    assert marker.listed(db, ended_after_s=T)[0].session == "told"
    add_waiter(db, "w1", 3, at=T, session="waits")
    assert marker.listed(db, ended_after_s=T)[0].session == "waits"


def test_the_running_jobs_are_told_apart_by_session(db: sqlite3.Connection) -> None:
    start(db, "a1", session="s-1")
    start(db, "a2", session="s-2")
    start(db, "a3")
    start(db, "a4", session="s-1")
    marker.finish(db, "a4", "done", now_s=T)
    add_watch(db, "w1", at=T)
    assert ids(marker.running(db, "s-1")) == ["a1"]
    assert ids(marker.running(db, None)) == ["a3"]
    assert ids(marker.running(db, "s-9")) == []


@pytest.fixture
def named_jobs(db: sqlite3.Connection) -> sqlite3.Connection:
    start(db, "ab1", "one")
    start(db, "ab2", "ab1 again")
    start(db, "abc3", "two", at=T + 1)
    start(db, "abd4", "two", at=T + 2)
    start(db, "ba5", "ab")
    start(db, "ca6", "over")
    start(db, "ca7", "over")
    marker.finish(db, "ca6", "done", now_s=T)
    start(db, "da8", "gone")
    marker.finish(db, "da8", "done", now_s=T)
    add_watch(db, "ef9", at=T)
    return db


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("ab1", ["ab1"], id="a whole id"),
        pytest.param("one", ["ab1"], id="a label"),
        pytest.param("two", ["abc3", "abd4"], id="a label of two"),
        pytest.param("ab", ["ba5"], id="a label goes before the beginning of an id"),
        pytest.param("abc", ["abc3"], id="the beginning of an id"),
        pytest.param("b", ["ba5"], id="a shorter one"),
        pytest.param("a", ["ab1", "ab2", "abc3", "abd4"], id="of several"),
        pytest.param("over", ["ca7"], id="a label of one that runs"),
        pytest.param("ca", ["ca7"], id="what runs goes before what ended"),
        pytest.param("ca6", ["ca6"], id="a whole id of one that ended"),
        pytest.param("da", ["da8"], id="the beginning of one that ended"),
        pytest.param("gone", [], id="a label of one that ended"),
        pytest.param("e", ["ef9"], id="a watch"),
        pytest.param("%", [], id="no pattern"),
        pytest.param("a*", [], id="no wildcard"),
        pytest.param("tw", [], id="the beginning of a label"),
    ],
)
def test_a_name_means(
    named_jobs: sqlite3.Connection, name: str, expected: list[str]
) -> None:
    assert ids(marker.named(named_jobs, name)) == expected


def test_a_job_is_due_from_the_second_on_that_was_asked_for(
    db: sqlite3.Connection,
) -> None:
    start(db, "a1", after_s=600)
    assert ids(marker.due(db, T + 599.9)) == []
    assert ids(marker.due(db, T + 600)) == ["a1"]


def test_only_what_runs_and_was_asked_for_is_due(db: sqlite3.Connection) -> None:
    start(db, "a1", after_s=60, at=T + 1)
    start(db, "a2", after_s=30, at=T)
    start(db, "a3")
    start(db, "a4", after_s=60)
    marker.finish(db, "a4", "done", now_s=T + 1)
    add_watch(db, "w1", at=T)
    assert ids(marker.due(db, T + 3600)) == ["a2", "a1"]


def test_a_job_is_told_of_once(db: sqlite3.Connection) -> None:
    start(db, "a1", after_s=60)
    assert marker.notified(db, "a1", T + 61)
    assert not marker.notified(db, "a1", T + 62)
    assert marker.due(db, T + 3600) == []


def test_a_job_that_ended_meanwhile_is_not_told_of(db: sqlite3.Connection) -> None:
    start(db, "a1", after_s=60)
    (found,) = marker.due(db, T + 60)
    marker.finish(db, "a1", "done", now_s=T + 60)
    assert not marker.notified(db, found.id, T + 61)
