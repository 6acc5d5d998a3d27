"""The context monitor: tells a session when its window is nearly full (C11.3).

The status line measures, this one speaks: without figures it is silent. A subagent's
events carry the session of its parent, whose figure is not the subagent's: silence.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping

from policies.context import (
    Level,
    Reading,
    Spoken,
    Thresholds,
    advice,
    emptied,
    heard,
    is_usable,
    thresholds,
)
from watcher.paths import config_file, state_directory
from watcher.runtimes import Advice, HookCall
from watcher.runtimes.metrics import (
    forget,
    found,
    json_of,
    read_small,
    remember,
    spoken,
)

_EMPTYING = ("clear", "compact")
_HANDOFF = "NEXT-SESSION-PROMPT.local.md"
_HANDOFF_S = 3600.0  # an older one was not written for this session
_BUSY_MS = 500


def advise(call: HookCall) -> Advice | None:
    """Return how full the window is when it is time to say so; reset what must be."""
    if call.session is None or call.payload.get("agent_id"):
        return None
    if call.event == "post-tool-use":
        limits = _limits(call)
        return None if limits is None else _heard(call, call.session, limits)
    source = call.payload.get("source")
    if call.event == "pre-compact" or source in _EMPTYING:
        _empty(call, call.session)
    elif source == "resume":
        _resume(call, call.session)
    return None


def _empty(call: HookCall, session: str) -> None:
    """Start anew: what was measured was of a window that is no more."""
    state = state_directory(call.env)
    forget(state, call.env, session)
    remember(state, session, emptied(call.at.timestamp()))


def _resume(call: HookCall, session: str) -> None:
    """Start anew with the warnings, not with the figures."""
    state = state_directory(call.env)
    before = spoken(state, session)
    if before != Spoken(compacted_at_s=before.compacted_at_s):
        remember(state, session, Spoken(compacted_at_s=before.compacted_at_s))


def _heard(call: HookCall, session: str, limits: Thresholds) -> Advice | None:
    state = state_directory(call.env)
    before = spoken(state, session)
    reading = _reading(call, state, session, before.compacted_at_s)
    if reading is None:
        return None
    told, level = heard(before, reading.remaining, limits)
    waits = _waits(state, call, session) if level is not None else []
    notes = level is Level.CRITICAL and not told.noted
    if notes:
        told = told._replace(noted=True)
    if told != before:
        remember(state, session, told)
    if level is None:
        return None
    if notes and waits:
        _note(state, waits, reading, call.at.timestamp())
    sentences = advice(level, reading, waits=len(waits), handoff=_handoff(call))
    return Advice(context=" ".join(one.render(call.lang) for one in sentences))


def _reading(
    call: HookCall, state: str, session: str, compacted_at_s: float | None
) -> Reading | None:
    """Return the figure of a session; ours goes before the compatible one."""
    now_s = call.at.timestamp()
    usable = (
        reading
        for reading in found(state, call.env, session)
        if is_usable(reading, now_s, compacted_at_s)
    )
    return next(usable, None)


def _limits(call: HookCall) -> Thresholds | None:
    """Return the thresholds in force, None when warnings are switched off.

    A project's own file goes before ours; a switch that is no boolean is none.
    """
    project, own = _of_project(call), _of_config(call.env)
    switches = (project.get("context_warnings"), own.get("warnings"))
    if next((one for one in switches if isinstance(one, bool)), True) is False:
        return None
    default = thresholds(own.get("warning"), own.get("critical"), Thresholds())
    return thresholds(
        project.get("context_warning_threshold"),
        project.get("context_critical_threshold"),
        default,
    )


def _of_config(env: Mapping[str, str]) -> Mapping[str, object]:
    """Return our `[context]`, without what checks all settings: it costs too much."""
    data = read_small(config_file(env))
    if data is None or b"context" not in data:
        return {}
    import tomllib  # noqa: PLC0415 - start-up time: most have no such file

    try:
        return _mapping(tomllib.loads(data.decode("utf-8")).get("context"))
    except ValueError:
        return {}


def _of_project(call: HookCall) -> Mapping[str, object]:
    """Return `hooks` of the nearest planning configuration up to the project folder."""
    for folder in _upwards(call.cwd, call.project):
        data = read_small(f"{folder}/.planning/config.json")
        if data is not None:
            return _mapping(_mapping(json_of(data)).get("hooks"))
    return {}


def _upwards(cwd: str, project: str) -> Iterator[str]:
    """Give the folders from the working directory up to that of the project."""
    folder = cwd
    while folder.startswith(f"{project}/"):
        yield folder
        folder = folder.rpartition("/")[0]
    yield project


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _waits(state: str, call: HookCall, session: str) -> list[str]:
    from watcher.database import open_for_reading  # noqa: PLC0415 - only with a warning
    from watcher.lights import waits_of  # noqa: PLC0415

    connection = open_for_reading(state)
    if connection is None:
        return []
    try:
        return waits_of(
            connection, [session, call.env.get("KODER_MONITOR_SESSION", session)]
        )
    except sqlite3.Error:
        return []
    finally:
        connection.close()


def _note(state: str, watches: list[str], reading: Reading, now_s: float) -> None:
    """Put it into the trail of what the session waits for: who is woken can tell."""
    from watcher.database import open_database  # noqa: PLC0415 - once a session
    from watcher.errors import StoreError  # noqa: PLC0415

    detail = json.dumps({"used_pct": reading.used})
    with contextlib.suppress(sqlite3.Error, StoreError):
        connection, _ = open_database(state, busy_ms=_BUSY_MS)
        with contextlib.closing(connection):
            connection.executemany(
                "INSERT INTO trail (watch_id, at, event, detail) VALUES (?, ?, ?, ?)",
                [(watch, now_s, "context_low", detail) for watch in watches],
            )


def _handoff(call: HookCall) -> str | None:
    """Return the handoff that was written for the next session, if it was."""
    for folder in (call.cwd, call.project):
        path = f"{folder}/{_HANDOFF}"
        with contextlib.suppress(OSError):
            if os.stat(path).st_mtime > call.at.timestamp() - _HANDOFF_S:
                return path
    return None
