"""A selftest wakes nobody: its ping goes to the fallback log alone (C9.5)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from notify.dispatcher import SELFTEST
from policies.wording import Lang, phrase
from tests.fakes import settle, until
from tests.watcher.house import House

REASON = phrase("selftest_ping").render(Lang.EN)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with House(tmp_path) as house:
        house.hold("a")
        yield house


def logged(house: House) -> list[str]:
    path = Path(house.config.fallback_log)
    return path.read_text("utf-8").splitlines() if path.exists() else []


def block(house: House) -> None:
    """Put something in the log's place that takes no line."""
    Path(house.config.fallback_log).mkdir()


def channels(house: House) -> list[object]:
    return [name for (name,) in house.rows("SELECT channel FROM pings")]


async def released(house: House, watch_id: str) -> None:
    house.free("a")
    await house.go(31)
    assert await house.told(watch_id) == "released"
    await house.idle()


async def test_its_ping_goes_to_the_log_and_to_no_channel(house: House) -> None:
    watch_id, _ = await house.arm(log_only=True, label="selftest lock 1")
    await released(house, watch_id)
    assert channels(house) == [SELFTEST]
    await house.hosting._drain()
    assert house.one("SELECT state FROM pings") == "delivered"
    [line] = logged(house)
    assert REASON in line
    assert house.channel.sent == []


async def test_somebody_else_who_waits_for_the_same_is_pinged(house: House) -> None:
    watch_id, _ = await house.arm(log_only=True)
    await house.arm()
    await released(house, watch_id)
    assert channels(house) == ["fake"]


async def test_who_joins_to_wake_nobody_silences_nobody_else(house: House) -> None:
    watch_id, _ = await house.arm()
    await house.arm(log_only=True)
    await released(house, watch_id)
    assert channels(house) == ["fake"]


async def test_its_own_expiry_beside_others_of_its_kind_is_logged_only(
    house: House,
) -> None:
    watch_id, _ = await house.arm(log_only=True)
    await house.arm(log_only=True, ttl_s=60)
    await house.go(61)
    assert await house.told(watch_id, 2) == "expired"
    await house.idle()
    assert channels(house) == [SELFTEST]


async def test_a_restart_pings_rather_too_often(house: House, tmp_path: Path) -> None:
    watch_id, _ = await house.arm(log_only=True)
    await house.idle()
    await house.crash()
    async with House(tmp_path, clock=house.clock) as again:
        await released(again, watch_id)
        assert channels(again) == ["fake"]


async def test_without_a_store_it_is_logged_only_as_well(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watcher.keeping.PATIENCE_S", 0.05)
    watch_id, _ = await house.arm(log_only=True)
    await house.idle()
    with house.locked():
        house.free("a")
        await house.go(31)
        assert await house.told(watch_id) == "released"
        await until(lambda: logged(house))
    [line] = logged(house)
    assert REASON in line
    assert house.channel.sent == []


async def test_what_not_even_the_log_takes_comes_into_the_outbox(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watcher.keeping.PATIENCE_S", 0.05)
    monkeypatch.setattr("watcher.writer._RETRY_S", 0.02)
    block(house)
    watch_id, _ = await house.arm(log_only=True)
    await house.idle()
    with house.locked():
        house.free("a")
        await house.go(31)
        assert await house.told(watch_id) == "released"
        await settle()
    await until(lambda: channels(house) == [SELFTEST])
    assert house.channel.sent == []
