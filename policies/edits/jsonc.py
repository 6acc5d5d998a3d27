"""JSON, with or without comments and trailing commas, changed as text.

A change is one insertion or one cut: comments, order, indentation, line ends and the
byte-order mark of all else stay as they are. To take out what was put in gives the text
of before, but for blanks inside of brackets that held nothing else.
"""

import json
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, NoReturn, TypeAlias, cast

from policies.edits import UnreadableError, cut, newline_of
from policies.model import Json

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indices from the root to a value."""

_TOKEN: Final = re.compile(
    r"""
    (?: [ \t\r\n]+ | //[^\r\n]* | /\*.*?\*/ )*+
    (?: (?P<string>"(?:[^"\\\x00-\x1f]++ | \\.)*+")
      | (?P<mark>[{}\[\]:,])
      | (?P<word>[^\s{}\[\]:,"/]+)
      | (?P<end>\Z) )
    """,
    re.VERBOSE | re.DOTALL,
)
_SKIPPED: Final = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*+", re.DOTALL)
_REST_OF_LINE: Final = re.compile(
    r"(?:[ \t]*(?:/\*(?:(?!\*/)[^\r\n])*\*/|//[^\r\n]*))*"
)
_BLANK: Final = " \t\r\n"
_MARK: Final = "\ufeff"  # of byte order
_DEEPEST = 200  # levels; a file that a person wrote has a handful


class Child(NamedTuple):
    """A member of an object or an element of an array.

    Attributes:
        key: of a member, else None.
        start: of the key, else of the value.
        comma: where the comma behind it is, if any.
    """

    key: str | None
    start: int
    node: "Node"
    comma: int | None


class Node(NamedTuple):
    """A value with its place in the text; the last of equal keys counts."""

    start: int
    end: int
    value: Json
    children: tuple[Child, ...]

    def spot(self, key: str | int) -> int | None:
        """Return which child a key means."""
        if isinstance(key, int):
            inside = isinstance(self.value, list) and 0 <= key < len(self.children)
            return key if inside else None
        found = (i for i, child in enumerate(self.children) if child.key == key)
        return max(found, default=None)


def is_blank(text: str) -> bool:
    """Say whether nothing stands in a text; programs take that for an empty object."""
    return not text.strip(_BLANK + _MARK)


@lru_cache(maxsize=2)
def read(text: str) -> Node:
    """Return the value that a text holds; remembered, as edits ask again and again.

    Raises:
        UnreadableError: it is no JSON, even with comments.
    """
    return _Reader(text).document()


def put(text: str, path: Sequence[str | int], value: Json) -> str:
    """Return a text in which `path` has a value; what lacks on the way is made.

    Raises:
        UnreadableError: the text is no JSON, or something else is on the way.
    """
    node = read(text)
    for depth, key in enumerate(path):
        index = node.spot(key)
        if index is None:
            if isinstance(key, int) or not isinstance(node.value, dict):
                _refuse(text, node, path[:depth])
            for name in reversed(path[depth + 1 :]):
                value = {str(name): value}
            return _added(text, node, key, value)
        node = node.children[index].node
    shown = _shown(text, value, _indent(text, node.start), inline=_is_inline(text))
    return text[: node.start] + shown + text[node.end :]


def append(text: str, path: Sequence[str | int], value: Json) -> str:
    """Return a text in which the array at `path` ends with a value.

    Raises:
        UnreadableError: the text is no JSON, or has no array there.
    """
    node = find(read(text), path)
    if node is None:
        return put(text, path, [value])
    if not isinstance(node.value, list):
        _refuse(text, node, path)
    return _added(text, node, None, value)


def drop(text: str, path: Sequence[str | int]) -> str:
    """Return a text without the value at `path`, which must be there.

    Raises:
        UnreadableError: the text is no JSON.
    """
    parent = find(read(text), path[:-1])
    index = parent.spot(path[-1]) if parent is not None else None
    if parent is None or index is None:
        raise UnreadableError(f"nothing at {shown_path(path)}", 1)
    child = parent.children[index]
    comma = child.comma
    if comma is None and index:
        comma = parent.children[index - 1].comma
    rest = [] if comma is None else [(comma, comma + 1)]
    start = len(text[: child.start].rstrip(_BLANK))
    without = cut(text, (start, child.node.end), *rest)
    try:
        read(without)
    except UnreadableError:  # the line end closed a comment
        without = cut(text, (child.start, child.node.end), *rest)
    if len(parent.children) == 1:
        return _closed(without, parent.start)
    return without


def find(node: Node, path: Sequence[str | int]) -> Node | None:
    """Return the value at `path`, if there is one."""
    for key in path:
        index = node.spot(key)
        if index is None:
            return None
        node = node.children[index].node
    return node


def shown_path(path: Sequence[str | int]) -> str:
    """Return a path as people write it."""
    return ".".join(map(str, path))


def _refuse(text: str, node: Node, path: Sequence[str | int]) -> NoReturn:
    what = f"{shown_path(path) or 'the whole'} is something else"
    raise UnreadableError(what, _line(text, node.start))


def _added(text: str, node: Node, key: str | int | None, value: Json) -> str:
    """Return a text in which a container has one child more, at its end."""
    if not node.children:
        return _filled(text, node, key, value)
    last = node.children[-1]
    indent = _own_indent(text, last.start)
    shown = _member(text, key, value, indent or "", inline=indent is None)
    end = last.node.end if last.comma is None else last.comma + 1
    behind = "" if last.comma is None else ","
    lead, at = " ", end
    if indent is not None:
        lead = newline_of(text) + indent
        at = _behind(_REST_OF_LINE, text, end)  # comments, which stay in their line
    text = text[:at] + lead + shown + behind + text[at:]
    return text if behind else text[:end] + "," + text[end:]


def _filled(text: str, node: Node, key: str | int | None, value: Json) -> str:
    """Return a text in which a container without children has one."""
    inner = text[node.start + 1 : node.end - 1]
    inline = _is_inline(text) and len(text.strip(_BLANK + _MARK)) > len("{}")
    outer = _indent(text, node.start)
    indent = "" if inline else outer + _unit(text)
    shown = _member(text, key, value, indent, inline=inline)
    if not inline:
        shown = newline_of(text) + indent + shown
        inner = inner.rstrip(_BLANK) and inner
        inner = inner or newline_of(text) + outer
    return text[: node.start + 1] + shown + inner + text[node.end - 1 :]


def _closed(text: str, start: int) -> str:
    """Return a text in which brackets that hold only blanks hold nothing."""
    end = start + 1
    while text[end] in _BLANK:
        end += 1
    return text[: start + 1] + text[end:] if text[end] in "]}" else text


def _member(
    text: str, key: str | int | None, value: Json, indent: str, *, inline: bool
) -> str:
    shown = _shown(text, value, indent, inline=inline)
    return shown if key is None else f"{json.dumps(key, ensure_ascii=False)}: {shown}"


def _shown(text: str, value: Json, indent: str, *, inline: bool) -> str:
    unit = None if inline else _unit(text)
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return (newline_of(text) + indent).join(lines)


def _is_inline(text: str) -> bool:
    """Say whether all of it stands on one line."""
    return "\n" not in text.strip(_BLANK + _MARK)


def _unit(text: str) -> str:
    """Return by what a level is indented: as the first one is, else two blanks."""
    children = read(text).children
    return (children and _own_indent(text, children[0].start)) or "  "


def _own_indent(text: str, at: int) -> str | None:
    """Return what stands before `at` in its line, if that is only blanks."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line if "\n" in text[:at] and not line.strip(" \t") else None


def _indent(text: str, at: int) -> str:
    """Return the blanks at the start of the line of `at`."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _behind(skipped: re.Pattern[str], text: str, at: int) -> int:
    """Return where something ends that begins at `at` and may be empty."""
    found = skipped.match(text, at)
    return at if found is None else found.end()


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


class _Reader:
    """Reads a text from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 1 if text.startswith(_MARK) else 0
        self._depth = 0
        self._kind = ""
        self._sign = ""
        self._start = 0
        self._next()

    def document(self) -> Node:
        node = self._value()
        if self._kind != "end":
            self._fail(f"{self._sign[:20]!r} behind the end")
        return node

    def _next(self) -> None:
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            self._start = _behind(_SKIPPED, self._text, self._at)
            self._fail(f"unexpected {self._text[self._start]!r}")
        self._kind = cast("str", found.lastgroup)
        self._start, self._at = found.span(self._kind)
        self._sign = found[self._kind]

    def _value(self) -> Node:
        start, sign = self._start, self._sign
        if sign == "{":
            return self._container(start, "}", self._member)
        if sign == "[":
            return self._container(start, "]", self._element)
        if self._kind == "string":
            value: Json = self._string()
        elif self._kind == "word":
            value = self._word()
        else:
            self._fail("a value is missing")
        end = self._at
        self._next()
        return Node(start, end, value, ())

    def _container(
        self,
        start: int,
        close: str,
        read_one: Callable[[], tuple[str | None, int, Node]],
    ) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            self._fail("nested too deep")
        children: list[Child] = []
        self._next()
        while self._sign != close:
            key, begin, node = read_one()
            comma = self._start if self._sign == "," else None
            children.append(Child(key, begin, node, comma))
            if comma is not None:
                self._next()
            elif self._sign != close:
                self._fail(f"',' or {close!r} is missing")
        end = self._at
        self._depth -= 1
        self._next()
        value: Json = (
            {str(child.key): child.node.value for child in children}
            if close == "}"
            else [child.node.value for child in children]
        )
        return Node(start, end, value, tuple(children))

    def _member(self) -> tuple[str | None, int, Node]:
        if self._kind != "string":
            self._fail("a key is missing")
        start, key = self._start, self._string()
        self._next()
        if self._sign != ":":
            self._fail("':' is missing")
        self._next()
        return key, start, self._value()

    def _element(self) -> tuple[str | None, int, Node]:
        return None, self._start, self._value()

    def _string(self) -> str:
        try:
            return cast("str", json.loads(self._sign))
        except ValueError:
            self._fail("not a text")

    def _word(self) -> Json:
        def refuse(word: str) -> NoReturn:
            raise ValueError(word)

        try:
            return cast("Json", json.loads(self._sign, parse_constant=refuse))
        except ValueError:
            self._fail(f"unexpected {self._sign[:20]!r}")

    def _fail(self, what: str) -> NoReturn:
        raise UnreadableError(what, _line(self._text, self._start))
