"""Work that goes on beside: held, logged, and waited for at the end."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Tasks:
    """Holds tasks: one that nobody holds could be collected in mid-run."""

    def __init__(self) -> None:
        """Hold nothing yet."""
        self._tasks: set[asyncio.Task[object]] = set()

    def start(self, work: Coroutine[object, object, T]) -> asyncio.Task[T]:
        """Run beside; whoever called takes the result."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def spawn(self, work: Coroutine[object, object, object]) -> None:
        """Run beside; nobody takes the result, so a fault is logged."""
        self.start(_logged(work))

    async def close(self, limit_s: float) -> None:
        """Let all of it end within a limit, then cancel what has not."""
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=limit_s)
        for task in late:
            task.cancel()


async def _logged(work: Coroutine[object, object, object]) -> None:
    try:
        await work
    except Exception:  # noqa: BLE001 - nobody else would see it
        _log.exception("task.failed")
