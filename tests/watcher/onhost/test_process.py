"""The part that looks for processes: what answers mean, whoever read them."""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.proctable import UNKNOWN_START, Row, row_of
from tests.fakes import START
from tests.watcher.onhost.others import child_of_another
from tests.watcher.work import working
from watcher.onhost import answer
from watcher.onhost import process as part

NOW = {"up_s": 1.0, "at": START.timestamp()}
BOOT = "boot-of-box"


def row(pid: int, *argv: str, ppid: int = 1, start: int = 1000, **more: Any) -> Row:  # noqa: ANN401 - its fields
    values = {"state": "S", **more}
    return Row(pid=pid, ppid=ppid, start=start, argv=argv, **values)


def one(found: Row | None, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"boot_id": BOOT, "row": found, "own": [99], **more}


def table(*rows: Row, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"boot_id": BOOT, "rows": list(rows), "hidden": False, "own": [], **more}


class Looks:
    """Judges answers, and hands its memory on as a store would."""

    def __init__(self, spec: dict[str, Any], memory: Mapping[str, Any] = {}) -> None:
        self.spec = spec
        self.memory = dict(memory)

    def asked(self) -> list[dict[str, Any]]:
        return part.ask(self.spec, self.memory)

    def see(self, *answers: dict[str, Any]) -> dict[str, Any]:
        given = json.loads(json.dumps(answers))
        seen = part.judge(self.spec, self.memory, given, NOW)
        self.memory = json.loads(json.dumps(seen["memory"]))
        return seen

    def look(self) -> dict[str, Any]:
        """Read here what is asked for, as a host would."""
        return self.see(*(answer(request) for request in self.asked()))


class TestOne:
    def test_it_is_bound_at_first_sight(self) -> None:
        looks = Looks({"pid": 7})
        assert looks.asked() == [{"op": "process", "pid": 7}]
        seen = looks.see(one(row(7, "job", "x")))
        assert seen["sight"] == "held"
        assert seen["notes"] == [["matched", {"pid": 7, "command": "job x"}]]
        who = {"boot_id": BOOT, "pid": 7, "start_ticks": 1000}
        assert looks.memory == {"identity": who}
        assert looks.asked() == [{"op": "process", "pid": 7, "start": 1000}]
        assert part.follows(looks.spec, looks.memory) == [[7, 1000]]

    @pytest.mark.parametrize(
        ("found", "means"),
        [
            pytest.param(one(None), "kill", id="gone"),
            pytest.param(one(row(7, "job", start=2000)), "start ticks", id="reused"),
            pytest.param(one(row(7, "job", state="Z")), "state", id="a zombie"),
            pytest.param(
                {**one(row(7, "job")), "boot_id": "other"}, "boot id", id="a boot"
            ),
            pytest.param({"boot_id": BOOT, "held": False}, "pidfd", id="a descriptor"),
        ],
    )
    def test_its_end_is_told_by_its_means(
        self, found: dict[str, Any], means: str
    ) -> None:
        looks = Looks({"pid": 7})
        looks.see(one(row(7, "job")))
        for _ in range(2):
            seen = looks.see(found)
            assert (seen["sight"], seen["evidence"]["means"]) == ("released", means)
            assert "result" not in seen

    @pytest.mark.parametrize(
        "found",
        [
            pytest.param(one(row(7, "other")), id="another command line"),
            pytest.param(
                one(row(7, start=UNKNOWN_START, state="?")), id="not permitted"
            ),
            pytest.param(one(row(7, "job", state="Z", threads=2)), id="its threads"),
            pytest.param(one(None, held=True), id="a descriptor knows better"),
        ],
    )
    def test_what_is_no_end_is_held(self, found: dict[str, Any]) -> None:
        looks = Looks({"pid": 7})
        looks.see(one(row(7, "job")))
        memory = looks.memory
        assert looks.see(found)["sight"] == "held"
        assert looks.memory == memory

    @pytest.mark.parametrize(
        ("status", "result", "decided"),
        [
            (0, "PASS", ["exit_code", {"code": 0}]),
            (3 << 8, "FAIL", ["exit_code", {"code": 3}]),
            (9, "DIED", ["exit_signal", {"signal": "SIGKILL"}]),
        ],
    )
    def test_its_exit_status_is_told_where_it_is_known(
        self, status: int, result: str, decided: list[Any]
    ) -> None:
        looks = Looks({"pid": 7})
        looks.see(one(row(7, "job")))
        seen = looks.see(one(None, status=status))
        assert (seen["result"], seen["decided"]) == (result, decided)
        assert seen["evidence"]["exit_status"] == status
        again = looks.see({"boot_id": "other", "row": None, "status": status})
        assert "result" not in again, "that was another process"

    def test_one_that_is_gone_was_over(self) -> None:
        seen = Looks({"pid": 7}).see(one(None))
        assert seen["sight"] == "released"
        assert seen["evidence"]["seen"] == "no such process"

    def test_a_kernel_thread_is_said_to_be_one(self) -> None:
        seen = Looks({"pid": 7}).see(one(row(7, "[kworker]", flags=0x00200000)))
        assert seen["notes"][0][0] == "kernel_thread"

    def test_the_reader_itself_is_no_work(self) -> None:
        seen = Looks({"pid": 99}).see(one(row(99, "python3")))
        assert seen["sight"] == "unknown"
        assert seen["reason"] == ["own_pid", {"pid": 99}]

    def test_a_failure_to_look_forgets_nothing(self) -> None:
        looks = Looks({"pid": 7})
        looks.see(one(row(7, "job")))
        memory = looks.memory
        seen = looks.see({"error": {"errno": "EIO", "text": "no"}})
        assert (seen["sight"], seen["memory"]) == ("unknown", memory)
        assert seen["reason"] == ["probe_failed", {"error": "no"}]


class TestWithoutProc:
    """Start times by ps(1), which a set clock may move."""

    def test_the_same_command_line_is_the_same_process(self) -> None:
        looks = Looks({"pid": 7})
        looks.see(one(row(7, "job"), means="ps"))
        assert looks.see(one(row(7, "job", start=1180), means="ps"))["sight"] == "held"
        seen = looks.see(one(row(7, "vi", start=1180), means="ps"))
        assert seen["sight"] == "released"

    def test_an_end_says_that_ps_was_asked(self) -> None:
        seen = Looks({"pid": 7}).see(one(row(7, "job"), means="ps"))
        assert seen["evidence"]["means"] == "ps"


class TestPidfile:
    SPEC = {"pidfile": "/run/p"}  # noqa: RUF012 - a constant

    def found(self, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        return {"pidfile": {"pid": 7, "written_at": 500.0, **more}}

    @pytest.mark.parametrize("problem", ["denied", "no_pid_in"])
    def test_one_that_names_nobody_is_unknown_and_forgets_nothing(
        self, problem: str
    ) -> None:
        looks = Looks(self.SPEC, {"awaits_start": True})
        seen = looks.see({"boot_id": BOOT, "pidfile": {"problem": problem}})
        assert (seen["sight"], seen["reason"][0]) == ("unknown", problem)
        assert looks.memory == {"awaits_start": True}

    def test_one_that_is_missing_was_never_seen(self) -> None:
        missing = {"boot_id": BOOT, "pidfile": {"problem": "pidfile_missing"}}
        for memory in ({}, {"awaits_start": True}):
            looks = Looks(self.SPEC, memory)
            assert looks.see(missing)["sight"] == "absent"
            assert looks.memory == memory

    def test_its_process_is_followed(self) -> None:
        looks = Looks(self.SPEC)
        assert looks.asked() == [{"op": "process", "pidfile": "/run/p"}]
        seen = looks.see(one(row(7, "job"), started_at=400.0, **self.found()))
        assert seen["sight"] == "held"
        assert looks.asked() == [{"op": "process", "pid": 7, "start": 1000}]

    @pytest.mark.parametrize(
        ("more", "key"),
        [
            pytest.param({"started_at": 503.0}, "foreign_pidfile", id="younger"),
            pytest.param({"own": [7]}, "own_pidfile", id="the reader itself"),
            pytest.param(
                {"row": row(7, "[k]", flags=0x00200000)}, "foreign_pidfile", id="kernel"
            ),
        ],
    )
    def test_a_pid_that_its_writer_cannot_have_meant_is_unknown(
        self, more: dict[str, Any], key: str
    ) -> None:
        found = {**one(row(7, "job")), **self.found(), **more}
        seen = Looks(self.SPEC).see(found)
        assert (seen["sight"], seen["reason"][0]) == ("unknown", key)
        seen = Looks(self.SPEC, {"awaits_start": True}).see(found)
        assert seen["sight"] == "absent"

    @pytest.mark.parametrize(
        "more",
        [
            {"started_at": None},
            {"started_at": 501.0},
            {"started_at": 900.0, "pidfile": {"pid": 7, "written_at": None}},
            {"row": row(7, start=UNKNOWN_START), "started_at": 900.0},
        ],
    )
    def test_without_proof_it_is_what_the_writer_meant(
        self, more: dict[str, Any]
    ) -> None:
        found = {**one(row(7, "job")), **self.found(), **more}
        assert Looks(self.SPEC).see(found)["sight"] == "held"

    def test_a_dead_pid_is_over_but_where_a_start_is_awaited(self) -> None:
        found = {**one(None), **self.found()}
        assert Looks(self.SPEC).see(found)["sight"] == "released"
        looks = Looks(self.SPEC, {"awaits_start": True})
        assert looks.see(found)["sight"] == "absent"
        assert looks.memory == {"awaits_start": True}

    def test_it_is_read_where_it_is(self, tmp_path: Path) -> None:
        path = tmp_path / "pid"
        looks = Looks({"pidfile": str(path)})
        assert looks.look()["sight"] == "absent"
        with working() as work:
            path.write_text(f"{work.pid}\n")
            assert looks.look()["sight"] == "held"
            work.end()
            assert looks.look()["sight"] == "released"

    def test_one_older_than_its_process_is_told_so(self, tmp_path: Path) -> None:
        path = tmp_path / "pid"
        with working() as work:
            path.write_text(f"{work.pid}\n")
            os.utime(path, (0, time.time() - 60))
            seen = Looks({"pidfile": str(path)}).look()
            assert seen["reason"][0] == "foreign_pidfile"


class TestPattern:
    SPEC = {"match": "soak"}  # noqa: RUF012 - a constant

    def test_b24_a_pattern_that_matches_nothing_was_never_seen(self) -> None:
        looks = Looks(self.SPEC)
        assert looks.asked() == [{"op": "process", "table": 1}]
        seen = looks.see(
            table(
                row(1, "init", ppid=0),
                row(50, "sshd: ana soak"),
                row(51, "sh", "-c", "soak", ppid=50),
                row(52, "python3", ppid=51),
                row(60, "koder-monitor", "process", "--match", "soak", ppid=61),
                row(61, "bash", "-c", "koder-monitor process --match soak"),
                row(70, "python3", "koder-monitor-detached", "soak"),
                own=[52, 51, 50, 1],
            )
        )
        assert seen["sight"] == "absent"
        assert seen["reason"] == ["nothing_matches", {}]

    def test_what_matches_is_told_and_the_last_one_ends_it(self) -> None:
        looks = Looks(self.SPEC)
        seen = looks.see(table(row(7, "soak a"), row(8, "soak b"), row(9, "other")))
        assert seen["notes"] == [
            ["matched", {"pid": 7, "command": "soak a"}],
            ["matched", {"pid": 8, "command": "soak b"}],
        ]
        assert seen["found"] == [[7, 1000], [8, 1000]]
        assert part.follows(looks.spec, looks.memory) == [[7, 1000], [8, 1000]]
        assert looks.see(table(row(8, "soak b")))["sight"] == "held"
        seen = looks.see(table(row(8, "soak b", state="Z")))
        assert seen["sight"] == "released"
        assert seen["evidence"]["last_seen"][0]["pid"] == 8

    def test_an_expression_is_searched(self) -> None:
        looks = Looks({"regex": r"so+ak\b.*--seed 7"})
        assert looks.see(table(row(7, "soooak", "--seed", "7")))["sight"] == "held"
        assert looks.see(table(row(7, "soakx", "--seed", "7")))["sight"] == "released"

    def test_an_expression_that_takes_too_long_has_seen_nothing(self) -> None:
        def slow(command: str) -> bool:
            raise TimeoutError

        spec = {"regex": "(a+)+$"}
        seen = part.judged(spec, {"seen": []}, [table(row(7, "a"))], NOW, slow)
        assert (seen["sight"], seen["memory"]) == ("unknown", {"seen": []})
        assert seen["reason"] == ["slow_regex", {"regex": "(a+)+$"}]

    @pytest.mark.parametrize(
        ("found", "key"),
        [
            pytest.param(table(hidden=True), "proc_hidden", id="hidden"),
            pytest.param(
                table(row(9, readable=False)), "proc_hidden", id="not permitted"
            ),
            pytest.param(table(stuck=[9]), "pids_stuck", id="stuck"),
            pytest.param(table(row(7, "[python3]")), "pids_stuck", id="in an exec"),
        ],
    )
    def test_an_empty_list_proves_nothing_where_not_all_is_seen(
        self, found: dict[str, Any], key: str
    ) -> None:
        looks = Looks(self.SPEC)
        looks.see(table(row(7, "soak")))
        memory = looks.memory
        seen = looks.see(found, {})
        assert (seen["sight"], seen["reason"][0]) == ("unknown", key)
        assert looks.memory == memory
        assert looks.see(table(), {})["sight"] == "released"

    def test_how_it_ended_is_told_of_one_that_was_alone(self) -> None:
        looks = Looks(self.SPEC)
        looks.see(table(row(7, "soak")))
        one_more = {"op": "process", "pid": 7, "start": 1000}
        assert looks.asked() == [{"op": "process", "table": 1}, one_more]
        seen = looks.see(table(), {"boot_id": BOOT, "row": None, "status": 3 << 8})
        assert seen["result"] == "FAIL"
        assert looks.asked()[1] == one_more
        failed = {"error": {"errno": "EIO", "text": ""}}
        assert "result" not in looks.see(table(), failed)

    def test_of_several_no_single_one_says_how_it_ended(self) -> None:
        looks = Looks(self.SPEC)
        looks.see(table(row(7, "soak")))
        looks.see(table(row(8, "soak")), {})
        assert looks.asked() == [{"op": "process", "table": 1}]
        looks.see(table(row(8, "soak")))
        assert "result" not in looks.see(table())

    def test_who_waits_on_that_very_machine_never_matches(self) -> None:
        rows = [row(10, "bash", "-c", "soak; wait"), row(11, "wait soak", ppid=10)]
        line = [[11, 1000], [10, 1000]]
        here = {"boot_id": BOOT, "pid_namespace": "pid:[1]", "line": line}
        for elsewhere in ({"boot_id": "b"}, {"pid_namespace": "pid:[2]"}):
            looks = Looks({**self.SPEC, "launchers": {**here, **elsewhere}})
            seen = looks.see(table(*rows, pid_namespace="pid:[1]"))
            assert seen["sight"] == "held"
        looks = Looks({**self.SPEC, "launchers": here})
        assert looks.see(table(*rows, pid_namespace="pid:[1]"))["sight"] == "absent"
        looks.spec = self.SPEC
        assert looks.see(table(*rows))["sight"] == "absent", "it is remembered"
        other = row(11, "soak", start=2000)
        assert looks.see(table(other))["sight"] == "held", "another with its number"

    def test_the_part_reads_this_machine(self) -> None:
        with working("soak-of-the-part") as work:
            found = part.read({"op": "process", "table": 1, "cpu": 1})
            assert os.getpid() in found["own"]
            assert row_of(found["rows"][0]).pid
            assert work.pid in {pid for pid, _, _ in found["cpu"]}
            looks = Looks({"match": "soak-of-the-part"})
            assert looks.look()["sight"] == "held"
            work.end_as_zombie()
            assert looks.look()["sight"] == "released"

    @pytest.mark.parametrize("memory", [{"seen": ["x"]}, {"launchers": "x", "seen": 3}])
    def test_an_odd_memory_is_no_reason_to_fail(self, memory: dict[str, Any]) -> None:
        looks = Looks(self.SPEC, memory)
        assert looks.see(table(row(7, "soak")))["sight"] == "held"


class TestExits:
    def test_a_child_of_another_process_tells_how_it_ended(self) -> None:
        with child_of_another() as child:
            looks = Looks({"pid": child.pid})
            assert looks.look()["sight"] == "held"
            child.end("exit 3")
            seen = looks.look()
            while seen["sight"] == "held":
                seen = looks.look()
            assert seen["sight"] == "released"
            assert seen["result"] == "FAIL"
            assert seen["evidence"]["exit_status"] == 3 << 8


class TestLog:
    """The log of a process: spec and memory of its own part, below one key."""

    def spec(self, path: Path, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        log = {"path": str(path), "pass": "^OK", "fail": "^BAD", "stalled_s": None}
        return {"log": {**log, "from_start": False, **more}}

    @pytest.mark.parametrize("name", ["pid", "match"])
    @pytest.mark.parametrize(
        ("written", "result"),
        [("x\nOK 1\nBAD 2\n", "PASS"), ("BAD", "FAIL"), ("x OK\n", "DIED")],
    )
    def test_its_last_words_count(
        self, tmp_path: Path, name: str, written: str, result: str
    ) -> None:
        path = tmp_path / "log"
        path.write_text("OK of yesterday\n")
        with working("soak-with-a-log") as work:
            what = {"pid": work.pid} if name == "pid" else {"match": work.word}
            looks = Looks({**what, **self.spec(path)})
            assert [one["op"] for one in looks.asked()] == ["process", "log"]
            assert looks.look()["sight"] == "held"
            with path.open("a") as log:
                log.write(written)
            work.end()
        for _ in range(2):
            seen = looks.look()
            while seen.get("again_in_s") == 0:
                seen = looks.look()
            assert (seen["sight"], seen.get("result")) == ("released", result)

    def test_cpu_is_asked_for_where_silence_counts(self, tmp_path: Path) -> None:
        with working("soak-with-a-log") as work:
            for what in ({"pid": work.pid}, {"match": work.word}):
                looks = Looks({**what, **self.spec(tmp_path / "log", stalled_s=60)})
                assert looks.asked()[0]["cpu"] == 1
                looks.look()
                assert looks.memory["cpu"] >= 0
                assert looks.asked()[0]["cpu"] == 1

    def test_a_failure_to_look_at_the_process_is_unknown(self, tmp_path: Path) -> None:
        looks = Looks({"pid": 7, **self.spec(tmp_path / "log")})
        log = answer(looks.asked()[1])
        seen = looks.see({"error": {"errno": "EIO", "text": "no"}}, log)
        assert seen["sight"] == "unknown"


ROWS = st.lists(
    st.builds(
        row,
        st.integers(1, 9),
        st.sampled_from(["soak", "other", "[x]", "koder-monitor soak"]),
        ppid=st.integers(0, 9),
        start=st.integers(0, 3),
        state=st.sampled_from("SRZ"),
        readable=st.booleans(),
    ),
    max_size=6,
)


@given(st.lists(st.tuples(ROWS, st.booleans()), max_size=6))
def test_nothing_is_over_that_was_not_seen_and_is_now_seen_to_be_gone(
    history: list[tuple[list[Row], bool]],
) -> None:
    looks, was_held = Looks({"match": "soak"}), False
    for rows, hidden in history:
        seen = looks.see(table(*rows, hidden=hidden), {})
        last = {one.pid: one for one in rows}
        if seen["sight"] == "released":
            assert was_held
            assert not hidden
            assert all(one.readable for one in last.values())
        was_held = was_held or seen["sight"] == "held"
