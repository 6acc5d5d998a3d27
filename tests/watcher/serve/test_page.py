"""The page as the service gives it: strict, without a foreign address (B150, C10.3)."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from policies.wording import TEXTS, Lang, phrase
from tests.fakes import START, FakeHost, FakeHosts
from tests.rows import add_waiter, add_watch
from tests.watcher.house import House
from tests.watcher.serve.rig import PORT, URL, client_of, front_of, problem
from watcher.serve import overview
from watcher.serve.guard import Guard
from watcher.serve.operations import Front
from watcher.serve.overview import HOME, MEDIA, page_files
from watcher.serve.words import WORDS
from watcher.transport import HostState

FOLDER = Path(overview.__file__).parent / "page"
SCRIPTS = {path.name: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.js"))}
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


class Elements(HTMLParser):
    """Keeps every element of a page with what it holds."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[str] = []
        self._in = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._in = tag

    def handle_endtag(self, tag: str) -> None:
        self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in in {"script", "style"}:
            self.inline.append(data)


@pytest.fixture
def front(house: House) -> Front:
    return front_of(house)


@pytest.fixture
async def web(house: House, front: Front) -> AsyncIterator[httpx.AsyncClient]:
    """Give a browser that has opened the page."""
    async with client_of(house, front, url=URL) as client:
        await client.get(front.page_address())
        yield client


# its files


async def test_the_page_holds_no_script_and_no_style_of_its_own(
    web: httpx.AsyncClient,
) -> None:
    answer = await web.get("/", headers=HTML)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    seen = Elements(answer.text)
    assert seen.inline == []
    for _, attributes in seen.found:
        assert not [name for name in attributes if name.startswith("on")]
        assert "style" not in attributes


async def test_everything_that_the_page_loads_is_there_and_is_ours(
    web: httpx.AsyncClient,
) -> None:
    page = (await web.get("/")).text
    loaded = {
        str(attributes.get("src") or attributes.get("href"))
        for tag, attributes in Elements(page).found
        if tag in {"script", "link"}
    }
    for source in SCRIPTS.values():
        imported = re.findall(r'^import .* from "\./(.*)";$', source, re.MULTILINE)
        loaded |= {f"/page/{name}" for name in imported}
    assert loaded == {f"/page/{name}" for name in page_files()}
    for path in loaded:
        answer = await web.get(path)
        assert answer.status_code == 200
        media = MEDIA[path.rpartition(".")[2]]
        assert answer.headers["content-type"].split(";")[0] == media
        assert answer.headers["x-content-type-options"] == "nosniff"


async def test_the_policy_lets_nothing_in_but_our_own_files(
    web: httpx.AsyncClient,
) -> None:
    policy = (await web.get("/")).headers["content-security-policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules.pop("default-src") == "'none'"
    assert set(rules.values()) == {"'none'", "'self'"}
    assert (rules["script-src"], rules["style-src"]) == ("'self'", "'self'")
    assert (rules["form-action"], rules["frame-ancestors"]) == ("'none'", "'none'")


@pytest.mark.parametrize("name", [HOME, *sorted(page_files())])
def test_no_file_of_the_page_names_a_foreign_address(name: str) -> None:
    text = (FOLDER / name).read_text("utf-8")
    named = set(re.findall(r"\w+://[^\s\"']*", text))
    assert named <= {"http://www.w3.org/2000/svg"}  # the name of a format


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_makes_markup_or_code_of_a_text(name: str) -> None:
    unwanted = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|srcdoc"
        r"|createContextualFragment|setHTML|\beval\b|new Function|javascript:"
        r"|set(?:Timeout|Interval)\(\s*[\"'`]|setAttribute\(\s*[\"'](?:on|style)"
    )
    assert re.findall(unwanted, SCRIPTS[name]) == []


@pytest.mark.parametrize(
    "name",
    [
        "index.html",
        "nothing.js",
        "..%2fguard.py",
        "%2e%2e/guard.py",
        "main.js/",
        "a\0b",
    ],
)
async def test_only_files_of_the_page_are_given(
    name: str, web: httpx.AsyncClient
) -> None:
    problem(await web.get(f"/page/{name.replace(chr(0), '%00')}"), 404, "not-found")


# its words


@pytest.mark.parametrize("lang", list(Lang))
async def test_the_words_of_the_page_are_the_one_place_s(
    lang: Lang, house: House
) -> None:
    house.service.config = replace(house.config, lang=lang)
    async with client_of(house) as api:
        said = (await api.get("/v1/words")).json()
    assert said["lang"] == lang
    assert said["words"] == {key: TEXTS[key][lang is Lang.EN] for key in WORDS}


def test_the_page_says_no_sentence_that_it_is_not_given() -> None:
    source = "\n".join(SCRIPTS.values())
    named = set(re.findall(r'"(page_\w+)"', source))
    made = {"page_live", "page_lost", "page_over"}
    assert "say(`page_${how}`)" in source
    assert named | made == {word for word in WORDS if word.startswith("page_")}
    assert len(set(WORDS)) == len(WORDS)


# whom it lets in


async def test_who_opens_the_page_without_a_session_is_told_how(
    house: House, front: Front
) -> None:
    async with client_of(house, front, url=URL) as client:
        for path in ("/", "/?token=x", "/?token=<script>"):
            answer = await client.get(path, headers=HTML)
            assert answer.status_code == 401
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert phrase("page_closed").render(house.config.lang) in answer.text
            assert "<script" not in answer.text
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert "'none'" in answer.headers["content-security-policy"]
        problem(await client.get("/v1/watches", headers=HTML), 401, "no-token")
        problem(await client.get("/page/main.js", headers=HTML), 401, "no-token")


async def test_a_session_outlives_the_service_and_ends_with_the_token(
    house: House, web: httpx.AsyncClient
) -> None:
    transport = web._transport
    assert isinstance(transport, httpx.ASGITransport)
    guard = transport.app
    assert isinstance(guard, Guard)
    guard._tokens = front_of(house).tokens  # as after a restart
    assert (await web.get("/v1/watches")).status_code == 200
    await house.clock.advance(12 * 3600 + 1)
    problem(await web.get("/v1/watches"), 401, "no-token")


async def test_a_session_cannot_be_made_longer(
    house: House, web: httpx.AsyncClient
) -> None:
    name = f"koder-monitor-{PORT}"
    until, nonce, signed = str(web.cookies[name]).split(".")
    web.cookies.clear()
    for made in (
        f"{int(until) + 1}.{nonce}.{signed}",
        f"{until}.{nonce}x.{signed}",
        f"{until}.{nonce}.{signed[:-1]}0x",
        f"{until}.{nonce}.",
        f"{nonce}.{signed}",
        signed,
        ".",
        "..",
    ):
        headers = {"Cookie": f"{name}={made}"}
        problem(await web.get("/", headers=headers), 401, "no-token")
    good = {"Cookie": f"{name}={until}.{nonce}.{signed}"}
    assert (await web.get("/", headers=good)).status_code == 200
    house.clock.step_wall(-86400)  # it would be good for far too long
    problem(await web.get("/", headers=good), 401, "no-token")


# what it shows


async def test_a_watch_is_shown_with_its_waiters_in_their_order(
    house: House, web: httpx.AsyncClient
) -> None:
    watch_id, _ = await house.arm(session="s-1", resume="one")
    await house.arm(session="s-2", takes=True)
    shape = (await web.get(f"/v1/watches/{watch_id}")).json()
    waiters = [(one["number"], one["session"]) for one in shape["waiter_list"]]
    assert waiters == [(1, "s-1"), (2, "s-2")]
    assert [one["takes"] for one in shape["waiter_list"]] == [False, True]
    assert "joined" in [step["event"] for step in shape["trail"]]


async def test_an_outcome_is_open_until_it_is_acknowledged(
    house: House, web: httpx.AsyncClient
) -> None:
    watch_id, _ = await house.arm(session="s-1", label="the api")
    assert (await web.get("/v1/outcomes")).json() == []
    house.free("a")
    await house.go(31)
    assert await house.told(watch_id) == "released"
    (told,) = (await web.get("/v1/outcomes")).json()
    assert (told["watch_id"], told["session"]) == (watch_id, "s-1")
    assert (told["outcome"], told["read_at"]) == ("released", None)
    assert told["line"].startswith("✅ LIBERADO: lock a ")
    answer = await web.post(
        f"/v1/watches/{watch_id}/ack", json={}, headers={"Origin": URL}
    )
    assert answer.status_code == 200
    assert (await web.get("/v1/outcomes")).json() == []


async def test_a_damaged_outcome_is_shown_by_what_there_is(
    house: House, web: httpx.AsyncClient
) -> None:
    at = house.clock.wall().timestamp()
    add_watch(house.connection, "0a1", at=at, state="expired", ended_at=at, line="⏰ x")
    for number, outcome in enumerate([None, "{", "[]", '{"ending": "expired"}'], 1):
        add_waiter(
            house.connection,
            "0a1",
            number,
            at=at,
            state="told",
            told_at=at,
            outcome=outcome,
        )
    told = (await web.get("/v1/outcomes")).json()
    assert [one["line"] for one in told] == ["⏰ x"] * 4


async def test_hosts_are_shown_as_they_answer(tmp_path: Path) -> None:
    hosts = FakeHosts(FakeHost("box"), FakeHost("far"))
    hosts.of("far").silent = phrase("host_silent", host="<b>far")
    hosts.answered["box"] = HostState(
        name="box",
        reached_at=START,
        silent_since=START + timedelta(seconds=60),
        means="agent",
    )
    async with House(tmp_path, hosts=hosts) as house, client_of(house) as api:
        at = house.clock.wall().timestamp()
        add_watch(house.connection, "0a1", at=at, host="box")
        box, far = (await api.get("/v1/hosts")).json()
    assert (box["name"], box["means"], box["armed"]) == ("box", "agent", 1)
    assert box["reached_at"].startswith("2026-03-01T12:00:00")
    assert box["silent_since"].startswith("2026-03-01T12:01:00")
    assert (far["reached_at"], far["armed"]) == (None, 0)
    assert "<b>far" in far["last_error"]


async def test_without_hosts_there_are_none(api: httpx.AsyncClient) -> None:
    assert (await api.get("/v1/hosts")).json() == []


async def test_the_history_is_that_of_the_days_that_are_asked_for(
    house: House, api: httpx.AsyncClient
) -> None:
    at = house.clock.wall().timestamp()
    add_watch(house.connection, "0a1", at=at - 60, state="released", ended_at=at)
    shape = (await api.get("/v1/history", params={"days": 7})).json()
    assert shape["days"] == len(shape["history"]["days"]) == 7
    assert [one["id"] for one in shape["ended"]] == ["0a1"]
    assert len((await api.get("/v1/history")).json()["history"]["days"]) == 30
    for days in ("0", "367", "-1", "x", "9" * 20):
        answer = await api.get("/v1/history", params={"days": days})
        problem(answer, 400, "malformed")


async def test_a_store_that_cannot_be_read_is_told_as_such(
    house: House, api: httpx.AsyncClient
) -> None:
    watch_id, _ = await house.arm()

    assert house.hosting.read is not None
    house.hosting.read.set_progress_handler(lambda: 1, 1)
    for path in ("/v1/outcomes", "/v1/history", "/v1/hosts"):
        problem(await api.get(path), 503, "no-store")
    shape = (await api.get(f"/v1/watches/{watch_id}")).json()
    assert (shape["waiter_list"], shape["trail"]) == ([], [])
    house.hosting.read.set_progress_handler(None, 1)


@pytest.mark.parametrize(
    "evil",
    [
        "<img src=x onerror=alert(1)>",
        '"onmouseover=alert(1) x="',
        "</script><script>alert(1)</script>",
        "javascript:alert(1)",
    ],
)
async def test_what_others_wrote_stays_json_that_nothing_runs(
    evil: str, house: House, web: httpx.AsyncClient
) -> None:
    """B150: the page shows it as text, here it is JSON by its type."""
    at = house.clock.wall().timestamp()
    row = {"label": evil, "host": evil, "state": "expired", "ended_at": at}
    add_watch(house.connection, "0a1", at=at, **row)
    add_waiter(house.connection, "0a1", at=at, state="told", told_at=at, label=evil)
    for path in ("/v1/outcomes", "/v1/history", "/v1/watches/0a1"):
        answer = await web.get(path, headers=HTML)
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert evil in json.dumps(answer.json(), ensure_ascii=False).replace('\\"', '"')
