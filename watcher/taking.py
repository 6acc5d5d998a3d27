"""Takes a lock for a waiter: whole at once, or not at all (C5.5)."""

import asyncio
import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from policies.clock import Clock
from policies.model import Memory, Outcome
from policies.wording import phrase
from watcher.hosted import Hosted
from watcher.offload import HungError, Worker
from watcher.store import WaiterRow

_TAKE_LIMIT_S = 2.0  # a file system that answers takes milliseconds


def lock_entry(session: str | None, mark: str, at: datetime) -> str:
    """Return what the lock file says: who holds it, and for whom we took it.

    No PID: the command that waited ends now, and its own would look dead at once.
    """
    named = f"session: {json.dumps(session)}\n" if session else ""
    return f"---\n{named}since: {at.isoformat()}\nmonitor: {mark}\n---\n"


def take_lock(path: str, entry: str) -> None:
    """Make the lock file with its whole content in one step.

    It is written beside and linked to its name: link(2) fails where the name exists,
    so nobody ever sees half an entry and nobody's lock is overwritten.

    Raises:
        FileExistsError: somebody else has it.
        OSError: it cannot be made.
    """
    directory, _, name = path.rpartition("/")
    os.makedirs(directory or "/", exist_ok=True)  # git takes it away with its last file
    beside = f"{directory}/.{name}.{os.getpid()}"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(beside)
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        with open(fd, "w", encoding="utf-8") as file:
            file.write(entry)
            file.flush()
            os.fsync(file.fileno())
        os.link(beside, path)
    finally:
        os.unlink(beside)


def give_back(path: str, entry: str) -> None:
    """Remove a lock that was taken for somebody who has gone meanwhile; only ours."""
    with contextlib.suppress(OSError, ValueError):
        with open(path, encoding="utf-8") as file:
            ours = file.read(len(entry) + 1) == entry
        if ours:
            os.unlink(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """Takes released locks for those of a watch's waiters who asked for that."""

    clock: Clock

    async def take(
        self, hosted: Hosted, path: str, outcome: Outcome
    ) -> tuple[list[WaiterRow], Outcome] | None:
        """Take the lock for the first waiter who asked for it.

        Returns:
            Who is to be told and what: him alone, or nobody when somebody else was
            faster or he has gone meanwhile. None when nobody asked, or the lock cannot
            be made: then all are.
        """
        taker = next((waiter for waiter in hosted.waiting() if waiter.takes), None)
        if taker is None:
            return None
        mark = f"{hosted.watch.id}-{taker.number}"
        entry = lock_entry(taker.session, mark, self.clock.wall())
        worker = Worker("take")
        undo = False
        try:
            async with asyncio.timeout(_TAKE_LIMIT_S):
                await worker.call(lambda: take_lock(path, entry))
            undo = taker.number in hosted.decided
        except FileExistsError:
            return [], outcome
        except (OSError, HungError) as error:  # TimeoutError is an OSError
            undo = isinstance(error, TimeoutError)  # it may be made yet
            said = str(error) or type(error).__name__
            hosted.notes.append(phrase("not_taken", error=said))
            return None
        finally:
            worker.close(lambda: give_back(path, entry) if undo else None)
        if undo:
            return [], outcome
        evidence = {**outcome.evidence, "taken_as": mark}
        return [taker], replace(outcome, evidence=evidence)


def granted(hosted: Hosted, memory: Memory) -> WaiterRow | None:
    """Return whose lock this is, if the service died before it could say so."""
    holder = memory.get("holder")
    mark = holder.get("monitor") if isinstance(holder, Mapping) else None
    for waiter in hosted.waiting():
        if waiter.takes and mark == f"{hosted.watch.id}-{waiter.number}":
            return waiter
    return None
