"""Circles of sessions that wait for each other's locks (C3.8)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.circles import Circle, circle_phrase, find_circles
from policies.wording import Lang

Waits = list[tuple[str | None, str]]
Holders = dict[str, str | None]


@pytest.mark.parametrize(
    ("waits", "holders", "circles"),
    [
        pytest.param([], {}, [], id="nobody waits"),
        pytest.param([("A", "y")], {"y": "B"}, [], id="the holder does not wait"),
        pytest.param(
            [("A", "y"), ("B", "x")],
            {"x": "A", "y": "B"},
            [(("A", "y"), ("B", "x"))],
            id="two wait for each other",
        ),
        pytest.param(
            [("C", "x"), ("B", "z"), ("A", "y")],
            {"x": "A", "y": "B", "z": "C"},
            [(("A", "y"), ("B", "z"), ("C", "x"))],
            id="three in a ring, in any order",
        ),
        pytest.param(
            [("A", "x")], {"x": "A"}, [(("A", "x"),)], id="one waits for its own lock"
        ),
        pytest.param(
            [("A", "y"), ("B", "x"), ("A", "y"), ("B", "x")],
            {"x": "A", "y": "B"},
            [(("A", "y"), ("B", "x"))],
            id="a wait that is told twice",
        ),
        pytest.param(
            [("A", "y"), ("B", "z"), ("C", "w")],
            {"y": "B", "z": "C", "w": "D"},
            [],
            id="a queue is no circle",
        ),
        pytest.param(
            [("Z", "x"), ("A", "y"), ("B", "x"), ("B", "w")],
            {"x": "A", "y": "B", "w": "D"},
            [(("A", "y"), ("B", "x"))],
            id="who only hangs on a circle is not in it",
        ),
        pytest.param(
            [(None, "y"), ("B", "x")],
            {"x": "A", "y": "B"},
            [],
            id="a session that is not known",
        ),
        pytest.param(
            [("", "y"), ("B", "x")], {"x": "", "y": "B"}, [], id="a session without id"
        ),
        pytest.param(
            [("A", "y"), ("B", "x")],
            {"y": "B"},
            [],
            id="a lock that nobody is known of",
        ),
        pytest.param(
            [("A", "y"), ("B", "x")],
            {"x": None, "y": "B"},
            [],
            id="a lock that names no session",
        ),
        pytest.param(
            [("A", "y"), ("B", "x"), ("C", "w"), ("D", "v")],
            {"x": "A", "y": "B", "v": "C", "w": "D"},
            [(("A", "y"), ("B", "x")), (("C", "w"), ("D", "v"))],
            id="two circles apart",
        ),
        pytest.param(
            [("A", "y"), ("A", "z"), ("B", "x"), ("C", "x")],
            {"x": "A", "y": "B", "z": "C"},
            [(("A", "y"), ("B", "x")), (("A", "z"), ("C", "x"))],
            id="two circles through one session",
        ),
        pytest.param(
            [("A", "y"), ("A", "y2"), ("B", "x")],
            {"x": "A", "y": "B", "y2": "B"},
            [(("A", "y"), ("B", "x")), (("A", "y2"), ("B", "x"))],
            id="two locks of one holder",
        ),
        pytest.param(
            [("A", "b"), ("B", "a"), ("B", "c"), ("C", "d"), ("D", "c")],
            {"a": "A", "b": "B", "c": "C", "d": "D"},
            [(("A", "b"), ("B", "a")), (("C", "d"), ("D", "c"))],
            id="a wait from one circle to another is in neither",
        ),
        pytest.param(
            [("A", "x"), ("B", "y"), ("X", "y"), ("X", "b"), ("Y", "x"), ("Y", "a")],
            {"a": "A", "b": "B", "x": "X", "y": "Y"},
            [
                (("A", "x"), ("X", "y"), ("Y", "a")),
                (("B", "y"), ("Y", "x"), ("X", "b")),
                (("X", "y"), ("Y", "x")),
            ],
            id="a short circle made of waits of two longer ones",
        ),
    ],
)
def test_circles_are_found_each_once(
    waits: Waits, holders: Holders, circles: list[Circle]
) -> None:
    assert find_circles(waits, holders) == circles
    assert find_circles(reversed(waits), holders) == circles


def ring(length: int) -> tuple[Waits, Holders]:
    waits: Waits = [(f"s{n:04}", f"l{(n + 1) % length:04}") for n in range(length)]
    return waits, {f"l{n:04}": f"s{n:04}" for n in range(length)}


def test_a_long_ring_is_one_circle() -> None:
    waits, holders = ring(5000)
    (circle,) = find_circles(waits, holders)
    assert circle == tuple(waits)


def test_many_who_wait_for_one_lock_cost_no_time_and_make_no_circle() -> None:
    waits: Waits = [(f"s{n}", "x") for n in range(10_000)]
    assert find_circles(waits, {"x": "A"}) == []


names = st.sampled_from("ABCDEF")
lock_names = st.sampled_from([f"l{n}" for n in range(8)])
some_waits = st.lists(st.tuples(names, lock_names), max_size=14)
some_holders = st.dictionaries(lock_names, names)


def leads_to(waits: Waits, holders: Holders, start: str, goal: str) -> bool:
    """Walk every way, the plain one."""
    seen, queue = {start}, [start]
    while queue:
        session = queue.pop()
        if session == goal:
            return True
        nexts = {holders[lock] for who, lock in waits if who == session}
        fresh = {name for name in nexts if name} - seen
        seen |= fresh
        queue += sorted(fresh)
    return False


@settings(deadline=None)  # a busy machine is no fault
@given(some_waits, some_holders)
def test_every_circle_is_one_and_every_wait_in_a_circle_is_told(
    waits: list[tuple[str, str]], holders: dict[str, str]
) -> None:
    known: Waits = [wait for wait in waits if wait[1] in holders]
    circles = find_circles(waits, dict(holders))
    for circle in circles:
        sessions = [session for session, _ in circle]
        assert len(set(sessions)) == len(sessions)
        assert set(circle) <= set(waits)
        assert circle[0] == min(circle)
        for (_, lock), session in zip(
            circle, [*sessions[1:], sessions[0]], strict=True
        ):
            assert holders[lock] == session
    told = {wait for circle in circles for wait in circle}
    caught = {
        (session, lock)
        for session, lock in known
        if session and leads_to(known, dict(holders), str(holders[lock]), session)
    }
    assert told == caught
    assert len(set(circles)) == len(circles)


@settings(deadline=None)  # a busy machine is no fault
@given(some_waits, st.tuples(names, lock_names), some_holders)
def test_a_circle_that_appears_holds_the_new_wait(
    waits: list[tuple[str, str]], new: tuple[str, str], holders: dict[str, str]
) -> None:
    before = find_circles(waits, dict(holders))
    after = find_circles([*waits, new], dict(holders))
    for circle in set(after) - set(before):
        assert new in circle


@pytest.mark.parametrize(
    ("circle", "lang", "line"),
    [
        pytest.param(
            (("A", "y"), ("B", "x")),
            Lang.PT,
            "⚠️ CÍRCULO: A espera o lock y de B; B espera o lock x de A — combinem "
            "quem solta primeiro",
            id="two, in Portuguese",
        ),
        pytest.param(
            (("A", "y"), ("B", "z"), ("C", "x")),
            Lang.EN,
            "⚠️ CÍRCULO: A waits for lock y of B; B waits for lock z of C; C waits for "
            "lock x of A — agree on who lets go first",
            id="three, in English",
        ),
        pytest.param(
            (("A", "x"),),
            Lang.EN,
            "⚠️ CÍRCULO: A waits for lock x of A — agree on who lets go first",
            id="one",
        ),
        pytest.param(
            (("A", "\x1b[2J"),),
            Lang.EN,
            "⚠️ CÍRCULO: A waits for lock \\x1b[2J of A — agree on who lets go first",
            id="foreign text",
        ),
    ],
)
def test_the_line_says_who_waits_for_whom(
    circle: Circle, lang: Lang, line: str
) -> None:
    assert circle_phrase(circle).render(lang) == line


def test_the_line_of_a_long_circle_counts_the_rest() -> None:
    waits, holders = ring(10)
    (circle,) = find_circles(waits, holders)
    line = circle_phrase(circle).render(Lang.PT)
    assert "s0005 espera o lock l0006 de s0006; … (+4) —" in line
    assert "s0006 espera" not in line
