"""The files of metrics: where, whose they may be, and how long (B135, B137)."""

import json
import os
import threading
import time
from pathlib import Path

import pytest

from policies.context import Level, Reading, Spoken
from tests.watcher.rights import NOBODY
from watcher.runtimes.metrics import (
    SWEPT_S,
    forget,
    found,
    json_of,
    leave,
    read_small,
    remember,
    spoken,
)

NOW_S = float(int(time.time()))  # files have the time that they are made
READING = Reading(28, NOW_S, 120_000, 167_000)
ODD_IDS = [
    "",
    "..",
    "../x",
    "a/b",
    "a\\b",
    "/tmp/victim",
    "a\0b",
    "x" * 5000,
    "é",
    "a b",
]


class Place:
    """A state directory and a folder of temporary files."""

    def __init__(self, folder: Path) -> None:
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.state = str(folder / "state")
        self.env = {"TMPDIR": str(self.temporary)}

    def leave(self, session: str = "abc", reading: Reading = READING) -> None:
        leave(self.state, self.env, session, reading, NOW_S)

    def found(self, session: str = "abc") -> list[Reading]:
        return [*found(self.state, self.env, session)]

    def ours(self, session: str = "abc") -> Path:
        return Path(self.state, "context/metrics", f"{session}.json")

    def compatible(self, session: str = "abc") -> Path:
        return self.temporary / f"claude-ctx-{session}.json"

    def files(self) -> list[str]:
        return sorted(
            str(path.relative_to(self.temporary.parent))
            for path in self.temporary.parent.rglob("*")
            if not path.is_dir()
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_figure_is_left_in_both_places_for_its_owner_only(place: Place) -> None:
    place.leave()
    assert place.found() == [READING, READING]
    for path in (place.ours(), place.compatible()):
        assert path.stat().st_mode & 0o777 == 0o600
        assert json.loads(path.read_text())["remaining_percentage"] == 28
    for folder in (place.ours().parent, place.ours().parent.parent, Path(place.state)):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_new_figure_takes_the_place_of_the_old_one(place: Place) -> None:
    place.leave()
    place.leave(reading=Reading(90, NOW_S))
    assert place.found() == [Reading(90, NOW_S)] * 2
    assert len(place.files()) == 2


def test_each_session_has_its_own(place: Place) -> None:
    """A session whose id begins like another's (B137)."""
    for session, left in (("abc1234", 10), ("abc123", 50), ("abc", 90)):
        place.leave(session, Reading(left, NOW_S))
    for session, left in (("abc123", 50), ("abc1234", 10), ("abc", 90)):
        assert place.found(session) == [Reading(left, NOW_S)] * 2
    assert place.found("abc12") == []


@pytest.mark.parametrize("session", ODD_IDS)
def test_an_id_that_is_none_touches_nothing(place: Place, session: str) -> None:
    place.leave(session)
    remember(place.state, session, Spoken(Level.WARNING))
    forget(place.state, place.env, session)
    assert place.found(session) == []
    assert spoken(place.state, session) == Spoken()
    assert place.files() == []


def test_what_another_tool_left_is_found(place: Place) -> None:
    metrics = {"session_id": "abc", "remaining_percentage": 30, "timestamp": NOW_S}
    place.compatible().write_text(json.dumps(metrics))
    assert place.found() == [Reading(30, NOW_S)]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b" " * 70_000 + b"{}"]
)
def test_what_is_no_metrics_is_not_found(place: Place, content: bytes) -> None:
    place.compatible().write_bytes(content)
    assert place.found() == []


def test_a_link_is_neither_followed_nor_replaced(place: Place) -> None:
    victim = place.temporary / "victim"
    metrics = {"session_id": "abc", "remaining_percentage": 30, "timestamp": NOW_S}
    victim.write_text(json.dumps(metrics))
    place.compatible().symlink_to(victim)
    assert place.found() == []
    place.leave()
    forget(place.state, place.env, "abc")
    assert json.loads(victim.read_text()) == metrics
    assert place.compatible().is_symlink()


def test_a_pipe_or_a_folder_there_holds_nobody_up(place: Place) -> None:
    os.mkfifo(place.compatible())
    place.compatible("dir").mkdir()
    for session in ("abc", "dir"):
        place.leave(session)
        assert place.found(session) == [READING]
        forget(place.state, place.env, session)
        assert place.found(session) == []
    assert place.compatible().is_fifo()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_user_is_neither_believed_nor_replaced(place: Place) -> None:
    metrics = {"session_id": "abc", "remaining_percentage": 1, "timestamp": NOW_S}
    place.compatible().write_text(json.dumps(metrics))
    os.chown(place.compatible(), NOBODY, NOBODY)
    place.leave()
    assert place.found() == [READING]
    assert json.loads(place.compatible().read_text()) == metrics


def test_where_one_place_cannot_be_written_the_other_has_it(place: Place) -> None:
    Path(place.state).write_text("no folder")
    place.leave()
    assert place.found() == [READING]
    place.env["TMPDIR"] = f"{place.temporary}/none"
    place.leave()
    assert place.found() == []


def test_a_full_disk_leaves_nothing_half_written(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.leave()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    place.leave(reading=Reading(1, NOW_S))
    monkeypatch.undo()
    assert place.found() == [READING, READING]
    assert len(place.files()) == 2


def test_writers_at_the_same_time_leave_a_whole_file(place: Place) -> None:
    readings = [Reading(float(left), NOW_S) for left in range(8)]

    def write(reading: Reading) -> None:
        for _ in range(20):
            place.leave(reading=reading)

    threads = [threading.Thread(target=write, args=(one,)) for one in readings]
    for thread in threads:
        thread.start()
    for _ in range(50):
        assert set(place.found()) <= {*readings}
    for thread in threads:
        thread.join()
    assert len(place.found()) == 2
    assert len(place.files()) == 2


@pytest.mark.parametrize("name", ["TMPDIR", "TEMP", "TMP"])
def test_the_compatible_place_is_where_temporary_files_are(
    place: Place, name: str
) -> None:
    place.env = {"TMPDIR": "", name: f"{place.temporary}/"}
    place.leave()
    assert place.compatible().exists()


def test_without_such_a_folder_it_is_the_usual_one(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    monkeypatch.setattr(
        "watcher.runtimes.metrics.read_small",
        lambda path, **_: opened.append(path),
    )
    assert [*found(place.state, {"TMPDIR": "relative"}, "abc")] == []
    assert opened[1] == "/tmp/claude-ctx-abc.json"


def test_a_forgotten_session_has_no_figures(place: Place) -> None:
    place.leave()
    place.leave("other")
    forget(place.state, place.env, "abc")
    forget(place.state, place.env, "abc")
    assert place.found() == []
    assert len(place.found("other")) == 2


def test_what_was_spoken_is_remembered(place: Place) -> None:
    told = Spoken(Level.CRITICAL, 2, NOW_S, noted=True)
    remember(place.state, "abc", told)
    assert spoken(place.state, "abc") == told
    assert spoken(place.state, "abcd") == Spoken()


def test_the_first_figure_of_a_session_sweeps_what_is_old(place: Place) -> None:
    for session in ("old", "new"):
        place.leave(session)
        remember(place.state, session, Spoken(Level.WARNING))
    foreign = place.compatible("foreign")
    foreign.write_text("{}")
    for path in [*place.temporary.parent.rglob("*old.json"), foreign]:
        os.utime(path, (NOW_S - SWEPT_S - 1,) * 2)
    for path in place.temporary.parent.rglob("*new.json"):
        os.utime(path, (NOW_S - SWEPT_S + 1,) * 2)
    place.leave()
    assert place.files() == [
        "state/context/metrics/abc.json",
        "state/context/metrics/new.json",
        "state/context/told/new.json",
        "tmp/claude-ctx-abc.json",
        "tmp/claude-ctx-foreign.json",
        "tmp/claude-ctx-new.json",
    ]


def test_a_compatible_file_that_is_still_written_is_not_swept(place: Place) -> None:
    place.leave("old")
    os.utime(place.ours("old"), (NOW_S - SWEPT_S - 1,) * 2)
    os.utime(place.compatible("old"), (NOW_S,) * 2)
    place.leave()
    assert {path.name for path in place.temporary.iterdir()} == {
        "claude-ctx-old.json",
        "claude-ctx-abc.json",
    }


def test_a_small_file_is_read_whoever_has_it_and_through_links(tmp_path: Path) -> None:
    file, link = tmp_path / "a", tmp_path / "b"
    file.write_bytes(b"{}")
    link.symlink_to(file)
    assert read_small(str(link)) == b"{}"
    assert read_small(str(link), ours=True) is None
    assert read_small(f"{tmp_path}/none") is None
    assert read_small(f"{tmp_path}/a\0b") is None
    assert read_small(str(tmp_path)) is None


def test_a_file_that_cannot_be_read_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"{}")

    def broken(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "read", broken)
    assert read_small(f"{tmp_path}/a") is None


@pytest.mark.parametrize(
    ("data", "value"), [(None, None), (b"", None), (b"{", None), (b"[1]", [1])]
)
def test_json_is_what_it_holds_or_none(data: bytes | None, value: object) -> None:
    assert json_of(data) == value
