"""A name look-up that never ends holds nobody up."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import pytest

from notify.lookup import LookupThreads

T = TypeVar("T")

HANGING = """\
import asyncio, threading
from notify.lookup import LookupThreads

async def main():
    loop = asyncio.get_running_loop()
    loop.set_default_executor(LookupThreads())
    started = threading.Event()
    def look_up():
        started.set()
        threading.Event().wait()
    call = loop.run_in_executor(None, look_up)
    while not started.is_set():
        await asyncio.sleep(0.001)
    call.cancel()

asyncio.run(main())
print("over")
"""


async def in_threads(look_up: Callable[[], T]) -> T:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(LookupThreads(), look_up)


async def test_a_look_up_returns_what_was_found() -> None:
    assert await in_threads(lambda: ["127.0.0.1"]) == ["127.0.0.1"]


async def test_a_look_up_raises_what_went_wrong() -> None:
    def fail() -> None:
        raise OSError(-2, "Name or service not known")

    with pytest.raises(OSError, match="Name or service not known"):
        await in_threads(fail)


async def test_look_ups_do_not_wait_for_each_other() -> None:
    both = threading.Barrier(2)
    found = await asyncio.gather(*(in_threads(lambda: both.wait(10)) for _ in range(2)))
    assert sorted(found) == [0, 1]


def test_a_look_up_that_was_given_up_in_time_is_not_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting: list[threading.Thread] = []

    def start(thread: threading.Thread) -> None:
        waiting.append(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    done: list[int] = []
    assert LookupThreads().submit(done.append, 1).cancel()
    (thread,) = waiting
    thread.run()
    assert done == []


async def test_no_more_threads_is_an_error_of_the_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(OSError, match="no thread"):
        await in_threads(lambda: None)


def test_a_look_up_that_never_ends_holds_up_neither_loop_nor_exit() -> None:
    start_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", HANGING],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("over\n", "")
    assert time.monotonic() - start_s < 10
