"""The rule of `policies.verdict` for a detached watcher, on plain values.

A host may have no Python that reads that module; a test holds the two together.

    rules    = {"armed_up", "deadline_up", "settle_s", "start_within_s"}
    progress = {"candidate", "unknown", "blocked", "seen"}, or empty

Instants are seconds of one clock that counts suspend.
"""

from __future__ import annotations

from typing import Any

START: dict[str, Any] = {
    "candidate": None,
    "unknown": None,
    "blocked": False,
    "seen": False,
}


def decide(
    rules: dict[str, Any], progress: dict[str, Any], sight: str, now: float
) -> tuple[str, dict[str, Any], float]:
    """Return what follows from one more look, the progress, and when to look again.

    Args:
        rules: what the watch was armed with.
        progress: what the looks so far amount to.
        sight: held, released, unknown or absent.
        now: when it was taken.

    Returns:
        `wait`, `look_again` (with the seconds until that look), `cleared`, `expired` or
        `unseen`.
    """
    kept = _keep(progress or START, sight, now)
    if sight == "released":
        since = (
            kept["candidate"] if (progress or START)["candidate"] is not None else None
        )
        settle_s = rules["settle_s"]
        left_s = settle_s if since is None else since + settle_s - now
        if since is not None and left_s <= 0:
            return "cleared", kept, 0.0
        return "look_again", kept, max(left_s, 0.0)
    expired = now >= rules["deadline_up"]
    if sight == "absent" and not kept["seen"]:
        overdue = rules["armed_up"] + rules["start_within_s"]
        if expired or now >= overdue:
            return "unseen", kept, 0.0
    return ("expired" if expired else "wait"), kept, 0.0


def _keep(progress: dict[str, Any], sight: str, now: float) -> dict[str, Any]:
    released, blind = sight == "released", sight == "unknown"
    candidate, unknown = progress["candidate"], progress["unknown"]
    return {
        "candidate": (now if candidate is None else candidate) if released else None,
        "unknown": (now if unknown is None else unknown) if blind else None,
        "blocked": progress["blocked"] or not released,
        "seen": progress["seen"] or sight in {"held", "released"},
    }
