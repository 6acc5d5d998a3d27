"""From observations to a verdict: nothing is released unless it was seen (C3)."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.model import Observation, Sight
from policies.verdict import Decision, Progress, Rules, Verdict, decide
from tests.policies.samples import (
    ABSENT,
    ALWAYS,
    HELD,
    RELEASED,
    UNKNOWN,
    observations,
    simulate,
)

RULES = Rules(armed_s=0, deadline_s=100, settle_s=1)
Looks = list[tuple[float, Observation]]


def replay(looks: Looks, rules: Rules = RULES) -> list[Decision]:
    """Decide look by look, until one ends the watch."""
    decisions: list[Decision] = []
    progress = Progress()
    for now_s, observation in looks:
        decision = decide(rules, progress, observation, now_s=now_s)
        decisions.append(decision)
        progress = decision.progress
        if decision.verdict not in {Verdict.WAIT, Verdict.LOOK_AGAIN}:
            break
    return decisions


def verdicts(looks: Looks, rules: Rules = RULES) -> str:
    return " ".join(decision.verdict for decision in replay(looks, rules))


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        pytest.param([(0, HELD), (99, HELD)], "wait wait", id="held-waits"),
        pytest.param([(0, HELD), (100, HELD)], "wait expired", id="held-expires"),
        pytest.param(
            [(0, RELEASED), (1, RELEASED)],
            "look_again cleared",
            id="C2.2-already-clear",
        ),
        pytest.param(
            [(0, HELD), (30, RELEASED), (31, RELEASED)],
            "wait look_again cleared",
            id="C3.2-seen-twice",
        ),
        pytest.param(
            [(30, RELEASED), (30.5, RELEASED), (31, RELEASED)],
            "look_again look_again cleared",
            id="C3.2-a-second-look-that-comes-too-soon",
        ),
        pytest.param(
            [(30, RELEASED), (31, HELD), (60, HELD)],
            "look_again wait wait",
            id="B05-C3.5-retaken-before-the-line",
        ),
        pytest.param(
            [(30, RELEASED), (31, HELD), (60, RELEASED), (61, RELEASED)],
            "look_again wait look_again cleared",
            id="B05-released-later-after-all",
        ),
        pytest.param(
            [(30, RELEASED), (30.5, UNKNOWN), (31, RELEASED), (32, RELEASED)],
            "look_again wait look_again cleared",
            id="B01-a-failure-to-look-starts-the-settling-anew",
        ),
        pytest.param(
            [(0, HELD), (30, UNKNOWN), (60, UNKNOWN), (100, UNKNOWN)],
            "wait wait wait expired",
            id="B01-B44-unknown-only-expires",
        ),
        pytest.param(
            [(0, UNKNOWN), (100, UNKNOWN)], "wait expired", id="B13-hung-expires"
        ),
        pytest.param(
            [(0, HELD), (100, RELEASED), (101, RELEASED)],
            "wait look_again cleared",
            id="C3.7-release-at-the-deadline",
        ),
        pytest.param(
            [(99.5, RELEASED), (100.5, RELEASED)],
            "look_again cleared",
            id="C3.7-the-deadline-passes-while-it-settles",
        ),
        pytest.param(
            [(100, RELEASED), (101, HELD)],
            "look_again expired",
            id="C3.7-retaken-behind-the-deadline",
        ),
        pytest.param(
            [(100, RELEASED), (101, UNKNOWN)],
            "look_again expired",
            id="B83-not-to-be-seen-behind-the-deadline",
        ),
        pytest.param([(3700, HELD)], "expired", id="B83-woke-long-after-the-deadline"),
    ],
)
def test_a_watch_waits_until_it_was_seen_to_be_clear(
    looks: Looks, expected: str
) -> None:
    assert verdicts(looks) == expected


WITHIN = Rules(armed_s=0, deadline_s=100, settle_s=0, start_within_s=40)


@pytest.mark.parametrize(
    ("rules", "looks", "expected"),
    [
        pytest.param(RULES, [(0, ABSENT)], "unseen", id="B24-nothing-matches"),
        pytest.param(
            WITHIN, [(0, ABSENT), (40, ABSENT)], "wait unseen", id="B42-never-began"
        ),
        pytest.param(
            WITHIN,
            [(0, ABSENT), (4, HELD), (9, RELEASED), (9, RELEASED)],
            "wait wait look_again cleared",
            id="B42-began-later-and-ended",
        ),
        pytest.param(
            WITHIN, [(0, ABSENT), (100, ABSENT)], "wait unseen", id="one-late-look"
        ),
        pytest.param(
            Rules(armed_s=0, deadline_s=100, settle_s=0, start_within_s=500),
            [(0, ABSENT), (99, ABSENT), (100, ABSENT)],
            "wait wait unseen",
            id="deadline-before-its-start-was-due",
        ),
        pytest.param(
            RULES,
            [(0, UNKNOWN), (30, ABSENT)],
            "wait unseen",
            id="B30-not-to-be-seen-at-first-then-nothing",
        ),
        pytest.param(
            WITHIN,
            [(0, UNKNOWN), (30, ABSENT), (40, ABSENT)],
            "wait wait unseen",
            id="B40-hung-at-first-then-nothing-until-its-start-was-due",
        ),
        pytest.param(
            RULES,
            [(0, HELD), (30, ABSENT), (100, ABSENT)],
            "wait wait expired",
            id="what-was-once-seen-never-ends-as-unseen",
        ),
        pytest.param(
            WITHIN,
            [(0, ABSENT), (50, UNKNOWN), (100, UNKNOWN)],
            "wait wait expired",
            id="blind-when-its-start-was-due",
        ),
    ],
)
def test_what_never_was_there_ends_as_unseen(
    rules: Rules, looks: Looks, expected: str
) -> None:
    assert verdicts(looks, rules) == expected


def test_the_second_look_comes_once_the_settle_time_is_over() -> None:
    first, second, _ = replay([(30, RELEASED), (30.25, RELEASED), (31, RELEASED)])
    assert (first.again_in_s, second.again_in_s) == (1, 0.75)


def test_without_a_settle_time_the_second_look_comes_at_once() -> None:
    rules = Rules(armed_s=0, deadline_s=100, settle_s=0)
    first, second = replay([(30, RELEASED), (30, RELEASED)], rules)
    assert (first.verdict, first.again_in_s) == (Verdict.LOOK_AGAIN, 0)
    assert second.verdict is Verdict.CLEARED


@pytest.mark.parametrize(
    ("looks", "unknown_s"),
    [
        pytest.param([(0, HELD)], None, id="seen"),
        pytest.param([(0, HELD), (30, UNKNOWN)], 30, id="first-failure"),
        pytest.param([(10, UNKNOWN), (40, UNKNOWN)], 10, id="since-the-first-of-them"),
        pytest.param([(0, UNKNOWN), (30, HELD)], None, id="seen-again"),
        pytest.param([(0, UNKNOWN), (30, HELD), (60, UNKNOWN)], 60, id="a-new-run"),
        pytest.param([(0, HELD), (30, ABSENT)], None, id="not-there-is-no-failure"),
        pytest.param(
            [(0, HELD), (30, ABSENT), (60, UNKNOWN)],
            60,
            id="C2.3-a-look-that-found-nothing-could-see",
        ),
    ],
)
def test_how_long_nothing_could_be_seen_is_kept(
    looks: Looks, unknown_s: float | None
) -> None:
    assert replay(looks)[-1].progress.unknown_s == unknown_s


@pytest.mark.parametrize(
    ("looks", "blocked"),
    [
        ([(0, RELEASED), (1, RELEASED)], False),
        ([(0, HELD), (1, RELEASED), (2, RELEASED)], True),
        ([(0, UNKNOWN), (1, RELEASED), (2, RELEASED)], True),
        ([(0, RELEASED), (1, HELD), (2, RELEASED), (3, RELEASED)], True),
    ],
)
def test_already_clear_means_that_nothing_else_was_ever_seen(
    looks: Looks,
    blocked: bool,
) -> None:
    last = replay(looks)[-1]
    assert last.verdict is Verdict.CLEARED
    assert last.progress.ever_blocked is blocked


spans = st.floats(0, 200) | st.integers(0, 200)


@st.composite
def sequences(draw: st.DrawFn) -> tuple[Rules, Looks]:
    rules = Rules(
        armed_s=draw(spans),
        deadline_s=draw(spans),
        settle_s=draw(st.sampled_from([0, 0.25, 1, 30])),
        start_within_s=draw(st.sampled_from([0, 40, 500])),
    )
    instants = sorted(draw(st.lists(spans, min_size=1, max_size=12)))
    return rules, [(now_s, draw(observations)) for now_s in instants]


def runs(looks: Looks) -> Iterator[float | None]:
    """Say for each look since when an unbroken run of released lasts."""
    since: float | None = None
    for now_s, observation in looks:
        if observation.sight is Sight.RELEASED:
            since = now_s if since is None else since
        else:
            since = None
        yield since


@ALWAYS
@given(sequences())
def test_nothing_is_released_unless_it_was_seen_twice_settle_apart(
    drawn: tuple[Rules, Looks],
) -> None:
    rules, looks = drawn
    since = list(runs(looks))
    for number, decision in enumerate(replay(looks, rules)):
        now_s, observation = looks[number]
        first = since[number]
        proved = (
            first is not None
            and now_s >= first + rules.settle_s
            and number > 0
            and since[number - 1] is not None
        )
        assert (decision.verdict is Verdict.CLEARED) == proved
        if observation.sight is not Sight.RELEASED:
            assert decision.verdict is not Verdict.LOOK_AGAIN


@ALWAYS
@given(sequences())
def test_behind_the_deadline_only_a_release_that_settles_is_waited_for(
    drawn: tuple[Rules, Looks],
) -> None:
    rules, looks = drawn
    since = list(runs(looks))
    for number, decision in enumerate(replay(looks, rules)):
        now_s, observation = looks[number]
        if now_s >= rules.deadline_s:
            assert decision.verdict is not Verdict.WAIT
        else:
            assert decision.verdict is not Verdict.EXPIRED
        if decision.verdict is Verdict.LOOK_AGAIN:
            first = since[number]
            assert first is not None
            assert observation.sight is Sight.RELEASED
            assert 0 <= decision.again_in_s <= rules.settle_s + 1e-9  # rounding


@ALWAYS
@given(sequences())
def test_unseen_means_that_it_was_never_there(drawn: tuple[Rules, Looks]) -> None:
    rules, looks = drawn
    decisions = replay(looks, rules)
    if decisions[-1].verdict is Verdict.UNSEEN:
        sights = {observation.sight for _, observation in looks[: len(decisions)]}
        assert sights == {Sight.UNKNOWN}
        assert looks[len(decisions) - 1][1].absent


@ALWAYS
@given(
    plan=st.lists(observations, min_size=1, max_size=40),
    ttl_s=st.integers(1, 4000),
    settle_s=st.sampled_from([0, 0.1, 0.25, 5]),
    start_within_s=st.sampled_from([0, 100]),
    pace=st.tuples(st.integers(1, 60), st.sampled_from([0, 0.013, 2])),
)
def test_every_watch_ends_soon_after_its_deadline_at_the_latest(
    plan: list[Observation],
    ttl_s: int,
    settle_s: float,
    start_within_s: float,
    pace: tuple[int, float],
) -> None:
    every_s, look_s = pace
    upcoming = iter(plan)
    rules = Rules(
        armed_s=7.3,
        deadline_s=7.3 + ttl_s,
        settle_s=settle_s,
        start_within_s=start_within_s,
    )
    ran = simulate(
        lambda _: next(upcoming, plan[-1]), rules=rules, every_s=every_s, look_s=look_s
    )
    # One look before the deadline, one at it, and those of one settle time.
    looks_s = 3 * look_s if settle_s < 5 else 5 * look_s
    assert ran.at_s <= rules.deadline_s + settle_s + looks_s + 1e-6
    if ran.verdict is Verdict.CLEARED:
        assert [look.sight for look in ran.looks[-2:]] == [Sight.RELEASED] * 2
    else:
        assert ran.looks[-1].sight is not Sight.RELEASED
