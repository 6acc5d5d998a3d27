"""What keeps a service going: rounds, outbox, idle end, and its end (C5.1b, C8.1)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from notify import outbox
from tests.fakes import settle, until
from tests.notify.samples import a_ping
from tests.rows import add, add_ping
from tests.watcher.house import House
from watcher.database import open_database
from watcher.errors import StoreError
from watcher.ownership import LocalOwnership
from watcher.serve.hosting import IDLE_S
from watcher.writer import Writer

CHECK_S = 30.0  # how often a service asks itself whether it is idle


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("watcher.keeping.PATIENCE_S", 0.15)
    monkeypatch.setattr("watcher.service.PATIENCE_S", 0.15)
    monkeypatch.setattr("watcher.writer._RETRY_S", 0.02)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with House(tmp_path) as house:
        yield house


def marker_job(house: House, job_id: str, **values: object) -> None:
    at = house.clock.wall().timestamp()
    row: dict[str, object] = {"label": job_id, "started_at": at, "notify_after_s": 60}
    add(house.connection, "jobs", id=job_id, **(row | values))


async def stopped_after(house: House, seconds: float) -> bool:
    """Let idle time pass in the steps in which it is looked at."""
    watching = asyncio.create_task(house.hosting.idle_watch())
    try:
        for _ in range(round(seconds / CHECK_S)):
            await house.clock.advance(CHECK_S)
        await settle()
        return house.hosting.stopped.is_set()
    finally:
        watching.cancel()


# the whole of it


async def test_a_started_service_looks_sends_and_ends_in_good_order(
    house: House,
) -> None:
    house.hold("a")
    await house.hosting.start()
    watch_id, _ = await house.arm()
    house.free("a")
    await house.go(31)
    assert await house.told(watch_id) == "released"
    await until(lambda: house.channel.keys == [f"{watch_id}-1-released"])
    await until(lambda: house.one("SELECT state FROM pings") == "delivered")
    house.hosting.stop()
    await house.hosting.close()
    assert not house.writer._thread.is_alive()
    assert house.service.engine.hosted() == []


async def test_a_send_under_way_at_the_end_is_let_finish(house: House) -> None:
    answer = asyncio.Event()
    send = house.channel.send

    async def slow(ping: object) -> None:
        await send(ping)  # type: ignore[arg-type]  # a ping
        await answer.wait()

    house.channel.send = slow  # type: ignore[method-assign]  # a slow server
    await house.hosting.start()
    at = house.clock.wall().timestamp()
    await house.writer.submit(
        lambda c: outbox.add(c, a_ping(), channels=["fake"], now_s=at, watch_id=None)
    )
    house.service.telling.after_outcome()
    await until(lambda: house.channel.sent)
    closing = asyncio.create_task(house.hosting.close())
    await settle()
    answer.set()
    await closing
    connection, _ = open_database(str(house.state))
    (state,) = connection.execute("SELECT state FROM pings").fetchone()
    connection.close()
    assert state == "delivered"


async def test_a_store_that_is_made_anew_can_be_read_later(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert house.hosting.read is not None
    house.hosting.read.close()
    house.hosting.read = None
    reading = house.hosting.reading()
    assert house.hosting.reading() is reading
    reading.close()
    house.hosting.read = None
    monkeypatch.setattr("watcher.serve.hosting.open_for_reading", lambda _: None)
    with pytest.raises(StoreError):
        house.hosting.reading()


# the idle end


async def test_a_service_on_demand_ends_when_idle_for_ten_minutes(
    house: House,
) -> None:
    assert not await stopped_after(house, IDLE_S)
    assert await stopped_after(house, 2 * CHECK_S)


async def test_a_service_that_a_person_runs_never_ends_by_itself(
    tmp_path: Path,
) -> None:
    async with House(tmp_path, on_demand=False) as house:
        assert not await stopped_after(house, 3 * IDLE_S)


@pytest.mark.parametrize("why", ["armed", "attached", "unsent", "job"])
async def test_a_service_that_is_needed_stays(why: str, house: House) -> None:
    if why == "armed":
        house.hold("a")
        await house.arm(ttl_s=86400)
    if why == "attached":
        house.hosting.requests = 1
    if why == "unsent":
        add_ping(house.connection, "k", at=0)
    if why == "job":
        marker_job(house, "j")
    assert not await stopped_after(house, 2 * IDLE_S)


async def test_a_store_that_cannot_be_read_keeps_no_idle_service_for_ever(
    house: House,
) -> None:
    """The watch for idleness died of it, and the service never ended."""
    assert house.hosting.read is not None
    house.hosting.read.close()
    assert await stopped_after(house, IDLE_S + 2 * CHECK_S)


# the outbox


async def test_who_waits_for_the_first_attempt_gets_it_or_the_limit(
    house: House,
) -> None:
    add_ping(house.connection, "k", at=0, watch_id="a1")
    await house.hosting.first_attempts("b2", 5)
    waiting = asyncio.create_task(house.hosting.first_attempts("a1", 5))
    await house.clock.advance(1)
    assert not waiting.done()
    house.connection.execute("UPDATE pings SET attempts = 1")
    await house.clock.advance(0.1)
    await waiting
    house.connection.execute("UPDATE pings SET attempts = 0")
    waiting = asyncio.create_task(house.hosting.first_attempts("a1", 5))
    await house.clock.advance(6)
    await waiting


async def test_an_outbox_that_cannot_be_had_ends_no_round(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    with house.read_only():
        add_error = house.hosting._drain()
        await add_error
    house.writer.close(5.0)
    await house.hosting._drain()
    assert "outbox.unavailable" in caplog.text


async def test_flushing_makes_everything_due(house: House) -> None:
    at = house.clock.wall().timestamp()
    add_ping(house.connection, "k1", at=at, channel="fake", due_at=at + 900)
    add_ping(house.connection, "k2", at=at, channel="fake", state="dead")
    assert await house.hosting.flush(dead=False) == 1
    assert await house.hosting.flush(dead=True) == 2
    assert house.hosting._outbox_has.is_set()
    with house.locked(), pytest.raises(StoreError):
        await house.hosting.flush(dead=False)


# jobs


async def test_a_job_that_still_runs_is_pinged_once_when_its_time_has_come(
    house: House,
) -> None:
    marker_job(house, "build")
    marker_job(house, "quiet", notify_after_s=None)
    marker_job(house, "done", state="done", ended_at=1.0)
    await house.clock.advance(59)
    await house.hosting._markers()
    assert house.pings == []
    await house.clock.advance(61)
    await asyncio.gather(house.hosting._markers(), house.hosting._markers())
    await house.hosting._markers()
    assert house.pings == ["job-build-running"]
    assert "build ainda rodando após 2min" in str(
        house.one("SELECT body FROM pings")
    ) or ("build" in str(house.one("SELECT body FROM pings")))


# housekeeping


async def test_a_service_that_is_not_the_owner_any_more_stops(house: House) -> None:
    await house.hosting._housekeeping()
    assert not house.hosting.stopped.is_set()
    other = Writer(open_database(str(house.state))[0])
    await LocalOwnership(other).claim()
    await house.hosting._housekeeping()
    assert house.hosting.stopped.is_set()
    assert house.service.stopping.is_set()
    other.close(5.0)


async def test_a_sweep_sets_the_scheduler_to_what_is_due(house: House) -> None:
    house.hold("a")
    await house.hosting._sweep()
    assert house.hosting._scheduler.get_job("due") is None
    await house.arm()
    await house.hosting._sweep()
    assert [job.id for job in house.hosting._scheduler.get_jobs()] == ["due"]
