"""What an attempt to deliver a ping means, and when the next one comes (C6.1, C6.2)."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from urllib.parse import quote

from policies.text import clean
from policies.wording import Phrase, phrase

MESSAGE_LIMIT = 4000
"""Characters of a message; chat services refuse more than 4096."""

FIELD_LIMIT = 1000
"""Characters of any other text in a request, which stays below 64 KB in all."""

EXCERPT_LIMIT = 200
"""Characters of a server's words that an error may quote."""

GIVE_UP_S = 24 * 3600.0
"""Seconds for which a ping is tried at all (C6.1)."""

LONGEST_WAIT_S = 3600.0
"""Seconds that a row ever waits for its next attempt: the most a server may ask."""

_FIRST_WAIT_S = 5.0
_LONGEST_BACKOFF_S = 900.0
_DOUBLINGS = 8  # more of them reach the longest anyway
_BELIEVED = 3  # failures for which a Retry-After may be shorter than the back-off
_SHORTEST_RETRY_S = 1.0  # "Retry-After: 0" is no leave to hammer
_SECONDS = re.compile(r"[0-9]+")
_HEADER_LIMIT = 64  # characters; no date of HTTP has more than 33
_TRANSIENT = frozenset({408, 425, 429})


class Answer(StrEnum):
    """What became of one attempt."""

    DELIVERED = "delivered"
    TRY_LATER = "try_later"
    REFUSED = "refused"


def classify(status: int) -> Answer:
    """Return what a status code means for the ping (C6.2, RFC 9110 section 15).

    2xx is delivered; 408, 425, 429 and 5xx are tried again under the same key; all
    else is final, a redirect too, which is never followed: it would carry the key to
    another server.
    """
    if 200 <= status < 300:
        return Answer.DELIVERED
    if status in _TRANSIENT or status >= 500:
        return Answer.TRY_LATER
    return Answer.REFUSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What became of one attempt.

    Attributes:
        error: what a person may read of a failure; holds no secret.
        retry_after_s: seconds that the server asked to be left alone, if it did.
        unknown: the request may have arrived, only its answer was lost.
    """

    answer: Answer
    error: str = ""
    retry_after_s: float | None = None
    unknown: bool = False

    @property
    def reason(self) -> Phrase | None:
        """Why the ping is not delivered, as a person is told it."""
        if self.answer is Answer.DELIVERED:
            return None
        if self.answer is Answer.REFUSED:
            return phrase("refused", error=self.error)
        key = "result_unknown" if self.unknown else "not_delivered"
        return phrase(key, error=self.error)


class PingState(StrEnum):
    """Where a row of the outbox stands."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """How a row of the outbox goes on after an attempt; `due_at` while pending."""

    state: PingState
    due_at: datetime | None = None
    reason: Phrase | None = None


def settlement(
    attempt: Attempt,
    attempts: int,
    *,
    now: datetime,
    give_up_at: datetime,
    jitter: float,
) -> Settlement:
    """Return how a row goes on: delivered, tried again, or dead (C6.1, C6.2).

    Args:
        attempt: the one that was just made.
        attempts: how many were made by now, this one included.
        now: when its result was known.
        give_up_at: when the row has been tried for long enough.
        jitter: 0.0 to 1.0, drawn by the caller.
    """
    if attempt.answer is Answer.DELIVERED:
        return Settlement(state=PingState.DELIVERED)
    reason = attempt.reason
    if attempt.answer is Answer.REFUSED or reason is None:
        return Settlement(state=PingState.DEAD, reason=reason)
    due_at = next_attempt(
        attempts,
        now=now,
        give_up_at=give_up_at,
        jitter=jitter,
        retry_after_s=attempt.retry_after_s,
    )
    if due_at is None:
        reason = phrase("given_up", attempts=attempts, reason=reason)
        return Settlement(state=PingState.DEAD, reason=reason)
    return Settlement(state=PingState.PENDING, due_at=due_at, reason=reason)


def kept(
    settled: Settlement, attempts: int, *, now: datetime, jitter: float
) -> Settlement:
    """Return a dead row as a pending one, because not even the log has its ping (C6.4).

    It is tried past its time then: a ping is never lost in silence.
    """
    wait_s = _backoff_s(attempts, jitter)
    return Settlement(
        state=PingState.PENDING,
        due_at=now + timedelta(seconds=wait_s),
        reason=settled.reason,
    )


def next_attempt(
    attempts: int,
    *,
    now: datetime,
    give_up_at: datetime,
    jitter: float,
    retry_after_s: float | None = None,
) -> datetime | None:
    """Return when to try a delivery again, or None once it is too late (C6.1).

    Doubles from 5 s, at most 15 min, times `1 + jitter`; the last attempt is made at
    `give_up_at` itself. A Retry-After of the server goes first and is never cut short;
    one that keeps asking for less than the back-off is not believed for ever.

    Args:
        attempts: failed attempts so far, at least 1.
        now: when the last of them failed.
        give_up_at: no attempt is made after this.
        jitter: 0.0 to 1.0, drawn by the caller.
        retry_after_s: seconds that the server asked for, if it did.
    """
    if now >= give_up_at:
        return None
    wait_s = _backoff_s(attempts, jitter)
    if retry_after_s is None:
        return min(now + timedelta(seconds=wait_s), give_up_at)
    asked_s = max(_SHORTEST_RETRY_S, retry_after_s)
    if attempts > _BELIEVED:
        asked_s = max(asked_s, wait_s)
    due_at = now + timedelta(seconds=asked_s)
    return due_at if due_at <= give_up_at else None


def _backoff_s(attempts: int, jitter: float) -> float:
    doubled_s = _FIRST_WAIT_S * 2.0 ** min(attempts - 1, _DOUBLINGS)
    return min(doubled_s, _LONGEST_BACKOFF_S) * (1 + jitter)


def retry_after(value: str | None, *, now: datetime | None) -> float | None:
    """Return the seconds that a Retry-After header asks for, at most an hour.

    Whole seconds or a date of HTTP (RFC 9110, 10.2.3); None for anything else.

    Args:
        value: of the header, if the answer has one.
        now: the time by the clock that the date was written by, if it is known.
    """
    text = (value or "").strip()[:_HEADER_LIMIT]
    if text.isascii() and _SECONDS.fullmatch(text):
        return min(float(text), LONGEST_WAIT_S)
    until = http_date(text)
    if until is None or now is None:
        return None
    return min(max(0.0, (until - now).total_seconds()), LONGEST_WAIT_S)


def http_date(text: str) -> datetime | None:
    """Return the time of a date as HTTP writes it, in any of its three forms."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - costs; rare

    try:
        at = parsedate_to_datetime(text)
        return at if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def excerpt(body: str, secret: str) -> str:
    """Return a short piece of a server's answer without the secret it may echo.

    The echo may be written as JSON or an address writes it, where `/` looks different.
    """
    if secret:
        quoted = json.dumps(secret)[1:-1]
        echoes = {secret, quoted, quoted.replace("/", "\\/"), quote(secret, safe="")}
        for echo in sorted(echoes, key=len, reverse=True):
            body = body.replace(echo, "***")
    return clean(" ".join(body.split()), EXCERPT_LIMIT)


def idempotency_key(watch_id: str, waiter: int, ending: str) -> str:
    """Return the key of a ping: it follows from watch, waiter and outcome (C6.2).

    So even an outcome told while nothing could be stored keeps its key.
    """
    return f"{watch_id}-{waiter}-{ending}"
