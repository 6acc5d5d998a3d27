"""`koder-monitor outbox`: pings that are not delivered, or were within a day (C6.1)."""

import argparse
import os

from policies.wording import Lang, phrase
from watcher.cli.output import tell
from watcher.cli.reading import (
    add_lang,
    language,
    now,
    put_json,
    put_lines,
    read_and_tell,
)
from watcher.cli.tables import ping_table
from watcher.errors import UsageError
from watcher.views import DAY_S, ping_object, ping_rows


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how it is shown, and `flush`."""
    parser.add_argument(
        "action", nargs="?", choices=["flush"], help="try every pending ping now"
    )
    parser.add_argument(
        "--dead", action="store_true", help="with flush: the dead ones again too"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON array")
    add_lang(parser)


def run(options: argparse.Namespace) -> int:
    """Show the pings, the newest last; or have them tried now (C6.7)."""
    lang = language(options.lang, os.environ)
    if options.action == "flush":
        return _flush(lang, dead=options.dead)
    if options.dead:
        raise UsageError(phrase("dead_alone"))
    since_s = now() - DAY_S
    rows = (
        read_and_tell(lambda db: ping_rows(db, delivered_after_s=since_s), lang) or []
    )
    if options.json:
        put_json([ping_object(row) for row in rows])
    elif rows:
        put_lines(ping_table(rows, lang).lines())
    else:
        tell(phrase("outbox_empty").render(lang))
    return 0


def _flush(lang: Lang, *, dead: bool) -> int:
    from watcher.client import flush_outbox  # noqa: PLC0415 - only here
    from watcher.config import load_config  # noqa: PLC0415

    count = flush_outbox(load_config(os.environ), dead=dead)
    tell(phrase("flushed", count=count).render(lang))
    return 0
