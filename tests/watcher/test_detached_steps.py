"""The steps of a detached watcher, run in this process: what a real one does unseen."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import Answer, serve
from tests.watcher.detached import Base, end_all, toys, wait
from tests.watcher.test_detached import ID, OWNER, SECRET, ask, order
from watcher.onhost import detached, limited, survival, yard
from watcher.onhost import folder as folders


def direct(
    work: Callable[[], dict[str, Any]], limit_s: float, *, shut: object
) -> dict[str, Any]:
    """Do the work here; a fault of it is what a child that ended would be."""
    try:
        return work()
    except Exception as error:
        raise limited.HungError from error


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Base]:
    home = tmp_path / "state-home"
    home.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    monkeypatch.setattr(survival, "spawn", lambda *_: "session")
    monkeypatch.setattr(survival, "comes_alive", lambda *_: True)
    monkeypatch.setattr(detached, "limited", direct)
    monkeypatch.setattr(detached, "_CONTACT_PAUSE_S", 0.05)
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    mask = os.umask(0o077)
    with toys(monkeypatch):
        yield Base(home)
    os.umask(mask)
    for number, handler in before.items():
        signal.signal(number, handler)
    end_all(home)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.write_text("held")
    return path


def ready(made: dict[str, Any]) -> None:
    key = SECRET if made["notify"] else ""
    ask("start", owner=OWNER, id=ID, program="", key=key, order=made)


def run(base: Base) -> int:
    return detached.main(str(base.folder), apart=False)


def later(
    action: Callable[[], object], when: Callable[[], object] = lambda: True
) -> None:
    """Do something in a while, once something is so."""

    def act() -> None:
        time.sleep(0.2)
        wait(when)
        action()

    threading.Thread(target=act, daemon=True).start()


def outcome(base: Base) -> dict[str, Any]:
    assert os.listdir(base.folder) == ["outcome.json"]
    return base.json("outcome.json")


def test_it_looks_until_the_end_and_tells_it(base: Base, work: Path) -> None:
    with serve() as server:
        ready(order(work, server.url()))
        yard.let_go()
        later(work.unlink)
        assert run(base) == 0
        assert len(server.requests) == 1
    told = outcome(base)
    assert told["delivered_at"]
    assert told["observations"] >= 2


def test_what_fails_is_tried_again_and_then_given_up(base: Base, work: Path) -> None:
    again = Answer(status=503, headers={"Retry-After": "1"})
    with serve(again) as server:
        made = order(work, server.url())
        made["notify"]["give_up_s"] = 3.0
        ready(made)
        yard.let_go()
        work.unlink()
        assert run(base) == 0
        tried = len(server.requests)
    told = outcome(base)
    assert told["dead"]
    assert told["attempts"] == tried
    assert told["error"] == "HTTP 503"


def test_what_is_not_answered_in_time_is_tried_again(
    base: Base, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hangs(*_: object) -> dict[str, Any]:
        raise TimeoutError

    monkeypatch.setattr("watcher.onhost.post.send", hangs)
    made = order(work, "http://127.0.0.1:1/")
    made["notify"]["give_up_s"] = 0.0
    ready(made)
    yard.let_go()
    work.unlink()
    assert run(base) == 0
    assert outcome(base)["error"] == "no answer within 6 s"


def test_in_contact_it_waits_for_the_laptop_but_not_for_ever(
    base: Base, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detached, "_LEAST_GRACE_S", 0.0)
    with serve() as server:
        ready(order(work, server.url(), every_s=0.5))
        work.unlink()
        assert run(base) == 0
        assert len(server.requests) == 1
        told = outcome(base)
        assert told["delivered_at"] - told["ended_at"] > 0.9


@pytest.mark.parametrize("content", ["denied", "absent", "held"])
def test_a_deadline_ends_it(content: str, base: Base, work: Path) -> None:
    work.write_text(content)
    ready(order(work, left_s=0.3, start_within_s=10, every_s=0.1))
    assert run(base) == 0
    told = outcome(base)
    assert told["ending"] == ("unseen" if content == "absent" else "expired")
    assert (told["unknown_since"] is None) == (content != "denied")
    twice = told["observations"] > 1
    assert (told["unknown_s"] > 0) == (content == "denied" and twice)


def test_a_judgement_that_is_none_is_unknown(
    base: Base, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tests.watcher.toys.file.judge", lambda *_: {"sight": "gone", "memory": {}}
    )
    ready(order(work, left_s=0.1))
    run(base)
    told = outcome(base)
    assert told["ending"] == "expired"
    assert told["reason"] == ["hung", {"what": f"file {work}"}]


def test_a_release_must_last_for_the_settle_time(
    base: Base, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = [None, "held", None]
    monkeypatch.setattr(
        "tests.watcher.toys.file.read",
        lambda _: {"content": contents.pop(0) if contents else None},
    )
    ready(order(work, settle_s=0.1))
    run(base)
    assert outcome(base)["observations"] >= 4
    assert not contents


def test_the_end_of_a_process_wakes_it_once(base: Base, work: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1) as child:
        made = order(work, every_s=3600, left_s=60)
        made["spec"] |= {"follows": [child.pid, 1]}
        ready(made)

        def end() -> None:
            work.unlink()
            child.communicate(b"\n")

        later(end, (base.folder / "state.json").exists)
        run(base)
    assert outcome(base)["ending"] == "released"


def test_a_part_that_cannot_say_whom_to_follow_is_looked_at_in_rounds(
    base: Base, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> list[list[int]]:
        raise ValueError

    monkeypatch.setattr("tests.watcher.toys.file.follows", fails)
    ready(order(work))
    later(work.unlink)
    run(base)
    assert outcome(base)["ending"] == "released"


def test_without_pidfds_it_looks_in_rounds(
    base: Base, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    ready(order(work))
    later(work.unlink)
    run(base)
    assert outcome(base)["ending"] == "released"


def test_whom_it_follows_no_more_is_let_go(base: Base, work: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1) as child:
        made = order(work)
        made["spec"] |= {"follows": [child.pid, 1]}
        ready(made)
        watcher = detached.Watcher(str(base.folder), -1)
        assert watcher._read_order()
        watcher._watch()
        assert len(watcher._ends) == 1
        watcher._order["spec"].pop("follows")
        watcher._follow()
        assert watcher._ends == {}
        child.communicate(b"\n")


def test_stopped_by_its_folder_it_removes_everything(base: Base, work: Path) -> None:
    ready(order(work))
    folder = base.folder

    def stop() -> None:
        (folder / "stop").touch()
        folders.wake(str(folder))

    later(stop)
    assert run(base) == 0
    assert not folder.exists()


@pytest.mark.parametrize("ended", [False, True])
def test_a_signal_stops_it(ended: bool, base: Base, work: Path) -> None:
    with serve(Answer(status=503)) as server:
        ready(order(work, server.url()))
        yard.let_go()
        folder = base.folder
        if ended:
            work.unlink()

        def is_at_work() -> bool:
            tried = (base.outcome or {}).get("attempts")
            return bool(tried if ended else (folder / "state.json").exists())

        later(lambda: os.kill(os.getpid(), signal.SIGTERM), is_at_work)
        assert run(base) == 0
        assert folder.exists() == ended
        if ended:
            assert not outcome(base)["delivered_at"]


@pytest.mark.parametrize("left", ["no order", "no folder", "another boot", "damaged"])
def test_without_an_order_of_this_boot_there_is_nothing_to_do(
    left: str, base: Base, work: Path
) -> None:
    ready(order(work))
    path = base.folder / "order.json"
    if left == "another boot":
        made = base.json("order.json") | {"boot_id": "another"}
        folders.write_json(str(base.folder), "order.json", made)
    elif left == "damaged":
        path.write_text("{")
    else:
        path.unlink()
    assert run(base) == 0


def test_a_second_one_leaves(
    base: Base, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detached, "_TAKE_LIMIT_S", 0.05)
    ready(order(work))
    held = folders.hold(str(base.folder), 1.0)
    assert held is not None
    assert folders.pid_of(str(base.folder)) == os.getpid()
    assert run(base) == 0
    os.close(held)
    assert folders.pid_of(str(base.folder)) is None


def test_a_folder_that_takes_no_fifo_is_looked_at_in_rounds(
    base: Base, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "mkfifo", refuse)
    ready(order(work))
    later(work.unlink)
    assert run(base) == 0
    assert outcome(base)["ending"] == "released"


def test_the_program_takes_its_folder_from_the_call(
    base: Base, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready(order(work))
    work.unlink()
    monkeypatch.setattr(sys, "argv", ["koder-monitor", str(base.folder)])
    with pytest.raises(SystemExit) as ended:
        detached.run_program()
    assert ended.value.code == 0
    monkeypatch.setattr(sys, "argv", ["koder-monitor", "/nowhere/at/all"])
    detached.run_program()
    monkeypatch.setattr(sys, "argv", ["koder-monitor", str(work.parent / "work-x/y")])
    (work.parent / "work-x").touch()
    with pytest.raises(NotADirectoryError):
        detached.run_program()


# the yard's own steps, where no watcher lives


def test_a_new_order_keeps_what_the_watcher_knows(base: Base, work: Path) -> None:
    ready(order(work))
    held = folders.hold(str(base.folder), 1.0)
    assert held is not None
    before = base.json("order.json")["number"]
    said = ask("start", owner=OWNER, id=ID, program="", key="", order=order(work))
    assert said == {"alive": True, "outcome": None, "how": "session", "fate": "lives"}
    assert base.json("order.json")["number"] == before
    os.close(held)
    ready(order(work))
    assert base.json("order.json")["number"] != before


def test_a_unit_that_hangs_is_stopped_by_the_system(
    base: Base, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yard, "_STOP_LIMIT_S", 0.1)
    stopped: list[str] = []
    ready(order(work))
    (base.folder / "how").write_text("unit")
    held = folders.hold(str(base.folder), 1.0)
    assert held is not None

    def stop(watch_id: str) -> None:
        stopped.append(watch_id)
        os.close(held)

    monkeypatch.setattr(survival, "stop_unit", stop)
    assert ask("stop", owner=OWNER, ids=[ID]) == {"stopped": [ID]}
    assert stopped == [ID]
    assert ask("stop", owner=OWNER, ids=[ID]) == {"stopped": [ID]}


def test_contact_is_what_an_agent_that_asks_has(base: Base, work: Path) -> None:
    ready(order(work))
    folder = str(base.folder)
    assert folders.in_contact(folder, 60)
    assert not folders.in_contact(folder, -1)
    contact = base.root / OWNER / "contact"
    contact.unlink()
    assert not folders.in_contact(folder, 60)
    ask("contact", owner=OWNER, ids=[])
    assert folders.in_contact(folder, 60)
    yard.let_go()
    assert not folders.in_contact(folder, 60)
    held = os.open(contact, os.O_RDWR)
    assert folders._lock(held, 2)  # somebody looks just now
    ask("contact", owner=OWNER, ids=[])
    os.close(held)
    assert not folders.in_contact(folder, 60)


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "x"
    folders.write(str(path), "one")
    with pytest.raises(TypeError):
        folders.write(str(path), None)  # type: ignore[arg-type]  # to make it fail
    assert path.read_text() == "one"
    assert {one.name for one in tmp_path.iterdir()} == {"home", "x"}
    assert folders.read_json(str(tmp_path), "x") is None
    path.write_text("[]")
    assert folders.read_json(str(tmp_path), "x") is None


def test_the_root_is_below_home_where_nothing_else_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for value in ("", "relative"):
        monkeypatch.setenv("XDG_STATE_HOME", value)
        home = os.environ["HOME"]
        assert folders.root() == f"{home}/.local/state/koder-monitor-detached"


def test_what_does_not_come_alive_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survival, "_ALIVE_LIMIT_S", 0.1)
    assert not survival.comes_alive(str(tmp_path))
    folders.write_json(str(tmp_path), "outcome.json", {"ended_at": time.time()})
    assert survival.comes_alive(str(tmp_path))
