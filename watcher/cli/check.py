"""`koder-monitor check ID|TARGET`: look once, now (C9.1)."""

import argparse
import json
import os
import threading
from datetime import datetime

from policies.model import Memory, Observation, Sight
from policies.shapes import check_object
from watcher.cli.common import working_directory
from watcher.cli.output import say
from watcher.cli.reading import add_lang, language, read
from watcher.clock import SystemClock
from watcher.conditions import Condition, Place
from watcher.config import load_config
from watcher.store import from_text, load_memory
from watcher.targets import condition_of

_EXITS = {Sight.RELEASED: 0, Sight.HELD: 1, Sight.UNKNOWN: 5}
_LIMIT_S = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to look at."""
    parser.add_argument(
        "what", metavar="ID|TARGET", help="a watch, or a target such as 'lock a'"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object with the evidence"
    )
    parser.add_argument(
        "--exit-codes", action="store_true", help="0 released, 1 held, 5 unknown"
    )
    add_lang(parser)


def run(options: argparse.Namespace) -> int:
    """Say held, released or unknown, and by what that was seen."""
    config = load_config(os.environ)
    lang = language(options.lang, os.environ)
    place = Place(config=config, cwd=working_directory(), launcher=os.getpid())
    text, memory = find_target(options.what)
    condition = condition_of(text, place)
    clock = SystemClock()
    seen = look_once(condition, memory, clock.wall(), config.cadence.settle)
    shape = check_object(condition.target, seen, lang, clock.zone())
    if options.json:
        say(json.dumps(shape, ensure_ascii=False))
    else:
        say(f"{shape['target']}: {shape['observation']} — {shape['detail']}")
    return _EXITS[seen.sight] if options.exit_codes else 0


def find_target(what: str) -> tuple[str, Memory]:
    """Return a target's text and, where a watch is meant, what that remembers.

    A word that no watch's id begins with is a target, or will be refused as one.
    """
    if " " not in what:
        rows, _ = read(
            lambda c: c.execute(
                "SELECT target, memory FROM watches"
                " WHERE substr(id, 1, length(?1)) = ?1 ORDER BY armed_at DESC LIMIT 2",
                (what,),
            ).fetchall()
        )
        if rows and len(rows) == 1:
            return from_text(rows[0]["target"]), load_memory(rows[0])
    return what, {}


def look_once(
    condition: Condition, memory: Memory, at: datetime, settle_s: float
) -> Observation:
    """Return one observation within a limit; a release is looked at twice (C3.2)."""
    seen: list[Observation] = []
    again = threading.Event()

    def look() -> None:
        first = condition.look(memory, at)
        if first.sight is Sight.RELEASED and condition.settle:
            again.wait(settle_s)
            first = condition.look(first.memory, at)
        seen.append(first)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(_LIMIT_S)
    return seen[0] if seen else condition.hung(memory, at)
