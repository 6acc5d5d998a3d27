"""What tests of conditions start commands in."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Give a place to run commands in, and leave nothing running there."""
    place = Place.below(tmp_path, os.environ)
    yield place
    place.clear()
