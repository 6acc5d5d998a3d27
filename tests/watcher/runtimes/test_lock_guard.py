"""Before an edit in what another session holds, the command that waits is suggested."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from policies.holder import Holder
from policies.lang import Lang
from policies.values import Json
from tests.watcher.runtimes.calling import a_call, hand_over
from watcher.cli.parser import parse
from watcher.runtimes import HookCall, locks
from watcher.runtimes.lock_guard import advise
from watcher.runtimes.locks import Locks, read_holder, shown_holder
from watcher.runtimes.tried import recall

ACTIVE = "context/notices/active"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(locks, "_LIMIT_S", 60.0)
    return tmp_path / "state"


def project(state: Path) -> Path:
    return Path(a_call(state).project)


def hold(
    folder: Path,
    slug: str = "api",
    *,
    session: str | None = "s-2",
    paths: Sequence[str] = ("src/api",),
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["---", *([f"session: {session}"] if session else []), "paths:"]
    path = folder / f"lock-{slug}.md"
    path.write_text("\n".join([*lines, *(f"  - {p}" for p in paths), "---", ""]))
    return path


def edit(state: Path, path: str = "src/api/x.py", **changed: object) -> HookCall:
    tool_input: dict[str, Json] = {"file_path": path}
    asked = {"tool": "Edit", "tool_input": tool_input, **changed}
    return a_call(state, "pre-tool-use", **asked)


def command_in(text: str) -> list[str]:
    return shlex.split(text.splitlines()[-1])


def test_the_exact_command_is_suggested(state: Path) -> None:
    hold(project(state) / ACTIVE)
    text = hand_over(advise(edit(state)))
    assert text.splitlines()[0] == (
        "koder-monitor: src/api/x.py is part of what the lock api covers (src/api); it "
        "is held by s-2. This command, in the background, waits for its release and "
        "tells it:"
    )
    words = command_in(text)
    assert words == ["koder-monitor", "lock", "api", "--resume", "edit src/api/x.py"]
    parse(words[1:])


def test_it_is_told_in_portuguese_too(state: Path) -> None:
    hold(project(state) / ACTIVE)
    text = hand_over(advise(edit(state, lang=Lang.PT)))
    assert "está no que o lock api cobre (src/api); ele é de s-2" in text
    assert command_in(text)[-1] == "editar src/api/x.py"


def test_each_edit_is_told_again(state: Path) -> None:
    hold(project(state) / ACTIVE)
    assert hand_over(advise(edit(state))) == hand_over(advise(edit(state)))


def test_the_session_is_named_where_its_shell_does_not_know_it(state: Path) -> None:
    hold(project(state) / ACTIVE)
    text = hand_over(advise(edit(state, runtime="gemini")))
    assert command_in(text)[-2:] == ["--session", "s-1"]
    nameless = hand_over(advise(edit(state, runtime="gemini", session=None)))
    assert "--session" not in nameless


@pytest.mark.parametrize(
    ("path", "tool", "met"),
    [
        pytest.param("src/api/x.py", "Edit", True, id="inside"),
        pytest.param("src/web/x.py", "Edit", False, id="outside"),
        pytest.param("/elsewhere/src/api/x.py", "Edit", False, id="another-project"),
        pytest.param("src/api/x.py", "Read", False, id="a-read"),
        pytest.param("src/api/x.py", None, False, id="no-tool"),
        pytest.param("src/\0api", "Edit", False, id="no-path-at-all"),
    ],
)
def test_what_cannot_collide_passes(
    state: Path, path: str, tool: str | None, met: bool
) -> None:
    hold(project(state) / ACTIVE)
    assert bool(advise(edit(state, path, tool=tool))) is met


def test_a_lock_of_its_own_passes_by_whichever_name(state: Path) -> None:
    hold(project(state) / ACTIVE, session="s-1")
    hold(project(state) / ACTIVE, "named", session="mine")
    call = edit(state)
    env = {**call.env, "KODER_MONITOR_SESSION": "mine"}
    assert advise(call._replace(env=env)) is None
    assert advise(call) is not None


def test_a_lock_that_names_no_paths_covers_nothing(state: Path) -> None:
    hold(project(state) / ACTIVE, paths=())
    assert advise(edit(state)) is None


def test_the_lock_file_itself_may_be_edited(state: Path) -> None:
    lock = hold(project(state) / ACTIVE, paths=["**"])
    assert advise(edit(state, str(lock))) is None
    assert advise(edit(state)) is not None


def test_several_files_of_a_patch_meet_their_locks(state: Path) -> None:
    hold(project(state) / ACTIVE)
    hold(project(state) / ACTIVE, "web", session=None, paths=["src/web/**"])
    patch = "*** Begin Patch\n" + "".join(
        f"*** Update File: src/{name}/x.py\n" for name in ("db", "web", "api")
    )
    text = hand_over(advise(edit(state, tool_input={"command": patch}, tool="Bash")))
    assert "src/api/x.py is part" in text
    assert "src/web/x.py is part" in text
    assert "held by ?" in text
    assert "src/db" not in text


def test_more_locks_than_a_few_are_not_all_told(state: Path) -> None:
    for number in range(9):
        hold(project(state) / ACTIVE, f"api{number}")
    text = hand_over(advise(edit(state)))
    assert text.count("koder-monitor lock") == 3
    assert len(recall(edit(state))) == 3


def test_a_path_through_a_link_is_covered_by_what_it_leads_to(state: Path) -> None:
    folder = project(state)
    hold(folder / ACTIVE)
    (folder / "src" / "api").mkdir(parents=True)
    (folder / "link").symlink_to(folder / "src" / "api")
    assert advise(edit(state, "link/x.py")) is not None
    alias = state.parent / "alias"
    alias.symlink_to(folder)
    text = hand_over(advise(edit(state, str(alias / "src/api/x.py"))))
    assert "covers (src/api)" in text


def test_a_relative_path_is_of_the_current_folder(state: Path) -> None:
    folder = project(state)
    (folder / ".git").mkdir()
    hold(folder / ACTIVE)
    (folder / "src").mkdir()
    assert advise(edit(state, "api/x.py", cwd=str(folder / "src"))) is not None
    assert advise(edit(state, "../api/x.py", cwd=str(folder / "src"))) is None


def test_locks_are_found_where_the_settings_say(state: Path, tmp_path: Path) -> None:
    hold(tmp_path / "locks")
    call = edit(state)
    assert advise(call) is None
    env = {**call.env, "KODER_MONITOR_LOCKS_DIR": str(tmp_path / "locks")}
    assert command_in(hand_over(advise(call._replace(env=env))))[2] == "api"
    config = tmp_path / "config.toml"
    config.write_text(f'[locks]\ndir = "{tmp_path / "locks"}"\n')
    env = {**call.env, "KODER_MONITOR_CONFIG": str(config)}
    assert advise(call._replace(env=env)) is not None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[locks",
        b"[locks]\n",
        b"locks = 5\n",
        b"[locks]\ndir = 5\n",
        b'[locks]\ndir = ""\n',
        b"\xfflocks",
    ],
)
def test_settings_that_will_not_do_leave_the_default(
    state: Path, tmp_path: Path, content: bytes
) -> None:
    hold(project(state) / ACTIVE)
    config = tmp_path / "config.toml"
    config.write_bytes(content)
    call = edit(state)
    env = {**call.env, "KODER_MONITOR_CONFIG": str(config)}
    assert advise(call._replace(env=env)) is not None


def test_a_lock_of_the_project_that_no_slug_means_here_is_named_by_its_path(
    state: Path, tmp_path: Path
) -> None:
    lock = hold(project(state) / ACTIVE)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    path = str(project(state) / "src/api/x.py")
    text = hand_over(advise(edit(state, path, cwd=str(elsewhere))))
    assert command_in(text)[2] == str(lock)


def test_b09_files_that_are_no_locks_or_cannot_be_read_cover_nothing(
    state: Path,
) -> None:
    folder = project(state) / ACTIVE
    hold(folder)
    (folder / "lock-two.md").write_text("4711\nbox\n")
    (folder / "lock-dir.md").mkdir()
    (folder / "lock-link.md").symlink_to(folder / "lock-api.md")
    os.mkfifo(folder / "lock-fifo.md")
    (folder / "README.md").write_text("---\npaths: [src/api]\n---\n")
    found = [lock.slug for lock in Locks(edit(state))]
    assert found == ["api"]
    for name in ("dir", "link", "fifo", "none", "\0"):
        assert read_holder(f"{folder}/lock-{name}.md") == Holder()


def test_a_lock_that_cannot_be_read_after_all_names_nobody(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = hold(project(state) / ACTIVE)

    def fail(*_: object) -> bytes:
        raise OSError

    monkeypatch.setattr(os, "read", fail)
    assert read_holder(str(lock)) == Holder()


def test_a_thousand_locks_are_looked_at(state: Path) -> None:
    for number in range(1000):
        hold(project(state) / ACTIVE, f"n{number}", paths=[f"src/n{number}"])
    text = hand_over(advise(edit(state, "src/n999/x.py")))
    assert "the lock n999 covers" in text


def test_when_the_time_is_over_what_was_found_is_told(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for slug in ("a", "b", "c"):
        hold(project(state) / ACTIVE, slug)
    times = iter([0.0, 1.0, 2.0, 99.0])
    monkeypatch.setattr(locks, "_clock", lambda: next(times))
    text = hand_over(advise(edit(state)))
    assert text.count("koder-monitor lock") == 2
    assert text.endswith("there are too many locks to look at all of them in time")


def test_who_holds_a_lock_is_said_in_a_few_words() -> None:
    assert shown_holder(Holder(session="s", host="box", pid=5)) == "s, box, PID 5"
    assert shown_holder(Holder()) == "?"


def test_hostile_names_reach_the_text_cleaned(state: Path) -> None:
    hold(project(state) / ACTIVE, session="\x1b[31m", paths=["**"])
    text = hand_over(advise(edit(state, "src/\x1b[2J'; rm -rf ~ #")))
    assert "\x1b" not in text
    assert len(command_in(text)) == 5
