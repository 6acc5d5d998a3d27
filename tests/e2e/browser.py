"""A real headless Chromium, by the WebDriver protocol of its own driver.

Nothing but loopback can be reached from it: every name is unknown to it. Format: W3C
WebDriver, and Chromium's `goog/cdp` for what that lacks.
"""

import base64
import contextlib
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

import httpx

from tests.e2e.command import until

Value: TypeAlias = Any
"""What a page or the driver gives: any JSON value."""

LIMIT_S = 40.0
"""Seconds until a test gives up; two loaded cores are slow with a browser."""

BACKSPACE, TAB, ENTER, ESCAPE = "\ue003", "\ue004", "\ue007", "\ue00c"

_STARTED = re.compile(r"started successfully on port (\d+)")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-proxy-server",
    "--force-color-profile=srgb",
    "--window-size=1280,900",
)


@dataclass(slots=True)
class Browser:
    """One session of a browser, and everything that it asked for so far."""

    client: httpx.Client
    session: str

    def call(self, method: str, path: str, **body: object) -> Value:
        """Give a command of the protocol and return what it answers.

        Raises:
            AssertionError: it cannot be carried out.
        """
        sent = {"json": body} if method == "POST" else {}
        answer = self.client.request(method, f"/session/{self.session}{path}", **sent)  # type: ignore[arg-type]  # httpx's own
        value = answer.json()["value"]
        assert answer.is_success, value
        return value

    def open(self, url: str) -> None:
        self.call("POST", "/url", url=url)

    def run(self, script: str, *values: object) -> Value:
        """Run a script in the page and return its value."""
        return self.call("POST", "/execute/sync", script=script, args=list(values))

    def devtools(self, command: str, **params: object) -> Value:
        return self.call("POST", "/goog/cdp/execute", cmd=command, params=params)

    def press(self, *keys: str) -> None:
        """Press keys, one behind the other, wherever the focus is."""
        actions = [
            {"type": kind, "value": key}
            for text in keys
            for key in text
            for kind in ("keyDown", "keyUp")
        ]
        keyboard = {"type": "key", "id": "keyboard", "actions": actions}
        self.call("POST", "/actions", actions=[keyboard])

    def tab_to(self, label: str) -> None:
        """Press Tab until the element of this name has the focus."""
        for _ in range(80):
            self.press(TAB)
            if self.run(_FOCUSED) == label:
                return
        message = f"no way to {label!r} by the keyboard; at {self.run(_FOCUSED)!r}"
        raise AssertionError(message)

    def text(self, selector: str = "body") -> str:
        """Return what a person sees of an element, nothing where there is none."""
        found = self.run(
            "return document.querySelector(arguments[0])?.innerText", selector
        )
        return str(found or "")

    def shows(self, text: str, selector: str = "body") -> None:
        """Wait until a text is to be seen."""
        until(lambda: text in self.text(selector), limit_s=LIMIT_S)

    def becomes(self, script: str, *values: object) -> Value:
        """Wait until a script returns something, and return that."""
        return until(lambda: self.run(script, *values), limit_s=LIMIT_S)

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        found = self.devtools(
            "Page.captureScreenshot", format="png", captureBeyondViewport=whole
        )
        path.write_bytes(base64.b64decode(found["data"]))

    def complaints(self) -> list[str]:
        """Return what stands on the console and is worse than a remark."""
        found = self.call("POST", "/se/log", type="browser")
        return [
            one["message"] for one in found if one["level"] in {"SEVERE", "WARNING"}
        ]

    def asked(self) -> list[str]:
        """Return every address that was asked for since the last time."""
        found = self.call("POST", "/se/log", type="performance")
        events = [json.loads(one["message"])["message"] for one in found]
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]


_FOCUSED = """
const at = document.activeElement;
return at.getAttribute("aria-label") || at.innerText || at.id || at.tagName;
"""


@contextlib.contextmanager
def driver(folder: Path) -> Iterator[httpx.Client]:
    """Run the driver, and give a client that asks it."""
    said = folder / "driver.log"
    home = folder / "browser-home"
    home.mkdir()
    with said.open("wb") as out:
        process = _start(out, home)
    try:

        def port() -> str | None:
            assert process.poll() is None, said.read_text()
            found = _STARTED.search(said.read_text())
            return found[1] if found else None

        url = f"http://127.0.0.1:{until(port, limit_s=LIMIT_S)}"
        with httpx.Client(base_url=url, timeout=LIMIT_S, trust_env=False) as client:
            yield client
    finally:
        process.terminate()
        process.wait(LIMIT_S)


def _start(out: IO[bytes], home: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        ["chromedriver", "--port=0"],
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=out,
        cwd=home,
        env={
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PATH": os.environ["PATH"],
            "TZ": "UTC",
        },
    )


@contextlib.contextmanager
def browser(client: httpx.Client, folder: Path, address: str) -> Iterator[Browser]:
    """Give a browser of its own that reaches one address and nothing else."""
    options = {
        "args": [
            *_FLAGS,
            f"--user-data-dir={folder / 'profile'}",
            f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {address}",
        ]
    }
    wanted: Mapping[str, object] = {
        "browserName": "chrome",
        "goog:chromeOptions": options,
        "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
    }
    body = {"capabilities": {"alwaysMatch": wanted}}
    answer = client.post("/session", json=body)
    assert answer.is_success, answer.text
    one = Browser(client, answer.json()["value"]["sessionId"])
    try:
        one.open("about:blank")
        one.asked()  # of the page that every browser starts with
        yield one
    finally:
        client.delete(f"/session/{one.session}")
