"""The loop guard as each runtime calls it (C11.3)."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from policies.guards import EDITS, edited_paths
from policies.model import Json
from policies.wording import Lang
from watcher.runtimes import HookCall
from watcher.runtimes.loop_guard import SHELL_TOOLS, advise
from watcher.runtimes.registry import RUNTIMES

WAIT = "while pgrep -f 'make all'; do sleep 5; done"
INSTEAD = "koder-monitor process --match 'make all'"


def call(
    tool: str | None, tool_input: dict[str, Json], lang: Lang = Lang.EN
) -> HookCall:
    return HookCall(
        event="pre-tool-use",
        runtime="claude-code",
        payload={},
        session="s1",
        cwd="/home/me/p",
        project="/home/me/p",
        tool=tool,
        tool_input=tool_input,
        env={},
        at=datetime(2026, 3, 1, tzinfo=UTC),
        lang=lang,
    )


@pytest.mark.parametrize(
    ("tool", "tool_input"),
    [
        ("Bash", {"command": WAIT, "run_in_background": True}),
        ("run_shell_command", {"command": WAIT}),
        ("shell", {"command": ["bash", "-lc", WAIT]}),
        ("local_shell", {"action": {"type": "exec", "command": ["sh", "-c", WAIT]}}),
        ("exec_command", {"cmd": WAIT}),
        ("Shell", {"command": WAIT}),
        ("bash", {"command": WAIT, "description": "wait"}),
        ("run_command", {"CommandLine": WAIT}),
    ],
)
def test_the_command_of_every_runtime_is_read(
    tool: str, tool_input: dict[str, Json]
) -> None:
    advice = advise(call(tool, tool_input))
    assert advice is not None
    assert advice.context is not None
    assert f"\n    {INSTEAD}\n" in advice.context
    assert advice.hold is None


def test_it_speaks_the_language_of_the_call() -> None:
    portuguese = advise(call("Bash", {"command": WAIT}, Lang.PT))
    assert portuguese is not None
    assert portuguese.context is not None
    assert "sem prazo" in portuguese.context


@pytest.mark.parametrize(
    ("tool", "tool_input"),
    [
        (None, {}),
        ("Bash", {}),
        ("Bash", {"command": None}),
        ("Bash", {"command": ["a", 1]}),
        ("Bash", {"command": "git status"}),
        ("Bash", {"command": "git commit -m 'while we sleep'"}),
        ("Edit", {"command": WAIT}),
        ("Write", {"file_path": "/a", "content": WAIT}),
        ("local_shell", {"action": "exec"}),
        ("local_shell", {"action": {"type": "exec"}}),
        ("Bash", {"command": WAIT + " " * 70_000}),
    ],
)
def test_it_is_silent_on_everything_else(
    tool: str | None, tool_input: dict[str, Json]
) -> None:
    assert advise(call(tool, tool_input)) is None


def test_the_usual_command_imports_no_parser() -> None:
    code = (
        "import sys, watcher.runtimes.loop_guard\n"
        "print([m for m in sys.modules if m.startswith('policies.loops.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "['policies.loops.glance']"


# Before which tools runtimes call us

OF_OTHERS = {  # what a handler hears and Claude Code has not
    "Shell",
    "bash",
    "exec_command",
    "execute_command",
    "execute_bash",
    "launch-process",
    "local_shell",
    "powershell",
    "run_command",
    "run_in_terminal",
    "run_shell_command",
    "run_terminal_cmd",
    "shell",
    "terminal",
}
EDITS_OF_CLAUDE_CODE = {"Edit", "MultiEdit", "NotebookEdit", "Write"}
EDITS_OF_OTHERS = set(
    """
    applydiff applypatch create createfile deletefile editfile editnotebook
    inserteditintofile movefile multireplacefilecontent patch replace
    replacefilecontent replaceinfile savefile searchreplace strreplace
    strreplacebasededittool strreplaceeditor strreplacefile writefile writetofile
    """.split()  # noqa: SIM905 - as in the guard
)
GUARDED = {
    name: row.hooks.guarded.removeprefix("^(").removesuffix(")$").split("|")
    for name, row in RUNTIMES.items()
    if row.hooks is not None and row.hooks.guarded
}


def test_claude_code_calls_before_every_tool_that_a_handler_hears() -> None:
    """A tool that a handler learns is either in the matcher or said to be another's."""
    assert set(EDITS) >= EDITS_OF_OTHERS
    assert set(SHELL_TOOLS) >= OF_OTHERS
    edits = {name.lower() for name in EDITS_OF_CLAUDE_CODE}
    assert edits == EDITS - EDITS_OF_OTHERS
    heard = (SHELL_TOOLS - OF_OTHERS) | EDITS_OF_CLAUDE_CODE
    assert set(GUARDED["claude-code"]) == heard


@pytest.mark.parametrize(
    ("runtime", "tool"),
    [(runtime, tool) for runtime, tools in GUARDED.items() for tool in tools],
)
def test_a_handler_hears_every_tool_before_which_a_runtime_calls(
    runtime: str, tool: str
) -> None:
    told = advise(call(tool, {"command": WAIT}))
    assert told or edited_paths(tool, {"file_path": "a"}), runtime
