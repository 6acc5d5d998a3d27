"""The clock of the machine."""

import asyncio
import importlib.util
import sys
import time
from datetime import UTC, datetime, timedelta
from types import ModuleType

import pytest

from watcher import clock as module
from watcher.clock import SystemClock


def test_the_wall_clock_is_aware_and_in_utc() -> None:
    before = datetime.now(UTC)
    now = SystemClock().wall()
    assert before <= now <= datetime.now(UTC)
    assert now.utcoffset() == timedelta(0)


def test_the_clock_since_boot_counts_at_least_the_time_awake() -> None:
    clock = SystemClock()
    awake, boot = clock.awake(), clock.boot()
    assert boot >= awake > 0


async def test_a_sleep_lasts_as_long_as_asked() -> None:
    clock = SystemClock()
    start = clock.boot()
    await clock.sleep(0.05)
    assert clock.boot() - start >= 0.05


@pytest.mark.parametrize("seconds", [0.0, -1.0])
async def test_a_sleep_of_nothing_is_over_at_once(seconds: float) -> None:
    async with asyncio.timeout(5):
        await SystemClock().sleep(seconds)


async def test_a_sleep_notices_that_the_machine_slept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Suspended(SystemClock):
        slept_s = 0.0

        def boot(self) -> float:
            return super().boot() + self.slept_s

    monkeypatch.setattr(module, "_SLICE_S", 0.01)
    clock = Suspended()
    sleep = asyncio.create_task(clock.sleep(3600))
    await asyncio.sleep(0.03)
    assert not sleep.done()
    clock.slept_s = 7200
    async with asyncio.timeout(5):
        await sleep


@pytest.mark.parametrize("seconds", [365 * 86400.0, 1e10, 1e30])
async def test_no_sleep_is_too_long_for_a_timer(seconds: float) -> None:
    sleep = asyncio.create_task(SystemClock().sleep(seconds))
    await asyncio.sleep(0.01)
    assert not sleep.done()
    sleep.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sleep


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        pytest.param("<-03>3", -3, id="west"),
        pytest.param("<+0530>-5:30", 5.5, id="half an hour"),
        pytest.param(":bogus", 0, id="a zone that does not exist"),
        pytest.param("", 0, id="no zone"),
    ],
)
def test_the_zone_is_the_system_s_and_utc_where_it_has_none(
    monkeypatch: pytest.MonkeyPatch, name: str, hours: float
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", name)
        time.tzset()
        zone = SystemClock().zone()
    time.tzset()
    assert zone.utcoffset(None) == timedelta(hours=hours)


def load_as(platform: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Load the module's file once more, as on another system."""
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(time, "CLOCK_UPTIME_RAW", 8, raising=False)
    spec = importlib.util.spec_from_file_location("clock_elsewhere", module.__file__)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_on_macos_the_monotonic_clock_counts_sleep_and_the_uptime_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded = load_as("darwin", monkeypatch)
    assert loaded._BOOT_CLOCK == time.CLOCK_MONOTONIC
    assert loaded._AWAKE_CLOCK == 8
