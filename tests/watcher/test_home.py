"""Paths below the home folder of a host, by the agent and by sh."""

from pathlib import Path

import pytest

from tests.fakes import FakeHost
from tests.watcher.there import Far
from watcher.onhost import at_home


def test_only_what_begins_with_a_tilde_is_put_below_the_home_folder() -> None:
    request = {"op": "x", "path": "~/a b", "pidfile": "/p", "argv": ["~/x", "~/y"]}
    assert at_home(request, "/home/u/") == {
        "op": "x",
        "path": "/home/u/a b",
        "pidfile": "/p",
        "argv": ["/home/u/x", "~/y"],
    }
    assert at_home({"op": "x", "path": 1}, "/h") == {"op": "x", "path": 1}


@pytest.mark.parametrize(
    ("words", "then"),
    [("file run/END --exists --host box", "held"), ("file x --gone --host box", "")],
)
async def test_a_relative_file_is_looked_for_in_the_home_folder(
    words: str, then: str, tmp_path: Path
) -> None:
    host = FakeHost()
    host.about["home"] = str(tmp_path)
    (tmp_path / "x").touch()
    far = Far(words, host)
    seen = await far.take()
    assert (seen.sight.value, seen.reason) != ("released", None)
    if then:
        (tmp_path / "run").mkdir()
        (tmp_path / "run/END").touch()
    else:
        (tmp_path / "x").unlink()
    assert (await far.take()).sight.value == "released"


async def test_what_is_gone_because_its_folder_is_missing_is_unknown(
    tmp_path: Path,
) -> None:
    host = FakeHost()
    host.about["home"] = str(tmp_path)
    seen = await Far("file deep/x --gone --host box", host).take()
    assert seen.sight.value == "unknown"
