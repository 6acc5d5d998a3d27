"""Edits of other programs' files as text: what is not ours stays byte for byte."""


class UnreadableError(ValueError):
    """A text is not what it should be; nothing can be changed in it.

    Attributes:
        line: where, counted from 1.
    """

    def __init__(self, what: str, line: int) -> None:
        super().__init__(f"{what} (line {line})")
        self.what = what
        self.line = line


def newline_of(text: str) -> str:
    """Return how a text ends its lines."""
    return "\r\n" if "\r\n" in text else "\n"


def cut(text: str, *pieces: tuple[int, int]) -> str:
    """Return a text without some pieces of it, which do not overlap."""
    for start, end in sorted(pieces, reverse=True):
        text = text[:start] + text[end:]
    return text
