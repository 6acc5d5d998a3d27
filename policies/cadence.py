"""How often to look: floors, and the moment of the next look (C4.1)."""

from dataclasses import dataclass

_ALIGNED_FROM_S = 10.0  # half a second either way is nothing to such an interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Cadence:
    """A watch's interval in seconds, and whether it had to be raised to the floor."""

    every_s: int
    raised: bool


def cadence(*, asked_s: int | None, default_s: int, floor_s: int) -> Cadence:
    """Return the interval to use; one below the floor is raised to it (C4.1)."""
    wanted_s = default_s if asked_s is None else asked_s
    return Cadence(
        every_s=max(wanted_s, floor_s),
        raised=asked_s is not None and asked_s < floor_s,
    )


def next_look(
    *,
    now_s: float,
    every_s: float,
    deadline_s: float,
    start_due_s: float | None,
    in_rounds: bool = False,
) -> float:
    """Return when to look next: an interval from now, never past what falls due.

    The instants are seconds of `Clock.boot`.

    Args:
        now_s: the instant of the look just taken.
        every_s: the watch's interval.
        deadline_s: the last look is taken at the deadline itself (C3.7).
        start_due_s: when work that was never seen is overdue, if that is awaited.
        in_rounds: all of one interval are due at the same instants, whenever they were
            armed, so that a host is asked once a round for all of them (C4.4).
    """
    due_s = now_s + every_s
    if in_rounds:
        due_s = (now_s // every_s + 1) * every_s
    elif every_s >= _ALIGNED_FROM_S:
        due_s = float(round(due_s))  # watches armed at odd instants share a hand-over
    due_s = min(due_s, deadline_s)
    return due_s if start_due_s is None else min(due_s, start_due_s)
