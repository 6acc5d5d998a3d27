"""Watchers that stay on hosts, from this side: sent off, asked, told, stopped (C7.3).

Both sides look at a detached watch. Whoever sees its end first says so under the same
key: an end that a host has reached is taken over here, and a host is told to let go
once its end is here and the ping delivered (C7.4).
"""

import asyncio
import logging
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from notify import outbox
from notify.channels.koder import is_loopback
from policies.clock import Clock
from policies.duration import format_minutes
from policies.model import Ending, Json, Observation, Outcome
from policies.target import is_host
from policies.verdict import Rules
from policies.wording import Phrase, phrase
from watcher import errand, views
from watcher.app import KODER, read_key
from watcher.conditions import Place
from watcher.config import Config
from watcher.engine import Watch
from watcher.errors import AuthError, ConfigError, TransportError, UsageError
from watcher.hosted import Hosted, Watches
from watcher.keeping import Keeping
from watcher.looked import There
from watcher.onhost import PARTS
from watcher.store import WaiterRow
from watcher.targets import target_of
from watcher.tasks import Tasks
from watcher.telling import Elsewhere, Telling
from watcher.transport import Answer, Host, Hosts, Reply, Request

_log = logging.getLogger(__name__)

GRACE_S = 600.0
"""How long an expiry waits for a host that is out of reach: it may know better."""

_CHECK_LIMIT_S = 5.0  # the command is to return within seconds
_START_LIMIT_S = 12.0
_CONTACT_LIMIT_S = 15.0
_TRY_AGAIN_S = 15.0  # after a contact that failed, unless a look gets through before
_LONGEST_PERIOD_S = 60.0  # a third of what a watcher takes for the laptop's silence
_FIRST_S = 3.0  # for what a host has seen already, before an outcome of ours is told
_YIELD_S = 20.0  # for what a host has sent already, before we send it after a restart
_LATE_S = 5.0  # a deadline here and there may be apart by the way of a request


class Detaching:
    """The detached watches of one state directory."""

    def __init__(
        self,
        *,
        config: Config,
        clock: Clock,
        watches: Watches,
        keeping: Keeping,
        telling: Telling,
        tasks: Tasks,
        hosts: Hosts | None,
    ) -> None:
        """Know of none yet; `recover` takes up those of the store."""
        self.change_rules: Callable[[Hosted], object] = bool
        """Called when an expiry has been held back for long enough."""
        self._config = config
        self._clock = clock
        self._watches = watches
        self._keeping = keeping
        self._telling = telling
        self._tasks = tasks
        self._hosts = hosts
        self._read: sqlite3.Connection | None = None
        self._owner = ""
        self._there: dict[str, _There] = {}
        self._contacts: dict[str, _Contact] = defaultdict(_Contact)
        self._asking: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def recover(self, read: sqlite3.Connection) -> None:
        """Take up what hosts hold of ours, by the store.

        They may have sent what is pending here: they are asked before it is sent.
        """
        self._read = read
        (self._owner,) = read.execute("SELECT name FROM laptop").fetchone()
        for watch_id, host in read.execute(
            "SELECT watch_id, host FROM detached WHERE gone_at IS NULL"
        ):
            self._there[watch_id] = _There(host)
        if self._there:
            by_s = self._clock.wall().timestamp() + _YIELD_S
            await self._keeping.durably(lambda c: _hold_back(c, by_s), owed=False)

    # -- arming -------------------------------------------------------------------

    async def check(self, text: str) -> None:
        """Make sure that a target can be watched by its host itself.

        One that is out of reach may turn out to be able.

        Raises:
            UsageError: it cannot.
        """
        place = Place(config=self._config, cwd="/", launcher=0, clock=self._clock)
        target = target_of(text, place)
        if target.host is None or self._hosts is None:
            return
        if target.kind not in PARTS:
            known = ", ".join(PARTS)
            raise UsageError(phrase("detached_kind", kind=target.kind, known=known))
        host = self._hosts.of(target.host)
        refusal = await host.reach()
        if refusal is not None:
            raise UsageError(refusal)
        try:
            async with asyncio.timeout(_CHECK_LIMIT_S):
                _able(target.host, await host.ask([_LIST]))
        except AuthError as error:
            raise UsageError(error.phrase) from error
        except (TransportError, TimeoutError):
            return

    async def start(self, watch_id: str) -> list[Phrase]:
        """Send a watcher off; return what a person must know of how it lives.

        It is announced only once a second contact has found it alive.
        """
        hosted = self._watches.hosted.get(watch_id)
        condition = hosted.watch.condition if hosted is not None else None
        if hosted is None or not isinstance(condition, There):
            return []  # it has ended already, or is local
        name = cast("str", condition.target.host)
        self._there[watch_id] = there = _There(name)
        await self._keeping.durably(lambda c: _insert(c, watch_id, name))
        notes = self._warnings(name)
        try:
            async with asyncio.timeout(_START_LIMIT_S), self._asking[name]:
                said = await self._send(hosted, there)
                await self._host(name).anew()  # what is found then survived a logout
                asked = self._request("contact", [watch_id])
                reply = await self._host(name).ask([asked])
                stands = _watches_in(reply.answers[0]).get(watch_id, {})
                if stands.get("outcome") is not None:
                    await self._stands(watch_id, stands)
        except (TransportError, TimeoutError) as error:
            why = _why(name, error)
            return [phrase("detached_later", host=name, reason=why), *notes]
        if watch_id not in self._watches.hosted:
            return []  # the host has seen its end at once
        if not stands.get("alive"):
            reason = phrase("said", text=_error_of(said))
            return [phrase("detached_later", host=name, reason=reason), *notes]
        return [_fate(name, said), *notes]

    def _warnings(self, name: str) -> list[Phrase]:
        url = self._config.notify.url
        if url is None:
            return [phrase("detached_no_url", host=name)]
        from urllib.parse import urlsplit  # noqa: PLC0415 - only here

        if is_loopback(urlsplit(url).hostname or ""):
            return [phrase("detached_loopback", host=name)]
        return []

    async def _send(
        self, hosted: Hosted, there: "_There", *, anew: bool = False
    ) -> Answer:
        """Hand a watch over, or a new order to the watcher that has it.

        Raises:
            TransportError: the host gave no answer.
        """
        key, with_url = "", self._config.notify.url is not None
        try:
            secret = read_key(self._config)
            key = secret.reveal() if secret is not None and with_url else ""
        except ConfigError:
            with_url = False  # as here, where its place takes the fallback log (C6.2)
        sender = errand.Sender(
            config=self._config,
            now_s=self._clock.boot(),
            now=self._clock.wall(),
            zone=self._clock.zone(),
            with_url=with_url,
        )
        shape = errand.shape_of(hosted)
        condition = cast("There", hosted.watch.condition)
        request: Request = {
            "op": "detached",
            "do": "start",
            "owner": self._owner,
            "id": hosted.watch.id,
            "program": errand.program(),
            "key": key,
            "anew": anew,
            "order": errand.order_of(hosted, condition.looked, sender),
        }
        reply = await self._host(there.host).ask([request])
        (said,) = reply.answers
        if said.get("alive"):
            there.shape = shape
        return said

    # -- rounds ---------------------------------------------------------------------

    async def round(self) -> None:
        """Make contact with each host on which that is due; of every second."""
        if self._hosts is None:
            return
        for name in {there.host for there in self._there.values()}:
            if not self._asking[name].locked() and self._is_due(name):
                self._tasks.spawn(self.contact(name))

    def _is_due(self, name: str) -> bool:
        now_s, contact = self._clock.boot(), self._contacts[name]
        if now_s >= contact.due_s:
            return True
        over = [i for i in self._of(name) if i not in self._watches.hosted]
        return now_s >= contact.not_before_s and any(map(self._is_settled, over))

    def saw(self, watch: Watch, observation: Observation) -> None:
        """Take it as news that a host answers again."""
        there = self._there.get(watch.id)
        if there is None or observation.out_of_reach == there.lost:
            return
        there.lost = observation.out_of_reach
        if not there.lost:
            self._contacts[there.host] = _Contact()

    async def contact(self, name: str) -> None:
        """Ask a host how ours stand there, and have it let go of what is over.

        What is told of each is taken up once the host may be asked again.
        """
        async with self._asking[name]:
            settled = [
                watch_id
                for watch_id in self._of(name)
                if watch_id not in self._watches.hosted and self._is_settled(watch_id)
            ]
            others = [
                watch_id for watch_id in self._of(name) if watch_id not in settled
            ]
            asked = [("stop", settled)] if settled else []
            asked += [("contact", others)] if others else []
            requests = [self._request(do, ids) for do, ids in asked]
            later_s = self._clock.boot() + max(self._period_s(name), _TRY_AGAIN_S)
            self._contacts[name] = _Contact(later_s, later_s)
            try:
                async with asyncio.timeout(_CONTACT_LIMIT_S):
                    reply = await self._host(name).ask(requests)
                    for answer in reply.answers:
                        await self._gone(settled, answer)
                        for watch_id, stands in _watches_in(answer).items():
                            await self._stands(watch_id, stands)
            except (TransportError, TimeoutError):
                return
            self._contacts[name] = _Contact(self._clock.boot() + self._period_s(name))

    def _period_s(self, name: str) -> float:
        """Return the interval of contacts: that of the watch that is asked most."""
        hosted = self._watches.hosted
        every = [hosted[i].watch.every_s for i in self._of(name) if i in hosted]
        return min([*every, float(self._config.cadence.remote), _LONGEST_PERIOD_S])

    async def _stands(self, watch_id: str, stands: Answer) -> None:
        """Do what follows from how a watch stands on its host.

        Raises:
            TransportError: the host gave no answer to what was asked then.
        """
        there, hosted = self._there.get(watch_id), self._watches.hosted.get(watch_id)
        if there is None:
            return
        outcome = stands.get("outcome")
        record = outcome if isinstance(outcome, Mapping) else None
        if hosted is None:
            await self._stands_over(there, stands, record)
            return
        if record is not None and self._take(hosted, record):
            return
        alive = bool(stands.get("alive")) and record is None
        if not alive or there.shape != errand.shape_of(hosted):
            await self._send(hosted, there, anew=record is not None)
        self._end_grace(hosted)

    async def _stands_over(
        self, there: "_There", stands: Answer, record: Mapping[str, Json] | None
    ) -> None:
        """Learn whether a host has said what has ended here, too."""
        if record is None:
            there.settled = not stands.get("alive")
            return
        at_s, ping = record.get("delivered_at"), record.get("ping")
        there.settled = bool(record.get("dead"))
        if isinstance(at_s, int | float) and isinstance(ping, Mapping):
            key, at = str(ping.get("idempotency_key")), float(at_s)
            await self._keeping.durably(
                lambda c: _delivered_there(c, key, at), owed=False
            )

    def _is_settled(self, watch_id: str) -> bool:
        """Say whether nothing of a watch that is over here is left to its host.

        Its end must be in the store, and its ping delivered; one that nobody takes from
        us may still be taken from the host.
        """
        if self._there[watch_id].settled:
            return True
        try:
            found = self._standing(watch_id)
        except sqlite3.Error:
            return False
        if found is None:  # the store has been set aside
            return not self._keeping.owes
        if found["state"] in {Ending.REMOVED, "armed"}:
            return bool(found["state"] != "armed")
        return not found["pending"] and bool(found["delivered"] or not found["pings"])

    def _standing(self, watch_id: str) -> sqlite3.Row | None:
        """Return how a watch and its ping stand in the store."""
        read = cast("sqlite3.Connection", self._read)  # known once anything is there
        row: sqlite3.Row | None = read.execute(
            _STANDING, {"id": watch_id, "channel": KODER}
        ).fetchone()
        return row

    async def _gone(self, asked: Sequence[str], stopped: Answer) -> None:
        """Note what hosts hold no more; one that was renewed meanwhile starts anew."""
        said = stopped.get("stopped")
        found = [i for i in asked if isinstance(said, Sequence) and i in said]
        gone = [i for i in found if i not in self._watches.hosted]
        if not gone:
            return
        for watch_id in gone:
            self._there.pop(watch_id, None)
        now = self._clock.wall().timestamp()
        await self._keeping.durably(lambda c: _note_gone(c, gone, now))

    # -- outcomes -------------------------------------------------------------------

    async def heard(self, hosted: Hosted) -> bool:
        """Ask a host for its own end of a watch first; True where that is told now.

        After an absence of ours it may have sent the ping long ago (C7.4).
        """
        watch_id = hosted.watch.id
        there = self._there.get(watch_id)
        if there is None:
            return False
        try:
            async with asyncio.timeout(_FIRST_S):
                asked = self._request("contact", [watch_id])
                reply = await self._host(there.host).ask([asked])
        except (TransportError, TimeoutError):
            return False
        record = _watches_in(reply.answers[0]).get(watch_id, {}).get("outcome")
        if watch_id not in self._watches.hosted:
            return True  # somebody has removed it meanwhile
        return isinstance(record, Mapping) and self._take(hosted, record)

    def _take(self, hosted: Hosted, record: Mapping[str, Json]) -> bool:
        """End a watch as its host has seen it end; False where that is of no use.

        An expiry counts for those whose time has passed here, too: it may have been
        renewed while the host was out of reach.
        """
        zone = self._clock.zone()
        try:
            outcome, number = errand.outcome_from(hosted, record, zone)
            at_s = record["delivered_at"]
            delivered_at = None if at_s is None else float(cast("float", at_s))
        except (KeyError, TypeError, ValueError):
            _log.exception("detached.outcome", extra={"watch_id": hosted.watch.id})
            return False
        due = self._told_of(hosted, outcome)
        if not due:
            return False
        hosted.decided |= {waiter.number for waiter in due}
        seen = Elsewhere(waiter=number, delivered_at=delivered_at)
        if hosted.waiting():
            self._tasks.spawn(self._telling.tell_some(hosted, outcome, due, seen=seen))
            self.change_rules(hosted)
            return False
        self._watches.retire(hosted, self._clock.boot())
        self._watches.engine.drop(hosted.watch.id)
        self._tasks.spawn(self._telling.tell_all(hosted, outcome, due, seen=seen))
        return True

    def _told_of(self, hosted: Hosted, outcome: Outcome) -> list[WaiterRow]:
        if outcome.ending is not Ending.EXPIRED:
            return hosted.waiting()
        by_s = self._clock.boot() + _LATE_S
        return [row for row in hosted.waiting() if row.deadline_boot_s <= by_s]

    def grace(self, hosted: Hosted) -> Rules | None:
        """Hold back an expiry that a host out of reach may know better of (C7.4).

        Returns:
            The rules by which the watch goes on; None where it is to be told now.
        """
        there = self._there.get(hosted.watch.id)
        if there is None:
            return None
        now_s = self._clock.boot()
        deadline_s = min(row.deadline_boot_s for row in hosted.waiting())
        if there.held_back_s != deadline_s:
            there.held_back_s, there.until_s = deadline_s, now_s + GRACE_S
            hosted.grace_s = GRACE_S
            minutes = format_minutes(GRACE_S)
            hosted.say(phrase("host_awaited", host=there.host, minutes=minutes))
        if now_s >= there.until_s:
            hosted.grace_s = 0.0
            return None
        return replace(hosted.watch.rules, deadline_s=there.until_s)

    def _end_grace(self, hosted: Hosted) -> None:
        """Let an expiry be told: the host knows no better."""
        there = self._there[hosted.watch.id]
        if there.until_s > self._clock.boot():
            there.until_s = self._clock.boot()
            self.change_rules(hosted)

    def renewed(self, watch_id: str) -> None:
        """Give the host of a watch its new order soon; also of one that was over."""
        hosted = self._watches.hosted.get(watch_id)
        if hosted is None or not isinstance(hosted.watch.condition, There):
            return
        there = self._there.get(watch_id)
        if there is None:
            read = cast("sqlite3.Connection", self._read)
            if not read.execute(_EVER, (watch_id,)).fetchone():
                return
            name = cast("str", hosted.watch.condition.target.host)
            there = self._there[watch_id] = _There(name)
            self._tasks.spawn(
                self._keeping.durably(lambda c: _insert(c, watch_id, name))
            )
        there.settled = False
        self._contacts[there.host] = _Contact()

    # -- what runs there --------------------------------------------------------------

    async def listing(
        self, name: str, read: sqlite3.Connection
    ) -> tuple[list[views.Object], Phrase | None]:
        """Return what is detached on a host, and why it could not be asked, if so.

        Without contact it is what the store knows to be there.

        Raises:
            UsageError: no such host, or it can run nothing of the kind.
        """
        if not is_host(name) or self._hosts is None:
            raise UsageError(phrase("not_a_host", host=name))
        try:
            async with asyncio.timeout(_CONTACT_LIMIT_S):
                reply = await self._host(name).ask([_LIST])
        except AuthError as error:
            raise UsageError(error.phrase) from error
        except (TransportError, TimeoutError) as error:
            mine = [self._known(i, read) | {"alive": None} for i in self._of(name)]
            return [one for one in mine if "id" in one], _why(name, error)
        try:
            _able(name, reply)
        except UsageError as error:
            return [], error.phrase  # nothing can be there
        entries = reply.answers[0].get("watches")
        found = entries if isinstance(entries, Sequence) else ()
        return [
            self._listed(one, name, read) for one in found if isinstance(one, Mapping)
        ], None

    def _listed(
        self, entry: Mapping[str, Json], name: str, read: sqlite3.Connection
    ) -> views.Object:
        mine = entry.get("owner") == self._owner
        zone = self._clock.zone()
        told = errand.shown(entry, name, mine=mine, zone=zone)
        if not mine:
            return told
        return {**told, **self._known(str(entry.get("id")), read)}

    def _known(self, watch_id: str, read: sqlite3.Connection) -> views.Object:
        """Return what the store has of a watch of ours."""
        row = views.watch_row(read, watch_id)
        return {} if row is None else {**views.watch_object(row), "mine": True}

    def _of(self, name: str) -> list[str]:
        return [i for i, there in self._there.items() if there.host == name]

    def _host(self, name: str) -> Host:
        return cast("Hosts", self._hosts).of(name)

    def _request(self, do: str, ids: Sequence[str]) -> Request:
        return {"op": "detached", "do": do, "owner": self._owner, "ids": list(ids)}


@dataclass(slots=True)
class _There:
    """A watch of which its host holds something.

    Attributes:
        shape: of the order that its watcher has; None where that is not known.
        settled: nothing that the host holds of it is of any use.
        lost: the latest look got no answer.
        held_back_s: the deadline whose expiry is held back until `until_s`.
    """

    host: str
    shape: object = None
    settled: bool = False
    lost: bool = False
    held_back_s: float = 0.0
    until_s: float = 0.0


@dataclass(slots=True)
class _Contact:
    """When to ask a host again.

    Attributes:
        due_s: whatever there is to ask.
        not_before_s: when there is something to be told to it.
    """

    due_s: float = 0.0
    not_before_s: float = 0.0


_LIST: Request = {"op": "detached", "do": "list"}

_STANDING = """
SELECT
    state,
    (SELECT count(*) FROM pings WHERE watch_id = :id AND channel = :channel) AS pings,
    (
        SELECT count(*) FROM pings
        WHERE watch_id = :id AND channel = :channel AND state = 'pending'
    ) AS pending,
    (
        SELECT count(*) FROM pings
        WHERE watch_id = :id AND channel = :channel AND state = 'delivered'
    ) AS delivered
FROM watches WHERE id = :id
"""
_EVER = "SELECT 1 FROM detached WHERE watch_id = ?"


def _insert(connection: sqlite3.Connection, watch_id: str, host: str) -> None:
    connection.execute(
        "INSERT INTO detached (watch_id, host) VALUES (?, ?)"
        " ON CONFLICT (watch_id) DO UPDATE SET gone_at = NULL",
        (watch_id, host),
    )


def _note_gone(connection: sqlite3.Connection, ids: Iterable[str], at_s: float) -> None:
    connection.executemany(
        "UPDATE detached SET gone_at = ? WHERE watch_id = ?",
        [(at_s, watch_id) for watch_id in ids],
    )


def _hold_back(connection: sqlite3.Connection, by_s: float) -> None:
    connection.execute(
        "UPDATE pings SET due_at = max(due_at, ?) WHERE state = 'pending'"
        " AND channel = ? AND watch_id IN"
        " (SELECT watch_id FROM detached WHERE gone_at IS NULL)",
        (by_s, KODER),
    )


def _delivered_there(connection: sqlite3.Connection, key: str, at_s: float) -> None:
    outbox.delivered_elsewhere(connection, key, channel=KODER, at_s=at_s)


def _why(name: str, error: TransportError | TimeoutError) -> Phrase:
    """Return why a host gave no answer."""
    if isinstance(error, TransportError):
        return error.phrase
    return phrase("host_silent", host=name)


def _able(name: str, reply: Reply) -> None:
    """Make sure that a host can run a detached watcher at all.

    Raises:
        UsageError: it has no Python of use.
    """
    if reply.about.get("means") != "agent" or "error" in reply.answers[0]:
        raise UsageError(phrase("no_python", host=name))


def _watches_in(answer: Answer) -> dict[str, Answer]:
    """Return how watches stand, as a host says."""
    found = answer.get("watches")
    if not isinstance(found, Mapping):
        return {}
    return {i: one for i, one in found.items() if isinstance(one, Mapping)}


def _error_of(said: Answer) -> str:
    """Return what a host says of a watcher that it could not start."""
    error = said.get("error")
    text = error.get("text") if isinstance(error, Mapping) else said.get("said")
    return str(text or "?")


def _fate(name: str, said: Answer) -> Phrase:
    """Return what becomes of a watcher when the person logs out."""
    fate = said.get("fate")
    if fate == "lives":
        how = "how_unit" if said.get("how") == "unit" else "how_session"
        return phrase("detached_lives", host=name, how=phrase(how))
    key = "detached_dies" if fate == "dies" else "detached_unknown"
    return phrase(key, host=name)
