"""From observations to a verdict: wait on, look again soon, or end (C3)."""

from dataclasses import dataclass, replace
from enum import StrEnum

from policies.model import Observation, Sight


class Verdict(StrEnum):
    """What follows from the latest observation."""

    WAIT = "wait"
    LOOK_AGAIN = "look_again"
    CLEARED = "cleared"
    EXPIRED = "expired"
    UNSEEN = "unseen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What one watch was armed with; instants are seconds of `Clock.boot`.

    Attributes:
        settle_s: how long a release must last before it is believed (C3.2).
        start_within_s: how long work may take to begin; 0 asks for it at once (C2.2).
    """

    armed_s: float
    deadline_s: float
    settle_s: float
    start_within_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What the observations so far amount to; instants are seconds of `Clock.boot`.

    Attributes:
        candidate_s: first look of an unbroken run of `released`.
        unknown_s: first look of an unbroken run that could not see; a look that found
            nothing there yet could.
        ever_blocked: something other than `released` was seen at least once.
        ever_seen: what the target names was there at least once.
    """

    candidate_s: float | None = None
    unknown_s: float | None = None
    ever_blocked: bool = False
    ever_seen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A verdict, the progress to keep, and when to look again.

    Attributes:
        again_in_s: with `LOOK_AGAIN` the seconds until that look.
    """

    verdict: Verdict
    progress: Progress
    again_in_s: float = 0.0


def decide(
    rules: Rules, progress: Progress, observation: Observation, *, now_s: float
) -> Decision:
    """Return what follows from one more observation.

    1. `released` counts once a second look, `settle_s` after the first, sees it too;
       that look is also the last one before the line (C3.2, C3.5). It is taken even
       when the deadline passes meanwhile, so that a release wins over an expiry (C3.7).
    2. `held` waits on until the deadline, however often it was released in between.
    3. `unknown` waits on as well: no number of failures to look is a release (C3.1).
    4. What was never seen ends as unseen once its start is overdue (C2.2).
    """
    kept = _keep(progress, observation, now_s)
    if observation.sight is Sight.RELEASED:
        since = kept.candidate_s if progress.candidate_s is not None else None
        left = rules.settle_s if since is None else since + rules.settle_s - now_s
        if since is not None and left <= 0:
            return Decision(verdict=Verdict.CLEARED, progress=kept)
        return Decision(
            verdict=Verdict.LOOK_AGAIN, progress=kept, again_in_s=max(left, 0.0)
        )
    expired = now_s >= rules.deadline_s
    if observation.absent and not kept.ever_seen:
        overdue = rules.armed_s + rules.start_within_s
        if expired or now_s >= overdue:
            return Decision(verdict=Verdict.UNSEEN, progress=kept)
    if expired:
        return Decision(verdict=Verdict.EXPIRED, progress=kept)
    return Decision(verdict=Verdict.WAIT, progress=kept)


def _keep(progress: Progress, observation: Observation, now_s: float) -> Progress:
    released = observation.sight is Sight.RELEASED
    unknown = observation.sight is Sight.UNKNOWN
    blind_now = unknown and not observation.absent
    candidate, blind = progress.candidate_s, progress.unknown_s
    return replace(
        progress,
        candidate_s=(now_s if candidate is None else candidate) if released else None,
        unknown_s=(now_s if blind is None else blind) if blind_now else None,
        ever_blocked=progress.ever_blocked or not released,
        ever_seen=progress.ever_seen or not unknown,
    )
