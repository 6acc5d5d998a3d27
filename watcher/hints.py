"""Where the system can tell at once: events that say "look now" (C4.2).

A hint never decides anything. It shortens the wait; the timer stays the truth, so a
system without events, or one that loses them, costs time and nothing else.
"""

import asyncio
import contextlib
import errno
import os
import sys
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Protocol

from policies.wording import Phrase, phrase
from watcher.conditions import CallHint, DirectoryHint, FileHint, Hint, ReadableHint
from watcher.offload import HungError, Worker
from watcher.writes import Writes

if TYPE_CHECKING:
    from inotify_simple import INotify

_ADD_LIMIT_S = 2.0  # adding a watch looks the path up, which may hang like any look


class Hints(Protocol):
    """What wakes a watch before its next look is due."""

    async def follow(self, watch_id: str, wanted: Sequence[Hint]) -> bool:
        """Wake a watch on these and no others from now on.

        Returns:
            Whether something may have happened before they were in place.
        """
        ...

    def drop(self, watch_id: str) -> None:
        """Wake it no more."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


class SystemHints:
    """inotify(7) for directories and files, the event loop for descriptors."""

    def __init__(
        self, wake: Callable[[str], None], degraded: Callable[[Phrase], None]
    ) -> None:
        """Call `wake` with a watch's id when something happened to what it follows.

        Args:
            wake: may be called for nothing.
            degraded: told once, when file events are not to be had.
        """
        self._wake = wake
        self._degraded = degraded
        self._worker = Worker("hints")
        self._adding = asyncio.Lock()
        self._inotify: INotify | None = None
        self._usable = sys.platform == "linux"
        self._names: dict[int, dict[str, set[str]]] = {}
        self._numbers: dict[str, int] = {}
        self._followed: dict[str, set[tuple[int, str]]] = {}
        self._fds: dict[str, dict[Hashable, int]] = {}
        self._calls: dict[str, dict[Hashable, Callable[[], None]]] = {}
        self._writes = Writes(self, wake)

    async def follow(self, watch_id: str, wanted: Sequence[Hint]) -> bool:
        """Follow what is wanted; what is followed already stays."""
        self._follow_fds(watch_id, [h for h in wanted if isinstance(h, ReadableHint)])
        self._follow_calls(watch_id, [h for h in wanted if isinstance(h, CallHint)])
        fresh = False
        for hint in wanted:
            if isinstance(hint, DirectoryHint):
                fresh |= await self._follow_directory(watch_id, hint)
        files = [hint for hint in wanted if isinstance(hint, FileHint)]
        return await self._writes.follow(watch_id, files) or fresh

    def drop(self, watch_id: str) -> None:
        """Forget a watch; a directory that nobody follows any more is let go."""
        self._follow_fds(watch_id, [])
        self._follow_calls(watch_id, [])
        self._writes.drop(watch_id)
        for number, name in self._followed.pop(watch_id, ()):
            names = self._names.get(number, {})
            ids = names.get(name, set())
            ids.discard(watch_id)
            if not ids:
                names.pop(name, None)
            if not names and number in self._names:
                self._forget_directory(number)

    def close(self) -> None:
        """Close inotify and leave the event loop."""
        for watch_id in list(self._fds):
            self._follow_fds(watch_id, [])
        for watch_id in list(self._calls):
            self._follow_calls(watch_id, [])
        self._writes.close()
        inotify, self._inotify = self._inotify, None
        if inotify is None:
            self._worker.close(lambda: None)
        else:
            asyncio.get_running_loop().remove_reader(inotify.fileno())
            self._worker.close(inotify.close)

    def _follow_fds(self, watch_id: str, wanted: Sequence[ReadableHint]) -> None:
        """Follow copies: what the condition closes must not stay with the loop.

        One that is readable now will say so at once, so none needs another look.
        """
        followed = self._fds.pop(watch_id, {})
        for about in followed.keys() - {hint.about for hint in wanted}:
            self._forget_fd(followed.pop(about))
        for hint in wanted:
            if hint.about not in followed:
                copy = self._copy(watch_id, hint)
                if copy is not None:
                    followed[hint.about] = copy
        if followed:
            self._fds[watch_id] = followed

    def _follow_calls(self, watch_id: str, wanted: Sequence[CallHint]) -> None:
        followed = self._calls.pop(watch_id, {})
        for about in followed.keys() - {hint.about for hint in wanted}:
            followed.pop(about)()
        for hint in wanted:
            if hint.about not in followed:
                followed[hint.about] = hint.subscribe(lambda: self._wake(watch_id))
        if followed:
            self._calls[watch_id] = followed

    def _copy(self, watch_id: str, hint: ReadableHint) -> int | None:
        loop = asyncio.get_running_loop()
        try:
            copy = os.dup(hint.fd)
        except OSError:
            return None  # closed meanwhile, or too many: the next look will do
        try:
            loop.add_reader(copy, self._readable, watch_id, copy)
        except OSError:
            os.close(copy)
            return None
        return copy

    def _readable(self, watch_id: str, fd: int) -> None:
        asyncio.get_running_loop().remove_reader(fd)  # it stays so: once is enough
        self._wake(watch_id)

    def _forget_fd(self, fd: int) -> None:
        asyncio.get_running_loop().remove_reader(fd)
        os.close(fd)

    async def _follow_directory(self, watch_id: str, hint: DirectoryHint) -> bool:
        async with self._adding:  # many may want the same one at the same time
            number = self._numbers.get(hint.directory)
            if number is None:
                number = await self._add(hint.directory)
        if number is None:
            return False
        ids = self._names.setdefault(number, {}).setdefault(hint.name, set())
        fresh = watch_id not in ids
        ids.add(watch_id)
        self._followed.setdefault(watch_id, set()).add((number, hint.name))
        return fresh

    async def add(self, path: str) -> int | None:
        """Follow the next write to a file; for `Writes`."""
        if not self._usable:
            return None
        from inotify_simple import flags  # noqa: PLC0415 - after arming only

        mask = flags.MODIFY | flags.CLOSE_WRITE | flags.ONESHOT
        async with self._adding:
            return await self._add_watch(path, mask)

    async def state(self, path: str) -> tuple[int, int] | None:
        """Return inode and size of a file, None where it does not answer."""

        def look() -> tuple[int, int]:
            found = os.stat(path)
            return found.st_ino, found.st_size

        try:
            async with self._adding, asyncio.timeout(_ADD_LIMIT_S):
                return await self._worker.call(look)
        except (OSError, HungError):  # TimeoutError is one
            return None

    def remove(self, number: int) -> None:
        """Follow a directory or a file no more."""
        if self._inotify is not None:
            with contextlib.suppress(OSError):
                self._inotify.rm_watch(number)

    async def _add(self, directory: str) -> int | None:
        """Watch a directory and return inotify's number for it, or None."""
        if not self._usable:
            return None
        from inotify_simple import flags  # noqa: PLC0415 - after arming only

        mask = (
            flags.CREATE
            | flags.DELETE
            | flags.MOVED_FROM
            | flags.MOVED_TO
            | flags.DELETE_SELF
            | flags.MOVE_SELF
            | flags.ONLYDIR
        )
        number = await self._add_watch(directory, mask)
        if number is not None:
            self._numbers[directory] = number
            self._names.setdefault(number, {})
        return number

    async def _add_watch(self, path: str, mask: int) -> int | None:
        try:
            inotify = self._opened()
            async with asyncio.timeout(_ADD_LIMIT_S):
                number: int = await self._worker.call(
                    lambda: inotify.add_watch(path, mask)
                )
        except (TimeoutError, HungError):
            return None
        except OSError as error:
            # Missing or forbidden directories may be followed later; no more instances
            # or watches is final for this process.
            if error.errno in {errno.ENOSPC, errno.EMFILE, errno.ENOSYS}:
                self._usable = False
                name = errno.errorcode[error.errno]
                self._degraded(phrase("inotify_limit", error=name))
            return None
        return number

    def _opened(self) -> "INotify":
        if self._inotify is None:
            from inotify_simple import INotify  # noqa: PLC0415 - after arming only

            self._inotify = INotify(nonblocking=True)
            asyncio.get_running_loop().add_reader(
                self._inotify.fileno(), self._on_events
            )
        return self._inotify

    def _on_events(self) -> None:
        """Wake whoever follows what changed; after a lost event, everybody."""
        from inotify_simple import flags  # noqa: PLC0415

        if self._inotify is None:
            return
        for event in self._inotify.read(timeout=0):
            if event.mask & flags.Q_OVERFLOW:
                for names in list(self._names.values()):
                    self._wake_all(names)
                self._writes.wake_all()
                continue
            self._writes.written(event.wd)
            names = self._names.get(event.wd, {})
            if event.mask & flags.IGNORED:  # gone with its directory, or unmounted
                self._forget_number(event.wd)
                self._wake_all(names)
            elif event.mask & flags.MOVE_SELF:
                self._forget_path(event.wd)  # another one may take its place
                self._wake_all(names)
            elif event.mask & (flags.DELETE_SELF | flags.UNMOUNT):
                self._wake_all(names)
            else:
                for watch_id in list(names.get(event.name, ())):
                    self._wake(watch_id)

    def _wake_all(self, names: dict[str, set[str]]) -> None:
        for ids in list(names.values()):
            for watch_id in list(ids):
                self._wake(watch_id)

    def _forget_path(self, number: int) -> None:
        for directory in [d for d, n in self._numbers.items() if n == number]:
            del self._numbers[directory]

    def _forget_number(self, number: int) -> None:
        self._forget_path(number)
        self._names.pop(number, None)

    def _forget_directory(self, number: int) -> None:
        self._forget_number(number)
        self.remove(number)
