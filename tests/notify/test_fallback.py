"""The last resort: one line a ping, whole, or an error that says why (C6.4)."""

import fcntl
import os
import re
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from notify.channels.fallback import FallbackLog
from notify.errors import FallbackError
from policies.model import Severity
from tests.e2e.command import steering
from tests.notify.samples import ZONE, a_ping
from tests.watcher.rights import as_another_user, open_folder

LINE = (
    "2026-03-01T09:00:05-03:00 info 4f1c-1-released (no channel) "
    "lock demo liberado: a mensagem\n"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "release-pings.log"


def append(path: Path, message: str = "a mensagem", reason: str = "no channel") -> None:
    FallbackLog(str(path), ZONE).append(a_ping(message), reason)


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines(keepends=True)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_ping_is_one_line_with_all_that_is_to_know(path: Path) -> None:
    append(path)
    assert path.read_text("utf-8") == LINE


def test_pings_are_added_and_nothing_is_taken_away(path: Path) -> None:
    append(path, "um")
    append(path, "dois")
    append(path, "três")
    assert [line.rpartition(": ")[2] for line in lines(path)] == [
        "um\n",
        "dois\n",
        "três\n",
    ]


@pytest.mark.parametrize("severity", Severity)
def test_the_severity_stands_in_the_line(severity: Severity, path: Path) -> None:
    FallbackLog(str(path), ZONE).append(a_ping(severity=severity), "why")
    assert f" {severity} 4f1c-1-released (why) " in path.read_text("utf-8")


def test_only_the_owner_can_read_what_is_made(path: Path) -> None:
    before = os.umask(0)
    try:
        append(path)
    finally:
        os.umask(before)
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)


def test_a_log_that_exists_keeps_its_mode(path: Path) -> None:
    path.parent.mkdir(mode=0o755)
    path.touch(0o640)
    append(path)
    assert (mode(path), mode(path.parent)) == (0o640, 0o755)


def test_a_text_with_line_breaks_and_escapes_stays_one_line(path: Path) -> None:
    hostile = "a\nb\r\x1b]0;x\x07\u2028\u202e\x9b31m\udcff\0"
    ping = a_ping(hostile, title=hostile)
    FallbackLog(str(path), ZONE).append(ping, hostile)
    (line,) = lines(path)
    assert steering(line.removesuffix("\n")) == []
    assert line.count(r"a\nb\r\x1b]0;x\x07\u2028\u202e\x9b31m\xff\x00") == 3


def test_the_whole_message_is_kept_however_long(path: Path) -> None:
    message = "日" * 300_000 + " fim"
    append(path, message)
    assert path.read_text("utf-8").endswith(f": {message}\n")


def test_a_relative_path_of_one_name_is_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    append(Path("pings.log"))
    assert (tmp_path / "pings.log").read_text("utf-8") == LINE


# several writers

WRITER = """\
import sys
from datetime import UTC, datetime
from notify.channels.fallback import FallbackLog
from policies.model import Ping, Severity

path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
log, now = FallbackLog(path, UTC), datetime.now(UTC)
print("ready", flush=True)
sys.stdin.readline()
for number in range(count):
    # Some of them longer than a page, which is not written in one go everywhere.
    message = f"<{name}-{number}>" + "x" * (number % 7 * 3000) + "<end>"
    ping = Ping(
        idempotency_key="k",
        title="t",
        message=message,
        severity=Severity.INFO,
        occurred_at=now,
    )
    log.append(ping, "no channel")
"""


def test_lines_of_several_processes_stay_whole(path: Path) -> None:
    writers, count = 4, 50
    children = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(name), str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for name in range(writers)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"\n")
        child.stdin.flush()
    for child in children:
        child.communicate(timeout=30)
        assert child.returncode == 0
    whole = re.compile(r"\S+ info \S+ \(no channel\) [^:]+: <(\d+-\d+)>(x*)<end>\n")
    found = [whole.fullmatch(line) for line in lines(path) if line != "\n"]
    names = [match[1] for match in found if match]
    assert len(found) == len(names) == writers * count
    assert set(names) == {f"{w}-{n}" for w in range(writers) for n in range(count)}


def test_somebody_who_sits_on_the_lock_is_not_waited_for(path: Path) -> None:
    append(path)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        append(path)
    assert lines(path) == [LINE, LINE]


# a line cut short


@pytest.mark.parametrize(
    "rest", [b"2026-03-01T09:00:05 half a li", b"\xe6\x97", b"\0"], ids=repr
)
def test_behind_a_line_cut_short_the_next_begins_on_its_own(
    rest: bytes, path: Path
) -> None:
    path.parent.mkdir()
    path.write_bytes(rest)
    append(path)
    append(path)
    assert path.read_bytes() == rest + b"\n" + 2 * LINE.encode()


@contextmanager
def file_limit(size: int) -> Iterator[None]:
    """Let no file grow beyond `size`: a full disk that needs no mount."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_line_that_finds_no_room_is_an_error_and_the_next_is_whole(
    path: Path,
) -> None:
    append(path)
    with file_limit(len(LINE) + 20), pytest.raises(FallbackError, match=str(path)):
        append(path)
    assert path.read_bytes() == (LINE + LINE[:20]).encode()
    append(path)
    assert path.read_text("utf-8") == LINE + LINE[:20] + "\n" + LINE


# what is no file


def test_a_full_device_is_an_error_that_names_it() -> None:
    with pytest.raises(FallbackError) as caught:
        append(Path("/dev/full"))
    assert str(caught.value) == "/dev/full: No space left on device"


def test_a_pipe_that_nobody_reads_is_an_error_and_nothing_waits(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FallbackError, match="No such device or address"):
        append(pipe)


def test_a_pipe_that_somebody_reads_takes_the_line(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        append(pipe)
        assert os.read(reader, 4096) == LINE.encode()
    finally:
        os.close(reader)


def test_a_pipe_whose_reader_stopped_is_an_error_and_nothing_waits(
    tmp_path: Path,
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(FallbackError):
            append(pipe, "x" * 1_000_000)
    finally:
        os.close(reader)


def test_a_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FallbackError, match="Is a directory"):
        append(tmp_path)


def test_a_folder_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FallbackError, match=r"Not a directory|File exists"):
        append(tmp_path / "file" / "pings.log")


def test_a_link_in_a_circle_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(FallbackError, match="symbolic links"):
        append(tmp_path / "link")


def test_a_folder_that_may_not_be_written_is_an_error() -> None:
    with open_folder() as folder:
        folder.chmod(0o555)
        with as_another_user(), pytest.raises(FallbackError, match="Permission denied"):
            append(folder / "pings.log")
        assert list(folder.iterdir()) == []


def test_a_log_that_may_only_be_written_takes_the_line() -> None:
    with open_folder() as folder:
        path = folder / "pings.log"
        path.touch()
        path.chmod(0o222)
        with as_another_user():
            append(path)
        path.chmod(0o644)
        assert path.read_text("utf-8") == LINE


def test_an_error_keeps_its_cause(tmp_path: Path) -> None:
    with pytest.raises(FallbackError) as caught:
        append(tmp_path)
    assert isinstance(caught.value.__cause__, OSError)
