"""Looks that may block for ever are taken off the event loop."""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class HungError(Exception):
    """The look before this one has still not come back."""


class Worker:
    """One daemon thread that takes one look at a time.

    A stat on a dead network mount returns never. Then the thread is lost, but only this
    one: further calls fail at once until it comes back, so nothing piles up, and being
    a daemon it holds no exit up.
    """

    def __init__(self, name: str) -> None:
        """Start nothing yet; the first call does."""
        self._name = name
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self.busy = False

    async def call(self, look: Callable[[], T]) -> T:
        """Return what `look` returns, or raise what it raises.

        Cancelling the caller, by a timeout for instance, gives the look up.

        Raises:
            HungError: an earlier look is still out.
        """
        if self.busy:
            raise HungError(self._name)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self.busy = True

        def settle(result: T | None, error: BaseException | None) -> None:
            self.busy = False
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # type: ignore[arg-type]  # T when no error

        def run() -> None:
            result, error = None, None
            try:
                result = look()
            except Exception as caught:  # noqa: BLE001 - handed to the caller
                error = caught
            try:
                loop.call_soon_threadsafe(settle, result, error)
            except RuntimeError:
                return  # the loop is closed: nobody waits any more

        if self._thread is None:
            self._thread = threading.Thread(
                target=self._serve, name=self._name, daemon=True
            )
            self._thread.start()
        self._calls.put(run)
        return await future

    def close(self) -> None:
        """Let the thread end once it is free; never waits for it."""
        self._calls.put(None)

    def _serve(self) -> None:
        while (run := self._calls.get()) is not None:
            run()
