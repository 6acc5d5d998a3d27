"""Foreign text: shown, never obeyed (C2.4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.delivery import MESSAGE_LIMIT
from policies.text import CUT_MARK, clean, cut
from tests.policies.samples import ALWAYS, foreign, unfit


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("\x1b]0;x\a", "\\x1b]0;x\\x07", id="B104-window-title"),
        pytest.param("\x1b[2J", "\\x1b[2J", id="B104-clear-screen"),
        pytest.param("\x9b31m", "\\x9b31m", id="B104-C1-introducer"),
        pytest.param("\x07", "\\x07", id="B104-bell"),
        pytest.param("a\u202eb", "a\\u202eb", id="B104-bidi-override"),
        pytest.param("a\u2066b\u2069", "a\\u2066b\\u2069", id="B104-bidi-isolate"),
        pytest.param("\x7f", "\\x7f", id="B104-DEL"),
        pytest.param("x\udcff.lock", "x\\xff.lock", id="B17-byte-that-was-no-utf-8"),
        pytest.param("\udc80", "\\x80", id="B17-the-least-of-such-bytes"),
        pytest.param("\ud83d\udd00", "\\ud83d\\udd00", id="B17-lone-surrogates"),
        pytest.param("a\nb\rc\td", "a\\nb\\rc\\td", id="B100-line-ends"),
        pytest.param(
            "a\u2028b\u2029c\x85d", "a\\u2028b\\u2029c\\x85d", id="separators"
        ),
        pytest.param("a\0b", "a\\x00b", id="NUL"),
        pytest.param("\U000e0041", "\\U000e0041", id="invisible-tag"),
        pytest.param("a\u200bb\ufeff", "a\\u200bb\\ufeff", id="zero-width"),
    ],
)
def test_what_could_steer_a_terminal_is_shown_escaped(text: str, shown: str) -> None:
    assert clean(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("build da API", id="plain"),
        pytest.param("✅ café ☕ 日本", id="B100-emoji-and-other-scripts"),
        pytest.param("👩\u200d💻 \u0645\u06cc\u200c\u062e", id="joiners"),
        pytest.param("a\\nb 'c' \"d\" $(e) <f>", id="quotes-and-backslashes"),
    ],
)
def test_what_is_harmless_is_left_alone(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        pytest.param("a" * 20, 20, "a" * 20, id="just-fits"),
        pytest.param("a" * 21, 20, "a" * 10 + CUT_MARK, id="one-too-long"),
        pytest.param(
            "✅" * 21, 20, "✅" * 10 + CUT_MARK, id="B102-characters-not-bytes"
        ),
        pytest.param("a" * 21, 10, CUT_MARK, id="no-room-but-for-the-mark"),
    ],
)
def test_a_text_is_cut_between_characters_and_says_so(
    text: str, limit: int, shown: str
) -> None:
    assert cut(text, limit) == shown
    assert clean(text, limit) == shown


def test_an_escape_that_grows_over_the_limit_is_cut_as_well() -> None:
    assert clean("\0" * 6, 20) == "\\x00\\x00\\x" + CUT_MARK


@pytest.mark.parametrize("char", ["a", "é", "✅", "\0"])
def test_a_message_of_any_length_is_one_that_a_service_takes_b102(char: str) -> None:
    shown = clean(char * 300_000, MESSAGE_LIMIT)
    assert len(shown) == MESSAGE_LIMIT < 4096
    assert shown.endswith(CUT_MARK)


@ALWAYS
@given(foreign)
def test_whatever_comes_in_what_comes_out_is_one_fit_line(text: str) -> None:
    shown = clean(text)
    assert unfit(shown) == set()
    assert len(shown.splitlines()) <= 1
    assert shown.encode().decode() == shown
    assert clean(shown) == shown


@ALWAYS
@given(foreign, st.integers(len(CUT_MARK), 300))
def test_a_limit_cuts_the_cleaned_text(text: str, limit: int) -> None:
    shown = clean(text, limit)
    assert len(shown) <= limit
    assert shown == cut(clean(text), limit)
