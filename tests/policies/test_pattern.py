"""How large an expression becomes once its repetitions are written out."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.pattern import MOST, items


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("", 0),
        ("PASS", 4),
        (r"\bALL PASS\b", 10),
        ("a{3}", 3),
        ("a{3,}", 3),
        ("a{,5}b", 2),
        ("a{0}b", 2),
        ("(ab){4}c", 9),
        ("(a{10}){10}", 100),
        ("((a{10}){10}){10}", 1000),
        ("[a-z{2}]{3}", 3),
        ("[]a]{2}", 2),
        (r"[^\]]{2}", 2),
        (r"\d{4}-\d{2}-\d{2}", 10),
        (r"a\{9999999\}", 10),
        ("(){5}", 5),
        ("a)", 2),
        ("(a", 1),
        ("[a", 1),
        ("\\", 1),
    ],
)
def test_repetitions_are_written_out(pattern: str, count: int) -> None:
    assert items(pattern) == count


@pytest.mark.parametrize(
    "pattern", ["x{4294967294}", "(x{1000}){1000}", "(a{999}){999}b"]
)
def test_what_would_take_all_memory_is_too_large(pattern: str) -> None:
    assert items(pattern) > MOST


@st.composite
def written(draw: st.DrawFn, depth: int = 2) -> tuple[str, int]:
    """Draw an expression of letters and repeated groups, and how many letters it is."""
    pattern, count = "", 0
    for _ in range(draw(st.integers(1, 3))):
        times = draw(st.integers(1, 5))
        if depth and draw(st.booleans()):
            inner, inside = draw(written(depth - 1))
            pattern, count = f"{pattern}({inner}){{{times}}}", count + inside * times
        else:
            pattern, count = f"{pattern}a{{{times}}}", count + times
    return pattern, count


@given(written())
def test_it_is_as_many_items_as_have_to_match(drawn: tuple[str, int]) -> None:
    pattern, count = drawn
    assert items(pattern) == count
    assert re.fullmatch(pattern, "a" * count)
