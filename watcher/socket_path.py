"""Where the service listens, and how a path too long for a socket is reached."""

import contextlib
import os
from collections.abc import Iterator

SOCKET_NAME = "monitor.sock"
LOCK_NAME = "service.lock"
_LONGEST_ADDRESS = 100  # bytes; sun_path holds 108 on Linux, 104 on macOS: unix(7)


@contextlib.contextmanager
def socket_address(state: str) -> Iterator[str]:
    """Give an address for the socket of a state directory, however deep that lies."""
    path = f"{state}/{SOCKET_NAME}"
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        yield path
        return
    handle = os.open(state, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}/{SOCKET_NAME}"
    finally:
        os.close(handle)


def service_answers(state: str) -> bool:
    """Say whether anybody listens there; a service that was killed does not."""
    import socket  # noqa: PLC0415 - start-up time of commands that only read

    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(1.0)
        with socket_address(state) as address:
            connection.connect(address)
    except OSError:
        return False
    finally:
        connection.close()
    return True
