"""Conditions made of a part: the same looks here and on a host (C3.1, C4.4)."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest

from policies.model import Json, Memory, Result, Sight, Target
from policies.wording import Phrase, phrase
from tests.fakes import START, FakeClock, FakeHost, FakeHosts
from watcher.conditions import CallHint, DirectoryHint, Look, Place
from watcher.config import Config
from watcher.looked import AskHost, Here, Looked, There, looked_at, observation_of
from watcher.transport import Answer, Reply, Request

ABOUT = {"means": "agent", "boot_id": "boot-of-box"}


class Numbers:
    """A part that asks for numbers and sees what the answers sum up to."""

    @staticmethod
    def ask(spec: Mapping[str, Json], memory: Memory) -> list[Request]:
        numbers = spec["numbers"]
        assert isinstance(numbers, list)
        return [{"op": "number", "number": number} for number in numbers]

    @staticmethod
    def read(request: Request) -> Answer:
        if request["number"] == 13:
            raise PermissionError(13, "unlucky")
        return {"number": request["number"]}

    @staticmethod
    def judge(
        spec: Mapping[str, Json],
        memory: Memory,
        answers: Sequence[Answer],
        now: Mapping[str, float],
    ) -> Mapping[str, Json]:
        if any("error" in answer for answer in answers):
            return {"sight": "unknown", "evidence": {"means": "x"}, "memory": memory}
        total = sum(int(str(answer["number"])) for answer in answers)
        return {
            "sight": "held" if total else "released",
            "evidence": {"means": "sum", "total": total, "up_s": now["up_s"]},
            "memory": {"total": total, "pid": spec["numbers"]},
        }

    @staticmethod
    def follows(spec: Mapping[str, Json], memory: Memory) -> list[list[int]]:
        return [[int(str(memory["total"])), 5]] if memory else []


@pytest.fixture(autouse=True)
def _numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("watcher.onhost.part", lambda _: Numbers)


def looked(*numbers: int, host: str | None = "box", settle: bool = False) -> Looked:
    text = f"process {numbers}"
    return Looked(
        target=Target(kind="process", text=text, label="x", host=host),
        part=Numbers,
        spec={"numbers": list(numbers)},
        settle=settle,
        hints=[DirectoryHint("/l", "x")],
        refuse=lambda: phrase("someone") if not numbers else None,
    )


def there(host: FakeHost, *numbers: int) -> There:
    return There(looked(*numbers), FakeClock(), host)


def look(condition: There | Here, memory: Memory | None = None) -> Look:
    return Look(condition, memory or {})


def place(hosts: FakeHosts | None) -> Place:
    return Place(config=Config(), cwd="/", launcher=0, clock=FakeClock(), hosts=hosts)


def test_where_a_condition_is_looked_at_follows_from_its_target() -> None:
    host = FakeHost()
    assert isinstance(looked_at(looked(1, host=None), place(None)), Here)
    assert isinstance(looked_at(looked(1), place(FakeHosts(host))), There)
    with pytest.raises(ValueError, match="without hosts"):
        looked_at(looked(1), place(None))


def test_here_a_part_reads_and_judges_by_itself() -> None:
    here = Here(looked(1, 2, host=None, settle=True), FakeClock())
    seen = here.look({}, START)
    assert (seen.sight, seen.at) == (Sight.HELD, START)
    assert seen.evidence == {"means": "sum", "total": 3, "up_s": 1000.0}
    assert here.settle
    assert here.group == "process (1, 2)"
    assert here.refusal() is None
    assert here.hints() == [DirectoryHint("/l", "x")]
    assert not here.unchanged(seen.memory)
    here.joined(1)
    here.close()


def test_here_what_hangs_or_fails_is_unknown_and_forgets_nothing() -> None:
    here = Here(looked(13, host=None), FakeClock())
    assert here.look({"a": 1}, START).sight is Sight.UNKNOWN
    hung = here.hung({"a": 1}, START)
    assert (hung.sight, hung.memory) == (Sight.UNKNOWN, {"a": 1})
    assert not hung.out_of_reach
    refused = Here(looked(host=None), FakeClock()).refusal()
    assert refused == phrase("someone")


async def test_c4_4_a_host_is_asked_once_for_all_and_the_same_thing_once() -> None:
    host = FakeHost()
    conditions = [there(host, 1, 2), there(host, 2, 3), there(host), there(host, 0)]
    looker = AskHost(host)
    seen = await looker.take([look(one) for one in conditions], START)
    assert len(host.asked) == 1
    assert [request["number"] for request in host.asked[0]] == [1, 2, 3, 0]
    assert [one.evidence["total"] for one in seen if one] == [3, 5, 0, 0]
    assert [one.sight for one in seen if one] == [
        *(Sight.HELD, Sight.HELD, Sight.RELEASED, Sight.RELEASED)
    ]
    assert all(one.evidence["host"] == "box" for one in seen if one)
    assert all(one.evidence["boot_id"] == "boot-of-box" for one in seen if one)
    looker.close()


async def test_c3_1_a_silent_host_makes_all_of_it_unknown_and_out_of_reach() -> None:
    host = FakeHost()
    host.silent = phrase("host_lost", host="box")
    conditions = [there(host, 1), there(host, 0)]
    seen = await AskHost(host).take([look(one, {"a": 1}) for one in conditions], START)
    for one in seen:
        assert one is not None
        assert (one.sight, one.out_of_reach) == (Sight.UNKNOWN, True)
        assert one.reason == host.silent
        assert one.memory == {"a": 1}
        assert one.evidence == {"means": "ssh", "host": "box"}


@pytest.mark.parametrize(
    "lie", [{}, {"number": "many"}, {"number": None}, {"number": {}}]
)
async def test_an_answer_that_makes_no_sense_is_unknown_and_spoils_no_other(
    lie: Answer,
) -> None:
    class Liar(FakeHost):
        def _answer(self, request: Request) -> Answer:
            return lie if request["number"] == 7 else super()._answer(request)

    host = Liar()
    conditions = [there(host, 7), there(host, 0)]
    odd, right = await AskHost(host).take([look(one) for one in conditions], START)
    assert odd is not None
    assert right is not None
    assert (odd.sight, odd.out_of_reach) == (Sight.UNKNOWN, False)
    assert right.sight is Sight.RELEASED


async def test_answers_that_are_missing_are_unknown() -> None:
    class Short(FakeHost):
        async def ask(
            self, requests: Sequence[Request], *, last: bool = False
        ) -> Reply:
            reply = await super().ask(requests, last=last)
            return Reply(answers=reply.answers[:1], about={})

    host = Short()
    conditions = [there(host, 0), there(host, 1)]
    first, second = await AskHost(host).take([look(one) for one in conditions], START)
    assert first is not None
    assert second is not None
    assert (first.sight, second.sight) == (Sight.RELEASED, Sight.UNKNOWN)


async def test_a_fault_on_our_side_spoils_no_other_look() -> None:
    host = FakeHost()
    faulty = there(host, 1)
    faulty._what = Looked(target=faulty.target, part=Numbers, spec={})
    odd, right = await AskHost(host).take([look(faulty), look(there(host, 0))], START)
    assert odd is not None
    assert right is not None
    assert (odd.sight, right.sight) == (Sight.UNKNOWN, Sight.RELEASED)


async def test_a_last_look_goes_through_whatever_the_back_off_says() -> None:
    lasts: list[bool] = []

    class Noting(FakeHost):
        async def ask(
            self, requests: Sequence[Request], *, last: bool = False
        ) -> Reply:
            lasts.append(last)
            return await super().ask(requests, last=last)

    host = Noting()
    one, other = there(host, 1), there(host, 2)
    await AskHost(host).take([look(one), look(other)], START)
    await AskHost(host).take([look(one), Look(other, {}, last=True)], START)
    assert lasts == [False, True]


async def test_a_host_that_can_never_be_used_refuses_its_conditions() -> None:
    host = FakeHost()
    condition = there(host, 1)
    assert isinstance(condition.looker(), AskHost)
    assert await AskHost(host).refusal(condition) is None
    host.refused = phrase("host_text", host="box")
    assert await AskHost(host).refusal(condition) == host.refused


def test_conditions_of_one_host_are_one_group_and_hold_nothing() -> None:
    host = FakeHost()
    condition = there(host, 1)
    assert condition.group == there(host, 2).group == "host box"
    assert not condition.settle
    condition.joined(1)
    condition.close()
    done: list[int] = []
    AskHost(host).later(lambda: done.append(1))
    assert done == [1]


def test_a_host_that_does_not_answer_in_time_is_out_of_reach() -> None:
    hung = there(FakeHost(), 1).hung({"a": 1}, START)
    assert (hung.sight, hung.out_of_reach) == (Sight.UNKNOWN, True)
    assert hung.reason == phrase("host_silent", host="box")
    assert hung.memory == {"a": 1}


async def test_the_end_of_a_process_on_the_host_is_a_hint() -> None:
    host = FakeHost()
    condition = there(host, 4)
    assert list(condition.hints()) == []
    await AskHost(host).take([look(condition)], START)
    (hint,) = condition.hints()
    assert isinstance(hint, CallHint)
    assert hint.about == (4, 5)
    woken: list[int] = []
    end = hint.subscribe(lambda: woken.append(1))
    ((pid, start, wake),) = host.followed
    assert (pid, start) == (4, 5)
    wake()
    assert woken == [1]
    end()
    assert host.followed == []


def test_a_judgement_becomes_an_observation() -> None:
    seen = observation_of(
        {
            "sight": "released",
            "evidence": {"means": "log"},
            "memory": {"offset": 3},
            "reason": ["someone", {}],
            "notes": [["host_lost", {"host": "box"}]],
            "remarks": [["someone", {}], None],
            "result": "FAIL",
            "decided": ["probe_failed", {"error": "BAD"}],
            "again_in_s": 3,
        },
        START + timedelta(seconds=1),
        host="box",
        about=ABOUT,
    )
    assert seen.sight is Sight.RELEASED
    assert seen.evidence == {
        "means": "log",
        "by": "agent",
        "host": "box",
        "boot_id": "boot-of-box",
    }
    assert seen.notes == (Phrase("host_lost", {"host": "box"}),)
    assert seen.remarks == (phrase("someone"),)
    assert seen.result is Result.FAIL
    assert seen.decided == phrase("probe_failed", error="BAD")
    assert (seen.reason, seen.again_in_s) == (phrase("someone"), 3.0)


def test_what_was_never_there_is_absent_and_not_released() -> None:
    seen = observation_of({"sight": "absent", "evidence": {}, "memory": {}}, START)
    assert (seen.sight, seen.absent) == (Sight.UNKNOWN, True)


@pytest.mark.parametrize(
    "judgement",
    [
        {},
        {"sight": "gone", "evidence": {}, "memory": {}},
        {"sight": "held", "evidence": {}, "memory": {}, "reason": ["no such", {}]},
        {"sight": "held", "evidence": {}, "memory": {}, "result": "GOOD"},
    ],
)
def test_what_is_no_judgement_is_an_error(judgement: Mapping[str, Json]) -> None:
    with pytest.raises((KeyError, ValueError)):
        observation_of(judgement, START)
