"""The log part: every line once, whatever happens to its file (C3.4)."""

import importlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.logscan import LIMIT
from tests.watcher.onhost.logs import WAYS, Here, There, Values, Watched, Way, append
from tests.watcher.rights import NOBODY, as_another_user, open_files, open_folder
from watcher.onhost import log, logfile

LINE = b"2026-03-01 12:00:00 worker 12 did its step\n"


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Iterator[Way]:
    """Give each way to read, which leaves nothing open."""
    files = open_files()
    with closing(WAYS[request.param]()) as way:
        yield way
    assert open_files() <= files


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give a log that holds an earlier run, in a folder whose name needs quotes."""
    folder = tmp_path / "a b"
    folder.mkdir()
    path = folder / "x 'y' $HOME.log"
    path.write_bytes(LINE + b"PASS of an earlier run\n")
    return path


def rename(path: Path) -> Path:
    return path.rename(path.with_name(path.name + ".1"))


class TestWhereReadingBegins:
    def test_a_marker_of_an_earlier_run_does_not_count(
        self, way: Way, path: Path
    ) -> None:
        """B69."""
        watched = Watched(path, way)
        assert watched.decided() is None
        size = path.stat().st_size
        assert watched.notes == [["log_from_end", {"path": str(path), "offset": size}]]
        append(path, b"PASS\n")
        assert watched.decided() == ("PASS", "PASS")
        assert len(watched.notes) == 1

    def test_from_its_start_it_does(self, way: Way, path: Path) -> None:
        watched = Watched(path, way, from_start=True)
        assert watched.decided() == ("PASS", "PASS of an earlier run")

    def test_reading_from_the_start_is_said(self, way: Way, path: Path) -> None:
        watched = Watched(path, way, from_start=True, **{"pass": "READY"})
        assert watched.decided() is None
        assert watched.notes == [["log_from_start", {"path": str(path)}]]
        append(path, b"READY\n")
        assert watched.decided() == ("PASS", "READY")

    def test_a_file_that_does_not_exist_yet_is_read_from_its_start(
        self, way: Way, path: Path
    ) -> None:
        path.unlink()
        watched = Watched(path, way)
        assert watched.decided() is None
        assert watched.decided() is None
        assert watched.notes == [["log_awaited", {"path": str(path)}]]
        path.write_bytes(b"PASS\n")
        assert watched.decided() == ("PASS", "PASS")

    def test_what_stood_in_the_unfinished_line_does_not_count(
        self, way: Way, path: Path
    ) -> None:
        append(path, b"PASS")
        watched = Watched(path, way)
        assert watched.decided() is None
        append(path, b"WORD")
        assert watched.decided() is None
        append(path, b" by\nPA")
        assert watched.decided() is None
        append(path, b"SS\n")
        assert watched.decided() == ("PASS", "PASS")

    def test_a_line_that_is_too_long_at_arming_is_skipped(
        self, way: Way, path: Path
    ) -> None:
        append(path, b"x" * (LIMIT + 1))
        watched = Watched(path, way)
        assert watched.decided() is None
        append(path, b"PASS\n")
        assert watched.decided() is None
        append(path, b"PASS\n")
        assert watched.decided() == ("PASS", "PASS")

    def test_the_lines_of_its_end_that_would_match_are_told(
        self, way: Way, path: Path
    ) -> None:
        """B79."""
        append(path, b"+ echo waiting for PASS\nPASSWORD=x\n0 FAIL\nok\n")
        seen = Watched(path, way).look()
        assert seen["sight"] == "held"
        assert [one["line"] for one in seen["evidence"]["would_match"]] == [
            "PASS of an earlier run",
            "+ echo waiting for PASS",
            "PASSWORD=x",
            "0 FAIL",
        ]

    def test_a_huge_file_full_of_holes_costs_its_end_only(
        self, way: Way, path: Path
    ) -> None:
        os.truncate(path, 20 << 30)
        watched = Watched(path, way)
        assert watched.decided() is None
        append(path, b"PASS\n")
        assert watched.decided() == ("PASS", "PASS")
        assert watched.looks <= 4

    def test_holes_of_many_gigabytes_are_not_read(self, path: Path) -> None:
        os.truncate(path, 20 << 30)
        with closing(Here()) as here:
            watched = Watched(path, here, from_start=True, **{"pass": "READY"})
            assert watched.decided() is None
            append(path, b"READY\n")
            assert watched.decided() == ("PASS", "READY")
            assert watched.looks <= 8

    def test_where_holes_cannot_be_told_they_are_read(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def no_holes(fd: int, offset: int, how: int) -> int:
            raise OSError(22, "Invalid argument")

        monkeypatch.setattr(os, "lseek", no_holes)
        os.truncate(path, 20 << 20)
        with closing(Here()) as here:
            watched = Watched(path, here, from_start=True, **{"pass": "READY"})
            append(path, b"READY\n")
            assert watched.decided() == ("PASS", "READY")


class TestLines:
    def test_a_marker_written_in_two_halves_is_found_once_it_is_whole(
        self, way: Way, path: Path
    ) -> None:
        """B75."""
        watched = Watched(path, way, fail="^FAIL$")
        watched.look()
        append(path, b"FAIL")
        assert watched.decided() is None
        append(path, b"OVER ok\nPA")
        assert watched.decided() is None
        append(path, b"SS\n")
        assert watched.decided() == ("PASS", "PASS")

    def test_the_unfinished_last_line_counts_once_its_writer_is_gone(
        self, way: Way, path: Path
    ) -> None:
        watched = Watched(path, way)
        watched.look()
        append(path, b"PASS")
        assert watched.decided() is None
        assert watched.decided(final=1) == ("PASS", "PASS")

    def test_a_writer_that_is_gone_without_a_marker_decides_nothing(
        self, way: Way, path: Path
    ) -> None:
        watched = Watched(path, way)
        watched.look()
        append(path, b"bye")
        assert watched.decided(final=1) is None
        assert watched.decided(final=1) is None

    def test_odd_bytes_are_shown_escaped_and_stop_nothing(
        self, way: Way, path: Path
    ) -> None:
        """B77."""
        watched = Watched(path, way)
        watched.look()
        append(path, b"\xca\xfe\n")
        assert watched.decided() is None
        append(path, b"caf\xc3")
        assert watched.decided() is None
        append(path, b"\xa9 \xca\xfe PASS\r\n")
        assert watched.decided() == ("PASS", "café \\xca\\xfe PASS")

    def test_memory_and_evidence_stay_small_on_an_endless_line(
        self, way: Way, path: Path
    ) -> None:
        """B102: the last line may have two megabytes."""
        watched = Watched(path, way)
        watched.look()
        append(path, b"PASS" + b"x" * (2 << 20) + b"\n")
        seen = watched.look()
        assert seen["result"] == "PASS"
        assert len(str(seen)) < 2000

    def test_the_rest_of_an_endless_line_is_skipped_however_it_comes(
        self, way: Way, path: Path
    ) -> None:
        watched = Watched(path, way)
        for _ in range(4):
            assert watched.decided() is None
            append(path, b"x" * (LIMIT + 1))
            assert watched.decided() is None
            append(path, b"PASS")
        append(path, b"\nPASS of a line\n")
        assert watched.decided() == ("PASS", "PASS of a line")

    def test_the_first_marker_in_file_order_decides_and_says_where(
        self, way: Way, path: Path
    ) -> None:
        watched = Watched(path, way)
        watched.look()
        offset = path.stat().st_size + len(LINE)
        append(path, LINE + b"1 FAIL\nPASS\n")
        seen = watched.look()
        assert seen["result"] == "FAIL"
        found = path.stat()
        evidence = {**seen["evidence"], "device": found.st_dev}
        assert evidence == {
            "means": "log",
            "path": str(path),
            "inode": found.st_ino,
            "device": found.st_dev,
            "offset": offset,
            "line": "1 FAIL",
        }

    def test_more_than_a_look_reads_takes_more_looks(
        self, way: Way, path: Path
    ) -> None:
        watched = Watched(path, way)
        watched.look()
        append(path, LINE * ((9 << 20) // len(LINE)) + b"PASS\n")
        seen = watched.once(final=1)
        assert (seen["sight"], seen["again_in_s"]) == ("held", 0)
        assert watched.decided() == ("PASS", "PASS")

    def test_a_decision_asks_for_nothing_more(self, way: Way, path: Path) -> None:
        watched = Watched(path, way)
        watched.look()
        append(path, b"PASS\n")
        watched.look()
        path.unlink()
        assert log.ask(watched.spec, watched.memory) == []
        assert watched.decided() == ("PASS", "PASS")


class TestRotation:
    def test_what_is_written_to_the_old_file_after_its_rename_is_read(
        self, way: Way, path: Path
    ) -> None:
        """B73."""
        watched = Watched(path, way)
        watched.look()
        with path.open("ab", buffering=0) as writer:
            rename(path)
            assert watched.decided() is None
            writer.write(b"PASS\n")
            path.touch()
        assert watched.decided() == ("PASS", "PASS")

    def test_the_old_file_is_read_before_the_new_one(
        self, way: Way, path: Path
    ) -> None:
        watched = Watched(path, way)
        watched.look()
        append(path, b"FAIL\n")
        rename(path)
        path.write_bytes(b"PASS\n")
        assert watched.decided() == ("FAIL", "FAIL")

    def test_the_new_file_is_read_from_its_start(self, way: Way, path: Path) -> None:
        watched = Watched(path, way)
        watched.look()
        rename(path)
        path.touch()
        assert watched.decided() is None
        append(path, b"PASS\n")
        assert watched.decided() == ("PASS", "PASS")

    def test_the_last_line_of_a_file_that_is_over_counts_without_its_end(
        self, way: Way, path: Path
    ) -> None:
        watched = Watched(path, way)
        watched.look()
        append(path, b"PASS")
        assert watched.decided() is None
        rename(path)
        path.write_bytes(b"begun\n")
        assert watched.decided() == ("PASS", "PASS")

    def test_a_file_that_was_renamed_before_it_was_written_to_is_not_passed_over(
        self, path: Path
    ) -> None:
        with closing(Here()) as here:
            watched = Watched(path, here)
            watched.look()
            rename(path)
            path.touch()
            assert watched.decided() is None
            second = path.rename(path.with_name("elsewhere"))
            path.touch()
            assert watched.decided() is None
            append(second, b"PASS\n")
            assert watched.decided() == ("PASS", "PASS")

    def test_a_file_that_gets_its_name_back_goes_on_where_it_was(
        self, way: Way, path: Path
    ) -> None:
        watched = Watched(path, way)
        watched.look()
        old = rename(path)
        path.touch()
        assert watched.decided() is None
        old.rename(path)
        assert watched.decided() is None
        assert "next" not in watched.memory
        append(path, b"FAIL\n")
        assert watched.decided() == ("FAIL", "FAIL")

    def test_a_log_that_is_rotated_over_and_over_is_followed(
        self, way: Way, path: Path
    ) -> None:
        watched = Watched(path, way)
        watched.look()
        for number in range(30):
            append(path, LINE)
            path.rename(path.with_name(f"{path.name}.{number}"))
            path.write_bytes(b"begun\n")
            assert watched.decided() is None
        append(path, b"PASS\n")
        assert watched.decided() == ("PASS", "PASS")
        assert "lost" not in watched.memory

    def test_a_truncated_file_is_read_from_its_start(
        self, way: Way, path: Path
    ) -> None:
        """B71."""
        append(path, LINE * 1000)
        watched = Watched(path, way)
        watched.look()
        os.truncate(path, 0)
        append(path, b"PASS\n")
        assert watched.decided() == ("PASS", "PASS")

    def test_a_file_written_anew_and_longer_is_noticed(
        self, way: Way, path: Path
    ) -> None:
        watched = Watched(path, way)
        watched.look()
        path.write_bytes(b"PASS of this run\n" + LINE * 10)
        assert watched.decided() == ("PASS", "PASS of this run")

    def test_a_writer_that_goes_on_behind_a_truncation_leaves_only_a_hole(
        self, way: Way, path: Path
    ) -> None:
        append(path, LINE * 3000)
        watched = Watched(path, way, **{"pass": "^PASS$"})
        watched.look()
        size = path.stat().st_size
        os.truncate(path, 0)
        with path.open("r+b") as writer:
            writer.seek(size)
            writer.write(b"PASS\n")
        assert watched.decided() == ("PASS", "PASS")

    def test_a_file_deleted_and_made_anew_is_another_even_with_its_inode(
        self, way: Way, path: Path
    ) -> None:
        """B73; the file system may hand the same inode out again, or not."""
        watched = Watched(path, way)
        watched.look()
        path.unlink()
        path.write_bytes(b"PASS of a new file\n" + LINE * 10)
        assert watched.decided() == ("PASS", "PASS of a new file")

    def test_a_copy_in_the_place_of_the_file_is_no_new_log(
        self, way: Way, path: Path
    ) -> None:
        """As sed -i and rsync leave one; its old markers stay old."""
        watched = Watched(path, way)
        watched.look()
        copy = path.with_name("copy")
        copy.write_bytes(path.read_bytes())
        copy.rename(path)
        assert watched.decided() is None
        append(path, b"FAIL\n")
        assert watched.decided() == ("FAIL", "FAIL")

    def test_a_copy_beside_the_renamed_file_is_no_new_log_either(
        self, way: Way, path: Path
    ) -> None:
        """As sed -i.1 leaves one; the unfinished line goes on in it."""
        watched = Watched(path, way)
        append(path, b"PA")
        watched.look()
        rename(path)
        path.write_bytes(path.with_name(path.name + ".1").read_bytes() + b"SS\n")
        assert watched.decided() == ("PASS", "PASS")

    def test_a_deleted_file_is_waited_for(self, way: Way, path: Path) -> None:
        watched = Watched(path, way)
        watched.look()
        path.unlink()
        assert watched.decided() is None
        assert watched.decided() is None
        path.write_bytes(b"PASS\n" * 9)
        assert watched.decided() == ("PASS", "PASS")

    def test_a_restart_finds_the_renamed_file_again(self, way: Way, path: Path) -> None:
        watched = Watched(path, way)
        watched.look()
        append(path, b"PASS\n")
        rename(path)
        path.write_bytes(b"FAIL\n")
        way.close()
        assert watched.decided() == ("PASS", "PASS")

    def test_what_nobody_finds_again_is_said_to_be_lost(
        self, way: Way, path: Path
    ) -> None:
        watched = Watched(path, way)
        watched.look()
        path.unlink()
        way.close()
        assert watched.look()["evidence"]["lost"] is True
        path.with_name("other").write_bytes(b"x" * 999)
        path.with_name("third").write_bytes(b"begun\n")
        path.with_name("third").rename(path)
        seen = watched.look()
        assert seen["sight"] == "held"
        if path.stat().st_ino != watched.asked[1]["inode"]:
            assert seen["evidence"]["lost"] is True
            assert watched.notes[1:] == [["log_lost", {"path": str(path)}]]
        append(path, b"PASS\n")
        assert watched.decided() == ("PASS", "PASS")

    def test_a_restart_finds_a_copy_in_the_place_of_the_file(
        self, way: Way, path: Path
    ) -> None:
        watched = Watched(path, way)
        watched.look()
        copy = path.with_name("copy")
        copy.write_bytes(path.read_bytes() + LINE)
        way.close()
        copy.rename(path)
        assert watched.decided() is None
        assert "lost" not in watched.memory
        append(path, b"PASS\n")
        assert watched.decided() == ("PASS", "PASS")

    def test_behind_a_link_the_renamed_file_is_found_too(self, path: Path) -> None:
        link = path.parent.parent / "current.log"
        link.symlink_to(path)
        watched = Watched(link, There())
        watched.look()
        append(path, b"PASS\n")
        rename(path)
        path.write_bytes(b"FAIL\n")
        assert watched.decided() == ("PASS", "PASS")


class TestWhatCannotBeSeen:
    def test_a_missing_directory(self, way: Way, path: Path) -> None:
        watched = Watched(path, way)
        watched.look()
        before = watched.memory
        moved = path.parent.rename(path.parent.with_name("moved"))
        seen = watched.once()
        assert (seen["sight"], seen["memory"]) == ("unknown", before)
        assert seen["reason"] == ["directory_missing", {"path": str(path.parent)}]
        moved.rename(path.parent)
        assert watched.decided() is None

    @pytest.mark.parametrize("what", ["folder", "file"])
    def test_a_denied_one(self, way: Way, what: str) -> None:
        with open_folder() as folder:
            path = folder / "x.log"
            path.touch()
            watched = Watched(path, way)
            denied = folder if what == "folder" else path
            os.chown(denied, NOBODY - 1, NOBODY - 1) if os.geteuid() == 0 else None
            denied.chmod(0)
            with as_another_user():
                seen = watched.once()
            denied.chmod(0o700)
        assert seen["sight"] == "unknown"
        assert seen["reason"] == ["denied", {"path": str(path)}]
        assert seen["memory"] == {}

    def test_what_is_no_file(self, way: Way, path: Path) -> None:
        seen = Watched(path.parent, way).once()
        assert seen["reason"] == ["no_log_file", {"path": str(path.parent)}]
        pipe = path.with_name("pipe")
        os.mkfifo(pipe)
        seen = Watched(pipe, way).once()
        assert seen["reason"] == ["no_log_file", {"path": str(pipe)}]

    def test_a_file_where_its_directory_should_be(self, way: Way, path: Path) -> None:
        seen = Watched(path / "x.log", way).once()
        assert seen["sight"] == "unknown"
        assert seen["reason"][0] == "probe_failed"

    def test_a_circle_of_links(self, way: Way, path: Path) -> None:
        link = path.with_name("link")
        link.symlink_to(link)
        seen = Watched(link, way).once()
        assert seen["sight"] == "unknown"
        assert seen["reason"][0] == "probe_failed"

    def test_a_directory_of_another_file_system(self, path: Path) -> None:
        """Something was mounted, or unmounted: what is there is no new log."""
        path.unlink()
        watched = Watched(path, There())
        watched.look()
        watched.memory["device"] = -1
        path.write_bytes(b"PASS\n")
        seen = watched.once()
        assert (seen["sight"], seen["reason"][0]) == ("unknown", "unmounted")

    def test_a_file_that_is_there_all_the_same_is_followed(self, path: Path) -> None:
        """Device numbers are handed out at each boot of a host."""
        watched = Watched(path, There())
        watched.look()
        watched.memory["device"] = -1
        append(path, b"PASS\n")
        assert watched.decided() == ("PASS", "PASS")

    def test_siblings_that_may_not_be_listed_are_lost(self) -> None:
        with open_folder() as folder:
            path = folder / "x.log"
            path.write_bytes(LINE)
            path.chmod(0o644)
            watched = Watched(path, There())
            watched.look()
            rename(path)
            path.write_bytes(b"begun\n")
            path.chmod(0o644)
            os.chown(folder, NOBODY - 1, NOBODY - 1) if os.geteuid() == 0 else None
            folder.chmod(0o311)
            with as_another_user():
                seen = watched.look()
            folder.chmod(0o755)
        assert seen["sight"] == "held"
        assert seen["evidence"]["lost"] is True

    def test_a_slow_expression(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(log, "_BUDGET_S", 0.05)
        watched = Watched(path, There(), **{"pass": "(x|x)+$"})
        before = watched.look()
        append(path, b"fine\n" + b"x" * 60 + b"!\n")
        assert watched.once()["again_in_s"] == 0
        seen = watched.once()
        assert seen["sight"] == "unknown"
        assert seen["reason"] == ["slow_regex", {"regex": "FAIL, (x|x)+$"}]
        assert before["sight"] == "held"

    def test_a_look_that_has_no_time_left_knows_nothing(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        watched = Watched(path, There())
        watched.look()
        before = watched.memory
        monkeypatch.setattr(log, "_BUDGET_S", 0.0)
        append(path, b"PASS\n")
        assert watched.once()["sight"] == "unknown"
        assert watched.memory == before

    def test_a_slow_expression_does_not_keep_a_watch_from_beginning(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(log, "_BUDGET_S", 0.05)
        append(path, b"x" * 60 + b"!\n")
        seen = Watched(path, There(), **{"pass": "(x|x)+$"}).look()
        assert (seen["sight"], seen["evidence"]["would_match"]) == ("held", [])

    def test_without_the_module_regex_the_standard_one_serves(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def missing(name: str) -> None:
            raise ImportError(name)

        monkeypatch.setattr(importlib, "import_module", missing)
        log._compiled.cache_clear()
        try:
            watched = Watched(path, Here(), **{"pass": r"P(?=ASS)"})
            watched.look()
            append(path, b"PASS")
            watched.look()
            append(path, b"\n")
            assert watched.decided() == ("PASS", "PASS")
            watched.way.close()
        finally:
            log._compiled.cache_clear()


class TestReader:
    def test_an_inode_of_another_file_system_is_another_file(self, path: Path) -> None:
        with closing(logfile.Reader()) as reader:
            inode = path.stat().st_ino
            reader._fds[inode] = os.open("/proc/version", os.O_RDONLY)
            found = reader.read({"path": str(path), "offset": 0})
            assert found["data"] == path.read_bytes()

    def test_it_tells_what_is_open_as_the_look_saw_it(self, path: Path) -> None:
        with closing(Here()) as here:
            watched = Watched(path, here)
            watched.look()
            old = path.stat()
            rename(path)
            path.touch()
            watched.look()
            seen = {(inode, size) for _, inode, size in here.reader.files()}
            assert seen == {(old.st_ino, old.st_size), (path.stat().st_ino, 0)}
            for fd, inode, _ in here.reader.files():
                assert os.fstat(fd).st_ino == inode


class TestStalled:
    def test_a_log_that_does_not_grow_has_stalled(self, way: Way, path: Path) -> None:
        watched = Watched(path, way, stalled_s=1800)
        seen = watched.look()
        assert (seen["sight"], seen["again_in_s"]) == ("held", 1800)
        watched.up_s += 1799
        seen = watched.look()
        assert (seen["sight"], seen["again_in_s"]) == ("held", 1)
        watched.up_s += 1
        seen = watched.look()
        assert (seen["sight"], seen["result"]) == ("released", "STALLED")
        assert seen["decided"] == ["log_quiet", {"span": "30min"}]
        assert watched.look()["result"] == "STALLED"

    def test_whatever_is_written_begins_that_anew(self, way: Way, path: Path) -> None:
        watched = Watched(path, way, stalled_s=90)
        for data in (LINE, b"half", b" a line\n"):
            watched.look()
            watched.up_s += 89
            append(path, data)
            assert watched.look()["again_in_s"] == 90
        watched.up_s += 90
        assert watched.look()["decided"] == ["log_quiet", {"span": "90s"}]

    @pytest.mark.parametrize("change", ["truncated", "replaced", "gone"])
    def test_so_does_another_file_in_its_place(
        self, way: Way, path: Path, change: str
    ) -> None:
        watched = Watched(path, way, stalled_s=90)
        watched.look()
        watched.up_s += 89
        if change == "truncated":
            os.truncate(path, 0)
        else:
            path.rename(path.with_name("elsewhere"))
        if change == "replaced":
            path.write_bytes(b"begun\n")
        watched.look()
        watched.up_s += 1
        assert watched.look()["sight"] == "held" or change == "gone"

    def test_a_file_that_has_yet_to_appear_is_waited_for(
        self, way: Way, path: Path
    ) -> None:
        path.unlink()
        watched = Watched(path, way, stalled_s=90)
        for _ in range(3):
            assert watched.look()["sight"] == "held"
            watched.up_s += 90
        path.touch()
        assert watched.look()["again_in_s"] == 90
        watched.up_s += 90
        assert watched.look()["result"] == "STALLED"

    def test_a_log_that_only_has_to_grow_is_never_read(
        self, way: Way, path: Path
    ) -> None:
        silence: dict[str, Any] = {"pass": None, "fail": None, "stalled_s": 90}
        watched = Watched(path, way, **silence)
        watched.look()
        watched.up_s += 89
        append(path, LINE)
        assert watched.look()["again_in_s"] == 90
        watched.up_s += 89
        path.unlink()
        assert watched.look()["again_in_s"] == 90
        path.write_bytes(b"PASS\n")
        watched.up_s += 89
        assert watched.look()["again_in_s"] == 90
        watched.up_s += 90
        assert watched.look()["result"] == "STALLED"
        path.unlink()
        watched = Watched(path, way, **silence)
        assert watched.look()["again_in_s"] is None

    def test_a_writer_at_work_has_not_stalled(self, way: Way, path: Path) -> None:
        watched = Watched(path, way, stalled_s=90)
        watched.look()
        watched.up_s += 90
        assert watched.look(busy=1)["again_in_s"] == 90
        watched.up_s += 89
        assert watched.look()["again_in_s"] == 1

    def test_after_another_boot_it_is_measured_anew(self, way: Way, path: Path) -> None:
        watched = Watched(path, way, stalled_s=90)
        watched.look()
        watched.up_s = 20.0
        assert watched.look()["again_in_s"] == 90
        watched.up_s += 90
        assert watched.look()["result"] == "STALLED"

    def test_what_could_not_be_seen_is_not_silence(self, way: Way, path: Path) -> None:
        watched = Watched(path, way, stalled_s=90)
        watched.look()
        moved = path.parent.rename(path.parent.with_name("moved"))
        watched.up_s += 90
        assert watched.once()["sight"] == "unknown"
        moved.rename(path.parent)
        append(path, LINE)
        assert watched.look()["sight"] == "held"


def test_an_idle_round_costs_a_few_hundred_bytes(path: Path) -> None:
    """B81."""
    append(path, LINE * 20000 + b"an unfinished line " * 1000)
    there = There()
    watched = Watched(path, there)
    watched.look()
    (request,) = log.ask(watched.spec, watched.memory)
    assert len(str(request)) + len(str(there.read(request))) < 800
    append(path, b"\n" + LINE * 1000)
    (request,) = log.ask(watched.spec, watched.memory)
    assert len(str(there.read(request))) < 10_000


def test_a_channel_that_brings_too_much_fills_no_memory() -> None:
    assert len(log.unpacked(log.packed(b"x" * (8 << 20)))) < 2 << 20


def test_a_log_follows_no_process() -> None:
    assert log.follows({}, {}) == []


def test_only_so_many_siblings_are_looked_through(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logfile, "_MOST_SIBLINGS", 0)
    watched = Watched(path, There())
    watched.look()
    rename(path)
    assert watched.look()["evidence"]["lost"] is True


STEPS = st.lists(
    st.sampled_from(
        ["PASS\n", "FAIL\n", "a\n", "b", "\n", "\r\n", "\0\0", "PA", "SS", "FA", "IL"]
        + ["look"] * 4
        + ["rename", "truncate"]
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=150)
@given(steps=STEPS, kept=st.booleans())
def test_bytes_and_rotations_anywhere_are_decided_as_by_reading_all_at_once(
    steps: list[str], kept: bool
) -> None:
    """The files of a log one behind the other, read by whoever has all the time."""
    make: Callable[[], Way] = Here if kept else There
    with tempfile.TemporaryDirectory() as folder, closing(make()) as way:
        path = Path(folder) / "x.log"
        path.write_bytes(b"PASS long ago\n")
        watched = Watched(path, way)
        seen: Values = watched.look()
        files = [Written()]
        for step in [*steps, "look"]:
            if step == "look":
                seen = watched.look()
            elif step == "rename":
                watched.look()  # what is gone with its file nobody can read
                path.rename(path.with_name(f"x.log.{len(files)}"))
                path.touch()
                seen = watched.look()
                for older in files[:-1]:
                    older.over = True
                files.append(Written())
            elif step == "truncate":
                watched.look()
                os.truncate(path, 0)
                seen = watched.look()
                files[-1].data = b"".join(files[-1].data.rpartition(b"\n")[:2])
                files.append(Written())
            else:
                append(path, step.encode())
                files[-1].data += step.encode()
                for older in files[:-1]:
                    older.over = True
        expected = first_marker(files)
        assert seen["sight"] == ("held" if expected is None else "released")
        if expected is not None:
            assert (seen["result"], seen["decided"][1]["text"]) == expected


@dataclass(slots=True)
class Written:
    """All that was ever written to one file; `over` once another has taken over."""

    data: bytes = b""
    over: bool = False


def first_marker(files: list[Written]) -> tuple[str, str] | None:
    """Return the first line with a marker; a file may have an unfinished one."""
    for file in files:
        lines = file.data.split(b"\n")
        for line in lines if file.over else lines[:-1]:
            text = line.lstrip(b"\0").removesuffix(b"\r").decode()
            found = {text.find(name): name for name in ("PASS", "FAIL") if name in text}
            if found:
                return found[min(found)], text
    return None
