"""An outcome as programs read it (C2.5, C6.2)."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.lines import outcome_line, severity, title
from policies.model import Ending, Observation, Outcome, Result, Sight
from policies.shapes import check_object, outcome_object, outcome_ping, rfc3339
from policies.sight import unknown
from policies.wording import Lang, phrase
from tests.policies.samples import (
    ALWAYS,
    LOCK,
    START,
    WORK,
    ZONE,
    outcomes,
    strings,
    unfit,
)

pinged = outcomes.filter(lambda outcome: outcome.ending is not Ending.REMOVED)
langs = st.sampled_from(Lang)


def test_the_object_has_the_contracts_fields() -> None:
    outcome = replace(
        WORK,
        target=replace(WORK.target, host="box"),
        result=Result.FAIL,
        waited_s=3600.12345,
        observations=121,
        unknown_s=60.0004,
        resume="publicar",
        evidence={"identity": {"pid": 7}, "exit": None},
    )
    assert outcome_object(outcome, Lang.PT, ZONE) == {
        "outcome": "ended",
        "result": "FAIL",
        "target": "process --match train.py",
        "label": "treino",
        "host": "box",
        "watch_id": "a1b2c3",
        "armed_at": "2026-03-01T09:00:00.000-03:00",
        "ended_at": "2026-03-01T10:00:00.000-03:00",
        "waited_s": 3600.123,
        "ttl_s": 3600,
        "observations": 121,
        "unknown_s": 60.0,
        "resume": "publicar",
        "line": "✅ TERMINOU: treino no box em 10:00:00 [FAIL] — retomar publicar",
        "evidence": {"identity": {"pid": 7}, "exit": None},
    }


@pytest.mark.parametrize("ending", Ending)
def test_an_outcome_is_one_of_the_contracts_words(ending: Ending) -> None:
    shape = outcome_object(replace(LOCK, ending=ending), Lang.EN, ZONE)
    assert json.loads(json.dumps(shape))["outcome"] == ending.value
    assert shape["result"] is shape["host"] is shape["resume"] is None


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        (UTC, "2026-03-01T12:00:00.250+00:00"),
        (timezone(timedelta(hours=-3)), "2026-03-01T09:00:00.250-03:00"),
        (timezone(timedelta(hours=5, minutes=45)), "2026-03-01T17:45:00.250+05:45"),
    ],
)
def test_a_time_carries_its_offset(zone: timezone, text: str) -> None:
    at = START + timedelta(milliseconds=250)
    assert rfc3339(at, zone) == text
    assert datetime.fromisoformat(text) == at


def test_a_name_that_is_no_utf_8_is_escaped_in_the_object_and_the_ping_b17() -> None:
    target = replace(LOCK.target, text="lock '/l/x\udcff.lock'", label="x\udcff.lock")
    outcome = replace(LOCK, target=target, evidence={"path": "/l/x\udcff.lock"})
    shape = outcome_object(outcome, Lang.PT, ZONE)
    ping = outcome_ping(outcome, Lang.PT, ZONE)
    body = json.dumps([shape, ping.title, ping.watch], ensure_ascii=False).encode()
    assert body.count(rb"/l/x\\xff.lock") == 3
    assert ping.title == "lock x\\xff.lock liberado"


def test_foreign_text_is_escaped_however_deep_it_lies_b104() -> None:
    evidence = {"a\x1b": [{"b": ("\x9b31m", 1, True, None)}]}
    shape = outcome_object(replace(LOCK, evidence=evidence), Lang.PT, ZONE)
    assert shape["evidence"] == {"a\\x1b": [{"b": ["\\x9b31m", 1, True, None]}]}


@ALWAYS
@given(outcomes, langs)
def test_no_text_of_the_object_can_steer_a_terminal(
    outcome: Outcome, lang: Lang
) -> None:
    shape = outcome_object(outcome, lang, ZONE)
    for text in strings(shape):
        assert unfit(text) == set()
    printed = json.dumps(shape, ensure_ascii=False, allow_nan=False)
    assert printed.encode().decode() == printed
    assert len(printed.splitlines()) == 1


@ALWAYS
@given(pinged, langs, st.integers(1, 9))
def test_a_ping_tells_what_the_line_tells(
    outcome: Outcome, lang: Lang, waiter: int
) -> None:
    ping = outcome_ping(outcome, lang, ZONE, waiter=waiter)
    assert ping.message == outcome_line(outcome, lang, ZONE)
    assert ping.title == title(outcome, lang)
    assert ping.severity is severity(outcome)
    assert ping.occurred_at == outcome.ended_at
    assert ping.idempotency_key == f"a1b2c3-{waiter}-{outcome.ending.value}"
    for text in strings(ping.watch):
        assert unfit(text) == set()
    assert unfit(ping.title + ping.message) == set()


def test_a_ping_names_its_watch() -> None:
    ping = outcome_ping(replace(LOCK, session="abc-1", resume="x"), Lang.PT, ZONE)
    assert ping.watch == {
        "id": "a1b2c3",
        "kind": "lock",
        "target": "lock meta-context",
        "label": "meta-context",
        "host": None,
        "state": "released",
        "result": None,
        "armed_at": "2026-03-01T09:00:00.000-03:00",
        "ended_at": "2026-03-01T10:00:00.000-03:00",
        "waited_s": 3600.0,
        "ttl_s": 3600,
        "resume": "x",
        "session": "abc-1",
    }


def test_the_key_stays_the_same_however_often_it_is_told_b92() -> None:
    again = replace(LOCK, ended_at=LOCK.ended_at + timedelta(days=1), observations=9)
    first, second = (outcome_ping(o, Lang.PT, ZONE) for o in (LOCK, again))
    assert first.idempotency_key == second.idempotency_key


def test_a_removal_is_no_ping() -> None:
    with pytest.raises(ValueError, match="removal"):
        outcome_ping(replace(LOCK, ending=Ending.REMOVED), Lang.PT, ZONE)


# check


@pytest.mark.parametrize(
    ("lang", "detail"), [(Lang.PT, "lstat"), (Lang.EN, "lstat")], ids=str
)
def test_a_look_that_saw_something_says_by_which_means(lang: Lang, detail: str) -> None:
    seen = Observation(
        sight=Sight.HELD,
        at=START,
        evidence={"means": "lstat", "path": "/l/\x1b[1m\udcff"},
        result=Result.FAIL,
    )
    shape = check_object(LOCK.target, seen, lang, ZONE)
    assert detail in str(shape.pop("detail"))
    assert shape == {
        "target": "lock meta-context",
        "observation": "held",
        "result": "FAIL",
        "evidence": {"means": "lstat", "path": "/l/\\x1b[1m\\xff"},
        "at": "2026-03-01T09:00:00.000-03:00",
    }


def test_a_look_that_could_not_see_says_why() -> None:
    reason = phrase("denied", path="/l")
    seen = unknown({}, START, reason, {"means": "lstat", "errno": "EACCES"})
    shape = check_object(LOCK.target, seen, Lang.EN, ZONE)
    assert (shape["observation"], shape["detail"]) == (
        "unknown",
        reason.render(Lang.EN),
    )
    assert shape["result"] is None
    json.dumps(shape, ensure_ascii=False).encode()
