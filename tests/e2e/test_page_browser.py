"""The page in a real headless Chromium: live, by keyboard, on a phone (C10.1, B150)."""

import itertools
import json
import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest

from tests.e2e.browser import (
    BACKSPACE,
    ENTER,
    ESCAPE,
    LIMIT_S,
    Browser,
    browser,
    driver,
)
from tests.e2e.command import Place, Running, until
from tests.rows import add_waiter, add_watch, opened

MISSING = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(MISSING) and os.environ.get("CI") != "true",
        reason=f"not installed: {', '.join(MISSING)}",
    ),
]

LIVE, LOST, OVER = "ao vivo", "sem ligação com o serviço", "a sessão desta página"
EVIL = "<img src=x onerror=window.hacked=1>"
EVILS = [
    EVIL,
    '"onmouseover=window.hacked=1 x="',
    "</script><script>window.hacked=1</script>",
    "javascript:window.hacked=1",
]
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def chromedriver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with driver(tmp_path_factory.mktemp("chromedriver")) as client:
        yield client


class Page:
    """A service and a browser that may open its page."""

    def __init__(self, place: Place, browser: Browser, listen: str) -> None:
        self.place = place
        self.browser = browser
        self.listen = listen
        self.url = ""
        self.service: Running | None = None

    def serve(self) -> str:
        """Start the service and return the address of its page."""
        command = self.place.start("serve", "--listen", self.listen)
        until(lambda: "\n" in command.stdout() or command.process.poll() is not None)
        address = command.stdout().strip()
        assert "/?token=" in address, command.stderr()
        self.url = address.partition("?")[0]
        self.listen = urlsplit(address).netloc  # the same one after a restart
        self.service = command
        return address

    def kill(self) -> None:
        assert self.service is not None
        self.service.send(signal.SIGKILL)
        self.service.process.wait(LIMIT_S)

    def open(self) -> None:
        self.browser.open(self.serve())
        self.browser.shows(LIVE, "#state")

    def arm(self, *words: str) -> str:
        """Arm a watch that nobody waits for, and return its id."""
        ended = self.place.run(words[0], "--detach", *words[1:])
        assert ended.status == 0, ended
        (said,) = [line for line in ended.err if line.startswith("id: ")]
        return said.removeprefix("id: ")

    def watch(self, watch_id: str) -> dict[str, Any]:
        return self.place.run("show", watch_id, "--json").object

    def card(self, watch_id: str) -> str:
        """Wait for the card of a watch, and return a selector of it."""
        selector = f'[data-id="{watch_id}"]'
        self.browser.becomes("return !!document.querySelector(arguments[0])", selector)
        return selector

    def is_clean(self) -> None:
        """Check that nothing ran, nothing complained and nothing left the service."""
        assert self.browser.run("return window.hacked") is None
        assert self.browser.complaints() == []
        asked = self.browser.asked()
        assert asked
        assert [url for url in asked if not url.startswith(self.url)] == []


@pytest.fixture
def page(place: Place, chromedriver: httpx.Client, tmp_path: Path) -> Iterator[Page]:
    # An address of its own: after a restart the port must be free for sure.
    pid, number = os.getpid(), next(_NUMBERS)
    host = f"127.{1 + pid // 250 % 250}.{1 + pid % 250}.{number}"
    with browser(chromedriver, tmp_path, host) as one:
        yield Page(place, one, f"{host}:8765")


def is_phone(page: Page) -> None:
    """Check that nothing is wider than the screen of a phone."""
    page.browser.devtools(
        "Emulation.setDeviceMetricsOverride",
        width=360,
        height=740,
        deviceScaleFactor=1,
        mobile=True,
    )
    page.browser.becomes("return innerWidth === 360")
    assert page.browser.run(_TOO_WIDE) == []


_CARDS = """
const shown = [...document.querySelectorAll(".card h3")].map((one) => one.innerText);
return shown.join() === arguments[0].join();
"""

_TOO_WIDE = """
return [...document.querySelectorAll("body *")]
  .filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > 360.5)
  .filter((one) => !one.closest(".columns, thead"))
  .map((one) => one.outerHTML.slice(0, 200))
  .concat(document.documentElement.scrollWidth > 360 ? ["the page itself"] : []);
"""

_FAINT = """
const shade = (text) => {
  const [r, g, b] = text.match(/[\\d.]+/g).map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (one) => {
  const color = getComputedStyle(one).backgroundColor;
  return color === "rgba(0, 0, 0, 0)" ? ground(one.parentElement) : color;
};
return [...document.querySelectorAll("body *")]
  .filter((one) => one.checkVisibility())
  .filter((one) => [...one.childNodes].some((node) => node.nodeType === 3))
  .filter((one) => {
    const colors = [getComputedStyle(one).color, ground(one)];
    const [dark, light] = colors.map(shade).sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05) < 4.5;
  })
  .map((one) => one.outerHTML.slice(0, 200));
"""


def test_an_address_opens_the_page_once_also_behind_a_link_of_another_site(
    page: Page,
) -> None:
    """A cookie that is SameSite=Strict does not go along with such a redirect."""
    address = page.serve()
    link = quote(f'<a id="it" href="{address}">it</a>')
    page.browser.open(f"data:text/html,{link}")
    page.browser.asked()
    page.browser.run("document.getElementById('it').click()")
    page.browser.shows(LIVE, "#state")
    assert page.browser.run("return location.href") == page.url
    assert page.browser.run("return document.cookie") == ""
    (cookie,) = page.browser.call("GET", "/cookie")
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    page.is_clean()
    page.browser.call("POST", "/refresh")
    page.browser.shows(LIVE, "#state")
    page.browser.call("DELETE", "/cookie")
    page.browser.open(address)
    page.browser.shows("koder-monitor page")
    assert LIVE not in page.browser.text()


def test_what_happens_is_shown_without_a_reload(page: Page) -> None:
    page.open()
    page.browser.run("window.kept = true")
    page.browser.shows("nada armado", "#waits")
    lock = page.place.hold("demo", json.dumps({"session": "s-holder", "pid": 4711}))
    watch_id = page.arm("lock", "demo", "--session", "s-1", "--resume", "o deploy")
    card = page.card(watch_id)
    for text in (
        "demo",
        "lock demo",
        "ativo",
        "s-holder · PID 4711",
        "s-1",
        "o deploy",
    ):
        page.browser.shows(text, card)
    left = page.browser.text(f"{card} .left")
    assert left.startswith("faltam ")
    value = page.browser.run("return document.querySelector('progress').value")
    assert 0 < value <= 1
    page.browser.becomes(
        "return document.querySelector('.left').innerText !== arguments[0]"
        " && document.querySelector('progress').value < arguments[1]",
        left,
        value,
    )
    page.place.run("lock", "demo", "--detach", "--session", "s-2")
    page.browser.run("document.querySelector('.card details').open = true")
    page.browser.shows("s-2", f"{card} .waiters")
    assert page.browser.text(f"{card} .waiters").index("s-1") < page.browser.text(
        f"{card} .waiters"
    ).index("s-2")
    page.browser.shows("lstat", card)
    lock.unlink()
    page.browser.shows("✅ LIBERADO: lock demo", "#outcomes")
    page.browser.shows("não lido", "#outcomes")
    page.browser.shows("nada armado", "#waits")
    page.browser.shows("✅ LIBERADO: lock demo", "#pings")
    page.browser.becomes(
        "return document.querySelectorAll('.columns li').length === 30"
    )
    page.browser.shows("1 casos", "#history")
    assert page.browser.run("return window.kept") is True
    page.is_clean()


def test_a_lock_whose_holder_is_dead_is_shown_as_orphaned(page: Page) -> None:
    here, dead = socket.gethostname(), 4194303
    holder = {"session": "s-gone", "host": here, "pid": dead}
    page.place.hold("left", json.dumps(holder))
    page.open()
    card = page.card(page.arm("lock", "left"))
    page.browser.shows(f"s-gone · {here} · PID {dead} · órfão", card)
    page.browser.shows("ativo", card)
    page.is_clean()


def test_a_host_is_shown_as_it_answers(page: Page) -> None:
    page.open()
    page.browser.shows("nenhum host em uso", "#hosts")
    there = "127.0.0.1:1"  # where nobody listens
    command = page.place.start("port", "5432", "--free", "--host", there)
    command.armed()
    page.browser.shows(there, "#hosts")
    page.browser.shows("sem resposta desde", "#hosts")
    page.browser.shows("Esperas: 1", "#hosts")
    page.browser.shows("sem leitura", "#waits")
    page.browser.shows(f"{there} · sem resposta desde", ".card dl")
    page.is_clean()


def test_a_person_renews_removes_and_acknowledges_by_the_keyboard_alone(
    page: Page,
) -> None:
    for slug in ("one", "two"):
        page.place.hold(slug)
    page.open()
    one = page.arm("lock", "one", "--ttl", "50m")
    two = page.arm("lock", "two", "--ttl", "55m")
    page.card(one)
    page.card(two)
    page.browser.tab_to("filtrar por rótulo, alvo, host ou sessão")
    page.browser.press("two")
    page.browser.becomes(_CARDS, ["two"])
    page.browser.press("?")
    page.browser.shows("nada casa com o filtro", "#waits")
    page.browser.press(BACKSPACE * 4)
    page.browser.becomes(_CARDS, ["one", "two"])  # the nearest deadline first
    page.place.run("assess", one)  # which sees no progress: renewing needs a reason
    page.place.run("assess", one)

    page.browser.tab_to("Renovar one")
    page.browser.press(ENTER)
    page.browser.shows("Renovar one", "dialog")
    page.browser.press(ENTER)
    page.browser.becomes(
        "return document.querySelector('dialog .wrong').innerText.includes('--why')"
    )
    page.browser.press("o build ainda escreve", ENTER)
    page.browser.shows("one: prazo renovado", "#said")
    page.browser.becomes("return !document.querySelector('dialog')")
    renewed = page.watch(one)
    assert renewed["renewals"] == 1
    whys = [step["detail"].get("why") for step in renewed["trail"] if step["detail"]]
    assert "o build ainda escreve" in whys

    page.browser.tab_to("Remover two")
    page.browser.press(ENTER)
    page.browser.shows("Remover two", "dialog")
    page.browser.press(ESCAPE)
    page.browser.becomes("return !document.querySelector('dialog')")
    assert page.watch(two)["state"] == "armed"
    assert page.browser.run("return document.activeElement.innerText") == "Remover"
    page.browser.press(ENTER)
    page.browser.shows("Remover two", "dialog")
    page.browser.press(ENTER)  # without a reason it does nothing
    assert page.watch(two)["state"] == "armed"
    page.browser.press("cancelado à mão", ENTER)
    page.browser.shows("two: removido", "#said")
    page.browser.shows("🚫 REMOVIDO: lock two — cancelado à mão", "#outcomes")
    assert page.watch(two)["state"] == "removed"

    page.browser.tab_to("Reconhecer: two")
    page.browser.press(ENTER)
    page.browser.shows("tudo reconhecido", "#outcomes")
    assert page.watch(two)["acknowledged"] is True
    page.browser.complaints()  # the answer that asked for a reason is on the console
    page.is_clean()


def evil_store(page: Page) -> None:
    """Leave what others wrote wherever a row has a place for it."""
    store, now = opened(page.place.state), time.time()
    for number, evil in enumerate(EVILS):
        watch_id = f"0{number}"
        row: dict[str, object]
        row = {"label": evil, "host": evil, "target": f"log {evil}", "line": evil}
        add_watch(
            store, watch_id, at=now - 60, state="expired", ended_at=now - 1, **row
        )
        more: dict[str, object] = {"session": evil, "resume": evil, "outcome": "{"}
        add_waiter(
            store, watch_id, 1, at=now, label=evil, state="told", told_at=now, **more
        )
    store.close()


def test_what_others_wrote_is_shown_as_text_and_never_runs(page: Page) -> None:
    """B150: in a label, a host, a path, a pattern, a holder, an activity."""
    evil_store(page)
    folder = page.place.folder / "x <img src=x onerror=window.hacked=1>"
    folder.mkdir()
    page.place.hold("held", json.dumps({"session": EVIL, "host": EVILS[1]}))
    page.open()
    ids = [
        page.arm("lock", "held", "--label", EVIL, "--resume", EVILS[2]),
        page.arm("file", str(folder / "y"), "--exists"),
        page.arm("log", str(folder / "z"), "--pass", EVILS[2]),
        page.arm("command", "--label", EVILS[3], "--", "false", EVILS[1]),
    ]
    for watch_id in ids:
        page.browser.shows("ativo", page.card(watch_id))
    page.browser.run(
        "document.querySelectorAll('details').forEach((d) => d.open = true)"
    )
    page.browser.becomes(
        "return document.querySelectorAll('.waiters').length === arguments[0]", len(ids)
    )
    seen = page.browser.text()
    for evil in EVILS:
        assert evil in seen
        assert evil in page.browser.text("#outcomes")
        assert evil in page.browser.text("#history")
    page.browser.run(
        "for (const one of document.querySelectorAll('*'))"
        " one.dispatchEvent(new MouseEvent('mouseover', {bubbles: true}))"
    )
    assert (
        page.browser.run(
            "return [...document.querySelectorAll('img, iframe, object, embed,"
            " script:not([src]), [onerror], [onmouseover], [href^=javascript]')].length"
        )
        == 0
    )
    page.browser.tab_to(f"Remover {EVIL}")
    page.browser.press(ENTER)
    page.browser.shows(f"Remover {EVIL}", "dialog")
    page.browser.press(EVIL, ENTER)
    page.browser.shows(f"{EVIL}: removido", "#said")
    page.is_clean()


def test_it_fits_a_phone_in_light_and_dark_and_english(page: Page) -> None:
    config = page.place.folder / "config.toml"
    config.write_text('lang = "en"\n')
    page.place.env["KODER_MONITOR_CONFIG"] = str(config)
    evil_store(page)
    long = "long-" * 50
    page.browser.open(page.serve())
    page.browser.shows("live", "#state")
    assert page.browser.run("return document.documentElement.lang") == "en"
    page.place.hold("held", json.dumps({"session": long[:100], "since": long}))
    watch_id = page.arm("lock", "held", "--label", long, "--resume", long)
    page.browser.shows("held by", page.card(watch_id))
    page.browser.shows("How long waits were", "#history")
    page.browser.run(
        "document.querySelectorAll('details').forEach((d) => d.open = true)"
    )
    page.browser.shows("waiting until", "#waits")
    is_phone(page)
    grounds = set()
    for scheme in ("light", "dark"):
        page.browser.devtools(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        page.browser.becomes("return matchMedia(arguments[0]).matches", _scheme(scheme))
        assert page.browser.run(_FAINT) == []
        grounds.add(
            page.browser.run("return getComputedStyle(document.body).backgroundColor")
        )
    assert len(grounds) == 2
    page.browser.run("document.querySelector('.card footer button').click()")
    page.browser.shows("new deadline", "dialog")
    is_phone(page)
    page.is_clean()


def _scheme(name: str) -> str:
    return f"(prefers-color-scheme: {name})"


def test_it_comes_back_after_a_restart_until_its_session_is_over(page: Page) -> None:
    page.place.hold("demo")
    page.open()
    page.browser.run("window.kept = true")
    page.card(page.arm("lock", "demo"))
    page.kill()
    page.browser.shows(LOST, "#state")
    page.browser.shows("demo", "#waits")
    page.serve()
    page.browser.shows(LIVE, "#state")
    page.place.hold("later")
    page.card(page.arm("lock", "later"))
    page.kill()
    (page.place.state / "token").unlink()
    page.serve()
    page.browser.shows(OVER, "#state")
    assert "koder-monitor page" in page.browser.text("#state")
    assert page.browser.run(
        "return [...document.querySelectorAll('main button')].every((b) => b.disabled)"
    )
    assert page.browser.run("return window.kept") is True


@contextmanager
def two_pages(page: Page, client: httpx.Client, folder: Path) -> Iterator[Browser]:
    """Give a second browser that has the same page open."""
    with ExitStack() as stack:
        folder.mkdir()
        host = page.listen.partition(":")[0]
        other = stack.enter_context(browser(client, folder, host))
        page.open()
        other.open(page.place.run("page").line)
        other.shows(LIVE, "#state")
        yield other


def test_what_one_person_does_another_sees(
    page: Page, chromedriver: httpx.Client, tmp_path: Path
) -> None:
    page.place.hold("demo")
    with two_pages(page, chromedriver, tmp_path / "other") as other:
        watch_id = page.arm("lock", "demo")
        other.shows("demo", page.card(watch_id))
        page.browser.tab_to("Remover demo")
        page.browser.press(ENTER)
        page.browser.shows("Remover demo", "dialog")
        page.browser.press("feito", ENTER)
        other.shows("🚫 REMOVIDO: lock demo — feito", "#outcomes")
