"""The kinds of condition: one file each, named by the user's word for it."""

import argparse
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, cast

from policies.clock import Clock
from policies.model import Memory, Observation, Target
from policies.target import is_host
from policies.wording import Phrase, phrase
from watcher.clock import SystemClock
from watcher.config import Config
from watcher.errors import UsageError

if TYPE_CHECKING:
    from watcher.transport import Hosts

KINDS: Final[dict[str, str]] = {
    "lock": "watcher.conditions.lock",
    "process": "watcher.conditions.process",
    "port": "watcher.conditions.port",
    "file": "watcher.conditions.file",
    "command": "watcher.conditions.command",
    "http": "watcher.conditions.http",
    "wait": "watcher.conditions.group",
    "log": "watcher.conditions.log",
}
"""Kind to the module that looks; imported when one is armed."""


@dataclass(frozen=True, slots=True)
class DirectoryHint:
    """Look when the entry `name` of a directory changes, or the directory itself."""

    directory: str
    name: str


@dataclass(frozen=True, slots=True)
class FileHint:
    """Look when a file is written to; some five times a second at most.

    Attributes:
        path: absolute; that of a descriptor in `/proc` follows a file that is renamed.
        inode, size: those that the look saw; where they are others by now, something
            has happened already.
    """

    path: str
    inode: int
    size: int


@dataclass(frozen=True, slots=True)
class ReadableHint:
    """Look when a descriptor becomes readable.

    The condition owns it and may close it at any moment; `about` tells what it was
    from what takes its number afterwards.
    """

    fd: int
    about: Hashable


@dataclass(frozen=True, slots=True)
class CallHint:
    """Look when somebody calls: the end of a process on a host, for instance.

    Attributes:
        subscribe: takes what is to be called, on the event loop, and returns what ends
            that.
        about: tells one from another.
    """

    subscribe: Callable[[Callable[[], None]], Callable[[], None]]
    about: Hashable


Hint = DirectoryHint | FileHint | ReadableHint | CallHint


@dataclass(frozen=True, slots=True)
class Look:
    """One look that is due.

    Attributes:
        quick: it was held: ask only whether it is unchanged.
        last: the deadline has come.
    """

    condition: "Condition"
    memory: Memory
    quick: bool = False
    last: bool = False


class Looker(Protocol):
    """Takes the looks of the conditions of one group, together."""

    last_limit_s: float
    """What it gets at a deadline, when nobody should wait much longer."""

    async def refusal(self, condition: "Condition") -> Phrase | None:
        """Return why a condition cannot be watched at all, if so."""
        ...

    async def take(
        self, looks: Sequence[Look], at: datetime
    ) -> Sequence[Observation | None]:
        """Return what each look saw, None for what is held as before.

        Cancelled when it takes too long; then each is `hung`.
        """
        ...

    def later(self, last: Callable[[], None]) -> None:
        """Give back what looks have opened, once none is out; never waits for it."""
        ...

    def close(self) -> None:
        """Let go of what takes the looks; never waits for it."""
        ...


class Condition(Protocol):
    """What is waited for."""

    target: Target
    settle: bool
    """A release must last for the settle time before it is believed (C3.2)."""

    @property
    def group(self) -> str:
        """Looks of one group are taken together: when one hangs, all of them do."""
        ...

    def looker(self) -> Looker | None:
        """Return what takes the looks of a new group; None for a thread of its own."""
        ...

    def joined(self, launcher: int) -> None:
        """One more command waits for this; `launcher` is its PID."""
        ...

    def hung(self, memory: Memory, at: datetime) -> Observation:
        """Return what it means that a look did not come back: unknown, and why."""
        ...

    def hints(self) -> Sequence[Hint]:
        """Return what should make us look at once; valid after a look."""
        ...

    def close(self) -> None:
        """Give back descriptors; called where the looks are taken."""
        ...


class LocalCondition(Condition, Protocol):
    """A condition of this machine. Its looks block, so they are taken on a thread."""

    def refusal(self) -> Phrase | None:
        """Return why this cannot be watched at all, if so; asked once."""
        ...

    def look(self, memory: Memory, at: datetime) -> Observation:
        """Take one look; `memory` is that of the observation before, or empty.

        Whatever keeps it from seeing is an observation too, never an exception.
        """
        ...

    def unchanged(self, memory: Memory) -> bool:
        """Say cheaply whether it is still held just as the look before saw it.

        False is always a right answer: then a whole look follows.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a target was written, which its relative parts depend on.

    Attributes:
        launcher: PID of the command that waits.
        hosts: how other machines are reached; None where only the text of a target is
            wanted.
    """

    config: Config
    cwd: str
    launcher: int
    clock: Clock = field(default_factory=SystemClock)
    hosts: "Hosts | None" = None


class Kind(Protocol):
    """A module of this package."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Add what a condition of this kind is named by."""

    @staticmethod
    def target_of(options: argparse.Namespace, place: Place) -> Target:
        """Return the canonical target.

        Raises:
            UsageError: it names nothing that can be watched.
        """

    @staticmethod
    def build(options: argparse.Namespace, place: Place) -> Condition:
        """Return the condition that looks; the errors are those of `target_of`."""


def kind_of(name: str) -> Kind:
    """Return what a kind is made by: a module of ours, or of another distribution.

    Others are asked for only where we have none of this name: to find them costs more
    than to start.

    Raises:
        KeyError: there is no such kind.
        UsageError: there is one, of somebody else, that does not work.
    """
    if name in KINDS:
        return cast("Kind", import_module(KINDS[name]))
    from watcher.foreign import foreign_kind  # noqa: PLC0415 - see above

    return cast("Kind", foreign_kind(name))


def kind_names() -> list[str]:
    """Return the names of all kinds, those of other distributions last."""
    from watcher.foreign import foreign_names  # noqa: PLC0415 - as above

    return [*KINDS, *(name for name in foreign_names() if name not in KINDS)]


def add_host(parser: argparse.ArgumentParser) -> None:
    """Add where the thing is."""
    parser.add_argument(
        "--host", metavar="HOST", help="look there, over ssh: an alias, user@host:port"
    )


def host_of(options: argparse.Namespace) -> str | None:
    """Return the host that is named, None for this machine.

    Raises:
        UsageError: it can be none, or could be an option of ssh (C7.1).
    """
    host: str | None = options.host
    if host is not None and not is_host(host):
        raise UsageError(phrase("bad_host", host=host))
    return host
