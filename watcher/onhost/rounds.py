"""Many looks at once, none of which can hold the others up for ever."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import threading
import time
from typing import Any

from watcher.onhost import answer, at_home

LIMIT_S = 4.0
"""A look that takes longer has not come back: a dead mount, a frozen process."""

STEP_S = 0.25
"""After so long without an answer, those that wait are given more threads."""

_WORKERS = 8
_MOST_THREADS = 64  # looks that hang for ever included

_LATE = {"error": {"errno": "ETIMEDOUT", "text": "the look did not come back"}}


class Looks:
    """What reads, on threads; `fd` becomes readable when there is something to see.

    A look that hangs keeps its thread, and is not taken again before it has come back.
    """

    def __init__(self) -> None:
        """Start no thread yet."""
        self.fd, self._wake_fd = os.pipe()
        os.set_blocking(self._wake_fd, False)
        self._out: set[str] = set()
        self._threads = 0
        self._lock = threading.Lock()

    def begin(self, requests: list[dict[str, Any]]) -> Round:
        """Let a round of looks begin."""
        return Round(self, requests)

    def heard(self) -> None:
        """Take note of what made `fd` readable."""
        os.read(self.fd, 4096)

    def close(self) -> None:
        """Give the descriptors back; looks that hang no longer have a say."""
        with self._lock:
            os.close(self.fd)
            os.close(self._wake_fd)
            self._wake_fd = -1

    def run(self, work: Round, count: int) -> None:
        """Start threads that take looks, as far as there may be more."""
        for _ in range(count):
            with self._lock:
                if self._threads >= _MOST_THREADS:
                    return
                self._threads += 1
            try:
                threading.Thread(target=self._work, args=(work,), daemon=True).start()
            except RuntimeError:  # this user may have no more
                self._ended()
                return

    def is_out(self, key: str) -> bool:
        """Say whether this look has not come back from an earlier round."""
        with self._lock:
            return key in self._out

    def _work(self, work: Round) -> None:
        while (taken := work.take()) is not None:
            number, request, key = taken
            with self._lock:
                self._out.add(key)
            found = answer(at_home(request, os.path.expanduser("~")))
            with self._lock:
                self._out.discard(key)
            work.put(number, found)
            self._wake()
        self._ended()

    def _ended(self) -> None:
        with self._lock:
            self._threads -= 1

    def _wake(self) -> None:
        with self._lock:
            if self._wake_fd >= 0:
                with contextlib.suppress(BlockingIOError):  # readable as it is
                    os.write(self._wake_fd, b".")


class Round:
    """The looks of one round."""

    def __init__(self, looks: Looks, requests: list[dict[str, Any]]) -> None:
        """Begin all but those that are still out."""
        self._looks = looks
        self._requests = requests
        self._answers: list[dict[str, Any] | None] = [None] * len(requests)
        self._waiting: collections.deque[tuple[int, str]] = collections.deque()
        for number, request in enumerate(requests):
            key = json.dumps(request, sort_keys=True)
            if looks.is_out(key):
                self._answers[number] = _LATE
            else:
                self._waiting.append((number, key))
        self._give_up_at = time.monotonic() + LIMIT_S
        self._seen = self._count()
        looks.run(self, min(_WORKERS, len(self._waiting)))

    def take(self) -> tuple[int, dict[str, Any], str] | None:
        """Return the next look, for the thread that calls."""
        try:
            number, key = self._waiting.popleft()
        except IndexError:
            return None
        return number, self._requests[number], key

    def put(self, number: int, found: dict[str, Any]) -> None:
        """Keep an answer."""
        self._answers[number] = found

    def over(self) -> bool:
        """Say whether all is answered, or late."""
        return None not in self._answers or time.monotonic() >= self._give_up_at

    def step(self) -> None:
        """Let others look, where all who do are held up."""
        seen = self._count()
        if seen == self._seen and self._waiting:
            self._looks.run(self, _WORKERS)
        self._seen = seen

    def answers(self) -> list[dict[str, Any]]:
        """Return all answers, and let none begin that has not yet."""
        self._waiting.clear()
        return [_LATE if found is None else found for found in self._answers]

    def _count(self) -> int:
        return len(self._answers) - self._answers.count(None)
