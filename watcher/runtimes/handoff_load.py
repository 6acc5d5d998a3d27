"""Gives a session the handoff of the one before, once, and archives it (C11.3).

What stands in the file is data: anybody who can write into the project can write it.
"""

import os
from collections.abc import Callable
from functools import partial
from typing import Final

from policies.handoff import (
    LOADS_ON,
    REARMS_ON,
    File,
    age_text,
    folders_to_search,
    is_handoff,
    to_load,
    value_in,
)
from policies.lang import Lang
from policies.text import clean
from watcher.paths import project_directory, state_directory
from watcher.runtimes import Advice, HookCall
from watcher.runtimes.dialects import reaches_model
from watcher.runtimes.handoff_once import claim_load, rearm

MOST_CHARACTERS: Final = 4000
"""Of the text that is handed on: a runtime takes 10,000 of all hooks of an event."""

_MOST_BYTES = 64 << 10
_MOST_FILES = 1000  # handoffs of one folder
_LONGEST_LINE = 500  # characters
_LONGEST_REF = 4096  # bytes


def advise(call: HookCall) -> Advice | None:
    """Load the handoff that is nearest to the current folder, if there is one."""
    source = call.payload.get("source")
    if source in REARMS_ON and call.session is not None:
        rearm(state_directory(call.env), call.session)
    if source not in LOADS_ON or call.payload.get("agent_id"):
        return None
    if not reaches_model(call.runtime, call.event):
        return None  # it would be archived, and nobody would have read it
    root = project_directory(call.cwd)
    inside = root if os.path.lexists(f"{root}/.git") else None
    for folder in folders_to_search(call.cwd, inside, call.project):
        name = to_load(_files(folder))
        if name is not None:
            return _load(call, f"{folder.rstrip('/')}/{name}")
    return None


def _files(folder: str) -> list[File]:
    """Return the plain files of a folder that may be handoffs."""
    found: list[File] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if is_handoff(entry.name) and entry.is_file(follow_symlinks=False):
                    about = entry.stat(follow_symlinks=False)
                    found.append(File(entry.name, about.st_mtime))
                if len(found) >= _MOST_FILES:
                    break
    except OSError:
        return []
    return found


def _load(call: HookCall, path: str) -> Advice | None:
    """Read a handoff, put it away, and say what stood in it.

    It is put away first: one that two sessions start with is one session's. Where it
    was not printed in the end, it is put back.
    """
    from policies.wording import phrase  # noqa: PLC0415 - start-up time
    from watcher.handoff import (  # noqa: PLC0415
        put_back,
        read_plain,
        set_aside,
    )

    content = read_plain(path, _MOST_BYTES)
    age_s = call.at.timestamp() - os.lstat(path).st_mtime
    try:
        archived = set_aside(path)
        kept = f"{os.path.dirname(path)}/{archived}"
        undo = partial(put_back, kept, path)
    except FileNotFoundError:
        return None  # another session has it
    except OSError:
        mark = claim_load(state_directory(call.env), path)
        if mark is None:
            return None
        archived, kept, undo = None, path, partial(os.unlink, mark)
    text = content.decode("utf-8", "replace").removeprefix("\ufeff")
    text = text.replace("\r\n", "\n")
    head = phrase(
        "handoff_loaded",
        path=path,
        age=age_text(age_s),
        then=value_in(text, "branch") or "?",
        now=_branch(path) or "?",
        archived=archived or phrase("handoff_not_archived"),
    ).render(call.lang)
    context = f"{head}\n{_quoted(text, kept, call.lang)}"
    return Advice(context=context, after=partial(_unless_taken, undo))


def _unless_taken(undo: Callable[[], None], taken: bool) -> None:
    if not taken:
        undo()


def _quoted(text: str, kept: str, lang: Lang) -> str:
    """Return the text as quoted lines, cut where it is too long."""
    from policies.wording import phrase  # noqa: PLC0415 - start-up time

    lines, room = [], MOST_CHARACTERS
    for line in text.split("\n"):
        quoted = f"> {clean(line, _LONGEST_LINE)}"
        room -= len(quoted) + 1
        if room < 0:
            lines.append(phrase("handoff_cut", path=kept).render(lang))
            break
        lines.append(quoted)
    return "\n".join(lines)


def _branch(path: str) -> str | None:
    """Return the branch that the file's repository is on, without asking git."""
    root = project_directory(os.path.dirname(path))
    git = f"{root}/.git"
    try:
        if os.path.isfile(git):  # a linked work tree: the file says where
            with open(git, encoding="utf-8", errors="surrogateescape") as file:
                kind, _, where = file.read(_LONGEST_REF).strip().partition(": ")
            if kind != "gitdir":
                return None
            git = os.path.join(root, where)
        with open(f"{git}/HEAD", encoding="utf-8", errors="surrogateescape") as file:
            ref = file.read(_LONGEST_REF).strip()
    except OSError:
        return None
    return ref.removeprefix("ref: refs/heads/") if ref.startswith("ref: ") else None
