"""The folder of a detached watcher on its host, and who is at work in it.

<root>/<owner>/contact         held and touched by an agent of that laptop
<root>/<owner>/<watch id>/     0700; files 0600, each replaced as a whole
    alive       locked by the watcher for as long as it lives
    wake        a FIFO: a byte in it makes the watcher look at its folder
    order.json  what to watch and what to say; no secret in it
    key         of the notify service; gone as soon as nothing is left to send
    state.json  what the looks so far amount to
    outcome.json    how it ended, what is sent, and whether that was delivered
    stop        made by whoever wants it gone
    koder-monitor, log      the program, and what it could not say otherwise
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import tempfile
import time
from typing import Any

NAME = "koder-monitor-detached"
PROGRAM = "koder-monitor"
"""The name of the program's file, by which a process list shows what it is."""

KEPT_S = 7 * 86400.0
"""For how long an outcome waits for its laptop."""

_ID = re.compile("[0-9a-f]{1,64}")


def root() -> str:
    """Return the folder of everything that is detached, which may not be there."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if not base.startswith("/"):
        base = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, NAME)


def of_owner(owner: str) -> str:
    """Return the folder of one laptop's state directory.

    Raises:
        ValueError: it is no name of one.
    """
    if not _ID.fullmatch(owner):
        raise ValueError(owner)
    return os.path.join(root(), owner)


def of_watch(owner: str, watch_id: str) -> str:
    """Return the folder of one watch; errors as `of_owner`."""
    if not _ID.fullmatch(watch_id):
        raise ValueError(watch_id)
    return os.path.join(of_owner(owner), watch_id)


def names(path: str) -> list[str]:
    """Return the owners in the root, or the watches of an owner."""
    with contextlib.suppress(OSError):
        return sorted(name for name in os.listdir(path) if _ID.fullmatch(name))
    return []


def write(path: str, text: str) -> None:
    """Replace a file as a whole; nobody else may read it, not even for a moment."""
    fd, made = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".new-")
    try:
        with os.fdopen(fd, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(made, path)
    except BaseException:
        remove(made)
        raise


def write_json(folder: str, name: str, value: dict[str, Any]) -> None:
    """Replace a file by JSON."""
    write(os.path.join(folder, name), json.dumps(value))


def read(path: str) -> str | None:
    """Return what a file holds, None where there is none to be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return None


def read_json(folder: str, name: str) -> dict[str, Any] | None:
    """Return the object of a file; None for one that is not there, or damaged."""
    try:
        value = json.loads(read(os.path.join(folder, name)) or "")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def remove(path: str) -> None:
    """Remove a file, if it is there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def clear(folder: str, *, but: tuple[str, ...] = ()) -> None:
    """Remove what is in a folder, the key first, and the folder if nothing stays.

    What says "alive" goes last: from then on somebody else may be at work in it.
    """
    remove(os.path.join(folder, "key"))
    left: list[str] = []
    with contextlib.suppress(OSError):
        left = os.listdir(folder)
    for name in left:
        if name not in (*but, "alive"):
            with contextlib.suppress(OSError):
                remove(os.path.join(folder, name))
    remove(os.path.join(folder, "alive"))
    if not but:
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def hold(folder: str, limit_s: float) -> int | None:
    """Take the lock that says "alive"; None where another watcher has it.

    Whoever asks whether it is alive holds it for a moment: so it is tried for a while.
    """
    path = os.path.join(folder, "alive")
    until = time.monotonic() + limit_s
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if _lock(fd, fcntl.LOCK_EX) and is_file_of(path, fd):
            os.ftruncate(fd, 0)
            os.write(fd, str(os.getpid()).encode())
            return fd
        os.close(fd)  # another has it, or has just removed it
        if time.monotonic() > until:
            return None
        time.sleep(0.02)


def is_alive(folder: str) -> bool:
    """Say whether a watcher is at work in a folder: it holds the lock."""
    return _is_held(os.path.join(folder, "alive"))


def pid_of(folder: str) -> int | None:
    """Return the PID of the watcher that is alive in a folder."""
    said = read(os.path.join(folder, "alive")) or ""
    return int(said) if said.isdigit() and is_alive(folder) else None


def wake(folder: str) -> None:
    """Make the watcher of a folder look at it; nothing happens where there is none."""
    with contextlib.suppress(OSError):
        flags = os.O_WRONLY | os.O_NONBLOCK
        fd = os.open(os.path.join(folder, "wake"), flags)
        try:
            os.write(fd, b"!")
        finally:
            os.close(fd)


def hold_contact(owner: str) -> int | None:
    """Show that an agent of the laptop is there, as long as the descriptor is open."""
    path = os.path.join(of_owner(owner), "contact")
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    if _lock(fd, fcntl.LOCK_SH):
        return fd
    os.close(fd)
    return None


def touch_contact(owner: str) -> None:
    """Note that the laptop has just asked."""
    os.utime(os.path.join(of_owner(owner), "contact"))


def is_contact(owner: str, fd: int) -> bool:
    """Say whether a descriptor is still that of the contact file."""
    return is_file_of(os.path.join(of_owner(owner), "contact"), fd)


def is_file_of(path: str, fd: int) -> bool:
    """Say whether a descriptor is that of the file which has this path now."""
    with contextlib.suppress(OSError):
        return os.path.samestat(os.stat(path), os.fstat(fd))
    return False


def remove_owner(owner: str) -> None:
    """Remove the folder of a laptop without watches, and the root if it is empty."""
    with contextlib.suppress(OSError):
        remove(os.path.join(of_owner(owner), "contact"))
        os.rmdir(of_owner(owner))
        os.rmdir(root())


def in_contact(folder: str, within_s: float) -> bool:
    """Say whether an agent of the watch's laptop is there and was asked lately."""
    path = os.path.join(os.path.dirname(folder), "contact")
    try:
        ago_s = time.time() - os.stat(path).st_mtime
    except OSError:
        return False
    return abs(ago_s) <= within_s and _is_held(path)


def sweep(now: float) -> None:
    """Remove what no laptop has asked for too long: outcomes, and what a crash left."""
    for owner in names(root()):
        for watch_id in names(of_owner(owner)):
            folder = of_watch(owner, watch_id)
            left = read_json(folder, "outcome.json") or {}
            left = left or read_json(folder, "order.json") or {}
            over_at = left.get("ended_at", left.get("deadline_at"))
            old = isinstance(over_at, (int, float)) and now - over_at > KEPT_S
            if old and not is_alive(folder):
                clear(folder)
        if not names(of_owner(owner)) and not _is_held(f"{of_owner(owner)}/contact"):
            remove_owner(owner)


def _is_held(path: str) -> bool:
    try:
        fd = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return not _lock(fd, fcntl.LOCK_EX)
    finally:
        os.close(fd)


def _lock(fd: int, how: int) -> bool:
    """Lock a file at once; False where another has it.

    Raises:
        OSError: it cannot be locked at all.
    """
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in {errno.EAGAIN, errno.EACCES}:
            return False
        raise
    return True
