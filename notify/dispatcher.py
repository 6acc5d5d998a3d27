"""From the outbox to the channels, and to the fallback log where that fails (C6.4)."""

import asyncio
import itertools
import logging
import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime
from sqlite3 import Connection
from typing import Protocol, TypeVar

from notify import outbox
from notify.channels import Channel
from notify.channels.fallback import FallbackLog, LogChannel
from notify.channels.koder import ATTEMPT_LIMIT_S
from notify.errors import DeliveryError, FallbackError, PermanentDeliveryError
from policies.delivery import (
    MESSAGE_LIMIT,
    Answer,
    Attempt,
    PingState,
    Settlement,
    kept,
    settlement,
)
from policies.model import Ping
from policies.text import clean
from policies.wording import Lang, Phrase, phrase

T = TypeVar("T")

AfterAttempt = Callable[[str, Ping, Answer, float | None], object]
"""Takes the channel, the ping, what became of it, and when it came to the outbox."""

LOG = "log"
"""The name of the channel that is the fallback log."""

SELFTEST = "selftest"
"""Likewise, for the pings of a selftest, which wake nobody."""

MOST_AT_ONCE = 4
"""Attempts on one channel at the same time."""

_MARGIN_S = 1.0  # a channel keeps its own limit; this one is for one that does not
_SLACK_S = 10.0  # from the claim's commit to the attempt, and from its end to the next

_logger = logging.getLogger(__name__)


class Submit(Protocol):
    """Carries a change out and returns once it is durable; the store's one writer."""

    async def __call__(self, change: Callable[[Connection], T], /) -> T:
        """Return what `change` returned; it may be called more than once."""
        ...


class Dispatcher:
    """Sends pings; none is ever dropped in silence."""

    def __init__(
        self,
        channels: Mapping[str, Channel],
        fallback: FallbackLog,
        *,
        lang: Lang,
        submit: Submit | None,
        now: Callable[[], datetime],
        jitter: Callable[[], float],
        notice: Callable[[Phrase], None],
        limit_s: float = ATTEMPT_LIMIT_S,
    ) -> None:
        """Send through `channels`.

        Args:
            channels: by the names that their rows carry; with none, the log is all.
            fallback: takes what a channel does not.
            lang: of the reasons in log and outbox.
            submit: the way to the store; None where there is none, and only `send` is
                of use.
            now: the wall clock.
            jitter: draws 0.0 to 1.0.
            notice: tells a person what the log could not take.
            limit_s: seconds for one attempt.
        """
        log = LogChannel(fallback, phrase("no_channel"), lang)
        self._channels: dict[str, Channel] = dict(channels) or {LOG: log}
        self.names = tuple(self._channels)
        self._channels.setdefault(LOG, log)  # rows from before there was a channel
        self._channels[SELFTEST] = LogChannel(fallback, phrase("selftest_ping"), lang)
        self._fallback = fallback
        self._lang = lang
        self._submit = submit
        self._now = now
        self._jitter = jitter
        self._notice = notice
        self.after_attempt: AfterAttempt = lambda *attempt: None  # noqa: ARG005
        """Told of every attempt."""
        self._limit_s = limit_s + _MARGIN_S
        self._lease_s = self._limit_s + _SLACK_S
        # One token a claim: a lease that ran out is not settled by its own namesake.
        who = os.urandom(6).hex()
        self._tokens = (f"{who}-{number}" for number in itertools.count(1))
        self._slots: dict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(MOST_AT_ONCE)
        )
        self._told: set[int] = set()  # rows that are nowhere yet, which was said

    @property
    def needs_network(self) -> bool:
        """Whether sending takes longer than writing a line to a file."""
        return not all(
            isinstance(self._channels[name], LogChannel) for name in self.names
        )

    async def drain(self) -> None:
        """Send every row that is due, each channel at its own pace.

        Call it while an earlier call is still at work, too: that one may wait for a
        channel that hangs, and the others go on only by the new call.

        Raises:
            Exception: what `submit` raised; other channels were drained all the same.
        """
        submit = self._submit
        if submit is None:
            return
        due = await submit(
            lambda connection: outbox.due(connection, now_s=self._now().timestamp())
        )
        workers = [
            self._work(submit, name)
            for name, count in due.items()
            for _ in range(min(count, MOST_AT_ONCE))
        ]
        for error in await asyncio.gather(*workers, return_exceptions=True):
            if error is not None:
                raise error

    async def send(self, ping: Ping) -> Phrase | None:
        """Make one attempt on every channel, and write the ping down where one fails.

        Past the outbox: for where there is none.

        Returns:
            What a person must know of it.
        """
        reasons = await asyncio.gather(*(self._try(name, ping) for name in self.names))
        reason = next((reason for reason in reasons if reason is not None), None)
        return None if reason is None else self.write_down(ping, reason)

    def write_down(self, ping: Ping, reason: Phrase) -> Phrase:
        """Append a ping to the fallback log; return what a person must know of that."""
        try:
            self._fallback.append(ping, reason.render(self._lang))
        except FallbackError as error:
            return phrase("ping_lost", reason=str(error), message=ping.message)
        return phrase("ping_logged", path=self._fallback.path, reason=reason)

    async def _try(self, name: str, ping: Ping) -> Phrase | None:
        """Return why a ping must be written down, if it must."""
        channel = self._channels[name]
        if isinstance(channel, LogChannel):
            return channel.reason
        attempt = await self._attempt(name, channel, ping)
        self.after_attempt(name, ping, attempt.answer, None)
        return attempt.reason or _whole_text(ping)

    async def _work(self, submit: Submit, name: str) -> None:
        """Send the rows of a channel, one after the other, until none is due."""
        slots = self._slots[name]
        if slots.locked():
            return  # whoever is at work looks once more before they stop
        async with slots:
            while delivery := await submit(self._claim(name)):
                await self._deliver(submit, name, delivery)

    def _claim(self, name: str) -> Callable[[Connection], outbox.Delivery | None]:
        """Return the change that claims the next row of a channel, if one is due."""
        token = next(self._tokens)

        def change(connection: Connection) -> outbox.Delivery | None:
            rows = outbox.claim(
                connection,
                channel=name,
                now_s=self._now().timestamp(),
                lease_s=self._lease_s,
                claim=token,
                most=1,
                lang=self._lang,
            )
            return rows[0] if rows else None

        return change

    async def _deliver(
        self, submit: Submit, name: str, delivery: outbox.Delivery
    ) -> None:
        """Make one attempt for a row, and settle it once the answer is known.

        1. Send it.
        2. Decide how it goes on.
        3. Write it to the fallback log, if this is its first failure.
        4. Settle the row; one that is nowhere yet stays pending.
        """
        channel = self._channels.get(name) or _GoneChannel(name, self._lang)
        attempts = delivery.attempts + 1
        attempt = await self._attempt(name, channel, delivery.ping)
        self.after_attempt(name, delivery.ping, attempt.answer, delivery.created_s)
        now, jitter = self._now(), self._jitter()
        result = settlement(
            attempt,
            attempts,
            now=now,
            give_up_at=delivery.give_up_at,
            jitter=jitter,
        )
        logged = delivery.logged or self._logged(channel, delivery, result)
        if result.state is PingState.DEAD and not logged:
            result = kept(result, attempts, now=now, jitter=jitter)
        if logged or result.state is PingState.DELIVERED:
            self._told.discard(delivery.row)
        self._note(name, delivery, result)
        await submit(
            lambda connection: outbox.settle(
                connection,
                delivery,
                result,
                now_s=now.timestamp(),
                logged=logged,
                lang=self._lang,
            )
        )

    def _note(self, name: str, delivery: outbox.Delivery, result: Settlement) -> None:
        """Log how a row goes on; that it still waits, only the first time."""
        again = result.state is PingState.PENDING and delivery.attempts > 0
        said = result.reason.render(self._lang) if result.reason else None
        _logger.log(
            logging.DEBUG if again else logging.INFO,
            "ping.attempted",
            extra={
                "ping": delivery.ping.idempotency_key,
                "channel": name,
                "state": result.state.value,
                "reason": said,
            },
        )

    async def _attempt(self, name: str, channel: Channel, ping: Ping) -> Attempt:
        """Send a ping once, within the limit, and return what became of it."""
        try:
            async with asyncio.timeout(self._limit_s):
                await channel.send(ping)
        except PermanentDeliveryError as error:
            return Attempt(answer=Answer.REFUSED, error=str(error))
        except DeliveryError as error:
            return Attempt(
                answer=Answer.TRY_LATER,
                error=str(error),
                retry_after_s=error.retry_after_s,
                unknown=error.unknown,
            )
        except TimeoutError:
            said = f"no answer within {self._limit_s:g} s"
            return Attempt(answer=Answer.TRY_LATER, error=said, unknown=True)
        except Exception as error:
            key = ping.idempotency_key
            _logger.exception("attempt.failed", extra={"channel": name, "ping": key})
            # Its text is not known to be free of secrets.
            said = type(error).__name__
            return Attempt(answer=Answer.TRY_LATER, error=said, unknown=True)
        return Attempt(answer=Answer.DELIVERED)

    def _logged(
        self, channel: Channel, delivery: outbox.Delivery, result: Settlement
    ) -> bool:
        """Write a ping down where that is due, and return whether the log has it."""
        reason = result.reason
        if isinstance(channel, LogChannel):  # the attempt itself was the writing
            if reason is not None:
                self._tell_lost(delivery, reason)
            return reason is None
        why = reason or _whole_text(delivery.ping)
        if why is None:
            return False
        try:
            self._fallback.append(delivery.ping, why.render(self._lang))
        except FallbackError as error:
            if reason is not None:
                self._tell_lost(delivery, str(error))
            return False
        return True

    def _tell_lost(self, delivery: outbox.Delivery, reason: Phrase | str) -> None:
        """Tell a person, once a row, what neither channel nor log could take so far."""
        if delivery.row not in self._told:
            self._told.add(delivery.row)
            message = delivery.ping.message
            self._notice(phrase("ping_lost", reason=reason, message=message))


class _GoneChannel:
    """Stands for a channel that has rows but is no longer configured."""

    def __init__(self, name: str, lang: Lang) -> None:
        self._said = phrase("channel_gone", channel=name).render(lang)

    async def send(self, ping: Ping) -> None:  # noqa: ARG002 - a channel's signature
        """Deliver nothing, for now: it may come back.

        Raises:
            DeliveryError: always.
        """
        raise DeliveryError(self._said)


def _whole_text(ping: Ping) -> Phrase | None:
    """Return why a delivered ping is written down: what was sent of it was cut."""
    return phrase("whole_text") if len(clean(ping.message)) > MESSAGE_LIMIT else None
