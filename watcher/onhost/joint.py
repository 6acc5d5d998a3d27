"""Processes and their log, judged together (C3.4).

1. The first marker in file order decides, also while the process still runs.
2. A process that has ended is judged once its whole log is read: without a marker it
   is DIED where one of success was asked for, else as its exit status says.
3. It is STALLED when the log is silent and no CPU is used.
4. What was never seen stays so, whatever an old log says (C2.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from watcher.onhost import part

_MARKS = ("PASS", "FAIL")


def with_log(
    seen: Mapping[str, Any],
    used: int | None,
    *,
    spec: Mapping[str, Any],
    memory: Mapping[str, Any],
    answers: Sequence[Mapping[str, Any]],
    now: Mapping[str, float],
) -> dict[str, Any]:
    """Return what processes and log amount to.

    Args:
        seen: what was seen of the processes.
        used: the CPU that they have used so far, where that is known.
        spec, memory, now: of the whole.
        answers: what was read of the log, after the processes.
    """
    over = seen["sight"] == "released"
    busy = not over and (used is None or used != memory.get("cpu"))
    more = {"final": 1, "busy": 0} if over else {"busy": 1 if busy else 0}
    before = memory.get("log") or {}
    written = part("log").judge(spec["log"], before, answers, {**now, **more})
    if seen["sight"] == "absent":
        kept = before if written["sight"] == "released" else written["memory"]
        return _joined(seen, written, used) | {
            "memory": {**seen["memory"], "log": kept}
        }
    result = written.get("result") if written["sight"] == "released" else None
    if result in _MARKS or (result is not None and not over):
        decided = {key: written[key] for key in ("result", "decided") if key in written}
        return _undecided(seen) | {
            "sight": "released",
            **_shared(seen, written, used),
            **decided,
        }
    if not over:
        return _joined(seen, written, used)
    if written.get("again_in_s") == 0:  # more of it is to be read first
        return _undecided(_joined(seen, written, used)) | {"sight": "held"}
    ran = _ran(memory) or bool(spec["log"].get("from_start"))
    return _ended(_joined(seen, written, used), written, spec["log"], ran=ran)


def _ran(memory: Mapping[str, Any]) -> bool:
    """Say whether the process was seen to run: else its log was not read either."""
    return bool(memory.get("identity") or memory.get("seen"))


def _ended(
    seen: dict[str, Any],
    written: Mapping[str, Any],
    spec: Mapping[str, Any],
    *,
    ran: bool,
) -> dict[str, Any]:
    """Return how a process ended that left no marker.

    Where the log cannot be read, a marker may be in it: then only a bad exit counts.
    """
    if written["sight"] == "unknown":
        seen = _undecided(seen) if seen.get("result") == "PASS" else seen
        return {**seen, "remarks": [*seen["remarks"], written["reason"]]}
    if spec.get("pass") is not None and ran:
        return seen | {"result": "DIED"}
    return seen


def _undecided(seen: Mapping[str, Any]) -> dict[str, Any]:
    return {key: seen[key] for key in seen if key not in {"result", "decided"}}


def _shared(
    seen: Mapping[str, Any], written: Mapping[str, Any], used: int | None
) -> dict[str, Any]:
    memory = {**seen["memory"], "log": written["memory"]}
    if used is not None:
        memory["cpu"] = used
    return {
        "evidence": {**seen["evidence"], "log": written["evidence"]},
        "memory": memory,
        "notes": [*seen.get("notes", ()), *written.get("notes", ())],
        "remarks": [*seen.get("remarks", ()), *written.get("remarks", ())],
    }


def _joined(
    seen: Mapping[str, Any], written: Mapping[str, Any], used: int | None
) -> dict[str, Any]:
    """Return what was seen of the processes, with the log beside it."""
    joined = {**seen, **_shared(seen, written, used)}
    if written["sight"] != "released" and written.get("reason"):
        joined["notes"].append(written["reason"])
    if written.get("again_in_s") is not None:
        joined["again_in_s"] = written["again_in_s"]
    return joined
