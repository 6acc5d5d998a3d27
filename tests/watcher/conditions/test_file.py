"""`file`: what names one, and its looks here and on a host."""

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from policies.model import Sight
from policies.wording import phrase
from tests.fakes import START, FakeClock, FakeHost, FakeHosts
from tests.suites.condition import ConditionSuite, Scene, on_threads, remembered
from tests.watcher.rights import closed_to_others, open_folder
from tests.watcher.there import Far
from watcher.conditions import DirectoryHint, LocalCondition, Place
from watcher.config import Config
from watcher.errors import UsageError
from watcher.looked import Here
from watcher.onhost import file as part
from watcher.targets import condition_of, target_of
from watcher.transport import Answer

WHERE = Place(config=Config(), cwd="/cwd", launcher=0)


def build(words: list[str], clock: FakeClock | None = None) -> LocalCondition:
    place = Place(config=Config(), cwd="/cwd", launcher=0, clock=clock or FakeClock())
    condition = condition_of(words, place)
    assert isinstance(condition, Here)
    return condition


@contextmanager
def moved(folder: Path, instead: str) -> Iterator[None]:
    """Put something else, or nothing, where a folder was."""
    aside = folder.rename(folder.with_name("aside"))
    if instead == "file":
        folder.touch()
    try:
        yield
    finally:
        if instead == "file":
            folder.unlink()
        aside.rename(folder)


class FileSuite(ConditionSuite):
    def words(self, path: Path) -> list[str]:
        raise NotImplementedError

    def prepare(self, path: Path) -> None:
        raise NotImplementedError

    def let_clear(self, path: Path, clock: FakeClock) -> None:
        raise NotImplementedError

    def vanished(self, folder: Path) -> AbstractContextManager[None]:
        return moved(folder, "nothing")

    @pytest.fixture
    def scene(self) -> Iterator[Scene]:
        with open_folder() as folder:
            path = folder / "d" / "file"
            path.parent.mkdir()
            self.prepare(path)
            clock = FakeClock()
            yield Scene(
                build=lambda: build(self.words(path), clock),
                release=lambda: self.let_clear(path, clock),
                blind={
                    "unreachable": lambda: moved(path.parent, "file"),
                    "denied": lambda: closed_to_others(path.parent),
                    "vanished": lambda: self.vanished(path.parent),
                },
            )


class TestExists(FileSuite):
    def words(self, path: Path) -> list[str]:
        return ["file", str(path), "--exists"]

    def prepare(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def let_clear(self, path: Path, clock: FakeClock) -> None:
        path.touch()


class TestGone(FileSuite):
    def words(self, path: Path) -> list[str]:
        return ["file", str(path), "--gone"]

    def prepare(self, path: Path) -> None:
        path.touch()

    def let_clear(self, path: Path, clock: FakeClock) -> None:
        path.unlink()

    def vanished(self, folder: Path) -> AbstractContextManager[None]:
        """Let the directory above vanish as well: nothing is left that was seen."""
        return unmounted(folder)


class TestQuiet(FileSuite):
    HINTED = False

    def words(self, path: Path) -> list[str]:
        return ["file", str(path), "--quiet", "1m"]

    def prepare(self, path: Path) -> None:
        path.touch()

    def let_clear(self, path: Path, clock: FakeClock) -> None:
        clock._move(clock.boot() + 60, awake=True)


@contextmanager
def unmounted(folder: Path) -> Iterator[None]:
    """Let a folder be on a mount that went away, as far as anybody can tell."""
    aside = folder.rename(folder.with_name("aside"))
    plain = os.fstat

    def another_device(handle: int) -> os.stat_result:
        seen = list(plain(handle))
        seen[2] += 1  # st_dev
        return os.stat_result(seen)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fstat", another_device)
        try:
            yield
        finally:
            patched.undo()
            aside.rename(folder)


# What names one


@pytest.mark.parametrize(
    ("words", "text", "label"),
    [
        ("file x.log --exists", "file /cwd/x.log --exists", "x.log"),
        ("file --gone ./d/x", "file /cwd/d/x --gone", "x"),
        ("file /a//b/./c/ --gone", "file /a/b/c --gone", "c"),
        ("file '/a b/c d' --gone", "file '/a b/c d' --gone", "c d"),
        ("file /a --quiet 1h30m", "file /a --quiet 5400s", "a"),
        ("file /a --quiet 90", "file /a --quiet 90s", "a"),
        ("file /\udcff --gone", "file '/\udcff' --gone", "\udcff"),
    ],
)
def test_a_file_has_one_canonical_text(words: str, text: str, label: str) -> None:
    target = target_of(words, WHERE)
    assert (target.kind, target.text, target.label) == ("file", text, label)
    assert target_of(text, WHERE) == target
    there = target_of(f"{text} --host me@box:22", WHERE)
    assert (there.text, there.host) == (f"{text} --host me@box:22", "me@box:22")
    assert target_of(there.text, WHERE) == there


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["", "--gone"], phrase("bad_path", name="file", path="")),
        (["/", "--gone"], phrase("bad_path", name="file", path="/")),
        (["/a\0b", "--gone"], phrase("bad_path", name="file", path="/a\0b")),
        (
            ["/" + "n" * 256, "--exists"],
            phrase("bad_path", name="file", path="/" + "n" * 256),
        ),
        (
            ["/a", "--quiet", "1h30"],
            phrase("bad_duration", name="--quiet", value="1h30"),
        ),
        (["/a", "--quiet", "0"], phrase("bad_duration", name="--quiet", value="0")),
        (["/a", "--gone", "--host", "-oX"], None),
        (["/a", "--gone", "--host=-oX"], phrase("bad_host", host="-oX")),
        (["/a"], None),
        (["/a", "--gone", "--exists"], None),
        (["--gone"], None),
    ],
)
def test_what_names_no_file_is_refused(words: list[str], why: object) -> None:
    for ask in (target_of, condition_of):
        with pytest.raises(UsageError) as caught:
            ask(["file", *words], WHERE)
        assert caught.value.phrase == why or why is None


def test_a_rewrite_is_no_release_so_it_must_last() -> None:
    """B03."""
    assert build(["file", "/a", "--gone"]).settle
    assert build(["file", "/a", "--exists"]).settle
    assert not build(["file", "/a", "--quiet", "1m"]).settle


def test_the_directory_is_followed_and_hangs_alone() -> None:
    """B03: the path, not the inode."""
    condition = build(["file", "/d/e/x", "--gone"])
    assert list(condition.hints()) == [DirectoryHint("/d/e", "x")]
    assert condition.group == "/d/e"
    assert list(build(["file", "/x", "--gone"]).hints()) == [DirectoryHint("/", "x")]
    assert build(["file", "/x", "--gone"]).group == "/"


def test_a_near_name_closes_the_line(tmp_path: Path) -> None:
    """B15."""
    (tmp_path / "X.LOCK").touch()
    seen = build(["file", str(tmp_path / "x.lock"), "--gone"]).look({}, START)
    assert seen.remarks == (phrase("near_file", name="X.LOCK"),)


def test_quiet_counts_time_awake_and_is_looked_at_in_time(tmp_path: Path) -> None:
    clock = FakeClock()
    path = tmp_path / "file"
    path.touch()
    condition = build(["file", str(path), "--quiet", "60s"], clock)
    seen = condition.look({}, START)
    assert seen.again_in_s == 60
    clock._move(clock.boot() + 3600, awake=False)
    clock.step_wall(-86400)
    seen = condition.look(remembered(seen), START)
    assert (seen.sight, seen.again_in_s) == (Sight.HELD, 60)
    clock._move(clock.boot() + 60, awake=True)
    assert condition.look(remembered(seen), START).sight is Sight.RELEASED


async def test_a_file_system_that_hangs_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B13."""
    hangs = threading.Event()
    plain = part._identity

    def hang(handle: int) -> list[object]:
        hangs.wait(60)
        return plain(handle)

    monkeypatch.setattr(part, "_identity", hang)
    async with on_threads(build(["file", str(tmp_path / "x"), "--gone"])) as looks:
        seen = await looks.take()
        hangs.set()
    assert seen.sight is Sight.UNKNOWN
    assert seen.evidence["hung"] is True


# On a host


async def test_a_file_of_a_host_is_looked_at_there(tmp_path: Path) -> None:
    """B68."""
    path = tmp_path / "a b" / "x 'y' $HOME.log"
    path.parent.mkdir()
    path.touch()
    far = Far(["file", str(path), "--gone", "--host", "box"], FakeHost())
    held = await far.take()
    assert held.sight is Sight.HELD
    assert held.evidence["host"] == "box"
    assert far.request()["path"] == str(path)
    assert far.condition.settle
    assert far.condition.hints() == []
    path.unlink()
    assert (await far.take()).sight is Sight.RELEASED


async def test_a_host_that_is_silent_or_lies_releases_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch()
    for awaited in ("--gone", "--exists", "--quiet=1s"):
        far = Far(["file", str(path), awaited, "--host", "box"], FakeHost())
        far.host.silent = phrase("host_silent", host="box")
        assert (await far.take()).sight is Sight.UNKNOWN
        far.host.silent = None
        lies: list[Answer] = [{}, {"entry": None}, {"entry": 1}, {"chain": []}]
        for lie in lies:
            far.host.answers["file"] = lie
            assert (await far.take()).sight is Sight.UNKNOWN
        far.host.answers["file"] = {"entry": None, "chain": [], "near": []}
        assert (await far.take()).sight is Sight.UNKNOWN


def test_a_place_that_knows_hosts_builds_no_connection_yet() -> None:
    hosts = FakeHosts()
    place = Place(config=Config(), cwd="/", launcher=0, hosts=hosts)
    condition_of("file /x --gone --host box", place).close()
    assert hosts.hosts["box"].asked == []
