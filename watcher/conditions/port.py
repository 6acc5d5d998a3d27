"""A TCP port: until it is free, or until something listens on it (C1.2)."""

import argparse
import ipaddress
import re
from typing import cast

from policies.model import Target
from policies.target import port_target
from policies.wording import Phrase, phrase
from watcher.conditions import Condition, Place, add_host, host_of
from watcher.errors import UsageError

_PORT = re.compile(
    r"(?:(?:\[(?P<six>[0-9A-Fa-f:.]+(?:%[A-Za-z0-9_.-]+)?)\]|(?P<four>[^:\[\]]+)):)?"
    r"0*(?P<port>[0-9]{1,5})"
)
_NAME = re.compile(r"(?=.*[a-z])[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_.])?")
_MOST = 65535
_LOCALHOST = ("127.0.0.1", "::1")
_ALL = ("0.0.0.0", "::")  # noqa: S104 - nothing is served here


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what a port is named by."""
    parser.add_argument(
        "port",
        metavar="[ADDRESS:]PORT",
        help="an IPv6 address in brackets, a name only with --open; the default is any "
        "address of the machine",
    )
    awaited = parser.add_mutually_exclusive_group(required=True)
    awaited.add_argument(
        "--free", action="store_true", help="until nothing listens on it"
    )
    awaited.add_argument("--open", action="store_true", help="until something does")
    add_host(parser)


def target_of(options: argparse.Namespace, place: Place) -> Target:  # noqa: ARG001
    """Return the target of a port."""
    address, port = _named(options.port)
    if options.free and address is not None and _is_foreign_name(address):
        raise UsageError(phrase("not_own_address", address=address))
    return port_target(port, _awaits(options), address, host_of(options))


def build(options: argparse.Namespace, place: Place) -> Condition:
    """Return the condition of a port."""
    from watcher.looked import Looked, Part, looked_at  # noqa: PLC0415 - asyncio
    from watcher.onhost import port as part  # noqa: PLC0415 - whoever looks needs it

    target = target_of(options, place)
    address, port = _named(options.port)
    addresses = _addresses(address)
    awaits = _awaits(options)

    def refuse() -> Phrase | None:
        foreign = awaits == "free" and not part.is_here(addresses[0])
        return phrase("not_own_address", address=address or "") if foreign else None

    what = Looked(
        target=target,
        part=cast("Part", part),
        spec={"port": port, "addresses": list(addresses), "awaits": awaits},
        # Calls to another machine may take long, which holds up none but their own.
        group=f"port {address}" if address else "port",
        refuse=refuse,
    )
    return looked_at(what, place)


def _awaits(options: argparse.Namespace) -> str:
    return "free" if options.free else "open"


def _named(text: str) -> tuple[str | None, int]:
    """Return the canonical address, None for any, and the port of a text.

    Raises:
        UsageError: it names no port.
    """
    match = _PORT.fullmatch(text)
    port = int(match["port"]) if match else 0
    if match is None or not 0 < port <= _MOST:
        raise UsageError(phrase("bad_port", port=text))
    named = match["four"]
    try:
        if match["six"]:
            six = ipaddress.IPv6Address(match["six"])
            return str(six.ipv4_mapped or six), port
        if named is None or named == "*":
            return None, port
        if _NAME.fullmatch(named.lower()):
            return named.lower(), port
        return str(ipaddress.IPv4Address(named)), port
    except ValueError as error:
        raise UsageError(phrase("bad_port", port=text)) from error


def _is_foreign_name(address: str) -> bool:
    """Say whether it is a name, which is looked up anew with each call."""
    return address != "localhost" and _NAME.fullmatch(address) is not None


def _addresses(address: str | None) -> tuple[str, ...]:
    if address is None:
        return _ALL
    return _LOCALHOST if address == "localhost" else (address,)
