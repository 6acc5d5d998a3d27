"""A detached watcher decides as the service does (C3)."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from policies.model import Observation, Sight
from policies.verdict import Progress, Rules, Verdict, decide
from watcher.onhost import verdict

AT = datetime(2026, 1, 1, tzinfo=UTC)
SIGHTS = st.sampled_from(["held", "released", "unknown", "absent"])
SPANS = st.floats(0, 100)


def observation(sight: str) -> Observation:
    if sight == "absent":
        return Observation(sight=Sight.UNKNOWN, at=AT, absent=True)
    return Observation(sight=Sight(sight), at=AT)


@given(
    st.lists(st.tuples(SIGHTS, SPANS), min_size=1),
    SPANS,
    SPANS,
    st.sampled_from([0.0, 0.25, 5.0]),
)
def test_both_say_the_same_of_any_looks(
    looks: list[tuple[str, float]], left_s: float, within_s: float, settle_s: float
) -> None:
    rules = Rules(
        armed_s=10.0,
        deadline_s=10.0 + left_s,
        settle_s=settle_s,
        start_within_s=within_s,
    )
    plain = {
        "armed_up": 10.0,
        "deadline_up": 10.0 + left_s,
        "settle_s": settle_s,
        "start_within_s": within_s,
    }
    theirs: dict[str, Any] = {}
    ours, now = Progress(), 10.0
    for sight, passed_s in looks:
        now += passed_s
        decision = decide(rules, ours, observation(sight), now_s=now)
        said, theirs, again_s = verdict.decide(plain, theirs, sight, now)
        assert said == decision.verdict
        assert again_s == decision.again_in_s
        ours = decision.progress
        assert theirs == {
            "candidate": ours.candidate_s,
            "unknown": ours.unknown_s,
            "blocked": ours.ever_blocked,
            "seen": ours.ever_seen,
        }
        if decision.verdict not in {Verdict.WAIT, Verdict.LOOK_AGAIN}:
            break


@given(st.lists(st.tuples(st.sampled_from(["held", "unknown", "absent"]), SPANS)))
def test_nothing_is_cleared_that_was_not_seen_released(
    looks: list[tuple[str, float]],
) -> None:
    rules = {"armed_up": 0.0, "deadline_up": 50, "settle_s": 0.0, "start_within_s": 9}
    progress: dict[str, Any] = {}
    now = 0.0
    for sight, passed_s in looks:
        now += passed_s
        said, progress, _ = verdict.decide(rules, progress, sight, now)
        assert said != "cleared"
