"""`koder-monitor doctor`: what is not as it should be, and how to mend it (C9.5)."""

import argparse
import glob
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from notify import outbox
from policies.model import Json
from policies.wording import Lang, Phrase, phrase
from watcher import __version__
from watcher.app import key_problem
from watcher.cli.common import working_directory
from watcher.cli.output import say
from watcher.cli.reading import add_lang, language
from watcher.client import Client
from watcher.clock import SystemClock
from watcher.conditions import Place
from watcher.conditions.lock import lock_directory
from watcher.config import Config, load_config, settings_of
from watcher.database import NAME, VERSION, is_older, open_for_reading
from watcher.errors import ServiceError, WatcherError
from watcher.paths import state_directory

_LONG_PENDING_S = 600  # a ping that has waited so long is worth a look


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at; `mend` says what to do where it is not well."""

    check: str
    ok: bool
    detail: Phrase
    mend: Phrase | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how it is shown."""
    parser.add_argument("--json", action="store_true", help="print a JSON array")
    add_lang(parser)


def run(options: argparse.Namespace) -> int:
    """Look at every part, and say of each whether it is well."""
    lang = language(options.lang, os.environ)
    findings = list(examine(os.environ, working_directory()))
    if options.json:
        say(json.dumps([_shape(item, lang) for item in findings], ensure_ascii=False))
        return 0
    for item in findings:
        mend = f" → {item.mend.render(lang)}" if item.mend else ""
        mark = "✅" if item.ok else "⚠️ "
        say(f"{mark} {item.check}: {item.detail.render(lang)}{mend}")
    return 0


def examine(env: Mapping[str, str], cwd: str) -> Iterator[Finding]:
    """Return what was found, part by part; nothing is changed and nothing contacted."""
    try:
        config = load_config(env)
    except WatcherError as error:
        yield Finding(
            "config", ok=False, detail=error.phrase, mend=phrase("mend_config")
        )
        config = Config(state=state_directory(env))
    else:
        yield Finding("config", ok=True, detail=phrase("well"))
    looks: tuple[Callable[[Config], Iterator[Finding]], ...] = (
        _state,
        _store,
        _service,
        _notify,
        _outbox,
        _events,
        _runtimes,
    )
    for look in looks:
        yield from look(config)
    yield from _locks(config, cwd)


def _state(config: Config) -> Iterator[Finding]:
    path = config.state
    existing = path
    while not os.path.exists(existing):
        existing = os.path.dirname(existing)
    if not os.access(existing, os.W_OK | os.X_OK):
        mend = phrase("mend_state")
        yield Finding(
            "state", ok=False, detail=phrase("not_writable", path=path), mend=mend
        )
        return
    room = os.statvfs(existing)
    if room.f_bavail * room.f_frsize < 1 << 20:
        mend = phrase("mend_space", path=path)
        yield Finding(
            "state", ok=False, detail=phrase("no_space", path=path), mend=mend
        )
        return
    yield Finding("state", ok=True, detail=phrase("said", text=path))


def _store(config: Config) -> Iterator[Finding]:
    path = f"{config.state}/{NAME}"
    aside = sorted(
        name
        for kind in ("corrupt", "newer", "foreign")
        for name in glob.glob(f"{glob.escape(path)}.{kind}-[0-9]*")
        if not name.endswith(("-wal", "-shm"))
    )
    if aside:
        detail = phrase("lies_aside", paths=", ".join(aside))
        yield _ill("store", detail, "mend_aside")
    if not os.path.exists(path):
        yield Finding("store", ok=True, detail=phrase("not_yet"))
        return
    connection = open_for_reading(config.state)
    if connection is None and is_older(config.state):
        yield Finding("store", ok=True, detail=phrase("store_older", path=path))
        return
    if connection is None:
        yield _ill("store", phrase("store_unread", path=path), "mend_store")
        return
    connection.close()
    yield Finding("store", ok=True, detail=phrase("schema", version=VERSION))


def _service(config: Config) -> Iterator[Finding]:
    try:
        _, answer = Client(config.state).request("GET", "/healthz", limit_s=3.0)
        _, there = Client(config.state).request("GET", "/v1/settings", limit_s=3.0)
    except ServiceError as error:
        detail = phrase("no_service_now", reason=error.phrase)
        yield Finding("service", ok=True, detail=detail)
        return
    health = cast("Mapping[str, Json]", answer)
    if health["degraded"] is not None:
        detail = phrase("service_degraded")
        yield _ill("service", detail, "mend_space", path=config.state)
    if health["version"] != __version__:
        detail = phrase("other_version", there=str(health["version"]), here=__version__)
        yield _ill("service", detail, "mend_restart")
    settings = cast("Mapping[str, str]", there)
    ours = settings_of(config)
    names = [name for name in ours if settings.get(name) != ours[name]]
    if names:
        detail = phrase("differs", names=", ".join(names))
        yield _ill("settings", detail, "mend_settings")
    yield Finding(
        "service", ok=True, detail=phrase("runs", armed=cast("int", health["armed"]))
    )


def _notify(config: Config) -> Iterator[Finding]:
    if config.notify.url is None and not config.notify.apprise:
        path = config.fallback_log
        yield _ill("notify", phrase("no_channel"), "mend_notify", path=path)
        return
    problem = key_problem(config)
    if problem is not None:
        yield _ill("notify", problem, "mend_key")
    elif config.notify.url is not None:
        url = config.notify.url
        yield Finding("notify", ok=True, detail=phrase("said", text=url))
    if config.notify.apprise:
        from notify.channels.apprise import extra_problem  # noqa: PLC0415 - extra

        missing = extra_problem()
        if missing is not None:
            yield Finding("apprise", ok=False, detail=missing, mend=missing)


def _outbox(config: Config) -> Iterator[Finding]:
    connection = open_for_reading(config.state)
    if connection is None:
        return
    try:
        row = connection.execute(
            "SELECT sum(state = 'pending') AS pending, sum(state = 'dead') AS dead,"
            " sum(state = 'pending' AND last_error IS NOT NULL) AS failed FROM pings"
        ).fetchone()
        now_s = SystemClock().wall().timestamp()
        oldest_s = outbox.oldest_pending_s(connection, now_s=now_s)
    except sqlite3.Error as error:
        yield _ill("outbox", phrase("write_failed", error=str(error)), "mend_store")
        return
    finally:
        connection.close()
    pending, dead = row["pending"] or 0, row["dead"] or 0
    late = (oldest_s or 0) > _LONG_PENDING_S
    detail = phrase("outbox_state", pending=pending, dead=dead)
    mend = phrase("mend_outbox") if dead or late or row["failed"] else None
    yield Finding("outbox", ok=mend is None, detail=detail, mend=mend)


def _events(config: Config) -> Iterator[Finding]:  # noqa: ARG001 - like the others
    if not hasattr(os, "pidfd_open"):
        yield Finding("events", ok=True, detail=phrase("polls_only"))
        return
    try:
        from inotify_simple import INotify  # noqa: PLC0415 - only here

        INotify().close()
    except (OSError, ImportError) as error:
        yield _ill("events", phrase("inotify_limit", error=str(error)), "mend_inotify")
        return
    yield Finding("events", ok=True, detail=phrase("well"))


def _runtimes(config: Config) -> Iterator[Finding]:
    """Say of each coding agent whether we are registered, and whether hooks run."""
    from watcher.runtimes.health import health  # noqa: PLC0415 - only here

    for item in health(config.state, dict(os.environ)):
        check = f"install {item.name}"
        yield Finding(check, ok=item.ok, detail=item.detail, mend=item.mend)


def _locks(config: Config, cwd: str) -> Iterator[Finding]:
    place = Place(config=config, cwd=cwd, launcher=os.getpid())
    directory = lock_directory(place)
    if os.path.isdir(directory):
        yield Finding("locks", ok=True, detail=phrase("said", text=directory))
        return
    detail = phrase("directory_missing", path=directory)
    yield Finding(
        "locks", ok=config.locks.dir is None, detail=detail, mend=phrase("mend_locks")
    )


def _ill(check: str, detail: Phrase, mend: str, **values: str) -> Finding:
    return Finding(check, ok=False, detail=detail, mend=phrase(mend, **values))


def _shape(item: Finding, lang: Lang) -> dict[str, Json]:
    return {
        "check": item.check,
        "ok": item.ok,
        "detail": item.detail.render(lang),
        "mend": item.mend.render(lang) if item.mend else None,
    }
