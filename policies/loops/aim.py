"""A target in parts, and the words that lead to it."""

import re
from typing import Final

from policies.loops.record import record
from policies.loops.tree import (
    Simple,
    Word,
)

_LOCK_NAME: Final = re.compile(
    r"(?i)(^|[._${-])(lock|lck)s?($|[._-]|file)|lockfile|\.pid\.lock"
)


GREPS: Final = frozenset({"grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack"})


NAME_LOOKS: Final = frozenset({"pgrep", "pidof", "pkill", "killall"})


_YEAR_S: Final = 365 * 86400  # the longest duration there is


class NotAWaitError(Exception):
    """This does something, or its meaning cannot be told."""


@record
class Aim:
    """A target in parts, each ready for a shell.

    Attributes:
        words: between the kind and the host.
        passes: and `fails`: the markers of a log.
        whole: whether what the log holds already counts.
        known: whether nothing in it is left for the shell to fill in.
    """

    kind: str
    words: tuple[str, ...]
    host: str | None = None
    passes: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()
    whole: bool = False


def span(seconds: float) -> str:
    """Return a duration as options take it: `5m`, `1m30s` (C1.3)."""
    left = min(max(1, round(seconds)), _YEAR_S)
    parts: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def says_lock(path: str) -> bool:
    """Say whether a file's name or the folder it is in says that it is a lock."""
    parts = [part for part in path.split("/") if part]
    return any(_LOCK_NAME.search(part) for part in parts[-2:])


def network_of(node: Simple) -> tuple[str, str] | None:
    """Return host and port of a redirection to /dev/tcp."""
    for redirection in node.redirections:
        match = re.search(r"/dev/tcp/([^/\s\"']+)/([^/\s\"']+)", redirection.target.raw)
        if match:
            return match[1], match[2]
    return None


def split_options(
    words: tuple[Word, ...] | list[Word], values: frozenset[str]
) -> tuple[list[Word], list[Word]]:
    """Return what a command is called on, and its options with their values."""
    plain: list[Word] = []
    options: list[Word] = []
    place = 0
    while place < len(words):
        word = words[place]
        text = word.fixed if word.fixed is not None else word.raw
        if text == "--":
            plain += words[place + 1 :]
            break
        takes = text in values or (
            re.fullmatch(r"-[a-zA-Z]*[eomw]", text) is not None
            and (f"-{text[-1]}" in values)
        )
        if text.startswith("-") and text != "-":
            options += words[place : place + 1 + takes]
            place += 1 + takes
        else:
            plain.append(word)
            place += 1
    return plain, options
