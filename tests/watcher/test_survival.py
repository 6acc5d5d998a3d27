"""What lives on when a person logs out, and what is said of it (C7.3, B56)."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from watcher.onhost import survival

Programs = Callable[..., Path]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    """Put programs of our own in the place of systemd's; each notes how it was run."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    booted = tmp_path / "systemd"
    booted.mkdir()
    monkeypatch.setattr(survival, "_SYSTEMD", str(booted))
    calls = tmp_path / "calls"
    calls.touch()

    def make(**scripts: str) -> Path:
        for name, script in scripts.items():
            path = folder / name.replace("_", "-")
            path.write_text(f'#!/bin/sh\necho "$0 $*" >> {calls}\n{script}\n')
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return calls

    return make


@pytest.mark.parametrize(
    ("how", "says", "fate"),
    [
        ("unit", "echo b true", "lives"),
        ("session", "echo b true", "dies"),
        ("session", "echo b false", "lives"),
        ("session", "exit 1", "unknown"),
        ("session", "echo nonsense", "unknown"),
    ],
)
def test_what_becomes_of_it_is_said_as_logind_says(
    how: str, says: str, fate: str, programs: Programs
) -> None:
    programs(busctl=says)
    assert survival.fate(how) == fate


def test_one_that_hangs_is_not_known(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survival, "_ASK_LIMIT_S", 0.2)
    programs(busctl="exec sleep 60")
    assert survival.kills_user_processes() is None


def test_without_systemd_nothing_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survival, "_SYSTEMD", "/nowhere")
    assert survival.fate("session") == "lives"
    monkeypatch.setenv("PATH", "/nowhere")
    assert not survival.lingers()
    assert survival.kills_user_processes() is None


@pytest.mark.parametrize(
    ("linger", "run", "how"),
    [
        ("Linger=yes", "exit 0", "unit"),
        ("Linger=yes", "exit 1", "session"),
        ("Linger=no", "exit 0", "session"),
    ],
)
def test_it_is_a_unit_where_that_survives_else_a_session_of_its_own(
    linger: str, run: str, how: str, programs: Programs, tmp_path: Path
) -> None:
    calls = programs(loginctl=f"echo {linger}", systemd_run=run)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "koder-monitor").write_text(
        "import sys\nopen(sys.argv[1] + '/' + sys.argv[2], 'w').close()"
    )
    assert survival.spawn(str(folder), "a1") == how
    assert (folder / "apart").exists() == (how == "session")
    asked = calls.read_text()
    assert ("systemd-run --user --collect" in asked) == (linger == "Linger=yes")
    if linger == "Linger=yes":
        assert "--unit=koder-monitor-a1" in asked
        assert f"-I -S {folder}/koder-monitor {folder}" in asked
    assert "enable-linger" not in asked


def test_a_unit_is_stopped_by_its_name(programs: Programs) -> None:
    calls = programs(systemctl="exit 0")
    survival.stop_unit("a1")
    assert calls.read_text().endswith("systemctl --user stop koder-monitor-a1\n")
