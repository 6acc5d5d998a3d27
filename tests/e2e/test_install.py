"""`koder-monitor install` and `uninstall` as a person calls them (C11.1, B141)."""

import json
import os
import shlex
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.model import Json
from tests.e2e.command import Place
from tests.policies.edits.documents import KEYS, VALUES, documents
from tests.watcher.test_installing import BY_US, commands, fill, tree
from watcher.installing import install
from watcher.runtimes.registry import RUNTIMES
from watcher.runtimes.slots import Site
from watcher.uninstalling import uninstall


@pytest.fixture
def home(place: Place) -> Path:
    """Give a home folder, with our command on PATH."""
    folder = place.folder / "home"
    program = place.folder / "bin" / "koder-monitor"
    program.parent.mkdir()
    command = shlex.join([sys.executable, "-m", "watcher"])
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    program.chmod(0o755)
    place.env["PATH"] = f"{program.parent}:{place.env['PATH']}"
    for row in RUNTIMES.values():
        for variable, _ in row.home_env:
            place.env.pop(variable, None)
    return folder


def words(place: Place, *argv: str) -> str:
    return place.run(*argv, "--lang", "en").out


@pytest.mark.parametrize("runtime", BY_US)
def test_a_runtime_is_registered_and_left_as_it_was(
    runtime: str, place: Place, home: Path
) -> None:
    fill(home, runtime)
    before = tree(home)
    dry = words(place, "install", runtime, "--dry-run")
    assert tree(home) == before
    done = words(place, "install", runtime)
    assert "registered" in done
    planned = [line for line in dry.splitlines() if line[:1] in "+~ "]
    assert planned
    assert [line for line in done.splitlines() if line[:1] in "+~ "] == planned
    once = tree(home)
    assert "already" in words(place, "install", runtime)
    assert tree(home) == once
    assert "removed" in words(place, "uninstall", runtime)
    assert tree(home) == before
    assert "nothing of ours" in words(place, "uninstall", runtime)


def test_what_is_registered_can_be_called(place: Place, home: Path) -> None:
    words(place, "install", "claude-code")
    program = str(place.folder / "bin/koder-monitor")
    found = list(commands(home / ".claude/settings.json"))
    assert {shlex.split(command)[0] for command in found} == {program}
    called = subprocess.run(
        [program, "--version"], capture_output=True, check=False, timeout=60
    )
    assert called.returncode == 0


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_settings_with_comments_keep_them_and_their_mode(
    mode: int, place: Place, home: Path
) -> None:
    fill(home, "claude-code")
    path = home / ".claude/settings.json"
    real = home / "dotfiles.json"
    path.rename(real)
    path.symlink_to(real)
    real.chmod(mode)
    had = real.read_bytes()
    told = words(place, "install", "claude-code")
    text = real.read_bytes().decode("utf-8")
    kept = [
        "// how I like it",
        "/* nobody knows it */",
        '"myOwnKey"',
        "notify-send done",
    ]
    assert all(words in text for words in kept)
    assert text.startswith("\ufeff")
    assert "may ignore the whole file" in told
    assert path.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == mode
    copy = home / ".claude/settings.json.before-koder-monitor"
    assert copy.read_bytes() == had
    words(place, "uninstall", "claude-code")
    assert path.is_symlink()
    assert real.read_bytes() == had
    assert not copy.exists()


@pytest.mark.parametrize("runtime", ["claude-code", "gemini"])
@pytest.mark.parametrize("blank", ["", " \n"])
def test_empty_settings_are_no_settings_yet(
    runtime: str, blank: str, place: Place, home: Path
) -> None:
    path = home / RUNTIMES[runtime].home / "settings.json"
    path.parent.mkdir(parents=True)
    path.write_text(blank, "utf-8")
    before = tree(home)
    ended = place.run("install", runtime, "--lang", "en")
    assert (ended.status, ended.err) == (0, ())
    assert "hooks" in json.loads(path.read_text("utf-8"))
    assert place.run("uninstall", runtime).status == 0
    assert tree(home) == before


def test_settings_that_make_no_sense_are_left_alone_and_what_to_add_is_said(
    place: Place, home: Path
) -> None:
    path = home / ".claude/settings.json"
    path.parent.mkdir(parents=True)
    path.write_text("{ // half a file\n", "utf-8")
    before = tree(home)
    ended = place.run("install", "claude-code", "--lang", "en")
    assert ended.status == 2
    assert tree(home) == before
    assert "line 2" in ended.out
    snippet = ended.out.partition(f"add to {path}:\n")[2].partition("\n}\n")[0] + "\n}"
    assert set(json.loads(snippet)) == {"hooks", "statusLine"}
    forced = place.run("install", "claude-code", "--force")
    assert forced.status == 2
    assert path.read_text("utf-8") == "{ // half a file\n"
    assert (home / ".claude/skills/koder-monitor/SKILL.md").exists()
    gone = place.run("uninstall", "claude-code", "--lang", "en")
    assert gone.status == 2
    assert "by hand" in gone.out


def test_settings_that_cannot_be_read_are_said(place: Place, home: Path) -> None:
    path = home / ".gemini/settings.json"
    path.mkdir(parents=True)  # which nobody can read, not even root
    ended = place.run("install", "gemini", "--lang", "en")
    assert (ended.status, "cannot be read" in ended.out) == (2, True)


def test_a_project_is_the_git_root(place: Place, home: Path) -> None:
    project = place.folder / "project"
    below = project / "a" / "b"
    below.mkdir(parents=True)
    (project / ".git").mkdir()
    place.run("install", "claude-code", "--local", cwd=below)
    assert (project / ".claude/settings.local.json").exists()
    assert (project / ".mcp.json").exists()
    assert tree(home) == {}
    place.run("uninstall", "claude-code", "--local", cwd=project)
    assert sorted(path.name for path in project.iterdir()) == [".git", "a"]


def test_a_runtime_without_files_of_a_project_says_so(place: Place, home: Path) -> None:
    ended = place.run("install", "kimi", "--local", "--lang", "en")
    assert ended.status == 2
    assert "--local" in ended.err[0]
    assert tree(home) == {}


@pytest.mark.parametrize("runtime", [n for n, row in RUNTIMES.items() if row.by_hand])
def test_other_runtimes_are_told_what_goes_where(
    runtime: str, place: Place, home: Path
) -> None:
    told = words(place, "install", runtime)
    assert "we do not change this one" in told
    assert str(place.folder / "bin/koder-monitor") in told
    assert "# Waiting with koder-monitor" in told
    assert tree(home) == {}


def test_a_runtime_that_nobody_knows_is_an_error(place: Place) -> None:
    ended = place.run("install", "emacs")
    assert ended.status == 2
    assert "claude-code" in ended.err[0]


def test_without_the_command_anywhere_nothing_is_registered(
    place: Place, home: Path
) -> None:
    python = place.folder / "python"
    python.symlink_to(sys.executable)
    paths = [*(path for path in sys.path if path), os.getcwd()]
    env = {"PATH": "/nowhere", "PYTHONPATH": ":".join(paths), "HOME": str(home)}
    program = (str(python), "-m", "watcher")
    argv = ("install", "gemini", "--lang", "en")
    ended = place.start(*argv, env=env, program=program).end()
    assert ended.status == 2
    assert "there is no command koder-monitor" in ended.err[0]
    assert tree(home) == {}
    gone = place.start("uninstall", "gemini", env=env, program=program).end()
    assert gone.status == 0


def test_doctor_tells_a_runtime_that_was_never_heard(place: Place, home: Path) -> None:
    words(place, "install", "codex")
    found = json.loads(place.run("doctor", "--json", "--lang", "en").line)
    [item] = [item for item in found if item["check"] == "install codex"]
    assert (item["ok"], "no hook has run since" in item["detail"]) == (False, True)
    assert "/hooks" in item["mend"]
    assert home.exists()


def test_a_store_of_records_that_is_broken_is_said(place: Place, home: Path) -> None:
    words(place, "install", "codex")
    (place.state / "installed.json").write_text("{ no")
    ended = place.run("uninstall", "codex", "--lang", "en")
    assert ended.status == 70
    assert "installed.json" in ended.err[0]
    assert "installed.json" in words(place, "doctor")
    assert (home / ".codex/hooks.json").exists()


# Whatever a file holds


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


FOREIGN = st.fixed_dictionaries(
    {},
    optional={
        "hooks": st.dictionaries(
            st.sampled_from(["Stop", "SessionStart", "Mine"]),
            st.lists(VALUES, max_size=2),
            max_size=2,
        ),
        "statusLine": st.fixed_dictionaries({"command": st.text(max_size=6)}),
        "mcpServers": st.dictionaries(KEYS, VALUES, max_size=2),
        "ui": st.dictionaries(KEYS, VALUES, max_size=2),
        "model": VALUES,
    },
)


@settings(deadline=None, max_examples=25)
@given(st.data(), FOREIGN, st.sampled_from(["claude-code", "gemini", "qwen"]))
def test_any_document_comes_back_byte_for_byte(
    scratch: Path, data: st.DataObject, value: dict[str, Json], runtime: str
) -> None:
    text = data.draw(documents(st.just(value)))
    user = scratch / "home"
    path = user / f".{runtime.removesuffix('-code')}" / "settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    site = Site(
        runtime=runtime,
        user=str(user),
        project=None,
        program="/opt/koder-monitor",
        env={},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KODER_MONITOR_STATE", str(scratch / "state"))
        plan = install(site, str(scratch / "state"))
        changed = path.read_bytes() != text.encode()
        assert changed is not plan.refused  # something else is where ours belongs
        uninstall(site, str(scratch / "state"))
    assert path.read_bytes() == text.encode()
