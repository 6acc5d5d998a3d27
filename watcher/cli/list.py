"""`koder-monitor list`: what is armed (C9.3)."""

import argparse
import os
import select

from policies.wording import Lang, phrase
from watcher.cli.output import tell
from watcher.cli.reading import (
    add_lang,
    language,
    now,
    put,
    put_array,
    put_json,
    put_lines,
    read,
    read_and_tell,
)
from watcher.cli.tables import fit, host_table, watch_table
from watcher.errors import UsageError
from watcher.views import DAY_S, NEVER, watch_rows, watch_text

_REDRAW_S = 1.0
_ENTER = "\x1b[?1049h\x1b[?25l"  # the terminal's second screen, without a cursor
_LEAVE = "\x1b[?25h\x1b[?1049l"
_HOME, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what is shown, and how."""
    parser.add_argument(
        "--all", action="store_true", help="also what ended within a day"
    )
    parser.add_argument(
        "--host",
        metavar="HOST",
        help="what is detached on a host, as that host says; see --detach",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print a JSON array")
    form.add_argument(
        "--watch",
        action="store_true",
        help="a live table on the terminal, redrawn every second; Ctrl-C ends it",
    )
    add_lang(parser)


def run(options: argparse.Namespace) -> int:
    """Show the watches."""
    lang = language(options.lang, os.environ)
    if options.host is not None:
        return _on_host(options, lang)
    if options.watch:
        return _watch(lang, everything=options.all)
    since_s = now() - DAY_S if options.all else NEVER
    watches = (
        read_and_tell(lambda db: watch_rows(db, ended_after_s=since_s), lang) or []
    )
    if options.json:
        put_array([watch_text(watch) for watch in watches])
    elif watches:
        put_lines(watch_table(watches, now(), lang).lines())
    else:
        tell(phrase("nothing_armed").render(lang))
    return 0


def _on_host(options: argparse.Namespace, lang: Lang) -> int:
    """Show what a host says that is detached there; without contact what we know."""
    from watcher.cli.lifecycle import detached_on  # noqa: PLC0415 - start-up time

    if options.watch:
        raise UsageError(phrase("host_not_live"))
    watches, why = detached_on(options.host)
    if why is not None:
        told = phrase("host_unreached", host=options.host, reason=why)
        tell(told.render(lang))
    if options.json:
        put_json(watches)
    elif watches:
        put_lines(host_table(watches, now(), lang).lines())
    elif why is None:
        tell(phrase("nothing_there", host=options.host).render(lang))
    return 0


def _watch(lang: Lang, *, everything: bool) -> int:
    """Redraw the table until a signal comes; leave the terminal as it was."""
    if not os.isatty(1):
        raise UsageError(phrase("watch_needs_terminal"))
    _end_on_signals()
    put(_ENTER)
    try:
        while True:
            put(_frame(lang, everything=everything))
            select.select([], [], [], _REDRAW_S)
    finally:
        put(_LEAVE)


def _end_on_signals() -> None:
    """Let the signals that end a session unwind, so that the terminal is put right."""
    import signal  # noqa: PLC0415 - start-up time

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)


def _frame(lang: Lang, *, everything: bool) -> str:
    """Return one redraw: as many lines as the screen has, each cut to its width."""
    since_s = now() - DAY_S if everything else NEVER
    found, note = read(lambda db: watch_rows(db, ended_after_s=since_s))
    lines = watch_table(found or [], now(), lang).lines()
    if not lines:
        lines = [(note or phrase("nothing_armed")).render(lang)]
    columns, height = _screen()
    if len(lines) > height:
        more = phrase("more_lines", count=len(lines) - height + 1).render(lang)
        lines = [*lines[: height - 1], more]
    body = "\r\n".join(fit(line, columns) + _REST_OF_LINE for line in lines)
    return f"{_HOME}{body}{_REST_OF_SCREEN}"


def _screen() -> tuple[int, int]:
    columns, height = os.get_terminal_size(1)
    return columns or 80, height or 24  # some terminals do not say
