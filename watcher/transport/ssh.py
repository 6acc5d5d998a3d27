"""One host over SSH: one connection, kept for as long as it answers (C4.4, C7.1)."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from policies.backoff import Backoff, failed, woken
from policies.clock import Clock
from policies.target import is_host
from policies.wording import Phrase, phrase
from watcher.config import Ssh
from watcher.errors import AuthError, TransportError
from watcher.offload import HungError, Worker
from watcher.tasks import Tasks
from watcher.transport import HostState, Reply, Request
from watcher.transport.session import Channel, Session
from watcher.transport.trouble import lost, timed_out, trouble_of, unspecific

if TYPE_CHECKING:
    from watcher.transport.ssh_link import Link

ANSWER_LIMIT_S = 10.0
"""An answer that takes longer is none; the connection is given up with it."""

_CHECK_LIMIT_S = 3.0  # for the first answer of a connection that may be an old one
_IDLE_S = 90.0  # not asked for so long: perhaps we were stopped, or it went away
_SLEPT_S = 1.0  # by which the clocks part only in a suspend
_CLOSE_LIMIT_S = 2.0


class OpenSession(Protocol):
    """Starts the far side of a host over its connection."""

    async def __call__(
        self, run: Callable[[str], Awaitable[Channel]], *, limit_s: float
    ) -> Session:
        """Return the session, opened within a limit."""
        ...


@dataclass(slots=True)
class _Follow:
    pid: int
    start: int
    wake: Callable[[], None]
    end: Callable[[], None] | None = None


class SshHost:
    """One machine, one connection.

    Whatever goes wrong ends the connection: a late answer must never be taken for that
    of the next question. The next question opens a new one, not before the back-off.
    """

    def __init__(
        self,
        name: str,
        config: Ssh,
        *,
        clock: Clock,
        open_session: OpenSession | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """Reach for nothing yet.

        Args:
            name: as a person named it.
            config: the settings.
            clock: the time.
            open_session: what starts the far side.
            jitter: draws from 0.0 to 1.0.
        """
        self.name = name
        self._config = config
        self._clock = clock
        self._open_session = open_session or _usual_session
        self._jitter = jitter
        self._tasks = Tasks()
        self._files = Worker(f"ssh files of {name}")
        self._turn = asyncio.Lock()
        self._opening: asyncio.Task[Session] | None = None
        self._standing: tuple[Link, Session] | None = None
        self._follows: list[_Follow] = []
        self._backoff = Backoff()
        self._why = phrase("host_silent", host=name)
        self._state = HostState(name=name)
        self._asked_s = clock.boot()
        self._asleep_s = clock.boot() - clock.awake()
        self._doubted = False
        self._closed = False

    @property
    def state(self) -> HostState:
        """What there is to say about it."""
        return self._state

    async def reach(self) -> Phrase | None:
        """Return why it can never be used as it stands; waits for one try at most."""
        if not is_host(self.name):
            return phrase("host_text", host=self.name)
        banned = self._backoff.is_ban() and self._must_wait()
        if self._alive() is not None or banned:
            return None
        try:
            async with asyncio.timeout(self._config.connect_timeout):
                await self._opened()
        except AuthError as error:
            return error.phrase
        except (TransportError, TimeoutError):
            return None
        return None

    async def ask(self, requests: Sequence[Request], *, last: bool = False) -> Reply:
        """Ask everything at once, over the connection that there is or a new one."""
        if not is_host(self.name):
            raise AuthError(phrase("host_text", host=self.name))
        self._look_at_clock()
        self._check_patience(last=last)
        limit_s = self._config.connect_timeout + ANSWER_LIMIT_S
        try:
            async with asyncio.timeout(limit_s), self._turn:
                self._check_patience(last=last)  # who had the turn may have failed
                return await self._ask(requests)
        except TimeoutError:
            raise timed_out(self.name, limit_s) from None

    def follow(
        self, pid: int, start: int, wake: Callable[[], None]
    ) -> Callable[[], None]:
        """Call `wake` once the process ends, over this connection and later ones."""
        follow = _Follow(pid, start, wake)
        self._follows.append(follow)
        session = self._alive()
        if session is not None:
            follow.end = session.follow(pid, start, wake)

        def end() -> None:
            if follow in self._follows:
                self._follows.remove(follow)
                if follow.end is not None:
                    follow.end()

        return end

    async def anew(self) -> None:
        """Log out; what is asked next goes over another connection.

        Between two questions, so that no look fails for it.
        """
        async with self._turn:
            standing, self._standing = self._standing, None
            if standing is not None:
                await _say_goodbye(*standing)

    async def close(self) -> None:
        """Close the connection, within a limit."""
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
        standing, self._standing = self._standing, None
        if standing is not None:
            await _say_goodbye(*standing)
        self._files.close()
        await self._tasks.close(_CLOSE_LIMIT_S)

    async def _ask(self, requests: Sequence[Request]) -> Reply:
        """Ask; a connection that was silent for long gets one short question first.

        If it does not answer that, it died while nobody looked, which says nothing
        about a new one.
        """
        session = self._alive()
        if session is not None and self._doubted:
            try:
                return await self._take(session, requests, _CHECK_LIMIT_S)
            except TransportError:
                session = None
        if session is None:
            session = await self._opened()
        try:
            return await self._take(session, requests, ANSWER_LIMIT_S)
        except TransportError as error:
            self._failed(error)
            raise
        except asyncio.CancelledError:
            self._failed(TransportError(phrase("host_silent", host=self.name)))
            raise

    async def _take(
        self, session: Session, requests: Sequence[Request], limit_s: float
    ) -> Reply:
        try:
            async with asyncio.timeout(limit_s):
                reply = await session.ask(requests)
        except BaseException as error:
            self._drop(session)
            if isinstance(error, TimeoutError):
                raise timed_out(self.name, limit_s) from None
            if isinstance(error, Exception) and not isinstance(error, TransportError):
                raise unspecific(self.name, error) from error
            raise
        self._answered(reply)
        return reply

    async def _opened(self) -> Session:
        """Return the session of the one attempt that all who ask meanwhile share.

        It goes on when they are cancelled: the next look finds what came of it.
        """
        if self._closed:
            raise lost(self.name)
        if self._opening is None or self._opening.done():
            self._opening = self._tasks.start(self._open())
            self._opening.add_done_callback(_take_note)
        attempt = self._opening
        await asyncio.wait({attempt})
        if attempt.cancelled():
            raise lost(self.name)
        return attempt.result()

    async def _open(self) -> Session:
        link: Link | None = None
        limit_s = float(self._config.connect_timeout)
        try:
            async with asyncio.timeout(limit_s):
                link = await self._connect()
            limit_s = ANSWER_LIMIT_S
            async with asyncio.timeout(limit_s):
                session = await self._open_session(link.run, limit_s=limit_s)
        except BaseException as error:
            if link is not None:
                link.abort()
            if not isinstance(error, Exception):
                raise
            told = self._told(error, limit_s)
            self._failed(told)
            raise told from error
        self._standing = (link, session)
        self._doubted = False
        for follow in self._follows:
            follow.end = session.follow(follow.pid, follow.start, follow.wake)
        return session

    async def _connect(self) -> "Link":
        module = await self._files.call(
            lambda: import_module(f"{__package__}.ssh_link")
        )
        link: Link = await module.open_link(self.name, self._config, self._files.call)
        return link

    def _told(self, error: Exception, limit_s: float) -> TransportError:
        if isinstance(error, TransportError):
            return error
        if isinstance(error, TimeoutError):
            return timed_out(self.name, limit_s)
        if isinstance(error, HungError):
            return TransportError(phrase("hung", what=self._config.config_file))
        return unspecific(self.name, error)

    def _alive(self) -> Session | None:
        """Return the session, unless it is known to be gone."""
        if self._standing is None:
            return None
        link, session = self._standing
        if session.lost or link.lost:
            self._drop(session)
            return None
        return session

    def _drop(self, session: Session) -> None:
        """Let a connection go; what it still says is heard by nobody."""
        if self._standing is None or self._standing[1] is not session:
            return
        link, _ = self._standing
        self._standing = None
        for follow in self._follows:
            follow.end = None
        link.abort()
        self._tasks.spawn(_closed(session))

    def _answered(self, reply: Reply) -> None:
        self._backoff = Backoff()
        self._doubted = False
        means = str(reply.about.get("means", ""))
        self._state = HostState(
            name=self.name, reached_at=self._clock.wall(), means=means
        )

    def _failed(self, error: TransportError) -> None:
        trouble = trouble_of(error)
        self._backoff = failed(
            self._backoff, trouble, now_s=self._clock.boot(), jitter=self._jitter()
        )
        self._why = error.phrase
        before = self._state
        self._state = HostState(
            name=self.name,
            reached_at=before.reached_at,
            silent_since=before.silent_since or self._clock.wall(),
            last_error=error.phrase,
            means=before.means,
        )

    def _check_patience(self, *, last: bool) -> None:
        if self._alive() is None and self._must_wait() and not last:
            raise TransportError(self._why)

    def _must_wait(self) -> bool:
        return self._backoff.must_wait(self._clock.boot())

    def _look_at_clock(self) -> None:
        """Notice a suspend, or that nobody asked for long: we may have been stopped."""
        now_s = self._clock.boot()
        asleep_s = now_s - self._clock.awake()
        slept = asleep_s - self._asleep_s > _SLEPT_S
        if slept or now_s - self._asked_s > _IDLE_S:
            self._doubted = True
            self._backoff = woken(self._backoff, now_s=now_s)
        self._asked_s, self._asleep_s = now_s, asleep_s


async def _usual_session(
    run: Callable[[str], Awaitable[Channel]], *, limit_s: float
) -> Session:
    opening = import_module(f"{__package__}.opening")
    session: Session = await opening.open_session(run, limit_s=limit_s)
    return session


async def _say_goodbye(link: "Link", session: Session) -> None:
    """Close both; what does not answer is let go without a word."""
    try:
        async with asyncio.timeout(_CLOSE_LIMIT_S):
            await session.close()
            await link.close()
    except (TimeoutError, TransportError):
        return
    finally:
        link.abort()


async def _closed(session: Session) -> None:
    """Let a session give back what it holds here; its host hears nothing any more."""
    try:
        async with asyncio.timeout(_CLOSE_LIMIT_S):
            await session.close()
    except (TimeoutError, TransportError):
        return


def _take_note(attempt: "asyncio.Task[Session]") -> None:
    """Look at how it ended, since perhaps nobody waits for it any more."""
    if not attempt.cancelled():
        attempt.exception()
