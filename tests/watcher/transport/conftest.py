"""What tests of ssh share: a home, a server, and hosts that are closed at the end."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from policies.clock import Clock
from tests.fakes import until
from tests.sshd import Client, Sshd
from tests.watcher.transport.sessions import Opener
from watcher.clock import SystemClock
from watcher.config import Seconds, Ssh
from watcher.transport.ssh import SshHost

MakeHost = Callable[..., SshHost]


@pytest.fixture(autouse=True)
def _no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture
def client() -> Client:
    """Give the home of the test a key of its own."""
    return Client(Path(os.environ["HOME"]))


@pytest.fixture
def server(tmp_path: Path, client: Client) -> Iterator[Sshd]:
    """Give a server that lets the client in, known to it; not started yet."""
    server = Sshd(tmp_path / "server", client.key)
    client.know(server)
    yield server
    server.kill()


@pytest.fixture
def opener() -> Opener:
    return Opener()


@pytest.fixture
async def make_host(opener: Opener) -> AsyncIterator[MakeHost]:
    """Make hosts; at the end they are closed, and nothing of them may still run."""
    hosts: list[SshHost] = []

    def make(
        name: str,
        *,
        clock: Clock | None = None,
        limit_s: float = 20.0,
        keepalive_s: float = 15.0,
        config_file: str = "~/.ssh/config",
    ) -> SshHost:
        ssh = Ssh(
            config_file=config_file,
            connect_timeout=Seconds(limit_s),
            keepalive=Seconds(keepalive_s),
        )
        host = SshHost(
            name,
            ssh,
            clock=clock or SystemClock(),
            open_session=opener,
            jitter=lambda: 0.0,
        )
        hosts.append(host)
        return host

    yield make
    for host in hosts:
        await host.close()
    await until(lambda: not list(ours()))


def ours() -> Iterator[asyncio.Task[object]]:
    """Give the tasks that a host started, itself or by asyncssh."""
    for task in asyncio.all_tasks():
        code = getattr(task.get_coro(), "cr_code", None)
        if "/asyncssh/" in str(code) or "/watcher/transport/ssh" in str(code):
            yield task
