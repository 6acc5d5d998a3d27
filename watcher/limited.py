"""Looks that may block for ever, for code that no event loop runs."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

LOOK_LIMIT_S = 2.0
"""A look at a file or a process that takes longer has seen nothing."""

MOST_LOST = 8
"""Looks of one process that may be out; with one more, looking fails at once."""

T = TypeVar("T")

_out = threading.BoundedSemaphore(MOST_LOST)


def within(limit_s: float, look: Callable[[], T]) -> T:
    """Return what a look returns; one that does not come back in time is given up.

    Its thread is lost to a dead mount, but holds no exit up.

    Raises:
        TimeoutError: it did not come back, or too many others have not.
        Exception: whatever the look raised.
    """
    if not _out.acquire(blocking=False):
        raise TimeoutError
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(look())
        except Exception as error:  # noqa: BLE001 - handed to the caller
            answer.set_exception(error)
        finally:
            _out.release()

    threading.Thread(target=run, name="look", daemon=True).start()
    return answer.result(limit_s)
