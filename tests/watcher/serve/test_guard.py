"""Whom the service answers: Host, Origin, token, session (C10.3, B146, B148, B150)."""

from collections.abc import AsyncIterator, Mapping
from urllib.parse import quote, urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.watcher.house import House
from tests.watcher.serve.rig import (
    BEARER,
    PORT,
    TOKEN,
    URL,
    client_of,
    front_of,
    problem,
)
from watcher.loopback import is_loopback
from watcher.serve.api import build_api
from watcher.serve.guard import Guard, is_local, is_ours
from watcher.serve.operations import Front
from watcher.serve.tokens import ONCE_S

READS = [
    "/",
    "/page/main.js",
    "/healthz",
    "/v1/watches",
    "/v1/pings",
    "/v1/hosts",
    "/v1/history",
    "/v1/outcomes",
    "/v1/words",
    "/v1/settings",
    "/openapi.json",
]
WRITES = [
    "POST /v1/watches",
    "POST /v1/check",
    "POST /v1/watches/x/renew",
    "POST /v1/watches/x/ack",
    "DELETE /v1/watches/x",
    "DELETE /v1/watches/x/waiters/1",
    "POST /v1/outbox/flush",
    "POST /v1/page-token",
    "POST /v1/handover",
]
FOREIGN = [
    "null",
    "file://",
    "https://evil.example",
    "http://localhost:3000",
    "http://127.0.0.1",
    f"https://127.0.0.1:{PORT}",
    "http://127.0.0.1:8080.evil.example",
    f"http://127.0.0.1:{PORT}.evil.example",
    f"http://127.0.0.1:{PORT}/",
    f"http://localhost:{PORT}",
    "",
]


@pytest.fixture
def front(house: House) -> Front:
    return front_of(house)


@pytest.fixture
async def web(house: House, front: Front) -> AsyncIterator[httpx.AsyncClient]:
    """Give a client that comes over TCP, with nothing but what a test gives it."""
    async with client_of(house, front, url=URL) as client:
        yield client


async def browser(web: httpx.AsyncClient, front: Front) -> None:
    """Open the page by its address, as a person does; the client keeps the cookie."""
    leads_on(await web.get(front.page_address()))


def leads_on(answer: httpx.Response) -> None:
    """Check that a page of ours, which is no redirect, leads on to the page."""
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert '<meta http-equiv="refresh" content="0;url=/">' in answer.text


def nothing_of_cors(answer: httpx.Response) -> None:
    assert not [name for name in answer.headers if name.startswith("access-control")]


# the token


@pytest.mark.parametrize("path", READS)
async def test_over_tcp_nothing_is_read_without_the_token(
    path: str, web: httpx.AsyncClient
) -> None:
    answer = await web.get(path)
    problem(answer, 401, "no-token")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert (await web.get(path, headers=BEARER)).status_code == 200


@pytest.mark.parametrize("write", WRITES)
async def test_over_tcp_nothing_is_written_without_the_token(
    write: str, house: House, web: httpx.AsyncClient
) -> None:
    method, path = write.split()
    body = {"target": "lock a", "ttl_s": 60, "why": "x"}
    problem(await web.request(method, path, json=body), 401, "no-token")
    assert house.service.armed_count == 0
    assert not house.hosting.stopped.is_set()


@pytest.mark.parametrize(
    "sent",
    [
        "Bearer",
        "Bearer ",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN.upper()}",
        f"Basic {TOKEN}",
        TOKEN,
        "Bearer \xff\xfe",
    ],
)
async def test_a_wrong_token_is_none(sent: str, web: httpx.AsyncClient) -> None:
    headers = {b"Authorization": sent.encode("latin-1")}
    problem(await web.get("/v1/watches", headers=headers), 401, "no-token")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_scheme_is_written_as_anybody_likes(
    scheme: str, web: httpx.AsyncClient
) -> None:
    headers = {"Authorization": f"{scheme} {TOKEN}"}
    assert (await web.get("/v1/watches", headers=headers)).status_code == 200


async def test_a_program_with_the_token_may_write(
    house: House, web: httpx.AsyncClient
) -> None:
    answer = await web.post("/v1/watches", json={"target": "lock a"}, headers=BEARER)
    assert answer.status_code == 201
    assert house.service.armed_count == 1


async def test_without_tokens_nobody_comes_in_over_tcp(house: House) -> None:
    async with client_of(house, None, url=URL) as web:
        problem(await web.get("/v1/watches", headers=BEARER), 401, "no-token")


async def test_the_token_is_in_no_answer_and_no_representation(
    web: httpx.AsyncClient, front: Front
) -> None:
    for path in READS:
        answer = await web.get(path, headers=BEARER)
        assert TOKEN not in answer.text + str(answer.headers)
    assert TOKEN not in repr(front)


# Host: DNS rebinding


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        f"127.0.0.1.evil.example:{PORT}",
        f"127.0.0.1.nip.io:{PORT}",
        f"localhost.evil.example:{PORT}",
        f"localhost.:{PORT}",
        "127.0.0.1",
        "127.0.0.1:80",
        f"10.0.0.1:{PORT}",
        f"0.0.0.0:{PORT}",
        f"[::]:{PORT}",
        f"::1:{PORT}",
        f"[::ffff:127.0.0.1]:{PORT}",
        f"2130706433:{PORT}",
        f"0x7f.1:{PORT}",
        f"user@127.0.0.1:{PORT}",
        "",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_name_that_is_not_this_machine_s_is_refused_even_with_the_token(
    method: str, host: str, house: House, web: httpx.AsyncClient
) -> None:
    answer = await web.request(
        method,
        "/v1/watches",
        json={"target": "lock a"},
        headers={**BEARER, "Host": host},
    )
    problem(answer, 421, "foreign-host")
    assert house.service.armed_count == 0


@pytest.mark.parametrize(
    "host",
    [f"127.0.0.1:{PORT}", f"LOCALHOST:{PORT}", f"127.9.9.9:{PORT}", "[::1]:8765"],
)
async def test_every_name_of_the_loopback_is_answered(
    host: str, web: httpx.AsyncClient
) -> None:
    answer = await web.get("/healthz", headers={**BEARER, "Host": host})
    assert answer.status_code == 200


async def test_two_hosts_are_none(web: httpx.AsyncClient) -> None:
    host = f"127.0.0.1:{PORT}"
    headers = [*BEARER.items(), ("Host", host), ("Host", host)]
    problem(await web.get("/healthz", headers=headers), 421, "foreign-host")


@pytest.mark.parametrize(
    ("host", "port", "ours"),
    [
        ("localhost", 80, True),
        ("localhost", 8765, False),
        ("[::1]", 80, True),
        ("[::1]:81", 81, True),
        ("[::1", 80, False),
        ("localhost:080", 80, False),
        ("localhost:", 80, False),
        (":80", 80, False),
    ],
)
def test_the_port_is_part_of_the_name(host: str, port: int, ours: bool) -> None:
    assert is_ours(host, ("127.0.0.1", port)) is ours


@given(st.text())
def test_a_name_is_ours_only_with_our_port_and_a_loopback_name(host: str) -> None:
    if is_ours(host, ("127.0.0.1", PORT)):
        name, _, port = host.lower().rpartition(":")
        assert port == str(PORT)
        assert is_loopback(name)


# Origin: other pages


@pytest.mark.parametrize("origin", FOREIGN)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
async def test_a_request_of_another_page_is_refused_and_told_nothing(
    method: str,
    origin: str,
    house: House,
    web: httpx.AsyncClient,
    api: httpx.AsyncClient,
) -> None:
    for client in (web, api):
        answer = await client.request(
            method,
            "/v1/watches",
            json={"target": "lock a"},
            headers={**BEARER, "Origin": origin},
        )
        problem(answer, 403, "foreign-origin")
        nothing_of_cors(answer)
    assert house.service.armed_count == 0


async def test_two_origins_are_a_foreign_one(web: httpx.AsyncClient) -> None:
    headers = [*BEARER.items(), ("Origin", URL), ("Origin", URL)]
    problem(await web.get("/healthz", headers=headers), 403, "foreign-origin")


async def test_our_own_origin_is_answered_over_tcp_and_not_by_the_unix_socket(
    web: httpx.AsyncClient, api: httpx.AsyncClient
) -> None:
    answer = await web.get("/healthz", headers={**BEARER, "Origin": URL})
    assert answer.status_code == 200
    nothing_of_cors(answer)
    answer = await api.get("/healthz", headers={"Origin": URL})
    problem(answer, 403, "foreign-origin")


async def test_a_form_of_a_page_writes_nothing(
    house: House, web: httpx.AsyncClient, front: Front
) -> None:
    """What a page may send to anybody without asking: B146."""
    await browser(web, front)
    body = b'{"target": "lock a"}'
    for kind in (
        None,
        "text/plain",
        "text/plain; application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ):
        headers = {"Content-Type": kind} if kind else {}
        for more in ({"Origin": "https://evil.example"}, {}, {"Origin": URL}):
            answer = await web.post(
                "/v1/watches", content=body, headers={**headers, **more}
            )
            assert answer.status_code in {401, 403, 415}
    assert house.service.armed_count == 0


async def test_no_write_answers_a_get(
    house: House, web: httpx.AsyncClient, front: Front
) -> None:
    await browser(web, front)
    watch_id, _ = await house.arm()
    for write in WRITES:
        path = write.split()[1].replace("/x", f"/{watch_id}")
        for method in ("GET", "HEAD"):
            answer = await web.request(method, path)
            assert answer.status_code in {200, 405}
    assert house.service.armed_count == 1
    assert not house.hosting.stopped.is_set()


# the session of a browser


async def test_an_address_opens_the_page_once_and_the_token_leaves_the_address(
    house: House, web: httpx.AsyncClient, front: Front
) -> None:
    address = front.page_address()
    assert address.startswith(f"{URL}/?token=")
    answer = await web.get(address)
    leads_on(answer)
    cookie = answer.headers["set-cookie"]
    assert {"httponly", "samesite=strict", "path=/"} <= {
        part.strip().lower() for part in cookie.split(";")
    }
    assert "domain" not in cookie.lower()
    assert (await web.get("/v1/watches")).status_code == 200
    async with client_of(house, front, url=URL) as other:
        problem(await other.get(address), 401, "no-token")
        assert "set-cookie" not in (await other.get(address)).headers


async def test_whoever_has_a_session_may_open_an_old_address(
    web: httpx.AsyncClient, front: Front
) -> None:
    address = front.page_address()
    await web.get(address)
    answer = await web.get(address)
    leads_on(answer)
    assert "set-cookie" not in answer.headers


async def test_an_address_is_good_for_minutes_only(
    house: House, web: httpx.AsyncClient, front: Front
) -> None:
    address = front.page_address()
    await house.clock.advance(ONCE_S + 1)
    problem(await web.get(address), 401, "no-token")


async def test_a_session_ends(
    house: House, web: httpx.AsyncClient, front: Front
) -> None:
    await browser(web, front)
    await house.clock.advance(13 * 3600)
    problem(await web.get("/"), 401, "no-token")


@pytest.mark.parametrize("path", ["/v1/watches", "/healthz"])
async def test_only_the_page_itself_takes_a_token_in_its_address(
    path: str, web: httpx.AsyncClient, front: Front
) -> None:
    query = urlsplit(front.page_address()).query
    problem(await web.get(f"{path}?{query}"), 401, "no-token")
    assert (await web.head(f"/?{query}")).status_code == 401
    problem(await web.get(f"/?token={TOKEN}"), 401, "no-token")
    leads_on(await web.get(f"/?{query}"))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 201),
        ({"Origin": URL}, 201),
        ({"Origin": URL, "Sec-Fetch-Site": "same-origin"}, 201),
        ({"Origin": f"http://localhost:{PORT}"}, 403),
    ],
)
async def test_a_session_writes_only_from_our_own_page(
    headers: Mapping[str, str],
    status: int,
    house: House,
    web: httpx.AsyncClient,
    front: Front,
) -> None:
    await browser(web, front)
    assert (await web.get("/v1/watches")).status_code == 200
    answer = await web.post("/v1/watches", json={"target": "lock a"}, headers=headers)
    assert answer.status_code == status
    assert house.service.armed_count == (status == 201)


@pytest.mark.parametrize("value", ["", "x", "x" * 43, "\xff"])
async def test_a_made_up_session_is_none(
    value: str, web: httpx.AsyncClient, front: Front
) -> None:
    await browser(web, front)
    (name,) = web.cookies
    web.cookies.clear()
    headers = {b"Cookie": f"{name}={value}".encode("latin-1")}
    problem(await web.get("/", headers=headers), 401, "no-token")


async def test_a_session_is_of_one_port(web: httpx.AsyncClient, front: Front) -> None:
    await browser(web, front)
    (name,) = web.cookies
    assert name == f"koder-monitor-{PORT}"


async def test_addresses_are_made_by_the_unix_socket_only(
    house: House, web: httpx.AsyncClient, front: Front, api: httpx.AsyncClient
) -> None:
    """A session must not make itself longer."""
    problem(await web.post("/v1/page-token", json={}, headers=BEARER), 403, "not-here")
    await browser(web, front)
    answer = await web.post("/v1/page-token", json={}, headers={"Origin": URL})
    problem(answer, 403, "not-here")
    problem(await api.post("/v1/page-token", json={}), 409, "not-so-run")
    async with client_of(house, front) as local:
        made = (await local.post("/v1/page-token", json={})).json()
    assert made["expires_in_s"] == int(ONCE_S)
    leads_on(await web.get(made["url"]))


async def test_only_so_many_addresses_are_good_at_once(
    web: httpx.AsyncClient, front: Front
) -> None:
    first, *_, last = [front.page_address() for _ in range(100)]
    problem(await web.get(first), 401, "no-token")
    leads_on(await web.get(last))


# what every answer has


@pytest.mark.parametrize("path", [*READS, "/nothing", "/v1/watches/x"])
async def test_every_answer_says_how_little_may_be_done_with_it(
    path: str, web: httpx.AsyncClient
) -> None:
    for headers in (BEARER, {}, {**BEARER, "Host": "evil.example"}):
        answer = await web.get(path, headers=headers)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "server" not in answer.headers
        assert answer.headers["content-type"].split(";")[0] in {
            "application/json",
            "application/problem+json",
            "text/html",
            "text/javascript",
        }
        nothing_of_cors(answer)


@pytest.mark.parametrize(
    "text",
    [
        "<img src=x onerror=alert(1)>",
        '"onmouseover=alert(1) x="',
        "</script><script>alert(1)</script>",
        "javascript:alert(1)",
        "\x1b]0;x\x07\x1b[2J\u202e",
    ],
)
async def test_what_others_wrote_goes_out_as_json_that_nothing_runs(
    text: str, house: House, web: httpx.AsyncClient
) -> None:
    """B150; a page that shows it has to escape it, this is no page."""
    sent = {"target": "lock a", "label": text, "resume": text}
    answer = await web.post("/v1/watches", json=sent, headers=BEARER)
    assert answer.status_code == 201
    path = f"/v1/watches/{answer.json()['id']}"
    for asked in (path, "/v1/watches", f"/v1/watches/{quote(text)}"):
        answer = await web.get(asked, headers=BEARER)
        assert answer.headers["content-type"].endswith("json")
        assert answer.text.isascii()
        assert not {"\x1b", "\x07", "\x9b"} & set(str(answer.json()))
        assert "\u202e" not in str(answer.json())


def test_what_is_unclear_did_not_come_by_the_unix_socket() -> None:
    assert not is_local({"type": "http"})
    assert not is_local({"type": "http", "server": None})
    assert not is_local({"type": "http", "server": ("127.0.0.1", 80)})
    assert is_local({"type": "http", "server": ("/run/monitor.sock", None)})


async def test_nothing_but_http_is_spoken(house: House) -> None:
    guard = build_api(house.hosting)
    assert isinstance(guard, Guard)

    async def fail(*_: object) -> None:
        raise AssertionError("nothing is to be said")

    await guard({"type": "websocket"}, fail, fail)  # type: ignore[arg-type]  # never called
