"""Our sections in a TOML file: exactly ours go in, and exactly ours go out."""

import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.edits import UnreadableError, toml
from policies.edits.sections import Wanted, install, uninstall

PROGRAM = "/opt/k/bin/koder-monitor"


def hook(event: str, program: str = PROGRAM) -> dict[str, Any]:
    return {"event": event, "command": f"{program} hook {event}", "timeout": 10}


SERVER = {"command": PROGRAM, "args": ["mcp"]}
WANTED = Wanted(
    hooks="hooks",
    events={"Stop": hook("Stop"), "Start": hook("Start")},
    server=(("mcp_servers", "koder-monitor"), SERVER),
)
OURS = {
    "hooks": [hook("Stop"), hook("Start")],
    "mcp_servers": {"koder-monitor": SERVER},
}

LINES = st.sampled_from(
    [
        "# [hooks]",
        'a = "x # y"',
        "b = '''\n[hooks]\n'''",
        'c = """\n[[hooks]]\n\\""" # d\n"""',
        "d = [\n  [1, 2], # e\n  [3],\n]",
        "e = { f = 1, g = [2] }",
        "",
        "",
        "[table] # c",
        '[t."a.b".c]',
        "[[list]]",
        "[[ list ]]",
        "  [indented]",
        "[mcp_servers.other]",
        "[[hooks]]",
    ]
)


def parses(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


DOCUMENTS = (
    st.lists(LINES, max_size=12)
    .map(lambda lines: "".join(f"{line}\n" for line in lines))
    .filter(parses)
)


@settings(deadline=None, max_examples=60)
@given(DOCUMENTS, st.booleans())
def test_what_is_put_in_comes_out_and_leaves_the_same_bytes(
    text: str, windows: bool
) -> None:
    text = text.replace("\n", "\r\n") if windows else text
    before = toml.read(text)
    edited = install(text, WANTED)
    assert edited.text.startswith(text)
    after = toml.read(edited.text)
    hooks = before.get("hooks", [])
    servers = before.get("mcp_servers", {})
    assert isinstance(hooks, list)
    assert isinstance(servers, dict)
    assert after == {
        **before,
        "hooks": [*hooks, *OURS["hooks"]],
        "mcp_servers": {**servers, **OURS["mcp_servers"]},  # type: ignore[dict-item]
    }
    assert install(edited.text, WANTED).text == edited.text
    assert uninstall(edited.text, WANTED).text == text


def test_all_that_is_wanted_goes_in() -> None:
    edited = install("", WANTED)
    assert tomllib.loads(edited.text) == OURS
    assert [f"{c.sign} {c.where}" for c in edited.changes] == [
        "+ hooks.Stop",
        "+ hooks.Start",
        "+ mcp_servers.koder-monitor",
    ]


def test_a_last_line_without_an_end_gets_one() -> None:
    edited = install("a = 1", WANTED)
    assert tomllib.loads(edited.text) == {"a": 1, **OURS}
    assert uninstall(edited.text, WANTED).text == "a = 1\n"


def test_an_empty_array_that_cannot_be_continued_is_set_aside() -> None:
    text = "x = 1\nhooks = []  # none yet\n\n[table]\nhooks = []\n"
    edited = install(text, WANTED)
    assert tomllib.loads(edited.text) == {"x": 1, "table": {"hooks": []}, **OURS}
    assert uninstall(edited.text, WANTED).text == text


@pytest.mark.parametrize(
    "text",
    [
        "a =",
        "hooks = [{event = 'Stop'}]\n",
        "hooks = 7\n",
        "mcp_servers = {}\n",
        "[mcp_servers]\nkoder-monitor = 7\n",
    ],
)
def test_what_cannot_be_added_to_is_refused(text: str) -> None:
    with pytest.raises(UnreadableError):
        install(text, WANTED)


def test_the_line_of_an_error_is_said() -> None:
    with pytest.raises(UnreadableError) as caught:
        toml.read("a = 1\nb = ?\n")
    assert caught.value.line == 2
    with pytest.raises(UnreadableError) as caught:
        toml.read("a = ")
    assert caught.value.line == 1


def test_sections_of_another_version_are_replaced() -> None:
    old = install(
        "a = 1\n",
        Wanted(
            hooks="hooks",
            events={"Stop": hook("Stop", "/old/koder-monitor"), "Gone": hook("Gone")},
            server=(
                ("mcp_servers", "koder-monitor"),
                {"command": "/old/koder-monitor", "args": ["mcp"]},
            ),
        ),
    )
    text = old.text.replace('["mcp"]\n', '["mcp"]\nenabled = false\n')
    edited = install(text, WANTED)
    assert tomllib.loads(edited.text) == {
        "a": 1,
        "hooks": OURS["hooks"],
        "mcp_servers": {"koder-monitor": {**SERVER, "enabled": False}},
    }
    assert [f"{c.sign} {c.where}" for c in edited.changes] == [
        "- hooks",
        "~ hooks.Stop",
        "+ hooks.Start",
        "~ mcp_servers.koder-monitor",
    ]


def test_what_was_added_below_our_server_goes_with_it() -> None:
    text = install("", WANTED).text + "\n[mcp_servers.koder-monitor.env]\nA = 'b'\n"
    assert install(text, WANTED).text == text
    assert uninstall(text, WANTED).text == ""


def test_a_server_of_our_name_that_is_not_ours_stays() -> None:
    text = '[mcp_servers.koder-monitor]\ncommand = "uvx"\n'
    wanted = Wanted(server=WANTED.server)
    edited = install(text, wanted)
    assert (edited.text, edited.foreign) == (text, ("mcp_servers.koder-monitor",))
    assert uninstall(text, wanted).text == text


def test_a_section_that_others_put_behind_ours_stays() -> None:
    edited = install("a = 1\n", WANTED)
    text = edited.text + "# theirs\n[theirs]\nx = 1 # y\n"
    without = uninstall(text, WANTED)
    assert without.text == "a = 1\n# theirs\n[theirs]\nx = 1 # y\n"
    assert [c.sign for c in without.changes] == ["-"] * 3


def test_only_what_is_asked_for_is_touched() -> None:
    text = install("", WANTED).text
    assert uninstall(text, Wanted()).text == text
    assert install(text, Wanted()).text == text


def test_a_text_with_odd_characters_survives() -> None:
    table = {"command": 'x "\\\x7f\t é', "args": []}
    assert tomllib.loads(toml.shown("[a]", table)) == {"a": table}


def test_a_last_section_without_an_end_of_line_is_whole() -> None:
    [section] = toml.sections("[a]\nb = 1")
    assert (section.path, section.table, section.end) == (("a",), {"b": 1}, 9)
    assert toml.drop("[a]\nb = 1", [section]) == ""
