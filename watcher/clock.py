"""The real clock: the only place that reads time or sleeps."""

import sys
import time
from datetime import UTC, datetime, tzinfo

# A timer of the event loop stands still in suspend, so a long sleep is taken in slices:
# a deadline that passed meanwhile is noticed this many seconds after the wake.
_SLICE_S = 5.0

# macOS has no CLOCK_BOOTTIME: its CLOCK_MONOTONIC counts sleep, its uptime does not.
if sys.platform == "darwin":
    _BOOT_CLOCK = time.CLOCK_MONOTONIC
    _AWAKE_CLOCK = time.CLOCK_UPTIME_RAW
else:
    _BOOT_CLOCK = time.CLOCK_BOOTTIME
    _AWAKE_CLOCK = time.CLOCK_MONOTONIC


class SystemClock:
    """A `policies.clock.Clock` on the machine's own clocks."""

    def wall(self) -> datetime:
        """Return the aware UTC wall-clock time."""
        return datetime.now(UTC)

    def boot(self) -> float:
        """Return seconds since boot, suspend included."""
        return time.clock_gettime(_BOOT_CLOCK)

    def awake(self) -> float:
        """Return seconds since boot, suspend left out."""
        return time.clock_gettime(_AWAKE_CLOCK)

    def zone(self) -> tzinfo:
        """Return the local time zone; UTC where the system names none that exists."""
        return datetime.now(UTC).astimezone().tzinfo or UTC

    async def sleep(self, seconds: float) -> None:
        """Return when `boot` has advanced by `seconds`, noticing a suspend."""
        import asyncio  # noqa: PLC0415 - most commands never sleep

        until = self.boot() + seconds
        while (left := until - self.boot()) > 0:  # noqa: ASYNC110 - this is that sleep
            await asyncio.sleep(min(left, _SLICE_S))
