"""One thread that writes, many changes to a commit.

A commit costs an fsync; a hundred callers that each wait for their own would each pay
it. So the thread takes whatever has come meanwhile into the same transaction, and tells
each caller once it is durable.
"""

import asyncio
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar, cast

from policies.wording import phrase
from watcher.errors import StoreError

T = TypeVar("T")
Change = Callable[[sqlite3.Connection], T]

_MOST_IN_ONE = 256  # changes that share a commit
_RETRY_S = 0.5  # pause before a locked or full file is tried again

_log = logging.getLogger(__name__)


class Writer:
    """Owns the connection for writing; `submit` from any thread or task."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Start the thread."""
        self._connection = connection
        self._queue: queue.SimpleQueue[_Entry | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._entering = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name="writer", daemon=True)
        self._thread.start()

    async def submit(self, change: Change[T]) -> T:
        """Carry out a change and return its result once it is durable.

        A file that is locked or full is tried again until `close`: whoever cannot wait
        so long puts a limit around this, and the change still comes later.

        Raises:
            StoreError: the file can never take it, or the writer is closed.
            Exception: whatever `change` raised; then nothing of it was kept.
        """
        entry = _Entry(change)
        with self._entering:
            if self._closing.is_set():
                raise StoreError(phrase("write_failed", error="closed"))
            self._queue.put(entry)
        future: asyncio.Future[object] = asyncio.wrap_future(entry.future)
        return cast("T", await asyncio.shield(future))

    def close(self, limit_s: float) -> None:
        """Write what is waiting, within a limit, and close the connection."""
        with self._entering:
            self._closing.set()
            self._queue.put(None)  # nothing comes behind it
        self._thread.join(limit_s)

    def _serve(self) -> None:
        done = False
        while not done:
            batch = [self._queue.get()]
            while len(batch) < _MOST_IN_ONE and not self._queue.empty():
                batch.append(self._queue.get())
            done = None in batch
            entries = [entry for entry in batch if entry is not None]
            try:
                self._commit(entries)
            except BaseException as error:  # noqa: BLE001 - nobody else writes
                _log.exception("writer.failed")
                self._give_up(entries, error)
        self._connection.close()

    def _commit(self, batch: "Sequence[_Entry]") -> None:
        """Carry a batch out in one transaction, trying again while it may yet go."""
        while batch:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                for entry in batch:
                    entry.carry_out(self._connection)
                self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                self._roll_back()
                if not _may_pass(error) or self._closing.is_set():
                    self._give_up(batch, error)
                    return
                self._closing.wait(_RETRY_S)
            else:
                for entry in batch:
                    entry.finish()
                return

    def _give_up(self, batch: "Sequence[_Entry]", error: BaseException) -> None:
        self._roll_back()
        why = phrase("write_failed", error=str(error))
        for entry in batch:
            entry.fail(StoreError(why))

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error:
                return  # the next BEGIN will say so


class _Entry:
    """One change, its outcome, and who waits for it."""

    def __init__(self, change: Callable[[sqlite3.Connection], object]) -> None:
        self._change = change
        self._result: object = None
        self._error: Exception | None = None
        self.future: Future[object] = Future()

    def carry_out(self, connection: sqlite3.Connection) -> None:
        """Run inside a savepoint, so that one bad change takes no other with it."""
        self._result, self._error = None, None
        connection.execute("SAVEPOINT one")
        try:
            self._result = self._change(connection)
        except Exception as error:
            if is_of_the_file(error):
                raise  # the whole batch is tried again, or none of it can be
            self._error = error
            connection.execute("ROLLBACK TO one")
        connection.execute("RELEASE one")

    def finish(self) -> None:
        """Tell that it is durable, or what it raised."""
        if self._error is not None:
            self.fail(self._error)
        elif not self.future.done() and self.future.set_running_or_notify_cancel():
            self.future.set_result(self._result)

    def fail(self, error: Exception) -> None:
        """Tell that nothing of it was kept."""
        if not self.future.done() and self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


_OF_ONE_CHANGE = {"ERROR", "CONSTRAINT", "MISMATCH", "MISUSE", "RANGE", "TOOBIG"}
"""Result codes that blame a statement; all others blame the file or the system."""


def is_of_the_file(error: Exception) -> bool:
    """Say whether an error of a change is none of its own: it is full, locked, torn."""
    if not isinstance(error, sqlite3.Error):
        return False
    parts = (getattr(error, "sqlite_errorname", None) or "SQLITE_ERROR").split("_")
    return parts[1] not in _OF_ONE_CHANGE


def _may_pass(error: sqlite3.Error) -> bool:
    """Say whether time may mend it: another writer, or a full disk."""
    name = getattr(error, "sqlite_errorname", "") or ""
    return any(word in name for word in ("BUSY", "LOCKED", "FULL", "IOERR", "NOMEM"))
