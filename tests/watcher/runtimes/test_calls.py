"""Payloads of every runtime, in our words."""

from pathlib import Path

import pytest

from policies.guards import edited_paths
from policies.lang import Lang
from tests.watcher.runtimes.calling import DATA, Recorded, a_call, recorded
from watcher.runtimes import HookCall
from watcher.runtimes.calls import call_of, projects_of, sessions_of
from watcher.runtimes.dialects import DIALECTS, is_active, recognised

ALL = recorded()
SESSIONS = {"0b6c1f0e-7a54-4f4d-9a35-1f2a9a0c7d11", "ses_7a54"}
NOW_S = 1_764_554_400.0


def call_from(
    one: Recorded, *, env: dict[str, str] | None = None, **changed: object
) -> HookCall:
    payload = {**one.payload, **changed}
    return call_of(
        one.event,
        one.runtime,
        payload,  # type: ignore[arg-type]  # tests hand over what no JSON type allows
        env={**one.env, **(env or {})},
        now_s=NOW_S,
        lang=Lang.PT,
    )


def of(name: str) -> Recorded:
    return next(one for one in ALL if one.name == name)


def test_every_runtime_has_payloads_and_each_names_its_source() -> None:
    assert {one.runtime for one in ALL} == set(DIALECTS)
    assert all(one.known["source"] for one in ALL)
    for runtime, dialect in DIALECTS.items():
        known = {one.event for one in ALL if one.runtime == runtime}
        assert known <= set(dialect.names), runtime
        assert known >= {"session-start", "post-tool-use", "stop"}, DATA / runtime


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_session_folder_and_tool_are_found(one: Recorded) -> None:
    call = call_from(one)
    assert call.session in SESSIONS
    assert call.project == "/home/ana/api"
    if one.runtime != "cursor" or "cwd" in one.payload:
        assert call.cwd == "/home/ana/api"
    if "edits" in one.known:
        assert edited_paths(call.tool, call.tool_input) == one.known["edits"]


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_a_runtime_is_recognised_by_what_only_it_says(one: Recorded) -> None:
    named = one.known.get("named") or one.payload.get("hook_event_name") in {
        "SessionStart",
        "PreToolUse",
    }
    found = recognised(one.payload, one.env)
    assert found == one.runtime or (named and found == "claude-code")


@pytest.mark.parametrize(
    "one", [one for one in ALL if one.event == "stop"], ids=lambda one: one.name
)
def test_a_turn_that_a_hook_holds_already_is_known(one: Recorded) -> None:
    assert is_active(one.runtime, one.payload) is one.known.get("active", False)


@pytest.mark.parametrize(
    ("value", "active"),
    [
        (True, True),
        (False, False),
        (None, False),
        ("true", True),
        ("True", True),
        ("false", False),
        ("", False),
        ("0", False),
        (1, True),
        (0, False),
        (["x"], True),
    ],
    ids=repr,
)
def test_b131_whatever_says_that_a_turn_is_held_counts(
    value: object, active: bool
) -> None:
    call = call_from(of("claude-code/stop"), stop_hook_active=value)
    assert is_active("claude-code", call.payload) is active


@pytest.mark.parametrize(
    "session",
    [
        "../../../tmp/pwn",
        "/tmp/victim",
        "a/b",
        "..",
        ".hidden",
        "",
        pytest.param("a\0b", id="NUL"),
        pytest.param("x" * 5000, id="far too long"),
        "s\n",
        "sessão",
        5,
        None,
        ["s"],
        {"a": "s"},
    ],
)
def test_b135_what_is_no_session_id_is_none(session: object) -> None:
    assert call_from(of("claude-code/stop"), session_id=session).session is None


@pytest.mark.parametrize("session", ["s", "CON", "_a", "-", "a.b-c_D9", "x" * 128])
def test_what_is_one_is_taken_as_it_is(session: str) -> None:
    call = call_from(of("claude-code/stop"), session_id=session)
    assert call.session == session


def test_a_payload_that_names_no_session_leaves_it_to_the_environment() -> None:
    env = {"CLAUDE_CODE_SESSION_ID": "from-env"}
    assert call_from(of("claude-code/stop"), env=env, session_id=None).session == (
        "from-env"
    )
    assert call_from(of("claude-code/stop"), env=env, session_id="../x").session is None


def test_the_environment_may_give_a_session_another_name_for_what_it_arms(
    tmp_path: Path,
) -> None:
    call = a_call(tmp_path / "state")
    assert sessions_of(call) == ["s-1"]
    env = {**call.env, "KODER_MONITOR_SESSION": "mine"}
    assert sessions_of(call._replace(env=env)) == ["s-1", "mine"]
    assert sessions_of(call._replace(env=env, session=None)) == ["mine"]
    assert sessions_of(call._replace(env={"KODER_MONITOR_SESSION": "../x"})) == ["s-1"]


@pytest.mark.parametrize("cwd", [None, 5, "", "relative", "/a\0b", "/" + "x" * 300])
def test_a_folder_that_cannot_be_one_is_ours(
    cwd: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call_from(of("claude-code/stop"), cwd=cwd).cwd == str(tmp_path)


def test_where_even_ours_was_deleted_it_is_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert call_from(of("claude-code/stop"), cwd=None).cwd == "/"


def test_the_project_is_the_runtimes_then_the_git_root_then_the_folder(
    tmp_path: Path,
) -> None:
    deep = tmp_path / "repository" / "src" / "deep"
    deep.mkdir(parents=True)
    stop = of("claude-code/stop")
    assert call_from(stop, cwd=str(deep)).project == str(deep)
    (tmp_path / "repository" / ".git").mkdir()
    call = call_from(stop, cwd=str(deep))
    assert call.project == str(tmp_path / "repository")
    env = {"CLAUDE_PROJECT_DIR": str(tmp_path)}
    call = call_from(stop, env=env, cwd=str(deep))
    assert call.project == str(tmp_path)
    assert projects_of(call) == [str(tmp_path), str(tmp_path / "repository")]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ('{"path": "a"}', {"path": "a"}),
        ("*** Begin Patch", {"input": "*** Begin Patch"}),
        ("[1]", {}),
        pytest.param("[" * 10**5, {"input": "[" * 10**5}, id="nested too deep"),
        ([1], {}),
        (None, {}),
        (5, {}),
    ],
)
def test_arguments_may_be_a_text_of_json(
    arguments: object, found: dict[str, object]
) -> None:
    call = call_from(of("copilot/pre-tool-use"), toolArgs=arguments)
    assert call.tool_input == found


def test_the_time_is_local() -> None:
    call = call_from(of("claude-code/stop"))
    assert call.at.timestamp() == NOW_S
    assert call.at.tzinfo is not None
