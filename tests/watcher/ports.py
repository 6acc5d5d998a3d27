"""Real ports on addresses that no other program uses."""

import random
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

_BELOW_EPHEMERAL = range(10_000, 30_000)  # no client is given one of these by chance


def own_address() -> str:
    """Return a loopback address that nobody else is likely to use, Linux only."""
    return "127." + ".".join(str(random.randint(1, 254)) for _ in range(3))


@contextmanager
def bound(
    address: str, family: int = socket.AF_INET, *options: tuple[int, int, int]
) -> Iterator[socket.socket]:
    """Give a socket on a port of its own, which listens to nobody yet."""
    with closing(socket.socket(family)) as made:
        for option in options:
            made.setsockopt(*option)
        for _ in range(100):
            with suppress(OSError):
                made.bind((address, random.choice(_BELOW_EPHEMERAL)))
                break
        else:
            msg = "no port is to be had"
            raise AssertionError(msg)
        yield made


@contextmanager
def listening(
    address: str, family: int = socket.AF_INET, *options: tuple[int, int, int]
) -> Iterator[socket.socket]:
    """Give a socket that listens on a port of its own."""
    with bound(address, family, *options) as made:
        made.listen()
        yield made


def free_port(address: str, family: int = socket.AF_INET) -> int:
    """Return a port of an address that nobody uses."""
    with bound(address, family) as made:
        return port_of(made)


def port_of(made: socket.socket) -> int:
    """Return the port of a socket."""
    port = made.getsockname()[1]
    assert isinstance(port, int)
    return port


def has_ipv6() -> bool:
    """Say whether this machine speaks IPv6 to itself."""
    try:
        with closing(socket.socket(socket.AF_INET6)) as made:
            made.bind(("::1", 0))
    except OSError:
        return False
    return True
