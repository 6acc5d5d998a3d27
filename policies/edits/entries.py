"""What we register with a runtime, in its JSON file and out of it again (C11.1)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from policies.edits import UnreadableError, jsonc
from policies.edits.jsonc import Path, shown_path
from policies.edits.ours import (
    Change,
    Edited,
    Entry,
    command_of,
    handlers,
    is_our_server,
    part_of,
)
from policies.model import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a file shall have of ours, and where it may have something of ours.

    Attributes:
        hooks: the object whose members are an event's hooks each, or None.
        events: event, as the runtime calls it, to our entry.
        base: members that the file must have beside them.
        server: the MCP server, as path and entry.
        line: the status line, as path and entry.
    """

    hooks: Path | None = None
    events: Mapping[str, Entry] = field(default_factory=dict)
    base: Mapping[str, Json] = field(default_factory=dict)
    server: tuple[Path, Entry] | None = None
    line: tuple[Path, Entry] | None = None


def install(text: str, wanted: Wanted) -> Edited:
    """Return a JSON file with what is wanted in it, and nothing else of ours.

    Raises:
        UnreadableError: it is no JSON, or something else is where ours should be.
    """
    edit = _Edit(text + "{}\n" if jsonc.is_blank(text) else text)
    edit.check_root()
    for key, value in wanted.base.items():
        if edit.value((key,)) is None:
            edit.put((key,), value)
    if wanted.hooks is not None:
        edit.set_hooks(wanted.hooks, wanted.events)
    if wanted.server is not None:
        edit.set_server(*wanted.server)
    if wanted.line is not None:
        edit.set_line(*wanted.line)
    return edit.result()


def uninstall(
    text: str, wanted: Wanted, *, made: Sequence[Path] = (), former: str | None = None
) -> Edited:
    """Return a JSON file without anything of ours.

    Args:
        text: the file.
        wanted: says where something of ours may be.
        made: containers that go too, if they hold nothing else now.
        former: the command that our status line took the place of.

    Raises:
        UnreadableError: it is no JSON.
    """
    if jsonc.is_blank(text):
        return Edited(text=text)
    edit = _Edit(text)
    edit.check_root()
    if wanted.hooks is not None:
        edit.set_hooks(wanted.hooks, {})
    if wanted.server is not None:
        edit.drop_server(wanted.server[0])
    if wanted.line is not None:
        edit.drop_line(wanted.line[0], former)
    for path in sorted(made, key=len, reverse=True):
        value = edit.value(path)
        empty = isinstance(value, (dict, list)) and not value
        if empty or (path[0] in wanted.base and value is not None):
            edit.drop(path)
    return edit.result()


class _Edit:
    """A JSON text under change, and what was done to it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._root = jsonc.read(text)
        self._changes: list[Change] = []
        self._made: list[Path] = []
        self._former: str | None = None
        self._foreign: list[str] = []

    def result(self) -> Edited:
        return Edited(
            text=self._text,
            changes=tuple(self._changes),
            made=tuple(self._made),
            former=self._former,
            foreign=tuple(self._foreign),
        )

    def check_root(self) -> None:
        """Refuse a file that is no object.

        Raises:
            UnreadableError: it is none.
        """
        if not isinstance(self._root.value, dict):
            raise UnreadableError("no object", 1)

    def value(self, path: Path) -> Json:
        node = jsonc.find(self._root, path)
        return None if node is None else node.value

    def put(self, path: Path, value: Json) -> None:
        """Have a value, and remember it as made."""
        self._note_made(path)
        self._set(jsonc.put(self._text, path, value))

    def drop(self, path: Path) -> None:
        self._set(jsonc.drop(self._text, path))

    def set_hooks(self, at: Path, events: Mapping[str, Entry]) -> None:
        """Have exactly these of ours in the lists of an object."""
        there = self.value(at)
        known = there if isinstance(there, dict) else {}
        for event in [*known, *(event for event in events if event not in known)]:
            self._set_event((*at, event), events.get(event))

    def _set_event(self, path: Path, entry: Entry | None) -> None:
        listed = self.value(path)
        elements = listed if isinstance(listed, list) else []
        ours = [i for i, one in enumerate(elements) if _is_all_ours(one)]
        mixed = [spot for i, one in enumerate(elements) for spot in _mixed(i, one)]
        kept: Path | None = None
        if entry is not None:
            wanted = next(handlers(entry), entry)
            same: list[Path] = [(i,) for i in ours if elements[i] == entry]
            same += [spot for spot in mixed if _at(elements, spot) == wanted]
            kept = next(iter(same), None)
        if entry is not None and kept is None and ours:
            kept = (ours[0],)
            self._set(jsonc.put(self._text, (*path, ours[0]), entry))
            self._note("~", path, entry)
        for spot in sorted([*((i,) for i in ours), *mixed], reverse=True):
            if spot != kept:
                self._note("-", path, _at(elements, spot))
                self.drop((*path, *spot))
        if entry is not None and kept is None:
            self._note_made(path)
            self._set(jsonc.append(self._text, path, entry))
            self._note("+", path, entry)

    def set_server(self, path: Path, entry: Entry) -> None:
        """Have our MCP server; what its owner added to it stays."""
        there = self.value(path)
        if there is None:
            self.put(path, entry)
            self._note("+", path, entry)
            return
        if not is_our_server(there):
            self._foreign.append(shown_path(path))
            return
        said = cast("Entry", there)
        differing = [
            key for key in ("command", "args") if said.get(key) != entry.get(key)
        ]
        for key in differing:
            if key in entry:
                self._set(jsonc.put(self._text, (*path, key), entry[key]))
            else:
                self.drop((*path, key))
        if differing:
            self._note("~", path, entry)

    def drop_server(self, path: Path) -> None:
        there = self.value(path)
        if is_our_server(there):
            self._note("-", path, there)
            self.drop(path)

    def set_line(self, path: Path, entry: Entry) -> None:
        """Have our status line; the command that was there is remembered."""
        there = self.value(path)
        if there is None:
            self.put(path, entry)
            self._note("+", path, entry)
            return
        command = there.get("command") if isinstance(there, dict) else None
        if not isinstance(command, str):
            self._foreign.append(shown_path(path))
            return
        if command == entry["command"]:
            return
        if part_of(command) != "statusline":
            self._former = command
        self._set(jsonc.put(self._text, (*path, "command"), entry["command"]))
        self._note("~", path, entry)

    def drop_line(self, path: Path, former: str | None) -> None:
        there = self.value(path)
        command = there.get("command") if isinstance(there, dict) else None
        if part_of(command) != "statusline":
            return
        self._note("-", path, there)
        if former is None:
            self.drop(path)
        else:
            self._set(jsonc.put(self._text, (*path, "command"), former))

    def _note(self, sign: str, path: Path, entry: Json) -> None:
        where = shown_path(path)
        self._changes.append(Change(sign=sign, where=where, command=command_of(entry)))

    def _note_made(self, path: Path) -> None:
        for depth in range(1, len(path) + 1):
            if jsonc.find(self._root, path[:depth]) is None:
                self._made.append(path[:depth])

    def _set(self, text: str) -> None:
        self._text = text
        self._root = jsonc.read(text)


def _is_hook(entry: Json) -> bool:
    if not isinstance(entry, dict):
        return False
    return any(part_of(entry.get(key)) == "hook" for key in ("command", "bash"))


def _is_all_ours(entry: Json) -> bool:
    inner = list(handlers(entry))
    return all(map(_is_hook, inner)) if inner else _is_hook(entry)


def _mixed(index: int, entry: Json) -> Iterator[tuple[int | str, ...]]:
    """Give where a group that somebody else shares has hooks of ours."""
    if not _is_all_ours(entry):
        for inner, hook in enumerate(handlers(entry)):
            if _is_hook(hook):
                yield (index, "hooks", inner)


def _at(elements: Json, spot: Sequence[str | int]) -> Json:
    for key in spot:
        elements = (
            cast("Sequence[Json]", elements)[key]
            if isinstance(key, int)
            else cast("Entry", elements)[key]
        )
    return elements
