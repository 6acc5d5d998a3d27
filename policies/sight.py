"""Short ways to say what a probe saw."""

from datetime import datetime

from policies.model import Evidence, Memory, Observation, Sight
from policies.wording import Phrase


def unknown(
    memory: Memory, at: datetime, reason: Phrase, evidence: Evidence
) -> Observation:
    """Return that it could not be seen, and why; what was remembered stays."""
    return Observation(
        sight=Sight.UNKNOWN, at=at, reason=reason, evidence=evidence, memory=memory
    )


def absent(
    at: datetime,
    reason: Phrase,
    memory: Memory | None = None,
    evidence: Evidence | None = None,
) -> Observation:
    """Return that nothing the target names has been there so far (C2.2)."""
    return Observation(
        sight=Sight.UNKNOWN,
        at=at,
        absent=True,
        reason=reason,
        memory=memory or {},
        evidence=evidence or {},
    )


def released(
    at: datetime,
    evidence: Evidence,
    memory: Memory,
    remarks: tuple[Phrase, ...] = (),
) -> Observation:
    """Return that it was positively seen to be clear."""
    return Observation(
        sight=Sight.RELEASED,
        at=at,
        evidence=evidence,
        memory=memory,
        remarks=remarks,
    )
