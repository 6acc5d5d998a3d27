"""Short ways to say what a probe saw."""

from policies.model import Observation, Sight
from policies.sight import absent, released, unknown
from policies.wording import phrase
from tests.policies.samples import START, WHY


def test_a_failure_to_look_is_unknown_and_keeps_what_was_remembered() -> None:
    seen = unknown({"entry": 1}, START, WHY, {"errno": "EACCES"})
    assert seen == Observation(
        sight=Sight.UNKNOWN,
        at=START,
        reason=WHY,
        evidence={"errno": "EACCES"},
        memory={"entry": 1},
    )
    assert not seen.absent


def test_what_is_not_there_yet_is_unknown_too_never_released() -> None:
    seen = absent(START, WHY)
    assert seen.sight is Sight.UNKNOWN
    assert seen.absent
    assert (seen.reason, seen.memory, seen.evidence) == (WHY, {}, {})


def test_what_is_not_there_yet_may_have_a_memory_and_evidence() -> None:
    seen = absent(START, WHY, {"launchers": []}, {"processes": 3})
    assert (seen.memory, seen.evidence) == ({"launchers": []}, {"processes": 3})


def test_a_release_brings_its_evidence_and_its_remarks() -> None:
    near = phrase("near_lock", name="api-2")
    seen = released(START, {"errno": "ENOENT"}, {"entry": 1}, (near,))
    assert seen == Observation(
        sight=Sight.RELEASED,
        at=START,
        evidence={"errno": "ENOENT"},
        memory={"entry": 1},
        remarks=(near,),
    )
