"""What we register with a runtime, in its TOML file and out of it again (C11.1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from policies.edits import toml
from policies.edits.jsonc import Path, shown_path
from policies.edits.ours import (
    Change,
    Edited,
    Entry,
    command_of,
    is_our_server,
    part_of,
)
from policies.model import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a TOML file shall have of ours.

    Attributes:
        hooks: the key of the array of hooks, or None.
        events: event to our entry in that array.
        server: path and table of the MCP server, or None.
    """

    hooks: str | None = None
    events: Mapping[str, Entry] = field(default_factory=dict)
    server: tuple[tuple[str, ...], Entry] | None = None


def install(text: str, wanted: Wanted) -> Edited:
    """Return a TOML file with what is wanted in it, and nothing else of ours.

    Raises:
        UnreadableError: it is no TOML, or says something that ours contradicts.
    """
    toml.read(text)
    changes: list[Change] = []
    foreign: list[str] = []
    if wanted.hooks is not None:
        text = _toml_hooks(text, wanted.hooks, wanted.events, changes)
    if wanted.server is not None:
        text = _toml_server(text, *wanted.server, changes, foreign)
    return Edited(text=text, changes=tuple(changes), foreign=tuple(foreign))


def uninstall(text: str, wanted: Wanted) -> Edited:
    """Return a TOML file without anything of ours.

    Raises:
        UnreadableError: it is no TOML.
    """
    changes: list[Change] = []
    sections = toml.sections(text)
    gone = [s for s in sections if wanted.hooks and _is_our_hook(s, wanted.hooks)]
    if wanted.server is not None:
        path = wanted.server[0]
        if any(s.path == path and is_our_server(s.table) for s in sections):
            gone += [s for s in sections if s.path[: len(path)] == path]
    for section in gone:
        _note(changes, "-", section.path, section.table)
    text = toml.drop(text, gone)
    return Edited(text=toml.switch_on(text), changes=tuple(changes))


def _toml_hooks(
    text: str, key: str, events: Mapping[str, Entry], changes: list[Change]
) -> str:
    header = f"[[{key}]]"
    ours = [s for s in toml.sections(text) if _is_our_hook(s, key)]
    wanted = dict(events)
    gone: list[toml.Section] = []
    for section in ours:
        event = str(section.table.get("event"))
        if section.table == wanted.get(event):
            del wanted[event]
        else:
            gone.append(section)
    for section in gone:
        known = section.table.get("event") in wanted
        if not known:
            _note(changes, "-", (key,), section.table)
    replaced = {str(section.table.get("event")) for section in gone}
    text = toml.drop(text, gone)
    if wanted:
        text = toml.switch_off(text, key)
    for event, entry in wanted.items():
        text = toml.add(text, header, entry)
        _note(changes, "~" if event in replaced else "+", (key, event), entry)
    return text


def _toml_server(
    text: str,
    path: tuple[str, ...],
    entry: Entry,
    changes: list[Change],
    foreign: list[str],
) -> str:
    header = f"[{'.'.join(path)}]"
    there = next((s for s in toml.sections(text) if s.path == path), None)
    if there is None:
        text = toml.add(text, header, entry)
        _note(changes, "+", path, entry)
    elif not is_our_server(there.table):
        foreign.append(shown_path(path))
    elif any(there.table.get(key) != entry[key] for key in ("command", "args")):
        known = {"command": entry["command"], "args": entry["args"]}
        text = toml.replace(text, there, header, {**there.table, **known})
        _note(changes, "~", path, entry)
    return text


def _is_our_hook(section: toml.Section, key: str) -> bool:
    command = section.table.get("command")
    return section.path == (key,) and part_of(command) == "hook"


def _note(changes: list[Change], sign: str, path: Path, entry: Json) -> None:
    where = shown_path(path)
    changes.append(Change(sign=sign, where=where, command=command_of(entry)))
