"""`koder-monitor assess ID|TARGET`: weigh whether to renew or remove (C9.2)."""

import argparse
import json
import os
import sqlite3
from collections.abc import Mapping
from typing import cast

from policies.assess import Assessment, assess, assessment_object
from policies.codec import dumps
from policies.model import Json
from policies.wording import Lang, phrase
from watcher.assessing import gather
from watcher.cli.check import find_target
from watcher.cli.common import working_directory
from watcher.cli.output import say, tell
from watcher.cli.reading import add_lang, language, read
from watcher.clock import SystemClock
from watcher.conditions import Place
from watcher.config import Config, load_config
from watcher.database import open_database
from watcher.errors import StoreError
from watcher.glance import look_once
from watcher.store import to_text
from watcher.targets import condition_of
from watcher.transport.hosts import SshHosts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to weigh."""
    parser.add_argument(
        "what", metavar="ID|TARGET", help="a watch, or a target such as 'lock a'"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_lang(parser)


def run(options: argparse.Namespace) -> int:
    """Say renew, remove or ask, with the reasons; nothing else is done."""
    lang = language(options.lang, os.environ)
    config = load_config(os.environ)
    shape = weigh(options.what, config, lang, cwd=working_directory())
    if options.json:
        say(json.dumps(shape, ensure_ascii=False))
    else:
        say(verdict_line(shape, lang))
    return 0


def verdict_line(shape: Mapping[str, Json], lang: Lang) -> str:
    """Return an assessment in one line: what, the advice, and why."""
    reasons = "; ".join(cast("list[str]", shape["reasons"]))
    verdict = phrase(f"advice_{shape['verdict']}").render(lang)
    return f"{shape['target']}: {verdict} — {reasons}"


def weigh(what: str, config: Config, lang: Lang, *, cwd: str) -> dict[str, Json]:
    """Look at a watch or a target, keep what was found, return `assess --json`.

    Args:
        what: a watch's id, or a target.
        config: the settings in force.
        lang: of the reasons.
        cwd: where a relative path starts.

    Raises:
        UsageError: it names nothing that can be watched.
    """
    clock = SystemClock()
    text, memory = find_target(what)
    hosts = SshHosts(config.ssh, clock=clock)
    place = Place(config=config, cwd=cwd, launcher=os.getpid(), hosts=hosts)
    condition = condition_of(text, place)
    settle_s = config.cadence.settle
    seen = look_once(condition, memory, clock.wall(), settle_s, close=hosts.close)
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
    return assessment_object(
        found, target=condition.target.text, renewals=renewals, lang=lang
    )


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
