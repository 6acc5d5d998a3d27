"""From the text of a target to what it names (C1.4)."""

from pathlib import Path

import pytest

from policies.wording import Lang, phrase
from tests.fakes import START
from watcher.conditions import KINDS, Place
from watcher.config import Config, Locks
from watcher.errors import UsageError
from watcher.targets import condition_of, parse_target, target_of
from watcher.unwatchable import Unwatchable


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(config=Config(locks=Locks(dir=str(tmp_path))), cwd="/", launcher=0)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("lock a", "lock a"),
        ("  lock   'a' ", "lock a"),
        (["lock", "a"], "lock a"),
        ("lock /x/y.lock", "lock /x/y.lock"),
        ("lock '/x y'", "lock '/x y'"),
        ("lock '/\udcff'", "lock '/\udcff'"),
        ("process --pid 1", "process --pid 1"),
        ("process --match 'a b'", "process --match 'a b'"),
        ("http HTTP://A:80#b --status 2xx", "http http://a/"),
        (
            "wait --any 'process  --pid 1' 'lock a' 'lock /x/../x/y' 'lock a'",
            "wait --any 'lock /x/../x/y' 'lock a' 'process --pid 1'",
        ),
    ],
)
def test_a_target_has_one_canonical_text(
    words: str | list[str], text: str, place: Place
) -> None:
    assert target_of(words, place).text == text
    condition = condition_of(words, place)
    assert condition.target.text == text
    condition.close()
    assert target_of(text, place).text == text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "lock"),
        ([], "lock"),
        ("teleport x", "teleport"),
        ("lock 'a", "No closing quotation"),
        ("lock", "SLUG|PATH"),
        ("lock a b", "b"),
        ("lock --nope a", "--nope"),
        ("process", "--pid"),
        ("process --pid 1 --match x", "not allowed"),
        ("http", "URL"),
        ("http ftp://a/", "https://"),
        ("http http://user:secret@a/", "password"),
        ("http http://a/ --status 1xx", "'1xx'"),
        ("http http://a/ --body ''", "empty"),
        ("http http://a/ --body '('", "unterminated"),
        ("wait 'lock a'", "--any"),
        ("wait --any", "TARGET"),
        ("wait --any --all 'lock a'", "not allowed"),
        ("wait --any 'lock a' 'teleport x'", "teleport"),
        ("wait --any lock", "SLUG|PATH"),
        ("wait --any \"wait --all 'lock a'\"", "inside a wait"),
        ("wait --any" + " 'lock a'" * 65, "65"),
    ],
)
def test_what_is_no_target_is_refused_in_words(
    words: str | list[str], said: str, place: Place
) -> None:
    for ask in (target_of, condition_of):
        with pytest.raises(UsageError) as caught:
            ask(words, place)
        assert said in caught.value.phrase.render(Lang.EN)


@pytest.mark.parametrize("kind", KINDS)
def test_a_parser_is_built_once(kind: str) -> None:
    words = {
        "lock": "lock a",
        "process": "process --pid 1",
        "port": "port 1 --free",
        "file": "file /a --gone",
        "command": "command -- true",
        "http": "http http://a",
        "wait": "wait --all 'lock a'",
        "log": "log a --fail b",
    }[kind]
    assert parse_target(words)[0] is parse_target(words)[0]
    assert parse_target(words)[1] == parse_target(words)[1]


def test_what_can_no_longer_be_watched_is_unknown_and_never_released() -> None:
    why = phrase("unknown_kind", kind="teleport", known="lock")
    condition = Unwatchable("teleport", "teleport x", "x", None, why)
    assert (condition.target.text, condition.target.label) == ("teleport x", "x")
    assert condition.refusal() == why
    condition.joined(7)
    for seen in (condition.look({"a": 1}, START), condition.hung({"a": 1}, START)):
        assert (seen.sight.value, seen.reason, seen.memory) == (
            "unknown",
            why,
            {"a": 1},
        )
    assert not condition.unchanged({})
    assert condition.hints() == ()
    condition.close()


@pytest.mark.parametrize("words", ["lock --help", "lock -h", "process --help"])
def test_a_target_that_asks_for_help_ends_nobody_who_reads_it(
    words: str, place: Place
) -> None:
    with pytest.raises(UsageError):
        target_of(words, place)
