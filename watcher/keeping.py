"""Changes of the store that nobody waits long for (C5.6)."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from typing import TypeVar

from policies.wording import Lang, Phrase, phrase
from watcher.errors import StoreError
from watcher.ownership import LostError, Ownership
from watcher.tasks import Tasks
from watcher.writer import is_of_the_file

T = TypeVar("T")
Change = Callable[[sqlite3.Connection], None]

PATIENCE_S = 2.0  # for the store, before an outcome is told without it

_log = logging.getLogger(__name__)


class Keeping:
    """Makes changes as the owner; what the store refuses now is owed to it."""

    def __init__(self, ownership: Ownership, tasks: Tasks) -> None:
        """Owe nothing yet."""
        self.degraded: Phrase | None = None
        self.lost: Callable[[], object] = bool
        """Called when somebody else is the owner now."""
        self._ownership = ownership
        self._tasks = tasks
        self._owed: list[Change] = []
        self._stored = 0

    @property
    def owes(self) -> bool:
        """Whether the store has refused anything that it will be offered again."""
        return bool(self._owed)

    async def durably(self, change: Change, *, owed: bool = True) -> bool:
        """Store a change; False when that takes too long or cannot be.

        What was refused before is offered again first, in its order: an outcome must
        never come before its watch.

        Args:
            change: what to do.
            owed: offer it again when it is refused; not for what the next one replaces.

        Raises:
            LostError: somebody else is the owner now.
            Exception: whatever `change` raised.
        """
        before, self._owed = self._owed, []
        kept = [*before, change] if owed else before

        def both(connection: sqlite3.Connection) -> None:
            for one in before:
                _carry_out(connection, one)
            change(connection)

        task = self._tasks.start(self._ownership.verdict(both))
        try:
            stored = -1
            while not task.done() and stored != self._stored:
                stored = self._stored  # many may be waiting: patience ends with none
                await asyncio.wait({task}, timeout=PATIENCE_S)
        finally:
            if not task.done():  # it still comes later, or is owed then
                task.add_done_callback(lambda late: self._came_late(late, before, kept))
        if not task.done():
            self._degrade(phrase("store_slow"))
            return False
        return self._settle(task, before, kept)

    async def firmly(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Store a change that is of no use unless it is stored.

        Raises:
            StoreError: that takes too long, and it may still come later; or cannot be.
            LostError: somebody else is the owner now.
        """
        return await within_patience(self._tasks.start(self.patiently(change)))

    async def patiently(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Store a change however long that takes; put a limit around it.

        Raises:
            StoreError: it cannot be.
            LostError: somebody else is the owner now.
        """
        try:
            return await self._ownership.verdict(change)
        except LostError:
            self.lost()
            raise

    def _settle(
        self,
        task: "asyncio.Task[None]",
        before: Sequence[Change],
        kept: Sequence[Change],
    ) -> bool:
        error = task.exception()
        if error is None:
            self._stored += 1
            self.degraded = None
            return True
        if isinstance(error, StoreError):
            self._owed.extend(kept)
            self._degrade(error.phrase)
            return False
        if isinstance(error, LostError):
            _log.error("ownership.lost")
            self.lost()
        else:
            self._owed.extend(before)
        raise error

    def _came_late(
        self,
        task: "asyncio.Task[None]",
        before: Sequence[Change],
        kept: Sequence[Change],
    ) -> None:
        if task.cancelled():
            return
        try:
            self._settle(task, before, kept)
        except LostError:
            return
        except Exception:  # noqa: BLE001 - nobody waits for it any more
            _log.exception("change.failed")

    def _degrade(self, why: Phrase) -> None:
        if self.degraded is None:
            _log.error("store.degraded", extra={"reason": why.render(Lang.EN)})
        self.degraded = why


def _carry_out(connection: sqlite3.Connection, change: Change) -> None:
    """Make one owed change; a fault of its own holds up no other."""
    connection.execute("SAVEPOINT owed")
    try:
        change(connection)
    except Exception as error:
        if is_of_the_file(error):
            raise  # all of it is offered again
        _log.exception("change.failed")
        connection.execute("ROLLBACK TO owed")
    connection.execute("RELEASE owed")


async def within_patience(task: "asyncio.Task[T]") -> T:
    """Return a task's result, or leave it to go on alone.

    Raises:
        StoreError: it takes too long.
        Exception: what the task raised.
    """
    await asyncio.wait({task}, timeout=PATIENCE_S)
    if not task.done():
        task.add_done_callback(_drop_error)
        raise StoreError(phrase("write_failed", error="busy"))
    return task.result()


def _drop_error(task: "asyncio.Task[T]") -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.warning("change.failed", extra={"reason": str(task.exception())})
