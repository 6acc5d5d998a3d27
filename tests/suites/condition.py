"""What every kind of condition promises about its looks (C3.0, C3.1, C3.7)."""

import asyncio
import json
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass

import pytest

from policies.model import Memory, Observation, Sight
from tests.fakes import START, until
from tests.watcher.rights import open_files
from watcher.conditions import (
    KINDS,
    CallHint,
    DirectoryHint,
    FileHint,
    LocalCondition,
    ReadableHint,
)
from watcher.offload import HungError, Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One thing that is there, and all that may happen to it.

    Attributes:
        build: returns a new condition about it, as after a restart.
        release: lets it clear.
        blind: by `unreachable`, `denied` and `vanished`, what keeps every look from
            seeing it for a while.
    """

    build: Callable[[], LocalCondition]
    release: Callable[[], None]
    blind: Mapping[str, Callable[[], AbstractContextManager[None]]]


def remembered(observation: Observation) -> Memory:
    """Return its memory as a store would give it back."""
    memory = json.loads(json.dumps(observation.memory))
    assert isinstance(memory, dict)
    return memory


@contextmanager
def closing(condition: LocalCondition) -> Iterator[LocalCondition]:
    """Close a condition at the end; no descriptor of it may stay."""
    files = open_files()
    try:
        yield condition
    finally:
        condition.close()
    assert open_files() <= files


class Threads:
    """Looks on a thread a group, given up after a moment, as an engine takes them."""

    def __init__(self, condition: LocalCondition) -> None:
        self.condition = condition
        self.memory: Memory = {}
        self.workers: dict[str, Worker] = {}
        self._closed = False

    async def take(self) -> Observation:
        memory, group = self.memory, self.condition.group
        worker = self.workers.setdefault(group, Worker("look"))
        try:
            async with asyncio.timeout(0.3):
                seen = await worker.call(lambda: self.condition.look(memory, START))
        except (TimeoutError, HungError):
            seen = self.condition.hung(memory, START)
        self.memory = remembered(seen)
        return seen

    async def sight(self) -> Sight:
        return (await self.take()).sight

    def close(self) -> None:
        """Close the condition, once, and end the threads; waits for neither."""
        if not self._closed:
            self._closed = True
            group = self.condition.group
            self.workers.setdefault(group, Worker("look")).later(self.condition.close)
            for worker in self.workers.values():
                worker.close()

    @property
    def busy(self) -> bool:
        """Say whether a look is still out."""
        return any(worker.busy for worker in self.workers.values())


@asynccontextmanager
async def on_threads(condition: LocalCondition) -> AsyncIterator[Threads]:
    """Give such looks; no descriptor and no thread of theirs may stay."""
    files, threads = open_files(), threading.active_count()
    looks = Threads(condition)
    try:
        yield looks
    finally:
        looks.close()
    await until(lambda: open_files() <= files)
    await until(lambda: threading.active_count() <= threads)


class ConditionSuite(ABC):
    """A subclass makes the scene of its kind."""

    BLIND = ("unreachable", "denied", "vanished")
    FOLLOWED: frozenset[str] = frozenset()
    """What of these cannot deceive a condition that has seen the thing before."""
    HINTED = True
    """Whether anything can tell it at once."""

    @abstractmethod
    @pytest.fixture
    def scene(self) -> Iterator[Scene]:
        """Make something that is there, and take it away with the test."""

    def test_it_is_of_a_kind_and_can_be_watched(self, scene: Scene) -> None:
        with closing(scene.build()) as condition:
            assert condition.target.kind in KINDS
            assert condition.target.text.startswith(condition.target.kind + " ")
            assert condition.target.label
            assert condition.refusal() is None

    def test_what_is_there_is_held(self, scene: Scene) -> None:
        with closing(scene.build()) as condition:
            seen = condition.look({}, START)
            assert seen.sight is Sight.HELD
            assert seen.reason is None
            assert "means" in seen.evidence

    def test_what_has_cleared_is_released(self, scene: Scene) -> None:
        with closing(scene.build()) as condition:
            seen = condition.look({}, START)
            scene.release()
            seen = condition.look(seen.memory, START)
            assert seen.sight is Sight.RELEASED
            assert "means" in seen.evidence
            again = condition.look(seen.memory, START)
            assert again.sight is Sight.RELEASED

    def test_a_second_look_sees_the_same_and_has_nothing_new_to_say(
        self, scene: Scene
    ) -> None:
        with closing(scene.build()) as condition:
            first = condition.look({}, START)
            second = condition.look(first.memory, START)
            assert second.sight is Sight.HELD
            assert second.memory == first.memory
            assert second.notes == ()

    @pytest.mark.parametrize("how", BLIND)
    def test_what_cannot_be_seen_is_unknown_and_never_released(
        self, scene: Scene, how: str
    ) -> None:
        with closing(scene.build()) as condition:
            before = condition.look({}, START)
            with scene.blind[how]():
                for _ in range(3):
                    blind = condition.look(before.memory, START)
                    assert blind.memory == before.memory
                    assert "means" in blind.evidence
                    if how in self.FOLLOWED:
                        assert blind.sight is Sight.HELD
                    else:
                        assert blind.sight is Sight.UNKNOWN
                        assert blind.reason is not None
                        assert not blind.absent
            after = condition.look(blind.memory, START)
            assert after.sight is Sight.HELD

    @pytest.mark.parametrize("how", BLIND)
    def test_what_cannot_be_seen_after_a_restart_is_unknown_too(
        self, scene: Scene, how: str
    ) -> None:
        with closing(scene.build()) as condition:
            before = condition.look({}, START)
        with closing(scene.build()) as condition:
            with scene.blind[how]():
                blind = condition.look(remembered(before), START)
                assert blind.sight is Sight.UNKNOWN
                assert not blind.absent
                assert blind.memory == before.memory
            after = condition.look(remembered(blind), START)
            assert after.sight is Sight.HELD

    @pytest.mark.parametrize("how", BLIND)
    def test_what_was_never_seen_is_not_released_by_a_failure_to_look(
        self, scene: Scene, how: str
    ) -> None:
        with closing(scene.build()) as condition, scene.blind[how]():
            assert condition.look({}, START).sight is Sight.UNKNOWN

    def test_evidence_and_memory_are_json(self, scene: Scene) -> None:
        with closing(scene.build()) as condition:
            held = condition.look({}, START)
            with scene.blind["denied"]():
                blind = condition.look(held.memory, START)
            scene.release()
            free = condition.look(held.memory, START)
        for seen in (held, blind, free):
            assert json.loads(json.dumps(seen.evidence)) == seen.evidence
            assert remembered(seen) == seen.memory

    def test_memory_serves_a_new_condition_after_a_restart(self, scene: Scene) -> None:
        with closing(scene.build()) as condition:
            before = condition.look({}, START)
        with closing(scene.build()) as condition:
            after = condition.look(remembered(before), START)
            assert after.sight is Sight.HELD
            assert after.memory == before.memory
            assert after.notes == ()

    def test_what_cleared_over_a_restart_is_released(self, scene: Scene) -> None:
        with closing(scene.build()) as condition:
            before = condition.look({}, START)
        scene.release()
        with closing(scene.build()) as condition:
            after = condition.look(remembered(before), START)
            assert after.sight is Sight.RELEASED

    def test_a_quick_look_confirms_only_what_a_whole_one_saw_held(
        self, scene: Scene
    ) -> None:
        with closing(scene.build()) as condition:
            assert not condition.unchanged({})
            seen = condition.look({}, START)
            assert condition.unchanged(seen.memory) in {True, False}
            assert not condition.unchanged({})
            scene.release()
            assert not condition.unchanged(seen.memory)
            seen = condition.look(seen.memory, START)
            assert seen.sight is Sight.RELEASED
            assert not condition.unchanged(seen.memory)

    def test_a_quick_look_after_a_restart_confirms_nothing(self, scene: Scene) -> None:
        with closing(scene.build()) as condition:
            before = condition.look({}, START)
        with closing(scene.build()) as condition:
            assert not condition.unchanged(remembered(before))

    def test_a_look_that_hangs_has_seen_nothing_and_forgets_nothing(
        self, scene: Scene
    ) -> None:
        with closing(scene.build()) as condition:
            before = condition.look({}, START)
            hung = condition.hung(before.memory, START)
            assert hung.sight is Sight.UNKNOWN
            assert hung.reason is not None
            assert not hung.absent
            assert hung.memory == before.memory
            assert "means" in hung.evidence
            assert json.loads(json.dumps(hung.evidence)) == hung.evidence

    def test_who_else_waits_changes_nothing_that_is_seen(self, scene: Scene) -> None:
        with closing(scene.build()) as condition:
            condition.joined(os.getpid())
            seen = condition.look({}, START)
            condition.joined(os.getpid())
            assert condition.look(seen.memory, START).sight is Sight.HELD

    def test_its_group_stays(self, scene: Scene) -> None:
        with closing(scene.build()) as condition:
            group = condition.group
            assert group
            condition.look({}, START)
            assert condition.group == group

    def test_looks_leave_nothing_open_and_no_thread_behind(self, scene: Scene) -> None:
        with closing(scene.build()) as condition:
            seen = condition.look({}, START)
            files, threads = open_files(), threading.active_count()
            for _ in range(20):
                seen = condition.look(seen.memory, START)
                with scene.blind["denied"]():
                    condition.look(seen.memory, START)
            assert open_files() == files
            assert threading.active_count() == threads

    def test_its_hints_are_there_after_a_look(self, scene: Scene) -> None:
        with closing(scene.build()) as condition:
            condition.look({}, START)
            hints = condition.hints()
            assert bool(hints) is self.HINTED
            assert list(condition.hints()) == list(hints)
            for hint in hints:
                match hint:
                    case DirectoryHint():
                        assert os.path.isabs(hint.directory)
                        assert "/" not in hint.name
                    case FileHint():
                        assert os.stat(hint.path).st_ino == hint.inode
                    case ReadableHint():
                        os.fstat(hint.fd)
                    case CallHint():
                        hint.subscribe(lambda: None)()

    def test_one_that_was_never_looked_at_can_be_closed(self, scene: Scene) -> None:
        with closing(scene.build()):
            pass
