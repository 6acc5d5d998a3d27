import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import watcher.onhost
from watcher.onhost import frames, sent
from watcher.transport import bundle

NONCE = "cd" * 16


def pythons() -> list[str]:
    """Return this Python, and the oldest that is meant to do, where it is there."""
    oldest = shutil.which("python3.9")
    if oldest is None or subprocess.run([oldest, "-c", ""], check=False).returncode:
        return [sys.executable]
    return [sys.executable, oldest]


def run(python: str, *more: bytes) -> list[dict[str, object]]:
    """Run the agent in a shell whose python3 this is; return what it says."""
    command, data = bundle.agent(NONCE)
    command = command.replace("python3", python)
    said = subprocess.run(
        ["/bin/sh", "-c", command],
        input=data + b"".join(more),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert said.stderr == b""
    return frames.Frames(frames.telling(NONCE)).feed(said.stdout)


def test_all_that_a_host_needs_is_sent_and_nothing_else_of_ours() -> None:
    names = bundle.sources()
    folder = Path(watcher.onhost.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert {f"watcher.onhost.{name}" for name in modules} <= set(names)
    assert "watcher.onhost" in names
    assert "policies.proctable" in names
    assert names["watcher"] == ""
    policies = ("policies.logscan.", "policies.proctable.", "policies.text.")
    allowed = ("watcher.onhost.", *policies)
    for name in set(names) - {"watcher", "policies"}:
        assert f"{name}.".startswith(allowed)


def test_no_shell_finds_a_word_of_its_own_in_the_command() -> None:
    command, _ = bundle.agent(NONCE)
    assert command.startswith("exec python3 -I -S -c '")
    assert command.count("'") == 2
    assert not set("!\\=$&`\n~#*{}%^") & set(command)
    assert NONCE not in command
    assert len(command) < 200


@pytest.mark.parametrize("python", pythons())
def test_it_runs_from_memory_and_ends_with_its_input(python: str) -> None:
    (hello,) = run(python)
    about = hello["about"]
    assert isinstance(about, dict)
    assert about["means"] == "agent"


@pytest.mark.parametrize("python", pythons())
def test_what_follows_the_program_is_not_swallowed(python: str) -> None:
    asked = {"number": 1, "requests": [{"op": "nothing"}], "follow": [[1, 1]]}
    frame = frames.frame(frames.asking(NONCE), json.dumps(asked))
    _, *told = run(python, frame)
    assert {"exit": [1, 1, None]} in told


def test_a_program_that_is_cut_off_does_nothing(tmp_path: Path) -> None:
    command, data = bundle.agent(NONCE)
    said = subprocess.run(
        ["/bin/sh", "-c", command.replace("python3", sys.executable)],
        input=data[:-5],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert said.stdout == b""
    assert said.returncode == 0


@pytest.fixture
def finder() -> Iterator[None]:
    before = list(sys.meta_path)
    yield
    sys.meta_path[:] = before
    for name in ("sent_toy", "sent_toy.inner"):
        sys.modules.pop(name, None)


def test_modules_of_a_table_can_be_imported_and_others_as_ever(finder: None) -> None:
    sent.install(
        {
            "sent_toy": "from sent_toy.inner import word\n",
            "sent_toy.inner": "from __future__ import annotations\nword = 'x'\n",
        }
    )
    toy = __import__("sent_toy.inner")
    assert toy.word == "x"
    assert toy.inner.__package__ == "sent_toy"
    with pytest.raises(ModuleNotFoundError):
        __import__("sent_toy.other")


def test_without_a_module_of_policies_the_rest_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bundle, "_ALSO", ("nowhere", "proctable"))
    bundle.sources.cache_clear()
    try:
        assert "policies.nowhere" not in bundle.sources()
        assert "policies.proctable" in bundle.sources()
    finally:
        bundle.sources.cache_clear()
