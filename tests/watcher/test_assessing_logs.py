"""Whether a log grows is seen, here and on its host (C9.2)."""

from pathlib import Path

import pytest

from policies.evidence import WorkEvidence
from tests.fakes import START, FakeClock, FakeHost
from tests.watcher.there import Far
from watcher.assessing import gather
from watcher.conditions import LocalCondition, Place
from watcher.config import Config
from watcher.targets import condition_of


async def looked(words: str, host: str | None) -> WorkEvidence:
    if host is not None:
        seen = await Far(f"{words} --host {host}", FakeHost(host)).take()
    else:
        place = Place(config=Config(), cwd="/", launcher=0)
        condition: LocalCondition = condition_of(words, place)  # type: ignore[assignment]  # a local one
        seen = condition.look({}, START)
        condition.close()
    found = gather("log", seen, clock=FakeClock(), host=host)
    assert isinstance(found, WorkEvidence)
    return found


@pytest.mark.parametrize("host", [None, "box"])
async def test_the_size_of_a_log_is_evidence(host: str | None, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("begun\n")
    words = f"log {path} --pass DONE"
    first = await looked(words, host)
    assert (first.log, first.log_size) == (str(path), 6)
    with path.open("a") as file:
        file.write("more\n")
    assert (await looked(words, host)).log_size == 11
    path.unlink()
    assert (await looked(words, host)).log_size is None
