"""The past in numbers: hours blocked, how long waits were, how soon they were told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.history import Day, Wait, history_of
from tests.policies.samples import ALWAYS

DAY_S = 86400.0
DAYS = [Day(f"d{n}", n * DAY_S, (n + 1) * DAY_S) for n in range(3)]
NOW_S = 2.5 * DAY_S


def wait(
    armed_at: float,
    ended_at: float | None,
    *,
    kind: str = "lock",
    label: str = "api",
    host: str | None = None,
    state: str = "released",
    told_s: float | None = None,
) -> Wait:
    now = "armed" if ended_at is None else state
    return Wait(kind, label, host, now, armed_at, ended_at, told_s)


def hours(*waits: Wait) -> list[float]:
    return [day.hours for day in history_of(waits, [], DAYS, now_s=NOW_S).days]


@pytest.mark.parametrize(
    ("waited", "blocked"),
    [
        pytest.param((0.0, 7200.0), [2.0, 0.0, 0.0], id="within-a-day"),
        pytest.param(
            (DAY_S - 3600, DAY_S + 1800), [1.0, 0.5, 0.0], id="over-a-midnight"
        ),
        pytest.param((-DAY_S, DAY_S), [24.0, 0.0, 0.0], id="begun-before"),
        pytest.param((-DAY_S, 0.0), [0.0, 0.0, 0.0], id="over-before"),
        pytest.param((2 * DAY_S, None), [0.0, 0.0, 12.0], id="waits-still"),
        pytest.param((7200.0, 3600.0), [0.0, 0.0, 0.0], id="the-clock-was-set-back"),
    ],
)
def test_hours_count_on_the_day_in_which_they_were_waited(
    waited: tuple[float, float | None], blocked: list[float]
) -> None:
    assert hours(wait(*waited)) == blocked


def test_waits_at_the_same_time_add_up() -> None:
    assert hours(wait(0, 3600), wait(0, 3600, label="b")) == [2.0, 0.0, 0.0]


def test_a_day_on_which_the_clock_is_set_has_another_length() -> None:
    days = [Day("long", 0.0, 25 * 3600.0)]
    found = history_of([wait(0, None)], [], days, now_s=NOW_S)
    assert found.days[0].hours == 25.0


def test_locks_and_hosts_are_named_the_costliest_first() -> None:
    found = history_of(
        [
            wait(0, 3600),
            wait(0, 7200, label="b"),
            wait(3600, 7200),
            wait(0, None, kind="process", label="p", host="box"),
        ],
        [],
        DAYS,
        now_s=NOW_S,
    )
    locks = [(one.name, one.hours, one.waits) for one in found.locks]
    assert locks == [("api", 2.0, 2), ("b", 2.0, 1)]
    hosts = [(one.name, one.hours, one.waits) for one in found.hosts]
    assert hosts == [("box", 60.0, 1), (None, 4.0, 3)]


def test_only_so_many_are_named() -> None:
    waits = [wait(0, 60.0 * (n + 1), label=f"l{n}") for n in range(40)]
    found = history_of(waits, [], DAYS, now_s=NOW_S)
    assert len(found.locks) == 12
    assert found.locks[0].name == "l39"


def test_what_ended_is_counted_by_its_state_and_its_length() -> None:
    found = history_of(
        [
            wait(0, 5),
            wait(0, 10),
            wait(0, 11),
            wait(0, 3 * DAY_S, state="expired"),
            wait(0, None),
        ],
        [],
        DAYS,
        now_s=NOW_S,
        left_out=True,
    )
    assert found.endings == {"expired": 1, "released": 3}
    counts = {bucket.up_to_s: bucket.count for bucket in found.waits.buckets}
    assert (counts[10.0], counts[60.0], counts[None]) == (2, 1, 1)
    assert (found.waits.count, found.waits.median_s) == (4, 10)
    assert found.waits.longest_s == 3 * DAY_S
    assert found.left_out


def test_how_soon_it_was_told_and_delivered_is_known_only_where_it_was() -> None:
    waits = [wait(0, 5, told_s=0.2), wait(0, 5, told_s=-1.0), wait(0, 5)]
    found = history_of(waits, [1.0, 2.0, 40.0], DAYS, now_s=NOW_S)
    told, delivered = found.release_to_line, found.line_to_delivery
    assert (told.count, told.median_s, told.longest_s) == (2, 0.0, 0.2)
    assert (delivered.median_s, delivered.p95_s) == (2.0, 40.0)


def test_nothing_is_no_error() -> None:
    found = history_of([], [], DAYS, now_s=NOW_S)
    assert [day.day for day in found.days] == ["d0", "d1", "d2"]
    assert (found.locks, found.hosts, found.endings) == ([], [], {})
    assert found.waits.median_s is None
    assert not found.left_out


INSTANTS = st.floats(-1e6, 1e6)


@ALWAYS
@given(st.lists(st.tuples(INSTANTS, st.none() | INSTANTS), max_size=20))
def test_whatever_is_stored_nothing_is_below_zero_or_more_than_there_is(
    spans: list[tuple[float, float | None]],
) -> None:
    waits = [wait(*span) for span in spans]
    found = history_of(waits, [], DAYS, now_s=NOW_S)
    assert all(0 <= day.hours <= 24 * len(waits) for day in found.days)
    whole = sum(day.hours for day in found.days)
    shared = sum(host.hours for host in found.hosts)
    assert shared == pytest.approx(whole, abs=0.001)
    ended = sum(span[1] is not None for span in spans)
    assert sum(bucket.count for bucket in found.waits.buckets) == ended
    times = found.waits
    if ended:
        assert times.median_s is not None
        assert times.p95_s is not None
        assert times.longest_s is not None
        assert 0 <= times.median_s <= times.p95_s <= times.longest_s
