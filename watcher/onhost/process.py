"""The part that looks for processes, alone or together with their log (C3.3, C3.4).

    spec = {"pid": N} or {"pidfile": absolute} or {"match": text} or {"regex": text}
           and, each where it is wanted:
           "log": the spec of `watcher.onhost.log`
           "launchers": {"line": [[pid, start]], "boot_id", "pid_namespace"}  who waits
           for it, with their ancestors, and where that is: there they never match

    memory = {"identity": {...}}  of one process, once it was seen
             {"seen": [...], "launchers": [...]}  of a pattern: what matched last
             and "log", "cpu" of a log that is judged with them

A request names a PID, a pidfile or the whole table, which all patterns of a host share.
Besides what every part says, `judge` tells of a pattern who matched: `found`, as
[pid, start].
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from policies.proctable import (
    UNKNOWN_START,
    Row,
    below,
    lineage,
    used_by,
)
from watcher.onhost import exits, joint, part, pattern, single, unknown
from watcher.onhost.saying import blind, is_identity, listed
from watcher.onhost.table import PsTable, all_rows, host_table

MAX_PID = 4194304
"""The largest PID of any Linux: `PID_MAX_LIMIT` of its threads.h."""

SENT = "__file__" not in globals()
"""This came to a host as text: then all that descends from us is our own side."""

_PIDFILE_LIMIT = 64  # bytes


def ask(spec: Mapping[str, Any], memory: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what to read: processes first, so that a log holds their last words."""
    requests = _questions(spec, memory)
    if spec.get("log"):
        requests += part("log").ask(spec["log"], memory.get("log") or {})
    return requests


def _questions(
    spec: Mapping[str, Any], memory: Mapping[str, Any]
) -> list[dict[str, Any]]:
    more = {"cpu": 1} if (spec.get("log") or {}).get("stalled_s") else {}
    if "pid" not in spec and "pidfile" not in spec:
        alone = pattern.only_one(memory)
        whose = [] if alone is None else [{"op": "process", **_named(alone)}]
        return [{"op": "process", "table": 1, **more}, *whose]
    bound = memory.get("identity")
    if bound is not None and is_identity(bound):
        return [{"op": "process", **_named(bound), **more}]
    name = "pid" if "pid" in spec else "pidfile"
    return [{"op": "process", name: spec[name], **more}]


def _named(who: Mapping[str, Any]) -> dict[str, Any]:
    return {"pid": who["pid"], "start": who["start_ticks"]}


def read(request: dict[str, Any]) -> dict[str, Any]:
    """Look at the processes of this machine.

    Raises:
        OSError: they cannot be seen.
    """
    table = host_table()
    if "table" not in request:
        answer = look_up(request, table)
        answer["own"] = [os.getpid()]
    else:
        rows, stuck = all_rows(table)
        own = lineage(os.getpid(), rows)
        own |= below(os.getpid(), rows) if SENT else set()
        answer = table_of(rows, table) | {"own": sorted(own), "stuck": stuck}
    if request.get("cpu"):
        answer["cpu"] = table.cpu()
    if isinstance(table, PsTable):
        answer["means"] = "ps"
    else:
        answer["pid_namespace"] = os.readlink("/proc/self/ns/pid")
    return answer


def table_of(rows: Mapping[int, Row], table: Any) -> dict[str, Any]:
    """Return the answer that holds a whole table; kernel threads never end."""
    return {
        "boot_id": table.boot_id(),
        "rows": [row for row in rows.values() if not row.kernel_thread],
        "hidden": table.hidden(),
    }


def look_up(request: Mapping[str, Any], table: Any) -> dict[str, Any]:
    """Return what a table says of one process, by its PID or a pidfile's.

    Raises:
        OSError: it cannot be seen.
    """
    answer: dict[str, Any] = {"boot_id": table.boot_id()}
    pid = request.get("pid")
    if "pidfile" in request:
        answer["pidfile"] = read_pidfile(request["pidfile"])
        pid = answer["pidfile"].get("pid")
    if pid is None:
        return answer
    row = table.row(pid)
    answer["row"] = row
    start = request.get("start", row.start if row else UNKNOWN_START)
    if row is None or row.finished or row.start != start:
        answer["status"] = exits.known_status(pid, start)
    elif "pidfile" in request:
        answer["started_at"] = table.started_at(row)
    return answer


def read_pidfile(path: str) -> dict[str, Any]:
    """Return the PID that a file holds and when it was written, or the problem.

    Raises:
        OSError: any other than that it is missing or may not be read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return {"problem": "pidfile_missing"}
    except PermissionError:
        return {"problem": "denied"}
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return {"problem": "no_pid_in"}
        content = os.read(fd, _PIDFILE_LIMIT)
        return {**pid_in(content), "written_at": os.fstat(fd).st_mtime}
    finally:
        os.close(fd)


def pid_in(content: bytes) -> dict[str, Any]:
    """Return the PID that the content of a pidfile begins with, or the problem."""
    word = (content.split() or [b""])[0]
    if not word.isdigit() or not 0 < int(word) <= MAX_PID:
        return {"problem": "no_pid_in"}
    return {"pid": int(word)}


def follows(spec: Mapping[str, Any], memory: Mapping[str, Any]) -> list[list[int]]:  # noqa: ARG001
    """Return the processes whose end means: look now."""
    known = [memory.get("identity"), *listed(memory.get("seen"))]
    return [
        [who["pid"], who["start_ticks"]]
        for who in known
        if is_identity(who) and who["start_ticks"] != UNKNOWN_START
    ]


def judge(
    spec: Mapping[str, Any],
    memory: Mapping[str, Any],
    answers: Sequence[Mapping[str, Any]],
    now: Mapping[str, float],
) -> dict[str, Any]:
    """Return what was seen, an expression run by `re`."""
    return judged(spec, memory, answers, now, matcher(spec))


def matcher(spec: Mapping[str, Any]) -> Callable[[str], bool]:
    """Return what says of a command line whether it is meant."""
    if "regex" in spec:
        compiled = re.compile(spec["regex"])
        return lambda command: compiled.search(command) is not None
    text: str = spec.get("match", "")
    return lambda command: text in command


def judged(
    spec: Mapping[str, Any],
    memory: Mapping[str, Any],
    answers: Sequence[Mapping[str, Any]],
    now: Mapping[str, float],
    matches: Callable[[str], bool],
) -> dict[str, Any]:
    """Return what was seen.

    Args:
        spec, memory, answers, now: as for every part.
        matches: says of a command line whether it is meant; may raise TimeoutError.
    """
    asked = len(_questions(spec, memory))
    mine = {key: memory[key] for key in memory if key not in {"log", "cpu"}}
    seen = _processes(spec, mine, answers[:asked], matches)
    if not spec.get("log"):
        return seen
    used = _used(seen, answers[0].get("cpu"))
    return joint.with_log(
        seen, used, spec=spec, memory=memory, answers=answers[asked:], now=now
    )


def _used(seen: Mapping[str, Any], cpu: Any) -> int | None:
    """Return what the processes that were seen have used, where that was read."""
    if cpu is None or seen["sight"] != "held":
        return None
    remembered = seen["memory"]
    one = remembered.get("identity")
    pids = [who[0] for who in seen.get("found", ())] if one is None else [one["pid"]]
    return used_by(pids, cpu)


def _processes(
    spec: Mapping[str, Any],
    memory: dict[str, Any],
    answers: Sequence[Mapping[str, Any]],
    matches: Callable[[str], bool],
) -> dict[str, Any]:
    answer = answers[0]
    if "error" in answer:
        return unknown(memory, answer.get("means", "/proc"), answer["error"])
    if "pid" not in spec and "pidfile" not in spec:
        try:
            return pattern.search(spec, memory, answers, matches)
        except TimeoutError:
            reason = ["slow_regex", {"regex": spec["regex"]}]
            return blind(memory, reason, {"means": "regex"})
    bound = memory.get("identity")
    if bound is not None and is_identity(bound):
        return single.follow(memory, bound, answer)
    return single.bind(spec, memory, answer)
