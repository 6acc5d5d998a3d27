"""No error of the library or the system is told as it comes (C3.1, C7.1)."""

import errno
import importlib
import inspect
import pkgutil
import socket
from collections.abc import Iterator
from pathlib import Path

import asyncssh
import pytest

from policies.wording import Lang, phrase
from tests.sshd import Client
from watcher.config import Ssh
from watcher.errors import AuthError, TransportError
from watcher.transport.ssh_config import Route, read_route
from watcher.transport.ssh_errors import Attempt, explain


def error_classes() -> Iterator[type[Exception]]:
    """Give every class of error that the library defines, in all its modules."""
    found: set[type[Exception]] = set()
    for info in pkgutil.iter_modules(asyncssh.__path__, "asyncssh."):
        try:
            module = importlib.import_module(info.name)
        except (ImportError, AttributeError):
            continue  # for another system, or what is not installed
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if issubclass(kind, Exception) and kind.__module__.startswith("asyncssh"):
                found.add(kind)
    yield from sorted(found, key=lambda kind: f"{kind.__module__}.{kind.__name__}")


@pytest.fixture
def route(client: Client) -> Route:
    client.write_config("Host *", "  User tester")
    return read_route("box.example", Ssh())


def test_the_library_has_errors() -> None:
    assert asyncssh.ConnectionLost in set(error_classes())
    assert len(set(error_classes())) > 30


@pytest.mark.parametrize("kind", list(error_classes()))
def test_every_error_of_the_library_is_dealt_with_by_its_class(
    kind: type[Exception],
) -> None:
    assert explain.dispatch(kind) is not explain.dispatch(Exception)


@pytest.mark.parametrize(
    ("error", "key", "final"),
    [
        (asyncssh.HostKeyNotVerifiable("not trusted"), "host_key_unknown", True),
        (asyncssh.HostKeyNotVerifiable("is revoked"), "host_key_revoked", True),
        (asyncssh.PermissionDenied("no"), "host_denied", True),
        (asyncssh.IllegalUserName("odd"), "ssh_config", True),
        (asyncssh.ConfigParseError("line 1"), "ssh_config", True),
        (asyncssh.KeyImportError("odd"), "ssh_config", True),
        (
            asyncssh.ProtocolError("Too many authentication failures"),
            "host_many_keys",
            True,
        ),
        (asyncssh.ProtocolError("bad packet"), "host_error", False),
        (asyncssh.KeyExchangeFailed("No matching host key"), "host_error", False),
        (asyncssh.ConnectionLost("Login timeout expired"), "host_timeout", False),
        (asyncssh.ConnectionLost("Connection lost"), "host_dropped", False),
        (asyncssh.ServiceNotAvailable("odd"), "host_dropped", False),
        (asyncssh.ChannelOpenError(2, "no way"), "host_unreachable", False),
        (asyncssh.TerminalSizeChanged(1, 1, 1, 1), "host_error", False),
        (TimeoutError(), "host_timeout", False),
        (socket.gaierror(socket.EAI_NONAME, "odd"), "host_no_such", True),
        (socket.gaierror(socket.EAI_AGAIN, "later"), "host_unresolved", False),
        (UnicodeError("label too long"), "host_no_such", True),
        (ConnectionRefusedError(errno.ECONNREFUSED, "no"), "host_port_closed", False),
        (
            OSError("Multiple exceptions: [Errno 111] a, [Errno 111] b"),
            "host_port_closed",
            False,
        ),
        (
            OSError("Multiple exceptions: [Errno 111] a, [Errno 113] b"),
            "host_unreachable",
            False,
        ),
        (OSError(errno.EHOSTUNREACH, "no route"), "host_unreachable", False),
        (ConnectionResetError(errno.ECONNRESET, "reset"), "host_dropped", False),
        (TransportError(phrase("host_silent", host="box")), "host_silent", False),
        (RuntimeError(), "host_error", False),
        (ValueError("odd"), "host_error", False),
        (EOFError(), "host_error", False),
    ],
    ids=repr,
)
def test_an_error_is_told_in_a_sentence_and_says_whether_waiting_helps(
    route: Route, error: Exception, key: str, final: bool
) -> None:
    told = explain(error, Attempt(route))
    assert told.phrase.key == key
    assert isinstance(told, AuthError) == final
    assert "box" in told.phrase.render(Lang.EN)


def test_a_name_below_invalid_never_exists_whatever_a_resolver_says(
    client: Client,
) -> None:
    attempt = Attempt(read_route("box.invalid", Ssh()))
    told = explain(socket.gaierror(socket.EAI_AGAIN, "later"), attempt)
    assert told.phrase.key == "host_no_such"


@pytest.mark.parametrize(
    ("error", "key"),
    [
        (asyncssh.ConnectionLost("Connection lost"), "host_lost"),
        (asyncssh.ChannelOpenError(1, "full"), "host_full"),
        (BrokenPipeError(errno.EPIPE, "broken"), "host_lost"),
    ],
)
def test_behind_the_login_the_same_errors_mean_something_else(
    route: Route, error: Exception, key: str
) -> None:
    told = explain(error, Attempt(route, greeted=True, let_in=True))
    assert told.phrase.key == key


def test_a_host_that_has_no_key_of_a_known_kind_any_more_has_changed(
    client: Client,
) -> None:
    key = Path(f"{client.key}.pub").read_text("utf-8")
    client.known_hosts.write_text(f"box.example {key}", "utf-8")
    attempt = Attempt(read_route("box.example", Ssh()))
    error = asyncssh.KeyExchangeFailed("No matching host key algorithm found")
    assert explain(error, attempt).phrase.key == "host_key_changed"
    error = asyncssh.KeyExchangeFailed("No matching cipher")
    assert explain(error, attempt).phrase.key == "host_error"
