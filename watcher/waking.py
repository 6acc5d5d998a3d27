"""Pings once more, and wakes a session, where there is no sign of life (C9.4)."""

import asyncio
import logging
import os
import re
import signal
import sqlite3
from collections.abc import Callable
from contextlib import suppress

from policies.clock import Clock
from policies.lines import outcome_line
from policies.model import Json, Ping
from policies.shapes import reminder_ping
from policies.waking import filled
from policies.wording import Lang
from watcher import inbox, store
from watcher.config import Config
from watcher.errors import StoreError
from watcher.inbox import Told
from watcher.keeping import Keeping
from watcher.ownership import LostError
from watcher.tasks import Tasks

_LIMIT_S = 900.0  # a session that was resumed may work for a while
_MOST_AT_ONCE = 4
_SECRET = re.compile(r"KODER_MONITOR_\w*(?:KEY|TOKEN)")

_log = logging.getLogger(__name__)

AddPings = Callable[[sqlite3.Connection, str, list[Ping]], None]


class Waking:
    """Looks after outcomes that nobody has acknowledged."""

    def __init__(
        self,
        *,
        config: Config,
        clock: Clock,
        keeping: Keeping,
        tasks: Tasks,
        add_pings: AddPings,
    ) -> None:
        """Wake nobody yet."""
        self._config = config
        self._clock = clock
        self._keeping = keeping
        self._tasks = tasks
        self._add_pings = add_pings
        self._places = asyncio.Semaphore(_MOST_AT_ONCE)

    async def round(self, read: sqlite3.Connection) -> int:
        """Ping once more for what is overdue; return for how many outcomes.

        The second ping and the note of it are one transaction, and the note that a
        session is being woken comes before that: a crash wakes nobody twice.

        Raises:
            sqlite3.Error: the store cannot be read.
        """
        now_s = self._clock.wall().timestamp()
        grace_s = self._config.wake.grace
        overdue = inbox.overdue(read, now_s - grace_s)
        if not overdue:
            return 0
        wakes = bool(self._config.wake.command)

        def change(connection: sqlite3.Connection) -> list[Told]:
            claimed = [
                told
                for told in overdue
                if inbox.claim_reminder(connection, told, now_s, wakes=wakes)
            ]
            for told in claimed:
                self._add_pings(connection, told.watch_id, [self._ping(told)])
                store.add_trail(connection, told.watch_id, now_s, "reminded", None)
            return claimed

        try:
            claimed = await self._keeping.firmly(change)
        except (StoreError, LostError):
            return 0  # the next round tries again
        if wakes:
            for told in claimed:
                self._tasks.spawn(self._wake(told))
        return len(claimed)

    def _ping(self, told: Told) -> Ping:
        return reminder_ping(
            told.outcome,
            _lang(told.lang, self._config.lang),
            self._clock.zone(),
            waiter=told.number,
            grace_s=self._config.wake.grace,
        )

    async def _wake(self, told: Told) -> None:
        """Run the command, once; what comes of it is only noted."""
        async with self._places:
            status = await self._run(told)
        _log.info("session.woken", extra={"watch_id": told.watch_id, "status": status})
        now_s = self._clock.wall().timestamp()
        await self._keeping.durably(
            lambda c: store.add_trail(c, told.watch_id, now_s, "woken", status)
        )

    async def _run(self, told: Told) -> Json:
        """Run it by its argument list, without a shell; say how it went."""
        outcome = told.outcome
        lang = _lang(told.lang, self._config.lang)
        values = {
            "session": outcome.session or "",
            "watch_id": told.watch_id,
            "line": outcome_line(outcome, lang, self._clock.zone()),
            "label": outcome.label,
            "resume": outcome.resume or "",
            "project": told.project or "",
        }
        folder = await asyncio.to_thread(_folder, told.project)
        try:
            process = await asyncio.create_subprocess_exec(
                *filled(self._config.wake.command, values),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=folder,
                env={k: v for k, v in os.environ.items() if not _SECRET.fullmatch(k)},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return f"{type(error).__name__}: {error}"
        try:
            async with asyncio.timeout(_LIMIT_S):
                return await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            return "timeout"


def _folder(project: str | None) -> str:
    return project if project and os.path.isdir(project) else "/"


def _lang(name: str, otherwise: Lang) -> Lang:
    return Lang(name) if name in set(Lang) else otherwise
