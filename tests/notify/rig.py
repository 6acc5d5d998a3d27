"""A store, pings and a server that plays answers, for the tests of the outbox."""

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from notify import outbox
from notify.channels import Channel
from notify.channels.fallback import FallbackLog
from notify.channels.koder import KoderChannel
from notify.dispatcher import Dispatcher
from policies.model import Json, Ping, Severity
from policies.wording import Lang, Phrase
from tests.fakes import START, FakeClock
from watcher.database import open_database, open_for_reading
from watcher.writer import Writer


def a_ping(
    key: str = "4f1c-1-released",
    message: str = "✅ LIBERADO: lock demo em 12:00:05 — retomar o deploy",
    severity: Severity = Severity.INFO,
) -> Ping:
    return Ping(
        idempotency_key=key,
        title="lock demo liberado",
        message=message,
        severity=severity,
        occurred_at=START,
        watch={"id": "4f1c", "host": None},
    )


class Store:
    """The real file and its one writer."""

    def __init__(self, state: Path, *, busy_ms: int = 5000) -> None:
        self.state = str(state)
        self.connection, _ = open_database(self.state, busy_ms=busy_ms)
        self.writer = Writer(self.connection)

    async def add(
        self, *keys: str, channel: str = "koder", now_s: float = START.timestamp()
    ) -> None:
        for key in keys:
            await self.put(a_ping(key), channel=channel, now_s=now_s)

    async def put(
        self, ping: Ping, *, channel: str = "koder", now_s: float = START.timestamp()
    ) -> None:
        await self.writer.submit(
            lambda connection: outbox.add(
                connection, ping, channels=[channel], now_s=now_s, watch_id="4f1c"
            )
        )

    async def run(self, statement: str, *values: object) -> None:
        """Do to the file what only a bug or another program would."""
        await self.writer.submit(
            lambda connection: connection.execute(statement, values).rowcount
        )

    def rows(self) -> list[dict[str, Json]]:
        connection = open_for_reading(self.state)
        assert connection is not None
        with contextlib.closing(connection):
            return outbox.listing(connection, zone=UTC)

    def row(self) -> dict[str, Json]:
        """Return the row; it is the only one."""
        (row,) = self.rows()
        return row

    def states(self) -> list[Json]:
        return [row["state"] for row in self.rows()]


@contextlib.contextmanager
def a_store(state: Path, *, busy_ms: int = 5000) -> Iterator[Store]:
    store = Store(state, busy_ms=busy_ms)
    try:
        yield store
    finally:
        store.writer.close(10)


@dataclass(slots=True, kw_only=True)
class Rig:
    """A dispatcher and all that it stands on."""

    store: Store
    log: Path
    clock: FakeClock = field(default_factory=FakeClock)
    notices: list[Phrase] = field(default_factory=list)
    jitter: float = 0.0

    def dispatcher(
        self, limit_s: float = 5.0, lang: Lang = Lang.PT, **channels: Channel
    ) -> Dispatcher:
        return self.over(channels, limit_s=limit_s, lang=lang)

    def over(
        self,
        channels: Mapping[str, Channel],
        limit_s: float = 5.0,
        lang: Lang = Lang.PT,
    ) -> Dispatcher:
        return Dispatcher(
            channels,
            FallbackLog(str(self.log), UTC),
            lang=lang,
            submit=self.store.writer.submit,
            now=self.clock.wall,
            jitter=lambda: self.jitter,
            notice=self.notices.append,
            limit_s=limit_s,
        )

    def logged(self) -> list[str]:
        """Return the lines of the fallback log."""
        return self.log.read_text().splitlines() if self.log.exists() else []


def koder(
    url: str, limit_s: float = 5.0, now: Callable[[], datetime] | None = None
) -> KoderChannel:
    return KoderChannel(
        url,
        key=None,
        auth="bearer",
        channel="kchat",
        user_agent="koder-monitor/1.2.3",
        limit_s=limit_s,
        now=now,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """What the server does with a request once it has read it.

    Attributes:
        gate: the answer comes when it is opened.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    close: bool = False
    reset: bool = False
    hang: bool = False
    gate: threading.Event | None = None


class Server:
    """Plays a list of answers, the last one for ever, and keeps what came."""

    def __init__(self, plays: tuple[Play, ...]) -> None:
        self.plays = list(plays) or [Play()]
        self.received: list[tuple[Mapping[str, str], dict[str, Any]]] = []
        self.arrived = threading.Semaphore(0)
        self.over = threading.Event()
        self._lock = threading.Lock()
        self.http = _Http(("127.0.0.1", 0), _Handler)
        self.http.played = self

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}/notify"

    @property
    def keys(self) -> list[str]:
        return [str(body["idempotency_key"]) for _, body in self.received]

    def take(self, headers: Mapping[str, str], body: bytes) -> Play:
        with self._lock:
            self.received.append((headers, json.loads(body)))
            play = self.plays[0] if len(self.plays) == 1 else self.plays.pop(0)
        self.arrived.release()
        return play


class _Http(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for them: nothing is left behind
    played: Server

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that hung up."""


class _Handler(BaseHTTPRequestHandler):
    server: _Http

    def do_CONNECT(self) -> None:
        """Be a proxy that is asked for a tunnel, and say no."""
        self.send_error(self.server.played.plays[0].status)

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        headers = {name.lower(): text for name, text in self.headers.items()}
        play = self.server.played.take(headers, self.rfile.read(length))
        self.close_connection = True
        if play.gate is not None and not play.gate.wait(60):
            return
        if play.hang:
            self.server.played.over.wait(60)
            return
        if play.reset:
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        if play.close or play.reset:
            return
        self.send_response_only(play.status)
        for name, text in play.headers.items():
            self.send_header(name, text)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        return


@contextlib.contextmanager
def serve(*plays: Play) -> Iterator[Server]:
    """Serve on a free loopback port until the block is left."""
    server = Server(plays)
    thread = threading.Thread(target=server.http.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.http.shutdown()
        server.http.server_close()
        thread.join()
