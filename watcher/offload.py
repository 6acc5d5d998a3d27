"""Looks that may block for ever are taken off the event loop."""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_log = logging.getLogger(__name__)


class HungError(Exception):
    """No look can be taken: the one before is still out, or no thread is to be had."""


class Worker:
    """One daemon thread that takes one look after the other.

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
        self.hung = False
        """A call was given up and has not come back."""

    async def call(self, look: Callable[[], T]) -> T:
        """Return what `look` returns, or raise what it raises; one call at a time.

        Cancelling the caller, by a timeout for instance, gives the look up.

        Raises:
            HungError: an earlier look is still out, or the system gives no thread.
        """
        if self.busy:
            raise HungError(self._name)
        self._start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def settle(result: T | None, error: BaseException | None) -> None:
            self.busy = self.hung = False
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

        self.busy = True
        self._calls.put(run)
        try:
            return await future
        except asyncio.CancelledError:
            self.hung = self.busy
            raise

    def later(self, last: Callable[[], None]) -> None:
        """Give back what looks have opened, once none is out; never waits for it."""
        if self._thread is None:
            _do(last)
        else:
            self._calls.put(last)

    def close(self, last: Callable[[], None] = lambda: None) -> None:
        """Let the thread end once it is free; never waits for it.

        Args:
            last: gives back what the looks have opened; called when none is out.
        """
        self.later(last)
        if self._thread is not None:
            self._calls.put(None)

    def _start(self) -> None:
        if self._thread is not None:
            return
        thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # a limit on processes, or on memory
            raise HungError(self._name) from error
        self._thread = thread

    def _serve(self) -> None:
        while (run := self._calls.get()) is not None:
            _do(run)


def _do(last: Callable[[], None]) -> None:
    """Do a thing whose failure must not end the thread: others have looks to come."""
    try:
        last()
    except Exception:  # noqa: BLE001 - nobody waits for it
        _log.exception("close.failed")
