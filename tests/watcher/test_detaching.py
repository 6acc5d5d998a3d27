"""Both sides of a detached watch: the service here, its watcher as a real process."""

import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from policies.model import Json
from policies.wording import Lang, Phrase, phrase
from tests.fakes import FakeHost, FakeHosts, settle, until
from tests.servers import Answer, Server, serve
from tests.watcher.detached import Base, end_all, toys
from tests.watcher.house import House
from tests.watcher.test_api import client_of
from watcher import detaching
from watcher.config import Notify
from watcher.database import open_for_reading
from watcher.errors import AuthError, TransportError, UsageError
from watcher.onhost import answer, yard
from watcher.transport import Reply, Request

SECRET = "s3cr3t-key-of-notify"
HOUR_S = 3600


class Box(FakeHost):
    """This machine as a host that is asked what is detached there."""

    def __init__(self) -> None:
        super().__init__("box")
        self.does: list[str] = []
        self.said: dict[str, dict[str, Json]] = {}
        """By `do`: what it says in addition."""
        self.error: Exception | None = None
        self.renewed = 0

    async def anew(self) -> None:
        self.renewed += 1

    async def ask(self, requests: Sequence[Request], *, last: bool = False) -> Reply:
        self.does += [str(one["do"]) for one in requests if one["op"] == "detached"]
        if self.error is not None:
            raise self.error
        reply = await super().ask(requests, last=last)
        assert SECRET not in repr(reply)
        extra = [self.said.get(str(one.get("do")), {}) for one in requests]
        answers = [{**a, **more} for a, more in zip(reply.answers, extra, strict=True)]
        return replace(reply, answers=answers)


class Place:
    """A laptop, a host, and a notify server."""

    def __init__(self, folder: Path, base: Base, server: Server) -> None:
        self.folder = folder
        self.base = base
        self.server = server
        self.box = Box()
        self.work = folder / "work"
        self.work.write_text("held")
        key = folder / "key"
        key.write_text(SECRET)
        key.chmod(0o600)
        self.notify = Notify(url=server.url(), key_file=str(key))
        self.house = House(folder, hosts=FakeHosts(self.box), notify=self.notify)

    @property
    def target(self) -> str:
        return f"file {self.work} --host box"

    async def arm(self, **order: object) -> tuple[str, list[Phrase]]:
        watch_id, _ = await self.house.arm(self.target, detach=True, **order)
        return watch_id, await self.house.service.detaching.start(watch_id)

    async def again(self) -> House:
        """Let the next service take up what the one before has left."""
        await self.house.crash()
        self.house = House(
            self.folder,
            clock=self.house.clock,
            hosts=FakeHosts(self.box),
            notify=self.notify,
        )
        return await self.house.__aenter__()

    async def off(self) -> None:
        """Switch the laptop off: service and ssh session are gone."""
        await self.house.crash()
        yard.let_go()

    async def round(self) -> None:
        """Let a round of contacts be made, and what follows from it."""
        service = self.house.service
        before = len(self.box.asked)
        await service.detaching.round()
        await settle()
        await until(lambda: not service.detaching._asking["box"].locked())
        await self.house.idle()
        assert len(self.box.asked) >= before

    async def rounds_until(self, look: Callable[[], object]) -> None:
        """Let time pass, a round each, until `look` returns something."""
        for _ in range(200):
            await self.round()
            if look():
                return
            await self.house.go(1)
        raise AssertionError("not within 200 rounds")

    async def drain(self) -> None:
        await self.house.dispatcher.drain()

    @property
    def keys(self) -> list[str]:
        return [one.headers["idempotency-key"] for one in self.server.requests]

    def gone(self) -> bool:
        return not self.base.root.exists()

    def pings(self) -> list[tuple[object, ...]]:
        return self.house.rows("SELECT key, state FROM pings ORDER BY id")

    async def host_delivered(self) -> None:
        await until(lambda: (self.base.outcome or {}).get("delivered_at"))


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Base]:
    home = tmp_path / "state-home"
    home.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    with toys(monkeypatch):
        yield Base(home)
    end_all(home)


@pytest.fixture
def server() -> Iterator[Server]:
    with serve() as server:
        yield server


@pytest.fixture
async def place(tmp_path: Path, base: Base, server: Server) -> AsyncIterator[Place]:
    place = Place(tmp_path, base, server)
    async with place.house:
        try:
            yield place
        finally:
            await place.house.crash()


def forget_all(connection: sqlite3.Connection) -> None:
    """Let the store be a new one, as after it was set aside."""
    for table in ("waiters", "watches"):
        connection.execute(f"DELETE FROM {table}")


def said(notes: Sequence[Phrase]) -> list[str]:
    return [note.key for note in notes]


# arming


async def test_it_is_armed_here_and_lives_there(place: Place) -> None:
    watch_id, notes = await place.arm()
    assert said(notes) == ["detached_lives", "detached_loopback"]
    assert "logout (a session of its own; seen alive" in notes[0].render(Lang.EN)
    assert place.box.renewed == 1
    assert place.box.does == ["list", "start", "contact"]
    assert place.base.alive
    assert place.base.folder.name == watch_id
    assert (place.base.folder / "key").read_text() == SECRET
    place.base.secret_is_nowhere(SECRET)
    assert place.house.rows("SELECT watch_id, host, gone_at FROM detached") == [
        (watch_id, "box", None)
    ]
    store = (place.house.state / "monitor.db").read_bytes()
    assert SECRET.encode() not in store
    order = place.base.json("order.json")
    assert order["part"] == "file"
    assert order["memory"]["looks"] >= 1


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"how": "unit", "fate": "lives"}, "detached_lives"),
        ({"fate": "dies"}, "detached_dies"),
        ({"fate": "unknown"}, "detached_unknown"),
    ],
)
async def test_how_it_lives_is_said_plainly(
    more: dict[str, Json], key: str, place: Place
) -> None:
    place.box.said["start"] = more
    _, notes = await place.arm()
    assert said(notes)[0] == key
    texts = notes[0].render(Lang.EN), notes[0].render(Lang.PT)
    assert all("box" in text for text in texts)


async def test_a_host_without_python_is_told_before_anything_is_armed(
    place: Place,
) -> None:
    place.box.about = {"means": "sh"}
    with pytest.raises(UsageError) as refused:
        await place.arm()
    assert refused.value.phrase.render(Lang.PT).startswith("python3 ausente em box")
    assert place.house.service.armed_count == 0


async def test_a_host_that_refuses_us_is_told_too(place: Place) -> None:
    place.box.error = AuthError(phrase("host_silent", host="box"))
    with pytest.raises(UsageError):
        await place.arm()
    place.box.error, place.box.refused = None, phrase("host_silent", host="box")
    with pytest.raises(UsageError):
        await place.arm()
    assert place.house.service.armed_count == 0


async def test_what_is_local_cannot_stay_on_a_host(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detaching, "PARTS", ("process",))
    with pytest.raises(UsageError, match="detached_kind"):
        await place.arm()


async def test_without_a_host_it_is_armed_in_the_service(place: Place) -> None:
    place.house.hold("a")
    watch_id, _ = await place.house.arm("lock a", detach=True)
    assert await place.house.service.detaching.start(watch_id) == []
    assert place.house.rows("SELECT * FROM detached") == []
    place.house.service.detaching.renewed(watch_id)
    await place.house.service.detaching.round()
    assert place.box.does == []


async def test_a_host_out_of_reach_gets_its_watcher_later(place: Place) -> None:
    place.box.silent = phrase("host_silent", host="box")
    _, notes = await place.arm()
    assert said(notes) == ["detached_later", "detached_loopback"]
    assert not place.base.folders()
    await place.round()
    assert not place.base.folders()
    place.box.silent = None
    await place.house.go(61)
    await place.round()
    assert place.base.alive


async def test_a_watcher_that_does_not_start_is_said_and_tried_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("watcher.onhost.survival._ALIVE_LIMIT_S", 1.0)
        patch.setattr("watcher.errand.program", lambda: "import nonsense")
        _, notes = await place.arm()
    assert said(notes)[0] == "detached_later"
    assert "nonsense" in notes[0].render(Lang.EN)
    await place.house.go(61)
    await place.round()
    assert place.base.alive


async def test_what_the_host_sees_end_at_once_is_told_here(place: Place) -> None:
    watch_id, _ = await place.house.arm(place.target, detach=True)
    place.work.write_text("PASS quick")
    if place.house.service.armed_count:
        notes = await place.house.service.detaching.start(watch_id)
        assert notes == [] or said(notes)[0] == "detached_lives"
    await place.house.go(61)
    assert await place.house.told(watch_id) == "released"


async def test_what_is_clear_already_needs_no_watcher(place: Place) -> None:
    place.work.unlink()
    watch_id, _ = await place.house.arm(place.target, detach=True)
    assert await place.house.told(watch_id) == "released"
    assert await place.house.service.detaching.start(watch_id) == []
    assert not place.base.folders()


async def test_without_a_server_it_says_that_it_can_tell_nobody(
    place: Place, tmp_path: Path
) -> None:
    config = replace(place.house.config, notify=Notify())
    place.house.service.detaching._config = config
    _, notes = await place.arm()
    assert said(notes) == ["detached_lives", "detached_no_url"]
    assert not (place.base.folder / "key").exists()
    assert place.base.json("order.json")["notify"] is None


async def test_a_key_that_others_can_read_is_not_given_away(place: Place) -> None:
    (place.folder / "key").chmod(0o644)
    await place.arm()
    assert not (place.base.folder / "key").exists()
    assert place.base.json("order.json")["notify"] is None


# both sides live


async def test_the_service_tells_and_the_host_stays_silent(place: Place) -> None:
    watch_id, _ = await place.arm()
    place.work.unlink()
    await place.house.go(61)
    assert await place.house.told(watch_id) == "released"
    await place.drain()
    await place.rounds_until(place.gone)
    assert place.keys == [f"{watch_id}-1-released"]
    assert place.house.one("SELECT gone_at FROM detached") is not None
    does = len(place.box.does)
    await place.house.go(600)
    await place.round()
    assert len(place.box.does) == does


async def test_while_the_server_is_down_the_host_keeps_its_watch(
    tmp_path: Path, base: Base
) -> None:
    with serve(Answer(status=503), Answer()) as server:
        place = Place(tmp_path, base, server)
        async with place.house:
            watch_id, _ = await place.arm()
            place.work.unlink()
            await place.house.go(61)
            assert await place.house.told(watch_id) == "released"
            await place.drain()
            await place.round()
            assert place.base.folders()
            assert place.pings() == [(f"{watch_id}-1-released", "pending")]
            await place.house.go(60)
            await place.drain()
            await place.rounds_until(place.gone)
            assert set(place.keys) == {f"{watch_id}-1-released"}
            assert len(place.keys) == 2
            await place.house.crash()


async def test_a_killed_watcher_is_started_again_by_the_next_contact(
    place: Place,
) -> None:
    await place.arm()
    place.base.kill()
    await until(lambda: not place.base.alive)
    await place.house.go(61)
    await place.round()
    assert place.base.alive
    assert (place.base.folder / "key").read_text() == SECRET


async def test_who_joins_or_renews_is_known_there(place: Place) -> None:
    watch_id, _ = await place.arm(ttl_s=60)
    before = place.base.json("order.json")
    await place.house.arm(place.target, ttl_s=7200, every_s=60)
    await place.house.go(61)
    await place.round()
    order = place.base.json("order.json")
    assert order["waiters"] == {"cleared": 2, "unseen": 2, "expired": 2}
    assert await place.house.told(watch_id, 1) == "expired"
    later_s = order["rules"]["deadline_up"] - before["rules"]["deadline_up"]
    assert later_s > 6000
    await place.house.service.life.renew(watch_id, 20000, "why", place.house.read)
    place.house.service.detaching.renewed(watch_id)
    await place.round()
    assert (
        place.base.json("order.json")["rules"]["deadline_up"]
        > order["rules"]["deadline_up"]
    )
    assert place.base.alive


# the laptop is off


@pytest.mark.parametrize("returns", ["at once", "later"])
async def test_the_host_tells_and_the_laptop_does_not_tell_again(
    returns: str, place: Place
) -> None:
    place.work.write_text("held fast")
    watch_id, _ = await place.arm(resume="the API work", label="the work")
    await place.off()
    place.work.write_text("PASS all ok")
    await place.host_delivered()
    key = f"{watch_id}-1-released"
    assert place.keys == [key]
    body = place.server.requests[0].object
    assert "the work" in body["message"]
    assert "the API work" in body["message"]
    assert "[PASS] «all ok»" in body["message"]
    if returns == "later":
        await place.house.clock.advance(2 * HOUR_S, asleep=True)
    await place.again()
    await place.rounds_until(place.gone)
    assert await place.house.told(watch_id) == "released"
    await place.house.go(100)
    await place.drain()
    assert place.keys == [key]
    assert place.pings() == [(key, "delivered")]
    (row,) = place.house.rows("SELECT line, state, result FROM watches")
    assert row[0] == body["message"]
    assert row[1:] == ("released", "PASS")
    evidence = json.loads(str(place.house.one("SELECT evidence FROM watches")))
    assert evidence["watcher"] == "detached"
    assert evidence["host"] == "box"


async def test_what_the_host_could_not_deliver_the_laptop_does(
    tmp_path: Path, base: Base
) -> None:
    with serve(Answer(status=400), Answer()) as server:
        place = Place(tmp_path, base, server)
        async with place.house:
            place.work.write_text("held fast")
            watch_id, _ = await place.arm()
            await place.off()
            place.work.unlink()
            await until(lambda: (base.outcome or {}).get("dead"))
            await place.again()
            await place.rounds_until(place.pings)
            await place.drain()
            await place.rounds_until(place.gone)
            assert place.keys == [f"{watch_id}-1-released"] * 2
            assert place.pings() == [(f"{watch_id}-1-released", "delivered")]
            await place.house.crash()


async def test_a_contact_brings_the_end_before_any_look(place: Place) -> None:
    place.work.write_text("held fast")
    watch_id, _ = await place.arm()
    place.box.silent = phrase("host_silent", host="box")
    yard.let_go()
    place.work.unlink()
    await place.host_delivered()
    place.work.write_text("held")  # it came back, but the end was seen
    await place.house.go(61)
    place.box.silent = None
    await place.house.go(61)
    await place.round()
    assert await place.house.told(watch_id) == "released"
    await place.drain()
    assert place.keys == [f"{watch_id}-1-released"]


async def test_one_that_waits_longer_is_not_told_an_old_expiry(place: Place) -> None:
    place.work.write_text("held fast")
    watch_id, _ = await place.arm(ttl_s=2)
    yard.let_go()
    await place.host_delivered()
    assert place.keys == [f"{watch_id}-1-expired"]
    await place.house.service.life.renew(watch_id, HOUR_S, "why", place.house.read)
    place.house.service.detaching.renewed(watch_id)
    await place.round()
    assert place.house.service.armed_count == 1
    await until(lambda: place.base.alive)
    assert place.base.outcome is None


async def test_an_old_expiry_is_told_to_whom_it_concerns_alone(place: Place) -> None:
    place.work.write_text("held fast")
    watch_id, _ = await place.arm(ttl_s=2)
    yard.let_go()
    await place.host_delivered()
    await place.house.arm(place.target, ttl_s=HOUR_S)
    await place.house.clock.advance(3)
    await place.round()
    assert await place.house.told(watch_id, 1) == "expired"
    await place.drain()
    assert place.keys == [f"{watch_id}-1-expired"]
    assert place.house.service.armed_count == 1
    await place.rounds_until(lambda: place.base.alive and not place.base.outcome)
    assert place.base.json("order.json")["waiters"]["cleared"] == 2


async def test_a_store_that_cannot_be_read_settles_nothing(place: Place) -> None:
    watch_id, _ = await place.arm()
    place.work.unlink()
    await place.house.go(61)
    await place.house.told(watch_id)
    detached = place.house.service.detaching
    read, detached._read = detached._read, place.house.read
    assert not detached._is_settled(watch_id)
    closed = open_for_reading(str(place.house.state))
    assert closed is not None
    closed.close()
    detached._read = closed
    assert not detached._is_settled(watch_id)
    detached._read = read
    await place.drain()
    assert detached._is_settled(watch_id)
    await place.house.service.life.keeping.durably(forget_all)
    assert detached._is_settled(watch_id)


# at the deadline


async def test_an_expiry_waits_for_a_host_out_of_reach_and_then_is_told(
    place: Place,
) -> None:
    watch_id, _ = await place.arm(ttl_s=300)
    place.box.silent = phrase("host_silent", host="box")
    await place.house.go(310)
    assert place.house.service.armed_count == 1
    assert "waiting 10min" in await place.house.notes(watch_id)
    news = await place.house.news(watch_id)
    until_at = place.house.one("SELECT deadline_at FROM watches")
    assert news.deadline_at == float(str(until_at)) + detaching.GRACE_S
    await place.house.go(detaching.GRACE_S)
    assert await place.house.told(watch_id) == "expired"
    line = str(place.house.one("SELECT line FROM watches"))
    assert "no answer from box" in line


async def test_an_expiry_that_waits_is_told_once_the_host_knows_no_better(
    place: Place,
) -> None:
    watch_id, _ = await place.arm(ttl_s=300)
    place.box.silent = phrase("host_silent", host="box")
    await place.house.go(310)
    place.box.silent = None
    await place.house.go(61)
    await place.round()
    assert await place.house.told(watch_id) == "expired"


async def test_an_expiry_that_waits_gives_way_to_what_the_host_saw(
    place: Place,
) -> None:
    place.work.write_text("held fast")
    watch_id, _ = await place.arm(ttl_s=300)
    place.box.silent = phrase("host_silent", host="box")
    await place.house.go(310)
    yard.let_go()
    place.work.unlink()
    await place.host_delivered()
    place.box.silent = None
    await place.rounds_until(place.gone)
    assert await place.house.told(watch_id) == "released"
    assert place.keys == [f"{watch_id}-1-released"]


async def test_an_expiry_of_what_is_not_detached_waits_for_nobody(
    place: Place,
) -> None:
    watch_id, _ = await place.house.arm(place.target, ttl_s=300)
    place.box.silent = phrase("host_silent", host="box")
    await place.house.go(301)
    assert await place.house.told(watch_id) == "expired"


# removing


async def test_a_removal_stops_the_watcher(place: Place) -> None:
    watch_id, _ = await place.arm()
    await place.house.service.life.remove(watch_id, phrase("said", text="why"))
    await place.house.told(watch_id)
    await place.rounds_until(place.gone)
    assert place.keys == []


async def test_a_removal_out_of_reach_is_owed_even_over_a_restart(
    place: Place,
) -> None:
    watch_id, _ = await place.arm()
    place.box.silent = phrase("host_silent", host="box")
    await place.house.service.life.remove(watch_id, phrase("said", text="why"))
    await place.house.told(watch_id)
    await place.round()
    await place.again()
    await place.round()
    assert place.base.alive
    place.box.silent = None
    await place.house.go(61)
    await place.rounds_until(place.gone)


async def test_a_revived_watch_gets_a_new_watcher(place: Place) -> None:
    watch_id, _ = await place.arm(ttl_s=60)
    await place.house.go(61)
    assert await place.house.told(watch_id) == "expired"
    await place.drain()
    await place.rounds_until(place.gone)
    await place.house.service.life.renew(watch_id, HOUR_S, "why", place.house.read)
    place.house.service.detaching.renewed(watch_id)
    await place.rounds_until(lambda: place.base.alive)
    assert place.base.json("order.json")["waiters"]["expired"] == 2


# the list


async def test_the_list_shows_ours_and_those_of_others(place: Place) -> None:
    watch_id, _ = await place.arm()
    other = dict(place.box.asked[-2][0])
    for one in place.box.asked:
        for request in one:
            if request.get("do") == "start":
                other = dict(request)
    other |= {"owner": "ffff", "id": "b1"}
    assert answer(other)["alive"]
    listing = place.house.service.detaching.listing
    watches, why = await listing("box", place.house.read)
    assert why is None
    found = {str(one["id"]): one for one in watches}
    assert found[watch_id]["mine"] is True
    assert found[watch_id]["state"] == "armed"
    assert found[watch_id]["detached"] is True
    assert found[watch_id]["waiters"] == 1
    assert found["b1"]["mine"] is False
    assert found["b1"]["alive"] is True
    assert found["b1"]["target"] == place.target
    assert set(found["b1"]) <= set(found[watch_id])


async def test_without_contact_the_list_says_so_and_shows_what_is_known(
    place: Place,
) -> None:
    watch_id, _ = await place.arm()
    place.box.silent = phrase("host_silent", host="box")
    listing = place.house.service.detaching.listing
    watches, why = await listing("box", place.house.read)
    assert why is not None
    assert [(one["id"], one["alive"]) for one in watches] == [(watch_id, None)]
    place.box.error = TimeoutError()
    watches, why = await listing("box", place.house.read)
    assert why is not None


async def test_a_host_that_can_never_be_asked_is_an_error(place: Place) -> None:
    listing = place.house.service.detaching.listing
    with pytest.raises(UsageError):
        await listing("-oProxyCommand=x", place.house.read)
    place.box.about = {"means": "sh"}  # nothing can be there, and it says why
    found, why = await listing("box", place.house.read)
    assert (found, why) == ([], phrase("no_python", host="box"))
    place.box.error = AuthError(phrase("host_silent", host="box"))
    with pytest.raises(UsageError):
        await listing("box", place.house.read)


async def test_a_service_with_something_on_a_host_is_not_idle(place: Place) -> None:
    watch_id, _ = await place.arm()
    place.box.silent = phrase("host_silent", host="box")
    await place.house.service.life.remove(watch_id, phrase("said", text="why"))
    await place.house.told(watch_id)
    assert place.house.hosting._is_busy()
    await place.house.clock.advance(2 * HOUR_S)
    assert not place.house.hosting._is_busy()


# the socket


async def test_the_socket_carries_both(place: Place) -> None:
    async with client_of(place.house) as api:
        body = {"target": place.target, "detach": True}
        armed = await api.post("/v1/watches", json=body)
        assert armed.status_code == 201
        shape = armed.json()
        assert shape["detached"] is True
        assert shape["notes"][0]["key"] == "detached_lives"
        there = (await api.get("/v1/hosts/box/watches")).json()
        assert [one["id"] for one in there["watches"]] == [shape["id"]]
        assert there["why"] is None
        shown = (await api.get(f"/v1/watches/{shape['id']}")).json()
        assert shown["detached"] is True
        renewed = await api.post(
            f"/v1/watches/{shape['id']}/renew", json={"ttl_s": 7200, "why": "w"}
        )
        assert renewed.status_code == 200
        place.box.silent = phrase("host_silent", host="box")
        there = (await api.get("/v1/hosts/box/watches")).json()
        assert there["why"]["key"] == "host_silent"
        refused = await api.get("/v1/hosts/-x/watches")
        assert refused.status_code == 400


# a host that lies or fails


@pytest.mark.parametrize(
    "outcome",
    [
        {},
        {"ending": "removed"},
        {"ending": "released", "ended_at": "x"},
        {"ending": "ended", "ended_at": 1.0, "unknown_since": None, "waiter": 1},
        {"ending": "released", "ended_at": 1.0, "unknown_since": None, "waiter": "1"},
    ],
    ids=["empty", "removed", "no time", "wrong kind", "no number"],
)
async def test_an_outcome_that_is_none_ends_nothing(
    outcome: dict[str, Json], place: Place
) -> None:
    watch_id, _ = await place.arm()
    lie: dict[str, Json] = {watch_id: {"alive": False, "outcome": outcome}}
    place.box.said["contact"] = {"watches": lie}
    await place.house.go(61)
    await place.round()
    assert place.house.service.armed_count == 1


@pytest.mark.parametrize(
    "found", [None, [], {"x": 1}, {"nobody": {"alive": True, "outcome": None}}]
)
async def test_an_answer_that_says_nothing_changes_nothing(
    found: Json, place: Place
) -> None:
    await place.arm()
    place.box.said["contact"] = {"watches": found}
    await place.house.go(61)
    await place.round()
    assert place.house.service.armed_count == 1


async def test_a_host_that_breaks_off_is_asked_again(place: Place) -> None:
    watch_id, _ = await place.arm()
    place.box.error = TransportError(phrase("host_silent", host="box"))
    place.work.unlink()
    await place.house.go(61)
    await place.round()
    assert place.house.service.armed_count == 1
    place.box.error = None
    await place.house.go(61)
    assert await place.house.told(watch_id) == "released"
    await place.drain()
    await place.rounds_until(place.gone)
