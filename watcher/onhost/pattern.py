"""All processes that a pattern means: what matches, and whether none does any more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from policies.proctable import Row, matching, own_side, row_of
from watcher.onhost.saying import absent, blind, ended, is_identity, listed

_SHOWN = 10  # matches that are listed on arming, and remembered
_MOST_FOUND = 64  # matches that are told one by one


def search(
    spec: Mapping[str, Any],
    memory: dict[str, Any],
    answers: Sequence[Mapping[str, Any]],
    matches: Callable[[str], bool],
) -> dict[str, Any]:
    """Say what matches.

    Nothing matching is an end only where something matched before and everything could
    be looked at.
    """
    answer, means = answers[0], answers[0].get("means", "/proc")
    boot = answer["boot_id"]
    rows = {row.pid: row for row in map(row_of, answer["rows"])}
    launchers = _launchers(spec, memory, answer, rows)
    ours = {who["pid"] for who in launchers} | set(answer.get("own", ()))
    found = matching(rows, own_side(rows, ours), matches)
    kept = {"launchers": launchers, "seen": memory.get("seen")}
    if memory.get("several"):
        kept["several"] = True
    if found:
        return _matched(kept, boot, found, means)
    unread = {*answer.get("stuck", ()), *_between_commands(kept["seen"], rows)}
    evidence = {
        "means": means,
        "matches": 0,
        "processes": len(rows),
        "last_seen": kept["seen"],
    }
    unsure = _blind_spot(answer, rows, unread)
    if unsure is not None:
        return blind(kept, unsure, evidence)
    if not kept["seen"]:
        return absent(kept, ["nothing_matches", {}], evidence)
    return ended(kept, evidence, _status_of(memory, answers))


def _launchers(
    spec: Mapping[str, Any],
    memory: Mapping[str, Any],
    answer: Mapping[str, Any],
    rows: Mapping[int, Row],
) -> list[dict[str, Any]]:
    """Return who carries the pattern for us: each noted when its command came."""
    boot = answer["boot_id"]
    noted = {
        (who["pid"], who["start_ticks"])
        for who in listed(memory.get("launchers"))
        if is_identity(who) and who["boot_id"] == boot
    }
    joined = dict(spec.get("launchers") or {})
    line = joined.pop("line", ())
    if all(answer.get(name) == joined[name] for name in joined):
        noted |= {(pid, start) for pid, start in line}
    return [
        {"boot_id": boot, "pid": pid, "start_ticks": start}
        for pid, start in sorted(noted)
        if pid in rows and rows[pid].start == start
    ]


def _matched(
    kept: dict[str, Any], boot: str, found: Sequence[Row], means: str
) -> dict[str, Any]:
    """Say what matches; what matched first is also told to a person."""
    notes = []
    if not kept["seen"]:
        notes = [
            ["matched", {"pid": row.pid, "command": row.command}]
            for row in found[:_SHOWN]
        ]
        if len(found) > _SHOWN:
            notes.append(["matched_more", {"count": len(found) - _SHOWN}])
    seen = [
        {
            "boot_id": boot,
            "pid": row.pid,
            "start_ticks": row.start,
            "command": row.command,
        }
        for row in found[:_SHOWN]
    ]
    several = len(_ends(kept["seen"]) | _ends(seen)) > 1
    return {
        "sight": "held",
        "evidence": {"means": means, "matches": len(found), "seen": seen},
        "memory": {**kept, "seen": seen, **({"several": True} if several else {})},
        "notes": notes,
        "found": [[row.pid, row.start] for row in found[:_MOST_FOUND]],
    }


def _ends(seen: Any) -> set[tuple[int, int]]:
    known = (who for who in listed(seen) if is_identity(who))
    return {(who["pid"], who["start_ticks"]) for who in known}


def only_one(memory: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the one process that a pattern ever followed; of many none tells."""
    seen = listed(memory.get("seen"))
    one = seen[0] if len(seen) == 1 and not memory.get("several") else None
    return one if is_identity(one) else None


def _status_of(
    memory: Mapping[str, Any], answers: Sequence[Mapping[str, Any]]
) -> int | None:
    """Return the wait status of the one process that was followed, if it is known."""
    if len(answers) < 2 or only_one(memory) is None:
        return None
    return answers[1].get("status")


def _blind_spot(
    answer: Mapping[str, Any], rows: Mapping[int, Row], unread: Collection[int]
) -> list[Any] | None:
    """Return why something that matches may have gone unseen, if so."""
    if answer["hidden"] or any(not row.readable for row in rows.values()):
        return ["proc_hidden", {}]
    if unread:
        return ["pids_stuck", {"pids": ", ".join(map(str, sorted(unread)))}]
    return None


def _between_commands(seen: Any, rows: Mapping[int, Row]) -> list[int]:
    """Return the PIDs that matched before and just now show a name in brackets.

    During an exec(2) the kernel has no command line to show.
    """
    return [
        pid
        for pid, start in _ends(seen)
        if pid in rows
        and rows[pid].start == start
        and not rows[pid].finished
        and rows[pid].command.startswith("[")
    ]
