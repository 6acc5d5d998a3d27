"""How much of a context window is used, by whichever source says so (C11.2).

Sources of the rules: the contract, and what is known of transcripts and of models.
"""

import math
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from policies.context import percentage
from policies.values import Json

THRESHOLD: Final = 70.0
"""Percent of the context window used from which a session is handed over."""

_CHARACTERS_A_TOKEN = 3.5  # +- 10 % (stated by those who measured it)
_BIG_WINDOW = 1_000_000
_WINDOWS: Final = (
    ("opus-4-7", 1_000_000),
    ("sonnet-4-6", 200_000),
    ("haiku", 200_000),
)
"""What a model's id holds, to the tokens of its window."""


class Source(StrEnum):
    """Where a percentage comes from, the most trusted first (C11.2)."""

    DIRECT = "direct"
    BRIDGE = "bridge"
    TRANSCRIPT = "transcript"
    PAYLOAD_SIZE = "payload-size"
    MODEL_MAP = "model-map"
    DEFAULT_1M = "default-1m"


class Used(NamedTuple):
    """How much of the context window is used, in percent, and who says so."""

    percent: float
    source: Source


def number(value: Json) -> float | None:
    """Return a finite number that is no boolean, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def direct(window: Mapping[str, Json]) -> Used | None:
    """Return what the payload itself says, which wins over everything."""
    percent = percentage(window.get("used_percentage"))
    return None if percent is None else Used(percent, Source.DIRECT)


def window_of(
    window: Mapping[str, Json], model: str | None, at_least: float = 0
) -> tuple[float, Source]:
    """Return the tokens of the context window, and who says so.

    Args:
        window: `context_window` of the payload.
        model: id of the model, if known.
        at_least: tokens that are known to be in it: a smaller window is another one.
    """
    size = number(window.get("context_window_size"))
    if size is not None and size >= 1:
        return size, Source.PAYLOAD_SIZE
    known = _window_of_model(model)
    if known is not None and known >= at_least:
        return known, Source.MODEL_MAP
    return _BIG_WINDOW, Source.DEFAULT_1M


def _window_of_model(model: str | None) -> int | None:
    name = "-" + re.sub(r"[^a-z0-9]+", "-", (model or "").lower()).strip("-") + "-"
    if name.endswith("-1m-"):
        return _BIG_WINDOW
    return next((size for part, size in _WINDOWS if f"-{part}-" in name), None)


def of_tokens(tokens: float, window: Mapping[str, Json], model: str | None) -> Used:
    """Return the share that the tokens of the last answer are of the window."""
    size, _ = window_of(window, model, tokens)
    return Used(min(100 * tokens / size, 100.0), Source.TRANSCRIPT)


def of_size(size: int, window: Mapping[str, Json], model: str | None) -> Used:
    """Estimate the share from the size of the transcript in characters."""
    whole, source = window_of(window, model)
    return Used(min(100 * size / (_CHARACTERS_A_TOKEN * whole), 100.0), source)


def triggers(used: Used | None, threshold: float) -> bool:
    """Say whether the session is handed over now; never on an unknown figure."""
    return used is not None and used.percent >= threshold
