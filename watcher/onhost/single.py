"""One process, by PID or pidfile: who it is, and whether it has ended (C3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policies.proctable import UNKNOWN_START, Row
from watcher.onhost.saying import absent, blind, ended, row_in

_PIDFILE_SLACK_S = 2.0  # file times and boot time are rounded differently


def bind(
    spec: Mapping[str, Any], memory: dict[str, Any], answer: Mapping[str, Any]
) -> dict[str, Any]:
    """Find the process for the first time and note who it is.

    A dead PID in the file of work that has yet to begin is an old file.
    """
    awaits_start = bool(memory.get("awaits_start"))
    if "pidfile" in spec:
        wrong = _wrong_pidfile(spec["pidfile"], memory, answer)
        if wrong is not None:
            return wrong
        pid = answer["pidfile"]["pid"]
    else:
        pid = spec["pid"]
        if pid in answer.get("own", ()):
            return blind(
                memory, ["own_pid", {"pid": pid}], {"means": "own", "pid": pid}
            )
    row = row_in(answer)
    means = answer.get("means", "/proc")
    if row is None or row.finished:
        state = "no such process" if row is None else f"state {row.state}"
        evidence = {"means": means, "pid": pid, "seen": state}
        if awaits_start:
            return absent({"awaits_start": True}, ["nothing_matches", {}], evidence)
        return ended({}, evidence, answer.get("status"))
    key = "kernel_thread" if row.kernel_thread else "matched"
    identity = {"boot_id": answer["boot_id"], "pid": pid, "start_ticks": row.start}
    seen = _running(identity, row, means)
    seen["notes"] = [[key, {"pid": pid, "command": row.command}]]
    return seen


def follow(
    memory: dict[str, Any], bound: Mapping[str, Any], answer: Mapping[str, Any]
) -> dict[str, Any]:
    """Say whether the process bound before has ended; each answer names its means.

    A reused PID and one of an earlier boot are both an end (C3.3). `held` in an answer
    is what a descriptor on the process says, which is sure.
    """
    names = [name for name in ("identity", "command") if name in memory]
    kept: dict[str, Any] = {name: memory[name] for name in names}
    seen = {"identity": dict(bound)}
    boot, held, means = (
        answer["boot_id"],
        answer.get("held"),
        answer.get("means", "/proc"),
    )
    if boot != bound["boot_id"]:
        return ended(kept, {**seen, "means": "boot id", "boot_now": boot}, None)
    status = answer.get("status")
    if held is False:
        return ended(kept, {**seen, "means": "pidfd"}, status)
    row = row_in(answer)
    if held is None:
        if row is None:
            gone = {**seen, "means": "kill", "errno": "ESRCH"}
            return ended(kept, gone, status)
        if UNKNOWN_START not in (row.start, bound["start_ticks"]):
            if row.start != bound["start_ticks"] and not _redated(memory, row, means):
                other = {**seen, "means": "start ticks", "start_now": row.start}
                return ended(kept, other, status)
            if row.finished:
                zombie = {**seen, "means": "state", "state": row.state}
                return ended(kept, zombie, status)
    return _running(bound, row, means) | {"memory": kept}


def _redated(memory: Mapping[str, Any], row: Row, means: str) -> bool:
    """Say whether it is the same process whose start a set clock has moved.

    Some systems without /proc count start times back from now; another process that
    got the PID would hardly have the very same command line.
    """
    return means == "ps" and memory.get("command") == row.command


def _running(
    identity: Mapping[str, Any], row: Row | None, means: str
) -> dict[str, Any]:
    evidence: dict[str, Any] = {"means": means, "identity": dict(identity)}
    memory: dict[str, Any] = {"identity": dict(identity)}
    if row is not None:
        evidence.update(state=row.state, command=row.command)
        if means == "ps":
            memory["command"] = row.command
    return {"sight": "held", "evidence": evidence, "memory": memory}


def _wrong_pidfile(
    path: str, memory: dict[str, Any], answer: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return what it means that a pidfile names no process to follow, if so."""
    found = answer["pidfile"]
    evidence: dict[str, Any] = {"means": "pidfile", "path": path}
    awaits_start = {"awaits_start": True} if memory.get("awaits_start") else {}
    problem = found.get("problem")
    if problem == "pidfile_missing":
        missing = [problem, {"path": path}]
        return absent(awaits_start, missing, {**evidence, "errno": "ENOENT"})
    if problem is not None:
        return blind(memory, [problem, {"path": path}], evidence)
    reason = foreign(path, answer)
    if reason is None:
        return None
    evidence["pid"] = found["pid"]
    if awaits_start:  # stale: what is awaited will write it anew
        return absent(awaits_start, reason, evidence)
    return blind(memory, reason, evidence)


def foreign(path: str, answer: Mapping[str, Any]) -> list[Any] | None:
    """Return why a pidfile's PID cannot be what its writer meant, if so.

    A kernel thread, or a process younger than the file, did not write it: the file is
    old, or was written in a container that counts its own PIDs.
    """
    found = answer["pidfile"]
    pid = found.get("pid")
    if pid is None:
        return None
    row = row_in(answer)
    if pid in answer.get("own", ()):
        return ["own_pidfile", {"pid": pid, "path": path}]
    if row is None or row.start == UNKNOWN_START:
        return None
    started_at = answer.get("started_at")
    written_at = found.get("written_at")
    dated = started_at is not None and written_at is not None
    if row.kernel_thread or (dated and started_at > written_at + _PIDFILE_SLACK_S):
        values = {"pid": pid, "path": path, "command": row.command}
        return ["foreign_pidfile", values]
    return None
