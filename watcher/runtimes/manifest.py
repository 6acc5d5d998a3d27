"""What was installed where: kept in the state directory, so that it can go again."""

import dataclasses
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from policies.wording import phrase
from watcher.errors import StoreError
from watcher.placing import Placed, place

NAME = "installed.json"
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One file that holds something of ours.

    Attributes:
        slot: which of the runtime's files it is.
        path: where.
        before: hash of what was there before us, or None for nothing.
        after: hash of what we wrote.
        exact: `before` is without anything of ours, so that it can be put back.
        backups: copies of what was there, the first one first.
        made: the containers that we made in it.
        former: the command of the status line that was there.
        folders: those that we made for it, the outer ones first.
    """

    slot: str
    path: str
    before: str | None
    after: str
    exact: bool
    backups: Sequence[str] = ()
    made: Sequence[Sequence[str | int]] = ()
    former: str | None = None
    folders: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Install:
    """A runtime that we are registered with, for a person or for one project.

    Attributes:
        at_s: when something was changed for it last, in seconds since the epoch.
    """

    runtime: str
    project: str | None
    program: str
    at_s: float
    files: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Manifest:
    version: int
    installs: tuple[Install, ...]


def load(state: str) -> list[Install]:
    """Return what is installed.

    Raises:
        StoreError: the file cannot be read; what it says must not get lost.
    """
    path = f"{state}/{NAME}"
    try:
        with open(path, "rb") as file:
            manifest = msgspec.json.decode(file.read(), type=_Manifest)
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError) as error:
        said = phrase("manifest_unread", path=path, error=str(error))
        raise StoreError(said) from error
    if manifest.version != _VERSION:
        error_text = f"version {manifest.version}"
        raise StoreError(phrase("manifest_unread", path=path, error=error_text))
    return list(manifest.installs)


def find(
    installs: Sequence[Install], runtime: str, project: str | None
) -> Install | None:
    """Return one of them."""
    wanted = (runtime, project)
    return next((i for i in installs if (i.runtime, i.project) == wanted), None)


def save(state: str, installs: Sequence[Install]) -> None:
    """Keep what is installed.

    Raises:
        StoreError: the state directory cannot be written.
    """
    manifest = _Manifest(version=_VERSION, installs=tuple(installs))
    data = json.dumps(dataclasses.asdict(manifest), indent=1).encode()
    try:
        os.makedirs(state, mode=0o700, exist_ok=True)
        place(f"{state}/{NAME}", Placed(data))
    except OSError as error:
        raise StoreError(phrase("write_failed", error=str(error))) from error
