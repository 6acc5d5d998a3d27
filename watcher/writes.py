"""Files that are written to: a hint, so often and no more often."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from watcher.conditions import FileHint

_EVERY_S = 0.2  # between two wakes of a watch, so that a busy log costs little


class Notices(Protocol):
    """What tells of the next write to a file, once."""

    async def add(self, path: str) -> int | None:
        """Wait for that write; return its number, None where that cannot be had."""

    async def state(self, path: str) -> tuple[int, int] | None:
        """Return inode and size of a file, None where it does not answer."""

    def remove(self, number: int) -> None:
        """Wait no more."""


class Writes:
    """Wakes watches when their files are written to.

    A file is followed until its next write only: one that is written to all the time
    would else keep the event loop busy. The look that the write brings follows it anew,
    a pause after the wake before.
    """

    def __init__(self, notices: Notices, wake: Callable[[str], None]) -> None:
        """Follow nothing yet."""
        self._notices = notices
        self._wake = wake
        self._adding = asyncio.Lock()
        self._wanted: dict[str, dict[int, FileHint]] = {}
        self._followed: dict[str, dict[int, int]] = {}  # inode to number
        self._watches: dict[int, set[str]] = {}  # by number
        self._woken_s: dict[str, float] = {}
        self._pauses: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def follow(self, watch_id: str, wanted: Sequence[FileHint]) -> bool:
        """Follow these files of a watch and no others from now on.

        Returns:
            Whether one of them is no longer as the look saw it.
        """
        if not wanted and watch_id not in self._wanted:
            return False
        self._end_pause(watch_id)
        self._wanted[watch_id] = {hint.inode: hint for hint in wanted}
        followed = self._followed.setdefault(watch_id, {})
        for inode in followed.keys() - self._wanted[watch_id].keys():
            self._leave(watch_id, inode)
        if not self._missing(watch_id):
            return False
        loop = asyncio.get_running_loop()
        woken_s = self._woken_s.get(watch_id)
        left_s = 0.0 if woken_s is None else woken_s + _EVERY_S - loop.time()
        if left_s <= 0:
            return await self._add_missing(watch_id)
        self._pauses[watch_id] = loop.call_later(left_s, self._resume, watch_id)
        return False

    def drop(self, watch_id: str) -> None:
        """Follow nothing of a watch any more."""
        self._end_pause(watch_id)
        self._wanted.pop(watch_id, None)
        self._woken_s.pop(watch_id, None)
        for inode in list(self._followed.get(watch_id, ())):
            self._leave(watch_id, inode)
        self._followed.pop(watch_id, None)

    def written(self, number: int) -> None:
        """Wake whoever waits for this write, which was the only one told of."""
        for watch_id in self._watches.pop(number, set()):
            followed = self._followed[watch_id]
            for inode in [inode for inode, n in followed.items() if n == number]:
                del followed[inode]
            self._call(watch_id)

    def wake_all(self) -> None:
        """Wake every watch: something was lost."""
        for watch_id in list(self._wanted):
            self._call(watch_id)

    def close(self) -> None:
        """Stop everything; the numbers are given back by who gave them."""
        for pause in self._pauses.values():
            pause.cancel()
        for task in self._tasks:
            task.cancel()

    def _call(self, watch_id: str) -> None:
        self._woken_s[watch_id] = asyncio.get_running_loop().time()
        self._wake(watch_id)

    def _end_pause(self, watch_id: str) -> None:
        pause = self._pauses.pop(watch_id, None)
        if pause is not None:
            pause.cancel()

    def _resume(self, watch_id: str) -> None:
        del self._pauses[watch_id]
        task = asyncio.create_task(self._follow_late(watch_id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow_late(self, watch_id: str) -> None:
        if await self._add_missing(watch_id):
            self._wake(watch_id)

    def _missing(self, watch_id: str) -> list[FileHint]:
        wanted = self._wanted.get(watch_id, {})
        followed = self._followed.get(watch_id, {})
        return [hint for inode, hint in wanted.items() if inode not in followed]

    async def _add_missing(self, watch_id: str) -> bool:
        """Follow what is wanted; say whether something has changed before that."""
        changed = False
        async with self._adding:
            for hint in self._missing(watch_id):
                changed |= await self._add(watch_id, hint)
        if changed and watch_id in self._wanted:
            self._woken_s[watch_id] = asyncio.get_running_loop().time()
        return changed

    async def _add(self, watch_id: str, hint: FileHint) -> bool:
        """Follow a file; say whether it is no longer as the last look saw it."""
        number = await self._notices.add(hint.path)
        if number is None:
            return False
        watches = self._watches.setdefault(number, set())
        if hint.inode not in self._wanted.get(watch_id, {}):
            self._let_go(number)
            return False
        watches.add(watch_id)
        self._followed[watch_id][hint.inode] = number
        state = await self._notices.state(hint.path)
        wanted = self._wanted.get(watch_id, {}).get(hint.inode)
        if wanted is None or state == (wanted.inode, wanted.size):
            return False
        self._leave(watch_id, hint.inode)
        return True

    def _leave(self, watch_id: str, inode: int) -> None:
        number = self._followed[watch_id].pop(inode, None)
        if number is not None:
            self._watches.get(number, set()).discard(watch_id)
            self._let_go(number)

    def _let_go(self, number: int) -> None:
        if number in self._watches and not self._watches[number]:
            del self._watches[number]
            self._notices.remove(number)
