"""`koder-monitor history`: every watch there was, the newest last (C9.3)."""

import argparse
import os

from policies.wording import phrase
from watcher.cli.output import tell
from watcher.cli.reading import (
    add_lang,
    language,
    now,
    put_array,
    put_lines,
    read_and_tell,
)
from watcher.cli.tables import history_table
from watcher.views import ALWAYS, watch_rows, watch_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how it is shown."""
    parser.add_argument("--json", action="store_true", help="print a JSON array")
    add_lang(parser)


def run(options: argparse.Namespace) -> int:
    """Show what ended in the order of its end, then what is armed."""
    lang = language(options.lang, os.environ)
    watches = read_and_tell(lambda db: watch_rows(db, ended_after_s=ALWAYS), lang) or []
    if options.json:
        put_array([watch_text(watch) for watch in watches])
    elif watches:
        put_lines(history_table(watches, now(), lang).lines())
    else:
        tell(phrase("no_history").render(lang))
    return 0
