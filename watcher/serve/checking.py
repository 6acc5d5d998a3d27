"""One look at a target for a program that asks, on the service's own loop (C9.1)."""

import asyncio
from dataclasses import replace

from policies.clock import Clock
from policies.model import Observation, Sight, Target
from policies.wording import phrase
from watcher.conditions import Condition, Look, Looker, Place
from watcher.config import Config
from watcher.errors import UsageError
from watcher.looking import OnThread
from watcher.offload import HungError
from watcher.serve.problems import Kind, ProblemError
from watcher.targets import condition_of
from watcher.transport import Hosts

NEAR_LIMIT_S = 10.0
FAR_LIMIT_S = 25.0
"""A host may first have to be reached."""

_MOST = 16  # looks at once; on a dead mount each that hangs keeps its thread


class Checking:
    """Takes single looks; what hangs is given up, and only so many of that."""

    def __init__(self, config: Config, clock: Clock, hosts: Hosts | None) -> None:
        """Look at nothing yet."""
        self._place = Place(
            config=config, cwd="/", launcher=0, clock=clock, hosts=hosts
        )
        self._lookers: list[OnThread] = []
        self._under_way = 0

    async def check(self, target: str, caller: int = 0) -> tuple[Target, Observation]:
        """Return what one look sees; a release is looked at twice (C3.2).

        Raises:
            UsageError: it cannot be watched at all.
            ProblemError: too many looks are under way, or hang.
        """
        place = replace(self._place, launcher=caller)
        condition = condition_of(target, place)
        self._lookers = [one for one in self._lookers if one.worker.busy]
        if len(self._lookers) + self._under_way >= _MOST:
            condition.close()
            why, headers = phrase("api_busy"), {"Retry-After": "10"}
            raise ProblemError(Kind.BUSY, why, headers)
        far = condition.looker()
        looker = far or OnThread("check")
        if isinstance(looker, OnThread):
            self._lookers.append(looker)
        limit_s = NEAR_LIMIT_S if far is None else FAR_LIMIT_S
        self._under_way += 1
        try:
            async with asyncio.timeout(limit_s):
                seen = await self._look(condition, looker, refuses=far is not None)
        except (TimeoutError, HungError):
            seen = condition.hung({}, self._place.clock.wall())
        finally:
            self._under_way -= 1
            looker.later(condition.close)
            looker.close()
        return condition.target, seen

    async def _look(
        self, condition: Condition, looker: Looker, *, refuses: bool
    ) -> Observation:
        clock, config = self._place.clock, self._place.config
        refusal = await looker.refusal(condition) if refuses else None
        if refusal is not None:
            raise UsageError(refusal)
        (seen,) = await looker.take([Look(condition, {})], clock.wall())
        if seen is not None and seen.sight is Sight.RELEASED and condition.settle:
            await clock.sleep(config.cadence.settle)
            look = Look(condition, seen.memory)
            (seen,) = await looker.take([look], clock.wall())
        return seen or condition.hung({}, clock.wall())
