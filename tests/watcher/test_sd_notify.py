"""What systemd is told, over a real socket (C10.2, sd_notify(3))."""

import asyncio
import os
import select
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import FakeClock, settle
from tests.watcher.house import House
from watcher.clock import SystemClock
from watcher.sd_notify import SdNotify


class Systemd:
    """The socket that a unit of `Type=notify` is given."""

    def __init__(self, address: str) -> None:
        self.name = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + address[1:] if address[0] == "@" else address)
        self._socket.setblocking(False)

    def heard(self) -> list[str]:
        """Return what was said since the last time."""
        said = []
        while select.select([self._socket], [], [], 0)[0]:
            said.append(self._socket.recv(4096).decode())
        return said

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["path", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Systemd]:
    abstract = f"@koder-monitor-test-{os.getpid()}-{time.monotonic_ns()}"
    socket = tmp_path / "notify"
    systemd = Systemd(abstract if request.param == "abstract" else str(socket))
    yield systemd
    systemd.close()


def test_what_is_told_arrives(systemd: Systemd) -> None:
    env = {"NOTIFY_SOCKET": systemd.name}
    notify = SdNotify(env)
    notify.tell("READY=1")
    notify.tell("STOPPING=1")
    assert systemd.heard() == ["READY=1", "STOPPING=1"]


def test_what_is_started_by_us_has_none_of_it() -> None:
    env = {
        "NOTIFY_SOCKET": "/nowhere",
        "WATCHDOG_USEC": "1000",
        "WATCHDOG_PID": "1",
        "HOME": "/",
    }
    SdNotify(env)
    assert env == {"HOME": "/"}


@pytest.mark.parametrize("address", ["", "/nowhere/at/all", "@nobody-listens-here"])
def test_nobody_who_listens_is_no_fault(address: str) -> None:
    SdNotify({"NOTIFY_SOCKET": address}).tell("READY=1")


def test_a_socket_that_is_full_holds_nobody_up(systemd: Systemd) -> None:
    notify = SdNotify({"NOTIFY_SOCKET": systemd.name})
    for _ in range(5000):
        notify.tell("WATCHDOG=1")
    assert set(systemd.heard()) == {"WATCHDOG=1"}


OURS = str(os.getpid())


@pytest.mark.parametrize(
    ("env", "every_s"),
    [
        ({"WATCHDOG_USEC": "60000000"}, 30.0),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": OURS}, 30.0),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": ""}, None),
        ({}, None),
    ],
)
def test_the_watchdog_is_fed_twice_in_its_time(
    env: dict[str, str], every_s: float | None
) -> None:
    assert SdNotify({"NOTIFY_SOCKET": "/x", **env}).every_s == every_s
    assert SdNotify(dict(env)).every_s is None  # nobody to tell


def dog(systemd: Systemd, seconds: float) -> SdNotify:
    limit = str(round(seconds * 1_000_000))
    return SdNotify({"NOTIFY_SOCKET": systemd.name, "WATCHDOG_USEC": limit})


async def test_without_a_watchdog_nothing_is_said(systemd: Systemd) -> None:
    await SdNotify({"NOTIFY_SOCKET": systemd.name}).keep_alive(
        FakeClock(), lambda _: True
    )
    assert systemd.heard() == []


async def test_the_watchdog_starves_while_the_looks_stand_still(
    systemd: Systemd, tmp_path: Path
) -> None:
    async with House(tmp_path) as house:
        await house.hosting._sweep()
        feeding = asyncio.create_task(
            dog(systemd, 60).keep_alive(house.clock, house.hosting.sweeps)
        )
        await settle()
        assert systemd.heard() == ["WATCHDOG=1"]
        await house.clock.advance(29)
        await house.hosting._sweep()
        await house.clock.advance(1)
        assert systemd.heard() == ["WATCHDOG=1"]
        await house.clock.advance(90)
        await settle()
        assert systemd.heard() == []
        await house.hosting._sweep()
        await house.clock.advance(30)
        await settle()
        feeding.cancel()


async def test_the_watchdog_lives_again_when_the_looks_go_on(
    systemd: Systemd, tmp_path: Path
) -> None:
    async with House(tmp_path) as house:
        notify = dog(systemd, 60)
        await house.clock.advance(100)
        feeding = asyncio.create_task(
            notify.keep_alive(house.clock, house.hosting.sweeps)
        )
        await settle()
        assert systemd.heard() == []
        await house.clock.advance(29)
        await house.hosting._sweep()
        await house.clock.advance(1)
        await settle()
        assert systemd.heard() == ["WATCHDOG=1"]
        feeding.cancel()


async def test_a_short_watchdog_does_not_outrun_the_rounds(
    systemd: Systemd, tmp_path: Path
) -> None:
    async with House(tmp_path) as house:
        await house.hosting._sweep()
        await house.clock.advance(5)  # the round's own time
        assert house.hosting.sweeps(0.5)
        await house.clock.advance(6)
        assert not house.hosting.sweeps(0.5)


async def test_the_watchdog_starves_while_the_loop_is_blocked(
    systemd: Systemd,
) -> None:
    notify, clock = dog(systemd, 0.02), SystemClock()
    feeding = asyncio.create_task(notify.keep_alive(clock, lambda _: True))
    await clock.sleep(0.05)
    assert set(systemd.heard()) == {"WATCHDOG=1"}
    time.sleep(0.2)  # noqa: ASYNC251 - this is what blocks it
    assert systemd.heard() == []
    feeding.cancel()
