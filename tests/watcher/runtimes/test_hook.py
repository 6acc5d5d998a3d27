"""The runner of hooks: silence for every error, one object for everything else."""

import json
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import pytest

from policies.values import Json
from tests.watcher.runtimes.calling import a_call, recorded, tell
from tests.watcher.runtimes.test_lock_guard import ACTIVE, hold
from watcher import cli
from watcher.cli import hook
from watcher.runtimes import HANDLERS, Advice, HookCall, log
from watcher.runtimes.heartbeat import last_beats

Ask = Callable[..., str]
ALL = recorded()


@pytest.fixture
def ask(
    state: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Ask:
    """Give what runs a hook on a payload and returns what it prints."""

    def run(
        event: str, payload: Mapping[str, Json] | None, runtime: str | None = None
    ) -> str:
        monkeypatch.setattr(hook, "read_payload", lambda: payload)
        assert hook.answer(event, runtime) == 0
        said = capfd.readouterr()
        assert said.err == ""
        return said.out

    return run


def handle(monkeypatch: pytest.MonkeyPatch, event: str, **handlers: object) -> None:
    """Let these be the handlers of an event, in this order."""
    monkeypatch.setitem(HANDLERS, event, tuple(handlers))
    for name, advise in handlers.items():
        module = ModuleType(name)
        vars(module)["advise"] = advise
        monkeypatch.setitem(sys.modules, f"watcher.runtimes.{name}", module)
        monkeypatch.setattr(f"watcher.runtimes.{name}", module, raising=False)


def logged(state: Path) -> list[str]:
    path = state / log.NAME
    return path.read_text("utf-8").splitlines() if path.exists() else []


def of_session(state: Path, **more: Json) -> dict[str, Json]:
    return {"session_id": "s-1", "cwd": a_call(state).cwd, **more}


def fails(_: HookCall) -> Advice:
    msg = "on purpose"
    raise RuntimeError(msg)


def test_what_handlers_say_is_one_object(
    ask: Ask, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle(
        monkeypatch,
        "session-start",
        one=lambda _: Advice(context="first"),
        none=lambda _: None,
        two=lambda call: Advice(context=f"second of {call.session}"),
    )
    said = json.loads(ask("session-start", of_session(state)))
    assert said["hookSpecificOutput"] == {
        "hookEventName": "SessionStart",
        "additionalContext": "first\n\nsecond of s-1",
    }


def test_who_holds_the_store_is_asked_last_and_told_in_its_place(
    ask: Ask, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def handler(name: str) -> Callable[[HookCall], Advice]:
        def advise(_: HookCall) -> Advice:
            asked.append(name)
            return Advice(context=name)

        return advise

    names = ("first", "inbox", "last")
    handle(monkeypatch, "session-start", **{name: handler(name) for name in names})
    assert "first\\n\\ninbox\\n\\nlast" in ask("session-start", of_session(state))
    assert asked == ["first", "last", "inbox"]


def test_an_error_of_one_handler_is_a_line_in_the_log_and_no_more(
    ask: Ask, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle(
        monkeypatch,
        "post-tool-use",
        bad=fails,
        odd=lambda _: "no advice",
        good=lambda _: Advice(context="a fact"),
    )
    assert "a fact" in ask("post-tool-use", of_session(state))
    (line,) = logged(state)
    assert line.endswith("claude-code post-tool-use bad: RuntimeError: on purpose")


def test_a_handler_that_is_not_there_is_one_too(
    ask: Ask, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HANDLERS, "session-end", ("nowhere",))
    assert ask("session-end", of_session(state)) == ""
    assert "ModuleNotFoundError" in logged(state)[0]


@pytest.mark.parametrize("printed", [True, False])
def test_what_is_told_once_learns_whether_it_was_told(
    ask: Ask, state: Path, monkeypatch: pytest.MonkeyPatch, printed: bool
) -> None:
    heard: list[bool] = []
    once = Advice(context="once", after=heard.append)
    handle(monkeypatch, "post-tool-use", once=lambda _: once)
    if not printed:
        monkeypatch.setattr(hook, "write_line", lambda *_: False)
    ask("post-tool-use", of_session(state))
    assert heard == [printed]


def test_what_no_runtime_hears_was_not_told(
    ask: Ask, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[bool] = []
    once = Advice(context="once", after=heard.append)
    handle(monkeypatch, "session-end", once=lambda _: once)
    assert ask("session-end", of_session(state)) == ""
    assert heard == [False]


def test_an_error_behind_the_print_changes_nothing(
    ask: Ask, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def after(_: bool) -> None:
        raise OSError

    handle(monkeypatch, "stop", one=lambda _: Advice(hold="wait for it", after=after))
    assert json.loads(ask("stop", of_session(state)))["reason"] == "wait for it"
    assert "stop after: OSError" in logged(state)[0]


def test_b133_a_payload_that_is_none_asks_no_handler(
    ask: Ask, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle(monkeypatch, "stop", one=lambda _: Advice(hold="wait for it"))
    assert ask("stop", None) == ""
    assert logged(state)[0].endswith("claude-code stop: no JSON object on stdin")
    assert ask("pre-tool-use", None, "antigravity") == '{"decision": "ask"}\n'


@pytest.mark.parametrize("runtime", ["gemini", "copilot", "antigravity"])
def test_guards_are_heard_behind_a_tool_where_nothing_is_told_before_it(
    ask: Ask, state: Path, monkeypatch: pytest.MonkeyPatch, runtime: str
) -> None:
    seen: list[str] = []
    handle(monkeypatch, "post-tool-use", own=lambda _: seen.append("own"))
    handle(monkeypatch, "pre-tool-use", guard=lambda call: seen.append(call.event))
    ask("pre-tool-use", of_session(state), runtime)
    assert seen == []
    ask("post-tool-use", of_session(state), runtime)
    assert seen == ["own", "post-tool-use"]


def test_guards_are_heard_before_a_tool_elsewhere(
    ask: Ask, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    handle(monkeypatch, "post-tool-use", own=lambda _: seen.append("own"))
    handle(monkeypatch, "pre-tool-use", guard=lambda call: seen.append(call.event))
    for event in ("pre-tool-use", "post-tool-use", "session-end"):
        ask(event, of_session(state))
    assert seen == ["pre-tool-use", "own"]


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_each_payload_is_answered_by_one_object_or_nothing_and_leaves_its_mark(
    ask: Ask, state: Path, one: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = next(found for found in ALL if found == one)
    for name in [*os.environ]:
        if name.startswith(("GEMINI_", "QWEN_", "COPILOT_", "CLAUDE_", "CURSOR_")):
            monkeypatch.delenv(name)
    for name, value in record.env.items():
        monkeypatch.setenv(name, value)
    said = ask(record.event, record.payload, record.runtime)
    if said:
        assert isinstance(json.loads(said), dict)
    (beat,) = last_beats(str(state))
    assert (beat.runtime, beat.event) == (record.runtime, record.event)


def test_an_edit_a_lock_and_an_outcome_from_beginning_to_end(
    ask: Ask, state: Path, store: sqlite3.Connection
) -> None:
    hold(Path(a_call(state).project) / ACTIVE)
    edit = of_session(state, tool_name="Edit", tool_input={"file_path": "src/api/x"})
    assert "koder-monitor lock api" in ask("pre-tool-use", edit)
    tell(store, "w")
    held = json.loads(ask("stop", of_session(state, stop_hook_active=False)))
    assert held["decision"] == "block"
    assert "LIBERADO: lock w" in held["reason"]
    assert "koder-monitor lock api" in held["reason"]
    assert ask("stop", of_session(state, stop_hook_active=True)) == ""
    assert ask("user-prompt-submit", of_session(state)) == ""
    assert store.execute("SELECT acknowledged_at FROM waiters").fetchone()[0]


# The words of the call


@pytest.mark.parametrize(
    ("words", "parsed"),
    [
        (["stop"], ("stop", None)),
        (["stop", "--runtime", "codex"], ("stop", "codex")),
        (["--runtime=gemini", "session-start"], ("session-start", "gemini")),
    ],
    ids=str,
)
def test_a_call_is_read_without_the_parser(
    words: list[str], parsed: tuple[str, str | None]
) -> None:
    assert hook._parsed(words) == parsed


WRONG = [
    [],
    ["nonsense"],
    ["stop", "stop"],
    ["stop", "--runtime"],
    ["stop", "--runtime", "nonsense"],
    ["stop", "--json"],
    ["--help"],
]


class LeftError(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(status: int) -> None:
        assert status == 0
        raise LeftError

    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(signal, "setitimer", lambda *_: None)


@pytest.mark.parametrize("words", WRONG, ids=str)
def test_a_wrong_call_is_silent_unless_a_person_made_it(
    words: list[str], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helped = "--help" in words
    assert hook.quick(words) == (None if helped else 0)
    assert len(logged(state)) == (0 if helped else 1)
    monkeypatch.setattr(os, "isatty", lambda _: True)
    assert hook.quick(words) is None


@pytest.mark.usefixtures("left")
def test_a_call_ends_at_once(
    ask: Ask, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle(monkeypatch, "stop")
    ask("stop", of_session(state))  # which puts a payload there
    with pytest.raises(LeftError):
        hook.quick(["stop"])
    assert logged(state) == []


@pytest.mark.usefixtures("left")
def test_an_error_of_the_runner_itself_is_silent(
    state: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        msg = "on purpose"
        raise RuntimeError(msg)

    monkeypatch.setattr(hook, "read_payload", fail)
    with pytest.raises(LeftError):
        hook.quick(["stop", "--runtime", "codex"])
    assert logged(state)[0].endswith("hook: RuntimeError: on purpose")
    assert capfd.readouterr().out == "{}\n"


@pytest.mark.parametrize(
    ("runtime", "said"), [(None, ""), ("antigravity", '{"decision": "ask"}\n')]
)
def test_a_hook_that_takes_too_long_gives_up_in_silence(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    runtime: str | None,
    said: str,
) -> None:
    handlers: list[Callable[..., None]] = []
    ended: list[int] = []
    monkeypatch.setattr(signal, "signal", lambda _, give_up: handlers.append(give_up))
    monkeypatch.setattr(signal, "setitimer", lambda *_: None)
    monkeypatch.setattr(os, "_exit", ended.append)
    hook._limit("pre-tool-use", runtime)
    handlers[0](14, None)
    assert capfd.readouterr().out == said
    assert ended == [0]


def test_the_command_dispatches_before_it_loads_the_parser(
    state: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["koder-monitor", "hook", "nonsense"])
    assert cli.main() == 0
    monkeypatch.setattr(sys, "argv", ["koder-monitor", "hook", "--help"])
    with pytest.raises(SystemExit, match=r"^0$"):
        cli.main()
    said = capfd.readouterr()
    assert "session-start" in said.out
    assert "--runtime NAME" in said.out


def test_the_parser_runs_it_too(
    state: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hook, "read_payload", lambda: {"session_id": "s-1"})
    monkeypatch.setattr(hook, "quick", lambda _: None)
    argv = ["koder-monitor", "hook", "stop", "--runtime", "codex"]
    monkeypatch.setattr(sys, "argv", argv)
    assert cli.main() == 0
    assert capfd.readouterr().out == "{}\n"
