"""The log of hooks: a line for an error, and no end of it is no end of the disk."""

import os
from pathlib import Path

from watcher.runtimes import log


def test_an_error_is_one_clean_line(tmp_path: Path) -> None:
    state = tmp_path / "state"
    log.note(str(state), "two\nlines \x1b[31m" + "x" * 1000)
    log.note(str(state), "another")
    first, second = (state / log.NAME).read_text("utf-8").splitlines()
    assert "two\\nlines \\x1b[31mxxx" in first
    assert len(first) < 600
    assert second.endswith("Z another")
    assert os.stat(state / log.NAME).st_mode & 0o777 == 0o600


def test_the_file_does_not_grow_for_ever(tmp_path: Path) -> None:
    (tmp_path / log.NAME).write_text("x" * 300_000)
    log.note(str(tmp_path), "the last of the old one")
    log.note(str(tmp_path), "the first of the new one")
    assert (tmp_path / log.NAME).stat().st_size < 1000
    assert (tmp_path / f"{log.NAME}.1").stat().st_size > 300_000


def test_where_nothing_can_be_written_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log.note(str(tmp_path / "file"), "an error")
    (tmp_path / log.NAME).symlink_to(tmp_path / "victim")
    log.note(str(tmp_path), "an error")
    assert not (tmp_path / "victim").exists()
