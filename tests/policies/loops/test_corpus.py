"""The three rates that C11.3 is measured by, and that each suggestion can be run."""

import argparse
import re
import shlex

import pytest

from policies.duration import parse_duration
from policies.loops.suggestion import suggestion
from tests.policies.loops.corpus import LOOKALIKES, PLAIN, WAITS
from watcher.cli.parser import parse
from watcher.cli.watch import WatchCommand
from watcher.conditions import KINDS

OPTIONS = {
    "--ttl": True,
    "--every": True,
    "--resume": True,
    "--exit-codes": False,
}
GRAMMAR: dict[str, dict[str, bool]] = {
    "lock": {},
    "process": dict.fromkeys(
        ("--pid", "--pidfile", "--match", "--regex", "--log", "--host"), True
    )
    | {"--pass": True, "--fail": True},
    "log": {"--pass": True, "--fail": True, "--from-start": False, "--host": True},
    "port": {"--free": False, "--open": False, "--host": True},
    "file": {"--exists": False, "--gone": False, "--quiet": True, "--host": True},
    "http": {"--status": True, "--body": True},
    "command": {"--host": True},
    "wait": {"--any": False, "--all": False},
}
"""Kind to its own options, and whether each takes a value (C1.2, C1.3)."""
OPERANDS = {"lock": 1, "process": 0, "log": 1, "port": 1, "file": 1, "http": 1}


def suggested(command: str) -> str | None:
    found = suggestion(command)
    return found.command if found else None


def test_the_corpus_is_as_large_as_it_has_to_be() -> None:
    assert len(WAITS) >= 150
    assert len(LOOKALIKES) >= 300
    assert len(PLAIN) >= 300
    everything = [*(command for command, _ in WAITS), *LOOKALIKES, *PLAIN]
    assert len(set(everything)) == len(everything)


@pytest.mark.parametrize(("command", "wanted"), WAITS)
def test_a_wait_gets_its_exact_command(command: str, wanted: str) -> None:
    assert suggested(command) == f"koder-monitor {wanted}"


def test_at_least_95_of_100_waits_are_found() -> None:
    found = [command for command, _ in WAITS if suggested(command)]
    assert len(found) >= 0.95 * len(WAITS)


def test_at_most_5_of_100_lookalikes_are_taken_for_waits() -> None:
    alarms = [command for command in LOOKALIKES if suggested(command)]
    assert len(alarms) <= 0.05 * len(LOOKALIKES), alarms


def test_at_most_1_of_100_ordinary_commands_is_taken_for_a_wait() -> None:
    alarms = [command for command in PLAIN if suggested(command)]
    assert len(alarms) <= 0.01 * len(PLAIN), alarms


def check_target(words: list[str]) -> None:
    """See that a command line is one of C1.2, with options of C1.3."""
    kind, *rest = words
    known = GRAMMAR[kind] | OPTIONS
    operands: list[str] = []
    seen: set[str] = set()
    place = 0
    while place < len(rest):
        name, equals, _ = rest[place].partition("=")
        if name == "--":
            operands += rest[place + 1 :]
            break
        if name.startswith("--"):
            assert name in known, words
            seen.add(name)
            takes = known[name] and not equals
            if name in {"--ttl", "--every", "--quiet"}:
                parse_duration(rest[place + 1])
            if name in {"--regex", "--pass", "--fail", "--body"} and takes:
                re.compile(rest[place + 1])
            place += 1 + takes
        else:
            operands.append(rest[place])
            place += 1
    check_operands(kind, operands, seen)


def check_operands(kind: str, operands: list[str], seen: set[str]) -> None:
    if kind == "wait":
        assert len(operands) > 1
        for target in operands:
            check_target(shlex.split(target))
    elif kind == "command":
        assert operands
    else:
        assert len(operands) == OPERANDS[kind]
    one_of = {
        "port": {"--free", "--open"},
        "file": {"--exists", "--gone", "--quiet"},
        "process": {"--pid", "--pidfile", "--match", "--regex"},
        "wait": {"--any", "--all"},
    }
    if kind in one_of:
        assert len(seen & one_of[kind]) == 1


@pytest.mark.parametrize(("command", "wanted"), WAITS)
def test_a_suggestion_is_a_command_of_the_contract(command: str, wanted: str) -> None:
    words = shlex.split(suggested(command) or "")
    assert words[0] == "koder-monitor"
    check_target(words[1:])


def options_of(kind: str) -> set[str]:
    """Return the options that the command of a kind has."""
    parser = argparse.ArgumentParser()
    WatchCommand(kind).add_arguments(parser)
    return set(parser._option_string_actions)


def taken_today() -> list[str]:
    """Return the suggestions of the kinds and options that there are."""
    known = {kind: options_of(kind) for kind in KINDS}
    return sorted(
        {
            wanted
            for _, wanted in WAITS
            if (kind := wanted.split()[0]) in known
            and set(re.findall(r"--[a-z-]+", wanted)) <= known[kind]
            and "$" not in wanted
        }
    )


@pytest.mark.parametrize("wanted", taken_today())
def test_a_suggestion_is_taken_by_the_real_command_line(wanted: str) -> None:
    words = shlex.split(wanted)
    _, options = parse(words)
    assert options.command == words[0]
