"""What happens, told to everybody who listens: server-sent events (appendix, API).

The last few events lie in one ring for all. A listener is a place in it and nothing
else, so that one who reads slowly costs no memory: once the ring has passed his place
he is let go, and asks again with the last id he has. As long as nobody listens, and for
a while behind the last one, nothing is looked up or kept.

Format: HTML Living Standard, 9.2 Server-sent events.
"""

import asyncio
import json
import logging
import secrets
import sqlite3
from collections import deque
from collections.abc import AsyncGenerator, Callable

from policies.clock import Clock
from policies.wording import phrase
from watcher import views
from watcher.errors import StoreError
from watcher.serve.problems import Kind, ProblemError

MOST_LISTENERS = 512

RING = 512
"""Events that are kept for those who come back."""

HEARTBEAT_S = 15.0
"""Between two signs of life: proxies and browsers give up a silent stream."""

_KEPT_S = 600.0  # how long after its last listener the ring goes on
_DIGITS = 18  # of an id
_MOST_OPEN = 500  # pings whose delivery is followed; SQLite takes so many at once

_log = logging.getLogger(__name__)


class Events:
    """The ring, and those who listen."""

    def __init__(
        self,
        clock: Clock,
        *,
        watch: Callable[[str], views.Object],
        reading: Callable[[], sqlite3.Connection],
    ) -> None:
        """Keep nothing yet.

        Args:
            clock: for how long nobody has listened.
            watch: returns the watch object of an id.
            reading: returns a connection to the store.
        """
        self._clock = clock
        self._watch = watch
        self._reading = reading
        self._epoch = secrets.token_hex(4)
        self._ring: deque[bytes] = deque(maxlen=RING)
        self._number = 0
        """Of the last event; those before `_number - len(_ring) + 1` are gone."""
        self._listeners = 0
        self._until_s = -1.0
        self._news = asyncio.Event()
        self._closed = False
        self._last_ping = 0
        self._open_pings: set[int] = set()

    @property
    def active(self) -> bool:
        """Whether anybody listens, or did until a short while ago."""
        return bool(self._listeners) or self._clock.boot() < self._until_s

    def happened(self, name: str, watch_id: str) -> None:
        """Tell that something happened to a watch; never fails."""
        if not self.active:
            self._skip()
            return
        try:
            self._publish(name, self._watch(watch_id))
        except Exception:  # noqa: BLE001 - to tell of an outcome must not undo it
            _log.exception("event.failed")
            self._skip()

    def follow_pings(self) -> None:
        """Tell which pings are new, and which have been delivered or given up."""
        if not self.active:
            return
        try:
            self._follow_pings(self._reading())
        except (StoreError, sqlite3.Error):
            _log.warning("store.unreadable", exc_info=True)

    def _follow_pings(self, connection: sqlite3.Connection) -> None:
        marks = ", ".join("?" * len(self._open_pings))
        rows = connection.execute(
            f"SELECT * FROM pings WHERE id > ? OR id IN ({marks}) ORDER BY id",  # noqa: S608 - marks
            (self._last_ping, *self._open_pings),
        ).fetchall()
        for row in rows:
            pending = row["state"] == "pending"
            known = row["id"] in self._open_pings
            if not pending:
                self._open_pings.discard(row["id"])
            elif len(self._open_pings) < _MOST_OPEN:
                self._open_pings.add(row["id"])
            if not (known and pending):
                self._publish("ping", views.ping_object(row))
            self._last_ping = max(self._last_ping, row["id"])

    def _publish(self, name: str, data: views.Object) -> None:
        self._number += 1
        text = json.dumps(data)  # no line break in it
        event = f"id: {self._id()}\nevent: {name}\ndata: {text}\n\n"
        self._ring.append(event.encode())
        self._wake()

    def _skip(self) -> None:
        """Let whoever comes back know that he has missed something."""
        self._number += 1
        self._ring.clear()
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def _id(self) -> str:
        return f"{self._epoch}-{self._number}"

    @property
    def _gone(self) -> int:
        """The number of the last event that is in the ring no more."""
        return self._number - len(self._ring)

    def listen(self, last_id: str | None) -> AsyncGenerator[bytes, None]:
        """Return what happens from now on, or behind an event that is known.

        Raises:
            ProblemError: too many listen already.
        """
        if self._listeners >= MOST_LISTENERS:
            why, headers = phrase("api_busy"), {"Retry-After": "10"}
            raise ProblemError(Kind.BUSY, why, headers)
        if not self.active:
            self._begin()
        self._until_s = self._clock.boot() + _KEPT_S
        place = self._number if last_id is None else self._place_of(last_id)
        return self._listen(place)

    def _begin(self) -> None:
        """Follow the pings from here on; those that nobody was told of are missing."""
        last, followed = self._last_ping, len(self._open_pings)
        self._open_pings.clear()
        try:
            rows = self._reading().execute("SELECT coalesce(max(id), 0) FROM pings")
            (self._last_ping,) = rows.fetchone()
        except (StoreError, sqlite3.Error):
            _log.warning("store.unreadable", exc_info=True)
        if followed or self._last_ping != last:
            self._skip()

    def _place_of(self, last_id: str) -> int | None:
        """Return the place behind an event; None where something is missing there."""
        epoch, _, text = last_id.partition("-")
        if epoch != self._epoch or not text.isdecimal():
            return None
        number = int(text[:_DIGITS])
        return number if self._gone <= number <= self._number else None

    async def _listen(self, place: int | None) -> AsyncGenerator[bytes, None]:
        self._listeners += 1
        try:
            if place is None:
                place = self._number
                yield f"id: {self._id()}\nevent: reset\ndata: {{}}\n\n".encode()
            else:
                yield b": welcome\n\n"  # headers alone are held back by some
            while not self._closed:
                if place < self._gone:
                    return  # too slow: he asks again
                if place < self._number:
                    event = self._ring[place - self._number]
                    place += 1
                    yield event
                    continue
                news = self._news
                try:
                    async with asyncio.timeout(HEARTBEAT_S):
                        await news.wait()
                except TimeoutError:
                    yield b": still here\n\n"
        finally:
            self._listeners -= 1
            self._until_s = self._clock.boot() + _KEPT_S

    def close(self) -> None:
        """Let everybody go."""
        self._closed = True
        self._wake()
