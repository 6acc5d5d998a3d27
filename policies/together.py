"""From what was seen of several conditions to what that means for one who waits (C3.6).

A member that could not be seen never counts, for neither side.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from policies.model import Json, Observation, Sight
from policies.wording import Phrase, phrase

AGAIN_S = 0.25
"""When one member came back and another cleared: the new one's second look."""

_NAMED = 3  # members that a line names


class Need(StrEnum):
    """How many of the members must be clear."""

    ANY = "any"
    ALL = "all"


Seen: TypeAlias = Mapping[str, Observation]
"""Each member's observation, by the text of its target."""


def together(
    need: Need, seen: Seen, cleared_before: Collection[str], at: datetime
) -> Observation:
    """Return what the looks at all members come to.

    1. All: released when every member is, at the same look.
    2. Any: released when a member is. As a release counts when seen twice, the second
       look must see the same member clear: where another one has cleared meanwhile and
       the first has come back, it waits on, and looks again soon.
    3. Else held as long as a member is seen to be held; those that could not be seen
       are named.
    4. Else unknown; absent only where nothing that any member names was ever there.

    Args:
        need: any or all.
        seen: at least one.
        cleared_before: the members that the look before saw released.
        at: the time of the look.
    """
    clear = [text for text, one in seen.items() if one.sight is Sight.RELEASED]
    counting = clear
    if need is Need.ANY and not seen.keys().isdisjoint(cleared_before):
        counting = [text for text in clear if text in cleared_before]
    enough = len(clear) == len(seen) if need is Need.ALL else bool(counting)
    waits = [one.again_in_s for one in seen.values() if one.again_in_s is not None]
    if need is Need.ANY and clear and not counting:
        waits.append(AGAIN_S)
    found = Observation(
        sight=Sight.RELEASED,
        at=at,
        evidence={
            "means": "wait",
            "need": need,
            "members": {text: _evidence(one) for text, one in seen.items()},
        },
        memory={
            "members": {text: one.memory for text, one in seen.items()},
            "clear": clear,
        },
        again_in_s=min(waits, default=None),
    )
    if enough:
        remarks = _decided(need, {text: seen[text] for text in counting})
        return replace(found, remarks=tuple(remarks), notes=tuple(_notes(seen, ())))
    return _not_enough(found, seen)


def _not_enough(found: Observation, seen: Seen) -> Observation:
    """Return that it goes on: held where a member is, else unknown by the first."""
    unseen = [text for text, one in seen.items() if one.sight is Sight.UNKNOWN]
    held = [text for text, one in seen.items() if one.sight is Sight.HELD]
    if held:
        names = _listed([phrase("said", text=text) for text in held])
        holding = phrase("held_by", targets=names)
        remarks = [*_remarks(seen), *(_not_seen(text, seen[text]) for text in unseen)]
        if len(held) < len(seen):
            remarks.insert(0, holding)
        return replace(
            found,
            sight=Sight.HELD,
            reason=holding,
            notes=tuple(_notes(seen, unseen)),
            remarks=tuple(remarks),
        )
    # What merely is not there yet explains less than what could not be seen.
    first, *others = sorted(unseen, key=lambda text: seen[text].absent)
    return replace(
        found,
        sight=Sight.UNKNOWN,
        absent=all(one.absent for one in seen.values()),
        reason=_of_member(first, _reason(seen[first])),
        notes=tuple(_notes(seen, others)),
        remarks=tuple(_remarks(seen)),
    )


def _evidence(one: Observation) -> Mapping[str, Json]:
    return {"sight": one.sight, "result": one.result, **one.evidence}


def _reason(one: Observation) -> Phrase:
    return one.reason or phrase("said", text="?")


def _notes(seen: Seen, unseen: Iterable[str]) -> Iterable[Phrase]:
    """Give what a person must know: each member's notes, and why it is not seen."""
    for text, one in seen.items():
        yield from (_of_member(text, note) for note in one.notes)
    for text in unseen:
        yield phrase("cannot_see", label=text, reason=_reason(seen[text]))


def _decided(need: Need, counting: Seen) -> Iterable[Phrase]:
    """Give what closes the line: what decided, and how work ended where that is known.

    Of all, only those are named that have more to say than that they are clear.
    """
    named = [
        _named(text, one)
        for text, one in counting.items()
        if need is Need.ANY or one.result is not None
    ]
    if named:
        yield phrase("decided_by", targets=_listed(named))
    yield from _remarks(counting)


def _remarks(seen: Seen) -> Iterable[Phrase]:
    for text, one in seen.items():
        yield from (_of_member(text, remark) for remark in one.remarks)


def _named(text: str, one: Observation) -> Phrase:
    if one.result is None:
        return phrase("said", text=text)
    if one.decided is None:
        return phrase("with_result", target=text, result=one.result)
    return phrase("with_decided", target=text, result=one.result, decided=one.decided)


def _listed(names: Sequence[Phrase]) -> Phrase:
    first, *others = names[:_NAMED]
    for name in others:
        first = phrase("listed", first=first, rest=name)
    left = len(names) - _NAMED
    return first if left <= 0 else phrase("and_more", first=first, count=left)


def _not_seen(text: str, one: Observation) -> Phrase:
    return phrase("not_seen", label=text, reason=_reason(one))


def _of_member(text: str, what: Phrase) -> Phrase:
    return phrase("of_member", target=text, what=what)
