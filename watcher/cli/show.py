"""`koder-monitor show ID`: one watch with its evidence, waiters and trail (C3.7)."""

import argparse
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence

from policies.text import clean
from policies.wording import Lang, phrase
from watcher.cli.reading import (
    add_lang,
    language,
    now,
    put_json,
    put_lines,
    read_and_tell,
)
from watcher.cli.tables import (
    Cells,
    Table,
    day_time,
    heads,
    left_text,
    span,
    state_text,
)
from watcher.errors import UsageError
from watcher.views import (
    Watch,
    detail_object,
    json_object,
    json_value,
    matching,
    optional,
    shown,
    told,
    trail_rows,
    waiter_rows,
    watch_row,
    watch_rows,
)

Rows = Sequence[sqlite3.Row]

_MOST_NAMED = 5  # candidates in one error line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add which watch, and how it is shown."""
    parser.add_argument("id", metavar="ID", help="its id, or the beginning of it")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_lang(parser)


def run(options: argparse.Namespace) -> int:
    """Show the watch.

    Raises:
        UsageError: no watch has this id, or several begin so.
    """
    lang = language(options.lang, os.environ)
    rows = read_and_tell(lambda db: _rows(db, options.id), lang)
    if rows is None:
        raise UsageError(phrase("unknown_watch", id=options.id, known="-"))
    if options.json:
        put_json(detail_object(*rows))
    else:
        put_lines(list(_lines(*rows, lang)))
    return 0


def _rows(connection: sqlite3.Connection, prefix: str) -> tuple[Watch, Rows, Rows]:
    watch = find_watch(connection, prefix)
    return watch, waiter_rows(connection, watch.id), trail_rows(connection, watch.id)


def find_watch(connection: sqlite3.Connection, prefix: str) -> Watch:
    """Return the one watch whose id begins so.

    Raises:
        UsageError: there is none, or more than one; it names candidates.
    """
    prefix = clean(prefix)  # what no id holds, SQLite might not even take
    ids = matching(connection, prefix) if prefix else []
    watch = watch_row(connection, ids[0]) if len(ids) == 1 else None
    if watch is not None:
        return watch
    if ids:
        raise UsageError(phrase("ambiguous_watch", id=prefix, known=_some(ids)))
    armed = [f"{watch.id} ({shown(watch.target)})" for watch in watch_rows(connection)]
    raise UsageError(phrase("unknown_watch", id=prefix, known=_some(armed)))


def _some(names: Sequence[str]) -> str:
    more = ", …" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more or "-"


def _lines(watch: Watch, waiters: Rows, trail: Rows, lang: Lang) -> Iterator[str]:
    """Give the lines of the text form: fields, then waiters, evidence and trail."""
    fields = zip(heads("show_fields", lang), _fields(watch, lang), strict=True)
    yield from Table((), [field for field in fields if field[1]]).lines()
    parts = (
        Table(heads("waiter_heads", lang), [_waiter(item, lang) for item in waiters]),
        Table((), [(n, _compact(v)) for n, v in json_object(watch.evidence).items()]),
        Table((), [_step(item) for item in trail]),
    )
    for name, part in zip(heads("show_parts", lang), parts, strict=True):
        if part.rows:
            yield f"{name}:"
            yield from (f"  {line}" for line in part.lines())


def _fields(watch: Watch, lang: Lang) -> Cells:
    """Return what stands behind `show_fields`; nothing where there is nothing."""
    armed = watch.state == "armed"
    left = left_text(watch, now()) if armed else ""
    read = None if armed else phrase("yes" if watch.unread == 0 else "no")
    return (
        watch.id,
        shown(watch.target),
        shown(watch.label),
        optional(watch.host) or "",
        state_text(watch, lang),
        day_time(watch.armed_at),
        f"{day_time(watch.deadline_at)} (TTL {span(watch.ttl_s)})",
        left,
        day_time(watch.ended_at),
        day_time(watch.last_probe_at),
        span(watch.unknown_s),
        span(watch.every_s),
        str(watch.renewals),
        optional(watch.session) or "",
        optional(watch.resume) or "",
        read.render(lang) if read else "",
        _compact(json_object(watch.holder)),
        optional(watch.line) or "",
    )


def _waiter(row: sqlite3.Row, lang: Lang) -> Cells:
    ending = told(row)
    key = f"state_{ending}" if ending else f"waiter_{row['state']}"
    return (
        str(row["number"]),
        phrase(key).render(lang),
        day_time(row["deadline_at"]),
        optional(row["session"]) or "-",
        shown(row["label"]),
        optional(row["resume"]) or "",
    )


def _step(row: sqlite3.Row) -> Cells:
    return day_time(row["at"]), shown(row["event"]), _compact(json_value(row["detail"]))


def _compact(value: object) -> str:
    """Return a value as a line of text; nothing for nothing."""
    if value is None or value == {}:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
