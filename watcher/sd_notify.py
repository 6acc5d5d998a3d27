"""Tells systemd that the service is ready, alive and about to end: sd_notify(3)."""

import contextlib
import os
import socket
from collections.abc import Callable, MutableMapping

from policies.clock import Clock


class SdNotify:
    """The socket that systemd named, if it named one."""

    def __init__(self, env: MutableMapping[str, str]) -> None:
        """Take the address out of the environment: what we start must not have it.

        Args:
            env: `os.environ`.
        """
        address = env.pop("NOTIFY_SOCKET", "")
        limit, pid = env.pop("WATCHDOG_USEC", ""), env.pop("WATCHDOG_PID", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self.every_s: float | None = None
        """How often to say that we live: twice within the time that is allowed."""
        if address and limit.isdecimal() and pid in {"", str(os.getpid())}:
            self.every_s = int(limit) / 1e6 / 2 or None

    def tell(self, state: str) -> None:
        """Say one thing; nobody waits for that, and it never fails."""
        if not self._address:
            return
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to_systemd,
        ):
            to_systemd.setblocking(False)
            to_systemd.connect(self._address)
            to_systemd.send(state.encode())

    async def keep_alive(self, clock: Clock, lives: Callable[[float], bool]) -> None:
        """Say so for as long as `lives` does; it is asked about the time since then.

        Who is silent is killed and started anew, and nothing is lost by that.
        """
        while self.every_s is not None:
            if lives(self.every_s):
                self.tell("WATCHDOG=1")
            await clock.sleep(self.every_s)
