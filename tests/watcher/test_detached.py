"""The watcher that stays on a host, as a real process on this one (C7.3, C7.4)."""

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from policies.delivery import idempotency_key
from tests.servers import Answer, serve
from tests.watcher.detached import Base, end_all, pids, toys, wait
from watcher import errand
from watcher.onhost import answer, detached, yard
from watcher.onhost import folder as folders

SECRET = "s3cr3t-key-of-notify"
OWNER, ID = "0a1b2c", "a1b2c3d4e5f6"


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Base]:
    home = tmp_path / "state-home"
    home.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    with toys(monkeypatch):
        yield Base(home)
    end_all(home)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.write_text("held")
    return path


def ask(do: str, **values: object) -> dict[str, Any]:
    """Ask as an agent does; it must be no error."""
    found = answer({"op": "detached", "do": do, **values})
    assert "error" not in found, found
    assert SECRET not in repr(found)
    return found


def order(work: Path, url: str | None = None, **values: object) -> dict[str, Any]:
    spans: dict[str, Any] = {
        "armed_ago_s": 1.0,
        "left_s": 3600.0,
        "settle_s": 0.0,
        "start_within_s": 0,
    }
    spans |= {name: values.pop(name) for name in list(values) if name in spans}
    words = {
        name: [f"{name}<", ">"]
        for name in ("cleared", "already", "blind", "expired", "unseen")
    }
    notify = {
        "url": url,
        "auth": "bearer",
        "channel": "kchat",
        "timeout_s": 5.0,
        "give_up_s": 86400.0,
        "user_agent": "koder-monitor/x",
    }
    made: dict[str, Any] = {
        "target": f"file {work}",
        "host": "box",
        "part": "file",
        "spec": {"path": str(work)},
        "memory": {},
        "up_s": detached.up() + 5000.0,
        "every_s": 0.05,
        "spans": spans,
        "armed_at": time.time(),
        "deadline_at": time.time() + 3600,
        "zone_s": 3600.0,
        "cleared": "released",
        "waiters": {"cleared": 1, "unseen": 1, "expired": 1},
        "words": {**words, "titles": {"cleared": "c", "expired": "e", "unseen": "u"}},
        "texts": {"probe_failed": "failed: {error}", "said": "{text}"},
        "watch": {"id": ID, "kind": "file"},
        "notify": notify if url else None,
    }
    return made | values


def start(made: dict[str, Any], **values: object) -> dict[str, Any]:
    return ask(
        "start",
        owner=OWNER,
        id=ID,
        program=errand.program(),
        key=SECRET if made["notify"] else "",
        order=made,
        **values,
    )


def stands() -> dict[str, Any]:
    found = ask("contact", owner=OWNER, ids=[ID])["watches"]
    one = found[ID]
    assert isinstance(one, dict)
    return one


def delivered(base: Base) -> Callable[[], object]:
    return lambda: (base.outcome or {}).get("delivered_at")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# its life


def test_it_starts_in_a_folder_of_its_own_and_waits(base: Base, work: Path) -> None:
    with serve() as server:
        said = start(order(work, server.url()))
        assert said["alive"]
        assert said["how"] == "session"
        assert stands() == {"alive": True, "outcome": None}
        assert base.folder == base.root / OWNER / ID
        assert [mode(base.root), mode(base.folder)] == [0o700, 0o700]
        files = [path for path in base.folder.iterdir() if path.is_file()]
        assert {path.name for path in files} >= {"key", "order.json", "koder-monitor"}
        assert {mode(path) for path in files} == {0o600}
        pid = base.pid
        assert os.getsid(pid) != os.getsid(0)
        assert os.readlink(f"/proc/{pid}/cwd") == "/"
        tty = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[4]
        assert tty == "0"
        base.secret_is_nowhere(SECRET)
        assert server.requests == []


def test_an_end_is_told_once_and_leaves_one_file(base: Base, work: Path) -> None:
    with serve() as server:
        start(order(work, server.url()))
        yard.let_go()
        work.unlink()
        wait(delivered(base))
        wait(lambda: not base.alive)
        wait(lambda: os.listdir(base.folder) == ["outcome.json"])
        request = server.request()
        key = idempotency_key(ID, 1, "released")
        assert request.headers["idempotency-key"] == key
        assert request.headers["authorization"] == f"Bearer {SECRET}"
        assert request.headers["user-agent"] == "koder-monitor/x"
        body = request.object
        assert body["idempotency_key"] == key
        assert body["message"].startswith("cleared<")
        assert body["watch"]["state"] == "released"
        base.secret_is_nowhere(SECRET)
        found = stands()
        assert not found["alive"]
        assert found["outcome"]["ending"] == "released"
        assert found["outcome"]["evidence"]["content"] is None
        wait(lambda: not pids(base.root))
    assert ask("stop", owner=OWNER, ids=[ID]) == {"stopped": [ID]}
    assert not base.root.exists()


def test_the_clock_of_the_laptop_goes_on_in_the_memory(base: Base, work: Path) -> None:
    start(order(work, memory={"looks": 7, "first_s": 12.5}))
    wait((base.folder / "state.json").exists)
    memory = base.json("state.json")["memory"]
    assert memory["looks"] >= 8
    assert memory["first_s"] == 12.5
    ask("stop", owner=OWNER, ids=[ID])
    start(order(work))
    wait((base.folder / "state.json").exists)
    first_s = base.json("state.json")["memory"]["first_s"]
    assert first_s > detached.up() + 4000


def test_a_notify_server_that_is_down_for_a_while_loses_nothing(
    base: Base, work: Path
) -> None:
    asked = {"Retry-After": "1"}
    down = Answer(status=503, headers=asked)
    with serve(Answer(close=True), down, down, Answer()) as server:
        start(order(work, server.url()))
        yard.let_go()
        work.write_text("FAIL it broke")
        wait(lambda: (base.outcome or {}).get("attempts"))
        assert (base.folder / "key").exists()
        wait(delivered(base), limit_s=60)
        wait(lambda: not (base.folder / "key").exists())
        assert len(server.requests) == 4
        keys = {one.headers["idempotency-key"] for one in server.requests}
        assert keys == {f"{ID}-1-released"}
        assert server.requests[-1].object["severity"] == "error"
        assert "[FAIL] «it broke»" in server.requests[-1].object["message"]
        assert server.requests[-1].object["message"].endswith("> — a remark")


def test_what_the_server_refuses_is_kept_for_the_laptop(base: Base, work: Path) -> None:
    elsewhere = Answer(status=302, headers={"Location": "/other"})
    with serve(elsewhere) as server:
        start(order(work, server.url()))
        yard.let_go()
        work.unlink()
        wait(lambda: (base.outcome or {}).get("dead"))
        wait(lambda: not base.alive)
        assert os.listdir(base.folder) == ["outcome.json"]
        assert server.request().target == "/notify"
        assert base.json("outcome.json")["delivered_at"] is None
        assert base.json("outcome.json")["error"].startswith("HTTP 302")


def test_without_a_server_the_outcome_waits_for_the_laptop(
    base: Base, work: Path
) -> None:
    start(order(work))
    assert not (base.folder / "key").exists()
    work.unlink()
    wait(lambda: not base.alive)
    assert os.listdir(base.folder) == ["outcome.json"]
    assert stands()["outcome"]["delivered_at"] is None


def test_the_laptop_in_contact_delivers_and_the_host_stays_silent(
    base: Base, work: Path
) -> None:
    with serve() as server:
        start(order(work, server.url(), every_s=60))
        work.unlink()
        start(order(work, server.url(), every_s=60))  # which makes it look at once
        wait(lambda: base.outcome)
        assert stands()["alive"]
        assert (base.folder / "key").exists()
        assert ask("stop", owner=OWNER, ids=[ID]) == {"stopped": [ID]}
        assert not base.root.exists()
        wait(lambda: not pids(base.root))
        assert server.requests == []


def test_a_laptop_that_is_gone_does_not_hold_the_ping_up(
    base: Base, work: Path
) -> None:
    with serve() as server:
        start(order(work, server.url(), every_s=60))
        work.unlink()
        start(order(work, server.url(), every_s=60))
        wait(lambda: base.outcome)
        assert server.requests == []
        yard.let_go()  # as when its ssh session ends
        wait(delivered(base), limit_s=30)
        assert len(server.requests) == 1


def test_a_laptop_that_sleeps_in_contact_does_not_either(
    base: Base, work: Path
) -> None:
    with serve() as server:
        start(order(work, server.url(), every_s=60))
        work.unlink()
        start(order(work, server.url(), every_s=60))
        wait(lambda: base.outcome)
        assert server.requests == []
        long_ago = time.time() - 1000
        os.utime(base.root / OWNER / "contact", (long_ago, long_ago))
        wait(delivered(base), limit_s=30)


# its death


@pytest.mark.parametrize("when", ["at once", "after a look"])
def test_a_killed_watcher_is_seen_dead_and_started_again(
    when: str, base: Base, work: Path
) -> None:
    with serve() as server:
        start(order(work, server.url()))
        if when == "after a look":
            wait((base.folder / "state.json").exists)
        base.kill()
        wait(lambda: not stands()["alive"])
        assert stands()["outcome"] is None
        assert start(order(work, server.url()))["alive"]
        yard.let_go()
        work.unlink()
        wait(delivered(base))
        assert len(server.requests) == 1


def test_killed_between_its_end_and_the_ping_it_leaves_both_to_the_laptop(
    base: Base, work: Path
) -> None:
    with serve(Answer(status=503)) as server:
        start(order(work, server.url()))
        yard.let_go()
        work.unlink()
        wait(lambda: (base.outcome or {}).get("attempts"))
        base.kill()
        wait(lambda: not base.alive)
        found = stands()
        assert not found["alive"]
        assert found["outcome"]["delivered_at"] is None
        again = start(order(work, server.url()))
        assert again["outcome"]["ending"] == "released"
        assert ask("stop", owner=OWNER, ids=[ID]) == {"stopped": [ID]}
        assert not base.root.exists()


def test_restarted_by_the_system_it_goes_on_where_it_was(
    base: Base, work: Path
) -> None:
    start(order(work))
    wait((base.folder / "state.json").exists)
    looks = base.json("state.json")["looks"]
    base.kill()
    wait(lambda: not base.alive)
    program = [sys.executable, "-I", "-S", str(base.folder / "koder-monitor")]
    with subprocess.Popen([*program, str(base.folder)]) as again:
        wait(lambda: base.alive)
        wait(lambda: base.json("state.json")["looks"] > looks)
        assert base.json("state.json")["memory"]["looks"] > looks
        assert again.poll() is None
        # A second one finds that there is one, and leaves.
        assert subprocess.call([*program, str(base.folder)]) == 0
        ask("stop", owner=OWNER, ids=[ID])
        assert again.wait(10) == 0
    assert not base.root.exists()


@pytest.mark.parametrize("ended", [False, True], ids=["waiting", "ended"])
def test_a_polite_signal_removes_all_but_an_outcome_that_nobody_has(
    ended: bool, base: Base, work: Path
) -> None:
    with serve(Answer(status=503)) as server:
        start(order(work, server.url()))
        yard.let_go()
        if ended:
            work.unlink()
            wait(lambda: (base.outcome or {}).get("attempts"))
        folder, pid = base.folder, base.pid
        os.kill(pid, signal.SIGTERM)
        wait(lambda: not pids(base.root))
        left = os.listdir(folder) if folder.exists() else None
        assert left == (["outcome.json"] if ended else None)


def test_one_that_hangs_is_stopped_all_the_same(
    base: Base, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yard, "_STOP_LIMIT_S", 0.2)
    start(order(work))
    pid = base.pid
    os.kill(pid, signal.SIGSTOP)
    assert ask("stop", owner=OWNER, ids=[ID]) == {"stopped": [ID]}
    wait(lambda: not pids(base.root))
    assert not base.root.exists()


def test_a_folder_that_vanishes_ends_its_watcher(base: Base, work: Path) -> None:
    start(order(work))
    folders.clear(str(base.folder))
    wait(lambda: not pids(base.root), limit_s=60)


# what it sees


def test_a_look_that_cannot_see_is_no_end(base: Base, work: Path) -> None:
    work.write_text("denied")
    start(order(work))
    wait((base.folder / "state.json").exists)
    wait(lambda: base.json("state.json")["blind"])
    work.write_text("crash")
    looks = base.json("state.json")["looks"]
    wait(lambda: base.json("state.json")["looks"] >= looks)
    assert base.outcome is None
    work.write_text("held")
    wait(lambda: base.json("state.json")["unknown_s"] > 0)
    wait(lambda: not base.json("state.json")["blind"])
    assert base.outcome is None


@pytest.mark.parametrize(
    ("content", "ending", "message"),
    [
        ("held", "expired", "expired<>"),
        ("denied", "expired", "failed: [Errno 13] denied>"),
        ("absent", "unseen", "unseen<>"),
    ],
)
def test_at_the_deadline_it_says_what_it_knows(
    content: str, ending: str, message: str, base: Base, work: Path
) -> None:
    work.write_text(content)
    within = 3600 if content == "absent" else 0
    start(order(work, left_s=1.0, start_within_s=within))
    wait(lambda: base.outcome)
    outcome = base.json("outcome.json")
    assert outcome["ending"] == ending
    line = str(outcome["line"])
    assert line.endswith(message)
    assert line.startswith("blind<" if content == "denied" else message)


def test_a_new_order_moves_the_deadline_of_one_that_lives(
    base: Base, work: Path
) -> None:
    start(order(work, every_s=3600))
    pid = folders.pid_of(str(base.folder))
    start(order(work, every_s=3600, left_s=0.0))
    assert folders.pid_of(str(base.folder)) in {pid, None}
    wait(lambda: base.outcome)
    assert base.json("outcome.json")["ending"] == "expired"


def test_the_end_of_a_process_makes_it_look_at_once(base: Base, work: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1) as child:
        made = order(work, every_s=3600)
        made["spec"] |= {"follows": [child.pid, 1]}
        # The toy asks for a look each 30 s; the limit below is shorter.
        start(made)
        wait((base.folder / "state.json").exists)
        work.unlink()
        child.communicate(b"\n")
        wait(lambda: base.outcome, limit_s=25)


def test_an_outcome_that_is_refused_makes_way(base: Base, work: Path) -> None:
    start(order(work, left_s=0.0))
    wait(lambda: not base.alive and base.outcome)
    assert start(order(work))["outcome"]["ending"] == "expired"
    said = start(order(work), anew=True)
    assert said["alive"]
    assert said["outcome"] is None
    assert base.outcome is None


# the yard


def test_the_list_shows_the_watches_of_every_laptop(base: Base, work: Path) -> None:
    assert ask("list") == {"watches": []}
    start(order(work))
    other = {"owner": "ffff", "id": "b1", "program": errand.program(), "key": ""}
    ask("start", **other, order=order(work))
    found = {one["id"]: one for one in ask("list")["watches"]}
    assert found[ID]["owner"] == OWNER
    assert found["b1"]["owner"] == "ffff"
    assert found["b1"]["alive"]
    assert found["b1"]["watch"]["kind"] == "file"
    work.unlink()
    wait(lambda: not base.alive)
    (one, _) = ask("list")["watches"]
    assert one["ending"] == "released"
    assert not one["alive"]


@pytest.mark.parametrize("name", ["../x", "", "a/b", "A", "contact", "." * 3])
def test_no_name_leads_out_of_the_folder(name: str, base: Base) -> None:
    for values in ({"owner": name, "ids": ["a"]}, {"owner": "a", "ids": [name]}):
        found = answer({"op": "detached", "do": "stop", **values})
        assert found["error"]["text"].startswith("ValueError")


def test_what_nobody_fetched_for_a_week_goes(base: Base, tmp_path: Path) -> None:
    for number, ago_s in (("a1", 8 * 86400), ("a2", 6 * 86400)):
        folder = base.root / OWNER / number
        folder.mkdir(parents=True)
        at = time.time() - ago_s
        folders.write_json(str(folder), "outcome.json", {"ended_at": at})
    crashed = base.root / OWNER / "a3"
    crashed.mkdir()
    (crashed / "key").write_text(SECRET)
    old = time.time() - 20 * 86400
    folders.write_json(str(crashed), "order.json", {"deadline_at": old})
    empty = base.root / "ee"
    empty.mkdir()
    found = ask("list")["watches"]
    assert [one["id"] for one in found] == ["a2"]
    assert not empty.exists()


def test_a_program_that_does_not_start_is_no_watcher(
    base: Base, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watcher.onhost.survival._ALIVE_LIMIT_S", 1.0)
    values = {"owner": OWNER, "id": ID, "key": SECRET, "program": "import nonsense"}
    with serve() as server:
        said = ask("start", **values, order=order(work, server.url()))
    assert not said["alive"]
    assert "nonsense" in said["said"]
    assert not (base.folder / "key").exists()


def test_a_request_that_cannot_be_carried_out_is_told(base: Base) -> None:
    assert "KeyError" in answer({"op": "detached", "do": "what"})["error"]["text"]
    base.root.write_text("in the way")
    found = answer({"op": "detached", "do": "contact", "owner": OWNER, "ids": [ID]})
    assert found == {"watches": {ID: {"alive": False, "outcome": None}}}
    values = {"owner": OWNER, "id": ID, "key": SECRET, "program": ""}
    found = answer({"op": "detached", "do": "start", **values, "order": {}})
    assert found["error"]["errno"] == "ENOTDIR"
    assert SECRET not in repr(found)
