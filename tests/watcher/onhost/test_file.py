"""Files: there, gone or quiet, and the directories that prove it."""

import errno
import os
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.watcher.rights import closed_to_others, open_folder
from watcher.onhost import answer
from watcher.onhost import file as part

UP_S = 1000.0


class Looks:
    """Looks that hand their memory on."""

    def __init__(self, path: Path | str, awaits: str, quiet_s: float = 0) -> None:
        self.spec = {"path": str(path), "awaits": awaits, "quiet_s": quiet_s}
        self.memory: dict[str, Any] = {}

    def take(self, up_s: float = UP_S) -> dict[str, Any]:
        answers = [answer(dict(one)) for one in part.ask(self.spec, self.memory)]
        return self.judge(*answers, up_s=up_s)

    def judge(self, *answers: dict[str, Any], up_s: float = UP_S) -> dict[str, Any]:
        now = {"up_s": up_s, "at": 0.0}
        found = part.judge(self.spec, self.memory, answers, now)
        assert ("reason" in found) is (found["sight"] == "unknown")
        assert found["sight"] != "unknown" or found["memory"] == self.memory
        self.memory = found["memory"]
        return found

    def sight(self, up_s: float = UP_S) -> str:
        return str(self.take(up_s)["sight"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the path of a file two directories deep; it is there."""
    path = tmp_path / "outer" / "inner" / "file"
    path.parent.mkdir(parents=True)
    path.write_text("x")
    return path


# There, and gone


@pytest.mark.parametrize("kind", ["file", "link", "dangling link", "directory", "fifo"])
def test_whatever_stands_under_the_name_is_there(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "it"
    exists, gone = Looks(path, "exists"), Looks(path, "gone")
    assert exists.sight() == "held"
    match kind:
        case "file":
            path.touch()
        case "link":
            path.symlink_to(tmp_path)
        case "dangling link":
            path.symlink_to("ana@laptop.123:1")
        case "directory":
            path.mkdir()
        case _:
            os.mkfifo(path)
    assert exists.sight() == "released"
    assert gone.sight() == "held"
    path.rmdir() if kind == "directory" else path.unlink()
    assert gone.sight() == "released"


def test_the_evidence_is_the_entry_or_its_absence(path: Path) -> None:
    looks = Looks(path, "gone")
    held = looks.take()
    seen, folder = path.stat(), path.parent.stat()
    entry = held["evidence"]["entry"]
    assert entry[:2] == [seen.st_dev, seen.st_ino]
    assert entry[3:] == [seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns]
    assert held["evidence"]["directory"][:2] == [folder.st_dev, folder.st_ino]
    path.unlink()
    free = looks.take()
    assert "entry" not in free["evidence"]
    assert free["evidence"]["errno"] == "ENOENT"
    assert free["evidence"]["path"] == str(path)


def test_a_file_that_never_was_is_gone_in_a_directory_that_is_there(
    tmp_path: Path,
) -> None:
    looks = Looks(tmp_path / "never", "gone")
    assert looks.sight() == "released"
    assert looks.sight() == "released"


def test_a_file_of_the_root_has_the_root_for_its_directory() -> None:
    assert Looks("/no-such-file-of-ours", "gone").sight() == "released"
    assert Looks("/tmp", "exists").sight() == "released"


@pytest.mark.parametrize("awaits", ["exists", "gone", "quiet"])
def test_a_directory_that_is_missing_is_unknown(tmp_path: Path, awaits: str) -> None:
    found = Looks(tmp_path / "no" / "such", awaits, 1).take()
    assert found["sight"] == "unknown"
    assert found["reason"] == ["directory_missing", {"path": str(tmp_path / "no")}]


@pytest.mark.parametrize("awaits", ["exists", "gone", "quiet"])
def test_a_file_for_a_directory_is_unknown(path: Path, awaits: str) -> None:
    found = Looks(path / "below", awaits, 1).take()
    assert found["reason"][0] == "errno"
    assert found["evidence"]["errno"] == "ENOTDIR"


@pytest.mark.parametrize("awaits", ["exists", "gone", "quiet"])
def test_a_directory_that_is_closed_is_unknown_and_named(awaits: str) -> None:
    with open_folder() as folder:
        path = folder / "d" / "file"
        path.parent.mkdir()
        with closed_to_others(path.parent):
            found = Looks(path, awaits, 1).take()
    assert found["reason"] == ["denied", {"path": str(path)}]


def test_a_name_that_is_too_long_is_unknown(tmp_path: Path) -> None:
    found = Looks(tmp_path / ("n" * 256), "gone").take()
    assert found["reason"][1]["name"] == "ENAMETOOLONG"


def test_a_fault_without_a_number_is_unknown(path: Path) -> None:
    found = Looks(path, "gone").judge({"error": {"errno": "", "text": "Odd: x"}})
    assert found["reason"] == ["probe_failed", {"error": "Odd: x"}]
    assert found["evidence"]["path"] == str(path)


def test_a_name_that_is_no_utf_8_is_looked_at(tmp_path: Path) -> None:
    """B17."""
    path = os.fsencode(tmp_path) + b"/x\xff.lock"
    with open(path, "w"):
        pass
    looks = Looks(os.fsdecode(path), "gone")
    assert looks.sight() == "held"
    os.unlink(path)
    assert looks.sight() == "released"


def test_a_name_with_every_kind_of_space_and_quote_is_looked_at(tmp_path: Path) -> None:
    """B68."""
    path = tmp_path / "a b" / "x 'y' $HOME\n*.log"
    path.parent.mkdir()
    path.touch()
    assert Looks(path, "exists").sight() == "released"


# The directories


def test_a_file_in_a_directory_that_was_deleted_is_gone(path: Path) -> None:
    looks = Looks(path, "gone")
    assert looks.sight() == "held"
    path.unlink()
    path.parent.rmdir()
    found = looks.take()
    assert found["sight"] == "released"
    assert looks.sight() == "released"
    path.parent.parent.rmdir()
    assert looks.sight() == "released"


def test_a_file_in_a_directory_that_was_made_anew_is_gone(path: Path) -> None:
    looks = Looks(path, "gone")
    assert looks.sight() == "held"
    path.parent.rename(path.parent.with_name("aside"))
    path.parent.mkdir()
    assert looks.sight() == "released"
    path.touch()
    assert looks.sight() == "held"


def test_a_directory_whose_mount_is_not_known_must_be_the_very_same(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = part._identity
    monkeypatch.setattr(part, "_identity", lambda handle: [*plain(handle)[:2], None])
    looks = Looks(path, "gone")
    assert looks.sight() == "held"
    path.unlink()
    assert looks.sight() == "released"
    path.parent.rename(path.parent.with_name("aside"))
    found = looks.take()
    assert found["reason"] == ["directory_vanished", {"path": str(path.parent)}]
    path.parent.mkdir()
    found = looks.take()
    assert found["reason"] == ["unmounted", {"path": str(path.parent)}]


def seen_through(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Path, list[Any]], list[Any]]
) -> None:
    """Let directories be others than they are: another device, another mount."""
    plain = part._identity

    def identity(handle: int) -> list[Any]:
        return change(Path(os.readlink(f"/proc/self/fd/{handle}")), plain(handle))

    monkeypatch.setattr(part, "_identity", identity)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(lambda seen: [seen[0] + 1, seen[1] + 1, "1"], id="a device"),
        pytest.param(lambda seen: [seen[0], seen[1] + 1, "1"], id="a bind mount"),
    ],
)
def test_what_a_mount_that_went_away_leaves_is_unknown(
    path: Path, monkeypatch: pytest.MonkeyPatch, other: Callable[[list[Any]], list[Any]]
) -> None:
    looks = Looks(path, "gone")
    assert looks.sight() == "held"
    path.unlink()
    with monkeypatch.context() as patched:
        seen_through(
            patched, lambda at, seen: other(seen) if at.name == "inner" else seen
        )
        found = looks.take()
        assert found["reason"] == ["unmounted", {"path": str(path.parent)}]
    assert looks.sight() == "released"


def test_a_mount_that_took_its_directory_with_it_is_unknown(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As removable media: unmounted, then the directory of the mount is removed."""
    looks = Looks(path, "gone")
    with monkeypatch.context() as patched:
        seen_through(
            patched,
            lambda at, seen: [seen[0], seen[1], "m"] if at.name == "inner" else seen,
        )
        assert looks.sight() == "held"
    path.unlink()
    path.parent.rmdir()
    found = looks.take()
    assert found["reason"] == ["directory_vanished", {"path": str(path.parent)}]


def test_a_directory_missing_below_another_one_is_unknown(path: Path) -> None:
    looks = Looks(path, "gone")
    assert looks.sight() == "held"
    path.parent.parent.rename(path.parent.parent.with_name("aside"))
    path.parent.parent.mkdir()
    assert looks.sight() == "unknown"


def test_a_real_mount_that_went_away_is_unknown(tmp_path: Path) -> None:
    script = """
import json, subprocess, sys
sys.path.append(sys.argv[2])
from tests.watcher.onhost.test_file import Looks
folder = sys.argv[1]
run = lambda *words: subprocess.run(words, check=True)
run("mount", "-t", "tmpfs", "none", folder)
open(folder + "/file", "w").close()
looks = Looks(folder + "/file", "gone")
seen = [looks.sight()]
run("umount", folder)
seen.append(looks.sight())
run("mkdir", "-p", folder + "/real/d", folder + "/place")
open(folder + "/real/d/file", "w").close()
run("mount", "--bind", folder + "/real/d", folder + "/place")
looks = Looks(folder + "/place/file", "gone")
seen.append(looks.sight())
run("umount", folder + "/place")
seen.append(looks.sight())
run("rmdir", folder + "/place")
seen.append(looks.sight())
print(json.dumps(seen))
"""
    space = ["unshare", "-m" if os.geteuid() == 0 else "-Urm"]
    root = str(Path(__file__).parents[3])
    said = subprocess.run(
        [*space, sys.executable, "-c", script, str(tmp_path), root],
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=True,
    )
    assert said.stdout.split() == (
        ['["held",', '"unknown",', '"held",', '"unknown",', '"unknown"]']
    )


# Near names


@pytest.mark.parametrize(
    ("present", "wanted"),
    [
        pytest.param(
            unicodedata.normalize("NFC", "café.lock"),
            unicodedata.normalize("NFD", "café.lock"),
            id="Unicode form",
        ),
        pytest.param("X.LOCK", "x.lock", id="case"),
    ],
)
def test_a_name_that_differs_only_in_form_is_told(
    tmp_path: Path, present: str, wanted: str
) -> None:
    """B15."""
    (tmp_path / present).touch()
    (tmp_path / "other.lock").touch()
    looks = Looks(tmp_path / wanted, "gone")
    for _ in range(2):
        found = looks.take()
        assert found["sight"] == "released"
        assert found["remarks"] == [["near_file", {"name": present}]]


def test_no_near_name_is_told_of_a_file_that_was_seen(tmp_path: Path) -> None:
    (tmp_path / "X.LOCK").touch()
    (tmp_path / "x.lock").touch()
    looks = Looks(tmp_path / "x.lock", "gone")
    assert looks.sight() == "held"
    (tmp_path / "x.lock").unlink()
    assert looks.take()["remarks"] == []


def test_of_a_large_directory_only_so_much_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part, "_MOST_NAMES", 0)
    (tmp_path / "X").touch()
    assert Looks(tmp_path / "x", "gone").take()["remarks"] == []


def test_a_directory_that_cannot_be_listed_has_no_near_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(folder: bytes) -> None:
        raise OSError(errno.EACCES, "denied")

    monkeypatch.setattr(os, "scandir", denied)
    found = Looks(tmp_path / "x", "gone").take()
    assert (found["sight"], found["remarks"]) == ("released", [])


# Quiet


def test_a_file_is_quiet_once_it_has_not_changed_for_so_long(path: Path) -> None:
    looks = Looks(path, "quiet", 60)
    first = looks.take(UP_S)
    assert (first["sight"], first["again_in_s"]) == ("held", 60)
    second = looks.take(UP_S + 59.5)
    assert (second["sight"], second["again_in_s"]) == ("held", 0.5)
    third = looks.take(UP_S + 60)
    assert (third["sight"], third["evidence"]["quiet_s"]) == ("released", 60)
    assert "again_in_s" not in third


def test_an_old_file_must_be_quiet_before_our_eyes(path: Path) -> None:
    """Its time is another's clock, or one that was set."""
    os.utime(path, (0, 0))
    assert Looks(path, "quiet", 60).sight() == "held"


@pytest.mark.parametrize("change", ["growth", "touch", "chmod", "replaced", "back"])
def test_a_change_begins_the_quiet_anew(path: Path, change: str) -> None:
    looks = Looks(path, "quiet", 60)
    assert looks.sight() == "held"
    match change:
        case "growth":
            path.write_text("xy")
        case "touch":
            os.utime(path, (1, 1))
        case "chmod":
            path.chmod(0o600)
        case "replaced":
            path.with_name("new").write_text("x")
            path.with_name("new").rename(path)
        case _:
            path.unlink()
            assert looks.sight(UP_S + 30) == "held"
            path.write_text("x")
    assert looks.sight(UP_S + 59) == "held"
    assert looks.sight(UP_S + 118) == "held"
    assert looks.sight(UP_S + 119) == "released"


def test_growth_while_nobody_could_look_is_seen_behind_it(path: Path) -> None:
    looks = Looks(path, "quiet", 60)
    assert looks.sight() == "held"
    error = {"error": {"errno": "EIO", "text": "x"}}
    assert looks.judge(error, up_s=UP_S + 40)["sight"] == "unknown"
    assert looks.sight(UP_S + 60) == "released"
    path.write_text("more")
    assert looks.sight(UP_S + 80) == "held"


def test_a_restart_of_the_machine_makes_the_wait_longer(path: Path) -> None:
    looks = Looks(path, "quiet", 60)
    assert looks.sight(UP_S) == "held"
    assert looks.sight(5) == "held"
    assert looks.sight(64) == "held"
    assert looks.sight(65) == "released"


def test_a_link_is_as_quiet_as_what_it_leads_to(tmp_path: Path, path: Path) -> None:
    link = tmp_path / "latest"
    link.symlink_to(path)
    looks = Looks(link, "quiet", 60)
    assert looks.sight() == "held"
    path.write_text("more")
    assert looks.sight(UP_S + 60) == "held"
    link.unlink()
    link.symlink_to("nowhere")
    assert looks.sight(UP_S + 120) == "held"
    assert looks.sight(UP_S + 240) == "held"


@given(
    steps=st.lists(st.tuples(st.floats(0, 50), st.booleans()), min_size=1, max_size=20)
)
def test_no_file_is_quiet_that_changed_within_its_time(
    steps: list[tuple[float, bool]],
) -> None:
    looks = Looks("/d/file", "quiet", 60)
    up_s, size, changed_s = UP_S, 0, UP_S
    for passed_s, grows in steps:
        up_s += passed_s
        if grows:
            size, changed_s = size + 1, up_s
        chain = [[1, 1, "1"], [1, 2, "1"]]
        said = {"entry": [1, 2, 3, size], "chain": chain, "near": []}
        seen = looks.judge(said, up_s=up_s)
        if seen["sight"] == "released":
            assert up_s - changed_s >= 60 - 1e-6
        else:
            assert 0 < seen["again_in_s"] <= 60


def test_where_no_mount_is_told_there_is_none(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = os.open(path.parent, os.O_RDONLY)
    told = part._identity(handle)
    assert isinstance(told[2], str)

    def missing(name: str, encoding: str) -> None:
        raise FileNotFoundError(name)

    monkeypatch.setattr(part, "open", missing, raising=False)
    assert part._identity(handle) == [*told[:2], None]
    os.close(handle)


def test_it_follows_no_process(path: Path) -> None:
    assert part.follows(Looks(path, "gone").spec, {}) == []
