"""Circles among the watches of a service: told once to all sides (C3.8)."""

import sqlite3
from collections.abc import Iterable, Sequence
from hashlib import sha256

from policies.circles import Circle, circle_phrase, find_circles
from policies.clock import Clock
from policies.model import Ping, Severity
from policies.wording import Lang, Phrase, phrase
from watcher import store
from watcher.hosted import Hosted, session_of
from watcher.tasks import Tasks
from watcher.telling import Telling


class Circling:
    """Remembers which circles there are, so that each is told once."""

    def __init__(
        self, *, clock: Clock, lang: Lang, telling: Telling, tasks: Tasks
    ) -> None:
        """Know no circle yet."""
        self._clock = clock
        self._lang = lang
        self._telling = telling
        self._tasks = tasks
        self._circles: set[Circle] = set()

    def look(self, hosted: Iterable[Hosted]) -> None:
        """Tell all sides and the operator of sessions that wait in a circle."""
        locks = {
            one.watch.condition.target.text: one
            for one in hosted
            if session_of(one.watch.memory)
        }
        waits = [
            (waiter.session, text)
            for text, one in locks.items()
            for waiter in one.waiting()
        ]
        holders = {text: session_of(one.watch.memory) for text, one in locks.items()}
        circles = set(find_circles(waits, holders))
        for circle in circles - self._circles:
            slugs = ((session, text.removeprefix("lock ")) for session, text in circle)
            said = circle_phrase(tuple(slugs))
            sides = [locks[text] for _, text in circle]
            for side in sides:
                side.say(said)
            self._tasks.spawn(self._ping(circle, said, sides))
        self._circles = circles

    async def _ping(
        self, circle: Circle, said: Phrase, sides: Sequence[Hosted]
    ) -> None:
        now, lang = self._clock.wall(), self._lang
        mark = "-".join(sorted(side.watch.id for side in sides))
        ping = Ping(
            idempotency_key=f"circle-{sha256(mark.encode()).hexdigest()[:16]}",
            title=phrase("circle_title").render(lang),
            message=said.render(lang),
            severity=Severity.WARNING,
            occurred_at=now,
            watch={"id": sides[0].watch.id, "kind": "circle", "waits": len(circle)},
        )

        def change(connection: sqlite3.Connection) -> None:
            for side in sides:
                detail, at = said.render(lang), now.timestamp()
                store.add_trail(connection, side.watch.id, at, "circle", detail)

        await self._telling.ping(sides[0], change, ping)
