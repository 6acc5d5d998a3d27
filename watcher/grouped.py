"""Looks at several conditions at the same time (C3.6).

Each is looked at as if it were watched alone: on a thread of its own, or by its host,
which is asked once for all that are there. One that hangs or fails holds up no other.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import cast

from policies.model import Memory, Observation, Sight, Target
from policies.sight import unknown
from policies.together import Need, together
from policies.wording import Phrase, phrase
from watcher.conditions import Condition, Hint, Look, Looker
from watcher.engine import LOOK_LIMIT_S
from watcher.looking import OnThread, given_up, look_failed
from watcher.offload import HungError

_MARGIN_S = 0.5  # what is left to the whole when a member has used up its time
_GRACE_S = 0.5  # for the other members, once one has decided
_REFUSAL_S = 1.0  # for a member here to say that it cannot be watched


class Grouped:
    """Several conditions, of which any or all must clear."""

    def __init__(
        self, target: Target, need: Need, members: Sequence[Condition]
    ) -> None:
        """Look at nothing yet."""
        self.target = target
        self.settle = any(member.settle for member in members)
        self.group = target.text
        self._need = need
        self._members = members
        self._lookers: Lookers | None = None

    def looker(self) -> Looker:
        """Return what takes the looks at all members."""
        self._lookers = Lookers(self._members)
        return Together(self, self._lookers)

    def joined(self, launcher: int) -> None:
        """Tell every member."""
        for member in self._members:
            member.joined(launcher)

    def looks(self, look: Look) -> list[Look]:
        """Return the look at each member; whole ones, since all are weighed anew."""
        memories = _mapping(look.memory.get("members"))
        return [
            Look(member, _mapping(memories.get(member.target.text)), last=look.last)
            for member in self._members
        ]

    def weigh(
        self, memory: Memory, seen: Mapping[str, Observation], at: datetime
    ) -> Observation:
        """Return what the looks at all members come to."""
        clear = memory.get("clear")
        before = [str(text) for text in clear] if isinstance(clear, list) else []
        return together(self._need, seen, before, at)

    def decided_by(self, seen: Iterable[Observation]) -> bool:
        """Say whether some of the members are enough, whatever the others are."""
        return self._need is Need.ANY and any(
            one.sight is Sight.RELEASED for one in seen
        )

    def hung(self, memory: Memory, at: datetime) -> Observation:
        """Say that not even the whole came back."""
        reason = phrase("hung", what=self.target.text)
        return unknown(memory, at, reason, {"means": "wait", "hung": True})

    def hints(self) -> Sequence[Hint]:
        """Return what should make us look at once, of any member."""
        return [hint for member in self._members for hint in member.hints()]

    def close(self) -> None:
        """Give back what the members hold, each where its looks are taken."""
        for member in self._members:
            if self._lookers is None or self._lookers.closed:
                member.close()
            else:
                self._lookers.of(member).later(member.close)


class Lookers:
    """What takes the looks at the members: a thread each, or their host."""

    def __init__(self, members: Sequence[Condition]) -> None:
        """Start nothing yet; conditions of one host share what asks it."""
        self.closed = False
        self._shared: dict[str, Looker] = {}
        self._seats: dict[str, tuple[str, Looker]] = {}
        for member in members:
            self._seat(member)

    def of(self, member: Condition) -> Looker:
        """Return a member's; a new one where it gave up a thread that hangs."""
        group, looker = self._seats[member.target.text]
        if group == member.group:
            return looker
        if looker not in self._shared.values():
            looker.close()
        return self._seat(member)

    def all(self) -> Sequence[Looker]:
        """Return them, each once."""
        return list(dict.fromkeys(looker for _, looker in self._seats.values()))

    def close(self) -> None:
        """Let go of all."""
        self.closed = True
        for looker in self.all():
            looker.close()

    def _seat(self, member: Condition) -> Looker:
        text, group = member.target.text, member.group
        looker = self._shared.get(group) or member.looker()
        if looker is None:
            looker = OnThread(f"look {text}")
        else:
            self._shared[group] = looker
        self._seats[text] = group, looker
        return looker


class Together:
    """Takes the looks at all members of a condition at the same time."""

    def __init__(self, whole: Grouped, lookers: Lookers) -> None:
        """Take none yet."""
        self._whole = whole
        self._lookers = lookers
        longest_s = max(looker.last_limit_s for looker in lookers.all())
        self.last_limit_s = longest_s + _MARGIN_S

    async def refusal(self, condition: Condition) -> Phrase | None:  # noqa: ARG002
        """Return why a member cannot be watched at all, if so; the first one's."""
        looks = self._whole.looks(Look(self._whole, {}))
        asked = [self._refusal(look.condition) for look in looks]
        refusals = await asyncio.gather(*asked)
        return next((why for why in refusals if why is not None), None)

    async def _refusal(self, member: Condition) -> Phrase | None:
        looker = self._lookers.of(member)
        limit_s = _REFUSAL_S if isinstance(looker, OnThread) else LOOK_LIMIT_S
        try:
            async with asyncio.timeout(limit_s):
                why = await looker.refusal(member)
        except (TimeoutError, HungError):
            return None  # the first look will hang likewise, and be unknown
        if why is None:
            return None
        return phrase("of_member", target=member.target.text, what=why)

    async def take(
        self, looks: Sequence[Look], at: datetime
    ) -> Sequence[Observation | None]:
        """Return what the members' looks come to; never by a member's failure."""
        return [await self._take(look, at) for look in looks]

    async def _take(self, look: Look, at: datetime) -> Observation:
        by_looker: dict[Looker, list[Look]] = {}
        looks = self._whole.looks(look)
        for one in looks:
            by_looker.setdefault(self._lookers.of(one.condition), []).append(one)
        seen = await self._seen(by_looker, at)
        whole = {
            one.condition.target.text: seen.get(one.condition.target.text)
            or given_up(one, at)
            for one in looks
        }
        return self._whole.weigh(look.memory, whole, at)

    async def _seen(
        self, by_looker: Mapping[Looker, Sequence[Look]], at: datetime
    ) -> dict[str, Observation]:
        """Return what came back: once some of it is enough, the rest gets little time.

        What did not come back then is given up, like any look that takes too long.
        """
        tasks = {
            asyncio.create_task(_round(looker, looks, at))
            for looker, looks in by_looker.items()
        }
        seen: dict[str, Observation] = {}
        out, limit_s = tasks, None
        try:
            while out:
                done, out = await asyncio.wait(
                    out, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    break
                for task in done:
                    seen |= task.result()
                limit_s = _GRACE_S if self._whole.decided_by(seen.values()) else None
        finally:
            for task in tasks:
                task.cancel()
        return seen

    def later(self, last: Callable[[], None]) -> None:
        """Do it at once: what it closes is closed where the looks are taken."""
        last()

    def close(self) -> None:
        """Let go of all that takes looks."""
        self._lookers.close()


async def _round(
    looker: Looker, looks: Sequence[Look], at: datetime
) -> dict[str, Observation]:
    """Return what some members' looks saw, within a limit below that of the whole."""
    last = any(look.last for look in looks)
    limit_s = looker.last_limit_s if last else LOOK_LIMIT_S - _MARGIN_S
    seen: Sequence[Observation | None] = ()
    try:
        async with asyncio.timeout(limit_s):
            seen = await looker.take(looks, at)
    except (TimeoutError, HungError):
        pass  # given up, as is whatever does not come back
    except Exception as error:  # noqa: BLE001 - one must not cost the others their look
        seen = [look_failed(one.condition, one.memory, at, error) for one in looks]
    return {
        look.condition.target.text: found
        for look, found in zip(looks, seen, strict=False)
        if found is not None
    }


def _mapping(value: object) -> Memory:
    return cast("Memory", value) if isinstance(value, Mapping) else {}
