"""Processes and their log, judged together (C3.4): what each of them says decides."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.fakes import START
from watcher.onhost import joint

NOW = {"up_s": 100.0, "at": START.timestamp()}
RAN = {"identity": {"boot_id": "b", "pid": 7, "start_ticks": 1}}
FAILED: dict[str, Any] = {"result": "FAIL", "decided": ["exit_code", {"code": 3}]}
PASSED: dict[str, Any] = {"result": "PASS", "decided": ["exit_code", {"code": 0}]}


class Log:
    """A log that says what a test wants, and keeps what it was told."""

    def __init__(self, sight: str = "held", **more: object) -> None:
        self.seen: dict[str, Any] = {
            "sight": sight,
            "evidence": {"means": "log"},
            "memory": {"offset": 9},
            **more,
        }
        self.now: Mapping[str, float] = {}
        self.memory: Mapping[str, Any] = {}

    def judge(
        self,
        spec: Mapping[str, Any],
        memory: Mapping[str, Any],
        answers: Sequence[Any],
        now: Mapping[str, float],
    ) -> dict[str, Any]:
        self.now, self.memory = now, memory
        return self.seen


def mark(result: str) -> Log:
    return Log("released", result=result, decided=["said", {"text": f"{result}!"}])


class Judge:
    """Judges a process together with a log."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch

    def __call__(
        self,
        sight: str,
        log: Log,
        *,
        memory: Mapping[str, Any] = RAN,
        used: int | None = None,
        spec: Mapping[str, Any] | None = None,
        **more: object,
    ) -> dict[str, Any]:
        self._patch.setattr(joint, "part", lambda name: log)
        seen = {"sight": sight, "evidence": {"means": "/proc"}, "memory": {**RAN}}
        wanted = {"pass": "OK", "fail": None, "stalled_s": 60, **(spec or {})}
        return joint.with_log(
            {**seen, **more},
            used,
            spec={"pid": 7, "log": wanted},
            memory=memory,
            answers=[],
            now=NOW,
        )


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Judge:
    return Judge(monkeypatch)


@pytest.mark.parametrize("sight", ["held", "unknown", "released"])
@pytest.mark.parametrize("result", ["PASS", "FAIL"])
def test_a_marker_decides_whatever_becomes_of_the_process(
    judge: Judge, sight: str, result: str
) -> None:
    more = FAILED if sight == "released" else {}
    seen = judge(sight, mark(result), **more)
    assert seen["sight"] == "released"
    assert seen["result"] == result
    assert seen["decided"] == ["said", {"text": f"{result}!"}]
    assert seen["memory"] == {**RAN, "log": {"offset": 9}}
    assert seen["evidence"] == {"means": "/proc", "log": {"means": "log"}}


def test_without_a_marker_it_has_died_where_one_was_asked_for(judge: Judge) -> None:
    seen = judge("released", Log())
    assert (seen["sight"], seen["result"]) == ("released", "DIED")
    assert "decided" not in seen
    seen = judge("released", Log(), **FAILED)
    assert (seen["result"], seen["decided"]) == ("DIED", FAILED["decided"])
    assert judge("released", Log(), **PASSED)["result"] == "DIED"


@pytest.mark.parametrize("how", [FAILED, PASSED, {}])
def test_else_its_exit_status_says_how_it_ended(
    judge: Judge, how: dict[str, Any]
) -> None:
    seen = judge("released", Log(), spec={"pass": None, "fail": "BAD"}, **how)
    assert seen.get("result") == how.get("result")
    assert seen.get("decided") == how.get("decided")


def test_nothing_is_claimed_of_a_log_that_was_not_read_while_it_ran(
    judge: Judge,
) -> None:
    assert "result" not in judge("released", Log(), memory={})
    seen = judge("released", Log(), memory={}, spec={"from_start": True})
    assert seen["result"] == "DIED"
    seen = judge("released", Log(), memory={"seen": [{"pid": 7}]})
    assert seen["result"] == "DIED"


@pytest.mark.parametrize(("how", "result"), [(PASSED, None), (FAILED, "FAIL")])
def test_in_a_log_that_cannot_be_read_there_may_be_a_marker(
    judge: Judge, how: dict[str, Any], result: str | None
) -> None:
    reason = ["denied", {"path": "/x"}]
    seen = judge("released", Log("unknown", reason=reason), **how)
    assert seen["sight"] == "released"
    assert seen.get("result") == result
    assert reason in seen["remarks"]


def test_the_whole_log_is_read_first(judge: Judge) -> None:
    seen = judge("released", Log(again_in_s=0), **FAILED)
    assert seen["sight"] == "held"
    assert seen["again_in_s"] == 0
    assert "result" not in seen


def test_a_log_that_nobody_can_read_ends_no_process(judge: Judge) -> None:
    reason = ["denied", {"path": "/x"}]
    seen = judge("held", Log("unknown", reason=reason))
    assert seen["sight"] == "held"
    assert seen["notes"] == [reason]


def test_silence_is_stalled_while_the_process_runs(judge: Judge) -> None:
    seen = judge("held", mark("STALLED"), used=5, memory={**RAN, "cpu": 5})
    assert (seen["sight"], seen["result"]) == ("released", "STALLED")
    seen = judge("released", mark("STALLED"))
    assert seen["result"] == "DIED", "it is over, not silent"


@pytest.mark.parametrize(
    ("sight", "used", "before", "busy"),
    [
        pytest.param("held", 5, 5, 0, id="no progress"),
        pytest.param("held", 6, 5, 1, id="progress"),
        pytest.param("held", 4, 5, 1, id="a child less"),
        pytest.param("held", 5, None, 1, id="the first look"),
        pytest.param("held", None, 5, 1, id="not to be seen"),
        pytest.param("unknown", None, 5, 1, id="the process is not to be seen"),
        pytest.param("released", None, 5, 0, id="it is over"),
    ],
)
def test_the_log_is_told_whether_work_goes_on(
    judge: Judge, sight: str, used: int | None, before: int | None, busy: int
) -> None:
    log = Log()
    memory = {**RAN, "log": {"offset": 3}, **({"cpu": before} if before else {})}
    seen = judge(sight, log, used=used, memory=memory)
    assert log.now == {
        **NOW,
        "busy": busy,
        **({"final": 1} if busy == 0 and used is None else {}),
    }
    assert log.memory == {"offset": 3}
    assert seen["memory"].get("cpu") == used


def test_what_was_never_seen_stays_so_whatever_an_old_log_says(judge: Judge) -> None:
    memory = {"awaits_start": True, "log": {"offset": 3}}
    for log, kept in ((mark("PASS"), {"offset": 3}), (Log(), {"offset": 9})):
        seen = judge("absent", log, memory=memory, reason=["nothing_matches", {}])
        assert seen["sight"] == "absent"
        assert "result" not in seen
        assert seen["memory"]["log"] == kept


def test_what_both_have_to_say_is_said(judge: Judge) -> None:
    log = Log(notes=[["b", {}]], remarks=[["d", {}]], again_in_s=7.0)
    seen = judge("held", log, notes=[["a", {}]], remarks=[["c", {}]])
    assert seen["notes"] == [["a", {}], ["b", {}]]
    assert seen["remarks"] == [["c", {}], ["d", {}]]
    assert seen["again_in_s"] == 7.0
