"""How other machines are reached: one connection a host, for all its watches (C4.4)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

from policies.model import Json
from policies.wording import Phrase

Request: TypeAlias = Mapping[str, Json]
"""What a host is asked: `op` names a part of `watcher.onhost`, the rest is its own."""

Answer: TypeAlias = Mapping[str, Json]
"""What it answered: see the module; `error` where it could not look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """All answers of one round, in the order of the requests.

    Attributes:
        about: of the host itself: `boot_id`, `pid_namespace`, `means` ("agent", "sh").
    """

    answers: Sequence[Answer]
    about: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostState:
    """What there is to say about a host.

    Attributes:
        reached_at: when it answered last.
        silent_since: of the failures in a row, when the first was; None if it answers.
        last_error: why it gave no answer.
        means: by what it answers: "agent" or "sh".
    """

    name: str
    reached_at: datetime | None = None
    silent_since: datetime | None = None
    last_error: Phrase | None = None
    means: str = ""


class Host(Protocol):
    """One machine that is reached over the network; lives on the event loop."""

    name: str

    async def reach(self) -> Phrase | None:
        """Return why it can never be used as it stands: a refused key, for instance.

        None also where it is merely out of reach: that may change (C7.1).
        """
        ...

    async def ask(self, requests: Sequence[Request], *, last: bool = False) -> Reply:
        """Ask everything at once and return the answers.

        Args:
            requests: what to look at.
            last: a deadline has come: try now, whatever the back-off says.

        Raises:
            TransportError: it gave no whole answer; nothing is known of what is there.
        """
        ...

    async def anew(self) -> None:
        """Log out, so that the next question comes over another connection."""
        ...

    def follow(
        self, pid: int, start: int, wake: Callable[[], None]
    ) -> Callable[[], None]:
        """Call `wake` once the process ends, where the host can tell; a hint only.

        Returns:
            What ends that.
        """
        ...


class Hosts(Protocol):
    """The hosts of one service or command; builds them as they are named."""

    def of(self, name: str) -> Host:
        """Return the one host of a name; does not reach for it yet."""
        ...

    def states(self) -> Sequence[HostState]:
        """Return what there is to say about each that was named, by their names."""
        ...

    async def close(self) -> None:
        """Close all connections, within a limit."""
        ...
