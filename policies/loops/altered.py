"""Commands with a word that changes what is asked, and that no target can say."""

import re
from collections.abc import Callable, Sequence
from typing import Final

_VALUES: Final = re.compile(r"-[bcDEeFiIJLlmoOpQRSwW]")
_ROUTE: Final = re.compile(r"-[46AaCfGgKkMNnqsTtVvXxYy]*[JiF]")
_SET: Final = re.compile(r"(?i)(-o)? *(proxy|identity)\w+\b.*")
_OTHER_USER: Final = re.compile(r"-[a-zA-Z]*[ug]\w*|--(user|group)\b.*")
_NARROWED: Final = re.compile(
    r"-[aflnovwx]*[uUgGtsr].*|--(euid|uid|group|pgroup|terminal|session|runstates)\b.*"
)


def is_altered(words: Sequence[str]) -> bool:
    """Say whether a command asks for more than the target that would be named."""
    check = _CHECKS.get(words[0].rpartition("/")[2])
    return check is not None and check(words[1:])


def _routed(words: Sequence[str]) -> bool:
    """Say whether ssh goes another way than to the host alone."""
    place = 0
    while place < len(words) and words[place].startswith("-"):
        option = words[place]
        after = words[place + 1] if place + 1 < len(words) else ""
        if _ROUTE.match(option):
            return True
        if _SET.match(f"{option} {after}" if option == "-o" else option):
            return True
        place += 2 if _VALUES.fullmatch(option) else 1
    return False


def _as_another(words: Sequence[str]) -> bool:
    options = [word for word in words if word.startswith("-")]
    return any(_OTHER_USER.fullmatch(option) for option in options)


def _narrowed(words: Sequence[str]) -> bool:
    return any(_NARROWED.fullmatch(word) for word in words)


def _of_jobs(words: Sequence[str]) -> bool:
    return any(word.startswith("%") for word in words)


def _of_datagrams(words: Sequence[str]) -> bool:
    return any(re.fullmatch(r"-[a-zA-Z0-9]*u[a-zA-Z]*|--udp", word) for word in words)


def _moved(words: Sequence[str]) -> bool:
    return any(re.fullmatch(r"-C.*|--chdir\b.*", w) for w in words)


def _typed(words: Sequence[str]) -> bool:
    return bool({"send-keys", "send", "stuff"} & {*words})


def _always(_words: Sequence[str]) -> bool:
    return True


_CHECKS: Final[dict[str, Callable[[Sequence[str]], bool]]] = {
    "ssh": _routed,
    **dict.fromkeys(("sudo", "doas"), _as_another),
    **dict.fromkeys(("pgrep", "pkill", "killall"), _narrowed),
    "kill": _of_jobs,
    **dict.fromkeys(("nc", "ncat", "netcat"), _of_datagrams),
    "env": _moved,
    **dict.fromkeys(("tmux", "screen"), _typed),
    **dict.fromkeys(("zgrep", "zcat"), _always),
}
