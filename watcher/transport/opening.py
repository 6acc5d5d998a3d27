"""Which session a host gets: the agent, or POSIX sh where there is no Python."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable

from policies.wording import phrase
from watcher.errors import TransportError
from watcher.transport import bundle
from watcher.transport.agent_session import AgentSession
from watcher.transport.session import Channel, Session
from watcher.transport.shell_session import SHELL, ShellSession

_AGENT_PART = 0.5
"""Of the time that there is: the rest must do for the shell."""

Run = Callable[[str], Awaitable[Channel]]
"""Starts a command by the login shell of the host, on a channel of its own."""


async def open_session(run: Run, *, limit_s: float) -> Session:
    """Return a session that has answered.

    Whatever keeps the agent from it makes it a shell: no Python, an old one, a stub, or
    nothing at all within a part of the limit.

    Args:
        run: starts a command by the host's login shell.
        limit_s: of all this.

    Raises:
        TransportError: nothing that we can use runs there, or not in time.
        AuthError: as `run` says.
    """
    try:
        async with asyncio.timeout(limit_s):
            return await _agent(run, limit_s * _AGENT_PART) or await _shell(
                run, limit_s
            )
    except TimeoutError as error:
        why = phrase("session_silent", limit_s=round(limit_s))
        raise TransportError(why) from error


async def _agent(run: Run, limit_s: float) -> Session | None:
    nonce = secrets.token_hex(16)
    command, program = bundle.agent(nonce)
    channel = await run(command)
    session = AgentSession(channel, nonce)
    try:
        await session.start(program, limit_s)
    except BaseException as error:
        await session.close()
        if isinstance(error, TransportError):
            return None
        raise
    return session


async def _shell(run: Run, limit_s: float) -> Session:
    session = ShellSession(await run(SHELL), secrets.token_hex(16))
    try:
        await session.start(limit_s)
    except BaseException:
        await session.close()
        raise
    return session
