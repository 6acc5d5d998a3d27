"""Name look-ups whose end nobody has to wait for."""

import errno
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class LookupThreads(ThreadPoolExecutor):
    """An event loop's threads for `getaddrinfo`, which no time limit can interrupt.

    A resolver that does not answer holds its caller for half a minute and more. The
    library's own threads are waited for when the loop closes and again when the
    interpreter ends; these are daemons, given up with the attempt that needed them.
    """

    def submit(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """Start one call in a thread of its own.

        Raises:
            OSError: the system gives no more threads.
        """
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                found = fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - handed to the caller
                future.set_exception(error)
            else:
                future.set_result(found)

        thread = threading.Thread(target=run, name="name look-up", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise OSError(errno.EAGAIN, "no thread for the name look-up") from error
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for nothing: there is no idle thread to end."""
