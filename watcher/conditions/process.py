"""Processes: by PID, by pidfile, or by what their command lines say (C3.3)."""

import argparse
import os
import re
import stat
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import cast

from policies.model import Evidence, Json, Memory, Observation, Sight, Target
from policies.proctable import Row, lineage, matching, own_side
from policies.sight import absent, released, unknown
from policies.target import (
    MAX_PID,
    absolute,
    is_possible_path,
    match_target,
    pid_target,
    pidfile_target,
    regex_target,
)
from policies.wording import Phrase, phrase
from watcher.conditions import Condition, DirectoryHint, Hint, Place, ReadableHint
from watcher.errors import UsageError
from watcher.identity import ExitDescriptors, Identity
from watcher.procfs import UNKNOWN_START, ProcessTable, process_table

_MOST_STUCK = 8  # threads that processes which cannot be read may cost us
_REGEX_LIMIT_S = 0.5  # for one command line
_PIDFILE_LIMIT = 64  # bytes
_PIDFILE_SLACK_S = 2.0  # file times and boot time are rounded differently
_SHOWN = 10  # matches that are listed on arming


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what processes are named by."""
    named = parser.add_mutually_exclusive_group(required=True)
    named.add_argument("--pid", metavar="N", help="one process")
    named.add_argument(
        "--pidfile", metavar="FILE", help="the process whose PID a file holds"
    )
    named.add_argument(
        "--match", metavar="TEXT", help="all whose command line holds this very text"
    )
    named.add_argument(
        "--regex", metavar="RE", help="all whose command line a Python expression finds"
    )


def target_of(options: argparse.Namespace, place: Place) -> Target:
    """Return the target of processes; an expression is compiled to check it."""
    if options.pid is not None:
        return pid_target(_pid(options.pid))
    if options.pidfile is not None:
        return pidfile_target(_pidfile(options.pidfile, place))
    if options.match is not None:
        _check_text(options.match)
        return match_target(options.match)
    _check_expression(options.regex)
    return regex_target(options.regex)


def build(options: argparse.Namespace, place: Place) -> "Condition":
    """Return the condition of processes."""
    target, table = target_of(options, place), process_table()
    if options.pid is not None:
        pid = _pid(options.pid)
        return OneProcess(target, pid=pid, table=table, launcher=place.launcher)
    if options.pidfile is not None:
        path = _pidfile(options.pidfile, place)
        return OneProcess(target, pidfile=path, table=table, launcher=place.launcher)
    matches = (
        literal(options.match)
        if options.match is not None
        else expression(options.regex)
    )
    return MatchingProcesses(target, matches, table=table, launcher=place.launcher)


def _pid(text: str) -> int:
    digits = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_PID))
    if not digits or not 0 < int(text) <= MAX_PID:
        raise UsageError(phrase("bad_pid", pid=text))
    return int(text)


def _pidfile(text: str, place: Place) -> str:
    if not is_possible_path(text):
        raise UsageError(phrase("bad_path", name="--pidfile", path=text))
    return absolute(text, place.cwd)


class OneProcess:
    """The process of a PID, or the one that a pidfile names."""

    settle = False

    def __init__(
        self,
        target: Target,
        *,
        pid: int | None = None,
        pidfile: str | None = None,
        table: ProcessTable,
        launcher: int,
    ) -> None:
        """Look for `pid`, or for the PID that `pidfile` holds by then."""
        self.target = target
        self._pid = pid
        self._pidfile = pidfile
        self._table = table
        self._launcher = launcher
        self._exits = ExitDescriptors()
        self._written_at = 0.0

    @property
    def group(self) -> str:
        """PIDs never hang; a pidfile hangs with its directory."""
        return self._pidfile.rpartition("/")[0] if self._pidfile else "pid"

    def joined(self, launcher: int) -> None:
        """Whoever waits makes no difference."""

    def refusal(self) -> Phrase | None:
        """Refuse the monitor's own PID, and a pidfile that cannot mean its PID here."""
        if self._pid is not None:
            own = self._pid in {os.getpid(), self._launcher}
            return phrase("own_pid", pid=self._pid) if own else None
        try:
            named = self._named_pid()
            return None if isinstance(named, Phrase) else self._foreign(named)
        except OSError:
            return None  # the first look will say what is wrong

    def unchanged(self, memory: Memory) -> bool:
        """Say whether the descriptor on the process says that it still runs."""
        bound = Identity.from_json(memory.get("identity"))
        return bound is not None and self._exits.ended(bound) is False

    def hung(self, memory: Memory, at: datetime) -> Observation:
        """Say that /proc or the pidfile does not answer."""
        reason = phrase("hung", what=self.target.text)
        return unknown(memory, at, reason, {"means": "/proc", "hung": True})

    def hints(self) -> Sequence[Hint]:
        """Follow the exit of the process; of a pidfile, until then its directory."""
        if self._pidfile and not self._exits.fds():
            directory, _, name = self._pidfile.rpartition("/")
            return [DirectoryHint(directory or "/", name)]
        return _exit_hints(self._exits)

    def close(self) -> None:
        """Give the descriptor back."""
        self._exits.close()

    def look(self, memory: Memory, at: datetime) -> Observation:
        """Find the process, or see whether the one found before has ended."""
        try:
            bound = Identity.from_json(memory.get("identity"))
            if bound is not None:
                return self._follow(bound, at)
            return self._bind(at, awaits_start=bool(memory.get("awaits_start")))
        except OSError as error:
            reason = phrase("probe_failed", error=str(error))
            return unknown(memory, at, reason, {"means": "/proc", "error": str(error)})

    def _bind(self, at: datetime, *, awaits_start: bool) -> Observation:
        """Find the process for the first time and note who it is.

        A dead PID in the file of work that has yet to begin is an old file.
        """
        pid = self._pid
        if pid is None:
            named = self._pid_now(at, awaits_start=awaits_start)
            if isinstance(named, Observation):
                return named
            pid = named
        row = self._table.row(pid)
        if row is None or row.finished:
            state = "no such process" if row is None else f"state {row.state}"
            evidence: Evidence = {"means": "/proc", "pid": pid, "seen": state}
            if awaits_start:
                return _waits(absent(at, phrase("nothing_matches"), {}, evidence))
            return released(at, evidence, {})
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

    def _pid_now(self, at: datetime, *, awaits_start: bool) -> int | Observation:
        """Return the pidfile's PID, or what it means that there is none to follow."""
        named = self._named_pid()
        evidence: dict[str, Json] = {"means": "pidfile", "path": self._pidfile}
        if isinstance(named, Phrase):
            if named.key != "pidfile_missing":
                return unknown({}, at, named, evidence)
            seen = absent(at, named, {}, {**evidence, "errno": "ENOENT"})
            return _waits(seen) if awaits_start else seen
        foreign = self._foreign(named)
        if foreign is None:
            return named
        evidence["pid"] = named
        if awaits_start:  # stale: what is awaited will write it anew
            return _waits(absent(at, foreign, {}, evidence))
        return unknown({}, at, foreign, evidence)

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
        if pid in {os.getpid(), self._launcher}:
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
        launcher: int,
    ) -> None:
        """Match command lines by `matches`.

        Args:
            target: names the pattern.
            matches: says of one command line whether it is meant.
            table: where processes are looked up; of this condition alone.
            launcher: PID of the command that waits; it and its ancestors carry the
                pattern on their own command lines and never match.
        """
        self.target = target
        self._matches = matches
        self._table = table
        self._joining = {launcher}
        self._known: set[Identity] = set()
        self._stuck: set[int] = set()
        self._exits = ExitDescriptors()

    @property
    def group(self) -> str:
        """A scan may hang on a process; then the next one gets another thread."""
        return f"{self.target.text} {len(self._stuck)}"

    def joined(self, launcher: int) -> None:
        """Leave out the new command and its ancestors too, from the next look on."""
        self._joining.add(launcher)

    def refusal(self) -> Phrase | None:
        """Every pattern that compiles can be watched."""
        return None

    def unchanged(self, memory: Memory) -> bool:  # noqa: ARG002
        """Say no: only a whole scan tells what runs."""
        return False

    def hung(self, memory: Memory, at: datetime) -> Observation:
        """Leave the process out from now on whose files the scan hangs on; name it.

        The scan that hangs keeps its descriptors: it may still be at work on them.
        """
        pid = self._table.reading
        if not pid or len(self._stuck) >= _MOST_STUCK:
            reason = phrase("hung", what=self.target.text)
            return unknown(memory, at, reason, {"means": "/proc", "hung": True})
        if pid not in self._stuck:
            self._stuck.add(pid)
            self._exits = ExitDescriptors()
        reason = phrase("pids_stuck", pids=pid)
        return unknown(memory, at, reason, {"means": "/proc", "stuck_pid": pid})

    def hints(self) -> Sequence[Hint]:
        """Follow the exits of what matched."""
        return _exit_hints(self._exits)

    def close(self) -> None:
        """Give the descriptors back."""
        self._exits.close()

    def look(self, memory: Memory, at: datetime) -> Observation:
        """Take the whole table and see what matches in it."""
        try:
            return self._scan(memory, at)
        except TimeoutError:  # an OSError too: it must come first
            reason = phrase("slow_regex", regex=self.target.label)
            return unknown(memory, at, reason, {"means": "regex"})
        except OSError as error:
            reason = phrase("probe_failed", error=str(error))
            return unknown(memory, at, reason, {"means": "/proc", "error": str(error)})

    def _scan(self, memory: Memory, at: datetime) -> Observation:
        """Say what matches.

        Nothing matching is an end only where something matched before and everything
        could be looked at.
        """
        exits = self._exits  # if this scan hangs, later ones get others
        boot = self._table.boot_id()
        skip = frozenset(self._stuck)
        rows = self._table.rows(skip)
        launchers = self._launchers(memory, boot, rows)
        own = own_side(rows, {identity.pid for identity in launchers})
        found = matching(rows, own, self._matches)
        identities = [Identity(boot, row.pid, row.start) for row in found]
        exits.keep_only(identities)
        for identity in identities:
            exits.hold(identity, self._table)
        if exits is not self._exits:  # it came back late, and nobody else knows them
            exits.close()
        kept: dict[str, Json] = {
            "launchers": [identity.as_json() for identity in launchers],
            "seen": memory.get("seen"),
        }
        if found:
            return _matched(kept, at, identities, found)
        blind = self._blind_spot(rows, {*skip, *_between_commands(kept["seen"], rows)})
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

    def _launchers(
        self, memory: Memory, boot: str, rows: Mapping[int, Row]
    ) -> list[Identity]:
        """Return who carries the pattern for us: each noted when its command came.

        What a scan noted that came back too late is no memory, but known all the same.
        """
        kept = memory.get("launchers")
        items = kept if isinstance(kept, list) else []
        noted = {
            identity
            for identity in map(Identity.from_json, items)
            if identity is not None
        }
        joining = tuple(self._joining)
        for launcher in joining:
            self._known |= {
                Identity(boot, pid, rows[pid].start) for pid in lineage(launcher, rows)
            }
        self._joining.difference_update(joining)
        living = {
            identity
            for identity in noted | self._known
            if identity.boot == boot
            and identity.pid in rows
            and rows[identity.pid].start == identity.start
        }
        return sorted(living, key=lambda identity: identity.pid)

    def _blind_spot(
        self, rows: Mapping[int, Row], unread: Collection[int]
    ) -> Phrase | None:
        """Return why something that matches may have gone unseen, if so."""
        if self._table.hidden() or any(not row.readable for row in rows.values()):
            return phrase("proc_hidden")
        if unread:
            return phrase("pids_stuck", pids=", ".join(map(str, sorted(unread))))
        return None


def literal(text: str) -> Callable[[str], bool]:
    """Return a matcher of literal text.

    Raises:
        UsageError: the text is empty, which would match everything.
    """
    _check_text(text)
    return lambda command: text in command


def expression(pattern: str) -> Callable[[str], bool]:
    """Return a matcher of a Python regular expression, searched in the command line.

    The module `re` says whether it is one; `regex` runs it, since it can be given a
    time limit and lets other threads run meanwhile.

    Raises:
        UsageError: it does not compile, or it is empty.
    """
    _check_expression(pattern)
    import regex  # noqa: PLC0415 - only for --regex, 16 ms

    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        raise UsageError(phrase("bad_regex", error=str(error))) from error
    return lambda command: (
        compiled.search(command, timeout=_REGEX_LIMIT_S, concurrent=True) is not None
    )


def _check_text(text: str) -> None:
    if not text.strip():
        raise UsageError(phrase("empty_pattern"))


def _check_expression(pattern: str) -> None:
    if not pattern:
        raise UsageError(phrase("empty_pattern"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(phrase("bad_regex", error=str(error))) from error


def _between_commands(seen: Json, rows: Mapping[int, Row]) -> list[int]:
    """Return the PIDs that matched before and just now show a name in brackets.

    During an exec(2) the kernel has no command line to show.
    """
    before = map(Identity.from_json, seen) if isinstance(seen, list) else ()
    return [
        who.pid
        for who in before
        if who is not None
        and (row := rows.get(who.pid)) is not None
        and row.start == who.start
        and not row.finished
        and row.command.startswith("[")
    ]


def _exit_hints(exits: ExitDescriptors) -> Sequence[Hint]:
    return [ReadableHint(fd, identity) for identity, fd in exits.fds().items()]


def _matched(
    kept: dict[str, Json],
    at: datetime,
    identities: Sequence[Identity],
    found: Sequence[Row],
) -> Observation:
    """Say what matches; what matched first is also told to a person."""
    notes: tuple[Phrase, ...] = ()
    if not kept["seen"]:
        notes = tuple(
            phrase("matched", pid=row.pid, command=row.command)
            for row in found[:_SHOWN]
        )
        if len(found) > _SHOWN:
            notes += (phrase("matched_more", count=len(found) - _SHOWN),)
    seen: Json = [
        {**cast("dict[str, Json]", identity.as_json()), "command": row.command}
        for identity, row in zip(identities[:_SHOWN], found, strict=False)
    ]
    return Observation(
        sight=Sight.HELD,
        at=at,
        evidence={"means": "/proc", "matches": len(found), "seen": seen},
        memory={**kept, "seen": seen},
        notes=notes,
    )


def _waits(observation: Observation) -> Observation:
    return replace(observation, memory={"awaits_start": True})


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
