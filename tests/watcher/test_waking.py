"""Outcomes without a sign of life: read once, acknowledged, told again (C9.4)."""

import json
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from policies.wording import phrase
from tests.fakes import until
from tests.watcher.house import House
from watcher import inbox
from watcher.config import Seconds, Wake

GRACE_S = 900.0


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with House(tmp_path) as house:
        yield house


async def release(house: House, *, session: str | None = "s-1", **order: object) -> str:
    """Let a lock be awaited and given back; return the watch's id."""
    house.hold("a")
    watch_id, number = await house.arm("lock a", session=session, **order)
    house.free("a")
    await house.go(31)
    assert await house.told(watch_id, number) == "released"
    await house.idle()
    await until(lambda: house.pings)
    return watch_id


def keys(house: House) -> list[object]:
    return [key for (key,) in house.rows("SELECT key FROM pings ORDER BY id")]


async def test_without_a_sign_of_life_the_operator_is_pinged_once_more(
    house: House,
) -> None:
    watch_id = await release(house)
    assert await house.service.waking.round(house.read) == 0
    await house.clock.advance(GRACE_S + 1)
    assert await house.service.waking.round(house.read) == 1
    first = f"{watch_id}-1-released"
    assert keys(house) == [first, f"{first}-again"]
    body = json.loads(str(house.one("SELECT body FROM pings ORDER BY id DESC LIMIT 1")))
    assert body["message"].startswith("✅ LIBERADO: lock a ")
    assert body["message"].endswith(" — the session gave no sign of life for 15min")
    for _ in range(3):
        await house.clock.advance(GRACE_S)
        assert await house.service.waking.round(house.read) == 0
    assert len(keys(house)) == 2
    events = [event for (event,) in house.rows("SELECT event FROM trail")]
    assert events == ["reminded"]


async def test_a_restart_does_not_ping_again(house: House, tmp_path: Path) -> None:
    await release(house)
    await house.clock.advance(GRACE_S + 1)
    await house.service.waking.round(house.read)
    await house.crash()
    async with House(tmp_path, clock=house.clock) as again:
        assert await again.service.waking.round(again.read) == 0


@pytest.mark.parametrize("sign", ["ack", "arm", "sign"])
async def test_a_sign_of_life_spares_the_second_ping(house: House, sign: str) -> None:
    watch_id = await release(house)
    await house.clock.advance(5)
    now_s = house.clock.wall().timestamp()
    match sign:
        case "ack":
            await house.service.life.acknowledge(watch_id)
        case "arm":
            house.hold("b")
            await house.arm("lock b", session="s-1")
        case _:
            await house.writer.submit(lambda c: inbox.sign_of_life(c, "s-1", now_s))
    assert not inbox.owes_a_sign(house.read, "s-1")
    await house.clock.advance(GRACE_S)
    assert await house.service.waking.round(house.read) == 0
    assert len(keys(house)) == 1


async def test_another_sessions_sign_is_none(house: House) -> None:
    await release(house)
    await house.clock.advance(5)
    now_s = house.clock.wall().timestamp()
    assert await house.writer.submit(lambda c: inbox.sign_of_life(c, "s-2", now_s)) == 0
    await house.clock.advance(GRACE_S)
    assert await house.service.waking.round(house.read) == 1


async def test_a_sign_from_before_the_outcome_is_none(house: House) -> None:
    early_s = house.clock.wall().timestamp()
    await release(house)
    assert (
        await house.writer.submit(lambda c: inbox.sign_of_life(c, "s-1", early_s)) == 0
    )


async def test_whoever_names_no_session_is_pinged_once_only(house: House) -> None:
    await release(house, session=None)
    await house.clock.advance(GRACE_S * 10)
    assert await house.service.waking.round(house.read) == 0


async def test_a_removal_is_told_by_no_ping_at_all(house: House) -> None:
    house.hold("a")
    watch_id, _ = await house.arm(session="s-1")
    await house.service.life.remove(watch_id, phrase("said", text="not needed"))
    assert await house.told(watch_id) == "removed"
    await house.clock.advance(GRACE_S * 2)
    assert await house.service.waking.round(house.read) == 0
    assert keys(house) == []


async def test_a_store_that_refuses_is_asked_again_in_the_next_round(
    house: House,
) -> None:
    await release(house)
    await house.clock.advance(GRACE_S + 1)
    with house.read_only():
        assert await house.service.waking.round(house.read) == 0
    assert len(keys(house)) == 1
    assert await house.service.waking.round(house.read) == 1


async def test_an_outcome_that_cannot_be_read_holds_up_no_other(house: House) -> None:
    await release(house)
    await house.clock.advance(GRACE_S + 1)

    def damage(connection: object) -> None:
        house.connection.execute(
            "INSERT INTO waiters SELECT watch_id, 9, label, resume, session, lang,"
            " ttl_s, armed_at, deadline_at, deadline_boot_s, boot_id, takes, NULL,"
            " state, '{}', NULL, project, 1.0, NULL, NULL, NULL FROM waiters"
        )

    await house.writer.submit(damage)
    assert await house.service.waking.round(house.read) == 1


# the command


def wakes(house: House, *command: str) -> None:
    wake = Wake(grace=Seconds(GRACE_S), command=command)
    house.service.waking._config = replace(house.config, wake=wake)


def woken(house: House) -> list[object]:
    return [
        json.loads(str(detail))
        for (detail,) in house.rows("SELECT detail FROM trail WHERE event = 'woken'")
    ]


async def test_the_session_is_woken_once_by_an_argument_list(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KODER_MONITOR_NOTIFY_KEY", "s3cr3t")
    monkeypatch.setenv("KODER_MONITOR_TOKEN", "s3cr3t")
    project = tmp_path / "pro ject"
    project.mkdir()
    script = (
        "import os,sys,json; json.dump([os.getcwd(), dict(os.environ), sys.argv[1:]],"
        "open(sys.argv[1] + '/said', 'a'))"
    )
    wakes(
        house, sys.executable, "-c", script, str(tmp_path), "{session}", "{resume}|$(x)"
    )
    await release(house, project=str(project), resume="the 'API' work")
    await house.clock.advance(GRACE_S + 1)
    assert await house.service.waking.round(house.read) == 1
    await until(lambda: woken(house) == [0])
    folder, env, words = json.loads((tmp_path / "said").read_text())
    assert folder == str(project.resolve())
    assert words == [str(tmp_path), "s-1", "the 'API' work|$(x)"]
    assert "s3cr3t" not in str(env)
    assert await house.service.waking.round(house.read) == 0
    assert house.one("SELECT count(*) FROM waiters WHERE woken_at IS NOT NULL") == 1


async def test_a_command_that_cannot_run_costs_nothing_but_a_note(house: House) -> None:
    wakes(house, "/nowhere/agent")
    await release(house)
    await house.clock.advance(GRACE_S + 1)
    assert await house.service.waking.round(house.read) == 1
    await until(lambda: woken(house))
    assert "nowhere" in str(woken(house))
    assert len(keys(house)) == 2


async def test_a_command_that_never_ends_is_ended(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watcher.waking._LIMIT_S", 0.1)
    wakes(house, sys.executable, "-c", "import time; time.sleep(600)")
    await release(house)
    await house.clock.advance(GRACE_S + 1)
    await house.service.waking.round(house.read)
    await until(lambda: woken(house) == ["timeout"])


# the inbox


async def test_an_outcome_is_handed_to_its_session_once(house: House) -> None:
    watch_id = await release(house)
    now_s = house.clock.wall().timestamp()

    def take(session: str | None, project: str | None = None) -> list[str]:
        found = inbox.take_unread(
            house.connection, session=session, project=project, now_s=now_s
        )
        return [told.watch_id for told in found]

    assert take("s-2") == []
    assert take(None, "/p") == []
    assert take("s-1") == [watch_id]
    assert take("s-1") == []


async def test_what_named_no_session_is_handed_to_its_project(house: House) -> None:
    watch_id = await release(house, session=None, project="/p")
    now_s = house.clock.wall().timestamp()
    for project, expected in (("/q", []), ("/p", [watch_id]), ("/p", [])):
        found = inbox.take_unread(
            house.connection, session="s-9", project=project, now_s=now_s
        )
        assert [told.watch_id for told in found] == expected
