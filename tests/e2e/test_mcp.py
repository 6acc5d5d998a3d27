"""`koder-monitor mcp` as an agent starts it: the official client, and raw lines.

B152: whatever prints, stdout carries the protocol alone. B154: a call that is repeated
makes no second watch, waiter or ping.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any, Literal

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, TextContent

from tests.e2e.command import COMMAND, LIMIT_S, Place, steering, until

_TEE = '"$@" | tee -a mcp-out'
_MODULE = (*COMMAND[1:], "mcp", "--lang", "en")

TOOLS = ["arm", "list", "check", "assess", "renew", "remove"]

# Started before anything of ours: prints by every way there is, once stdout is ours.
PRINTS = """
import os, subprocess, sys, threading, time

def talk(first):
    while os.fstat(1).st_ino == first:
        time.sleep(0.002)
    print("printed by python", flush=True)
    os.write(1, b"written to descriptor 1\\n")
    subprocess.run(["sh", "-c", "echo said by a child; cat"])

if "mcp" in sys.orig_argv:
    first = os.fstat(1).st_ino
    threading.Thread(target=talk, args=(first,), daemon=True).start()
"""


def messages(out: Path) -> list[dict[str, Any]]:
    """Return what was written to stdout: each line is a message of JSON-RPC."""
    found = []
    for line in out.read_text("utf-8").splitlines():
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        assert "method" in message or "result" in message or "error" in message
        assert steering(line) == []
        found.append(message)
    return found


@asynccontextmanager
async def client(
    place: Place,
    *options: str,
    env: Mapping[str, str] | None = None,
    mode: Literal["auto", "legacy"] = "auto",
) -> AsyncIterator[Client]:
    """Connect the official client; at the end, every line of stdout was a message."""
    out, err = place.folder / "mcp-out", place.folder / "mcp-err"
    server = StdioServerParameters(
        command="bash",
        args=["-c", _TEE, "-", sys.executable, *options, *_MODULE],
        env={**place.env, **(env or {})},
        cwd=place.folder,
    )
    with err.open("a") as errlog:
        async with Client(stdio_client(server, errlog), mode=mode) as connected:
            yield connected
    assert messages(out)
    told = err.read_text("utf-8")
    assert "Exception" not in told, told


def text(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def shape(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, text(result)
    found = result.structured_content
    assert isinstance(found, dict)
    return found


async def use_every_tool(session: Client, place: Place) -> None:
    """Call each tool once as it should be, and once not."""
    lock = place.hold("demo")
    listed = await session.list_tools()
    assert [tool.name for tool in listed.tools] == TOOLS
    armed = shape(await session.call_tool("arm", {"target": "lock demo"}))
    watch_id = armed["id"]
    (watch,) = shape(await session.call_tool("list", {}))["watches"]
    assert watch["id"] == watch_id
    assert watch["line"] is None
    seen = shape(await session.call_tool("check", {"what": "lock demo"}))
    assert seen["observation"] == "held"
    weighed = shape(await session.call_tool("assess", {"what": watch_id}))
    assert weighed["verdict"] in {"renew", "remove", "ask"}
    call = {"id": watch_id, "ttl": "2h", "why": "it is at work"}
    assert shape(await session.call_tool("renew", call))["renewals"] == 1
    call = {"id": watch_id, "why": "not needed"}
    assert shape(await session.call_tool("remove", call))["state"] == "removed"
    lock.unlink()
    for name in TOOLS:
        assert (await session.call_tool(name, {"no": "such"})).is_error
    with pytest.raises(MCPError):
        await session.call_tool("disarm", {})


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_uses_every_tool(
    place: Place, mode: Literal["auto", "legacy"]
) -> None:
    async with client(place, mode=mode) as session:
        assert session.server_info is not None
        assert session.server_info.name == "koder-monitor"
        assert session.instructions
        await use_every_tool(session, place)
    assert (place.folder / "mcp-err").read_text() == ""


async def test_nothing_but_the_protocol_reaches_stdout(place: Place) -> None:
    site = place.folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(PRINTS)
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {"PYTHONPATH": path, "KODER_MONITOR_DEBUG": "1"}
    async with client(place, "-W", "always", "-X", "dev", env=env) as session:
        told = place.folder / "mcp-err"
        # Whoever reads stdin finds its end, so the child has ended too.
        said = ("printed by python", "written to descriptor 1", "said by a child")
        await asyncio.to_thread(
            until, lambda: all(line in told.read_text() for line in said)
        )
        await use_every_tool(session, place)
    assert "DEBUG:" in told.read_text()  # what is logged is told, elsewhere


async def test_an_outcome_is_waited_for_and_pinged_once(place: Place) -> None:
    lock = place.hold("demo")
    async with client(place) as session:
        call = {"target": "lock demo", "ttl": "10m", "resume": "the deploy"}
        armed = shape(await session.call_tool("arm", call))
        again = [session.call_tool("arm", call) for _ in range(2)]
        for result in await asyncio.gather(*again):
            assert (shape(result)["id"], shape(result)["waiters"]) == (armed["id"], 1)
        waits = [
            session.call_tool("check", {"what": armed["id"], "wait_s": 40}),
            session.call_tool("arm", {**call, "wait_s": 40}),
        ]
        waiting = asyncio.gather(*waits)
        lock.unlink()
        for result in await waiting:
            assert "✅ LIBERADO: lock demo " in text(result)
            assert shape(result)["outcome"]["watch_id"] == armed["id"]
    await asyncio.to_thread(place.ping, "✅ LIBERADO: lock demo ")
    (watch,) = place.watches("--all")
    assert watch["id"] == armed["id"]


async def test_a_call_that_the_client_gave_up_is_taken_up_again(place: Place) -> None:
    place.hold("demo")
    async with client(place) as session:
        call = {"target": "lock demo", "wait_s": 40}
        with pytest.raises(MCPError, match="timed out"):
            await session.call_tool("arm", call, read_timeout_seconds=3.0)
        again = shape(await session.call_tool("arm", {**call, "wait_s": 0}))
        assert again["waiters"] == 1
        assert [watch["id"] for watch in place.watches()] == [again["id"]]


# Raw lines


class Raw:
    """The command, spoken to by hand."""

    def __init__(self, place: Place, **env: str) -> None:
        self.err = place.folder / "raw-err"
        with self.err.open("wb") as err:
            self.process = subprocess.Popen(
                [*COMMAND, "mcp"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                env={**place.env, **env},
                cwd=place.folder,
            )
        self._number = 0
        version = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        }
        self.send("initialize", version)
        assert self.read()["result"]["serverInfo"]["name"] == "koder-monitor"
        self._write({"method": "notifications/initialized"})

    def send(self, method: str, params: Mapping[str, object]) -> int:
        """Send a request, and do not wait for its answer."""
        self._number += 1
        self._write({"id": self._number, "method": method, "params": params})
        return self._number

    def call(self, tool: str, **arguments: object) -> int:
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def read(self) -> dict[str, Any]:
        """Return the next message."""
        message = json.loads(self._out.readline())
        assert message["jsonrpc"] == "2.0"
        assert isinstance(message, dict)
        return message

    def close(self) -> list[dict[str, Any]]:
        """Close stdin, and return what still came before it ended well."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        rest = [json.loads(line) for line in self._out]
        assert self.process.wait(LIMIT_S) == 0
        assert "Traceback" not in self.err.read_text()
        return rest

    def kill(self, number: signal.Signals = signal.SIGKILL) -> int:
        self.process.send_signal(number)
        return self.process.wait(LIMIT_S)

    @property
    def _out(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def _write(self, message: Mapping[str, object]) -> None:
        assert self.process.stdin is not None
        line = json.dumps({"jsonrpc": "2.0", **message})
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()


@pytest.fixture
def raw(place: Place) -> Iterator[Raw]:
    """Give a server that is initialized, and leave none."""
    raw = Raw(place)
    yield raw
    raw.process.kill()
    for stream in (raw.process.stdin, raw.process.stdout):
        assert stream is not None
        try:
            stream.close()
        except BrokenPipeError:
            continue
    raw.process.wait(LIMIT_S)


def result(message: Mapping[str, Any]) -> dict[str, Any]:
    found = message["result"]["structuredContent"]
    assert isinstance(found, dict)
    return found


def test_an_answer_that_nobody_reads_makes_no_second_watch(
    place: Place, raw: Raw
) -> None:
    lock = place.hold("demo")
    asked = [raw.call("arm", target="lock demo", ttl="9m") for _ in range(3)]
    answers = [raw.read() for _ in asked]
    assert {answer["id"] for answer in answers} == set(asked)
    (watch_id,) = {result(answer)["id"] for answer in answers}
    assert place.watch()["id"] == watch_id
    assert place.watch()["waiters"] == 1
    lock.unlink()
    place.ping("LIBERADO: lock demo ")
    assert len(place.watches("--all")) == 1


def test_at_the_end_of_stdin_it_ends_and_the_watch_lives_on(
    place: Place, raw: Raw
) -> None:
    lock = place.hold("demo")
    raw.call("arm", target="lock demo", ttl="9m")
    watch_id = result(raw.read())["id"]
    # In the middle of a long wait, which could go on for longer than we look.
    waiting = raw.call("check", what=watch_id, wait_s=45)
    last = raw.send("ping", {})
    rest = raw.close()
    assert {message["id"] for message in rest} <= {waiting, last}
    assert place.watch()["state"] == "armed"
    lock.unlink()
    place.ping("LIBERADO: lock demo ")


def test_killed_it_leaves_the_watch_and_its_one_ping(place: Place, raw: Raw) -> None:
    lock = place.hold("demo")
    raw.call("arm", target="lock demo", ttl="9m")
    watch_id = result(raw.read())["id"]
    raw.call("check", what=watch_id, wait_s=45)
    assert raw.kill() == -signal.SIGKILL
    assert place.watch()["id"] == watch_id
    lock.unlink()
    place.ping("LIBERADO: lock demo ")


def test_it_ends_by_a_signal_while_it_waits_for_its_client(raw: Raw) -> None:
    assert raw.kill(signal.SIGINT) == 130
    assert raw.err.read_text() == ""


def test_it_ends_when_its_client_reads_no_more(place: Place, raw: Raw) -> None:
    raw._out.close()
    raw.send("ping", {})
    assert raw.process.wait(LIMIT_S) == 0
    assert raw.err.read_text() == ""


def test_lines_that_are_no_messages_end_nothing(place: Place, raw: Raw) -> None:
    assert raw.process.stdin is not None
    raw.process.stdin.write(b'hello\n{"a": \n[]\n\xff\xfe\n\n' + b"[" * 100000 + b"\n")
    number = raw.send("ping", {})
    answer = raw.read()
    while "id" not in answer or answer["id"] != number:
        assert "error" in answer
        answer = raw.read()
    assert answer["result"] == {}


def test_the_session_of_the_agent_is_the_one_that_waits(place: Place) -> None:
    place.hold("demo")
    raw = Raw(place, CLAUDE_CODE_SESSION_ID="s-1")
    raw.call("arm", target="lock demo")
    assert result(raw.read())["session"] == "s-1"
    raw.close()
    raw._out.close()


def test_without_its_extra_it_says_which_to_install(place: Place) -> None:
    site = place.folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import sys; sys.modules['mcp'] = None\n")
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    ended = place.run("mcp", env={"PYTHONPATH": path})
    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "koder-monitor: erro: "
        "falta o extra mcp; rode: pip install 'koder-monitor[mcp]'",
    )
