"""One connection to a host, through its jump hosts, and what runs on it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import asyncssh

from policies.wording import phrase
from watcher.config import Ssh
from watcher.errors import AuthError
from watcher.transport.ssh_config import Route, read_route
from watcher.transport.ssh_errors import Attempt, explain
from watcher.transport.trouble import lost

_MOST_JUMPS = 8  # in a row; more is a circle

Read = Callable[[Callable[[], Route]], Awaitable[Route]]
"""Calls what blocks on a thread."""


class _Client(asyncssh.SSHClient):
    """Notes how far a connection came; it trusts no key and answers no question."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self._connection = conn

    def auth_completed(self) -> None:
        self._attempt.let_in = True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        said = self._connection.get_extra_info("server_version")
        self._attempt.greeted = said is not None


class Link:
    """A connection that stands, with those to the jump hosts that carry it."""

    def __init__(
        self, route: Route, connections: Sequence[asyncssh.SSHClientConnection]
    ) -> None:
        """Take over connections; the last one is the host's."""
        self._route = route
        self._connections = connections

    @property
    def lost(self) -> bool:
        """Say whether it is known to be gone."""
        return any(connection.is_closed() for connection in self._connections)

    @property
    def connections(self) -> Sequence[asyncssh.SSHClientConnection]:
        """All of them, the nearest first."""
        return self._connections

    async def run(self, command: str) -> "Process":
        """Run a command on the host, by its login shell.

        Raises:
            TransportError: it cannot be run.
        """
        try:
            process = await self._connections[-1].create_process(
                command, encoding=None, stderr=asyncssh.DEVNULL
            )
        except Exception as error:
            told = explain(error, Attempt(self._route, greeted=True, let_in=True))
            raise told from error
        return Process(process, self._route)

    def abort(self) -> None:
        """Let it go at once, without a word to the other side."""
        for connection in reversed(self._connections):
            connection.abort()

    async def close(self) -> None:
        """Say goodbye, and wait until all of it is gone."""
        for connection in reversed(self._connections):
            connection.close()
            await connection.wait_closed()


class Process:
    """A `watcher.transport.session.Channel` over a channel of asyncssh."""

    def __init__(
        self, process: "asyncssh.SSHClientProcess[bytes]", route: Route
    ) -> None:
        """Take over a process that has been started."""
        self._process = process
        self._route = route

    async def write(self, data: bytes) -> None:
        """Hand bytes over; that the program has ended is said by what is read."""
        try:
            self._process.stdin.write(data)
            await self._process.stdin.drain()
        except Exception as error:
            if self._lost():
                raise lost(self._route.text) from error

    async def read(self, most: int) -> bytes:
        """Return what has come; an end without the program's own status is none."""
        try:
            data: bytes = await self._process.stdout.read(most)
        except Exception as error:
            raise lost(self._route.text) from error
        if not data and self._lost():
            raise lost(self._route.text)
        return data

    async def close(self) -> None:
        """Let the program end; its standard input ends first."""
        with suppress(OSError, asyncssh.Error):  # it has ended, or the connection has
            self._process.stdin.write_eof()
        self._process.close()
        await self._process.wait_closed()

    def _lost(self) -> bool:
        """Say whether the channel is gone and nobody said how the program ended."""
        return self._process.is_closing() and self._process.returncode is None


async def open_link(
    name: str,
    ssh: Ssh,
    read: Read,
    *,
    passed: Sequence[str] = (),
    via: Sequence[asyncssh.SSHClientConnection] | None = None,
) -> Link:
    """Connect to a host, first to those it is reached through.

    Args:
        name: as a person named it.
        ssh: the settings.
        read: calls what blocks.
        passed: the hosts whose ways led here.
        via: connections that carry this one; then its own ProxyJump does not count.

    Raises:
        TransportError: it is not reached now.
        AuthError: it will not be reached by waiting.
    """
    route = await read(lambda: read_route(name, ssh))
    connections = list(via or ())
    try:
        if via is None:
            for number, jump in enumerate(await _jumps(route, ssh, read)):
                way = _way((*passed, name), jump)
                carried = connections if number else None
                link = await open_link(jump, ssh, read, passed=way, via=carried)
                connections = list(link.connections)
        connections.append(await _connect(route, connections))
    except BaseException:
        for connection in reversed(connections[len(via or ()) :]):
            connection.abort()
        raise
    return Link(route, connections)


def _way(passed: Sequence[str], jump: str) -> Sequence[str]:
    if jump in passed or len(passed) >= _MOST_JUMPS:
        raise AuthError(phrase("host_jumps", host=passed[-1], jump=jump))
    return passed


async def _jumps(route: Route, ssh: Ssh, read: Read) -> list[str]:
    """Return the hosts to go through, but not a jump host through itself.

    `Host *` with a ProxyJump means that jump host too.
    """
    if not route.jumps:
        return []
    first = route.jumps[0]
    other = await read(lambda: read_route(first, ssh))
    same = (other.host, other.port) == (route.host, route.port)
    return [] if same else list(route.jumps)


async def _connect(
    route: Route, via: Sequence[asyncssh.SSHClientConnection]
) -> asyncssh.SSHClientConnection:
    options: dict[str, Any] = {**route.options, "tunnel": None}
    if via:
        options |= {"tunnel": via[-1], "proxy_command": None}
    attempt = Attempt(route)
    try:
        return await asyncssh.connect(
            **options, client_factory=lambda: _Client(attempt)
        )
    except asyncio.CancelledError:
        raise
    except Exception as error:
        raise explain(error, attempt) from error
