import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from policies.wording import phrase
from tests.fakes import until
from tests.watcher.transport.channels import FakeChannel, LoginShells
from tests.watcher.transport.toy import look, toy
from watcher.errors import AuthError, TransportError
from watcher.transport import opening
from watcher.transport.agent_session import AgentSession
from watcher.transport.opening import open_session
from watcher.transport.session import Channel, Session
from watcher.transport.shell_session import SHELL, ShellSession

__all__ = ["toy"]

LIMIT_S = 60.0

STUB = """\
case $1 in
"exec /bin/sh -c '"*) ;;
*=*|*'$('*|*'&&'*) echo "syntax error" >&2; exit 127;;
esac
eval "$1"
"""


@pytest.fixture
async def shells(tmp_path: Path, toy: None) -> AsyncIterator[LoginShells]:
    shells = LoginShells(tmp_path)
    yield shells
    await shells.close()


async def answers(session: Session) -> bool:
    reply = await session.ask([look("a"), look("b")])
    return list(reply.answers) == [{"said": "a"}, {"said": "b"}]


async def test_a_host_with_a_python_gets_the_agent(shells: LoginShells) -> None:
    shells.put_python()
    session = await open_session(shells.run, limit_s=LIMIT_S)
    assert isinstance(session, AgentSession)
    assert await answers(session)
    await session.close()
    assert len(shells.commands) == 1


@pytest.mark.parametrize(
    "python",
    [
        "exit 127",
        "exit 126",
        "echo 'Unknown option: -I'; echo 'usage: python [option]' >&2; exit 2",
        'echo "bash: python3: command not found"; exit 1',
        "exec sleep 0",
        "kill -9 $$",
    ],
    ids=["missing", "no execution", "Python 2", "a wrapper", "silent", "killed"],
)
async def test_a_host_without_a_usable_python_gets_the_shell(
    shells: LoginShells, python: str
) -> None:
    shells.put("python3", python)
    session = await open_session(shells.run, limit_s=LIMIT_S)
    assert isinstance(session, ShellSession)
    assert await answers(session)
    assert shells.commands[1] == SHELL
    assert shells.channels[0].closed
    await session.close()


async def test_an_old_python_says_so_and_the_shell_does_it(
    shells: LoginShells,
) -> None:
    real = shells.put("real", "exit 1")
    shells.put_python()
    real.write_text((shells.bin / "python3").read_text())
    old = "import sys; sys.version_info = (3, 8, 1); exec(sys.argv.pop(1))"
    shells.put("python3", f"shift 3; exec {real} -I -S -c '{old}' \"$@\"")
    session = await open_session(shells.run, limit_s=LIMIT_S)
    assert isinstance(session, ShellSession)
    assert await answers(session)
    await session.close()


@pytest.mark.slow
async def test_a_python_that_says_nothing_leaves_time_for_the_shell(
    shells: LoginShells, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_AGENT_PART", 0.02)
    shells.put("python3", "exec cat >/dev/null")
    session = await open_session(shells.run, limit_s=LIMIT_S)
    assert isinstance(session, ShellSession)
    assert await answers(session)
    assert shells.channels[0].process.returncode is not None
    await session.close()


@pytest.mark.parametrize("python", [True, False])
async def test_any_login_shell_will_do(shells: LoginShells, python: bool) -> None:
    shells.shell = [str(shells.put("restricted", STUB))]
    if python:
        shells.put_python()
    else:
        shells.put("python3", "exit 127")
    session = await open_session(shells.run, limit_s=LIMIT_S)
    assert isinstance(session, AgentSession if python else ShellSession)
    assert await answers(session)
    await session.close()


async def test_an_account_that_runs_nothing_says_why(shells: LoginShells) -> None:
    shells.shell = [str(shells.put("nologin", "echo This account is closed."))]
    with pytest.raises(TransportError) as caught:
        await open_session(shells.run, limit_s=LIMIT_S)
    assert caught.value.phrase == phrase("session_said", said="This account is closed.")
    assert all(channel.closed for channel in shells.channels)


async def test_a_host_that_says_nothing_is_given_up(toy: None) -> None:
    channels: list[FakeChannel] = []

    async def run(command: str) -> Channel:
        channels.append(FakeChannel())
        return channels[-1]

    with pytest.raises(TransportError) as caught:
        await open_session(run, limit_s=0.1)
    assert caught.value.phrase.key == "session_silent"
    assert all(channel.closed for channel in channels)


async def test_whoever_gives_up_leaves_no_channel_open(toy: None) -> None:
    channel = FakeChannel()

    async def run(command: str) -> Channel:
        return channel

    opened = asyncio.ensure_future(open_session(run, limit_s=LIMIT_S))
    await until(lambda: channel.written)
    opened.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opened
    assert channel.closed


async def test_a_host_that_takes_nothing_is_given_up(toy: None) -> None:
    channels: list[FakeChannel] = []

    async def run(command: str) -> Channel:
        channels.append(FakeChannel())
        channels[-1].stuck.clear()
        return channels[-1]

    with pytest.raises(TransportError):
        await open_session(run, limit_s=0.1)
    assert all(channel.closed for channel in channels)


@pytest.mark.parametrize("kind", [AuthError, TransportError])
async def test_what_keeps_a_command_from_running_is_passed_on(
    kind: type[TransportError],
) -> None:
    error = kind(phrase("host_silent", host="box"))

    async def run(command: str) -> Channel:
        raise error

    with pytest.raises(kind) as caught:
        await open_session(run, limit_s=LIMIT_S)
    assert caught.value is error


async def test_nothing_is_left_on_the_host(shells: LoginShells) -> None:
    shells.put_python()
    before = sorted(os.listdir(shells.bin))
    session = await open_session(shells.run, limit_s=LIMIT_S)
    assert await answers(session)
    await session.close()
    assert sorted(os.listdir(shells.bin)) == before
