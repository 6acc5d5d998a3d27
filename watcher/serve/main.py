"""Runs the service until told to stop: one a state directory (C5.1b, C10)."""

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import random
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import cast

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from policies.clock import Clock
from policies.model import Json
from policies.wording import Lang, Phrase, phrase
from watcher.app import build_dispatcher
from watcher.cli.output import say
from watcher.clock import SystemClock
from watcher.config import Config
from watcher.database import open_database
from watcher.errors import ConfigError, ServiceError, WatcherError
from watcher.hints import SystemHints
from watcher.ownership import LocalOwnership
from watcher.procfs import process_table
from watcher.sd_notify import SdNotify
from watcher.serve.api import build_api
from watcher.serve.callers import peer_of
from watcher.serve.hosting import Hosting
from watcher.serve.listening import listen_at, listening
from watcher.serve.logs import log_to_stderr
from watcher.serve.operations import Front
from watcher.serve.tokens import Tokens, token_of
from watcher.service import Service
from watcher.socket_path import LOCK_NAME, service_answers
from watcher.transport.hosts import SshHosts
from watcher.writer import Writer

_log = logging.getLogger(__name__)

_GRACE_S = 1  # for requests under way; with the sends, an operator waits five at most
_UNREAD_S = 30.0  # for a reader that has stopped reading
_ASK_S = 3.0  # for what a service that is there says to `serve`
_ROOM_S = 8.0  # for a service that ends, to have ended
_TURN_S = 0.02  # between two looks whether it has
_GIVE_WAY_S = 0.3  # likewise, of one that makes way for `serve`


class StateLock:
    """The right to be the service of a state directory: the kernel frees it (C5.3)."""

    def __init__(self, state: str) -> None:
        """Hold nothing yet."""
        self._path = f"{state}/{LOCK_NAME}"
        self._fd = -1

    def take(self, *, on_demand: bool) -> bool:
        """Take it if it is free, and write down who has it."""
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return False
        self._fd = fd
        os.ftruncate(fd, 0)
        os.write(fd, json.dumps({"pid": os.getpid(), "on_demand": on_demand}).encode())
        return True

    def free(self) -> None:
        """Give it back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def serve(config: Config, *, on_demand: bool, ready_fd: int | None) -> None:
    """Be the service, if nobody else is.

    Args:
        config: the settings in force.
        on_demand: started by a command; ends when idle, and makes room for `serve`.
        ready_fd: told by one byte when requests are answered.

    Raises:
        ServiceError: another service that was not started on demand is there.
        StoreError: the store cannot be used.
    """
    log_to_stderr()
    lock = StateLock(config.state)
    if not _wait_for(lock, config, on_demand=on_demand):
        if on_demand:
            if service_answers(config.state):
                _tell_ready(ready_fd)
            return
        raise ServiceError(phrase("service_there", state=config.state))
    try:
        asyncio.run(_serve(config, on_demand=on_demand, ready_fd=ready_fd))
    finally:
        lock.free()


async def _serve(config: Config, *, on_demand: bool, ready_fd: int | None) -> None:
    """Build everything, answer, and take it down again in the opposite order."""
    connection, note = open_database(config.state, check=True)
    if note is not None:
        _notice(note)
    clock = SystemClock()
    writer = Writer(connection)
    ownership = LocalOwnership(writer)
    dispatcher = build_dispatcher(
        config, clock=clock, submit=writer.submit, jitter=random.random, notice=_notice
    )
    service = Service(
        config=config,
        clock=clock,
        ownership=ownership,
        dispatcher=dispatcher,
        boot_id=process_table().boot_id(),
        hosts=SshHosts(config.ssh, clock=clock),
    )
    service.engine.use_hints(SystemHints(service.engine.look_now, service.warn))
    service.set_aside = note
    hosting = Hosting(
        service,
        state=config.state,
        writer=writer,
        dispatcher=dispatcher,
        ownership=ownership,
        on_demand=on_demand,
    )
    with listening(config.state, config.socket) as listener:
        at = _tcp(config, clock, on_demand=on_demand)
        await hosting.start()
        listeners = [listener] if at is None else [listener, at[0]]
        server = _Server(hosting, listeners, None if at is None else at[1])
        try:
            await server.run_until_stopped(ready_fd, quiet=on_demand)
        finally:
            await hosting.close()


def _tcp(
    config: Config, clock: Clock, *, on_demand: bool
) -> tuple[socket.socket, Front] | None:
    """Listen over TCP where that is asked for; the socket goes with the server.

    A service that commands have started goes on without: their watches come first.

    Raises:
        ConfigError: there is no such address, or no token.
    """
    if config.serve.listen is None:
        return None
    try:
        tokens = Tokens(token_of(config), clock)
        listener, url = listen_at(config.serve.listen)
    except ConfigError as error:
        if not on_demand:
            raise
        _notice(error.phrase)
        return None
    return listener, Front(url, tokens)


class _Impatient(H11Protocol):
    """Hangs up on whoever leaves what we send unread for long."""

    _giving_up: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own
        """Remember who it is."""
        super().connection_made(transport)
        connection = transport.get_extra_info("socket")
        self.client = peer_of(connection) or self.client

    def pause_writing(self) -> None:
        """Give the reader some time to make room."""
        super().pause_writing()
        self._giving_up = self.loop.call_later(_UNREAD_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: he reads."""
        self._be_patient()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the reader."""
        self._be_patient()
        super().connection_lost(exc)

    def _be_patient(self) -> None:
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None


class _Uvicorn(uvicorn.Server):
    """Lets those who wait for news go as soon as a signal ends it."""

    def __init__(self, hosting: Hosting, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._hosting = hosting

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End soon: uvicorn waits for its requests first, which wait for us."""
        super().handle_exit(sig, frame)
        asyncio.get_running_loop().call_soon_threadsafe(self._hosting.stop)


class _Server:
    """uvicorn on sockets of ours, stopped by an event of ours."""

    def __init__(
        self,
        hosting: Hosting,
        listeners: list[socket.socket],
        front: Front | None = None,
    ) -> None:
        self._hosting = hosting
        self._listeners = listeners
        self._front = front
        self._systemd = SdNotify(os.environ)
        self._server = _Uvicorn(
            hosting,
            uvicorn.Config(
                _Counting(build_api(hosting, front), hosting),
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                http=_Impatient,
                loop="asyncio",
                proxy_headers=False,  # they would say where a request came from
                server_header=False,
                timeout_graceful_shutdown=_GRACE_S,
                timeout_keep_alive=5,
            ),
        )

    async def run_until_stopped(
        self, ready_fd: int | None, *, quiet: bool = True
    ) -> None:
        """Answer requests; SIGTERM and SIGINT stop it.

        Args:
            ready_fd: told by one byte when requests are answered.
            quiet: do not print the address of the page.
        """
        loop = asyncio.get_running_loop()
        stopping = loop.create_task(self._hosting.stopped.wait())
        with _signals(self._hosting):
            serving = loop.create_task(self._server.serve(self._listeners))
            while not self._server.started and not serving.done():
                await self._hosting.service.clock.sleep(0.002)
            _tell_ready(ready_fd)
            beating = loop.create_task(self._tell_systemd())
            if self._front is not None and not quiet:
                say(self._front.page_address())
            await asyncio.wait({stopping, serving}, return_when=asyncio.FIRST_COMPLETED)
            beating.cancel()
            self._systemd.tell("STOPPING=1")
            self._hosting.stop()
            self._server.should_exit = True
            await serving
        stopping.cancel()

    async def _tell_systemd(self) -> None:
        """Say that we are ready, then that we live, if that is so (C10.2)."""
        _log.info("service.ready", extra={"armed": self._hosting.service.armed_count})
        self._systemd.tell("READY=1")
        clock = self._hosting.service.clock
        await self._systemd.keep_alive(clock, self._hosting.sweeps)


class _Counting:
    """Counts the requests under way: somebody who follows keeps the service alive."""

    def __init__(self, app: ASGIApp, hosting: Hosting) -> None:
        self._app = app
        self._hosting = hosting

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        self._hosting.requests += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._hosting.requests -= 1


@contextlib.contextmanager
def _signals(hosting: Hosting) -> Iterator[None]:
    """Turn signals into the stop event; uvicorn hands its own back to us at the end."""

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        hosting.stop()

    before = {
        number: signal.signal(number, stop)
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell_ready(ready_fd: int | None) -> None:
    """Tell the command that started us, by its pipe."""
    if ready_fd is not None:
        with contextlib.suppress(OSError):
            os.write(ready_fd, b"1")
            os.close(ready_fd)


def _stays(config: Config, *, on_demand: bool) -> bool:
    """Say whether the service that is there stays, having asked it to make room."""
    if on_demand or not service_answers(config.state):
        return service_answers(config.state)
    from watcher.client import Client  # noqa: PLC0415 - only here

    client = Client(config.state)
    try:
        client.request("POST", "/v1/handover", limit_s=_ASK_S)
    except WatcherError:
        try:
            _, health = client.request("GET", "/healthz", limit_s=_ASK_S)
        except ServiceError:
            return False  # it has just ended
        return not cast("Mapping[str, Json]", health)["on_demand"]
    return False


def _wait_for(lock: StateLock, config: Config, *, on_demand: bool) -> bool:
    """Get the lock, also from a service that is just ending; False where one stays.

    One that was started on demand makes room when asked. As long as it does, commands
    may be starting another: those wait longer between two tries, and give way.
    """
    pause_s = _GIVE_WAY_S if on_demand else _TURN_S
    until = time.clock_gettime(time.CLOCK_MONOTONIC) + _ROOM_S
    while not lock.take(on_demand=on_demand):
        if _stays(config, on_demand=on_demand):
            return False
        if time.clock_gettime(time.CLOCK_MONOTONIC) > until:
            return False
        time.sleep(pause_s)  # noqa: TID251 - no loop runs yet
    return True


def _notice(note: Phrase) -> None:
    _log.warning(note.key, extra={"sentence": note.render(Lang.EN)})
