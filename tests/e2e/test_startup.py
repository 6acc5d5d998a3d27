"""What a command imports before it waits: each import is paid for by every call."""

import re
import sys
from collections.abc import Sequence

import pytest

from tests.e2e.command import Place

OURS = {"notify", "policies", "watcher"}
_IMPORT = re.compile(r"import time: +\d+ \| +\d+ \| +(\S+)")


HEAVY = {
    "asyncio",
    "concurrent.futures",
    "email",
    "http.client",
    "importlib.metadata",
    "logging",
    "ssl",
    "subprocess",
    "tomllib",
    "typing_extensions",
    "urllib.request",
}
"""What costs a command more than the interpreter's own start, one way or another."""


LOOKED_UP = {"importlib.metadata", "json"}
"""What finds conditions of other packages, and what that may import."""


def env_of(place: Place) -> dict[str, str | None]:
    """Return what makes Python list its imports, and nothing that adds to them."""
    measured = {name: None for name in place.env if name.startswith("COVERAGE_")}
    return {**measured, "PYTHONPROFILEIMPORTTIME": "1"}


def imported(lines: Sequence[str]) -> set[str]:
    return {match[1] for line in lines if (match := _IMPORT.fullmatch(line))}


def foreign(place: Place, names: set[str]) -> set[str]:
    """Return the packages among them that are neither Python's nor ours."""
    # Python's own `copy` asks for a module of Jython's that is not there.
    words = ("-c", "import copy")
    bare = place.start(*words, env=env_of(place), program=(sys.executable,))
    known = imported(bare.end().err) | OURS | sys.stdlib_module_names
    return {name for name in names if not {name, name.partition(".")[0]} & known}


def before_armed(place: Place, *words: str, **env: str) -> set[str]:
    """Return what a command imports before it says that it waits."""
    running = place.start(*words, env={**env_of(place), **env})
    armed = running.armed()
    running.process.kill()
    lines = running.end().err
    return imported(lines[: lines.index(armed)])


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["lock", "demo"], id="lock"),
        pytest.param(["lock", "demo", "--json"], id="--json"),
        pytest.param(["process", "--pid", "PID"], id="--pid"),
        pytest.param(["process", "--match", "PID"], id="--match"),
        pytest.param(["process", "--regex", "PID"], id="--regex"),
        pytest.param(["port", "127.0.0.1:1", "--open"], id="port"),
        pytest.param(["file", "never", "--exists"], id="file"),
        pytest.param(["command", "--", "false"], id="command"),
        pytest.param(["http", "http://127.0.0.1:1", "--body", "x"], id="http"),
        pytest.param(["wait", "--any", "lock demo", "http http://a:1"], id="wait"),
        pytest.param(["log", "x.log", "--pass", "PASS"], id="log"),
    ],
)
def test_a_watch_command_imports_no_asyncio_no_network_and_nothing_foreign(
    place: Place, words: list[str]
) -> None:
    """It is a thin client: the service imports what looks and sends."""
    place.hold()
    place.start("lock", "demo").armed()
    place.service()
    mark = "marked-" + place.folder.name
    work = place.work(mark)
    named = str(work.pid) if "--pid" in words else mark
    names = before_armed(
        place,
        *[named if word == "PID" else word for word in words],
        KODER_MONITOR_NOTIFY_URL="http://127.0.0.1:1/",
        KODER_MONITOR_NOTIFY_KEY="key-of-this-test",
    )
    assert "policies.model" in names
    assert foreign(place, names) == set()
    assert names & HEAVY == set()


@pytest.mark.parametrize(
    ("words", "status", "unwanted"),
    [
        # It names what other packages bring, which is looked up by that module.
        pytest.param(["--help"], 0, {"asyncio"}, id="--help"),
        pytest.param(["--version"], 0, {*LOOKED_UP, "asyncio"}, id="--version"),
        pytest.param([], 2, {*LOOKED_UP, "asyncio"}, id="no command"),
        pytest.param(["lock", "--helpless"], 2, LOOKED_UP - {"json"}, id="an option"),
    ],
)
def test_help_version_and_a_wrong_call_import_no_more_than_they_need(
    place: Place, words: list[str], status: int, unwanted: set[str]
) -> None:
    ended = place.start(*words, env=env_of(place)).end()
    names = imported(ended.err)
    assert ended.status == status
    assert "argparse" in names
    assert foreign(place, names) == set()
    assert names & {"shtab", "sqlite3", "http.client", *unwanted} == set()


def test_what_is_listed_as_foreign_would_be_found(place: Place) -> None:
    assert foreign(place, {"httpx", "regex._regex", "json.decoder", "watcher.cli"}) == {
        "httpx",
        "regex._regex",
    }
