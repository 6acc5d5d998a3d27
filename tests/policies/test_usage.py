"""How much of a context window is used, and when that is enough (C11.2)."""

import pytest

from policies.usage import (
    Source,
    Used,
    direct,
    number,
    of_size,
    of_tokens,
    triggers,
    window_of,
)
from policies.values import Json

BIG = 1_000_000

# --- when


@pytest.mark.parametrize(
    ("percent", "fires"),
    [
        pytest.param(69.9, False, id="F62-below"),
        pytest.param(69.999, False, id="F62-not-rounded-up"),
        pytest.param(70, True, id="F62-at"),
        pytest.param(100, True, id="full"),
    ],
)
def test_a_session_is_handed_over_at_the_threshold_and_not_before(
    percent: float, fires: bool
) -> None:
    assert triggers(Used(percent, Source.DIRECT), 70.0) is fires


def test_an_unknown_figure_hands_nothing_over() -> None:
    assert not triggers(None, 0.0)


# --- the sources of the percentage


@pytest.mark.parametrize("percent", [0, 0.5, 25, 69.9, 70, 100])
def test_the_payload_says_it_directly(percent: float) -> None:
    assert direct({"used_percentage": percent}) == Used(percent, Source.DIRECT)


@pytest.mark.parametrize(
    "percent", [None, "80", True, -1, 101, float("nan"), float("inf"), [], {}]
)
def test_what_is_no_percentage_says_nothing(percent: Json) -> None:
    assert direct({"used_percentage": percent}) is None
    assert direct({}) is None


@pytest.mark.parametrize(
    ("value", "found"),
    [(3, 3.0), (0.5, 0.5), (True, None), ("3", None), (float("nan"), None)],
)
def test_only_a_finite_number_is_a_number(value: Json, found: float | None) -> None:
    assert number(value) == found


@pytest.mark.parametrize(
    ("window", "model", "size", "source"),
    [
        pytest.param(200_000, "claude-opus-4-7", 200_000, "payload-size", id="payload"),
        pytest.param(None, "claude-opus-4-7", BIG, "model-map", id="opus"),
        pytest.param(None, "claude-sonnet-4-6", 200_000, "model-map", id="sonnet"),
        pytest.param(
            None, "claude-sonnet-4-6-20260101", 200_000, "model-map", id="with-a-date"
        ),
        pytest.param(
            None, "us.vendor.claude-haiku-4-5-v1:0", 200_000, "model-map", id="haiku"
        ),
        pytest.param(None, "claude-sonnet-4-6[1m]", BIG, "model-map", id="suffix"),
        pytest.param(None, "Claude Opus 4.7", BIG, "model-map", id="as-shown"),
        pytest.param(None, "claude-sonnet-4-61", BIG, "default-1m", id="another"),
        pytest.param(None, "something-else", BIG, "default-1m", id="F79-unknown"),
        pytest.param(None, None, BIG, "default-1m", id="none"),
        pytest.param(0, None, BIG, "default-1m", id="no-size"),
        pytest.param("200000", None, BIG, "default-1m", id="a-text"),
    ],
)
def test_the_window_is_the_payloads_else_the_models_else_the_biggest(
    window: Json, model: str | None, size: float, source: str
) -> None:
    assert window_of({"context_window_size": window}, model) == (size, Source(source))


@pytest.mark.parametrize(
    ("size", "window", "fires", "percent"),
    [
        pytest.param(489_999, 200_000, False, 70, id="F80-200k-below"),
        pytest.param(490_000, 200_000, True, 70, id="F80-200k-at"),
        pytest.param(2_449_999, BIG, False, 70, id="F80-1m-below"),
        pytest.param(2_450_000, BIG, True, 70, id="F80-1m-at"),
        pytest.param(600_000, 200_000, True, 86, id="F80-86"),
        pytest.param(600_000, BIG, False, 17, id="not-five-times-too-early"),
        pytest.param(9_000_000, 200_000, True, 100, id="never-above-100"),
    ],
)
def test_the_estimate_takes_three_and_a_half_characters_for_a_token(
    size: int, window: int, fires: bool, percent: int
) -> None:
    used = of_size(size, {"context_window_size": window}, None)
    assert triggers(used, 70.0) is fires
    assert round(used.percent) == percent
    assert used.source is Source.PAYLOAD_SIZE


def test_tokens_are_a_share_of_the_window() -> None:
    assert of_tokens(140_000, {}, "claude-haiku-4-5") == Used(70, Source.TRANSCRIPT)
    assert of_tokens(140_000, {}, None) == Used(14, Source.TRANSCRIPT)
    whole = {"context_window_size": 100_000}
    assert of_tokens(140_000, whole, None) == Used(100, Source.TRANSCRIPT)


def test_more_tokens_than_a_models_window_holds_are_in_a_bigger_one() -> None:
    assert of_tokens(250_000, {}, "claude-sonnet-4-6") == Used(25, Source.TRANSCRIPT)
