"""Servers that break off, lie or dawdle: silence each time, never an answer (C3.1)."""

import asyncio
import os
from pathlib import Path

import asyncssh
import pytest

from policies.wording import Lang
from tests.sshserver import Doorman, ssh_server
from tests.watcher.transport.conftest import MakeHost
from tests.watcher.transport.sessions import LineSession, Opener
from watcher.errors import AuthError, TransportError
from watcher.transport.ssh_link import Process

ONE = [{"op": "hello"}]
Running = asyncssh.SSHServerProcess[bytes]


@pytest.fixture
def known_hosts() -> Path:
    return Path(os.environ["HOME"]) / ".ssh/known_hosts"


async def said_of(make_host: MakeHost, name: str, *, limit_s: float = 20.0) -> str:
    """Ask a host that gives no answer; return why."""
    host = make_host(name, limit_s=limit_s)
    with pytest.raises(TransportError) as caught:
        await host.ask(ONE)
    assert not isinstance(caught.value, AuthError)
    return caught.value.phrase.render(Lang.EN)


async def echo(process: Running) -> None:
    """Be the shell that sessions expect, as far as they need it."""
    while line := await process.stdin.readline():
        process.stdout.write(line.removeprefix(b"echo "))
    process.exit(0)


async def test_a_server_of_another_make_answers(
    known_hosts: Path, make_host: MakeHost
) -> None:
    async with ssh_server(echo, known_hosts) as name:
        host = make_host(name)
        reply = await host.ask(ONE)
        assert reply.answers == [{"said": "hello"}]
        await host.close()


async def test_a_connection_that_breaks_in_mid_answer_gave_none(
    known_hosts: Path, make_host: MakeHost
) -> None:
    async def breaks(process: Running) -> None:
        process.stdout.write(b"hel")
        process.channel.get_connection().abort()

    async with ssh_server(breaks, known_hosts) as name:
        assert await said_of(make_host, name) == f"the connection to {name} was lost"


async def test_a_channel_that_closes_without_a_status_is_lost(
    known_hosts: Path, make_host: MakeHost
) -> None:
    async def closes(process: Running) -> None:
        process.stdout.write(b"hello\nend")
        process.close()

    async with ssh_server(closes, known_hosts) as name:
        assert await said_of(make_host, name) == f"the connection to {name} was lost"


async def test_a_program_that_ends_is_at_its_end(
    known_hosts: Path, make_host: MakeHost
) -> None:
    async def ends(process: Running) -> None:
        process.exit(3)

    async with ssh_server(ends, known_hosts) as name:
        assert "the look failed: end" in await said_of(make_host, name)


async def test_what_is_written_to_a_program_that_has_ended_is_no_lost_connection(
    known_hosts: Path, opener: Opener, make_host: MakeHost
) -> None:
    async with ssh_server(echo, known_hosts) as name:
        host = make_host(name)
        await host.ask(ONE)
        process = opener.sessions[0].channel
        assert isinstance(process, Process)
        process._process.stdin.write_eof()
        assert await process.read(10) == b""
        await process._process.wait_closed()
        await process.write(b"more")
        assert await process.read(10) == b""


async def test_a_channel_that_was_closed_is_of_no_more_use(
    known_hosts: Path, opener: Opener, make_host: MakeHost
) -> None:
    async with ssh_server(echo, known_hosts) as name:
        host = make_host(name)
        await host.ask(ONE)
        channel = opener.sessions[0].channel
        await channel.close()
        await channel.close()
        with pytest.raises(TransportError):
            await channel.write(b"more")
        with pytest.raises(TransportError):
            await channel.read(10)
        await host.close()


async def test_a_server_that_wants_a_password_is_not_given_one(
    known_hosts: Path, make_host: MakeHost
) -> None:
    class Asks(Doorman):
        def begin_auth(self, username: str) -> bool:
            return True

        def password_auth_supported(self) -> bool:
            return True

    async with ssh_server(echo, known_hosts, doorman=Asks) as name:
        told = await make_host(name).reach()
    assert told is not None
    assert told.key == "host_denied"


async def test_a_server_that_hangs_up_during_the_login_may_ban_us(
    known_hosts: Path, make_host: MakeHost
) -> None:
    class HangsUp(Doorman):
        def begin_auth(self, username: str) -> bool:
            self.connection.abort()
            return True

    async with ssh_server(echo, known_hosts, doorman=HangsUp) as name:
        assert "before the login" in await said_of(make_host, name)


async def test_a_server_that_turns_us_away_is_quoted(
    known_hosts: Path, make_host: MakeHost
) -> None:
    class Busy(Doorman):
        def begin_auth(self, username: str) -> bool:
            code = asyncssh.DISC_TOO_MANY_CONNECTIONS
            self.connection.disconnect(code, "come again\x1b[2J")
            return True

    async with ssh_server(echo, known_hosts, doorman=Busy) as name:
        said = await said_of(make_host, name)
    assert "come again" in said
    assert "\x1b" not in said


async def test_a_login_that_never_ends_is_given_up(
    known_hosts: Path, make_host: MakeHost
) -> None:
    done = asyncio.Event()

    class Dawdles(Doorman):
        async def begin_auth(self, username: str) -> bool:  # type: ignore[override]  # the library awaits it
            await done.wait()
            return True

    async with ssh_server(echo, known_hosts, doorman=Dawdles) as name:
        said = await said_of(make_host, name, limit_s=1.0)
        done.set()
    assert "did not answer within 1 s" in said


@pytest.mark.parametrize(
    "greeting",
    [b"SSH-1.5-old\r\n", b"x" * 100_000, b"hello\r\n" * 5000, b"HTTP/1.0 200 OK\r\n"],
)
async def test_what_is_no_ssh_server_is_silent(
    make_host: MakeHost, greeting: bytes
) -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert await said_of(make_host, f"127.0.0.1:{port}")


async def test_a_far_side_that_does_not_open_in_time_is_given_up(
    known_hosts: Path,
    opener: Opener,
    make_host: MakeHost,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("watcher.transport.ssh.ANSWER_LIMIT_S", 0.2)
    opener.gate = asyncio.Event()
    async with ssh_server(echo, known_hosts) as name:
        assert "within 0.2 s" in await said_of(make_host, name)


async def test_a_session_that_does_not_close_is_left_behind(
    known_hosts: Path,
    opener: Opener,
    make_host: MakeHost,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("watcher.transport.ssh._CLOSE_LIMIT_S", 0.1)

    async def never(_: LineSession) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(LineSession, "close", never)
    async with ssh_server(echo, known_hosts) as name:
        host = make_host(name)
        await host.ask(ONE)
        opener.sessions[0].lost = True
        await host.ask(ONE)
        await host.close()
