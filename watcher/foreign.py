"""Kinds of condition that other distributions bring, by entry points.

A fault in one of them is one clear line and touches no other kind.
"""

import argparse
from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final, TypeVar, cast

from policies.model import Target
from policies.wording import phrase
from watcher.conditions import Condition, Kind, Place
from watcher.errors import UsageError

T = TypeVar("T")

GROUP: Final = "koder_monitor.conditions"
"""Of the entry points: the name of a kind to the module that makes it."""

_CALLS = ("add_arguments", "target_of", "build")


def foreign_names() -> list[str]:
    """Return the names of the kinds that other distributions bring."""
    return sorted({point.name for point in entry_points(group=GROUP)})


@cache
def foreign_kind(name: str) -> "ForeignKind":
    """Return a kind of another distribution.

    Raises:
        KeyError: none brings it.
        UsageError: its module cannot be imported, or is no kind.
    """
    found = sorted(entry_points(group=GROUP, name=name), key=_source)
    if not found:
        raise KeyError(name)
    point = found[0]
    module = _guarded(name, _source(point), lambda: cast("object", point.load()))
    missing = [call for call in _CALLS if not callable(getattr(module, call, None))]
    if missing:
        error = f"{point.value}: no {missing[0]}()"
        raise _broken(name, _source(point), error)
    return ForeignKind(name, cast("Kind", module), _source(point))


class ForeignKind:
    """A module of somebody else; whatever it raises is a `UsageError`."""

    def __init__(self, name: str, module: Kind, source: str) -> None:
        """Guard a module.

        Args:
            name: of the kind.
            module: what makes it.
            source: the distribution that it is of.
        """
        self._name = name
        self._module = module
        self._source = source

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add what a condition of this kind is named by."""
        self._guarded(lambda: self._module.add_arguments(parser))

    def target_of(self, options: argparse.Namespace, place: Place) -> Target:
        """Return the canonical target."""
        return self._guarded(
            lambda: self._checked(self._module.target_of(options, place))
        )

    def build(self, options: argparse.Namespace, place: Place) -> Condition:
        """Return the condition that looks."""

        def built() -> Condition:
            condition = self._module.build(options, place)
            self._checked(condition.target)
            return condition

        return self._guarded(built)

    def _guarded(self, call: Callable[[], T]) -> T:
        return _guarded(self._name, self._source, call)

    def _checked(self, target: Target) -> Target:
        """Return a target that leads back to this kind, which a restart must find.

        Raises:
            ValueError: it does not.
        """
        if target.kind != self._name or target.text.split(" ")[0] != self._name:
            msg = f"its target is of kind {target.kind!r}: {target.text!r}"
            raise ValueError(msg)
        return target


def _guarded(name: str, source: str, call: Callable[[], T]) -> T:
    try:
        return call()
    except UsageError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise _broken(name, source, what) from error


def _broken(name: str, source: str, error: str) -> UsageError:
    return UsageError(phrase("foreign_broken", kind=name, source=source, error=error))


def _source(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value
