"""`notify-release "<message>"`: one ping by the usual path, fail-soft (C6.6)."""

import asyncio
import os
from dataclasses import replace

from policies.model import Ping, Severity
from policies.text import cut
from policies.wording import Lang, phrase
from watcher.app import build_dispatcher
from watcher.cli import EXIT_USAGE
from watcher.cli.output import fail, secure_descriptors, tell
from watcher.cli.parser import Parser, arguments, language_of
from watcher.clock import SystemClock
from watcher.config import Config, load_config
from watcher.errors import UsageError
from watcher.paths import state_directory

_TITLE_LIMIT = 80  # characters


def main() -> int:
    """Send the message; whatever goes wrong behind the call itself, exit 0."""
    secure_descriptors()
    argv = arguments()
    try:
        message, severity = _parse(argv)
    except UsageError as error:
        what = phrase("error", what=error.phrase)
        fail("notify-release: " + what.render(language_of(argv)))
        return EXIT_USAGE
    try:
        _send(message, severity, language_of(argv))
    except Exception as error:  # noqa: BLE001 - it must never break its caller
        reason = f"{type(error).__name__}: {error}"
        lost = phrase("ping_lost", reason=reason, message=message)
        fail("notify-release: " + lost.render(language_of(argv)))
    return 0


def _parse(argv: list[str]) -> tuple[str, Severity]:
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
    message: str = options.message
    if not message.strip():
        raise UsageError(phrase("no_message"))
    return message, Severity(options.severity)


def _send(message: str, severity: Severity, lang: Lang) -> None:
    try:
        config = load_config(os.environ)
    except UsageError as error:
        tell("notify-release: " + error.phrase.render(lang))
        config = replace(Config(), state=state_directory(os.environ))
    clock = SystemClock()
    ping = Ping(
        idempotency_key=os.urandom(8).hex(),
        title=cut(" ".join(message.split()), _TITLE_LIMIT),
        message=message,
        severity=severity,
        occurred_at=clock.wall(),
    )
    note = asyncio.run(build_dispatcher(config, lang=lang, clock=clock).send(ping))
    if note is not None:
        tell("notify-release: " + note.render(lang))
