"""Durations as people write them (C1.3)."""

import re

_YEAR_S = 365 * 86400
_UNITS = re.compile(
    r"(?:(?P<d>[0-9]{1,9})d)?(?:(?P<h>[0-9]{1,9})h)?"
    r"(?:(?P<m>[0-9]{1,9})m)?(?:(?P<s>[0-9]{1,9})s)?"
)
_PLAIN = re.compile(r"[0-9]{1,9}")
_MILLISECONDS = re.compile(r"([0-9]{1,9})ms")
_IN_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def parse_duration(text: str) -> int:
    """Return the seconds that a duration text means (C1.3).

    Whole numbers with the units d, h, m, s, each at most once and the largest first,
    or plain seconds.

    Raises:
        ValueError: for any other text, for zero, and for more than a year.
    """
    if _PLAIN.fullmatch(text):
        seconds = int(text)
    else:
        match = _UNITS.fullmatch(text)
        if match is None:
            raise ValueError(text)
        seconds = sum(
            int(number) * _IN_SECONDS[unit]
            for unit, number in match.groupdict(default="0").items()
        )
    if not 0 < seconds <= _YEAR_S:
        raise ValueError(text)
    return seconds


def parse_settle(text: str) -> float:
    """Return the seconds of a settle time, which may also be written in `ms`.

    Raises:
        ValueError: as for `parse_duration`.
    """
    match = _MILLISECONDS.fullmatch(text)
    if match is None:
        return parse_duration(text)
    if not int(match[1]):
        raise ValueError(text)
    return int(match[1]) / 1000


def format_duration(seconds: int) -> str:
    """Return a duration as `parse_duration` reads it: `45s`, `30m`, `1h30m`, `2d`."""
    words, rest = [], seconds
    for unit, size in _IN_SECONDS.items():
        count, rest = divmod(rest, size)
        words += [f"{count}{unit}"] if count else []
    return "".join(words)


def format_minutes(seconds: float) -> str:
    """Return a time span as outcome lines write it: `45s`, `60min`, `1min30s` (C2.1).

    Whole minutes from an hour up, where seconds no longer help anybody.
    """
    whole = max(0, round(seconds))
    minutes, rest = divmod(whole, 60)
    if not minutes:
        return f"{rest}s"
    return f"{minutes}min" if whole >= 3600 or not rest else f"{minutes}min{rest}s"


def format_countdown(seconds: float) -> str:
    """Return the time left as `H:MM:SS` or `MM:SS`, never below zero."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"
