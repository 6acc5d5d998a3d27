"""The hosts of one service or command; nothing is loaded before one is reached."""

from typing import TYPE_CHECKING

from policies.clock import Clock
from watcher.config import Ssh
from watcher.transport import Host, HostState

if TYPE_CHECKING:
    from watcher.transport.ssh import SshHost


class SshHosts:
    """Reaches hosts over SSH, as OpenSSH users name them (C7.1)."""

    def __init__(self, config: Ssh, *, clock: Clock) -> None:
        """Reach for none yet."""
        self._config = config
        self._clock = clock
        self._hosts: dict[str, SshHost] = {}

    def of(self, name: str) -> Host:
        """Return the one host of a name; does not reach for it yet."""
        from watcher.transport.ssh import SshHost  # noqa: PLC0415 - start-up time

        if name not in self._hosts:
            self._hosts[name] = SshHost(name, self._config, clock=self._clock)
        return self._hosts[name]

    def states(self) -> list[HostState]:
        """Return what there is to say about each that was named, by their names."""
        return [host.state for _, host in sorted(self._hosts.items())]

    async def close(self) -> None:
        """Close all connections, within a limit."""
        from asyncio import gather  # noqa: PLC0415 - start-up time

        await gather(*(host.close() for host in self._hosts.values()))
