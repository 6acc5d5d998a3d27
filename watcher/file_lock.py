"""A lock on an open file, which nobody waits for without a limit."""

import fcntl
import select
import time


def locked(fd: int, *, limit_s: float) -> bool:
    """Lock a file, trying for a while: whoever has it may be stopped for good.

    Args:
        limit_s: how long to try; 0 tries once.

    Returns:
        Whether it is ours until `fd` is closed.
    """
    until_s = time.clock_gettime(time.CLOCK_MONOTONIC) + limit_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.clock_gettime(time.CLOCK_MONOTONIC) >= until_s:
                return False
            select.select([], [], [], 0.02)
        else:
            return True
