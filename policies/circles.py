"""Circles: sessions that wait for each other's locks and can never go on (C3.8)."""

from collections import deque
from collections.abc import Iterable, Mapping

from policies.wording import Phrase, phrase

Wait = tuple[str, str]
"""A session and the lock that it waits for."""

Circle = tuple[Wait, ...]
"""Each session waits for a lock of the next one, the last for one of the first."""

_SHOWN = 6  # sessions of a circle that its line names


def find_circles(
    waits: Iterable[tuple[str | None, str]], holders: Mapping[str, str | None]
) -> list[Circle]:
    """Return the circles, each once, beginning with its smallest wait, in order.

    Every wait that is part of a circle is in one of those returned, namely in the
    shortest that it is part of: where circles overlap there may be too many to name
    them all. A circle that appears when waits are added holds one of the new waits.

    Args:
        waits: sessions and the locks that they wait for; a session may wait for many,
            and one that is not known makes no circle.
        holders: locks and the sessions that hold them, as far as they are known.
    """
    edges = _core(
        {
            (session, lock, holder)
            for session, lock in waits
            if session and (holder := holders.get(lock))
        }
    )
    ways: dict[str, list[tuple[str, str]]] = {}
    for session, lock, holder in sorted(edges):
        ways.setdefault(session, []).append((lock, holder))
    found: set[Circle] = set()
    done: set[Wait] = set()
    for session, lock, holder in sorted(edges):
        if (session, lock) in done:
            continue
        back = _shortest(ways, holder, session)
        if back is None:
            continue
        circle = ((session, lock), *back)
        found.add(_rotated(circle))
        if all(len(ways[name]) == 1 for name, _ in circle):
            done.update(circle)  # no other circle leads through these
    return sorted(found)


def circle_phrase(circle: Circle) -> Phrase:
    """Return the line of a circle: who waits for whose lock, and round again (C3.8)."""
    holders = [session for session, _ in (*circle[1:], circle[0])]
    steps = [
        phrase("circle_step", session=session, lock=lock, holder=holder)
        for (session, lock), holder in zip(circle, holders, strict=True)
    ]
    said: Phrase | str = f"… (+{len(steps) - _SHOWN})"
    if len(steps) <= _SHOWN:
        said = steps.pop()
    for step in reversed(steps[:_SHOWN]):
        said = phrase("circle_steps", first=step, rest=said)
    return phrase("circle", steps=said)


def _core(edges: set[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
    """Return the waits whose session is waited for, and whose holder waits, in turn.

    Whoever is left over by this stands in a circle or between two of them.
    """
    while True:
        waiting = {session for session, _, _ in edges}
        holding = {holder for _, _, holder in edges}
        both = waiting & holding
        kept = {edge for edge in edges if edge[0] in both and edge[2] in both}
        if len(kept) == len(edges):
            return kept
        edges = kept


def _shortest(
    ways: Mapping[str, list[tuple[str, str]]], start: str, goal: str
) -> Circle | None:
    """Return the waits that lead from one session to another, the fewest and first."""
    came: dict[str, Wait | None] = {start: None}
    queue = deque([start])
    while queue and goal not in came:
        session = queue.popleft()
        for lock, holder in ways[session]:
            if holder not in came:
                came[holder] = (session, lock)
                queue.append(holder)
    if goal not in came:
        return None
    path: list[Wait] = []
    while (step := came[goal]) is not None:
        path.append(step)
        goal = step[0]
    return tuple(reversed(path))


def _rotated(circle: Circle) -> Circle:
    first = circle.index(min(circle))
    return circle[first:] + circle[:first]
