"""Patterns of grep and pgrep as koder-monitor takes them: literal text or Python's."""

import re
from collections.abc import Sequence
from typing import Final

_CLASSES: Final = {
    "[[:space:]]": r"\s",
    "[[:digit:]]": r"\d",
    "[[:alnum:]]": "[A-Za-z0-9]",
    "[[:alpha:]]": "[A-Za-z]",
    "[[:upper:]]": "[A-Z]",
    "[[:lower:]]": "[a-z]",
    "[[:blank:]]": r"[ \t]",
}
_SWAPPED: Final = frozenset("(){}|+?")
_SPECIAL: Final = frozenset("()[]{}|*+?^$\\")
_BAD: Final = re.compile(
    r"(?i)fail|fatal|err(or|o)\b|error|abort|panic|exception|traceback|kill|crash|denied"
    r"|cannot|time.?out|segfault|falh|refus|invalid|broken|unhealthy|bad\b|not ok"
)


def from_basic(pattern: str) -> str:
    """Return a basic regular expression (grep) as an extended one."""
    parts: list[str] = []
    escaped = False
    for char in pattern:
        if escaped:
            parts.append(char if char in _SWAPPED else "\\" + char)
            escaped = False
        elif char == "\\":
            escaped = True
        else:
            parts.append("\\" + char if char in _SWAPPED else char)
    return "".join(parts) + "\\" * escaped


def to_python(pattern: str) -> str:
    """Return an extended regular expression with the classes that Python lacks."""
    for name, meaning in _CLASSES.items():
        pattern = pattern.replace(name, meaning)
    return pattern


def literal(pattern: str) -> str | None:
    """Return the text that a pattern of `pgrep` means, or None for an expression.

    `[w]ebpack`, which keeps a look from finding itself, is plain text; so is a dot.
    """
    text = re.sub(r"\[(\w)\]", r"\1", pattern)
    if _expression(text):
        return None
    return re.sub(r"\\([^\w\s])", r"\1", text)


def _expression(text: str) -> bool:
    return any(char in _SPECIAL for char in re.sub(r"\\[^\w\s]", "", text))


def unselfed(pattern: str) -> str:
    """Return a pattern that does not find the command line that carries it."""
    if "[" in pattern or re.match(r"[\w/~@]", pattern) is None:
        return pattern
    return f"[{pattern[0]}]{pattern[1:]}"


def alternatives(pattern: str) -> list[str]:
    """Split a pattern at its outermost bars: `OK|FATAL`, `(OK|FATAL)`."""
    whole = re.fullmatch(r"\(([^()]*)\)", pattern)
    text = whole[1] if whole else pattern
    parts, depth, start, at = [], 0, 0, 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "|" and not depth:
            parts.append(text[start:at])
            start = at + 1
        at += 1
    return [*parts, text[start:]]


def sorted_out(pattern: str, *, bad: bool) -> tuple[list[str], list[str]]:
    """Return the alternatives of a marker that mean success, and those of failure."""
    parts = alternatives(pattern)
    if bad:
        return [], [pattern]
    fails = [part for part in parts if _BAD.search(part)]
    passes = [part for part in parts if part not in fails]
    if not fails or not passes:
        return ([pattern], []) if not fails else ([], [pattern])
    return passes, fails


def grep_pattern(name: str, options: Sequence[str], pattern: str) -> str:
    """Return the pattern of a grep, by its name and options, in Python's words."""
    letters = "".join(word[1:] for word in options if re.fullmatch(r"-[a-zA-Z]+", word))
    if name == "fgrep" or "F" in letters or "--fixed-strings" in options:
        pattern = re.escape(pattern).replace("\\ ", " ").replace("\\-", "-")
    elif name == "grep" and not set("EP") & {*letters}:
        pattern = from_basic(pattern)
    pattern = to_python(pattern)
    if "w" in letters:
        pattern = rf"\b(?:{pattern})\b" if "|" in pattern else rf"\b{pattern}\b"
    if "x" in letters:
        pattern = f"^(?:{pattern})$" if "|" in pattern else f"^{pattern}$"
    return f"(?i){pattern}" if "i" in letters or "--ignore-case" in options else pattern
