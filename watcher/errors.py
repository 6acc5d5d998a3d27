"""The errors of this package.

WatcherError
    UsageError       exit 2: a wrong call, or a condition that cannot be watched
        ConfigError  exit 2: a setting that must be mended
    StoreError       the state cannot be kept: degrade
    ServiceError     no service to be had: do the work alone
    TransportError   a host gave no answer: unknown
        AuthError    it refuses us, or is not who it was: exit 2 at arming
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from policies.wording import Phrase  # its sentences cost hooks too much


class WatcherError(Exception):
    """Any error that koder-monitor tells a person, in that person's language."""

    def __init__(self, phrase: "Phrase") -> None:
        """Keep the sentence that says what to do."""
        super().__init__(phrase)
        self.phrase = phrase


class UsageError(WatcherError):
    """The call cannot be carried out as it stands."""


class StoreError(WatcherError):
    """The store cannot be used; what can be done without it goes on (C5.6)."""


class ServiceError(WatcherError):
    """No service can be reached or started."""


class TransportError(WatcherError):
    """A host gave no answer: what is watched there is unknown (C3.1)."""


class AuthError(TransportError):
    """Waiting does not help: refused key, wrong host key, unknown name (C7.1)."""


class ConfigError(UsageError):
    """The configuration cannot be used as it stands."""
