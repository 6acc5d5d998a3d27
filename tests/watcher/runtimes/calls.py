"""Events of an agent, as the hook command hands them to a handler."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from policies.values import Json
from policies.wording import Lang
from watcher.runtimes import HookCall

SESSION = "s-1"


def hook_call(
    event: str,
    payload: Mapping[str, Json],
    *,
    cwd: Path,
    env: Mapping[str, str],
    session: str | None = SESSION,
    project: Path | None = None,
    at: datetime | None = None,
) -> HookCall:
    """Return one event, now unless told otherwise."""
    return HookCall(
        event=event,
        runtime="claude-code",
        payload=payload,
        session=session,
        cwd=str(cwd),
        project=str(project or cwd),
        tool=None,
        tool_input={},
        env={**os.environ, **env},
        at=at or datetime.now(UTC),
        lang=Lang.EN,
    )
