"""Conditions that other packages bring (docs/adding-a-condition.md)."""

import argparse
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from policies.wording import Lang
from tests.e2e.command import Place, until
from watcher.cli.parser import parse, whole_parser
from watcher.conditions import KINDS, kind_names, kind_of
from watcher.conditions import Place as Where
from watcher.config import Config
from watcher.errors import UsageError
from watcher.foreign import foreign_kind
from watcher.targets import condition_of, parse_target, target_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/adding-a-condition.md"
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ADVICE = re.compile(r"corrija|use ")
WHERE = Where(config=Config(), cwd="/srv", launcher=0)

STRANGE = {
    "absent": "",
    "breaks": "raise RuntimeError('out of order')",
    "poor": "def add_arguments(parser): pass",
    "raises": """
def add_arguments(parser): parser.add_argument('--ttl')
def target_of(options, place): raise LookupError('lost')
def build(options, place): raise LookupError('lost')
""",
    "lies": """
from policies.model import Target
from policies.wording import phrase
from watcher.errors import UsageError
def add_arguments(parser): parser.add_argument('what')
def target_of(options, place):
    if options.what == 'no':
        raise UsageError(phrase('said', text='its own words; use another'))
    return Target(kind='lock', text='lock a', label='a')
class Lies:
    target = Target(kind='lies', text='lock a', label='a')
def build(options, place): return Lies()
""",
}


def blocks(language: str) -> list[str]:
    page = PAGE.read_text("utf-8")
    return [text for found, text in FENCED.findall(page) if found == language]


def install(folder: Path, name: str, points: Sequence[str]) -> None:
    """Write what an installer would leave of a distribution's metadata."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    )
    lines = ["[koder_monitor.conditions]", *points, ""]
    (info / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """Give a folder with the package of the docs page, made from that page."""
    folder = tmp_path / "packages"
    folder.mkdir()
    [module], [project] = blocks("python"), blocks("toml")
    (folder / "koder_monitor_empty.py").write_text(module)
    named = re.search(r'^name = "(.*)"$', project, re.MULTILINE)
    [point] = re.findall(r'^empty = "(.*)"$', project, re.MULTILINE)
    assert named is not None
    assert '[project.entry-points."koder_monitor.conditions"]' in project
    install(folder, named[1], [f"empty = {point}"])
    return folder


@pytest.fixture
def strange(packages: Path) -> Path:
    """Give one that has packages beside it which do not work."""
    for name, source in STRANGE.items():
        if source:
            (packages / f"strange_{name}.py").write_text(source)
    points = [f"{name} = strange_{name}" for name in STRANGE]
    install(packages, "strange-things", [*points, "lock = strange_breaks"])
    return packages


@pytest.fixture
def here(strange: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this very process have those packages."""
    monkeypatch.syspath_prepend(str(strange))
    before = set(sys.modules)
    yield
    foreign_kind.cache_clear()
    for name in set(sys.modules) - before:
        if name.startswith(("strange_", "koder_monitor_")):
            del sys.modules[name]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place.below(tmp_path, os.environ)
    yield place
    place.clear()


def path_of(packages: Path) -> dict[str, str | None]:
    had = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": f"{packages}:{had}" if had else str(packages)}


def test_a_condition_of_another_package_is_armed_and_released(
    place: Place, packages: Path
) -> None:
    env = path_of(packages)
    spool = place.folder / "spool"
    spool.mkdir()
    (spool / "one").touch()
    running = place.start(
        "empty", "./spool", "--label", "the spool", "--ttl", "1m", env=env
    )
    assert f"empty {spool}" in running.armed()
    checked = place.run("check", f"empty {spool}", env=env)
    assert checked.line == f"empty {spool}: held — visto por readdir"
    [watch] = place.watches()
    assert (watch["kind"], watch["target"]) == ("empty", f"empty {spool}")
    (spool / "one").unlink()
    assert running.end().line.startswith("✅ TERMINOU: the spool em ")


def test_it_is_one_of_any_or_all_like_every_other(place: Place, packages: Path) -> None:
    env = path_of(packages)
    spool = place.folder / "spool"
    spool.mkdir()
    place.hold("a")
    words = ["wait", "--any", "lock a", f"empty {spool}"]
    line = place.run(*words, "--ttl", "1m", env=env).line
    assert line.endswith(f"decidiu: empty {spool}")


def test_it_is_taken_up_by_the_service_that_comes_next(
    place: Place, packages: Path
) -> None:
    env = path_of(packages)
    spool = place.folder / "spool"
    spool.mkdir()
    (spool / "one").touch()
    running = place.start("empty", "./spool", "--ttl", "1m", env=env)
    running.armed()
    before = place.end_service()
    (spool / "one").unlink()
    assert running.end().line.startswith("✅ TERMINOU: ")
    until(lambda: place.service() != before)


def test_help_and_a_wrong_word_name_it(place: Place, packages: Path) -> None:
    env = path_of(packages)
    shown = place.run("--help", env=env).out
    assert re.search(r"^ +empty +wait for a condition", shown, re.MULTILINE)
    refused = place.run("emptyy", "x", env=env)
    assert refused.status == 2
    assert "'emptyy'" in refused.err[0]
    assert "empty" not in place.run("--help").out
    assert place.run("empty", "x").status == 2
    assert "FOLDER" in place.run("empty", "--help", env=env).out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["absent", "x"], "ModuleNotFoundError"),
        (["breaks", "x"], "RuntimeError: out of order"),
        (["poor", "x"], "no target_of()"),
        (["raises"], "argument --ttl: conflicting option string"),
        (["check", "raises --ttl 1"], "LookupError: lost"),
        (["lies", "x"], "its target is of kind 'lock'"),
        (["lies", "no"], "its own words"),
        (["check", "lies x"], "its target is of kind 'lies': 'lock a'"),
    ],
)
def test_one_that_does_not_work_is_one_clear_line(
    place: Place, strange: Path, words: list[str], said: str
) -> None:
    ended = place.run(*words, env=path_of(strange))
    assert (ended.status, ended.out) == (2, "")
    (line,) = ended.err
    assert said in line
    named = {"strange-things", "de raises", "its own words"}
    assert any(name in line for name in named)
    assert ADVICE.search(line)


def test_none_of_them_touches_what_is_built_in(place: Place, strange: Path) -> None:
    env = path_of(strange)
    ended = place.run("lock", "demo", "--ttl", "1m", env=env)
    assert ended.line.startswith("✅ LIBERADO: lock demo em ")
    assert place.run("--help", env=env).status == 0


# In this process


@pytest.mark.usefixtures("here")
def test_their_names_come_behind_those_built_in() -> None:
    assert kind_names() == [*KINDS, *sorted([*STRANGE, "empty"])]


@pytest.mark.usefixtures("here")
def test_a_target_of_theirs_is_canonical_too() -> None:
    assert target_of("empty  'spool'", WHERE).text == "empty /srv/spool"
    condition = condition_of("empty spool", WHERE)
    assert condition.target.text == "empty /srv/spool"
    condition.close()
    assert parse_target("empty x")[0] is parse_target("empty y")[0]


@pytest.mark.usefixtures("here")
def test_they_are_commands_like_the_others() -> None:
    _, options = parse(["empty", "x", "--ttl", "5m"])
    assert (options.command, options.folder, options.ttl) == ("empty", "x", "5m")
    with pytest.raises(UsageError) as caught:
        parse(["nothing-of-this-name"])
    assert "'empty'" in str(caught.value.phrase.values["what"])
    with pytest.raises(UsageError):
        whole_parser()  # one of them breaks down, which is said


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["absent", "breaks", "poor"])
def test_what_is_no_kind_is_refused_each_time(name: str) -> None:
    for _ in range(2):
        with pytest.raises(UsageError) as caught:
            kind_of(name)
        assert name in caught.value.phrase.render(Lang.EN)


@pytest.mark.usefixtures("here")
def test_what_a_module_raises_is_told_as_its_fault() -> None:
    kind = kind_of("raises")
    for call in (kind.target_of, kind.build):
        with pytest.raises(UsageError):
            call(argparse.Namespace(), WHERE)


def test_a_name_that_nobody_brings_is_no_kind() -> None:
    with pytest.raises(KeyError):
        kind_of("no-such-kind")
