"""Lines of a log and the markers in them (C3.4).

Sent to hosts, too: Python 3.9 and the standard library only. It knows no file: bytes
come in as they were read, cut anywhere, and it says how many of them are done with.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LIMIT = 65536
"""Bytes of one line that are looked at; the rest of it is skipped."""

PRINTED = 256
"""Bytes before an offset that tell whether the file is still the one that was read."""

_SHOWN = 200  # characters of a line that are kept to be shown
_BEFORE_SHOWN = 40  # of them before the marker, where the line is longer
_ELLIPSIS = "…"
_NULS = re.compile(rb"\0*")

# The parts of an expression that mean in many lines what they mean in one of them, or
# do so when they are written otherwise: none may match a line end, or ask for one.
_PARTS = re.compile(
    r"""
      (?P<start>\A\(\?i\))
    | (?P<same>
        [^\\\[({\x00-\x1f]
      | \{\d*(?:,\d*)?\}
      | \((?:\?(?: [:=!>] | i: | <[=!] | P<\w+> | P=\w+(?=\)) ))?(?!\?)
      | \\[dwSb1-9.^$*+?{}\[\]\\|()/:="'@#%&,;!~t\ -]
      | \[(?!\^) (?: [^\\\[\]\x00-\x1f] | \\[dwSt.\[\]\\^$*+?|(){}/"'-] )+ \]
      )
    | \[\^ (?P<no> (?: [^\\\[\]\x00-\x1f] | \\[dwsDWSt.\[\]\\^$*+?|(){}/"'-] )+ ) \]
    | \\(?P<other>[sDWAZ])
    """,
    re.VERBOSE,
)
_OTHERWISE = {"s": r"[^\S\n]", "D": r"[^\d\n]", "W": r"[^\w\n]", "A": "^", "Z": "$"}


class Marker(NamedTuple):
    """One expression and what it means when a line has it.

    Attributes:
        result: PASS or FAIL.
        find: returns where a text has it, by its first match that ends behind a
            position; may raise TimeoutError.
        seek: says of many lines at once whether one may have it; None where only each
            line by itself tells.
    """

    result: str
    find: Callable[[str, int], tuple[int, int] | None]
    seek: Callable[[str], bool] | None = None


class Found(NamedTuple):
    """The marker that decides.

    Attributes:
        offset: where its line begins in the file.
        line: the line, fit to be stored, cut around the marker where it is long.
    """

    result: str
    offset: int
    line: str


class Scanned(NamedTuple):
    """What came of some bytes.

    Attributes:
        done: how many of them are done with; the rest is an unfinished line.
        skips: the line that they end in was longer than the limit: skip its rest.
        slow: an expression took too long, so that not all was looked at.
    """

    done: int
    found: Found | None = None
    skips: bool = False
    slow: bool = False


def for_many_lines(regex: str) -> str | None:
    r"""Return an expression that finds something in many lines if this does in one.

    And only then: it matches no line end where this would (`\s`, `[^x]`), and is meant
    for MULTILINE. None where that cannot be told.
    """
    parts, at = [], 0
    while at < len(regex):
        part = _PARTS.match(regex, at)
        if part is None:
            return None
        if part["no"] is not None:
            parts.append(rf"[^\n{part['no']}]")
        else:
            parts.append(_OTHERWISE.get(part["other"] or "", part[0]))
        at = part.end()
    return "".join(parts)


def fingerprint(before: bytes) -> str:
    """Return what tells whether the bytes before an offset are still the same."""
    return hashlib.sha256(before[-PRINTED:]).hexdigest()[:32] if before else ""


def line_start(tail: bytes, size: int) -> tuple[int, bool]:
    """Return where the last line of a file begins, and whether it is too long already.

    Args:
        tail: the last bytes of the file, more than `LIMIT` of them where it has them.
        size: of the file.
    """
    begin = tail.rfind(b"\n") + 1
    begin = _text_begin(tail, begin)
    unfinished = len(tail) - begin
    if unfinished > LIMIT:
        return size, True
    return size - unfinished, False


def scan(
    data: bytes,
    offset: int,
    markers: Sequence[Marker],
    *,
    skips: bool = False,
    fresh: int = 0,
    final: bool = False,
) -> Scanned:
    r"""Look for the first marker in whole lines.

    A line ends at `\n` or `\r\n`. NULs at its beginning, which a truncated file that
    is still written to has in plenty, are no part of it. Of a line longer than `LIMIT`
    the beginning is looked at, as soon as there is that much.

    Args:
        data: read from `offset` on, where a line begins.
        offset: their place in the file.
        markers: what to look for; at the same place an earlier one counts.
        skips: they begin inside a line that was too long: skip its rest.
        fresh: what ends before this place in the file was there before the watch.
        final: nothing will follow: the unfinished last line counts, too.
    """
    lines = _Lines(data, offset, markers, fresh)
    if skips and not lines.leave_line():
        return Scanned(len(data), skips=True)
    try:
        while lines.whole() or lines.unfinished(final=final):
            if lines.found is not None:
                return Scanned(lines.at, lines.found)
    except TimeoutError:
        return Scanned(lines.at, slow=True)
    return Scanned(lines.at, skips=lines.skips and not final)


class _Lines:
    """Goes through the lines of some bytes; `at` is the first that is not done with."""

    def __init__(
        self, data: bytes, offset: int, markers: Sequence[Marker], fresh: int
    ) -> None:
        self.data = data
        self.at = 0
        self.found: Found | None = None
        self.skips = False
        self._offset = offset
        self._markers = markers
        self._fresh = fresh

    def leave_line(self) -> bool:
        """Go on behind the end of the line that we are in; False: there is none."""
        end = self.data.find(b"\n", self.at) + 1
        self.at = end or len(self.data)
        return end > 0

    def whole(self) -> bool:
        """Look at lines up to the next marker, or `LIMIT`; False: there are none."""
        self.at = _text_begin(self.data, self.at)
        end = self.data.rfind(b"\n", self.at, self.at + LIMIT + 1) + 1
        if not end:
            return False
        old = self._offset + self.at < self._fresh
        if not old and not _may_have_one(self.data[self.at : end], self._markers):
            self.at = end
        while self.at < end and self.found is None:
            line_end = self.data.index(b"\n", self.at)
            begin = _text_begin(self.data, self.at)
            self._look(begin, line_end)
            self.at = line_end + 1
        return True

    def unfinished(self, *, final: bool) -> bool:
        """Look at a line that is too long, or that will never be whole, if it is so."""
        left = len(self.data) - self.at
        if left <= LIMIT and not (final and left):
            return False
        self._look(self.at, self.at + LIMIT + 1)
        self.skips = not self.leave_line()
        return True

    def _look(self, begin: int, end: int) -> None:
        line = self.data[begin:end]
        self.found = _decide(line, self._offset + begin, self._markers, self._fresh)


def matching_lines(
    data: bytes, offset: int, markers: Sequence[Marker], most: int
) -> list[Found]:
    """Return the last lines that have a marker, for somebody who tries one out."""
    found = []
    for line in data.split(b"\n"):
        begin = _text_begin(line, 0)
        text = line[begin:]
        seen = _decide(text, offset + begin, markers, 0) if text else None
        if seen is not None:
            found.append(seen)
        offset += len(line) + 1
    return found[-most:]


def _may_have_one(piece: bytes, markers: Sequence[Marker]) -> bool:
    """Say whether some line may have a marker; True is always a right answer."""
    if b"\0" in piece:
        return True
    text = _decoded(piece.replace(b"\r\n", b"\n"))
    try:
        return any(marker.seek is None or marker.seek(text) for marker in markers)
    except TimeoutError:
        return True  # each line by itself may be quick


def _decide(
    line: bytes, offset: int, markers: Sequence[Marker], fresh: int
) -> Found | None:
    """Return the marker of a line that begins first; at one place the earlier one."""
    text = _text(line)
    behind = len(_decoded(line[: fresh - offset])) if offset < fresh else -1
    spans = ((marker, marker.find(text, behind)) for marker in markers)
    found = [(span[0], marker.result) for marker, span in spans if span is not None]
    if not found:
        return None
    start, result = min(found, key=lambda one: one[0])
    return Found(result, offset, _shown(text, start))


def _text(line: bytes) -> str:
    if len(line) > LIMIT:  # something must stand for the rest, or `$` would match here
        return _decoded(line[:LIMIT]) + _ELLIPSIS
    return _decoded(line[:-1] if line.endswith(b"\r") else line)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")  # one character for an odd byte


def _shown(text: str, start: int) -> str:
    """Return a line with its odd bytes escaped, cut around a place where it is long."""
    if len(text) > _SHOWN:
        begin = max(0, start - _BEFORE_SHOWN) if start > _SHOWN // 2 else 0
        end = begin + _SHOWN
        before = _ELLIPSIS if begin else ""
        after = _ELLIPSIS if end < len(text) else ""
        text = before + text[begin:end] + after
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _text_begin(data: bytes, at: int) -> int:
    """Return the place behind the NULs that a line begins with."""
    nuls = _NULS.match(data, at)
    return nuls.end() if nuls is not None else at
