"""What is known of a lock or of work at one look, and what moved since the last.

Structs, not dataclasses: they are stored and shown as JSON, and msgspec checks what
comes back.
"""

from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from policies.model import Sight
from policies.wording import Phrase

_STOPPED = frozenset("Tt")  # by a signal, or by a debugger: proc(5)


class Life(StrEnum):
    """Whether a process lives; a failure to look is `UNKNOWN`, never `DEAD`."""

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"


class LockEvidence(
    msgspec.Struct, frozen=True, kw_only=True, tag="lock", tag_field="kind"
):
    """A lock, its holder and the component that it guards; None was not to be seen.

    Attributes:
        sight: held while the file is there.
        reason: why it could not be seen.
        mark: inode and modification time: another one is a lock file rewritten.
        age_s: since it was written; None as well for a time in the future.
        life: of the process that the lock names as its holder, if it is of this host.
        updated: rewritten since the last assessment; None without one.
        commits: in the lock's paths since it was taken.
        new_commits: those since the last assessment; None without one.
        commit_age_s: since the newest of `commits`.
        newest: the newest commit's id, by which the next assessment tells new ones.
    """

    at: datetime
    sight: Sight
    reason: Phrase | None = None
    mark: str | None = None
    age_s: float | None = None
    future_mtime: bool = False
    session: str | None = None
    host: str | None = None
    pid: int | None = None
    since: str | None = None
    paths: tuple[str, ...] = ()
    life: Life = Life.UNKNOWN
    updated: bool | None = None
    commits: int | None = None
    new_commits: int | None = None
    commit_age_s: float | None = None
    newest: str | None = None


class ProcessEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """One process with its descendants; None was not to be seen.

    Attributes:
        boot_id, pid, start_ticks: who it is, for good (C3.3).
        state: the letter of proc(5).
        running_s: since it started.
        on_cpu: it, or a descendant, was running or ready to run.
        cpu_s: used by it and its descendants so far, those that ended too.
        cpu_progress_s: of that since the last assessment; below zero where a descendant
            that left took its share along.
    """

    boot_id: str
    pid: int
    start_ticks: int
    life: Life = Life.UNKNOWN
    state: str | None = None
    running_s: float | None = None
    on_cpu: bool = False
    cpu_s: float | None = None
    cpu_progress_s: float | None = None

    @property
    def stopped(self) -> bool:
        """It stands still by a signal, and nothing below it runs."""
        return self.state in _STOPPED and not self.on_cpu


class WorkEvidence(
    msgspec.Struct, frozen=True, kw_only=True, tag="work", tag_field="kind"
):
    """Processes and the log they write; None was not to be seen.

    Attributes:
        sight: held while the work runs.
        reason: why it could not be seen.
        awake_s: when this was, in seconds of `Clock.awake`: a machine that slept has
            hung nothing.
        log: the log's path, where one is known.
        log_size: bytes.
        log_growth: bytes since the last assessment; below zero for a log begun anew.
        quiet_s: seconds awake for which it is proved that nothing moved.
    """

    at: datetime
    sight: Sight
    reason: Phrase | None = None
    awake_s: float
    processes: tuple[ProcessEvidence, ...] = ()
    log: str | None = None
    log_size: int | None = None
    log_growth: int | None = None
    quiet_s: float = 0.0

    @property
    def living(self) -> tuple[ProcessEvidence, ...]:
        """The processes that are not provably dead."""
        return tuple(item for item in self.processes if item.life is not Life.DEAD)


Found: TypeAlias = LockEvidence | WorkEvidence


def lock_since(lock: LockEvidence, before: Found | None) -> LockEvidence:
    """Return a lock's evidence with what changed since the last assessment."""
    if not isinstance(before, LockEvidence) or None in {lock.mark, before.mark}:
        return lock
    return replace(lock, updated=lock.mark != before.mark)


def work_since(work: WorkEvidence, before: Found | None) -> WorkEvidence:
    """Return the evidence about work with what changed since the last assessment.

    Quiet spans add up over assessments; one that could not see all starts anew.
    """
    if not isinstance(before, WorkEvidence):
        return work
    used = {_identity(item): item.cpu_s for item in before.processes}
    processes = tuple(
        replace(item, cpu_progress_s=_difference(item.cpu_s, used.get(_identity(item))))
        for item in work.processes
    )
    growth = None
    if before.log == work.log and None not in {before.log_size, work.log_size}:
        growth = (work.log_size or 0) - (before.log_size or 0)
    found = replace(work, processes=processes, log_growth=growth)
    return replace(found, quiet_s=_quiet_s(found, before))


def _quiet_s(work: WorkEvidence, before: WorkEvidence) -> float:
    still = all(item.cpu_progress_s == 0 and not item.on_cpu for item in work.living)
    log_still = work.log_growth == 0 if work.log is not None else bool(work.living)
    if not (still and log_still):
        return 0.0
    return round(before.quiet_s + max(0.0, work.awake_s - before.awake_s), 3)


def _identity(item: ProcessEvidence) -> tuple[str, int, int]:
    return item.boot_id, item.pid, item.start_ticks


def _difference(now: float | None, before: float | None) -> float | None:
    return None if now is None or before is None else round(now - before, 3)
