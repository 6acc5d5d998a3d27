"""The mark that each run of a hook leaves: the proof that hooks run, for `doctor`.

Runtimes skip hooks without a word where a folder or a hook is not trusted; a hook that
is configured says nothing about whether it ever ran.
"""

import os
from datetime import UTC, datetime
from typing import NamedTuple

from watcher.paths import state_directory
from watcher.runtimes import HookCall

_FOLDER = "hooks/beats"


class Beat(NamedTuple):
    """When an event of a runtime last reached us."""

    runtime: str
    event: str
    at: datetime


def beat(call: HookCall) -> None:
    """Leave the mark of this run: an empty file, whose time is all that it says.

    Raises:
        OSError: the state directory cannot be written.
    """
    folder = f"{state_directory(call.env)}/{_FOLDER}"
    path = f"{folder}/{call.runtime}.{call.event}"
    at_s = call.at.timestamp()
    try:
        os.utime(path, (at_s, at_s))
    except FileNotFoundError:
        os.makedirs(state_directory(call.env), mode=0o700, exist_ok=True)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        os.utime(path, (at_s, at_s))


def last_beats(state: str) -> list[Beat]:
    """Return the last run of each event of each runtime, the latest first."""
    found = []
    try:
        with os.scandir(f"{state}/{_FOLDER}") as entries:
            for entry in entries:
                runtime, _, event = entry.name.partition(".")
                at = datetime.fromtimestamp(entry.stat().st_mtime, UTC)
                found.append(Beat(runtime, event, at))
    except OSError:
        return []
    return sorted(found, key=lambda beat: beat.at, reverse=True)
