"""What every test of the API starts from."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.fakes import FakeHosts
from tests.watcher.house import House
from tests.watcher.serve.rig import client_of


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("watcher.keeping.PATIENCE_S", 0.15)
    monkeypatch.setattr("watcher.writer._RETRY_S", 0.02)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with House(tmp_path, hosts=FakeHosts()) as house:
        house.hold("a")
        yield house


@pytest.fixture
async def api(house: House) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(house) as client:
        yield client
