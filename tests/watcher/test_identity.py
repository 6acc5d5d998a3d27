"""Who a process is, and the descriptors that tell its end."""

import os
import threading
from collections.abc import Iterator

import pytest

from policies.model import Json
from tests.e2e.command import until
from tests.watcher.rights import open_files
from tests.watcher.work import leaderless, working
from watcher.identity import ExitDescriptors, Identity
from watcher.procfs import ProcFs

MOST = 64


@pytest.fixture
def exits() -> Iterator[ExitDescriptors]:
    """Give an empty collection that is closed with the test."""
    before = open_files()
    exits = ExitDescriptors()
    yield exits
    exits.close()
    assert exits.fds() == {}
    assert open_files() <= before


def identity(pid: int, boot: str = "boot") -> Identity:
    row = ProcFs().row(pid)
    assert row is not None
    return Identity(boot, pid, row.start)


def test_an_identity_survives_json() -> None:
    who = Identity("5f0c", 42, 1234)
    assert Identity.from_json(who.as_json()) == who


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(None, id="nothing"),
        pytest.param("5f0c", id="a text"),
        pytest.param([], id="a list"),
        pytest.param({}, id="an empty object"),
        pytest.param({"boot_id": "5f0c", "pid": 42}, id="no start"),
        pytest.param({"boot_id": "5f0c", "start_ticks": 1}, id="no pid"),
        pytest.param({"pid": 42, "start_ticks": 1}, id="no boot"),
        pytest.param(
            {"boot_id": "5f0c", "pid": "42", "start_ticks": 1}, id="a pid in quotes"
        ),
    ],
)
def test_what_is_no_identity_is_none(value: Json) -> None:
    assert Identity.from_json(value) is None


def test_a_descriptor_tells_the_end_of_its_process(exits: ExitDescriptors) -> None:
    with working() as work:
        who = identity(work.pid)
        exits.hold(who, ProcFs())
        assert list(exits.fds()) == [who]
        assert exits.ended(who) is False
        work.let_end()
        until(lambda: exits.ended(who))


def test_a_zombie_has_ended_and_so_has_one_that_is_gone(
    exits: ExitDescriptors,
) -> None:
    with working() as work:
        who = identity(work.pid)
        exits.hold(who, ProcFs())
        work.end_as_zombie()
        assert exits.ended(who) is True
        work.end()
        assert exits.ended(who) is True


def test_a_zombie_whose_other_threads_run_has_not_ended(
    exits: ExitDescriptors,
) -> None:
    with leaderless() as work:
        who = identity(work.pid)
        exits.hold(who, ProcFs())
        assert exits.ended(who) is not True
        work.end()
        assert exits.ended(who) is not False


def test_holding_twice_takes_one_descriptor(exits: ExitDescriptors) -> None:
    before = open_files()
    exits.hold(identity(os.getpid()), ProcFs())
    exits.hold(identity(os.getpid()), ProcFs())
    assert open_files() <= before + 1


def ended_pid() -> int:
    with working() as work:
        return work.pid


@pytest.mark.parametrize("what", ["another start", "gone", "a thread", "no pidfd_open"])
def test_without_a_descriptor_nothing_is_said(
    exits: ExitDescriptors, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    me = identity(os.getpid())
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    try:
        assert thread.native_id is not None
        who = {
            "another start": Identity("boot", me.pid, me.start - 1),
            "gone": Identity("boot", ended_pid(), me.start),
            "a thread": identity(thread.native_id),
            "no pidfd_open": me,
        }[what]
        if what == "no pidfd_open":
            monkeypatch.delattr(os, "pidfd_open")
        before = open_files()
        exits.hold(who, ProcFs())
        assert exits.ended(who) is None
        assert exits.fds() == {}
        assert open_files() <= before
    finally:
        release.set()
        thread.join()


def test_there_is_a_limit_to_the_descriptors(exits: ExitDescriptors) -> None:
    everybody = [identity(os.getpid(), boot=f"boot-{i}") for i in range(MOST + 6)]
    for who in everybody:
        exits.hold(who, ProcFs())
    assert list(exits.fds()) == everybody[:MOST]
    assert exits.ended(everybody[-1]) is None


def test_the_descriptors_of_all_others_are_closed(exits: ExitDescriptors) -> None:
    one, two = (identity(os.getpid(), boot) for boot in ("one", "two"))
    for who in (one, two):
        exits.hold(who, ProcFs())
    closed = exits.fds()[one]
    exits.keep_only([two])
    assert list(exits.fds()) == [two]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(closed)


def test_what_is_given_out_does_not_change_what_is_held(
    exits: ExitDescriptors,
) -> None:
    exits.hold(identity(os.getpid()), ProcFs())
    exits.fds().clear()
    assert len(exits.fds()) == 1
