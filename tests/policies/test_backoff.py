"""When a host that gave no answer is tried again (C7.1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.backoff import Backoff, Trouble, failed, woken
from tests.policies.samples import ALWAYS

SILENT, DROPPED, REFUSED = Trouble.SILENT, Trouble.DROPPED, Trouble.REFUSED


def waits(*troubles: Trouble, jitter: float = 0.0) -> list[float]:
    """Return how long each of some failures in a row makes us wait."""
    state, now_s, found = Backoff(), 1000.0, []
    for trouble in troubles:
        state = failed(state, trouble, now_s=now_s, jitter=jitter)
        found.append(state.until_s - now_s)
        now_s = state.until_s
    return found


@pytest.mark.parametrize(
    ("trouble", "expected_s"),
    [
        pytest.param(SILENT, [2, 4, 8, 16, 32, 60, 60, 60, 60, 60], id="silent"),
        pytest.param(DROPPED, [2, 4, 8, 16, 32, 64, 128, 256, 300, 300], id="a-ban"),
        pytest.param(REFUSED, [2, 4, 8, 16, 32, 64, 128, 256, 300, 300], id="refused"),
    ],
)
def test_waits_double_up_to_a_limit(trouble: Trouble, expected_s: list[float]) -> None:
    assert waits(*[trouble] * 10) == expected_s


def test_drops_now_and_then_are_no_ban() -> None:
    drops_between = [SILENT, DROPPED, DROPPED] * 5
    assert max(waits(*drops_between)) == 60


def test_jitter_shortens_a_wait_by_a_quarter_at_most() -> None:
    assert waits(SILENT, jitter=1.0) == [1.5]
    assert waits(*[SILENT] * 7, jitter=1.0)[-1] == 45.0


def test_a_wait_ends_at_its_instant() -> None:
    state = failed(Backoff(), SILENT, now_s=10.0, jitter=0.0)
    assert state.must_wait(11.9)
    assert not state.must_wait(12.0)
    assert not Backoff().must_wait(0.0)


def test_b60_from_the_third_drop_in_a_row_it_looks_like_a_ban() -> None:
    state = Backoff()
    seen = []
    for trouble in (DROPPED, DROPPED, DROPPED, DROPPED, SILENT):
        state = failed(state, trouble, now_s=0.0, jitter=0.0)
        seen.append(state.is_ban())
    assert seen == [False, False, True, True, False]


def test_b52_after_a_wake_failures_do_not_add_up_for_half_a_minute() -> None:
    state = woken(Backoff(failures=9, until_s=500.0), now_s=100.0)
    assert not state.must_wait(100.0)
    for now_s in (100.0, 110.0, 129.0):
        state = failed(state, SILENT, now_s=now_s, jitter=0.0)
        assert state.until_s == now_s + 2.0
    state = failed(state, SILENT, now_s=130.0, jitter=0.0)
    assert state.until_s == 134.0


def test_b52_a_wake_forgives_no_ban() -> None:
    state = Backoff()
    for _ in range(4):
        state = failed(state, DROPPED, now_s=0.0, jitter=0.0)
    awake = woken(state, now_s=1.0)
    assert awake.must_wait(1.0)
    assert awake.failures == 4
    assert failed(awake, DROPPED, now_s=16.0, jitter=0.0).until_s == 48.0
    assert failed(awake, SILENT, now_s=16.0, jitter=0.0).until_s == 32.0


@ALWAYS
@given(st.lists(st.tuples(st.sampled_from(Trouble), st.floats(0, 1), st.booleans())))
def test_whatever_happens_a_wait_is_never_long_and_never_none(
    events: list[tuple[Trouble, float, bool]],
) -> None:
    state, now_s = Backoff(), 0.0
    for trouble, jitter, wakes in events:
        if wakes:
            state = woken(state, now_s=now_s)
        state = failed(state, trouble, now_s=now_s, jitter=jitter)
        assert 1.49 <= state.until_s - now_s <= 300.0  # sums of floats
        now_s = state.until_s
