"""How often to look (C4.1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.cadence import Cadence, cadence, next_look
from tests.policies.samples import ALWAYS


@pytest.mark.parametrize(
    ("asked_s", "default_s", "floor_s", "every_s", "raised"),
    [
        pytest.param(None, 30, 30, 30, False, id="default"),
        pytest.param(1, 30, 30, 30, True, id="below-the-local-floor"),
        pytest.param(30, 60, 60, 60, True, id="below-the-remote-floor"),
        pytest.param(30, 30, 30, 30, False, id="at-the-floor"),
        pytest.param(300, 30, 30, 300, False, id="above-the-floor"),
        pytest.param(2, 30, 1, 2, False, id="a-floor-for-tests"),
        pytest.param(None, 10, 30, 30, False, id="default-raised-without-a-word"),
    ],
)
def test_an_interval_below_the_floor_is_raised_to_it(
    asked_s: int | None,
    default_s: int,
    floor_s: int,
    every_s: int,
    raised: bool,
) -> None:
    assert cadence(asked_s=asked_s, default_s=default_s, floor_s=floor_s) == Cadence(
        every_s=every_s, raised=raised
    )


@pytest.mark.parametrize(
    ("now_s", "deadline_s", "start_due_s", "expected_s"),
    [
        pytest.param(0.0, 100.0, None, 30.0, id="an-interval-later"),
        pytest.param(80.0, 100.0, None, 100.0, id="C3.7-at-the-deadline"),
        pytest.param(0.0, 100.0, 10.0, 10.0, id="when-its-start-is-due"),
        pytest.param(0.0, 100.0, 60.0, 30.0, id="start-due-later"),
        pytest.param(90.0, 100.0, 110.0, 100.0, id="start-due-behind-the-deadline"),
    ],
)
def test_the_next_look_passes_nothing_that_falls_due(
    now_s: float, deadline_s: float, start_due_s: float | None, expected_s: float
) -> None:
    assert expected_s == next_look(
        now_s=now_s, every_s=30.0, deadline_s=deadline_s, start_due_s=start_due_s
    )


@ALWAYS
@given(
    st.floats(0, 1e9),
    st.floats(1, 1e8),
    st.floats(0, 1e8),
    st.none() | st.floats(0, 1e9),
)
def test_no_look_is_later_than_the_deadline_or_an_interval(
    now_s: float, every_s: float, left_s: float, start_due_s: float | None
) -> None:
    deadline_s = now_s + left_s
    look_s = next_look(
        now_s=now_s, every_s=every_s, deadline_s=deadline_s, start_due_s=start_due_s
    )
    odd_s = 0.5 if every_s >= 10 else 0.0
    assert look_s <= deadline_s
    assert look_s <= now_s + every_s + odd_s
    assert start_due_s is None or look_s <= start_due_s
    due_s = [deadline_s, now_s + every_s - odd_s]
    assert look_s >= min(due_s if start_due_s is None else [*due_s, start_due_s])


@pytest.mark.parametrize(
    ("now_s", "every_s", "expected_s"),
    [
        pytest.param(0.4, 30.0, 30.0, id="a little sooner"),
        pytest.param(0.6, 30.0, 31.0, id="a little later"),
        pytest.param(0.4, 10.0, 10.0, id="from ten seconds on"),
        pytest.param(0.25, 9.75, 10.0, id="by chance"),
        pytest.param(0.25, 9.5, 9.75, id="not below ten"),
        pytest.param(0.25, 1.0, 1.25, id="not what is quick"),
    ],
)
def test_long_intervals_end_at_whole_seconds_so_that_looks_are_taken_together(
    now_s: float, every_s: float, expected_s: float
) -> None:
    assert expected_s == next_look(
        now_s=now_s, every_s=every_s, deadline_s=1e6, start_due_s=None
    )


@pytest.mark.parametrize(
    ("deadline_s", "start_due_s"), [(29.9, None), (30.25, None), (100.0, 29.75)]
)
def test_what_falls_due_is_never_moved_to_a_whole_second(
    deadline_s: float, start_due_s: float | None
) -> None:
    look_s = next_look(
        now_s=0.3, every_s=30.4, deadline_s=deadline_s, start_due_s=start_due_s
    )
    assert look_s == min(deadline_s, start_due_s or deadline_s)


@pytest.mark.parametrize(
    ("now_s", "expected_s"),
    [
        pytest.param(0.0, 60.0, id="the-next-round"),
        pytest.param(59.9, 60.0, id="armed-just-before-it"),
        pytest.param(60.0, 120.0, id="never-at-once"),
        pytest.param(61.0, 120.0, id="behind-it"),
    ],
)
def test_c4_4_what_is_looked_at_in_rounds_is_due_together_whenever_it_was_armed(
    now_s: float, expected_s: float
) -> None:
    look_s = next_look(
        now_s=now_s, every_s=60.0, deadline_s=1e6, start_due_s=None, in_rounds=True
    )
    assert look_s == expected_s


@ALWAYS
@given(
    st.floats(0, 1e6),
    st.floats(0, 60),
    st.sampled_from([1.0, 30.0, 60.0, 90.0]),
    st.floats(0, 1e6),
)
def test_a_round_is_shared_never_late_and_passes_no_deadline(
    now_s: float, apart_s: float, every_s: float, left_s: float
) -> None:
    def due_s(at_s: float, deadline_s: float) -> float:
        return next_look(
            now_s=at_s,
            every_s=every_s,
            deadline_s=deadline_s,
            start_due_s=None,
            in_rounds=True,
        )

    first_s = due_s(now_s, 1e9)
    assert now_s < first_s <= now_s + every_s
    assert due_s(now_s, now_s + left_s) == min(first_s, now_s + left_s)
    if now_s + apart_s < first_s:
        assert due_s(now_s + apart_s, 1e9) == first_s
