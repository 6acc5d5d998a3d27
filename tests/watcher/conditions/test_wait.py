"""Any or all of several conditions, each looked at as if alone (C1.2, C3.6)."""

import asyncio
import json
import re
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from contextlib import closing as closing_file
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from policies.model import Memory, Observation, Sight, Target
from policies.sight import released
from policies.together import Need
from policies.wording import Lang, Phrase, phrase
from tests.fakes import START, FakeCondition, until
from tests.suites.condition import ConditionSuite, Scene, closing, remembered
from tests.watcher.conditions.test_lock import moved_away, replaced_by_a_file
from tests.watcher.house import House
from tests.watcher.rights import closed_to_others, open_files, open_folder
from tests.watcher.work import working
from watcher.conditions import CallHint, Condition, Hint, Look, Place
from watcher.config import Config
from watcher.database import NAME
from watcher.errors import UsageError
from watcher.grouped import Grouped
from watcher.targets import condition_of, target_of

PLACE = Place(config=Config(), cwd="/", launcher=0)


def built(text: str) -> Grouped:
    made = condition_of(text, PLACE)
    assert isinstance(made, Grouped)
    return made


class AsLocal:
    """A group looked at from a plain function, as the suite does."""

    def __init__(self, group: Grouped) -> None:
        self.target, self.settle, self.group = group.target, group.settle, group.group
        self._group = group
        self._threads = threading.active_count()
        self._looker = group.looker()

    def looker(self) -> None:
        return

    def joined(self, launcher: int) -> None:
        self._group.joined(launcher)

    def refusal(self) -> Phrase | None:
        return asyncio.run(self._looker.refusal(self._group))

    def look(self, memory: Memory, at: datetime) -> Observation:
        (seen,) = asyncio.run(self._looker.take([Look(self._group, memory)], at))
        assert seen is not None
        return seen

    def unchanged(self, memory: Memory) -> bool:
        return False

    def hung(self, memory: Memory, at: datetime) -> Observation:
        return self._group.hung(memory, at)

    def hints(self) -> Sequence[Hint]:
        return self._group.hints()

    def close(self) -> None:
        self._looker.later(self._group.close)
        self._looker.close()
        asyncio.run(until(lambda: threading.active_count() <= self._threads))


class TestWait(ConditionSuite):
    FOLLOWED = frozenset({"vanished"})  # a renamed directory

    @pytest.fixture
    def scene(self) -> Iterator[Scene]:
        with open_folder() as above:
            folder = above / "locks"
            folder.mkdir(mode=0o755)
            paths = [folder / "a.lock", folder / "b.lock"]
            for path in paths:
                path.touch()
            members = " ".join(f"'lock {path}'" for path in paths)

            def release() -> None:
                for path in paths:
                    path.unlink()

            yield Scene(
                build=lambda: AsLocal(built(f"wait --any {members}")),
                release=release,
                blind={
                    "unreachable": lambda: replaced_by_a_file(folder),
                    "denied": lambda: closed_to_others(folder),
                    "vanished": lambda: moved_away(folder),
                },
            )

    def test_what_is_there_is_held(self, scene: Scene) -> None:
        """Other than elsewhere there is a reason: who still holds it."""
        with closing(scene.build()) as condition:
            seen = condition.look({}, START)
            assert seen.sight is Sight.HELD
            assert seen.reason is not None
            assert seen.reason.key == "held_by"
            assert "means" in seen.evidence


# Each member as if it were alone


def member(
    name: str, see: Callable[[], Observation] | None = None, group: str = "fake"
) -> FakeCondition:
    target = Target(kind="lock", text=f"lock {name}", label=name)
    return FakeCondition(target, see or (lambda: seen(Sight.HELD)), group)


def seen(sight: Sight) -> Observation:
    reason = phrase("denied", path="/l") if sight is Sight.UNKNOWN else None
    return Observation(sight=sight, at=START, reason=reason)


def held() -> Observation:
    return seen(Sight.HELD)


def clear() -> Observation:
    return released(START, {}, {})


def broken() -> Observation:
    raise ValueError("out of order")


def group_of(need: Need, *members: Condition) -> Grouped:
    target = Target(kind="wait", text=f"wait --{need}", label="all of it")
    return Grouped(target, need, members)


class Looks:
    """Looks at a group, one after the other, as an engine takes them."""

    def __init__(self, group: Grouped) -> None:
        self.group = group
        self.looker = group.looker()
        self.memory: Memory = {}

    async def take(self, *, last: bool = False) -> Observation:
        look = Look(self.group, self.memory, last=last)
        (found,) = await self.looker.take([look], START)
        assert found is not None
        self.memory = remembered(found)
        return found

    def of(self, found: Observation) -> dict[str, str]:
        members = found.evidence["members"]
        assert isinstance(members, dict)
        return {text: str(one["sight"]) for text, one in members.items()}


@asynccontextmanager
async def looking(group: Grouped) -> AsyncIterator[Looks]:
    """Give looks; no thread and no descriptor of theirs may stay."""
    files, threads = open_files(), threading.active_count()
    looks = Looks(group)
    try:
        yield looks
    finally:
        looks.looker.later(group.close)
        looks.looker.close()
    await until(lambda: threading.active_count() <= threads)
    await until(lambda: open_files() <= files)


@pytest.fixture
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    # Long enough for a member that does not hang, on a machine that is busy.
    monkeypatch.setattr("watcher.grouped.LOOK_LIMIT_S", 3.5)
    monkeypatch.setattr("watcher.grouped._REFUSAL_S", 0.2)


async def test_members_are_looked_at_each_on_a_thread_of_its_own() -> None:
    members = [member("a"), member("b")]
    async with looking(group_of(Need.ALL, *members)) as looks:
        for _ in range(2):
            assert (await looks.take()).sight is Sight.HELD
        one, other = (one.threads for one in members)
        assert (len(one), len(other)) == (1, 1)
        assert one != other
    assert [one.closed for one in members] == [list(one), list(other)]


async def test_a_member_that_fails_is_unknown_and_costs_no_other_its_look() -> None:
    group = group_of(Need.ANY, member("a", broken), member("b", clear))
    async with looking(group) as looks:
        found = await looks.take()
        assert found.sight is Sight.RELEASED
        assert looks.of(found) == {"lock a": "unknown", "lock b": "released"}


@pytest.mark.usefixtures("short_limits")
async def test_a_member_that_hangs_is_unknown_and_holds_no_other_up() -> None:
    stuck, fine = member("a"), member("b")
    stuck.hang = threading.Event()
    async with looking(group_of(Need.ALL, stuck, fine)) as looks:
        try:
            for _ in range(2):
                found = await looks.take()
                assert looks.of(found) == {"lock a": "unknown", "lock b": "held"}
            assert (stuck.probes, fine.probes) == (1, 2)
            fine.see = clear
            found = await looks.take()
            assert found.sight is Sight.UNKNOWN
            assert found.reason is not None
            assert "lock a" in found.reason.render(Lang.EN)
        finally:
            stuck.hang.set()


async def test_one_that_decides_does_not_wait_for_one_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("watcher.grouped.LOOK_LIMIT_S", 600.0)
    monkeypatch.setattr("watcher.grouped._GRACE_S", 0.05)
    stuck = member("a")
    stuck.hang = threading.Event()
    async with looking(group_of(Need.ANY, stuck, member("b", clear))) as looks:
        try:
            found = await looks.take()
            assert found.sight is Sight.RELEASED
            assert looks.of(found) == {"lock a": "unknown", "lock b": "released"}
        finally:
            stuck.hang.set()


async def test_at_a_deadline_a_member_that_hangs_gets_little_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("watcher.grouped.LOOK_LIMIT_S", 600.0)
    monkeypatch.setattr("watcher.looking.OnThread.last_limit_s", 3.0)
    stuck = member("a")
    stuck.hang = threading.Event()
    async with looking(group_of(Need.ALL, stuck, member("b"))) as looks:
        try:
            assert looks.looker.last_limit_s > 3.0
            found = await looks.take(last=True)
            assert looks.of(found) == {"lock a": "unknown", "lock b": "held"}
        finally:
            stuck.hang.set()


async def test_what_is_cancelled_leaves_nothing_behind() -> None:
    stuck = member("a")
    stuck.hang = threading.Event()
    tasks = asyncio.all_tasks()
    async with looking(group_of(Need.ALL, stuck)) as looks:
        try:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await looks.take()
        finally:
            stuck.hang.set()
    await until(lambda: asyncio.all_tasks() <= tasks)


async def test_a_member_that_gives_up_a_thread_gets_another() -> None:
    stuck, fine = member("a", group="one"), member("b")
    group = group_of(Need.ALL, stuck, fine)
    async with looking(group) as looks:
        await looks.take()
        lookers = group._lookers
        assert lookers is not None
        before, same = lookers.of(stuck), lookers.of(fine)
        stuck.group = "two"
        found = await looks.take()
        assert looks.of(found) == {"lock a": "held", "lock b": "held"}
        assert lookers.of(stuck) is not before
        assert lookers.of(fine) is same


async def test_each_member_gets_its_own_memory_back() -> None:
    async with looking(
        group_of(Need.ALL, one := Counting("a"), Counting("b"))
    ) as looks:
        for _ in range(3):
            found = await looks.take()
        assert found.memory["members"] == {"lock a": {"n": 3}, "lock b": {"n": 3}}
        looks.memory = {"members": "damaged", "clear": 7}
        found = await looks.take()
        assert found.memory["members"] == {"lock a": {"n": 1}, "lock b": {"n": 1}}
        assert one.target.text == "lock a"


class Counting(FakeCondition):
    """Remembers how often it was looked at."""

    def __init__(self, name: str) -> None:
        super().__init__(Target(kind="lock", text=f"lock {name}", label=name), held)

    def look(self, memory: Memory, at: datetime) -> Observation:
        count = memory.get("n", 0)
        assert isinstance(count, int)
        return Observation(sight=Sight.HELD, at=at, memory={"n": count + 1})


# Members on hosts


class FakeLooker:
    """Takes the looks of one host; may refuse, raise, or leave some out."""

    last_limit_s = 5.0

    def __init__(self) -> None:
        self.rounds: list[list[str]] = []
        self.refused: dict[str, Phrase] = {}
        self.error: Exception | None = None
        self.answers: list[Observation | None] | None = None
        self.closed = 0

    async def refusal(self, condition: Condition) -> Phrase | None:
        return self.refused.get(condition.target.text)

    async def take(
        self, looks: Sequence[Look], at: datetime
    ) -> Sequence[Observation | None]:
        self.rounds.append([look.condition.target.text for look in looks])
        if self.error is not None:
            raise self.error
        return [held() for _ in looks] if self.answers is None else self.answers

    def later(self, last: Callable[[], None]) -> None:
        last()

    def close(self) -> None:
        self.closed += 1


def on_host(name: str, looker: FakeLooker, host: str = "box") -> FakeCondition:
    made = member(name, group=f"host {host}")
    made.takes_looks = looker
    return made


async def test_conditions_of_one_host_are_asked_for_together() -> None:
    box, other = FakeLooker(), FakeLooker()
    members = [on_host("a", box), member("b"), on_host("c", box)]
    members.append(on_host("d", other, "other"))
    async with looking(group_of(Need.ALL, *members)) as looks:
        found = await looks.take()
        assert looks.of(found) == dict.fromkeys(
            ["lock a", "lock b", "lock c", "lock d"], "held"
        )
        assert (box.rounds, other.rounds) == ([["lock a", "lock c"]], [["lock d"]])
        assert looks.looker.last_limit_s > 5.0
    assert (box.closed, other.closed) == (1, 1)
    assert all(len(one.closed) == 1 for one in members)


async def test_a_host_that_fails_is_unknown_and_costs_no_other_its_look() -> None:
    box = FakeLooker()
    group = group_of(Need.ANY, on_host("a", box), on_host("b", box), member("c"))
    async with looking(group) as looks:
        box.error = RuntimeError("out of order")
        blind = {"lock a": "unknown", "lock b": "unknown", "lock c": "held"}
        assert looks.of(await looks.take()) == blind
        box.error, box.answers = None, [held()]  # one too few
        short = {"lock a": "held", "lock b": "unknown", "lock c": "held"}
        assert looks.of(await looks.take()) == short
        box.answers = [None, held()]
        left_out = {"lock a": "unknown", "lock b": "held", "lock c": "held"}
        assert looks.of(await looks.take()) == left_out


async def test_a_shared_looker_outlives_a_member_that_leaves_it() -> None:
    box = FakeLooker()
    moving = on_host("a", box)
    async with looking(group_of(Need.ALL, moving, on_host("b", box))) as looks:
        moving.group = "host elsewhere"
        await looks.take()
        assert box.closed == 0
    assert box.closed == 1


# Whatever else a member says


@pytest.mark.usefixtures("short_limits")
async def test_the_first_member_that_cannot_be_watched_refuses_the_whole() -> None:
    box = FakeLooker()
    box.refused = {"lock b": phrase("said", text="unknown host")}
    asked = threading.Event()

    class Slow(FakeCondition):
        def refusal(self) -> Phrase | None:
            asked.wait()
            return None

    slow = Slow(Target(kind="lock", text="lock a", label="a"), held)
    async with looking(
        group_of(Need.ALL, slow, on_host("b", box), member("c"))
    ) as looks:
        try:
            refusal = await looks.looker.refusal(looks.group)
        finally:
            asked.set()
        assert refusal is not None
        assert refusal.render(Lang.EN) == "lock b: unknown host"
        box.refused = {}
    async with looking(group_of(Need.ALL, on_host("b", box), member("c"))) as looks:
        assert await looks.looker.refusal(looks.group) is None


def test_hints_and_new_commands_are_every_members_own() -> None:
    class Joined(FakeCondition):
        def __init__(self, name: str) -> None:
            super().__init__(Target(kind="lock", text=f"lock {name}", label=name), held)
            self.launchers: list[int] = []

        def joined(self, launcher: int) -> None:
            self.launchers.append(launcher)

    one, other = Joined("a"), Joined("b")
    one.wanted = [CallHint(lambda wake: wake, "one")]
    other.wanted = [CallHint(lambda wake: wake, "other")]
    other.settle = False
    group = group_of(Need.ALL, one, other)
    assert group.hints() == [*one.wanted, *other.wanted]
    group.joined(7)
    assert (one.launchers, other.launchers) == ([7], [7])
    assert group.settle
    assert not group_of(Need.ALL, other).settle


async def test_it_can_be_closed_before_and_behind_its_looks() -> None:
    one = member("a")
    group_of(Need.ALL, one).close()
    assert len(one.closed) == 1
    group = group_of(Need.ALL, one := member("a"))
    looker = group.looker()
    assert await looker.refusal(group) is None
    looker.close()  # as at arming, where others take the looks
    group.close()
    assert one.closed == [threading.get_ident()]


def test_a_look_at_all_that_does_not_come_back_is_unknown() -> None:
    group = group_of(Need.ALL, member("a"))
    found = group.hung({"clear": []}, START)
    assert (found.sight, found.memory) == (Sight.UNKNOWN, {"clear": []})
    assert json.loads(json.dumps(found.evidence)) == found.evidence


def test_what_a_member_refuses_in_words_is_refused() -> None:
    with pytest.raises(UsageError):
        built("wait --any 'lock a' 'process --regex ('")


# In a service


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with House(tmp_path) as house:
        yield house


async def line_of(house: House, watch_id: str) -> str:
    news = await house.news(watch_id)
    assert news.outcome is not None
    return " | ".join(remark.render(Lang.EN) for remark in news.outcome.tail)


async def test_any_ends_with_the_first_and_says_which(house: House) -> None:
    for slug in "ab":
        house.hold(slug)
    watch_id, _ = await house.arm("wait --any 'lock b' 'lock a'")
    assert house.rows("SELECT target, kind, observation FROM watches") == [
        ("wait --any 'lock a' 'lock b'", "wait", "held")
    ]
    house.free("b")
    await house.go(31)
    assert await house.told(watch_id) == "released"
    assert await line_of(house, watch_id) == "decided: lock b"


async def test_all_ends_when_all_are_clear_at_the_same_look(house: House) -> None:
    for slug in "ab":
        house.hold(slug)
    watch_id, _ = await house.arm("wait --all 'lock a' 'lock b'")
    house.free("a")
    await house.go(31)
    house.hold("a")
    house.free("b")
    await house.go(31)
    assert (await house.news(watch_id)).outcome is None
    house.free("a")
    await house.go(31)
    assert await house.told(watch_id) == "released"


async def test_both_orders_are_one_watch(house: House) -> None:
    house.hold("a")
    watch_id, _ = await house.arm("wait --all 'lock a' 'lock b'")
    assert await house.arm("wait --all 'lock b' 'lock a' 'lock a'") == (watch_id, 2)


async def test_at_the_deadline_it_says_what_still_holds(house: House) -> None:
    house.hold("a")
    watch_id, _ = await house.arm("wait --all 'lock a' 'lock b'", ttl_s=60)
    await house.go(61)
    assert await house.told(watch_id) == "expired"
    assert await line_of(house, watch_id) == "still held: lock a"


async def test_work_that_matches_nothing_is_said_and_never_counts(
    house: House,
) -> None:
    house.hold("a")
    missing = "process --match no-such-work-anywhere"
    watch_id, _ = await house.arm(f"wait --any 'lock a' '{missing}'")
    assert missing in await house.notes(watch_id)
    house.free("a")
    await house.go(31)
    assert await house.told(watch_id) == "released"
    watch_id, _ = await house.arm(f"wait --all '{missing}'")
    assert await house.told(watch_id) == "unseen"


async def test_what_it_remembers_survives_a_restart(house: House) -> None:
    house.hold("a")
    with working() as work:
        target = f"wait --all 'lock a' 'process --pid {work.pid}'"
        watch_id, _ = await house.arm(target)
        await house.go(1)
        await house.crash()
        work.end()
    async with House(house.folder, clock=house.clock) as later:
        await later.go(31)
        assert (await later.news(watch_id)).outcome is None
        later.free("a")
        await later.go(31)
        assert await later.told(watch_id) == "released"


async def test_device_numbers_of_an_earlier_boot_are_forgotten(house: House) -> None:
    """They are handed out anew, so that an old one would hide the directory."""
    house.hold("a")
    watch_id, _ = await house.arm("wait --any 'lock a'")
    await house.go(1)
    (hosted,) = house.service.engine.hosted()
    memory = json.dumps(hosted.memory)
    assert '"device": ' in memory
    await house.crash()
    with closing_file(sqlite3.connect(house.state / NAME)) as connection, connection:
        other = re.sub(r'"device": \d+', '"device": 1', memory)
        other = other.replace('"members": {', '"members": {"lock of old": 7, ')
        connection.execute("UPDATE watches SET memory = ?", (other,))
    house.free("a")
    async with House(house.folder, clock=house.clock, boot_id="boot-2") as later:
        await later.go(31)
        assert await later.told(watch_id) == "released"


async def test_with_a_member_on_a_host_all_are_looked_at_as_hosts_are(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at them reaches for the host, which has a floor of its own (C4.1)."""

    def far_target_of(text: str, place: Place) -> Target:
        return replace(target_of(text, place), on_hosts="lock b" in text)

    monkeypatch.setattr("watcher.conditions.group.member_of", far_target_of)
    house.hold("a")
    house.hold("b")
    for target, every_s in (("lock a", 30), ("lock b", 60)):
        await house.arm(f"wait --any '{target}'", every_s=1)
        [(found,)] = house.rows(
            "SELECT every_s FROM watches WHERE target LIKE ?", f"%{target}%"
        )
        assert found == every_s
