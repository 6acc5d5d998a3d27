"""What every test from end to end starts from."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command import Place
from tests.servers import Server, serve


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Give a place to run commands in, and leave nothing running there."""
    place = Place.below(tmp_path, os.environ)
    yield place
    place.clear()


@pytest.fixture
def server() -> Iterator[Server]:
    """Give a notify server that takes every ping."""
    with serve() as server:
        yield server
