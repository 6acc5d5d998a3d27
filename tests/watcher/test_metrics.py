"""What the service counts, and how Prometheus reads it (C10.1)."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import pytest
from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_MAX_INSTANCES, JobEvent
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from policies.delivery import Answer
from policies.model import Ending
from policies.wording import phrase
from tests.fakes import FakeClock, until
from tests.notify.samples import a_ping
from tests.rows import add_ping
from tests.watcher.house import House
from watcher import __version__
from watcher.database import NAME
from watcher.metrics import BOUNDS_S, Metrics, Spread
from watcher.offload import HungError
from watcher.serve import metrics
from watcher.views import DAY_S

Labels = frozenset[tuple[str, str]]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with House(tmp_path) as house:
        yield house


async def scrape(house: House) -> dict[str, dict[Labels, float]]:
    """Return the samples by name and labels."""
    answer = await metrics.answer(house.hosting)
    assert answer.headers["content-type"] == metrics.CONTENT_TYPE
    found: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(bytes(answer.body).decode()):
        found.setdefault(family.name, {})
        for sample in family.samples:
            labels = frozenset(sample.labels.items())
            found.setdefault(sample.name, {})[labels] = sample.value
    return {
        name.removeprefix("koder_monitor_"): samples for name, samples in found.items()
    }


def of(**labels: str) -> Labels:
    return frozenset(labels.items())


async def release(house: House) -> str:
    house.hold("a")
    watch_id, _ = await house.arm()
    await house.go(31)
    house.free("a")
    await house.go(31)
    assert await house.told(watch_id) == "released"
    await house.idle()
    return watch_id


# what is counted


async def test_looks_outcomes_and_their_latency_are_counted(house: House) -> None:
    await release(house)
    found = await scrape(house)
    assert found["probes_total"][of(kind="lock", observation="held")] == 2
    assert found["probes_total"][of(kind="lock", observation="released")] == 2
    assert found["outcomes_total"] == {of(kind="lock", outcome="released"): 1}
    assert found["release_to_line_seconds_count"] == {of(kind="lock"): 1}
    assert found["watches"] == {of(kind="lock", state="released"): 1}


async def test_each_waiter_of_a_watch_counts_as_told(house: House) -> None:
    house.hold("a")
    watch_id, _ = await house.arm()
    await house.arm(ttl_s=60)
    await house.go(61)
    assert await house.told(watch_id, 2) == "expired"
    found = await scrape(house)
    assert found["outcomes_total"] == {of(kind="lock", outcome="expired"): 1}
    assert found["release_to_line_seconds"] == {}
    house.free("a")
    await house.go(31)
    assert await house.told(watch_id) == "released"
    found = await scrape(house)
    assert found["outcomes_total"] == {
        of(kind="lock", outcome="expired"): 1,
        of(kind="lock", outcome="released"): 1,
    }


async def test_time_without_sight_is_counted_and_who_is_blind_is_shown(
    house: House,
) -> None:
    house.hold("a")
    house.hold("b")
    await house.arm()
    await house.idle()
    hidden = house.locks.rename(house.folder / "hidden")
    house.locks.write_text("not a directory")
    (hidden / "lock-a.md").rename(house.folder / "gone")
    await house.arm("lock b")
    await house.go(61)
    found = await scrape(house)
    watches = found["blind_watches"][of(kind="lock", host="")]
    seconds = found["unknown_seconds_total"][of(kind="lock")]
    looks = found["probes_total"].get(of(kind="lock", observation="unknown"), 0)
    blind = [w for w in house.service.engine.hosted() if w.blind]
    assert watches == len(blind) > 0
    assert seconds == sum(w.unknown_s for w in house.service.engine.hosted()) > 0
    assert looks > 1


async def test_a_look_that_hangs_is_counted(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(*look: object) -> NoReturn:
        raise HungError

    monkeypatch.setattr("watcher.looking.OnThread.take", hang)
    house.hold("a")
    await house.arm()
    await house.idle()
    found = await scrape(house)
    assert found["probes_hung_total"] == {of(kind="lock"): 1}
    assert found["probes_total"] == {of(kind="lock", observation="unknown"): 1}


async def test_attempts_and_the_time_to_delivery_are_counted(house: House) -> None:
    await release(house)
    house.channel.fails = True
    await house.hosting._drain()
    found = await scrape(house)
    later = of(channel="fake", answer="try_later")
    assert found["delivery_attempts_total"] == {later: 1}
    assert found["line_to_delivery_seconds"] == {}
    assert found["pings"] == {of(channel="fake", state="pending"): 1}
    assert found["pings_unrecorded"] == {of(): 0}  # the fallback log has it
    await house.clock.advance(40)
    assert (await scrape(house))["outbox_oldest_seconds"][of()] >= 40
    house.channel.fails = False
    await house.hosting._drain()
    found = await scrape(house)
    delivered = of(channel="fake", answer="delivered")
    assert found["delivery_attempts_total"] == {later: 1, delivered: 1}
    assert found["line_to_delivery_seconds_sum"][of(channel="fake")] >= 40
    assert found["pings"] == {of(channel="fake", state="delivered"): 1}
    assert found["outbox_oldest_seconds"][of()] == 0


async def test_a_ping_that_nothing_has_taken_shows(house: House) -> None:
    add_ping(house.connection, "k", at=1.0, channel="fake", attempts=1)
    assert (await scrape(house))["pings_unrecorded"] == {of(): 1}


async def test_a_ping_past_the_outbox_is_counted_from_its_own_time() -> None:
    clock = FakeClock()
    counted = Metrics(clock)
    ping = replace(a_ping(), occurred_at=clock.wall() - timedelta(seconds=3))
    counted.attempted("log", ping, Answer.DELIVERED, None)
    counted.attempted("log", ping, Answer.REFUSED, None)
    assert counted.counts.to_delivery["log"].sum_s == pytest.approx(3)
    assert sum(counted.counts.to_delivery["log"].counts) == 1


async def test_an_outcome_that_no_look_brought_has_no_latency(house: House) -> None:
    house.hold("a")
    await house.arm()
    hosted = next(iter(house.service._watches.hosted.values()))
    ended = hosted.ended(Ending.RELEASED, house.clock.wall())
    house.service.metrics.told(ended)
    found = await scrape(house)
    assert found["outcomes_total"] == {of(kind="lock", outcome="released"): 1}
    assert found["release_to_line_seconds"] == {}


async def test_rounds_that_are_skipped_or_fail_are_counted(house: House) -> None:
    house.hosting._missed(JobEvent(EVENT_JOB_MAX_INSTANCES, "drain", "default"))
    house.hosting._missed(JobEvent(EVENT_JOB_ERROR, "sweep", "default"))
    found = await scrape(house)
    assert found["rounds_skipped_total"] == {of(round="drain"): 1}
    assert found["rounds_failed_total"] == {of(round="sweep"): 1}


async def test_a_round_that_breaks_down_is_counted_by_its_name(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken() -> None:
        raise RuntimeError

    monkeypatch.setattr(house.hosting, "_markers", broken)
    broken.__name__ = "_markers"
    await house.hosting.start()
    await until(lambda: house.service.metrics.counts.failed["markers"])
    await house.hosting.close()


# what is there now


async def test_it_says_what_runs_and_how_it_is(house: House) -> None:
    found = await scrape(house)
    assert found["info"] == {of(version=__version__): 1}
    assert found["degraded"] == {of(): 0}
    assert found["store_readable"] == {of(): 1}
    assert found["overdue_seconds"] == {of(): 0}
    house.service._keeping.degraded = phrase("no_channel")
    assert (await scrape(house))["degraded"] == {of(): 1}


async def test_a_look_that_is_overdue_shows(house: House) -> None:
    house.hold("a")
    await house.arm()
    await house.idle()
    for watch in house.service.engine.hosted():
        house.service.engine._set_due(watch, house.clock.boot() - 7)
    assert (await scrape(house))["overdue_seconds"] == {of(): 7}


async def test_what_ended_more_than_a_day_ago_is_left_out(house: House) -> None:
    await release(house)
    await house.clock.advance(DAY_S + 1)
    assert (await scrape(house))["watches"] == {}


@pytest.mark.parametrize("damage", ["gone", "torn"])
async def test_without_a_store_all_the_rest_is_said(house: House, damage: str) -> None:
    await release(house)
    if damage == "torn":
        house.connection.execute("DROP TABLE pings")
    else:
        (house.state / NAME).unlink()
    found = await scrape(house)
    assert found["store_readable"] == {of(): 0}
    assert found["outcomes_total"] == {of(kind="lock", outcome="released"): 1}
    assert "pings" not in found


async def test_it_is_written_down_beside_the_loop(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    going, written = threading.Event(), metrics._written

    def slow(shot: metrics.Shot, state: str) -> bytes:
        assert going.wait(20)
        return written(shot, state)

    monkeypatch.setattr(metrics, "_written", slow)
    asked = asyncio.create_task(scrape(house))
    await release(house)  # the looks go on
    going.set()
    assert (await asked)["outcomes"] == {}  # as it was when it was asked


async def test_two_services_count_apart(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    async with House(one) as first, House(two) as second:
        await release(first)
        assert (await scrape(first))["outcomes_total"]
        assert (await scrape(second))["outcomes"] == {}


# latencies


@given(st.lists(st.floats(-10, 1000)))
def test_every_latency_is_in_one_bucket_below_its_bound(seconds: list[float]) -> None:
    spread = Spread()
    for value in seconds:
        spread.add(value)
    assert sum(spread.counts) == len(seconds)
    assert spread.sum_s == pytest.approx(sum(max(value, 0) for value in seconds))
    for number, bound in enumerate(BOUNDS_S):
        below = sum(max(value, 0) <= bound for value in seconds)
        assert sum(spread.counts[: number + 1]) == below


# start-up


def test_nobody_pays_for_the_library_before_somebody_asks() -> None:
    script = (
        "import sys, watcher.serve.main;"
        "print([m for m in sys.modules if m.startswith('prometheus')])"
    )
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert said.stdout == "[]\n"
