"""Commands around a command: `sh -c`, `ssh`, `timeout`, `sudo`."""

import re
from dataclasses import dataclass, replace
from typing import Final

from policies.loops.commands import pause_s
from policies.loops.names import names
from policies.loops.tree import (
    Node,
    Simple,
)
from policies.loops.words import Scope, loose

SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash", "ksh", "ash", "fish"})


@dataclass(eq=False, repr=False)
class Inner:
    """A script that a command gives to a shell.

    Attributes:
        host: where it runs, if not here.
        limit_s: of a `timeout` around it.
    """

    text: str
    host: str | None = None
    limit_s: int = 0


def inner_script(node: Simple, scope: Scope) -> Inner | None:
    """Return what `sh -c`, `eval`, `ssh HOST` or a shell with a heredoc runs."""
    words = [loose(word, scope) for word in node.words]
    name = words[0].rpartition("/")[2]
    if name in SHELLS or name in {"su", "pwsh", "powershell", "cmd"}:
        return _given_to_shell(node, words)
    if name == "eval":
        return Inner(" ".join(words[1:]))
    if name == "ssh":
        return _given_to_host(node, words)
    return None


def _given_to_shell(node: Simple, words: list[str]) -> Inner | None:
    for place, word in enumerate(words[1:], 1):
        if re.fullmatch(r"-[a-z]*c|--command|-Command", word):
            return Inner(words[place + 1]) if place + 1 < len(words) else None
        if not word.startswith("-") and words[0] != "su":
            return None
    body = _heredoc(node)
    return Inner(body) if body is not None else None


def _heredoc(node: Node) -> str | None:
    for redirection in node.redirections:
        if redirection.body is not None:
            return redirection.body
        if redirection.operator == "<<<":
            return loose(redirection.target, {})
    return None


_SSH_VALUES: Final = names(
    """
    -b -c -D -E -e -F -i -I -J -L -m -o -O -Q -R -S -w -W
    """
)


def _given_to_host(node: Simple, words: list[str]) -> Inner | None:
    port = user = ""
    place = 1
    while place < len(words) and words[place].startswith("-"):
        option = words[place]
        after = words[place + 1] if place + 1 < len(words) else ""
        if option in {"-p", "-l"}:
            port, user = (after, user) if option == "-p" else (port, after)
        place += 2 if option in _SSH_VALUES | {"-p", "-l"} else 1
    if place >= len(words):
        return None
    host = words[place]
    host = f"{user}@{host}" if user else host
    host = f"{host}:{port}" if port else host
    text = " ".join(words[place + 1 :])
    body = _heredoc(node)
    if body is not None and (not text or text.split()[0] in SHELLS):
        text = body
    return Inner("true" if text in {"", "exit", "exit 0"} else text, host)


_WRAPPERS: Final = names(
    """
    sudo doas env command builtin nice ionice time timeout gtimeout exec stdbuf
    nohup setsid caffeinate chronic unbuffer systemd-inhibit gtime
    """
)
_WRAPPER_VALUES: Final = {
    "sudo": frozenset({"-u", "-g", "-h", "-p"}),
    "nice": frozenset({"-n"}),
    "ionice": frozenset({"-c", "-n"}),
    "timeout": frozenset({"-s", "-k", "--signal", "--kill-after"}),
    "gtimeout": frozenset({"-s", "-k"}),
    "stdbuf": frozenset({"-o", "-e", "-i"}),
    "env": frozenset({"-u", "-C"}),
    "exec": frozenset({"-a"}),
}


def wrapper_of(node: Simple, scope: Scope) -> str:
    """Return the name of the wrapper that a command stands in, or nothing."""
    name = loose(node.words[0], scope).rpartition("/")[2] if node.words else ""
    return name if name in _WRAPPERS else ""


def unwrap(node: Simple, scope: Scope) -> Simple | None:
    """Return what a wrapper such as `sudo` or `timeout 5` runs."""
    name = wrapper_of(node, scope)
    if not name:
        return None
    values = _WRAPPER_VALUES.get(name, frozenset())
    place = 1
    while place < len(node.words):
        word = node.words[place].raw
        if word in values:
            place += 2
        elif word.startswith("-") or (name == "env" and "=" in word):
            place += 1
        else:
            break
    place += name in {"timeout", "gtimeout"}
    words = node.words[place:]
    if not words:
        return None
    return replace(node, start=words[0].start, words=words, assignments=())


def wrapped_limit_s(node: Simple, scope: Scope) -> int:
    """Return the seconds that a `timeout` gives to what it runs."""
    if wrapper_of(node, scope) not in {"timeout", "gtimeout"}:
        return 0
    inside = unwrap(node, scope)
    place = len(node.words) - len(inside.words) - 1 if inside else 0
    slept = pause_s(["sleep", loose(node.words[place], scope)])
    return round(slept or 0)
