"""The one SQLite file: made, migrated, set aside, never overwritten (C5.1, C5.6)."""

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from policies.wording import Lang
from tests.rows import add_watch
from tests.watcher.rights import as_another_user, open_folder
from watcher import __version__, store, views
from watcher.database import (
    _FILES,
    NAME,
    VERSION,
    _set_aside,
    open_database,
    open_for_reading,
)
from watcher.errors import StoreError

OLD = Path(__file__).parents[1] / "data"
TABLES = {
    *("watches", "waiters", "pings", "trail", "jobs", "owner"),
    *("detached", "laptop"),
}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def tables(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {row[0] for row in rows if not row[0].startswith("sqlite_")}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"home"}


def make(path: Path, *statements: str) -> bytes:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path.read_bytes()


def test_a_new_store_is_its_owners_alone(tmp_path: Path) -> None:
    state = tmp_path / "a" / "state"
    connection, note = open_database(str(state))
    with closing(connection):
        add_watch(connection, "a1", at=0)
        assert note is None
        assert tables(connection) == TABLES
        assert mode(state) == 0o700
        files = {path.name: mode(path) for path in state.iterdir()}
    assert files == dict.fromkeys((NAME, f"{NAME}-wal", f"{NAME}-shm"), 0o600)


@pytest.mark.parametrize("umask_mode", [0o777, 0o755, 0o644])
def test_rights_that_are_too_wide_are_mended(umask_mode: int, tmp_path: Path) -> None:
    open_database(str(tmp_path))[0].close()
    tmp_path.chmod(0o755)
    (tmp_path / NAME).chmod(umask_mode)
    open_database(str(tmp_path))[0].close()
    assert (mode(tmp_path), mode(tmp_path / NAME)) == (0o700, 0o600)


def test_it_is_in_the_mode_that_survives_a_crash(tmp_path: Path) -> None:
    with closing(open_database(str(tmp_path))[0]) as connection:
        pragmas = ("journal_mode", "synchronous", "foreign_keys", "user_version")
        found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas]
    assert found == ["wal", 2, 1, VERSION]


def test_what_is_there_stays(tmp_path: Path) -> None:
    with closing(open_database(str(tmp_path))[0]) as connection:
        add_watch(connection, "a1", at=0)
    connection, note = open_database(str(tmp_path), check=True)
    with closing(connection):
        assert note is None
        assert connection.execute("SELECT id FROM watches").fetchone()[0] == "a1"


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / NAME).touch()
    connection, note = open_database(str(tmp_path))
    with closing(connection):
        assert note is None
        assert tables(connection) == TABLES


def corrupt(path: Path) -> bytes:
    path.write_bytes(b"no database at all, but longer than a header " * 40)
    return path.read_bytes()


def torn(path: Path) -> bytes:
    with closing(open_database(str(path.parent))[0]) as connection:
        for number in range(200):
            add_watch(connection, f"{number:04}", at=0, label="x" * 200)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    content[4096 * 3 :] = b"\xa5" * (len(content) - 4096 * 3)
    path.write_bytes(content)
    return bytes(content)


def newer(path: Path) -> bytes:
    return make(path, "CREATE TABLE owner (x)", f"PRAGMA user_version = {VERSION + 1}")


def foreign(path: Path) -> bytes:
    return make(path, "CREATE TABLE songs (title)", "INSERT INTO songs VALUES ('x')")


def foreign_of_our_number(path: Path) -> bytes:
    return make(path, "CREATE TABLE songs (title)", f"PRAGMA user_version = {VERSION}")


def namesake(path: Path) -> bytes:
    return make(path, "CREATE TABLE watches (brand)")


def negative(path: Path) -> bytes:
    return make(path, "CREATE TABLE t (x)", "PRAGMA user_version = -3")


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (corrupt, "corrupt"),
        (torn, "corrupt"),
        (newer, "newer"),
        (foreign, "foreign"),
        (foreign_of_our_number, "foreign"),
        (namesake, "foreign"),
        (negative, "foreign"),
    ],
)
def test_what_is_of_no_use_is_set_aside_and_never_overwritten(
    spoil: object, kind: str, tmp_path: Path
) -> None:
    kept = [spoil(tmp_path / NAME)]  # type: ignore[operator]  # one of the table
    for number in (1, 2):
        connection, note = open_database(str(tmp_path), check=True)
        with closing(connection):
            assert tables(connection) == TABLES
        assert note is not None
        aside = tmp_path / f"{NAME}.{kind}-{number}"
        assert str(aside) in note.render(Lang.EN)
        (tmp_path / NAME).unlink()
        kept.append(spoil(tmp_path / NAME))  # type: ignore[operator]  # as above
    found = [(tmp_path / f"{NAME}.{kind}-{n}").read_bytes() for n in (1, 2)]
    # Opening may have changed the header of a sound one to write-ahead logging.
    assert [content[100:] for content in found] == [c[100:] for c in kept[:2]]


def test_a_file_goes_aside_with_its_log_and_the_log_first(tmp_path: Path) -> None:
    """A crash between the two must not leave an old log beside a new file."""
    for suffix in ("", "-wal", "-shm"):
        (tmp_path / f"{NAME}{suffix}").write_text(suffix)
    aside = _set_aside(str(tmp_path / NAME), "corrupt")
    assert {
        path.read_text(): path.name for path in tmp_path.iterdir() if path.is_file()
    } == {suffix: f"{NAME}.corrupt-1{suffix}" for suffix in ("", "-wal", "-shm")}
    assert aside == str(tmp_path / f"{NAME}.corrupt-1")
    assert _FILES[-1] == ""


@pytest.mark.slow
def test_a_file_that_is_locked_is_left_alone(tmp_path: Path) -> None:
    foreign(tmp_path / NAME)
    content = (tmp_path / NAME).read_bytes()
    with closing(sqlite3.connect(tmp_path / NAME, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match="store_unusable"):
            open_database(str(tmp_path), busy_ms=10)
        other.execute("ROLLBACK")
    assert (tmp_path / NAME).read_bytes() == content
    assert names(tmp_path) == {NAME}


def test_a_place_where_nothing_can_be_made_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for state in (tmp_path / "file", tmp_path / "file" / "state"):
        with pytest.raises(StoreError):
            open_database(str(state))
    (tmp_path / "state" / NAME).mkdir(parents=True)
    with pytest.raises(StoreError):
        open_database(str(tmp_path / "state"))


@pytest.mark.parametrize("spoil", [corrupt, newer, lambda path: path.touch()])
def test_a_read_only_directory_is_a_store_error_whatever_is_in_it(
    spoil: object,
) -> None:
    with open_folder() as folder:
        spoil(folder / NAME)  # type: ignore[operator]  # one of the table
        (folder / NAME).chmod(0o666)
        folder.chmod(0o555)
        with as_another_user(), pytest.raises(StoreError):
            open_database(str(folder))
        assert NAME in names(folder)


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watcher.database.VERSION", VERSION + 1)
    with pytest.raises(StoreError):
        open_database(str(tmp_path))
    monkeypatch.undo()
    with closing(sqlite3.connect(tmp_path / NAME)) as connection:
        assert tables(connection) == set()
    open_database(str(tmp_path))[0].close()


# databases of earlier releases, made by tests/data/make.py

RELEASES = sorted(OLD.glob("*.db"))


def test_there_is_a_database_of_this_release() -> None:
    assert f"{__version__}.db" in {path.name for path in RELEASES}


@pytest.mark.parametrize("old", RELEASES, ids=lambda path: path.stem)
def test_the_database_of_a_release_opens_for_ever_with_all_that_is_in_it(
    old: Path, tmp_path: Path
) -> None:
    (tmp_path / NAME).write_bytes(old.read_bytes())
    connection, note = open_database(str(tmp_path), check=True)
    with closing(connection):
        assert note is None
        assert connection.execute("PRAGMA user_version").fetchone()[0] == VERSION
        found = {
            name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for name in TABLES
        }
        assert found == {
            "watches": 7,
            "waiters": 9,
            "pings": 3,
            "trail": 1,
            "jobs": 2,
            "owner": 1,
            "detached": 0,
            "laptop": 1,
        }
        armed = store.armed_watches(connection)
        assert {row.id: [w.number for w in ws] for row, ws in armed} == {
            "a1a1a1a1a1a1": [1, 2],
            "b2b2b2b2b2b2": [1],
        }
        assert armed[0][0].memory["entry"] == [1, 2, 3]
        assert store.find_waiter(connection, "n2") == ("a1a1a1a1a1a1", 2)
        states = {row.state for row in views.watch_rows(connection, ended_after_s=0)}
        assert states == {
            "armed",
            "released",
            "ended",
            "expired",
            "removed",
            "unseen",
        }
    again, note = open_database(str(tmp_path))
    again.close()
    assert note is None


# reading


def test_reading_makes_nothing_and_sets_nothing_aside(tmp_path: Path) -> None:
    assert open_for_reading(str(tmp_path)) is None
    assert names(tmp_path) == set()
    for spoil in (corrupt, newer, foreign):
        (tmp_path / NAME).unlink(missing_ok=True)
        content = spoil(tmp_path / NAME)
        assert open_for_reading(str(tmp_path)) is None
        assert (tmp_path / NAME).read_bytes() == content
    (tmp_path / NAME).unlink()
    (tmp_path / NAME).mkdir()
    assert open_for_reading(str(tmp_path)) is None


def test_a_folder_may_have_an_odd_name(tmp_path: Path) -> None:
    state = tmp_path / "100% ? #1"
    open_database(str(state))[0].close()
    connection = open_for_reading(str(state))
    assert connection is not None
    with closing(connection):
        assert tables(connection) == TABLES
    assert names(tmp_path) == {"100% ? #1"}
