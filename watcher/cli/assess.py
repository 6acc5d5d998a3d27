"""`koder-monitor assess ID|TARGET`: weigh whether to renew or remove (C9.2)."""

import argparse
import json
import os
import sqlite3

from policies.assess import Assessment, assess, assessment_object
from policies.codec import dumps
from policies.wording import Lang, phrase
from watcher.assessing import gather
from watcher.cli.check import find_target, look_once
from watcher.cli.common import working_directory
from watcher.cli.output import say, tell
from watcher.cli.reading import add_lang, language, read
from watcher.clock import SystemClock
from watcher.conditions import Place
from watcher.config import load_config
from watcher.database import open_database
from watcher.errors import StoreError
from watcher.store import to_text
from watcher.targets import condition_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to weigh."""
    parser.add_argument(
        "what", metavar="ID|TARGET", help="a watch, or a target such as 'lock a'"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_lang(parser)


def run(options: argparse.Namespace) -> int:
    """Say renew, remove or ask, with the reasons; nothing else is done."""
    config, clock = load_config(os.environ), SystemClock()
    lang = language(options.lang, os.environ)
    text, memory = find_target(options.what)
    place = Place(config=config, cwd=working_directory(), launcher=os.getpid())
    condition = condition_of(text, place)
    seen = look_once(condition, memory, clock.wall(), config.cadence.settle)
    row, _ = read(lambda c: _armed(c, condition.target.text))
    before = _previous(row)
    evidence = gather(
        condition.target.kind,
        seen,
        clock=clock,
        host=condition.target.host,
        before=before.evidence if before else None,
    )
    found = assess(evidence, before, row["idle_renewals"] if row else 0)
    if row is not None:
        _keep(config.state, row["id"], found, lang)
    renewals = row["renewals"] if row else 0
    shape = assessment_object(
        found, target=condition.target.text, renewals=renewals, lang=lang
    )
    if options.json:
        say(json.dumps(shape, ensure_ascii=False))
    else:
        reasons = "; ".join(reason.render(lang) for reason in found.reasons)
        verdict = phrase(f"advice_{found.verdict}").render(lang)
        say(f"{shape['target']}: {verdict} — {reasons}")
    return 0


def _armed(connection: sqlite3.Connection, target: str) -> sqlite3.Row | None:
    """Return the newest watch of a target: one that has just expired counts too."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT id, assessment, idle_renewals, renewals FROM watches"
        " WHERE target = ? AND state IN ('armed', 'expired')"
        " ORDER BY state = 'armed' DESC, armed_at DESC LIMIT 1",
        (to_text(target),),
    ).fetchone()
    return row


def _previous(row: sqlite3.Row | None) -> Assessment | None:
    if row is None or row["assessment"] is None:
        return None
    try:
        return Assessment.from_record(json.loads(row["assessment"]))
    except ValueError:
        return None  # of another version: this look is the first


def _keep(state: str, watch_id: str, found: Assessment, lang: Lang) -> None:
    """Store the assessment, for the next one and for `renew`; say when that fails."""
    try:
        connection, _ = open_database(state)
    except StoreError as error:
        tell(error.phrase.render(lang))
        return
    try:
        connection.execute(
            "UPDATE watches SET assessment = ? WHERE id = ?",
            (dumps(found.to_record()), watch_id),
        )
    except sqlite3.Error as error:
        tell(phrase("write_failed", error=str(error)).render(lang))
    finally:
        connection.close()
