"""What went wrong on the way to a host, as a person is told it.

Errors of asyncssh and of the system stop here. No text of a key and no passphrase is in
any of them: asyncssh's own texts name users, hosts and algorithms.
"""

import errno
import re
import shlex
import socket
from dataclasses import dataclass
from functools import singledispatch

import asyncssh
from asyncssh.misc import SoftEOFReceived

from policies.wording import Phrase, phrase
from watcher.errors import AuthError, TransportError
from watcher.transport.ssh_config import Route
from watcher.transport.trouble import DroppedError, lost, timed_out, unspecific

_ERRNO = re.compile(r"\[Errno (\d+)\]")
_RESET = frozenset({errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE})
_NO_SUCH_NAME = frozenset(
    {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
)


@dataclass(slots=True)
class Attempt:
    """How far a connection came."""

    route: Route
    greeted: bool = False
    """The server said what it is."""
    let_in: bool = False


@singledispatch
def explain(error: Exception, attempt: Attempt) -> TransportError:
    """Return what a failure to reach a host means, by the class of the error."""
    return unspecific(attempt.route.text, error)


@explain.register(TransportError)
def _own(error: TransportError, _attempt: Attempt) -> TransportError:
    return error


@explain.register(asyncssh.HostKeyNotVerifiable)
def _host_key(error: asyncssh.HostKeyNotVerifiable, attempt: Attempt) -> TransportError:
    if "revoked" in error.reason:
        told = phrase("host_key_revoked", host=attempt.route.text, error=error.reason)
        return AuthError(told)
    return AuthError(
        _changed(attempt.route)
        if attempt.route.known.known
        else _unknown(attempt.route)
    )


def _unknown(route: Route) -> Phrase:
    command = shlex.join(["ssh", *route.command])
    return phrase("host_key_unknown", host=route.text, command=command)


def _changed(route: Route) -> Phrase:
    words = ["ssh-keygen", "-f", route.known.file, "-R", route.known.name]
    return phrase("host_key_changed", host=route.text, command=shlex.join(words))


@explain.register(asyncssh.KeyExchangeFailed)
def _no_common_algorithm(
    error: asyncssh.KeyExchangeFailed, attempt: Attempt
) -> TransportError:
    """A host that has no key of a kind we know any more has changed its key."""
    if "host key" in error.reason and attempt.route.known.known:
        return AuthError(_changed(attempt.route))
    return _unspecific(error, attempt)


@explain.register(asyncssh.PermissionDenied)
def _denied(_error: asyncssh.PermissionDenied, attempt: Attempt) -> TransportError:
    host, user = attempt.route.text, attempt.route.user
    if attempt.route.locked:
        path = attempt.route.locked[0]
        command = shlex.join(["ssh-add", path])
        return AuthError(
            phrase("host_key_locked", host=host, user=user, path=path, command=command)
        )
    for path, why in attempt.route.unusable.items():
        return AuthError(
            phrase("host_key_unusable", host=host, user=user, path=path, error=why)
        )
    command = shlex.join(["ssh", "-o", "BatchMode=yes", *attempt.route.command])
    return AuthError(phrase("host_denied", host=host, user=user, command=command))


@explain.register(asyncssh.IllegalUserName)
def _no_user(error: asyncssh.IllegalUserName, attempt: Attempt) -> TransportError:
    return AuthError(phrase("ssh_config", host=attempt.route.text, error=error.reason))


@explain.register(asyncssh.DisconnectError)
def _disconnected(error: asyncssh.DisconnectError, attempt: Attempt) -> TransportError:
    if "too many authentication failures" in error.reason.lower():
        return AuthError(phrase("host_many_keys", host=attempt.route.text))
    return _unspecific(error, attempt)


@explain.register(asyncssh.ConnectionLost)
@explain.register(asyncssh.ServiceNotAvailable)
def _closed(error: asyncssh.DisconnectError, attempt: Attempt) -> TransportError:
    if "timeout" in error.reason.lower():
        return timed_out(
            attempt.route.text, float(attempt.route.options["login_timeout"])
        )
    return _lost(attempt)


@explain.register(asyncssh.Error)
@explain.register(asyncssh.ChannelListenError)
@explain.register(asyncssh.PasswordChangeRequired)
@explain.register(asyncssh.BreakReceived)
@explain.register(asyncssh.SignalReceived)
@explain.register(SoftEOFReceived)
@explain.register(asyncssh.TerminalSizeChanged)
@explain.register(ValueError)
@explain.register(EOFError)
def _unspecific(error: Exception, attempt: Attempt) -> TransportError:
    return unspecific(attempt.route.text, error)


@explain.register(asyncssh.ChannelOpenError)
def _no_channel(error: asyncssh.ChannelOpenError, attempt: Attempt) -> TransportError:
    """On the way it is the jump host that cannot reach it; once in, it has no room."""
    key = "host_full" if attempt.let_in else "host_unreachable"
    return TransportError(phrase(key, host=attempt.route.text, error=error.reason))


@explain.register(asyncssh.ConfigParseError)
@explain.register(asyncssh.KeyImportError)
def _files(error: ValueError, attempt: Attempt) -> TransportError:
    return AuthError(phrase("ssh_config", host=attempt.route.text, error=str(error)))


@explain.register(TimeoutError)
def _too_late(_error: TimeoutError, attempt: Attempt) -> TransportError:
    return timed_out(
        attempt.route.text, float(attempt.route.options["connect_timeout"])
    )


@explain.register(socket.gaierror)
def _no_address(error: socket.gaierror, attempt: Attempt) -> TransportError:
    """RFC 6761: no name below .invalid exists, whatever a resolver says of it."""
    if error.errno in _NO_SUCH_NAME or attempt.route.host.endswith(".invalid"):
        return AuthError(phrase("host_no_such", host=attempt.route.text))
    why = error.strerror or str(error)
    return TransportError(phrase("host_unresolved", host=attempt.route.text, error=why))


@explain.register(UnicodeError)
def _no_name(_error: UnicodeError, attempt: Attempt) -> TransportError:
    """A name that cannot even be asked for: a part that is empty or too long."""
    return AuthError(phrase("host_no_such", host=attempt.route.text))


@explain.register(OSError)
def _system(error: OSError, attempt: Attempt) -> TransportError:
    """Failures of several addresses come gathered in one text."""
    numbers = {error.errno} if error.errno else {*map(int, _ERRNO.findall(str(error)))}
    if numbers & _RESET:
        return _lost(attempt)
    if numbers == {errno.ECONNREFUSED}:
        closed = phrase(
            "host_port_closed", host=attempt.route.text, port=attempt.route.port
        )
        return TransportError(closed)
    why = error.strerror or str(error)
    return TransportError(
        phrase("host_unreachable", host=attempt.route.text, error=why)
    )


def _lost(attempt: Attempt) -> TransportError:
    if attempt.let_in:
        return lost(attempt.route.text)
    if attempt.route.proxy is not None and not attempt.greeted:
        said = phrase(
            "host_proxy", host=attempt.route.text, command=attempt.route.proxy
        )
        return TransportError(said)
    return DroppedError(phrase("host_dropped", host=attempt.route.text))
