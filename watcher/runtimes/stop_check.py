"""Holds a stop, once, where the session would forget what it waits for (C11.3).

Two things are reason enough, each positively known:

1. An outcome of its own that it has not read. Its waiting command has ended by then,
   and notices of that get lost; who stops now has nothing left that tells of it.
2. An edit in what somebody else's lock covers, while that lock is still held by the
   same holder and nothing is armed that would tell of its release.

Each is held for once: an outcome is read by that, a lock's holding is noted.
"""

import os
import shlex
import sqlite3

from policies.guards import is_somebody_elses
from policies.names import slug_of
from watcher.cli.reading import read
from watcher.runtimes import Advice, HookCall
from watcher.runtimes.calls import sessions_of
from watcher.runtimes.dialects import is_active, reaches_model
from watcher.runtimes.inbox import handed_over
from watcher.runtimes.locks import Locks, command, read_holder, shown_holder
from watcher.runtimes.tried import Tried, mark_of, recall, remember
from watcher.runtimes.words import said
from watcher.stored_text import to_text

_MOST_HELD = 3  # locks in one hold

_WORTH_A_HOLD = (
    "SELECT 1 FROM waiters WHERE session = ? AND state = 'told' AND read_at IS NULL"
    " AND acknowledged_at IS NULL AND iif(json_valid(outcome),"
    " json_extract(outcome, '$.ending'), 'removed') <> 'removed' LIMIT 1"
)
_ARMED = (
    "SELECT 1 FROM watches a JOIN waiters w ON w.watch_id = a.id"
    " WHERE a.state = 'armed' AND w.state = 'waiting'"
    " AND (w.session IS NULL OR w.session = ?1)"
    " AND (a.target IN (?2, ?3) OR a.kind = 'wait'"
    " AND (instr(a.target, ?2) OR instr(a.target, ?3))) LIMIT 1"
)


def advise(call: HookCall) -> Advice | None:
    """Return why the turn should go on, or nothing."""
    if not reaches_model(call.runtime, call.event):
        return None
    if is_active(call.runtime, call.payload):
        return None
    blocked = _blocked(call)[:_MOST_HELD]
    if not remember(call, [tried._replace(held=True) for tried in blocked]):
        blocked = []  # what cannot be noted would be held for again and again
    news = handed_over(call, own_only=True) if _has_news(call) else None
    texts = [news.context] if news is not None and news.context else []
    texts += [_told(call, tried) for tried in blocked]
    if not texts:
        return None
    return Advice(hold="\n\n".join(texts), after=news.after if news else None)


def _has_news(call: HookCall) -> bool:
    """Say whether an outcome waits that leaves something to do; no removal does."""
    rows, _ = read(
        lambda c: [
            c.execute(_WORTH_A_HOLD, (session,)).fetchone()
            for session in sessions_of(call)
        ]
    )
    return any(rows or [])


def _blocked(call: HookCall) -> list[Tried]:
    """Return the locks that still stand in the session's way, not yet held for."""
    noted = recall(call)
    done = {(tried.lock, tried.holder) for tried in noted if tried.held}
    return [
        tried
        for tried in noted
        if (tried.lock, tried.holder) not in done and _stands(call, tried)
    ]


def _stands(call: HookCall, tried: Tried) -> bool:
    """Say whether the very holding that was met goes on, and nothing tells its end."""
    if not os.path.lexists(tried.lock):
        return False
    holder = read_holder(tried.lock)
    if mark_of(holder) != tried.holder:
        return False
    if not is_somebody_elses(holder, sessions_of(call)):
        return False
    return not _is_armed(call, tried.lock)


def _is_armed(call: HookCall, path: str) -> bool:
    """Say whether anything tells this session of the release.

    Where that cannot be known, a hold would be a guess.
    """
    slug = slug_of(path.rpartition("/")[2])
    targets = (f"lock {slug}", to_text(shlex.join(["lock", path])))

    def look(connection: sqlite3.Connection) -> bool:
        return any(
            connection.execute(_ARMED, (session, *targets)).fetchone()
            for session in sessions_of(call)
        )

    found, note = read(look)
    return note is not None or bool(found)


def _told(call: HookCall, tried: Tried) -> str:
    word = Locks(call).word(tried.lock)
    text = said(
        call,
        "hook_blocked",
        path=os.path.relpath(tried.path, call.project),
        lock=slug_of(tried.lock.rpartition("/")[2]) or tried.lock,
        holder=shown_holder(read_holder(tried.lock)),
    )
    return f"{text}\n{command(call, word, tried.path)}"
