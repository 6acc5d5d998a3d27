"""What the lock guard decides: which files a call edits, and which a lock covers."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, cast

from policies.holder import Holder
from policies.values import Json

MOST_PATHS = 100
"""Edited files of one call that are looked at; a patch may name thousands."""

_LONGEST_PATTERN = 1024  # characters
_MOST_PATTERNS = 200  # of one lock

EDITS: Final = frozenset(
    """
    applydiff applypatch create createfile deletefile edit editfile editnotebook
    inserteditintofile movefile multiedit multireplacefilecontent notebookedit patch
    replace replacefilecontent replaceinfile savefile searchreplace strreplace
    strreplacebasededittool strreplaceeditor strreplacefile write writefile writetofile
    """.split()  # noqa: SIM905 - a list of words reads best as one
)
"""Tools that change files, by whatever runtime: lower case, letters only."""

_SHELLS: Final = frozenset({"bash", "shell", "localshell", "execcommand"})
"""Tools whose command may hold a patch (Codex)."""

_PATH_KEYS: Final = (
    "file_path",
    "filePath",
    "notebook_path",
    "path",
    "absolute_path",
    "target_file",
    "TargetFile",
    "filename",
)
_LIST_KEYS: Final = ("edits", "files", "paths", "changes")
_PATCH_KEYS: Final = ("input", "patch", "patchText", "command", "cmd")
_PATCHED: Final = (
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
)


def edited_paths(tool: str | None, tool_input: Mapping[str, Json]) -> list[str]:
    """Return the files that a call is about to change, as it names them.

    Only tools that are known to edit count, and patches inside a shell command: what
    reads, searches or runs passes.

    Args:
        tool: its name in its runtime, an MCP tool's with its server in front.
        tool_input: its arguments.
    """
    name = _plain_name(tool or "")
    found: list[str] = []
    if name in EDITS and tool_input.get("command") != "view":
        found += _named(tool_input)
    if name in EDITS or name in _SHELLS:
        found += _patched(tool_input)
    return list(dict.fromkeys(found))[:MOST_PATHS]


def _plain_name(tool: str) -> str:
    return "".join(filter(str.isalpha, tool.rpartition("__")[2])).lower()


def _named(tool_input: Mapping[str, Json]) -> Iterator[str]:
    yield from _texts(tool_input)
    for key in _LIST_KEYS:
        items = tool_input.get(key)
        if isinstance(items, Mapping):
            items = list(items)  # a map from file to change
        if not isinstance(items, list):
            continue
        for item in items[:MOST_PATHS]:
            if isinstance(item, str):
                yield item
            elif isinstance(item, Mapping):
                yield from _texts(cast("Mapping[str, Json]", item))


def _texts(item: Mapping[str, Json]) -> Iterator[str]:
    for key in _PATH_KEYS:
        value = item.get(key)
        if isinstance(value, str) and value:
            yield value


def _patched(tool_input: Mapping[str, Json]) -> Iterator[str]:
    """Give the files of patches in the form that `apply_patch` takes."""
    for key in _PATCH_KEYS:
        value = tool_input.get(key)
        words = value if isinstance(value, list) else [value]
        for word in words[:MOST_PATHS]:
            if isinstance(word, str) and "*** Begin Patch" in word:
                for line in word.splitlines():
                    for mark in _PATCHED:
                        if line.startswith(mark):
                            yield line.removeprefix(mark).strip()


def is_somebody_elses(holder: Holder, sessions: Sequence[str]) -> bool:
    """Say whether a lock is another session's; one that names none may be."""
    return holder.session not in sessions


def covered(
    patterns: Sequence[str], project: Sequence[str], paths: Sequence[str]
) -> list[str]:
    """Return which paths the globs of a lock cover (C11.2).

    A folder covers what is in it. `*` and `?` stay within one name, `**` does not.

    Args:
        patterns: of the lock; relative to the project folder unless absolute.
        project: the project folder, absolute, by each of its names.
        paths: absolute.
    """
    wanted = [
        parts
        for pattern in patterns[:_MOST_PATTERNS]
        for folder in project
        if (parts := _pattern_parts(pattern, folder)) is not None
    ]
    return [
        path
        for path in paths
        if any(_covers(parts, _parts(path, "/")) for parts in wanted)
    ]


def _pattern_parts(pattern: str, folder: str) -> list[str] | None:
    """Return a pattern's absolute parts; an empty one means nothing."""
    if not pattern.strip() or len(pattern) > _LONGEST_PATTERN:
        return None
    return _parts(pattern, folder)


def _parts(path: str, folder: str) -> list[str]:
    whole = path if path.startswith("/") else f"{folder}/{path}"
    parts: list[str] = []
    for part in whole.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in {"", "."}:
            parts.append(part)
    return parts


def _covers(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Say whether a pattern matches a path, or a folder above it.

    Keeps every place that the path can have been followed to, so that many `**` cost
    no more than one.
    """
    places = {0}
    for part in pattern:
        if part == "**":
            places = set(range(min(places), len(path) + 1))
        else:
            places = {
                place + 1
                for place in places
                if place < len(path) and _matches(part, path[place])
            }
        if not places:
            return False
    return True


def _matches(pattern: str, name: str) -> bool:
    """Say whether a glob matches one name, in linear steps for each star."""
    if pattern == name:
        return True
    if "[" in pattern:
        return fnmatchcase(name, pattern)
    if "*" not in pattern and "?" not in pattern:
        return False
    at = star = kept = 0
    seen = -1  # where the last star stands
    while at < len(name):
        if star < len(pattern) and pattern[star] == "*":
            seen, kept = star, at
            star += 1
        elif star < len(pattern) and pattern[star] in {name[at], "?"}:
            star += 1
            at += 1
        elif seen >= 0:
            star = seen + 1
            kept += 1
            at = kept
        else:
            return False
    return not pattern[star:].strip("*")
