"""The waiters that one MCP client has armed, and what the service says of them.

A call that is repeated finds its waiter by the nonce that its arguments have in this
process (B154): an answer that was lost is given again, and nothing is armed twice.
Whatever blocks runs on a thread of its own that holds no exit up.
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar, cast

from policies.codec import outcome_of, phrase_of
from policies.model import Ending, Json, Outcome, Sight
from policies.wording import Phrase, phrase
from watcher.client import Client, NotThereError, start_service
from watcher.clock import SystemClock
from watcher.errors import ServiceError, UsageError
from watcher.offload import Worker

T = TypeVar("T")
Object = dict[str, object]
Progress = Callable[[float, float], Awaitable[None]]
"""Told how many seconds of how many a call has waited."""

FIRST_S: Final = 1.0
"""What is clear at arming is known by then."""

_RETRY_S = 60.0  # within it the same call again may be one whose answer was lost
_SLICE_S = 5.0  # between two signs of progress
_PAUSE_S = 0.05  # a service that is ending answers at once
_ANSWER_S = 10.0  # for an answer, behind the time that it was given


@dataclass(slots=True)
class Waiter:
    """One order of this process."""

    nonce: str = field(default_factory=lambda: os.urandom(12).hex())
    watch_id: str = ""
    number: int = 1
    notes: int = 0
    """How many the client has had."""
    told: bool = False
    """The client has had its outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What a call learns of a waiter."""

    outcome: Outcome | None
    deadline_s: float | None
    notes: tuple[Phrase, ...]


def stands(
    ending: Ending, *, told: bool, age_s: float, seen: Callable[[], Sight]
) -> bool:
    """Say whether the outcome of an order is the answer to the same order once more.

    A lost answer is given again; an order that is given anew is armed anew; and no
    release is reported that is over by now (C3.1).

    Args:
        ending: how it ended.
        told: the client has had that already.
        age_s: seconds since.
        seen: looks at the condition, now.
    """
    if ending in {Ending.RELEASED, Ending.ENDED}:
        return not (told and age_s > _RETRY_S) and seen() is Sight.RELEASED
    return not told


async def off(call: Callable[[], T]) -> T:
    """Return what a blocking call returns; given up, it holds nothing up."""
    worker = Worker("mcp")
    try:
        return await worker.call(call)
    finally:
        worker.close()


async def request(
    state: str,
    method: str,
    path: str,
    body: Mapping[str, object] | None = None,
    *,
    wait_s: float = 0.0,
) -> Json:
    """Ask the service, started where there is none or where it dies meanwhile.

    Raises:
        UsageError: it refuses and says why.
        NotThereError: it knows nothing of what is asked for.
        ServiceError: there is none to be had.
    """
    client, limit_s = Client(state), wait_s + _ANSWER_S

    def ask() -> Json:
        try:
            return client.request(method, path, body, limit_s=limit_s)[1]
        except NotThereError:
            raise
        except ServiceError:
            start_service(state, wait=True)
            return client.request(method, path, body, limit_s=limit_s)[1]

    return await off(ask)


async def watch_of(state: str, what: str) -> Object:
    """Return the watch object of an id, or of what is the beginning of one.

    Raises:
        UsageError: there is no such watch.
    """
    if not what.isalnum() or not what.isascii():
        raise UsageError(phrase("mcp_needs_watch"))
    try:
        answer = await request(state, "GET", f"/v1/watches/{what}")
    except NotThereError as error:
        raise UsageError(phrase("no_watch", id=what)) from error
    return {**cast("Mapping[str, object]", answer)}


async def news_of(
    state: str, waiter: Waiter, *, wait_s: float, knows_waiting: bool = True
) -> News:
    """Return what is new for a waiter, as soon as anything is, or after `wait_s`.

    Raises:
        UsageError: there is no such waiter.
    """
    path = (
        f"/v1/watches/{waiter.watch_id}/waiters/{waiter.number}"
        f"?after={waiter.notes}&wait_s={wait_s:g}"
        f"{'&knows=waiting' if knows_waiting else ''}"
    )
    try:
        answer = await request(state, "GET", path, wait_s=wait_s)
    except NotThereError as error:
        raise UsageError(phrase("no_watch", id=waiter.watch_id)) from error
    news = cast("Mapping[str, Json]", answer)
    notes = cast("list[Json]", news["notes"])
    waiter.notes += len(notes)
    outcome = cast("Mapping[str, Json] | None", news["outcome"])
    return News(
        outcome=None if outcome is None else outcome_of(outcome),
        deadline_s=cast("float | None", news["deadline_at"]),
        notes=tuple(note for note in map(phrase_of, notes) if note is not None),
    )


async def follow(
    state: str, waiter: Waiter, *, wait_s: float, progress: Progress
) -> News:
    """Wait for a waiter's outcome, and say on the way how far that is.

    Raises:
        UsageError: there is no such waiter.
        ServiceError: there is no service to be had.
    """
    clock = SystemClock()
    started_s, passed_s = clock.awake(), 0.0
    notes: tuple[Phrase, ...] = ()
    while True:
        slice_s = min(_SLICE_S, max(wait_s - passed_s, 0.0))
        news = await news_of(state, waiter, wait_s=slice_s)
        notes += news.notes
        passed_s = clock.awake() - started_s
        if news.outcome is not None or passed_s >= wait_s:
            return News(outcome=news.outcome, deadline_s=news.deadline_s, notes=notes)
        await progress(passed_s, wait_s)
        await clock.sleep(_PAUSE_S)
