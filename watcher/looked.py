"""Conditions made of a part of `watcher.onhost`: the same looks here and on a host.

What a part reads on the thread of a group here, a host reads when it is asked; what it
means is judged on this side both times, by the same function.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, cast

from policies.clock import Clock
from policies.model import Json, Memory, Observation, Result, Sight, Target
from policies.sight import unknown
from policies.wording import TEXTS, Phrase, phrase
from watcher.conditions import CallHint, Condition, Hint, Look, Looker, Place
from watcher.errors import TransportError
from watcher.looking import OnThread, look_failed
from watcher.onhost import answer
from watcher.onhost.table import about_us, line_of
from watcher.transport import Answer, Host, Reply, Request

Spec = Mapping[str, Json]
"""What a target names, for its part."""


class Part(Protocol):
    """A module of `watcher.onhost`, which says what the values look like, or alike."""

    def ask(self, spec: Spec, memory: Memory) -> list[Request]:
        """Return what to read."""

    def judge(
        self,
        spec: Spec,
        memory: Memory,
        answers: Sequence[Answer],
        now: Mapping[str, float],
    ) -> Mapping[str, Json]:
        """Return what was seen."""

    def follows(self, spec: Spec, memory: Memory) -> list[list[int]]:
        """Return the processes whose end is a reason to look."""


class Reader(Protocol):
    """Reads for one condition here what a part's `read` would; keeps things open."""

    def read(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return what is asked for; may raise OSError, which becomes an answer."""

    def hints(self) -> Sequence[Hint]:
        """Return what should make us look at once; valid after a look."""

    def close(self) -> None:
        """Give back what is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What a kind hands over: what to look at, by which part, and how it is grouped.

    Attributes:
        settle: a release must last for the settle time before it is believed.
        group: of the looks that are taken here together.
        hints: what should make us look at once, here.
        last_limit_s: what a look gets at a deadline, here; None for no more than most.
        refuse: says why it cannot be watched here at all; asked once.
        readers: by the `op` of a request, what reads it here instead of its part.
    """

    target: Target
    part: Part
    spec: Spec
    settle: bool = False
    group: str = ""
    hints: Sequence[Hint] = ()
    last_limit_s: float | None = None
    refuse: Callable[[], Phrase | None] = field(default=lambda: None)
    readers: Mapping[str, Reader] = field(default_factory=dict)


def looked_at(what: Looked, place: Place) -> Condition:
    """Return the condition of a target, here or on its host."""
    if what.target.host is None:
        return Here(what, place.clock)
    if place.hosts is None:
        msg = "a place without hosts looks at none"
        raise ValueError(msg)
    there = There(what, place.clock, place.hosts.of(what.target.host))
    there.joined(place.launcher)
    return there


class Here:
    """Looked at on this machine."""

    def __init__(self, what: Looked, clock: Clock) -> None:
        """Look at nothing yet."""
        self.target = what.target
        self.settle = what.settle
        self.group = what.group or what.target.text
        self._what = what
        self._clock = clock

    def looker(self) -> Looker | None:
        """Let a thread take the looks; one with its own limit where that is named."""
        limit_s = self._what.last_limit_s
        if limit_s is None:
            return None
        return OnThread(f"look {self.group}", last_limit_s=limit_s)

    def joined(self, launcher: int) -> None:
        """Whoever waits makes no difference."""

    def refusal(self) -> Phrase | None:
        """Return why it cannot be watched at all, if so."""
        return self._what.refuse()

    def look(self, memory: Memory, at: datetime) -> Observation:
        """Read, and judge what was read."""
        what = self._what
        answers = [self._read(one) for one in what.part.ask(what.spec, memory)]
        now = {"up_s": self._clock.awake(), "at": at.timestamp()}
        return observation_of(what.part.judge(what.spec, memory, answers, now), at)

    def _read(self, request: Request) -> Answer:
        reader = self._what.readers.get(str(request["op"]))
        read = None if reader is None else reader.read
        return answer(dict(request), read)

    def unchanged(self, memory: Memory) -> bool:  # noqa: ARG002
        """Say no: a whole look costs little more."""
        return False

    def hung(self, memory: Memory, at: datetime) -> Observation:
        """Say that the look did not come back."""
        reason = phrase("hung", what=self.target.text)
        return unknown(memory, at, reason, {"means": "look", "hung": True})

    def hints(self) -> Sequence[Hint]:
        """Return what should make us look at once."""
        readers = self._what.readers.values()
        return [*self._what.hints, *(h for reader in readers for h in reader.hints())]

    def close(self) -> None:
        """Give back what the readers keep open."""
        for reader in self._what.readers.values():
            reader.close()


class There:
    """Looked at on a host."""

    def __init__(self, what: Looked, clock: Clock, host: Host) -> None:
        """Ask nothing yet."""
        self.target = what.target
        self.settle = what.settle
        self.group = f"host {host.name}"
        self._what = what
        self._clock = clock
        self._host = host
        self._memory: Memory = {}
        self._launchers: set[tuple[int, int]] = set()

    @property
    def looked(self) -> Looked:
        """What is looked at, and by which part: all that a detached watcher needs."""
        return self._what

    def looker(self) -> Looker:
        """Return what asks the host."""
        return AskHost(self._host)

    def joined(self, launcher: int) -> None:
        """Note who waits, with its ancestors: the host may be this very machine."""
        self._launchers.update(line_of(launcher))

    def requests(self, memory: Memory) -> list[Request]:
        """Return what the host is asked for a look."""
        return self._what.part.ask(self._what.spec, memory)

    def judge(self, memory: Memory, reply: Reply, at: datetime) -> Observation:
        """Return what the host's answers mean."""
        what = self._what
        now = {"up_s": self._clock.boot(), "at": at.timestamp()}
        spec = what.spec
        if self._launchers:  # the part sees whether it looked at this very machine
            line = [list(one) for one in sorted(self._launchers)]
            spec = {**spec, "launchers": {**about_us(), "line": line}}
        seen = what.part.judge(spec, memory, reply.answers, now)
        observation = observation_of(seen, at, host=self._host.name, about=reply.about)
        self._memory = observation.memory
        return observation

    def unreached(self, memory: Memory, at: datetime, why: Phrase) -> Observation:
        """Return what it means that the host gave no answer: unknown (C3.1)."""
        evidence: dict[str, Json] = {"means": "ssh", "host": self._host.name}
        return Observation(
            sight=Sight.UNKNOWN,
            at=at,
            reason=why,
            evidence=evidence,
            memory=memory,
            out_of_reach=True,
        )

    def hung(self, memory: Memory, at: datetime) -> Observation:
        """Say that the host did not answer in time."""
        return self.unreached(memory, at, phrase("host_silent", host=self._host.name))

    def hints(self) -> Sequence[Hint]:
        """Follow the ends of processes on the host."""
        ends = self._what.part.follows(self._what.spec, self._memory)
        return [self._end_of(pid, start) for pid, start in ends]

    def _end_of(self, pid: int, start: int) -> CallHint:
        host = self._host
        return CallHint(lambda wake: host.follow(pid, start, wake), (pid, start))

    def close(self) -> None:
        """Nothing to give back: the connection is the host's."""


class AskHost:
    """Asks a host once for all looks that are due: one request a round (C4.4)."""

    last_limit_s = 5.0

    def __init__(self, host: Host) -> None:
        """Ask nothing yet."""
        self._host = host

    async def refusal(self, condition: Condition) -> Phrase | None:  # noqa: ARG002
        """Return why the host can never be used as it stands, if so."""
        return await self._host.reach()

    async def take(
        self, looks: Sequence[Look], at: datetime
    ) -> Sequence[Observation | None]:
        """Ask for all looks together; the same request is asked once."""
        requests: list[Request] = []
        places: list[list[int]] = []
        faults: list[Observation | None] = []
        for look in looks:
            wanted, fault = _wanted(look, at)
            faults.append(fault)
            for request in wanted:
                if request not in requests:
                    requests.append(request)
            places.append([requests.index(request) for request in wanted])
        try:
            last = any(look.last for look in looks)
            reply = await self._host.ask(requests, last=last)
        except TransportError as error:
            why = error.phrase
            return [_there(look).unreached(look.memory, at, why) for look in looks]
        return [
            fault or _judged(look, reply, mine, at)
            for look, mine, fault in zip(looks, places, faults, strict=True)
        ]

    def later(self, last: Callable[[], None]) -> None:
        """Do it at once: conditions of hosts hold nothing."""
        last()

    def close(self) -> None:
        """Leave the connection to the host."""


def _there(look: Look) -> There:
    return cast("There", look.condition)


def _wanted(look: Look, at: datetime) -> tuple[list[Request], Observation | None]:
    """Return what a look asks for, or what it means that this cannot be said."""
    try:
        return _there(look).requests(look.memory), None
    except Exception as error:  # noqa: BLE001 - a fault of ours must not stop others
        return [], look_failed(look.condition, look.memory, at, error)


def _judged(look: Look, reply: Reply, mine: Sequence[int], at: datetime) -> Observation:
    try:
        answers = [reply.answers[number] for number in mine]
        own = Reply(answers=answers, about=reply.about)
        return _there(look).judge(look.memory, own, at)
    except Exception as error:  # noqa: BLE001 - a lying host is no release
        return look_failed(look.condition, look.memory, at, error)


_SIGHTS = {
    "held": Sight.HELD,
    "released": Sight.RELEASED,
    "unknown": Sight.UNKNOWN,
    "absent": Sight.UNKNOWN,
}


def observation_of(
    seen: Mapping[str, Json],
    at: datetime,
    *,
    host: str | None = None,
    about: Mapping[str, Json] | None = None,
) -> Observation:
    """Return the observation that a part's judgement means.

    Raises:
        KeyError, TypeError, ValueError: it is no judgement.
    """
    evidence = dict(cast("Mapping[str, Json]", seen["evidence"]))
    if host is not None:
        evidence |= {"host": host, **_reached_by(about or {})}
    result, again = seen.get("result"), seen.get("again_in_s")
    return Observation(
        sight=_SIGHTS[cast("str", seen["sight"])],
        at=at,
        absent=seen["sight"] == "absent",
        reason=_sentence(seen.get("reason")),
        evidence=evidence,
        memory=cast("Memory", seen["memory"]),
        notes=_sentences(seen.get("notes")),
        remarks=_sentences(seen.get("remarks")),
        result=Result(cast("str", result)) if result else None,
        decided=_sentence(seen.get("decided")),
        again_in_s=None if again is None else float(cast("float", again)),
    )


def _reached_by(about: Mapping[str, Json]) -> dict[str, Json]:
    """Return what evidence says of a host; by what it was seen there goes first."""
    return {("by" if name == "means" else name): text for name, text in about.items()}


def _sentence(value: Json) -> Phrase | None:
    if value is None:
        return None
    key, values = cast("Sequence[Json]", value)
    if key not in TEXTS:
        raise ValueError(key)
    return Phrase(str(key), dict(cast("Mapping[str, str | int]", values)))


def _sentences(value: Json) -> tuple[Phrase, ...]:
    items = cast("Sequence[Json]", value or ())
    found = (_sentence(item) for item in items)
    return tuple(item for item in found if item is not None)
