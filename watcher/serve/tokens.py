"""Who may ask over TCP: the token of programs, and what a browser gets for one (C10.3).

What is kept here of a secret is its digest, so that nothing compares it letter by
letter and no dump of the memory holds it. A session is only signed: a restart of the
service must not close the page.
"""

import contextlib
import hmac
import os
import secrets
from hashlib import sha256

from notify.secret import Secret
from policies.clock import Clock
from policies.wording import phrase
from watcher.app import checked_key, read_key_file
from watcher.config import Config
from watcher.errors import ConfigError

TOKEN_NAME = "token"  # noqa: S105 - a file's name
ONCE_S = 300.0
"""How long the address that is printed opens the page."""

_SESSION_S = 12 * 3600.0
_MOST = 64  # addresses at once; the oldest goes


def token_of(config: Config) -> Secret:
    """Return the token of programs; made, for its owner only, where there is none.

    Raises:
        ConfigError: the file that is configured cannot be used, or none can be made.
    """
    if config.token is not None:
        return checked_key(config.token, "KODER_MONITOR_TOKEN")
    if config.serve.token_file is not None:
        return read_key_file(config.serve.token_file, "[serve] token_file")
    path = f"{config.state}/{TOKEN_NAME}"
    if not os.path.lexists(path):
        _make(path)
    return read_key_file(path, "[serve] token_file")


def _make(path: str) -> None:
    """Write a token that appears whole or not at all; only one service is here.

    Raises:
        ConfigError: it cannot be written.
    """
    beside = f"{path}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        fd = os.open(beside, flags, 0o600)
        try:
            os.write(fd, f"{secrets.token_urlsafe(32)}\n".encode())
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(beside, path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(phrase("token_not_made", path=path, error=reason)) from error


class Expiring:
    """Secrets that were handed out, each until its time is over."""

    def __init__(self, clock: Clock, lasts_s: float) -> None:
        """Know none yet."""
        self._clock = clock
        self._lasts_s = lasts_s
        self._until_s: dict[bytes, float] = {}

    def make(self) -> str:
        """Return a new one."""
        secret = secrets.token_urlsafe(32)
        self._until_s[_digest(secret)] = self._clock.boot() + self._lasts_s
        while len(self._until_s) > _MOST:
            del self._until_s[next(iter(self._until_s))]
        return secret

    def holds(self, secret: str) -> bool:
        """Say whether a secret is one of these and still good."""
        until_s = self._until_s.get(_digest(secret))
        return until_s is not None and self._clock.boot() < until_s

    def spend(self, secret: str) -> bool:
        """Say so, and let it be good no more."""
        good = self.holds(secret)
        self._until_s.pop(_digest(secret), None)
        return good


class Sessions:
    """What browsers are given: signed, so that it outlives a restart (C10.2).

    Nothing is kept. Another token of programs ends all sessions.
    """

    def __init__(self, token: Secret, clock: Clock) -> None:
        """Sign with a key of its own, which follows from the token."""
        self._clock = clock
        self._key = hmac.digest(token.reveal().encode(), b"page session", "sha256")

    def make(self) -> str:
        """Return a new session, good for some hours."""
        until_s = int(self._clock.wall().timestamp() + _SESSION_S)
        said = f"{until_s}.{secrets.token_urlsafe(16)}"
        return f"{said}.{self._sign(said)}"

    def holds(self, session: str) -> bool:
        """Say whether we made a session that is still good."""
        said, _, signed = session.rpartition(".")
        until, _, _ = said.partition(".")
        if not hmac.compare_digest(_digest(self._sign(said)), _digest(signed)):
            return False
        left_s = int(until) - self._clock.wall().timestamp()
        return 0 < left_s <= _SESSION_S  # longer: the clock has been set back

    def _sign(self, said: str) -> str:
        data = said.encode("utf-8", "surrogateescape")
        return hmac.new(self._key, data, "sha256").hexdigest()


class Tokens:
    """What opens the service to those who come over TCP."""

    def __init__(self, token: Secret, clock: Clock) -> None:
        """Know the token of programs."""
        self._digest = _digest(token.reveal())
        self.once = Expiring(clock, ONCE_S)
        self.sessions = Sessions(token, clock)

    def is_token(self, text: str) -> bool:
        """Say whether a text is the token, in constant time."""
        return hmac.compare_digest(_digest(text), self._digest)


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogateescape")).digest()
