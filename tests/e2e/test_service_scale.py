"""Many watches, and a service that is killed, stopped and stuck (C5.3, C10.2)."""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import httpx
import pytest

from tests.e2e.command import Place, until
from tests.servers import Server
from watcher.client import Answer, Client, start_service

LIMIT_S = 180.0  # for a thousand; a healthy machine takes a twentieth

pytestmark = pytest.mark.slow


@pytest.fixture
def here(place: Place, server: Server, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Let this process be a client of the service of the place."""
    place.env["KODER_MONITOR_NOTIFY_URL"] = server.url()
    for name, value in place.env.items():
        monkeypatch.setenv(name, value)
    return place


def serving(place: Place) -> int:
    start_service(str(place.state), wait=True)
    return place.service()


def hold(place: Place, count: int) -> list[Path]:
    return [place.hold(f"s{number}") for number in range(count)]


def arm(place: Place, paths: Sequence[Path], ttl_s: int = 3600) -> list[str]:
    """Arm a watch for each path over the socket, and return their ids."""
    client = Client(str(place.state))

    def one(path: Path) -> str:
        body = {"target": f"lock {path}", "ttl_s": ttl_s}
        status, answer = client.request("POST", "/v1/watches", body, limit_s=60)
        assert status == 201
        return str(cast("Answer", answer)["id"])

    with ThreadPoolExecutor(8) as threads:
        return [*threads.map(one, paths)]


def deadlines(place: Place) -> dict[str, float]:
    rows = place.rows("SELECT id, deadline_at FROM watches")
    return {row["id"]: row["deadline_at"] for row in rows}


def states(place: Place) -> Counter[str]:
    return Counter(row["state"] for row in place.rows("SELECT state FROM watches"))


def keys(server: Server) -> set[str]:
    """Return the keys of the pings that came to the server."""
    requests = list(server.requests)
    return {str(request.object["idempotency_key"]) for request in requests}


def all_told(place: Place, server: Server, ids: Sequence[str], ending: str) -> None:
    """Wait until every outcome is stored and every ping is out; none doubled."""
    until(lambda: states(place)[ending] == len(ids), limit_s=LIMIT_S)
    wanted = {f"{watch_id}-1-{ending}" for watch_id in ids}
    until(lambda: keys(server) == wanted, limit_s=LIMIT_S)
    until(
        lambda: not place.rows("SELECT 1 FROM pings WHERE state != 'delivered'"),
        limit_s=LIMIT_S,
    )
    assert len(place.rows("SELECT 1 FROM pings")) == len(ids)
    told = place.rows("SELECT state, outcome FROM waiters")
    assert {row["state"] for row in told} == {"told"}
    assert {json.loads(row["outcome"])["ending"] for row in told} == {ending}


# killed: C10.2


def test_a_service_killed_with_200_watches_comes_back_with_all_and_their_deadlines(
    here: Place, server: Server
) -> None:
    first = serving(here)
    paths = hold(here, 200)
    ids = arm(here, paths)
    before = deadlines(here)
    assert set(before) == set(ids)
    here.end_service(signal.SIGKILL)
    for path in paths[:100]:  # while nobody looks
        path.unlink()
    assert serving(here) != first
    assert deadlines(here) == before
    for path in paths[100:]:
        path.unlink()
    all_told(here, server, ids, "released")


def test_deadlines_that_pass_while_the_service_is_gone_are_told_when_it_is_back(
    here: Place, server: Server
) -> None:
    serving(here)
    ids = arm(here, hold(here, 30), ttl_s=2)
    here.end_service(signal.SIGKILL)
    last_s = max(deadlines(here).values(), default=0.0)
    until(lambda: time.time() > last_s)
    serving(here)
    until(lambda: states(here)["expired"] == len(ids))
    assert states(here) == {"expired": len(ids)}
    until(lambda: keys(server) == {f"{i}-1-expired" for i in ids})


# stopped: C10.2, B126


def probes(place: Place) -> float:
    """Return the looks that the service has taken, by its own count."""
    text = metrics(place)
    lines = [
        line for line in text.splitlines() if line.startswith("koder_monitor_probes_t")
    ]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def metrics(place: Place) -> str:
    transport = httpx.HTTPTransport(uds=str(place.state / "monitor.sock"))
    with httpx.Client(transport=transport, timeout=60) as client:
        answer = client.get("http://localhost/metrics")
    assert answer.status_code == 200
    return answer.text


def test_after_a_stop_each_watch_is_looked_at_once_not_once_for_each_look_missed(
    here: Place, server: Server
) -> None:
    """With a floor of 1 s, a stop of 8 s has swallowed eight looks of each."""
    pid = serving(here)
    count, stopped_s = 50, 8.0
    paths = hold(here, count)
    ids = arm(here, paths)
    until(lambda: probes(here) >= 2 * count)
    start_s = time.monotonic()
    before = probes(here)
    os.kill(pid, signal.SIGSTOP)
    stop_s = time.monotonic()
    until(lambda: time.monotonic() > stop_s + stopped_s)
    os.kill(pid, signal.SIGCONT)
    until(lambda: probes(here) >= before + count)
    after = probes(here)
    # One round to catch up, and what fell due in the time in which it ran.
    running_s = time.monotonic() - start_s - stopped_s
    assert after - before <= count * (2 + running_s)
    assert states(here) == {"armed": count}
    for path in paths:
        path.unlink()
    all_told(here, server, ids, "released")


def test_what_was_released_or_due_in_a_stop_is_told_once_behind_it(
    here: Place, server: Server
) -> None:
    pid = serving(here)
    paths = hold(here, 40)
    freed = arm(here, paths[:20])
    expired = arm(here, paths[20:], ttl_s=3)
    os.kill(pid, signal.SIGSTOP)
    for path in paths[:20]:
        path.unlink()
    last_s = max(deadlines(here)[i] for i in expired)
    until(lambda: time.time() > last_s)
    os.kill(pid, signal.SIGCONT)
    until(lambda: not states(here)["armed"])
    assert states(here) == {"released": 20, "expired": 20}
    wanted = {f"{i}-1-released" for i in freed} | {f"{i}-1-expired" for i in expired}
    until(lambda: keys(server) == wanted)


# told to end


def test_a_service_with_many_watches_ends_in_time_and_keeps_them(
    here: Place, server: Server
) -> None:
    serving(here)
    paths = hold(here, 200)
    ids = arm(here, paths)
    before = deadlines(here)
    here.end_service(signal.SIGTERM)
    assert deadlines(here) == before
    serving(here)
    for path in paths:
        path.unlink()
    all_told(here, server, ids, "released")


# a look that hangs (B128)


def test_a_look_that_hangs_delays_nobody_else(here: Place, server: Server) -> None:
    serving(here)
    fifo = here.folder / "pidfile"
    os.mkfifo(fifo)
    client = Client(str(here.state))
    body = {"target": f"process --pidfile {fifo}", "ttl_s": 600}
    client.request("POST", "/v1/watches", body, limit_s=60)
    paths = hold(here, 20)
    ids = arm(here, paths)
    for path in paths:
        path.unlink()
    until(lambda: states(here)["released"] == 20)
    until(lambda: keys(server) == {f"{i}-1-released" for i in ids})
    assert states(here) == {"released": 20, "armed": 1}


# a thousand at once


@pytest.mark.timeout(600)
def test_a_thousand_watches_released_at_once_are_all_told_and_pinged(
    here: Place, server: Server
) -> None:
    serving(here)
    paths = hold(here, 1000)
    ids = arm(here, paths)
    assert len(set(ids)) == 1000
    for path in paths:
        path.unlink()
    all_told(here, server, ids, "released")
    text = metrics(here)
    assert 'koder_monitor_outcomes_total{kind="lock",outcome="released"} 1000.0' in text
    assert 'koder_monitor_release_to_line_seconds_count{kind="lock"} 1000.0' in text
    delivered = 'koder_monitor_line_to_delivery_seconds_count{channel="koder-notify"}'
    assert f"{delivered} 1000.0" in text
