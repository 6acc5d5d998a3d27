"""Processes of this machine: what `watcher.onhost.process` judges, and events on top.

Descriptors tell an end at once, processes whose files block are left out and named, and
whoever waits never matches the pattern that it waits for (C3.3).
"""

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from policies.clock import Clock
from policies.model import Json, Memory, Observation, Target
from policies.proctable import lineage
from policies.sight import unknown
from policies.wording import Phrase, phrase
from watcher import onhost
from watcher.conditions import DirectoryHint, Hint, ReadableHint
from watcher.identity import ExitDescriptors, Identity
from watcher.logs import LogReader
from watcher.looked import Spec, observation_of
from watcher.onhost import process as part
from watcher.onhost import single
from watcher.onhost.logfile import Reader
from watcher.procfs import ProcessTable
from watcher.transport import Answer, Request

_MOST_STUCK = 8  # threads that processes which cannot be read may cost us


class OneProcess:
    """The process of a PID, or the one that a pidfile names."""

    settle = False

    def __init__(
        self,
        target: Target,
        spec: Spec,
        *,
        table: ProcessTable,
        launcher: int,
        clock: Clock,
    ) -> None:
        """Look for the PID of `spec`, or for the one that its pidfile holds by then."""
        self.target = target
        self._spec = spec
        self._pidfile = str(spec.get("pidfile", ""))
        self._table = table
        self._launcher = launcher
        self._clock = clock
        self._exits = ExitDescriptors()
        self._log = _log_of(spec)

    @property
    def group(self) -> str:
        """PIDs never hang; a pidfile hangs with its directory, a log by itself."""
        if self._log is not None:
            return self.target.text
        return self._pidfile.rpartition("/")[0] if self._pidfile else "pid"

    def looker(self) -> None:
        """Let a thread take the looks."""

    def joined(self, launcher: int) -> None:
        """Whoever waits makes no difference."""

    def refusal(self) -> Phrase | None:
        """Refuse the monitor's own PID, and a pidfile that cannot mean its PID here."""
        if not self._pidfile:
            pid = cast("int", self._spec["pid"])
            own = pid in {os.getpid(), self._launcher}
            return phrase("own_pid", pid=pid) if own else None
        try:
            answer = self._processes({"pidfile": self._pidfile})
        except OSError:
            return None  # the first look will say what is wrong
        found = single.foreign(self._pidfile, answer)
        return None if found is None else Phrase(found[0], found[1])

    def unchanged(self, memory: Memory) -> bool:
        """Say whether the descriptor on the process says that it still runs."""
        bound = Identity.from_json(memory.get("identity"))
        same = bound is not None and self._exits.ended(bound) is False
        return same and self._log is None

    def hung(self, memory: Memory, at: datetime) -> Observation:
        """Say that /proc, the pidfile or the log does not answer."""
        reason = phrase("hung", what=self.target.text)
        return unknown(memory, at, reason, {"means": "/proc", "hung": True})

    def hints(self) -> Sequence[Hint]:
        """Follow the exit of the process; of a pidfile, until then its directory."""
        hints = [*_hints(self._log), *_exit_hints(self._exits)]
        if self._pidfile and not self._exits.fds():
            directory, _, name = self._pidfile.rpartition("/")
            hints.append(DirectoryHint(directory or "/", name))
        return hints

    def close(self) -> None:
        """Give the descriptors back."""
        self._exits.close()
        if self._log is not None:
            self._log.close()

    def look(self, memory: Memory, at: datetime) -> Observation:
        """Find the process, or see whether the one found before has ended."""
        log = None if self._log is None else self._log.read
        answers = [
            onhost.answer(dict(one), self._processes if one["op"] == "process" else log)
            for one in part.ask(self._spec, memory)
        ]
        now = {"up_s": self._clock.awake(), "at": at.timestamp()}
        observation = observation_of(part.judge(self._spec, memory, answers, now), at)
        bound = Identity.from_json(observation.memory.get("identity"))
        if bound is not None and observation.sight == "held":
            self._exits.hold(bound, self._table)
        return observation

    def _processes(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return what table and descriptor say.

        Raises:
            OSError: the process cannot be seen.
        """
        if "start" in request:
            answer = self._follow(request["pid"], request["start"])
        else:
            answer = part.look_up(request, self._table)
            if self._pidfile:
                answer["own"] = [os.getpid(), self._launcher]
        if request.get("cpu"):
            answer["cpu"] = _cpu()
        return answer

    def _follow(self, pid: int, start: int) -> dict[str, Any]:
        boot = self._table.boot_id()
        identity = Identity(boot, pid, start)
        ended = self._exits.ended(identity)
        if ended:
            status = self._exits.status(identity)
            return {"boot_id": boot, "held": False, "status": status}
        request = {"pid": pid, "start": start}
        answer = part.look_up(request, self._table)
        return answer if ended is None else {**answer, "held": True}


class MatchingProcesses:
    """All processes whose command line matches; ended when none does any more."""

    settle = False

    def __init__(
        self,
        target: Target,
        spec: Spec,
        matches: Callable[[str], bool],
        *,
        table: ProcessTable,
        launcher: int,
        clock: Clock,
    ) -> None:
        """Match command lines by `matches`.

        Args:
            target: names the pattern.
            spec: names it for the part.
            matches: says of one command line whether it is meant.
            table: where processes are looked up; of this condition alone.
            launcher: PID of the command that waits; it and its ancestors carry the
                pattern on their own command lines and never match.
            clock: tells for how long a log is silent.
        """
        self.target = target
        self._spec = spec
        self._matches = matches
        self._table = table
        self._clock = clock
        self._joining = {launcher}
        self._known: set[Identity] = set()
        self._stuck: set[int] = set()
        self._exits = ExitDescriptors()
        self._log = _log_of(spec)

    @property
    def group(self) -> str:
        """A scan may hang on a process; then the next one gets another thread."""
        return f"{self.target.text} {len(self._stuck)}"

    def looker(self) -> None:
        """Let a thread take the looks."""

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
        return [*_hints(self._log), *_exit_hints(self._exits)]

    def close(self) -> None:
        """Give the descriptors back."""
        self._exits.close()
        if self._log is not None:
            self._log.close()

    def look(self, memory: Memory, at: datetime) -> Observation:
        """Take the whole table and see what matches in it."""
        exits = self._exits  # if this scan hangs, later ones get others
        log = None if self._log is None else self._log.read
        answers: list[Answer] = []
        for request in part.ask(self._spec, memory):
            if request["op"] != "process":
                answers.append(onhost.answer(request, log))
            elif "table" in request:
                answers.append(onhost.answer(request, self._scan))
            else:
                answers.append(_status(exits, answers[0], request))
        boot = answers[0].get("boot_id")
        line = [[who.pid, who.start] for who in self._known if who.boot == boot]
        spec = {**self._spec, "launchers": {"line": line}}
        now = {"up_s": self._clock.awake(), "at": at.timestamp()}
        seen = part.judged(spec, memory, answers, now, self._matches)
        if boot is not None:
            _hold(exits, self._table, str(boot), seen.get("found", ()))
        if exits is not self._exits:  # it came back late, and nobody else knows them
            exits.close()
        return observation_of(seen, at)

    def _scan(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the table, and note who carries the pattern for us.

        What a scan noted that came back too late is no memory, but known all the same.
        """
        skip = frozenset(self._stuck)
        rows = self._table.rows(skip)
        answer = {**part.table_of(rows, self._table), "stuck": sorted(skip)}
        boot = str(answer["boot_id"])
        joining = tuple(self._joining)
        for launcher in joining:
            line = lineage(launcher, rows)
            self._known |= {Identity(boot, pid, rows[pid].start) for pid in line}
        self._joining.difference_update(joining)
        return answer if not request.get("cpu") else {**answer, "cpu": _cpu()}


def _status(exits: ExitDescriptors, table: Answer, request: Request) -> Answer:
    """Return how the one process ended that a pattern has followed, if it has."""
    pid, start = cast("int", request["pid"]), cast("int", request["start"])
    who = Identity(str(table.get("boot_id")), pid, start)
    return {"status": exits.status(who) if exits.ended(who) else None}


def _hold(
    exits: ExitDescriptors,
    table: ProcessTable,
    boot: str,
    found: Sequence[tuple[int, int]],
) -> None:
    identities = [Identity(boot, pid, start) for pid, start in found]
    exits.keep_only(identities)
    for identity in identities:
        exits.hold(identity, table)


def _log_of(spec: Spec) -> LogReader | None:
    """Return what reads the log that is judged together with processes, if one is."""
    log = cast("Mapping[str, Json] | None", spec.get("log"))
    return None if log is None else LogReader(str(log["path"]), Reader())


def _hints(log: LogReader | None) -> Sequence[Hint]:
    return () if log is None else log.hints()


def _exit_hints(exits: ExitDescriptors) -> Sequence[Hint]:
    return [ReadableHint(fd, identity) for identity, fd in exits.fds().items()]


def _cpu() -> list[list[int]]:
    """Return PID, parent and 1/100 s of CPU of every process of this machine."""
    from watcher.cpu import cpu_table  # noqa: PLC0415 - only with --stalled

    return [
        [one.row.pid, one.row.ppid, round(one.cpu_s * 100)]
        for one in cpu_table().busy().values()
        if one.cpu_s is not None
    ]
