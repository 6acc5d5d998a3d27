"""Our entries in a JSON file: exactly ours go in, and exactly ours go out."""

import json
import shlex
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.edits import UnreadableError
from policies.edits.entries import Wanted, install, uninstall
from policies.edits.jsonc import put, read
from policies.edits.ours import command_of, is_our_server, part_of
from policies.model import Json
from tests.policies.edits.documents import KEYS, VALUES, documents

PROGRAM = "/opt/k m/bin/koder-monitor"


def command(*words: str, program: str = PROGRAM) -> str:
    return shlex.join([program, *words])


def hook(event: str, program: str = PROGRAM) -> dict[str, Any]:
    said = command("hook", event, "--runtime", "x", program=program)
    return {"type": "command", "command": said, "timeout": 10}


def group(event: str, program: str = PROGRAM) -> dict[str, Any]:
    return {"hooks": [hook(event, program)]}


MINE = {"hooks": [{"type": "command", "command": "mine"}]}
LINE = {"type": "command", "command": command("statusline")}
SERVER = {"command": PROGRAM, "args": ["mcp"]}
WANTED = Wanted(
    hooks=("hooks",),
    events={"Stop": group("stop"), "Start": group("session-start")},
    server=(("mcpServers", "koder-monitor"), SERVER),
    line=(("ui", "statusLine"), LINE),
)
ONLY_HOOKS = Wanted(hooks=("hooks",), events=WANTED.events)


def signs(text: str, wanted: Wanted = WANTED) -> list[str]:
    return [f"{c.sign} {c.where}" for c in install(text, wanted).changes]


@pytest.mark.parametrize(
    ("said", "part"),
    [
        (command("hook", "stop"), "hook"),
        ("koder-monitor statusline --runtime x", "statusline"),
        ("/a/koder-monitor mcp", "mcp"),
        ("/a/koder-monitor list", None),
        ("koder-monitor", None),
        ("sh -c 'koder-monitor hook stop'", None),
        ("/a/koder-monitor-old hook stop", None),
        ("koder-monitor 'hook", None),
        ("", None),
        (None, None),
        (7, None),
    ],
)
def test_ours_is_known_by_the_command_that_it_calls(
    said: Json, part: str | None
) -> None:
    assert part_of(said) == part


@pytest.mark.parametrize(
    ("entry", "ours"),
    [
        (SERVER, True),
        ({"command": [PROGRAM, "mcp"], "enabled": False}, True),
        ({"command": "uvx", "args": ["koder-monitor", "mcp"]}, False),
        ({"command": PROGRAM}, False),
        ({"command": PROGRAM, "args": [7]}, False),
        ({"url": "http://x"}, False),
        ("text", False),
    ],
)
def test_our_server_is_known_by_its_command(entry: Json, ours: bool) -> None:
    assert is_our_server(entry) is ours


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (group("stop"), hook("stop")["command"]),
        ({"bash": "x y"}, "x y"),
        (SERVER, f"{PROGRAM} mcp"),
        ({"command": [PROGRAM, "mcp"]}, command("mcp")),
        ({}, ""),
    ],
)
def test_the_command_of_an_entry_is_said(entry: Json, said: str) -> None:
    assert command_of(entry) == said


def test_all_that_is_wanted_goes_in() -> None:
    edited = install("{}", WANTED)
    assert read(edited.text).value == {
        "hooks": {"Stop": [group("stop")], "Start": [group("session-start")]},
        "mcpServers": {"koder-monitor": SERVER},
        "ui": {"statusLine": LINE},
    }
    assert [c.sign for c in edited.changes] == ["+"] * 4
    assert edited.former is None
    assert edited.foreign == ()


@pytest.mark.parametrize("text", ["", "\n", "\ufeff", " \r\n"])
def test_an_empty_file_is_an_empty_object(text: str) -> None:
    edited = install(text, ONLY_HOOKS)
    assert edited.text.startswith(text)
    assert read(edited.text).value == {
        "hooks": {k: [v] for k, v in WANTED.events.items()}
    }


@settings(deadline=None, max_examples=40)
@given(
    st.data(),
    st.dictionaries(
        KEYS.filter(lambda key: key not in {"hooks", "mcpServers", "ui"}),
        VALUES,
        max_size=4,
    ),
    st.dictionaries(
        KEYS | st.sampled_from(["Stop", "Start"]),
        st.lists(VALUES, max_size=2),
        max_size=3,
    )
    | st.none(),
)
def test_what_is_put_in_comes_out_and_leaves_the_same_bytes(
    data: st.DataObject, rest: dict[str, Any], hooks: dict[str, Any] | None
) -> None:
    value = {**rest, **({} if hooks is None else {"hooks": hooks})}
    text = data.draw(documents(st.just(value)))
    edited = install(text, WANTED)
    assert install(edited.text, WANTED).text == edited.text
    assert uninstall(edited.text, WANTED, made=edited.made).text == text


@settings(deadline=None, max_examples=40)
@given(st.data(), st.dictionaries(KEYS, VALUES, max_size=3))
def test_a_status_line_comes_back(data: st.DataObject, rest: dict[str, Any]) -> None:
    theirs = {**rest, "ui": {"statusLine": {"command": "théirs | x", "padding": 1}}}
    text = data.draw(documents(st.just(theirs)))
    edited = install(text, Wanted(line=WANTED.line))
    assert edited.former == "théirs | x"
    shown = read(edited.text).value
    assert shown == {
        **theirs,
        "ui": {"statusLine": {"command": LINE["command"], "padding": 1}},
    }
    without = uninstall(edited.text, Wanted(line=WANTED.line), former=edited.former)
    assert read(without.text).value == theirs


def test_the_second_time_changes_nothing() -> None:
    once = install('{\n  "hooks": {"Stop": [1]}\n}', WANTED)
    again = install(once.text, WANTED)
    assert (again.text, again.changes, again.made) == (once.text, (), ())


def test_entries_of_another_version_are_replaced_where_they_are() -> None:
    old = {"hooks": {"Stop": [MINE, group("stop", "/old/koder-monitor"), MINE]}}
    edited = install(json.dumps(old), ONLY_HOOKS)
    assert read(edited.text).value == {
        "hooks": {
            "Stop": [MINE, group("stop"), MINE],
            "Start": [group("session-start")],
        }
    }
    assert [f"{c.sign} {c.where}" for c in edited.changes] == [
        "~ hooks.Stop",
        "+ hooks.Start",
    ]


def test_of_several_of_ours_one_is_left() -> None:
    old = {"hooks": {"Stop": [group("stop", "/a/koder-monitor"), group("stop"), MINE]}}
    edited = install(json.dumps(old), ONLY_HOOKS)
    assert read(edited.text).value == {
        "hooks": {"Stop": [group("stop"), MINE], "Start": [group("session-start")]}
    }


def test_events_that_are_not_wanted_any_more_go() -> None:
    old = {"hooks": {"Gone": [group("stop")], "Other": [MINE], "Odd": 7}}
    edited = install(json.dumps(old), ONLY_HOOKS)
    hooks = read(edited.text).value
    assert isinstance(hooks, dict)
    assert hooks["hooks"]["Gone"] == []
    assert hooks["hooks"]["Other"] == [MINE]
    assert signs(json.dumps(old), ONLY_HOOKS)[0] == "- hooks.Gone"


def test_a_hook_of_ours_in_a_group_of_somebody_elses_stays_there() -> None:
    shared = {"matcher": "*", "hooks": [hook("stop"), MINE["hooks"][0]]}
    old = json.dumps({"hooks": {"Stop": [shared]}})
    assert signs(old, ONLY_HOOKS) == ["+ hooks.Start"]
    without = uninstall(old, ONLY_HOOKS)
    assert read(without.text).value == {"hooks": {"Stop": [{"matcher": "*", **MINE}]}}


def test_an_old_hook_of_ours_in_a_group_of_somebody_elses_gets_its_own_group() -> None:
    shared = {"hooks": [hook("stop", "/old/koder-monitor"), MINE["hooks"][0]]}
    edited = install(json.dumps({"hooks": {"Stop": [shared]}}), ONLY_HOOKS)
    stop = read(edited.text).value["hooks"]["Stop"]  # type: ignore[call-overload, index]
    assert stop == [MINE, group("stop")]


def test_hooks_without_groups_are_known_too() -> None:
    wanted = Wanted(
        hooks=("hooks",), events={"stop": hook("stop")}, base={"version": 1}
    )
    edited = install("{}", wanted)
    assert read(edited.text).value == {"version": 1, "hooks": {"stop": [hook("stop")]}}
    assert install(edited.text, wanted).text == edited.text
    assert uninstall(edited.text, wanted, made=edited.made).text == "{}"


def test_what_was_said_beside_the_hooks_stays() -> None:
    wanted = Wanted(
        hooks=("hooks",), events={"stop": hook("stop")}, base={"version": 1}
    )
    edited = install('{"version": 2}', wanted)
    assert uninstall(edited.text, wanted, made=edited.made).text == '{"version": 2}'


def test_our_server_is_brought_up_to_date_and_what_was_added_to_it_stays() -> None:
    old = {"command": "/old/koder-monitor", "args": ["mcp"], "env": {"A": "b"}}
    edited = install(
        json.dumps({"mcpServers": {"koder-monitor": old}}), Wanted(server=WANTED.server)
    )
    assert read(edited.text).value == {
        "mcpServers": {"koder-monitor": {**SERVER, "env": {"A": "b"}}}
    }
    assert [c.sign for c in edited.changes] == ["~"]


def test_a_server_whose_command_is_one_list_loses_its_arguments() -> None:
    entry = {"command": [PROGRAM, "mcp"]}
    wanted = Wanted(server=(("mcp", "koder-monitor"), entry))
    edited = install(json.dumps({"mcp": {"koder-monitor": SERVER}}), wanted)
    assert read(edited.text).value == {"mcp": {"koder-monitor": entry}}


def test_a_server_of_our_name_that_is_not_ours_stays() -> None:
    text = '{"mcpServers": {"koder-monitor": {"command": "uvx"}}}'
    edited = install(text, Wanted(server=WANTED.server))
    assert (edited.text, edited.foreign) == (text, ("mcpServers.koder-monitor",))
    assert uninstall(text, Wanted(server=WANTED.server)).text == text


@pytest.mark.parametrize("line", ['"x"', "{}", '{"command": 7}', "null"])
def test_a_status_line_that_makes_no_sense_stays(line: str) -> None:
    text = f'{{"ui": {{"statusLine": {line}}}}}'
    edited = install(text, Wanted(line=WANTED.line))
    if line == "null":
        assert edited.foreign == ()
    else:
        assert (edited.text, edited.foreign) == (text, ("ui.statusLine",))
        assert uninstall(text, Wanted(line=WANTED.line)).text == text


def test_our_own_older_status_line_is_not_kept_as_somebody_elses() -> None:
    old = {"command": "/old/koder-monitor statusline"}
    edited = install(json.dumps({"ui": {"statusLine": old}}), Wanted(line=WANTED.line))
    assert edited.former is None
    assert [c.sign for c in edited.changes] == ["~"]


def test_what_others_added_meanwhile_stays() -> None:
    edited = install("{}", WANTED)
    changed = put(edited.text, ["hooks", "Stop"], [group("stop"), MINE])
    changed = put(changed, ["model"], "big")
    without = uninstall(changed, WANTED, made=edited.made)
    assert read(without.text).value == {"hooks": {"Stop": [MINE]}, "model": "big"}


def test_a_status_line_that_somebody_put_in_place_of_ours_stays() -> None:
    edited = install("{}", WANTED)
    changed = put(edited.text, ["ui", "statusLine"], {"command": "new"})
    without = uninstall(changed, WANTED, made=edited.made)
    assert read(without.text).value == {"ui": {"statusLine": {"command": "new"}}}


@pytest.mark.parametrize("text", ["[]", "7", '"x"'])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(UnreadableError, match="no object"):
        install(text, WANTED)
    with pytest.raises(UnreadableError, match="no object"):
        uninstall(text, WANTED)


@pytest.mark.parametrize("text", ['{"hooks": []}', '{"hooks": {"Stop": {}}}'])
def test_hooks_that_are_something_else_are_refused(text: str) -> None:
    with pytest.raises(UnreadableError, match="something else"):
        install(text, WANTED)
    assert uninstall(text, WANTED).text == text


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\ufeff", "\t\r\n"])
def test_nothing_is_taken_out_of_a_file_that_holds_nothing(text: str) -> None:
    gone = uninstall(text, WANTED, made=[("hooks",)])
    assert (gone.text, gone.changes) == (text, ())
