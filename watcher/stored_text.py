"""Text as SQLite takes it; apart from the rows, whose modules cost hooks too much."""

import re

_SURROGATE = re.compile("[\udc80-\udcff]")
_ESCAPED = re.compile(r"\\udc([89a-f][0-9a-f])")


def to_text(value: str) -> str:
    """Return text that SQLite takes: bytes that were no UTF-8 become escapes."""
    return _SURROGATE.sub(lambda found: f"\\udc{ord(found[0]) & 0xFF:02x}", value)


def from_text(value: str) -> str:
    """Return what `to_text` was given."""
    return _ESCAPED.sub(lambda found: chr(0xDC00 + int(found[1], 16)), value)
