"""The OpenAPI document: it is valid, tells the truth, and the API holds to it."""

import asyncio
import json
import re
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openapi_spec_validator import OpenAPIV31SpecValidator
from schemathesis import GenerationMode
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import positive_data_acceptance
from starlette.applications import Starlette
from starlette.routing import Route

from tests.fakes import FakeClock, FakeHosts
from tests.rows import add_ping, add_watch
from tests.watcher.house import House
from tests.watcher.serve.rig import client_of, front_of
from watcher.serve.api import OPERATIONS, Operation, build_api
from watcher.serve.guard import Guard
from watcher.serve.openapi import document_of

T = TypeVar("T")

DOCUMENT = json.loads(json.dumps(document_of(OPERATIONS)))
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
FUZZED = [op for op in OPERATIONS if op.gives.get(200) != "text/event-stream"]
LIMIT_S = 60.0


class HurriedClock(FakeClock):
    """Whoever sleeps is woken at once, and the time has passed."""

    async def sleep(self, seconds: float) -> None:
        self._move(max(seconds, 0.0), awake=True)
        await asyncio.sleep(0)


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1")


class Beside:
    """A service on a loop of its own, for tests that have none."""

    def __init__(self, folder: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._stack = self.run(self._open(folder))

    async def _open(self, folder: Path) -> tuple[House, Any, httpx.AsyncClient]:
        house = House(folder, clock=HurriedClock(), on_demand=False)
        await house.__aenter__()
        house.hold("a")
        at = house.clock.wall().timestamp()
        add_watch(house.connection, "0a1", at=at, state="expired", ended_at=at)
        add_ping(house.connection, "k", at=at, watch_id="0a1", attempts=1)
        opened = client_of(house)
        return house, opened, await opened.__aenter__()

    def run(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LIMIT_S)

    def ask(self, asked: requests.PreparedRequest) -> httpx.Response:
        """Send what another library has put together."""
        body = asked.body.encode() if isinstance(asked.body, str) else asked.body
        assert body is None or isinstance(body, bytes)
        headers = [
            (name.encode("latin-1"), _bytes(value))
            for name, value in asked.headers.items()
        ]
        request = httpx.Request(
            str(asked.method), str(asked.url), headers=headers, content=body
        )
        return self.run(self._stack[2].send(request))

    def close(self) -> None:
        house, opened, _ = self._stack
        self.run(opened.__aexit__(None, None, None))
        self.run(house.__aexit__())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LIMIT_S)
        self._loop.close()


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("watcher.serve.asking.WAIT_LIMIT_S", 0.01)
        beside = Beside(tmp_path_factory.mktemp("fuzzed"))
        yield beside
        beside.close()


def name(value: object) -> str:
    if isinstance(value, Operation):
        return f"{value.method} {value.path}"
    return str(getattr(value, "value", value))


def described(operation: Operation) -> APIOperation:  # type: ignore[type-arg]  # three of them
    return SCHEMA[operation.path.replace(":int", "")][operation.method]


CASES = [
    (operation, mode)
    for operation in FUZZED
    for mode in GenerationMode
    # What takes nothing can be sent nothing wrong; any text may be an id.
    if mode is GenerationMode.POSITIVE
    or operation.takes
    or operation.asks
    or ":int" in operation.path
]


@pytest.mark.parametrize(("operation", "mode"), CASES, ids=name)
@settings(
    max_examples=20,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_the_api_holds_to_its_document_whatever_it_is_sent(
    operation: Operation, mode: GenerationMode, beside: Beside, data: st.DataObject
) -> None:
    known = "{id}" in operation.path and data.draw(st.booleans())
    strategy = described(operation).as_strategy(
        mode, path_parameters={"id": "0a1"} if known else None
    )
    case = data.draw(strategy)
    sent = case.as_transport_kwargs(base_url="http://local")
    answer = beside.ask(requests.Request(**sent).prepare())
    # A target has a grammar of its own, which no schema knows.
    case.validate_response(answer, excluded_checks=[positive_data_acceptance])


def test_the_document_is_valid() -> None:
    assert list(OpenAPIV31SpecValidator(DOCUMENT).iter_errors()) == []


async def test_the_document_that_is_served_is_that_of_the_operations(
    api: httpx.AsyncClient,
) -> None:
    answer = await api.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == DOCUMENT


async def test_every_route_is_in_the_document_and_the_document_has_no_other(
    house: House,
) -> None:
    guard = build_api(house.hosting)
    assert isinstance(guard, Guard)
    assert isinstance(guard._app, Starlette)
    routes = {
        (method, re.sub(r":\w+}", "}", route.path))
        for route in guard._app.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    told = {
        (method.upper(), path)
        for path, methods in DOCUMENT["paths"].items()
        for method in methods
    }
    assert routes == told
    assert len(routes) == len(OPERATIONS)


def test_every_operation_is_told_in_words_and_by_a_name_of_its_own() -> None:
    found = [op for path in DOCUMENT["paths"].values() for op in path.values()]
    assert len({op["operationId"] for op in found}) == len(found)
    assert all(op["summary"].endswith((".", ":", "none came.")) for op in found)


@pytest.mark.parametrize("path", ["/v1/watches", "/v1/watches/{id}/renew", "/v1/check"])
def test_what_the_contract_promises_is_in_the_document(path: str) -> None:
    assert path in DOCUMENT["paths"]


async def test_every_answer_that_is_promised_is_given_and_is_as_described(
    house: House,
) -> None:
    front = front_of(house)
    at = house.clock.wall().timestamp()
    add_ping(house.connection, "k", at=at, watch_id="x", attempts=1, last_error="e")
    add_ping(house.connection, "d", at=at, state="delivered", delivered_at=at)
    given_: set[tuple[str, int]] = set()
    ids = {"file": "main.js", "host": "box"}
    house.service.detaching._hosts = FakeHosts()

    async with client_of(house, front) as api:

        async def ask(call: str, body: object = None) -> httpx.Response:
            method, path = call.split(" ")
            operation = next(
                op for op in OPERATIONS if (op.method, op.path) == (method, path)
            )
            url = path.replace("{number:int}", "1").format(**{"id": ""} | ids)
            sent = {} if method == "GET" else {"json": body or {}}
            answer = await api.request(method, url, **sent)  # type: ignore[arg-type]  # as above
            assert answer.status_code in operation.gives, answer.text
            described(operation).validate_response(answer)
            given_.add((call, answer.status_code))
            return answer

        for plain in ("/", "/healthz", "/metrics", "/v1/settings", "/openapi.json"):
            await ask(f"GET {plain}")
        await ask("GET /page/{file}")
        await ask("GET /v1/words")
        await ask("GET /v1/history")
        await ask("GET /v1/hosts")
        for _ in range(2):
            armed = await ask("POST /v1/watches", {"target": "lock a", "session": "s"})
        ids["id"] = armed.json()["id"]
        await ask("GET /v1/watches")
        await ask("GET /v1/watches/{id}")
        await ask("GET /v1/watches/{id}/outcome")
        await ask("GET /v1/watches/{id}/waiters/{number:int}")
        await ask("POST /v1/watches/{id}/renew", {"ttl_s": 60})
        await ask("DELETE /v1/watches/{id}/waiters/{number:int}")
        await ask("POST /v1/check", {"target": "lock a"})
        await ask("DELETE /v1/watches/{id}", {"why": "by hand"})
        await ask("GET /v1/watches/{id}")
        ids["id"] = (await ask("POST /v1/watches", {"target": "lock a"})).json()["id"]
        house.free("a")
        await house.go(31)
        await house.told(ids["id"])
        await ask("GET /v1/watches/{id}/outcome")
        await ask("GET /v1/outcomes")
        await ask("POST /v1/watches/{id}/ack")
        await ask("GET /v1/pings")
        await ask("GET /v1/hosts/{host}/watches")
        await ask("POST /v1/outbox/flush")
        await ask("POST /v1/page-token")
        await ask("POST /v1/handover")
    promised = {(name(op), status) for op in FUZZED for status in op.gives}
    assert promised == given_


def test_the_document_is_not_built_before_somebody_asks() -> None:
    script = (
        "import sys, watcher.serve.main;"
        "print([m for m in sys.modules if m.startswith('watcher.serve.')])"
    )
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "watcher.serve.api" in said.stdout
    assert "watcher.serve.openapi" not in said.stdout
