"""The lock files that a session can meet, read within a limit (C11.2, C11.3)."""

import os
import shlex
import stat
import time
from collections.abc import Iterator
from typing import NamedTuple

from policies.holder import Holder, parse_holder
from policies.names import absolute, slug_of
from policies.text import clean
from watcher.paths import config_file, project_directory
from watcher.runtimes import HookCall
from watcher.runtimes.words import said

DEFAULT_DIRECTORY = "context/notices/active"
"""Where `watcher.conditions.lock` looks as well, which is too much to import here."""

_LIMIT_S = 1.0  # for all lock files together; a thousand take a tenth of it
_CONTENT = 8192  # bytes: a holder entry stands at a file's start
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_ACTIVITY = 100  # characters of a file's name in a command


class Lock(NamedTuple):
    """A lock file that names its holder.

    Attributes:
        slug: of its name.
        path: absolute.
        holder: whoever it names.
    """

    slug: str
    path: str
    holder: Holder


class Locks:
    """The locks that can concern a session."""

    def __init__(self, call: HookCall) -> None:
        """Look at nothing yet."""
        self.all_seen = True
        """Whether the time was enough for all of them."""
        chosen = os.path.expanduser(_chosen(call) or DEFAULT_DIRECTORY)
        own = absolute(chosen, project_directory(call.cwd))
        self._folders = dict.fromkeys([own, absolute(chosen, call.project)])
        self._own = own

    def __iter__(self) -> Iterator[Lock]:
        """Give the locks that name paths, as far as the time allows."""
        end_s = _clock() + _LIMIT_S
        for folder in self._folders:
            try:
                names = sorted(os.listdir(folder))
            except OSError:
                continue
            for name in names:
                slug = slug_of(name)
                if slug is None:
                    continue
                if _clock() > end_s:
                    self.all_seen = False
                    return
                path = f"{folder}/{name}"
                holder = read_holder(path)
                if holder.paths:
                    yield Lock(slug, path, holder)

    def word(self, path: str) -> str:
        """Return what `koder-monitor lock` calls a lock file from the session's folder.

        A slug means a file of one directory only.
        """
        folder, _, name = path.rpartition("/")
        slug = slug_of(name)
        return slug if slug is not None and folder == self._own else path


def read_holder(path: str) -> Holder:
    """Return whoever a lock file names; nobody where it cannot be read."""
    try:
        fd = os.open(path, _OPEN)
    except (OSError, ValueError):
        return Holder()
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return Holder()
        content = os.read(fd, _CONTENT)
    except OSError:
        return Holder()
    finally:
        os.close(fd)
    return parse_holder(content) if b"paths" in content.lower() else Holder()


def command(call: HookCall, word: str, path: str) -> str:
    """Return the exact command that waits for a lock, to be run in the background."""
    name = clean(os.path.relpath(path, call.project), _ACTIVITY)
    resume = said(call, "hook_resume", path=name)
    words = ["koder-monitor", "lock", word, "--resume", resume]
    if call.session is not None and call.runtime != "claude-code":
        words += ["--session", call.session]  # its shells do not know it
    return shlex.join(words)


def shown_holder(holder: Holder) -> str:
    """Return who holds a lock, in a word or two."""
    names = [holder.session, holder.host, f"PID {holder.pid}" if holder.pid else None]
    return ", ".join(name for name in names if name) or "?"


def _chosen(call: HookCall) -> str | None:
    """Return the setting `[locks] dir`, without checking all the others."""
    asked = call.env.get("KODER_MONITOR_LOCKS_DIR")
    if asked:
        return asked
    try:
        with open(config_file(call.env), "rb") as file:
            content = file.read(1 << 20).decode("utf-8")
        if "locks" not in content:
            return None
        import tomllib  # noqa: PLC0415 - start-up time: most have no such file

        chosen = tomllib.loads(content)["locks"]["dir"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return chosen if isinstance(chosen, str) and chosen else None


def _clock() -> float:
    return time.clock_gettime(time.CLOCK_MONOTONIC)
