"""Who holds a lock, from a file that nobody trusts (C3.8)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.holder import CONTENT_LIMIT, Holder, parse_holder, same_host
from policies.target import MAX_PID
from tests.policies.samples import ALWAYS, json_values

FRONT = """---
Session: abc-1
host : box
pid: 4242
since: 2026-03-01T12:00:00Z
paths:
  - src/**
  - "docs/a b"
---
# Lock
session: not-this-one
"""
WHOLE = Holder(
    session="abc-1",
    host="box",
    pid=4242,
    since="2026-03-01T12:00:00Z",
    paths=("src/**", "docs/a b"),
)


@pytest.mark.parametrize(
    ("content", "holder"),
    [
        pytest.param(FRONT, WHOLE, id="front-matter"),
        pytest.param("\ufeff\n" + FRONT, WHOLE, id="front-matter-behind-a-mark"),
        pytest.param(FRONT.replace("\n", "\r\n"), WHOLE, id="front-matter-of-Windows"),
        pytest.param(
            "---\nhost: 'box'\npaths: [a, 'b', , ]\n---\n",
            Holder(host="box", paths=("a", "b")),
            id="list-on-one-line",
        ),
        pytest.param(
            "---\npaths: src\n---", Holder(paths=("src",)), id="one-path-without-a-list"
        ),
        pytest.param(
            "---\nhost: a\n- b\nnonsense\n---",
            Holder(host="a"),
            id="lines-that-are-odd",
        ),
        pytest.param(
            "---\npaths: # where\n- src # comment\n- a#b\n- '#c d' # e\n- \"f # g\"\n"
            "- it's # h\n- # i\n- 'j # k\n---",
            Holder(paths=("src", "a#b", "#c d", "f # g", "it's", "'j # k")),
            id="comments-behind-items",
        ),
        pytest.param(
            "---\nhost: box # mine\npid: 7\t# x\npaths: [a, 'b # c', d#] # e\n---",
            Holder(host="box", pid=7, paths=("a", "b # c", "d#")),
            id="comments-behind-values",
        ),
        pytest.param("---\nhost: box\n", Holder(), id="B11-front-matter-half-written"),
        pytest.param("---\nsession:\npid: x\n---", Holder(), id="values-missing"),
        pytest.param(
            "---\nsession: s1\nmonitor: a1b2-3\n---\n",
            Holder(session="s1", monitor="a1b2-3"),
            id="taken-by-us",
        ),
        pytest.param("---\nmonitor:\n---\n", Holder(), id="taken-for-nobody"),
        pytest.param("999999\nbox\n", Holder(pid=999999, host="box"), id="B09"),
        pytest.param("  7\r\n\n box ", Holder(pid=7, host="box"), id="B09-with-blanks"),
        pytest.param("box\n999999\n", Holder(), id="host-first"),
        pytest.param("999999\nbox\nmore\n", Holder(), id="three-lines"),
        pytest.param("999999\nmy box\n", Holder(), id="host-of-two-words"),
        pytest.param("999999 box\n", Holder(), id="on-one-line"),
        pytest.param("999999\n", Holder(), id="a-pid-alone"),
        pytest.param("0\nbox\n", Holder(), id="no-such-pid"),
        pytest.param("٣\nbox\n", Holder(), id="arabic-digit"),
        pytest.param("", Holder(), id="B11-empty"),
        pytest.param(" \n\t\n", Holder(), id="B11-blank"),
        pytest.param("held by me", Holder(), id="prose"),
    ],
)
def test_a_lock_file_names_its_holder(content: str, holder: Holder) -> None:
    assert parse_holder(content.encode()) == holder
    assert bool(parse_holder(content.encode())) == (holder != Holder())


@pytest.mark.parametrize(
    ("content", "holder"),
    [
        pytest.param(
            '{"session":"abc-1","host":"box","pid":4242,"since":"now","paths":["a",1,""]}',
            Holder(session="abc-1", host="box", pid=4242, since="now", paths=("a",)),
            id="whole",
        ),
        pytest.param(' \n{"pid": "77"}', Holder(pid=77), id="pid-as-text"),
        pytest.param('{"paths": "src"}', Holder(paths=("src",)), id="one-path"),
        pytest.param('{"monitor": "a1-2"}', Holder(monitor="a1-2"), id="taken-by-us"),
        pytest.param('{"monitor": 12}', Holder(), id="mark-of-another-type"),
        pytest.param('{"paths": {"a": 1}}', Holder(), id="paths-of-another-type"),
        pytest.param('{"pid": true}', Holder(), id="truth-is-no-pid"),
        pytest.param('{"pid": 0}', Holder(), id="zero-is-no-pid"),
        pytest.param('{"pid": -1}', Holder(), id="negative-pid"),
        pytest.param('{"pid": 42.5}', Holder(), id="fraction"),
        pytest.param('{"pid": 1e999}', Holder(), id="infinite-pid"),
        pytest.param(f'{{"pid": {MAX_PID}}}', Holder(pid=MAX_PID), id="largest-pid"),
        pytest.param(f'{{"pid": {MAX_PID + 1}}}', Holder(), id="too-large-a-pid"),
        pytest.param(
            '{"pid": "041943049"}', Holder(), id="no-pid-out-of-a-longer-number"
        ),
        pytest.param('{"pid": %s}' % ("9" * 5000), Holder(), id="endless-number"),
        pytest.param('{"session": ["a"], "host": 5}', Holder(), id="other-types"),
        pytest.param('{"session": ""}', Holder(), id="empty-text"),
        pytest.param('{"session": "abc', Holder(), id="B11-half-written"),
        pytest.param('{"a":' * 20_000, Holder(), id="B11-deeply-nested"),
        pytest.param("{}", Holder(), id="empty-object"),
        pytest.param('{"session": "a"} trailing', Holder(), id="text-behind-it"),
        pytest.param("[1]", Holder(), id="no-object"),
    ],
)
def test_a_json_lock_names_its_holder(content: str, holder: Holder) -> None:
    assert parse_holder(content.encode()) == holder


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"1" + b"\n" * CONTENT_LIMIT, id="digit-and-blank-lines"),
        pytest.param(b"1" + b"\n" * 30000 + b"a" * 30000 + b" b", id="and-a-long-word"),
        pytest.param(b" " * CONTENT_LIMIT, id="blanks"),
        pytest.param(b"---\n" + b"a" * CONTENT_LIMIT, id="name-without-a-colon"),
        pytest.param(b"---\n" + b"-:" * 32000, id="colons"),
        pytest.param(bytes(range(256)) * 256, id="every-byte"),
    ],
)
def test_no_content_takes_long_to_read_b11(content: bytes) -> None:
    """A pattern with three runs of blanks once took half a minute on blank lines."""
    assert parse_holder(content) == Holder()


def test_only_the_start_of_a_file_is_read_b11() -> None:
    padding = " " * CONTENT_LIMIT
    assert parse_holder(f'{padding}{{"pid": 7}}'.encode()) == Holder()


def test_a_long_value_is_kept_short() -> None:
    content = json.dumps({"session": "a" * 50_000}).encode()
    assert parse_holder(content).session == "a" * 4096


text_files = st.binary() | json_values.map(lambda value: json.dumps(value).encode())
fields = st.dictionaries(
    st.sampled_from(["session", "host", "pid", "since", "paths", "monitor"]),
    json_values,
)


@ALWAYS
@given(
    text_files
    | st.binary().map(lambda rest: b"---\n" + rest + b"\n---")
    | fields.map(lambda value: json.dumps(value).encode())
)
def test_whatever_a_file_holds_a_holder_is_well_formed(content: bytes) -> None:
    holder = parse_holder(content)
    assert holder.pid is None or 0 < holder.pid <= MAX_PID
    for value in (
        holder.session,
        holder.host,
        holder.since,
        holder.monitor,
        *holder.paths,
    ):
        assert value is None or value


@pytest.mark.parametrize(
    ("named", "same"),
    [("box", True), ("BOX", True), ("box.lan", False), ("other", False), (None, False)],
)
def test_a_holder_is_judged_only_on_its_own_host_b09(
    named: str | None,
    same: bool,
) -> None:
    assert same_host(named, "box") is same
