"""What a command of `[wake]` is made of."""

from hypothesis import given
from hypothesis import strategies as st

from policies.waking import NAMES, filled, unknown_names

VALUES = dict.fromkeys(NAMES, "x") | {"line": "a 'b' {session} $(c)", "session": "s-1"}


def test_names_in_braces_are_replaced_and_a_word_stays_one() -> None:
    command = ["agent", "--resume={session}", "{line}", "{}x", "{session}{session}"]
    assert unknown_names(command) == [""]
    del command[3]
    assert filled(command, VALUES) == [
        "agent",
        "--resume=s-1",
        "a 'b' {session} $(c)",
        "s-1s-1",
    ]


def test_a_name_that_means_nothing_is_found() -> None:
    assert unknown_names(["a", "{sesion}", "{line} {x}"]) == ["sesion", "x"]
    assert unknown_names(["{", "}", "{line}"]) == []


@given(st.lists(st.sampled_from([*NAMES, "word"])), st.text())
def test_no_value_makes_more_words_or_names(names: list[str], value: str) -> None:
    command = [f"{{{name}}}" if name in NAMES else name for name in names]
    said = filled(command, dict.fromkeys(NAMES, value))
    assert said == [value if name in NAMES else name for name in names]
