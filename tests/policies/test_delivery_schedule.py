"""When a ping is tried again, and when no more (C6.1, C6.2)."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.delivery import (
    GIVE_UP_S,
    LONGEST_WAIT_S,
    Answer,
    Attempt,
    PingState,
    http_date,
    kept,
    next_attempt,
    retry_after,
    settlement,
)
from policies.wording import Lang

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(seconds=GIVE_UP_S)

attempts = st.integers(1, 10**6)
jitters = st.floats(0, 1)
spans = st.floats(0, GIVE_UP_S)
headers = st.text() | st.from_regex(r"[A-Za-z0-9,: +-]{0,40}")


def wait_s(
    count: int,
    *,
    jitter: float = 0.0,
    retry_after_s: float | None = None,
    left_s: float = GIVE_UP_S,
) -> float | None:
    at = next_attempt(
        count,
        now=NOW,
        give_up_at=NOW + timedelta(seconds=left_s),
        jitter=jitter,
        retry_after_s=retry_after_s,
    )
    return None if at is None else (at - NOW).total_seconds()


@pytest.mark.parametrize(
    ("count", "jitter", "expected_s"),
    [
        (1, 0.0, 5),
        (2, 0.0, 10),
        (3, 0.0, 20),
        (8, 0.0, 640),
        (9, 0.0, 900),
        (10, 0.0, 900),
        (10_000, 0.0, 900),
        (1, 1.0, 10),
        (2, 0.5, 15),
        (50, 1.0, 1800),
    ],
)
def test_waits_double_from_five_seconds_to_a_quarter_of_an_hour(
    count: int, jitter: float, expected_s: float
) -> None:
    assert wait_s(count, jitter=jitter) == expected_s


@pytest.mark.parametrize(
    ("count", "asked_s", "expected_s"),
    [
        pytest.param(1, 3.0, 3.0, id="B90-shorter-than-the-back-off"),
        pytest.param(1, 120.0, 120.0, id="longer"),
        pytest.param(50, 3600.0, 3600.0, id="an-hour"),
        pytest.param(1, 0.0, 1.0, id="no-leave-to-hammer"),
        pytest.param(3, 2.0, 2.0, id="believed-three-times"),
        pytest.param(4, 2.0, 40.0, id="no-longer-believed"),
        pytest.param(4, 41.0, 41.0, id="never-cut-short"),
    ],
)
def test_what_the_server_asks_for_goes_before_the_back_off(
    count: int, asked_s: float, expected_s: float
) -> None:
    assert wait_s(count, retry_after_s=asked_s) == expected_s


@pytest.mark.parametrize(
    ("left_s", "asked_s", "expected_s"),
    [
        (5.0, None, 5.0),
        (0.5, None, 0.5),
        (0.0, None, None),
        (-1.0, None, None),
        (3.0, 3.0, 3.0),
        (2.9, 3.0, None),
        (0.0, 3.0, None),
    ],
    ids=[
        "in time",
        "last one at the end itself",
        "at the end",
        "past the end",
        "asked for in time",
        "asked for past the end",
        "asked for at the end",
    ],
)
def test_it_is_given_up_in_the_end(
    left_s: float, asked_s: float | None, expected_s: float | None
) -> None:
    assert wait_s(1, left_s=left_s, retry_after_s=asked_s) == expected_s


@given(count=attempts, jitter=jitters, left_s=spans)
def test_a_wait_stays_in_its_bounds(count: int, jitter: float, left_s: float) -> None:
    found_s = wait_s(count, jitter=jitter, left_s=left_s)
    if found_s is None:
        assert left_s < 1e-6  # what a timedelta cannot hold
    else:
        assert min(5.0, left_s) - 1e-5 <= found_s <= min(1800.0, left_s) + 1e-5


@given(count=attempts, jitter=jitters, asked_s=st.floats(0, LONGEST_WAIT_S))
def test_no_server_is_asked_before_it_wants_to_be(
    count: int, jitter: float, asked_s: float
) -> None:
    found_s = wait_s(count, jitter=jitter, retry_after_s=asked_s)
    assert found_s is not None
    assert max(1.0, asked_s) - 1e-5 <= found_s <= LONGEST_WAIT_S


@given(count=attempts, jitter=jitters)
def test_waits_never_get_shorter(count: int, jitter: float) -> None:
    first_s, second_s = wait_s(count, jitter=jitter), wait_s(count + 1, jitter=jitter)
    assert first_s is not None
    assert second_s is not None
    assert first_s <= second_s


@given(jitter=jitters)
def test_a_day_of_failures_is_some_hundred_attempts(jitter: float) -> None:
    at: datetime | None = NOW
    count = 0
    while at is not None:
        count += 1
        last, at = at, next_attempt(count, now=at, give_up_at=LATER, jitter=jitter)
    assert last == LATER
    assert 48 <= count <= 106


@pytest.mark.parametrize(
    ("value", "expected_s"),
    [
        ("3", 3.0),
        (" 3 ", 3.0),
        ("0", 0.0),
        ("007", 7.0),
        ("3600", 3600.0),
        ("3601", 3600.0),
        ("9" * 5000, 3600.0),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sunday, 01-Mar-26 12:00:30 GMT", 30.0),
        ("Sun Mar  1 12:00:30 2026", 30.0),
        ("Sun, 01 Mar 2026 13:00:30 +0100", 30.0),
        ("Sun, 01 Mar 2026 11:59:00 GMT", 0.0),
        ("Mon, 02 Mar 2026 12:00:00 GMT", 3600.0),
        ("", None),
        (None, None),
        ("soon", None),
        ("-3", None),
        ("+3", None),
        ("1.5", None),
        ("3s", None),
        ("٣", None),
        ("Sun, 99 Mar 2026 12:00:30 GMT", None),
        ("Mon, 01 Jan 0001 00:00:00 +2359", 0.0),
    ],
)
def test_the_header_is_seconds_or_a_date(
    value: str | None, expected_s: float | None
) -> None:
    assert retry_after(value, now=NOW) == expected_s


def test_a_date_says_nothing_where_nobody_knows_the_time() -> None:
    assert retry_after("Sun, 01 Mar 2026 12:00:30 GMT", now=None) is None
    assert retry_after("30", now=None) == 30


@given(headers)
def test_no_header_is_too_odd(value: str) -> None:
    found_s = retry_after(value, now=NOW)
    assert found_s is None or 0 <= found_s <= LONGEST_WAIT_S


@given(st.datetimes(timezones=st.just(UTC), min_value=datetime(1970, 1, 1)))  # noqa: DTZ001 - hypothesis wants it so
def test_a_date_of_http_is_read_as_it_was_meant(at: datetime) -> None:
    at = at.replace(microsecond=0)
    assert http_date(at.strftime("%a, %d %b %Y %H:%M:%S GMT")) == at


@pytest.mark.parametrize(
    ("attempt", "state", "wait", "said"),
    [
        (Attempt(answer=Answer.DELIVERED), PingState.DELIVERED, None, None),
        (
            Attempt(answer=Answer.REFUSED, error="HTTP 400"),
            PingState.DEAD,
            None,
            "recusado: HTTP 400",
        ),
        (
            Attempt(answer=Answer.TRY_LATER, error="HTTP 502"),
            PingState.PENDING,
            20.0,
            "não entregue: HTTP 502",
        ),
        (
            Attempt(answer=Answer.TRY_LATER, error="HTTP 429", retry_after_s=7.0),
            PingState.PENDING,
            7.0,
            "não entregue: HTTP 429",
        ),
        pytest.param(
            Attempt(answer=Answer.TRY_LATER, error="cut off", unknown=True),
            PingState.PENDING,
            20.0,
            "resultado desconhecido (cut off): pode chegar mais de uma vez, com a "
            "mesma chave",
            id="B92-answer-lost",
        ),
    ],
)
def test_the_result_of_an_attempt_says_how_the_row_goes_on(
    attempt: Attempt, state: PingState, wait: float | None, said: str | None
) -> None:
    found = settlement(attempt, 3, now=NOW, give_up_at=LATER, jitter=0.0)
    assert found.state is state
    due_at = None if wait is None else NOW + timedelta(seconds=wait)
    assert found.due_at == due_at
    assert (found.reason.render(Lang.PT) if found.reason else None) == said


def test_a_ping_that_is_given_up_says_after_how_many_attempts_and_why() -> None:
    attempt = Attempt(answer=Answer.TRY_LATER, error="HTTP 502")
    found = settlement(attempt, 104, now=LATER, give_up_at=LATER, jitter=0.0)
    assert found.state is PingState.DEAD
    assert found.due_at is None
    assert found.reason is not None
    assert found.reason.render(Lang.EN) == (
        "given up after 104 attempts: not delivered: HTTP 502"
    )


@given(count=attempts, jitter=jitters, refused=st.booleans())
def test_what_nothing_else_holds_stays_pending(
    count: int, jitter: float, refused: bool
) -> None:
    answer = Answer.REFUSED if refused else Answer.TRY_LATER
    attempt = Attempt(answer=answer, error="no")
    dead = settlement(attempt, count, now=LATER, give_up_at=LATER, jitter=jitter)
    assert dead.state is PingState.DEAD
    found = kept(dead, count, now=LATER, jitter=jitter)
    assert found.state is PingState.PENDING
    assert found.reason is dead.reason
    assert found.due_at is not None
    assert timedelta(seconds=5) <= found.due_at - LATER <= timedelta(seconds=1800)
