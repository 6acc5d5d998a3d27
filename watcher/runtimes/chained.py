"""The status line that a user had before ours, as the installer kept it (C11.1)."""

import contextlib
import json
import os
from typing import cast

from policies.values import Json
from watcher.paths import state_directory

_LONGEST = 64 * 1024  # bytes of a file that is read


def previous(runtime: str) -> str | None:
    """Return the command line that a runtime had for its status line, if any."""
    kept = _kept().get(runtime)
    command = kept.get("command") if isinstance(kept, dict) else None
    return command if isinstance(command, str) and command.strip() else None


def keep(runtime: str, command: str) -> None:
    """Keep the command line that ours takes the place of, whose line goes before ours.

    Raises:
        OSError: the state directory cannot be written.
    """
    _put({**_kept(), runtime: {"command": command}})


def forget(runtime: str) -> None:
    """Keep it no longer, as it is in its place again.

    Raises:
        OSError: the state directory cannot be written.
    """
    kept = _kept()
    if kept.pop(runtime, None) is not None:
        _put(kept)


def _kept() -> dict[str, Json]:
    try:
        with open(_path(), "rb") as file:
            kept = json.loads(file.read(_LONGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    return cast("dict[str, Json]", kept) if isinstance(kept, dict) else {}


def _put(kept: dict[str, Json]) -> None:
    path = _path()
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    beside = f"{path}.{os.getpid()}"
    try:
        with open(
            os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w"
        ) as f:
            json.dump(kept, f)
        os.replace(beside, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def _path() -> str:
    return f"{state_directory(os.environ)}/statusline.json"
