"""The kinds of condition: one file each, named by the user's word for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from policies.model import Memory, Observation, Target

KINDS: Final[dict[str, str]] = {
    "lock": "watcher.conditions.lock",
    "process": "watcher.conditions.process",
}
"""Kind to the module that looks; imported when a watch of that kind is armed."""


@dataclass(frozen=True, slots=True)
class DirectoryHint:
    """Look when the entry `name` of a directory changes, or the directory itself."""

    directory: str
    name: str


@dataclass(frozen=True, slots=True)
class ReadableHint:
    """Look when a descriptor, which the condition owns, becomes readable."""

    fd: int


Hint = DirectoryHint | ReadableHint


class Condition(Protocol):
    """What is waited for."""

    target: Target
    settle: bool
    """A release must last for the settle time before it is believed (C3.2)."""

    async def admit(self) -> None:
        """Look whether this can be watched at all; once, before the first probe.

        Raises:
            UsageError: it cannot; the sentence says what to do.
        """
        ...

    async def probe(self, memory: Memory) -> Observation:
        """Take one look; `memory` is that of the observation before, or empty.

        Whatever keeps it from seeing is an observation too, never an exception.
        """
        ...

    def hints(self) -> Sequence[Hint]:
        """Return what should make us look at once; valid after a probe."""
        ...

    def close(self) -> None:
        """Give back descriptors and threads."""
        ...
