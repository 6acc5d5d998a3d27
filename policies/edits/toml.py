"""TOML, changed as text: whole sections go in at the end, and out again.

A section is a header with the lines up to the next one. `tomllib` judges every result.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from policies.edits import UnreadableError, cut, newline_of
from policies.model import Json

Table: TypeAlias = Mapping[str, Json]

OFF: Final = "# koder-monitor: "
"""In front of a line that we had to take out of force."""

_TOKEN: Final = re.compile(
    r"""
      (?P<text>\"{3}(?:[^\\]|\\.)*?\"{3,5} | '{3}.*?'{3,5}
        | "(?:[^"\\\n]|\\.)*" | '[^'\n]*')
    | (?P<comment>\#[^\n]*)
    | (?P<end>\n)
    | (?P<open>[\[{]) | (?P<close>[\]}])
    | (?P<blank>[ \t\r]+)
    | (?P<word>[^"'\#\n\[\]{} \t\r]+)
    | (?P<odd>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_LINE_OF_ERROR: Final = re.compile(r"at line (\d+)")


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a file.

    Attributes:
        start: where its header begins.
        end: behind its last line that is neither empty nor a comment.
        path: the keys of its header.
        table: what it says.
    """

    start: int
    end: int
    path: tuple[str, ...]
    table: Table


def read(text: str) -> dict[str, Json]:
    """Return what a text says.

    Raises:
        UnreadableError: it is no TOML.
    """
    try:
        return cast("dict[str, Json]", tomllib.loads(text.replace("\r\n", "\n")))
    except tomllib.TOMLDecodeError as error:
        found = _LINE_OF_ERROR.search(str(error))
        raise UnreadableError(str(error), int(found.group(1)) if found else 1) from None


def sections(text: str) -> list[Section]:
    """Return the sections of a text that can be read, in order.

    Raises:
        UnreadableError: it is no TOML.
    """
    read(text)
    found = []
    starts, ends = _extents(text)
    for start, end in zip(starts, ends, strict=True):
        path = _path(text[start:end].splitlines()[0])
        found.append(Section(start, end, path, _table(text[start:end], path)))
    return found


def shown(header: str, table: Table, newline: str = "\n") -> str:
    """Return a section as text: a header such as `[a.b]`, and flat values."""
    lines = [header, *(f"{key} = {_value(value)}" for key, value in table.items())]
    return "".join(line + newline for line in lines)


def add(text: str, header: str, table: Table) -> str:
    """Return a text with one section more, at its end.

    Raises:
        UnreadableError: the text is no TOML, or says something that this contradicts.
    """
    newline = newline_of(text)
    lead = newline if text else ""
    if text and not text.endswith("\n"):
        lead += newline
    added = text + lead + shown(header, table, newline)
    read(added)
    return added


def replace(text: str, section: Section, header: str, table: Table) -> str:
    """Return a text in which a section says something else.

    Raises:
        UnreadableError: what comes of it is no TOML.
    """
    put = shown(header, table, newline_of(text))
    changed = text[: section.start] + put + text[section.end :]
    read(changed)
    return changed


def drop(text: str, gone: Sequence[Section]) -> str:
    """Return a text without some of its sections, and the empty line before each."""
    pieces = []
    for section in gone:
        start = section.start
        for newline in ("\r\n", "\n"):
            if text[:start].endswith(newline * 2):
                start -= len(newline)
                break
        pieces.append((start, section.end))
    return cut(text, *pieces)


def switch_off(text: str, key: str) -> str:
    """Return a text in which `key = []` before all sections is a comment.

    An array that is written so cannot be continued by sections.
    """
    starts, _ = _extents(text)
    head = starts[0] if starts else len(text)
    line = re.compile(
        rf"^(?={key}[ \t]*=[ \t]*\[[ \t]*\][ \t]*(?:\#.*)?$)", re.MULTILINE
    )
    return line.sub(OFF, text[:head], count=1) + text[head:]


def switch_on(text: str) -> str:
    """Undo `switch_off`."""
    return re.sub(rf"^{re.escape(OFF)}", "", text, count=1, flags=re.MULTILINE)


def _extents(text: str) -> tuple[list[int], list[int]]:
    """Return where sections start, and where what they say ends."""
    starts: list[int] = []
    ends: list[int] = []
    depth, fresh, in_header, said = 0, True, False, False
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "end":
            if said and ends:
                ends[-1] = token.end()
            if depth == 0:
                fresh, in_header = True, False
            said = False
            continue
        if kind in {"blank", "comment"}:
            continue
        if kind == "open" and fresh and depth == 0:
            starts.append(text.rfind("\n", 0, token.start()) + 1)
            ends.append(token.end())
            in_header = True
        fresh, said = False, True
        if not in_header:
            depth += {"open": 1, "close": -1}.get(str(kind), 0)
    if said and ends:
        ends[-1] = len(text)
    return starts, ends


def _path(header: str) -> tuple[str, ...]:
    """Return the keys of a header."""
    path: list[str] = []
    said: Json = read(header)
    while said:
        if isinstance(said, list):
            said = said[0]
            continue
        key, said = next(iter(cast("Table", said).items()))
        path.append(key)
    return tuple(path)


def _table(text: str, path: Sequence[str]) -> Table:
    """Return what a section says that is read alone."""
    said: Json = read(text)
    for key in path:
        said = cast("Table", said)[key]
        if isinstance(said, list):
            said = said[0]
    return cast("Table", said)


def _value(value: Json) -> str:
    """Return a value as TOML: texts, whole numbers, truths, and lists of them."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
