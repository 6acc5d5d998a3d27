"""What runs on a host behind one connection and answers a round after the other."""

from collections.abc import Callable, Sequence
from typing import Protocol

from watcher.transport import Reply, Request


class Channel(Protocol):
    """A program at work on the host, by its standard input and output."""

    async def write(self, data: bytes) -> None:
        """Hand bytes over.

        Raises:
            TransportError: the connection is lost.
        """
        ...

    async def read(self, most: int) -> bytes:
        """Return what has come, at most so many bytes; empty at its end.

        Raises:
            TransportError: the connection is lost.
        """
        ...

    async def close(self) -> None:
        """Let the program end; its standard input ends first."""
        ...


class Session(Protocol):
    """The far side of a host: the agent, or a POSIX shell where there is no Python."""

    async def ask(self, requests: Sequence[Request]) -> Reply:
        """Ask everything in one round.

        Raises:
            TransportError: there was no whole answer; the session is of no more use.
        """
        ...

    def follow(
        self, pid: int, start: int, wake: Callable[[], None]
    ) -> Callable[[], None]:
        """Call `wake` once the process ends, where this can tell.

        Returns:
            What ends that.
        """
        ...

    @property
    def lost(self) -> bool:
        """Say whether it has ended, by itself or with its connection."""
        ...

    async def close(self) -> None:
        """End what runs on the host."""
        ...
