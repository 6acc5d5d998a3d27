"""Which entries are ours, and what an edit did to a file.

Ours is what calls our command: runtimes strip or refuse any other mark on an entry.
"""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from policies.edits.jsonc import Path
from policies.model import Json

PROGRAM: Final = "koder-monitor"

Entry: TypeAlias = Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that is done to a file: `+` put in, `~` changed, `-` taken out."""

    sign: str
    where: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """A file after the edit.

    Attributes:
        made: the containers that were not there before, the outer ones first.
        former: the command of the status line that ours took the place of.
        foreign: what stands where ours should, and is somebody else's.
    """

    text: str
    changes: tuple[Change, ...] = ()
    made: tuple[Path, ...] = ()
    former: str | None = None
    foreign: tuple[str, ...] = ()


def part_of(command: Json) -> str | None:
    """Return what a command line calls of ours: `hook`, `statusline` or `mcp`."""
    if not isinstance(command, str):
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if len(words) < 2 or words[0].rpartition("/")[2] != PROGRAM:
        return None
    return words[1] if words[1] in {"hook", "statusline", "mcp"} else None


def is_our_server(entry: Json) -> bool:
    """Say whether an MCP server is ours; its command may be one list or two keys."""
    if not isinstance(entry, Mapping):
        return False
    command, args = entry.get("command"), entry.get("args")
    words = [*command] if isinstance(command, list) else [command]
    words += args if isinstance(args, list) else []
    if not all(isinstance(word, str) for word in words):
        return False
    return part_of(shlex.join(cast("list[str]", words))) == "mcp"


def command_of(entry: Json) -> str:
    """Return the command line of an entry of ours."""
    handler = next(iter(handlers(entry)), entry)
    said = cast("Entry", handler)
    command = next((said[key] for key in ("command", "bash") if key in said), "")
    if isinstance(command, list):
        return shlex.join(map(str, command))
    args = said.get("args")
    more = [shlex.join(map(str, args))] if isinstance(args, list) else []
    return " ".join([str(command), *more])


def handlers(entry: Json) -> Iterator[Json]:
    """Give the hooks inside of a group; nothing for what is no group."""
    if isinstance(entry, dict) and isinstance(entry.get("hooks"), list):
        yield from entry["hooks"]
