"""Coding agents: what their hooks hand us, and what we have to say to them (C11).

A hook is advisory. Whatever goes wrong in it is silence and success; it reads a bounded
payload within a limit, asks no network, and prints one JSON object or nothing (C11.2).

One *handler* is one module of this package with one function:

    advise(call: HookCall) -> Advice | None

`HANDLERS` says which events it hears. It imports nothing heavy before it has to: every
hook starts a new interpreter.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from policies.lang import Lang
from policies.values import Json

EVENTS: Final = (
    "session-start",
    "user-prompt-submit",
    "pre-tool-use",
    "post-tool-use",
    "stop",
    "subagent-stop",
    "pre-compact",
    "session-end",
)
"""The events of `koder-monitor hook EVENT` (appendix)."""


class HookCall(NamedTuple):
    """One event of an agent, in our words whatever the runtime calls things.

    No dataclass, which would cost each hook more than the interpreter's own start.

    Attributes:
        event: one of `EVENTS`.
        runtime: its name, such as `claude-code`.
        payload: what it handed over, as it came.
        session: its id, checked (C11.2), or None.
        cwd: its working directory, or ours.
        project: the runtime's project folder, else the git root of `cwd`, else `cwd`.
        tool: name of the tool before or after which this is, as the runtime calls it.
        tool_input: of that tool.
        at: the time, in the local zone.
    """

    event: str
    runtime: str
    payload: Mapping[str, Json]
    session: str | None
    cwd: str
    project: str
    tool: str | None
    tool_input: Mapping[str, Json]
    env: Mapping[str, str]
    at: datetime
    lang: Lang


class Advice(NamedTuple):
    """What a handler has to say.

    Attributes:
        context: text for the model: facts, no commands.
        hold: why the turn should go on; for the stop check alone.
        notice: text for the person, where the runtime can show one.
        after: told in the end whether all of this was handed over; it is never cut.
    """

    context: str | None = None
    hold: str | None = None
    notice: str | None = None
    after: Callable[[bool], None] | None = None


class Handler(Protocol):
    """A module that hears events."""

    @staticmethod
    def advise(call: HookCall) -> Advice | None:
        """Return what to say, or nothing; any exception is silence."""


HANDLERS: Final[dict[str, tuple[str, ...]]] = {
    "session-start": ("context_monitor", "inbox", "handoff_load"),
    "user-prompt-submit": ("inbox",),
    "pre-tool-use": ("lock_guard", "loop_guard"),
    "post-tool-use": ("context_monitor", "inbox"),
    "stop": ("stop_check", "handoff_stop"),
    "subagent-stop": (),
    "pre-compact": ("context_monitor",),
    "session-end": (),
}
"""Event to the modules of this package that hear it, in this order."""
