"""One look, for a command that asks once; what is near needs no event loop."""

import threading
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import cast

from policies.model import Memory, Observation, Sight
from watcher.conditions import Condition, LocalCondition, Look, Looker
from watcher.errors import UsageError

_NEAR_LIMIT_S = 10.0
_FAR_LIMIT_S = 25.0  # a host may first have to be reached


def look_once(
    condition: Condition,
    memory: Memory,
    at: datetime,
    settle_s: float,
    *,
    close: Callable[[], Awaitable[None]] | None = None,
) -> Observation:
    """Return one observation within a limit; a release is looked at twice (C3.2).

    Args:
        condition: what to look at; closed at the end.
        memory: what an earlier look remembered, or empty.
        at: the time of the look.
        settle_s: between the two looks at a release.
        close: lets go of connections, on the event loop that made them.

    Raises:
        UsageError: it cannot be watched at all.
    """
    looker = condition.looker()
    if looker is None:
        return _near(cast("LocalCondition", condition), memory, at, settle_s)
    import asyncio  # noqa: PLC0415 - start-up time: most looks are near

    return asyncio.run(
        _far(condition, looker, memory, at, settle_s=settle_s, close=close)
    )


def _near(
    condition: LocalCondition, memory: Memory, at: datetime, settle_s: float
) -> Observation:
    seen: list[Observation] = []
    again = threading.Event()

    def look() -> None:
        first = condition.look(memory, at)
        if first.sight is Sight.RELEASED and condition.settle:
            again.wait(settle_s)
            first = condition.look(first.memory, at)
        seen.append(first)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(_NEAR_LIMIT_S)
    return seen[0] if seen else condition.hung(memory, at)


async def _far(
    condition: Condition,
    looker: Looker,
    memory: Memory,
    at: datetime,
    *,
    settle_s: float,
    close: Callable[[], Awaitable[None]] | None,
) -> Observation:
    import asyncio  # noqa: PLC0415

    try:
        async with asyncio.timeout(_FAR_LIMIT_S):
            refusal = await looker.refusal(condition)
            if refusal is not None:
                raise UsageError(refusal)
            (first,) = await looker.take([Look(condition, memory)], at)
            if first is not None and first.sight is Sight.RELEASED and condition.settle:
                await asyncio.sleep(settle_s)  # noqa: TID251 - a command of a moment
                (first,) = await looker.take([Look(condition, first.memory)], at)
    except TimeoutError:
        first = None
    finally:
        looker.later(condition.close)
        looker.close()
        if close is not None:
            await close()
    return condition.hung(memory, at) if first is None else first
