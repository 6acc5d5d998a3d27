"""The status line: model, folder, context bar, and a light for each wait (C8.2).

Everything that is foreign is cleaned, and the line is no wider than it may be. What
does not fit is left out by rank: words of the labels, then lights behind the first
ones, then folder and model.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from policies.text import clean

OUTCOME_S: Final = 300.0
"""Seconds that an outcome stays visible."""

_TEXT_LIMIT = 200  # characters of a foreign text, however narrow they are
_LINE_LIMIT = 4096  # characters of another program's line, with its colours
_MOST_LIGHTS = 12  # of one line; the others are counted
_LONG, _SHORT = 32, 14  # columns of a label
_MODEL, _FOLDER = 32, 32  # columns
_OURSELVES = "koder-monitor"  # where there is nothing else to show
_GAP = " │ "
_CELLS = 10  # of the bar

_RESET = "\x1b[0m"
_DIM, _RED, _GREEN, _YELLOW, _ORANGE = "2", "1;31", "32", "33", "38;5;208"

# Compiled when they are needed: most lines need none.
_COLOUR = r"\x1b\[([0-9;:]*)m"  # SGR: ECMA-48, 8.3.117
_STEERING = (
    r"(?s)\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: 5.4
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\Z)"  # OSC and the other strings: 5.6
    r"|\x1b[ -/]*[0-~]"
)
_PLAIN: Final = {
    "│": "|",
    "█": "#",
    "░": "-",
    "…": "~",
    "⏳": "..",
    "❓": "??",
    "✅": "OK",
    "❌": "XX",
    "⏰": "!!",
    "🚫": "--",
    "⇅": "^",
}
"""What stands for our own signs where they cannot be written."""

_BAD: Final = frozenset({"FAIL", "STALLED", "DIED"})
_VARIATION, _JOINER = "\ufe0f", "\u200d"


class Light(NamedTuple):
    """One wait, or how it ended.

    Attributes:
        kind: of its condition.
        label: what is awaited, as its waiter calls it.
        host: where it is looked at, None for here.
        state: `held`, `released` or `unknown` while it waits, as it was last seen; then
            how it ended for its waiter.
        result: how the work ended, where that is known.
        age_s: since it was armed; since it ended.
        left_s: to its deadline, None once it has ended.
        detached: something on the host waits as well.
        ours: this session waits for it.
    """

    kind: str
    label: str
    host: str | None
    state: str
    result: str | None
    age_s: float
    left_s: float | None
    detached: bool = False
    ours: bool = True


class Facts(NamedTuple):
    """What a runtime says of itself; None for what it does not.

    Attributes:
        model: its name for people.
        session: as it came, not yet checked.
        folder: its current directory.
        project: its project folder.
        window: its `context_window`, as it came.
    """

    model: str | None
    session: str | None
    folder: str | None
    project: str | None
    window: object


class View(NamedTuple):
    """Where the line is shown.

    Attributes:
        columns: it may take.
        colour: it may have any.
        encoding: of the bytes that are written.
    """

    columns: int
    colour: bool
    encoding: str


class _Piece(NamedTuple):
    """A part of the line, as it can be written, with the columns it takes."""

    text: str
    style: str
    wide: int


def facts_of(payload: object) -> Facts:
    """Return what a runtime's JSON says; of whatever has another shape, nothing."""
    top = payload if isinstance(payload, Mapping) else {}
    model, workspace = top.get("model"), top.get("workspace")
    if isinstance(model, Mapping):
        model = model.get("display_name") or model.get("id")
    folders = workspace if isinstance(workspace, Mapping) else {}
    return Facts(
        model=_text(model),
        session=_text(top.get("session_id")),
        folder=_text(folders.get("current_dir")) or _text(top.get("cwd")),
        project=_text(folders.get("project_dir")),
        window=top.get("context_window"),
    )


def status_line(
    *,
    model: str | None,
    folder: str | None,
    used: int | None,
    lights: Sequence[Light],
    before: str | None,
    view: View,
) -> str:
    """Return the one line, without its end.

    Args:
        model: name of the model.
        folder: path of the current directory, whose last part is shown.
        used: percent of the context window.
        lights: in their order.
        before: what another program said, to stand in front; its colours are kept.
        view: where it is shown.
    """
    width = max(1, view.columns)
    heads = _heads(model, folder, used, view)
    lamps = [_lamps(lights, room, view) for room in (_LONG, _SHORT)]
    ours = _fitting(heads, lamps, width, view)
    front = _pieces_of(before or "", view)
    if not (front and ours):
        alone = front or ours or [_piece(_OURSELVES, "", view)]
        return _drawn(_cut(alone, width, view), view)
    gap = _piece(_GAP, _DIM, view)
    rest = width - gap.wide
    front = _cut(front, max(width // 2, rest - _width(ours)), view)
    rest -= _width(front)
    ours = _cut(_fitting(heads, lamps, rest, view), rest, view)
    return _drawn(_cut([*front, gap, *ours], width, view), view)


def columns(text: str) -> int:
    """Return how many columns of a terminal a text takes: UAX 11, and UTS 51 for emoji.

    A sequence that is one emoji is as wide as one, whatever it is made of.
    """
    return len(text) if text.isascii() else sum(wide for _, wide in _cells(text))


def clipped(text: str, limit: int, mark: str = "…") -> str:
    """Return at most so many columns of a text, a mark for what is missing."""
    if columns(text) <= limit:
        return text
    room = limit - columns(mark)
    if room < 0:
        return ""
    cells = [*_cells(text)]
    ends = accumulate(wide for _, wide in cells)
    return (
        "".join(cell for (cell, _), end in zip(cells, ends, strict=True) if end <= room)
        + mark
    )


def span(seconds: float) -> str:
    """Return a time span short enough for a line: `45s`, `12m`, `3h07m`, `2d4h`."""
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if days:
        return f"{days}d{hours % 24}h"
    if hours:
        return f"{hours}h{minutes % 60:02}m"
    return f"{minutes}m" if minutes else f"{whole}s"


def _fitting(
    heads: Sequence[list[_Piece]],
    lamps: Sequence[list[_Piece]],
    width: int,
    view: View,
) -> list[_Piece]:
    """Return the fullest form of the line that fits, else the shortest there is."""
    form: list[_Piece] = []
    gap = _piece(_GAP, _DIM, view)
    for parts in _forms(heads, lamps, view):
        form = [piece for part in parts for piece in (gap, part)][1:]
        if _width(form) <= width:
            break
    return form


def _forms(
    heads: Sequence[list[_Piece]], lamps: Sequence[list[_Piece]], view: View
) -> Iterator[list[_Piece]]:
    """Give what the line's forms are made of, the fullest first."""
    long, short = lamps
    most = min(len(short), _MOST_LIGHTS)
    yield [*heads[0], *_first(long, most, view)]
    for head in heads:
        for count in range(most, min(most, 2) - 1, -1):
            yield [*head, *_first(short, count, view)]
    if short:
        yield [*heads[-1], *_first(short, 1, view)]
        yield _first(short, 1, view)


def _first(lamps: list[_Piece], count: int, view: View) -> list[_Piece]:
    """Return the first lights and how many there are behind them."""
    rest = len(lamps) - count
    more = [_piece(f"+{rest}", _DIM, view)] if rest else []
    return [*lamps[:count], *more]


def _heads(
    model: str | None, folder: str | None, used: int | None, view: View
) -> list[list[_Piece]]:
    """Return what stands before the lights, the fullest first."""
    bar, brief = [], []
    if used is not None:
        bar = [_piece(f"{_bar(used)} {used}%", _heat(used), view)]
        brief = [_piece(f"{used}%", _heat(used), view)]
    name = clipped(_name(model or ""), _MODEL)
    where = clipped(_foreign(_last_part(folder or "")), _FOLDER)
    names = [_piece(name, _DIM, view)] if name else []
    places = [_piece(where, _DIM, view)] if where else []
    return [
        [*names, *places, *bar],
        [*names, *places, *brief],
        [*names, *brief],
        brief or names or places,
    ]


def _bar(used: int) -> str:
    full = min(_CELLS, max(0, used * _CELLS // 100))
    return "█" * full + "░" * (_CELLS - full)


def _heat(used: int) -> str:
    for limit, style in ((50, _GREEN), (65, _YELLOW), (80, _ORANGE)):
        if used < limit:
            return style
    return _RED


def _name(model: str) -> str:
    """Return a model's name; of a tail such as `(1M context)` only the size."""
    name, _, tail = _foreign(model).rpartition(" (")
    size = tail.removesuffix("context)").strip()
    return f"{name} {size}".rstrip() if tail.endswith("context)") else _foreign(model)


def _last_part(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path


def _lamps(lights: Sequence[Light], room: int, view: View) -> list[_Piece]:
    """Return the lights, their labels no wider than that; the last are only counted."""
    shown = [_lamp(light, room, view) for light in lights[:_MOST_LIGHTS]]
    return shown + shown[-1:] * (len(lights) - len(shown))


def _lamp(light: Light, room: int, view: View) -> _Piece:
    label, kind = _foreign(light.label), _foreign(light.kind)
    named = label if label.startswith(kind) else f"{kind} {label}"
    result = None if light.result is None else f"[{_foreign(light.result)}]"
    words = [
        _sign(light),
        result,
        clipped(named, room),
        None if light.host is None else clipped(f"@{_foreign(light.host)}", room),
        "⇅" if light.detached else None,
        span(light.age_s),
        None if light.left_s is None else f"-{span(light.left_s)}",
    ]
    return _piece(" ".join(word for word in words if word), _shade(light), view)


def _sign(light: Light) -> str:
    if light.left_s is not None:
        return "❓" if light.state == "unknown" else "⏳"
    if light.result in _BAD:
        return "❌"
    return {"expired": "⏰", "removed": "🚫", "unseen": "❓"}.get(light.state, "✅")


def _shade(light: Light) -> str:
    sign = _sign(light)
    if sign in {"✅", "❌"}:
        return _GREEN if sign == "✅" else _RED
    if sign in {"⏰", "❓"}:
        return _YELLOW
    return "" if light.ours else _DIM


def _pieces_of(foreign: str, view: View) -> list[_Piece]:
    """Return another program's line: its colours stay, all else that steers goes."""
    line = foreign.lstrip()[:_LINE_LIMIT].partition("\n")[0].rstrip()
    pieces, style = [], ""
    # Between each two texts stands the colour that is set there.
    for number, part in enumerate(re.split(_COLOUR, line)):
        if number % 2:
            style = f"{style};{part}".lstrip(";") if part.strip("0") else ""
            continue
        text = re.sub(_STEERING, "", part).replace("\t", " ")
        if text:
            pieces.append(_piece(_foreign(text), style, view))
    return pieces


def _cut(pieces: Sequence[_Piece], width: int, view: View) -> list[_Piece]:
    """Return as much of the pieces as fits, with a mark where something is missing."""
    if _width(pieces) <= width:
        return [*pieces]
    whole = 0
    while pieces[whole].wide < width:
        width -= pieces[whole].wide
        whole += 1
    last = pieces[whole]
    # A space more, so that it never fits as it is.
    text = clipped(last.text + " ", width, _plain("…", view))
    return [*pieces[:whole], _piece(text, last.style, view)]


def _piece(text: str, style: str, view: View) -> _Piece:
    plain = _plain(text, view)
    return _Piece(plain, style, columns(plain))


def _width(pieces: Sequence[_Piece]) -> int:
    return sum(piece.wide for piece in pieces)


def _drawn(pieces: Sequence[_Piece], view: View) -> str:
    if not view.colour:
        return "".join(piece.text for piece in pieces)
    return "".join(
        f"\x1b[{piece.style}m{piece.text}{_RESET}" if piece.style else piece.text
        for piece in pieces
    )


def _plain(text: str, view: View) -> str:
    """Return a text as it can be written, our own signs by others that look alike."""
    try:
        text.encode(view.encoding)
    except UnicodeEncodeError:
        written = "".join(_PLAIN.get(char, char) for char in text)
        return written.encode(view.encoding, "replace").decode(view.encoding)
    return text


def _foreign(text: str) -> str:
    return clean(text, _TEXT_LIMIT)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _cells(text: str) -> Iterator[tuple[str, int]]:
    """Give what takes columns of its own, with what is joined to it."""
    cell, wide = "", 0
    for char in text:
        if cell and _joins(cell, char):
            cell += char
            if char == _VARIATION or (wide == 1 and _is_flag(char)):
                wide = 2
            continue
        if cell:
            yield cell, wide
        cell, wide = char, _wide(char)
    yield cell, wide


def _joins(cell: str, char: str) -> bool:
    """Say whether a character goes into the cell before it."""
    if _wide(char) == 0 or "\U0001f3fb" <= char <= "\U0001f3ff":
        return True
    if cell[-1] == _JOINER:
        return unicodedata.category(char) == "So"
    return _is_flag(char) and len(cell) == 1 and _is_flag(cell)


def _is_flag(char: str) -> bool:
    """Say whether this is half a flag: a regional indicator."""
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _wide(char: str) -> int:
    # The vowels and ends of Hangul, written apart, stand within their consonant.
    if unicodedata.category(char) in {"Mn", "Me", "Cf"} or "\u1160" <= char <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"F", "W"} else 1
