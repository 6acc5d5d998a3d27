"""One owner, and proof of it with each verdict."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rows import add_watch, opened
from watcher.database import open_database
from watcher.ownership import LocalOwnership, LostError
from watcher.writer import Writer


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    connection = opened(tmp_path)
    add_watch(connection, "a1", at=0, token=0)
    add_watch(connection, "b2", at=0, token=0, state="released", ended_at=1)
    connection.close()
    writer = Writer(open_database(str(tmp_path))[0])
    yield writer
    writer.close(5.0)


def tokens(connection: sqlite3.Connection) -> dict[str, int]:
    return {
        row["id"]: row["token"]
        for row in connection.execute("SELECT id, token FROM watches")
    }


def relabel(connection: sqlite3.Connection) -> int:
    return connection.execute("UPDATE watches SET label = 'mine'").rowcount


async def test_a_claim_takes_over_what_is_armed(writer: Writer) -> None:
    ownership = LocalOwnership(writer)
    assert await ownership.claim() == 1
    assert await writer.submit(tokens) == {"a1": 1, "b2": 0}
    assert await ownership.renew()
    assert await ownership.verdict(relabel) == 2


async def test_the_older_tokens_verdict_is_refused_and_changes_nothing(
    writer: Writer,
) -> None:
    older, newer = LocalOwnership(writer), LocalOwnership(writer)
    await older.claim()
    assert await newer.claim() == 2
    assert not await older.renew()
    with pytest.raises(LostError):
        await older.verdict(relabel)
    labels = await writer.submit(
        lambda c: [row["label"] for row in c.execute("SELECT label FROM watches")]
    )
    assert "mine" not in labels
    assert await newer.verdict(relabel) == 2


async def test_who_has_claimed_nothing_may_say_nothing(writer: Writer) -> None:
    await LocalOwnership(writer).claim()
    with pytest.raises(LostError):
        await LocalOwnership(writer).verdict(relabel)


async def test_a_store_without_an_owners_row_is_nobodys(writer: Writer) -> None:
    ownership = LocalOwnership(writer)
    await ownership.claim()
    await writer.submit(lambda c: c.execute("DELETE FROM owner"))
    assert not await ownership.renew()
