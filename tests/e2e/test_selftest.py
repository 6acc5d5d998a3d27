"""`koder-monitor selftest`: the whole way, measured, and nothing left of it (C9.5)."""

import json
import os
import signal
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import pytest

from tests import rows
from tests.e2e.command import Place, until
from tests.servers import Answer, Server, serve
from watcher.cli import selftest
from watcher.client import Client

CHECKS = ["lock", "process"]


def report(
    place: Place,
    *words: str,
    status: int = 0,
    env: Mapping[str, str | None] | None = None,
) -> dict[str, Any]:
    """Run it and return its one object."""
    ended = place.run("selftest", "--json", "--lang", "en", *words, env=env)
    assert ended.status == status, ended
    found = ended.object
    assert found["ok"] == (status == 0)
    return found


def lacking(found: Mapping[str, Any]) -> dict[str, str]:
    return {item["check"]: item["detail"] for item in found["not_set_up"]}


def nothing_is_left(place: Place) -> bool:
    """Say whether no watch is armed, no outcome unread and no scratch folder there."""
    (row,) = place.rows(
        "SELECT (SELECT count(*) FROM watches WHERE state = 'armed')"
        " + (SELECT count(*) FROM waiters WHERE state = 'told'"
        " AND acknowledged_at IS NULL) AS open"
    )
    return not row["open"] and not [*place.state.glob("selftest-*")]


def test_both_ways_are_measured_and_the_pings_wake_nobody(
    place: Place, server: Server
) -> None:
    place.env["KODER_MONITOR_NOTIFY_URL"] = server.url()
    found = report(place)
    assert [check["check"] for check in found["checks"]] == CHECKS
    for check in found["checks"]:
        assert check["ok"]
        assert check["release_to_line_ms"] > 0
        assert check["line_to_ping_ms"] >= 0
        assert check["channels"] == ["selftest"]
    assert server.requests == []
    pings = place.pings()
    assert len(pings) == 2
    assert all("selftest" in ping for ping in pings)
    assert all("(ping de selftest: fica só aqui)" in ping for ping in pings)
    assert nothing_is_left(place)


def test_with_ping_the_channel_gets_both_and_sees_that_they_are_a_test(
    place: Place, server: Server
) -> None:
    place.env["KODER_MONITOR_NOTIFY_URL"] = server.url()
    found = report(place, "--ping")
    for check in found["checks"]:
        assert check["ok"]
        assert check["channels"] == ["koder-notify"]
        assert check["line_to_ping_ms"] >= 0
    messages = [request.object["message"] for request in server.requests]
    assert len(messages) == 2
    assert all("selftest" in message for message in messages)
    assert place.pings() == []
    assert nothing_is_left(place)


def test_a_ping_that_is_not_delivered_fails_it_and_says_why(place: Place) -> None:
    with serve(Answer(status=403)) as server:
        place.env["KODER_MONITOR_NOTIFY_URL"] = server.url()
        found = report(place, "--ping", status=1)
    for check in found["checks"]:
        assert not check["ok"]
        assert check["release_to_line_ms"] > 0
        assert check["line_to_ping_ms"] is None
        assert "not delivered to koder-notify" in check["detail"]
        assert "403" in check["detail"]
    assert nothing_is_left(place)


def test_a_log_that_cannot_be_written_fails_it(place: Place) -> None:
    place.log.mkdir(parents=True)
    found = report(place, status=1)
    assert all("selftest" in check["detail"] for check in found["checks"])
    assert nothing_is_left(place)


def test_it_says_what_is_not_set_up_without_failing(place: Place) -> None:
    said = lacking(report(place))
    assert "no channel" in said["notify"]
    assert "no hook" in said["hooks"]
    assert "hosts" not in said


def test_an_open_key_file_and_blind_hosts_are_named(
    place: Place, server: Server
) -> None:
    report(place)
    key = place.folder / "key"
    key.write_text("hush-hush")
    key.chmod(0o644)
    with closing(rows.opened(place.state)) as connection:
        for number, host in enumerate(["box", "attic"]):
            at = time.time()
            values = {"kind": "port", "host": host, "observation": "unknown"}
            rows.add_watch(connection, f"w{number}", at=at, **values)
    place.run("hook", "session-end", "--runtime", "claude-code")
    env = {
        "KODER_MONITOR_NOTIFY_URL": server.url(),
        "KODER_MONITOR_NOTIFY_KEY_FILE": str(key),
    }
    found = report(place, env=env)
    said = lacking(found)
    assert any(str(key) in item["detail"] for item in found["not_set_up"])
    assert "attic, box" in said["hosts"]
    assert "hooks" not in said
    assert "hush" not in json.dumps(found)


def test_a_person_reads_a_line_for_each(place: Place) -> None:
    ended = place.run("selftest")
    assert ended.status == 0
    lines = ended.out.splitlines()
    assert lines[0].startswith("✅ lock: liberação → linha ")
    assert lines[1].startswith("✅ process: liberação → linha ")
    assert any(line.startswith("⚠️  notify: ") for line in lines)


def test_without_a_service_it_says_so(place: Place) -> None:
    place.state.mkdir()
    (place.state / "monitor.sock").mkdir()
    found = report(place, status=1)
    [check] = found["checks"]
    assert (check["check"], check["ok"]) == ("service", False)
    assert check["release_to_line_ms"] is None


# in this process: what takes long, or goes wrong in between


@pytest.fixture
def here(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Let commands of this process run in the place."""
    for name, value in place.env.items():
        monkeypatch.setenv(name, value)
    return place


def run_here(capfd: pytest.CaptureFixture[str]) -> tuple[int, list[dict[str, Any]]]:
    """Run it and return its status and its checks."""
    status = selftest.run(Namespace(ping=False, json=True, lang="en"))
    found = json.loads(capfd.readouterr().out)
    checks = found["checks"]
    assert isinstance(checks, list)
    return status, checks


def replaced(
    monkeypatch: pytest.MonkeyPatch, place: Place, release: Callable[[], object]
) -> None:
    """Wait for a lock that is held, and do something else than give it back."""

    @contextmanager
    def lock(state: str) -> Iterator[selftest._Thing]:
        yield selftest._Thing(f"lock {place.hold()}", lambda: void(release()))

    monkeypatch.setattr(selftest, "_lock", lock)


def void(_: object) -> None:
    pass


def test_a_release_that_is_not_told_in_time_fails_it(
    here: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(selftest, "_SLACK_S", 0.0)
    replaced(monkeypatch, here, lambda: None)
    status, [lock, process] = run_here(capfd)
    assert (status, lock["ok"], process["ok"]) == (1, False, True)
    assert "no line of a release" in lock["detail"]
    assert lock["release_to_line_ms"] is None
    assert nothing_is_left(here)


def test_a_watch_that_somebody_else_removes_fails_it(
    here: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def remove() -> None:
        watch = here.watch()["id"]
        here.run("remove", watch, "--why", "by hand")

    replaced(monkeypatch, here, remove)
    status, [lock, _] = run_here(capfd)
    assert (status, lock["ok"]) == (1, False)
    assert "removed" in lock["detail"]


def test_a_service_that_is_killed_meanwhile_fails_it_and_leaves_nothing(
    here: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    replaced(monkeypatch, here, here.end_service)
    status, [lock, _] = run_here(capfd)
    assert (status, lock["ok"]) == (1, False)
    assert nothing_is_left(here)


def test_a_watch_that_is_never_seen_to_wait_fails_it(
    here: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(selftest, "_ARM_LIMIT_S", -1.0)
    status, checks = run_here(capfd)
    assert status == 1
    assert [check["ok"] for check in checks] == [False, False]
    assert nothing_is_left(here)


def test_an_outbox_without_its_ping_fails_it(
    here: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ask = Client.request

    def request(self: Client, method: str, path: str, *more: Any, **also: Any) -> Any:  # noqa: ANN401 - as the real one takes it
        answer = ask(self, method, path, *more, **also)
        return (200, []) if path.startswith("/v1/pings") else answer

    monkeypatch.setattr(Client, "request", request)
    status, checks = run_here(capfd)
    assert status == 1
    assert all("nothing in the outbox" in check["detail"] for check in checks)


def test_polling_only_is_said(
    here: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    assert selftest.run(Namespace(ping=False, json=True, lang="en")) == 0
    said = lacking(json.loads(capfd.readouterr().out))
    assert said["events"] == "polling only"


def test_a_store_that_cannot_be_read_is_no_reason_to_fail(
    here: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(selftest, "read", lambda look: (None, None))
    status, _ = run_here(capfd)
    assert status == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_it_leaves_nothing_when_it_is_stopped_midway(
    place: Place, number: signal.Signals
) -> None:
    place.env["KODER_MONITOR_SETTLE"] = "60s"  # nothing counts as released so soon
    running = place.start("selftest")
    until(lambda: [*place.state.glob("selftest-*/lock-*")])
    until(lambda: not [*place.state.glob("selftest-*/lock-*")])
    assert place.watch()["label"].startswith("selftest lock ")
    running.send(number)
    assert running.process.wait(20) == 128 + number
    assert nothing_is_left(place)
