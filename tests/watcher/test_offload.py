"""Looks on a thread of their own, which may be lost."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from tests.fakes import until
from watcher.offload import HungError, Worker

NAME = "a-worker-under-test"


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == NAME]


def nothing() -> None:
    pass


@pytest.fixture
def worker() -> Iterator[Worker]:
    """Give a worker whose thread ends with the test."""
    worker = Worker(NAME)
    yield worker
    worker.close(nothing)
    for thread in threads():
        thread.join(20)
    assert threads() == []


@pytest.fixture
def gate(worker: Worker) -> Iterator[threading.Event]:
    """Give what a hanging look waits for; it opens before the worker is closed."""
    gate = threading.Event()
    yield gate
    gate.set()


async def give_up(worker: Worker, gate: threading.Event) -> None:
    """Call a look that hangs, and go away."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await worker.call(gate.wait)


async def test_a_call_returns_what_the_look_returns(worker: Worker) -> None:
    assert await worker.call(lambda: 42) == 42


async def test_a_call_raises_what_the_look_raises(worker: Worker) -> None:
    def look() -> None:
        raise PermissionError(13, "no")

    with pytest.raises(PermissionError, match="no"):
        await worker.call(look)
    assert await worker.call(lambda: "and goes on") == "and goes on"


async def test_all_looks_are_taken_on_one_thread_beside_the_loop(
    worker: Worker,
) -> None:
    found = {await worker.call(threading.get_ident) for _ in range(20)}
    assert len(found) == 1
    assert threading.get_ident() not in found


async def test_the_loop_runs_on_while_a_look_hangs(
    worker: Worker, gate: threading.Event
) -> None:
    look = asyncio.create_task(worker.call(gate.wait))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not look.done()
    gate.set()
    assert await look is True


async def test_while_a_look_hangs_others_fail_at_once_and_no_thread_is_added(
    worker: Worker, gate: threading.Event
) -> None:
    await give_up(worker, gate)
    for _ in range(50):
        with pytest.raises(HungError):
            await worker.call(nothing)
    assert len(threads()) == 1


async def test_a_look_that_comes_back_makes_room_for_the_next(
    worker: Worker, gate: threading.Event
) -> None:
    await give_up(worker, gate)
    gate.set()
    await until(lambda: not worker.busy)
    assert await worker.call(lambda: 42) == 42


@pytest.mark.parametrize("outcome", ["an answer", "an error"])
async def test_what_a_look_says_after_it_was_given_up_reaches_nobody(
    worker: Worker, gate: threading.Event, outcome: str
) -> None:
    def look() -> str:
        gate.wait()
        if outcome == "an error":
            raise OSError(5, "late")
        return "late"

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await worker.call(look)
    gate.set()
    await until(lambda: not worker.busy)
    assert await worker.call(lambda: "fresh") == "fresh"


def test_a_look_may_come_back_after_the_loop_is_closed(
    worker: Worker, gate: threading.Event
) -> None:
    asyncio.run(give_up(worker, gate))
    gate.set()
    worker.close(nothing)
    for thread in threads():
        thread.join(20)
    assert threads() == []


async def test_closing_ends_the_thread_and_gives_back_what_it_opened(
    worker: Worker,
) -> None:
    await worker.call(nothing)
    given_back = threading.Event()
    worker.close(given_back.set)
    await until(lambda: given_back.is_set() and not threads())


async def test_closing_without_anything_to_give_back_ends_the_thread_too(
    worker: Worker,
) -> None:
    await worker.call(nothing)
    worker.close()
    await until(lambda: not threads())


async def test_closing_never_waits_for_a_look_and_gives_back_only_behind_it(
    worker: Worker, gate: threading.Event
) -> None:
    await give_up(worker, gate)
    given_back = threading.Event()
    worker.close(given_back.set)
    assert not given_back.wait(0.02)
    assert len(threads()) == 1
    gate.set()
    await until(lambda: given_back.is_set() and not threads())


def test_closing_an_unused_worker_gives_back_at_once() -> None:
    given_back = threading.Event()
    Worker(NAME).close(given_back.set)
    assert given_back.is_set()
    assert threads() == []


async def test_what_comes_later_is_done_on_the_thread_behind_the_look(
    worker: Worker, gate: threading.Event
) -> None:
    done_on: list[int] = []
    thread = await worker.call(threading.get_ident)
    await give_up(worker, gate)
    worker.later(lambda: done_on.append(threading.get_ident()))
    assert done_on == []
    gate.set()
    await until(lambda: done_on)
    assert done_on == [thread]
    assert await worker.call(lambda: 42) == 42


def test_what_comes_later_is_done_at_once_where_nothing_was_looked_at() -> None:
    worker, done_on = Worker(NAME), list[int]()
    worker.later(lambda: done_on.append(threading.get_ident()))
    assert done_on == [threading.get_ident()]
    assert threads() == []


@pytest.mark.parametrize("used", [True, False])
async def test_what_cannot_be_given_back_ends_no_thread_that_others_need(
    worker: Worker, caplog: pytest.LogCaptureFixture, used: bool
) -> None:
    def fail() -> None:
        raise OSError(9, "closed already")

    if used:
        await worker.call(nothing)
    worker.later(fail)
    assert await worker.call(lambda: 42) == 42
    assert [record.message for record in caplog.records] == ["close.failed"]


async def test_a_look_that_was_given_up_is_known_to_hang_until_it_is_back(
    worker: Worker, gate: threading.Event
) -> None:
    assert not worker.hung
    await give_up(worker, gate)
    assert worker.hung
    gate.set()
    await until(lambda: not worker.busy)
    assert not worker.hung


async def test_a_system_that_gives_no_thread_is_a_look_that_hangs(
    worker: Worker,
) -> None:
    threading.stack_size(1 << 46)  # more than any address space has
    try:
        with pytest.raises(HungError):
            await worker.call(nothing)
    finally:
        threading.stack_size(0)
    assert not worker.busy
    assert await worker.call(lambda: 42) == 42


def test_a_hanging_look_holds_no_exit_up() -> None:
    code = """
import asyncio, threading
from watcher.offload import Worker
async def main():
    try:
        async with asyncio.timeout(0.01):
            await Worker("x").call(threading.Event().wait)
    except TimeoutError:
        print("given up")
asyncio.run(main())
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=20, check=True
    )
    assert ended.stdout == b"given up\n"
