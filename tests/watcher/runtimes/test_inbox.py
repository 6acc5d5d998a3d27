"""Outcomes are handed to their session once, and acknowledged at a later event."""

import json
import re
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from policies.lang import Lang
from policies.model import Ending
from tests import rows
from tests.watcher.runtimes.calling import a_call, hand_over, tell
from watcher.runtimes import HookCall
from watcher.runtimes.inbox import ROOM, advise
from watcher.runtimes.signs import show_life

LINE = re.compile(
    r"- ✅ LIBERADO: lock w em \d\d:\d\d:\d\d — retomar the API work", re.MULTILINE
)


def marks(store: sqlite3.Connection) -> list[tuple[bool, bool]]:
    """Say for each waiter whether it is read, and acknowledged."""
    found = store.execute(
        "SELECT read_at IS NOT NULL, acknowledged_at IS NOT NULL FROM waiters"
    )
    return [(bool(read), bool(acknowledged)) for read, acknowledged in found]


def event(call: HookCall, *, printed: bool = True) -> str:
    """Run what every event runs, and the inbox."""
    show_life(call)
    return hand_over(advise(call), printed=printed)


@pytest.mark.parametrize(
    "name", ["session-start", "user-prompt-submit", "post-tool-use"]
)
def test_an_outcome_is_handed_over_once(
    store: sqlite3.Connection, state: Path, name: str
) -> None:
    tell(store, "w")
    call = a_call(state, name)
    text = event(call)
    assert LINE.search(text)
    assert text.startswith("koder-monitor: how waits of this session")
    assert event(call) == ""


def test_what_this_event_hands_over_is_acknowledged_by_the_next_one(
    store: sqlite3.Connection, state: Path
) -> None:
    tell(store, "w")
    assert event(a_call(state))
    assert marks(store) == [(True, False)]
    show_life(a_call(state, "pre-tool-use"))
    assert marks(store) == [(True, True)]


def test_an_event_that_hands_over_nothing_acknowledges_nothing_unread(
    store: sqlite3.Connection, state: Path
) -> None:
    tell(store, "w")
    show_life(a_call(state, "pre-tool-use"))
    show_life(a_call(state, "session-end"))
    assert marks(store) == [(False, False)]
    assert event(a_call(state))


def test_an_outcome_that_nobody_got_is_handed_over_again(
    store: sqlite3.Connection, state: Path
) -> None:
    tell(store, "w")
    assert event(a_call(state), printed=False)
    assert marks(store) == [(False, False)]
    assert event(a_call(state))
    assert marks(store) == [(True, False)]


def test_two_hooks_at_once_hand_it_over_once(
    store: sqlite3.Connection, state: Path
) -> None:
    tell(store, "w")
    first = advise(a_call(state))
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        advise(a_call(state))
    assert hand_over(first)
    assert advise(a_call(state)) is None


def test_a_hook_that_comes_while_another_hands_over_finds_nothing_left(
    store: sqlite3.Connection, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(store, "w")
    # A look that sees what was there a moment ago.
    monkeypatch.setattr("watcher.runtimes.inbox._UNREAD", "SELECT ?1, ?2")
    store.execute("UPDATE waiters SET read_at = 5")
    assert advise(a_call(state)) is None
    assert store.execute("SELECT read_at FROM waiters").fetchone()[0] == 5
    store.execute("UPDATE waiters SET read_at = 6")  # nothing is locked


def test_a_removal_and_an_expiry_are_handed_over_too(
    store: sqlite3.Connection, state: Path
) -> None:
    tell(store, "removed", ending=Ending.REMOVED)
    tell(store, "expired", ending=Ending.EXPIRED, at=2000.0)
    text = event(a_call(state))
    assert "- 🚫 REMOVIDO: lock removed" in text
    assert "- ⏰ EXPIROU: lock expired ainda ativo" in text


def test_what_was_acknowledged_by_hand_is_not_news(
    store: sqlite3.Connection, state: Path
) -> None:
    tell(store, "w", acknowledged_at=1001.0)
    assert advise(a_call(state)) is None


@pytest.mark.parametrize("session", ["s-11", "s-", "S-1", "s", None])
def test_b137_another_session_of_a_like_name_gets_its_own_only(
    store: sqlite3.Connection, state: Path, session: str | None
) -> None:
    tell(store, "w")
    assert advise(a_call(state, session=session)) is None
    assert event(a_call(state))


def test_whoever_comes_to_a_project_first_gets_what_no_session_waited_for(
    store: sqlite3.Connection, state: Path
) -> None:
    call = a_call(state, session="s-2")
    tell(store, "w", session=None, project=call.project)
    elsewhere = call._replace(project="/elsewhere", cwd="/elsewhere")
    assert advise(elsewhere) is None
    assert LINE.search(event(call))
    assert advise(a_call(state)) is None


def test_a_session_without_a_name_gets_what_its_project_waited_for(
    store: sqlite3.Connection, state: Path
) -> None:
    call = a_call(state, session=None)
    tell(store, "w", session=None, project=call.project)
    assert LINE.search(event(call))


def test_what_a_session_armed_by_another_name_is_its_own(
    store: sqlite3.Connection, state: Path
) -> None:
    tell(store, "w", session="mine")
    call = a_call(state)
    assert advise(call) is None
    named = call._replace(env={**call.env, "KODER_MONITOR_SESSION": "mine"})
    assert LINE.search(event(named))
    show_life(named)
    assert marks(store) == [(True, True)]


def test_what_does_not_fit_comes_with_the_next_event(
    store: sqlite3.Connection, state: Path
) -> None:
    for number in range(60):
        tell(store, f"w{number}", at=1000.0 + number, resume='"\\' * 140)
    seen: list[str] = []
    while text := event(a_call(state)):
        assert len(json.dumps(text, ensure_ascii=False)) < ROOM + 1000
        found = re.findall(r"lock (w\d+) em", text)
        assert found
        seen += found
    assert seen == [f"w{number}" for number in range(60)]


def test_a_damaged_outcome_holds_up_no_other(
    store: sqlite3.Connection, state: Path
) -> None:
    tell(store, "broken", outcome="{")
    tell(store, "w", at=2000.0)
    assert LINE.search(event(a_call(state)))


def test_the_line_is_in_the_language_of_whoever_waited(
    store: sqlite3.Connection, state: Path
) -> None:
    tell(store, "w", lang="en")
    tell(store, "v", lang="tlh", at=2000.0)
    text = event(a_call(state, lang=Lang.PT))
    assert text.startswith("koder-monitor: como terminaram")
    assert re.search(r"LIBERADO: lock w at .* — resume the API work", text)
    assert "LIBERADO: lock v em" in text


@pytest.mark.parametrize("name", ["session-end", "subagent-stop", "pre-compact"])
def test_nothing_is_handed_over_where_no_model_hears_it(
    store: sqlite3.Connection, state: Path, name: str
) -> None:
    tell(store, "w")
    assert advise(a_call(state, name)) is None
    doubtful = a_call(state, "session-start", runtime="cursor")
    assert advise(doubtful) is None
    assert marks(store) == [(False, False)]


def test_a_subagent_is_not_told_what_its_session_waits_for(
    store: sqlite3.Connection, state: Path
) -> None:
    tell(store, "w")
    payload = {"session_id": "s-1", "agent_id": "a-1"}
    assert advise(a_call(state, payload=payload)) is None
    assert LINE.search(event(a_call(state)))


def test_without_a_store_there_is_nothing(state: Path) -> None:
    assert advise(a_call(state)) is None
    show_life(a_call(state))


# What is still armed


def arm(store: sqlite3.Connection, watch_id: str, **waiter: object) -> None:
    rows.add_watch(store, watch_id, at=1000.0)
    row: dict[str, object] = {"session": "s-1", "resume": "the API work"}
    rows.add_waiter(store, watch_id, 1, at=1000.0, **row | waiter)


def test_a_session_that_starts_again_is_told_what_is_armed_for_it(
    store: sqlite3.Connection, state: Path
) -> None:
    arm(store, "w")
    arm(store, "bare", resume=None, deadline_at=9000.0)
    arm(store, "theirs", session="s-2")
    arm(store, "left", state="left")
    text = hand_over(advise(a_call(state, "session-start")))
    head, one, other = text.splitlines()
    assert head.startswith("koder-monitor: still armed for this session")
    assert re.fullmatch(r"- lock w until \d\d:\d\d:\d\d — resume the API work", one)
    assert re.fullmatch(r"- lock bare until \d\d:\d\d:\d\d", other)
    assert hand_over(advise(a_call(state, "session-start"))) == text
    assert advise(a_call(state, "user-prompt-submit")) is None


def test_a_hundred_armed_watches_are_not_all_told(
    store: sqlite3.Connection, state: Path
) -> None:
    for number in range(100):
        arm(store, f"w{number}", resume="\\" * 300)
    text = hand_over(advise(a_call(state, "session-start")))
    assert 2 < len(text.splitlines()) <= 12
    assert text.endswith("…")
    assert len(json.dumps(text, ensure_ascii=False)) < 2000


# Circles


def circle(store: sqlite3.Connection, watch_id: str, at: float, detail: str) -> None:
    rows.add(store, "trail", watch_id=watch_id, at=at, event="circle", detail=detail)


def test_a_circle_is_told_once_to_each_session_that_waits_in_it(
    store: sqlite3.Connection, state: Path
) -> None:
    arm(store, "w")
    rows.add_waiter(store, "w", 2, at=1000.0, session="s-2")
    circle(store, "w", 1000.0, json.dumps("⚠️ CÍRCULO: a; b"))
    for session in ("s-1", "s-2"):
        call = a_call(state, session=session)
        text = event(call)
        assert text.splitlines()[1:] == ["- ⚠️ CÍRCULO: a; b"]
        assert event(call) == ""
    circle(store, "w", 2000.0, "no JSON\x1b")
    assert "- no JSON\\x1b" in event(a_call(state))
    later = a_call(state, at=a_call(state).at + timedelta(hours=1))
    assert event(later) == ""


def test_a_circle_from_before_a_session_waited_is_not_its_matter(
    store: sqlite3.Connection, state: Path
) -> None:
    arm(store, "w")
    circle(store, "w", 999.0, '"an old one"')
    assert event(a_call(state)) == ""


# Signs of life


def test_a_store_that_is_busy_costs_a_sign_of_life_and_no_more(
    store: sqlite3.Connection, state: Path
) -> None:
    tell(store, "w", read_at=1001.0)
    store.execute("BEGIN IMMEDIATE")
    show_life(a_call(state))
    store.execute("COMMIT")
    assert marks(store) == [(True, False)]
    show_life(a_call(state))
    assert marks(store) == [(True, True)]


def test_a_store_that_goes_away_meanwhile_costs_a_sign_of_life_and_no_more(
    store: sqlite3.Connection, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(store, "w", read_at=1001.0)
    monkeypatch.setattr("watcher.runtimes.signs.writable", lambda _: None)
    show_life(a_call(state))
    assert marks(store) == [(True, False)]


def test_a_damaged_store_closes_what_was_opened(
    store: sqlite3.Connection, state: Path
) -> None:
    store.execute("DROP TABLE waiters")
    with pytest.raises(sqlite3.Error):
        advise(a_call(state))
