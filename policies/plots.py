"""Plots as SVG text that stands for itself: no script, no style of its own."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

_WIDTH = 640
_LINE = 24  # of one row, or of one line of text
_HEIGHT = 160  # of the highest column
_NAMES = 190  # room for the names of rows
_VALUES = 120  # and for what stands behind their bars
_LONGEST = 26  # characters of a name


class Bar(NamedTuple):
    """One value: its name, how long it is, and what is said of it."""

    name: str
    size: float
    said: str


def columns(title: str, bars: Sequence[Bar]) -> str:
    """Return upright bars, one beside the other: the first and last are named."""
    most = max((bar.size for bar in bars), default=0.0)
    if most <= 0:
        return ""
    step = _WIDTH / len(bars)
    highest = max(bars, key=lambda bar: bar.size)
    parts = [_text(0, 14, highest.said)]
    for number, bar in enumerate(bars):
        height = _HEIGHT * bar.size / most
        parts.append(
            _rect(step * number, _LINE + _HEIGHT - height, step * 0.85, height, bar)
        )
    below = _LINE + _HEIGHT + 18
    parts.append(_text(0, below, bars[0].name))
    parts.append(_text(_WIDTH, below, bars[-1].name, anchor="end"))
    return _svg(title, below + 6, parts)


def rows(title: str, bars: Sequence[Bar]) -> str:
    """Return level bars, one below the other, each with its name and value."""
    most = max((bar.size for bar in bars), default=0.0)
    if most <= 0:
        return ""
    room = _WIDTH - _NAMES - _VALUES
    parts = []
    for number, bar in enumerate(bars):
        top = _LINE * number
        parts.append(_text(0, top + 16, _short(bar.name)))
        parts.append(_rect(_NAMES, top + 5, room * bar.size / most, 14, bar))
        parts.append(_text(_WIDTH, top + 16, bar.said, anchor="end"))
    return _svg(title, _LINE * len(bars), parts)


def _svg(title: str, height: int, parts: Sequence[str]) -> str:
    head = f'<svg role="img" viewBox="0 0 {_WIDTH} {height}" aria-label='
    return f'{head}"{escape(title)}">{"".join(parts)}</svg>'


def _rect(x: float, y: float, width: float, height: float, bar: Bar) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    told = escape(f"{bar.name}: {bar.said}")
    return f"<rect {place}><title>{told}</title></rect>"


def _text(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
