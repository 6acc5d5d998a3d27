"""Bodies, lengths and single looks: what is refused before anything is done."""

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime

import httpx
import pytest
from starlette.types import Message

from policies.model import Json, Memory, Observation, Sight, Target
from policies.sight import unknown
from policies.wording import phrase
from tests.fakes import FakeHost, FakeHosts, until
from tests.watcher.house import House
from tests.watcher.serve.rig import problem
from watcher.conditions import Condition, Place
from watcher.conditions.lock import LockCondition
from watcher.errors import UsageError
from watcher.looked import Looked, Spec, looked_at
from watcher.serve import checking
from watcher.serve.api import build_api
from watcher.serve.asking import BODY_LIMIT
from watcher.serve.checking import Checking
from watcher.transport import Answer, Request

JSON = {"Content-Type": "application/json"}


async def chunks(size: int, read: list[int]) -> AsyncIterator[bytes]:
    """Give a body without end in pieces, and note how much of it was taken."""
    while True:
        read.append(size)
        yield b" " * size


async def test_a_body_without_end_is_read_no_further_than_the_limit(
    house: House, api: httpx.AsyncClient
) -> None:
    read: list[int] = []
    async with asyncio.timeout(20):
        answer = await api.post("/v1/watches", content=chunks(1024, read), headers=JSON)
    problem(answer, 413, "too-large")
    assert sum(read) <= BODY_LIMIT + 2048
    assert house.service.armed_count == 0


async def test_a_body_that_says_it_is_too_long_is_not_read(
    api: httpx.AsyncClient,
) -> None:
    read: list[int] = []
    for length in (str(BODY_LIMIT + 1), "9" * 40):
        answer = await api.post(
            "/v1/watches",
            content=chunks(1, read),
            headers={**JSON, "Content-Length": length},
        )
        problem(answer, 413, "too-large")
    assert read == []


async def test_the_longest_body_is_taken(api: httpx.AsyncClient) -> None:
    body = b'{"target": "lock a"}'.ljust(BODY_LIMIT)
    answer = await api.post("/v1/watches", content=body, headers=JSON)
    assert answer.status_code == 201


@pytest.mark.parametrize("path", ["/v1/watches", "/v1/check", "/v1/outbox/flush"])
async def test_a_write_that_needs_a_body_says_so(
    path: str, api: httpx.AsyncClient
) -> None:
    request = api.build_request("POST", path, headers=JSON)
    del request.headers["content-length"]
    problem(await api.send(request), 411, "no-length")


@pytest.mark.parametrize("body", [b"", b"{}", b" { } "])
async def test_a_write_that_has_nothing_to_say_may_say_nothing(
    body: bytes, house: House, api: httpx.AsyncClient
) -> None:
    watch_id, _ = await house.arm()
    path = f"/v1/watches/{watch_id}/ack"
    answer = await api.post(path, content=body, headers=JSON)
    assert answer.status_code == 200


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"x": 1}', b"\xff", b"[" * 5000])
async def test_nor_may_it_say_anything_else(
    body: bytes, house: House, api: httpx.AsyncClient
) -> None:
    watch_id, _ = await house.arm()
    path = f"/v1/watches/{watch_id}/ack"
    problem(await api.post(path, content=body, headers=JSON), 400, "malformed")


async def test_two_content_types_are_none(api: httpx.AsyncClient) -> None:
    headers = [("Content-Type", "application/json"), ("Content-Type", "text/plain")]
    answer = await api.post("/v1/watches", content=b"{}", headers=headers)
    problem(answer, 415, "no-json")


@pytest.mark.parametrize(
    ("query", "count"),
    [("", 0), ("?all=", 0), ("?all=0", 0), ("?all=false", 0), ("?all=1", 1)],
)
async def test_all_is_yes_or_no(
    query: str, count: int, house: House, api: httpx.AsyncClient
) -> None:
    watch_id, _ = await house.arm()
    await house.service.life.leave(watch_id, 1)
    assert len((await api.get(f"/v1/watches{query}")).json()) == count
    problem(await api.get("/v1/watches?all=yes"), 400, "malformed")


async def test_who_hangs_up_in_the_middle_of_a_body_has_said_nothing(
    house: House,
) -> None:
    said: list[object] = []
    messages: list[Message] = [
        {"type": "http.request", "body": b'{"target": "lock', "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        return messages.pop(0)

    async def send(message: Message) -> None:
        said.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/watches",
        "query_string": b"",
        "headers": [
            (b"content-type", b"application/json"),
            (b"transfer-encoding", b"chunked"),
        ],
        "server": ("s", None),
    }
    await build_api(house.hosting)(scope, receive, send)
    assert house.service.armed_count == 0


# problems


async def test_what_is_wrong_is_said_in_the_language_of_the_service(
    house: House, api: httpx.AsyncClient
) -> None:
    document = problem(await api.get("/v1/watches/ffff"), 404, "not-found")
    assert "no watch with the id ffff" in str(document["detail"])
    document = problem(await api.put("/v1/watches", json={}), 405, "no-such-method")
    assert "GET" in str(document["detail"])
    assert "POST" in str(document["detail"])


async def test_a_method_that_will_not_do_names_all_that_will(
    api: httpx.AsyncClient,
) -> None:
    answer = await api.put("/v1/watches", json={})
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}


async def test_many_watches_that_an_id_may_mean_are_not_all_named(
    house: House, api: httpx.AsyncClient
) -> None:
    for number in range(30):
        house.hold(f"s{number}")
        await house.arm(f"lock s{number}")
    prefixes = {str(row[0])[:1] for row in house.rows("SELECT id FROM watches")}
    for prefix in prefixes:
        answer = await api.get(f"/v1/watches/{prefix}")
        if answer.status_code == 409:
            document = problem(answer, 409, "ambiguous")
            assert str(document["detail"]).count(", ") < 10
            break
    else:
        pytest.fail("thirty ids begin with sixteen letters")


# one look


async def test_a_look_sees_what_is_held_and_what_is_free(
    house: House, api: httpx.AsyncClient
) -> None:
    answer = await api.post("/v1/check", json={"target": "lock a"})
    assert answer.status_code == 200
    shape = answer.json()
    assert (shape["target"], shape["observation"]) == ("lock a", "held")
    assert shape["evidence"]
    asking = asyncio.create_task(api.post("/v1/check", json={"target": "lock b"}))
    await until(lambda: house.clock._sleepers)
    assert not asking.done()  # a release must last for the settle time
    await house.clock.advance(1)
    async with asyncio.timeout(20):
        assert (await asking).json()["observation"] == "released"
    assert house.service.armed_count == 0


@pytest.mark.parametrize("target", ["", "lock ..", "teleport x", "lock 'a"])
async def test_what_cannot_be_watched_cannot_be_looked_at(
    target: str, api: httpx.AsyncClient
) -> None:
    problem(await api.post("/v1/check", json={"target": target}), 400, "refused")


async def test_looks_that_hang_are_unknown_and_only_so_many_may(
    house: House, api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = threading.Event()
    looking: list[int] = []

    def hang(self: LockCondition, memory: Memory, at: datetime) -> Observation:
        looking.append(1)
        back.wait(60)
        return unknown(memory, at, phrase("store_slow"), {})

    with monkeypatch.context() as patch:
        patch.setattr(LockCondition, "look", hang)
        patch.setattr(checking, "NEAR_LIMIT_S", 0.05)
        try:
            for _ in range(checking._MOST):
                answer = await api.post("/v1/check", json={"target": "lock a"})
                assert answer.json()["observation"] == "unknown"
            answer = await api.post("/v1/check", json={"target": "lock a"})
            problem(answer, 503, "busy")
            assert answer.headers["retry-after"]
        finally:
            back.set()
    await until(lambda: not any(w.worker.busy for w in house.hosting.checking._lookers))
    answer = await api.post("/v1/check", json={"target": "lock a"})
    assert answer.json()["observation"] == "held"


class Far:
    """A part that sees what its target's text says."""

    @staticmethod
    def ask(spec: Spec, memory: Memory) -> list[Request]:
        return []

    @staticmethod
    def judge(
        spec: Spec,
        memory: Memory,
        answers: Sequence[Answer],
        now: Mapping[str, float],
    ) -> Mapping[str, Json]:
        return {"sight": spec["sight"], "evidence": {}, "memory": {}}

    @staticmethod
    def follows(spec: Spec, memory: Memory) -> list[list[int]]:
        return []


@pytest.fixture
def host(house: House, monkeypatch: pytest.MonkeyPatch) -> FakeHost:
    """Give a host, on which every target is looked at."""
    target = Target(kind="test", text="test --host box", label="test", host="box")
    host = FakeHost("box")

    def build(text: str, place: Place) -> Condition:
        what = Looked(target=target, part=Far, spec={"sight": text}, settle=True)
        return looked_at(what, place)

    monkeypatch.setattr(checking, "condition_of", build)
    return host


def far(house: House, host: FakeHost) -> Checking:
    return Checking(house.config, house.clock, FakeHosts(host))


async def test_a_look_at_a_host_is_taken_on_the_loop(
    house: House, host: FakeHost
) -> None:
    target, seen = await far(house, host).check("held")
    assert (target.host, seen.sight) == ("box", Sight.HELD)
    assert seen.evidence["host"] == "box"
    assert len(host.asked) == 1


async def test_a_release_on_a_host_is_looked_at_twice(
    house: House, host: FakeHost
) -> None:
    asking = asyncio.create_task(far(house, host).check("released"))
    await until(lambda: house.clock._sleepers)
    await house.clock.advance(1)
    async with asyncio.timeout(20):
        _, seen = await asking
    assert seen.sight is Sight.RELEASED
    assert len(host.asked) == 2


async def test_a_host_that_refuses_us_cannot_be_looked_at(
    house: House, host: FakeHost
) -> None:
    host.refused = phrase("host_silent", host="box")
    with pytest.raises(UsageError):
        await far(house, host).check("held")


async def test_a_host_that_says_nothing_is_unknown(
    house: House, host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.silent = phrase("host_silent", host="box")
    _, seen = await far(house, host).check("held")
    assert (seen.sight, seen.out_of_reach) == (Sight.UNKNOWN, True)

    async def hang(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(checking, "FAR_LIMIT_S", 0.05)
    monkeypatch.setattr(host, "ask", hang)
    _, seen = await far(house, host).check("held")
    assert (seen.sight, seen.out_of_reach) == (Sight.UNKNOWN, True)


@pytest.mark.parametrize("number", [10**12, 2**63, 10**40])
async def test_a_number_that_no_store_can_hold_is_nobody_s(
    number: int, house: House, api: httpx.AsyncClient
) -> None:
    watch_id, _ = await house.arm()
    path = f"/v1/watches/{watch_id}/waiters/{number}"
    problem(await api.get(path), 404, "not-found")
    problem(await api.request("DELETE", path, json={}), 404, "not-found")
