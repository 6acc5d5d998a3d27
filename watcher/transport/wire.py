"""A channel that is read all the time, so that neither side can block the other."""

import asyncio
import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from policies.wording import Phrase, phrase
from watcher.errors import TransportError
from watcher.transport.session import Channel

_PIECE = 65536
_CLOSE_S = 2.0
_log = logging.getLogger(__name__)

T = TypeVar("T")


class Wire(Generic[T]):
    """One channel, its reader, and who waits for something that it will bring.

    Once it is lost it stays lost, and whoever waits or asks later is told why.
    """

    def __init__(self, channel: Channel, feed: Callable[[bytes], None]) -> None:
        """Begin to read.

        Args:
            channel: is closed together with this.
            feed: takes what has come; a ValueError means that it is no answer.
        """
        self._channel = channel
        self._feed = feed
        self._why: Phrase | None = None
        self._awaited: asyncio.Future[T] | None = None
        self._writing = asyncio.Lock()
        self._reader = asyncio.get_running_loop().create_task(self._read())

    @property
    def lost(self) -> bool:
        """Say whether it has ended."""
        return self._why is not None

    def lose(self, why: Phrase) -> None:
        """Be of no more use."""
        self._why = self._why or why
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_exception(TransportError(self._why))

    async def send(self, data: bytes) -> None:
        """Hand bytes over, whole or never again.

        Raises:
            TransportError: it is lost.
        """
        async with self._writing:
            self._check()
            try:
                await self._channel.write(data)
            except TransportError as error:
                self.lose(error.phrase)
                raise
            except BaseException:
                self.lose(phrase("session_ended"))  # half of it may be out
                raise

    async def exchange(
        self,
        data: bytes,
        limit_s: float,
        part: Callable[[], T | None] = lambda: None,
    ) -> T:
        """Send, and return what `bring` is given for it; one caller at a time.

        Args:
            data: what to send.
            limit_s: of all this.
            part: says what there is when the whole has not come in time.

        Raises:
            TransportError: it is lost, or nothing came in time.
        """
        self._check()
        self._awaited = asyncio.get_running_loop().create_future()
        self._awaited.add_done_callback(_seen)
        try:
            async with asyncio.timeout(limit_s):
                await self.send(data)
                return await self._awaited
        except TimeoutError as error:
            found = None if self.lost else part()
            if found is not None:
                return found
            why = phrase("session_silent", limit_s=round(limit_s))
            self.lose(why)
            raise TransportError(why) from error
        finally:
            self._awaited.cancel()
            self._awaited = None

    def bring(self, what: T) -> None:
        """Give it to whoever waits; nobody may any more."""
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(what)

    async def read_on(self, limit_s: float) -> None:
        """Wait for the end of what the far side has said."""
        await asyncio.wait([self._reader], timeout=limit_s)

    async def close(self) -> None:
        """End the program and the reading."""
        self.lose(phrase("session_ended"))
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self._channel.close()
        except (TimeoutError, TransportError):
            _log.info("session.close_failed")  # gone with its connection, then
        finally:
            self._reader.cancel()
            await asyncio.wait([self._reader])

    def _check(self) -> None:
        if self._why is not None:
            raise TransportError(self._why)

    async def _read(self) -> None:
        try:
            while data := await self._channel.read(_PIECE):
                self._feed(data)
            self.lose(phrase("session_ended"))
        except TransportError as error:
            self.lose(error.phrase)
        except ValueError:
            self.lose(phrase("session_garbled"))
        except Exception:  # noqa: BLE001 - its trace is logged, the session is lost
            _log.exception("session.reader_failed")
            self.lose(phrase("session_garbled"))


def _seen(future: asyncio.Future[T]) -> None:
    """Let asyncio know that a loss is told by other ways too."""
    if not future.cancelled():
        future.exception()
