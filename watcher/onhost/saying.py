"""How what was seen of processes is said, and what answers and memories hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policies.proctable import Row, row_of
from watcher.onhost import exits


def row_in(answer: Mapping[str, Any]) -> Row | None:
    """Return the row that an answer holds; None where there is no such process."""
    values = answer["row"]
    return None if values is None else row_of(values)


def is_identity(who: Any) -> bool:
    """Say whether this names a process for good."""
    return (
        isinstance(who, Mapping)
        and isinstance(who.get("boot_id"), str)
        and isinstance(who.get("pid"), int)
        and isinstance(who.get("start_ticks"), int)
    )


def listed(value: Any) -> list[Any]:
    """Return what a memory holds as a list; nothing where it is none."""
    return list(value) if isinstance(value, (list, tuple)) else []


def blind(
    memory: dict[str, Any], reason: list[Any], evidence: dict[str, Any]
) -> dict[str, Any]:
    """Return that it could not be seen, and why."""
    return {
        "sight": "unknown",
        "evidence": evidence,
        "memory": memory,
        "reason": reason,
    }


def absent(
    memory: dict[str, Any], reason: list[Any], evidence: dict[str, Any]
) -> dict[str, Any]:
    """Return that it has never been there."""
    return blind(memory, reason, evidence) | {"sight": "absent"}


def ended(
    memory: dict[str, Any], evidence: dict[str, Any], status: int | None
) -> dict[str, Any]:
    """Return that it is over, and how, where the kernel tells."""
    seen: dict[str, Any] = {"sight": "released", "evidence": evidence, "memory": memory}
    if status is not None:
        evidence["exit_status"] = status
        seen.update(exits.ended_as(status))
    return seen
