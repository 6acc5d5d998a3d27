"""What is installed for a runtime, and what a call from it is answered with, agree."""

import pytest

from watcher.runtimes.dialects import DIALECTS
from watcher.runtimes.registry import RUNTIMES, heard

HOOKED = sorted(name for name, runtime in RUNTIMES.items() if runtime.hooks)


@pytest.mark.parametrize("name", HOOKED)
def test_a_hook_is_answered_under_the_name_it_was_registered_for(name: str) -> None:
    runtime = RUNTIMES[name]
    assert runtime.hooks
    names = DIALECTS[runtime.speaks or name].names
    registered = heard(runtime.hooks)
    assert registered
    assert {event: names.get(event) for event in registered} == registered
