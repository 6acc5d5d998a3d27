"""The watch commands: arm, wait, say once how it ended, end (C1.2).

Each is a thin client. The watch is the service's: whatever happens to this process, it
goes on, and its ping gets out (C5). Only where there is no service to be had is the
work done here.
"""

import argparse
import contextlib
import json
import os
import select
import signal
from collections.abc import Mapping
from datetime import datetime, timedelta
from types import FrameType
from typing import Self, cast

from policies.codec import instant, outcome_of, phrase_of
from policies.duration import format_countdown, format_minutes, parse_duration
from policies.lines import local_time, outcome_line
from policies.model import Json, Outcome, Target
from policies.shapes import outcome_object
from policies.wording import Phrase, phrase
from watcher.cli.common import (
    Order,
    Whereabouts,
    add_common,
    exit_status,
    order_of,
    working_directory,
)
from watcher.cli.output import Countdown, say, tell
from watcher.client import Client, Pending, start_service
from watcher.clock import SystemClock
from watcher.conditions import Place, kind_of
from watcher.config import Config, load_config, settings_of
from watcher.errors import ServiceError, UsageError
from watcher.paths import project_directory

_FIRST_NEWS_S = 1.0  # that it waits, or how it ended already
_FOLLOW_S = 60.0  # one question to the service waits so long for news
_ATTENTION_S = 2.0  # how soon a dead launcher or reader is noticed
_PING_S = 5.0  # what delivery gets before the command ends (C6.1)
_OVERDUE_S = 30.0  # behind the deadline a service that says nothing counts as dead
_SILENCE_S = 15.0  # behind the time it was given, likewise
_ARM_LIMIT_S = 30.0  # for all tries together to be armed by a service
_LEAVE_LIMIT_S = 5.0  # a person who pressed Ctrl-C waits no longer
_REVIVE_S = 20.0  # for a service that dies again and again, before we work alone
_GONE_STATUS = 128 + signal.SIGHUP


class WatchCommand:
    """`koder-monitor lock`, `koder-monitor process` and so on, by the kind's name."""

    def __init__(self, name: str) -> None:
        """Be the command of a kind."""
        self._name = name
        self._kind = kind_of(name)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add what the condition is named by, and how to wait."""
        self._kind.add_arguments(parser)
        if self._name == "process":
            parser.add_argument(
                "--start-within",
                metavar="DURATION",
                help="wait this long for work that has yet to begin (not with --pid)",
            )
        if self._name == "lock":
            parser.add_argument(
                "--take", action="store_true", help="take the lock once it is free"
            )
        try:
            add_common(parser)
        except argparse.ArgumentError as error:  # another package's took one of them
            name, said = self._name, str(error)
            why = phrase("foreign_broken", kind=name, source=name, error=said)
            raise UsageError(why) from error

    def run(self, options: argparse.Namespace) -> int:
        """Wait until the outcome and return the exit status."""
        config = load_config(os.environ)
        place = Place(config=config, cwd=working_directory(), launcher=os.getpid())
        target = self._kind.target_of(options, place)
        order = order_of(options, config, os.environ, far=target.far)
        within_s = _start_within(options)
        if order.raised is not None:
            tell(order.raised.render(order.lang))
        waiting = Waiting(
            target,
            order,
            config,
            start_within_s=within_s,
            takes=getattr(options, "take", False),
            cwd=place.cwd,
        )
        try:
            return waiting.run()
        except ServiceError as error:
            if order.detach:
                raise  # there is nobody to leave it to, and whoever asked goes on
            tell(phrase("alone", reason=error.phrase).render(order.lang))
            return waiting.alone()


class Waiting:
    """One waiter of a watch, and whoever reads what it prints."""

    def __init__(
        self,
        target: Target,
        order: Order,
        config: Config,
        *,
        start_within_s: int,
        takes: bool,
        cwd: str,
    ) -> None:
        """Arm nothing yet."""
        self._target = target
        self._order = order
        self._config = config
        self._start_within_s = start_within_s
        self._takes = takes
        self._cwd = cwd
        self._client = Client(config.state)
        self._now = SystemClock()
        self._countdown = Countdown()
        self._far = target.host is not None
        self._fate: list[Phrase] = []
        """What becomes of a watcher that stays on a host."""
        self._path = ""
        self._id = ""
        self._nonce: str | None = None
        self._number = 0
        self._notes = 0
        self._armed = False
        self._set_deadline(self._now.wall() + timedelta(seconds=order.ttl_s))
        self._started_s = self._now.boot()
        self._late_since_s: float | None = None

    def run(self) -> int:
        """Arm, wait, and say how it ended.

        Raises:
            UsageError: the condition cannot be watched at all.
            ServiceError: there is no service to be had.
        """
        self._arm()
        if self._order.detach:
            known = self._known_at_once()
            if known is not None:
                print_outcome(known, self._order, self._now)
                return exit_status(known) if self._order.exit_codes else 0
            self._say_armed()
            self._tell(phrase("detached", id=self._id))
            for note in self._fate:
                self._tell(note)
            return 0
        with Attention() as attention:
            outcome = self._wait(attention)
            self._countdown.clear()
            if outcome is None:
                return self._stopped(attention)
            print_outcome(outcome, self._order, self._now)
            self._watch_pings(attention)
        return exit_status(outcome) if self._order.exit_codes else 0

    def alone(self) -> int:
        """Do the work here for the time that is left.

        Under the watch's own id, so that a ping which the service sends after all has
        the same key.
        """
        from watcher.cli.alone import wait_alone  # noqa: PLC0415 - asyncio and all

        self._countdown.clear()
        passed_s = self._now.boot() - self._started_s
        return wait_alone(
            self._target,
            self._order,
            self._config,
            left_s=max(self._order.ttl_s - passed_s, 0.0),
            start_within_s=self._start_within_s,
            takes=self._takes,
            watch_id=self._id or None,
            number=self._number or 1,
            nonce=self._nonce,
            waited=self._armed,
        )

    # -- talking to the service -------------------------------------------------

    def _arm(self) -> None:
        from watcher.store import to_text  # noqa: PLC0415 - a wrong call needs no SQL

        self._nonce = os.urandom(12).hex()
        body = {
            "target": to_text(self._target.text),
            "ttl_s": self._order.ttl_s,
            "every_s": self._order.every_s,
            "label": self._order.label and to_text(self._order.label),
            "resume": self._order.resume and to_text(self._order.resume),
            "session": self._order.session,
            "lang": self._order.lang,
            "start_within_s": self._start_within_s,
            "take": self._takes,
            "launcher": os.getpid(),
            "nonce": self._nonce,
            "project": to_text(project_directory(self._cwd)),
            "detach": self._far and self._order.detach,
            "settings": settings_of(self._config),
        }
        status, answer = self._ask_to_arm(body)
        watch = cast("Mapping[str, Json]", answer)
        self._id, self._number = str(watch["id"]), cast("int", watch["waiter"])
        self._path = f"/v1/watches/{self._id}/waiters/{self._number}"
        differs = cast("list[str]", watch["differs"])
        if differs:
            self._tell(phrase("differs", names=", ".join(differs)))
        if status == 200:
            self._tell(phrase("joined", id=self._id))
        notes = cast("list[Json]", watch.get("notes", []))
        self._fate = [note for one in notes if (note := phrase_of(one)) is not None]

    def _ask_to_arm(self, body: Mapping[str, object]) -> tuple[int, Json]:
        """Ask until there is an answer; the nonce makes the first one count.

        Raises:
            ServiceError: there is none, or none in time: it may be stopped.
        """
        while True:
            try:
                return self._client.request(
                    "POST", "/v1/watches", body, limit_s=_ARM_LIMIT_S
                )
            except ServiceError:
                if self._now.boot() - self._started_s > _ARM_LIMIT_S:
                    raise
                start_service(self._config.state, wait=True)

    def _wait(self, attention: "Attention") -> Outcome | None:
        """Return the outcome, or None when nobody waits for it here any more.

        A service that dies is brought back and asked again: the watch is in the store.
        """
        wait_s, silent_since_s = 1.0, self._now.awake()
        while True:
            self._check_overdue()
            try:
                with self._ask(wait_s) as pending:
                    if not self._attend(attention, pending, wait_s + _SILENCE_S):
                        return None
                    _, answer = pending.read()
                silent_since_s = self._now.awake()
            except ServiceError:
                if self._now.awake() - silent_since_s > _REVIVE_S:
                    raise
                start_service(self._config.state, wait=True)
                continue
            outcome = self._take_news(cast("Mapping[str, Json]", answer))
            if outcome is not None:
                return outcome
            wait_s = _FOLLOW_S

    def _known_at_once(self) -> Outcome | None:
        """Return the outcome of what is over while it is armed, if it is."""
        path = f"{self._path}?after={1 << 20}&wait_s={_FIRST_NEWS_S:g}"
        try:
            _, answer = self._client.request("GET", path)
        except ServiceError:
            return None  # it is armed: whoever comes next brings the service back
        record = cast("Mapping[str, Json]", answer)["outcome"]
        return outcome_of(cast("Mapping[str, Json]", record)) if record else None

    def _ask(self, wait_s: float) -> Pending:
        knows = "&knows=waiting" if self._armed else ""
        query = f"?after={self._notes}&wait_s={wait_s:g}{knows}"
        limit_s = wait_s + _SILENCE_S
        return self._client.send("GET", self._path + query, limit_s=limit_s)

    def _take_news(self, news: Mapping[str, Json]) -> Outcome | None:
        """Say what is new; return the outcome if that is."""
        record = cast("Mapping[str, Json] | None", news["outcome"])
        if record is None and not self._armed:
            self._armed = True
            self._say_armed()
        self._take_notes(news)
        if news["deadline_at"] is not None:
            self._set_deadline(instant(news["deadline_at"]))
        return None if record is None else outcome_of(record)

    def _take_notes(self, news: Mapping[str, Json]) -> None:
        for note in cast("list[Json]", news["notes"]):
            self._notes += 1
            sentence = phrase_of(note)
            if sentence is not None:
                self._tell(sentence)

    def _set_deadline(self, deadline: datetime) -> None:
        """Keep it on the clock that nobody steps, too (C4.3)."""
        left_s = (deadline - self._now.wall()).total_seconds()
        self._deadline, self._deadline_s = deadline, self._now.boot() + left_s

    def _check_overdue(self) -> None:
        """Give a service up that lets the deadline pass in silence.

        It gets its time awake: whoever wakes a machine hours late wakes it, too.

        Raises:
            ServiceError: it is overdue.
        """
        if self._now.boot() < self._deadline_s:
            self._late_since_s = None
        elif self._late_since_s is None:
            self._late_since_s = self._now.awake()
        elif self._now.awake() - self._late_since_s > _OVERDUE_S:
            raise ServiceError(phrase("service_silent"))

    def _watch_pings(self, attention: "Attention") -> None:
        """Give delivery a few seconds, and say where a ping went instead."""
        path = f"/v1/pings?watch={self._id}&wait_s={_PING_S:g}"
        try:
            limit_s = _PING_S + _LEAVE_LIMIT_S
            with self._client.send("GET", path, limit_s=limit_s) as pending:
                if not self._attend(attention, pending, limit_s):
                    return
                _, answer = pending.read()
        except ServiceError:
            return  # the service has it in its outbox, whenever it is back
        places = {
            Whereabouts(
                channel=str(ping["channel"]),
                message=str(ping["message"]),
                delivered=ping["state"] == "delivered",
                logged=ping["logged_at"] is not None,
                error=cast("str | None", ping["last_error"]),
            )
            for ping in cast("list[Mapping[str, Json]]", answer)
            if ping["attempts"]
        }
        notes = [place.note(self._config) for place in places]
        lines = (note.render(self._order.lang) for note in notes if note is not None)
        for line in dict.fromkeys(lines):
            self._countdown.clear()
            tell(line)
        # What became of a ping that went past the outbox is told behind the outcome.
        with contextlib.suppress(ServiceError, UsageError):
            late = f"{self._path}?after={self._notes}&wait_s=0"
            _, news = self._client.request("GET", late, limit_s=_LEAVE_LIMIT_S)
            self._take_notes(cast("Mapping[str, Json]", news))

    # -- attending to people -----------------------------------------------------

    def _attend(self, attention: "Attention", pending: Pending, limit_s: float) -> bool:
        """Wait for an answer; False when a signal came or nobody reads us any more.

        A service that is stopped (SIGSTOP) or hangs takes a request and never answers.

        Raises:
            ServiceError: it has not answered in time, or not by the deadline.
        """
        until_s = self._now.awake() + limit_s
        while not attention.wait(pending, 1.0 if self._countdown.active else None):
            if attention.signal is not None or attention.abandoned():
                return False
            self._check_overdue()
            if self._now.awake() > until_s:
                raise ServiceError(phrase("service_silent"))
            self._tick()
        return True

    def _tick(self) -> None:
        left_s = self._deadline_s - self._now.boot()
        shown = phrase(
            "countdown", label=self._target.text, left=format_countdown(left_s)
        )
        self._countdown.show(shown.render(self._order.lang))

    def _say_armed(self) -> None:
        self._tell(
            phrase(
                "armed",
                target=self._target.text,
                until=local_time(self._deadline, self._now.zone()),
                ttl=format_minutes(self._order.ttl_s),
            )
        )

    def _stopped(self, attention: "Attention") -> int:
        """End without an outcome: a person takes the waiter out, anything else not."""
        number = attention.signal
        if number is signal.SIGINT:
            # It may have ended by itself just now.
            with contextlib.suppress(ServiceError, UsageError):
                self._client.request("DELETE", self._path, limit_s=_LEAVE_LIMIT_S)
            self._tell(phrase("interrupted"))
        elif number is not None:
            self._tell(phrase("goes_on", signal=number.name, id=self._id))
        return 128 + number if number is not None else _GONE_STATUS

    def _tell(self, note: Phrase) -> None:
        self._countdown.clear()
        tell(note.render(self._order.lang))


class Attention:
    """Signals, the launcher, and the reader of stdout (C5.4)."""

    def __init__(self) -> None:
        """Notice nothing yet."""
        self.signal: signal.Signals | None = None
        self._launcher = os.getppid()
        self._reading, self._writing = os.pipe()
        self._keeps_on = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN

    def __enter__(self) -> Self:
        """Take the signals; what the launcher ignores stays ignored."""
        os.set_blocking(self._writing, False)
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *args: object) -> None:
        """Let go of the pipe."""
        signal.set_wakeup_fd(-1)
        os.close(self._reading)
        os.close(self._writing)

    def wait(self, pending: Pending, limit_s: float | None) -> bool:
        """Say whether an answer is there; False is a reason to look up."""
        poll = select.poll()
        poll.register(pending.fileno(), select.POLLIN)
        poll.register(self._reading, select.POLLIN)
        events = poll.poll(1000 * min(limit_s or _ATTENTION_S, _ATTENTION_S))
        return self.signal is None and any(fd == pending.fileno() for fd, _ in events)

    def abandoned(self) -> bool:
        """Say whether the launcher is gone, or the reader of stdout.

        Whoever had SIGHUP ignored (nohup) wants the command to outlive its launcher.
        """
        if not self._keeps_on and os.getppid() != self._launcher:
            return True
        poll = select.poll()
        poll.register(1, 0)
        return any(
            event & (select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0)
        )

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.signal = self.signal or signal.Signals(number)


def print_outcome(outcome: Outcome, order: Order, now: SystemClock) -> None:
    """Print the one line, or the one object, in this command's zone and language."""
    zone = now.zone()
    if order.json:
        say(json.dumps(outcome_object(outcome, order.lang, zone), ensure_ascii=False))
    else:
        say(outcome_line(outcome, order.lang, zone))


def _start_within(options: argparse.Namespace) -> int:
    text = getattr(options, "start_within", None)
    if text is None:
        return 0
    if options.pid is not None:
        raise UsageError(phrase("start_within_idle"))
    try:
        return parse_duration(text)
    except ValueError as error:
        name = "--start-within"
        raise UsageError(phrase("bad_duration", name=name, value=text)) from error
