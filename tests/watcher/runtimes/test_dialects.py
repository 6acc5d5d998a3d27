"""What each runtime is told, in its own form."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.values import Json
from watcher.runtimes import EVENTS, Advice
from watcher.runtimes.dialects import (
    DIALECTS,
    LONGEST_OUTPUT,
    cut,
    found,
    printed,
    reaches_model,
    size_of,
    speaks_before_tools,
)

TOLD = Advice(context="a fact")
HELD = Advice(hold="a reason")


def said(runtime: str, event: str, *advices: Advice, called: Json = None) -> object:
    text, _ = printed(runtime, event, advices, called)
    return json.loads(text) if text else None


def specific(name: str, text: str = "a fact") -> dict[str, object]:
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}


@pytest.mark.parametrize(
    ("runtime", "event", "shape"),
    [
        ("claude-code", "session-start", specific("SessionStart")),
        ("claude-code", "user-prompt-submit", specific("UserPromptSubmit")),
        ("claude-code", "pre-tool-use", specific("PreToolUse")),
        ("claude-code", "post-tool-use", specific("PostToolUse")),
        ("claude-code", "stop", None),
        ("claude-code", "session-end", None),
        ("claude-code", "pre-compact", None),
        ("gemini", "session-start", specific("SessionStart")),
        ("gemini", "user-prompt-submit", specific("BeforeAgent")),
        ("gemini", "pre-tool-use", None),
        ("gemini", "post-tool-use", specific("AfterTool")),
        ("codex", "pre-tool-use", specific("PreToolUse")),
        ("codex", "stop", {}),
        ("opencode", "post-tool-use", {"context": "a fact"}),
        ("cursor", "session-start", {"additional_context": "a fact"}),
        ("cursor", "pre-tool-use", {}),
        ("copilot", "session-start", {"additionalContext": "a fact"}),
        ("copilot", "user-prompt-submit", None),
        ("copilot", "pre-tool-use", None),
        ("copilot", "post-tool-use", {"additionalContext": "a fact"}),
        ("qwen", "user-prompt-submit", specific("UserPromptSubmit")),
        ("kimi", "user-prompt-submit", specific("UserPromptSubmit")),
        (
            "antigravity",
            "user-prompt-submit",
            {"injectSteps": [{"ephemeralMessage": "a fact"}]},
        ),
        ("antigravity", "session-start", None),
        ("antigravity", "pre-tool-use", {"decision": "ask"}),
        ("antigravity", "post-tool-use", {}),
    ],
)
def test_a_context_is_told_in_the_form_of_the_runtime(
    runtime: str, event: str, shape: object
) -> None:
    assert said(runtime, event, TOLD) == shape


@pytest.mark.parametrize(
    ("runtime", "shape"),
    [
        ("claude-code", {"decision": "block", "reason": "a reason"}),
        ("gemini", {"decision": "deny", "reason": "a reason"}),
        ("codex", {"decision": "block", "reason": "a reason"}),
        ("opencode", {"hold": "a reason"}),
        ("cursor", {"followup_message": "a reason"}),
        ("copilot", {"decision": "block", "reason": "a reason"}),
        ("qwen", {"decision": "block", "reason": "a reason"}),
        (
            "kimi",
            {
                "hookSpecificOutput": {
                    "hookEventName": "Stop",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": "a reason",
                }
            },
        ),
        ("antigravity", {"decision": "continue", "reason": "a reason"}),
    ],
)
def test_a_stop_is_held_in_the_form_of_the_runtime(runtime: str, shape: object) -> None:
    assert said(runtime, "stop", HELD) == shape
    text, whole = printed(runtime, "stop", [TOLD, HELD, Advice(hold="another")])
    assert json.loads(text) == shape
    assert whole == [HELD]


@pytest.mark.parametrize("runtime", DIALECTS)
@pytest.mark.parametrize("event", EVENTS)
def test_nothing_holds_blocks_or_approves_but_the_stop_check(
    runtime: str, event: str
) -> None:
    for advices in ([], [TOLD], [HELD], [Advice(notice="a notice")]):
        text, _ = printed(runtime, event, advices)
        shape = json.loads(text) if text else {}
        if event != "stop":
            assert not {"continue", "stopReason", "reason", "hold"} & set(shape)
            assert shape.get("decision", "ask") == "ask"
            inner = shape.get("hookSpecificOutput", {})
            assert set(inner) <= {"hookEventName", "additionalContext"}


@pytest.mark.parametrize("runtime", DIALECTS)
def test_nothing_to_say_is_nothing_or_what_the_runtime_needs(runtime: str) -> None:
    for event in EVENTS:
        text, whole = printed(runtime, event, [])
        assert whole == []
        assert text == DIALECTS[runtime].quiet.get(event, "")
        if text:
            assert isinstance(json.loads(text), dict)


@pytest.mark.parametrize(
    ("called", "name"),
    [
        ("SessionStart", "SessionStart"),
        ("BeforeTool", "SessionStart"),
        (5, "SessionStart"),
        (None, "SessionStart"),
    ],
)
def test_the_answer_names_the_event_that_it_answers(called: Json, name: str) -> None:
    assert said("claude-code", "session-start", TOLD, called=called) == specific(name)


def test_an_event_may_go_by_its_name_in_claude_code_elsewhere_too() -> None:
    assert said("gemini", "post-tool-use", TOLD, called="PostToolUse") == specific(
        "PostToolUse"
    )


def test_a_person_is_told_where_the_runtime_can() -> None:
    notice = Advice(notice="look")
    assert said("claude-code", "session-end", notice) == {"systemMessage": "look"}
    assert said("claude-code", "session-start", notice, TOLD) == {
        **specific("SessionStart"),
        "systemMessage": "look",
    }
    assert said("cursor", "session-start", notice) == {}


def test_contexts_are_joined_by_a_blank_line() -> None:
    both = said("claude-code", "post-tool-use", TOLD, Advice(context="and more"), HELD)
    assert both == specific("PostToolUse", "a fact\n\nand more")


def done(_: bool) -> None:
    """Stand for what marks a text as told."""


TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from('"\\\n'), max_size=400)


@given(
    st.lists(st.tuples(TEXTS, st.integers(1, 60), st.booleans()), max_size=5),
    st.sampled_from(sorted(DIALECTS)),
    st.sampled_from(EVENTS),
)
def test_the_output_is_one_short_object_and_what_is_told_once_is_whole(
    texts: list[tuple[str, int, bool]], runtime: str, event: str
) -> None:
    advices = [
        Advice(
            context=text * times,
            hold=text * times,
            notice=text,
            after=done if once else None,
        )
        for text, times, once in texts
    ]
    text, whole = printed(runtime, event, advices)
    assert len(text) < 10_000
    if not text:
        return
    shape = json.loads(text)
    assert isinstance(shape, dict)
    if event in DIALECTS[runtime].told:
        shown = json.dumps(shape, ensure_ascii=False)
        for advice in whole:
            assert advice in advices
            if advice.after is not None:
                assert json.dumps(advice.context, ensure_ascii=False)[1:-1] in shown


def test_what_is_told_once_keeps_its_room_beside_a_long_context() -> None:
    once = Advice(context="once " * 1000, after=done)
    long = Advice(context="long " * 4000)
    text, whole = printed("claude-code", "session-start", [long, once])
    context = json.loads(text)["hookSpecificOutput"]["additionalContext"]
    assert context.endswith("once " * 1000)
    assert "…" in context
    assert once in whole


def test_what_is_told_once_and_does_not_fit_is_not_told() -> None:
    once = Advice(context="x" * LONGEST_OUTPUT, after=done)
    assert printed("claude-code", "session-start", [once]) == ("", [])


@given(st.text(), st.integers(0, 300))
def test_a_cut_text_fits(text: str, room: int) -> None:
    short = cut(text, room)
    assert short == text or short in {"", short[:-1] + "…"}
    assert short in {"", text} or size_of(short) <= room


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("a", "b"), 1),
        (("c", "1"), 3),
        (("c", "5"), None),
        (("c", "x"), None),
        (("d", "0"), None),
        (("a", "b", "c"), None),
        (("nothing",), None),
    ],
)
def test_places_in_a_payload(place: tuple[str, ...], value: Json) -> None:
    payload: Mapping[str, Json] = {"a": {"b": 1}, "c": [2, 3], "d": "text"}
    assert found(payload, [place]) == value
    assert found(payload, [("nothing",), place]) == value


def test_what_is_told_once_goes_only_where_a_model_is_known_to_get_it() -> None:
    assert reaches_model("claude-code", "post-tool-use")
    assert reaches_model("claude-code", "stop")
    assert not reaches_model("claude-code", "session-end")
    assert not reaches_model("cursor", "post-tool-use")
    assert not reaches_model("copilot", "user-prompt-submit")
    assert not reaches_model("kimi", "session-start")


def test_guards_speak_before_a_tool_where_they_can() -> None:
    late = {name for name in DIALECTS if not speaks_before_tools(name)}
    assert late == {"gemini", "cursor", "copilot", "antigravity"}
