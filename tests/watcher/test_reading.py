"""What the read-only commands do beside reading (C5.3)."""

import sqlite3
from pathlib import Path

import pytest

from tests.rows import add, add_ping, add_watch, answering, opened
from watcher.cli import reading
from watcher.database import NAME, is_older

T = 1_800_000_000.0


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Give a list of the state directories that a service was started for."""
    started: list[str] = []
    monkeypatch.setenv("KODER_MONITOR_STATE", str(tmp_path))
    monkeypatch.setattr("watcher.client.start_service_if_needed", started.append)
    return started


def fill(db: sqlite3.Connection, what: str) -> None:
    """Put one thing into the store."""
    job = {"label": "soak", "started_at": T, "notify_after_s": 60}
    match what:
        case "armed":
            add_watch(db, "w1", at=T)
        case "ended":
            add_watch(db, "w1", at=T, state="released", ended_at=T)
        case "pending":
            add_ping(db, "k1", at=T)
        case "dead":
            add_ping(db, "k1", at=T, state="dead")
        case "to notify":
            add(db, "jobs", id="j1", **job)
        case "notified":
            add(db, "jobs", id="j1", **job, notified_at=T)
        case "done":
            add(db, "jobs", id="j1", **job, state="done")
        case "nothing":
            pass
        case _:
            add(db, "jobs", id="j1", label="soak", started_at=T)


@pytest.mark.parametrize(
    ("what", "wanted"),
    [
        ("nothing", False),
        ("armed", True),
        ("ended", False),
        ("pending", True),
        ("dead", False),
        ("to notify", True),
        ("notified", False),
        ("done", False),
        ("marked", False),
    ],
)
def test_a_service_is_brought_back_where_there_is_work_for_it(
    tmp_path: Path, started: list[str], what: str, *, wanted: bool
) -> None:
    db = opened(tmp_path)
    fill(db, what)
    db.close()
    assert reading.read(lambda _: "found") == ("found", None)
    assert started == [str(tmp_path)] * wanted


def test_a_service_that_is_there_is_left_alone(
    tmp_path: Path, started: list[str]
) -> None:
    db = opened(tmp_path)
    fill(db, "armed")
    db.close()
    with answering(tmp_path):
        assert reading.read(lambda _: "found") == ("found", None)
    assert started == []


def test_what_is_read_is_of_one_instant(tmp_path: Path, started: list[str]) -> None:
    db = opened(tmp_path)

    def look(connection: sqlite3.Connection) -> list[int]:
        counts = []
        for number in range(2):
            (count,) = connection.execute("SELECT count(*) FROM jobs").fetchone()
            counts.append(count)
            add(db, "jobs", id=f"j{number}", label="soak", started_at=T)
        return counts

    assert reading.read(look) == ([0, 0], None)
    db.close()


def test_a_store_of_before_an_update_is_made_ours_by_a_service(
    tmp_path: Path, started: list[str]
) -> None:
    old = Path(__file__).parents[1] / "data" / "0.1.0.db"
    (tmp_path / NAME).write_bytes(old.read_bytes())
    assert is_older(str(tmp_path))
    found, note = reading.read(lambda _: "found")
    assert found is None
    assert note is not None
    assert started == [str(tmp_path)]
    opened(tmp_path).close()
    assert not is_older(str(tmp_path))


def test_what_is_no_store_of_ours_is_not_an_old_one(
    tmp_path: Path, started: list[str]
) -> None:
    assert not is_older(str(tmp_path))
    (tmp_path / NAME).write_bytes(b"nonsense" * 1000)
    assert not is_older(str(tmp_path))
    assert reading.read(lambda _: "found")[0] is None
    assert started == []


@pytest.mark.parametrize(
    ("deadline_at", "gone_at", "wanted"),
    [(4e9, None, True), (T - 1e9, None, False), (4e9, T, False)],
    ids=["to be stopped", "over by now", "gone"],
)
def test_what_a_host_still_holds_is_work_for_a_service(
    tmp_path: Path,
    started: list[str],
    deadline_at: float,
    gone_at: float | None,
    *,
    wanted: bool,
) -> None:
    db = opened(tmp_path)
    ended = {"state": "removed", "ended_at": T, "deadline_at": deadline_at}
    add_watch(db, "w1", at=1.0, **ended)
    add(db, "detached", watch_id="w1", host="box", gone_at=gone_at)
    db.close()
    reading.read(lambda _: "found")
    assert started == [str(tmp_path)] * wanted
