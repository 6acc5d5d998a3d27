"""When a host that gave no answer is tried again (C7.1)."""

from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf

_FIRST_WAIT_S = 2.0
_LONGEST_WAIT_S = 60.0
_LONGEST_BAN_S = 300.0
_DOUBLINGS = 8  # more of them reach the longest anyway
_BAN_FROM = 3  # connections in a row that were closed before they let us in
_LENIENT_S = 30.0  # after a wake the network takes some seconds to come back


class Trouble(StrEnum):
    """How a host failed to answer."""

    SILENT = "silent"
    DROPPED = "dropped"
    """It closed the connection before it let us in: busy, or it bans us."""
    REFUSED = "refused"
    """It refuses us, or we refuse it; each further attempt may earn a ban."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """What the failures so far mean; a host that answers starts from a new one.

    The instants are seconds of `Clock.boot`.

    Attributes:
        failures: in a row.
        drops: of them, how many of the last ones were drops.
        until_s: nobody tries before.
        lenient_until_s: failures before do not add up.
    """

    failures: int = 0
    drops: int = 0
    until_s: float = -inf
    lenient_until_s: float = -inf

    def must_wait(self, now_s: float) -> bool:
        """Say whether it is too early to try again."""
        return now_s < self.until_s

    def is_ban(self) -> bool:
        """Say whether it looks as if the host did not want us for a while."""
        return self.drops >= _BAN_FROM


def failed(
    before: Backoff, trouble: Trouble, *, now_s: float, jitter: float
) -> Backoff:
    """Return what follows from one more failure.

    Doubles from 2 s, at most 1 min, or 5 min where more attempts make it worse; then
    up to a quarter less.

    Args:
        before: what was known.
        trouble: what went wrong now.
        now_s: the instant of the failure.
        jitter: 0.0 to 1.0, drawn by the caller.
    """
    drops = before.drops + 1 if trouble is Trouble.DROPPED else 0
    lenient = now_s < before.lenient_until_s and trouble is Trouble.SILENT
    failures = max(before.failures, 1) if lenient else before.failures + 1
    worse = trouble is Trouble.REFUSED or drops >= _BAN_FROM
    longest_s = _LONGEST_BAN_S if worse else _LONGEST_WAIT_S
    wait_s = min(_FIRST_WAIT_S * 2.0 ** min(failures - 1, _DOUBLINGS), longest_s)
    until_s = now_s + wait_s * (1.0 - jitter / 4.0)
    return replace(before, failures=failures, drops=drops, until_s=until_s)


def woken(before: Backoff, *, now_s: float) -> Backoff:
    """Return what is left of it after a suspend or a long stop of our own.

    What failed before says nothing about now; only a ban is still one.
    """
    lenient_until_s = now_s + _LENIENT_S
    if before.is_ban():
        return replace(before, lenient_until_s=lenient_until_s)
    return Backoff(lenient_until_s=lenient_until_s)
