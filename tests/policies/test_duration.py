"""Durations: exactly right or refused (C1.3), and how spans are written."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.duration import (
    format_countdown,
    format_duration,
    format_minutes,
    parse_duration,
    parse_settle,
)
from tests.policies.samples import ALWAYS

YEAR_S = 365 * 86400
UNITS_S = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def exactly(text: str) -> str:
    return rf"\A{re.escape(text)}\Z"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("90", 90, id="B85-plain-number-is-seconds"),
        pytest.param("1h30m", 5400, id="B85-hours-and-minutes"),
        pytest.param("45s", 45, id="seconds"),
        pytest.param("30m", 1800, id="minutes"),
        pytest.param("19h", 68400, id="hours"),
        pytest.param("2d", 172800, id="days"),
        pytest.param("1d2h3m4s", 93784, id="every-unit"),
        pytest.param("1d4s", 86404, id="units-left-out"),
        pytest.param("120m", 7200, id="more-than-an-hour-of-minutes"),
        pytest.param("60d", 5184000, id="B87-two-months"),
        pytest.param("365d", YEAR_S, id="B87-the-most-in-days"),
        pytest.param("31536000", YEAR_S, id="B87-the-most-in-seconds"),
        pytest.param("1", 1, id="the-least"),
    ],
)
def test_a_duration_means_so_many_seconds(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("1h30", id="B85-number-without-a-unit"),
        pytest.param("1.5h", id="B85-fraction"),
        pytest.param("1h 30m", id="B85-blank"),
        pytest.param("1H", id="B85-capital"),
        pytest.param("30m1h", id="B85-smallest-first"),
        pytest.param("1h1h", id="B85-unit-twice"),
        pytest.param("-5m", id="B85-negative"),
        pytest.param("0", id="B85-zero"),
        pytest.param("", id="B85-empty"),
        pytest.param("inf", id="B85-infinite"),
        pytest.param("nan", id="B85-not-a-number"),
        pytest.param("1e3s", id="B85-exponent"),
        pytest.param("٣h", id="B85-arabic-digit"),
        pytest.param("3650d", id="B87-ten-years"),
        pytest.param("9999999999s", id="B87-centuries"),
        pytest.param("1e30s", id="B87-for-ever"),
        pytest.param("366d", id="B87-a-day-too-long"),
        pytest.param("31536001", id="B87-a-second-too-long"),
        pytest.param("365d1s", id="B87-a-second-too-long-in-units"),
        pytest.param("9" * 5000, id="B87-more-digits-than-python-converts"),
        pytest.param("0s", id="zero-seconds"),
        pytest.param("0d0h0m0s", id="zero-in-every-unit"),
        pytest.param("h", id="unit-without-a-number"),
        pytest.param("1w", id="unknown-unit"),
        pytest.param("250ms", id="milliseconds-are-for-settle"),
        pytest.param("+5", id="sign"),
        pytest.param("1_000", id="underscore"),
        pytest.param("1,5h", id="comma"),
        pytest.param("45s\n", id="newline-behind"),
        pytest.param(" 45s", id="blank-before"),
        pytest.param("\uff1045", id="wide-digit"),
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=exactly(text)):
        parse_duration(text)


@ALWAYS
@given(st.dictionaries(st.sampled_from("dhms"), st.integers(0, 10**6), min_size=1))
def test_units_add_up_or_are_refused_as_zero_or_too_long(parts: dict[str, int]) -> None:
    text = "".join(f"{parts[unit]}{unit}" for unit in "dhms" if unit in parts)
    seconds = sum(number * UNITS_S[unit] for unit, number in parts.items())
    if 0 < seconds <= YEAR_S:
        assert parse_duration(text) == seconds
    else:
        with pytest.raises(ValueError, match=text):
            parse_duration(text)


@ALWAYS
@given(st.text("0123456789dhms .-e") | st.text())
def test_no_text_is_silently_something_else(text: str) -> None:
    try:
        seconds = parse_duration(text)
    except ValueError:
        return
    parts = re.findall(r"([0-9]+)([dhms]?)", text)
    units = [unit for _, unit in parts]
    assert "".join(number + unit for number, unit in parts) == text
    assert units == [""] or units == sorted(set(units), key="dhms".index)
    assert seconds == sum(int(number) * UNITS_S[unit or "s"] for number, unit in parts)
    assert 0 < seconds <= YEAR_S


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("250ms", 0.25),
        ("1ms", 0.001),
        ("1500ms", 1.5),
        ("1s", 1.0),
        ("2", 2.0),
        ("1m", 60.0),
    ],
)
def test_a_settle_time_may_be_in_milliseconds(text: str, seconds: float) -> None:
    assert parse_settle(text) == seconds


@pytest.mark.parametrize(
    "text", ["0ms", "000ms", "ms", "-1ms", "1.5ms", "250MS", "1s250ms", "0", "", "٣ms"]
)
def test_any_other_settle_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=exactly(text)):
        parse_settle(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(0, "0s", id="nothing"),
        pytest.param(0.4, "0s", id="less-than-half-a-second"),
        pytest.param(-3, "0s", id="never-below-zero"),
        pytest.param(45, "45s", id="C2.1-under-a-minute-in-seconds"),
        pytest.param(59.6, "1min", id="rounded-up-to-a-minute"),
        pytest.param(60, "1min", id="one-minute"),
        pytest.param(90, "1min30s", id="minutes-and-seconds"),
        pytest.param(3599, "59min59s", id="just-below-an-hour"),
        pytest.param(3600, "60min", id="C1.7-an-hour"),
        pytest.param(3661, "61min", id="no-seconds-above-an-hour"),
        pytest.param(68400, "1140min", id="nineteen-hours"),
    ],
)
def test_a_span_is_written_in_minutes(seconds: float, text: str) -> None:
    assert format_minutes(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "00:00"),
        (0.9, "00:00"),
        (59, "00:59"),
        (60, "01:00"),
        (3599.9, "59:59"),
        (3600, "1:00:00"),
        (90061, "25:01:01"),
    ],
)
def test_a_countdown_shows_the_time_left(seconds: float, text: str) -> None:
    assert format_countdown(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(45, "45s"), (1800, "30m"), (5400, "1h30m"), (172800, "2d"), (93784, "1d2h3m4s")],
)
def test_a_duration_is_written_as_it_is_read(seconds: int, text: str) -> None:
    assert format_duration(seconds) == text


@ALWAYS
@given(st.integers(1, YEAR_S))
def test_a_duration_that_was_written_is_read_again(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds
