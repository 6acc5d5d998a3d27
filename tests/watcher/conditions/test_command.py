"""`command`: what names one, and its looks here and on a host."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.lines import cleared_ending
from policies.model import Ending, Sight
from policies.wording import phrase
from tests.fakes import START, FakeHost
from tests.suites.condition import ConditionSuite, Scene
from tests.watcher.rights import closed_to_others, open_folder
from tests.watcher.there import Far
from watcher.cli.parser import parse
from watcher.conditions import LocalCondition, Place
from watcher.config import Config
from watcher.errors import UsageError
from watcher.looked import Here
from watcher.looking import OnThread
from watcher.targets import condition_of, target_of

WHERE = Place(config=Config(), cwd="/", launcher=0)


def build(*argv: str) -> LocalCondition:
    condition = condition_of(["command", "--", *argv], WHERE)
    assert isinstance(condition, Here)
    return condition


@contextmanager
def instead(path: Path, content: str | None) -> Iterator[None]:
    """Let a program be another file, or none."""
    aside = path.rename(path.with_name("aside"))
    if content is not None:
        path.write_text(content)
        path.chmod(0o755)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        aside.rename(path)


class TestCommand(ConditionSuite):
    HINTED = False

    @pytest.fixture
    def scene(self) -> Iterator[Scene]:
        with open_folder() as folder:
            program, held = folder / "bin" / "look", folder / "held"
            program.parent.mkdir()
            program.write_text('#!/bin/sh\ntest ! -e "$1"\n')
            program.chmod(0o755)
            held.touch()
            yield Scene(
                build=lambda: build(str(program), str(held)),
                release=held.unlink,
                blind={
                    "unreachable": lambda: instead(program, "no program"),
                    "denied": lambda: closed_to_others(program.parent),
                    "vanished": lambda: instead(program, None),
                },
            )


# What names one


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["true"], "command -- true"),
        (["test", "-f", "/a b"], "command -- test -f '/a b'"),
        (["./look", "./x"], "command -- /look ./x"),
        (["bin/look"], "command -- /bin/look"),
        (["/bin/../x"], "command -- /bin/../x"),
        (["x", "--ttl", "5", "--json"], "command -- x --ttl 5 --json"),
        (["x", "--host", "y"], "command -- x --host y"),
        (["x", "--", "--"], "command -- x -- --"),
        (["--", "x"], "command -- -- x"),
        (["-x"], "command -- -x"),
        (["x", ""], "command -- x ''"),
        (["x", "\udcff"], "command -- x '\udcff'"),
    ],
)
def test_a_command_has_one_canonical_text(argv: list[str], text: str) -> None:
    target = target_of(["command", "--", *argv], WHERE)
    assert (target.kind, target.text, target.host) == ("command", text, None)
    assert target.label == text.removeprefix("command -- ")
    assert target_of(text, WHERE) == target
    assert cleared_ending(target.kind) is Ending.ENDED


def test_its_host_stands_before_its_words() -> None:
    for words in ("--host box -- x --host y", "--host=box -- x --host y"):
        target = target_of(f"command {words}", WHERE)
        assert target.text == "command --host box -- x --host y"
        assert (target.host, target.label) == ("box", "x --host y")
        assert target_of(target.text, WHERE) == target


WORD = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
WORDS = st.lists(WORD | st.sampled_from(["--", "-h", "--ttl", "--json", "--host", "-"]))


@given(program=WORD.filter(lambda word: word and "/" not in word), rest=WORDS)
def test_every_word_stays_as_it_is(program: str, rest: list[str]) -> None:
    argv = [program, *rest]
    target = target_of(["command", "--", *argv], WHERE)
    assert shlex.split(target.text) == ["command", "--", *argv]
    assert target_of(target.text, WHERE) == target
    _, options = parse(["command", "--ttl", "5m", "--json", "--", *argv])
    assert options.argv == ["--", *argv]
    assert (options.ttl, options.json, options.host) == ("5m", True, None)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param([], id="nothing"),
        pytest.param(["--"], id="no words"),
        pytest.param(["--", ""], id="no program"),
        pytest.param(["true"], id="no mark"),
        pytest.param(["true", "--", "x"], id="a word too early"),
        pytest.param(["--host", "box"], id="a host alone"),
    ],
)
def test_a_command_stands_behind_its_mark(words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        target_of(["command", *words], WHERE)
    assert caught.value.phrase == phrase("no_command")


@pytest.mark.parametrize("word", ["a\0b", "\ud800"])
def test_what_no_program_can_be_given_is_refused(word: str) -> None:
    with pytest.raises(UsageError) as caught:
        target_of(["command", "--", "x", word], WHERE)
    assert caught.value.phrase == phrase("bad_command", program="x")


@pytest.mark.parametrize(
    ("program", "there"), [("./x", "~/x"), ("bin/x", "~/bin/x"), ("~/x", "~/x")]
)
def test_a_relative_program_is_below_the_home_folder_of_its_host(
    program: str, there: str
) -> None:
    target = target_of(["command", "--host", "box", "--", program], WHERE)
    assert target.text == f"command --host box -- '{there}'"


# Looks


def test_its_last_look_gets_all_the_time_of_a_run() -> None:
    """C3.7: cut short, it would have shown nothing."""
    looker = build("true").looker()
    assert isinstance(looker, OnThread)
    assert looker.last_limit_s > 9
    assert OnThread("x").last_limit_s < 2
    looker.close()


def test_what_it_said_is_evidence() -> None:
    seen = build("sh", "-c", "echo so far so good; exit 3").look({}, START)
    assert seen.sight is Sight.HELD
    assert seen.evidence["output"] == "so far so good"
    assert seen.evidence["exit"] == 3
    assert seen.result is None


def test_one_that_cannot_be_run_says_so() -> None:
    seen = build("no-such-program-of-ours").look({}, START)
    assert seen.reason == phrase(
        "command_not_run", program="no-such-program-of-ours", error="ENOENT"
    )


def test_no_command_holds_another_up() -> None:
    assert build("true").group != build("false").group


async def test_a_command_of_a_host_is_run_there(tmp_path: Path) -> None:
    path = tmp_path / "held"
    path.touch()
    words = ["command", "--host", "box", "--", "test", "!", "-e", str(path)]
    far = Far(words, FakeHost())
    held = await far.take()
    assert held.sight is Sight.HELD
    assert (held.evidence["host"], held.evidence["exit"]) == ("box", 1)
    assert far.request()["argv"] == ["test", "!", "-e", str(path)]
    path.unlink()
    assert (await far.take()).sight is Sight.RELEASED


async def test_a_host_that_is_silent_or_lies_releases_nothing() -> None:
    far = Far("command --host box -- true", FakeHost())
    assert (await far.take()).sight is Sight.RELEASED
    far.host.silent = phrase("host_silent", host="box")
    assert (await far.take()).sight is Sight.UNKNOWN
    far.host.silent = None
    for lie in ({}, {"exit": 0}, {"exit": "0", "signal": None}, {"slow": False}):
        far.host.answers["command"] = lie
        assert (await far.take()).sight is Sight.UNKNOWN
