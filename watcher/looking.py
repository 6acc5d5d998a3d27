"""Looks that a thread takes, and what it means when one breaks down."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import cast

from policies.model import Memory, Observation
from policies.sight import unknown
from policies.wording import Phrase, phrase
from watcher.conditions import Condition, LocalCondition, Look
from watcher.offload import Worker

_log = logging.getLogger(__name__)


class OnThread:
    """One thread takes the looks of a group, one after the other."""

    last_limit_s = 1.5

    def __init__(self, name: str, *, last_limit_s: float | None = None) -> None:
        """Start nothing yet; the first look does."""
        if last_limit_s is not None:
            self.last_limit_s = last_limit_s
        self.worker = Worker(name)

    async def refusal(self, condition: Condition) -> Phrase | None:
        """Return why a condition cannot be watched at all, if so."""
        return await self.worker.call(cast("LocalCondition", condition).refusal)

    async def take(
        self, looks: Sequence[Look], at: datetime
    ) -> Sequence[Observation | None]:
        """Return what each look saw, None for what is held as before."""
        return await self.worker.call(lambda: [see(look, at) for look in looks])

    def later(self, last: Callable[[], None]) -> None:
        """Give back what looks have opened, once none is out."""
        self.worker.later(last)

    def close(self) -> None:
        """Let the thread end once it is free."""
        self.worker.close()


def see(look: Look, at: datetime) -> Observation | None:
    """Take one look here and now; None when it is held as before."""
    condition = cast("LocalCondition", look.condition)
    try:
        if look.quick and condition.unchanged(look.memory):
            return None
        return condition.look(look.memory, at)
    except Exception as error:  # noqa: BLE001 - a fault of ours is no release
        return look_failed(condition, look.memory, at, error)


def given_up(look: Look, at: datetime) -> Observation:
    """Return what it means that a look did not come back."""
    try:
        return look.condition.hung(look.memory, at)
    except Exception as error:  # noqa: BLE001 - no reason to stop looking
        return look_failed(look.condition, look.memory, at, error)


def look_failed(
    condition: Condition, memory: Memory, at: datetime, error: Exception
) -> Observation:
    """Return what it means that a look broke down: unknown (C3.1)."""
    extra = {"target": condition.target.text}
    _log.error("probe.failed", exc_info=error, extra=extra)
    what = f"{type(error).__name__}: {error}"
    reason = phrase("probe_failed", error=what)
    return unknown(memory, at, reason, {"means": "look", "error": what})
