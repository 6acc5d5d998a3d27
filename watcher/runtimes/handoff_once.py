"""What is kept of the handoffs of a session, so that each is done once.

A mark is made before the work, one at a time, so that of two stops one does it; it is
taken away when that fails, and when the context has been emptied. A mark without its
work, as a killed hook leaves it, counts for a while only.
"""

import contextlib
import os
from typing import Final

from policies.names import is_session
from watcher.file_lock import locked

SWEPT_S: Final = 30 * 86400.0
"""Seconds after which the marks of a session that is over are removed."""

_TURN_S = 1.0
_UNFINISHED_S = 180.0  # longer than a handoff can take


def is_done(state: str, session: str, now_s: float) -> bool:
    """Say whether a session was handed over by itself already, or is just now."""
    try:
        about = os.lstat(_mark(state, session))
    except OSError:
        return False
    return about.st_size > 0 or abs(now_s - about.st_mtime) < _UNFINISHED_S


def begin(state: str, session: str, now_s: float) -> bool:
    """Claim the handoff of a session; False when another has it.

    Raises:
        OSError: nothing can be kept, so it must not be done.
    """
    if not is_session(session):
        return False
    mark = _mark(state, session)
    os.makedirs(state, mode=0o700, exist_ok=True)
    os.makedirs(os.path.dirname(mark), mode=0o700, exist_ok=True)
    # Else of two that find an old mark, one removes what the other has just made.
    turn = os.open(
        f"{state}/handoffs.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
    )
    try:
        if not locked(turn, limit_s=_TURN_S) or is_done(state, session, now_s):
            return False
        with contextlib.suppress(FileNotFoundError):
            os.unlink(mark)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        os.close(os.open(mark, flags, 0o600))
        os.utime(mark, (now_s, now_s))
    finally:
        os.close(turn)
    _sweep(os.path.dirname(mark), now_s)
    return True


def finish(state: str, session: str, path: str) -> None:
    """Note that a session was handed over by itself, and to which file.

    Raises:
        OSError: it cannot be written.
    """
    _write(_mark(state, session), path)


def rearm(state: str, session: str) -> None:
    """Let a session be handed over once more."""
    if is_session(session):
        with contextlib.suppress(OSError):
            os.unlink(_mark(state, session))


def claim_load(state: str, path: str) -> str | None:
    """Claim a handoff that cannot be archived, so that it is loaded only once.

    Returns:
        The mark to remove when it was not loaded after all; None when it was already.

    Raises:
        OSError: nothing can be kept, so it must not be loaded.
    """
    from hashlib import sha256  # noqa: PLC0415 - start-up time, and hardly ever

    about = os.lstat(path)
    what = f"{path}\0{about.st_ino}\0{about.st_mtime_ns}"
    name = sha256(what.encode("utf-8", "surrogateescape")).hexdigest()
    mark = f"{state}/handoffs/{name}.loaded"
    os.makedirs(state, mode=0o700, exist_ok=True)
    os.makedirs(os.path.dirname(mark), mode=0o700, exist_ok=True)
    try:
        os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return None
    return mark


def _mark(state: str, session: str) -> str:
    return f"{state}/handoffs/{session}.once"


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.write(fd, os.fsencode(text))
    finally:
        os.close(fd)


def _sweep(folder: str, now_s: float) -> None:
    """Remove what sessions left that nobody has heard of for a month."""
    with contextlib.suppress(OSError):
        for entry in [*os.scandir(folder)]:
            if entry.stat(follow_symlinks=False).st_mtime < now_s - SWEPT_S:
                os.unlink(entry.path)
