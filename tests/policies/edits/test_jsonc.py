"""JSON with comments is changed where it is asked to be, and nowhere else."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.edits import UnreadableError, cut, newline_of
from policies.edits.jsonc import append, drop, find, put, read, shown_path
from policies.model import Json
from tests.policies.edits.documents import KEYS, VALUES, documents

ENTRY: dict[str, Any] = {"command": "x"}


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        '{"a": [1, 2.5, -3e2, true, false, null, "x\\n\\u00e9\\""]}',
        '[[], {}, {"a": {}}]',
        '"text"',
        "  7  ",
    ],
)
def test_what_is_json_is_read_as_json(text: str) -> None:
    assert read(text).value == json.loads(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('\ufeff{"a": 1}', {"a": 1}),
        ('// c\n{"a": 1, /* d */ } // e', {"a": 1}),
        ("[1, 2,]", [1, 2]),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ('{"url": "http://x/*y*/"}', {"url": "http://x/*y*/"}),
    ],
)
def test_comments_commas_and_marks_are_no_part_of_the_value(
    text: str, value: object
) -> None:
    assert read(text).value == value


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("{", 1),
        ('{"a": 1', 1),
        ('{\n"a" 1}', 2),
        ('{\n"a":\n}', 3),
        ("[1 2]", 1),
        ("[1,,2]", 1),
        ("[,]", 1),
        ("{a: 1}", 1),
        ("{'a': 1}", 1),
        ('{"a": nan}', 1),
        ("[NaN]", 1),
        ("[Infinity]", 1),
        ("[01]", 1),
        ("{} {}", 1),
        ("{}\n]", 2),
        ("[1]\n/* open", 2),
        ('["a\nb"]', 1),
        ('["\\q"]', 1),
        ("[\u00a01]", 1),
        ("[" * 300 + "]" * 300, 1),
    ],
)
def test_what_is_no_json_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(UnreadableError) as caught:
        read(text)
    assert caught.value.line == line
    assert f"(line {line})" in str(caught.value)


@settings(deadline=None, max_examples=60)
@given(documents(VALUES))
def test_a_document_with_comments_can_be_read(text: str) -> None:
    read(text)


@settings(deadline=None, max_examples=60)
@given(st.data(), VALUES)
def test_comments_change_nothing_of_the_value(data: st.DataObject, value: Json) -> None:
    assert read(data.draw(documents(st.just(value)))).value == value


@settings(deadline=None, max_examples=60)
@given(st.data(), st.dictionaries(KEYS, VALUES, max_size=4), KEYS, VALUES)
def test_a_member_goes_in_and_out_again_without_a_trace(
    data: st.DataObject, value: dict[str, Any], key: str, new: Json
) -> None:
    text = data.draw(documents(st.just(value)))
    if key in value:
        return
    added = put(text, [key], new)
    assert read(added).value == {**value, key: new}
    assert drop(added, [key]) == text


@settings(deadline=None, max_examples=60)
@given(st.data(), st.lists(VALUES, max_size=4), VALUES)
def test_an_element_goes_in_and_out_again_without_a_trace(
    data: st.DataObject, value: list[Any], new: Json
) -> None:
    text = data.draw(documents(st.just({"list": value})))
    added = append(text, ["list"], new)
    assert read(added).value == {"list": [*value, new]}
    assert drop(added, ["list", len(value)]) == text


@settings(deadline=None, max_examples=60)
@given(st.data(), st.lists(VALUES, min_size=1, max_size=4))
def test_any_element_can_be_dropped_from_any_place(
    data: st.DataObject, value: list[Any]
) -> None:
    text = data.draw(documents(st.just(value)))
    index = data.draw(st.integers(0, len(value) - 1))
    assert read(drop(text, [index])).value == value[:index] + value[index + 1 :]


@settings(deadline=None, max_examples=60)
@given(st.data(), st.dictionaries(KEYS, VALUES, min_size=1, max_size=4), VALUES)
def test_a_value_is_replaced_and_all_else_stays(
    data: st.DataObject, value: dict[str, Any], new: Json
) -> None:
    text = data.draw(documents(st.just(value)))
    key = data.draw(st.sampled_from(sorted(value)))
    assert read(put(text, [key], new)).value == {**value, key: new}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{}", '{\n  "a": {\n    "b": 1\n  }\n}'),
        ('{"x": 1}', '{"x": 1, "a": {"b": 1}}'),
        ('{"x": 1,}', '{"x": 1, "a": {"b": 1},}'),
        ('{\n\t"x": 1\n}\n', '{\n\t"x": 1,\n\t"a": {\n\t\t"b": 1\n\t}\n}\n'),
        (
            '{\r\n    "x": 1 // c\r\n}',
            '{\r\n    "x": 1, // c\r\n    "a": {\r\n        "b": 1\r\n    }\r\n}',
        ),
        (
            '{\n  "x": 1, // c\n}',
            '{\n  "x": 1, // c\n  "a": {\n    "b": 1\n  },\n}',
        ),
        ("{ // c\n}", '{\n  "a": {\n    "b": 1\n  } // c\n}'),
        ('{"a": {}}', '{"a": {"b": 1}}'),
        ('{\n  "a": {}\n}', '{\n  "a": {\n    "b": 1\n  }\n}'),
        ('{\n  "a": { }\n}', '{\n  "a": {\n    "b": 1\n  }\n}'),
    ],
)
def test_what_is_put_in_looks_like_what_is_there(text: str, shown: str) -> None:
    assert put(text, ["a", "b"], 1) == shown


def test_an_array_that_is_not_there_is_made() -> None:
    assert read(append("{}", ["a", "b"], ENTRY)).value == {"a": {"b": [ENTRY]}}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a": 1}', ["a", "b"]),
        ('{"a": []}', ["a", "b"]),
        ("[]", ["a"]),
        ('{"a": [1]}', ["a", 7]),
    ],
)
def test_what_is_something_else_is_not_replaced(text: str, path: list[Any]) -> None:
    with pytest.raises(UnreadableError, match="something else"):
        put(text, path, 1)


def test_nothing_is_appended_to_what_is_no_array() -> None:
    with pytest.raises(UnreadableError, match="a is something else"):
        append('{"a": {}}', ["a"], 1)


@pytest.mark.parametrize("path", [["b"], ["a", "b"], ["a", 0]])
def test_what_is_not_there_cannot_be_dropped(path: list[Any]) -> None:
    with pytest.raises(UnreadableError, match="nothing at"):
        drop('{"a": 1}', path)


def test_a_comment_does_not_swallow_the_bracket_behind_what_goes() -> None:
    assert read(drop("[1, // c\n2]", [1])).value == [1]


def test_a_value_is_found_by_its_path() -> None:
    root = read('{"a": [{"b": 7}]}')
    found = find(root, ("a", 0, "b"))
    assert found is not None
    assert found.value == 7
    assert find(root, ("a", 1)) is None
    assert find(root, ("x", "y")) is None
    assert shown_path(("a", 0, "b")) == "a.0.b"


def test_lines_and_pieces() -> None:
    assert newline_of("a\r\nb") == "\r\n"
    assert newline_of("a") == "\n"
    assert cut("abcdef", (4, 5), (0, 2)) == "cdf"
