"""One loop for any number of watches, on a clock that the test moves."""

import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.model import Ending, Memory, Observation, Outcome, Sight, Target
from policies.sight import absent, released, unknown
from policies.target import lock_target, match_target
from policies.verdict import Rules
from policies.wording import Phrase, phrase
from tests.fakes import (
    START,
    FakeClock,
    FakeCondition,
    FakeHints,
    FakeListener,
    until,
)
from watcher import engine, looking
from watcher.clock import SystemClock
from watcher.conditions import DirectoryHint
from watcher.conditions.lock import LockCondition
from watcher.engine import Engine, Listener, Watch
from watcher.hints import SystemHints
from watcher.looking import OnThread
from watcher.offload import Worker

T = TypeVar("T")

SETTLE_S = 0.25
EVERY_S = 30.0
SLACK_S = 5.0  # of a machine that is busy with other tests
LOCK = lock_target("/locks/lock-demo.md", "/locks")
WORK = match_target("soak.py")
DENIED = phrase("denied", path="/locks/lock-demo.md")


class Sights:
    """What a condition shows, which a test changes."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.sight = Sight.HELD
        self.absent = False
        self.reason: Phrase | None = None
        self.error: Exception | None = None
        self.notes: tuple[Phrase, ...] = ()
        self.remarks: tuple[Phrase, ...] = ()

    def see(self) -> Observation:
        if self.error is not None:
            raise self.error
        at, evidence = self._clock.wall(), {"means": "fake"}
        if self.absent:
            return absent(at, phrase("nothing_matches"), {}, evidence)
        if self.sight is Sight.UNKNOWN:
            return unknown({}, at, self.reason or DENIED, evidence)
        if self.sight is Sight.RELEASED:
            return released(at, evidence, {}, self.remarks)
        return Observation(
            sight=Sight.HELD,
            at=at,
            evidence=evidence,
            notes=self.notes,
            remarks=self.remarks,
        )


@dataclass
class Bench:
    """An engine at work, and everything that it is given."""

    clock: FakeClock = field(default_factory=FakeClock)
    listener: FakeListener = field(default_factory=FakeListener)
    hints: FakeHints = field(default_factory=FakeHints)
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.engine = Engine(clock=self.clock, listener=self.listener)
        self.conditions: dict[str, FakeCondition] = {}
        self.clock.busy = self.looking

    def arm(
        self,
        watch_id: str = "w",
        *,
        target: Target = LOCK,
        ttl_s: int = 3600,
        every_s: float = EVERY_S,
        settle_s: float = SETTLE_S,
        start_within_s: float = 0.0,
        group: str = "fake",
    ) -> Sights:
        """Arm a watch and return what its condition shows."""
        sights = Sights(self.clock)
        condition = FakeCondition(target, sights.see, group)
        self.conditions[watch_id] = condition
        now_s = self.clock.boot()
        self.engine.arm(
            Watch(
                id=watch_id,
                condition=condition,
                rules=Rules(
                    armed_s=now_s,
                    deadline_s=now_s + ttl_s,
                    settle_s=settle_s,
                    start_within_s=start_within_s,
                ),
                every_s=every_s,
                ttl_s=ttl_s,
                label=target.label,
                armed_at=self.clock.wall(),
                armed_awake_s=self.clock.awake(),
                resume="go on",
                session="s1",
            )
        )
        return sights

    def probes(self, watch_id: str = "w") -> int:
        return self.conditions[watch_id].probes

    def looking(self) -> bool:
        """Say whether a look is under way that does not hang."""
        hanging = {condition.hanging for condition in self.conditions.values()}
        groups = self.engine._groups.values()
        return any(g.busy and g.name not in hanging for g in groups)

    async def to_next_look(self) -> None:
        """Let time pass until the next look has been taken."""
        due_s = self.engine.next_due_s()
        assert due_s is not None
        await self.clock.advance(due_s - self.clock.boot())

    async def unhang(self, watch_id: str = "w") -> None:
        """Let a look that hangs come back; later ones do not hang."""
        condition = self.conditions[watch_id]
        gate, condition.hang = condition.hang, None
        assert gate is not None
        gate.set()
        await until(lambda: not condition.hanging)
        await self.clock.settle()

    def rules(self, ttl_s: float) -> Rules:
        """Return the rules of a watch that is armed now."""
        now_s = self.clock.boot()
        return Rules(armed_s=now_s, deadline_s=now_s + ttl_s, settle_s=SETTLE_S)

    @property
    def endings(self) -> dict[str, Ending]:
        return {i: outcome.ending for i, outcome in self.listener.outcomes.items()}

    @property
    def outcome(self) -> Outcome:
        (outcome,) = self.listener.outcomes.values()
        return outcome

    def worker_of(self, group: str) -> Worker:
        looker = self.engine._groups[group].looker
        assert isinstance(looker, OnThread)
        return looker.worker

    def said(self) -> list[str]:
        return [note.key for _, note in self.listener.notes]


@asynccontextmanager
async def running(*, hints: bool = False) -> AsyncIterator[Bench]:
    """Run an engine; at the end everything it hosted must be let go."""
    bench = Bench()
    if hints:
        bench.engine.use_hints(bench.hints)
    task = asyncio.create_task(bench.engine.run(bench.stop))
    await bench.clock.settle()
    try:
        yield bench
    finally:
        bench.stop.set()
        async with asyncio.timeout(20):
            await task
        for condition in bench.conditions.values():
            if condition.hang is not None:
                condition.hang.set()
        await until(lambda: all(c.closed for c in bench.conditions.values()))
        assert all(len(c.closed) == 1 for c in bench.conditions.values())
        assert bench.hints.closed is hints
        assert bench.hints.followed == {}


class TestEnding:
    async def test_what_is_clear_when_armed_ends_once_that_has_lasted(self) -> None:
        async with running() as bench:
            sights = bench.arm()
            sights.sight = Sight.RELEASED
            await bench.clock.advance(SETTLE_S - 0.01)
            assert (bench.probes(), bench.endings) == (1, {})
            await bench.clock.advance(0.01)
            assert bench.endings == {"w": Ending.RELEASED}
            assert bench.outcome.already_clear
            assert bench.listener.waiting == []

    async def test_without_a_settle_time_the_second_look_follows_at_once(self) -> None:
        async with running() as bench:
            bench.arm(target=WORK, settle_s=0.0).sight = Sight.RELEASED
            await bench.clock.settle()
            assert (bench.probes(), bench.endings) == (2, {"w": Ending.ENDED})
            assert bench.outcome.waited_s == 0

    async def test_a_release_is_believed_after_a_second_look(self) -> None:
        async with running() as bench:
            sights = bench.arm()
            await bench.clock.advance(45)
            sights.sight = Sight.RELEASED
            await bench.clock.advance(15)
            assert (bench.probes(), bench.endings) == (3, {})
            await bench.clock.advance(SETTLE_S)
            assert (bench.probes(), bench.endings) == (4, {"w": Ending.RELEASED})
            assert not bench.outcome.already_clear

    async def test_what_is_back_at_the_second_look_is_waited_for_again(self) -> None:
        async with running() as bench:
            sights = bench.arm(ttl_s=300)
            await bench.clock.settle()
            for _ in range(3):
                sights.sight = Sight.RELEASED
                await bench.to_next_look()
                assert bench.endings == {}
                sights.sight = Sight.HELD
                await bench.clock.advance(SETTLE_S)
                assert bench.endings == {}
            await bench.clock.advance(300)
            assert bench.endings == {"w": Ending.EXPIRED}

    @pytest.mark.parametrize("between", ["unknown", "raises"])
    async def test_a_release_must_last_without_a_gap_in_the_looks(
        self, between: str
    ) -> None:
        async with running() as bench:
            sights = bench.arm()
            await bench.clock.settle()
            sights.sight = Sight.RELEASED
            await bench.clock.advance(EVERY_S)
            if between == "raises":
                sights.error = OSError(5, "gone")
            else:
                sights.sight = Sight.UNKNOWN
            await bench.clock.advance(SETTLE_S)
            sights.error, sights.sight = None, Sight.RELEASED
            await bench.to_next_look()
            assert bench.endings == {}
            await bench.clock.advance(SETTLE_S)
            assert bench.endings == {"w": Ending.RELEASED}

    async def test_what_cleared_in_the_last_interval_is_a_release(self) -> None:
        async with running() as bench:
            sights = bench.arm(ttl_s=50)
            await bench.clock.advance(49)
            sights.sight = Sight.RELEASED
            await bench.clock.advance(1)
            assert bench.endings == {}
            await bench.clock.advance(SETTLE_S)
            assert bench.endings == {"w": Ending.RELEASED}

    async def test_at_the_deadline_there_is_one_last_look(self) -> None:
        async with running() as bench:
            bench.arm(ttl_s=50)
            await bench.clock.advance(49.9)
            assert (bench.probes(), bench.endings) == (2, {})
            await bench.clock.advance(0.1)
            assert (bench.probes(), bench.endings) == (3, {"w": Ending.EXPIRED})

    async def test_an_ended_watch_is_looked_at_no_more(self) -> None:
        async with running() as bench:
            bench.arm(ttl_s=50)
            await bench.clock.advance(50)
            await until(lambda: bench.conditions["w"].closed)
            await bench.clock.advance(1000)
            assert bench.probes() == 3

    async def test_an_outcome_carries_who_when_and_by_which_means(self) -> None:
        async with running() as bench:
            sights = bench.arm()
            sights.remarks = (phrase("orphan", pid=7),)
            await bench.clock.advance(40)
            sights.sight = Sight.RELEASED
            await bench.clock.advance(20 + SETTLE_S)
            outcome = bench.outcome
            assert (outcome.watch_id, outcome.target) == ("w", LOCK)
            assert (outcome.label, outcome.resume, outcome.session) == (
                "demo",
                "go on",
                "s1",
            )
            assert outcome.armed_at == START
            assert outcome.ended_at == bench.clock.wall()
            assert (outcome.waited_s, outcome.ttl_s) == (60 + SETTLE_S, 3600)
            assert (outcome.observations, outcome.unknown_s) == (4, 0)
            assert outcome.evidence["means"] == "fake"
            assert outcome.evidence["seen_at"] == bench.clock.wall().isoformat()
            assert outcome.tail == sights.remarks
            assert outcome.unknown_since is None

    @settings(deadline=None, max_examples=60)
    @given(st.lists(st.sampled_from(Sight), max_size=12))
    def test_only_what_two_looks_in_a_row_saw_clear_is_released(
        self, shown: list[Sight]
    ) -> None:
        async def play() -> tuple[Ending, list[Sight]]:
            seen: list[Sight] = []
            async with running() as bench:
                sights = bench.arm(ttl_s=300)

                def see() -> Observation:
                    sights.sight = shown[len(seen)] if len(seen) < len(shown) else last
                    seen.append(sights.sight)
                    return Sights.see(sights)

                last = Sight.HELD
                bench.conditions["w"].see = see
                await bench.clock.advance(301)
                return bench.outcome.ending, seen

        ending, seen = asyncio.run(play())
        pair = (Sight.RELEASED, Sight.RELEASED)
        pairs = list(pairwise(seen))
        if ending is Ending.RELEASED:
            assert pairs.index(pair) == len(pairs) - 1
        else:
            assert ending is Ending.EXPIRED
            assert pair not in pairs


class TestUnknown:
    async def test_a_failure_to_look_is_never_a_release(self) -> None:
        async with running() as bench:
            bench.arm(ttl_s=600).sight = Sight.UNKNOWN
            await bench.clock.advance(599)
            assert bench.endings == {}
            await bench.clock.advance(1)
            assert bench.endings == {"w": Ending.EXPIRED}

    async def test_an_expiry_says_since_when_and_why_nothing_was_seen(self) -> None:
        async with running() as bench:
            sights = bench.arm(ttl_s=600)
            await bench.clock.advance(250)
            sights.sight = Sight.UNKNOWN
            await bench.clock.advance(350)
            outcome = bench.outcome
            assert outcome.reason == DENIED
            assert outcome.unknown_since is not None
            assert (outcome.unknown_since - START).total_seconds() == 270
            assert outcome.unknown_s == 330

    async def test_time_without_sight_is_counted_also_when_it_comes_back(self) -> None:
        async with running() as bench:
            sights = bench.arm(ttl_s=600)
            for sight in (Sight.UNKNOWN, Sight.HELD, Sight.UNKNOWN, Sight.HELD):
                sights.sight = sight
                await bench.clock.advance(59)
            await bench.clock.advance(600)
            assert bench.outcome.unknown_since is None
            assert bench.outcome.unknown_s == 60 + 60

    async def test_each_reason_is_said_once(self) -> None:
        async with running() as bench:
            sights = bench.arm()
            sights.sight = Sight.UNKNOWN
            await bench.clock.advance(300)
            sights.reason = phrase("hung", what="it")
            await bench.clock.advance(300)
            assert bench.said() == ["cannot_see", "cannot_see"]
            reasons = [note.values["reason"] for _, note in bench.listener.notes]
            assert reasons == [DENIED, sights.reason]

    async def test_a_probe_that_raises_has_seen_nothing_and_stops_no_other(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with running() as bench:
            bench.arm("bad", ttl_s=60).error = KeyError("oops")
            good = bench.arm("good")
            await bench.clock.advance(30)
            good.sight = Sight.RELEASED
            await bench.clock.advance(31)
            assert bench.endings == {"bad": Ending.EXPIRED, "good": Ending.RELEASED}
            outcome = bench.listener.outcomes["bad"]
            assert outcome.reason == phrase("probe_failed", error="KeyError: 'oops'")
            assert outcome.evidence["error"] == "KeyError: 'oops'"
        assert {record.message for record in caplog.records} == {"probe.failed"}
        assert caplog.records[0].exc_info is not None

    async def test_what_was_remembered_stays_when_a_look_fails(self) -> None:
        async with running() as bench:
            sights = bench.arm()
            given_back: list[Memory] = []
            condition = bench.conditions["w"]

            def look(memory: Memory, at: datetime) -> Observation:
                given_back.append(memory)
                seen = sights.see()
                return Observation(sight=seen.sight, at=at, memory={"n": 1})

            condition.look = look  # type: ignore[method-assign]  # to see the memory
            await bench.clock.settle()
            sights.error = OSError(5, "gone")
            await bench.clock.advance(2 * EVERY_S)
            sights.error = None
            await bench.clock.advance(EVERY_S)
            assert given_back == [{}, {"n": 1}, {"n": 1}, {"n": 1}]


class TestUnseen:
    async def test_what_matches_nothing_is_unseen_at_once(self) -> None:
        async with running() as bench:
            bench.arm(target=WORK, settle_s=0.0).absent = True
            await bench.clock.settle()
            assert bench.endings == {"w": Ending.UNSEEN}
            assert bench.outcome.waited_s == 0
            assert bench.outcome.unknown_since is None

    async def test_what_has_yet_to_begin_is_waited_for(self) -> None:
        async with running() as bench:
            bench.arm(target=WORK, start_within_s=70).absent = True
            await bench.clock.advance(69)
            assert (bench.endings, bench.listener.waiting) == ({}, ["w"])
            await bench.clock.advance(1)
            assert bench.endings == {"w": Ending.UNSEEN}
            assert bench.outcome.unknown_s == 0

    async def test_what_begins_in_time_is_waited_for_to_its_end(self) -> None:
        async with running() as bench:
            sights = bench.arm(target=WORK, settle_s=0.0, start_within_s=70)
            sights.absent = True
            await bench.clock.advance(40)
            sights.absent = False
            await bench.clock.advance(200)
            assert bench.endings == {}
            sights.sight = Sight.RELEASED
            await bench.clock.advance(30)
            assert bench.endings == {"w": Ending.ENDED}
            assert not bench.outcome.already_clear

    async def test_a_deadline_before_the_start_is_due_ends_as_unseen(self) -> None:
        async with running() as bench:
            bench.arm(target=WORK, ttl_s=60, start_within_s=3600).absent = True
            await bench.clock.advance(60)
            assert bench.endings == {"w": Ending.UNSEEN}


class TestCadence:
    @pytest.mark.parametrize(
        ("every_s", "looks"), [(30.0, 11), (60.0, 6), (300.0, 2), (1.0, 301)]
    )
    async def test_looks_are_an_interval_apart(
        self, every_s: float, looks: int
    ) -> None:
        async with running() as bench:
            bench.arm(every_s=every_s)
            await bench.clock.advance(300)
            assert bench.probes() == looks

    async def test_it_is_armed_once_behind_the_first_look(self) -> None:
        async with running() as bench:
            bench.arm()
            await bench.clock.settle()
            assert (bench.probes(), bench.listener.waiting) == (1, ["w"])
            await bench.clock.advance(300)
            assert bench.listener.waiting == ["w"]

    async def test_a_note_is_said_once(self) -> None:
        async with running() as bench:
            sights = bench.arm()
            sights.notes = (phrase("matched", pid=7, command="soak.py"),)
            await bench.clock.advance(100)
            sights.notes += (phrase("matched", pid=8, command="soak.py"),)
            await bench.clock.advance(100)
            assert bench.said() == ["matched", "matched"]

    async def test_a_watch_may_be_armed_at_any_time(self) -> None:
        async with running() as bench:
            bench.arm("one")
            await bench.clock.advance(10)
            bench.arm("two", ttl_s=5)
            await bench.clock.advance(5)
            assert bench.endings == {"two": Ending.EXPIRED}
            assert bench.probes("one") == 1

    async def test_a_stepped_wall_clock_moves_no_deadline(self) -> None:
        async with running() as bench:
            bench.arm("back", ttl_s=600)
            bench.arm("ahead", ttl_s=700)
            bench.clock.step_wall(-7200)
            await bench.clock.advance(599)
            assert bench.endings == {}
            await bench.clock.advance(1)
            assert bench.endings == {"back": Ending.EXPIRED}
            bench.clock.step_wall(14400)
            await bench.clock.advance(99)
            assert len(bench.endings) == 1
            await bench.clock.advance(1)
            assert bench.endings["ahead"] is Ending.EXPIRED
            assert bench.listener.outcomes["ahead"].waited_s == 700

    async def test_a_deadline_beyond_any_timer_disturbs_no_other(self) -> None:
        async with running() as bench:
            for days in (60, 365):
                bench.arm(f"{days}d", ttl_s=days * 86400, every_s=86400)
            bench.arm("5s", ttl_s=5)
            await bench.clock.advance(5)
            assert bench.endings == {"5s": Ending.EXPIRED}
            await bench.clock.advance(60 * 86400)
            assert bench.endings["60d"] is Ending.EXPIRED
            await bench.clock.advance(305 * 86400)
            assert bench.endings["365d"] is Ending.EXPIRED


class TestSleepingMachine:
    async def test_a_deadline_that_passed_in_sleep_is_one_real_look_away(self) -> None:
        async with running() as bench:
            bench.arm(ttl_s=3600)
            await bench.clock.advance(600)
            before = bench.probes()
            await bench.clock.advance(7200, asleep=True)
            assert bench.endings == {"w": Ending.EXPIRED}
            assert bench.probes() == before + 1
            assert bench.outcome.suspended_s == 7200
            assert bench.outcome.waited_s == 7800

    async def test_what_cleared_in_sleep_is_a_release(self) -> None:
        async with running() as bench:
            sights = bench.arm(ttl_s=3600)
            await bench.clock.advance(600)
            sights.sight = Sight.RELEASED
            await bench.clock.advance(7200, asleep=True)
            assert bench.endings == {}
            await bench.clock.advance(SETTLE_S)
            assert bench.endings == {"w": Ending.RELEASED}

    async def test_a_short_sleep_only_costs_one_look(self) -> None:
        async with running() as bench:
            bench.arm(ttl_s=3600)
            await bench.clock.advance(600)
            before = bench.probes()
            await bench.clock.advance(120, asleep=True)
            assert (bench.probes(), bench.endings) == (before + 1, {})
            await bench.clock.advance(3600)
            assert bench.outcome.suspended_s == 120

    async def test_without_sleep_none_is_claimed(self) -> None:
        async with running() as bench:
            bench.arm(ttl_s=600)
            await bench.clock.advance(600)
            assert bench.outcome.suspended_s == 0

    @pytest.mark.parametrize("gap_s", [90, 3 * 3600])
    async def test_a_long_gap_is_made_up_for_by_one_look(self, gap_s: int) -> None:
        async with running() as bench:
            watches = [f"w{i}" for i in range(20)]
            for watch_id in watches:
                bench.arm(watch_id, ttl_s=86400, every_s=60)
            await bench.clock.advance(300)
            before = {i: bench.probes(i) for i in watches}
            await bench.clock.advance(gap_s, asleep=True)
            assert {i: bench.probes(i) - before[i] for i in watches} == dict.fromkeys(
                watches, 1
            )
            await bench.clock.advance(60)
            assert {i: bench.probes(i) - before[i] for i in watches} == dict.fromkeys(
                watches, 2
            )


@contextmanager
def eager_collector() -> Iterator[None]:
    """Collect garbage all the time: what nobody holds is gone at once."""
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        yield
    finally:
        gc.set_threshold(*threshold)


class TestManyAndHanging:
    async def test_none_of_500_watches_is_lost_to_the_garbage_collector(self) -> None:
        count = 500
        gc.freeze()  # what was there before is not the question, and is much
        try:
            with eager_collector():
                async with running() as bench:
                    all_sights = [
                        bench.arm(f"w{i}", group=f"g{i % 20}") for i in range(count)
                    ]
                    await bench.clock.advance(EVERY_S)
                    gc.collect()
                    for sights in all_sights:
                        sights.sight = Sight.RELEASED
                    await bench.clock.advance(EVERY_S)
                    gc.collect()
                    await bench.clock.advance(SETTLE_S)
                    assert len(bench.endings) == count
                    assert set(bench.endings.values()) == {Ending.RELEASED}
        finally:
            gc.unfreeze()

    async def test_a_probe_that_hangs_holds_no_other_watch_up(self) -> None:
        async with running() as bench:
            bench.arm("hung", ttl_s=86400, group="dead mount")
            bench.conditions["hung"].hang = threading.Event()
            others = [bench.arm(f"w{i}") for i in range(20)]
            await bench.clock.advance(300)
            assert bench.probes("hung") == 1
            assert {bench.probes(f"w{i}") for i in range(20)} == {11}
            for sights in others:
                sights.sight = Sight.RELEASED
            await bench.clock.advance(EVERY_S + SETTLE_S)
            assert len(bench.endings) == 20

    @pytest.mark.slow
    async def test_a_probe_that_hangs_is_given_up_and_the_deadline_kept(self) -> None:
        async with running() as bench:
            bench.arm(ttl_s=60)
            await bench.clock.advance(59)
            bench.conditions["w"].hang = threading.Event()
            await bench.clock.advance(1)
            assert bench.endings == {}
            assert OnThread.last_limit_s < 2
            began = time.monotonic()
            await until(lambda: bench.endings)
            assert time.monotonic() - began < OnThread.last_limit_s + SLACK_S
            assert bench.endings == {"w": Ending.EXPIRED}
            assert bench.outcome.reason == phrase("hung", what=LOCK.text)
            assert bench.outcome.evidence["hung"] is True
            assert bench.outcome.unknown_since is not None

    async def test_a_hung_watch_is_looked_at_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(engine, "LOOK_LIMIT_S", 0.05)
        monkeypatch.setattr(OnThread, "last_limit_s", 0.05)
        async with running() as bench:
            sights = bench.arm()
            condition = bench.conditions["w"]
            condition.hang = threading.Event()
            await until(lambda: bench.listener.waiting)
            assert bench.said() == ["cannot_see"]
            await bench.clock.advance(EVERY_S)
            assert bench.probes() == 1, "the look before is still out"
            await bench.unhang()
            monkeypatch.undo()
            sights.sight = Sight.RELEASED
            await bench.clock.advance(EVERY_S)
            await bench.clock.advance(SETTLE_S)
            assert bench.endings == {"w": Ending.RELEASED}


class TestHints:
    WANTED = (DirectoryHint("/locks", "lock-demo.md"),)

    async def test_a_hint_asks_for_a_look_at_once_and_decides_nothing(self) -> None:
        async with running(hints=True) as bench:
            bench.arm()
            bench.conditions["w"].wanted = self.WANTED
            await bench.clock.advance(10)
            assert bench.hints.followed == {"w": list(self.WANTED)}
            bench.engine.look_now("w")
            await bench.clock.settle()
            assert (bench.probes(), bench.endings) == (2, {})

    async def test_a_release_is_seen_long_before_the_next_poll(self) -> None:
        async with running(hints=True) as bench:
            sights = bench.arm()
            await bench.clock.advance(1)
            sights.sight = Sight.RELEASED
            bench.engine.look_now("w")
            await bench.clock.advance(SETTLE_S)
            assert bench.endings == {"w": Ending.RELEASED}
            assert bench.outcome.waited_s == 1 + SETTLE_S

    async def test_hints_that_stay_silent_cost_one_interval(self) -> None:
        async with running(hints=True) as bench:
            sights = bench.arm()
            await bench.clock.advance(1)
            sights.sight = Sight.RELEASED
            await bench.clock.advance(EVERY_S + SETTLE_S)
            assert bench.endings == {"w": Ending.RELEASED}

    async def test_a_hint_during_a_look_asks_for_another(self) -> None:
        async with running(hints=True) as bench:
            bench.arm()
            condition = bench.conditions["w"]
            condition.hang = threading.Event()
            await bench.clock.settle()
            bench.engine.look_now("w")
            bench.engine.look_now("w")
            await bench.unhang()
            assert bench.probes() == 2
            await bench.clock.advance(EVERY_S)
            assert bench.probes() == 3

    async def test_a_hint_while_it_settles_does_not_bring_the_second_look_forward(
        self,
    ) -> None:
        async with running(hints=True) as bench:
            sights = bench.arm()
            await bench.clock.advance(1)
            sights.sight = Sight.RELEASED
            bench.engine.look_now("w")
            await bench.clock.advance(SETTLE_S / 2)
            bench.engine.look_now("w")
            await bench.clock.advance(SETTLE_S / 4)
            assert (bench.probes(), bench.endings) == (2, {})
            await bench.clock.advance(SETTLE_S / 4)
            assert bench.endings == {"w": Ending.RELEASED}

    async def test_what_changed_before_a_hint_was_in_place_is_seen_by_one_more_look(
        self,
    ) -> None:
        async with running(hints=True) as bench:
            bench.hints.fresh = [True]
            bench.arm()
            await bench.clock.settle()
            assert bench.probes() == 2

    async def test_a_look_that_saw_nothing_brings_no_hints(self) -> None:
        async with running(hints=True) as bench:
            sights = bench.arm()
            sights.sight = Sight.UNKNOWN
            await bench.clock.settle()
            assert bench.hints.followed == {}
            sights.sight = Sight.HELD
            await bench.clock.advance(EVERY_S)
            assert "w" in bench.hints.followed

    async def test_a_hint_for_nobody_is_ignored(self) -> None:
        async with running(hints=True) as bench:
            bench.engine.look_now("nobody")
            await bench.clock.settle()
            assert bench.listener.outcomes == {}

    async def test_hints_that_fail_leave_the_timer_and_stop_no_other(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with running(hints=True) as bench:
            bench.hints.error = RuntimeError("no hints today")
            all_sights = [bench.arm(watch_id) for watch_id in ("a", "b")]
            await bench.clock.advance(1)
            for sights in all_sights:
                sights.sight = Sight.RELEASED
            await bench.clock.advance(EVERY_S + SETTLE_S)
            assert len(bench.endings) == 2
        assert {record.message for record in caplog.records} == {"hints.failed"}

    async def test_hints_that_hang_hold_neither_the_deadline_nor_others_up(
        self,
    ) -> None:
        async with running(hints=True) as bench:
            bench.hints.hang = asyncio.Event()
            bench.arm("a", ttl_s=60)
            bench.arm("b", ttl_s=90)
            await bench.clock.advance(90)
            assert set(bench.endings) == {"a", "b"}
            bench.hints.hang.set()
            await bench.clock.settle()
            assert bench.hints.followed == {}

    async def test_without_hints_it_polls(self) -> None:
        async with running() as bench:
            bench.arm()
            bench.conditions["w"].wanted = self.WANTED
            await bench.clock.advance(EVERY_S)
            assert bench.probes() == 2


class TestQuickLooks:
    """A quick look may say that it is held as before, and nothing else."""

    @asynccontextmanager
    async def held(self, *, ttl_s: int = 3600) -> AsyncIterator[Bench]:
        """Give a watch that was seen held and says that it is so as before."""
        async with running() as bench:
            bench.arm(ttl_s=ttl_s)
            await bench.clock.settle()
            bench.conditions["w"].same = True
            yield bench

    def shown(self, bench: Bench, sight: Sight) -> None:
        def see() -> Observation:
            return Observation(sight=sight, at=bench.clock.wall(), reason=DENIED)

        bench.conditions["w"].see = see

    async def test_on_the_timer_what_is_held_is_only_asked_whether_it_changed(
        self,
    ) -> None:
        async with self.held(ttl_s=310) as bench:
            await bench.clock.advance(300)
            assert (bench.probes(), bench.conditions["w"].asked) == (1, 10)
            assert bench.listener.seen == [("w", Sight.HELD)]
            await bench.clock.advance(10)
            assert bench.outcome.observations == 12

    @pytest.mark.parametrize("sight", [Sight.RELEASED, Sight.UNKNOWN])
    async def test_one_that_does_not_confirm_is_a_whole_look_at_once(
        self, sight: Sight
    ) -> None:
        async with self.held() as bench:
            self.shown(bench, sight)
            bench.conditions["w"].same = False
            await bench.clock.advance(EVERY_S)
            assert (bench.probes(), bench.conditions["w"].asked) == (2, 1)
            assert bench.listener.seen[-1] == ("w", sight)

    async def test_one_that_fails_has_seen_nothing(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with self.held() as bench:

            def unchanged(memory: Memory) -> bool:
                raise OSError(5, "gone")

            bench.conditions["w"].unchanged = unchanged  # type: ignore[method-assign]  # to fail
            await bench.clock.advance(EVERY_S)
            assert bench.listener.seen[-1] == ("w", Sight.UNKNOWN)
            assert bench.endings == {}
        assert [record.message for record in caplog.records] == ["probe.failed"]

    async def test_the_last_look_is_a_whole_one(self) -> None:
        async with self.held(ttl_s=60) as bench:
            self.shown(bench, Sight.RELEASED)
            await bench.clock.advance(60)
            assert (bench.probes(), bench.conditions["w"].asked) == (2, 1)
            await bench.clock.advance(SETTLE_S)
            assert bench.endings == {"w": Ending.RELEASED}

    async def test_where_the_deadline_passes_meanwhile_a_whole_one_follows(
        self,
    ) -> None:
        async with self.held(ttl_s=60) as bench:
            condition = bench.conditions["w"]

            def unchanged(memory: Memory) -> bool:
                bench.clock._move(bench.clock.boot() + 40, awake=True)
                return True

            condition.unchanged = unchanged  # type: ignore[method-assign]  # it takes long
            await bench.clock.advance(EVERY_S)
            await bench.clock.advance(0)
            assert (bench.probes(), bench.endings) == (2, {"w": Ending.EXPIRED})

    async def test_a_hint_asks_for_a_whole_one(self) -> None:
        async with self.held() as bench:
            self.shown(bench, Sight.RELEASED)
            bench.engine.look_now("w")
            await bench.clock.settle()
            assert (bench.probes(), bench.conditions["w"].asked) == (2, 0)
            await bench.clock.advance(SETTLE_S)
            assert bench.endings == {"w": Ending.RELEASED}

    async def test_a_hint_during_a_quick_one_asks_for_a_whole_one_behind_it(
        self,
    ) -> None:
        async with self.held() as bench:
            condition, loop = bench.conditions["w"], asyncio.get_running_loop()

            def unchanged(memory: Memory) -> bool:
                loop.call_soon_threadsafe(bench.engine.look_now, "w")
                return True

            condition.unchanged = unchanged  # type: ignore[method-assign]  # to be hinted
            await bench.clock.advance(EVERY_S)
            assert bench.probes() == 2

    @pytest.mark.parametrize("before", ["never seen", "unknown", "back again"])
    async def test_only_behind_a_look_that_saw_it_held_is_one_taken(
        self, before: str
    ) -> None:
        async with running() as bench:
            sights = bench.arm()
            condition = bench.conditions["w"]
            condition.same = True
            if before == "unknown":
                sights.sight = Sight.UNKNOWN
            elif before == "back again":
                sights.sight = Sight.RELEASED
            await bench.clock.settle()
            assert (condition.probes, condition.asked) == (1, 0)
            if before == "unknown":
                await bench.to_next_look()
                assert (condition.probes, condition.asked) == (2, 0)
            elif before == "back again":
                sights.sight = Sight.HELD
                await bench.to_next_look()
                assert (condition.probes, condition.asked) == (2, 0)

    @settings(deadline=None, max_examples=60)
    @given(st.lists(st.sampled_from([*Sight, "same"]), max_size=12))
    def test_whatever_they_say_only_two_whole_looks_in_a_row_release(
        self, shown: list[Sight | str]
    ) -> None:
        async def play() -> tuple[Ending, list[Sight | str]]:
            seen: list[Sight | str] = []
            left = list(shown)
            async with running() as bench:
                bench.arm(ttl_s=300)
                condition = bench.conditions["w"]

                def see() -> Observation:
                    what = left.pop(0) if left else Sight.HELD
                    sight = Sight.HELD if what == "same" else Sight(what)
                    seen.append(sight)
                    return Observation(sight=sight, at=START, reason=DENIED)

                def unchanged(memory: Memory) -> bool:
                    if left and left[0] == "same":
                        seen.append(left.pop(0))
                        return True
                    return False

                condition.see = see
                condition.unchanged = unchanged  # type: ignore[method-assign]  # as drawn
                await bench.clock.advance(301)
                return bench.outcome.ending, seen

        ending, seen = asyncio.run(play())
        pair = (Sight.RELEASED, Sight.RELEASED)
        assert (ending is Ending.RELEASED) == (tuple(seen[-2:]) == pair)
        assert pair not in list(pairwise(seen[:-1]))


class TestGoingOn:
    """Whoever is told of an end may let the watch go on, for those who wait longer."""

    async def test_behind_an_expiry_it_goes_on_to_the_new_deadline(self) -> None:
        async with running(hints=True) as bench:
            bench.listener.rules = [bench.rules(150)]
            sights = bench.arm(ttl_s=60)
            await bench.clock.advance(60)
            assert [o.ending for o in bench.listener.gone_on] == [Ending.EXPIRED]
            assert "w" in bench.hints.followed
            await bench.clock.advance(60)
            assert (bench.probes(), bench.endings) == (5, {})
            sights.sight = Sight.RELEASED
            await bench.clock.advance(30 + SETTLE_S)
            assert bench.endings == {"w": Ending.RELEASED}
            assert bench.listener.waiting == ["w"]

    async def test_its_new_deadline_is_kept_like_the_first(self) -> None:
        async with running() as bench:
            bench.listener.rules = [bench.rules(70), bench.rules(75)]
            bench.arm(ttl_s=60)
            await bench.clock.advance(75)
            assert len(bench.listener.gone_on) == 2
            assert bench.endings == {"w": Ending.EXPIRED}
            assert bench.outcome.waited_s == 75

    async def test_behind_a_release_it_must_be_released_anew(self) -> None:
        async with running() as bench:
            bench.listener.rules = [bench.rules(3600)]
            sights = bench.arm()
            sights.sight = Sight.RELEASED
            await bench.clock.advance(SETTLE_S)
            (told,) = bench.listener.gone_on
            assert (told.ending, told.already_clear) == (Ending.RELEASED, True)
            sights.sight = Sight.HELD  # somebody has taken it
            await bench.to_next_look()
            assert bench.endings == {}
            sights.sight = Sight.RELEASED
            await bench.to_next_look()
            assert bench.endings == {}
            await bench.clock.advance(SETTLE_S)
            assert bench.endings == {"w": Ending.RELEASED}
            assert not bench.outcome.already_clear

    async def test_one_look_is_no_release_behind_another_release(self) -> None:
        async with running() as bench:
            bench.listener.rules = [bench.rules(3600)]
            bench.arm().sight = Sight.RELEASED
            await bench.clock.advance(SETTLE_S)
            before = bench.probes()
            await bench.to_next_look()
            assert (bench.probes(), bench.endings) == (before + 1, {})

    async def test_an_end_that_could_not_be_told_is_told_later(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with running() as bench:
            bench.arm("w").sight = Sight.RELEASED
            bench.arm("other")
            bench.listener.error = OSError(28, "disk full")
            await bench.clock.advance(SETTLE_S)
            assert bench.endings == {}
            bench.listener.error = None
            await bench.clock.advance(EVERY_S)
            assert bench.endings == {"w": Ending.RELEASED}
            assert bench.probes("other") == 2
        assert [record.message for record in caplog.records] == ["look.failed"]

    @pytest.mark.parametrize("ttl_s", [10, 60])
    async def test_an_expiry_that_cannot_be_told_is_tried_once_an_interval(
        self, ttl_s: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with running() as bench:
            bench.arm(ttl_s=ttl_s)
            bench.listener.error = OSError(28, "disk full")
            await bench.clock.advance(ttl_s + 2 * EVERY_S)
            assert len(caplog.records) == 3
            bench.listener.error = None
            await bench.clock.advance(EVERY_S)
            assert bench.endings == {"w": Ending.EXPIRED}

    async def test_what_fails_before_the_deadline_is_looked_at_there_again(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with running() as bench:
            bench.arm(ttl_s=40, every_s=300).sight = Sight.RELEASED
            bench.listener.error = OSError(28, "disk full")
            await bench.clock.advance(SETTLE_S)
            bench.listener.error = None
            await bench.clock.advance(40)
            assert bench.endings == {"w": Ending.RELEASED}


class Counting(Worker):
    """Counts what is handed over to threads."""

    calls = 0

    async def call(self, look: Callable[[], T]) -> T:
        Counting.calls += 1
        return await super().call(look)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> type[Counting]:
    Counting.calls = 0
    monkeypatch.setattr(looking, "Worker", Counting)
    return Counting


class TestGroups:
    @pytest.mark.slow
    async def test_ten_thousand_of_one_group_cost_a_few_hand_overs_a_round(
        self, counting: type[Counting]
    ) -> None:
        count, rounds = 10_000, 3
        fewest = -(-count // engine._MOST_AT_ONCE)
        async with running() as bench:
            for i in range(count):
                bench.arm(f"w{i}", ttl_s=86400)
            await bench.clock.settle()
            for condition in bench.conditions.values():
                condition.same = True
            assert counting.calls == fewest
            await bench.clock.advance(rounds * EVERY_S)
            assert counting.calls == (rounds + 1) * fewest
            conditions = bench.conditions.values()
            assert {(c.probes, c.asked) for c in conditions} == {(1, rounds)}
            assert len(set().union(*(c.threads for c in conditions))) == 1

    async def test_those_armed_at_odd_instants_share_a_hand_over(
        self, counting: type[Counting]
    ) -> None:
        async with running() as bench:
            for i in range(4):
                bench.arm(f"w{i}")
                await bench.clock.advance(0.1)
            await bench.clock.advance(EVERY_S - 0.4)
            assert counting.calls == 5
            await bench.clock.advance(EVERY_S)
            assert counting.calls == 6

    async def test_where_one_hangs_none_of_its_group_is_released(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with running() as bench:
            bench.arm("hung", group="dead")
            neighbour = bench.arm("neighbour", group="dead")
            other = bench.arm("other", group="alive")
            await bench.clock.settle()
            monkeypatch.setattr(engine, "LOOK_LIMIT_S", 0.05)
            monkeypatch.setattr(OnThread, "last_limit_s", 0.05)
            hung = bench.conditions["hung"]
            hung.hang = threading.Event()
            neighbour.sight = other.sight = Sight.RELEASED
            await bench.clock.advance(EVERY_S)
            await until(lambda: len(bench.said()) == 2)
            await bench.clock.advance(SETTLE_S)
            assert bench.endings == {"other": Ending.RELEASED}
            assert {i for i, _ in bench.listener.notes} == {"hung", "neighbour"}
            await bench.unhang("hung")
            await until(lambda: not bench.worker_of("dead").busy)
            monkeypatch.undo()
            await bench.clock.advance(EVERY_S + SETTLE_S)
            assert bench.endings["neighbour"] is Ending.RELEASED

    async def test_what_cannot_even_say_that_it_hangs_is_unknown_and_looked_at_again(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(engine, "LOOK_LIMIT_S", 0.05)
        monkeypatch.setattr(OnThread, "last_limit_s", 0.05)
        async with running() as bench:
            sights = bench.arm()
            condition = bench.conditions["w"]

            def hung(memory: Memory, at: datetime) -> Observation:
                raise KeyError("oops")

            condition.hung = hung  # type: ignore[method-assign]  # to fail
            condition.hang = threading.Event()
            await until(lambda: bench.listener.seen)
            assert bench.listener.seen == [("w", Sight.UNKNOWN)]
            await bench.unhang()
            monkeypatch.undo()
            sights.sight = Sight.RELEASED
            await bench.clock.advance(EVERY_S + SETTLE_S)
            assert bench.endings == {"w": Ending.RELEASED}
        assert {record.message for record in caplog.records} == {"probe.failed"}

    async def test_the_thread_ends_with_the_last_of_its_group(self) -> None:
        async with running() as bench:
            before = threading.active_count()
            for watch_id in ("a", "b"):
                bench.arm(watch_id)
            await bench.clock.settle()
            assert threading.active_count() == before + 1
            bench.engine.drop("a")
            await until(lambda: bench.conditions["a"].closed)
            assert threading.active_count() == before + 1
            bench.engine.drop("b")
            await until(lambda: threading.active_count() == before)
            threads = bench.conditions["b"].threads
            assert set(bench.conditions["b"].closed) == threads

    async def test_one_that_gives_its_thread_up_gets_another(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(engine, "LOOK_LIMIT_S", 0.05)
        monkeypatch.setattr(OnThread, "last_limit_s", 0.05)
        async with running() as bench:
            sights = bench.arm(group="one")
            condition = bench.conditions["w"]

            def hung(memory: Memory, at: datetime) -> Observation:
                condition.group = "two"
                condition.hang = None
                return unknown(memory, at, DENIED, {"means": "fake"})

            condition.hung = hung  # type: ignore[method-assign]  # to move
            gate = condition.hang = threading.Event()
            await until(lambda: bench.listener.seen)
            monkeypatch.undo()
            assert list(bench.engine._groups) == ["two"]
            assert condition.hanging
            sights.sight = Sight.RELEASED
            await bench.clock.advance(EVERY_S + SETTLE_S)
            assert bench.endings == {"w": Ending.RELEASED}
            gate.set()
            await until(lambda: condition.closed)
            assert len(condition.threads) == 2

    async def test_one_that_is_dropped_while_others_are_looked_at_is_not_looked_at(
        self,
    ) -> None:
        async with running() as bench:
            bench.arm("first")
            first = bench.conditions["first"]
            first.hang = threading.Event()
            await bench.clock.settle()
            for watch_id in ("second", "third"):
                bench.arm(watch_id)
            await bench.clock.settle()
            bench.engine.drop("second")
            await bench.unhang("first")
            assert bench.probes("third") == 1
            assert bench.probes("second") == 0
            assert bench.conditions["second"].closed

    async def test_where_all_that_were_due_are_dropped_nothing_is_handed_over(
        self, counting: type[Counting]
    ) -> None:
        async with running() as bench:
            bench.arm("first")
            bench.conditions["first"].hang = threading.Event()
            await bench.clock.settle()
            bench.arm("second")
            await bench.clock.settle()
            bench.engine.drop("second")
            bench.engine.drop("first")
            await bench.unhang("first")
            await until(lambda: bench.conditions["first"].closed)
            await bench.clock.settle()
            assert (counting.calls, bench.endings) == (1, {})

    async def test_an_id_that_is_armed_anew_is_another_watch(self) -> None:
        async with running() as bench:
            bench.arm().sight = Sight.RELEASED
            old = bench.conditions["w"]
            gate = old.hang = threading.Event()
            await bench.clock.settle()
            bench.engine.drop("w")
            bench.arm()
            gate.set()
            await until(lambda: old.closed)
            await bench.clock.settle()
            await bench.clock.advance(EVERY_S)
            assert (old.probes, bench.probes(), bench.endings) == (1, 2, {})


class TestHosting:
    """What a service does with an engine."""

    async def test_it_says_what_it_hosts_and_when_it_must_look(self) -> None:
        async with running() as bench:
            assert bench.engine.next_due_s() is None
            assert list(bench.engine.hosted()) == []
            bench.arm("a", every_s=60)
            bench.arm("b", every_s=300)
            await bench.clock.settle()
            assert [watch.id for watch in bench.engine.hosted()] == ["a", "b"]
            assert bench.engine.next_due_s() == bench.clock.boot() + 60
            bench.engine.drop("a")
            assert bench.engine.next_due_s() == bench.clock.boot() + 300

    async def test_it_may_be_driven_from_outside(self) -> None:
        bench = Bench()
        changed = asyncio.create_task(bench.engine.changed())
        await bench.clock.settle()
        assert not changed.done()
        bench.arm()
        await changed
        bench.engine.step()
        await bench.clock.settle()
        assert bench.probes() == 1
        bench.clock._move(bench.clock.boot() + EVERY_S, awake=True)
        bench.engine.step()
        await bench.clock.settle()
        assert bench.probes() == 2
        bench.engine.close()
        await until(lambda: bench.conditions["w"].closed)

    @pytest.mark.parametrize("ttl_s", [50, 7200])
    async def test_a_deadline_that_is_moved_counts_from_then_on(
        self, ttl_s: int
    ) -> None:
        async with running() as bench:
            bench.arm(ttl_s=3600)
            rules = bench.rules(ttl_s)
            await bench.clock.advance(10)
            bench.engine.change_rules("w", rules)
            await bench.clock.settle()
            assert bench.probes() == 2, "it is looked at anew"
            await bench.clock.advance(ttl_s - 10 - 1)
            assert bench.endings == {}
            await bench.clock.advance(1)
            assert bench.endings == {"w": Ending.EXPIRED}

    async def test_a_deadline_that_is_moved_during_a_look_is_not_missed(self) -> None:
        async with running() as bench:
            bench.arm(ttl_s=3600)
            condition = bench.conditions["w"]
            condition.hang = threading.Event()
            await bench.clock.settle()
            bench.engine.change_rules("w", bench.rules(20))
            await bench.unhang()
            await bench.clock.advance(20)
            assert bench.endings == {"w": Ending.EXPIRED}

    async def test_the_deadline_of_nobody_moves_nothing(self) -> None:
        async with running() as bench:
            bench.engine.change_rules("nobody", bench.rules(20))
            await bench.clock.settle()
            assert bench.engine.next_due_s() is None


class TestStopping:
    async def test_a_dropped_watch_has_no_outcome(self) -> None:
        async with running(hints=True) as bench:
            bench.arm()
            await bench.clock.settle()
            bench.engine.drop("w")
            bench.engine.drop("w")
            await until(lambda: bench.conditions["w"].closed)
            assert bench.hints.followed == {}
            await bench.clock.advance(7200)
            assert (bench.probes(), bench.endings) == (1, {})

    async def test_a_watch_dropped_during_its_look_has_no_outcome(self) -> None:
        async with running() as bench:
            sights = bench.arm()
            condition = bench.conditions["w"]
            condition.hang = threading.Event()
            await bench.clock.settle()
            bench.engine.drop("w")
            assert condition.closed == []
            sights.sight = Sight.RELEASED
            condition.hang.set()
            await until(lambda: condition.closed)
            assert set(condition.closed) == condition.threads
            await bench.clock.advance(7200)
            assert (bench.probes(), bench.endings) == (1, {})
            assert bench.said() == []

    async def test_when_told_to_stop_it_lets_everything_go_at_once(self) -> None:
        async with running(hints=True) as bench:
            bench.arm("idle")
            bench.arm("looking")
            bench.conditions["looking"].hang = threading.Event()
            bench.arm("settling").sight = Sight.RELEASED
            await bench.clock.settle()
        assert bench.endings == {}

    async def test_when_cancelled_it_lets_everything_go_too(self) -> None:
        bench = Bench()
        bench.engine.use_hints(bench.hints)
        bench.arm()
        task = asyncio.create_task(bench.engine.run(bench.stop))
        await bench.clock.settle()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: bench.conditions["w"].closed)
        assert bench.hints.closed

    async def test_a_listener_may_be_told_nothing(self) -> None:
        bench = Bench()
        bench.engine = Engine(clock=bench.clock, listener=Listener())
        task = asyncio.create_task(bench.engine.run(bench.stop))
        bench.arm(ttl_s=60).notes = (phrase("someone"),)
        await bench.clock.advance(60)
        await until(lambda: bench.conditions["w"].closed)
        bench.stop.set()
        await task


class TestRealParts:
    """The engine with real files, real events and the real clock."""

    @asynccontextmanager
    async def waiting(self, path: Path, listener: FakeListener) -> AsyncIterator[Watch]:
        clock, stop = SystemClock(), asyncio.Event()
        hosting = Engine(clock=clock, listener=listener)
        hosting.use_hints(SystemHints(hosting.look_now, lambda _: None))
        target = lock_target(str(path), None)
        now_s = clock.boot()
        watch = Watch(
            id="w",
            condition=LockCondition(target, str(path)),
            rules=Rules(armed_s=now_s, deadline_s=now_s + 600, settle_s=0.02),
            every_s=300.0,
            ttl_s=600,
            label=target.label,
            armed_at=clock.wall(),
            armed_awake_s=clock.awake(),
        )
        hosting.arm(watch)
        task = asyncio.create_task(hosting.run(stop))
        await until(lambda: watch.waiting or listener.outcomes)
        yield watch
        stop.set()
        await task

    @pytest.mark.parametrize("way", ["removed", "renamed"])
    async def test_a_release_is_reported_long_before_the_poll(
        self, tmp_path: Path, way: str
    ) -> None:
        path = tmp_path / "x.lock"
        path.touch()
        listener = FakeListener()
        async with self.waiting(path, listener) as watch:
            await until(lambda: watch.looks >= 2)
            if way == "removed":
                path.unlink()
            else:
                path.rename(tmp_path / "archived")
            await until(lambda: listener.outcomes)
        assert listener.outcomes["w"].ending is Ending.RELEASED
        assert listener.outcomes["w"].waited_s < 60

    async def test_a_rename_over_the_path_is_no_release_and_the_rest_is_still_seen(
        self, tmp_path: Path
    ) -> None:
        path, other = tmp_path / "x.lock", tmp_path / "y"
        path.touch()
        listener = FakeListener()
        async with self.waiting(path, listener) as watch:
            await until(lambda: watch.looks >= 2)
            other.touch()
            other.rename(path)
            await until(lambda: listener.notes)
            assert [note.key for _, note in listener.notes] == ["maybe_retaken"]
            assert listener.outcomes == {}
            path.unlink()
            await until(lambda: listener.outcomes)
        outcome = listener.outcomes["w"]
        assert outcome.waited_s < 60
        changes = outcome.evidence["changes"]
        assert isinstance(changes, list)
        assert len(changes) == 1


async def test_a_hundred_locks_of_one_directory_all_end_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, stop, listener = SystemClock(), asyncio.Event(), FakeListener()
    hosting = Engine(clock=clock, listener=listener)
    hosting.use_hints(SystemHints(hosting.look_now, lambda _: None))
    paths = [tmp_path / f"lock-{i}.md" for i in range(100)]
    now_s = clock.boot()
    for path in paths:
        path.touch()
        target = lock_target(str(path), str(tmp_path))
        hosting.arm(
            Watch(
                id=target.label,
                condition=LockCondition(target, str(path)),
                rules=Rules(armed_s=now_s, deadline_s=now_s + 600, settle_s=0.02),
                every_s=300.0,
                ttl_s=600,
                label=target.label,
                armed_at=clock.wall(),
                armed_awake_s=clock.awake(),
            )
        )
    task = asyncio.create_task(hosting.run(stop))
    await until(lambda: len(listener.waiting) == len(paths))
    for path in paths:
        path.unlink()
    await until(lambda: len(listener.outcomes) == len(paths))
    stop.set()
    await task
    endings = {outcome.ending for outcome in listener.outcomes.values()}
    assert endings == {Ending.RELEASED}
    assert caplog.records == []
