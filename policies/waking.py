"""What wakes a session that shows no sign of life (C9.4)."""

import re
from collections.abc import Mapping, Sequence

NAMES = ("session", "watch_id", "line", "label", "resume", "project")
"""What a command of `[wake]` may name in braces."""

_NAMED = re.compile(r"\{([^{}]*)\}")


def unknown_names(command: Sequence[str]) -> list[str]:
    """Return the names in braces that mean nothing."""
    found = (name for word in command for name in _NAMED.findall(word))
    return [name for name in found if name not in NAMES]


def filled(command: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Return a command's words with the names in braces replaced, each once.

    A word stays one word whatever a value holds, and a value is not looked at again.
    """
    return [_NAMED.sub(lambda found: values[found[1]], word) for word in command]
