"""The fallback log: append-only, one line a ping (C6.4); also as a channel."""

import contextlib
import fcntl
import os
import stat
from datetime import tzinfo

from notify.errors import DeliveryError, FallbackError
from policies.model import Ping
from policies.text import clean
from policies.wording import Lang, Phrase

# Write-only: opened for reading too, a pipe that nobody reads would swallow the ping.
_OPEN = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK


class FallbackLog:
    """A file that takes the pings that no channel took."""

    def __init__(self, path: str, zone: tzinfo) -> None:
        """Write to `path`, with the local time of `zone`."""
        self.path = path
        self._zone = zone

    def append(self, ping: Ping, reason: str) -> None:
        """Write one line: time, severity, key, why it is here, and the whole message.

        Raises:
            FallbackError: it could not be written whole.
        """
        line = (
            f"{ping.occurred_at.astimezone(self._zone).isoformat(timespec='seconds')} "
            f"{ping.severity} {ping.idempotency_key} ({clean(reason)}) "
            f"{clean(ping.title)}: {clean(ping.message)}\n"
        )
        try:
            self._write(line.encode())
        except OSError as error:
            reason = f"{self.path}: {error.strerror or error}"
            raise FallbackError(reason) from error

    def _write(self, line: bytes) -> None:
        """Append a line whole, on a line of its own even behind one cut short.

        Raises:
            OSError: as the file system says; a short write is ENOSPC.
        """
        os.makedirs(os.path.dirname(self.path) or ".", mode=0o700, exist_ok=True)
        fd = os.open(self.path, _OPEN, 0o600)
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                # Only against mixing with a line cut short: O_APPEND keeps lines whole,
                # so a lock that somebody sits on is not waited for.
                with contextlib.suppress(OSError):
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._cut_short():
                    line = b"\n" + line
            written = os.write(fd, line)
            while written < len(line):
                written += os.write(fd, line[written:])
        finally:
            os.close(fd)

    def _cut_short(self) -> bool:
        """Say whether the file ends inside a line, as far as it may be read."""
        try:
            with open(self.path, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                return bool(size) and os.pread(file.fileno(), 1, size - 1) != b"\n"
        except OSError:
            return False


class LogChannel:
    """The fallback log in the place of a channel that cannot be had."""

    def __init__(self, log: FallbackLog, reason: Phrase, lang: Lang) -> None:
        """Write to `log`.

        Args:
            log: takes every ping.
            reason: why there is no other channel.
            lang: of the reason in the log.
        """
        self.reason = reason
        self._log = log
        self._lang = lang

    async def send(self, ping: Ping) -> None:
        """Write the ping down, which is all that can be done.

        Raises:
            DeliveryError: the log cannot be written, for now.
        """
        try:
            self._log.append(ping, self.reason.render(self._lang))
        except FallbackError as error:
            raise DeliveryError(str(error)) from error
