"""Which regular expressions can be used."""

import pytest

from policies.model import Target
from watcher.conditions import Place
from watcher.config import Config
from watcher.errors import UsageError
from watcher.expressions import fault_of
from watcher.targets import target_of

WHERE = Place(config=Config(), cwd="/", launcher=0)


@pytest.mark.parametrize("pattern", ["", "PASS", r"^\d{4}$", "(?i)x|y", "a{1,300}"])
def test_most_can(pattern: str) -> None:
    assert fault_of(pattern) is None


@pytest.mark.parametrize(
    "pattern", ["(", "*", "[", r"a\1", "x{4294967294}", "a{99999999999999}", "(" * 5000]
)
def test_what_cannot_is_told_why(pattern: str) -> None:
    assert fault_of(pattern)


def given_to(command: str) -> Target:
    return target_of(command, WHERE)


@pytest.mark.parametrize(
    "command",
    ["process --regex", "log /x --pass", "log /x --fail", "http http://a --body"],
)
def test_one_that_would_take_all_memory_is_refused_everywhere(command: str) -> None:
    with pytest.raises(UsageError) as caught:
        given_to(f"{command} '(x{{9999}}){{9999}}'")
    assert "too large" in str(caught.value.phrase)
