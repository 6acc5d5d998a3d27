"""Hooks as a runtime calls them: child processes, whatever comes on stdin (C11.2)."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.command import LIMIT_S, Ended, Place, until
from tests.e2e.test_startup import HEAVY, env_of, foreign, imported
from watcher.runtimes import EVENTS

SESSION = "s-1"
ODD = [
    pytest.param(b"", id="empty"),
    pytest.param(b"null", id="null"),
    pytest.param(b"[1]", id="a list"),
    pytest.param(b"42", id="a number"),
    pytest.param(b"{", id="half an object"),
    pytest.param(b'{"session_id":5,"transcript_path":[],"cwd":{}}', id="wrong types"),
    pytest.param(b'{"tool_name":[],"tool_input":"x","stop_hook_active":[]}', id="more"),
    pytest.param(b'\xef\xbb\xbf{"session_id":"s"}', id="BOM"),
    pytest.param(b'{"session_id":"\xff"}', id="invalid UTF-8"),
    pytest.param(b'{"session_id":"\\ud800","cwd":"/\\ud800"}', id="surrogates"),
    pytest.param(b'{"session_id":"' + b"x" * (20 << 20) + b'"}', id="20 MB"),
]


def ask(
    place: Place,
    event: str,
    content: bytes | dict[str, object],
    *words: str,
    **env: str | None,
) -> Ended:
    """Run a hook on a payload; its exit is 0 and stderr is empty, whatever happens."""
    if isinstance(content, dict):
        content = json.dumps({"session_id": SESSION, **content}).encode()
    path = place.folder / "payload"
    path.write_bytes(content)
    with path.open("rb") as stdin:
        ended = place.start("hook", event, *words, stdin=stdin, env=env).end()
    assert ended.status == 0, ended
    assert ended.err == (), ended
    if ended.out:
        assert isinstance(ended.object, dict)
        assert len(ended.out) < 10_000
    return ended


def context(ended: Ended) -> str:
    specific = ended.object["hookSpecificOutput"]
    assert isinstance(specific, dict)
    return str(specific["additionalContext"])


@pytest.mark.parametrize("content", ODD)
def test_b133_odd_payloads_are_answered_by_nothing(
    place: Place, content: bytes
) -> None:
    for event in ("stop", "pre-tool-use", "session-start"):
        assert ask(place, event, content).out == ""


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_is_heard_and_leaves_its_mark(place: Place, event: str) -> None:
    assert ask(place, event, {}).out == ""
    assert (place.state / "hooks" / "beats" / f"claude-code.{event}").exists()
    assert not (place.state / "monitor.db").exists()  # that is the work of who arms


def test_a_state_directory_that_cannot_be_written_is_no_matter(place: Place) -> None:
    place.state.write_text("")
    assert ask(place, "stop", {}).out == ""


def test_a_damaged_store_is_no_matter(place: Place) -> None:
    place.state.mkdir()
    (place.state / "monitor.db").write_bytes(b"no database " * 1000)
    for event in EVENTS:
        assert ask(place, event, {}).out == ""
    assert (place.state / "monitor.db").read_bytes() == b"no database " * 1000


@pytest.mark.parametrize("fds", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_closed_descriptors_are_no_matter(place: Place, fds: str) -> None:
    ended = place.shell(f"koder-monitor hook stop {fds}").end()
    assert ended.status == 0
    assert ended.err == ()


def test_a_closed_stdout_reads_nothing(place: Place) -> None:
    assert place.run("lock", "demo", "--detach", "--session", SESSION).status == 0
    place.ping("LIBERADO")
    path = place.folder / "payload"
    payload: dict[str, object] = {"session_id": SESSION, "cwd": str(place.folder)}
    path.write_text(json.dumps(payload), "utf-8")
    shut = shlex.quote(str(path))
    for _ in range(2):
        ended = place.shell(f"koder-monitor hook user-prompt-submit <{shut} >&-").end()
        assert (ended.status, ended.err) == (0, ())
    told = until(lambda: _told(place, "user-prompt-submit", payload))
    assert told is not None
    assert "✅ LIBERADO: lock demo em " in context(told)


def test_a_wrong_call_from_a_runtime_is_silent(place: Place) -> None:
    ended = place.run("hook", "nonsense", "--runtime", "nobody")
    assert (ended.status, ended.out, ended.err) == (0, "", ())
    assert "nonsense" in (place.state / "hooks.log").read_text("utf-8")


def test_antigravity_hears_no_refusal_whatever_goes_wrong(place: Place) -> None:
    for content in (b"", b"{", b"{}"):
        ended = ask(place, "pre-tool-use", content, "--runtime", "antigravity")
        assert ended.object == {"decision": "ask"}


@pytest.mark.parametrize(
    "session",
    ["../../../tmp/pwn", "VICTIM", "a/b", "..", "", "a\0b", "x" * 5000, "CON"],
    ids=["up", "absolute", "deeper", "dots", "empty", "NUL", "long", "CON"],
)
def test_b135_a_session_id_leads_nowhere_outside(place: Place, session: str) -> None:
    victim = place.folder / "victim"
    victim.write_text("untouched")
    place.hold("api", "---\nsession: s-2\npaths: src\n---\n")
    payload: dict[str, object] = {
        "session_id": str(victim) if session == "VICTIM" else session,
        "tool_name": "Edit",
        "tool_input": {"file_path": str(place.folder / "src/x")},
        "cwd": str(place.folder),
    }
    known = {path.name for path in place.folder.iterdir()}
    assert "koder-monitor lock api" in context(ask(place, "pre-tool-use", payload))
    for event in EVENTS:
        ask(place, event, payload)
    assert victim.read_text() == "untouched"
    new = {path.name for path in place.folder.iterdir()} - known
    assert {name for name in new if not name.startswith(("out-", "err-"))} <= {
        "state",
        "payload",
    }
    tried = place.state / "hooks" / "tried"
    found = [path.name for path in tried.iterdir()] if tried.exists() else []
    assert found == (["CON"] if session == "CON" else [])


@pytest.mark.parametrize("content", [b"", b'{"session_id": "s-1"}', b'{"session_id":'])
def test_b143_a_host_that_keeps_stdin_open_is_answered(
    place: Place, content: bytes
) -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, content)
        with open(reading, "rb") as stdin:
            running = place.start("hook", "stop", stdin=stdin)
        ended = running.end()  # although nobody has closed the other end
    finally:
        os.close(writing)
    assert (ended.status, ended.out, ended.err) == (0, "", ())


def _told(place: Place, event: str, payload: dict[str, object]) -> Ended | None:
    """Return an answer that says something: a busy store leaves it to the next one."""
    ended = ask(place, event, payload)
    return ended if ended.out else None


def test_from_an_edit_to_the_outcome(place: Place) -> None:
    """One session, as its hooks see it; the suggested command is the one that waits."""
    project: dict[str, object] = {"cwd": str(place.folder)}
    edit = {
        **project,
        "tool_name": "Edit",
        "tool_input": {"file_path": str(place.folder / "src/api/x.py")},
    }
    place.hold("api", "---\nsession: s-2\npaths: [src/api]\n---\n")
    # The guard names the command that waits; who stops without it is held, once.
    told = context(ask(place, "pre-tool-use", edit))
    command = shlex.split(told.splitlines()[-1])
    held = ask(place, "stop", {**project, "stop_hook_active": False}).object
    assert held["decision"] == "block"
    assert shlex.split(str(held["reason"]).splitlines()[-1]) == command
    assert ask(place, "stop", project).out == ""
    # It is armed, its command dies with the session, the lock is given back.
    words = [*command[1:], "--session", SESSION, "--detach"]
    assert place.run(*words).status == 0
    start = context(ask(place, "session-start", project))
    assert "lock api" in start
    (place.locks / "lock-api.md").unlink()
    place.ping("LIBERADO")
    # The next prompt is told, once; the event after that is the sign of life.
    prompted = until(lambda: _told(place, "user-prompt-submit", project))
    assert prompted is not None
    prompt = context(prompted)
    assert "✅ LIBERADO: lock api em " in prompt
    assert "retomar editar src/api/x.py" in prompt
    assert not place.watch("--all")["acknowledged"]

    def acknowledged() -> bool:
        assert ask(place, "user-prompt-submit", project).out == ""
        return bool(place.watch("--all")["acknowledged"])

    until(acknowledged)  # a store that is busy leaves it to the next event


def test_a_hook_brings_a_service_back_that_was_killed(place: Place) -> None:
    place.hold("demo")
    assert place.run("lock", "demo", "--detach").status == 0
    killed = place.end_service()
    ask(place, "session-end", {})
    until(lambda: place.service() != killed)


@pytest.mark.parametrize("event", EVENTS)
def test_a_hook_imports_next_to_nothing(place: Place, event: str) -> None:
    payload = json.dumps({"session_id": SESSION, "cwd": str(place.folder)})
    ended = subprocess.run(
        [sys.executable, "-m", "watcher", "hook", event],
        input=payload.encode(),
        env={k: v for k, v in {**place.env, **env_of(place)}.items() if v is not None},
        capture_output=True,
        check=True,
        timeout=LIMIT_S,
    )
    names = imported(ended.stderr.decode().splitlines())
    unwanted = {
        *HEAVY,
        "argparse",
        "selectors",
        "socket",
        "threading",
        "policies.lines",
    }
    assert names & unwanted == set()
    assert foreign(place, names) == set()


def test_the_log_is_the_only_place_that_knows_of_errors(place: Place) -> None:
    ask(place, "stop", b"{")
    lines = Path(place.state / "hooks.log").read_text("utf-8").splitlines()
    assert lines[0].endswith("claude-code stop: no JSON object on stdin")
