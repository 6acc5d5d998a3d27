"""The only place where a hook says what went wrong: one line each, bounded (C11.2)."""

import contextlib
import os
import time

from policies.text import clean

NAME = "hooks.log"
_MOST_BYTES = 256 << 10  # of the file; the one before it is kept
_LINE_LIMIT = 500  # characters


def note(state: str, what: str) -> None:
    """Add a line; where even that cannot be, there is nobody left to tell."""
    with contextlib.suppress(OSError):
        os.makedirs(state, mode=0o700, exist_ok=True)
        path = f"{state}/{NAME}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(path, flags, 0o600)
        try:
            if os.fstat(fd).st_size > _MOST_BYTES:
                os.rename(path, f"{path}.1")
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            os.write(fd, f"{at} {clean(what, _LINE_LIMIT)}\n".encode())
        finally:
            os.close(fd)
