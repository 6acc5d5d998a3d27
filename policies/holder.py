"""Who holds a lock, read from what its file says (C3.8)."""

import json
import re
from typing import NamedTuple

from policies.names import MAX_PID

_FIELD = re.compile(r"([A-Za-z_-]+)\s*:\s*(.*)")
_DIGITS = re.compile(r"[0-9]{1,7}")
CONTENT_LIMIT = 65536
"""Bytes of a lock file that are read; a holder entry stands at its start."""

_LONGEST_VALUE = 4096  # characters


class Holder(NamedTuple):
    """Whoever a lock file names; any part may be missing.

    No dataclass: the lock guard reads lock files before every edit.
    """

    session: str | None = None
    host: str | None = None
    pid: int | None = None
    since: str | None = None
    paths: tuple[str, ...] = ()
    monitor: str | None = None
    """The waiter for whom koder-monitor took it (C5.5)."""

    def __bool__(self) -> bool:
        """Say whether anything at all is known."""
        return self != Holder()


def parse_holder(content: bytes) -> Holder:
    """Return the holder that a lock file names; an empty one where it names none.

    Front matter, one JSON object, or the two lines `PID` and `host` of older tools.
    Nothing in the file is trusted: whatever is odd counts as not said.
    """
    text = content[:CONTENT_LIMIT].decode("utf-8", "replace").lstrip("\ufeff")
    stripped = text.lstrip()
    if stripped.startswith("{"):
        return _from_json(stripped)
    if stripped.startswith("---"):
        return _from_front_matter(stripped)
    return _from_two_lines(text)


def same_host(named: str | None, here: str) -> bool:
    """Say whether a lock names this very host; one that names none does not."""
    return named is not None and named.casefold() == here.casefold()


def _from_two_lines(text: str) -> Holder:
    """Read by splitting: a pattern would go back and forth in a long blank file."""
    lines = [words for line in text.splitlines() if (words := line.split())]
    if [len(words) for words in lines] != [1, 1]:
        return Holder()
    pid = _pid(lines[0][0])
    return Holder() if pid is None else Holder(pid=pid, host=lines[1][0])


def _from_json(text: str) -> Holder:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return Holder()
    return _from_fields(data) if isinstance(data, dict) else Holder()


def _from_front_matter(text: str) -> Holder:
    """Read the few fields by hand: YAML's own parser is no match for such files."""
    fields: dict[str, object] = {}
    name = ""
    for line in text.splitlines()[1:]:
        item = line.strip()
        if item == "---":
            return _from_fields(fields)
        match = _FIELD.fullmatch(item)
        listed = fields.get(name)
        if item.startswith("- ") and isinstance(listed, list):
            listed.append(_unquote(_uncommented(item[2:])))
        elif match:
            name, value = match[1].lower(), _uncommented(match[2])
            if value.startswith("[") and value.endswith("]"):
                fields[name] = [_unquote(part) for part in value[1:-1].split(",")]
            else:
                fields[name] = _unquote(value) if value else []
    return Holder()


def _uncommented(value: str) -> str:
    """Return a value without the comment behind it; what is quoted keeps its `#`."""
    value = value.strip()
    before_quote = "[," if value.startswith("[") else ""
    quote, last = "", ""
    for at, char in enumerate(value):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'" and last in before_quote:
            quote = char
        elif char == "#" and value[at - 1 : at].strip() == "":
            return value[:at].rstrip()
        last = last if char.isspace() else char
    return value


def _unquote(value: str) -> str:
    value = value.strip()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _from_fields(fields: dict[str, object]) -> Holder:
    paths = fields.get("paths")
    if isinstance(paths, str):
        paths = [paths]
    return Holder(
        session=_text(fields.get("session")),
        host=_text(fields.get("host")),
        pid=_pid(fields.get("pid")),
        since=_text(fields.get("since")),
        paths=tuple(path for path in paths if isinstance(path, str) and path)
        if isinstance(paths, list)
        else (),
        monitor=_text(fields.get("monitor")),
    )


def _text(value: object) -> str | None:
    return value[:_LONGEST_VALUE] if isinstance(value, str) and value else None


def _pid(value: object) -> int | None:
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_PID:
        return value
    return None
