"""Every sentence: in both languages, with what its callers give it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given

from policies.wording import TEXTS, Lang, Phrase, phrase
from tests.policies.samples import ALWAYS, phrases, placeholders, unfit

ROOT = Path(__file__).parents[2]
Call = tuple[str, str | None, list[str | None]]
CALLED = re.compile(r"(\w+\.)*phrase")
GIVEN = "(given)"
"""Stands for a key that a function is given by its callers."""


def calls(source: str, path: str) -> Iterator[Call]:
    """Find every `phrase(...)`: where, each key it may have, its values."""
    tree = ast.parse(source)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and CALLED.fullmatch(ast.unparse(node.func)):
            around = [f for f in functions if node in list(ast.walk(f))]
            scope = around[-1] if around else tree
            values = [item.arg for item in node.keywords]
            keys: list[str | None] = [None]
            if len(node.args) == 1:
                keys = keys_of(node.args[0], scope)
            if node.args and isinstance(node.args[0], ast.JoinedStr):
                fitting = [key for key in keys if key and fits(key, values)]
                keys = [*fitting] or [None]
            for key in keys:
                yield f"{path}:{node.lineno}", key, values


def fits(key: str, values: list[str | None]) -> bool:
    return sorted(map(str, values)) == sorted(set(placeholders(TEXTS[key][0])))


def keys_of(node: ast.expr, scope: ast.AST) -> list[str | None]:
    """Follow a key to where it is written out; None where it is not.

    One put together, as `phrase(f"advice_{verdict}")`, may be any that fits; one that
    a function is given is looked for at its callers.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.IfExp):
        return [*keys_of(node.body, scope), *keys_of(node.orelse, scope)]
    if isinstance(node, ast.JoinedStr):
        parts = [
            re.escape(str(part.value)) if isinstance(part, ast.Constant) else "[a-z_]+"
            for part in node.values
        ]
        matching = [key for key in TEXTS if re.fullmatch("".join(parts), key)]
        return [*matching] or [None]
    name = ast.unparse(node)
    if isinstance(scope, ast.FunctionDef) and name in [
        argument.arg for argument in scope.args.args
    ]:
        return [GIVEN]
    given = [value for target, value in assignments(scope) if target == name]
    return [key for value in given for key in keys_of(value, scope)] or [None]


def assignments(scope: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Give every name with each value that it is given, in tuples too."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    names = map(ast.unparse, target.elts)
                    yield from zip(names, node.value.elts, strict=True)
                else:
                    yield ast.unparse(target), node.value


def texts_of(source: str) -> set[str]:
    """Return every text that a source holds."""
    return {
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


SOURCES = {
    file.relative_to(ROOT).as_posix(): file.read_text("utf-8")
    for package in ("notify", "policies", "watcher")
    for file in sorted((ROOT / package).rglob("*.py"))
}
CALLS = [call for path, source in SOURCES.items() for call in calls(source, path)]
NAMES = [f"{number}-{where}" for number, (where, _, _) in enumerate(CALLS)]


@pytest.mark.parametrize(("where", "key", "values"), CALLS, ids=NAMES)
def test_a_caller_gives_a_sentence_exactly_its_values(
    where: str, key: str | None, values: list[str | None]
) -> None:
    assert key is not None, "a key that is not written out cannot be checked"
    if key == GIVEN:
        return
    assert key in TEXTS
    assert fits(key, values)


def test_every_sentence_is_said_somewhere() -> None:
    said = {key for _, key, _ in CALLS}
    for path, source in SOURCES.items():
        if path != "policies/wording.py":
            said |= texts_of(source)
    assert TEXTS.keys() - said == set()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("phrase('a', x=1)", ("f:1", "a", ["x"])),
        ("wording.phrase('a')", ("f:1", "a", [])),
        ("say(phrase('a', **more))", ("f:1", "a", [None])),
        ("phrase(key)", ("f:1", None, [])),
        ("key = find()\nphrase(key)", ("f:2", None, [])),
        ("key = 'a'\nphrase(key)", ("f:2", "a", [])),
        ("phrase(1)", ("f:1", None, [])),
        ("phrase(f'zz{b}')", ("f:1", None, [])),
        ("phrase(f'not_a_ctive{b}')", ("f:1", None, [])),
        ("phrase()", ("f:1", None, [])),
        ("def f(key): phrase(key)", ("f:1", GIVEN, [])),
        ("a, key = 1, 'b'\nphrase(key)", ("f:2", "b", [])),
    ],
)
def test_a_call_is_found_however_it_is_written(source: str, found: Call) -> None:
    assert list(calls(source, "f")) == [found]


@pytest.mark.parametrize(
    "source", ["phrase('a' if x else 'b')", "k = 'a'\nk = 'b'\nphrase(k)"]
)
def test_every_key_that_a_call_may_have_is_found(source: str) -> None:
    assert [key for _, key, _ in calls(source, "f")] == ["a", "b"]


def test_other_calls_are_not_found() -> None:
    assert list(calls("phrases('a'); x.y('b'); (lambda: 1)(); phrase", "f")) == []


@pytest.mark.parametrize("key", TEXTS)
def test_a_sentence_stands_in_both_languages_with_the_same_values(key: str) -> None:
    portuguese, english = TEXTS[key]
    assert portuguese.strip() == portuguese != ""
    assert english.strip() == english != ""
    assert set(placeholders(portuguese)) == set(placeholders(english))
    assert all(name.isidentifier() for name in placeholders(portuguese))
    assert unfit(portuguese + english) == set()


@pytest.mark.parametrize(
    ("said", "portuguese", "english"),
    [
        pytest.param(
            phrase("directory_missing", path="/l"),
            "o diretório /l não existe",
            "the directory /l does not exist",
            id="a-value",
        ),
        pytest.param(phrase("someone"), "outro dono", "another holder", id="none"),
        pytest.param(
            phrase("retaken", label="api", holder=phrase("someone")),
            "lock api liberado e retomado por outro dono; continuo esperando",
            "lock api released and retaken by another holder; still waiting",
            id="B05-a-sentence-in-a-sentence",
        ),
        pytest.param(
            phrase("matched", pid=7, command="a\x1b[2J\nb"),
            "casou: PID 7: a\\x1b[2J\\nb",
            "matched: PID 7: a\\x1b[2J\\nb",
            id="B104-a-foreign-value",
        ),
        pytest.param(
            phrase("matched", pid=7, command="{pid} {0} {x!r}"),
            "casou: PID 7: {pid} {0} {x!r}",
            "matched: PID 7: {pid} {0} {x!r}",
            id="a-value-is-no-template",
        ),
        pytest.param(
            phrase("unmounted", path="x" * 301),
            "x" * 290 + "…(cortado) foi desmontado",
            "x" * 290 + "…(cortado) was unmounted",
            id="B102-a-long-value-is-cut",
        ),
    ],
)
def test_a_sentence_is_said_in_a_language(
    said: Phrase, portuguese: str, english: str
) -> None:
    assert said.render(Lang.PT) == portuguese
    assert said.render(Lang.EN) == english


def test_the_armed_line_is_the_contracts() -> None:
    armed = phrase("armed", target="lock a", until="12:00:00", ttl="60min")
    assert armed.render(Lang.PT) == "armado: lock a até 12:00:00 (TTL 60min)"
    assert armed.render(Lang.EN).startswith("armed: lock a ")


def test_an_unknown_key_is_an_error_at_once() -> None:
    with pytest.raises(KeyError, match="no such key"):
        phrase("no such key")


@ALWAYS
@given(phrases(depth=2))
def test_whatever_its_values_a_sentence_is_one_fit_line(said: Phrase) -> None:
    for lang in Lang:
        text = said.render(lang)
        assert unfit(text) == set()
        assert len(text.splitlines()) == 1
        assert text.encode().decode() == text
