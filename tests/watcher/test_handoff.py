"""A handoff in real repositories: what is written and committed, and what never."""

import json
import os
import re
import sqlite3
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from policies.handoff import DEFAULT_NAME
from policies.handoff_text import MOST_SHOWN
from policies.usage import Source, Used
from policies.wording import Lang, Phrase
from tests.rows import add_waiter, add_watch, opened
from tests.watcher.repositories import (
    REAL_GIT,
    Repo,
    Rig,
    recording_git,
    snapshot,
)
from watcher import repository
from watcher.handoff import Order, Report, hand_over, report_object, set_aside

NAME = DEFAULT_NAME


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    rig = Rig.below(tmp_path)
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    for name, value in rig.env.items():
        monkeypatch.setenv(name, value)
    return rig


@pytest.fixture
def repo(rig: Rig) -> Repo:
    return rig.repository()


def order(rig: Rig, folder: Path, **changes: object) -> Order:
    plain = Order(
        folder=str(folder),
        cwd=str(folder),
        topic=None,
        session="s-1",
        used=None,
        state=str(rig.state),
        at=datetime.now(UTC),
        lang=Lang.EN,
        zone=UTC,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]  # a test's own values


def texts(report: Report) -> str:
    return "\n".join([*report.actions, *report.errors])


# --- what is committed


def test_the_file_is_written_and_committed_alone(rig: Rig, repo: Repo) -> None:
    report = hand_over(order(rig, repo.path))
    assert (report.written, report.committed, report.errors) == (True, True, [])
    assert repo.committed() == [NAME]
    assert repo.git("show", f"HEAD:{NAME}") == (repo.path / NAME).read_text()
    assert repo.git("log", "-1", "--format=%s").strip() == report.message
    assert repo.git("status", "--porcelain") == ""
    assert (repo.path / NAME).stat().st_mode & 0o777 == 0o600


def test_staged_foreign_changes_stay_staged_and_uncommitted(
    rig: Rig, repo: Repo
) -> None:
    repo.write("kept.txt", "staged\n")
    repo.write("new.txt", "staged\n")
    repo.git("add", "kept.txt", "new.txt")
    repo.write("kept.txt", "staged, then changed again\n")
    repo.write("loose.txt")
    before = repo.entries()
    report = hand_over(order(rig, repo.path))
    assert report.committed
    assert repo.committed() == [NAME]
    assert repo.staged() == ["kept.txt", "new.txt"]
    assert repo.git("show", ":kept.txt") == "staged\n"
    assert (repo.path / "kept.txt").read_text() == "staged, then changed again\n"
    assert "?? loose.txt" in repo.git("status", "--porcelain")
    kept = [line for line in repo.entries().split("\0") if NAME not in line]
    assert kept == before.split("\0")


def test_notes_of_the_project_are_committed_with_it(rig: Rig, repo: Repo) -> None:
    repo.write("TODO.md")
    repo.git("add", "TODO.md")
    repo.git("commit", "-qm", "a note")
    repo.write("TODO.md", "changed\n")
    repo.write("REMEMBER.md")
    report = hand_over(order(rig, repo.path))
    assert repo.committed() == [NAME, "REMEMBER.md", "TODO.md"]
    assert report.steps[:2] == ["read `REMEMBER.md`", "read `TODO.md`"]


def test_a_note_that_nobody_changed_is_no_part_of_it(rig: Rig, repo: Repo) -> None:
    repo.write("TODO.md")
    repo.git("add", "TODO.md")
    repo.git("commit", "-qm", "a note")
    report = hand_over(order(rig, repo.path))
    assert repo.committed() == [NAME]
    assert report.actions[-1] == f"committed {NAME}"


def test_a_note_that_git_ignores_stays_out(rig: Rig, repo: Repo) -> None:
    repo.write(".gitignore", "TODO.md\n")
    repo.write("TODO.md")
    report = hand_over(order(rig, repo.path))
    assert repo.committed() == [NAME]
    assert "TODO.md was left out of the commit: git ignores it" in texts(report)


def test_a_note_that_somebody_has_begun_to_stage_stays_as_it_is(
    rig: Rig, repo: Repo
) -> None:
    repo.write("TODO.md", "one\n")
    repo.git("add", "TODO.md")
    repo.write("TODO.md", "one\ntwo\n")
    report = hand_over(order(rig, repo.path))
    assert repo.committed() == [NAME]
    assert repo.git("show", ":TODO.md") == "one\n"
    assert "TODO.md was left out of the commit: it has staged" in texts(report)


def test_a_file_that_git_is_told_to_keep_as_it_is_is_not_committed(
    rig: Rig, repo: Repo
) -> None:
    hand_over(order(rig, repo.path))
    repo.git("update-index", "--skip-worktree", NAME)
    repo.write("more.txt")
    report = hand_over(order(rig, repo.path))
    assert (report.written, report.committed, report.errors) == (True, False, [])
    assert report.actions[-1].endswith("nothing has changed in it")


def test_a_second_handoff_is_committed_too(rig: Rig, repo: Repo) -> None:
    hand_over(order(rig, repo.path))
    repo.write("more.txt")
    assert hand_over(order(rig, repo.path)).committed
    assert repo.committed() == [NAME]
    assert repo.count() == 3


def test_in_a_repository_without_a_commit_it_is_the_first(rig: Rig) -> None:
    empty = rig.repository(commits=0)
    report = hand_over(order(rig, empty.path))
    assert (report.committed, report.errors) == (True, [])
    assert empty.committed() == [NAME]
    assert "last commit none" in (empty.path / NAME).read_text()


@pytest.mark.parametrize("name", ["a folder", "new\nline", "-x", ":(glob)*", "ção"])
def test_any_name_of_a_folder_will_do(rig: Rig, name: str) -> None:
    repo = rig.repository(name)
    repo.write("new\nline *.txt")
    report = hand_over(order(rig, repo.path, topic="t-1"))
    assert (report.committed, report.errors) == (True, [])
    assert repo.committed() == ["NEXT-SESSION-t-1.local.md"]
    text = (repo.path / "NEXT-SESSION-t-1.local.md").read_text()
    assert "  - `new\\nline *.txt`\n" in text


def test_below_the_root_of_a_repository_it_is_committed_there(
    rig: Rig, repo: Repo
) -> None:
    part = repo.path / "part"
    part.mkdir()
    assert hand_over(order(rig, part)).committed
    assert repo.committed() == [f"part/{NAME}"]


def test_a_hook_of_the_repository_is_obeyed_and_the_index_is_put_back(
    rig: Rig, repo: Repo
) -> None:
    repo.write("new.txt")
    repo.git("add", "new.txt")
    repo.hook("pre-commit", "echo 'not today' >&2; exit 1")
    before = repo.entries()
    report = hand_over(order(rig, repo.path))
    assert (report.written, report.committed) == (True, False)
    assert report.errors == ["git refused: not today"]
    assert repo.entries() == before
    assert repo.staged() == ["new.txt"]
    assert repo.count() == 1


def test_a_hook_that_hangs_holds_nothing_up_and_leaves_no_lock(
    rig: Rig, repo: Repo
) -> None:
    repo.hook("pre-commit", "exec sleep 600")
    before = repo.entries()
    report = hand_over(order(rig, repo.path, limit_s=2.0))
    assert "git did not end in time; it was stopped" in texts(report)
    assert not report.committed
    assert repo.entries() == before
    assert not (repo.path / ".git/index.lock").exists()
    assert repo.count() == 1


def test_a_hook_that_ignores_its_end_is_killed(
    rig: Rig, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repository, "_GRACE_S", 0.2)
    loop = "trap '' TERM; while :; do sleep 0.1; done"
    git = recording_git(rig.folder, before=f'case "$*" in *" commit "*) {loop};; esac')
    monkeypatch.setenv("PATH", f"{git}:{os.environ['PATH']}")
    report = hand_over(order(rig, repo.path, limit_s=2.0))
    assert "git did not end in time; it was stopped" in texts(report)
    assert not report.committed
    assert repo.staged() == []


def test_a_commit_that_was_made_but_did_not_end_well_counts_as_made(
    rig: Rig, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a hook behind it is too slow."""
    late = f'case "$*" in *" commit "*) {REAL_GIT} "$@"; exit 1;; esac'
    git = recording_git(rig.folder, before=late)
    monkeypatch.setenv("PATH", f"{git}:{os.environ['PATH']}")
    report = hand_over(order(rig, repo.path))
    assert (report.committed, report.errors) == (True, [])
    assert repo.committed() == [NAME]
    assert repo.git("status", "--porcelain") == ""


def test_a_hook_that_leaves_a_program_behind_holds_nothing_up(
    rig: Rig, repo: Repo
) -> None:
    repo.hook("post-commit", "sleep 30 & echo $! > left")
    report = hand_over(order(rig, repo.path))
    os.kill(int((repo.path / "left").read_text()), 15)
    assert report.committed


def test_a_program_that_signs_has_no_terminal_to_ask_on(rig: Rig, repo: Repo) -> None:
    asker = rig.folder / "gpg"
    asker.write_text(
        "#!/bin/sh\n(: </dev/tty) 2>/dev/null && exec sleep 600\n"
        f'echo "tty=$GPG_TTY" > "{rig.folder}/asked"\nexit 1\n'
    )
    asker.chmod(0o755)
    repo.git("config", "commit.gpgSign", "true")
    repo.git("config", "gpg.program", str(asker))
    os.environ["GPG_TTY"] = "/dev/tty"
    try:
        report = hand_over(order(rig, repo.path))
    finally:
        del os.environ["GPG_TTY"]
    assert (rig.folder / "asked").read_text() == "tty=\n"
    assert (report.written, report.committed) == (True, False)
    assert report.errors[0].startswith("git refused: ")
    assert repo.staged() == []


def test_no_command_of_git_knows_the_network(
    rig: Rig, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = rig.folder / "upstream.git"
    repo.git("init", "--quiet", "--bare", str(bare))
    repo.git("remote", "add", "origin", str(bare))
    repo.git("push", "--quiet", "--set-upstream", "origin", "main")
    repo.write("kept.txt", "more\n")
    repo.git("commit", "-qam", "not pushed")
    git = recording_git(rig.folder)
    monkeypatch.setenv("PATH", f"{git}:{os.environ['PATH']}")
    report = hand_over(order(rig, repo.path))
    assert report.committed
    assert report_object(report)["git_status"] == {
        "branch": "main",
        "dirty": False,
        "ahead": 1,
    }
    calls = (rig.folder / "calls").read_text()
    said = set(re.findall(r"[a-z-]+", calls))
    assert {"status", "add", "commit"} <= said
    assert said & {"push", "fetch", "pull", "remote", "ls-remote", "clone"} == set()
    assert "-- " + NAME in calls
    pushed = repo.git("--git-dir", str(bare), "rev-list", "--count", "main")
    assert pushed.strip() == "1"


# --- what stands against a commit


def detached(repo: Repo) -> Path:
    repo.git("checkout", "--quiet", "--detach")
    return repo.path


def merging(repo: Repo) -> Path:
    repo.git("checkout", "--quiet", "-b", "other")
    repo.write("kept.txt", "other\n")
    repo.git("commit", "-qam", "other")
    repo.git("checkout", "--quiet", "main")
    repo.write("kept.txt", "main\n")
    repo.git("commit", "-qam", "main")
    repo.git("merge", "other", check=False)
    return repo.path


def rebasing(repo: Repo) -> Path:
    merging(repo)
    repo.git("merge", "--abort")
    repo.git("rebase", "other", check=False)
    return repo.path


def conflicting(repo: Repo) -> Path:
    merging(repo)
    (repo.path / ".git/MERGE_HEAD").unlink()
    return repo.path


def linked(repo: Repo) -> Path:
    repo.git("worktree", "add", "--quiet", "../linked", "-b", "linked")
    return repo.path.parent / "linked"


def submodule(repo: Repo) -> Path:
    repo.git("clone", "--quiet", ".", "../inner")
    repo.git("submodule", "--quiet", "add", "../inner", "inner")
    repo.git("commit", "-qm", "inner")
    return repo.path / "inner"


def bare(repo: Repo) -> Path:
    repo.git("init", "--quiet", "--bare", "../bare.git")
    return repo.path.parent / "bare.git"


def in_git(repo: Repo) -> Path:
    return repo.path / ".git"


def none(repo: Repo) -> Path:
    folder = repo.path.parent / "none"
    folder.mkdir()
    return folder


def ignored(repo: Repo) -> Path:
    repo.write(".gitignore", "*.local.md\n")
    return repo.path


def ignored_folder(repo: Repo) -> Path:
    repo.write(".gitignore", "build/\n")
    repo.write("build/x")
    return repo.path / "build"


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        pytest.param(detached, "detached HEAD", id="detached"),
        pytest.param(merging, "merge under way", id="merge"),
        pytest.param(rebasing, "rebase under way", id="rebase"),
        pytest.param(conflicting, "there are merge conflicts", id="conflicts"),
        pytest.param(linked, "it is a work tree linked to another", id="worktree"),
        pytest.param(submodule, "it is a submodule", id="submodule"),
        pytest.param(bare, "the repository has no work tree here", id="bare"),
        pytest.param(in_git, "the repository has no work tree here", id="in-git"),
        pytest.param(none, "git refused: fatal: not a git repository", id="none"),
        pytest.param(ignored, f"{NAME} was left out", id="ignored"),
        pytest.param(ignored_folder, f"{NAME} was left out", id="ignored-folder"),
    ],
)
def test_where_no_commit_should_be_the_file_is_there_and_the_reason_is_said(
    rig: Rig, repo: Repo, prepare: Callable[[Repo], Path], reason: str
) -> None:
    folder = prepare(repo)
    before = (repo.count(), repo.entries())
    plan = hand_over(order(rig, folder, dry=True))
    assert not (folder / NAME).exists()
    report = hand_over(order(rig, folder))
    assert (report.written, report.committed) == (True, False)
    assert report.actions[-1].startswith(f"not committed: {reason}")
    assert plan.actions[-1] == report.actions[-1]
    assert (folder / NAME).read_text().startswith("---\nkoder_monitor_handoff: 1\n")
    assert (repo.count(), repo.entries()) == before
    assert report.opening in (folder / NAME).read_text()


def test_an_index_that_is_locked_is_left_to_who_locked_it(rig: Rig, repo: Repo) -> None:
    lock = repo.path / ".git/index.lock"
    lock.write_bytes(b"")
    report = hand_over(order(rig, repo.path))
    assert report.actions[-1].startswith("not committed: another program locks")
    assert lock.exists()
    assert repo.count() == 1


def test_a_lock_that_comes_in_between_is_an_error_and_nothing_is_lost(
    rig: Rig, repo: Repo
) -> None:
    def lock(names: str) -> bool:
        (repo.path / ".git/index.lock").write_bytes(b"")
        return True

    before = repo.entries()
    report = hand_over(order(rig, repo.path, confirm=lock))
    assert (report.written, report.committed) == (True, False)
    assert "could not be put back" in report.errors[0]
    assert repo.entries() == before


def test_without_git_the_file_is_there_all_the_same(
    rig: Rig, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(rig.folder / "nowhere"))
    report = hand_over(order(rig, repo.path))
    assert (report.written, report.committed) == (True, False)
    assert report_object(report)["git_status"] is None
    assert "not committed: there is no git (" in report.actions[-1]


def test_a_git_that_hangs_is_asked_once(
    rig: Rig, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repository, "_LOOK_LIMIT_S", 2.0)
    git = recording_git(rig.folder, before="exec sleep 600")
    monkeypatch.setenv("PATH", f"{git}:{os.environ['PATH']}")
    report = hand_over(order(rig, repo.path))
    assert report.written
    assert report.actions[-1] == (
        "not committed: git did not end in time; it was stopped"
    )
    calls = rig.folder / "calls"  # it may have been too slow even for that
    assert not calls.exists() or len(calls.read_text().splitlines()) == 1


@pytest.mark.parametrize("slow", ["status --porcelain=v2 --branch", "show-prefix"])
def test_a_git_that_hangs_later_is_given_up_too(
    rig: Rig, repo: Repo, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    monkeypatch.setattr(repository, "_LOOK_LIMIT_S", 2.0)
    wait = f'case "$*" in *"{slow}"*) exec sleep 600;; esac'
    git = recording_git(rig.folder, before=wait)
    monkeypatch.setenv("PATH", f"{git}:{os.environ['PATH']}")
    report = hand_over(order(rig, repo.path))
    assert (report.written, report.committed) == (True, False)
    assert report.actions[-1].endswith("git did not end in time; it was stopped")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"commit": False}, "it was not asked for", id="not-wanted"),
        pytest.param(
            {"confirm": lambda names: False}, "the person did not confirm", id="no"
        ),
    ],
)
def test_what_nobody_wants_is_not_committed(
    rig: Rig, repo: Repo, changes: dict[str, object], reason: str
) -> None:
    report = hand_over(order(rig, repo.path, **changes))
    assert (report.written, report.committed) == (True, False)
    assert report.actions[-1] == f"not committed: {reason}"
    assert repo.staged() == []
    assert repo.count() == 1


def test_a_person_is_asked_about_exactly_what_is_committed(
    rig: Rig, repo: Repo
) -> None:
    asked: list[str] = []
    repo.write("TODO.md")

    def agree(names: str) -> bool:
        asked.append(names)
        return True

    hand_over(order(rig, repo.path, confirm=agree))
    assert asked == [f"{NAME}, TODO.md"]
    assert repo.committed() == [NAME, "TODO.md"]


# --- a dry run


def test_a_dry_run_writes_nothing_at_all(rig: Rig, repo: Repo) -> None:
    repo.write("kept.txt", "changed\n")
    repo.write("new.txt")
    repo.write("TODO.md")
    repo.git("add", "new.txt")
    opened(rig.state).close()
    # An index whose times are out of date is what a plain `git status` would refresh.
    os.utime(repo.path / "new.txt", (1, 1))
    before = snapshot(rig.folder)
    report = hand_over(order(rig, repo.path, dry=True))
    assert snapshot(rig.folder) == before
    assert report.actions == [
        f"would be written: {repo.path / NAME}",
        f"would commit {NAME}, TODO.md",
    ]
    assert (report.written, report.committed) == (False, False)


def test_twice_the_same_gives_twice_the_same(rig: Rig, repo: Repo) -> None:
    asked = order(rig, repo.path, dry=True)
    first = json.dumps(report_object(hand_over(asked)))
    later = replace(asked, at=asked.at + timedelta(seconds=5))
    assert json.dumps(report_object(hand_over(later))) == first


# --- the file


def test_within_a_minute_a_clean_tree_is_not_handed_over_again(
    rig: Rig, repo: Repo
) -> None:
    hand_over(order(rig, repo.path))
    before = snapshot(repo.path)
    report = hand_over(order(rig, repo.path))
    assert report.written
    assert "nothing to do" in texts(report)
    assert snapshot(repo.path) == before
    later = datetime.now(UTC) + timedelta(seconds=61)
    assert hand_over(order(rig, repo.path, at=later)).committed


def test_a_handoff_that_is_not_committed_yet_is_no_reason_to_do_nothing(
    rig: Rig, repo: Repo
) -> None:
    hand_over(order(rig, repo.path, commit=False))
    assert hand_over(order(rig, repo.path)).committed


def test_a_file_of_another_program_is_kept(rig: Rig, repo: Repo) -> None:
    repo.write(NAME, "# Written by hand\n")
    report = hand_over(order(rig, repo.path))
    aside = repo.path / "NEXT-SESSION-PROMPT.archived.local.md"
    assert aside.read_text() == "# Written by hand\n"
    assert aside.name in report.actions[0]
    assert report.written


def test_a_link_or_folder_in_its_place_is_neither_followed_nor_replaced(
    rig: Rig, repo: Repo
) -> None:
    target = rig.folder / "target"
    target.write_text("mine")
    (repo.path / NAME).symlink_to(target)
    (repo.path / "NEXT-SESSION-dir.local.md").mkdir()
    os.mkfifo(repo.path / "NEXT-SESSION-pipe.local.md")
    for topic in (None, "dir", "pipe"):
        report = hand_over(order(rig, repo.path, topic=topic))
        assert not report.written
        assert "is no plain file; nothing was written" in report.errors[0]
    assert target.read_text() == "mine"
    assert repo.count() == 1


def test_what_cannot_be_written_is_an_error_with_the_text_to_open_with(
    rig: Rig,
) -> None:
    report = hand_over(order(rig, rig.folder / "gone"))
    assert (report.written, report.committed) == (False, False)
    assert "could not be written" in report.errors[0]
    assert report.opening


def test_a_file_is_there_whole_or_not_at_all(
    rig: Rig, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    before = snapshot(repo.path)
    report = hand_over(order(rig, repo.path))
    assert "No space left" in report.errors[0]
    assert snapshot(repo.path) == before


def test_a_handoff_is_never_archived_over_another(tmp_path: Path) -> None:
    path = tmp_path / NAME
    names = []
    for number in range(3):
        path.write_text(str(number))
        names.append(set_aside(str(path)))
    assert [(tmp_path / name).read_text() for name in names] == ["0", "1", "2"]
    assert not path.exists()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError):
        set_aside(str(path))
    assert sorted(tmp_path.iterdir()) == before


# --- what stands in it


@pytest.mark.parametrize(
    ("files", "cwd", "told"),
    [
        pytest.param([], ".", ("single-task", None), id="F71-fallback"),
        pytest.param(
            [".planning/STATE.md", "api/package.json"],
            "api",
            ("multi-session", ".planning/STATE.md"),
            id="F71-a-plan",
        ),
        pytest.param(
            ["api/package.json"],
            "api/src/deep",
            ("component-work", "api/package.json"),
            id="F71-a-component",
        ),
        pytest.param(["api/package.json"], ".", ("single-task", None), id="elsewhere"),
        pytest.param(["pyproject.toml"], ".", ("single-task", None), id="the-whole"),
        pytest.param(["api/package.json"], "..", ("single-task", None), id="outside"),
        pytest.param(
            [".claude-plugin/plugin.json"],
            ".",
            ("component-work", ".claude-plugin/plugin.json"),
            id="F71-a-plugin",
        ),
    ],
)
def test_files_that_exist_tell_the_kind_of_work(
    rig: Rig, repo: Repo, files: list[str], cwd: str, told: tuple[str, str | None]
) -> None:
    for file in files:
        repo.write(file)
    here = os.path.normpath(repo.path / cwd)
    shape = report_object(hand_over(order(rig, repo.path, cwd=here, dry=True)))
    assert (shape["handoff_type"], shape["evidence"]) == told


def waits(rig: Rig, repo: Repo) -> None:
    with opened(rig.state) as store:
        now = time.time()
        for watch_id, session, project in (
            ("w-own", "s-1", None),
            ("w-project", None, str(repo.path)),
            ("w-other", "s-2", "/elsewhere"),
        ):
            add_watch(store, watch_id, at=now, target=f"lock {watch_id}")
            add_waiter(
                store, watch_id, at=now, session=session, project=project, resume="it"
            )
        add_waiter(store, "w-own", 2, at=now, session="s-1", resume="the second")
        add_watch(store, "w-over", at=now, state="released", ended_at=now)
        add_waiter(store, "w-over", at=now, session="s-1", state="told")
    store.close()


def test_the_open_watches_of_session_and_project_are_in_it(
    rig: Rig, repo: Repo
) -> None:
    waits(rig, repo)
    report = hand_over(order(rig, repo.path))
    assert report_object(report)["open_watches"] == ["w-own", "w-project"]
    text = (repo.path / NAME).read_text()
    assert "koder-monitor show w-own" in text
    assert "- when `w-own` is over or released, resume `it`" in text
    assert "- `koder-monitor list`: 2 watches" in text
    assert "w-other" not in text
    assert "w-over" not in text


def test_many_open_watches_are_counted(rig: Rig, repo: Repo) -> None:
    with opened(rig.state) as store:
        for number in range(MOST_SHOWN + 3):
            add_watch(store, f"w{number}", at=1.0 * number)
            add_waiter(store, f"w{number}", at=1.0 * number, session="s-1")
    store.close()
    hand_over(order(rig, repo.path))
    assert "- and 3 more" in (repo.path / NAME).read_text()


def test_a_store_that_cannot_be_read_is_no_reason_not_to_hand_over(
    rig: Rig, repo: Repo
) -> None:
    rig.state.mkdir()
    (rig.state / "monitor.db").write_bytes(b"no database" * 1000)
    report = hand_over(order(rig, repo.path))
    assert report.committed
    assert "monitor.db could not be read" in (repo.path / NAME).read_text()


def test_a_store_that_breaks_while_it_is_read_is_told_apart_from_an_empty_one(
    rig: Rig, repo: Repo
) -> None:
    opened(rig.state).close()
    connection = sqlite3.connect(rig.state / "monitor.db")
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("DROP TABLE waiters")
    connection.commit()
    connection.close()
    hand_over(order(rig, repo.path))
    assert "monitor.db could not be read" in (repo.path / NAME).read_text()


def test_the_percentage_and_its_source_are_the_reason(rig: Rig, repo: Repo) -> None:
    hand_over(order(rig, repo.path, used=Used(69.6, Source.DEFAULT_1M), lang=Lang.PT))
    text = (repo.path / NAME).read_text()
    assert "- o contexto da sessão chegou a 70% [default-1m]\n" in text


def test_no_secret_and_no_value_of_the_environment_is_in_it(
    rig: Rig, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KODER_MONITOR_NOTIFY_KEY", "key-of-this-test")
    monkeypatch.setenv("SOME_TOKEN", "token-of-this-test")
    repo.git("remote", "add", "origin", "https://me:password-of-this-test@localhost/x")
    waits(rig, repo)
    report = hand_over(order(rig, repo.path))
    everything = (repo.path / NAME).read_text() + json.dumps(report_object(report))
    assert report.committed
    assert "of-this-test" not in everything


def test_foreign_text_cannot_steer_who_reads_it(rig: Rig, repo: Repo) -> None:
    repo.write("a\x1b[2J\u202eb")
    hand_over(order(rig, repo.path))
    assert "a\\x1b[2J\\u202eb" in (repo.path / NAME).read_text()


# --- what git answers


def test_a_renamed_file_and_one_without_utf8_are_changes(rig: Rig, repo: Repo) -> None:
    repo.git("mv", "kept.txt", "moved.txt")
    with open(os.fsencode(repo.path) + b"/caf\xe9", "wb"):
        pass
    report = hand_over(order(rig, repo.path))
    assert report.committed
    text = (repo.path / NAME).read_text()
    assert "  - `moved.txt`\n  - `caf\\xe9`\n" in text
    assert "kept.txt`" not in text


def test_an_answer_that_is_too_long_is_read_as_far_as_it_goes(
    rig: Rig, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        repo.write(f"file-{number:02}")
    monkeypatch.setattr(repository, "_MOST_BYTES", 200)
    tree = repository.Repository(str(repo.path), limit_s=60).tree()
    assert not isinstance(tree, Phrase)
    assert 0 < len(tree.changed) < 20
    assert all(len(path) == len("file-00") for path in tree.changed)


@pytest.mark.parametrize("variable", ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"])
def test_a_repository_that_the_environment_names_is_not_meant(
    rig: Rig, repo: Repo, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    other = rig.repository("other")
    monkeypatch.setenv(variable, str(other.path / ".git"))
    report = hand_over(order(rig, repo.path))
    assert report.committed
    assert repo.committed() == [NAME]
    assert other.count() == 1
