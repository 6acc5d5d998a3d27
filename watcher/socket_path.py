"""Where the service listens, and how a path too long for a socket is reached."""

import contextlib
import json
import os
from collections.abc import Iterator

SOCKET_NAME = "monitor.sock"
LOCK_NAME = "service.lock"
_LONGEST_LOCK = 4096  # bytes
_LONGEST_ADDRESS = 100  # bytes; sun_path holds 108 on Linux, 104 on macOS: unix(7)


@contextlib.contextmanager
def socket_address(state: str) -> Iterator[str]:
    """Give an address for the socket of a state directory, however deep that lies.

    Where the socket lies elsewhere there is a link to it: clients need not know.
    """
    with address_of(f"{state}/{SOCKET_NAME}") as address:
        yield address


@contextlib.contextmanager
def address_of(path: str) -> Iterator[str]:
    """Give an address for a socket's path, which may be too long for one."""
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        yield path
        return
    folder, _, name = path.rpartition("/")
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}/{name}"
    finally:
        os.close(handle)


def service_runs(state: str) -> bool:
    """Say whether the process that was the service last is still there.

    Cheaper than to ask it, and less sure: another process may have its PID by now.
    """
    try:
        with open(f"{state}/{LOCK_NAME}", "rb") as file:
            pid = json.loads(file.read(_LONGEST_LOCK))["pid"]
        os.kill(pid, 0)
    except (KeyError, OSError, OverflowError, TypeError, ValueError):
        return False
    return bool(pid > 0)  # what is below stands for many


def service_answers(state: str) -> bool:
    """Say whether anybody listens there; a service that was killed does not."""
    # Below `socket`, whose enumerations cost what only reads a tenth of its time.
    import _socket  # noqa: PLC0415

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(1.0)
        with socket_address(state) as address:
            connection.connect(address)
    except OSError:
        return False
    finally:
        connection.close()
    return True
