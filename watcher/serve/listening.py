"""The sockets of the service: one in the file system, and one of loopback TCP."""

import contextlib
import os
import socket
import stat
from collections.abc import Iterator

from policies.wording import phrase
from watcher.errors import ConfigError
from watcher.loopback import parse_listen
from watcher.socket_path import SOCKET_NAME, address_of

_BACKLOG = 1024


@contextlib.contextmanager
def listening(state: str, elsewhere: str | None) -> Iterator[socket.socket]:
    """Listen on the socket of a state directory, for its owner alone.

    Where it is to lie elsewhere, its place in the state directory holds a link there,
    so that every command finds it.

    Raises:
        ConfigError: there is something else at that place, or it cannot be made there.
    """
    usual = f"{state}/{SOCKET_NAME}"
    path = elsewhere or usual
    with contextlib.suppress(FileNotFoundError):
        os.unlink(usual)  # we hold the lock: whoever made it is gone
    if path != usual:
        _make_room(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made: list[str] = []
    try:
        _bind(listener, path)
        made.append(path)
        if path != usual:
            os.symlink(path, usual)
            made.append(usual)
        yield listener
    finally:
        listener.close()
        for one in made:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(one)


def _bind(listener: socket.socket, path: str) -> None:
    before = os.umask(0o177)
    try:
        with address_of(path) as address:
            listener.bind(address)
    except OSError as error:
        raise _cannot(path, error) from error
    finally:
        os.umask(before)
    listener.listen(_BACKLOG)
    listener.setblocking(False)


def _make_room(path: str) -> None:
    """Take away what a service that was killed has left; nothing else.

    Raises:
        ConfigError: it is something else, or somebody answers there.
    """
    try:
        is_socket = stat.S_ISSOCK(os.lstat(path).st_mode)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _cannot(path, error) from error
    if not is_socket or _answers(path):
        raise ConfigError(phrase("socket_taken", path=path))
    os.unlink(path)


def _answers(path: str) -> bool:
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking,
        address_of(path) as address,
    ):
        asking.settimeout(1.0)
        try:
            asking.connect(address)
        except ConnectionRefusedError:
            return False
        except OSError:
            return True  # in doubt it is somebody's
    return True


def listen_at(text: str) -> tuple[socket.socket, str]:
    """Listen at a loopback address; return the socket and the URL that leads there.

    Raises:
        ConfigError: it is not one, or it is taken.
    """
    host, port = parse_listen(text, "[serve] listen")
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    bare = "127.0.0.1" if host == "localhost" else host.strip("[]")
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((bare, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise _cannot(text, error) from error
    listener.setblocking(False)
    return listener, f"http://{host}:{listener.getsockname()[1]}"


def _cannot(address: str, error: OSError) -> ConfigError:
    why = error.strerror or str(error)
    return ConfigError(phrase("listen_failed", address=address, error=why))
