"""`notify-release "<message>"`: one ping by the usual path, fail-soft (C6.6)."""

import asyncio
import os
import select
import signal
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass

from notify import outbox
from notify.dispatcher import Dispatcher
from policies.model import Ping, Severity
from policies.text import cut
from policies.wording import Lang, Phrase, phrase
from watcher.app import build_dispatcher
from watcher.cli import EXIT_INTERRUPTED, EXIT_USAGE
from watcher.cli.common import Whereabouts
from watcher.cli.output import fail, secure_descriptors, secure_zone, tell
from watcher.cli.parser import Parser, arguments, language_of
from watcher.client import start_service_if_needed
from watcher.clock import SystemClock
from watcher.config import Config, load_config
from watcher.database import open_database, open_for_reading
from watcher.errors import StoreError, UsageError
from watcher.paths import state_directory

_TITLE_LIMIT = 80  # characters
_PING_S = 5.0  # what delivery gets before the command ends (C6.1)


def main() -> int:
    """Send the message; whatever goes wrong behind the call itself, exit 0.

    Only a signal shows in the status, 128 + n (C1.6); the ping is written down then.
    """
    secure_descriptors()
    secure_zone()
    argv = arguments()
    try:
        call = _parse(argv)
    except UsageError as error:
        what = phrase("error", what=error.phrase)
        fail("notify-release: " + what.render(language_of(argv)))
        return EXIT_USAGE
    try:
        return _send(call)
    except KeyboardInterrupt:
        status, reason = EXIT_INTERRUPTED, phrase("cut_short")
    except UsageError as error:
        status, reason = 0, error.phrase
    except Exception as error:  # noqa: BLE001 - it must never break its caller
        status, reason = 0, phrase("internal", error=f"{type(error).__name__}: {error}")
    lost = phrase("ping_lost", reason=reason, message=call.message)
    fail("notify-release: " + lost.render(language_of(argv)))
    return status


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    message: str
    severity: Severity
    lang: Lang | None


def _parse(argv: list[str]) -> _Call:
    parser = Parser(
        prog="notify-release",
        description="Ping the operator by the configured channel, else write the "
        "message to the fallback log. Never fails but for wrong arguments.",
    )
    parser.add_argument("message", help="what the operator should read")
    parser.add_argument(
        "--severity",
        choices=[item.value for item in Severity],
        default=Severity.INFO.value,
        help="how urgent it is (default: info)",
    )
    parser.add_argument("--lang", choices=["pt", "en"], help="language of messages")
    options = parser.parse_args(argv)
    # The caller's bytes are UTF-8 even where the locale is none.
    message = os.fsencode(options.message).decode("utf-8", "surrogateescape")
    if not message.strip():
        raise UsageError(phrase("no_message"))
    return _Call(
        message=message,
        severity=Severity(options.severity),
        lang=Lang(options.lang) if options.lang else None,
    )


def _send(call: _Call) -> int:
    unusable: Phrase | None = None
    try:
        config = load_config(os.environ)
    except UsageError as error:
        unusable = error.phrase
        config = Config(state=state_directory(os.environ))
    clock = SystemClock()
    lang = call.lang or config.lang
    ping = Ping(
        idempotency_key=os.urandom(8).hex(),
        title=cut(" ".join(call.message.split()), _TITLE_LIMIT),
        message=call.message,
        severity=call.severity,
        occurred_at=clock.wall(),
    )
    dispatcher = build_dispatcher(config, lang=lang, clock=clock, unusable=unusable)
    if unusable is None and _put_into_outbox(config, dispatcher.names, ping):
        return _watch_delivery(config, ping, lang)
    note, status = asyncio.run(_deliver(dispatcher, ping))
    if note is not None:
        tell("notify-release: " + note.render(lang))
    return status


def _put_into_outbox(config: Config, channels: Collection[str], ping: Ping) -> bool:
    """Store the ping, so that it is tried until delivered (C6.1); False if not."""
    try:
        connection, _ = open_database(config.state)
    except StoreError:
        return False
    try:
        connection.execute("BEGIN IMMEDIATE")
        outbox.add(
            connection,
            ping,
            channels=channels,
            now_s=ping.occurred_at.timestamp(),
            give_up_s=config.notify.give_up_after,
            watch_id=None,
        )
        connection.execute("COMMIT")
    except sqlite3.Error:
        return False
    finally:
        connection.close()
    return True


def _watch_delivery(config: Config, ping: Ping, lang: Lang) -> int:
    """Give delivery a few seconds, and say where a ping went instead."""
    stopped: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: stopped.append(number))
    start_service_if_needed(config.state)
    clock = SystemClock()
    until_s = clock.boot() + _PING_S
    while clock.boot() < until_s and not stopped:
        notes = _first_attempts(config, ping)
        if notes is not None:
            for note in notes:
                tell("notify-release: " + note.render(lang))
            return 0
        select.select([], [], [], 0.05)
    tell("notify-release: " + phrase("ping_waits").render(lang))
    return 128 + stopped[0] if stopped else 0


def _first_attempts(config: Config, ping: Ping) -> list[Phrase] | None:
    """Return what a person must know of the ping, or None while an attempt is open."""
    rows = _rows_of(config.state, ping.idempotency_key)
    if rows is None or any(r["state"] == "pending" and not r["attempts"] for r in rows):
        return None
    found = {
        Whereabouts(
            channel=row["channel"],
            message=ping.message,
            delivered=row["state"] == "delivered",
            logged=row["logged_at"] is not None,
            error=row["last_error"],
        )
        for row in rows
    }
    return [note for item in found if (note := item.note(config)) is not None]


def _rows_of(state: str, key: str) -> list[sqlite3.Row] | None:
    connection = open_for_reading(state)
    if connection is None:
        return None
    try:
        return connection.execute(
            "SELECT channel, state, attempts, logged_at, last_error FROM pings"
            " WHERE key = ?",
            (key,),
        ).fetchall()
    except sqlite3.Error:
        return None
    finally:
        connection.close()


async def _deliver(dispatcher: Dispatcher, ping: Ping) -> tuple[Phrase | None, int]:
    """Send; a signal that comes meanwhile sends the ping to the fallback log."""
    sending = asyncio.ensure_future(dispatcher.send(ping))
    signals: list[int] = []

    def stop(number: int) -> None:
        signals.append(number)
        sending.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, stop, number)
    try:
        return await sending, 0
    except asyncio.CancelledError:
        if not signals:
            raise
        return dispatcher.write_down(ping, phrase("cut_short")), 128 + signals[0]
