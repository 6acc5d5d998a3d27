"""Gathers the evidence that `policies.assess` weighs (C9.2).

Every look has a limit and changes nothing: no signal, no file, no network. One that
fails is unknown in the evidence.
"""

import os
import socket
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from policies.clock import Clock
from policies.evidence import Found, Life, LockEvidence, ProcessEvidence, WorkEvidence
from policies.holder import Holder, same_host
from policies.model import Json, Observation, Sight
from policies.proctable import Row
from watcher.commits import Commit, commits_since
from watcher.cpu import Busy, CpuTable, below, cpu_table
from watcher.identity import Identity
from watcher.limited import LOOK_LIMIT_S, within
from watcher.paths import project_directory
from watcher.procfs import UNKNOWN_START, ProcessTable, process_table

_SLACK_S = 2.0  # clocks of file systems and of git are not ours to the second
_THIS_BOOT = ""  # of a process that was only looked at by its number


class Machine(NamedTuple):
    """Where the looks are taken."""

    name: str
    table: ProcessTable
    cpu: CpuTable


def this_machine() -> Machine:
    """Return the machine that we run on."""
    return Machine(socket.gethostname(), process_table(), cpu_table())


def gather(
    kind: str,
    look: Observation,
    *,
    clock: Clock,
    machine: Machine | None = None,
    host: str | None = None,
    log: str | None = None,
    project: str | None = None,
    before: Found | None = None,
) -> Found:
    """Return the evidence about a watch; blocks, for some seconds at most.

    Args:
        kind: of the condition.
        look: at the condition, just now: what `check` says.
        clock: tells how long the machine was awake.
        machine: where to look; this one if it is not said.
        host: of the condition; of another machine nothing can be read here.
        log: path of the log that the work writes, if it is known.
        project: folder that a lock's paths are relative to; the git root around the
            lock file if it is not said.
        before: the evidence of the last assessment.
    """
    here = machine or this_machine()
    if kind == "lock" and host is None:
        return _lock_evidence(look, here, project, before)
    near = host is None
    if kind == "log":
        return _log_evidence(look, clock)
    return WorkEvidence(
        at=look.at,
        sight=look.sight,
        reason=look.reason,
        awake_s=round(clock.awake(), 3),
        processes=_processes(look, here) if near else (),
        log=log if near else None,
        log_size=_size(log) if near and log is not None else None,
    )


def _log_evidence(look: Observation, clock: Clock) -> WorkEvidence:
    """Return what the look brought of a log, here or on its host."""
    path, size = look.evidence.get("path"), look.evidence.get("size")
    return WorkEvidence(
        at=look.at,
        sight=look.sight,
        reason=look.reason,
        awake_s=round(clock.awake(), 3),
        log=path if isinstance(path, str) else None,
        log_size=size if isinstance(size, int) else None,
    )


def _lock_evidence(
    look: Observation, here: Machine, project: str | None, before: Found | None
) -> LockEvidence:
    """Return what the look brought of a lock, with its holder's life and commits."""
    evidence = LockEvidence(at=look.at, sight=look.sight, reason=look.reason)
    written_s = look.evidence.get("modified_s")
    if look.sight is not Sight.HELD or not isinstance(written_s, int | float):
        return evidence
    now_s = look.at.timestamp()
    age_s = now_s - written_s
    future = age_s < -_SLACK_S
    holder = _holder_of(look.evidence.get("holder"))
    entry = look.evidence.get("entry")
    inode = entry[1] if isinstance(entry, list | tuple) and len(entry) > 1 else 0
    evidence = replace(
        evidence,
        mark=f"{inode}:{written_s}",
        age_s=None if future else round(max(0.0, age_s), 3),
        future_mtime=future,
        session=holder.session,
        host=holder.host,
        pid=holder.pid,
        since=holder.since,
        paths=holder.paths,
        life=_life(holder, written_s, here),
    )
    folder = project or _project_of(look.evidence.get("path"))
    taken_s = _taken_s(holder.since, None if future else written_s, now_s)
    if folder is None or taken_s is None:
        return evidence
    return _with_commits(evidence, folder, taken_s, before)


def _holder_of(value: Json) -> Holder:
    """Return the holder that a look noted; what is odd counts as not said."""
    fields = value if isinstance(value, Mapping) else {}
    pid, paths = fields.get("pid"), fields.get("paths")
    texts = {name: fields.get(name) for name in ("session", "host", "since")}
    said = {name: text for name, text in texts.items() if isinstance(text, str)}
    return Holder(
        session=said.get("session"),
        host=said.get("host"),
        since=said.get("since"),
        pid=pid if isinstance(pid, int) else None,
        paths=tuple(path for path in paths if isinstance(path, str))
        if isinstance(paths, list | tuple)
        else (),
    )


def _life(holder: Holder, written_s: float, here: Machine) -> Life:
    """Say whether the holder's process lives, where the lock names this host.

    A process that started after the lock was last written is not the one that wrote
    it: the PID was used again, and nothing is proved.
    """
    pid = holder.pid
    if pid is None or not same_host(holder.host, here.name):
        return Life.UNKNOWN
    try:
        row = within(LOOK_LIMIT_S, lambda: here.table.row(pid))
        if row is None or row.finished:
            return Life.DEAD
        if row.start == UNKNOWN_START:
            return Life.ALIVE
        started_s = within(LOOK_LIMIT_S, lambda: here.table.started_at(row))
    except (OSError, ValueError):
        return Life.UNKNOWN
    younger = started_s is not None and started_s > written_s + _SLACK_S
    return Life.UNKNOWN if younger else Life.ALIVE


def _taken_s(since: str | None, written_s: float | None, now_s: float) -> float | None:
    """Return when a lock was taken: what it says itself, else when it was written."""
    try:
        said_s = datetime.fromisoformat(since or "").timestamp()
    except (OverflowError, ValueError, OSError):
        return written_s
    return said_s if 0 <= said_s <= now_s else written_s


def _project_of(path: Json) -> str | None:
    """Return the git root around a lock file, if there is one."""
    if not isinstance(path, str):
        return None
    folder = path.rpartition("/")[0] or "/"
    try:
        return within(LOOK_LIMIT_S, lambda: project_directory(folder))
    except OSError:
        return None


def _with_commits(
    lock: LockEvidence, folder: str, taken_s: float, before: Found | None
) -> LockEvidence:
    """Return a lock's evidence with the commits in its paths."""
    last_s = taken_s if before is None else before.at.timestamp()
    found = commits_since(folder, lock.paths, min(taken_s, last_s))
    if found is None:
        return lock
    now_s = lock.at.timestamp()
    made = [item for item in found if item.made_s <= now_s + _SLACK_S]
    since = [item for item in made if item.made_s >= int(taken_s)]
    return replace(
        lock,
        commits=len(since),
        new_commits=_new(made, before),
        commit_age_s=round(max(0.0, now_s - since[0].made_s), 3) if since else None,
        newest=made[0].id if made else None,
    )


def _new(made: Sequence[Commit], before: Found | None) -> int | None:
    """Return how many commits, newest first, came after the last assessment.

    They are told by the newest one of then, since git's times are whole seconds; where
    that is not among them, by their times.
    """
    if not isinstance(before, LockEvidence):
        return None
    names = [item.id for item in made]
    if before.newest in names:
        return names.index(before.newest)
    last_s = before.at.timestamp()
    if before.commits == 0:
        last_s = int(last_s)  # none at all was there
    return sum(item.made_s >= last_s for item in made)


def _processes(look: Observation, here: Machine) -> tuple[ProcessEvidence, ...]:
    """Return what can be seen of the processes that a look followed."""
    try:
        boot = within(LOOK_LIMIT_S, here.table.boot_id)
        busy = within(LOOK_LIMIT_S, here.cpu.busy)
    except (OSError, ValueError):
        boot, busy = None, {}
    found = []
    for identity in _identities(look):
        evidence = ProcessEvidence(
            boot_id=identity.boot, pid=identity.pid, start_ticks=identity.start
        )
        if boot is not None:
            evidence = _look_at(evidence, boot, busy, look.at, here)
        found.append(evidence)
    return tuple(found)


def _identities(look: Observation) -> list[Identity]:
    """Return who a look followed; a PID that was over at once has only its number."""
    seen = look.memory.get("seen")
    known = [look.memory.get("identity")]
    known += seen if isinstance(seen, list | tuple) else ()
    found = [item for item in map(Identity.from_json, known) if item is not None]
    pid = look.evidence.get("pid")
    if not found and isinstance(pid, int):
        found = [Identity(_THIS_BOOT, pid, UNKNOWN_START)]
    return found


def _look_at(
    evidence: ProcessEvidence,
    boot: str,
    busy: Mapping[int, Busy],
    at: datetime,
    here: Machine,
) -> ProcessEvidence:
    """Return the evidence about one process and its descendants (C3.3)."""
    if evidence.boot_id not in {boot, _THIS_BOOT}:
        return replace(evidence, life=Life.DEAD)
    seen = busy.get(evidence.pid)
    if seen is None:
        return replace(evidence, life=_hidden_life(evidence.pid, here))
    row = seen.row
    if UNKNOWN_START not in {row.start, evidence.start_ticks} and (
        row.start != evidence.start_ticks
    ):
        return replace(evidence, life=Life.DEAD)
    if row.finished:
        return replace(evidence, life=Life.DEAD, state=row.state)
    tree = [seen, *below(row.pid, busy)]
    used = [item.cpu_s for item in tree if item.cpu_s is not None]
    return replace(
        evidence,
        life=Life.ALIVE,
        state=row.state,
        running_s=_running_s(row, at, here),
        on_cpu=any(item.row.state == "R" for item in tree),
        cpu_s=round(sum(used), 3) if len(used) == len(tree) else None,
    )


def _running_s(row: Row, at: datetime, here: Machine) -> float | None:
    try:
        started_s = within(LOOK_LIMIT_S, lambda: here.table.started_at(row))
    except (OSError, ValueError):
        return None
    return None if started_s is None else round(at.timestamp() - started_s, 3)


def _hidden_life(pid: int, here: Machine) -> Life:
    """Say what the kernel says of a process that the table does not show."""
    try:
        row = within(LOOK_LIMIT_S, lambda: here.table.row(pid))
    except (OSError, ValueError):
        return Life.UNKNOWN
    return Life.DEAD if row is None or row.finished else Life.ALIVE


def _size(log: str) -> int | None:
    try:
        return within(LOOK_LIMIT_S, lambda: os.stat(log)).st_size
    except (OSError, ValueError):
        return None
