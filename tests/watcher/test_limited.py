"""Work that may hang is done by a child with a limit."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.watcher.detached import wait
from watcher.onhost.limited import HungError, limited

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


def test_what_it_returns_comes_back() -> None:
    big = {"text": "ü" * 300_000}
    assert limited(lambda: big, 20.0, shut=()) == big


def is_running(pid: int) -> bool:
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] != "Z"
    return False


def ends() -> dict[str, Any]:
    os._exit(0)


def dies() -> dict[str, Any]:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def raises() -> dict[str, Any]:
    raise OSError


def is_list() -> Any:  # noqa: ANN401 - what it must not be
    return []


@pytest.mark.parametrize("work", [ends, dies, raises, is_list])
def test_no_answer_is_no_answer(work: Callable[[], dict[str, Any]]) -> None:
    with pytest.raises(HungError):
        limited(work, 20.0, shut=())


def test_what_hangs_is_ended_with_all_that_it_has_started(tmp_path: Path) -> None:
    note = tmp_path / "pid"

    def hangs() -> dict[str, Any]:
        child = os.fork()
        if child:
            note.write_text(str(child))
        time.sleep(600)
        return {}

    with pytest.raises(HungError):
        limited(hangs, 1.0, shut=())
    child = int(note.read_text())
    wait(lambda: not is_running(child))


def test_a_child_keeps_nothing_open_that_is_not_its_own() -> None:
    reading, writing = os.pipe()

    def look() -> dict[str, Any]:
        try:
            os.fstat(writing)
        except OSError:
            return {"open": False}
        return {"open": True}

    assert limited(look, 20.0, shut=(writing,)) == {"open": False}
    assert limited(look, 20.0, shut=()) == {"open": True}
    os.close(reading)
    os.close(writing)


def test_signals_mean_to_a_child_what_they_always_mean() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        found = limited(
            lambda: {"is": signal.getsignal(signal.SIGTERM) is signal.SIG_DFL},
            20.0,
            shut=(),
        )
    finally:
        signal.signal(signal.SIGTERM, before)
    assert found == {"is": True}
