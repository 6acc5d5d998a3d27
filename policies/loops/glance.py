"""A first cheap look at a command: is there anything in it that could be a wait?"""

from typing import Final

LONGEST: Final = 65536  # characters of a command that is still read

_ALWAYS: Final = (
    "while",
    "until",
    "repeat",
    "inotifywait",
    "fswatch",
    "--pid",
    "setInterval",
)
_TOGETHER: Final = (
    ("for", "sleep"),
    ("for", "Start-Sleep"),
    ("for", "read -t"),
    ("for", "ping"),
    ("loop", "sleep"),
    ("watch", "-"),
    ("tail", "grep"),
    ("tail", "sed"),
    ("tail", "awk"),
    ("logs", "grep"),
    ("journalctl", "grep"),
)


def may_wait(command: str) -> bool:
    """Say whether a command is worth parsing."""
    if len(command) > LONGEST:
        return False
    return any(word in command for word in _ALWAYS) or any(
        one in command and two in command for one, two in _TOGETHER
    )
