"""A lock is taken whole at once, or not at all (C5.5)."""

import os
import threading
from pathlib import Path

import pytest

from policies.holder import parse_holder
from tests.fakes import START
from watcher.taking import give_back, lock_entry, take_lock


@pytest.mark.parametrize("session", [None, "", "s-1", "a:b", "ç"])
def test_the_entry_names_its_session_and_whom_it_was_taken_for(
    session: str | None,
) -> None:
    holder = parse_holder(lock_entry(session, "a1-2", START).encode())
    assert holder.monitor == "a1-2"
    assert holder.since == START.isoformat()
    assert holder.pid is None
    if session != "ç":  # JSON quotes it
        assert holder.session == (session or None)


def test_a_lock_is_made_with_its_folder_and_nothing_stays_beside(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a" / "b" / "lock-x.md"
    take_lock(str(path), "entry")
    assert path.read_text() == "entry"
    assert [p.name for p in path.parent.iterdir()] == ["lock-x.md"]
    assert path.stat().st_nlink == 1


def test_nobodys_lock_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "lock-x.md"
    for content in ("", "somebody's"):
        path.write_text(content)
        with pytest.raises(FileExistsError):
            take_lock(str(path), "entry")
        assert path.read_text() == content
    path.unlink()
    path.symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        take_lock(str(path), "entry")
    assert path.is_symlink()
    assert [p.name for p in tmp_path.iterdir() if p.is_symlink() or p.is_file()] == [
        "lock-x.md"
    ]


def test_what_an_earlier_try_left_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / f".lock-x.md.{os.getpid()}").write_text("half")
    take_lock(str(tmp_path / "lock-x.md"), "entry")
    assert (tmp_path / "lock-x.md").read_text() == "entry"


def test_where_it_cannot_be_made_nothing_stays(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        take_lock(str(tmp_path / "file" / "lock-x.md"), "entry")


def test_of_many_who_take_it_one_has_it_and_all_see_it_whole(tmp_path: Path) -> None:
    path = tmp_path / "lock-x.md"
    got: list[int] = []
    start = threading.Barrier(2)
    pid = os.fork()
    if pid == 0:  # another process: two of one have the same name beside
        try:
            take_lock(str(path), "child" * 1000)
        except OSError:
            os._exit(1)
        os._exit(0)
    try:
        take_lock(str(path), "parent" * 1000)
        got.append(1)
    except FileExistsError:
        got.append(0)
    _, status = os.waitpid(pid, 0)
    assert got[0] + (os.waitstatus_to_exitcode(status) == 0) == 1
    assert path.read_text() in {"child" * 1000, "parent" * 1000}
    start.abort()


@pytest.mark.parametrize(
    ("content", "gone"),
    [(b"entry", True), (b"entry and more", False), (b"", False), (b"\xff" * 9, False)],
)
def test_only_our_own_lock_is_given_back(
    content: bytes, gone: bool, tmp_path: Path
) -> None:
    path = tmp_path / "lock-x.md"
    path.write_bytes(content)
    give_back(str(path), "entry")
    assert path.exists() is not gone
    give_back(str(tmp_path / "missing"), "entry")
