"""What happens, told as it happens; nobody costs memory by not listening."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest
from starlette.types import Message

from tests.fakes import settle, until
from tests.rows import add_ping
from tests.watcher.house import House
from watcher.serve.api import build_api
from watcher.serve.events import MOST_LISTENERS, RING
from watcher.serve.main import _Impatient, _Server

LIMIT_S = 20.0


@dataclass(frozen=True, slots=True)
class Event:
    name: str
    id: str
    data: dict[str, object]


class Stream:
    """One who listens, by the socket of a server in this process."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def to(cls, path: Path, last_id: str | None = None) -> Self:
        reader, writer = await asyncio.open_unix_connection(str(path))
        more = f"Last-Event-ID: {last_id}\r\n" if last_id is not None else ""
        writer.write(f"GET /v1/events HTTP/1.1\r\nHost: l\r\n{more}\r\n".encode())
        stream = cls(reader, writer)
        async with asyncio.timeout(LIMIT_S):
            head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        assert b"text/event-stream" in head
        return stream

    async def block(self) -> str:
        """Return the next block of lines; each is sent as a chunk of its own."""
        async with asyncio.timeout(LIMIT_S):
            size = int(await self.reader.readline(), 16)
            content = await self.reader.readexactly(size + 2)
        return content[:-2].decode()

    async def event(self) -> Event:
        while True:
            text = await self.block()
            assert text, "the stream has ended"
            if text.startswith(":"):
                continue
            assert text.endswith("\n\n")
            lines = dict(line.split(": ", 1) for line in text.splitlines() if line)
            assert lines.keys() == {"id", "event", "data"}
            return Event(lines["event"], lines["id"], json.loads(lines["data"]))

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except OSError:
            return


def transport_of(stream: Stream) -> asyncio.ReadTransport:
    transport = stream.writer.transport
    assert isinstance(transport, asyncio.ReadTransport)
    return transport


@asynccontextmanager
async def served(house: House, path: Path) -> AsyncIterator[_Server]:
    """Let the service answer on a socket, as it does when it runs."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(1024)
    listener.setblocking(False)
    server = _Server(house.hosting, [listener])
    ending = asyncio.create_task(house.hosting._end_events())
    running = asyncio.create_task(server.run_until_stopped(None))
    try:
        await until(lambda: server._server.started)
        await house.clock.advance(0.01)  # for whoever waits for the start
        yield server
    finally:
        house.hosting.stop()
        async with asyncio.timeout(LIMIT_S):
            await running
            await ending
        listener.close()


@pytest.fixture
async def server(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[_Server]:
    monkeypatch.chdir(tmp_path)
    async with served(house, Path("s")) as server:
        yield server


@pytest.fixture
def path(server: _Server) -> Path:
    return Path("s")  # short enough for a socket


async def listener(path: Path, last_id: str | None = None) -> Stream:
    stream = await Stream.to(path, last_id)
    if last_id is None:
        assert (await stream.block()).startswith(":")  # it listens from here on
    return stream


async def test_whatever_happens_to_a_watch_is_told_with_the_watch(
    house: House, path: Path
) -> None:
    stream = await listener(path)
    watch_id, _ = await house.arm()
    told = await stream.event()
    assert (told.name, told.data["id"]) == ("armed", watch_id)
    assert (told.data["target"], told.data["state"]) == ("lock a", "armed")
    await house.service.life.renew(watch_id, 600, None, house.read)
    told = await stream.event()
    assert (told.name, told.data["renewals"]) == ("renewed", 1)
    house.free("a")
    await house.go(31)
    told = await stream.event()
    assert (told.name, told.data["state"]) == ("released", "released")
    assert str(told.data["line"]).startswith("✅ LIBERADO")
    await stream.close()


async def test_each_way_to_end_has_its_name(house: House, path: Path) -> None:
    stream = await listener(path)
    expired, _ = await house.arm(ttl_s=60)
    await house.go(61)
    removed, _ = await house.arm()
    assert await house.service.life.leave(removed, 1)
    ended, _ = await house.arm("process --pid 4194304")
    unseen, _ = await house.arm("process --match nobody-has-this-on-the-line")
    await house.go(31)
    told = [await stream.event() for _ in range(8)]
    assert {(event.name, event.data["id"]) for event in told} == {
        *(("armed", one) for one in (expired, removed, ended, unseen)),
        ("expired", expired),
        ("removed", removed),
        ("ended", ended),
        ("unseen", unseen),
    }
    for event in told:
        assert event.data["state"] == event.name
    await stream.close()


async def test_a_watch_is_told_of_even_where_the_store_takes_nothing(
    house: House, path: Path
) -> None:
    stream = await listener(path)
    with house.read_only():
        watch_id, _ = await house.arm(ttl_s=60, session="s")
        told = await stream.event()
        assert (told.name, told.data["id"]) == ("armed", watch_id)
        await house.go(61)
        told = await stream.event()
    assert (told.name, told.data["state"]) == ("expired", "expired")
    assert str(told.data["line"]).startswith("⏰ EXPIROU")
    assert told.data["session"] == "s"
    await stream.close()


async def test_a_ping_is_told_when_it_is_made_and_when_its_fate_is_known(
    house: House, path: Path
) -> None:
    at = house.clock.wall().timestamp()
    add_ping(house.connection, "old", at=at, state="pending")
    stream = await listener(path)
    add_ping(house.connection, "k", at=at, state="pending", attempts=1)
    add_ping(house.connection, "d", at=at, state="dead")
    house.hosting.events.follow_pings()
    house.hosting.events.follow_pings()
    house.connection.execute("UPDATE pings SET state = 'delivered' WHERE key = 'k'")
    house.hosting.events.follow_pings()
    told = [await stream.event() for _ in range(3)]
    assert [
        (event.name, event.data["idempotency_key"], event.data["state"])
        for event in told
    ] == [
        ("ping", "k", "pending"),
        ("ping", "d", "dead"),
        ("ping", "k", "delivered"),
    ]
    await stream.close()


async def test_the_round_of_the_service_tells_of_pings(house: House) -> None:
    events = house.hosting.events
    stream = events.listen(None)
    assert (await anext(stream)).startswith(b":")
    await house.hosting.start()
    try:
        add_ping(house.connection, "k", at=house.clock.wall().timestamp())
        async with asyncio.timeout(LIMIT_S):
            assert b"event: ping" in await anext(stream)
    finally:
        house.hosting.stop()
        await until(lambda: events._closed)
        assert all([b"event: ping" in block async for block in stream])
        await house.hosting.close()


# coming back


async def test_who_comes_back_is_told_what_he_missed(house: House, path: Path) -> None:
    stream = await listener(path)
    await house.arm()
    first = await stream.event()
    await stream.close()
    house.hold("b")
    house.hold("c")
    ids = [(await house.arm(f"lock {slug}"))[0] for slug in "bc"]
    again = await listener(path, first.id)
    assert [(await again.event()).data["id"] for _ in ids] == ids
    await again.close()
    last = await listener(path, first.id)
    assert [(await last.event()).data["id"] for _ in ids] == ids
    await last.close()


@pytest.mark.parametrize(
    "last_id", ["x", "", "0-1", "-", "{epoch}-", "{epoch}-x", "{epoch}-99", "{epoch}-²"]
)
async def test_who_knows_what_is_gone_is_told_to_ask_anew(
    last_id: str, house: House, path: Path
) -> None:
    stream = await listener(path)
    await house.arm()
    epoch = (await stream.event()).id.partition("-")[0]
    odd = last_id.format(epoch=epoch).encode().decode("latin-1")
    again = await listener(path, odd)
    told = await again.event()
    assert (told.name, told.data) == ("reset", {})
    house.hold("b")
    watch_id, _ = await house.arm("lock b")
    assert (await again.event()).data["id"] == watch_id
    behind = await listener(path, told.id)
    assert (await behind.event()).data["id"] == watch_id
    for one in (stream, again, behind):
        await one.close()


async def test_the_ring_ends_somewhere(house: House) -> None:
    events = house.hosting.events
    stream = events.listen(None)
    await anext(stream)
    house.hold("a")
    watch_id, _ = await house.arm()
    first = (await anext(stream)).split(b"\n")[0].partition(b": ")[2].decode()
    for _ in range(RING):
        events.happened("renewed", watch_id)
    again = events.listen(first)
    assert await anext(again) == b": welcome\n\n"
    assert b"event: renewed" in await anext(again)
    events.happened("renewed", watch_id)
    assert b"event: reset" in await anext(events.listen(first))
    with pytest.raises(StopAsyncIteration):  # who was there is let go: too slow
        await anext(stream)
    assert len(events._ring) == RING


# nobody listens


async def test_nothing_is_looked_up_while_nobody_listens(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = house.hosting.events
    monkeypatch.setattr(events, "_watch", lambda _: pytest.fail("nobody listens"))
    monkeypatch.setattr(events, "_reading", lambda: pytest.fail("nobody listens"))
    await house.arm()
    events.follow_pings()
    assert not events.active


async def test_who_was_away_for_long_is_told_to_ask_anew(house: House) -> None:
    events = house.hosting.events
    stream = events.listen(None)
    await anext(stream)
    await house.arm()
    last = (await anext(stream)).split(b"\n")[0].partition(b": ")[2].decode()
    await stream.aclose()
    assert events.active
    await house.clock.advance(601)
    assert not events.active
    unmissed = events.listen(last)
    assert await anext(unmissed) == b": welcome\n\n"
    await unmissed.aclose()
    await house.clock.advance(601)
    add_ping(house.connection, "k", at=house.clock.wall().timestamp())
    assert b"event: reset" in await anext(events.listen(last))


async def test_who_listens_while_the_store_cannot_be_read_listens_all_the_same(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    assert house.hosting.read is not None
    house.hosting.read.close()
    events = house.hosting.events
    stream = events.listen(None)
    await anext(stream)
    events.follow_pings()
    watch_id, _ = await house.arm()
    assert watch_id.encode() in await anext(stream)
    assert "store.unreadable" in caplog.text


async def test_an_event_that_cannot_be_told_undoes_nothing(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    events = house.hosting.events
    stream = events.listen(None)
    await anext(stream)
    events.happened("armed", "no such watch")
    assert "event.failed" in caplog.text
    with pytest.raises(StopAsyncIteration):  # he comes back, and is told to ask anew
        await anext(stream)


# many, slow and silent ones


@pytest.mark.slow
async def test_200_clients_are_told_all_of_it(house: House, path: Path) -> None:
    async with AsyncExitStack() as stack:
        streams = await asyncio.gather(*(listener(path) for _ in range(200)))
        for stream in streams:
            stack.push_async_callback(stream.close)
        house.hold("b")
        ids = [(await house.arm(f"lock {slug}"))[0] for slug in "ab"]

        async def heard(stream: Stream) -> list[object]:
            return [(await stream.event()).data["id"] for _ in ids]

        assert await asyncio.gather(*map(heard, streams)) == [ids] * 200
        assert house.hosting.events._listeners == 200
    await until(lambda: house.hosting.events._listeners == 0)


async def test_there_is_a_sign_of_life_in_silence(
    house: House, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watcher.serve.events.HEARTBEAT_S", 0.01)
    stream = await listener(path)
    for _ in range(3):
        assert await stream.block() == ": still here\n\n"
    await stream.close()


async def test_who_reads_nothing_is_hung_up_on(
    house: House, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser that sleeps must not hold what is sent to it in our memory."""
    monkeypatch.setattr("watcher.serve.main._UNREAD_S", 0.05)
    stream = await listener(path)
    transport_of(stream).pause_reading()
    house.hold("a")
    watch_id, _ = await house.arm(resume="x" * 4000)
    events = house.hosting.events

    def gone() -> bool:
        events.happened("renewed", watch_id)
        return not events._listeners

    await until(gone)
    assert len(events._ring) <= RING
    await stream.close()


async def test_who_reads_on_in_time_is_kept(
    house: House, server: _Server, path: Path
) -> None:
    stream = await listener(path)
    (connection,) = server._server.server_state.connections
    assert isinstance(connection, _Impatient)
    transport_of(stream).pause_reading()
    watch_id, _ = await house.arm(resume="x" * 4000)

    def held_up() -> bool:
        house.hosting.events.happened("renewed", watch_id)
        return connection._giving_up is not None

    await until(held_up)
    transport_of(stream).resume_reading()
    reading = asyncio.create_task(stream.reader.read())
    await until(lambda: connection._giving_up is None)
    house.hosting.stop()
    async with asyncio.timeout(LIMIT_S):
        await reading
    await stream.close()


async def test_who_goes_is_forgotten(house: House, path: Path) -> None:
    streams = [await listener(path) for _ in range(3)]
    assert house.hosting.requests == 3
    for stream in streams:
        await stream.close()
    await until(lambda: house.hosting.events._listeners == 0)
    await until(lambda: house.hosting.requests == 0)


async def test_one_too_many_is_told_to_come_later(house: House) -> None:
    house.hosting.events._listeners = MOST_LISTENERS
    said: list[Message] = []

    async def send(message: Message) -> None:
        said.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/v1/events",
        "query_string": b"",
        "headers": [],
        "server": ("s", None),
    }
    await build_api(house.hosting)(scope, receive, send)
    assert said[0]["status"] == 503
    assert (b"retry-after", b"10") in said[0]["headers"]


async def test_the_end_of_the_service_ends_every_stream_at_once(
    house: House, path: Path
) -> None:
    stream = await listener(path)
    house.hosting.stop()
    assert await stream.block() == ""
    await stream.close()


async def test_to_ask_for_the_head_of_the_stream_does_not_wait_for_events(
    house: House, path: Path
) -> None:
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(b"HEAD /v1/events HTTP/1.1\r\nHost: l\r\nConnection: close\r\n\r\n")
    async with asyncio.timeout(LIMIT_S):
        head = await reader.read()
    assert b"200 OK" in head
    assert b"text/event-stream" in head
    writer.close()
    await settle()
