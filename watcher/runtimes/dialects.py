"""What each runtime calls things, and how it is told something: one table.

Sources are the runtimes' own pages and public reports, read on the day each row names;
`tests/data/hooks` has a payload of each. What is doubtful there says nothing here.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from policies.values import Json
from watcher.runtimes import Advice

LONGEST_OUTPUT = 9_900
"""Characters of all that a hook prints: Claude Code and Copilot take 10,000."""

_ENVELOPE = 300  # characters of the keys around the texts
_NOTICE_LIMIT = 1000  # characters

Where = tuple[str, ...]
"""A way into the payload, key by key."""

_CLAUDE_NAMES: Final = {
    "session-start": "SessionStart",
    "user-prompt-submit": "UserPromptSubmit",
    "pre-tool-use": "PreToolUse",
    "post-tool-use": "PostToolUse",
    "stop": "Stop",
    "subagent-stop": "SubagentStop",
    "pre-compact": "PreCompact",
    "session-end": "SessionEnd",
}


class Dialect(NamedTuple):
    """One runtime.

    Attributes:
        read_on, source: when and from where this was learned.
        names: our event to its own name.
        session, cwd, project, tool, tool_input, active: where the payload has them,
            the first that is there.
        project_env: variables that name the project folder.
        session_env: variables that name the session.
        told: events whose context its model is known to get, and in which form.
        unsure: events where it may get lost on the way: nothing that is told only once.
        hold: form of a hold at `stop`; empty where there is none.
        notice: key of a text for the person.
        quiet: what it needs to be told where there is nothing to say.
    """

    read_on: str
    source: str
    names: Mapping[str, str]
    told: Mapping[str, str]
    hold: str
    session: Sequence[Where] = (("session_id",),)
    cwd: Sequence[Where] = (("cwd",),)
    project: Sequence[Where] = ()
    project_env: Sequence[str] = ()
    session_env: Sequence[str] = ()
    tool: Sequence[Where] = (("tool_name",),)
    tool_input: Sequence[Where] = (("tool_input",),)
    active: Sequence[Where] = (("stop_hook_active",),)
    unsure: frozenset[str] = frozenset()
    notice: str = ""
    quiet: Mapping[str, str] = {}


def _told(form: str, *events: str) -> dict[str, str]:
    return dict.fromkeys(events, form)


_PROMPTS = ("session-start", "user-prompt-submit")
_TOOLS = ("pre-tool-use", "post-tool-use")

DIALECTS: Final[dict[str, Dialect]] = {
    "claude-code": Dialect(
        read_on="2026-08-22",
        source="code.claude.com/docs/en/hooks",
        names=_CLAUDE_NAMES,
        told=_told("specific", *_PROMPTS, *_TOOLS),
        hold="block",
        project_env=("CLAUDE_PROJECT_DIR",),
        session_env=("CLAUDE_CODE_SESSION_ID",),
        notice="systemMessage",
    ),
    "gemini": Dialect(
        read_on="2026-08-21",
        source="google-gemini/gemini-cli docs/hooks/reference.md",
        names={
            "session-start": "SessionStart",
            "user-prompt-submit": "BeforeAgent",
            "pre-tool-use": "BeforeTool",
            "post-tool-use": "AfterTool",
            "stop": "AfterAgent",
            "pre-compact": "PreCompress",
            "session-end": "SessionEnd",
        },
        told=_told("specific", *_PROMPTS, "post-tool-use"),
        hold="deny",
        project_env=("GEMINI_PROJECT_DIR",),
        session_env=("GEMINI_SESSION_ID",),
        notice="systemMessage",
    ),
    "codex": Dialect(
        read_on="2026-10-01",
        source="openai/codex codex-rs/hooks/src/schema.rs, pull 20692",
        names=_CLAUDE_NAMES,
        told=_told("specific", *_PROMPTS, *_TOOLS),
        hold="block",
        notice="systemMessage",
        quiet={"stop": "{}", "subagent-stop": "{}"},
    ),
    "opencode": Dialect(
        read_on="2026-10-01",
        source="no hook commands: our plugin calls so, and reads these keys",
        names=_CLAUDE_NAMES,
        told=_told("plain", *_PROMPTS, *_TOOLS),
        hold="plain",
        project=(("project_dir",),),
        notice="notice",
    ),
    "cursor": Dialect(
        read_on="2026-10-01",
        source="cursor.com/docs/hooks; yvgude/lean-ctx issue 752",
        names={
            "session-start": "sessionStart",
            "user-prompt-submit": "beforeSubmitPrompt",
            "pre-tool-use": "preToolUse",
            "post-tool-use": "postToolUse",
            "stop": "stop",
            "subagent-stop": "subagentStop",
            "pre-compact": "preCompact",
            "session-end": "sessionEnd",
        },
        told=_told("additional_context", "session-start", "post-tool-use"),
        hold="followup_message",
        session=(("conversation_id",), ("session_id",)),
        project=(("workspace_roots", "0"),),
        project_env=("CURSOR_PROJECT_DIR",),
        active=(("loop_count",),),
        unsure=frozenset({"session-start", "post-tool-use"}),
        quiet={
            event: "{}"
            for event in _CLAUDE_NAMES
            if event not in {"session-end", "pre-compact"}
        },
    ),
    "copilot": Dialect(
        read_on="2026-10-01",
        source="github/docs content/copilot/reference/hooks-reference.md",
        names={
            "session-start": "sessionStart",
            "user-prompt-submit": "userPromptSubmitted",
            "pre-tool-use": "preToolUse",
            "post-tool-use": "postToolUse",
            "stop": "agentStop",
            "subagent-stop": "subagentStop",
            "pre-compact": "preCompact",
            "session-end": "sessionEnd",
        },
        told=_told("additionalContext", "session-start", "post-tool-use"),
        hold="block",
        session=(("sessionId",), ("session_id",)),
        tool=(("toolName",), ("tool_name",)),
        tool_input=(("toolArgs",), ("tool_input",)),
        active=(("stop_hook_active",), ("stopHookActive",)),
    ),
    "qwen": Dialect(
        read_on="2026-10-01",
        source="QwenLM/qwen-code docs/users/features/hooks.md, issue 11610",
        names=_CLAUDE_NAMES,
        told=_told("specific", *_PROMPTS, *_TOOLS),
        hold="block",
        project_env=("QWEN_PROJECT_DIR",),
        notice="systemMessage",
    ),
    "kimi": Dialect(
        read_on="2026-10-01",
        source="MoonshotAI/kimi-cli and kimi-code docs/en/customization/hooks.md",
        names=_CLAUDE_NAMES,
        told=_told("specific", *_PROMPTS, *_TOOLS),
        hold="permission",
        unsure=frozenset({"session-start", *_TOOLS}),
    ),
    "antigravity": Dialect(
        read_on="2026-10-01",
        source="antigravity.google/docs; akitaonrails/ai-memory issue 54,"
        " stablyai/orca pull 14701: an empty object before a tool is a refusal, and"
        " `ask` leaves the decision to the permissions that there are",
        names={
            "session-start": "SessionStart",
            "user-prompt-submit": "PreInvocation",
            "pre-tool-use": "PreToolUse",
            "post-tool-use": "PostToolUse",
            "stop": "Stop",
        },
        told=_told("injectSteps", "user-prompt-submit"),
        hold="continue",
        session=(("conversationId",),),
        cwd=(("workspacePaths", "0"),),
        project=(("workspacePaths", "0"),),
        tool=(("toolCall", "name"),),
        tool_input=(("toolCall", "args"),),
        active=(("stopHookActive",), ("error",)),
        quiet={
            "pre-tool-use": '{"decision": "ask"}',
            "post-tool-use": "{}",
            "user-prompt-submit": "{}",
            "stop": "{}",
        },
    ),
}
"""The runtimes that have hooks, or a plugin of ours that calls as they would."""

DEFAULT = "claude-code"


_ONLY_ITS_OWN: Final = (
    ("antigravity", {"conversationId"}, set[str]()),
    ("cursor", {"cursor_version", "conversation_id"}, set[str]()),
    ("copilot", {"sessionId"}, {"COPILOT_CLI"}),
    ("qwen", set[str](), {"QWEN_PROJECT_DIR"}),
    ("gemini", set[str](), {"GEMINI_SESSION_ID"}),
    ("codex", {"turn_id"}, set[str]()),
    ("kimi", {"client_type", "tool_call_id"}, set[str]()),
)
"""Runtime, keys of its payload, variables of its hooks; in this order."""


def recognised(payload: Mapping[str, Json], env: Mapping[str, str]) -> str:
    """Return the runtime that calls, where its name was not given.

    By what only it says; several give their hooks the variables of another.
    """
    for runtime, keys, variables in _ONLY_ITS_OWN:
        if any(key in payload for key in keys) or any(v in env for v in variables):
            return runtime
    name = payload.get("hook_event_name")
    gemini = DIALECTS["gemini"].names.values()
    if name in gemini and name not in _CLAUDE_NAMES.values():
        return "gemini"
    return DEFAULT


def found(payload: Mapping[str, Json], places: Sequence[Where]) -> Json:
    """Return what the first of some places in a payload holds, or None."""
    for place in places:
        value: Json = payload
        for key in place:
            if isinstance(value, Mapping):
                value = value.get(key)
            elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
                value = value[int(key)]
            else:
                value = None
        if value is not None:
            return value
    return None


def is_active(runtime: str, payload: Mapping[str, Json]) -> bool:
    """Say whether the turn goes on already because a hook held it (C11.2).

    Anything but a plain no counts: a second hold would be worse than none.
    """
    value = found(payload, DIALECTS[runtime].active)
    if payload.get("status") in {"aborted", "error"}:
        return True  # Cursor: a person stopped it, or nothing can go on
    if isinstance(value, str):
        return value.strip().lower() not in {"", "false", "no", "0"}
    return bool(value)


def reaches_model(runtime: str, event: str) -> bool:
    """Say whether what is told once may be told at this event."""
    dialect = DIALECTS[runtime]
    if event == "stop":
        return bool(dialect.hold)
    return event in dialect.told and event not in dialect.unsure


def speaks_before_tools(runtime: str) -> bool:
    """Say whether a guard's words can be told before the tool runs."""
    return "pre-tool-use" in DIALECTS[runtime].told


def printed(
    runtime: str, event: str, advices: Sequence[Advice], called: Json = None
) -> tuple[str, list[Advice]]:
    """Return the text for stdout, and which advices are whole in it.

    Args:
        runtime: whose form is wanted.
        event: at which all this is said.
        advices: in order; contexts are joined, the first hold counts.
        called: what the payload calls the event.
    """
    dialect = DIALECTS[runtime]
    notice = _notice(advices) if dialect.notice else ""
    room = LONGEST_OUTPUT - _ENVELOPE - size_of(notice)
    said: dict[str, Json] = {}
    whole: list[Advice] = []
    if event == "stop" and dialect.hold:
        whole = [advice for advice in advices if advice.hold][:1]
        for advice in whole:
            said = _hold(dialect.hold, cut(advice.hold or "", room))
    elif event in dialect.told:
        context, whole = _joined(advices, room)
        if context:
            name = _event_name(dialect, event, called)
            said = _context(dialect.told[event], name, context)
    if notice:
        said[dialect.notice] = notice
    if not said:
        return dialect.quiet.get(event, ""), []
    return json.dumps(said, ensure_ascii=False), whole


def _notice(advices: Sequence[Advice]) -> str:
    notices = [advice.notice for advice in advices if advice.notice]
    return cut("\n\n".join(notices), _NOTICE_LIMIT)


def _joined(advices: Sequence[Advice], room: int) -> tuple[str, list[Advice]]:
    """Join contexts within the limit; what is told once is whole or not in it at all.

    Those go first into the room that there is; the others are cut to what is left.
    """
    kept: dict[int, str] = {}
    for once in (True, False):
        for index, advice in enumerate(advices):
            if not advice.context or once != (advice.after is not None):
                continue
            text = advice.context if once else cut(advice.context, room)
            size = size_of(text) + 4
            if text and size <= room:
                kept[index] = text
                room -= size
    whole = [advices[index] for index in sorted(kept)]
    return "\n\n".join(kept[index] for index in sorted(kept)), whole


def size_of(text: str) -> int:
    """Return how many characters a text takes inside JSON."""
    return len(json.dumps(text, ensure_ascii=False)) - 2


def cut(text: str, room: int) -> str:
    """Return as much of a text as fits, ending in a mark where it was cut."""
    if size_of(text) + 4 <= room:
        return text
    size = room
    while size > 0 and size_of(text[:size]) + 5 > room:
        size -= max(1, (size_of(text[:size]) + 5 - room) // 2)
    return text[:size] + "…" if size > 0 else ""


def _event_name(dialect: Dialect, event: str, called: Json) -> str:
    """Return the name that the answer must repeat: the caller's own, if it is one."""
    names = {dialect.names[event], _CLAUDE_NAMES[event]}
    return (
        called
        if isinstance(called, str) and called in names
        else (dialect.names[event])
    )


def _context(form: str, name: str, text: str) -> dict[str, Json]:
    if form == "specific":
        return {
            "hookSpecificOutput": {"hookEventName": name, "additionalContext": text}
        }
    if form == "injectSteps":
        return {"injectSteps": [{"ephemeralMessage": text}]}
    return {"context" if form == "plain" else form: text}


def _hold(form: str, reason: str) -> dict[str, Json]:
    if form == "permission":
        return {
            "hookSpecificOutput": {
                "hookEventName": "Stop",
                "permissionDecision": "deny",
                "permissionDecisionReason": reason,
            }
        }
    if form == "plain":
        return {"hold": reason}
    if form == "followup_message":
        return {form: reason}
    return {"decision": form, "reason": reason}
