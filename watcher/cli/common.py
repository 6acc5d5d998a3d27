"""The options that every watch command has (C1.3), and what they come to."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass

from policies.cadence import cadence
from policies.delivery import MESSAGE_LIMIT
from policies.duration import parse_duration
from policies.model import Ending, Outcome, Result
from policies.target import is_session, says_nothing
from policies.wording import Lang, Phrase, phrase
from watcher.config import Config
from watcher.errors import UsageError

DEFAULT_TTL_S = 3600
_BAD_ENDS = frozenset({Result.FAIL, Result.STALLED, Result.DIED})
_EXITS = {
    Ending.RELEASED: 0,
    Ending.ENDED: 0,
    Ending.REMOVED: 4,
    Ending.UNSEEN: 6,
    Ending.EXPIRED: 124,
}
_SESSION_VARIABLES = ("KODER_MONITOR_SESSION", "CLAUDE_CODE_SESSION_ID")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """How a watch was asked for, whatever its condition."""

    ttl_s: int
    every_s: int
    raised: Phrase | None
    label: str | None
    resume: str | None
    session: str | None
    detach: bool
    json: bool
    exit_codes: bool
    lang: Lang


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options that are the same for every condition."""
    group = parser.add_argument_group("how to wait")
    group.add_argument(
        "--ttl",
        metavar="DURATION",
        help="deadline, such as 45s, 30m, 1h30m, 2d or seconds (default 1h, or $TTL)",
    )
    group.add_argument(
        "--every",
        metavar="DURATION",
        help="look this often beside events (default and least: 30s, on a host 60s)",
    )
    group.add_argument("--resume", metavar="TEXT", help="the activity to take up again")
    group.add_argument("--label", metavar="TEXT", help="what is awaited, for people")
    group.add_argument(
        "--session", metavar="ID", help="the session that waits (default: its own id)"
    )
    group.add_argument(
        "--detach",
        action="store_true",
        help="arm it, print its id on stderr, and end; on a host a watcher stays there,"
        " which pings when this machine is off",
    )
    group.add_argument(
        "--json", action="store_true", help="print one JSON object instead of the line"
    )
    group.add_argument(
        "--exit-codes",
        action="store_true",
        help="0 released or ended, 3 ended badly, 6 never seen, 124 expired",
    )
    group.add_argument(
        "--lang", choices=["pt", "en"], help="language of lines and messages"
    )


def order_of(
    options: argparse.Namespace, config: Config, env: Mapping[str, str], *, far: bool
) -> Order:
    """Return what the common options, the environment and the settings come to.

    Args:
        options: those of the call.
        config: the settings in force.
        env: the environment.
        far: it is about another host, which is looked at less often (C4.1).

    Raises:
        UsageError: one of them will not do.
    """
    lang = Lang(options.lang) if options.lang else config.lang
    every = cadence(
        asked_s=_duration("--every", options.every)
        if options.every is not None
        else None,
        default_s=int(config.cadence.remote if far else config.cadence.local),
        floor_s=int(config.cadence.floor_remote if far else config.cadence.floor_local),
    )
    return Order(
        ttl_s=_ttl(options.ttl, env),
        every_s=every.every_s,
        raised=phrase("every_raised", every=options.every, floor=f"{every.every_s}s")
        if every.raised
        else None,
        label=_label(options.label),
        resume=options.resume or None,
        session=_session(options.session, env),
        detach=options.detach,
        json=options.json,
        exit_codes=options.exit_codes,
        lang=lang,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Whereabouts:
    """What became of a ping on one channel by its first attempt (C6.4)."""

    channel: str
    message: str
    delivered: bool
    logged: bool
    error: str | None

    def note(self, config: Config) -> Phrase | None:
        """Return what a person must know of it, if anything."""
        if self.logged:
            reason = self._reason(config)
            return phrase("ping_logged", path=config.fallback_log, reason=reason)
        if self.delivered:
            return None
        error = self.error or "?"
        return phrase("ping_lost", reason=error, message=self.message)

    def _reason(self, config: Config) -> Phrase:
        if self.error:
            return phrase("said", text=self.error)
        if self.channel == "log":
            return phrase("no_channel")
        from watcher.app import key_problem  # noqa: PLC0415 - start-up time

        cut = len(self.message) > MESSAGE_LIMIT
        return phrase("whole_text") if cut else key_problem(config) or phrase("see_log")


def working_directory() -> str:
    """Return the physical current directory.

    Raises:
        UsageError: it was deleted.
    """
    try:
        return os.getcwd()
    except OSError as error:
        raise UsageError(phrase("no_cwd")) from error


def exit_status(outcome: Outcome) -> int:
    """Return the status of `--exit-codes` (C1.6)."""
    return 3 if outcome.result in _BAD_ENDS else _EXITS[outcome.ending]


def _duration(name: str, text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(phrase("bad_duration", name=name, value=text)) from error


def _ttl(asked: str | None, env: Mapping[str, str]) -> int:
    if asked is not None:
        return _duration("--ttl", asked)
    inherited = env.get("TTL", "").strip()
    return _duration("TTL", inherited) if inherited else DEFAULT_TTL_S


def _label(label: str | None) -> str | None:
    if label is not None and says_nothing(label):
        raise UsageError(phrase("bad_label", label=label))
    return label


def _session(asked: str | None, env: Mapping[str, str]) -> str | None:
    if asked is not None:
        if not is_session(asked):
            raise UsageError(phrase("bad_session", session=asked))
        return asked
    return session_of(env)


def session_of(env: Mapping[str, str]) -> str | None:
    """Return the session that runs us, where its environment names one."""
    inherited = next((env[name] for name in _SESSION_VARIABLES if env.get(name)), None)
    return inherited if inherited is not None and is_session(inherited) else None
