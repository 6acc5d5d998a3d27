"""Detached watchers in tests: their place, and that none outlives its test."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.watcher.toys import file
from watcher import detaching, errand, targets
from watcher.conditions import KINDS
from watcher.onhost import folder as folders
from watcher.onhost import survival, yard
from watcher.transport import bundle

NAME = folders.NAME


@contextmanager
def toys(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let `file` be the toy, here and in what is sent off; a busy machine has time."""
    patch.setattr(survival, "_ALIVE_LIMIT_S", 30.0)
    for name in ("_CHECK_LIMIT_S", "_START_LIMIT_S", "_CONTACT_LIMIT_S", "_FIRST_S"):
        patch.setattr(detaching, name, 60.0)
    patch.setitem(KINDS, "file", "tests.watcher.toys.kind")
    patch.setitem(sys.modules, "watcher.onhost.file", file)
    real = bundle.sources()
    source = Path(str(file.__file__)).read_text()
    sources = {**real, "watcher.onhost.file": source}
    patch.setattr(bundle, "sources", lambda: sources)
    for cached in (errand.program, targets._parser):
        cached.cache_clear()
    try:
        yield
    finally:
        for cached in (errand.program, targets._parser):
            cached.cache_clear()


def pids(below: Path) -> list[int]:
    """Return the processes that watch in a folder somewhere below, and theirs."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                command = (entry / "cmdline").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z" and os.fsencode(f"{below}/") in command:
                    found.append(int(entry.name))
    return found


def wait(look: Callable[[], object], *, limit_s: float = 60.0) -> None:
    """Wait in real time until `look` returns something.

    Raises:
        AssertionError: it still does not after `limit_s` seconds.
    """
    end_s = time.monotonic() + limit_s
    while not look():
        assert time.monotonic() < end_s, f"not within {limit_s} s"
        time.sleep(0.005)


def end_all(below: Path) -> None:
    """Leave no detached watcher behind."""
    yard.let_go()
    for _ in range(50):
        for pid in pids(below / NAME):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class Base:
    """The state home of a host, as tests see it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / NAME

    def folders(self) -> list[Path]:
        return [path for path in self.root.glob("*/*") if path.is_dir()]

    @property
    def folder(self) -> Path:
        """The only watch that is there."""
        (folder,) = self.folders()
        return folder

    def json(self, name: str) -> dict[str, Any]:
        found = json.loads((self.folder / name).read_text())
        assert isinstance(found, dict)
        return found

    @property
    def outcome(self) -> dict[str, Any] | None:
        with suppress(ValueError):
            return folders.read_json(str(self.folder), "outcome.json")
        return None

    @property
    def alive(self) -> bool:
        return any(folders.is_alive(str(folder)) for folder in self.folders())

    @property
    def pid(self) -> int:
        """Of the only watcher that is there."""
        pid = folders.pid_of(str(self.folder))
        assert pid is not None
        return pid

    def kill(self) -> None:
        """Kill the watcher where it stands."""
        os.kill(self.pid, signal.SIGKILL)

    def secret_is_nowhere(self, secret: str) -> None:
        """Make sure that only the key file holds a secret."""
        for path in self.root.rglob("*"):
            if path.is_file() and path.name != "key":
                content = ""
                with suppress(FileNotFoundError):  # replaced just now
                    content = path.read_text(errors="replace")
                assert secret not in content, path
        for pid in pids(self.root):
            for name in ("cmdline", "environ"):
                seen = b""
                with suppress(OSError):  # a child of it has a short life
                    seen = Path(f"/proc/{pid}/{name}").read_bytes()
                assert secret.encode() not in seen
