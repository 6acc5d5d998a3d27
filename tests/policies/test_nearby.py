"""Names that a misspelt slug may have meant (C2.2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.nearby import near_names, same_but_form
from tests.policies.samples import ALWAYS

NFC, NFD = "caf\u00e9.lock", "cafe\u0301.lock"


@pytest.mark.parametrize(
    ("wanted", "present", "near"),
    [
        pytest.param(NFD, [NFC], [NFC], id="B15-unicode-form"),
        pytest.param("x.lock", ["X.LOCK"], ["X.LOCK"], id="B15-case"),
        pytest.param(
            "stra\u00dfe", ["STRASSE"], ["STRASSE"], id="B15-full-case-folding"
        ),
        pytest.param(
            "meta-contxt", ["meta-context"], ["meta-context"], id="letter-lost"
        ),
        pytest.param("kodre", ["koder"], ["koder"], id="letters-swapped"),
        pytest.param("plan", ["plan.lock"], ["plan.lock"], id="ending-forgotten"),
        pytest.param("plan", ["plax"], ["plax"], id="three-letters-of-four"),
        pytest.param(
            "ab" * 120, ["ab" * 119 + "ba"], ["ab" * 119 + "ba"], id="very-long"
        ),
        pytest.param("api", ["frontend", "docs"], [], id="nothing-like-it"),
        pytest.param("api", [], [], id="nothing-there"),
        pytest.param("api", ["api"], [], id="not-itself"),
        pytest.param("ab", ["cd", "abcdef"], [], id="too-far"),
        pytest.param("abcd", ["dcba"], [], id="same-letters-in-another-order"),
        pytest.param(
            "build-api",
            ["build-app", "BUILD-API", "build-apis"],
            ["BUILD-API", "build-apis", "build-app"],
            id="B15-case-first-then-the-closest",
        ),
        pytest.param(
            "job-0",
            ["job-4", "job-3", "job-2", "job-1"],
            ["job-1", "job-2", "job-3"],
            id="three-at-most",
        ),
    ],
)
def test_a_near_name_is_named(wanted: str, present: list[str], near: list[str]) -> None:
    assert near_names(wanted, present) == near


@ALWAYS
@given(st.text(), st.lists(st.text(), max_size=8))
def test_only_names_that_are_there_are_named(wanted: str, present: list[str]) -> None:
    near = near_names(wanted, present)
    assert set(near) <= set(present) - {wanted}
    assert len(near) <= 3


@pytest.mark.parametrize(
    ("wanted", "present", "found"),
    [
        pytest.param("x.lock", ["X.LOCK", "y.lock"], ["X.LOCK"], id="B15-case"),
        pytest.param(
            "cafe\u0301.lock", ["caf\u00e9.lock"], ["caf\u00e9.lock"], id="B15-form"
        ),
        pytest.param("a", ["a", "ab", "b"], [], id="another-file"),
    ],
)
def test_beside_a_path_only_another_form_of_its_name_is_meant(
    wanted: str, present: list[str], found: list[str]
) -> None:
    assert same_but_form(wanted, present) == found
