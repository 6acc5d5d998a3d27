"""Before a shell command: a hand-made wait has a koder-monitor command (C11.3).

A first cheap look decides whether the command is parsed at all: nearly every hook call
ends with it, and imports no parser.
"""

import shlex
from typing import Final

from policies.loops.glance import may_wait
from policies.values import Json
from watcher.runtimes import Advice, HookCall

SHELL_TOOLS: Final = frozenset(
    {
        "Bash",  # Claude Code; Codex and Kimi Code too
        "Monitor",  # Claude Code
        "PowerShell",  # Claude Code
        "Shell",  # Cursor, Kimi
        "bash",  # Copilot, OpenCode
        "exec_command",
        "execute_command",  # Cline, CodeBuddy
        "execute_bash",
        "launch-process",  # Augment
        "local_shell",  # Codex
        "powershell",
        "run_command",  # Antigravity, Windsurf
        "run_in_terminal",
        "run_shell_command",  # Gemini, Qwen
        "run_terminal_cmd",
        "shell",
        "terminal",  # Hermes
    }
)
"""Tools that run a command; those of Claude Code are in its matcher too."""

_FIELDS: Final = ("command", "cmd", "CommandLine", "command_line", "script")


def advise(call: HookCall) -> Advice | None:
    """Return the koder-monitor command for a wait that a shell is about to run."""
    command = _command_of(call)
    if command is None or not may_wait(command):
        return None
    from policies.loops.suggestion import suggestion, told  # noqa: PLC0415 - see above

    found = suggestion(command)
    return Advice(context=told(found, call.lang)) if found else None


def _command_of(call: HookCall) -> str | None:
    """Return the shell command of a call, whichever way a runtime hands it over."""
    if call.tool not in SHELL_TOOLS:
        return None
    for name in _FIELDS:
        text = _text(call.tool_input.get(name))
        if text is not None:
            return text
    action = call.tool_input.get("action")  # Codex's local_shell
    return _text(action.get("command")) if isinstance(action, dict) else None


def _text(value: Json) -> str | None:
    """Return a command that is a text or a list of words."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return shlex.join(str(word) for word in value)
    return None
