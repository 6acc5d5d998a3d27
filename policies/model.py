"""The values that the decisions are about; the contract's words and no synonyms."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from policies.values import Json as Json  # noqa: PLC0414 - it is found here too
from policies.wording import Phrase

Evidence: TypeAlias = Mapping[str, Json]
"""What was seen, when and by which means: errno, identity, inode, host (C3.7)."""

Memory: TypeAlias = Mapping[str, Json]
"""What a condition must remember from one probe to the next, even over a restart."""


class Sight(StrEnum):
    """What a probe saw. A failure to look is `UNKNOWN`, never `RELEASED` (C3.0)."""

    HELD = "held"
    RELEASED = "released"
    UNKNOWN = "unknown"


class Result(StrEnum):
    """How work ended, where markers tell (C2.1)."""

    PASS = "PASS"  # noqa: S105 - the contract's word, no secret
    FAIL = "FAIL"
    STALLED = "STALLED"
    DIED = "DIED"


class Ending(StrEnum):
    """How a watch ended (C2.5)."""

    RELEASED = "released"
    ENDED = "ended"
    EXPIRED = "expired"
    REMOVED = "removed"
    UNSEEN = "unseen"


class Severity(StrEnum):
    """How urgent a ping is to the operator (C6.2)."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is waited for; its text names the condition everywhere (C1.4).

    `text` is the canonical command line without the common options, quoted as a shell
    would, bytes that were no UTF-8 kept as PEP 383 surrogates.
    """

    kind: str
    text: str
    label: str
    """The default label; for a lock the words behind `lock` in its lines."""
    host: str | None = None
    on_hosts: bool = False
    """Of several conditions, at least one is on a host."""

    @property
    def far(self) -> bool:
        """A look at it reaches for another machine, which is done less often (C4.1)."""
        return self.host is not None or self.on_hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One look at a condition.

    Attributes:
        reason: for `UNKNOWN`, why it could not be seen; else what stands behind it.
        absent: nothing that the target names has been seen so far; with `UNKNOWN` only.
        memory: handed to the next probe.
        notes: what a person must know now; each is said once.
        remarks: what closes the line when the watch ends on this observation.
        result: how work ended, where that is known.
        decided: what decided that: the text of a marker, or an exit status.
        again_in_s: look again no later than so many seconds from now.
        out_of_reach: with `UNKNOWN`: the host gave no answer at all (C2.3).
    """

    sight: Sight
    at: datetime
    reason: Phrase | None = None
    absent: bool = False
    evidence: Evidence = field(default_factory=dict)
    memory: Memory = field(default_factory=dict)
    notes: tuple[Phrase, ...] = ()
    remarks: tuple[Phrase, ...] = ()
    result: Result | None = None
    decided: Phrase | None = None
    again_in_s: float | None = None
    out_of_reach: bool = False

    def __post_init__(self) -> None:
        """Hold the first promise in the type itself.

        Raises:
            ValueError: when something never seen is called held or released.
        """
        if self.absent and self.sight is not Sight.UNKNOWN:
            msg = "what was never seen is neither held nor released"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a watch ended, with everything that its line, ping and JSON say.

    Attributes:
        already_clear: it was clear at the first look (C2.2).
        unknown_since: set when the last looks could not see the condition (C2.3).
        out_of_reach: the last look got no answer from the host.
        decided: what told the result: the text of a marker, or an exit status.
        reason: why it could not be seen, or why it was removed.
        tail: short remarks that close the line, such as a lock with a near name.
        observations: looks that were taken.
        unknown_s, suspended_s: seconds without sight, and seconds asleep.
    """

    ending: Ending
    watch_id: str
    target: Target
    label: str
    armed_at: datetime
    ended_at: datetime
    waited_s: float
    ttl_s: int
    result: Result | None = None
    already_clear: bool = False
    unknown_since: datetime | None = None
    out_of_reach: bool = False
    decided: Phrase | None = None
    reason: Phrase | None = None
    tail: tuple[Phrase, ...] = ()
    resume: str | None = None
    session: str | None = None
    observations: int = 0
    unknown_s: float = 0.0
    suspended_s: float = 0.0
    evidence: Evidence = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping:
    """A message to the operator; the key makes a duplicate recognisable (C6.2)."""

    idempotency_key: str
    title: str
    message: str
    severity: Severity
    occurred_at: datetime
    watch: Mapping[str, Json] | None = None
