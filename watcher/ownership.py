"""Who may speak for the watches (design: one owner, and proof of it with each verdict).

The service of one machine owns all watches of its state directory. A fleet would hand
them out one by one; it implements the same three calls.
"""

import sqlite3
from collections.abc import Callable
from typing import Protocol, TypeVar

from watcher.writer import Writer

T = TypeVar("T")


class LostError(Exception):
    """Another owner has taken over; nothing may be said or sent any more."""


class Ownership(Protocol):
    """The right to say how watches end."""

    async def claim(self) -> int:
        """Take the watches over and return the fencing token of this owner."""
        ...

    async def renew(self) -> bool:
        """Say that we live; False when another owner has taken over."""
        ...

    async def verdict(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Carry out a change that only the owner may make, in one transaction.

        Raises:
            LostError: another owner has taken over; nothing was changed.
        """
        ...


class LocalOwnership:
    """Ownership of one store: a token in the file that grows with each owner.

    The lock on the state directory keeps two services apart; the token keeps out one
    that lost it without noticing.
    """

    def __init__(self, writer: Writer) -> None:
        """Own nothing yet."""
        self._writer = writer
        self._token = 0

    async def claim(self) -> int:
        """Take over: every older token is void from now on."""

        def take(connection: sqlite3.Connection) -> int:
            row = connection.execute(
                "UPDATE owner SET token = token + 1 WHERE id = 1 RETURNING token"
            ).fetchone()
            connection.execute(
                "UPDATE watches SET token = ? WHERE state = 'armed'", (row["token"],)
            )
            return int(row["token"])

        self._token = await self._writer.submit(take)
        return self._token

    async def renew(self) -> bool:
        """Look whether the token is still ours."""
        return await self._writer.submit(self._holds)

    async def verdict(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Make the change under our token."""

        def guarded(connection: sqlite3.Connection) -> T:
            if not self._holds(connection):
                raise LostError
            return change(connection)

        return await self._writer.submit(guarded)

    def _holds(self, connection: sqlite3.Connection) -> bool:
        row = connection.execute("SELECT token FROM owner WHERE id = 1").fetchone()
        return row is not None and row["token"] == self._token
