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

from policies.model import Json
from policies.wording import Lang, Phrase, phrase
from watcher.app import build_dispatcher
from watcher.clock import SystemClock
from watcher.config import Config
from watcher.database import open_database
from watcher.errors import ServiceError
from watcher.hints import SystemHints
from watcher.ownership import LocalOwnership
from watcher.procfs import process_table
from watcher.serve.api import build_api
from watcher.serve.hosting import Hosting
from watcher.service import Service
from watcher.socket_path import (
    LOCK_NAME,
    SOCKET_NAME,
    service_answers,
    socket_address,
)
from watcher.writer import Writer

_log = logging.getLogger(__name__)

_GRACE_S = 1  # for requests under way; with the sends, an operator waits five at most
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
    _log_to_stderr()
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
    with _listening(config.state) as listener:
        await hosting.start()
        server = _Server(hosting, listener)
        try:
            await server.run_until_stopped(ready_fd)
        finally:
            await hosting.close()


class _Server:
    """uvicorn on a socket of ours, stopped by an event of ours."""

    def __init__(self, hosting: Hosting, listener: socket.socket) -> None:
        self._hosting = hosting
        self._listener = listener
        self._server = uvicorn.Server(
            uvicorn.Config(
                _Counting(build_api(hosting), hosting),
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                http="h11",
                loop="asyncio",
                timeout_graceful_shutdown=_GRACE_S,
                timeout_keep_alive=5,
            )
        )

    async def run_until_stopped(self, ready_fd: int | None) -> None:
        """Answer requests; SIGTERM and SIGINT stop it."""
        loop = asyncio.get_running_loop()
        stopping = loop.create_task(self._hosting.stopped.wait())
        with _signals(self._hosting):
            serving = loop.create_task(self._server.serve([self._listener]))
            while not self._server.started and not serving.done():
                await self._hosting.service.clock.sleep(0.002)
            _tell_ready(ready_fd)
            await asyncio.wait({stopping, serving}, return_when=asyncio.FIRST_COMPLETED)
            self._hosting.stop()
            self._server.should_exit = True
            await serving
        stopping.cancel()


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


@contextlib.contextmanager
def _listening(state: str) -> Iterator[socket.socket]:
    """Listen on the socket of the state directory, for its owner alone."""
    path = f"{state}/{SOCKET_NAME}"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # we hold the lock: whoever made it is gone
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        before = os.umask(0o177)
        try:
            with socket_address(state) as address:
                listener.bind(address)
        finally:
            os.umask(before)
        listener.listen(1024)
        listener.setblocking(False)
        yield listener
    finally:
        listener.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def _tell_ready(ready_fd: int | None) -> None:
    """Tell whoever started us: the command by its pipe, systemd by sd_notify(3)."""
    if ready_fd is not None:
        with contextlib.suppress(OSError):
            os.write(ready_fd, b"1")
            os.close(ready_fd)
    address = os.environ.pop("NOTIFY_SOCKET", "")
    if address:
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify,
        ):
            notify.connect("\0" + address[1:] if address[0] == "@" else address)
            notify.send(b"READY=1")


def _stays(config: Config, *, on_demand: bool) -> bool:
    """Say whether the service that is there stays, having asked it to make room."""
    if on_demand or not service_answers(config.state):
        return service_answers(config.state)
    from watcher.client import Client  # noqa: PLC0415 - only here

    client = Client(config.state)
    try:
        client.request("POST", "/v1/handover", limit_s=_ASK_S)
    except ServiceError:
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
    _log.warning("%s: %s", note.key, note.render(Lang.EN))


def _log_to_stderr() -> None:
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    # It warns of each round that finds the one before still at work: as is meant.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    logging.getLogger("httpx").setLevel(logging.WARNING)
