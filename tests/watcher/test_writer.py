"""One thread that writes: many changes a commit, and none without an answer."""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.fakes import until
from watcher.database import NAME, open_database
from watcher.errors import StoreError
from watcher.writer import Writer, is_of_the_file


class Counting(sqlite3.Connection):
    """Counts commits, and fails a statement as often as it is told to."""

    commits = 0
    failures: Sequence[tuple[str, sqlite3.Error]] = ()

    def execute(  # type: ignore[override]  # as it is called here
        self, sql: str, values: tuple[str, ...] = ()
    ) -> sqlite3.Cursor:
        if self.failures and sql.startswith(self.failures[0][0]):
            (_, error), *rest = self.failures
            self.failures = rest
            raise error
        self.commits += sql == "COMMIT"
        return super().execute(sql, values)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Counting]:
    made, _ = open_database(str(tmp_path))
    made.close()
    connection = sqlite3.connect(
        tmp_path / NAME,
        timeout=0.02,
        isolation_level=None,
        check_same_thread=False,
        factory=Counting,
    )
    connection.execute("PRAGMA synchronous = OFF")
    yield connection
    connection.close()


@pytest.fixture
def writer(connection: Counting) -> Iterator[Writer]:
    writer = Writer(connection)
    yield writer
    writer.close(5.0)
    assert not writer._thread.is_alive()


def job(connection: sqlite3.Connection, name: str) -> str:
    connection.execute(
        "INSERT INTO jobs (id, label, started_at) VALUES (?, ?, 0)", (name, name)
    )
    return name


def jobs(folder: Path) -> list[str]:
    with sqlite3.connect(folder / NAME) as reading:
        found = [row[0] for row in reading.execute("SELECT id FROM jobs ORDER BY id")]
    reading.close()
    return found


def failing(
    name: str, kind: type[sqlite3.Error] = sqlite3.OperationalError
) -> sqlite3.Error:
    error = kind(name)
    error.sqlite_errorname = name
    return error


async def test_a_change_gives_what_it_returns_once_it_is_durable(
    writer: Writer, tmp_path: Path
) -> None:
    assert await writer.submit(lambda c: job(c, "a")) == "a"
    assert jobs(tmp_path) == ["a"]


async def test_a_hundred_callers_share_a_few_commits(
    writer: Writer, connection: Counting, tmp_path: Path
) -> None:
    go = threading.Event()
    first = asyncio.ensure_future(writer.submit(lambda _: go.wait(20)))
    await until(lambda: connection.in_transaction)
    names = [f"{number:03}" for number in range(100)]
    rest = [
        asyncio.ensure_future(writer.submit(lambda c, name=name: job(c, name)))  # type: ignore[misc]  # bound early
        for name in names
    ]
    await asyncio.sleep(0)
    go.set()
    assert await asyncio.gather(*rest) == names
    await first
    assert jobs(tmp_path) == names
    assert connection.commits == 2


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        pytest.param(lambda c: job(c, "b"), sqlite3.IntegrityError, id="twice"),
        pytest.param(lambda _: 1 // 0, ZeroDivisionError, id="a fault of ours"),
        pytest.param(
            lambda c: c.execute("SELECT * FROM nothing"),
            sqlite3.OperationalError,
            id="no such table",
        ),
        pytest.param(
            lambda c: c.execute("SELECT ?", (1 << 70,)), OverflowError, id="too large"
        ),
    ],
)
async def test_one_bad_change_takes_no_other_with_it(
    bad: object, kind: type[Exception], writer: Writer, tmp_path: Path
) -> None:
    await writer.submit(lambda c: job(c, "b"))

    def change(connection: sqlite3.Connection) -> None:
        job(connection, "half")
        bad(connection)  # type: ignore[operator]  # one of the table

    good, failed, also = await asyncio.gather(
        writer.submit(lambda c: job(c, "a")),
        writer.submit(change),
        writer.submit(lambda c: job(c, "c")),
        return_exceptions=True,
    )
    assert (good, also) == ("a", "c")
    assert isinstance(failed, kind)
    assert jobs(tmp_path) == ["a", "b", "c"]


@pytest.mark.slow
async def test_a_locked_file_is_tried_until_it_is_free(
    writer: Writer, tmp_path: Path
) -> None:
    other = sqlite3.connect(tmp_path / NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.ensure_future(writer.submit(lambda c: job(c, "a")))
    done, _ = await asyncio.wait({waiting}, timeout=0.7)
    assert not done
    other.execute("ROLLBACK")
    other.close()
    assert await waiting == "a"
    assert jobs(tmp_path) == ["a"]


@pytest.mark.parametrize("statement", ["BEGIN", "INSERT", "COMMIT", "RELEASE"])
@pytest.mark.parametrize("name", ["SQLITE_BUSY", "SQLITE_FULL", "SQLITE_IOERR_WRITE"])
async def test_what_may_pass_is_tried_again_whole(  # noqa: PLR0917 - a table
    name: str,
    statement: str,
    writer: Writer,
    connection: Counting,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("watcher.writer._RETRY_S", 0.01)
    connection.failures = ((statement, failing(name)),) * 2
    answers = await asyncio.gather(
        *(writer.submit(lambda c, n=n: job(c, n)) for n in "abc")  # type: ignore[misc]  # bound early
    )
    assert answers == ["a", "b", "c"]
    assert not connection.failures
    assert jobs(tmp_path) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SQLITE_READONLY", sqlite3.OperationalError),
        ("SQLITE_CORRUPT", sqlite3.DatabaseError),
        ("SQLITE_NOTADB", sqlite3.DatabaseError),
        ("SQLITE_CANTOPEN", sqlite3.OperationalError),
    ],
)
@pytest.mark.parametrize("statement", ["BEGIN", "INSERT", "COMMIT"])
async def test_a_file_that_never_takes_it_is_a_store_error_and_not_the_end(  # noqa: PLR0917 - a table
    statement: str,
    name: str,
    kind: type[sqlite3.Error],
    writer: Writer,
    connection: Counting,
    tmp_path: Path,
) -> None:
    connection.failures = ((statement, failing(name, kind)),)
    with pytest.raises(StoreError):
        await writer.submit(lambda c: job(c, "a"))
    assert await writer.submit(lambda c: job(c, "b")) == "b"
    assert jobs(tmp_path) == ["b"]


async def test_the_thread_outlives_whatever_a_change_raises(
    writer: Writer, tmp_path: Path
) -> None:
    def leave(connection: sqlite3.Connection) -> None:
        job(connection, "half")
        raise SystemExit

    with pytest.raises(StoreError):
        await writer.submit(leave)
    assert await writer.submit(lambda c: job(c, "b")) == "b"
    assert jobs(tmp_path) == ["b"]


async def test_who_stops_waiting_does_not_stop_the_change(
    writer: Writer, tmp_path: Path
) -> None:
    go = threading.Event()
    blocking = asyncio.ensure_future(writer.submit(lambda _: go.wait(20)))
    waiting = asyncio.ensure_future(writer.submit(lambda c: job(c, "a")))
    await asyncio.sleep(0)
    waiting.cancel()
    go.set()
    await blocking
    await until(lambda: jobs(tmp_path) == ["a"])
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_what_waits_at_the_end_is_written(
    connection: Counting, tmp_path: Path
) -> None:
    writer = Writer(connection)
    go = threading.Event()
    asking = [asyncio.ensure_future(writer.submit(lambda _: go.wait(20)))]
    asking += [
        asyncio.ensure_future(writer.submit(lambda c, n=n: bool(job(c, n))))  # type: ignore[misc]  # bound early
        for n in "abc"
    ]
    await asyncio.sleep(0)
    go.set()
    writer.close(5.0)
    assert await asyncio.gather(*asking) == [True] * 4
    assert jobs(tmp_path) == ["a", "b", "c"]


async def test_at_the_end_a_locked_file_is_a_store_error_within_the_limit(
    connection: Counting, tmp_path: Path
) -> None:
    writer = Writer(connection)
    other = sqlite3.connect(tmp_path / NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.ensure_future(writer.submit(lambda c: job(c, "a")))
    await asyncio.sleep(0)
    writer.close(5.0)
    with pytest.raises(StoreError):
        await waiting
    other.close()
    assert not writer._thread.is_alive()


async def test_after_the_end_nobody_waits_for_ever(connection: Counting) -> None:
    writer = Writer(connection)
    writer.close(5.0)
    async with asyncio.timeout(5):
        with pytest.raises(StoreError):
            await writer.submit(lambda c: job(c, "a"))


@pytest.mark.parametrize(
    ("error", "of_the_file"),
    [
        (failing("SQLITE_FULL"), True),
        (failing("SQLITE_BUSY_SNAPSHOT"), True),
        (failing("SQLITE_CORRUPT_VTAB", sqlite3.DatabaseError), True),
        (failing("SQLITE_CONSTRAINT_UNIQUE", sqlite3.IntegrityError), False),
        (failing("SQLITE_ERROR"), False),
        (sqlite3.ProgrammingError("closed"), False),
        (ValueError("no"), False),
    ],
    ids=repr,
)
def test_an_error_blames_the_file_or_the_change(
    error: Exception, of_the_file: bool
) -> None:
    assert is_of_the_file(error) is of_the_file
