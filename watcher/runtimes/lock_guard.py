"""Tells of somebody else's lock before an edit in what it covers (C11.3).

It advises and never blocks; what it told is remembered for the stop check.
"""

import os

from policies.guards import covered, edited_paths, is_somebody_elses
from policies.names import absolute, is_possible_path
from watcher.runtimes import Advice, HookCall
from watcher.runtimes.calls import sessions_of
from watcher.runtimes.locks import Lock, Locks, command, shown_holder
from watcher.runtimes.tried import Tried, mark_of, remember
from watcher.runtimes.words import said

_MOST_TOLD = 3  # locks in one event


def advise(call: HookCall) -> Advice | None:
    """Return which locks an edit meets, and the command that waits for each."""
    paths = [
        absolute(path, call.cwd)
        for path in edited_paths(call.tool, call.tool_input)
        if is_possible_path(path)
    ]
    if not paths:
        return None
    locks = Locks(call)
    met = _met(call, locks, paths)
    texts = [
        _told(call, lock, locks.word(lock.path), path)
        for lock, path in met[:_MOST_TOLD]
    ]
    if not locks.all_seen:
        texts.append(said(call, "hook_locks_left"))
    if met:
        items = [Tried(lock.path, mark_of(lock.holder), path) for lock, path in met]
        remember(call, items[:_MOST_TOLD])
    return Advice(context="\n\n".join(texts)) if texts else None


def _met(call: HookCall, locks: Locks, paths: list[str]) -> list[tuple[Lock, str]]:
    """Return the locks of others that cover an edited file, with the first of these."""
    sessions = sessions_of(call)
    names = {path: path for path in paths}
    for path in paths:
        names.setdefault(os.path.realpath(path), path)
    project = list(dict.fromkeys([call.project, os.path.realpath(call.project)]))
    met = []
    for lock in locks:
        if not is_somebody_elses(lock.holder, sessions):
            continue
        found = covered(lock.holder.paths, project, list(names))
        others = [names[path] for path in found if names[path] != lock.path]
        if others:
            met.append((lock, others[0]))
    return met


def _told(call: HookCall, lock: Lock, word: str, path: str) -> str:
    text = said(
        call,
        "hook_locked",
        path=os.path.relpath(path, call.project),
        lock=lock.slug,
        paths=", ".join(lock.holder.paths),
        holder=shown_holder(lock.holder),
    )
    return f"{text}\n{command(call, word, path)}"
