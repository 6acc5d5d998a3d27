"""What wakes a watch early: real directories and descriptors."""

import asyncio
import os
import resource
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import inotify_simple
import pytest
from inotify_simple import INotify

from policies.wording import Phrase
from tests.fakes import until
from tests.watcher.events import followed, overflow
from tests.watcher.rights import open_files
from watcher import hints as module
from watcher import writes
from watcher.conditions import DirectoryHint, FileHint, ReadableHint
from watcher.hints import SystemHints


class Woken(list[str]):
    """Who was woken, in order, and what was said about it."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[Phrase] = []


@pytest.fixture
def woken() -> Woken:
    return Woken()


@pytest.fixture
async def hints(woken: Woken) -> AsyncIterator[SystemHints]:
    """Give hints that leave no descriptor and no thread behind."""
    files, threads = open_files(), threading.active_count()
    hints = SystemHints(woken.append, woken.notes.append)
    yield hints
    hints.close()
    await until(lambda: open_files() <= files)
    await until(lambda: threading.active_count() <= threads)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Give a pipe, and close of it what a test has left open."""
    ends = os.pipe()
    yield ends
    for fd in ends:
        try:
            os.close(fd)
        except OSError:
            continue


@contextmanager
def no_more_files() -> Iterator[None]:
    """Let nothing be opened meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def create(path: Path) -> None:
    path.touch()


def remove(path: Path) -> None:
    path.unlink()


def move_away(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.touch()
    other.rename(path)


class TestDirectories:
    @pytest.mark.parametrize("change", [create, remove, move_away, replace])
    async def test_a_change_of_the_name_wakes_its_watch(
        self,
        hints: SystemHints,
        woken: Woken,
        tmp_path: Path,
        change: Callable[[Path], None],
    ) -> None:
        path = tmp_path / "x.lock"
        if change is not create:
            path.touch()
        assert await hints.follow("w", [DirectoryHint(str(tmp_path), path.name)])
        change(path)
        await until(lambda: woken)
        assert set(woken) == {"w"}

    async def test_a_name_that_is_no_utf_8_wakes_its_watch(
        self, hints: SystemHints, woken: Woken, tmp_path: Path
    ) -> None:
        path = tmp_path / os.fsdecode(b"x\xff.lock")
        await hints.follow("w", [DirectoryHint(str(tmp_path), path.name)])
        path.touch()
        await until(lambda: woken)

    async def test_another_name_wakes_nobody(
        self, hints: SystemHints, woken: Woken, tmp_path: Path
    ) -> None:
        for name in ("one", "two"):
            await hints.follow(name, [DirectoryHint(str(tmp_path), name)])
        for name in ("three", "one.swp", "two"):
            (tmp_path / name).touch()
        await until(lambda: woken)
        assert woken == ["two"]

    async def test_all_watches_of_a_name_are_woken(
        self, hints: SystemHints, woken: Woken, tmp_path: Path
    ) -> None:
        for watch_id in ("a", "b"):
            await hints.follow(watch_id, [DirectoryHint(str(tmp_path), "x")])
        (tmp_path / "x").touch()
        await until(lambda: len(woken) == 2)
        assert sorted(woken) == ["a", "b"]

    async def test_only_a_hint_that_is_new_asks_for_another_look(
        self, hints: SystemHints, tmp_path: Path
    ) -> None:
        wanted = [DirectoryHint(str(tmp_path), "x")]
        assert await hints.follow("a", wanted)
        assert not await hints.follow("a", wanted)
        assert await hints.follow("b", wanted)

    async def test_many_that_follow_one_directory_at_once_are_all_woken(
        self, hints: SystemHints, woken: Woken, tmp_path: Path
    ) -> None:
        everybody = [f"w{i}" for i in range(100)]
        wanted = [DirectoryHint(str(tmp_path), "x")]
        fresh = await asyncio.gather(*(hints.follow(w, wanted) for w in everybody))
        assert all(fresh)
        (tmp_path / "x").touch()
        await until(lambda: len(woken) == len(everybody))

    async def test_a_deleted_directory_wakes_all_and_may_be_followed_anew(
        self, hints: SystemHints, woken: Woken, tmp_path: Path
    ) -> None:
        folder = tmp_path / "locks"
        folder.mkdir()
        wanted = [DirectoryHint(str(folder), "x")]
        await hints.follow("w", wanted)
        folder.rmdir()
        await until(lambda: woken)
        assert not await hints.follow("w", wanted), "it is not there"
        folder.mkdir()
        assert await hints.follow("w", wanted)
        woken.clear()
        (folder / "x").touch()
        await until(lambda: woken)

    async def test_a_renamed_directory_is_followed_under_its_new_name(
        self, hints: SystemHints, woken: Woken, tmp_path: Path
    ) -> None:
        folder = tmp_path / "locks"
        folder.mkdir()
        wanted = [DirectoryHint(str(folder), "x")]
        await hints.follow("w", wanted)
        moved = folder.rename(tmp_path / "moved")
        await until(lambda: woken)
        assert not await hints.follow("w", wanted), "its path leads nowhere"
        woken.clear()
        (moved / "x").touch()
        await until(lambda: woken)

    async def test_a_directory_in_the_place_of_a_renamed_one_is_followed_too(
        self, hints: SystemHints, woken: Woken, tmp_path: Path
    ) -> None:
        folder = tmp_path / "locks"
        folder.mkdir()
        wanted = [DirectoryHint(str(folder), "x")]
        await hints.follow("w", wanted)
        folder.rename(tmp_path / "old")
        folder.mkdir()
        await until(lambda: woken)
        assert await hints.follow("w", wanted)
        woken.clear()
        (folder / "x").touch()
        await until(lambda: woken)

    async def test_two_spellings_of_a_directory_do_not_disturb_each_other(
        self, hints: SystemHints, woken: Woken, tmp_path: Path
    ) -> None:
        folder = tmp_path / "locks"
        folder.mkdir()
        await hints.follow("a", [DirectoryHint(str(folder), "x")])
        await hints.follow("b", [DirectoryHint(f"{folder}/../locks", "x")])
        hints.drop("a")
        (folder / "x").touch()
        await until(lambda: woken)
        assert set(woken) == {"b"}

    async def test_a_dropped_watch_is_woken_no_more(
        self, hints: SystemHints, woken: Woken, tmp_path: Path
    ) -> None:
        for watch_id in ("a", "b"):
            await hints.follow(watch_id, [DirectoryHint(str(tmp_path), "x")])
        hints.drop("a")
        (tmp_path / "x").touch()
        await until(lambda: woken)
        assert woken == ["b"]

    async def test_a_directory_that_nobody_follows_any_more_is_let_go(
        self, hints: SystemHints, woken: Woken, tmp_path: Path
    ) -> None:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            await hints.follow(name, [DirectoryHint(str(tmp_path / name), "x")])
        assert followed() == 2
        hints.drop("one")
        assert followed() == 1
        hints.drop("nobody")
        (tmp_path / "one" / "x").touch()
        (tmp_path / "two" / "x").touch()
        await until(lambda: woken)
        assert woken == ["two"]

    @pytest.mark.parametrize("what", ["missing", "a file"])
    async def test_what_is_no_directory_is_followed_once_it_is_one(
        self, hints: SystemHints, woken: Woken, tmp_path: Path, what: str
    ) -> None:
        folder = tmp_path / "locks"
        if what == "a file":
            folder.touch()
        wanted = [DirectoryHint(str(folder), "x")]
        assert not await hints.follow("w", wanted)
        assert woken.notes == []
        folder.unlink(missing_ok=True)
        folder.mkdir()
        assert await hints.follow("w", wanted)

    async def test_after_lost_events_everybody_is_woken(
        self, hints: SystemHints, woken: Woken, tmp_path: Path
    ) -> None:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            await hints.follow(name, [DirectoryHint(str(tmp_path / name), "x")])
        overflow(tmp_path / "one")
        (tmp_path / "two" / "x").touch()
        await until(lambda: len(woken) == 2)
        assert sorted(woken) == ["one", "two"]


class TestLimits:
    async def test_without_instances_it_degrades_and_says_so_once(
        self, hints: SystemHints, woken: Woken, tmp_path: Path
    ) -> None:
        for _ in range(3):
            with no_more_files():
                wanted = [DirectoryHint(str(tmp_path), "x")]
                assert not await hints.follow("w", wanted)
        assert [note.key for note in woken.notes] == ["inotify_limit"]
        assert woken.notes[0].values == {"error": "EMFILE"}

    async def test_on_another_system_there_are_no_file_events_and_no_complaint(
        self, woken: Woken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.platform", "darwin")
        hints = SystemHints(woken.append, woken.notes.append)
        assert not await hints.follow("w", [DirectoryHint(str(tmp_path), "x")])
        assert woken.notes == []
        hints.close()

    async def test_a_directory_that_hangs_holds_nobody_up(
        self,
        hints: SystemHints,
        woken: Woken,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        gate = threading.Event()

        class Hanging(INotify):  # type: ignore[misc]  # its module has no types
            def add_watch(self, path: str, mask: int) -> int:
                if path.endswith("dead"):
                    gate.wait()
                number: int = super().add_watch(path, mask)
                return number

        monkeypatch.setattr(inotify_simple, "INotify", Hanging)
        monkeypatch.setattr(module, "_ADD_LIMIT_S", 0.05)
        for name in ("dead", "live"):
            (tmp_path / name).mkdir()
        dead = [DirectoryHint(str(tmp_path / "dead"), "x")]
        live = [DirectoryHint(str(tmp_path / "live"), "x")]
        both = asyncio.gather(hints.follow("d", dead), hints.follow("l", live))
        assert not any(await both)
        gate.set()
        await until(lambda: not hints._worker.busy)
        assert await hints.follow("l", live)
        assert await hints.follow("d", dead)
        (tmp_path / "live" / "x").touch()
        await until(lambda: woken)
        assert woken == ["l"]


class TestDescriptors:
    async def test_a_readable_descriptor_wakes_its_watch_once(
        self, hints: SystemHints, woken: Woken, pipe: tuple[int, int]
    ) -> None:
        wanted = [ReadableHint(pipe[0], "it")]
        await hints.follow("w", wanted)
        os.write(pipe[1], b"x")
        await until(lambda: woken)
        await hints.follow("w", wanted)
        for _ in range(10):
            await asyncio.sleep(0)
        assert woken == ["w"]

    async def test_one_that_is_readable_already_wakes_as_well(
        self, hints: SystemHints, woken: Woken, pipe: tuple[int, int]
    ) -> None:
        os.write(pipe[1], b"x")
        await hints.follow("w", [ReadableHint(pipe[0], "it")])
        await until(lambda: woken)

    async def test_one_that_is_wanted_no_more_wakes_nobody(
        self, hints: SystemHints, woken: Woken, pipe: tuple[int, int], tmp_path: Path
    ) -> None:
        await hints.follow("w", [ReadableHint(pipe[0], "it")])
        await hints.follow("w", [DirectoryHint(str(tmp_path), "x")])
        os.write(pipe[1], b"x")
        (tmp_path / "x").touch()
        await until(lambda: woken)
        assert woken == ["w"]
        assert hints._fds == {}

    async def test_a_dropped_watch_is_woken_no_more(
        self, hints: SystemHints, woken: Woken, pipe: tuple[int, int]
    ) -> None:
        await hints.follow("a", [ReadableHint(pipe[0], "it")])
        await hints.follow("b", [ReadableHint(pipe[0], "it")])
        hints.drop("a")
        os.write(pipe[1], b"x")
        await until(lambda: woken)
        assert woken == ["b"]

    async def test_a_number_that_the_condition_gave_back_can_be_used_by_others(
        self, hints: SystemHints, woken: Woken, pipe: tuple[int, int]
    ) -> None:
        await hints.follow("w", [ReadableHint(pipe[0], "old")])
        fd = pipe[0]
        reader, writer = os.pipe()
        os.dup2(reader, fd)  # closes what was there, as another thread might
        os.close(reader)
        heard = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(fd, heard.set)
        os.write(writer, b"x")
        async with asyncio.timeout(20):
            await heard.wait()
        loop.remove_reader(fd)
        assert woken == []
        await hints.follow("w", [ReadableHint(fd, "new")])
        await until(lambda: woken)
        os.close(writer)

    @pytest.mark.parametrize("what", ["closed", "no more files", "a plain file"])
    async def test_one_that_cannot_be_followed_is_left_to_the_timer(
        self,
        hints: SystemHints,
        woken: Woken,
        pipe: tuple[int, int],
        what: str,
        tmp_path: Path,
    ) -> None:
        fd = pipe[0]
        if what == "closed":
            os.close(fd)
            assert not await hints.follow("w", [ReadableHint(fd, "it")])
        elif what == "no more files":
            with no_more_files():
                assert not await hints.follow("w", [ReadableHint(fd, "it")])
        else:
            with (tmp_path / "plain").open("wb") as plain:
                wanted = [ReadableHint(plain.fileno(), "it")]
                assert not await hints.follow("w", wanted)
        assert hints._fds == {}
        assert woken == []


class TestFiles:
    @pytest.fixture
    def log(self, tmp_path: Path) -> Iterator["Opened"]:
        path = tmp_path / "x.log"
        path.write_bytes(b"begun\n")
        opened = Opened(path)
        yield opened
        os.close(opened.fd)

    @pytest.fixture(autouse=True)
    def _pause(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make it short: most tests wait for its end."""
        monkeypatch.setattr(writes, "_EVERY_S", 0.02)

    async def test_a_write_wakes_its_watch(
        self, hints: SystemHints, woken: Woken, log: "Opened"
    ) -> None:
        assert not await hints.follow("w", [log.hint()])
        log.write()
        await until(lambda: woken)
        assert set(woken) == {"w"}

    async def test_so_does_one_by_whoever_has_renamed_it(
        self, hints: SystemHints, woken: Woken, log: "Opened"
    ) -> None:
        log.path.rename(log.path.with_name("x.log.1"))
        log.path.write_bytes(b"another\n")
        assert not await hints.follow("w", [log.hint()])
        log.path.with_name("x.log.1").open("ab").close()
        await until(lambda: woken)

    async def test_every_look_may_follow_it_anew(
        self, hints: SystemHints, woken: Woken, log: "Opened"
    ) -> None:
        await hints.follow("w", [log.hint()])
        for _ in range(5):
            woken.clear()
            log.write()
            await until(lambda: woken)
            await hints.follow("w", [log.hint()])
        assert not await hints.follow("w", [log.hint()]), "it is followed already"

    async def test_what_was_written_since_the_look_asks_for_another(
        self, hints: SystemHints, log: "Opened"
    ) -> None:
        seen = log.hint()
        log.write()
        assert await hints.follow("w", [seen])

    async def test_what_was_written_in_the_pause_wakes_behind_it(
        self, hints: SystemHints, woken: Woken, log: "Opened"
    ) -> None:
        await hints.follow("w", [log.hint()])
        log.write()
        await until(lambda: woken)
        seen = log.hint()
        woken.clear()
        assert not await hints.follow("w", [seen])
        log.write()
        await until(lambda: woken)

    async def test_a_file_written_to_all_the_time_wakes_once_a_pause(
        self,
        hints: SystemHints,
        woken: Woken,
        log: "Opened",
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(writes, "_EVERY_S", 3600.0)
        await hints.follow("w", [log.hint()])
        log.write()
        await until(lambda: woken)
        for _ in range(100):
            log.write()
            await hints.follow("w", [log.hint()])
        other = Opened(log.path.with_name("other"))
        await hints.follow("o", [other.hint()])
        other.write()
        await until(lambda: "o" in woken)
        assert woken == ["w", "o"]
        os.close(other.fd)

    async def test_two_watches_of_one_file_are_both_woken(
        self, hints: SystemHints, woken: Woken, log: "Opened"
    ) -> None:
        for watch_id in ("a", "b"):
            await hints.follow(watch_id, [log.hint()])
        log.write()
        await until(lambda: len(woken) == 2)
        assert sorted(woken) == ["a", "b"]

    async def test_a_dropped_watch_is_woken_no_more(
        self, hints: SystemHints, woken: Woken, log: "Opened"
    ) -> None:
        for watch_id in ("a", "b"):
            await hints.follow(watch_id, [log.hint()])
        hints.drop("a")
        log.write()
        await until(lambda: woken)
        assert woken == ["b"]

    async def test_a_file_that_nobody_follows_any_more_is_let_go(
        self, hints: SystemHints, log: "Opened"
    ) -> None:
        await hints.follow("a", [log.hint()])
        assert followed() == 1
        await hints.follow("a", [])
        assert followed() == 0
        await hints.follow("a", [log.hint()])
        hints.drop("a")
        assert followed() == 0

    async def test_a_watch_that_is_dropped_in_its_pause_follows_nothing(
        self,
        hints: SystemHints,
        woken: Woken,
        log: "Opened",
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(writes, "_EVERY_S", 3600.0)
        await hints.follow("a", [log.hint()])
        log.write()
        await until(lambda: woken)
        await hints.follow("a", [log.hint()])
        assert hints._writes._pauses
        hints.drop("a")
        assert not hints._writes._pauses
        await hints.follow("b", [log.hint()])
        log.write()
        await until(lambda: len(woken) == 2)
        await hints.follow("b", [log.hint()])  # closed in its pause

    async def test_one_that_cannot_be_followed_is_left_to_the_timer(
        self, hints: SystemHints, woken: Woken, log: "Opened"
    ) -> None:
        gone = FileHint("/proc/self/fd/99999", 1, 0)
        assert not await hints.follow("w", [gone, log.hint()])
        log.write()
        await until(lambda: woken)
        assert woken.notes == []

    async def test_without_events_nothing_is_followed(
        self, hints: SystemHints, log: "Opened"
    ) -> None:
        hints._usable = False
        assert not await hints.follow("w", [log.hint()])
        assert followed() == 0

    async def test_a_lost_event_wakes_who_follows_a_file(
        self, hints: SystemHints, woken: Woken, log: "Opened"
    ) -> None:
        folder = log.path.parent / "noise"
        folder.mkdir()
        await hints.follow("d", [DirectoryHint(str(folder), "x")])
        await hints.follow("w", [log.hint()])
        overflow(folder)
        await until(lambda: "w" in woken)

    async def test_one_that_does_not_say_how_it_is_asks_for_another_look(
        self, hints: SystemHints, log: "Opened", monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def silent(path: str) -> None:
            return None

        monkeypatch.setattr(hints, "state", silent)
        assert await hints.follow("w", [log.hint()])
        assert followed() == 0

    async def test_a_file_whose_state_cannot_be_had_has_none(
        self, hints: SystemHints, tmp_path: Path
    ) -> None:
        assert await hints.state(str(tmp_path / "missing")) is None

    async def test_what_is_dropped_while_it_is_added_is_let_go(
        self, hints: SystemHints, log: "Opened", monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add, state = hints.add, hints.state

        async def add_and_drop(path: str) -> int | None:
            number = await add(path)
            hints.drop("w")
            return number

        async def state_and_drop(path: str) -> tuple[int, int] | None:
            found = await state(path)
            hints.drop("w")
            return found

        monkeypatch.setattr(hints, "add", add_and_drop)
        assert not await hints.follow("w", [log.hint()])
        assert followed() == 0
        monkeypatch.setattr(hints, "add", add)
        monkeypatch.setattr(hints, "state", state_and_drop)
        assert not await hints.follow("w", [log.hint()])
        assert followed() == 0

    async def test_closing_stops_what_is_being_added(
        self, woken: Woken, log: "Opened", monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hints = SystemHints(woken.append, woken.notes.append)
        await hints.follow("w", [log.hint()])
        log.write()
        await until(lambda: woken)
        hang = asyncio.Event()

        async def hanging(path: str) -> None:
            hang.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(hints, "add", hanging)
        await hints.follow("w", [log.hint()])
        await hang.wait()
        hints.close()
        await until(lambda: not hints._writes._tasks)


class Opened:
    """A file as a look has it: open, and of some size."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)

    def write(self) -> None:
        os.write(self.fd, b"more\n")

    def hint(self) -> FileHint:
        found = os.fstat(self.fd)
        return FileHint(f"/proc/self/fd/{self.fd}", found.st_ino, found.st_size)
