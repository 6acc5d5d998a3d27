"""What a server's answer means, and how its words may be shown (C6.2)."""

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.delivery import (
    EXCERPT_LIMIT,
    FIELD_LIMIT,
    MESSAGE_LIMIT,
    Answer,
    classify,
    excerpt,
    idempotency_key,
)
from policies.lines import outcome_line
from policies.model import Ending, Outcome
from policies.shapes import outcome_ping
from policies.text import CUT_MARK
from policies.wording import Lang
from tests.policies.samples import ALWAYS, LOCK, ZONE, foreign, outcomes, unfit

KEY = "k3y/with+odd=signs"
keys = st.text(
    st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="*"),
    min_size=8,
)


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        *[(code, Answer.DELIVERED) for code in (200, 201, 202, 204, 299)],
        *[
            pytest.param(code, Answer.TRY_LATER, id=f"B112-{code}")
            for code in (408, 425, 500, 502, 503, 504, 599)
        ],
        pytest.param(429, Answer.TRY_LATER, id="B90-429"),
        *[
            pytest.param(code, Answer.REFUSED, id=f"B112-{code}")
            for code in (400, 401, 403, 404, 410, 413, 422, 499)
        ],
        *[
            pytest.param(code, Answer.REFUSED, id=f"B94-{code}")
            for code in (300, 301, 302, 303, 304, 307, 308)
        ],
        *[(code, Answer.REFUSED) for code in (100, 101, 199)],
    ],
)
def test_an_answer_is_delivered_tried_again_or_final(
    status: int, answer: Answer
) -> None:
    assert classify(status) is answer


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"invalid key {KEY}!", id="B96-plain"),
        pytest.param(f"{KEY}{KEY} {KEY}", id="B96-many-times"),
        pytest.param(
            json.dumps({"key": KEY}).replace("/", "\\/"), id="B96-JSON-escaped"
        ),
        pytest.param(f"/login?key={quote(KEY, safe='')}", id="B96-in-an-address"),
        pytest.param("x" * (EXCERPT_LIMIT - 20) + KEY + "x" * 99, id="B96-at-the-cut"),
        pytest.param(f"{KEY} " + "x" * 5_000_000, id="B96-huge"),
    ],
)
def test_a_key_that_is_echoed_is_not_shown(body: str) -> None:
    shown = excerpt(body, KEY)
    assert "k3y" not in shown
    assert "odd" not in shown
    assert "*" in shown
    assert len(shown) <= EXCERPT_LIMIT


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("", ""),
        ("no such\n\n  channel\t!", "no such channel !"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("x" * 201, "x" * 190 + CUT_MARK),
    ],
)
def test_a_servers_words_are_one_short_clean_line(body: str, shown: str) -> None:
    assert excerpt(body, "") == shown
    assert excerpt(body, KEY) == shown


@ALWAYS
@given(st.lists(foreign), keys)
def test_no_key_comes_through_whatever_stands_around_it(
    pieces: list[str], key: str
) -> None:
    shown = excerpt(key.join([*pieces, ""]), key)
    assert key not in shown
    assert unfit(shown) == set()
    assert len(shown) <= EXCERPT_LIMIT


def test_a_key_follows_from_watch_waiter_and_outcome() -> None:
    assert idempotency_key("a1b2c3", 2, Ending.EXPIRED) == "a1b2c3-2-expired"
    keys_made = {
        idempotency_key(watch, waiter, ending)
        for watch in ("a1b2c3", "ffffff")
        for waiter in (1, 2, 11)
        for ending in Ending
    }
    assert len(keys_made) == 2 * 3 * len(Ending)


def test_a_key_goes_into_a_header_as_it_is() -> None:
    key = outcome_ping(LOCK, Lang.PT, ZONE).idempotency_key
    assert key.isascii()
    assert key.isprintable()
    assert " " not in key


def test_a_request_at_its_limits_stays_below_64_kb_b102() -> None:
    ping = outcome_ping(LOCK, Lang.PT, ZONE)
    texts = [value for value in (ping.watch or {}).values() if not_number(value)]
    worst = 4 * (MESSAGE_LIMIT + FIELD_LIMIT * (len(texts) + 1))
    assert worst < 65536


def not_number(value: object) -> bool:
    return not isinstance(value, int | float)


@ALWAYS
@given(outcomes, st.sampled_from(Lang))
def test_an_outcome_line_is_never_cut_on_its_way(outcome: Outcome, lang: Lang) -> None:
    assert len(outcome_line(outcome, lang, ZONE)) <= MESSAGE_LIMIT
