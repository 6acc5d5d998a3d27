"""Odd shapes: what is suggested to the letter, and where the guard stays silent."""

import pytest

from policies.loops.suggestion import suggestion, told
from policies.wording import Lang
from tests.policies.loops.corpus import blocks

LONG = {
    "an operand": f"until [ -f {'a' * 2500} ]; do sleep 5; done",
    "a condition": f"while {'[ -f a ] && ' * 101} b; do sleep 5; done",
    "a chain": f"while sleep 1; do {'[ -f a ] || ' * 101} break; done",
    "a body": f"while sleep 1; do {'[ -f a ] && break; ' * 101} done",
    "a program": "python3 -c \"while not os.path.exists('a'): sleep(1)"
    + "\n#" * 5000
    + '"',
}


def suggested(command: str) -> str | None:
    found = suggestion(command)
    return found.command.removeprefix("koder-monitor ") if found else None


@pytest.mark.parametrize(("command", "wanted"), blocks("odd.txt"))
def test_an_odd_shape_gets_its_exact_command(command: str, wanted: str) -> None:
    assert suggested(command) == wanted


@pytest.mark.parametrize("command", [command for command, _ in blocks("silent.txt")])
def test_what_is_no_wait_is_left_alone(command: str) -> None:
    assert suggested(command) is None


@pytest.mark.parametrize("what", LONG)
def test_what_is_too_long_for_a_wait_is_left_alone(what: str) -> None:
    assert suggested(LONG[what]) is None


def test_a_long_value_of_a_variable_is_left_to_the_shell() -> None:
    command = f"x={'y' * 600}; until [ -f $x ]; do sleep 1; done"
    assert suggested(command) == 'file "$x" --exists'


def test_the_agent_is_told_facts_and_one_command() -> None:
    found = suggestion("while pgrep -f 'make all'; do sleep 5; done && ./next")
    assert found is not None
    text = told(found, Lang.EN)
    assert "without a deadline" in text
    command = "koder-monitor process --match 'make all' --exit-codes --resume ./next"
    assert f"\n\n    {command}\n\n" in text
    assert "124" in text
    assert "NÃO VISTO" in text
    assert "segundo plano" in told(found, Lang.PT)


def test_a_wait_with_a_deadline_is_not_told_that_it_has_none() -> None:
    found = suggestion("timeout 60 sh -c 'until [ -f a ]; do sleep 5; done'")
    assert found is not None
    assert "without a deadline" not in told(found, Lang.EN)
    assert "NÃO VISTO" not in told(found, Lang.EN)


def test_what_is_too_deep_for_python_is_no_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def deep(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr("policies.loops.suggestion.Finder.in_text", deep)
    assert suggested("while pgrep -f a; do sleep 5; done") is None
