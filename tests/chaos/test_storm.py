"""Nothing is lost and nothing is doubled, whatever is killed when (C5, C6)."""

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.chaos.storm import Storm
from tests.chaos.unreliable import UnreliableServer

ROUNDS = int(os.environ.get("STORM_ROUNDS", "25"))
SEED = int(os.environ.get("STORM_SEED", "1"))


@pytest.mark.slow
@pytest.mark.timeout(60 + 4 * ROUNDS)
def test_every_watch_ends_once_and_every_ping_arrives(tmp_path: Path) -> None:
    with UnreliableServer(SEED) as server:
        storm = Storm(tmp_path, server, SEED)
        try:
            storm.rage(ROUNDS)
            storm.calm(60 + ROUNDS)
            watches = storm.rows("SELECT * FROM watches")
            waiters = storm.rows("SELECT * FROM waiters")
            pings = storm.rows("SELECT * FROM pings")
        finally:
            storm.end()
    states = Counter(watch["state"] for watch in watches)
    assert states["armed"] == 0, states
    stored = {watch["target"].split()[1] for watch in watches}
    alone = [command for command in storm.commands if command.alone]
    served = [command for command in storm.commands if not command.alone]
    assert {c.slug for c in served if c.said_armed or c.lines} <= stored
    assert all(waiter["state"] == "told" for waiter in waiters)
    # One ping an outcome of a watch, and at least the watch's last one.
    keys = [ping["key"] for ping in pings]
    assert len(keys) == len(set(keys))
    ended = {f"{watch['id']}" for watch in watches}
    pinged = {key.split("-")[0] for key in keys}
    assert ended <= pinged
    assert len(pinged - ended) <= len(alone)
    released = Counter(key.split("-")[0] for key in keys if key.endswith("-released"))
    assert all(count == 1 for count in released.values())
    assert [dict(ping) for ping in pings if ping["state"] != "delivered"] == []
    assert all(server.confirmed[key] >= 1 for key in keys)
    assert set(server.received) == set(keys)
    for command in storm.commands:
        told = [line.split(":")[0] for line in command.lines]
        assert len(told) == 1 or (command.killed and not told), command.err.read_text()
        assert set(told) <= {"✅ LIBERADO", "⏰ EXPIROU"}
