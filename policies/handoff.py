"""When a session is handed over, under which names, and what the next one loads.

Sources of the rules: contract C11.2 and C11.3. Nothing here looks at a file.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

DEFAULT_NAME: Final = "NEXT-SESSION-PROMPT.local.md"
FRESH_S: Final = 60.0
"""On a clean tree a second handoff within this time does nothing."""

MOST_PARENTS: Final = 3
"""Folders above the current one in which a handoff is looked for."""

LOADS_ON: Final = frozenset({"resume", "compact"})
"""Sources of a session start at which a handoff is loaded."""

REARMS_ON: Final = frozenset({"compact", "clear"})
"""Sources behind which the context is empty again, so that it may fill once more."""

NOTES: Final = ("REMEMBER.md", "TODO.md")
"""Notes of the project that are committed along with a handoff."""

_MARK: Final = "koder_monitor_handoff: 1"
_TOPIC = re.compile(r"[^\W_][\w-]{0,47}")
_ARCHIVED = ".archived."
_BEGINNING, _END = "NEXT-SESSION-", ".local.md"


class Kind(StrEnum):
    """What kind of work is handed over."""

    MULTI_SESSION = "multi-session"
    COMPONENT_WORK = "component-work"
    SINGLE_TASK = "single-task"


class File(NamedTuple):
    """A file that may be a handoff."""

    name: str
    mtime_s: float


def kind_of(plan: str | None, component: str | None) -> tuple[Kind, str | None]:
    """Return the kind of work and the file that tells it.

    Args:
        plan: a file that shows an active plan of the project, if there is one.
        component: a manifest of the part of the project that is worked in, if any.
    """
    if plan is not None:
        return Kind.MULTI_SESSION, plan
    if component is not None:
        return Kind.COMPONENT_WORK, component
    return Kind.SINGLE_TASK, None


def is_topic(text: str) -> bool:
    """Say whether a topic can stand in a file's name."""
    return _TOPIC.fullmatch(text) is not None


def file_name(topic: str | None) -> str:
    """Return the name of the handoff of a topic."""
    return f"{_BEGINNING}{topic}{_END}" if topic else DEFAULT_NAME


def is_handoff(name: str) -> bool:
    """Say whether a file of this name is a handoff, archived or not."""
    return name.startswith(_BEGINNING) and name.endswith(_END)


def is_archived(name: str) -> bool:
    """Say whether a handoff was loaded already."""
    return _ARCHIVED in name


def archived_name(name: str, times: int) -> str:
    """Return a name for a handoff that was loaded; another one each time."""
    count = f".{times}" if times > 1 else ""
    return f"{name.removesuffix(_END)}{count}{_ARCHIVED.rstrip('.')}{_END}"


def to_load(files: Iterable[File]) -> str | None:
    """Return which handoff of a folder is loaded: the default one, else the newest."""
    open_ones = [f for f in files if is_handoff(f.name) and not is_archived(f.name)]
    if not open_ones:
        return None
    return max(
        open_ones, key=lambda f: (f.name == DEFAULT_NAME, f.mtime_s, f.name)
    ).name


def folders_to_search(cwd: str, root: str | None, project: str) -> list[str]:
    """Return where a handoff may lie: here and above, never outside the repository.

    Args:
        cwd: the current folder, absolute.
        root: the root of its repository; None without one.
        project: where handoffs of the session are written.
    """
    found = [cwd]
    while found[-1] not in {root, "/"} and len(found) <= MOST_PARENTS:
        found.append(found[-1].rpartition("/")[0] or "/")
    return found if project in found else [*found, project]


def front_matter(**values: str | None) -> list[str]:
    """Return the lines that begin a handoff, by which we know our own."""
    lines = [f"{name}: {text}" for name, text in values.items() if text]
    return ["---", _MARK, *lines, "---"]


def is_ours(text: str) -> bool:
    """Say whether a handoff was written by us, and may be written over."""
    return text.splitlines()[:2] == ["---", _MARK]


def value_in(text: str, name: str) -> str | None:
    """Return a value of the front matter, if there is one."""
    if not is_ours(text):
        return None
    for line in text.splitlines()[2:]:
        if line == "---":
            return None
        if line.startswith(f"{name}: "):
            return line.partition(": ")[2]
    return None


def is_fresh(age_s: float, *, clean: bool) -> bool:
    """Say whether there is nothing to do: just written, and nothing is changed."""
    return clean and 0 <= age_s < FRESH_S


def age_text(seconds: float) -> str:
    """Return an age in its largest whole unit."""
    whole = max(0, int(seconds))
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if whole >= size:
            return f"{whole // size}{unit}"
    return f"{whole}s"
