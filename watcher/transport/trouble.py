"""Why a host gave no answer: the sentences that need no SSH library."""

from policies.backoff import Trouble
from policies.wording import phrase
from watcher.errors import AuthError, TransportError


class DroppedError(TransportError):
    """It closed the connection before it let us in: busy, or it bans us."""


def trouble_of(error: TransportError) -> Trouble:
    """Return what an error means for the next attempt."""
    if isinstance(error, AuthError):
        return Trouble.REFUSED
    if isinstance(error, DroppedError):
        return Trouble.DROPPED
    return Trouble.SILENT


def timed_out(host: str, seconds: float) -> TransportError:
    """Return the error of a host that took too long."""
    return TransportError(phrase("host_timeout", host=host, seconds=f"{seconds:g}"))


def lost(host: str) -> TransportError:
    """Return the error of a connection that ended."""
    return TransportError(phrase("host_lost", host=host))


def unspecific(host: str, error: Exception) -> TransportError:
    """Return the error of whatever has no sentence of its own."""
    said = str(error) or type(error).__name__
    return TransportError(phrase("host_error", host=host, error=said))
