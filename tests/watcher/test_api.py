"""What the socket says: every route's good and bad answers (appendix, API)."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

import httpx
import pytest

from policies.codec import outcome_of, phrase_of
from policies.wording import Lang
from tests.fakes import settle, until
from tests.rows import add_ping, add_watch
from tests.watcher.house import House
from watcher import __version__
from watcher.config import settings_of
from watcher.database import open_database
from watcher.ownership import LocalOwnership
from watcher.serve.api import build_api
from watcher.views import rfc3339
from watcher.writer import Writer

JSON = {"Content-Type": "application/json"}


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("watcher.keeping.PATIENCE_S", 0.15)
    monkeypatch.setattr("watcher.writer._RETRY_S", 0.02)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with House(tmp_path) as house:
        house.hold("a")
        yield house


@asynccontextmanager
async def client_of(house: House) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(
        build_api(house.hosting), raise_app_exceptions=False
    )
    async with httpx.AsyncClient(transport=transport, base_url="http://l") as client:
        yield client


@pytest.fixture
async def api(house: House) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(house) as client:
        yield client


async def arm(
    api: httpx.AsyncClient, target: str = "lock a", **more: object
) -> httpx.Response:
    return await api.post("/v1/watches", json={"target": target, **more})


async def armed(api: httpx.AsyncClient, **more: object) -> str:
    answer = await arm(api, **more)  # type: ignore[arg-type]  # a test's own
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def problem(answer: httpx.Response, status: int) -> Mapping[str, object]:
    """Check that an answer is a problem document (RFC 9457), and return it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document = answer.json()
    assert str(document["type"]).startswith("urn:koder-monitor:problem:")
    assert document["title"] == HTTPStatus(status).phrase
    assert document["status"] == status
    assert document["detail"]
    assert isinstance(document, dict)
    return document


# arming


async def test_a_watch_is_armed_and_then_joined(
    house: House, api: httpx.AsyncClient
) -> None:
    first = await arm(api, ttl_s=60, label="l", resume="r", session="s1")
    assert first.status_code == 201
    shape = first.json()
    assert (shape["target"], shape["state"], shape["observation"]) == (
        "lock a",
        "armed",
        "held",
    )
    assert (shape["waiter"], shape["differs"], shape["every_s"]) == (1, [], 30)
    second = await arm(api)
    assert second.status_code == 200
    assert (second.json()["id"], second.json()["waiter"]) == (shape["id"], 2)
    assert house.service.armed_count == 1


async def test_asking_again_with_the_same_nonce_is_the_same_answer(
    api: httpx.AsyncClient,
) -> None:
    first, second = await arm(api, nonce="n"), await arm(api, nonce="n")
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["id"] == second.json()["id"]
    assert second.json()["waiter"] == 1


async def test_settings_that_differ_are_named(
    house: House, api: httpx.AsyncClient
) -> None:
    settings = settings_of(house.config) | {"[notify] url": "http://other/"}
    answer = await arm(api, settings=settings)
    assert answer.json()["differs"] == ["[notify] url"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param({"target": "lock .."}, "..", id="no slug"),
        pytest.param({"target": "teleport x"}, "teleport", id="no such kind"),
        pytest.param({"target": ""}, "lock, process", id="no target"),
        pytest.param({"target": "lock 'a"}, "lock 'a", id="open quote"),
        pytest.param({"target": "lock a --nope"}, "nope", id="no such option"),
        pytest.param({"target": "lock a", "ttl_s": 0}, "ttl_s", id="no time"),
        pytest.param({"target": "lock a", "ttl_s": -1}, "ttl_s", id="less than none"),
        pytest.param({"target": "lock a", "ttl_s": 31536001}, "ttl_s", id="a year"),
        pytest.param({"target": "lock a", "every_s": 0}, "every_s", id="every 0"),
        pytest.param({"target": "lock a", "every_s": -5}, "every_s", id="every -5"),
        pytest.param(
            {"target": "lock a", "start_within_s": -1}, "start_within_s", id="start"
        ),
        pytest.param({"target": "lock a", "label": "waiting"}, "waiting", id="label"),
        pytest.param({"target": "lock a", "session": "-x y"}, "-x y", id="session"),
    ],
)
async def test_a_wrong_order_is_a_problem_with_its_sentence(
    body: dict[str, object], said: str, house: House, api: httpx.AsyncClient
) -> None:
    document = problem(await api.post("/v1/watches", json=body), 400)
    assert said in str(document["detail"])
    sentence = phrase_of(document["phrase"])  # type: ignore[arg-type]  # JSON
    assert sentence is not None
    assert sentence.render(Lang.EN) == document["detail"]
    assert house.service.armed_count == 0


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b" ", id="nothing"),
        pytest.param(b"{", id="half"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b"{}", id="no target"),
        pytest.param(b'{"target": 5}', id="another type"),
        pytest.param(b'{"target": "lock a", "ttl": 5}', id="unknown field"),
        pytest.param(b'{"target": "lock a", "ttl_s": 1.5}', id="a fraction"),
        pytest.param(b'{"target": "lock a", "ttl_s": "5"}', id="a text"),
        pytest.param(b'{"target": "lock a", "lang": "de"}', id="unknown language"),
        pytest.param(b'{"target": "\xff"}', id="no UTF-8"),
        pytest.param(b'{"target": ' + b"[" * 5000, id="deeply nested"),
    ],
)
@pytest.mark.parametrize("route", ["POST /v1/watches", "POST {}/renew", "DELETE {}"])
async def test_a_body_that_will_not_do_is_a_problem(
    route: str, content: bytes, house: House, api: httpx.AsyncClient
) -> None:
    watch_id = await armed(api)
    method, path = route.format(f"/v1/watches/{watch_id}").split()
    problem(await api.request(method, path, content=content, headers=JSON), 400)
    assert house.service.armed_count == 1


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/xml"]
)
@pytest.mark.parametrize(
    "route",
    [
        "POST /v1/watches",
        "POST {}/renew",
        "POST {}/ack",
        "DELETE {}",
        "DELETE {}/waiters/1",
        "POST /v1/outbox/flush",
        "POST /v1/handover",
    ],
)
async def test_a_write_needs_a_json_content_type(
    route: str, kind: str | None, house: House, api: httpx.AsyncClient
) -> None:
    watch_id = await armed(api)
    method, path = route.format(f"/v1/watches/{watch_id}").split()
    headers = {"Content-Type": kind} if kind else {}
    body = b'{"target": "lock b", "ttl_s": 5, "why": "x"}'
    problem(await api.request(method, path, content=body, headers=headers), 415)
    assert house.service.armed_count == 1
    assert not house.hosting.stopped.is_set()


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "Application/JSON", "application/json "]
)
async def test_a_content_type_may_be_written_as_http_allows(
    kind: str, api: httpx.AsyncClient
) -> None:
    answer = await api.post(
        "/v1/watches", content=b'{"target": "lock a"}', headers={"Content-Type": kind}
    )
    assert answer.status_code == 201


async def test_a_body_that_is_too_long_is_refused(api: httpx.AsyncClient) -> None:
    body = json.dumps({"target": "lock a", "resume": "x" * (1 << 20)})
    problem(await api.post("/v1/watches", content=body, headers=JSON), 413)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/watches/x/renew"),
        ("GET", "/v1/watches/x/ack"),
        ("GET", "/v1/handover"),
        ("GET", "/v1/outbox/flush"),
        ("PUT", "/v1/watches"),
        ("POST", "/healthz"),
        ("PATCH", "/v1/pings"),
    ],
)
async def test_a_method_that_a_route_has_not_is_refused_with_those_it_has(
    method: str, path: str, api: httpx.AsyncClient
) -> None:
    answer = await api.request(method, path, headers=JSON)
    problem(answer, 405)
    assert answer.headers["allow"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v2/watches"),
        ("GET", "/v1/watches/"),
        ("GET", "/v1/watches/ffffffffffff"),
        ("GET", "/v1/watches/%25"),
        ("GET", "/v1/watches/*"),
        ("GET", "/v1/watches/ffff/outcome"),
        ("POST", "/v1/watches/ffff/renew"),
        ("POST", "/v1/watches/ffff/ack"),
        ("DELETE", "/v1/watches/ffff"),
        ("GET", "/v1/watches/ffff/waiters/1"),
        ("DELETE", "/v1/watches/ffff/waiters/1"),
        ("GET", "/v1/watches/ffff/waiters/x"),
    ],
)
async def test_what_is_not_there_is_a_problem(
    method: str, path: str, api: httpx.AsyncClient
) -> None:
    await armed(api)
    problem(await api.request(method, path, headers=JSON, content=b"{}"), 404)


# odd bytes


@pytest.mark.parametrize("quoted", ["\\udcff", "\\udc80\\udcfe"])
async def test_a_path_that_is_no_utf_8_goes_through_whole(
    quoted: str, house: House, api: httpx.AsyncClient
) -> None:
    """Its outcome could not be encoded, and was never told."""
    name = house.locks / f"x{quoted}.lock".encode().decode("unicode_escape")
    name.write_text("")
    target = f"lock '{house.locks}/x{quoted}.lock'"
    watch_id = await armed(api, target=target, label=f"l{quoted}", resume=f"r{quoted}")
    name.unlink()
    await house.go(31)
    path = f"/v1/watches/{watch_id}/waiters/1"
    answer = await api.get(path, params={"wait_s": 10, "after": 0, "knows": "waiting"})
    assert answer.status_code == 200
    outcome = outcome_of(answer.json()["outcome"])
    assert outcome.target.text == f"lock '{name}'"
    odd = quoted.encode().decode("unicode_escape")
    assert (outcome.label, outcome.resume) == (f"l{odd}", f"r{odd}")
    assert (await api.get(f"/v1/watches/{watch_id}/outcome")).status_code == 200
    assert (await api.get(f"/v1/watches/{watch_id}")).status_code == 200
    assert len(house.pings) == 1


@pytest.mark.parametrize("escape", [r"\ud800", r"\udfff", r"\udcff"])
async def test_half_a_character_is_a_problem_or_watched_but_never_a_fault(
    escape: str, api: httpx.AsyncClient
) -> None:
    body = b'{"target": "lock /tmp/%s", "label": "a%s"}' % ((escape.encode(),) * 2)
    answer = await api.post("/v1/watches", content=body, headers=JSON)
    assert answer.status_code in {201, 400}
    if answer.status_code == 400:
        problem(answer, 400)


# reading


async def test_health_says_what_is_not_as_it_should_be(
    house: House, api: httpx.AsyncClient
) -> None:
    assert (await api.get("/healthz")).json() == {
        "status": "ok",
        "version": __version__,
        "armed": 0,
        "degraded": None,
        "detail": None,
        "now": rfc3339(house.clock.wall().timestamp()),
        "on_demand": True,
    }
    with house.read_only():
        await arm(api)
        health = (await api.get("/healthz")).json()
    assert (health["status"], health["armed"]) == ("degraded", 1)
    assert phrase_of(health["degraded"]) == house.service.degraded
    assert house.service.degraded is not None
    assert health["detail"] == house.service.degraded.render(house.config.lang)


async def test_settings_are_told_without_a_secret(
    house: House, api: httpx.AsyncClient
) -> None:
    assert (await api.get("/v1/settings")).json() == settings_of(house.config)


async def test_the_list_is_what_is_armed_and_with_all_what_ended_within_a_day(
    house: House, api: httpx.AsyncClient
) -> None:
    house.hold("b")
    one, two = await armed(api), await armed(api, target="lock b")
    await house.service._keeping.firmly(
        lambda c: add_watch(c, "0ld", at=0, state="expired", ended_at=5)
    )
    await api.request("DELETE", f"/v1/watches/{one}", json={"why": "x"})
    assert [w["id"] for w in (await api.get("/v1/watches")).json()] == [two]
    everything = (await api.get("/v1/watches?all=1")).json()
    assert [(w["id"], w["state"]) for w in everything] == [
        (one, "removed"),
        (two, "armed"),
    ]


async def test_an_id_may_be_any_unique_prefix(
    house: House, api: httpx.AsyncClient
) -> None:
    for name in ("abc1", "abd2", "abd23"):
        add_watch(house.connection, name, at=0)
    assert (await api.get("/v1/watches/abc")).json()["id"] == "abc1"
    assert (await api.get("/v1/watches/abd2")).json()["id"] == "abd2"
    document = problem(await api.get("/v1/watches/ab"), 409)
    assert "abc1" in str(document["detail"])


async def test_the_outcome_is_waited_for_and_given_at_once_when_it_comes(
    house: House, api: httpx.AsyncClient
) -> None:
    watch_id = await armed(api)
    path = f"/v1/watches/{watch_id[:6]}/outcome"
    assert (await api.get(path)).status_code == 204
    asking = asyncio.create_task(api.get(path, params={"wait_s": 60}))
    await settle()
    house.free("a")
    await house.go(31)
    answer = await asyncio.wait_for(asking, 20)
    assert answer.status_code == 200
    assert answer.json()["outcome"] == "released"
    assert answer.json()["line"].startswith("✅ LIBERADO: lock a")
    assert (await api.get(path, params={"waiter": 2})).status_code == 204


@pytest.mark.parametrize("wait_s", ["nan", "x", "", "1s", "-nan"])
@pytest.mark.parametrize("tail", ["/outcome", "/waiters/1"])
async def test_a_time_to_wait_that_is_none_is_a_problem(
    tail: str, wait_s: str, api: httpx.AsyncClient
) -> None:
    watch_id = await armed(api)
    path = f"/v1/watches/{watch_id}{tail}"
    problem(await api.get(path, params={"wait_s": wait_s}), 400)


@pytest.mark.parametrize("wait_s", ["-1", "-inf", "0", "0.001"])
async def test_a_short_time_to_wait_is_over_at_once(
    wait_s: str, api: httpx.AsyncClient
) -> None:
    watch_id = await armed(api)
    async with asyncio.timeout(10):
        path = f"/v1/watches/{watch_id}/outcome"
        answer = await api.get(path, params={"wait_s": wait_s})
    assert answer.status_code == 204


@pytest.mark.parametrize("wait_s", ["inf", "1e9", "301"])
async def test_nobody_waits_longer_than_the_limit(
    wait_s: str, api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watcher.serve.asking.WAIT_LIMIT_S", 0.05)
    watch_id = await armed(api)
    async with asyncio.timeout(10):
        path = f"/v1/watches/{watch_id}/outcome"
        answer = await api.get(path, params={"wait_s": wait_s})
    assert answer.status_code == 204


@pytest.mark.parametrize("number", ["x", "-1", "", "1.5", "٣", "9" * 40])
@pytest.mark.parametrize("query", ["outcome?waiter=", "waiters/1?after="])
async def test_a_number_that_is_none_is_a_problem(
    query: str, number: str, api: httpx.AsyncClient
) -> None:
    watch_id = await armed(api)
    problem(await api.get(f"/v1/watches/{watch_id}/{query}{number}"), 400)


async def test_a_command_follows_its_waiter(
    house: House, api: httpx.AsyncClient
) -> None:
    watch_id = await armed(api, ttl_s=60)
    path = f"/v1/watches/{watch_id}/waiters/1"
    news = (await api.get(path, params={"wait_s": 60})).json()
    assert news == {
        "waiting": True,
        "notes": [],
        "deadline_at": house.clock.wall().timestamp() + 60,
        "outcome": None,
    }
    await house.go(61)
    params: dict[str, str | float] = {"wait_s": 60, "knows": "waiting", "after": 0}
    news = (await api.get(path, params=params)).json()
    assert outcome_of(news["outcome"]).ending.value == "expired"
    house.service._watches.forget(1e12)
    news = (await api.get(path)).json()
    assert news["deadline_at"] is None
    assert outcome_of(news["outcome"]).ending.value == "expired"


# life cycle


async def test_a_waiter_leaves_once(api: httpx.AsyncClient) -> None:
    watch_id = await armed(api)
    await arm(api)
    path = f"/v1/watches/{watch_id}/waiters/1"
    assert (await api.delete(path, headers=JSON)).status_code == 204
    problem(await api.delete(path, headers=JSON), 404)


async def test_a_watch_is_renewed(house: House, api: httpx.AsyncClient) -> None:
    watch_id = await armed(api, ttl_s=60)
    body = {"ttl_s": 600, "why": "slow"}
    answer = await api.post(f"/v1/watches/{watch_id[:8]}/renew", json=body)
    assert answer.status_code == 200
    assert (answer.json()["id"], answer.json()["renewals"]) == (watch_id, 1)
    for wrong in (0, -1, 31536001):
        problem(
            await api.post(f"/v1/watches/{watch_id}/renew", json={"ttl_s": wrong}), 400
        )
    house.free("a")
    await house.go(31)
    await house.told(watch_id)
    problem(await api.post(f"/v1/watches/{watch_id}/renew", json=body), 400)


async def test_a_watch_is_removed_with_a_why_and_once(
    house: House, api: httpx.AsyncClient
) -> None:
    watch_id = await armed(api)
    path = f"/v1/watches/{watch_id}"
    for body in ({}, {"why": ""}, {"why": " \t"}, {"why": None}, {"why": "x", "y": 1}):
        problem(await api.request("DELETE", path, json=body), 400)
    answer = await api.request("DELETE", path, json={"why": "by hand \\udcff"})
    assert answer.status_code == 200
    assert answer.json()["state"] == "removed"
    assert "by hand" in answer.json()["line"]
    problem(await api.request("DELETE", path, json={"why": "again"}), 400)
    assert house.pings == []


async def test_an_outcome_is_acknowledged(house: House, api: httpx.AsyncClient) -> None:
    watch_id = await armed(api, ttl_s=60)
    await house.go(61)
    await house.told(watch_id)
    answer = await api.post(f"/v1/watches/{watch_id}/ack", headers=JSON)
    assert answer.status_code == 200
    assert answer.json()["acknowledged"] is True


# pings


async def test_pings_are_listed_and_flushed(
    house: House, api: httpx.AsyncClient
) -> None:
    at = house.clock.wall().timestamp()
    add_ping(house.connection, "k1", at=at, watch_id="a1", attempts=1, logged_at=at)
    add_ping(house.connection, "k2", at=at, watch_id="b2", state="dead")
    pings = (await api.get("/v1/pings")).json()
    assert [(p["idempotency_key"], p["state"]) for p in pings] == [
        ("k1", "pending"),
        ("k2", "dead"),
    ]
    mine = (await api.get("/v1/pings?watch=a1&wait_s=60")).json()
    assert [(p["idempotency_key"], p["logged_at"]) for p in mine] == [("k1", at)]
    for dead, count in ((False, 1), (True, 2)):
        answer = await api.post("/v1/outbox/flush", json={"dead": dead})
        assert answer.json() == {"tried": count}
    problem(await api.post("/v1/outbox/flush", json={"all": True}), 400)


async def test_a_service_on_demand_makes_room(
    house: House, api: httpx.AsyncClient
) -> None:
    assert (await api.post("/v1/handover", headers=JSON)).status_code == 202
    assert house.hosting.stopped.is_set()


async def test_a_service_that_a_person_runs_makes_no_room(tmp_path: Path) -> None:
    async with House(tmp_path, on_demand=False) as house, client_of(house) as api:
        document = problem(await api.post("/v1/handover", headers=JSON), 409)
        assert "was not started on demand" in str(document["detail"])
        assert not house.hosting.stopped.is_set()


# without the store


async def test_a_watch_that_the_store_could_not_take_can_still_be_reached(
    house: House, api: httpx.AsyncClient
) -> None:
    with house.read_only():
        answer = await arm(api)
        assert answer.status_code == 201
        watch_id = answer.json()["id"]
        shape = answer.json()
        assert (shape.pop("waiter"), shape.pop("differs")) == (1, [])
        assert shape.pop("notes") == []
        assert (shape["target"], shape["state"]) == ("lock a", "armed")
        path = f"/v1/watches/{watch_id[:8]}"
        shown = (await api.get(path)).json()
        assert (shown.pop("waiter_list"), shown.pop("trail")) == ([], [])
        assert shown.keys() == shape.keys() - {"notes"}
        answer = await api.post(f"{path}/renew", json={"ttl_s": 60})
        assert answer.status_code == 200
        answer = await api.request("DELETE", path, json={"why": "x"})
        assert answer.status_code == 200
    assert await house.told(watch_id) == "removed"


async def test_a_store_that_cannot_be_read_is_told_as_such(
    house: House, api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch_id = await armed(api)
    assert house.hosting.read is not None
    house.hosting.read.close()
    for path in ("/v1/watches", "/v1/pings", "/v1/watches/ffff"):
        assert problem(await api.get(path), 503)["phrase"]
    problem(await api.get("/v1/watches/ffff/waiters/1"), 503)
    path = f"/v1/watches/{watch_id}"
    assert (await api.get(path)).json()["id"] == watch_id
    answer = await api.request("DELETE", path, json={"why": "x"})
    assert (answer.status_code, answer.json()["state"]) == (200, "removed")
    assert "x" in answer.json()["line"]
    house.hosting.read = None
    monkeypatch.setattr("watcher.serve.hosting.open_for_reading", lambda _: None)
    problem(await api.get("/v1/watches"), 503)


@pytest.mark.parametrize("route", ["POST {}/ack", "POST /v1/outbox/flush"])
async def test_a_locked_store_is_a_problem_and_not_a_wait(
    route: str, house: House, api: httpx.AsyncClient
) -> None:
    watch_id = await armed(api)
    method, path = route.format(f"/v1/watches/{watch_id}").split()
    with house.locked():
        async with asyncio.timeout(10):
            answer = await api.request(method, path, headers=JSON, content=b"{}")
        problem(answer, 503)


async def test_a_service_that_is_not_the_owner_any_more_says_so(
    house: House, api: httpx.AsyncClient
) -> None:
    other = Writer(open_database(str(house.state))[0])
    await LocalOwnership(other).claim()
    document = problem(await arm(api), 503)
    assert "another service" in str(document["detail"])
    await until(house.hosting.stopped.is_set)
    other.close(5.0)


async def test_a_fault_of_ours_is_logged_and_tells_nothing(
    house: House,
    api: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("watcher.serve.operations.settings_of", fail)
    document = problem(await api.get("/v1/settings"), 500)
    assert "secret" not in json.dumps(document)
    assert "request.failed" in caplog.text
