"""Hands a session the outcomes that it has not read, each once (C9.4, C11.3)."""

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime

from policies.lang import Lang
from policies.text import clean
from watcher.runtimes import Advice, HookCall
from watcher.runtimes.calls import projects_of, sessions_of
from watcher.runtimes.dialects import cut, reaches_model, size_of
from watcher.runtimes.signs import writable
from watcher.runtimes.words import said
from watcher.stored_text import from_text, to_text

ROOM = 5000
"""Characters of outcomes in one event; what is more comes with the next."""

_CIRCLE_LIMIT = 400  # characters, for each of three
_ARMED_ROOM = 1800  # characters
_MOST_ARMED = 10
_SHORT = 200  # characters of a target or activity

_UNREAD = (
    "SELECT 1 FROM waiters WHERE state = 'told' AND read_at IS NULL"
    " AND acknowledged_at IS NULL AND (session = ?1"
    " OR (session IS NULL AND project = ?2)) LIMIT 1"
)
_CIRCLES = (
    "SELECT t.id, t.watch_id, t.at, t.detail FROM waiters w"
    " JOIN trail t ON t.watch_id = w.watch_id AND t.event = 'circle'"
    " WHERE w.session = ?1 AND w.state = 'waiting' AND t.at >= w.armed_at"
    " AND NOT EXISTS (SELECT 1 FROM trail r WHERE r.watch_id = t.watch_id"
    " AND r.event = 'circle-read' AND r.at = t.at"
    " AND r.detail = json_quote(?1)) ORDER BY t.id LIMIT 3"
)
_ARMED = (
    "SELECT a.target, w.deadline_at, w.resume FROM waiters w"
    " JOIN watches a ON a.id = w.watch_id WHERE w.session = ? AND w.state = 'waiting'"
    " AND a.state = 'armed' ORDER BY w.deadline_at LIMIT ?"
)


def advise(call: HookCall) -> Advice | None:
    """Return what this session has not read; it counts as read once it was printed."""
    if not reaches_model(call.runtime, call.event) or _is_within(call):
        return None
    return handed_over(call, own_only=False)


def _is_within(call: HookCall) -> bool:
    """Say whether a subagent uses this tool: it goes by the id of its session.

    What it is told, its session does not hear.
    """
    return call.event == "post-tool-use" and bool(call.payload.get("agent_id"))


def handed_over(call: HookCall, *, own_only: bool) -> Advice | None:
    """Return unread outcomes and circles, and at the start what is still armed.

    Args:
        call: the event.
        own_only: nothing of a project, whose outcomes any of its sessions may take.
    """
    connection = writable(call)
    if connection is None:
        return None
    try:
        texts, marks = _unread(connection, call, own_only=own_only)
        if call.event == "session-start":
            texts += _armed(connection, call)
    except BaseException:
        connection.close()
        raise
    if not texts:
        connection.close()
        return None
    text = "\n\n".join(texts)
    if not marks:
        connection.close()
        return Advice(context=text)
    return Advice(context=text, after=_settle(connection))


def _settle(connection: sqlite3.Connection) -> Callable[[bool], None]:
    """Return what keeps the marks, or gives them up where nobody got the text.

    The transaction stays open until it is printed, so that no other hook hands over
    the same; a hook that is killed meanwhile has handed over nothing.
    """

    def settle(printed: bool) -> None:
        try:
            connection.execute("COMMIT" if printed else "ROLLBACK")
        finally:
            connection.close()

    return settle


def _unread(
    connection: sqlite3.Connection, call: HookCall, *, own_only: bool
) -> tuple[list[str], bool]:
    """Return texts of what is unread, marked in a transaction that stays open."""
    pairs: list[tuple[str | None, str | None]] = [
        (session, None) for session in sessions_of(call)
    ]
    if not own_only:
        pairs += [(None, to_text(project)) for project in projects_of(call)]
    waits = [pair for pair in pairs if connection.execute(_UNREAD, pair).fetchone()]
    circles = any(
        connection.execute(_CIRCLES, (session,)).fetchone()
        for session in sessions_of(call)
    )
    if not waits and not circles:
        return [], False
    connection.execute("BEGIN IMMEDIATE")
    texts = _outcomes(connection, call, waits) + _circles(connection, call)
    if not texts:  # another hook was faster
        connection.execute("ROLLBACK")
    return texts, bool(texts)


def _outcomes(
    connection: sqlite3.Connection,
    call: HookCall,
    waits: list[tuple[str | None, str | None]],
) -> list[str]:
    from policies.lines import outcome_line  # noqa: PLC0415 - start-up: rarely needed
    from watcher import inbox  # noqa: PLC0415

    zone, size = call.at.tzinfo or UTC, 0
    lines: list[str] = []
    for session, project in waits:
        told = inbox.take_unread(
            connection, session=session, project=project, now_s=call.at.timestamp()
        )
        for index, one in enumerate(told):
            lang = Lang(one.lang) if one.lang in set(Lang) else call.lang
            line = f"- {outcome_line(one.outcome, lang, zone)}"
            size += size_of(line)
            if lines and size > ROOM:
                inbox.put_back(connection, told[index:])
                break
            lines.append(line)
    return [_listed("hook_outcomes", lines, call)] if lines else []


def _circles(connection: sqlite3.Connection, call: HookCall) -> list[str]:
    from watcher.store import add_trail  # noqa: PLC0415 - with the marks only

    lines: list[str] = []
    for session in sessions_of(call):
        for row in connection.execute(_CIRCLES, (session,)).fetchall():
            add_trail(connection, row["watch_id"], row["at"], "circle-read", session)
            lines.append(f"- {clean(_text_of(row['detail']), _CIRCLE_LIMIT)}")
    unique = list(dict.fromkeys(lines))
    return [_listed("hook_circle", unique, call)] if unique else []


def _text_of(detail: str) -> str:
    import json  # noqa: PLC0415 - as above

    try:
        return str(json.loads(detail))
    except ValueError:
        return detail


def _armed(connection: sqlite3.Connection, call: HookCall) -> list[str]:
    lines: list[str] = []
    for session in sessions_of(call):
        for row in connection.execute(_ARMED, (session, _MOST_ARMED + 1)):
            at = datetime.fromtimestamp(row["deadline_at"], UTC).astimezone()
            target = clean(from_text(row["target"]), _SHORT)
            resume = clean(from_text(row["resume"] or ""), _SHORT)
            key = "hook_armed_one" if resume else "hook_armed_bare"
            time = f"{at:%H:%M:%S}"
            line = said(call, key, target=target, at=time, resume=resume)
            lines.append(f"- {line}")
    if len(lines) > _MOST_ARMED:
        lines[_MOST_ARMED:] = ["- …"]
    return [cut(_listed("hook_armed", lines, call), _ARMED_ROOM)] if lines else []


def _listed(key: str, lines: list[str], call: HookCall) -> str:
    return "\n".join([said(call, key), *lines])
