"""A store filled by hand, as a service would have left it."""

import json
import socket
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from watcher.database import NAME, open_database
from watcher.socket_path import socket_address

HOUR_S = 3600.0


@cache
def _empty() -> bytes:
    """Return an empty store; to make one takes fsyncs, to copy it none."""
    with tempfile.TemporaryDirectory() as folder:
        connection, _ = open_database(folder)
        connection.close()
        return (Path(folder) / NAME).read_bytes()


def opened(state: Path) -> sqlite3.Connection:
    """Return a connection to the store of a state directory, made where needed."""
    path = state / NAME
    if not path.exists():
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_bytes(_empty())
    connection, note = open_database(str(state))
    assert note is None
    connection.execute("PRAGMA synchronous = OFF")
    return connection


def add(connection: sqlite3.Connection, table: str, **values: object) -> None:
    """Insert a row; what is no value of SQLite goes in as JSON."""
    marks = ", ".join("?" * len(values))
    connection.execute(
        f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})",
        [
            json.dumps(value) if isinstance(value, dict | list) else value
            for value in values.values()
        ],
    )


def add_watch(
    connection: sqlite3.Connection, watch_id: str, *, at: float, **values: object
) -> None:
    """Insert a watch of a lock, armed at `at` for an hour unless told otherwise."""
    row: dict[str, object] = {
        "id": watch_id,
        "target": f"lock {watch_id}",
        "kind": "lock",
        "label": watch_id,
        "observation": "held",
        "armed_at": at,
        "deadline_at": at + HOUR_S,
        "last_probe_at": at,
        "every_s": 30,
        "ttl_s": 3600,
        "token": 1,
    }
    add(connection, "watches", **row | values)


def add_waiter(
    connection: sqlite3.Connection,
    watch_id: str,
    number: int = 1,
    *,
    at: float,
    **values: object,
) -> None:
    """Insert a waiter that has waited since `at`."""
    row: dict[str, object] = {
        "watch_id": watch_id,
        "number": number,
        "label": watch_id,
        "lang": "pt",
        "ttl_s": 3600,
        "armed_at": at,
        "deadline_at": at + HOUR_S,
        "deadline_boot_s": 0.0,
        "boot_id": "boot",
    }
    add(connection, "waiters", **row | values)


def add_ping(
    connection: sqlite3.Connection,
    key: str,
    *,
    at: float,
    message: str = "✅ LIBERADO: lock x",
    **values: object,
) -> None:
    """Insert a ping that was put into the outbox at `at`."""
    row: dict[str, object] = {
        "channel": "koder",
        "key": key,
        "body": {"message": message},
        "created_at": at,
        "due_at": at + 5,
        "give_up_at": at + 24 * HOUR_S,
    }
    add(connection, "pings", **row | values)


def fill(connection: sqlite3.Connection, count: int, *, at: float) -> None:
    """Insert so many armed watches with a waiter, a ping and a job each."""
    holder = {"session": "s-1", "host": "box", "pid": 4711, "since": None, "paths": []}
    connection.execute("BEGIN")
    for number in range(count):
        watch_id = f"{number * 2654435761 % 2**48:012x}"
        add_watch(
            connection,
            watch_id,
            at=at,
            memory={"mark": [1, 2, 3], "holder": holder},
            evidence={"means": "lstat", "path": f"/locks/{watch_id}", "inode": number},
        )
        add_waiter(connection, watch_id, at=at, session="s-1", resume="the API work")
        add_ping(connection, f"{watch_id}-1-released", at=at)
        add(connection, "jobs", id=f"j{watch_id}", label=f"job {number}", started_at=at)
    connection.execute("COMMIT")


@contextmanager
def answering(state: Path) -> Iterator[None]:
    """Answer on the service's socket, so that no command starts a service."""
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        with socket_address(str(state)) as address:
            listener.bind(address)
        listener.listen(128)
        accepting = threading.Thread(target=_accept, args=(listener,))
        accepting.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)  # which ends the accept
            accepting.join(5)


def _accept(listener: socket.socket) -> None:
    while True:
        try:
            listener.accept()[0].close()
        except OSError:
            return
