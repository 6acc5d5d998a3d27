import json
import os
import select
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.fakes import until
from tests.watcher.onhost.others import child_of_another, start_of
from tests.watcher.onhost.toy import Toy, look, toy
from tests.watcher.rights import open_files
from watcher.onhost import agent, frames, rounds

__all__ = ["toy"]

NONCE = "ab" * 16
LATE = "ETIMEDOUT"


class Near:
    """The near side of an agent that runs on a thread of this process."""

    def __init__(self) -> None:
        source, self._to = os.pipe()
        self._from, sink = os.pipe()
        self._theirs = (source, sink)
        self._frames = frames.Frames(frames.telling(NONCE))
        self._heard: list[dict[str, Any]] = []
        self._open = {self._to, self._from}
        self.agent = agent.Agent(NONCE, source, sink)
        self.thread = threading.Thread(target=self.agent.serve)
        self.thread.start()
        self.about = self.hear()["about"]

    def say(self, message: object) -> None:
        os.write(self._to, frames.frame(frames.asking(NONCE), json.dumps(message)))

    def say_bytes(self, data: bytes) -> None:
        os.write(self._to, data)

    def hear(self) -> dict[str, Any]:
        end_s = time.monotonic() + 20
        while not self._heard:
            poll = select.poll()
            poll.register(self._from, select.POLLIN)
            assert time.monotonic() < end_s, "the agent says nothing"
            if poll.poll(1000):
                self._heard += self._frames.feed(os.read(self._from, 65536))
        return self._heard.pop(0)

    def quiet(self) -> bool:
        poll = select.poll()
        poll.register(self._from, select.POLLIN)
        return not self._heard and not poll.poll(0)

    def ask(self, number: int, *requests: object) -> list[dict[str, Any]]:
        self.say({"number": number, "requests": requests})
        told = self.hear()
        assert told["number"] == number
        assert told["about"] == self.about
        assert len(told["answers"]) == len(requests)
        answers: list[dict[str, Any]] = told["answers"]
        return answers

    def close(self, fd: int) -> None:
        if fd in self._open:
            self._open.discard(fd)
            os.close(fd)

    def hang_up(self) -> None:
        self.close(self._to)

    def turn_away(self) -> None:
        self.close(self._from)

    def end(self) -> None:
        self.hang_up()
        self.thread.join(20)
        assert not self.thread.is_alive()
        self.turn_away()
        for fd in self._theirs:
            os.close(fd)


@pytest.fixture
def near(toy: Toy) -> Iterator[Near]:
    files = open_files()
    near = Near()
    yield near
    near.end()
    assert open_files() <= files


def errors(answers: Sequence[dict[str, Any]]) -> list[str]:
    return [one.get("error", {}).get("errno", "") for one in answers]


def test_it_says_first_where_it_is(near: Near) -> None:
    assert near.about["means"] == "agent"
    assert near.about["system"] == os.uname().sysname
    assert near.about["hostname"] == os.uname().nodename
    with open("/proc/sys/kernel/random/boot_id") as file:
        assert near.about["boot_id"] == file.read().strip()
    assert near.about["pid_namespace"] == os.readlink("/proc/self/ns/pid")


def test_where_there_is_no_proc_it_knows_less(monkeypatch: pytest.MonkeyPatch) -> None:
    assert agent._read_text("/nowhere/boot_id") == ""
    assert agent._link("/nowhere/pid") == ""


def test_answers_come_in_the_order_of_the_requests(near: Near) -> None:
    names = [f"look {number}" for number in range(40)]
    answers = near.ask(1, *[look(name) for name in names])
    assert answers == [{"said": name} for name in names]


def test_a_round_of_nothing_has_no_answers(near: Near) -> None:
    assert near.ask(1) == []


def test_one_that_fails_costs_the_others_nothing(near: Near) -> None:
    requests = [look(do="deny"), {"op": "nothing"}, look(do="odd"), look("well")]
    answers = near.ask(1, *requests)
    assert errors(answers) == ["EACCES", "", "", ""]
    assert all("error" in one for one in answers[:3])
    assert answers[3] == {"said": "well"}


def test_rounds_that_are_asked_together_are_answered_one_by_one(near: Near) -> None:
    for number in (1, 2, 3):
        near.say({"number": number, "requests": [look(str(number))]})
    for number in (1, 2, 3):
        told = near.hear()
        assert told["number"] == number
        assert told["answers"] == [{"said": str(number)}]


def test_a_look_that_hangs_holds_up_no_other_and_is_not_taken_again(
    near: Near, toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "LIMIT_S", 0.5)
    hanging = [look(f"stuck {number}", "hang") for number in range(20)]
    number = 0
    answered = False
    while number < 2 or not answered:  # a busy machine may be late for the others, too
        number += 1
        *late, quick = near.ask(number, *hanging, look(f"quick {number}"))
        assert errors(late) == [LATE] * 20
        answered = quick == {"said": f"quick {number}"}
        assert number < 40
    taken = [name for name in toy.looks if name.startswith("stuck")]
    assert len(taken) == len(set(taken))


def test_a_look_that_came_back_after_all_is_taken_again(
    near: Near, toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "LIMIT_S", 0.3)
    assert errors(near.ask(1, look("stuck", "hang"))) == [LATE]
    monkeypatch.setattr(rounds, "LIMIT_S", 20)
    toy.gate.set()
    answers: list[dict[str, Any]] = []
    number = 1
    end_s = time.monotonic() + 20
    while answers != [{"said": "stuck"}]:
        number += 1
        answers = near.ask(number, look("stuck", "hang"))
        assert time.monotonic() < end_s


def test_threads_do_not_pile_up(
    near: Near, toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "LIMIT_S", 0.3)
    monkeypatch.setattr(rounds, "_MOST_THREADS", 3)
    before = threading.active_count()
    for number in range(3):
        hanging = [look(f"{number} {one}", "hang") for one in range(5)]
        assert errors(near.ask(number, *hanging)) == [LATE] * 5
        assert threading.active_count() <= before + 3
    assert 0 < len(toy.looks) <= 3


def test_where_no_thread_can_be_had_the_looks_are_late(
    near: Near, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(rounds, "LIMIT_S", 0.2)
        patched.setattr(threading.Thread, "start", refused)
        assert errors(near.ask(1, look("a"), look("b"))) == [LATE, LATE]
    assert near.ask(2, look("c")) == [{"said": "c"}]


def test_answers_that_are_too_long_are_errors_and_the_others_stay(
    near: Near, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "MOST", 20_000)
    long = look(do="long", size=30_000)
    fits = look(do="long", size=9_000)
    answers = near.ask(1, look("a"), long, fits, {**fits, "name": "b"}, look("c"))
    assert errors(answers) == ["", "EFBIG", "", "EFBIG", ""]
    assert answers[0] == {"said": "a"}
    assert answers[4] == {"said": "c"}


def test_the_end_of_a_followed_process_is_told_at_once_and_once(near: Near) -> None:
    with child_of_another() as child, child_of_another() as other:
        end = [child.pid, child.start]
        near.say({"follow": [end, [other.pid, other.start]]})
        assert near.ask(1) == []
        child.end("exit 7")
        assert near.hear() == {"exit": [*end, 7 << 8]}
        near.say({"follow": [end]})
        assert near.ask(2) == []
        child.reap()
        other.end("exit 0")
        other.reap()
        assert near.ask(3) == []
        assert near.quiet()


def test_ends_are_told_while_a_round_is_on(near: Near, toy: Toy) -> None:
    with child_of_another() as child:
        end = [child.pid, child.start]
        near.say({"number": 1, "requests": [look("a", "hang")], "follow": [end]})
        child.end("exit 1")
        assert near.hear() == {"exit": [*end, 1 << 8]}
        toy.gate.set()
        assert near.hear()["answers"] == [{"said": "a"}]


def test_a_process_that_is_gone_before_it_is_followed_is_told_once(near: Near) -> None:
    gone = [os.getpid(), start_of(os.getpid()) + 1]
    near.say({"follow": [gone]})
    assert near.hear() == {"exit": [*gone, None]}
    near.say({"follow": [gone]})
    assert near.ask(1) == []
    assert near.quiet()


def test_it_ends_in_the_middle_of_a_round_when_its_channel_does(near: Near) -> None:
    near.say({"number": 1, "requests": [look("a", "hang")]})
    near.hang_up()
    near.thread.join(20)
    assert not near.thread.is_alive()


def test_it_ends_when_nobody_reads_any_more(near: Near) -> None:
    near.turn_away()
    near.thread.join(20)
    assert not near.thread.is_alive()


def test_it_ends_when_its_reader_goes_while_it_writes(near: Near) -> None:
    near.say({"number": 1, "requests": [look(do="long", size=4_000_000)]})
    poll = select.poll()
    poll.register(near._from, select.POLLIN)
    assert poll.poll(20_000)
    near.turn_away()
    near.thread.join(20)
    assert not near.thread.is_alive()


def test_garbage_between_what_it_is_asked_is_skipped(near: Near) -> None:
    near.say_bytes(b"\n<" * 5000)
    assert near.ask(1, look("a")) == [{"said": "a"}]


def test_more_answers_than_anybody_heard_of_do_not_block_the_looks(
    toy: Toy,
) -> None:
    looks = rounds.Looks()
    os.set_blocking(looks.fd, True)
    for _ in range(70_000):
        looks._wake()
    looks.heard()
    looks.close()
    looks._wake()


async def test_a_look_that_ends_after_the_agent_troubles_nobody(toy: Toy) -> None:
    near = Near()
    near.say({"number": 1, "requests": [look("a", "hang")]})
    await until(lambda: toy.looks)
    threads = threading.active_count()
    near.end()
    toy.gate.set()
    await until(lambda: threading.active_count() < threads - 1)
