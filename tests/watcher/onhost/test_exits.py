import errno
import fcntl
import os
import platform
import re
from collections.abc import Iterator

import pytest

from policies.wording import TEXTS
from tests.fakes import until
from tests.watcher.onhost.others import Child, child_of_another, start_of, state_of
from tests.watcher.rights import NOBODY, as_another_user, open_files
from watcher.onhost import exits
from watcher.onhost.exits import Exits, ended_as, known_status


def kernel() -> tuple[int, int]:
    numbers = re.findall(r"\d+", platform.release())
    return int(numbers[0]), int(numbers[1])


TELLS_REAPED = kernel() >= (6, 15)
"""Whether the kernel tells others how a process ended that is gone."""


@pytest.fixture
def child() -> Iterator[Child]:
    with child_of_another() as child:
        yield child


@pytest.fixture
def held() -> Iterator[Exits]:
    files = open_files()
    held = Exits()
    yield held
    held.close()
    assert open_files() <= files


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    exits._known.clear()
    yield
    exits._known.clear()


async def ended(child: Child) -> None:
    await until(lambda: state_of(child.pid) == "Z")


@pytest.mark.parametrize(
    ("how", "status"), [("exit 0", 0), ("exit 7", 7 << 8), ("kill -9 $$", 9)]
)
async def test_it_tells_how_a_process_ended_that_nobody_has_reaped(
    child: Child, held: Exits, how: str, status: int
) -> None:
    assert held.hold(child.pid, child.start) is True
    assert held.poll() == []
    assert held.status(child.pid, child.start) is None
    child.end(how)
    await ended(child)
    assert held.poll() == [(child.pid, child.start, status)]
    assert held.poll() == []
    assert known_status(child.pid, child.start) == status


@pytest.mark.parametrize(
    ("how", "status"), [("exit 0", 0), ("exit 7", 7 << 8), ("kill -9 $$", 9)]
)
async def test_it_tells_how_a_process_ended_that_is_gone(
    child: Child, held: Exits, how: str, status: int
) -> None:
    held.hold(child.pid, child.start)
    child.end(how)
    child.reap()
    told = status if TELLS_REAPED else None
    assert held.poll() == [(child.pid, child.start, told)]
    assert known_status(child.pid, child.start) == told


async def test_a_zombie_that_was_never_held_has_a_status(child: Child) -> None:
    child.end("exit 3")
    await ended(child)
    assert known_status(child.pid, child.start) == 3 << 8
    assert known_status(child.pid, child.start + 1) is None
    child.reap()
    assert known_status(child.pid, child.start) is None


@pytest.mark.parametrize("how", ["exit 0", "exit 7"])
async def test_another_users_zombie_tells_nothing_instead_of_success(
    child: Child, held: Exits, how: str
) -> None:
    status = int(how.split()[1]) << 8
    held.hold(child.pid, child.start)
    child.end(how)
    await ended(child)
    with as_another_user():
        told = None if os.geteuid() == NOBODY else status
        assert held.poll() == [(child.pid, child.start, told)]
        assert known_status(child.pid, child.start) == told
        child.reap()
        told = status if TELLS_REAPED else told
        assert known_status(child.pid, child.start) == told


def test_what_lives_has_no_status(child: Child, held: Exits) -> None:
    assert known_status(child.pid, child.start) is None
    held.hold(child.pid, child.start)
    assert held.status(child.pid, child.start) is None


def test_a_reused_pid_is_an_end(child: Child, held: Exits) -> None:
    assert held.hold(child.pid, child.start + 1) is False
    assert held.fds() == []


def test_one_whose_start_is_not_known_says_nothing(child: Child, held: Exits) -> None:
    assert held.hold(child.pid, -1) is None


def test_a_process_that_is_gone_is_an_end(child: Child, held: Exits) -> None:
    child.end("exit 0")
    child.reap()
    assert held.hold(child.pid, child.start) is False


def test_one_that_goes_while_it_is_taken_is_an_end(
    child: Child, held: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(pid: int) -> str:
        child.end("exit 0")
        child.reap()
        raise ProcessLookupError

    monkeypatch.setattr(exits, "_stat", gone)
    assert held.hold(child.pid, child.start) is False


def test_one_that_may_not_be_looked_at_says_nothing(
    child: Child, held: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hidden(pid: int) -> str:
        raise PermissionError

    monkeypatch.setattr(exits, "_stat", hidden)
    assert held.hold(child.pid, child.start) is None
    assert held.fds() == []


def test_without_such_descriptors_nothing_is_held(
    child: Child, held: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    assert held.hold(child.pid, child.start) is None


def test_where_no_descriptor_is_left_nothing_is_held(
    child: Child, held: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(pid: int) -> int:
        raise OSError(errno.EMFILE, "too many")

    monkeypatch.setattr(os, "pidfd_open", full)
    assert held.hold(child.pid, child.start) is None


def test_it_holds_a_bounded_number_once_each(
    child: Child, held: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exits, "_MOST_HELD", 1)
    assert held.hold(child.pid, child.start) is True
    assert held.hold(child.pid, child.start) is True
    assert held.hold(os.getpid(), start_of(os.getpid())) is None
    assert len(held.fds()) == 1


async def test_what_is_given_up_stays_known(child: Child, held: Exits) -> None:
    me = (os.getpid(), start_of(os.getpid()))
    held.hold(child.pid, child.start)
    held.hold(*me)
    child.end("exit 4")
    await ended(child)
    assert held.ended(child.pid, child.start)
    assert not held.ended(*me)
    held.keep_only([me])
    assert not held.ended(child.pid, child.start)
    assert len(held.fds()) == 1
    child.reap()
    assert known_status(child.pid, child.start) == 4 << 8


def test_only_the_last_statuses_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exits, "_MOST_KNOWN", 2)
    for number in range(3):
        exits._remember((999_999_990 + number, 1), number << 8)
    known = [known_status(999_999_990 + number, 1) for number in range(3)]
    assert known == [None, 1 << 8, 2 << 8]


def test_an_older_kernel_tells_nothing_of_what_is_gone(
    child: Child, held: Exits, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> bytes:
        raise OSError(errno.ENOTTY, "no such request")

    monkeypatch.setattr(fcntl, "ioctl", refused)
    held.hold(child.pid, child.start)
    child.end("exit 4")
    child.reap()
    assert held.poll() == [(child.pid, child.start, None)]
    assert known_status(child.pid, child.start) is None


@pytest.mark.parametrize(
    ("status", "result", "decided"),
    [
        (0, "PASS", ["exit_code", {"code": 0}]),
        (7 << 8, "FAIL", ["exit_code", {"code": 7}]),
        (255 << 8, "FAIL", ["exit_code", {"code": 255}]),
        (9, "DIED", ["exit_signal", {"signal": "SIGKILL"}]),
        (11 | 0x80, "DIED", ["exit_signal", {"signal": "SIGSEGV"}]),
        (63, "DIED", ["exit_signal", {"signal": "63"}]),
    ],
)
def test_a_wait_status_is_a_result_and_a_sentence(
    status: int, result: str, decided: list[object]
) -> None:
    assert ended_as(status) == {"result": result, "decided": decided}
    assert decided[0] in TEXTS
