"""Values as JSON and back: nothing is lost between the store and the socket."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.codec import (
    dumps,
    instant,
    outcome_of,
    outcome_record,
    phrase_of,
    phrase_record,
    ping_of,
    ping_record,
)
from policies.model import Ending, Outcome, Result
from policies.shapes import outcome_ping
from policies.wording import Lang, Phrase, phrase
from tests.policies.samples import ALWAYS, LOCK, WORK, ZONE, outcomes

FIELDS = list(outcome_record(LOCK))

plain = st.integers(-(1 << 60), 1 << 60) | st.text()
phrases = st.recursive(
    st.builds(Phrase, st.text(), st.dictionaries(st.text(), plain, max_size=3)),
    lambda inner: st.builds(
        Phrase, st.text(), st.dictionaries(st.text(), plain | inner, max_size=3)
    ),
    max_leaves=6,
)


def through(value: object) -> Mapping[str, object]:
    """Return a record as another process reads it."""
    read = json.loads(dumps(value))  # type: ignore[arg-type]  # a record
    assert isinstance(read, dict)
    return read


@ALWAYS
@given(outcomes)
def test_an_outcome_survives_store_and_socket(outcome: Outcome) -> None:
    microseconds = instant(outcome.ended_at.timestamp())
    assert abs((microseconds - outcome.ended_at).total_seconds()) < 1e-5
    back = outcome_of(through(outcome_record(outcome)))  # type: ignore[arg-type]  # JSON
    assert dumps(outcome_record(back)) == dumps(outcome_record(outcome))
    assert (back.ending, back.result, back.tail) == (
        outcome.ending,
        outcome.result,
        outcome.tail,
    )


@pytest.mark.parametrize("ending", Ending)
@pytest.mark.parametrize("result", [None, *Result])
def test_every_ending_and_result_survives(
    ending: Ending, result: Result | None
) -> None:
    since = WORK.armed_at
    outcome = replace(
        WORK,
        ending=ending,
        result=result,
        unknown_since=since,
        reason=phrase("said", text="by hand"),
        tail=(phrase("orphan", pid=7),),
        resume="r",
        session="s",
        evidence={"path": "/l/\udcff", "n": [1, None, True]},
    )
    assert outcome_of(through(outcome_record(outcome))) == outcome  # type: ignore[arg-type]  # JSON


@ALWAYS
@given(phrases)
def test_a_sentence_survives(sentence: Phrase) -> None:
    assert phrase_of(through(phrase_record(sentence))) == sentence  # type: ignore[arg-type]  # JSON


@pytest.mark.parametrize("value", [None, 5, "text", [], True])
def test_what_is_no_sentence_is_none(value: object) -> None:
    assert phrase_of(value) is None  # type: ignore[arg-type]  # whatever came
    assert phrase_record(None) is None


def test_a_value_of_another_type_is_shown_as_text() -> None:
    read = phrase_of({"key": "said", "values": {"text": 1.5, "b": None}})
    assert read == Phrase("said", {"text": "1.5", "b": "None"})


@ALWAYS
@given(outcomes.filter(lambda outcome: outcome.ending is not Ending.REMOVED))
def test_a_ping_survives_the_outbox(outcome: Outcome) -> None:
    ping = outcome_ping(outcome, Lang.PT, ZONE)
    back = ping_of(through(ping_record(ping)))  # type: ignore[arg-type]  # JSON
    assert ping_record(back) == through(ping_record(ping))


def test_odd_bytes_are_ascii_on_the_way() -> None:
    assert dumps({"a": "\udcffç"}) == '{"a":"\\udcff\\u00e7"}'


SINCE_0_1 = {"out_of_reach", "decided"}
"""Fields that outcomes of older versions do not have."""


@pytest.mark.parametrize("field", sorted(set(FIELDS) - SINCE_0_1))
def test_an_outcome_without_one_of_its_fields_is_none(field: str) -> None:
    record = outcome_record(LOCK)
    del record[field]
    with pytest.raises(KeyError):
        outcome_of(record)


@pytest.mark.parametrize("field", sorted(SINCE_0_1))
def test_an_outcome_of_an_older_version_is_read(field: str) -> None:
    record = outcome_record(LOCK)
    del record[field]
    assert outcome_of(record) == LOCK


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ending", "vanished"),
        ("result", "MAYBE"),
        ("armed_at", "noon"),
        ("ended_at", None),
        ("unknown_since", "x"),
        ("target", None),
        ("target", {}),
        ("tail", None),
    ],
)
def test_an_outcome_with_a_wrong_field_is_none(field: str, value: object) -> None:
    record = {**outcome_record(LOCK), field: value}
    with pytest.raises((KeyError, TypeError, ValueError)):
        outcome_of(record)  # type: ignore[arg-type]  # whatever came


@pytest.mark.parametrize(
    ("seconds", "at"),
    [
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (1.25, datetime(1970, 1, 1, 0, 0, 1, 250_000, tzinfo=UTC)),
    ],
)
def test_seconds_are_an_instant(seconds: float, at: datetime) -> None:
    assert instant(seconds) == at


@pytest.mark.parametrize("seconds", ["5", None, [], {}])
def test_what_is_no_number_is_no_instant(seconds: object) -> None:
    with pytest.raises(TypeError):
        instant(seconds)  # type: ignore[arg-type]  # whatever came
