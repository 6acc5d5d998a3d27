"""An event in our words: whatever its runtime calls things, checked (C11.2)."""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import cast

from policies.lang import Lang
from policies.names import is_possible_path, is_session
from policies.values import Json
from watcher.paths import project_directory
from watcher.runtimes import HookCall
from watcher.runtimes.dialects import DIALECTS, Dialect, found


def call_of(
    event: str,
    runtime: str,
    payload: Mapping[str, Json],
    *,
    env: Mapping[str, str],
    now_s: float,
    lang: Lang,
) -> HookCall:
    """Return one event; what is odd in its payload counts as not said."""
    dialect = DIALECTS[runtime]
    cwd = _folder(found(payload, dialect.cwd)) or _here()
    return HookCall(
        event=event,
        runtime=runtime,
        payload=payload,
        session=_session(dialect, payload, env),
        cwd=cwd,
        project=_project(dialect, payload, env) or project_directory(cwd),
        tool=_text(found(payload, dialect.tool)),
        tool_input=_arguments(found(payload, dialect.tool_input)),
        env=env,
        at=datetime.fromtimestamp(now_s, UTC).astimezone(),
        lang=lang,
    )


def sessions_of(call: HookCall) -> list[str]:
    """Return the ids under which this session may have armed something.

    Its own, and the one that its environment sets for all that it arms.
    """
    chosen = call.env.get("KODER_MONITOR_SESSION", "")
    names = [call.session, chosen if is_session(chosen) else None]
    return [name for name in dict.fromkeys(names) if name is not None]


def projects_of(call: HookCall) -> list[str]:
    """Return the folders that may be meant by the project of this session."""
    return list(dict.fromkeys([call.project, project_directory(call.cwd)]))


def _session(
    dialect: Dialect, payload: Mapping[str, Json], env: Mapping[str, str]
) -> str | None:
    """Return the id; from the environment only where the payload names none at all."""
    said = found(payload, dialect.session)
    if said is None:
        said = next((env[name] for name in dialect.session_env if env.get(name)), None)
    return said if isinstance(said, str) and is_session(said) else None


def _project(
    dialect: Dialect, payload: Mapping[str, Json], env: Mapping[str, str]
) -> str | None:
    named = [env.get(name) for name in dialect.project_env]
    places = [*named, found(payload, dialect.project)]
    return next((folder for place in places if (folder := _folder(place))), None)


def _folder(value: Json) -> str | None:
    """Return an absolute path that could be one."""
    if isinstance(value, str) and value.startswith("/") and is_possible_path(value):
        return os.path.normpath(value)
    return None


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"  # it was deleted


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def _arguments(value: Json) -> Mapping[str, Json]:
    """Return the arguments of a tool, which Copilot may give as a text of JSON."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {"input": value}
    return cast("Mapping[str, Json]", value) if isinstance(value, dict) else {}
