"""`koder-monitor selftest`: the whole way once, measured, from release to ping (C9.5).

A real lock and a real process are armed in the service of the state directory and given
back. Their pings go to the fallback log unless `--ping` is given: a test of the
machinery wakes nobody by surprise. Nothing of it stays armed, however it ends.
"""

import argparse
import contextlib
import json
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess  # noqa: TID251 - no loop runs here
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from types import FrameType
from typing import cast

from policies.model import Ending, Json
from policies.wording import Lang, Phrase, phrase
from watcher.cli.common import working_directory
from watcher.cli.doctor import Finding, examine
from watcher.cli.output import say
from watcher.cli.reading import add_lang, language, read
from watcher.client import Answer, Client, start_service
from watcher.clock import SystemClock
from watcher.config import Config, load_config
from watcher.errors import ServiceError, UsageError
from watcher.paths import state_directory
from watcher.runtimes.heartbeat import last_beats

_TTL_S = 300  # what is left behind by a kill ends by itself
_ARM_LIMIT_S = 20.0
_SLACK_S = 15.0  # beyond the interval between two looks, which is all without events
_PING_LIMIT_S = 10.0
_FOLLOW_S = 2.0  # one question to the service
_CLEARED = (Ending.RELEASED, Ending.ENDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How one check went; milliseconds are None where there is nothing to measure."""

    check: str
    ok: bool
    detail: Phrase
    release_to_line_ms: float | None = None
    line_to_ping_ms: float | None = None
    channels: Sequence[str] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add where its pings go, and how it is shown."""
    parser.add_argument(
        "--ping",
        action="store_true",
        help="send the two pings to the operator's channels; else only to the log",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_lang(parser)


def run(options: argparse.Namespace) -> int:
    """Say how it went, and what is not set up; 1 when something does not work."""
    lang = language(options.lang, os.environ)
    config = load_config(os.environ)
    with _ending_in_order():
        checks = [*_measure(config, ping=options.ping)]
    lacking = [*_lacking()]
    if options.json:
        say(json.dumps(_object(checks, lacking, lang), ensure_ascii=False))
    else:
        _show(checks, lacking, lang)
    return 0 if all(check.ok for check in checks) else 1


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind, so that nothing is left behind."""

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise SystemExit(128 + number)

    signals = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, end) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


def _measure(config: Config, *, ping: bool) -> Iterator[Measured]:
    try:
        start_service(config.state, wait=True)
    except ServiceError as error:
        yield Measured(check="service", ok=False, detail=error.phrase)
        return
    trials: dict[str, Callable[[str], AbstractContextManager[_Thing]]]
    trials = {"lock": _lock, "process": _process}
    for name, made in trials.items():
        trial = _Trial(config, name, log_only=not ping)
        try:
            with made(config.state) as thing, trial:
                yield trial.measured(thing)
        except (ServiceError, UsageError) as error:
            yield Measured(check=name, ok=False, detail=error.phrase)


@dataclass(frozen=True, slots=True)
class _Thing:
    """What is waited for, and what gives it back."""

    target: str
    release: Callable[[], None]


@contextmanager
def _lock(state: str) -> Iterator[_Thing]:
    """Give a lock of its own directory, where the service sees it for certain."""
    folder = os.path.realpath(tempfile.mkdtemp(prefix="selftest-", dir=state))
    path = os.path.join(folder, "lock-selftest.md")
    try:
        with open(path, "x", encoding="ascii"):
            pass
        yield _Thing(f"lock {shlex.quote(path)}", lambda: os.unlink(path))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _process(state: str) -> Iterator[_Thing]:  # noqa: ARG001 - as the lock
    """Give a child that ends when it is told to, or with us."""
    child = subprocess.Popen(
        [sys.executable, "-S", "-c", "input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield _Thing(f"process --pid {child.pid}", child.kill)
    finally:
        child.kill()
        child.communicate()


class _Trial:
    """One watch, from its arming to its ping."""

    def __init__(self, config: Config, name: str, *, log_only: bool) -> None:
        """Arm nothing yet."""
        self._name = name
        self._log_only = log_only
        self._state = config.state
        self._client = Client(config.state)
        self._clock = SystemClock()
        self._token = os.urandom(3).hex()
        self._id = ""
        self._notes = 0
        self._every_s = 0.0

    def __enter__(self) -> None:
        """Nothing is armed yet."""

    def __exit__(self, *error: object) -> None:
        """Leave no watch, and no outcome that somebody should read."""
        if not self._id:
            return
        try:
            self._clear()
        except (ServiceError, UsageError):  # it was killed: the store has it all
            with contextlib.suppress(ServiceError, UsageError):
                start_service(self._state, wait=True)
                self._clear()

    def _clear(self) -> None:
        path = f"/v1/watches/{self._id}"
        _, watch = self._client.request("GET", path)
        if cast("Answer", watch)["state"] == "armed":
            self._client.request("DELETE", path, {"why": "selftest"})
        self._client.request("POST", f"{path}/ack", {})

    def measured(self, thing: _Thing) -> Measured:
        """Arm, give back, and measure.

        Raises:
            ServiceError: the service is gone, or does not answer.
            UsageError: it refuses to watch this.
        """
        self._arm(thing.target)
        released_s = self._clock.boot()
        thing.release()
        limit_s = self._every_s + _SLACK_S
        ending = self._ending(limit_s)
        to_line_ms = (self._clock.boot() - released_s) * 1000
        if ending is None:
            detail = phrase("selftest_no_line", limit=round(limit_s))
            return Measured(check=self._name, ok=False, detail=detail)
        if ending not in _CLEARED:
            detail = phrase("selftest_other", ending=ending)
            return Measured(check=self._name, ok=False, detail=detail)
        return self._with_ping(round(to_line_ms, 1))

    def _arm(self, target: str) -> None:
        """Arm, and return once it is known to wait.

        Raises:
            ServiceError: it did not come to that.
        """
        body = {
            "target": target,
            "ttl_s": _TTL_S,
            "label": f"selftest {self._name} {self._token}",
            "resume": "selftest",
            "nonce": os.urandom(12).hex(),
            "launcher": os.getpid(),
            "log_only": self._log_only,
        }
        _, answer = self._client.request("POST", "/v1/watches", body)
        watch = cast("Answer", answer)
        self._id, self._every_s = str(watch["id"]), cast("float", watch["every_s"])
        until_s = self._clock.boot() + _ARM_LIMIT_S
        while self._clock.boot() < until_s:
            news = self._news()
            if news["waiting"] or news["outcome"]:
                return
        raise ServiceError(phrase("service_silent"))

    def _ending(self, limit_s: float) -> str | None:
        """Return how it ended, None where that is not told in time."""
        until_s = self._clock.boot() + limit_s
        while self._clock.boot() < until_s:
            outcome = self._news(knows="&knows=waiting")["outcome"]
            if outcome is not None:
                return str(cast("Answer", outcome)["ending"])
        return None

    def _news(self, knows: str = "") -> Answer:
        path = f"/v1/watches/{self._id}/waiters/1?after={self._notes}"
        path += f"&wait_s={_FOLLOW_S:g}{knows}"
        _, answer = self._client.request("GET", path)
        news = cast("Answer", answer)
        self._notes += len(cast("list[Json]", news["notes"]))
        return news

    def _with_ping(self, to_line_ms: float) -> Measured:
        path = f"/v1/pings?watch={self._id}&wait_s={_PING_LIMIT_S:g}"
        _, answer = self._client.request("GET", path, limit_s=2 * _PING_LIMIT_S)
        pings = cast("list[Answer]", answer)
        channels = [str(ping["channel"]) for ping in pings]
        unsent = [ping for ping in pings if ping["state"] != "delivered"]
        if unsent or not pings:
            error = str(unsent[0]["last_error"]) if unsent else phrase("no_ping_row")
            named = ", ".join(str(ping["channel"]) for ping in unsent) or "outbox"
            return Measured(
                check=self._name,
                ok=False,
                detail=phrase(
                    "selftest_unsent",
                    to_line=f"{to_line_ms:.0f}",
                    channels=named,
                    error=error,
                ),
                release_to_line_ms=to_line_ms,
                channels=channels,
            )
        to_ping_ms = round(max(map(_delivery_ms, pings)), 1)
        return Measured(
            check=self._name,
            ok=True,
            detail=phrase(
                "selftest_went",
                to_line=f"{to_line_ms:.0f}",
                to_ping=f"{to_ping_ms:.0f}",
                channels=", ".join(channels),
            ),
            release_to_line_ms=to_line_ms,
            line_to_ping_ms=to_ping_ms,
            channels=channels,
        )


def _delivery_ms(ping: Answer) -> float:
    """Return the time from the line, which is the outbox's commit, to the delivery."""
    created, delivered = str(ping["created_at"]), str(ping["delivered_at"])
    took = datetime.fromisoformat(delivered) - datetime.fromisoformat(created)
    return max(took.total_seconds(), 0.0) * 1000


def _lacking() -> Iterator[Finding]:
    """Return what is not set up: nothing of it makes the test fail."""
    for finding in examine(os.environ, working_directory()):
        if not finding.ok:
            yield finding
        elif finding.detail.key == "polls_only":
            mend = phrase("mend_polls")
            yield Finding(finding.check, ok=False, detail=finding.detail, mend=mend)
    if not last_beats(state_directory(os.environ)):
        detail, mend = phrase("no_hook_yet"), phrase("mend_hooks")
        yield Finding("hooks", ok=False, detail=detail, mend=mend)
    hosts, _ = read(_unseen_hosts)
    if hosts:
        detail = phrase("hosts_unseen", hosts=", ".join(hosts))
        yield Finding("hosts", ok=False, detail=detail, mend=phrase("mend_hosts"))


def _unseen_hosts(connection: sqlite3.Connection) -> list[str]:
    """Return the hosts of armed watches that give no answer."""
    hosts = connection.execute(
        "SELECT DISTINCT host FROM watches WHERE state = 'armed'"
        " AND host IS NOT NULL AND observation = 'unknown' ORDER BY host"
    )
    return [row["host"] for row in hosts]


def _show(checks: Sequence[Measured], lacking: Sequence[Finding], lang: Lang) -> None:
    for check in checks:
        mark = "✅" if check.ok else "❌"
        say(f"{mark} {check.check}: {check.detail.render(lang)}")
    for item in lacking:
        mend = f" → {item.mend.render(lang)}" if item.mend else ""
        say(f"⚠️  {item.check}: {item.detail.render(lang)}{mend}")


def _object(
    checks: Sequence[Measured], lacking: Sequence[Finding], lang: Lang
) -> Mapping[str, object]:
    return {
        "ok": all(check.ok for check in checks),
        "checks": [
            {
                "check": check.check,
                "ok": check.ok,
                "release_to_line_ms": check.release_to_line_ms,
                "line_to_ping_ms": check.line_to_ping_ms,
                "channels": list(check.channels),
                "detail": check.detail.render(lang),
            }
            for check in checks
        ],
        "not_set_up": [
            {
                "check": item.check,
                "detail": item.detail.render(lang),
                "mend": item.mend.render(lang) if item.mend else None,
            }
            for item in lacking
        ],
    }
