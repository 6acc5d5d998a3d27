"""A program that arms a pattern over the API never matches it itself (C3.3)."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence

import pytest

from tests.data import __file__ as data
from tests.e2e.command import Place, unique, until
from watcher.client import Client

_ASK = """
import http.client, json, socket, sys
target, path, address, token = sys.argv[1:5]
if address:
    connection = http.client.HTTPConnection(address)
else:
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(path)
headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
for call in ("/v1/check", "/v1/watches"):
    connection.request("POST", call, json.dumps({"target": target}), headers)
    print(connection.getresponse().read().decode())
"""


def asked(place: Place, words: Sequence[str]) -> list[dict[str, object]]:
    """Ask by a program whose command line, and its shell's, holds the pattern."""
    program = [sys.executable, "-c", _ASK, *words]
    shell = ["bash", "-c", '"$@"; true', "ask", *program]
    said = subprocess.run(shell, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in said.stdout.splitlines()]


@pytest.mark.parametrize("way", ["socket", "tcp"])
def test_whoever_asks_is_no_match(place: Place, way: str) -> None:
    env = {"KODER_MONITOR_TOKEN": "t-0123456789"}
    running = place.start("serve", "--listen", "127.0.0.1:0", env=env)
    address = ""
    until(lambda: "http://" in running.stdout())
    if way == "tcp":
        address = running.stdout().split("://")[1].split("/")[0]
    place.service()
    path = str(place.state / "monitor.sock")
    word = unique()
    words = [f"process --match {word}", path, address, env["KODER_MONITOR_TOKEN"]]
    checked, armed = asked(place, words)
    assert checked["observation"] == "unknown", checked
    assert armed["observation"] != "held", armed
    until(lambda: place.watches("--all")[0]["state"] == "unseen")


def test_a_store_of_an_older_version_is_said_to_be_brought_up_to_date(
    place: Place,
) -> None:
    place.state.mkdir(mode=0o700)
    shutil.copy(data.replace("__init__.py", "0.1.0.db"), place.database)
    said = place.run("doctor", "--lang", "en")
    assert "being brought up to date" in said.out
    said = place.run("list", "--lang", "en")
    assert any("ask again in a few seconds" in line for line in said.err)
    until(lambda: place.run("list", "--all", "--json").out.strip() not in {"", "[]"})


def test_who_waits_for_an_outcome_is_let_go_when_the_service_is_stopped(
    place: Place,
) -> None:
    place.hold()
    running = place.start("serve")
    place.service()
    client = Client(str(place.state))
    _, armed = client.request("POST", "/v1/watches", {"target": "lock demo"})
    assert isinstance(armed, dict)
    path = f"/v1/watches/{armed['id']}/outcome?wait_s=60"
    with client.send("GET", path, limit_s=90) as pending:
        running.send(signal.SIGTERM)
        assert pending.read() == (204, None)
    assert running.end().status == 0
