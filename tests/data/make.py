"""Makes the database of this release, which every later one must open for ever.

Run once for each release that changes the schema, from the repository's root:

    python -m tests.data.make 0.1.0

It writes tests/data/<release>.db: one row of each kind that a service leaves behind.
Never made anew for an older release: what users have is what that release wrote.
"""

import sys
from pathlib import Path

from tests.rows import add, add_ping, add_waiter, add_watch, opened
from watcher.database import NAME

AT = 1_790_000_000.0
HOLDER = {"session": "s-1", "host": "box", "pid": 4711, "since": None, "paths": []}


def fill(folder: Path) -> None:
    """Write the rows."""
    connection = opened(folder)
    connection.execute("UPDATE owner SET token = 3")
    memory = {"entry": [1, 2, 3], "holder": HOLDER, "changes": [], "device": 1}
    add_watch(connection, "a1a1a1a1a1a1", at=AT, looks=5, memory=memory, renewals=1)
    add_watch(
        connection,
        "b2b2b2b2b2b2",
        at=AT,
        target="process --pid 4711",
        kind="process",
        label="4711",
        start_within_s=60,
    )
    for watch_id in ("a1a1a1a1a1a1", "b2b2b2b2b2b2"):
        add_waiter(connection, watch_id, at=AT, session="s-1", resume="the API work")
    add_waiter(connection, "a1a1a1a1a1a1", 2, at=AT, takes=1, nonce="n2")
    add_waiter(connection, "a1a1a1a1a1a1", 3, at=AT, state="left")
    for state in ("released", "ended", "expired", "removed", "unseen"):
        watch_id = f"e{state[:3].encode().hex()}"
        ended = {"state": state, "ended_at": AT + 60, "line": f"line of {state}"}
        add_watch(connection, watch_id, at=AT, **ended)
        told = {"ending": state}
        add_waiter(connection, watch_id, at=AT, state="told", outcome=told)
    add_ping(connection, "k1", at=AT, watch_id="a1a1a1a1a1a1")
    add_ping(connection, "k2", at=AT, state="delivered", delivered_at=AT + 1)
    add_ping(connection, "k3", at=AT, state="dead", last_error="no", logged_at=AT)
    add(connection, "jobs", id="j1", label="build", started_at=AT, notify_after_s=60)
    add(
        connection, "jobs", id="j2", label="x", started_at=AT, state="done", ended_at=AT
    )
    detail = {"ttl_s": 60, "why": "slow"}
    add(
        connection,
        "trail",
        watch_id="a1a1a1a1a1a1",
        at=AT,
        event="renewed",
        detail=detail,
    )
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()


def main() -> None:
    """Make the file of the release that is named."""
    target = Path(__file__).parent / f"{sys.argv[1]}.db"
    if target.exists():
        sys.exit(f"{target} is there already, and stays as it is")
    folder = target.with_suffix(".making")
    fill(folder)
    (folder / NAME).rename(target)
    folder.rmdir()


if __name__ == "__main__":
    main()
