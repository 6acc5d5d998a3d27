"""What a session was told of locks, so that its stop can be checked (C11.3).

One small file a session, lines appended: hooks of one session run side by side. Its
name is the session's id, which has been checked; what it says is checked again, since
some file systems know no capital letters.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from typing import NamedTuple

from policies.holder import Holder
from watcher.cli.reading import now
from watcher.paths import state_directory
from watcher.runtimes import HookCall

_FOLDER = "hooks/tried"
_MOST_BYTES = 64 << 10  # of one session
_KEPT_S = 7 * 86400  # a session that comes back later starts anew


class Tried(NamedTuple):
    """An edit in what a lock covers.

    Attributes:
        lock: path of the lock file.
        holder: who held it, in one word to compare.
        path: of the edited file.
        held: a stop was held for it already.
    """

    lock: str
    holder: str
    path: str
    held: bool = False


def mark_of(holder: Holder) -> str:
    """Return what tells one holding of a lock from the next."""
    return json.dumps([holder.session, holder.host, holder.pid, holder.since])


def remember(call: HookCall, items: list[Tried]) -> bool:
    """Note what is new, one file for each holding of a lock; say whether all is noted.

    Raises:
        OSError: the state directory cannot be written.
    """
    if call.session is None:
        return False
    known = {(item.lock, item.holder, item.held) for item in recall(call)}
    lines = [
        json.dumps([call.session, *item]) + "\n"
        for item in items
        if (item.lock, item.holder, item.held) not in known
    ]
    if not lines:
        return True
    folder = _folder(call)
    os.makedirs(state_directory(call.env), mode=0o700, exist_ok=True)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(f"{folder}/{call.session}", flags, 0o600)
    try:
        if os.fstat(fd).st_size > _MOST_BYTES:
            return False
        os.write(fd, "".join(lines).encode())
    finally:
        os.close(fd)
    return True


def recall(call: HookCall) -> list[Tried]:
    """Return what was noted for this session, the oldest first."""
    if call.session is None:
        return []
    try:
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        fd = os.open(f"{_folder(call)}/{call.session}", flags)
    except OSError:
        return []
    try:
        content = os.read(fd, 2 * _MOST_BYTES)
    except OSError:
        return []
    finally:
        os.close(fd)
    return list(_read(content, call.session))


def sweep(call: HookCall) -> None:
    """Forget sessions that have not been heard of for days."""
    with contextlib.suppress(OSError), os.scandir(_folder(call)) as entries:
        for entry in entries:
            old = now() - entry.stat(follow_symlinks=False).st_mtime > _KEPT_S
            if old and entry.is_file(follow_symlinks=False):
                os.unlink(entry.path)


def _read(content: bytes, session: str) -> Iterator[Tried]:
    for line in content.decode("utf-8", "replace").splitlines():
        try:
            owner, lock, holder, path, held = json.loads(line)
        except (ValueError, TypeError):
            continue
        texts = [lock, holder, path]
        if owner == session and all(isinstance(text, str) for text in texts):
            yield Tried(lock, holder, path, held is True)


def _folder(call: HookCall) -> str:
    return f"{state_directory(call.env)}/{_FOLDER}"
