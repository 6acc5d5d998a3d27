"""The process table of this machine."""

import errno
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from policies.proctable import Row
from tests.watcher.rights import NOBODY, as_another_user, open_folder
from tests.watcher.work import SLEEPER, leaderless, working
from watcher.procfs import (
    UNKNOWN_START,
    ProcessTable,
    ProcFs,
    PsutilTable,
    process_table,
)

NO_PID = 4194304
"""One more than any PID that a Linux gives away."""

STAT = "{pid} (a b) c) S 7 1 1 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 3 0 {start} 0 0"


def stat(pid: int = NO_PID, *, start: int = 4711, flags: int = 0) -> str:
    return STAT.format(pid=pid, start=start, flags=flags)


def proc(folder: Path, files: Mapping[str, str | bytes]) -> ProcFs:
    """Write a /proc of our own."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return ProcFs(str(folder))


@pytest.fixture(params=["/proc", "psutil"])
def table(request: pytest.FixtureRequest) -> ProcessTable:
    """Give each of the tables in turn."""
    return ProcFs() if request.param == "/proc" else PsutilTable()


def ended_pid() -> int:
    with working() as work:
        return work.pid


def test_a_row_says_who_a_process_is(table: ProcessTable) -> None:
    with working("a b", "", "c)") as work:
        row = table.row(work.pid)
        assert row is not None
        assert (row.pid, row.ppid) == (work.pid, os.getpid())
        assert row.argv == (*SLEEPER, "a b", "", "c)")
        assert row.readable
        assert not row.finished
        assert not row.kernel_thread
        assert table.row(work.pid) is not None
        again = table.row(work.pid)
        assert again is not None
        assert again.start == row.start


def test_a_process_that_is_gone_has_no_row(table: ProcessTable) -> None:
    assert table.row(ended_pid()) is None


def test_a_zombie_is_finished(table: ProcessTable) -> None:
    with working() as work:
        work.end_as_zombie()
        row = table.row(work.pid)
        assert row is not None
        assert row.finished
        assert row.readable


def test_all_rows_hold_ours_and_leave_out_what_to_skip(table: ProcessTable) -> None:
    with working() as work:
        rows = table.rows(frozenset())
        assert rows[work.pid].ppid == os.getpid()
        assert rows[os.getpid()].argv == tuple(sys.orig_argv)
        assert work.pid not in table.rows({work.pid})
        assert os.getpid() in table.rows({work.pid})


def test_a_start_is_about_now_for_a_process_begun_now(table: ProcessTable) -> None:
    before = time.time()
    with working() as work:
        row = table.row(work.pid)
        assert row is not None
        started = table.started_at(row)
        assert started is not None
        assert before - 2 < started < time.time() + 2


def test_nothing_is_being_read_between_two_looks(table: ProcessTable) -> None:
    table.row(os.getpid())
    assert table.reading == 0
    table.row(ended_pid())
    assert table.reading == 0
    table.rows(frozenset())
    assert table.reading == 0


def test_other_systems_hide_no_process() -> None:
    assert not PsutilTable().hidden()


def test_a_boot_is_named_by_the_kernel() -> None:
    text = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
    assert ProcFs().boot_id() == text.strip()
    assert PsutilTable().boot_id() == ""


@pytest.mark.parametrize(
    ("platform", "kind"), [("linux", ProcFs), ("darwin", PsutilTable)]
)
def test_the_table_is_that_of_the_system(
    monkeypatch: pytest.MonkeyPatch, platform: str, kind: type
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert isinstance(process_table(), kind)


def test_a_name_longer_than_the_kernel_keeps_is_found_whole(tmp_path: Path) -> None:
    sleep = shutil.which("sleep")
    assert sleep is not None
    program = tmp_path / "averyveryverylongname-worker"
    shutil.copy(sleep, program)
    with working("60", program=[str(program)]) as work:
        row = ProcFs().row(work.pid)
        assert row is not None
        assert row.command == f"{program} 60"
        work.kill()


def test_a_zombie_whose_other_threads_run_is_not_finished() -> None:
    with leaderless() as work:
        row = ProcFs().row(work.pid)
        assert row is not None
        assert (row.state, row.finished) == ("Z", False)


def test_a_thread_has_a_row_of_its_own_and_is_in_no_list() -> None:
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    tid = thread.native_id
    assert tid is not None
    try:
        row = ProcFs().row(tid)
        assert row is not None
        assert row.pid == tid
        assert tid not in ProcFs().rows(frozenset())
    finally:
        release.set()
        thread.join()


def test_a_kernel_thread_is_named_in_brackets(tmp_path: Path) -> None:
    table = proc(
        tmp_path,
        {f"{NO_PID}/stat": stat(flags=0x00200000), f"{NO_PID}/cmdline": ""},
    )
    row = table.row(NO_PID)
    assert row is not None
    assert row.kernel_thread
    assert row.command == "[a b) c]"


def test_a_command_line_is_read_up_to_a_limit_and_decoded_leniently(
    tmp_path: Path,
) -> None:
    table = proc(
        tmp_path,
        {
            f"{NO_PID}/stat": stat(),
            f"{NO_PID}/cmdline": b"caf\xe9\0" + b"x" * 5_000_000,
        },
    )
    row = table.row(NO_PID)
    assert row is not None
    assert row.argv[0] == "caf\udce9"
    assert 10_000 < len(row.command) < 200_000


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param("12 (a) S 1", id="cut short"),
        pytest.param("x (a) " + "y " * 30, id="no numbers"),
        pytest.param(b"\xff\xfe\0", id="no text"),
    ],
)
def test_a_stat_that_is_none_is_a_failure_to_look(
    tmp_path: Path, content: str | bytes
) -> None:
    table = proc(tmp_path, {f"{NO_PID}/stat": content, f"{NO_PID}/cmdline": ""})
    with pytest.raises(OSError, match="not the stat of a process"):
        table.row(NO_PID)
    with pytest.raises(OSError, match="not the stat of a process"):
        table.rows(frozenset())
    assert table.reading == 0


def test_a_process_that_ends_during_the_look_is_left_out(tmp_path: Path) -> None:
    table = proc(tmp_path, {f"{NO_PID}/stat": stat(), "loadavg": "", "self/stat": ""})
    assert table.rows(frozenset()) == {}


def test_a_table_that_cannot_be_read_is_a_failure_to_look(tmp_path: Path) -> None:
    table = ProcFs(str(tmp_path / "nowhere"))
    for look in (table.boot_id, table.hidden, lambda: table.rows(frozenset())):
        with pytest.raises(FileNotFoundError):
            look()


class TestAnotherUser:
    """What may not be looked at lives, unless the kernel says that it does not."""

    @pytest.fixture
    def folder(self) -> Iterator[Path]:
        with open_folder() as folder:
            yield folder

    @pytest.fixture
    def secret(self, folder: Path) -> Iterator[Path]:
        """Give a /proc whose process 1 shows nothing to others."""
        proc(folder, {"1/stat": stat(1), "1/cmdline": "init", "1/status": ""})
        for path in (folder / "1").iterdir():
            path.chmod(0)
        yield folder
        (folder / "1").chmod(0o755)

    def test_not_permitted_proves_that_it_lives(self, folder: Path) -> None:
        with as_another_user():
            assert ProcFs(str(folder)).row(1) == Row(
                pid=1, ppid=0, start=UNKNOWN_START, state="?", readable=False
            )

    def test_one_that_the_kernel_does_not_know_is_gone(self, folder: Path) -> None:
        with as_another_user():
            assert ProcFs(str(folder)).row(NO_PID) is None

    def test_our_own_is_alive_where_the_table_shows_nothing(self, folder: Path) -> None:
        row = ProcFs(str(folder)).row(os.getpid())
        assert row is not None
        assert row.start == UNKNOWN_START

    def test_one_whose_files_are_closed_is_there_but_unreadable(
        self, secret: Path
    ) -> None:
        with as_another_user():
            row = ProcFs(str(secret)).row(1)
            rows = ProcFs(str(secret)).rows(frozenset())
        assert row is not None
        assert (row.start, row.readable) == (UNKNOWN_START, False)
        assert rows == {1: row}

    def test_one_whose_command_line_is_closed_keeps_its_name(
        self, secret: Path
    ) -> None:
        (secret / "1" / "stat").chmod(0o644)
        with as_another_user():
            row = ProcFs(str(secret)).row(1)
        assert row is not None
        assert (row.start, row.argv, row.readable) == (4711, ("[a b) c]",), False)

    def test_what_psutil_may_not_read_is_there_but_unreadable(
        self, secret: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = PsutilTable()
        monkeypatch.setattr(psutil, "PROCFS_PATH", str(secret))
        with as_another_user():
            row = table.row(1)
        assert row is not None
        assert (row.start, row.readable) == (UNKNOWN_START, False)

    @pytest.mark.parametrize(
        ("options", "hidden"),
        [
            pytest.param("rw", False, id="plain"),
            pytest.param("rw,hidepid=invisible", True, id="invisible"),
            pytest.param("rw,hidepid=2", True, id="by its number"),
            pytest.param(f"rw,gid={NOBODY},hidepid=2", False, id="our group exempt"),
        ],
    )
    def test_a_mount_option_hides_processes(
        self, folder: Path, options: str, hidden: bool
    ) -> None:
        others = "".join(
            f"{n} 27 0:9 / /var/lib/overlay/{n} rw - overlay overlay rw,x={'y' * 400}\n"
            for n in range(400)
        )
        line = f"22 27 0:21 / /proc rw,relatime - proc proc {options}\n"
        table = proc(folder, {"self/mountinfo": others + line})
        with as_another_user():
            assert table.hidden() is hidden


def test_the_boot_time_is_found_behind_a_long_line_of_interrupts(
    tmp_path: Path,
) -> None:
    content = f"cpu 1 2\nintr {'0 ' * 100_000}\nctxt 5\nbtime 1000000\n"
    row = Row(pid=1, ppid=0, start=500, state="S")
    ticks = os.sysconf("SC_CLK_TCK")
    assert proc(tmp_path, {"stat": content}).started_at(row) == 1000000 + 500 / ticks


def test_without_a_boot_time_no_start_is_known(tmp_path: Path) -> None:
    row = Row(pid=1, ppid=0, start=500, state="S")
    assert proc(tmp_path, {"stat": "cpu 1 2\n"}).started_at(row) is None


def test_a_look_that_cannot_be_taken_names_its_error(tmp_path: Path) -> None:
    table = proc(tmp_path, {f"{NO_PID}/stat": "", f"{NO_PID}/cmdline": ""})
    with pytest.raises(OSError, match="not the stat") as caught:
        table.row(NO_PID)
    assert caught.value.errno == errno.EIO
