"""The status line that a user had before: run as it was (C11.1)."""

import contextlib
import os
import select
import signal
import subprocess  # noqa: TID251 - a command of a moment, and no loop is near
import tempfile
import time
from collections.abc import Mapping
from typing import IO, cast

CHAINED = "STATUSLINE_CHAINED_BY"
"""Set for the former command, so that it cannot be us once more."""

_LONGEST = 16 * 1024  # bytes that are kept
_REAP_S = 0.2  # behind SIGKILL, which takes no time, or for ever


class Former:
    """A former command under way."""

    def __init__(self, command: str, payload: bytes, env: Mapping[str, str]) -> None:
        """Start it by a shell, as its runtime did, with the payload on its stdin.

        Raises:
            OSError: it cannot be started.
        """
        self._started_s = _now_s()
        with tempfile.TemporaryFile() as given:
            given.write(payload)
            given.seek(0)
            self._process = subprocess.Popen(  # noqa: S602 - the user's own command line
                command,
                shell=True,
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**env, CHAINED: "koder-monitor"},
                start_new_session=True,
            )
        self._pipe = cast("IO[bytes]", self._process.stdout)

    def line(self, limit_s: float) -> str | None:
        """Return its first line; nothing where it failed, or took longer than that.

        Nothing of it is left running.
        """
        until_s = self._started_s + limit_s
        try:
            said = self._said(until_s)
            if said is None or self._process.wait(max(0.0, until_s - _now_s())):
                return None
        except subprocess.TimeoutExpired:
            return None
        finally:
            self._end()
        line = said.decode("utf-8", "surrogateescape").lstrip("\r\n").partition("\n")[0]
        return line.rstrip("\r") or None

    def _said(self, until_s: float) -> bytes | None:
        """Return what it wrote, once it has; None when it takes too long."""
        said = b""
        while select.select([self._pipe], [], [], max(0.0, until_s - _now_s()))[0]:
            more = os.read(self._pipe.fileno(), _LONGEST)
            if not more:
                return said
            said = (said + more)[:_LONGEST]
        return None

    def _end(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):  # it may be root's by now
            self._process.wait(_REAP_S)
        self._pipe.close()


def _now_s() -> float:
    return time.clock_gettime(time.CLOCK_MONOTONIC)
