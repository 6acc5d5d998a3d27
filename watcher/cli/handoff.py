"""`koder-monitor handoff [TOPIC]`: hand the session over to the next one (C11.3)."""

import argparse
import os
import select
from datetime import UTC, datetime

from policies.handoff import is_topic
from policies.wording import Lang, phrase
from watcher.cli.common import session_of, working_directory
from watcher.cli.output import say, tell
from watcher.cli.reading import add_lang, language, now, put_json
from watcher.errors import UsageError
from watcher.handoff import Order, Report, hand_over, report_object
from watcher.paths import project_directory, state_directory

_PATIENCE_S = 120.0  # for an answer; then it is no
_YES = frozenset({"s", "sim", "y", "yes"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the topic, and how much is done."""
    parser.add_argument(
        "topic", metavar="TOPIC", nargs="?", help="a word that names the file"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be done, write nothing"
    )
    parser.add_argument(
        "--no-commit", action="store_true", help="write the file, commit nothing"
    )
    parser.add_argument(
        "--auto", action="store_true", help="ask nobody, as a hook would"
    )
    parser.add_argument(
        "--non-interactive", action="store_true", help="ask nobody, terminal or not"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_lang(parser)


def run(options: argparse.Namespace) -> int:
    """Write the handoff, and commit it where nothing stands against it.

    Raises:
        UsageError: the topic cannot name a file.
    """
    lang = language(options.lang, os.environ)
    if options.topic is not None and not is_topic(options.topic):
        raise UsageError(phrase("handoff_bad_topic", topic=options.topic))
    cwd = working_directory()
    report = hand_over(
        Order(
            folder=project_directory(cwd),
            cwd=cwd,
            topic=options.topic,
            session=session_of(os.environ),
            used=None,
            state=state_directory(os.environ),
            at=datetime.fromtimestamp(now(), UTC),
            lang=lang,
            dry=options.dry_run,
            commit=not options.no_commit,
            confirm=None if _asks_nobody(options) else lambda names: _ask(names, lang),
        )
    )
    if options.json:
        put_json({**report_object(report), "dry_run": options.dry_run})
    else:
        _show(report)
    return 0 if report.written or options.dry_run else 1


def _show(report: Report) -> None:
    for error in report.errors:
        tell(error)
    for line in (*report.actions, report.opening):
        say(line)


def _asks_nobody(options: argparse.Namespace) -> bool:
    """Say whether there is nobody to ask, or nobody wants to be asked."""
    return bool(
        options.auto
        or options.non_interactive
        or not os.isatty(0)
        or not os.isatty(2)
        or not _in_foreground()
    )


def _in_foreground() -> bool:
    """Say whether the terminal is ours: to read from it behind `&` would stop us."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _ask(names: str, lang: Lang) -> bool:
    """Ask on the terminal; whatever is no yes is a no, and so is silence."""
    tell(phrase("handoff_ask", names=names).render(lang))
    if not select.select([0], [], [], _PATIENCE_S)[0]:
        return False
    try:
        return os.read(0, 1024).decode("utf-8", "replace").strip().lower() in _YES
    except OSError:
        return False
