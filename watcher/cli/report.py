"""`koder-monitor report`: the history as one HTML file, or as JSON (C10.1)."""

import argparse
import json
import os
import sqlite3

import msgspec

from policies.history import History, history_of
from policies.wording import phrase
from watcher import past
from watcher.cli.output import tell
from watcher.cli.reading import add_lang, language, now, put, read_and_tell
from watcher.errors import UsageError
from watcher.report import report_html
from watcher.views import Watch, newest_rows, watch_object

_MOST = 1000  # watches in the table
_STDOUT = "-"
_DIGITS = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add of how many days, and where it goes."""
    parser.add_argument(
        "--days",
        type=_days,
        default=past.USUAL_DAYS,
        metavar="N",
        help=f"how many days, today among them (default {past.USUAL_DAYS})",
    )
    parser.add_argument(
        "--output",
        default=_STDOUT,
        metavar="FILE",
        help="where it is written; - is stdout, the default",
    )
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    add_lang(parser)


def run(options: argparse.Namespace) -> int:
    """Write what the last days were like.

    Raises:
        UsageError: it cannot be written there.
    """
    lang, now_s, days = language(options.lang, os.environ), now(), options.days
    found = read_and_tell(lambda db: _found(db, now_s, days), lang)
    history, ended = found or (_nothing(now_s, days), [])
    if options.json:
        shape = {
            "days": days,
            "history": msgspec.to_builtins(history),
            "ended": [watch_object(watch) for watch in ended],
        }
        text = json.dumps(shape, ensure_ascii=False) + "\n"
    else:
        text = report_html(history, ended, until_s=now_s, lang=lang)
    if options.output == _STDOUT:
        put(text)
        return 0
    _write(options.output, text)
    tell(phrase("report_written", path=options.output).render(lang))
    return 0


def _found(
    connection: sqlite3.Connection, now_s: float, days: int
) -> tuple[History, list[Watch]]:
    history = past.history(connection, now_s=now_s, days=days)
    return history, newest_rows(connection, _MOST)


def _nothing(now_s: float, days: int) -> History:
    return history_of([], [], past.days_until(now_s, days), now_s=now_s)


def _write(path: str, text: str) -> None:
    """Write a file that appears whole or not at all, for its owner only.

    Raises:
        UsageError: that is not possible.
    """
    beside = f"{path}.{os.getpid()}.new"
    try:
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(fd, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(beside, path)
        except OSError:
            os.unlink(beside)
            raise
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(phrase("report_not_written", path=path, error=why)) from error


def _days(text: str) -> int:
    """Return a number of days.

    Raises:
        UsageError: it is none, or too large a one.
    """
    is_number = text.isascii() and text.isdigit() and len(text) <= _DIGITS
    if not is_number or not 1 <= int(text) <= past.MOST_DAYS:
        raise UsageError(phrase("report_days", value=text, most=past.MOST_DAYS))
    return int(text)
