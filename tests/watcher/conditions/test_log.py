"""Logs of this machine and of hosts, as an engine looks at them (C3.4)."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from policies.model import Memory, Observation, Result, Sight
from policies.wording import Lang, phrase
from tests.fakes import START, FakeClock, FakeHost, FakeHosts
from tests.suites.condition import ConditionSuite, Scene, closing, remembered
from tests.watcher.onhost.logs import append
from tests.watcher.rights import closed_to_others, open_folder
from watcher.conditions import (
    Condition,
    DirectoryHint,
    FileHint,
    LocalCondition,
    Look,
    Place,
)
from watcher.config import Config
from watcher.errors import UsageError
from watcher.targets import condition_of, target_of


def place(clock: FakeClock | None = None, host: FakeHost | None = None) -> Place:
    return Place(
        config=Config(),
        cwd="/run",
        launcher=0,
        clock=clock or FakeClock(),
        hosts=FakeHosts(host or FakeHost()),
    )


def local(path: Path, *words: str, clock: FakeClock | None = None) -> LocalCondition:
    words = words or ("--pass", "PASS", "--fail", "FAIL")
    found = condition_of(["log", str(path), *words], place(clock))
    return cast("LocalCondition", found)


@contextmanager
def renamed(folder: Path) -> Iterator[None]:
    moved = folder.rename(folder.with_name("moved"))
    try:
        yield
    finally:
        moved.rename(folder)


@contextmanager
def a_file_instead(folder: Path) -> Iterator[None]:
    with renamed(folder):
        folder.touch()
        yield
        folder.unlink()


class TestLog(ConditionSuite):
    @pytest.fixture
    def scene(self) -> Iterator[Scene]:
        with open_folder() as folder:
            path = folder / "logs" / "x.log"
            path.parent.mkdir()
            path.write_bytes(b"PASS of an earlier run\n")
            yield Scene(
                build=lambda: local(path),
                release=lambda: append(path, b"PASS\n"),
                blind={
                    "unreachable": lambda: a_file_instead(path.parent),
                    "denied": lambda: closed_to_others(path.parent),
                    "vanished": lambda: renamed(path.parent),
                },
            )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.log"
    path.write_bytes(b"begun\n")
    return path


@pytest.mark.parametrize(
    ("end", "result"), [(b"ALL PASS\n", Result.PASS), (b"1 FAIL\n", Result.FAIL)]
)
def test_the_line_that_decides_is_told(path: Path, end: bytes, result: Result) -> None:
    with closing(local(path)) as condition:
        first = condition.look({}, START)
        size = path.stat().st_size
        begins = phrase("log_from_end", path=str(path), offset=size)
        assert (first.sight, first.notes) == (Sight.HELD, (begins,))
        append(path, end)
        seen = condition.look(first.memory, START)
        assert (seen.sight, seen.result) == (Sight.RELEASED, result)
        assert seen.decided == phrase("said", text=end.decode().strip())
        assert seen.evidence["offset"] == size
        again = condition.look(remembered(seen), START)
        assert (again.decided, again.evidence) == (seen.decided, seen.evidence)


async def test_silence_is_measured_without_the_time_asleep(path: Path) -> None:
    clock = FakeClock()
    with closing(local(path, "--stalled", "30m", clock=clock)) as condition:
        seen = condition.look({}, START)
        assert (seen.sight, seen.again_in_s) == (Sight.HELD, 1800)
        await clock.advance(3600, asleep=True)
        seen = condition.look(seen.memory, START)
        assert (seen.sight, seen.again_in_s) == (Sight.HELD, 1800)
        await clock.advance(1800)
        seen = condition.look(seen.memory, START)
        assert (seen.sight, seen.result) == (Sight.RELEASED, Result.STALLED)
        assert seen.decided == phrase("log_quiet", span="30min")
        append(path, b"more\n")
        assert condition.look(seen.memory, START).sight is Sight.HELD


def test_it_is_woken_by_writes_and_by_another_file_in_its_place(path: Path) -> None:
    with closing(local(path)) as condition:
        seen = condition.look({}, START)
        old = path.stat()
        directory, file = condition.hints()
        assert directory == DirectoryHint(str(path.parent), "x.log")
        assert isinstance(file, FileHint)
        assert (file.inode, file.size) == (old.st_ino, old.st_size)
        path.rename(path.with_name("x.log.1"))
        path.touch()
        condition.look(seen.memory, START)
        inodes = {h.inode for h in condition.hints() if isinstance(h, FileHint)}
        assert inodes == {old.st_ino, path.stat().st_ino}


def test_one_that_is_awaited_is_followed_in_its_directory(tmp_path: Path) -> None:
    with closing(local(tmp_path / "x.log")) as condition:
        condition.look({}, START)
        assert condition.hints() == [DirectoryHint(str(tmp_path), "x.log")]
    with closing(local(Path("/x.log"))) as condition:
        condition.look({}, START)
        assert condition.hints() == [DirectoryHint("/", "x.log")]


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_refused(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "x"
    make(path)
    with closing(local(path)) as condition:
        assert condition.refusal() == phrase("no_log_file", path=str(path))
        assert condition.look({}, START).sight is Sight.UNKNOWN


def test_what_cannot_be_seen_yet_is_not_refused(tmp_path: Path) -> None:
    with closing(local(tmp_path / "missing" / "x.log")) as condition:
        assert condition.refusal() is None
        seen = condition.look({}, START)
        missing = str(tmp_path / "missing")
        assert seen.reason == phrase("directory_missing", path=missing)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("log x.log --pass P", "log /run/x.log --pass P"),
        ("log x --from-start --fail F --pass=-P", "log /run/x --pass=-P --fail F"
         " --from-start"),
        ("log ./a/../x --stalled 90", "log /run/a/../x --stalled 1m30s"),
        ("log /x/ --host box --fail 'a b'", "log /x --fail 'a b' --host box"),
    ],
)  # fmt: skip
def test_a_log_has_one_canonical_text(words: str, text: str) -> None:
    assert target_of(words, place()).text == text
    assert target_of(text, place()).text == text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("log x", "--pass REGEX, --fail REGEX or --stalled"),
        ("log x --from-start", "--pass REGEX, --fail REGEX or --stalled"),
        ("log x --pass '('", "in --pass: missing )"),
        ("log x --fail '['", "in --fail: unterminated"),
        ("log x --pass ''", "an empty --pass"),
        ("log x --stalled 1h30", "--stalled 1h30"),
        ("log '' --pass x", "FILE ''"),
        ("log /x --pass x --host=-oProxyCommand=x", "'-oProxyCommand=x' is no host"),
        ("log --pass x", "FILE"),
    ],
)
def test_what_is_no_log_is_refused_in_words(words: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        target_of(words, place())
    assert said in caught.value.phrase.render(Lang.EN)


def test_an_expression_that_only_warns_is_taken() -> None:
    assert target_of("log /x --pass '[[a]'", place()).label == "x"


class There:
    """A log on a host, asked as an engine asks."""

    def __init__(self, path: Path, *words: str) -> None:
        self.host = FakeHost()
        words = words or ("--pass", "PASS", "--fail", "FAIL")
        asked = ["log", str(path), *words, "--host", "box"]
        self.condition: Condition = condition_of(asked, place(host=self.host))
        self.memory: Memory = {}

    async def look(self) -> Observation:
        looker = self.condition.looker()
        assert looker is not None
        (seen,) = await looker.take([Look(self.condition, self.memory)], START)
        assert seen is not None
        self.memory = remembered(seen)
        return seen


async def test_a_log_on_a_host_ends_with_its_line_and_its_host(path: Path) -> None:
    there = There(path)
    assert (await there.look()).sight is Sight.HELD
    append(path, b"PA")
    assert (await there.look()).sight is Sight.HELD
    append(path, b"SS\n")
    seen = await there.look()
    assert (seen.sight, seen.result) == (Sight.RELEASED, Result.PASS)
    assert seen.evidence["host"] == "box"
    assert (await there.look()).sight is Sight.RELEASED
    for asked in there.host.asked:
        assert "PASS" not in json.dumps(asked)


async def test_a_host_that_is_out_of_reach_releases_nothing(path: Path) -> None:
    there = There(path)
    await there.look()
    append(path, b"PASS\n")
    there.host.silent = phrase("host_silent", host="box")
    seen = await there.look()
    assert (seen.sight, seen.out_of_reach) == (Sight.UNKNOWN, True)
    there.host.silent = None
    assert (await there.look()).sight is Sight.RELEASED


@pytest.mark.parametrize("answer", [{}, {"there": 1}, {"device": 1, "there": [1, 2]}])
async def test_a_host_that_answers_nonsense_releases_nothing(
    path: Path, answer: dict[str, int]
) -> None:
    there = There(path)
    await there.look()
    there.host.answers["log"] = answer
    assert (await there.look()).sight is Sight.UNKNOWN


def test_a_command_that_only_names_a_log_loads_no_event_loop() -> None:
    code = (
        "import sys; from watcher.conditions import log;"
        "sys.exit('asyncio' in sys.modules or 'regex' in sys.modules)"
    )
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code]) == 0


async def test_looks_of_one_log_share_a_request(path: Path) -> None:
    host = FakeHost()
    words = [["log", str(path), "--pass", p, "--host", "box"] for p in ("A", "B")]
    conditions = [condition_of(w, place(host=host)) for w in words]
    looker = conditions[0].looker()
    assert looker is not None
    async with asyncio.timeout(20):
        await looker.take([Look(c, {}) for c in conditions], START)
    assert [len(asked) for asked in host.asked] == [1]
