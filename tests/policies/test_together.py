"""Any or all of several conditions: what their looks come to (C3.6)."""

import json
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from policies.model import Observation, Result, Sight
from policies.together import AGAIN_S, Need, together
from policies.verdict import Progress, Rules, Verdict, decide
from policies.wording import Lang, phrase
from tests.policies.samples import (
    ABSENT,
    ALWAYS,
    HELD,
    RELEASED,
    START,
    UNKNOWN,
    observations,
)

needs = st.sampled_from(list(Need))
names = st.sampled_from(["lock a", "lock b", "process --pid 7", "port 80 --free"])
members = st.dictionaries(names, observations, min_size=1)

H, R, U, A = HELD, RELEASED, UNKNOWN, ABSENT


def by_name(*seen: Observation) -> dict[str, Observation]:
    return {f"lock {chr(97 + n)}": one for n, one in enumerate(seen)}


def whole(need: Need, *seen: Observation, before: tuple[str, ...] = ()) -> Observation:
    return together(need, by_name(*seen), before, START)


def remarks(seen: Observation) -> list[str]:
    return [remark.render(Lang.EN) for remark in seen.remarks]


def notes(seen: Observation) -> list[str]:
    return [note.render(Lang.EN) for note in seen.notes]


def shown(seen: Observation) -> str:
    assert seen.reason is not None
    return seen.reason.render(Lang.EN)


@pytest.mark.parametrize(
    ("seen", "of_any", "of_all"),
    [
        pytest.param([H], "held", "held", id="one held"),
        pytest.param([R], "released", "released", id="one clear"),
        pytest.param([U], "unknown", "unknown", id="one unseen"),
        pytest.param([A], "absent", "absent", id="one never there"),
        pytest.param([H, R], "released", "held", id="held and clear"),
        pytest.param([R, R], "released", "released", id="both clear"),
        pytest.param([R, U], "released", "unknown", id="clear and unseen"),
        pytest.param([R, A], "released", "unknown", id="clear and never there"),
        pytest.param([H, U], "held", "held", id="held and unseen"),
        pytest.param([H, A], "held", "held", id="held and never there"),
        pytest.param([U, A], "unknown", "unknown", id="unseen and never there"),
        pytest.param([A, A], "absent", "absent", id="neither ever there"),
        pytest.param([H, R, U, A], "released", "held", id="one of each"),
    ],
)
def test_any_is_clear_when_one_is_and_all_when_every_one_is(
    seen: list[Observation], of_any: str, of_all: str
) -> None:
    for need, said in ((Need.ANY, of_any), (Need.ALL, of_all)):
        found = whole(need, *seen)
        assert ("absent" if found.absent else found.sight) == said


@ALWAYS
@given(needs, members, st.lists(names))
def test_nothing_is_released_unless_enough_members_are(
    need: Need, seen: dict[str, Observation], before: list[str]
) -> None:
    found = together(need, seen, before, START)
    clear = {text for text, one in seen.items() if one.sight is Sight.RELEASED}
    if found.sight is Sight.RELEASED:
        assert clear
        assert need is Need.ANY or clear == set(seen)
    if need is Need.ALL:
        assert (found.sight is Sight.RELEASED) == (clear == set(seen))
    assert found.memory["clear"] == [text for text in seen if text in clear]
    assert json.loads(json.dumps(found.evidence)) == found.evidence
    assert json.loads(json.dumps(found.memory)) == found.memory


@ALWAYS
@given(needs, members, st.lists(names))
def test_what_is_not_clear_says_why(
    need: Need, seen: dict[str, Observation], before: list[str]
) -> None:
    found = together(need, seen, before, START)
    assert (found.reason is None) == (found.sight is Sight.RELEASED)
    for sentence in (*found.notes, *found.remarks, found.reason):
        assert sentence is None or sentence.render(Lang.PT)


@ALWAYS
@given(st.lists(members, min_size=1, max_size=8))
def test_a_watch_ends_only_when_the_same_members_were_clear_twice(
    looks: list[dict[str, Observation]],
) -> None:
    texts = set.union(*(set(look) for look in looks))
    rules = Rules(armed_s=0.0, deadline_s=1e9, settle_s=0.0)
    for need in Need:
        progress, before = Progress(), list[str]()
        for number, look in enumerate(looks):
            seen = {text: look.get(text, HELD) for text in sorted(texts)}
            found = together(need, seen, before, START)
            step = decide(rules, progress, found, now_s=float(number))
            if step.verdict is Verdict.CLEARED:
                clear = found.memory["clear"]
                assert isinstance(clear, list)
                assert set(clear) & set(before)
                assert need is Need.ANY or set(clear) == set(before) == texts
                break
            progress = step.progress
            memory = found.memory["clear"]
            assert isinstance(memory, list)
            before = [str(text) for text in memory]


def test_one_that_clears_while_the_first_comes_back_is_looked_at_again() -> None:
    first = whole(Need.ANY, R, H)
    assert first.memory["clear"] == ["lock a"]
    second = whole(Need.ANY, H, R, before=("lock a",))
    assert (second.sight, second.again_in_s) == (Sight.HELD, AGAIN_S)
    third = whole(Need.ANY, H, R, before=("lock b",))
    assert (third.sight, third.again_in_s) == (Sight.RELEASED, None)
    assert remarks(third) == ["decided: lock b"]


def test_the_first_may_also_be_out_of_sight_by_then() -> None:
    second = whole(Need.ANY, U, R, before=("lock a",))
    assert (second.sight, second.again_in_s) == (Sight.UNKNOWN, AGAIN_S)


def test_what_an_older_memory_names_and_nobody_is_does_no_harm() -> None:
    assert whole(Need.ANY, R, before=("lock of old",)).sight is Sight.RELEASED


def test_the_line_names_those_that_were_clear_twice() -> None:
    found = whole(Need.ANY, R, R, H, before=("lock b",))
    assert remarks(found) == ["decided: lock b"]
    assert remarks(whole(Need.ANY, R, R)) == ["decided: lock a, lock b"]
    assert remarks(whole(Need.ANY, *[R] * 5)) == [
        "decided: lock a, lock b, lock c and 2 more"
    ]
    assert remarks(whole(Need.ALL, R, R)) == []


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (replace(R, result=Result.FAIL), "decided: lock a [FAIL]"),
        (
            replace(R, result=Result.DIED, decided=phrase("said", text="exit 3")),
            "decided: lock a [DIED] «exit 3»",
        ),
    ],
)
def test_the_line_says_how_work_ended(work: Observation, said: str) -> None:
    for need in Need:
        found = whole(need, work)
        assert found.result is None
        assert remarks(found) == [said]
        assert remarks(whole(need, work, R, before=("lock a", "lock b"))) == [
            said if need is Need.ALL else f"{said}, lock b"
        ]


def test_what_a_member_has_to_say_is_passed_on_with_its_name() -> None:
    careful = replace(
        R, notes=(phrase("said", text="n"),), remarks=(phrase("said", text="r"),)
    )
    found = whole(Need.ANY, careful, H)
    assert notes(found) == ["lock a: n"]
    assert remarks(found) == ["decided: lock a", "lock a: r"]
    found = whole(Need.ALL, careful, H)
    assert notes(found) == ["lock a: n"]
    assert remarks(found) == ["still held: lock b", "lock a: r"]


def test_what_is_held_is_named_with_what_could_not_be_seen() -> None:
    found = whole(Need.ALL, H, U, A)
    assert shown(found) == "still held: lock a"
    assert remarks(found) == [
        "still held: lock a",
        "cannot see lock b: permission denied: /l",
        "cannot see lock c: permission denied: /l",
    ]
    assert notes(found) == [
        "cannot see lock b: permission denied: /l; still looking",
        "cannot see lock c: permission denied: /l; still looking",
    ]
    assert remarks(whole(Need.ALL, H, H)) == []


def test_one_that_could_not_be_seen_is_the_reason_before_one_that_is_not_there() -> (
    None
):
    there = replace(A, reason=phrase("nothing_matches"))
    found = whole(Need.ALL, R, there, U)
    assert shown(found) == "lock c: permission denied: /l"
    assert notes(found) == [
        "cannot see lock b: no process found; never seen; still looking"
    ]
    assert shown(whole(Need.ALL, R, replace(U, reason=None))) == "lock b: ?"


def test_the_next_look_is_as_soon_as_any_member_wants_it() -> None:
    soon, later = replace(H, again_in_s=2.0), replace(H, again_in_s=5.0)
    assert whole(Need.ALL, later, soon, H).again_in_s == 2.0
    assert whole(Need.ALL, H).again_in_s is None


def test_each_member_keeps_its_memory_and_its_evidence() -> None:
    one = replace(H, memory={"x": 1}, evidence={"means": "lstat"})
    found = whole(Need.ALL, one, R)
    assert found.memory["members"] == {"lock a": {"x": 1}, "lock b": {}}
    assert found.evidence == {
        "means": "wait",
        "need": "all",
        "members": {
            "lock a": {"sight": "held", "result": None, "means": "lstat"},
            "lock b": {"sight": "released", "result": None},
        },
    }


@ALWAYS
@given(members, st.lists(names))
def test_unseen_members_never_turn_a_release_of_any_away(
    seen: dict[str, Observation], before: list[str]
) -> None:
    assume(any(one.sight is Sight.RELEASED for one in seen.values()))
    blinded = {
        text: one if one.sight is Sight.RELEASED else UNKNOWN
        for text, one in seen.items()
    }
    for looks in (seen, blinded):
        found = together(Need.ANY, looks, [], START)
        assert found.sight is Sight.RELEASED
