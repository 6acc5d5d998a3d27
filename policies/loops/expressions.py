"""What is waited for as an expression of looks: all of these, one of those."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

from policies.loops.around import HERE, Around
from policies.loops.record import record
from policies.loops.tree import (
    Node,
    Word,
)
from policies.loops.words import Scope


@record
class Test(Node):
    """One comparison of `[ ... ]`, `test ...` or `[[ ... ]]`."""

    operator: str
    left: Word | None
    right: Word
    double: bool


@record
class Match(Node):
    """The output of a command or a variable against the patterns of `case`."""

    word: Word
    patterns: tuple[Word, ...]


@dataclass(eq=False, repr=False)
class Always:
    """A condition that needs no look."""

    true: bool


@dataclass(eq=False, repr=False)
class Limit:
    """A counter or a clock that ends the loop.

    Attributes:
        turns: it allows; zero where that is not known.
        seconds: it allows.
    """

    turns: int = 0
    seconds: int = 0


@dataclass(eq=False, repr=False)
class Leaf:
    """A look, what it has to say, and where it is taken.

    Attributes:
        bad: the loop ends with a failure then.
        around: what was set up before.
    """

    node: Node
    wanted: bool
    scope: Scope
    host: str | None = None
    bad: bool = False
    around: Around = HERE


@dataclass(eq=False, repr=False)
class All:
    """All of these at once."""

    parts: tuple["Expression", ...]


@dataclass(eq=False, repr=False)
class AnyOf:
    """One of these."""

    parts: tuple["Expression", ...]


Expression = Always | Limit | Leaf | All | AnyOf
YES: Final = Always(true=True)
NO: Final = Always(true=False)


def both(left: Expression, right: Expression) -> Expression:
    """Return `left && right`."""
    if left is NO or right is NO:
        return NO
    parts = [part for part in (left, right) if part is not YES]
    return _joined(All, parts) if parts else YES


def either(left: Expression, right: Expression) -> Expression:
    """Return `left || right`."""
    if left is YES or right is YES:
        return YES
    parts = [part for part in (left, _otherwise(left, right)) if part is not NO]
    return _joined(AnyOf, parts) if parts else NO


def _otherwise(left: Expression, right: Expression) -> Expression:
    """Leave out of `! a && b` what is known once `a` said no: `a || b` is the same."""
    known = left.parts if isinstance(left, AnyOf) else (left,)
    if not isinstance(right, All):
        return right
    kept: list[Expression] = [
        part
        for part in right.parts
        if not any(_is_opposite(part, other) for other in known)
    ]
    everything: Expression = YES
    return reduce(both, kept, everything)


def _is_opposite(one: Expression, two: Expression) -> bool:
    return (
        isinstance(one, Leaf)
        and isinstance(two, Leaf)
        and one.node is two.node
        and one.wanted != two.wanted
    )


def _joined(kind: type[All] | type[AnyOf], parts: list[Expression]) -> Expression:
    if len(parts) == 1:
        return parts[0]
    flat: list[Expression] = []
    for part in parts:
        flat += part.parts if isinstance(part, kind) else [part]
    return kind(tuple(flat))


def opposite(expression: Expression) -> Expression:
    """Return `! expression`; a limit stays one."""
    match expression:
        case Always(true):
            return NO if true else YES
        case Leaf():
            return replace(expression, wanted=not expression.wanted)
        case All(parts):
            return AnyOf(tuple(opposite(part) for part in parts))
        case AnyOf(parts):
            return All(tuple(opposite(part) for part in parts))
        case _:
            return expression


def limits(expression: Expression) -> list[Limit]:
    """Return the counters and clocks in an expression."""
    if isinstance(expression, Limit):
        return [expression]
    if isinstance(expression, All | AnyOf):
        return [limit for part in expression.parts for limit in limits(part)]
    return []


def without_limits(expression: Expression) -> Expression | None:
    """Return what is left to look at, or None if nothing is."""
    if isinstance(expression, All | AnyOf):
        kept = [part for part in map(without_limits, expression.parts) if part]
        return _joined(type(expression), kept) if kept else None
    return expression if isinstance(expression, Leaf) else None


def bad(expression: Expression) -> Expression:
    """Return an expression of looks that say that something has failed."""
    if isinstance(expression, Leaf):
        return replace(expression, bad=True)
    if isinstance(expression, All | AnyOf):
        return type(expression)(tuple(bad(part) for part in expression.parts))
    return expression


def leaves(expression: Expression) -> Iterable[Leaf]:
    """Walk over the looks of an expression."""
    if isinstance(expression, Leaf):
        yield expression
    parts = expression.parts if isinstance(expression, All | AnyOf) else ()
    for part in parts:
        yield from leaves(part)
