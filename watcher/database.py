"""Opens the one SQLite file; nobody else does (C5.1).

A file that cannot be used is set aside, never overwritten: what it holds may still be
read by a newer version, or by a person.
"""

import contextlib
import os
import sqlite3
from typing import TYPE_CHECKING, Final

from watcher.errors import StoreError

if TYPE_CHECKING:
    from policies.wording import Phrase  # its sentences cost hooks too much

NAME = "monitor.db"
VERSION: Final = 2
"""The newest schema that this version knows: the number of the last migration."""

_BUSY_MS = 5000  # other writers hold the lock for milliseconds
_FILES = ("-wal", "-shm", "")  # a new file must never meet the log of an old one


def open_database(
    state: str, *, busy_ms: int = _BUSY_MS, check: bool = False
) -> "tuple[sqlite3.Connection, Phrase | None]":
    """Open the file for reading and writing, made or migrated where needed.

    Args:
        state: the state directory.
        busy_ms: how long to wait for another writer.
        check: read every page once, which finds damage that a crash of the machine
            left; for the service, which has the time.

    Returns:
        The connection, in autocommit mode, and what had to be set aside, if anything.

    Raises:
        StoreError: it can be neither used nor set aside; or another program keeps it
            locked.
    """
    path = f"{state}/{NAME}"
    try:
        _make_directory(state)
        return _opened(path, busy_ms, check=check), None
    except _UnusableError as error:
        from policies.wording import phrase  # noqa: PLC0415 - start-up time

        try:
            aside = _set_aside(path, error.kind)
            note = phrase("set_aside", path=path, aside=aside, reason=str(error))
            return _opened(path, busy_ms, check=check), note
        except (_UnusableError, sqlite3.Error, OSError) as again:
            raise _unusable(path, again) from again
    except (sqlite3.Error, OSError) as error:
        raise _unusable(path, error) from error


def _unusable(path: str, error: Exception) -> StoreError:
    from policies.wording import phrase  # noqa: PLC0415 - start-up time

    return StoreError(phrase("store_unusable", path=path, error=str(error)))


def open_for_reading(state: str) -> sqlite3.Connection | None:
    """Open the file for a quick look, or return None when there is none to read.

    Nothing is made, migrated or set aside: that is the work of who writes. A file of
    another version reads as none.
    """
    path = f"{state}/{NAME}"
    if not os.path.exists(path):
        return None
    try:
        connection = sqlite3.connect(
            f"file:{_uri(path)}?mode=rw", uri=True, timeout=1.0, isolation_level=None
        )
    except sqlite3.Error:
        return None
    try:
        connection.row_factory = sqlite3.Row
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error:
        connection.close()
        return None
    if version != VERSION:
        connection.close()
        return None
    return connection


def is_older(state: str) -> bool:
    """Say whether the file is of an older version of ours, which a service mends."""
    try:
        with contextlib.closing(
            sqlite3.connect(f"file:{_uri(f'{state}/{NAME}')}?mode=rw", uri=True)
        ) as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error:
        return False
    return 0 < int(version) < VERSION


class _UnusableError(Exception):
    """This file is not ours to read."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


def _make_directory(state: str) -> None:
    os.makedirs(state, mode=0o700, exist_ok=True)
    if os.stat(state).st_uid == os.geteuid() and os.stat(state).st_mode & 0o077:
        os.chmod(state, 0o700)


def _opened(path: str, busy_ms: int, *, check: bool) -> sqlite3.Connection:
    """Return a connection to a file of our version.

    Raises:
        _UnusableError: it is damaged, or of a newer version.
    """
    existed = os.path.exists(path)
    # Made first, so that it never is readable by others, not even for a moment.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    if existed and os.stat(path).st_mode & 0o077:
        os.chmod(path, 0o600)
    connection = sqlite3.connect(
        path,
        timeout=busy_ms / 1000,
        isolation_level=None,
        check_same_thread=False,  # one writer thread has it, whoever opened it
    )
    try:
        _prepare(connection)
        if check:
            _check(connection)
    except sqlite3.DatabaseError as error:
        connection.close()
        if _is_damage(error):
            raise _UnusableError("corrupt", str(error)) from error
        raise
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    connection.row_factory = sqlite3.Row
    connection.execute("BEGIN")  # one view: another process may be making the tables
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    names = {
        row["name"] for row in connection.execute("SELECT name FROM sqlite_master")
    }
    connection.execute("COMMIT")
    if version > VERSION:
        reason = f"schema {version} > {VERSION}"
        raise _UnusableError("newer", reason)
    if not ("owner" in names if version > 0 else version == 0 and not names):
        reason = "another program's tables"
        raise _UnusableError("foreign", reason)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    if version < VERSION:
        _migrate(connection)


def _check(connection: sqlite3.Connection) -> None:
    # A page torn by a crash of the machine shows only when it is read.
    (sound,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if sound != "ok":
        raise _UnusableError("corrupt", str(sound))


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring the schema up to date, each step in a transaction of its own."""
    folder = os.path.join(os.path.dirname(__file__), "migrations")
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        for number in range(version + 1, VERSION + 1):
            with open(f"{folder}/{number:04}.sql", encoding="utf-8") as file:
                for statement in _statements(file.read()):
                    connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _statements(script: str) -> list[str]:
    """Split a script; `executescript` would commit behind each statement."""
    statements: list[str] = []
    rest = ""
    for line in script.splitlines(keepends=True):
        rest += line
        if sqlite3.complete_statement(rest):
            statements.append(rest)
            rest = ""
    return statements


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    name = getattr(error, "sqlite_errorname", None) or "SQLITE_ERROR"
    return name.split("_")[1] in {"CORRUPT", "NOTADB"}


def _set_aside(path: str, kind: str) -> str:
    """Rename the file and its side files to a name that is free; return that name."""
    number = 1
    while os.path.lexists(f"{path}.{kind}-{number}"):
        number += 1
    aside = f"{path}.{kind}-{number}"
    for suffix in _FILES:
        with contextlib.suppress(FileNotFoundError):
            os.rename(path + suffix, aside + suffix)
    return aside


def _uri(path: str) -> str:
    """Quote what a file: URI gives a meaning of its own."""
    for char in "%?#":
        path = path.replace(char, f"%{ord(char):02x}")
    return path
