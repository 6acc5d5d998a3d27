"""A stored watch that can no longer be looked at, after a change of settings."""

from collections.abc import Sequence
from datetime import datetime

from policies.model import Memory, Observation, Target
from policies.sight import unknown
from policies.wording import Phrase
from watcher.conditions import Hint


class Unwatchable:
    """Unknown until its deadline: not to be seen is no release."""

    settle = False
    group = "unwatchable"

    def __init__(
        self, kind: str, text: str, label: str, host: str | None, why: Phrase
    ) -> None:
        """Keep why it cannot be looked at."""
        self.target = Target(kind=kind, text=text, label=label, host=host)
        self._why = why

    def looker(self) -> None:
        """Let a thread take the looks."""

    def joined(self, launcher: int) -> None:
        """Whoever waits makes no difference."""

    def refusal(self) -> Phrase | None:
        """Return why it cannot be watched."""
        return self._why

    def look(self, memory: Memory, at: datetime) -> Observation:
        """Return that it cannot be seen."""
        return unknown(memory, at, self._why, {})

    def unchanged(self, memory: Memory) -> bool:  # noqa: ARG002
        """Never."""
        return False

    def hung(self, memory: Memory, at: datetime) -> Observation:
        """Return that it cannot be seen."""
        return self.look(memory, at)

    def hints(self) -> Sequence[Hint]:
        """Nothing will tell."""
        return ()

    def close(self) -> None:
        """Nothing to give back."""
