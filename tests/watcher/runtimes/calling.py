"""Hook calls, and a state directory that they find."""

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from policies.codec import outcome_record
from policies.lang import Lang
from policies.model import Ending, Outcome
from policies.target import lock_target
from policies.values import Json
from tests import rows
from watcher.runtimes import Advice, HookCall

DATA = Path(__file__).parents[2] / "data" / "hooks"


class Recorded(NamedTuple):
    """A payload of the shape that a runtime hands over, and what is known of it."""

    name: str
    runtime: str
    event: str
    payload: Mapping[str, Json]
    known: Mapping[str, Json]

    @property
    def env(self) -> dict[str, str]:
        found = self.known.get("env", {})
        assert isinstance(found, Mapping)
        return {name: str(value) for name, value in found.items()}


def recorded() -> list[Recorded]:
    return sorted(_recorded())


def _recorded() -> Iterator[Recorded]:
    for path in DATA.glob("*/*.json"):
        known = json.loads(path.read_text("utf-8"))
        if {"event", "payload", "source"} <= set(known):
            runtime = path.parent.name
            name = f"{runtime}/{path.stem}"
            yield Recorded(name, runtime, known["event"], known["payload"], known)


def a_call(state: Path, event: str = "post-tool-use", **changed: object) -> HookCall:
    """Return a call of session s-1 in the project folder beside the state directory."""
    project = state.parent / "project"
    project.mkdir(exist_ok=True)
    call = HookCall(
        event=event,
        runtime="claude-code",
        payload={"session_id": "s-1"},
        session="s-1",
        cwd=str(project),
        project=str(project),
        tool=None,
        tool_input={},
        env={"KODER_MONITOR_STATE": str(state)},
        at=datetime.fromtimestamp(time.time(), UTC),
        lang=Lang.EN,
    )
    return call._replace(**changed)  # type: ignore[arg-type]  # checked by its use


def tell(
    connection: sqlite3.Connection,
    watch_id: str,
    *,
    ending: Ending = Ending.RELEASED,
    at: float = 1000.0,
    resume: str | None = "the API work",
    label: str = "",
    **waiter: object,
) -> None:
    """Let a watch have ended and its waiter have been told so."""
    outcome = Outcome(
        ending=ending,
        watch_id=watch_id,
        target=lock_target(f"/locks/lock-{label or watch_id}.md", "/locks"),
        label=label or watch_id,
        armed_at=datetime.fromtimestamp(at - 60, UTC),
        ended_at=datetime.fromtimestamp(at, UTC),
        waited_s=60.0,
        ttl_s=3600,
        resume=resume,
    )
    rows.add_watch(connection, watch_id, at=at - 60, state=ending, ended_at=at)
    row: dict[str, object] = {
        "session": "s-1",
        "state": "told",
        "told_at": at,
        "outcome": outcome_record(outcome),
    }
    rows.add_waiter(connection, watch_id, 1, at=at - 60, **row | waiter)


def hand_over(advice: Advice | None, *, printed: bool = True) -> str:
    """Return what an advice says, printed or not."""
    if advice is None:
        return ""
    if advice.after is not None:
        advice.after(printed)
    return advice.context or advice.hold or ""
