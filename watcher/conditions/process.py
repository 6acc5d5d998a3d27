"""Processes: by PID, by pidfile, or by what their command lines say (C3.3)."""

import asyncio
import os
import re
import stat
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import cast

from policies.clock import Clock
from policies.model import Evidence, Json, Memory, Observation, Sight, Target
from policies.proctable import Row, lineage, matching, own_side
from policies.sight import absent, released, unknown
from policies.target import MAX_PID
from policies.wording import Phrase, phrase
from watcher.conditions import Hint, ReadableHint
from watcher.errors import UsageError
from watcher.identity import ExitDescriptors, Identity
from watcher.offload import HungError, Worker
from watcher.procfs import UNKNOWN_START, ProcessTable

_SCAN_LIMIT_S = 4.0  # a scan takes milliseconds; a longer one hangs on some process
_REGEX_LIMIT_S = 0.5  # for one command line
_PIDFILE_LIMIT = 64  # bytes
_PIDFILE_SLACK_S = 2.0  # file times and boot time are rounded differently
_SHOWN = 10  # matches that are listed on arming
_WATCHED = 64  # matches that get a descriptor each


class OneProcess:
    """The process of a PID, or the one that a pidfile names."""

    settle = False

    def __init__(
        self,
        target: Target,
        *,
        pid: int | None = None,
        pidfile: str | None = None,
        awaits_start: bool = False,
        table: ProcessTable,
        clock: Clock,
    ) -> None:
        """Look for `pid`, or for the PID that `pidfile` holds by then."""
        self.target = target
        self._pid = pid
        self._pidfile = pidfile
        self._awaits_start = awaits_start
        self._table = table
        self._clock = clock
        self._worker = Worker(f"look-{target.label}")
        self._exits = ExitDescriptors()
        self._written_at = 0.0

    async def admit(self) -> None:
        """Refuse the monitor's own PID and a pidfile that cannot mean its PID here."""
        refusal = await self._on_thread(self._refusal)
        if isinstance(refusal, Phrase):
            raise UsageError(refusal)

    async def probe(self, memory: Memory) -> Observation:
        """Take one look at the process that the first look found."""
        at = self._clock.wall()
        seen = await self._on_thread(lambda: self._look(memory, at))
        if isinstance(seen, Observation):
            return seen
        reason = phrase("hung", what=self.target.text)
        return unknown(memory, at, reason, {"means": "/proc"})

    def hints(self) -> Sequence[Hint]:
        """Ask for the exit of the process."""
        return [ReadableHint(fd) for fd in self._exits.fds()]

    def close(self) -> None:
        """Give everything back."""
        self._worker.close()
        self._exits.keep_only([])

    async def _on_thread(self, look: Callable[[], object]) -> object:
        """Return what `look` returns, or None when it hangs."""
        try:
            return await self._worker.call(look)
        except HungError:
            return None

    def _look(self, memory: Memory, at: datetime) -> Observation:
        try:
            bound = Identity.from_json(memory.get("identity"))
            return self._follow(bound, at) if bound else self._bind(at)
        except OSError as error:
            reason = phrase("probe_failed", error=str(error))
            return unknown(memory, at, reason, {"means": "/proc", "error": str(error)})

    def _bind(self, at: datetime) -> Observation:
        """Find the process for the first time and note who it is."""
        pid = self._pid
        if pid is None:
            named = self._named_pid()
            if isinstance(named, Phrase):
                if named.key == "pidfile_missing":
                    return absent(at, named)
                return unknown({}, at, named, {"means": "pidfile"})
            pid = named
            foreign = self._foreign(pid)
            if foreign is not None:
                return unknown({}, at, foreign, {"means": "pidfile", "pid": pid})
        row = self._table.row(pid)
        if row is None or row.finished:
            if self._awaits_start:
                return absent(at, phrase("nothing_matches"))
            state = "no such process" if row is None else f"state {row.state}"
            return released(at, {"means": "/proc", "pid": pid, "seen": state}, {})
        identity = Identity(self._table.boot_id(), pid, row.start)
        self._exits.hold(identity, self._table)
        notes = [phrase("matched", pid=pid, command=row.command)]
        if row.kernel_thread:
            notes = [phrase("kernel_thread", pid=pid, command=row.command)]
        return _running(at, identity, row, tuple(notes))

    def _follow(self, identity: Identity, at: datetime) -> Observation:
        """Say whether the process bound before has ended; each answer names its means.

        A reused PID and one of an earlier boot are both an end (C3.3).
        """
        memory: Memory = {"identity": identity.as_json()}
        boot = self._table.boot_id()
        seen: dict[str, Json] = {"identity": identity.as_json()}
        if boot != identity.boot:
            return released(at, {**seen, "means": "boot id", "boot_now": boot}, memory)
        ended = self._exits.ended(identity)
        if ended:
            return released(at, {**seen, "means": "pidfd"}, memory)
        row = self._table.row(identity.pid)
        if ended is None:
            if row is None:
                return released(at, {**seen, "means": "kill", "errno": "ESRCH"}, memory)
            if UNKNOWN_START not in {row.start, identity.start}:
                if row.start != identity.start:
                    found = {**seen, "means": "start ticks", "start_now": row.start}
                    return released(at, found, memory)
                if row.finished:
                    found = {**seen, "means": "state", "state": row.state}
                    return released(at, found, memory)
            self._exits.hold(identity, self._table)
        return _running(at, identity, row, ())

    def _refusal(self) -> Phrase | None:
        if self._pid is not None:
            own = self._pid == os.getpid()
            return phrase("own_pid", pid=self._pid) if own else None
        try:
            named = self._named_pid()
            return None if isinstance(named, Phrase) else self._foreign(named)
        except OSError:
            return None  # the first probe will say what is wrong

    def _named_pid(self) -> int | Phrase:
        """Return the PID that the pidfile holds, or why there is none."""
        path = self._pidfile or ""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return phrase("pidfile_missing", path=path)
        except PermissionError:
            return phrase("denied", path=path)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return phrase("no_pid_in", path=path)
            words = os.read(fd, _PIDFILE_LIMIT).split()
            self._written_at = os.fstat(fd).st_mtime
        finally:
            os.close(fd)
        if not words or not words[0].isdigit() or not 0 < int(words[0]) <= MAX_PID:
            return phrase("no_pid_in", path=path)
        return int(words[0])

    def _foreign(self, pid: int) -> Phrase | None:
        """Return why a pidfile's PID cannot be what its writer meant, if so.

        A kernel thread, or a process younger than the file, did not write it: the file
        is old, or was written in a container that counts its own PIDs.
        """
        path = self._pidfile or ""
        if pid == os.getpid():
            return phrase("own_pidfile", pid=pid, path=path)
        row = self._table.row(pid)
        if row is None or row.start == UNKNOWN_START:
            return None
        started = self._table.started_at(row)
        younger = started is not None and started > self._written_at + _PIDFILE_SLACK_S
        if row.kernel_thread or younger:
            return phrase("foreign_pidfile", pid=pid, path=path, command=row.command)
        return None


class MatchingProcesses:
    """All processes whose command line matches; ended when none does any more."""

    settle = False

    def __init__(
        self,
        target: Target,
        matches: Callable[[str], bool],
        *,
        table: ProcessTable,
        clock: Clock,
        launcher: int,
    ) -> None:
        """Match command lines by `matches`.

        Args:
            launcher: PID of the command that waits; it and its ancestors carry the
                pattern on their own command lines and never match.
        """
        self.target = target
        self._matches = matches
        self._table = table
        self._clock = clock
        self._launcher = launcher
        self._worker = Worker(f"scan-{target.label}")
        self._stuck: dict[int, Worker] = {}
        self._exits = ExitDescriptors()

    async def admit(self) -> None:
        """Every pattern that compiles can be watched."""

    async def probe(self, memory: Memory) -> Observation:
        """Scan the table; a process whose files block us is skipped and named."""
        at = self._clock.wall()
        self._stuck = {p: w for p, w in self._stuck.items() if w.busy}
        skip = frozenset(self._stuck)
        try:
            async with asyncio.timeout(_SCAN_LIMIT_S):
                return await self._worker.call(lambda: self._look(memory, at, skip))
        except (TimeoutError, HungError):
            pid = self._table.reading
            if pid and pid not in self._stuck:
                self._stuck[pid] = self._worker
                self._worker = Worker(self.target.label)
            reason = phrase("pids_stuck", pids=pid)
            return unknown(memory, at, reason, {"means": "/proc", "stuck_pid": pid})

    def hints(self) -> Sequence[Hint]:
        """Ask for the exits of what matched."""
        return [ReadableHint(fd) for fd in self._exits.fds()]

    def close(self) -> None:
        """Give everything back."""
        for worker in (self._worker, *self._stuck.values()):
            worker.close()
        self._exits.keep_only([])

    def _look(self, memory: Memory, at: datetime, skip: frozenset[int]) -> Observation:
        try:
            return self._scan(memory, at, skip)
        except OSError as error:
            reason = phrase("probe_failed", error=str(error))
            return unknown(memory, at, reason, {"means": "/proc", "error": str(error)})
        except TimeoutError:
            reason = phrase("slow_regex", regex=self.target.label)
            return unknown(memory, at, reason, {"means": "regex"})

    def _scan(self, memory: Memory, at: datetime, skip: frozenset[int]) -> Observation:
        """Take the whole table and see what matches in it.

        Nothing matching is an end only where something matched before and everything
        could be looked at.
        """
        boot = self._table.boot_id()
        rows = self._table.rows(skip)
        launchers = self._launchers(memory, boot, rows)
        own = own_side(rows, {identity.pid for identity in launchers})
        found = matching(rows, own, self._matches)
        self._exits.keep_only([Identity(boot, row.pid, row.start) for row in found])
        kept: dict[str, Json] = {
            "launchers": [identity.as_json() for identity in launchers],
            "seen": memory.get("seen"),
        }
        if found:
            return self._matched(kept, at, boot, found, first=not kept["seen"])
        blind = self._blind_spot(rows, skip)
        evidence: Evidence = {
            "means": "/proc",
            "matches": 0,
            "processes": len(rows),
            "last_seen": kept["seen"],
        }
        if blind is not None:
            return unknown(kept, at, blind, evidence)
        if not kept["seen"]:
            return absent(at, phrase("nothing_matches"), kept, evidence)
        return released(at, evidence, kept)

    def _matched(
        self,
        kept: dict[str, Json],
        at: datetime,
        boot: str,
        found: Sequence[Row],
        *,
        first: bool,
    ) -> Observation:
        identities = [Identity(boot, row.pid, row.start) for row in found]
        for identity in identities:
            self._exits.hold(identity, self._table)
        seen: Json = [
            {**cast("dict[str, Json]", identity.as_json()), "command": row.command}
            for identity, row in zip(identities[:_SHOWN], found, strict=False)
        ]
        kept["seen"] = seen
        notes = tuple(
            phrase("matched", pid=row.pid, command=row.command)
            for row in found[:_SHOWN]
        )
        if len(found) > _SHOWN:
            notes += (phrase("matched_more", count=len(found) - _SHOWN),)
        return Observation(
            sight=Sight.HELD,
            at=at,
            evidence={"means": "/proc", "matches": len(found), "seen": seen},
            memory=kept,
            notes=notes if first else (),
        )

    def _launchers(
        self, memory: Memory, boot: str, rows: Mapping[int, Row]
    ) -> list[Identity]:
        """Return who carries the pattern for us: fixed at the first look."""
        known = memory.get("launchers")
        if isinstance(known, list):
            parsed = [Identity.from_json(item) for item in known]
            return [
                identity
                for identity in parsed
                if identity is not None
                and identity.boot == boot
                and identity.pid in rows
                and rows[identity.pid].start == identity.start
            ]
        return [
            Identity(boot, pid, rows[pid].start)
            for pid in sorted(lineage(self._launcher, rows))
        ]

    def _blind_spot(
        self, rows: Mapping[int, Row], skip: frozenset[int]
    ) -> Phrase | None:
        """Return why something that matches may have gone unseen, if so."""
        if self._table.hidden() or any(not row.readable for row in rows.values()):
            return phrase("proc_hidden")
        if skip:
            return phrase("pids_stuck", pids=", ".join(map(str, sorted(skip))))
        return None


def literal(text: str) -> Callable[[str], bool]:
    """Return a matcher of literal text.

    Raises:
        UsageError: the text is empty, which would match everything.
    """
    if not text.strip():
        raise UsageError(phrase("empty_pattern"))
    return lambda command: text in command


def expression(pattern: str) -> Callable[[str], bool]:
    """Return a matcher of a Python regular expression, searched in the command line.

    The module `re` says whether it is one; `regex` runs it, since it can be given a
    time limit and lets other threads run meanwhile.

    Raises:
        UsageError: it does not compile, or it is empty.
    """
    if not pattern:
        raise UsageError(phrase("empty_pattern"))
    import regex  # noqa: PLC0415 - only for --regex, 16 ms

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
            compiled = regex.compile(pattern)
    except (re.error, regex.error, RecursionError, OverflowError) as error:
        raise UsageError(phrase("bad_regex", error=str(error))) from error
    return lambda command: (
        compiled.search(command, timeout=_REGEX_LIMIT_S, concurrent=True) is not None
    )


def _running(
    at: datetime, identity: Identity, row: Row | None, notes: tuple[Phrase, ...]
) -> Observation:
    evidence: dict[str, Json] = {"means": "/proc", "identity": identity.as_json()}
    if row is not None:
        evidence |= {"state": row.state, "command": row.command}
    return Observation(
        sight=Sight.HELD,
        at=at,
        evidence=evidence,
        memory={"identity": identity.as_json()},
        notes=notes,
    )
