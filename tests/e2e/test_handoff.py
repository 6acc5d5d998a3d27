"""`koder-monitor handoff` as a person, a program and an agent call it (C11.3)."""

import json
import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from policies.handoff import DEFAULT_NAME
from policies.wording import Lang, phrase
from tests.e2e.child import LIMIT_S, MONITOR, Done, run
from tests.rows import add_waiter, add_watch, opened
from tests.watcher.repositories import Repo, Rig, recording_git, snapshot
from watcher.cli import handoff as command

NAME = DEFAULT_NAME


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig.below(tmp_path)


@pytest.fixture
def repo(rig: Rig) -> Repo:
    return rig.repository()


def environment(rig: Rig, **more: str) -> dict[str, str]:
    kept = {n: v for n, v in os.environ.items() if not n.startswith("GIT_")}
    return {**kept, **rig.env, **more}


def handoff(
    rig: Rig, cwd: Path, *words: str | bytes, expect: int = 0, **env: str
) -> Done:
    before = os.getcwd()
    os.chdir(cwd)
    try:
        return run(
            MONITOR, "handoff", *words, env=environment(rig, **env), expect=expect
        )
    finally:
        os.chdir(before)


def shape(done: Done) -> dict[str, object]:
    found = json.loads(done.out)
    assert isinstance(found, dict)
    assert done.out.count("\n") == 1
    return found


def test_it_writes_commits_and_says_how_to_go_on(rig: Rig, repo: Repo) -> None:
    deep = repo.path / "deep"
    deep.mkdir()
    done = handoff(rig, deep, "--lang", "en")
    path = repo.path / NAME
    assert done.out.splitlines() == [
        f"written: {path}",
        f"committed {NAME}",
        phrase("handoff_open_with", path=str(path)).render(Lang.EN),
    ]
    assert done.err == ()
    assert repo.committed() == [NAME]


def test_it_speaks_portuguese_by_default_and_english_where_that_is_set(
    rig: Rig, repo: Repo
) -> None:
    assert handoff(rig, repo.path, "--no-commit").out.startswith("gravado: ")
    assert "# Passagem de sessão\n" in (repo.path / NAME).read_text()
    Path(rig.env["KODER_MONITOR_CONFIG"]).write_text('lang = "en"\n')
    assert handoff(rig, repo.path, "--no-commit").out.startswith("written: ")
    assert "# Session handoff\n" in (repo.path / NAME).read_text()


def test_the_json_is_one_object_with_the_fields_of_the_interface(
    rig: Rig, repo: Repo
) -> None:
    with opened(rig.state) as store:
        add_watch(store, "w1", at=time.time())
        add_waiter(store, "w1", at=time.time(), session="s-9", resume="it")
    store.close()
    repo.write("TODO.md")
    done = handoff(
        rig, repo.path, "api", "--json", "--auto", KODER_MONITOR_SESSION="s-9"
    )
    found = shape(done)
    assert done.err == ()
    assert {name: type(value) for name, value in found.items()} == {
        "handoff_type": str,
        "evidence": type(None),
        "write_dir": str,
        "artifact_path": str,
        "next_steps": list,
        "git_status": dict,
        "commit_message": str,
        "open_watches": list,
        "opening_prompt": str,
        "committed": bool,
        "actions_taken": list,
        "errors": list,
        "dry_run": bool,
    }
    assert found["write_dir"] == str(repo.path)
    assert found["artifact_path"] == str(repo.path / "NEXT-SESSION-api.local.md")
    assert found["git_status"] == {"branch": "main", "dirty": True, "ahead": None}
    assert found["open_watches"] == ["w1"]
    assert found["errors"] == []
    message = str(found["commit_message"])
    assert re.fullmatch(r"chore\(handoff\): .*api.*", message)
    assert repo.git("log", "-1", "--format=%s").strip() == message


def test_the_same_twice_gives_the_same_json(rig: Rig, repo: Repo) -> None:
    first = handoff(rig, repo.path, "--dry-run", "--json")
    assert handoff(rig, repo.path, "--dry-run", "--json").out == first.out


def test_a_dry_run_writes_nothing_at_all(rig: Rig, repo: Repo) -> None:
    repo.write("kept.txt", "changed\n")
    repo.write("new.txt")
    repo.git("add", "new.txt")
    os.utime(repo.path / "new.txt", (1, 1))
    before = snapshot(rig.folder)
    found = shape(handoff(rig, repo.path, "--dry-run", "--json"))
    assert found["dry_run"] is True
    assert snapshot(rig.folder) == before


def test_without_commit_the_file_is_written_only(rig: Rig, repo: Repo) -> None:
    found = shape(handoff(rig, repo.path, "--no-commit", "--json"))
    assert found["committed"] is False
    assert (repo.path / NAME).exists()
    assert repo.count() == 1
    assert repo.staged() == []


def test_outside_a_repository_the_file_is_written_where_one_is(rig: Rig) -> None:
    folder = rig.folder / "a folder\nof two lines"
    folder.mkdir()
    found = shape(handoff(rig, folder, "--json"))
    assert found["artifact_path"] == str(folder / NAME)
    assert found["git_status"] is None
    assert (folder / NAME).exists()


def test_a_folder_that_is_no_utf8_can_be_said_in_json(rig: Rig) -> None:
    folder = Path(os.fsdecode(os.fsencode(rig.folder) + b"/caf\xe9"))
    folder.mkdir()
    found = shape(handoff(rig, folder, "--json"))
    assert found["write_dir"] == str(folder)


def test_what_cannot_be_written_is_status_1_with_the_text_to_go_on_with(
    rig: Rig, repo: Repo
) -> None:
    (repo.path / NAME).mkdir()
    done = handoff(rig, repo.path, "--lang=en", expect=1)
    assert done.err == (f"{repo.path / NAME} is no plain file; nothing was written",)
    assert done.out.startswith("Read ")


def test_an_error_that_is_none_of_ours_is_status_0(rig: Rig, repo: Repo) -> None:
    repo.hook("pre-commit", "echo no >&2; exit 1")
    found = shape(handoff(rig, repo.path, "--json", "--lang=en"))
    assert found["errors"] == ["git refused: no"]
    assert found["committed"] is False


@pytest.mark.parametrize("topic", ["a/b", "..", "", "a b", "x.archived"])
def test_a_topic_that_cannot_name_a_file_is_a_wrong_call(
    rig: Rig, repo: Repo, topic: str
) -> None:
    done = handoff(rig, repo.path, topic, expect=2)
    assert len(done.err) == 1
    assert repo.git("status", "--porcelain") == ""


def test_there_is_no_way_to_have_it_push(rig: Rig, repo: Repo) -> None:
    bare = rig.folder / "upstream.git"
    repo.git("init", "--quiet", "--bare", str(bare))
    repo.git("remote", "add", "origin", str(bare))
    repo.git("config", "push.autoSetupRemote", "true")
    git = recording_git(rig.folder)
    handoff(rig, repo.path, PATH=f"{git}:{os.environ['PATH']}")
    handoff(rig, repo.path, "--push", expect=2)
    calls = (rig.folder / "calls").read_text()
    assert " commit " in calls
    assert "push" not in calls
    assert repo.git("--git-dir", str(bare), "for-each-ref") == ""


# --- on a terminal


def on_terminal(rig: Rig, repo: Repo, typed: bytes, *words: str) -> str:
    """Run it on a terminal of its own and type once it asks; return what it shows."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(repo.path)
        os.execve(
            MONITOR[0],
            [*MONITOR, "handoff", "--lang=en", *words],
            environment(rig, TERM="xterm"),
        )
    shown, end_s = b"", time.monotonic() + LIMIT_S
    while time.monotonic() < end_s:
        if not select.select([terminal], [], [], 0.2)[0]:
            continue
        try:
            data = os.read(terminal, 4096)
        except OSError:  # its end, on Linux
            break
        if not data:
            break
        shown += data
        if typed and b"[y/N]" in shown:
            os.write(terminal, typed)
            typed = b""
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return shown.decode()


@pytest.mark.parametrize(
    ("typed", "committed"),
    [
        (b"y\n", True),
        (b"YES\n", True),
        (b"sim\n", True),
        (b"n\n", False),
        (b"\n", False),
        (b"yn\n", False),
        (b"\x04", False),
    ],
    ids=["y", "yes", "sim", "n", "return", "else", "end"],
)
def test_a_person_at_a_terminal_is_asked_before_the_commit(
    rig: Rig, repo: Repo, typed: bytes, committed: bool
) -> None:
    shown = on_terminal(rig, repo, typed)
    assert f"Commit {NAME}? [y/N]" in shown
    assert ("the person did not confirm" in shown) is not committed
    assert repo.count() == 1 + committed
    assert (repo.path / NAME).exists()


@pytest.mark.parametrize("word", ["--auto", "--non-interactive"])
def test_nobody_is_asked_who_does_not_want_to_be(
    rig: Rig, repo: Repo, word: str
) -> None:
    shown = on_terminal(rig, repo, b"", word)
    assert "[y/N]" not in shown
    assert repo.committed() == [NAME]


@pytest.mark.parametrize("word", ["--dry-run", "--no-commit"])
def test_nobody_is_asked_about_nothing(rig: Rig, repo: Repo, word: str) -> None:
    assert "[y/N]" not in on_terminal(rig, repo, b"", word)
    assert repo.count() == 1


def test_behind_an_ampersand_nobody_is_asked(rig: Rig, repo: Repo) -> None:
    """To read from a terminal in the background would stop it for ever."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(repo.path)
        script = 'set -m; "$@" & wait $!; echo "it ended: $?"'
        words = ["sh", "-c", script, "sh", *MONITOR, "handoff", "--lang=en"]
        os.execve("/bin/sh", words, environment(rig, TERM="xterm"))
    shown, end_s = b"", time.monotonic() + LIMIT_S
    while b"it ended: " not in shown and time.monotonic() < end_s:
        if select.select([terminal], [], [], 0.2)[0]:
            shown += os.read(terminal, 4096)
    os.close(terminal)
    os.waitpid(pid, 0)
    assert b"it ended: 0" in shown
    assert b"[y/N]" not in shown
    assert repo.committed() == [NAME]


def test_on_a_terminal_that_is_not_its_own_nobody_is_asked(
    rig: Rig, repo: Repo
) -> None:
    """As under a service, which has one, but no say in who reads from it."""
    terminal, side = pty.openpty()
    try:
        done = subprocess.run(
            [*MONITOR, "handoff"],
            cwd=repo.path,
            env=environment(rig),
            stdin=side,
            stdout=subprocess.DEVNULL,
            stderr=side,
            start_new_session=True,
            timeout=LIMIT_S,
            check=False,
        )
    finally:
        os.close(terminal)
        os.close(side)
    assert done.returncode == 0
    assert repo.committed() == [NAME]


def test_silence_is_no_consent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_PATIENCE_S", 0)
    assert not answered_from(pty.openpty())


def test_a_terminal_that_goes_away_is_no_consent() -> None:
    terminal, side = pty.openpty()
    os.close(terminal)
    assert not answered_from((None, side))


def answered_from(terminal: tuple[int | None, int]) -> bool:
    """Ask on a terminal that takes the place of stdin meanwhile."""
    before = os.dup(0)
    os.dup2(terminal[1], 0)
    try:
        return command._ask(NAME, Lang.EN)
    finally:
        os.dup2(before, 0)
        for fd in (before, *filter(None, terminal)):
            os.close(fd)


def test_with_stdin_closed_nothing_hangs(rig: Rig, repo: Repo) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *MONITOR, "handoff"],
        cwd=repo.path,
        env=environment(rig),
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert repo.committed() == [NAME]


# --- as an agent's hook


def hook(
    rig: Rig, cwd: Path, event: str, payload: Mapping[str, object], **env: str
) -> dict[str, object] | None:
    """Answer one event; return the one object that was printed, if any."""
    done = subprocess.run(
        [*MONITOR, "hook", event, "--runtime", "claude-code"],
        cwd=cwd,
        env=environment(rig, **env),
        input=json.dumps({"session_id": "s-1", "cwd": str(cwd), **payload}).encode(),
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    if not done.stdout:
        return None
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def stop(rig: Rig, cwd: Path, used: float, **env: str) -> dict[str, object] | None:
    window = {"used_percentage": used, "context_window_size": 200_000}
    payload = {"hook_event_name": "Stop", "context_window": window}
    return hook(rig, cwd, "stop", payload, **env)


def resumed(rig: Rig, cwd: Path, source: str = "resume") -> dict[str, object] | None:
    payload: dict[str, object] = {"hook_event_name": "SessionStart", "source": source}
    return hook(rig, cwd, "session-start", payload)


def test_a_session_is_handed_over_and_the_next_one_is_given_it(
    rig: Rig, repo: Repo
) -> None:
    assert stop(rig, repo.path, 69.9) is None
    said = stop(rig, repo.path, 70)
    assert said == {
        "systemMessage": "contexto em 70% [direct]: passagem gravada em "
        f"{repo.path / NAME}"
    }
    assert stop(rig, repo.path, 99) is None
    text = (repo.path / NAME).read_text()
    loaded = resumed(rig, repo.path)
    assert loaded is not None
    specific = loaded["hookSpecificOutput"]
    assert isinstance(specific, dict)
    assert specific["hookEventName"] == "SessionStart"
    context = specific["additionalContext"]
    assert all(f"> {line}" in context for line in text.splitlines())
    assert not (repo.path / NAME).exists()
    assert resumed(rig, repo.path) is None


def test_a_slow_git_gets_the_time_that_a_hook_has_not(rig: Rig, repo: Repo) -> None:
    """A hook ends by itself within 2 s, but for this once a session."""
    git = recording_git(rig.folder, before='case "$*" in *" log "*) sleep 2.2;; esac')
    said = stop(rig, repo.path, 80, PATH=f"{git}:{os.environ['PATH']}")
    assert said is not None
    assert (repo.path / NAME).exists()


@pytest.mark.parametrize("event", ["stop", "session-start"])
def test_where_there_is_nothing_to_do_a_hook_imports_nothing_for_it(
    rig: Rig, repo: Repo, event: str
) -> None:
    """Each of them starts a new interpreter, at every turn of every session."""
    transcript = rig.folder / "transcript"
    transcript.write_text('{"type": "assistant", "message": {}}\n')
    payload = {
        "session_id": "s-1",
        "cwd": str(repo.path),
        "source": "resume",
        "transcript_path": str(transcript),
    }
    env = environment(rig, PYTHONPROFILEIMPORTTIME="1")
    done = subprocess.run(
        [*MONITOR, "hook", event, "--runtime", "claude-code"],
        cwd=repo.path,
        env={n: v for n, v in env.items() if not n.startswith("COVERAGE_")},
        input=json.dumps(payload).encode(),
        capture_output=True,
        timeout=LIMIT_S,
        check=True,
    )
    names = set(re.findall(r"\| +(\S+)\n", done.stderr.decode()))
    handler = "handoff_stop" if event == "stop" else "handoff_load"
    assert f"watcher.runtimes.{handler}" in names
    heavy = {"asyncio", "dataclasses", "subprocess", "tempfile", "tomllib", "msgspec"}
    assert names & (heavy | {"watcher.config", "watcher.handoff"}) == set()
