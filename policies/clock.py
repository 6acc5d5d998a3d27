"""What the rest of the product may ask about time."""

from datetime import datetime, tzinfo
from typing import Protocol


class Clock(Protocol):
    """Time is handed in, never fetched: code is given one of these."""

    def wall(self) -> datetime:
        """Return the aware UTC wall-clock time; it may be stepped at any moment."""
        ...

    def boot(self) -> float:
        """Return seconds on a clock that counts suspend and is never stepped."""
        ...

    def awake(self) -> float:
        """Return seconds on a clock that stands still while the machine sleeps."""
        ...

    def zone(self) -> tzinfo:
        """Return the local time zone, for lines that people read."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return when `boot` has advanced by so many seconds, or soon after a wake."""
        ...
