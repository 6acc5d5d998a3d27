"""The hosts of one service or command."""

import subprocess
import sys
from pathlib import Path

from tests.fakes import FakeClock
from watcher.config import Seconds, Ssh
from watcher.transport.hosts import SshHosts


async def test_a_name_has_one_host_and_closing_closes_all() -> None:
    hosts = SshHosts(Ssh(connect_timeout=Seconds(5)), clock=FakeClock())
    await hosts.close()
    one, other = hosts.of("a"), hosts.of("b")
    assert hosts.of("a") is one
    assert (one.name, other.name) == ("a", "b")
    assert [state.name for state in hosts.states()] == ["a", "b"]
    await hosts.close()
    for host in (one, other):
        assert await host.reach() is None


def test_naming_a_host_loads_neither_the_library_nor_asks_anybody() -> None:
    program = (
        "import sys\n"
        "from watcher.clock import SystemClock\n"
        "from watcher.config import Ssh\n"
        "from watcher.transport.hosts import SshHosts\n"
        "assert 'asyncio' not in sys.modules\n"
        "host = SshHosts(Ssh(), clock=SystemClock()).of('box')\n"
        "print(host.name, host.state.reached_at, 'asyncssh' in sys.modules)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    assert said.stdout == "box None False\n"
