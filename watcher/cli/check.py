"""`koder-monitor check ID|TARGET`: look once, now (C9.1)."""

import argparse
import json
import os
import sqlite3
from collections.abc import Mapping

from policies.model import Memory, Observation, Sight, Target
from policies.shapes import check_object
from watcher.cli.common import session_of, working_directory
from watcher.cli.output import say
from watcher.cli.reading import add_lang, language, read
from watcher.clock import SystemClock
from watcher.conditions import Place
from watcher.config import Config, load_config
from watcher.database import open_database
from watcher.errors import StoreError
from watcher.glance import look_once
from watcher.inbox import owes_a_sign, sign_of_life
from watcher.store import from_text, load_memory
from watcher.targets import condition_of
from watcher.transport.hosts import SshHosts

_EXITS = {Sight.RELEASED: 0, Sight.HELD: 1, Sight.UNKNOWN: 5}


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
    target, seen = look_at(options.what, config, cwd=working_directory())
    shape = check_object(target, seen, lang, SystemClock().zone())
    if options.json:
        say(json.dumps(shape, ensure_ascii=False))
    else:
        say(f"{shape['target']}: {shape['observation']} — {shape['detail']}")
    return _EXITS[seen.sight] if options.exit_codes else 0


def look_at(what: str, config: Config, *, cwd: str) -> tuple[Target, Observation]:
    """Return a target and what is seen of it now; the session shows a sign of life.

    Args:
        what: a watch's id, or a target.
        config: the settings in force.
        cwd: where a relative path starts.

    Raises:
        UsageError: it names nothing that can be watched.
    """
    clock = SystemClock()
    hosts = SshHosts(config.ssh, clock=clock)
    place = Place(config=config, cwd=cwd, launcher=os.getpid(), hosts=hosts)
    text, memory = find_target(what)
    condition = condition_of(text, place)
    show_life(config, os.environ)
    settle_s = config.cadence.settle
    seen = look_once(condition, memory, clock.wall(), settle_s, close=hosts.close)
    return condition.target, seen


def show_life(config: Config, env: Mapping[str, str]) -> None:
    """Let the session's unread outcomes count as seen: it is at work (C9.4)."""
    session = session_of(env)
    if session is None:
        return
    owes, _ = read(lambda c: owes_a_sign(c, session))
    if not owes:
        return
    now_s = SystemClock().wall().timestamp()
    try:
        connection, _ = open_database(config.state)
    except StoreError:
        return  # the next sign will do
    try:
        sign_of_life(connection, session, now_s)
    except sqlite3.Error:
        return
    finally:
        connection.close()


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
