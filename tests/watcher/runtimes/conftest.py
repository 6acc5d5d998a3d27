"""What the tests of hooks start from."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import rows
from watcher.runtimes import locks


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a state directory whose service seems to be there."""
    folder = tmp_path / "state"
    monkeypatch.setenv("KODER_MONITOR_STATE", str(folder))
    monkeypatch.setattr(locks, "_LIMIT_S", 60.0)
    with rows.answering(folder):
        yield folder


@pytest.fixture
def store(state: Path) -> Iterator[sqlite3.Connection]:
    """Give the store of that state directory, opened by hand."""
    connection = rows.opened(state)
    yield connection
    connection.close()
