"""Watches of one store: told once, never before it is stored (C5, C6)."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from policies.model import Sight
from policies.wording import Lang, phrase
from tests.fakes import settle, until
from tests.rows import add_watch, opened
from tests.watcher.house import House, following
from watcher.conditions.lock import LockCondition
from watcher.database import open_database
from watcher.errors import StoreError, UsageError
from watcher.ownership import LocalOwnership, LostError
from watcher.taking import lock_entry
from watcher.writer import Writer

HOUR_S = 3600


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("watcher.keeping.PATIENCE_S", 0.15)
    monkeypatch.setattr("watcher.service.PATIENCE_S", 0.15)
    monkeypatch.setattr("watcher.arming._FIRST_LOOK_S", 0.3)
    monkeypatch.setattr("watcher.writer._RETRY_S", 0.02)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with House(tmp_path) as house:
        yield house


async def again(house: House, **options: object) -> House:
    """Kill a service and start the next one on the same store."""
    await house.crash()
    made: dict[str, object] = {"clock": house.clock} | options
    return await House(house.folder, **made).__aenter__()  # type: ignore[arg-type]  # a test's own


def waiters(house: House) -> list[tuple[object, ...]]:
    return house.rows("SELECT number, state FROM waiters ORDER BY watch_id, number")


def states(house: House) -> list[object]:
    return [row[0] for row in house.rows("SELECT state FROM watches ORDER BY armed_at")]


# arming, joining


async def test_a_watch_is_stored_before_the_command_hears_of_it(house: House) -> None:
    house.hold("a")
    watch_id, number = await house.arm(
        session="s1", resume="go on", label="my a", nonce="n"
    )
    assert number == 1
    assert house.rows("SELECT id, target, state, observation, looks FROM watches") == [
        (watch_id, "lock a", "armed", "held", 1)
    ]
    assert house.rows("SELECT label, resume, session, nonce FROM waiters") == [
        ("my a", "go on", "s1", "n")
    ]
    news = await house.news(watch_id)
    assert (news.waiting, news.outcome, list(news.notes)) == (True, None, [])
    assert news.deadline_at == house.clock.wall().timestamp() + HOUR_S


async def test_the_same_condition_is_joined_with_a_deadline_of_its_own(
    house: House,
) -> None:
    house.hold("a")
    watch_id, _ = await house.arm(ttl_s=60)
    assert await house.arm("lock  'a'", ttl_s=120) == (watch_id, 2)
    assert house.service.armed_count == 1
    assert house.rows("SELECT number, ttl_s FROM waiters") == [(1, 60), (2, 120)]
    until_s = house.clock.wall().timestamp() + 120
    assert house.one("SELECT deadline_at FROM watches") == until_s
    assert house.rows("SELECT event, detail FROM trail") == [("joined", "2")]


async def test_two_commands_at_once_make_one_watch_and_one_ping(house: House) -> None:
    house.hold("a")
    both = await asyncio.gather(house.arm(), house.arm())
    assert {number for _, number in both} == {1, 2}
    assert len({watch_id for watch_id, _ in both}) == 1
    house.free("a")
    await house.go(31)
    assert [await house.told(*waiter) for waiter in both] == ["released"] * 2
    assert house.pings == [f"{both[0][0]}-1-released"]


@pytest.mark.parametrize("target", ["lock", "lock ..", "what", "lock 'a", "process"])
async def test_what_cannot_be_watched_is_refused_and_leaves_nothing(
    target: str, house: House
) -> None:
    with pytest.raises(UsageError):
        await house.arm(target)
    assert house.service.armed_count == 0
    assert states(house) == []


async def test_what_was_set_aside_is_said_to_the_first_command(house: House) -> None:
    house.hold("a")
    house.hold("b")
    house.service.set_aside = phrase("set_aside", path="p", aside="q", reason="r")
    watch_id, _ = await house.arm()
    other, _ = await house.arm("lock b")
    assert await house.notes(watch_id) == "p is of no use (r); set aside as q"
    assert await house.notes(other) == ""
    assert house.service.set_aside is None


async def test_a_refusal_that_hangs_holds_no_arming_up(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    hang = threading.Event()

    def refusal(self: LockCondition) -> None:
        hang.wait(20)

    house.hold("a")
    monkeypatch.setattr("watcher.arming._FIRST_LOOK_S", 0.05)
    monkeypatch.setattr(LockCondition, "refusal", refusal)
    await house.arm()
    await house.arm("lock b")
    assert house.service.armed_count == 2
    hang.set()


# the nonce


async def test_asking_twice_arms_once(house: House) -> None:
    house.hold("a")
    first = await house.arm(nonce="n1")
    joined = await house.arm(nonce="n2")
    assert await house.arm(nonce="n1") == first
    assert await house.arm(nonce="n2") == joined
    assert waiters(house) == [(1, "waiting"), (2, "waiting")]


@pytest.mark.parametrize("restarted", [False, True], ids=["same", "after a restart"])
@pytest.mark.parametrize("forgotten", [False, True], ids=["at hand", "forgotten"])
async def test_asking_again_after_the_end_gives_that_outcome(
    restarted: bool, forgotten: bool, house: House
) -> None:
    house.hold("a")
    watch = await house.arm(nonce="n1")
    house.free("a")
    await house.go(31)
    assert await house.told(*watch) == "released"
    if forgotten:
        await house.go(601)
        house.service.forget_told()
    if restarted:
        house = await again(house)
    house.hold("a")
    assert await house.arm(nonce="n1") == watch
    assert await house.told(*watch) == "released"
    assert house.service.armed_count == 0
    await house.crash()


async def test_asking_again_after_a_restart_joins_nothing_anew(house: House) -> None:
    house.hold("a")
    watch = await house.arm(nonce="n1")
    house = await again(house)
    assert await house.arm(nonce="n1") == watch
    assert waiters(house) == [(1, "waiting")]
    await house.crash()


# nothing is said before it is stored


async def test_nothing_is_said_or_sent_before_the_commit(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watcher.keeping.PATIENCE_S", 20)
    house.hold("a")
    watch = await house.arm()
    house.free("a")
    async with following(house, *watch, after=9) as task:
        with house.locked():
            await house.go(31)
            await until(lambda: house.service.armed_count == 0)
            await settle()
            assert not task.done()
            assert (await house.news(*watch)).outcome is None
            assert house.channel.sent == []
            assert states(house) == ["armed"]
        news = await asyncio.wait_for(task, 20)
        assert news is not None
        assert news.outcome is not None
    assert states(house) == ["released"]
    assert house.pings == [f"{watch[0]}-1-released"]
    assert house.service.degraded is None


async def test_outcome_waiters_and_ping_are_one_transaction(house: House) -> None:
    house.hold("a")
    watch_id, _ = await house.arm()
    house.connection.execute(
        "CREATE TEMP TRIGGER no_ping BEFORE INSERT ON pings"
        " BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    house.free("a")
    await house.go(31)
    assert await house.told(watch_id) == "released"  # told all the same (C5.6)
    assert states(house) == ["armed"]
    assert waiters(house) == [(1, "waiting")]
    await until(lambda: house.channel.keys == [f"{watch_id}-1-released"])


async def test_after_another_owner_nothing_is_said_and_the_service_stops(
    house: House,
) -> None:
    house.hold("a")
    watch = await house.arm()
    other = Writer(open_database(str(house.state))[0])
    await LocalOwnership(other).claim()
    house.free("a")
    await house.go(31)
    await until(house.service.stopping.is_set)
    assert house.hosting.stopped.is_set()
    assert (await house.news(*watch)).outcome is None
    assert states(house) == ["armed"]
    assert house.channel.sent == []
    with pytest.raises(LostError):
        await house.arm("lock b", nonce="n")
    with pytest.raises(LostError):
        await house.service.life.acknowledge(watch[0])
    assert house.pings == []
    other.close(5.0)


# a store that does not take it


FAULTS = ["locked", "read_only", "full"]


@pytest.mark.parametrize("fault", FAULTS)
async def test_without_the_store_the_outcome_is_told_and_its_ping_sent_once(
    fault: str, house: House
) -> None:
    house.hold("a")
    watch = await house.arm(resume="x" * 9000)
    house.free("a")
    with getattr(house, fault)():
        await house.go(31)
        assert await house.told(*watch) == "released"
        await until(lambda: house.channel.sent)
        assert house.service.degraded is not None
        assert "state" in await house.notes(*watch)
        assert house.service.degraded in (await house.news(*watch)).notes
        await asyncio.sleep(0.1)  # the writer tries again meanwhile
    await house.service.save_all()
    await until(lambda: states(house) == ["released"])
    assert waiters(house) == [(1, "told")]
    await until(lambda: house.service.degraded is None)
    assert house.channel.keys == [f"{watch[0]}-1-released"]
    assert house.pings == []  # not sent again
    house = await again(house)
    assert await house.told(*watch) == "released"
    await house.crash()


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_watch_armed_without_the_store_loses_no_ping_once_it_is_back(
    fault: str, house: House
) -> None:
    """Its end found no row to end, and so put no ping into the outbox."""
    house.hold("a")
    with getattr(house, fault)():
        watch = await house.arm(label="x" * 9000, nonce="n")
        assert await house.arm(label="x" * 9000, nonce="n") == watch
        joined = await house.arm(label="y" * 9000)
        assert joined == (watch[0], 2)
        assert house.service.degraded is not None
        assert states(house) == []
    house.free("a")
    await house.go(31)
    assert await house.told(*watch) == "released"
    assert await house.told(*joined) == "released"
    await until(lambda: states(house) == ["released"])
    assert waiters(house) == [(1, "told"), (2, "told")]
    assert house.pings == [f"{watch[0]}-1-released"]
    assert house.channel.sent == []


async def test_what_a_store_refused_does_not_keep_the_next_watch_out(
    house: House,
) -> None:
    house.hold("a")
    first, _ = await house.arm()
    house.free("a")
    with house.read_only():
        await house.go(31)
        assert await house.told(first) == "released"
    house.hold("a")
    second, _ = await house.arm()
    assert second != first
    assert states(house) == ["released", "armed"]


async def test_a_refused_change_of_its_own_fault_holds_up_no_other(
    house: House,
) -> None:
    house.hold("a")
    watch = await house.arm()

    def bad(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE watches SET label = 'half'")
        connection.execute("SELECT * FROM nothing")

    with house.read_only():
        assert not await house.service._keeping.durably(bad)
    assert house.service._keeping.owes
    with pytest.raises(sqlite3.OperationalError):
        await house.service._keeping.durably(bad)
    assert house.service._keeping.owes
    house.free("a")
    await house.go(31)
    assert await house.told(*watch) == "released"
    assert states(house) == ["released"]
    assert house.one("SELECT label FROM watches") == "a"
    assert not house.service._keeping.owes


async def test_a_change_that_came_late_and_was_refused_is_offered_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.hold("a")
    watch = await house.arm()
    house.free("a")
    with house.locked():
        await house.go(31)
        assert await house.told(*watch) == "released"
        house.connection.set_authorizer(lambda *_: sqlite3.SQLITE_DENY)
    await until(lambda: house.service._keeping.owes)
    house.connection.set_authorizer(None)
    await house.service.save_all()
    assert states(house) == ["released"]


async def test_a_torn_file_hides_no_outcome(house: House) -> None:
    house.hold("a")
    watch = await house.arm()
    for number in range(300):
        add_watch(house.connection, f"{number:04}", at=0, state="expired")
    house.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path = house.state / "monitor.db"
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)
    house.connection.execute("PRAGMA shrink_memory")
    house.free("a")
    await house.go(31)
    assert await house.told(*watch) == "released"
    await until(lambda: house.channel.keys == [f"{watch[0]}-1-released"])
    assert house.service.degraded is not None


async def test_a_ping_that_neither_store_nor_channel_took_is_in_the_log(
    house: House,
) -> None:
    house.hold("a")
    watch = await house.arm()
    house.free("a")
    house.channel.fails = True
    with house.read_only():
        await house.go(31)
        assert await house.told(*watch) == "released"
        await until(lambda: Path(house.config.fallback_log).exists())
    written = Path(house.config.fallback_log).read_text()  # noqa: ASYNC240 - a line
    assert "LIBERADO: lock a" in written
    assert "out of order" in await house.notes(*watch)


# deadlines


async def test_each_waiter_expires_at_its_own_deadline_with_its_own_ping(
    house: House,
) -> None:
    house.hold("a")
    watch_id, _ = await house.arm(ttl_s=60, session="s1")
    await house.arm(ttl_s=200, lang=Lang.PT, label="other")
    await house.go(59)
    assert waiters(house) == [(1, "waiting"), (2, "waiting")]
    await house.go(1)
    assert await house.told(watch_id, 1) == "expired"
    assert waiters(house) == [(1, "told"), (2, "waiting")]
    assert states(house) == ["armed"]
    assert (await house.news(watch_id, 2)).outcome is None
    await house.go(140)
    assert await house.told(watch_id, 2) == "expired"
    assert states(house) == ["expired"]
    assert house.pings == [f"{watch_id}-1-expired", f"{watch_id}-2-expired"]


async def test_who_expired_is_not_told_of_the_release_too(house: House) -> None:
    house.hold("a")
    watch_id, _ = await house.arm(ttl_s=60)
    await house.arm(ttl_s=200)
    await house.go(61)
    house.free("a")
    await house.go(60)
    assert await house.told(watch_id, 1) == "expired"
    assert await house.told(watch_id, 2) == "released"
    assert house.pings == [f"{watch_id}-1-expired", f"{watch_id}-2-released"]


async def test_an_outcome_is_told_in_the_waiters_own_words(house: House) -> None:
    house.hold("a")
    watch_id, _ = await house.arm(label="one", session="s1", resume="r1")
    await house.go(10)
    await house.arm(label="two", session="s2", resume="r2", ttl_s=99)
    house.free("a")
    await house.go(31)
    await house.told(watch_id)
    found = [(await house.news(watch_id, n)).outcome for n in (1, 2)]
    assert [
        (o.label, o.session, o.resume, o.ttl_s) for o in found if o is not None
    ] == [("one", "s1", "r1", 3600), ("two", "s2", "r2", 99)]
    assert found[0] is not None
    assert found[1] is not None
    assert round(found[0].waited_s - found[1].waited_s) == 10


async def test_joining_while_the_outcome_is_told_arms_anew(house: House) -> None:
    house.hold("a")
    first, _ = await house.arm()
    house.free("a")
    with house.locked():
        await house.go(31)
        await until(lambda: house.service.armed_count == 0)
        house.hold("a")
        joining = asyncio.create_task(house.arm(nonce="n"))
        await asyncio.sleep(0.05)
    second, number = await joining
    assert (second != first, number) == (True, 1)
    await until(lambda: states(house) == ["released", "armed"])
    assert await house.told(first) == "released"
    assert (await house.news(second)).outcome is None


async def test_joining_between_end_and_removal_is_never_left_waiting(
    house: House,
) -> None:
    house.hold("a")
    first, _ = await house.arm()
    house.hold("a").unlink()
    going = asyncio.create_task(house.go(31))
    joined = []
    while not going.done():
        joined.append(await house.arm(ttl_s=100))
        await asyncio.sleep(0.001)
    await going
    await house.go(200)
    for waiter in {*joined, (first, 1)}:
        assert await house.told(*waiter) in {"released", "expired"}
    assert "waiting" not in {state for _, state in waiters(house)}
    assert "armed" not in states(house)


# leaving, removing


async def test_a_waiter_leaves_and_the_watch_lives_on_for_the_others(
    house: House,
) -> None:
    house.hold("a")
    watch_id, _ = await house.arm(ttl_s=60)
    await house.arm(ttl_s=100)
    life = house.service.life
    assert await life.leave(watch_id, 1)
    assert not await life.leave(watch_id, 1)
    assert not await life.leave(watch_id, 7)
    assert not await life.leave("ffff", 1)
    assert waiters(house) == [(1, "left"), (2, "waiting")]
    await house.go(61)
    assert house.pings == []
    assert await life.leave(watch_id, 2)
    assert states(house) == ["removed"]
    assert await house.told(watch_id, 2) == "removed"
    assert house.pings == []


async def test_the_longest_waiter_takes_its_deadline_with_it(house: House) -> None:
    house.hold("a")
    watch_id, _ = await house.arm(ttl_s=60)
    await house.arm(ttl_s=1000)
    await house.service.life.leave(watch_id, 2)
    until_s = house.clock.wall().timestamp() + 60
    assert house.one("SELECT deadline_at FROM watches") == until_s


async def test_a_removal_is_told_to_every_waiter_and_pings_nobody(
    house: House,
) -> None:
    house.hold("a")
    watch_id, _ = await house.arm()
    await house.arm()
    why = phrase("said", text="done by hand")
    assert await house.service.life.remove(watch_id, why)
    assert not await house.service.life.remove(watch_id, why)
    for number in (1, 2):
        outcome = (await house.news(watch_id, number)).outcome
        assert outcome is not None
        assert (outcome.ending.value, outcome.reason) == ("removed", why)
    assert "done by hand" in str(house.one("SELECT line FROM watches"))
    assert house.pings == []
    house.free("a")
    await house.go(61)
    assert await house.told(watch_id) == "removed"


# renewing


async def test_a_renewal_moves_the_deadline_of_every_waiter_that_still_waits(
    house: House,
) -> None:
    house.hold("a")
    watch_id, _ = await house.arm(ttl_s=60)
    await house.arm(ttl_s=100)
    await house.arm(ttl_s=1000)
    await house.go(61)
    await house.service.life.renew(watch_id, 500, "slow", house.read)
    now = house.clock.wall().timestamp()
    assert house.one("SELECT deadline_at FROM watches") == now + 500
    assert house.rows("SELECT number, deadline_at - ?, ttl_s FROM waiters", now) == [
        (1, -1.0, 60),
        (2, 500.0, 561),
        (3, 500.0, 561),
    ]
    assert house.one("SELECT renewals FROM watches") == 1
    assert house.rows("SELECT detail FROM trail WHERE event = 'renewed'") == [
        ('{"ttl_s":500,"why":"slow"}',)
    ]
    await house.go(499)
    assert states(house) == ["armed"]
    await house.go(2)
    assert await house.told(watch_id, 2) == "expired"
    assert states(house) == ["expired"]


async def test_a_renewal_may_shorten_the_wait(house: House) -> None:
    house.hold("a")
    watch_id, _ = await house.arm(ttl_s=HOUR_S)
    await house.service.life.renew(watch_id, 30, None, house.read)
    await house.go(31)
    assert await house.told(watch_id) == "expired"


async def test_what_has_just_expired_is_armed_again_for_its_ping(
    house: House,
) -> None:
    house.hold("a")
    watch_id, _ = await house.arm(ttl_s=60, session="s1", resume="r", label="l")
    await house.go(61)
    assert await house.told(watch_id) == "expired"
    await house.service.life.renew(watch_id, 100, None, house.read)
    assert states(house) == ["armed"]
    assert house.rows("SELECT number, session, resume, label FROM waiters")[1] == (
        2,
        "s1",
        "r",
        "l",
    )
    house.free("a")
    await house.go(31)
    assert await house.told(watch_id, 2) == "released"
    assert await house.told(watch_id, 1) == "expired"
    assert house.pings == [f"{watch_id}-1-expired", f"{watch_id}-2-released"]


@pytest.mark.parametrize("ended", ["never", "released", "long ago", "anew"])
async def test_what_cannot_be_renewed_is_refused(ended: str, house: House) -> None:
    house.hold("a")
    watch_id, _ = await house.arm(ttl_s=60)
    if ended == "released":
        house.free("a")
    await house.go(61)
    await house.told(watch_id)
    if ended == "anew":
        await house.arm()
    if ended == "long ago":
        house.clock.step_wall(86401)
    with pytest.raises(UsageError):
        await house.service.life.renew(
            "ffffffffffff" if ended == "never" else watch_id, 60, None, house.read
        )
    assert states(house).count("armed") == (ended == "anew")


@pytest.mark.parametrize("assessment", ["{}", "{", "5", '{"verdict": 7}'])
async def test_a_damaged_assessment_stops_no_renewal(
    assessment: str, house: House
) -> None:
    house.hold("a")
    watch_id, _ = await house.arm()
    await house.service._keeping.firmly(
        lambda c: c.execute("UPDATE watches SET assessment = ?", (assessment,))
    )
    await house.service.life.renew(watch_id, 60, None, house.read)
    assert house.one("SELECT renewals FROM watches") == 1


@pytest.mark.parametrize("fault", ["locked", "read_only"])
async def test_a_revival_that_the_store_does_not_take_is_an_error_not_a_wait(
    fault: str, house: House
) -> None:
    house.hold("a")
    watch_id, _ = await house.arm(ttl_s=60)
    await house.go(61)
    await house.told(watch_id)
    with getattr(house, fault)():
        with pytest.raises(StoreError):
            await house.service.life.renew(watch_id, 60, None, house.read)
        with pytest.raises(StoreError):
            await house.service.life.acknowledge(watch_id)
    # What comes late is hosted: an armed row that nobody looks at would wait for ever.
    await until(lambda: fault != "locked" or states(house) == ["armed"])
    await until(lambda: house.service.armed_count == (fault == "locked"))


async def test_a_live_watch_is_renewed_without_the_store(house: House) -> None:
    house.hold("a")
    watch_id, _ = await house.arm(ttl_s=60)
    with house.read_only():
        await house.service.life.renew(watch_id, 600, None, house.read)
    await house.go(100)
    assert (await house.news(watch_id)).outcome is None
    await house.service.save_all()
    house = await again(house)
    await house.go(400)
    assert states(house) == ["armed"]
    await house.go(101)
    assert await house.told(watch_id) == "expired"
    await house.crash()


async def test_a_renewal_while_the_watch_ends_leaves_that_outcome(
    house: House,
) -> None:
    house.hold("a")
    watch_id, _ = await house.arm(ttl_s=60)
    await house.arm(ttl_s=60)
    with house.locked():
        renewing = asyncio.create_task(
            house.service.life.renew(watch_id, 600, None, house.read)
        )
        leaving = asyncio.create_task(house.service.life.leave(watch_id, 1))
        await settle()
        await house.service.life.remove(watch_id, phrase("left"))
    await asyncio.gather(renewing, leaving)
    assert await house.told(watch_id, 2) == "removed"
    await until(lambda: states(house) == ["removed"])


async def test_an_acknowledgement_marks_what_was_told(house: House) -> None:
    house.hold("a")
    watch_id, _ = await house.arm(ttl_s=60)
    await house.arm(ttl_s=600)
    await house.go(61)
    await house.told(watch_id)
    await house.service.life.acknowledge(watch_id)
    marks = house.rows("SELECT number, acknowledged_at IS NOT NULL FROM waiters")
    assert marks == [(1, 1), (2, 0)]


# recovery


async def test_after_a_crash_every_watch_goes_on_with_its_deadline(
    house: House,
) -> None:
    house.hold("a")
    house.hold("b")
    one, _ = await house.arm(ttl_s=100)
    await house.arm(ttl_s=300)
    two, _ = await house.arm("lock b", ttl_s=200)
    await house.go(50)
    house = await again(house)
    assert house.service.armed_count == 2
    await house.go(49)
    assert {state for _, state in waiters(house)} == {"waiting"}
    await house.go(2)
    assert await house.told(one, 1) == "expired"
    await house.go(100)
    assert await house.told(two) == "expired"
    assert (await house.news(one, 2)).outcome is None
    assert await house.arm() == (one, 3)  # never a number twice
    await house.crash()


@pytest.mark.parametrize("step_s", [-86400, 86400, -50, 50])
async def test_in_one_boot_no_step_of_the_wall_clock_moves_a_deadline(
    step_s: float, house: House
) -> None:
    house.hold("a")
    watch_id, _ = await house.arm(ttl_s=100)
    await house.go(40)
    house.clock.step_wall(step_s)
    house = await again(house)
    await house.go(59)
    assert states(house) == ["armed"]
    await house.go(2)
    assert await house.told(watch_id) == "expired"
    await house.crash()


@pytest.mark.parametrize("step_s", [-86400, 86400])
async def test_in_one_boot_no_step_makes_work_overdue_that_has_yet_to_begin(
    step_s: float, house: House
) -> None:
    watch_id, _ = await house.arm(
        "process --match koder-never-there-4711", ttl_s=1000, start_within_s=300
    )
    assert "300" in await house.notes(watch_id)
    await house.go(100)
    house.clock.step_wall(step_s)
    house = await again(house)
    await house.go(199)
    assert states(house) == ["armed"]
    await house.go(2)
    assert await house.told(watch_id) == "unseen"
    await house.crash()


@pytest.mark.parametrize(
    ("step_s", "left_s"),
    [
        pytest.param(0, 60, id="as it was"),
        pytest.param(-86400, 100, id="set back: the TTL from now at most"),
        pytest.param(86400, 0, id="set forward: at once"),
    ],
)
async def test_after_another_boot_the_wall_clock_decides_and_nobody_waits_longer(
    step_s: float, left_s: float, house: House
) -> None:
    house.hold("a")
    watch_id, _ = await house.arm(ttl_s=100)
    await house.go(40)
    house.clock.step_wall(step_s)
    house = await again(house, boot_id="boot-2")
    if left_s:
        await house.go(left_s - 1)
        assert states(house) == ["armed"]
    await house.go(2)
    assert await house.told(watch_id) == "expired"
    await house.crash()


async def test_a_release_while_nobody_looked_is_found_after_a_restart(
    house: House,
) -> None:
    house.hold("a")
    watch = await house.arm()
    await house.crash()
    house.free("a")
    house = await again(house)
    await house.go(1)
    assert await house.told(*watch) == "released"
    news = await house.news(*watch)
    assert news.outcome is not None
    assert not news.outcome.already_clear
    await house.crash()


def store_rows(folder: Path, at: float) -> None:
    """Leave rows as no service of today would."""
    values: dict[str, dict[str, object]] = {
        "aa": {"target": "lock aa"},
        "bb": {"target": "lock bb", "memory": '{"entry": [1, 2'},
        "cc": {"target": "lock cc", "memory": "[]"},
        "dd": {"target": "teleport dd", "kind": "teleport"},
        "ee": {"target": "lock 'ee", "memory": '{"holder": 5}'},
        "ff": {"target": "", "kind": ""},
    }
    with closing(opened(folder)) as connection:
        for watch_id, row in values.items():
            add_watch(connection, watch_id, at=at, ttl_s=100, looks=1, **row)
            connection.execute(
                "INSERT INTO waiters (watch_id, number, label, lang, ttl_s, armed_at,"
                " deadline_at, deadline_boot_s, boot_id)"
                " VALUES (?, 3, 'l', 'xx', 100, ?, ?, 1100, 'boot-1')",
                (watch_id, at, at + 100),
            )
        add_watch(connection, "00", at=at, target="lock zz", looks=1)


async def test_every_kind_of_row_is_taken_up_and_ends_once(tmp_path: Path) -> None:
    house = House(tmp_path)
    store_rows(house.state, house.clock.wall().timestamp())
    for slug in ("aa", "bb", "cc", "zz"):
        house.hold(slug)
    async with house:
        # Nobody waits for 00: it ends at once, and nobody is pinged.
        await until(lambda: house.service.armed_count == 6)
        await house.go(99)
        await until(lambda: states(house).count("armed") == 6)
        news = await house.news("dd", 3)
        assert [note.key for note in news.notes] == ["cannot_see"]
        await house.go(2)
        for watch_id in ("aa", "bb", "cc", "dd", "ee", "ff"):
            assert await house.told(watch_id, 3) == "expired"
        outcome = (await house.news("dd", 3)).outcome
        assert outcome is not None
        assert outcome.unknown_since is not None
        assert sorted(map(str, house.pings)) == [
            f"{i}-3-expired" for i in ("aa", "bb", "cc", "dd", "ee", "ff")
        ]
        assert "armed" not in states(house)


async def test_a_target_that_breaks_its_reader_stops_no_other(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.hold("a")
    watch_id, _ = await house.arm(ttl_s=60)

    def broken(words: object, place: object) -> None:
        raise ZeroDivisionError(words)

    monkeypatch.setattr("watcher.recovery.condition_of", broken)
    house = await again(house)
    assert "ZeroDivisionError" in await house.notes(watch_id)
    await house.go(61)
    assert await house.told(watch_id) == "expired"
    await house.crash()


# sightings


async def test_only_what_changed_is_stored_with_its_memory(house: House) -> None:
    house.hold("a")
    watch_id, _ = await house.arm()
    memory = house.one("SELECT memory FROM watches")
    changes = house.connection.total_changes
    await house.go(300)
    assert house.connection.total_changes == changes
    await house.service.save_all()
    assert house.connection.total_changes == changes + 1
    assert house.one("SELECT looks FROM watches") == 11
    at = house.clock.wall().timestamp()
    assert house.one("SELECT last_probe_at FROM watches") == at
    assert house.one("SELECT memory FROM watches") == memory
    house.hold("a", "---\nsession: s9\n---\n")
    await house.go(30)
    await house.go(1)
    await until(lambda: house.one("SELECT memory FROM watches") != memory)
    assert "s9" in str(house.one("SELECT evidence FROM watches"))
    assert states(house) == ["armed"]
    assert watch_id in house.service._watches.hosted


async def test_what_could_not_be_seen_is_stored_as_unknown(house: House) -> None:
    house.hold("a")
    await house.arm()
    house.locks.rename(house.folder / "gone")
    house.locks.write_text("")
    await house.go(31)
    await house.service.save_all()
    assert house.one("SELECT observation FROM watches") == Sight.UNKNOWN
    await house.go(60)
    await house.service.save_all()
    assert house.one("SELECT unknown_s FROM watches") == 60


async def test_a_memory_that_was_refused_is_stored_in_the_next_round(
    house: House,
) -> None:
    house.hold("a")
    await house.arm()
    with house.read_only():
        house.hold("a", "---\nsession: s9\n---\n")
        await house.go(31)
        await house.service._sightings.save()
    assert "s9" not in str(house.one("SELECT memory FROM watches"))
    await house.service.save_all()
    assert "s9" in str(house.one("SELECT memory FROM watches"))


# taking


async def test_the_first_who_asked_gets_the_lock_and_only_he_is_told(
    house: House,
) -> None:
    path = house.hold("a")
    watch_id, _ = await house.arm(session="s1")
    await house.arm(session="s2", takes=True)
    await house.arm(session="s3", takes=True)
    house.free("a")
    await house.go(31)
    assert await house.told(watch_id, 2) == "released"
    assert 'session: "s2"' in path.read_text()
    assert waiters(house) == [(1, "waiting"), (2, "told"), (3, "waiting")]
    assert house.pings == [f"{watch_id}-2-released"]
    house.free("a")
    await house.go(61)
    assert await house.told(watch_id, 3) == "released"
    house.free("a")
    await house.go(61)
    assert await house.told(watch_id, 1) == "released"
    assert states(house) == ["released"]


async def test_who_took_the_lock_before_a_crash_is_told_after_it(
    house: House,
) -> None:
    path = house.hold("a")
    watch_id, _ = await house.arm(session="s1", takes=True)
    await house.arm(session="s2")
    await house.crash()
    path.unlink()
    path.write_text(lock_entry("s1", f"{watch_id}-1", house.clock.wall()))
    house = await again(house)
    assert await house.told(watch_id, 1) == "released"
    assert (await house.news(watch_id, 2)).outcome is None
    assert states(house) == ["armed"]
    await house.service.life.leave(watch_id, 2)
    await house.crash()
    assert house.folder.exists()


async def test_the_last_waiters_lock_taken_before_a_crash_ends_the_watch_once(
    house: House,
) -> None:
    """At its deadline it was told as expired, too, and the lock stayed for nobody."""
    path = house.hold("a")
    watch_id, _ = await house.arm(session="s1", takes=True, ttl_s=60)
    await house.crash()
    path.unlink()
    path.write_text(lock_entry("s1", f"{watch_id}-1", house.clock.wall()))
    await house.clock.advance(100)
    house = await again(house)
    assert await house.told(watch_id, 1) == "released"
    assert states(house) == ["released"]
    assert house.pings == [f"{watch_id}-1-released"]
    assert house.service.armed_count == 0
    await house.crash()


async def test_a_removal_while_the_lock_is_being_taken_gives_it_back(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = house.hold("a")
    watch_id, _ = await house.arm(session="s1", takes=True)
    loop = asyncio.get_running_loop()
    why = phrase("left")

    def removing(where: str, entry: str) -> None:
        asyncio.run_coroutine_threadsafe(
            house.service.life.remove(watch_id, why), loop
        ).result(10)
        Path(where).write_text(entry)

    monkeypatch.setattr("watcher.taking.take_lock", removing)
    house.free("a")
    await house.go(31)
    assert await house.told(watch_id) == "removed"
    await until(lambda: not path.exists())
    assert states(house) == ["removed"]
    assert house.pings == []


async def test_who_leaves_while_the_lock_is_taken_leaves_it_to_the_next(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.hold("a")
    watch_id, _ = await house.arm(session="s1", takes=True)
    await house.arm(session="s2", takes=True)
    loop = asyncio.get_running_loop()

    def leaving(where: str, entry: str) -> None:
        asyncio.run_coroutine_threadsafe(
            house.service.life.leave(watch_id, 1), loop
        ).result(10)
        Path(where).write_text(entry)

    house.free("a")
    with monkeypatch.context() as patch:
        patch.setattr("watcher.taking.take_lock", leaving)
        await house.go(30.3)
        await until(lambda: waiters(house)[0] == (1, "left"))
    await house.go(100)
    assert await house.told(watch_id, 2) == "released"
    assert house.pings == [f"{watch_id}-2-released"]


@pytest.mark.parametrize("error", [PermissionError("no"), TimeoutError()])
async def test_a_lock_that_cannot_be_made_is_told_to_all(
    error: OSError, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.hold("a")
    watch_id, _ = await house.arm(takes=True)
    await house.arm()

    def failing(where: str, entry: str) -> None:
        raise error

    monkeypatch.setattr("watcher.taking.take_lock", failing)
    house.free("a")
    await house.go(31)
    assert await house.told(watch_id, 1) == "released"
    assert await house.told(watch_id, 2) == "released"
    assert "could not be made" in await house.notes(watch_id)


async def test_somebody_faster_keeps_everybody_waiting(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.hold("a")
    watch_id, _ = await house.arm(takes=True)

    def late(where: str, entry: str) -> None:
        house.hold("a")
        raise FileExistsError(where)

    house.free("a")
    with monkeypatch.context() as patch:
        patch.setattr("watcher.taking.take_lock", late)
        await house.go(31)
    assert (await house.news(watch_id)).outcome is None
    house.free("a")
    await house.go(61)
    assert await house.told(watch_id) == "released"


# circles


async def test_a_circle_is_told_to_all_sides_at_once_and_pinged_once(
    house: House,
) -> None:
    house.hold("a", "---\nsession: s2\n---\n")
    house.hold("b", "---\nsession: s1\n---\n")
    one, _ = await house.arm(session="s1")
    assert await house.notes(one) == ""
    two, _ = await house.arm("lock b", session="s2")
    for watch_id in (one, two):
        assert "CÍRCULO" in await house.notes(watch_id)
    await until(lambda: len(house.pings) == 1)
    assert str(house.pings[0]).startswith("circle-")
    assert [e for (e,) in house.rows("SELECT event FROM trail")] == ["circle"] * 2
    await house.arm("lock b", session="s3")
    await house.go(300)
    assert (await house.notes(one)).count("CÍRCULO") == 1
    house = await again(house)
    await until(lambda: house.service._circling._circles)
    await settle()
    await house.go(1)
    assert len(house.pings) == 1
    await house.crash()


async def test_a_circle_that_forms_later_is_found(house: House) -> None:
    house.hold("a", "---\nsession: s2\n---\n")
    house.hold("b", "---\nsession: s9\n---\n")
    one, _ = await house.arm(session="s1")
    await house.arm("lock b", session="s2")
    assert house.pings == []
    house.hold("b", "---\nsession: s1\n---\n")
    await house.go(31)
    await until(lambda: len(house.pings) == 1)
    assert "CÍRCULO" in await house.notes(one)


async def test_a_circle_without_the_store_is_pinged_once_and_not_again(
    house: House,
) -> None:
    house.hold("a", "---\nsession: s2\n---\n")
    house.hold("b", "---\nsession: s1\n---\n")
    await house.arm(session="s1")
    with house.read_only():
        await house.arm("lock b", session="s2")
        await until(lambda: house.channel.sent)
    await house.service.save_all()
    assert house.pings == []
    assert len(house.channel.sent) == 1


# following


async def test_a_follower_hears_of_notes_as_they_come(house: House) -> None:
    house.hold("a")
    watch = await house.arm()
    async with following(house, *watch) as task:
        house.service.warn(phrase("left"))
        news = await asyncio.wait_for(task, 10)
    assert news is not None
    assert [note.key for note in news.notes] == ["left"]
    async with following(house, *watch, after=1) as task:
        assert not task.done()
        house.service.warn(phrase("no_why"))
        news = await asyncio.wait_for(task, 10)
    assert news is not None
    assert [note.key for note in news.notes] == ["no_why"]


async def test_that_it_waits_is_news_to_who_does_not_know_it(house: House) -> None:
    house.hold("a")
    watch_id, number = await house.arm()
    news = await house.service.follow(
        watch_id, number, after=0, wait_s=60, read=house.read, knows_waiting=False
    )
    assert news is not None
    assert news.waiting


@pytest.mark.parametrize(
    ("watch", "number"), [("ffff", 1), ("", 1), (None, 9), (None, 0)]
)
async def test_who_is_no_waiter_learns_that_at_once(
    watch: str | None, number: int, house: House
) -> None:
    house.hold("a")
    watch_id, _ = await house.arm()
    for read in (house.read, None):
        assert (
            await house.service.follow(
                watch_id if watch is None else watch,
                number,
                after=0,
                wait_s=60,
                read=read,
            )
            is None
        )


async def test_the_end_of_the_service_ends_every_following(house: House) -> None:
    house.hold("a")
    watch = await house.arm()
    async with following(house, *watch) as task:
        house.hosting.stop()
        news = await asyncio.wait_for(task, 10)
    assert news is not None
    assert news.outcome is None


async def test_a_following_ends_when_its_time_is_over(house: House) -> None:
    house.hold("a")
    watch_id, number = await house.arm()
    news = await house.service.follow(
        watch_id, number, after=0, wait_s=0.01, read=house.read
    )
    assert news is not None
    assert (news.outcome, list(news.notes)) == (None, [])


async def test_an_outcome_stays_at_hand_and_then_in_the_store(house: House) -> None:
    house.hold("a")
    watch_id, number = await house.arm(nonce="n")
    house.free("a")
    await house.go(31)
    assert await house.told(watch_id) == "released"
    house.service.forget_told()
    assert house.service.known(watch_id[:4]) == [watch_id]
    await house.go(601)
    house.service.forget_told()
    assert house.service.known(watch_id[:4]) == []
    assert house.service._arming._asked == {}
    assert await house.told(watch_id, number) == "released"


# the end


async def test_a_service_that_closes_keeps_what_it_saw_and_lets_go(
    house: House,
) -> None:
    house.hold("a")
    watch_id, _ = await house.arm()
    await house.go(300)
    async with following(house, watch_id) as task:
        closing_ = asyncio.create_task(house.service.close())
        await asyncio.wait_for(task, 10)
    await house.clock.advance(1)
    await closing_
    assert house.service.engine.hosted() == []
    assert house.rows("SELECT state, looks FROM watches") == [("armed", 11)]


async def test_a_service_that_closes_without_its_store_still_lets_go(
    house: House,
) -> None:
    house.hold("a")
    await house.arm()
    other = Writer(open_database(str(house.state))[0])
    await LocalOwnership(other).claim()
    with pytest.raises(LostError):
        await house.service.close()
    assert house.service.engine.hosted() == []
    other.close(5.0)


async def test_a_task_that_outlives_the_limit_is_cancelled_and_a_fault_is_logged(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    house.service._tasks.spawn(fail())
    house.service._tasks.spawn(asyncio.Event().wait())
    await house.service.close()
    await settle()
    assert "task.failed" in caplog.text
    assert not house.service._tasks._tasks


# what comes late


@pytest.mark.parametrize("fault", ["another owner", "a fault of ours"])
async def test_what_goes_wrong_after_nobody_waits_is_logged_or_stops_the_service(
    fault: str, house: House, caplog: pytest.LogCaptureFixture
) -> None:
    def change(connection: sqlite3.Connection) -> None:
        raise LostError if fault == "another owner" else ZeroDivisionError

    keeping = house.service._keeping
    with house.locked():
        assert not await keeping.durably(change)
        assert keeping.degraded is not None
    if fault == "another owner":
        await until(house.service.stopping.is_set)
    else:
        await until(lambda: "change.failed" in caplog.text)
        assert not keeping.owes
        assert not house.service.stopping.is_set()


async def test_a_first_look_that_hangs_holds_no_arming_up(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    hang = threading.Event()
    look = LockCondition.look

    def hanging(self: LockCondition, *values: object) -> object:
        hang.wait(20)
        return look(self, *values)  # type: ignore[arg-type]  # handed on

    house.hold("a")
    monkeypatch.setattr("watcher.arming._FIRST_LOOK_S", 0.05)
    monkeypatch.setattr(LockCondition, "look", hanging)
    watch_id, _ = await house.arm()
    assert (await house.news(watch_id)).waiting is False
    assert states(house) == ["armed"]
    hang.set()
    await until(lambda: house.service._watches.hosted[watch_id].watch.waiting)
