"""Tables of the read-only commands, their columns aligned."""

import sqlite3
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from notify.marker import Marker
from policies.duration import format_countdown
from policies.wording import Lang, phrase
from watcher.views import Watch, message, optional, rfc3339, shown

Cells = tuple[str, ...]

_SHORTEST_ID = 8  # characters; with fewer, ids look alike
_LONGEST_CELL = 60  # columns of one text; `show` and `--json` have it whole
_LONGEST_LINE = 160  # columns of a ping's message, and of an error
_GAP = "  "


class Table(NamedTuple):
    """Heads, if any, and rows of as many cells each."""

    heads: Cells
    rows: list[Cells]

    def lines(self) -> list[str]:
        """Return its lines, all but the last column padded; none without rows."""
        if not self.rows:
            return []
        everything = [self.heads, *self.rows] if self.heads else self.rows
        *columns, last = zip(*everything, strict=True)
        padded = [*map(_padded, columns), last]
        return [_GAP.join(cells).rstrip() for cells in zip(*padded, strict=True)]


def watch_table(watches: Sequence[Watch], now_s: float, lang: Lang) -> Table:
    """Return the table of `list`."""
    length = id_length(watch.id for watch in watches)
    return Table(
        heads("list_heads", lang),
        [
            (
                watch.id[:length],
                _short(watch.target),
                state_text(watch, lang),
                _age(watch, now_s),
                left_text(watch, now_s),
                str(watch.waiters),
                _short(watch.label),
            )
            for watch in watches
        ],
    )


def host_table(
    watches: Sequence[Mapping[str, object]], now_s: float, lang: Lang
) -> Table:
    """Return the table of `list --host`, of watches as the service shows them."""
    length = id_length(str(watch["id"]) for watch in watches)
    return Table(
        heads("host_heads", lang),
        [
            (
                str(watch["id"])[:length],
                _short(str(watch["target"] or "-")),
                _host_state(watch, lang),
                _left_until(watch, now_s),
                _yes_no(watch["alive"], lang),
                phrase("mine" if watch["mine"] else "another_laptop").render(lang),
                _short(str(watch["label"] or "-")),
            )
            for watch in watches
        ],
    )


def history_table(watches: Sequence[Watch], now_s: float, lang: Lang) -> Table:
    """Return the table of `history`."""
    length = id_length(watch.id for watch in watches)
    return Table(
        heads("history_heads", lang),
        [
            (
                watch.id[:length],
                day_time(watch.armed_at),
                day_time(watch.ended_at),
                _age(watch, now_s),
                state_text(watch, lang),
                _short(watch.target),
                _short(watch.label),
            )
            for watch in watches
        ],
    )


def ping_table(rows: Sequence[sqlite3.Row], lang: Lang) -> Table:
    """Return the table of `outbox`; behind the message why it was not delivered."""
    return Table(
        heads("ping_heads", lang),
        [
            (
                str(row["id"]),
                shown(row["channel"]),
                phrase(f"ping_{row['state']}").render(lang),
                str(row["attempts"]),
                day_time(row["due_at"] if row["state"] == "pending" else None),
                _trouble(row),
            )
            for row in rows
        ],
    )


def marker_table(markers: Sequence[Marker], now_s: float, lang: Lang) -> Table:
    """Return the table of `koder-job list`."""
    length = id_length(marker.id for marker in markers)
    return Table(
        heads("job_heads", lang),
        [
            (
                marker.id[:length],
                marker_state(marker, lang),
                span((marker.ended_at or now_s) - marker.started_at),
                span(marker.notify_after_s) if marker.notify_after_s else "-",
                optional(marker.session) or "-",
                _short(marker.label),
            )
            for marker in markers
        ],
    )


def state_text(watch: Watch, lang: Lang) -> str:
    """Return how a watch stands: what was last seen while armed, else how it ended."""
    key = f"seen_{watch.observation}" if watch.state == "armed" else watch.state
    word = phrase(f"state_{key}").render(lang)
    return f"{word} [{watch.result}]" if watch.result else word


def marker_state(marker: Marker, lang: Lang) -> str:
    """Return how a marker stands; an armed watch says that it is one."""
    key = "watch" if marker.watch_state == "armed" else marker.state
    return phrase(f"job_{key}").render(lang)


def left_text(watch: Watch, now_s: float) -> str:
    """Return the time that a watch has left, or `-` where it has ended."""
    if watch.state != "armed":
        return "-"
    return format_countdown(watch.deadline_at - now_s)


def heads(key: str, lang: Lang) -> Cells:
    """Return the words that a text lists, which stand for columns or fields."""
    return tuple(phrase(key).render(lang).split("|"))


def id_length(ids: Iterable[str]) -> int:
    """Return how much of an id tells each of them from the others."""
    whole = set(ids)
    length = _SHORTEST_ID
    while len({one[:length] for one in whole}) < len(whole):
        length += 1
    return length


class _Widths(dict[str, int]):
    """Columns of each character met so far: a table has the same few all over."""

    def __missing__(self, char: str) -> int:
        wide = unicodedata.east_asian_width(char) in {"W", "F"}
        marks = unicodedata.category(char) in {"Mn", "Me", "Cf"}
        self[char] = columns = 0 if marks else 2 if wide else 1
        return columns


_widths = _Widths()


def width(text: str) -> int:
    """Return how many columns of a terminal a text takes (UAX 11)."""
    return len(text) if text.isascii() else sum(map(_widths.__getitem__, text))


def fit(line: str, columns: int) -> str:
    """Return as much of a line as a terminal of so many columns shows."""
    if width(line) <= columns:
        return line
    line = line[:columns]
    while width(line) >= columns:
        line = line[:-1]
    return line + "…"


def day_time(at_s: float | None) -> str:
    """Return a local time as `YYYY-MM-DD HH:MM:SS`, or `-` for none."""
    return (rfc3339(at_s) or "-")[:19].replace("T", " ")


def span(seconds: float) -> str:
    """Return a time span in its two largest units: `45s`, `12m05s`, `3h07m`, `2d4h`."""
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if days:
        return f"{days}d{hours % 24}h"
    if hours:
        return f"{hours}h{minutes % 60:02}m"
    return f"{minutes}m{whole % 60:02}s" if minutes else f"{whole}s"


def _host_state(watch: Mapping[str, object], lang: Lang) -> str:
    state = watch["state"]
    if state == "armed":
        state = f"seen_{watch['observation'] or 'unknown'}"
    word = phrase(f"state_{state}").render(lang)
    return f"{word} [{watch['result']}]" if watch["result"] else word


def _left_until(watch: Mapping[str, object], now_s: float) -> str:
    if watch["state"] != "armed" or not watch["deadline"]:
        return "-"
    deadline = datetime.fromisoformat(str(watch["deadline"]))
    return format_countdown(deadline.timestamp() - now_s)


def _yes_no(value: object, lang: Lang) -> str:
    """Return a word for what is so, is not, or is not known."""
    if value is None:
        return "?"
    return phrase("yes" if value else "no").render(lang)


def _age(watch: Watch, now_s: float) -> str:
    return span((watch.ended_at or now_s) - watch.armed_at)


def _padded(column: Cells) -> list[str]:
    """Return the cells of a column, all as wide as the widest."""
    widths = [*map(width, column)]
    widest = max(widths)
    return [
        cell + " " * (widest - wide) for cell, wide in zip(column, widths, strict=True)
    ]


def _trouble(row: sqlite3.Row) -> str:
    """Return the message of a ping and why it was not delivered, if it was not."""
    error = optional(row["last_error"])
    told = fit(message(row), _LONGEST_LINE)
    return f"{told} — {fit(error, _LONGEST_LINE)}" if error else told


def _short(text: str) -> str:
    return fit(shown(text), _LONGEST_CELL)
