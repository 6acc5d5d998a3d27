"""Foreign text made fit for a line, a ping, a page or a terminal (C2.4).

Sent to hosts, too: Python 3.9 and the standard library only.
"""

from __future__ import annotations

import re

CUT_MARK = "…(cortado)"
"""Stands at the end of a text that was cut, in every language."""

# Joiners shape emoji and several scripts and move nothing on a terminal.
_HARMLESS_FORMATS = frozenset("\u200c\u200d")
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_RAW_BYTES = "[\udc80-\udcff]+"  # compiled when needed: start-up time
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escape(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was no UTF-8: PEP 383
        return f"\\x{code - 0xDC00:02x}"
    if code <= 0xFF:
        return _NAMED.get(char, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def clean(text: str, limit: int | None = None) -> str:
    r"""Return `text` with whatever could steer a reader's terminal shown escaped.

    Control characters (C0, DEL, C1), bidirectional overrides, line and paragraph
    separators and bytes that were no UTF-8 come out as `\\xNN` or `\\uNNNN`; the
    result always encodes to UTF-8.

    Args:
        text: anything, from anywhere.
        limit: at most so many characters, `CUT_MARK` included; at least its length.
    """
    shown = text if limit is None else text[: limit + 1]
    if not shown.isprintable():  # nor is any of the unsafe categories
        shown = _escaped(_decoded(shown))
    return shown if limit is None else cut(shown, limit)


def _escaped(text: str) -> str:
    import unicodedata  # noqa: PLC0415 - start-up time: a library for rare texts

    return "".join(
        _escape(char)
        if unicodedata.category(char) in _UNSAFE_CATEGORIES
        and char not in _HARMLESS_FORMATS
        else char
        for char in text
    )


def _decoded(text: str) -> str:
    """Read bytes that a locale without UTF-8 could not, where they are UTF-8."""
    return re.sub(
        _RAW_BYTES,
        lambda run: (
            run[0].encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
        ),
        text,
    )


def cut(text: str, limit: int) -> str:
    """Return at most `limit` characters, ending in `CUT_MARK` when it was cut."""
    return text if len(text) <= limit else text[: limit - len(CUT_MARK)] + CUT_MARK
