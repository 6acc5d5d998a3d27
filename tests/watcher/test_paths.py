"""Where things are kept, with and without the user's own wishes (C5.1)."""

import os
import sys
from pathlib import Path

import pytest

from policies.wording import Lang
from watcher.errors import UsageError
from watcher.paths import config_file, project_directory, state_directory

HOME = "/home/ana"
IN_STATE = f"{HOME}/.local/state/koder-monitor"
IN_CONFIG = f"{HOME}/.config/koder-monitor/config.toml"


@pytest.fixture(autouse=True)
def linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", HOME)


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, IN_STATE),
        ({"XDG_STATE_HOME": "/xdg"}, "/xdg/koder-monitor"),
        ({"XDG_STATE_HOME": "relative"}, IN_STATE),
        ({"XDG_STATE_HOME": ""}, IN_STATE),
        ({"KODER_MONITOR_STATE": "/own"}, "/own"),
        ({"KODER_MONITOR_STATE": "/own/../other/"}, "/other"),
        ({"KODER_MONITOR_STATE": ""}, IN_STATE),
        ({"KODER_MONITOR_STATE": "/own", "XDG_STATE_HOME": "/xdg"}, "/own"),
    ],
    ids=str,
)
def test_the_state_directory_is_the_platforms_or_the_one_asked_for(
    env: dict[str, str], expected: str
) -> None:
    assert state_directory(env) == expected


def test_a_relative_state_directory_is_made_absolute_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = {"KODER_MONITOR_STATE": "own"}
    assert state_directory(asked) == f"{Path.cwd()}/own"


def test_a_relative_state_directory_of_a_deleted_folder_is_a_wrong_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with pytest.raises(UsageError) as caught:
        state_directory({"KODER_MONITOR_STATE": "own"})
    assert "deleted" in caught.value.phrase.render(Lang.EN)
    assert state_directory({"KODER_MONITOR_STATE": "/own"}) == "/own"


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, IN_CONFIG),
        ({"XDG_CONFIG_HOME": "/xdg"}, "/xdg/koder-monitor/config.toml"),
        ({"XDG_CONFIG_HOME": "relative"}, IN_CONFIG),
        ({"KODER_MONITOR_CONFIG": "/own.toml"}, "/own.toml"),
        ({"KODER_MONITOR_CONFIG": "own.toml"}, "own.toml"),
        ({"KODER_MONITOR_CONFIG": ""}, IN_CONFIG),
    ],
    ids=str,
)
def test_the_configuration_file_is_the_platforms_or_the_one_asked_for(
    env: dict[str, str], expected: str
) -> None:
    assert config_file(env) == expected


def test_on_a_mac_both_are_in_application_support(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    support = f"{HOME}/Library/Application Support/koder-monitor"
    assert state_directory({"XDG_STATE_HOME": "/xdg"}) == support
    assert config_file({"XDG_CONFIG_HOME": "/xdg"}) == f"{support}/config.toml"


@pytest.mark.parametrize("mark", ["folder", "file"])
def test_the_project_is_the_git_root_of_a_clone_or_a_worktree(
    mark: str, tmp_path: Path
) -> None:
    inner = tmp_path / "project" / "a" / "b"
    inner.mkdir(parents=True)
    git = tmp_path / "project" / ".git"
    if mark == "folder":
        git.mkdir()
    else:
        git.write_text("gitdir: elsewhere\n", "utf-8")
    project = str(tmp_path / "project")
    assert [project_directory(str(p)) for p in (inner, inner.parent)] == [project] * 2
    assert project_directory(project) == project


def test_the_nearest_git_root_counts(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "inner" / ".git").mkdir(parents=True)
    assert project_directory(str(tmp_path / "inner")) == str(tmp_path / "inner")


@pytest.mark.skipif(os.path.lexists("/.git"), reason="/ is a git root here")
@pytest.mark.parametrize("folder", ["/", "/no-such-folder", "/no/such/folder"])
def test_without_a_git_root_the_project_is_the_folder_itself(folder: str) -> None:
    assert project_directory(folder) == folder
