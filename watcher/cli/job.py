"""`koder-job`: markers of work under way, for status lines and for the operator (C8.1).

Markers are fail-soft as pings are (C6.6): they stand beside real work, in scripts that
stop at the first error. So a wrong call is exit 2, but a store that cannot be written
is one line on stderr and exit 0, and `start` prints an id even then.
"""

import argparse
import os
import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeVar

from notify import marker
from notify.marker import Marker
from policies.text import clean
from policies.wording import Lang, Phrase, phrase
from watcher.cli import EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_USAGE
from watcher.cli.output import fail, secure_descriptors, secure_zone, tell
from watcher.cli.parser import Parser, arguments, language_of
from watcher.cli.reading import (
    add_lang,
    language,
    now,
    put_json,
    put_lines,
    read_and_tell,
)
from watcher.cli.tables import marker_state, marker_table, span
from watcher.database import open_database
from watcher.errors import StoreError, UsageError, WatcherError
from watcher.paths import state_directory
from watcher.views import DAY_S, marker_object

T = TypeVar("T")
StartService = Callable[[], None]

_NAME = "koder-job"
_SESSION_VARIABLES = ("KODER_MONITOR_SESSION", "CLAUDE_CODE_SESSION_ID")
_MOST_NAMED = 5  # candidates in one error line

_DESCRIPTION = """\
Leave a marker that work is under way, and take it away when it is done or has failed.
Every watch of koder-monitor is a marker too: `list` shows it under its own id, running
while it is armed, done when what it waited for came about, else failed. Only
koder-monitor ends one.
"""

_LISTED = """\
Show what runs and what ended within a day, the watches of koder-monitor too: a watch is
running while it is armed, done when what it waited for came about, else failed. With
--json its `watch_state` is its own state, null for a job.
"""


def main(start_service: StartService | None = None) -> int:
    """Run one command and return its exit status.

    Args:
        start_service: what sees to it that `--notify-after` is noticed; the service,
            unless given.
    """
    secure_descriptors()
    secure_zone()
    argv = arguments()
    try:
        options = _parser().parse_args(argv)
        return _COMMANDS[options.command](options, start_service or _start_service)
    except UsageError as error:
        return _fail(error.phrase, argv, EXIT_USAGE)
    except WatcherError as error:
        return _fail(error.phrase, argv, EXIT_INTERNAL)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last net: one line, never a traceback
        what = f"{type(error).__name__}: {error}"
        return _fail(phrase("internal", error=what), argv, EXIT_INTERNAL)


def _fail(what: Phrase, argv: list[str], status: int) -> int:
    fail(f"{_NAME}: " + phrase("error", what=what).render(language_of(argv)))
    return status


def _parser() -> Parser:
    parser = Parser(prog=_NAME, description=_DESCRIPTION)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    start = commands.add_parser("start", help="leave a marker and print its id")
    start.add_argument("label", help="what is under way, for people")
    start.add_argument(
        "--notify-after",
        metavar="DURATION",
        help="ping when it still runs then, such as 10m or 1h30m",
    )
    _add_session(start)
    start.add_argument("--json", action="store_true", help="print it as a JSON object")
    add_lang(start)
    for name, help_text in (("done", "it is done"), ("fail", "it has failed")):
        end = commands.add_parser(name, help=help_text)
        end.add_argument(
            "name",
            metavar="ID|LABEL",
            nargs="?",
            help="the beginning of its id, or its label as it was given (default: the "
            "only running job of the session)",
        )
        _add_session(end)
        add_lang(end)
    listing = commands.add_parser(
        "list", help="show what runs, and what ended within a day", description=_LISTED
    )
    listing.add_argument("--json", action="store_true", help="print a JSON array")
    add_lang(listing)
    return parser


def _add_session(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--session",
        metavar="ID",
        help="whose job it is (default: the session's own id)",
    )


def _start(options: argparse.Namespace, start_service: StartService) -> int:
    lang = language(options.lang, os.environ)
    job = marker.new(
        os.urandom(6).hex(),
        _label(options.label),
        now_s=now(),
        notify_after_s=_notify_after(options.notify_after),
        session=_session(options.session, os.environ),
    )
    _write(lambda connection: marker.start(connection, job), lang)
    if options.json:
        put_json(marker_object(job))
    else:
        put_lines([job.id])
    if job.notify_after_s is not None:
        try:
            start_service()
        except WatcherError as error:
            after = span(job.notify_after_s)
            _tell(phrase("job_unwatched", span=after, reason=error.phrase), lang)
    return 0


def _end(options: argparse.Namespace, _: StartService) -> int:
    lang = language(options.lang, os.environ)
    state: Literal["done", "failed"] = "done" if options.command == "done" else "failed"
    session = _session(options.session, os.environ)
    now_s = now()

    def end(connection: sqlite3.Connection) -> Phrase:
        job = _chosen(connection, options.name, session)
        if marker.finish(connection, job.id, state, now_s=now_s):
            ended = job._replace(state=state, ended_at=now_s)
            return phrase(
                "job_ended",
                label=job.label,
                id=job.id,
                state=marker_state(ended, lang),
                span=span(now_s - job.started_at),
            )
        over = phrase("job_over", id=job.id, state=marker_state(job, lang))
        if job.state != state:
            raise UsageError(over)
        return over

    note = _write(end, lang)
    if note is not None:
        _tell(note, lang)
    return 0


def _list(options: argparse.Namespace, _: StartService) -> int:
    lang = language(options.lang, os.environ)
    now_s = now()
    since_s = now_s - DAY_S
    markers = (
        read_and_tell(lambda db: marker.listed(db, ended_after_s=since_s), lang, _NAME)
        or []
    )
    if options.json:
        put_json([marker_object(item) for item in markers])
    elif markers:
        put_lines(marker_table(markers, now_s, lang).lines())
    else:
        tell(phrase("no_jobs").render(lang))
    return 0


_COMMANDS: Mapping[str, Callable[[argparse.Namespace, StartService], int]] = {
    "start": _start,
    "done": _end,
    "fail": _end,
    "list": _list,
}


def _chosen(
    connection: sqlite3.Connection, name: str | None, session: str | None
) -> Marker:
    """Return the job that is meant: by its name, else the only one of the session.

    Raises:
        UsageError: none is, or more than one, or a watch; it names candidates.
    """
    if name is None:
        found = marker.running(connection, session)
        if len(found) != 1:
            raise UsageError(phrase("no_only_job", known=_some(found)))
        return found[0]
    name = clean(name)
    found = marker.named(connection, name) if name else []
    if not found:
        known = marker.running(connection, session)
        raise UsageError(phrase("unknown_job", name=f"'{name}'", known=_some(known)))
    if len(found) > 1:
        raise UsageError(phrase("ambiguous_job", name=f"'{name}'", known=_some(found)))
    if found[0].watch_state is not None:
        raise UsageError(phrase("job_is_watch", id=found[0].id))
    return found[0]


def _some(markers: Sequence[Marker]) -> str:
    more = ", …" if len(markers) > _MOST_NAMED else ""
    return (
        ", ".join(f"{item.id} ({item.label})" for item in markers[:_MOST_NAMED]) + more
        or "-"
    )


def _write(change: Callable[[sqlite3.Connection], T], lang: Lang) -> T | None:
    """Carry out a change, or say in one line that it could not be stored.

    Raises:
        UsageError: what `change` refuses; then nothing is changed.
    """
    try:
        connection, note = open_database(state_directory(os.environ))
        if note is not None:
            _tell(note, lang)
        try:
            connection.execute("BEGIN IMMEDIATE")
            result = change(connection)
            connection.execute("COMMIT")
        finally:
            connection.close()  # what was not committed is rolled back
    except StoreError as error:
        _tell(phrase("job_lost", reason=error.phrase), lang)
    except sqlite3.Error as error:
        _tell(phrase("job_lost", reason=str(error)), lang)
    else:
        return result
    return None


def _start_service() -> None:
    from watcher.client import start_service  # noqa: PLC0415 - start-up time

    start_service(state_directory(os.environ), wait=False)


def _label(label: str) -> str:
    from policies.target import says_nothing  # noqa: PLC0415 - start-up time

    if says_nothing(label):
        raise UsageError(phrase("bad_label", label=label))
    return label


def _notify_after(text: str | None) -> int | None:
    from policies.duration import parse_duration  # noqa: PLC0415 - start-up time

    try:
        return None if text is None else parse_duration(text)
    except ValueError as error:
        name = "--notify-after"
        raise UsageError(phrase("bad_duration", name=name, value=text or "")) from error


def _session(asked: str | None, env: Mapping[str, str]) -> str | None:
    """Return the session as asked, else the runtime's own, else None."""
    from policies.target import is_session  # noqa: PLC0415 - start-up time

    if asked is not None:
        if not is_session(asked):
            raise UsageError(phrase("bad_session", session=asked))
        return asked
    inherited = next((env[name] for name in _SESSION_VARIABLES if env.get(name)), None)
    return inherited if inherited is not None and is_session(inherited) else None


def _tell(note: Phrase, lang: Lang) -> None:
    tell(f"{_NAME}: " + note.render(lang))


if __name__ == "__main__":
    sys.exit(main())
