"""Lock files: present in its directory means held (C3.1, C3.2, C3.8)."""

import asyncio
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from policies.model import Ending, Json, Memory, Observation, Sight
from policies.target import lock_target
from policies.verdict import Rules
from policies.wording import Phrase, phrase
from tests.e2e.command import COMMAND, Place, Running
from tests.e2e.command import until as wait_until
from tests.fakes import START, FakeClock, FakeListener, until
from tests.suites.condition import ConditionSuite, Scene, on_threads, remembered
from tests.watcher.events import followed, overflow
from tests.watcher.rights import (
    as_another_user,
    closed_to_others,
    open_files,
    open_folder,
)
from tests.watcher.work import working
from watcher.conditions import DirectoryHint
from watcher.conditions import Place as Where
from watcher.conditions.lock import LockCondition
from watcher.config import Config, Locks
from watcher.engine import Engine, Watch
from watcher.errors import UsageError
from watcher.targets import condition_of, target_of

NO_PID = 4194304
SLACK_S = 6.0  # of a machine that is busy; a look would be given up after 10


def lock(path: Path | str) -> LockCondition:
    folder = str(path).rpartition("/")[0]
    target = lock_target(str(path), folder)
    return LockCondition(target, str(path))


@contextmanager
def replaced_by_a_file(folder: Path) -> Iterator[None]:
    """Put a file where a folder was: no path below it can be reached."""
    moved = folder.rename(folder.with_name("moved"))
    folder.touch()
    try:
        yield
    finally:
        folder.unlink()
        moved.rename(folder)


@contextmanager
def moved_away(folder: Path) -> Iterator[None]:
    """Let a folder's path lead nowhere."""
    moved = folder.rename(folder.with_name("moved"))
    try:
        yield
    finally:
        moved.rename(folder)


class TestLock(ConditionSuite):
    FOLLOWED = frozenset({"vanished"})  # a renamed directory

    @pytest.fixture
    def scene(self) -> Iterator[Scene]:
        with open_folder() as folder:
            path = folder / "locks" / "lock-demo.md"
            path.parent.mkdir()
            path.write_text("---\nsession: s1\n---\n")
            yield Scene(
                build=lambda: lock(path),
                release=path.unlink,
                blind={
                    "unreachable": lambda: replaced_by_a_file(path.parent),
                    "denied": lambda: closed_to_others(path.parent),
                    "vanished": lambda: moved_away(path.parent),
                },
            )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the path of a lock in a directory of its own; the lock is there."""
    path = tmp_path / "locks" / "lock-demo.md"
    path.parent.mkdir()
    path.touch()
    return path


class Looks:
    """Looks that hand their memory on, all on this thread."""

    def __init__(self, path: Path | str, memory: Memory | None = None) -> None:
        self._condition = lock(path)
        self.memory = memory or {}

    def take(self) -> Observation:
        observation = self._condition.look(self.memory, START)
        self.memory = remembered(observation)
        return observation

    def same(self) -> bool:
        """Take a quick look."""
        return self._condition.unchanged(self.memory)

    def close(self) -> None:
        self._condition.close()


@contextmanager
def looking(path: Path | str, memory: Memory | None = None) -> Iterator[Looks]:
    """Give looks at a lock; nothing stays open behind them."""
    files = open_files()
    looks = Looks(path, memory)
    try:
        yield looks
    finally:
        looks.close()
    assert open_files() <= files


@contextmanager
def seen(path: Path) -> Iterator[Looks]:
    """Give looks at a lock that was seen held."""
    with looking(path) as looks:
        assert looks.take().sight is Sight.HELD
        yield looks


def keys(phrases: tuple[Phrase, ...]) -> list[str]:
    return [each.key for each in phrases]


def place_of(cwd: Path, locks: Path | str | None) -> Where:
    """Return where a target is written, with a lock directory of its own."""
    config = Config(locks=Locks(dir=None if locks is None else str(locks)))
    return Where(config=config, cwd=str(cwd), launcher=os.getpid())


class TestNames:
    """From what a person writes to the file that is looked at."""

    @pytest.mark.parametrize(
        ("written", "text", "found"),
        [
            pytest.param("demo", "lock demo", "lock-demo.md", id="a slug"),
            pytest.param(
                "./locks/lock-demo.md", "lock demo", "lock-demo.md", id="its path"
            ),
            pytest.param(
                "./link/lock-demo.md", "lock demo", "lock-demo.md", id="by a link"
            ),
            pytest.param(
                "./locks/x.lock", "lock {locks}/x.lock", "x.lock", id="no slug"
            ),
            pytest.param(
                "./link/x.lock",
                "lock {tmp}/link/x.lock",
                "x.lock",
                id="a link, no slug",
            ),
        ],
    )
    def test_a_lock_is_found_by_slug_or_path(
        self, tmp_path: Path, written: str, text: str, found: str
    ) -> None:
        locks = tmp_path / "locks"
        locks.mkdir()
        (tmp_path / "link").symlink_to(locks)
        where = place_of(tmp_path, locks)
        condition = condition_of(["lock", written], where)
        assert isinstance(condition, LockCondition)
        expected = text.format(locks=locks, tmp=tmp_path)
        assert condition.target.text == expected
        assert target_of(["lock", written], where) == condition.target
        assert os.path.realpath(condition.path) == str(locks / found)
        assert condition.look({}, START).sight is Sight.RELEASED
        condition.close()

    def test_a_relative_lock_directory_is_that_of_the_project(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / ".git").mkdir()
        deep = tmp_path / "a" / "b"
        deep.mkdir(parents=True)
        condition = condition_of("lock demo", place_of(deep, "locks"))
        assert isinstance(condition, LockCondition)
        assert condition.path == str(tmp_path / "locks" / "lock-demo.md")
        condition.close()

    @pytest.mark.parametrize(
        ("written", "key"),
        [
            pytest.param("./locks/", "is_directory", id="a directory"),
            pytest.param("./" + "x" * 300, "bad_path", id="no possible path"),
            pytest.param("de mo", "bad_slug", id="no slug"),
            pytest.param("-demo", "bad_slug", id="an option"),
            pytest.param("", "bad_slug", id="nothing"),
            pytest.param("demo", "no_lock_dir", id="no directory for slugs"),
        ],
    )
    def test_what_names_no_lock_is_refused(
        self, tmp_path: Path, written: str, key: str
    ) -> None:
        with pytest.raises(UsageError) as caught:
            condition_of(["lock", "--", written], place_of(tmp_path, None))
        assert caught.value.phrase.key == key


class TestWhatHolds:
    @pytest.mark.parametrize("kind", ["dangling link", "link", "directory", "fifo"])
    def test_whatever_its_type(self, path: Path, kind: str) -> None:
        path.unlink()
        match kind:
            case "dangling link":
                path.symlink_to("ana@laptop.123:1")
            case "link":
                path.symlink_to("/etc/hostname")
            case "directory":
                path.mkdir()
            case _:
                os.mkfifo(path)
        with seen(path) as looks:
            path.rmdir() if kind == "directory" else path.unlink()
            assert looks.take().sight is Sight.RELEASED

    @pytest.mark.parametrize(
        "content",
        [
            pytest.param(b"", id="empty"),
            pytest.param(b'{"session": "s1", "ho', id="half written"),
            pytest.param(b"---\nsession: s1\n", id="front matter without an end"),
            pytest.param(b"\xff\xfe\x00\n---\x9b31m", id="bytes that are no text"),
            pytest.param(b"[" * 100_000, id="deeply nested"),
            pytest.param(os.urandom(65536) * 800, id="50 MB of anything"),
        ],
    )
    def test_whatever_it_says(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        with seen(path) as looks:
            observation = looks.take()
            assert observation.sight is Sight.HELD
            assert observation.evidence["holder"] is None
            assert len(json.dumps(observation.memory)) < 1000

    def test_a_fifo_is_never_opened(self, path: Path) -> None:
        path.unlink()
        os.mkfifo(path)
        nobody_reads_it = pytest.raises(OSError, match="No such device")
        with seen(path), nobody_reads_it:
            os.open(path, os.O_WRONLY | os.O_NONBLOCK)

    def test_one_that_may_not_be_read(self) -> None:
        with open_folder() as folder:
            path = folder / "x.lock"
            path.write_text('{"session": "s1"}')
            with closed_to_others(path), seen(path) as looks:
                assert looks.memory["holder"] is None

    def test_one_whose_directory_cannot_be_opened_now(self, path: Path) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with looking(path) as looks:
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
            try:
                assert looks.take().sight is Sight.HELD
                path.unlink()
                blind = looks.take()
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            assert blind.sight is Sight.UNKNOWN
            assert blind.evidence["errno"] == "EMFILE"

    def test_one_whose_directory_could_not_be_opened_yet(self, path: Path) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with looking(path) as looks:
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
            try:
                observation = looks.take()
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            assert observation.sight is Sight.HELD
            assert observation.memory["device"] is None
            assert not looks.same()
            path.unlink()
            assert looks.take().sight is Sight.RELEASED

    def test_one_that_is_no_file_any_more_when_it_is_opened(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path.write_text('{"session": "s1"}')
        real = os.open

        def swapped(name: str, flags: int, **more: int) -> int:
            if name == path.name:
                path.unlink()
                os.mkfifo(path)
            return real(name, flags, **more)

        monkeypatch.setattr(os, "open", swapped)
        with looking(path) as looks:
            observation = looks.take()
            assert observation.sight is Sight.HELD
            assert observation.evidence["holder"] is None

    def test_a_lock_in_the_root_of_all(self) -> None:
        with looking("/etc") as looks:
            assert looks.take().sight is Sight.HELD
        assert list(lock("/etc").hints()) == [DirectoryHint("/", "etc")]

    def test_a_name_that_is_no_utf_8(self, path: Path) -> None:
        odd = path.with_name(os.fsdecode(b"x\xff.lock"))
        odd.touch()
        with seen(odd) as looks:
            odd.unlink()
            assert looks.take().sight is Sight.RELEASED


class TestAbsent:
    def test_a_free_lock_is_released_at_the_first_look(self, path: Path) -> None:
        path.unlink()
        with looking(path) as looks:
            observation = looks.take()
            assert observation.sight is Sight.RELEASED
            assert observation.remarks == ()
            assert observation.evidence["errno"] == "ENOENT"

    @pytest.mark.parametrize(
        ("wanted", "present"),
        [
            pytest.param("lock-meta-contxt.md", "meta-context", id="a slip in a slug"),
            pytest.param("x.lock", "X.LOCK", id="case"),
            pytest.param(
                unicodedata.normalize("NFD", "café.lock"),
                unicodedata.normalize("NFC", "café.lock"),
                id="Unicode form",
            ),
        ],
    )
    def test_a_lock_with_a_near_name_is_named(
        self, path: Path, wanted: str, present: str
    ) -> None:
        file = f"lock-{present}.md" if wanted.startswith("lock-") else present
        path.with_name(file).touch()
        path.with_name("something-else.txt").touch()
        with looking(path.with_name(wanted)) as looks:
            for _ in range(2):
                observation = looks.take()
                assert observation.sight is Sight.RELEASED
                assert observation.remarks == (phrase("near_lock", name=present),)

    def test_a_lock_that_was_held_before_has_no_near_name(self, path: Path) -> None:
        path.with_name("lock-dem0.md").touch()
        with seen(path) as looks:
            path.unlink()
            assert looks.take().remarks == ()

    def test_a_directory_that_may_not_be_listed_has_no_near_name(self) -> None:
        with open_folder() as folder:
            (folder / "lock-dem0.md").touch()
            folder.chmod(0o311)
            path = folder / "lock-demo.md"
            with looking(path) as looks, as_another_user():
                observation = looks.take()
            assert (observation.sight, observation.remarks) == (Sight.RELEASED, ())

    def test_a_directory_that_is_not_there_is_unknown(self, path: Path) -> None:
        path.unlink()
        path.parent.rmdir()
        with looking(path) as looks:
            observation = looks.take()
            assert observation.sight is Sight.UNKNOWN
            assert observation.reason == phrase(
                "directory_missing", path=str(path.parent)
            )
            path.parent.mkdir()
            assert looks.take().sight is Sight.RELEASED


class TestChange:
    """A lock that was given back and taken again is still held; who has it is told."""

    def test_another_file_under_the_name_may_be_another_holder(
        self, path: Path
    ) -> None:
        with seen(path) as looks:
            before = looks.memory["entry"]
            path.unlink()
            path.touch()
            observation = looks.take()
            assert observation.sight is Sight.HELD
            assert observation.notes == (phrase("maybe_retaken", label="demo"),)
            (change,) = changes(observation)
            assert change["before"] == before != change["after"]
            assert change["after"] == looks.memory["entry"]
            assert change["at"] == observation.at.isoformat()
            path.unlink()
            assert changes(looks.take()) == [change]

    def test_a_rename_over_the_path_is_no_release(self, path: Path) -> None:
        with seen(path) as looks:
            other = path.with_name("other")
            other.touch()
            other.rename(path)
            observation = looks.take()
            assert observation.sight is Sight.HELD
            assert keys(observation.notes) == ["maybe_retaken"]
            path.unlink()
            assert looks.take().sight is Sight.RELEASED

    @pytest.mark.parametrize(
        ("after", "name"),
        [
            pytest.param({"session": "s2", "host": "h", "pid": 7}, "s2", id="session"),
            pytest.param({"host": "box", "pid": 7}, "box", id="host"),
            pytest.param({"pid": 7}, "7", id="pid"),
            pytest.param({"since": "today"}, phrase("someone"), id="nobody in words"),
        ],
    )
    def test_the_new_holder_is_named(
        self, path: Path, after: Mapping[str, Json], name: str | Phrase
    ) -> None:
        path.write_text('{"session": "s1"}')
        with seen(path) as looks:
            path.write_text(json.dumps(after))
            observation = looks.take()
            assert observation.notes == (phrase("retaken", label="demo", holder=name),)
            (change,) = changes(observation)
            assert change["holder"] == observation.evidence["holder"]

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            pytest.param("", '{"session": "s1"}', id="written after it was made"),
            pytest.param('{"session": "s1"}', "", id="being rewritten"),
            pytest.param("anything", "something", id="it names nobody"),
        ],
    )
    def test_where_a_holder_is_not_known_none_is_claimed(
        self, path: Path, before: str, after: str
    ) -> None:
        path.write_text(before)
        with seen(path) as looks:
            path.write_text(after)
            observation = looks.take()
            assert keys(observation.notes) == ["maybe_retaken"]

    def test_a_holder_that_rewrites_its_lock_is_no_change_of_holder(
        self, path: Path
    ) -> None:
        path.write_text('{"session": "s1"}')
        with seen(path) as looks:
            path.unlink()
            path.write_text('{"session": "s1"} ')
            observation = looks.take()
            assert observation.notes == ()
            assert len(changes(observation)) == 1

    def test_only_the_last_changes_are_kept(self, path: Path) -> None:
        with seen(path) as looks:
            for i in range(15):
                path.write_text(json.dumps({"session": f"s{i}"}))
                observation = looks.take()
            kept = [change["holder"] for change in changes(observation)]
            assert len(kept) == 10
            assert kept[-1] == observation.evidence["holder"]


def changes(observation: Observation) -> list[Mapping[str, Json]]:
    found = observation.evidence["changes"]
    assert isinstance(found, list)
    return found


class TestOrphan:
    """A dead holder is told, never acted upon (C3.8)."""

    HERE = socket.gethostname()

    @pytest.mark.parametrize(
        "form",
        [
            pytest.param("{pid}\n{host}\n", id="two lines"),
            pytest.param('{{"pid": {pid}, "host": "{host}"}}', id="JSON"),
            pytest.param("---\npid: {pid}\nhost: {host}\n---\n", id="front matter"),
        ],
    )
    def test_a_holder_that_does_not_exist_here_is_remarked(
        self, path: Path, form: str
    ) -> None:
        path.write_text(form.format(pid=NO_PID - 1, host=self.HERE))
        with seen(path) as looks:
            observation = looks.take()
            assert observation.sight is Sight.HELD
            assert observation.remarks == (phrase("orphan", pid=NO_PID - 1),)
            assert observation.evidence["orphan"] is True
        assert path.exists()

    def test_a_holder_that_dies_meanwhile_is_remarked_then(self, path: Path) -> None:
        with working() as work:
            path.write_text(f"{work.pid}\n{self.HERE.upper()}\n")
            with seen(path) as looks:
                assert looks.take().remarks == ()
                work.end()
                assert keys(looks.take().remarks) == ["orphan"]

    @pytest.mark.parametrize(
        "content",
        [
            pytest.param(f"{NO_PID - 1}\nelsewhere-{HERE}\n", id="another host"),
            pytest.param(f'{{"pid": {NO_PID - 1}}}', id="no host"),
            pytest.param(f'{{"host": "{HERE}"}}', id="no pid"),
            pytest.param(f"{os.getpid()}\n{HERE}\n", id="alive"),
            pytest.param(f"{os.getpid()} {HERE}", id="no entry at all"),
        ],
    )
    def test_without_proof_nothing_is_claimed(self, path: Path, content: str) -> None:
        path.write_text(content)
        with seen(path) as looks:
            observation = looks.take()
            assert observation.remarks == ()
            assert observation.evidence["orphan"] is False

    def test_a_holder_of_another_user_is_alive(self) -> None:
        with open_folder() as folder, working() as work:
            path = folder / "x.lock"
            path.write_text(f"{work.pid}\n{self.HERE}\n")
            with looking(path) as looks, as_another_user():
                assert looks.take().remarks == ()


class TestDirectory:
    """Not to be seen any more is not the same as gone (C3.2)."""

    def test_one_that_was_deleted_took_its_locks_with_it(self, path: Path) -> None:
        with seen(path) as looks:
            path.unlink()
            path.parent.rmdir()
            observation = looks.take()
            assert observation.sight is Sight.RELEASED
            assert observation.evidence["directory_deleted"] is True

    def test_one_that_was_deleted_and_made_anew_too(self, path: Path) -> None:
        with seen(path) as looks:
            path.unlink()
            path.parent.rmdir()
            path.parent.mkdir()
            for _ in range(2):
                assert looks.take().sight is Sight.RELEASED
            path.touch()
            assert looks.take().sight is Sight.HELD

    @pytest.mark.parametrize("renamed", ["the directory", "one above it"])
    def test_one_that_was_renamed_is_followed(
        self, path: Path, tmp_path: Path, renamed: str
    ) -> None:
        deep = tmp_path / "above" / "locks"
        deep.parent.mkdir()
        path.parent.rename(deep)
        with seen(deep / path.name) as looks:
            if renamed == "the directory":
                moved = deep.rename(tmp_path / "moved")
            else:
                moved = deep.parent.rename(tmp_path / "moved") / "locks"
            observation = looks.take()
            assert observation.sight is Sight.HELD
            assert observation.notes == ()
            (moved / path.name).unlink()
            observation = looks.take()
            assert observation.sight is Sight.RELEASED
            assert observation.evidence["directory_renamed_to"] == str(moved)

    def test_one_that_was_renamed_and_then_deleted_is_gone(self, path: Path) -> None:
        with seen(path) as looks:
            moved = path.parent.rename(path.parent.with_name("moved"))
            assert looks.take().sight is Sight.HELD
            (moved / path.name).unlink()
            moved.rmdir()
            observation = looks.take()
            assert observation.sight is Sight.RELEASED
            assert observation.evidence["directory_deleted"] is True

    def test_a_lock_is_held_in_the_old_or_the_new_one_of_a_replaced_directory(
        self, path: Path
    ) -> None:
        with seen(path) as looks:
            old = path.parent.rename(path.parent.with_name("old"))
            path.parent.mkdir()
            assert looks.take().sight is Sight.HELD
            (old / path.name).rename(path)
            assert looks.take().sight is Sight.HELD
            path.unlink()
            assert looks.take().sight is Sight.RELEASED

    def test_what_was_seen_last_in_the_new_one_is_released_there(
        self, path: Path
    ) -> None:
        with seen(path) as looks:
            old = path.parent.rename(path.parent.with_name("old"))
            path.parent.mkdir()
            path.touch()
            assert looks.take().sight is Sight.HELD
            path.unlink()
            assert (old / path.name).exists()
            assert looks.take().sight is Sight.RELEASED

    def test_one_made_anew_is_followed_like_the_first(self, path: Path) -> None:
        with seen(path) as looks:
            path.unlink()
            path.parent.rmdir()
            path.parent.mkdir()
            path.touch()
            assert looks.take().sight is Sight.HELD
            moved = path.parent.rename(path.parent.with_name("moved"))
            assert looks.take().sight is Sight.HELD, "it went with its folder"
            (moved / path.name).unlink()
            assert looks.take().sight is Sight.RELEASED

    def test_a_link_that_leads_elsewhere_now_is_a_replaced_directory(
        self, path: Path, tmp_path: Path
    ) -> None:
        link = tmp_path / "current"
        link.symlink_to(path.parent)
        with seen(link / path.name) as looks:
            other = tmp_path / "other"
            other.mkdir()
            (other / path.name).touch()
            link.unlink()
            link.symlink_to(other)
            assert looks.take().sight is Sight.HELD
            (other / path.name).unlink()
            assert looks.take().sight is Sight.RELEASED

    def test_after_a_restart_another_device_proves_nothing(self, path: Path) -> None:
        with seen(path) as looks:
            memory = {**looks.memory, "device": NO_PID}
        path.unlink()
        with looking(path, memory) as looks:
            observation = looks.take()
            assert observation.sight is Sight.UNKNOWN
            assert observation.reason == phrase("unmounted", path=str(path.parent))
            path.touch()
            assert looks.take().sight is Sight.HELD, "here it is"
            path.unlink()
            assert looks.take().sight is Sight.RELEASED


def nothing(path: Path) -> None:
    """Leave it as it is."""


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.touch()
    other.rename(path)


def given_back_and_taken_again(path: Path) -> None:
    path.unlink()
    path.touch()


def rewritten(path: Path) -> None:
    path.write_text("something else")


def folder_renamed(path: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))


def folder_made_anew(path: Path) -> None:
    folder_renamed(path)
    path.parent.mkdir()


def folder_is_a_file(path: Path) -> None:
    folder_renamed(path)
    path.parent.touch()


class TestQuickLooks:
    """Held just as before is all that a quick look may say."""

    CHANGES = (
        pytest.param(nothing, Sight.HELD, id="nothing"),
        pytest.param(Path.unlink, Sight.RELEASED, id="removed"),
        pytest.param(replaced, Sight.HELD, id="renamed over"),
        pytest.param(given_back_and_taken_again, Sight.HELD, id="taken again"),
        pytest.param(rewritten, Sight.HELD, id="rewritten"),
        pytest.param(folder_renamed, Sight.HELD, id="its folder renamed"),
        pytest.param(folder_made_anew, Sight.HELD, id="its folder made anew"),
        pytest.param(folder_is_a_file, Sight.UNKNOWN, id="its folder a file"),
    )

    @pytest.mark.parametrize(("change", "sight"), CHANGES)
    def test_whatever_changed_is_left_to_a_whole_look(
        self, path: Path, change: Callable[[Path], None], sight: Sight
    ) -> None:
        with seen(path) as looks:
            assert looks.same()
            change(path)
            assert looks.same() is (change is nothing)
            assert looks.take().sight is sight

    @pytest.mark.parametrize(("change", "sight"), CHANGES)
    async def test_without_any_event_the_next_look_by_the_timer_sees_it(
        self, path: Path, change: Callable[[Path], None], sight: Sight
    ) -> None:
        async with engine() as bench:
            watch = bench.arm("w", lock(path), ttl_s=3600)
            await until(lambda: watch.waiting)
            await bench.poll(watch)
            assert bench.listener.seen == [("w", Sight.HELD)], "that was a quick one"
            change(path)
            await bench.poll(watch)
            whole = [] if change is nothing else [("w", sight)]
            assert bench.listener.seen[1:] == whole

    async def test_one_that_may_not_be_seen_any_more_is_unknown_by_the_timer(
        self,
    ) -> None:
        with open_folder() as folder:
            path = folder / "locks" / "lock-demo.md"
            path.parent.mkdir()
            path.touch()
            async with engine() as bench:
                watch = bench.arm("w", lock(path), ttl_s=3600)
                await until(lambda: watch.waiting)
                with closed_to_others(path.parent):
                    await bench.poll(watch)
                assert bench.listener.seen[1:] == [("w", Sight.UNKNOWN)]
                assert bench.listener.outcomes == {}

    def test_a_holder_that_died_is_no_matter_for_a_quick_look(self, path: Path) -> None:
        with working() as work:
            path.write_text(f"{work.pid}\n{socket.gethostname()}\n")
            with seen(path) as looks:
                assert looks.same()
                work.end()
                assert not looks.same()
                assert keys(looks.take().remarks) == ["orphan"]

    def test_without_a_handle_on_the_folder_nothing_is_confirmed(
        self, path: Path
    ) -> None:
        with seen(path) as looks:
            looks._condition._directory.forget()
            assert not looks.same()
            assert looks.take().sight is Sight.HELD
            assert looks.same()


class TestSharing:
    """All locks of a directory are looked at through one handle on it."""

    def test_a_hundred_cost_one_descriptor_which_goes_with_the_last(
        self, path: Path
    ) -> None:
        files = open_files()
        conditions = [lock(path.with_name(f"lock-{i}.md")) for i in range(100)]
        for i, condition in enumerate(conditions):
            path.with_name(f"lock-{i}.md").touch()
            assert condition.look({}, START).sight is Sight.HELD
        assert open_files() == files + 1
        assert {condition.group for condition in conditions} == {str(path.parent)}
        for condition in conditions:
            assert open_files() == files + 1
            condition.close()
        assert open_files() == files

    def test_one_that_is_closed_takes_nothing_from_the_others(self, path: Path) -> None:
        other = lock(path.with_name("lock-other.md"))
        with seen(path) as looks:
            other.close()
            path.unlink()
            path.parent.rmdir()
            observation = looks.take()
            assert observation.sight is Sight.RELEASED
            assert observation.evidence["directory_deleted"] is True

    def test_arming_and_closing_at_once_from_many_threads_leaves_nothing_open(
        self, path: Path
    ) -> None:
        files = open_files()
        failed: list[Exception] = []

        def play() -> None:
            try:
                for _ in range(200):
                    condition = lock(path)
                    assert condition.look({}, START).sight is Sight.HELD
                    condition.close()
            except Exception as error:  # noqa: BLE001 - shown below
                failed.append(error)

        threads = [threading.Thread(target=play) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert failed == []
        assert open_files() == files


_LOOKS = """
import subprocess, sys
from policies.target import lock_target
from watcher.clock import SystemClock
from watcher.conditions.lock import LockCondition
path, *steps = sys.argv[1:]
clock, memory = SystemClock(), {}
condition = LockCondition(lock_target(path, None), path)
for step in steps:
    subprocess.run(step, shell=True, check=True)
    if condition.unchanged(memory):
        print("same")
        continue
    seen = condition.look(memory, clock.wall())
    memory = seen.memory
    print(seen.sight, seen.reason.key if seen.reason else "")
"""


class TestMounts:
    """What was unmounted is not to be seen any more."""

    def looks(self, folder: Path, *steps: str) -> list[str]:
        """Take a look behind each step, in a mount namespace of its own."""
        (folder / "D").mkdir()
        root = os.geteuid() == 0
        space = ["unshare", "-m" if root else "-Urm"]
        path = str(folder / "D" / "x.lock")
        ended = subprocess.run(
            [*space, sys.executable, "-c", _LOOKS, path, *steps],
            cwd=folder,
            stdout=subprocess.PIPE,
            timeout=20,
            check=True,
        )
        return ended.stdout.decode().splitlines()

    def test_a_file_system_that_was_unmounted_is_unknown(self, tmp_path: Path) -> None:
        assert self.looks(
            tmp_path,
            "mount -t tmpfs none D && touch D/x.lock",
            "true",
            "umount -l D",
            "true",
            "mount -t tmpfs none D && touch D/x.lock",
            "rm D/x.lock",
        ) == [
            "held ",
            "same",
            "unknown unmounted",
            "unknown unmounted",
            "held ",
            "released ",
        ]

    def test_one_that_went_with_its_mount_point_is_unknown(
        self, tmp_path: Path
    ) -> None:
        assert self.looks(
            tmp_path,
            "mount -t tmpfs none D && touch D/x.lock",
            "umount -l D && rmdir D",
        ) == ["held ", "unknown directory_vanished"]

    def test_another_one_mounted_over_it_is_unknown(self, tmp_path: Path) -> None:
        assert self.looks(
            tmp_path,
            "touch D/x.lock",
            "mount -t tmpfs none D",
            "umount D",
            "rm D/x.lock",
        ) == ["held ", "unknown unmounted", "same", "released "]

    def test_a_bind_mount_that_was_taken_away_is_unknown(self, tmp_path: Path) -> None:
        assert self.looks(
            tmp_path,
            "mkdir real && touch real/x.lock && mount --bind real D",
            "umount -l D",
            "rm real/x.lock",
        ) == ["held ", "unknown unmounted", "unknown unmounted"]

    def test_where_a_rename_cannot_be_proved_it_is_unknown(
        self, tmp_path: Path
    ) -> None:
        assert self.looks(
            tmp_path,
            "touch D/x.lock",
            "mv D E && mount -t tmpfs none /proc",
            "umount /proc",
        ) == ["held ", "unknown directory_vanished", "held "]


class Hanging(LockCondition):
    """A lock on a mount whose server is dead: a look returns when the gate opens."""

    gate: threading.Event
    inside = False
    """It hangs where it has its folder to itself."""

    def look(self, memory: Memory, at: datetime) -> Observation:
        if not self.inside:
            self.gate.wait()
        return super().look(memory, at)

    def _look(self, memory: Memory, at: datetime) -> Observation:
        self.gate.wait()
        return super()._look(memory, at)


@pytest.fixture
def hanging(path: Path) -> Iterator[Hanging]:
    """Give a lock whose first look hangs until the test is over."""
    condition = Hanging(lock_target(str(path), None), str(path))
    condition.gate = threading.Event()
    yield condition
    condition.gate.set()


class TestHung:
    async def test_it_is_unknown_and_costs_one_thread_whatever_the_polls(
        self, hanging: Hanging
    ) -> None:
        async with on_threads(hanging) as looks:
            for _ in range(5):
                observation = await looks.take()
                assert observation.sight is Sight.UNKNOWN
                assert observation.evidence["hung"] is True
            assert len(looks.workers) == 1
            hanging.gate.set()
            await until(lambda: not looks.busy)
            assert await looks.sight() is Sight.HELD

    async def test_what_it_had_opened_is_closed_once_it_is_back(
        self, hanging: Hanging
    ) -> None:
        async with on_threads(hanging) as looks:
            hanging.gate.set()
            assert await looks.sight() is Sight.HELD
            hanging.gate.clear()
            assert await looks.sight() is Sight.UNKNOWN
            looks.close()
            hanging.gate.set()

    async def test_a_look_that_is_out_never_meets_another_one_of_its_folder(
        self, hanging: Hanging, path: Path
    ) -> None:
        hanging.inside = True
        other = lock(path)
        async with on_threads(hanging) as late, on_threads(other) as looks:
            assert await late.sight() is Sight.UNKNOWN
            assert await looks.sight() is Sight.UNKNOWN, "it waits for the first"
            hanging.gate.set()
            await until(lambda: not late.busy and not looks.busy)
            late.close()
            os.remove(path)
            assert await looks.sight() is Sight.RELEASED

    async def test_a_healthy_lock_is_reported_though_one_of_another_folder_hangs(
        self, hanging: Hanging, tmp_path: Path
    ) -> None:
        healthy = tmp_path / "healthy.lock"
        healthy.touch()
        async with engine() as bench:
            bench.arm("hung", hanging, ttl_s=60)
            watch = bench.arm("healthy", lock(healthy), ttl_s=600)
            await until(lambda: watch.waiting)
            healthy.unlink()
            await bench.look(watch)
            await bench.clock.advance(0.25)
            await until(lambda: bench.listener.outcomes)
            outcome = bench.listener.outcomes["healthy"]
            assert outcome.ending is Ending.RELEASED
            assert "hung" not in bench.listener.outcomes


class Bench:
    """An engine with a clock that the test moves, and real files."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.listener = FakeListener()
        self.engine = Engine(clock=self.clock, listener=self.listener)

    def arm(self, watch_id: str, condition: LockCondition, *, ttl_s: int) -> Watch:
        now_s = self.clock.boot()
        watch = Watch(
            id=watch_id,
            condition=condition,
            rules=Rules(armed_s=now_s, deadline_s=now_s + ttl_s, settle_s=0.25),
            every_s=30.0,
            ttl_s=ttl_s,
            label=condition.target.label,
            armed_at=self.clock.wall(),
            armed_awake_s=self.clock.awake(),
        )
        self.engine.arm(watch)
        return watch

    async def look(self, watch: Watch) -> None:
        """Let an event come, and wait for the look that follows."""
        before = watch.looks
        self.engine.look_now(watch.id)
        await until(lambda: watch.looks > before)

    async def poll(self, watch: Watch) -> None:
        """Let an interval pass, and wait for the look that follows."""
        before = watch.looks
        await self.clock.advance(30)
        await until(lambda: watch.looks > before)

    async def settle(self, watch: Watch) -> None:
        """Let the settle time pass, and wait for the look that follows."""
        before = watch.looks
        await self.clock.advance(0.25)
        await until(lambda: watch.looks > before)


@asynccontextmanager
async def engine() -> AsyncIterator[Bench]:
    bench, stop = Bench(), asyncio.Event()
    task = asyncio.create_task(bench.engine.run(stop))
    yield bench
    stop.set()
    await task


def git(folder: Path, *words: str) -> None:
    settings = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    subprocess.run(
        ["git", *settings, *words], cwd=folder, check=True, capture_output=True
    )


class TestFlicker:
    """A lock that is gone for less than the settle time was not given back."""

    @pytest.fixture
    def repository(self, tmp_path: Path) -> Path:
        """Give a repository whose branch `main` holds a lock and `other` does not."""
        git(tmp_path, "init", "-q", "-b", "other", ".")
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", "nothing")
        git(tmp_path, "checkout", "-q", "-b", "main")
        path = tmp_path / "locks" / "lock-demo.md"
        path.parent.mkdir()
        path.touch()
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-q", "-m", "lock")
        return tmp_path

    async def test_a_branch_that_is_left_and_taken_again_is_no_release(
        self, repository: Path
    ) -> None:
        path = repository / "locks" / "lock-demo.md"
        async with engine() as bench:
            watch = bench.arm("w", lock(path), ttl_s=3600)
            await until(lambda: watch.waiting)
            for _ in range(2):
                git(repository, "checkout", "-q", "other")
                assert not path.parent.exists(), "git takes the empty directory too"
                await bench.look(watch)
                git(repository, "checkout", "-q", "main")
                await bench.settle(watch)
                assert bench.listener.outcomes == {}
            git(repository, "checkout", "-q", "other")
            await bench.look(watch)
            await bench.settle(watch)
            outcome = bench.listener.outcomes["w"]
            assert outcome.ending is Ending.RELEASED
            assert outcome.evidence["directory_deleted"] is True

    @pytest.mark.parametrize("mode", ["events", "polls alone"])
    async def test_removed_and_made_again_between_two_looks_is_never_silent(
        self, path: Path, mode: str
    ) -> None:
        async with engine() as bench:
            watch = bench.arm("w", lock(path), ttl_s=60)
            await until(lambda: watch.waiting)
            os.remove(path)
            os.mknod(path)
            if mode == "events":
                await bench.look(watch)
            else:
                await bench.clock.advance(30)
                await until(lambda: watch.looks > 1)
            assert bench.listener.notes == [
                ("w", phrase("maybe_retaken", label="demo"))
            ]
            looks = watch.looks
            await bench.clock.advance(30)
            await until(lambda: watch.looks > looks)
            await bench.clock.advance(30)
            await until(lambda: bench.listener.outcomes)
            outcome = bench.listener.outcomes["w"]
            assert outcome.ending is Ending.EXPIRED
            recorded = outcome.evidence["changes"]
            assert isinstance(recorded, list)
            assert len(recorded) == 1

    async def test_an_editor_that_writes_beside_and_renames_is_no_release(
        self, path: Path
    ) -> None:
        async with engine() as bench:
            watch = bench.arm("w", lock(path), ttl_s=3600)
            await until(lambda: watch.waiting)
            os.rename(path, f"{path}~")
            await bench.look(watch)
            shutil.copy(f"{path}~", path)
            await bench.settle(watch)
            assert bench.listener.outcomes == {}
            os.remove(path)
            await bench.look(watch)
            await bench.settle(watch)
            assert bench.listener.outcomes["w"].ending is Ending.RELEASED


# The command, but a look at one path never returns.
_DEAD_MOUNT = """
import os, sys, threading
real, dead = os.lstat, sys.argv.pop(1)
def lstat(path):
    if path == dead:
        os.write(2, b"it hangs\\n")
        threading.Event().wait()
    return real(path)
os.lstat = lstat
from watcher.cli import main
sys.exit(main())
"""


class TestCommand:
    """What a user meets."""

    @pytest.mark.slow
    def test_a_directory_that_may_not_be_searched_is_no_release(
        self, place: Place
    ) -> None:
        path = place.hold()
        # As root, but without root's right to go everywhere.
        powerless = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
        program = (*powerless, *COMMAND) if os.geteuid() == 0 else COMMAND
        running = place.start("lock", str(path), "--ttl", "3s", program=program)
        running.armed()
        place.locks.chmod(0)
        ended = running.end()
        place.locks.chmod(0o755)
        said = [line for line in ended.err if "sem permissão" in line]
        assert len(said) == 1
        assert ended.line.startswith("⏰ EXPIROU: lock demo sem leitura há ")
        assert "sem permissão" in ended.line

    @pytest.mark.slow
    def test_without_file_events_it_says_so_once_and_polls(self, place: Place) -> None:
        path = place.hold()
        limited = 'echo 0 >/proc/sys/user/max_inotify_watches && exec "$@"'
        program = ("unshare", "-Ur", "sh", "-c", limited, "sh", *COMMAND)
        running = place.start("lock", "demo", program=program)
        running.armed()
        warning = running.said("inotify")
        path.unlink()
        ended = running.end()
        assert ended.line.startswith("✅ LIBERADO: lock demo ")
        assert [line for line in ended.err if "inotify" in line] == [warning]
        assert "ENOSPC" in warning
        assert not [line for line in ended.err if "space left" in line]

    @pytest.mark.slow
    def test_where_no_event_ever_comes_a_release_is_one_poll_away(
        self, place: Place
    ) -> None:
        with working() as work:  # the kernel tells nobody of what goes on in /proc
            running = place.start("lock", f"/proc/{work.pid}")
            running.armed()
            work.end()
            ended = running.end()
        assert ended.line.startswith(f"✅ LIBERADO: lock {work.pid} ")

    @pytest.mark.slow
    def test_lost_events_are_made_up_for_at_once(self, place: Place) -> None:
        path = place.hold()
        running = place.start("lock", "demo", env={"KODER_MONITOR_FLOOR": "5m"})
        running.armed()
        service = place.service()
        wait_until(lambda: followed(service))
        os.kill(service, signal.SIGSTOP)
        overflow(place.locks)
        path.unlink()
        os.kill(service, signal.SIGCONT)
        ended = running.end()
        assert ended.line.startswith("✅ LIBERADO: lock demo ")

    @pytest.mark.slow
    def test_a_rename_over_the_lock_is_seen_through_and_its_end_not_missed(
        self, place: Place
    ) -> None:
        path = place.hold()
        running = place.start("lock", "demo", env={"KODER_MONITOR_FLOOR": "5m"})
        running.armed()
        other = place.locks / "other"
        other.touch()
        other.rename(path)
        running.said("retomado")
        path.unlink()
        ended = running.end()
        assert ended.line.startswith("✅ LIBERADO: lock demo ")

    @pytest.mark.slow
    def test_on_a_dead_mount_the_deadline_is_kept(self, place: Place) -> None:
        path = place.hold()
        running = self.on_dead_mount(place, path, "--ttl", "2s")
        began = time.monotonic()
        ended = running.end()
        assert time.monotonic() - began < 2 + SLACK_S
        assert ended.line.startswith("⏰ EXPIROU: lock demo sem leitura há ")

    @pytest.mark.slow
    def test_on_a_dead_mount_it_can_be_ended(self, place: Place) -> None:
        running = self.on_dead_mount(place, place.hold())
        running.armed()
        running.send(signal.SIGTERM)
        assert running.end().status == 128 + signal.SIGTERM
        watch = place.watch()
        assert (watch["state"], watch["observation"]) == ("armed", "unknown")

    def on_dead_mount(self, place: Place, path: Path, *words: str) -> Running:
        """Wait for a lock on which the service's look hangs."""
        program = (sys.executable, "-c", _DEAD_MOUNT, str(path))
        serving = place.start("serve", program=program)
        place.service()
        running = place.start("lock", "demo", *words)
        serving.said("it hangs")
        return running

    @pytest.mark.slow
    def test_a_lock_of_another_directory_is_reported_beside_a_dead_mount(
        self, place: Place
    ) -> None:
        hung = self.on_dead_mount(place, place.hold())
        healthy = place.folder / "healthy.lock"
        healthy.touch()
        running = place.start("lock", str(healthy))
        running.armed()
        healthy.unlink()
        assert running.end().line.startswith("✅ LIBERADO: lock healthy.lock em ")
        assert hung.process.poll() is None
