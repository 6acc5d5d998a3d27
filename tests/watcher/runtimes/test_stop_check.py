"""A session that would stop and forget what it waits for is held, once."""

import sqlite3
from pathlib import Path

import pytest

from policies.model import Ending
from policies.values import Json
from tests import rows
from tests.watcher.runtimes.calling import a_call, hand_over, tell
from tests.watcher.runtimes.test_lock_guard import ACTIVE, command_in, edit, hold
from watcher.runtimes import HookCall, lock_guard, tried
from watcher.runtimes.stop_check import advise
from watcher.runtimes.tried import Tried, recall, remember, sweep


@pytest.fixture
def lock(state: Path) -> Path:
    """Give a lock of another session that this one has met."""
    path = hold(Path(a_call(state).project) / ACTIVE)
    assert lock_guard.advise(edit(state)) is not None
    return path


def stop(state: Path, **payload: Json) -> HookCall:
    said = {"session_id": "s-1", "stop_hook_active": False, **payload}
    return a_call(state, "stop", payload=said)


def test_who_met_a_lock_and_armed_nothing_is_held_with_the_exact_command(
    state: Path, lock: Path
) -> None:
    advice = advise(stop(state))
    assert advice is not None
    assert advice.context is None
    assert advice.hold is not None
    assert "tried to edit src/api/x.py, of lock api held by s-2" in advice.hold
    assert command_in(advice.hold) == [
        *("koder-monitor", "lock", "api"),
        *("--resume", "edit src/api/x.py"),
    ]


def test_b131_it_is_held_once(state: Path, lock: Path) -> None:
    assert advise(stop(state)) is not None
    assert advise(stop(state)) is None
    assert lock_guard.advise(edit(state)) is not None
    assert advise(stop(state)) is None


@pytest.mark.parametrize("active", [True, "true", 1])
def test_b131_a_turn_that_was_held_is_never_held_again(
    state: Path, lock: Path, store: sqlite3.Connection, active: Json
) -> None:
    tell(store, "w")
    assert advise(stop(state, stop_hook_active=active)) is None
    assert advise(stop(state)) is not None  # nothing was used up


def test_another_holding_of_the_lock_is_another_matter(state: Path, lock: Path) -> None:
    assert advise(stop(state)) is not None
    hold(lock.parent, session="s-3")
    assert advise(stop(state)) is None
    assert lock_guard.advise(edit(state)) is not None
    assert advise(stop(state)) is not None


def test_a_lock_that_was_given_back_holds_nobody(state: Path, lock: Path) -> None:
    lock.unlink()
    assert advise(stop(state)) is None


def test_a_lock_that_another_holds_by_now_is_no_evidence(
    state: Path, lock: Path
) -> None:
    hold(lock.parent, session="s-3")
    assert advise(stop(state)) is None


def test_a_lock_that_is_ones_own_by_now_holds_nobody(state: Path, lock: Path) -> None:
    call = stop(state)
    env = {**call.env, "KODER_MONITOR_SESSION": "s-2"}
    assert advise(call._replace(env=env)) is None


def test_who_met_no_lock_is_not_held(state: Path) -> None:
    hold(Path(a_call(state).project) / ACTIVE)
    assert advise(stop(state)) is None


@pytest.mark.parametrize("session", ["s-11", "s", None])
def test_what_another_session_met_holds_nobody_else(
    state: Path, lock: Path, session: str | None
) -> None:
    assert advise(stop(state)._replace(session=session)) is None


@pytest.mark.parametrize(
    ("target", "held"),
    [
        ("lock api", False),
        ("lock PATH", False),
        ("wait --any 'lock api' 'port 80 --free'", False),
        ("lock web", True),
    ],
)
def test_who_has_armed_a_watch_on_it_is_not_held(
    state: Path, lock: Path, store: sqlite3.Connection, target: str, held: bool
) -> None:
    text, kind = target.replace("PATH", str(lock)), target.split(maxsplit=1)[0]
    rows.add_watch(store, "w", at=1000.0, target=text, kind=kind)
    rows.add_waiter(store, "w", at=1000.0, session="s-1")
    assert bool(advise(stop(state))) is held


@pytest.mark.parametrize(
    ("waiter", "held"),
    [
        pytest.param({"session": None}, False, id="armed-by-nobody-in-particular"),
        pytest.param({"session": "s-2"}, True, id="armed-by-another"),
        pytest.param({"state": "left"}, True, id="given-up"),
    ],
)
def test_only_a_watch_that_will_tell_this_session_counts(
    state: Path,
    lock: Path,
    store: sqlite3.Connection,
    waiter: dict[str, object],
    held: bool,
) -> None:
    rows.add_watch(store, "w", at=1000.0, target="lock api")
    rows.add_waiter(store, "w", 1, at=1000.0, **{"session": "s-1", **waiter})
    assert bool(advise(stop(state))) is held


def test_a_watch_that_is_over_tells_nobody_any_more(
    state: Path, lock: Path, store: sqlite3.Connection
) -> None:
    rows.add_watch(store, "w", at=1000.0, target="lock api", state="expired")
    rows.add_waiter(store, "w", at=1000.0, session="s-1", state="told")
    assert advise(stop(state)) is not None


def test_where_the_store_cannot_be_read_nobody_is_held(state: Path, lock: Path) -> None:
    (state / "monitor.db").write_bytes(b"x" * 5000)
    assert advise(stop(state)) is None


# Outcomes that nobody has read


def test_an_unread_outcome_is_handed_over_by_a_hold_once(
    state: Path, store: sqlite3.Connection
) -> None:
    tell(store, "w")
    assert "- ✅ LIBERADO: lock w em" in hand_over(advise(stop(state)))
    assert advise(stop(state)) is None
    row = store.execute("SELECT read_at, acknowledged_at FROM waiters").fetchone()
    assert row[0] is not None
    assert row[1] is None


def test_a_hold_that_nobody_saw_leaves_it_unread(
    state: Path, store: sqlite3.Connection
) -> None:
    tell(store, "w")
    assert hand_over(advise(stop(state)), printed=False)
    assert hand_over(advise(stop(state)))


def test_an_outcome_and_a_lock_are_one_hold(
    state: Path, lock: Path, store: sqlite3.Connection
) -> None:
    tell(store, "w")
    text = hand_over(advise(stop(state)))
    assert "LIBERADO: lock w" in text
    assert command_in(text)[:3] == ["koder-monitor", "lock", "api"]


def test_a_removal_can_wait_for_the_next_prompt(
    state: Path, store: sqlite3.Connection
) -> None:
    tell(store, "w", ending=Ending.REMOVED)
    tell(store, "broken", outcome="{")
    assert advise(stop(state)) is None
    assert store.execute("SELECT max(read_at) FROM waiters").fetchone()[0] is None


def test_what_a_project_waited_for_holds_nobody(
    state: Path, store: sqlite3.Connection
) -> None:
    tell(store, "w", session=None, project=a_call(state).project)
    assert advise(stop(state)) is None


# What a session has met


def test_b135_only_a_checked_session_has_a_file(state: Path, lock: Path) -> None:
    folder = state / "hooks" / "tried"
    assert [path.name for path in folder.iterdir()] == ["s-1"]
    assert lock_guard.advise(edit(state, session=None)) is not None
    assert [path.name for path in folder.iterdir()] == ["s-1"]
    assert (folder / "s-1").stat().st_mode & 0o777 == 0o600


def test_what_is_noted_survives_whatever_else_is_in_the_file(
    state: Path, lock: Path
) -> None:
    path = state / "hooks" / "tried" / "s-1"
    known = recall(stop(state))
    path.write_bytes(
        b"\xff\n[1]\n5\n{\n"
        b'["S-1", "/l", "h", "/p", false]\n["s-1", 5, "h", "/p", false]\n'
        + path.read_bytes()
    )
    assert recall(stop(state)) == known


def test_what_cannot_be_noted_holds_nobody(state: Path, lock: Path) -> None:
    path = state / "hooks" / "tried" / "s-1"
    noted = path.read_bytes()
    path.write_bytes(noted + b"\n" * 70_000)
    assert recall(stop(state))
    assert advise(stop(state)) is None
    path.write_bytes(noted)
    assert advise(stop(state)) is not None


def test_a_record_that_is_a_link_or_no_file_is_left_alone(
    state: Path, lock: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text('["s-2", "/l", "h", "/p", false]\n')
    path = state / "hooks" / "tried" / "s-2"
    path.symlink_to(victim)
    call = stop(state)._replace(session="s-2")
    assert recall(call) == []
    with pytest.raises(OSError, match="s-2"):
        remember(call, [Tried("/l", "h", "/p")])
    (state / "hooks" / "tried" / "s-3").mkdir()
    assert recall(call._replace(session="s-3")) == []


def test_sessions_of_long_ago_are_forgotten(
    state: Path, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (state / "hooks" / "tried" / "folder").mkdir()
    sweep(stop(state))
    assert recall(stop(state))
    monkeypatch.setattr(tried, "_KEPT_S", -60)
    sweep(stop(state))
    assert recall(stop(state)) == []
    assert (state / "hooks" / "tried" / "folder").exists()


def test_before_anything_was_noted_there_is_nothing_to_forget(tmp_path: Path) -> None:
    sweep(a_call(tmp_path / "state", "stop"))


def test_where_a_runtime_cannot_be_held_it_is_not(
    state: Path, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watcher.runtimes.stop_check.reaches_model", lambda *_: False)
    assert advise(stop(state)) is None
