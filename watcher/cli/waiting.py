"""One waiting command: arm, wait, say once how it ended, ping, end (C1.2)."""

import asyncio
import json
import os
import signal
from datetime import timedelta

from notify.dispatcher import Dispatcher
from policies.duration import format_countdown, format_minutes
from policies.lines import local_time, outcome_line
from policies.model import Ending, Outcome, Ping, Result
from policies.shapes import outcome_object, outcome_ping
from policies.verdict import Rules
from policies.wording import Phrase, phrase
from watcher.app import build_dispatcher, key_problem
from watcher.cli.common import Order
from watcher.cli.output import Countdown, say, tell
from watcher.clock import SystemClock
from watcher.conditions import Condition
from watcher.config import Config
from watcher.engine import LOOK_LIMIT_S, Engine, Listener, Watch
from watcher.hints import SystemHints

_BAD_ENDS = frozenset({Result.FAIL, Result.STALLED, Result.DIED})
_EXITS = {
    Ending.RELEASED: 0,
    Ending.ENDED: 0,
    Ending.REMOVED: 4,
    Ending.UNSEEN: 6,
    Ending.EXPIRED: 124,
}


def exit_status(outcome: Outcome) -> int:
    """Return the status of `--exit-codes` (C1.6)."""
    return 3 if outcome.result in _BAD_ENDS else _EXITS[outcome.ending]


def wait_for(
    condition: Condition, order: Order, config: Config, *, start_within_s: int = 0
) -> int:
    """Wait in the foreground until the outcome and return the exit status.

    Raises:
        UsageError: the condition cannot be watched at all.
    """
    command = WaitingCommand(condition, order, config, start_within_s=start_within_s)
    return asyncio.run(command.run())


class WaitingCommand(Listener):
    """The engine in this very process, for one watch and one reader."""

    def __init__(
        self,
        condition: Condition,
        order: Order,
        config: Config,
        *,
        start_within_s: int,
    ) -> None:
        """Prepare; nothing is looked at yet."""
        self._condition = condition
        self._order = order
        self._config = config
        self._start_within_s = start_within_s
        self._clock = SystemClock()
        self._dispatcher: Dispatcher = build_dispatcher(
            config, lang=order.lang, clock=self._clock
        )
        self._countdown = Countdown()
        self._notes: list[Phrase] = []
        self._outcome: Outcome | None = None
        self._signal: signal.Signals | None = None

    async def run(self) -> int:
        """Do the whole job.

        1. Refuse what cannot be watched.
        2. Look until the outcome, or until a signal ends the command.
        3. Write the ping down or print the line first, whichever cannot wait; then
           give delivery its few seconds.
        """
        self._stop = asyncio.Event()
        self._engine = Engine(clock=self._clock, listener=self)
        self._take_signals()
        try:
            async with asyncio.timeout(LOOK_LIMIT_S):
                await self._condition.admit()
        except TimeoutError:
            pass  # the first look will hang likewise, and be unknown
        problem = key_problem(self._config)
        if problem is not None:
            self._tell(problem)
        watch = self._watch()
        self._engine.arm(watch)
        ticking = asyncio.ensure_future(self._tick(watch))
        await self._engine.run(self._stop)
        ticking.cancel()
        self._countdown.clear()
        if self._outcome is None:
            return self._stopped(watch)
        await self._report(self._outcome)
        return exit_status(self._outcome) if self._order.exit_codes else 0

    def armed(self, watch: Watch) -> None:
        """Say that it waits, and until when; only now load what wakes it early."""
        ttl_s = self._order.ttl_s
        left = timedelta(seconds=watch.rules.deadline_s - self._clock.boot())
        self._tell(
            phrase(
                "armed",
                target=self._condition.target.text,
                until=local_time(self._clock.wall() + left, self._clock.zone()),
                ttl=format_minutes(ttl_s),
            )
        )
        for note in self._notes:
            self._tell(note)
        last = watch.last
        if last is not None and last.absent and self._start_within_s:
            span = format_minutes(self._start_within_s)
            self._tell(phrase("start_awaited", start_within=span))
        self._engine.use_hints(SystemHints(self._engine.look_now, self._tell))

    def noted(self, watch: Watch, note: Phrase) -> None:
        """Say what a person must know, behind the armed line."""
        if watch.waiting:
            self._tell(note)
        else:
            self._notes.append(note)

    def ended(self, watch: Watch, outcome: Outcome) -> None:  # noqa: ARG002
        """Take the outcome and stop looking."""
        self._outcome = outcome
        self._stop.set()

    def _watch(self) -> Watch:
        now_s = self._clock.boot()
        ttl_s = self._order.ttl_s
        return Watch(
            id=os.urandom(6).hex(),
            condition=self._condition,
            rules=Rules(
                armed_s=now_s,
                deadline_s=now_s + ttl_s,
                settle_s=self._config.cadence.settle if self._condition.settle else 0.0,
                start_within_s=self._start_within_s,
            ),
            every_s=self._order.every_s,
            ttl_s=ttl_s,
            label=self._order.label or self._condition.target.label,
            armed_at=self._clock.wall(),
            armed_awake_s=self._clock.awake(),
            resume=self._order.resume,
            session=self._order.session,
        )

    async def _report(self, outcome: Outcome) -> None:
        """Print the line and send the ping; a log entry comes first, a request after.

        A signal that comes meanwhile sends the ping to the fallback log at once.
        """
        ping = outcome_ping(outcome, self._order.lang, self._clock.zone())
        if not self._dispatcher.needs_network:
            note = await self._dispatcher.send(ping)
            self._print(outcome)
        else:
            self._print(outcome)
            note = await self._send(ping)
        if note is not None:
            self._tell(note)

    async def _send(self, ping: Ping) -> Phrase | None:
        self._stop.clear()
        sending = asyncio.ensure_future(self._dispatcher.send(ping))
        stopping = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({sending, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if sending.done():
            return sending.result()
        sending.cancel()
        return self._dispatcher.write_down(ping, phrase("cut_short"))

    def _print(self, outcome: Outcome) -> None:
        lang, zone = self._order.lang, self._clock.zone()
        if self._order.json:
            shape = outcome_object(outcome, lang, zone)
            say(json.dumps(shape, ensure_ascii=False))
        else:
            say(outcome_line(outcome, lang, zone))

    def _stopped(self, watch: Watch) -> int:
        """Say why no outcome came and return 128 + n."""
        number = self._signal or signal.SIGTERM
        if number is signal.SIGINT:
            self._tell(phrase("interrupted"))
        else:
            label = watch.label
            self._tell(phrase("stopped", signal=number.name, label=label))
        return 128 + number

    def _take_signals(self) -> None:
        """Turn signals into the stop event; what the launcher ignores stays ignored."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._on_signal, number)

    def _on_signal(self, number: signal.Signals) -> None:
        self._signal = number
        self._stop.set()

    async def _tick(self, watch: Watch) -> None:
        """Keep the countdown of a terminal going."""
        while self._countdown.active:
            if watch.waiting:
                left_s = watch.rules.deadline_s - self._clock.boot()
                shown = phrase(
                    "countdown",
                    label=self._condition.target.text,
                    left=format_countdown(left_s),
                )
                self._countdown.show(shown.render(self._order.lang))
            await self._clock.sleep(1.0)

    def _tell(self, note: Phrase) -> None:
        self._countdown.clear()
        tell(note.render(self._order.lang))
