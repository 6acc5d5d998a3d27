"""The kinds of condition: one file each, named by the user's word for it."""

import argparse
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import Final, Protocol, cast

from policies.model import Memory, Observation, Target
from policies.wording import Phrase
from watcher.config import Config

KINDS: Final[dict[str, str]] = {
    "lock": "watcher.conditions.lock",
    "process": "watcher.conditions.process",
}
"""Kind to the module that looks; imported when one is armed."""


@dataclass(frozen=True, slots=True)
class DirectoryHint:
    """Look when the entry `name` of a directory changes, or the directory itself."""

    directory: str
    name: str


@dataclass(frozen=True, slots=True)
class ReadableHint:
    """Look when a descriptor becomes readable.

    The condition owns it and may close it at any moment; `about` tells what it was
    from what takes its number afterwards.
    """

    fd: int
    about: Hashable


Hint = DirectoryHint | ReadableHint


class Condition(Protocol):
    """What is waited for. Its looks block, so they are taken on a thread."""

    target: Target
    settle: bool
    """A release must last for the settle time before it is believed (C3.2)."""

    @property
    def group(self) -> str:
        """Conditions of one group share a thread: when one hangs, all of them do."""
        ...

    def joined(self, launcher: int) -> None:
        """One more command waits for this; `launcher` is its PID."""
        ...

    def refusal(self) -> Phrase | None:
        """Return why this cannot be watched at all, if so; blocks, asked once."""
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

    def hung(self, memory: Memory, at: datetime) -> Observation:
        """Return what it means that a look did not come back: unknown, and why."""
        ...

    def hints(self) -> Sequence[Hint]:
        """Return what should make us look at once; valid after a look."""
        ...

    def close(self) -> None:
        """Give back descriptors; called where the looks are taken."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a target was written, which its relative parts depend on.

    Attributes:
        launcher: PID of the command that waits.
    """

    config: Config
    cwd: str
    launcher: int


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
    """Return the module of a kind.

    Raises:
        KeyError: there is no such kind.
    """
    return cast("Kind", import_module(KINDS[name]))
