"""How full a session's context window is, and when to say so (C11.3).

Two scales: the share of the window that a runtime tells, and, where the point at which
that runtime compacts by itself can be told, the share of what is usable before it.
Thresholds count what *remains*.
"""

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from policies.wording import Phrase

EVERY_CALLS: Final = 5
"""Tool calls from one warning to the next of the same level."""

FRESH_S: Final = 60
"""Whole seconds that a figure is believed, and as many after a compaction that none is.

A line that is drawn during a compaction stamps the old figure with a new time.
"""

SKEW_S: Final = 5
"""Seconds that a time may lie ahead of ours."""

CLEAR_MARGIN: Final = 10.0
"""Percent above the first threshold at which a warning has cleared."""

_ON: Final = frozenset({"1", "true", "yes", "on"})
_LEAST_WINDOW, _MOST_WINDOW = 100_000, 1_000_000  # tokens, of a window that is set
_RESERVED = 20_000  # tokens, kept free for the answer: seen, promised by nobody
_BUFFER = 13_000  # tokens, below which the runtime compacts: likewise


class Level(StrEnum):
    """How urgent it is."""

    WARNING = "warning"
    CRITICAL = "critical"


class Thresholds(NamedTuple):
    """Percent that remain, at or below which is spoken of it."""

    warning: float = 35.0
    critical: float = 25.0


class Reading(NamedTuple):
    """One figure of a session's window.

    Attributes:
        remaining: percent, of the window or of what is usable.
        at_s: when it was told, in seconds since the epoch.
        usable: tokens that `remaining` is a share of, None where it is of the window.
        tokens: used of these.
    """

    remaining: float
    at_s: float
    tokens: int = 0
    usable: int | None = None

    @property
    def used(self) -> int:
        """Percent used, rounded half up as everybody who shows it does."""
        return rounded(100 - self.remaining)


class Spoken(NamedTuple):
    """What a session was told so far.

    Attributes:
        level: of the last warning, None while there was none.
        calls: tool calls below the first threshold since then.
        compacted_at_s: when its window was last emptied.
        noted: the first critical warning is in the trail of its watches.
    """

    level: Level | None = None
    calls: int = 0
    compacted_at_s: float | None = None
    noted: bool = False


def rounded(percent: float) -> int:
    """Return a percentage as a whole number, half up."""
    return math.floor(percent + 0.5)


def percentage(value: object) -> float | None:
    """Return a number from 0 to 100; None for whatever else there is."""
    number = _number(value)
    return number if number is not None and 0 <= number <= 100 else None


def thresholds(warning: object, critical: object, default: Thresholds) -> Thresholds:
    """Return the thresholds that two settings come to.

    What is absent or no percentage is the default's; a pair whose critical one is not
    below the other is no pair, and both are the default's.
    """
    asked = Thresholds(
        _or(percentage(warning), default.warning),
        _or(percentage(critical), default.critical),
    )
    return asked if asked.critical < asked.warning else default


def reading_of(value: object, session: str) -> Reading | None:
    """Return what a file of metrics says of a session; None where it says nothing."""
    if not isinstance(value, Mapping) or value.get("session_id", session) != session:
        return None
    remaining = percentage(value.get("remaining_percentage"))
    at_s = _number(value.get("timestamp"))
    if remaining is None or at_s is None:
        return None
    tokens = _count(value.get("used_tokens"))
    usable = _count(value.get("threshold_tokens"))
    if tokens is None or not usable:
        return Reading(remaining, at_s)
    return Reading(remaining, at_s, tokens, usable)


def metrics_of(reading: Reading, session: str) -> dict[str, object]:
    """Return what stands in a file of metrics: the names are not ours to choose."""
    metrics: dict[str, object] = {
        "session_id": session,
        "remaining_percentage": reading.remaining,
        "used_pct": reading.used,
        "timestamp": int(reading.at_s),
    }
    if reading.usable is not None:
        metrics["used_tokens"] = reading.tokens
        metrics["threshold_tokens"] = reading.usable
    return metrics


def window_reading(
    window: object,
    at_s: float,
    env: Mapping[str, str],
    settings: Sequence[object] | None,
) -> Reading | None:
    """Return the figure of a runtime's `context_window`, None while it has none.

    Args:
        window: the object as it came; null figures are unknown, as they are in a new
            session and just after a compaction.
        at_s: the time.
        env: the runtime's environment.
        settings: the objects of its settings files, the one that goes first in front;
            None for a runtime of which nobody knows when it compacts.
    """
    if not isinstance(window, Mapping):
        return None
    used = _used_share(window)
    size = _count(window.get("context_window_size"))
    tokens = _used_tokens(window.get("current_usage"))
    if not size:
        return None if used is None else Reading(100 - used, at_s)
    if tokens is None and used is not None:
        tokens = rounded(used * size / 100)
    if tokens is None:
        return None
    if settings is None:
        share = min(100.0, tokens * 100 / size) if used is None else used
        return Reading(100 - share, at_s)
    usable = compact_point(size, env, settings)
    share = min(100, rounded(tokens * 100 / usable))
    return Reading(float(100 - share), at_s, tokens, usable)


def compact_point(
    window: int, env: Mapping[str, str], settings: Sequence[object]
) -> int:
    """Return the tokens at which a window is compacted by itself; all if it never is.

    Args:
        window: tokens of the model's window, at least 1.
        env: the runtime's environment, which goes before its settings.
        settings: the objects of its settings files, the one that goes first in front.
    """
    if _is_off(env, settings):
        return window
    asked = _asked_window(env, settings)
    held = window if asked is None else min(window, asked)
    point = held - _RESERVED - _BUFFER
    override = _float(env.get("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", ""))
    if override is not None and 0 < override <= 100:
        point = min(point, math.floor((held - _RESERVED) * override / 100))
    return point if point > 0 else window


def is_usable(reading: Reading, now_s: float, compacted_at_s: float | None) -> bool:
    """Say whether a figure can be spoken of: neither old, nor ahead, nor of before."""
    if not -SKEW_S <= int(now_s) - int(reading.at_s) <= FRESH_S or reading.at_s <= 0:
        return False
    if compacted_at_s is None or compacted_at_s > now_s + SKEW_S:
        return True
    return int(reading.at_s) > int(compacted_at_s) + FRESH_S


def heard(
    spoken: Spoken, remaining: float, limits: Thresholds
) -> tuple[Spoken, Level | None]:
    """Return what a session is told at a tool call, and what was spoken by then.

    The first time at once, then at every fifth call, and at once when it has become
    critical. It starts anew when the warning has clearly passed.
    """
    level = _level(remaining, limits)
    if level is None:
        if remaining >= min(100.0, limits.warning + CLEAR_MARGIN):
            return spoken._replace(level=None, calls=0, noted=False), None
        return spoken, None
    calls = spoken.calls + 1
    worse = level is Level.CRITICAL and spoken.level is Level.WARNING
    if spoken.level is None or calls >= EVERY_CALLS or worse:
        return spoken._replace(level=level, calls=0), level
    return spoken._replace(calls=calls), None


def emptied(at_s: float) -> Spoken:
    """Return what was spoken to a session whose window is being emptied: nothing."""
    return Spoken(compacted_at_s=at_s)


def spoken_of(value: object) -> Spoken:
    """Return what a file says was spoken; without a level it says nothing."""
    if not isinstance(value, Mapping):
        return Spoken()
    level, calls = value.get("level"), _count(value.get("calls"))
    return Spoken(
        Level(level) if isinstance(level, str) and level in set(Level) else None,
        calls or 0,
        _number(value.get("compacted_at")),
        value.get("noted") is True,
    )


def spoken_object(spoken: Spoken) -> dict[str, object]:
    """Return what stands in the file that `spoken_of` reads."""
    return {
        "level": spoken.level,
        "calls": spoken.calls,
        "compacted_at": spoken.compacted_at_s,
        "noted": spoken.noted,
    }


def advice(
    level: Level, reading: Reading, *, waits: int, handoff: str | None
) -> "list[Phrase]":
    """Return the sentences for the model: what is so, no commands.

    Args:
        level: how urgent it is.
        reading: the figure.
        waits: watches that the session has armed.
        handoff: path of the handoff that is written already.
    """
    from policies.wording import phrase  # noqa: PLC0415 - most calls say nothing

    left = 100 - reading.used
    sentences = [
        phrase(f"context_{level}", used=reading.used, left=left, scale=_scale(reading)),
        phrase(f"context_{level}_choice")
        if handoff is None
        else phrase("context_handed_off", path=handoff),
    ]
    if waits:
        sentences.append(phrase("context_waits", count=waits))
    return sentences


def _scale(reading: Reading) -> "Phrase":
    from policies.wording import phrase  # noqa: PLC0415 - see above

    if reading.usable is None:
        return phrase("context_of_window")
    return phrase("context_of_usable", tokens=reading.tokens, usable=reading.usable)


def _level(remaining: float, limits: Thresholds) -> Level | None:
    if remaining > limits.warning:
        return None
    return Level.CRITICAL if remaining <= limits.critical else Level.WARNING


def _used_share(window: Mapping[object, object]) -> float | None:
    """Return the percentage used, however a runtime tells it, at most 100."""
    used = _number(window.get("used_percentage"))
    if used is None:
        remaining = _number(window.get("remaining_percentage"))
        used = None if remaining is None else 100 - remaining
    return None if used is None else min(100.0, max(0.0, used))


def _used_tokens(usage: object) -> int | None:
    """Return what the last answer's input came to; some runtimes tell a number."""
    if not isinstance(usage, Mapping):
        return _count(usage)
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    counts = [_count(usage.get(name)) for name in names]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _is_off(env: Mapping[str, str], settings: Sequence[object]) -> bool:
    for name in ("DISABLE_AUTO_COMPACT", "DISABLE_COMPACT"):
        if env.get(name, "").strip().lower() in _ON:
            return True
    switches = (_setting(one, "autoCompactEnabled") for one in settings)
    return next((one for one in switches if isinstance(one, bool)), True) is False


def _asked_window(env: Mapping[str, str], settings: Sequence[object]) -> int | None:
    """Return the window that is set to be used, in tokens."""
    digits = env.get("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "").strip()
    digits = digits.replace("_", "").replace(",", "")
    if digits.isascii() and digits.isdecimal() and 0 < len(digits) < 16 and int(digits):
        return min(_MOST_WINDOW, max(_LEAST_WINDOW, int(digits)))
    counts = (_count(_setting(one, "autoCompactWindow")) for one in settings)
    return next(
        (one for one in counts if one and _LEAST_WINDOW <= one <= _MOST_WINDOW), None
    )


def _setting(settings: object, name: str) -> object:
    return settings.get(name) if isinstance(settings, Mapping) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 10**15 else None


def _float(text: str) -> float | None:
    try:
        return _number(float(text))
    except ValueError:
        return None


def _or(value: float | None, default: float) -> float:
    return default if value is None else value
