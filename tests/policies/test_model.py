"""The values that the decisions are about."""

import dataclasses
import inspect
import pkgutil
from importlib import import_module

import pytest

import policies
from policies.model import Observation, Outcome, Sight
from policies.verdict import Decision
from tests.policies.samples import START


@pytest.mark.parametrize("sight", [Sight.HELD, Sight.RELEASED])
def test_what_was_never_there_cannot_be_called_held_or_released(sight: Sight) -> None:
    with pytest.raises(ValueError, match="never seen"):
        Observation(sight=sight, at=START, absent=True)


def test_what_was_never_there_is_unknown() -> None:
    assert Observation(sight=Sight.UNKNOWN, at=START, absent=True).absent


@pytest.mark.parametrize("sight", Sight)
def test_an_observation_claims_nothing_more_unless_told(sight: Sight) -> None:
    seen = Observation(sight=sight, at=START)
    assert not seen.absent
    assert (seen.result, seen.reason, seen.notes, seen.remarks) == (None, None, (), ())
    assert seen.evidence == seen.memory == {}


VALUES = [
    kind
    for module in pkgutil.iter_modules(policies.__path__, "policies.")
    for _, kind in inspect.getmembers(import_module(module.name), inspect.isclass)
    if dataclasses.is_dataclass(kind) and kind.__module__ == module.name
]


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_of_policies_cannot_be_changed_later(kind: type) -> None:
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]  # what dataclass() adds
    assert not hasattr(object.__new__(kind), "__dict__")


def test_the_values_of_policies_are_found() -> None:
    assert {Observation, Outcome, Decision} <= set(VALUES)
