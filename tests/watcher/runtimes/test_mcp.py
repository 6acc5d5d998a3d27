"""The MCP server in this process: its tools by the official client (C11.4)."""

import asyncio
import json
import os
import re
import signal
import tomllib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, TextContent

from policies.model import Ending, Sight
from policies.wording import phrase
from tests.fakes import until
from tests.services import service_pid
from watcher.errors import ServiceError, UsageError
from watcher.runtimes import mcp_server, mcp_tools, mcp_waits, mcp_wire
from watcher.runtimes.mcp_asked import Arm, folder
from watcher.runtimes.mcp_server import TOOLS, build_server, described
from watcher.runtimes.mcp_tools import Tools
from watcher.runtimes.mcp_waits import Waiter, stands
from watcher.runtimes.mcp_wire import Wire

LIMIT_S = 20.0  # for what takes milliseconds


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a lock directory, with a state directory and a service of its own."""
    folder = tmp_path / "locks"
    folder.mkdir()
    monkeypatch.setenv("KODER_MONITOR_LOCKS_DIR", str(folder))
    monkeypatch.setenv("KODER_MONITOR_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("KODER_MONITOR_FLOOR", "1s")
    monkeypatch.setenv("KODER_MONITOR_SETTLE", "20ms")
    yield folder
    pid = service_pid(tmp_path / "state")
    if pid is not None:
        os.kill(pid, signal.SIGKILL)


def hold(locks: Path, slug: str = "a") -> Path:
    path = locks / f"lock-{slug}.md"
    path.touch()
    return path


def client(tools: Tools | None = None) -> Client:
    return Client(build_server(tools or Tools("en")))


def text(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def shape(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, text(result)
    found = result.structured_content
    assert isinstance(found, dict)
    assert found["message"] == text(result)
    return found


def refusal(result: CallToolResult) -> str:
    assert result.is_error
    assert "\n" not in text(result)
    assert text(result).startswith("error: ")
    return text(result).removeprefix("error: ")


# What is offered


def test_there_are_six_tools_with_plain_schemas_that_every_client_understands() -> None:
    assert [tool.name for tool in described()] == [
        "arm",
        "list",
        "check",
        "assess",
        "renew",
        "remove",
    ]
    for tool in described():
        assert tool.description
        assert len(tool.description) < 600
        assert set(tool.input_schema) <= {
            "type",
            "properties",
            "required",
            "additionalProperties",
        }
        assert tool.input_schema["type"] == "object"
        for one in tool.input_schema["properties"].values():
            assert one["type"] in {"string", "number", "boolean"}
            assert one["description"]


def test_only_what_changes_nothing_says_that_it_reads() -> None:
    reads = {
        tool.name
        for tool in described()
        if tool.annotations and tool.annotations.read_only_hint
    }
    assert reads == {"list", "check", "assess"}


def test_what_the_server_teaches_names_each_tool() -> None:
    taught = mcp_server.INSTRUCTIONS + "".join(tool.does for tool in TOOLS.values())
    for name in TOOLS:
        assert name in taught


PAGE = (Path(__file__).parents[3] / "docs/mcp.md").read_text("utf-8")


def test_the_page_names_every_tool_with_what_it_takes() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", PAGE, re.MULTILINE)
    said = {name: set(re.findall(r"`(\w+)`", arguments)) for name, arguments in rows}
    taken = {tool.name: set(tool.input_schema["properties"]) for tool in described()}
    assert said == taken


def test_every_registration_that_the_page_shows_starts_the_server() -> None:
    blocks = re.findall(r"^```(json|toml)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    for kind, block in blocks:
        entry = json.loads(block) if kind == "json" else tomllib.loads(block)
        while "koder-monitor" not in entry:
            (entry,) = entry.values()
        server = entry["koder-monitor"]
        command = server["command"]
        words = command if isinstance(command, list) else [command, *server["args"]]
        assert os.path.isabs(words[0])
        assert [os.path.basename(words[0]), *words[1:]] == ["koder-monitor", "mcp"]
        if "timeout" in server:
            assert server["timeout"] / 1000 > mcp_server.CALL_LIMIT_S


# arm


async def test_a_watch_is_armed_and_its_outcome_is_returned_when_it_comes(
    locks: Path,
) -> None:
    lock = hold(locks)
    async with client() as session:
        call = {"target": "lock a", "ttl": "5m", "resume": "the deploy"}
        armed = shape(await session.call_tool("arm", call))
        assert (armed["state"], armed["waiting"]) == ("armed", True)
        assert armed["resume"] == "the deploy"
        assert armed["outcome"] is None
        assert armed["id"] in armed["message"]
        lock.unlink()
        waited = shape(
            await session.call_tool("check", {"what": armed["id"], "wait_s": 30})
        )
        assert waited["waiting"] is False
        assert waited["observation"] == "released"
        assert waited["outcome"]["outcome"] == "released"
        assert waited["message"].startswith("✅ LIBERADO: lock a ")
        assert "the deploy" in waited["message"]
        assert waited["watch"]["id"] == armed["id"]


async def test_arm_itself_waits_as_long_as_it_is_asked_to(locks: Path) -> None:
    lock = hold(locks)
    async with client() as session:
        arming = asyncio.create_task(
            session.call_tool("arm", {"target": "lock a", "wait_s": 30})
        )
        await until(lambda: list((locks.parent / "state").glob("monitor.db")))
        lock.unlink()
        done = shape(await arming)
        assert done["line"] == done["outcome"]["line"] == text(await arming)
        assert done["line"].startswith("✅ LIBERADO: lock a ")


async def test_what_is_free_already_is_said_at_once(locks: Path) -> None:
    async with client() as session:
        done = shape(await session.call_tool("arm", {"target": "lock a"}))
        assert done["outcome"]["outcome"] == "released"
        assert "already free" in done["line"]


async def test_a_call_that_is_repeated_finds_its_waiter(locks: Path) -> None:
    hold(locks)
    async with client() as session:
        call = {"target": "lock a", "ttl": "5m", "label": "the build"}
        first = shape(await session.call_tool("arm", call))
        again = [
            session.call_tool("arm", call),
            session.call_tool("arm", {**call, "ttl": 300, "target": " lock  'a'"}),
        ]
        for result in await asyncio.gather(*again):
            assert shape(result)["id"] == first["id"]
            assert shape(result)["waiters"] == 1
        other = shape(await session.call_tool("arm", {**call, "ttl": "6m"}))
        assert (other["id"], other["waiters"]) == (first["id"], 2)
        assert f"already watched as {first['id']}: joined" in other["notes"]


async def test_an_outcome_whose_answer_was_lost_is_given_again(locks: Path) -> None:
    async with client() as session:
        first, second = [
            shape(await session.call_tool("arm", {"target": "lock a"}))
            for _ in range(2)
        ]
        assert first["id"] == second["id"]
        assert first["outcome"] == second["outcome"]
        watches = shape(await session.call_tool("list", {"all": True}))["watches"]
        assert len(watches) == 1


async def test_a_release_that_is_over_is_no_answer_to_the_same_call(
    locks: Path,
) -> None:
    async with client() as session:
        first = shape(await session.call_tool("arm", {"target": "lock a"}))
        assert first["outcome"]["outcome"] == "released"
        hold(locks)
        again = shape(await session.call_tool("arm", {"target": "lock a"}))
        assert again["id"] != first["id"]
        assert again["waiting"] is True


async def test_an_expiry_that_nobody_was_told_answers_the_next_call_once(
    locks: Path,
) -> None:
    hold(locks)
    call = {"target": "lock a", "ttl": "1s"}
    async with client() as session:
        first = shape(await session.call_tool("arm", call))
        with anyio.fail_after(LIMIT_S):
            told = first
            while told["waiting"]:
                told = shape(await session.call_tool("arm", {**call, "wait_s": 5}))
        assert told["id"] == first["id"]
        assert told["line"].startswith("⏰ EXPIROU: lock a ")
        anew = shape(await session.call_tool("arm", call))
        assert anew["id"] != first["id"]


async def test_the_session_and_the_project_come_from_the_environment(
    locks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = locks.parent / "project"
    project.mkdir()
    (project / "x.lock").touch()
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "s-1")
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(project))
    async with client() as session:
        armed = shape(await session.call_tool("arm", {"target": "lock ./x.lock"}))
        assert armed["session"] == "s-1"
        assert armed["target"] == f"lock {project}/x.lock"
        call = {"target": "lock ./x.lock", "session": "s-2"}
        await session.call_tool("remove", {"id": armed["id"], "why": "done"})
        assert shape(await session.call_tool("arm", call))["session"] == "s-2"


def test_without_a_project_folder_that_exists_a_path_starts_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", "relative")
    assert folder() == os.getcwd()
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(tmp_path / "gone"))
    assert folder() == os.getcwd()


async def test_what_a_person_must_know_of_an_order_is_noted(
    locks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold(locks)
    async with client() as session:
        await session.call_tool("arm", {"target": "lock b"})
        monkeypatch.setenv("KODER_MONITOR_FLOOR", "9s")
        call = {"target": "lock a", "every": "2s"}
        notes = shape(await session.call_tool("arm", call))["notes"]
        assert "--every 2s is below the floor; using 9s" in notes
        assert any("differs from the service's" in note for note in notes)


async def test_a_call_waits_in_slices_and_says_how_far_it_is(
    locks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_waits, "_SLICE_S", 0.05)
    hold(locks)
    seen: list[tuple[float, float | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total))

    async with client() as session:
        armed = shape(await session.call_tool("arm", {"target": "lock a"}))
        call = {"what": armed["id"][:6], "wait_s": 1}
        done = shape(await session.call_tool("check", call, progress_callback=note))
    assert done["waiting"] is True
    assert done["detail"] == done["message"]
    assert done["at"]
    passed = [progress for progress, _ in seen]
    assert passed
    assert passed == sorted(passed)
    assert all(total and progress < total for progress, total in seen)


async def test_a_wait_is_taken_up_by_a_client_that_has_not_armed_it(
    locks: Path,
) -> None:
    lock = hold(locks)
    async with client() as session:
        armed = shape(await session.call_tool("arm", {"target": "lock a"}))
    async with client() as session:
        lock.unlink()
        call = {"what": armed["id"], "wait_s": 30}
        assert shape(await session.call_tool("check", call))["waiting"] is False


async def test_to_take_a_wait_up_again_is_a_sign_of_life(
    locks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "s-1")
    async with client() as session:
        done = shape(await session.call_tool("arm", {"target": "lock a"}))
        assert done["acknowledged"] is False
        call = {"what": done["id"], "wait_s": 1}
        again = shape(await session.call_tool("check", call))
        assert again["watch"]["acknowledged"] is True


async def test_a_service_that_dies_is_brought_back_while_a_call_waits(
    locks: Path,
) -> None:
    lock, state = hold(locks), locks.parent / "state"
    async with client() as session:
        armed = shape(await session.call_tool("arm", {"target": "lock a"}))
        call = {"what": armed["id"], "wait_s": 40}
        waiting = asyncio.create_task(session.call_tool("check", call))
        pid = service_pid(state)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await until(lambda: service_pid(state) not in {None, pid})
        lock.unlink()
        assert shape(await waiting)["outcome"]["outcome"] == "released"


# The other tools


async def test_list_shows_what_is_armed_and_with_all_how_watches_ended(
    locks: Path,
) -> None:
    hold(locks)
    async with client() as session:
        assert text(await session.call_tool("list")) == "nothing is armed"
        armed = shape(await session.call_tool("arm", {"target": "lock a"}))
        await session.call_tool("arm", {"target": "lock b"})
        listed = shape(await session.call_tool("list"))
        assert [watch["id"] for watch in listed["watches"]] == [armed["id"]]
        assert listed["omitted"] == 0
        assert f"{armed['id']} held: lock a; deadline " in listed["message"]
        everything = shape(await session.call_tool("list", {"all": True}))
        assert {watch["state"] for watch in everything["watches"]} == {
            "armed",
            "released",
        }
        assert "✅ LIBERADO: lock b " in everything["message"]


async def test_list_returns_no_more_than_an_agent_can_read(
    locks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_tools, "_MOST", 1)
    async with client() as session:
        for slug in ("a", "b"):
            hold(locks, slug)
            await session.call_tool("arm", {"target": f"lock {slug}"})
        listed = shape(await session.call_tool("list"))
        assert [watch["target"] for watch in listed["watches"]] == ["lock b"]
        assert listed["omitted"] == 1


async def test_list_says_that_the_store_cannot_be_read(locks: Path) -> None:
    state = locks.parent / "state"
    state.mkdir()
    (state / "monitor.db").write_bytes(b"no database" * 100)
    async with client() as session:
        assert "monitor.db" in text(await session.call_tool("list"))


async def test_check_looks_now_and_says_how_a_watch_ended_too(locks: Path) -> None:
    lock = hold(locks)
    async with client() as session:
        looked = shape(await session.call_tool("check", {"what": "lock a"}))
        assert looked["observation"] == "held"
        assert looked["target"] == "lock a"
        assert looked["watch"] is None
        armed = shape(await session.call_tool("arm", {"target": "lock a"}))
        by_id = shape(await session.call_tool("check", {"what": armed["id"]}))
        assert (by_id["observation"], by_id["watch"]["state"]) == ("held", "armed")
        lock.unlink()
        await session.call_tool("check", {"what": armed["id"], "wait_s": 30})
        hold(locks)
        ended = shape(await session.call_tool("check", {"what": armed["id"]}))
        assert (ended["observation"], ended["watch"]["state"]) == ("held", "released")
        line, look = ended["message"].split("\n")
        assert line.startswith("✅ LIBERADO: lock a ")
        assert look.startswith("lock a: held — ")


async def test_assess_weighs_renew_and_remove_act(locks: Path) -> None:
    hold(locks)
    async with client() as session:
        armed = shape(await session.call_tool("arm", {"target": "lock a"}))
        for what in ("lock a", armed["id"]):
            weighed = shape(await session.call_tool("assess", {"what": what}))
            assert weighed["verdict"] in {"renew", "remove", "ask"}
            assert weighed["message"].startswith("lock a: ")
        call = {"id": armed["id"], "ttl": "2h", "why": "it grows"}
        renewed = shape(await session.call_tool("renew", call))
        assert renewed["renewals"] == 1
        assert renewed["deadline"] > armed["deadline"]
        assert renewed["message"] == f"{armed['id']} renewed for 120min"
        call = {"id": armed["id"][:8], "why": "enough"}
        removed = shape(await session.call_tool("remove", call))
        assert (removed["state"], removed["id"]) == ("removed", armed["id"])
        assert "enough" in removed["line"]


# What goes wrong


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("arm", {}, "Object missing required field `target`"),
        ("arm", {"target": "lock a", "tll": "1h"}, "unknown field `tll`"),
        ("arm", {"target": "lock a", "wait_s": "soon"}, "Expected `float`"),
        ("arm", {"target": ["lock", "a"]}, "Expected `str`"),
        ("arm", {"target": "lock a", "ttl": True}, "Expected `str`"),
        ("arm", {"target": "lock a", "ttl": "1h30"}, "--ttl 1h30 is no duration"),
        ("arm", {"target": "lock a", "ttl": 0}, "--ttl 0 is no duration"),
        ("arm", {"target": "lock a", "label": "waiting"}, "waiting"),
        ("arm", {"target": "lock a", "session": "../x"}, "../x"),
        ("arm", {"target": "lock a", "every": "x"}, "--every x is no duration"),
        ("arm", {"target": "lock 'a"}, "lock 'a"),
        ("arm", {"target": "mutex a"}, "mutex"),
        ("arm", {"target": "lock --help"}, "SLUG|PATH"),
        ("arm", {"target": "process --regex ("}, "invalid regular expression"),
        ("arm", {"target": "lock '\x1b[31m\nx'"}, "\\x1b[31m\\nx"),
        ("check", {"what": "mutex a"}, "mutex"),
        ("check", {"what": "lock a", "wait_s": 1}, "give in what the id"),
        ("check", {"what": "ffffff", "wait_s": 1}, "no watch with the id ffffff"),
        ("assess", {"what": "mutex a"}, "mutex"),
        ("renew", {"id": "ffffff", "ttl": "1h"}, "no watch with the id ffffff"),
        ("renew", {"id": "../x", "ttl": "1h"}, "no watch with the id ../x"),
        ("renew", {"id": "ffffff", "ttl": "soon"}, "ttl soon is no duration"),
        ("remove", {"id": "ffffff", "why": "x"}, "no watch with the id ffffff"),
    ],
)
async def test_a_wrong_call_is_answered_in_one_line(
    locks: Path, name: str, arguments: dict[str, object], why: str
) -> None:
    async with client() as session:
        assert why in refusal(await session.call_tool(name, arguments))


async def test_what_some_clients_send_for_nothing_is_nothing(locks: Path) -> None:
    hold(locks)
    async with client() as session:
        call = {"target": "lock a", "label": None, "ttl": 90, "wait_s": None}
        assert shape(await session.call_tool("arm", call))["ttl_s"] == 90
        why = refusal(await session.call_tool("renew", {"id": 123, "ttl": 90}))
        assert "no watch with the id 123" in why


async def test_what_an_agent_has_read_elsewhere_is_understood(locks: Path) -> None:
    hold(locks)
    async with client() as session:
        call = {"target": "lock a", "ttl_s": 90, "every_s": 60}
        armed = shape(await session.call_tool("arm", call))
        assert (armed["ttl_s"], armed["every_s"]) == (90, 60)
        for what in ({"id": armed["id"]}, {"target": "lock a"}):
            assert shape(await session.call_tool("check", what))["target"] == "lock a"
            assert shape(await session.call_tool("assess", what))["verdict"]
        both = {"what": "lock a", "id": armed["id"]}
        shape(await session.call_tool("check", both))
        call = {"what": armed["id"], "ttl": "1h", "why": "it grows"}
        assert shape(await session.call_tool("renew", call))["renewals"] == 1
        call = {"what": armed["id"], "why": "enough"}
        assert shape(await session.call_tool("remove", call))["state"] == "removed"


async def test_a_tool_that_does_not_exist_is_an_error_of_the_protocol() -> None:
    async with client() as session:
        with pytest.raises(MCPError, match="no tool disarm; there are arm, list, "):
            await session.call_tool("disarm", {})


async def test_a_configuration_that_will_not_do_is_said_and_can_be_mended(
    locks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = locks.parent / "config.toml"
    path.write_text("colour = 'red'\n")
    monkeypatch.setenv("KODER_MONITOR_CONFIG", str(path))
    async with client() as session:
        assert "colour" in refusal(await session.call_tool("check", {"what": "lock a"}))
        path.write_text("lang = 'en'\n")
        shape(await session.call_tool("check", {"what": "lock a"}))


async def test_without_a_service_arm_is_an_error_that_says_so(
    locks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_service(state: str, *, wait: bool) -> None:
        raise ServiceError(phrase("not_started", log="service.log"))

    monkeypatch.setattr(mcp_waits, "start_service", no_service)
    async with client() as session:
        why = refusal(await session.call_tool("arm", {"target": "lock a"}))
        assert why == "the service does not start; see service.log"


class Broken(Tools):
    """Tools that fail as nobody has thought of."""

    async def list(self, asked: object, _: object) -> mcp_tools.Said:
        raise RuntimeError("line one\nline two")

    async def assess(self, asked: object, _: object) -> mcp_tools.Said:
        await asyncio.Event().wait()
        raise AssertionError


async def test_whatever_fails_in_a_tool_is_one_line_and_no_traceback() -> None:
    async with client(Broken("en")) as session:
        why = refusal(await session.call_tool("list"))
        assert why.startswith("internal error: RuntimeError: line one\\nline two")


async def test_a_tool_that_hangs_is_given_up_before_the_client_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert mcp_server.CALL_LIMIT_S < 60
    monkeypatch.setattr(mcp_server, "CALL_LIMIT_S", 0.01)
    async with client(Broken("en")) as session:
        why = refusal(await session.call_tool("assess", {"what": "lock a"}))
        assert why.startswith("assess had no answer within 0.01s; call it again")


async def test_a_waiter_that_the_service_does_not_know_is_no_release(
    locks: Path,
) -> None:
    hold(locks)
    async with client() as session:
        await session.call_tool("arm", {"target": "lock a"})
    waiter = Waiter(watch_id="ffffff")
    with pytest.raises(UsageError) as caught:
        await mcp_waits.news_of(os.environ["KODER_MONITOR_STATE"], waiter, wait_s=0)
    assert caught.value.phrase == phrase("no_watch", id="ffffff")


# Whether an outcome is the answer once more


@given(
    ending=st.sampled_from(Ending),
    told=st.booleans(),
    age_s=st.floats(0, 1e6),
    sight=st.sampled_from(Sight),
)
def test_no_release_is_repeated_that_is_not_seen_now(
    *, ending: Ending, told: bool, age_s: float, sight: Sight
) -> None:
    again = stands(ending, told=told, age_s=age_s, seen=lambda: sight)
    if ending in {Ending.RELEASED, Ending.ENDED}:
        assert again is (sight is Sight.RELEASED and (not told or age_s <= 60))
    else:
        assert again is not told


# The wire


@pytest.fixture
def pipes() -> Iterator[tuple[int, int, int, int]]:
    """Give what the client writes to and reads from, and our ends of both."""
    reading, to_us = os.pipe()
    from_us, writing = os.pipe()
    fds = (to_us, from_us, reading, writing)
    yield fds
    for fd in fds:
        with suppress(OSError):
            os.close(fd)


async def test_lines_are_whole_however_they_come(
    pipes: tuple[int, int, int, int],
) -> None:
    to_us, _, reading, writing = pipes
    wire = Wire(reading, writing)
    os.set_blocking(reading, False)
    lines = []
    for part in (b'{"a', b'": 1}\n{"b": "\xff', b'"}\n\nlast'):
        os.write(to_us, part)
    os.close(to_us)
    with wire.over:
        lines = [line async for line in wire]
    assert lines == ['{"a": 1}\n', '{"b": "\ufffd"}\n', "\n", "last"]


async def test_a_line_that_never_ends_takes_no_memory_and_the_next_is_read(
    pipes: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_wire, "_LINE_LIMIT", 1000)
    monkeypatch.setattr(mcp_wire, "_CHUNK", 100)
    to_us, _, reading, writing = pipes
    os.write(to_us, b"x" * 5000 + b'\n{"a": 1}\n')
    os.close(to_us)
    wire = Wire(reading, writing)
    with wire.over:
        long, *rest = [line async for line in wire]
    assert len(long) < 1200
    assert rest == ['{"a": 1}\n']


async def test_at_its_end_what_was_asked_gets_its_answer_first(
    pipes: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_wire, "_GRACE_S", LIMIT_S)
    to_us, from_us, reading, writing = pipes
    os.write(to_us, b'{"id": 1, "method": "x"}\n')
    os.close(to_us)
    wire = Wire(reading, writing)

    async def answer() -> None:
        await wire.write('{"id": 7, "result": {}}\n')
        await wire.flush()
        await wire.write('{"id": 1, "result": {}}\n')
        await wire.flush()

    ended = False
    async with anyio.create_task_group() as group:
        with wire.over:
            async for _ in wire:
                group.start_soon(answer)
            ended = True
    assert ended
    assert [json.loads(line)["id"] for line in os.read(from_us, 999).splitlines()] == [
        7,
        1,
    ]


async def test_an_answer_that_does_not_come_holds_the_end_up_no_longer(
    pipes: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_wire, "_GRACE_S", 0.01)
    to_us, _, reading, writing = pipes
    os.write(to_us, b'{"id": 1, "method": "x"}\n')
    os.close(to_us)
    wire = Wire(reading, writing)
    with anyio.fail_after(LIMIT_S), wire.over:
        assert len([line async for line in wire]) == 1
        await asyncio.Event().wait()  # as a handler that is still at work


async def test_a_client_that_reads_no_more_ends_it(
    pipes: tuple[int, int, int, int],
) -> None:
    _, from_us, reading, writing = pipes
    os.close(from_us)
    wire = Wire(reading, writing)
    with anyio.fail_after(LIMIT_S), wire.over:
        await wire.write("{}\n")
        await wire.flush()
        await asyncio.Event().wait()
    assert wire.over.cancelled_caught


async def test_an_answer_is_whole_on_a_pipe_that_does_not_block(
    pipes: tuple[int, int, int, int],
) -> None:
    _, from_us, reading, writing = pipes
    os.set_blocking(writing, False)
    wire = Wire(reading, writing)
    sent = json.dumps({"id": 1, "result": "x" * (1 << 20)}) + "\n"

    def read_all() -> bytes:
        with closing(os.fdopen(os.dup(from_us), "rb")) as file:
            return file.read(len(sent))

    reader = asyncio.get_running_loop().run_in_executor(None, read_all)
    await wire.write(sent)
    await wire.flush()
    assert await reader == sent.encode()


async def test_a_write_that_finds_no_room_after_all_is_taken_up_again(
    pipes: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, from_us, reading, writing = pipes
    real, failures = os.write, [BlockingIOError()]

    def write(fd: int, data: bytes) -> int:
        if failures and fd == writing:
            raise failures.pop()
        return real(fd, data)

    monkeypatch.setattr(os, "write", write)
    wire = Wire(reading, writing)
    await wire.write("{}\n")
    await wire.flush()
    assert os.read(from_us, 99) == b"{}\n"


async def test_a_descriptor_that_cannot_be_read_is_at_its_end(tmp_path: Path) -> None:
    reading = os.open(tmp_path, os.O_RDONLY)
    wire = Wire(reading, reading)
    with wire.over:
        assert [line async for line in wire] == []
    os.close(reading)


async def test_what_was_asked_just_before_the_end_of_stdin_is_answered(
    pipes: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_wire, "_GRACE_S", LIMIT_S)
    to_us, from_us, reading, writing = pipes
    version = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    }
    for message in (
        {"id": 1, "method": "initialize", "params": version},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ):
        os.write(to_us, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    os.close(to_us)
    with anyio.fail_after(LIMIT_S):
        await mcp_server.serve(reading, writing, "en")
    os.close(writing)
    with closing(os.fdopen(os.dup(from_us), "rb")) as file:
        answers = {(answer := json.loads(line))["id"]: answer for line in file}
    assert len(answers[2]["result"]["tools"]) == len(TOOLS)


@given(st.text())
def test_no_line_of_a_client_is_too_odd_to_be_counted(line: str) -> None:
    assert mcp_wire._asked_in(line) == mcp_wire._answered_in(line) == set()
    assert mcp_wire._asked_in("[" * 100_000) == set()


def test_arguments_are_as_they_are_written() -> None:
    assert Arm(target="lock a").wait_s == 0
