"""What looks saw, on its way to the store: many watches in one transaction."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta

from policies.clock import Clock
from policies.model import Observation, Sight
from watcher import store
from watcher.hosted import Hosted, Watches
from watcher.keeping import Keeping
from watcher.store import Sighting
from watcher.tasks import Tasks

_GATHER_S = 0.2  # what comes meanwhile shares the commit


class Sightings:
    """Remembers what is new since it was stored last."""

    def __init__(
        self, *, clock: Clock, watches: Watches, keeping: Keeping, tasks: Tasks
    ) -> None:
        """Know nothing new yet."""
        self._clock = clock
        self._watches = watches
        self._keeping = keeping
        self._tasks = tasks
        self._new: dict[str, Observation] = {}
        self._saving = asyncio.Lock()
        """What was refused must be new again before anything later is stored."""

    def add(self, watch_id: str, observation: Observation) -> None:
        """Store this soon."""
        if not self._new:
            self._tasks.spawn(self._save_soon())
        self._new[watch_id] = observation

    async def save(self) -> None:
        """Store what is new of what was seen."""
        async with self._saving:
            await self._save(self._new)

    async def save_all(self) -> None:
        """Store when each watch was last looked at; a round of every minute."""
        async with self._saving:
            await self._save(
                {
                    watch_id: self._new.get(watch_id)
                    for watch_id, hosted in self._watches.hosted.items()
                    if hosted.saved is not None  # one just recovered keeps what it had
                }
            )

    async def _save_soon(self) -> None:
        await self._clock.sleep(_GATHER_S)
        await self.save()

    async def _save(self, seen: Mapping[str, Observation | None]) -> None:
        """Store sightings, and what the store has refused before.

        What is not stored now is part of the next round: the memory of a condition
        must survive us.
        """
        new, self._new = self._new, {}
        hosted = self._watches.hosted
        sightings = [
            self._sighting(hosted[watch_id], observation)
            for watch_id, observation in seen.items()
            if watch_id in hosted
        ]
        if not sightings and not self._keeping.owes:
            return
        stored = await self._keeping.durably(
            lambda c: store.save_sightings(c, sightings), owed=False
        )
        if not stored:
            self._new = {k: v for k, v in new.items() if k in hosted} | self._new

    def _sighting(self, hosted: Hosted, observation: Observation | None) -> Sighting:
        watch = hosted.watch
        ago_s = self._clock.boot() - watch.last_look_s if watch.looks else 0.0
        looked_at = self._clock.wall() - timedelta(seconds=ago_s)
        sight = observation.sight if observation else _sight_of(hosted)
        return Sighting(
            watch_id=watch.id,
            observation=sight,
            last_probe_at=looked_at.timestamp(),
            looks=watch.looks,
            unknown_s=watch.unknown_s,
            memory=observation.memory if observation else None,
            evidence=observation.evidence if observation else None,
        )


def _sight_of(hosted: Hosted) -> Sight:
    if hosted.watch.blind or hosted.saved is None:
        return Sight.UNKNOWN
    return hosted.saved[0]
