"""The process table of the machine that a part runs on."""

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from policies.proctable import UNKNOWN_START
from tests.e2e.command import until
from tests.watcher.rights import as_another_user, open_folder
from tests.watcher.work import working
from watcher.onhost import table as module
from watcher.onhost.table import (
    ProcFs,
    PsTable,
    about_us,
    all_rows,
    host_table,
    line_of,
)


def program(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_linux_has_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(host_table(), ProcFs)
    monkeypatch.setattr("os.path.exists", lambda path: False)
    assert isinstance(host_table(), PsTable)


def test_who_stands_above_a_process_is_told_without_its_command_line() -> None:
    with working() as work:
        line = dict(line_of(work.pid))
        assert list(line)[:2] == [work.pid, os.getpid()]
        row = ProcFs().row(os.getpid())
        assert row is not None
        assert line[os.getpid()] == row.start
        pid = work.pid
    assert line_of(pid) == []


def test_we_are_named_by_boot_and_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    about = about_us()
    assert about["boot_id"] == ProcFs().boot_id()
    assert about["pid_namespace"].startswith("pid:[")
    monkeypatch.setattr("os.readlink", lambda path: os.stat("/no/such/file"))
    assert about_us() == {}


def test_the_cpu_of_all_is_told(tmp_path: Path) -> None:
    used = {pid: (ppid, ticks) for pid, ppid, ticks in ProcFs().cpu()}
    assert used[os.getpid()][0] == os.getppid()
    assert used[os.getpid()][1] > 0
    for name, text in {"7": "7 (x) S 1", "8": "x"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "stat").write_text(text)
    (tmp_path / "9").mkdir()
    assert ProcFs(str(tmp_path)).cpu() == []


class TestPs:
    """ps(1) of this machine, which has the fields that those of others have."""

    def test_a_process_is_told(self) -> None:
        with working("a b") as work:
            row = PsTable().row(work.pid)
            assert row is not None
            assert row.ppid == os.getpid()
            assert row.command.endswith(" a b")
            started_s = ProcFs().started_at(ProcFs().rows(())[work.pid])
            assert started_s is not None
            assert abs((PsTable().started_at(row) or 0) - started_s) < 3
            assert work.pid in {pid for pid, _, _ in PsTable().cpu()}
            assert work.pid not in PsTable().rows((work.pid,))
            assert PsTable().shows(work.pid)
            pid = work.pid
        assert PsTable().row(pid) is None

    def test_what_it_does_not_list_may_live(self) -> None:
        line = f"{os.getpid()} 1 S 0:00.01 Mon Nov 23 08:00:01 2026 x"
        with open_folder() as folder, working() as work:
            table = PsTable(program(folder, "ps", f"echo '{line}'"))
            row = table.row(work.pid)
            assert row is not None
            assert row.start == UNKNOWN_START
            with as_another_user():
                row = table.row(1)
            assert row is not None
            assert not row.readable

    @pytest.mark.parametrize(
        "text", ["exit 1", "exit 0", "echo x", "echo '1 0 S 0:00.01 - x'"]
    )
    def test_one_that_does_not_list_us_has_told_nothing(
        self, tmp_path: Path, text: str
    ) -> None:
        table = PsTable(program(tmp_path, "ps", text))
        with pytest.raises(OSError, match="ps"):
            table.rows(())

    def test_none_at_all_tells_nothing(self, tmp_path: Path) -> None:
        table = PsTable(str(tmp_path / "none"), str(tmp_path / "none"))
        with pytest.raises(OSError, match="ps"):
            table.rows(())
        assert table.boot_id() == ""

    @pytest.mark.parametrize("name", ["kern.bootsessionuuid", "kern.boot_id"])
    def test_a_boot_is_named_where_the_system_names_it(
        self, tmp_path: Path, name: str
    ) -> None:
        text = f'[ "$2" = {name} ] && echo 5f0c'
        assert PsTable("ps", program(tmp_path, "sysctl", text)).boot_id() == "5f0c"

    def test_others_may_be_hidden(self, tmp_path: Path) -> None:
        sysctl = program(tmp_path, "sysctl", "echo 0")
        tmp_path.chmod(0o755)
        table = PsTable("ps", sysctl)
        assert table.hidden() is (os.geteuid() != 0)
        assert not PsTable("ps", program(tmp_path, "other", "echo 1")).hidden()


class TestStuck:
    """B40: a process whose files block whoever reads them."""

    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        monkeypatch.setattr(module, "_SCAN_LIMIT_S", 0.2)
        monkeypatch.setattr(module, "_stuck", set())
        threads = threading.active_count()
        yield tmp_path

        def freed() -> bool:
            """Let whoever waits go on; it finds the end, and maybe the next one."""
            for fifo in tmp_path.glob("*/cmdline"):
                if fifo.is_fifo():
                    with suppress(OSError):  # nobody waits there
                        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
            return threading.active_count() <= threads

        until(freed)

    def show(self, folder: Path, pid: int, *, stuck: bool = False) -> Path:
        place = folder / str(pid)
        place.mkdir()
        (place / "stat").write_text(
            f"{pid} (x) S 1 1 1 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 4711 0 0"
        )
        if stuck:
            os.mkfifo(place / "cmdline")
        else:
            (place / "cmdline").write_text("job\0")
        return place

    def test_it_is_left_out_and_named_and_costs_one_thread(self, folder: Path) -> None:
        self.show(folder, 7)
        stuck = self.show(folder, 8, stuck=True)
        for _ in range(3):
            rows, left_out = all_rows(ProcFs(str(folder)))
            assert list(rows) == [7]
            assert left_out == [8]
        (stuck / "cmdline").rename(folder / "fifo-8")
        (folder / "was").mkdir()
        (folder / "fifo-8").rename(folder / "was" / "cmdline")
        (stuck / "stat").unlink()
        stuck.rmdir()
        rows, left_out = all_rows(ProcFs(str(folder)))
        assert (list(rows), left_out) == ([7], [])

    def test_there_is_an_end_to_what_they_may_cost(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "_MOST_STUCK", 2)
        for pid in (7, 8, 9):
            self.show(folder, pid, stuck=True)
        with pytest.raises(TimeoutError):
            all_rows(ProcFs(str(folder)))

    def test_a_table_that_cannot_be_read_is_an_error(self, folder: Path) -> None:
        with pytest.raises(FileNotFoundError):
            all_rows(ProcFs(str(folder / "none")))
