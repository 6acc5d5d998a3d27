"""A TCP port: free, or open, on addresses of this machine or of another (C1.2, C3.1).

Three means, in this order: the table of sockets, which shows who listens; a bind, which
shows whether anybody could; a connection, which shows whether anybody answers. The bind
is closed at once and never listens, and is not tried on what the table shows as taken.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from watcher.onhost import unknown

CONNECT_LIMIT_S = 2.0
"""A connection that takes longer has shown nothing."""

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTENS = "0A"  # TCP_LISTEN of the kernel's tcp_states.h
_OK = "ok"
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - nothing is served here
_NO_SUCH_FAMILY = frozenset({"EAFNOSUPPORT", "EPROTONOSUPPORT"})


def ask(spec: Mapping[str, Any], memory: Mapping[str, Any]) -> list[dict[str, Any]]:  # noqa: ARG001
    """Return the one thing to read."""
    wanted = {name: spec[name] for name in ("port", "addresses", "awaits")}
    return [{"op": "port", **wanted}]


def follows(spec: Mapping[str, Any], memory: Mapping[str, Any]) -> list[list[int]]:  # noqa: ARG001
    """Return none: it is no process that is waited for."""
    return []


def read(request: dict[str, Any]) -> dict[str, Any]:
    """Return who listens, and what a bind or a connection comes to.

    Returns:
        `listeners`, the addresses with a listener on the port, None where no table can
        be read (`table` says why); by address, `bind` and `connect`: "ok" or the name
        of the error.
    """
    port, addresses = int(request["port"]), list(request["addresses"])
    found = _table(port)
    listeners = found["listeners"]
    binds: dict[str, str] = {}
    if request["awaits"] == "open":
        tries = not _listened(addresses, listeners)
    elif _taken(addresses, listeners) and not _unsure(addresses, listeners):
        tries = False
    else:
        reuse = listeners is not None
        binds = {address: _bind(address, port, reuse=reuse) for address in addresses}
        tries = listeners is None
    connects = {one: _connect(one, port) for one in addresses} if tries else {}
    return {**found, "bind": binds, "connect": connects}


def judge(
    spec: Mapping[str, Any],
    memory: Mapping[str, Any],
    answers: Sequence[Mapping[str, Any]],
    now: Mapping[str, float],  # noqa: ARG001
) -> dict[str, Any]:
    """Return whether the port is free, or open; what was not seen is unknown."""
    answer = answers[0]
    if "error" in answer:
        return unknown(dict(memory), "socket", answer["error"])
    free = spec["awaits"] == "free"
    sight, reason = (_free if free else _open)(spec["addresses"], answer)
    seen: dict[str, Any] = {
        "sight": sight,
        "evidence": {
            "means": _means(answer),
            "port": spec["port"],
            **{name: answer[name] for name in ("listeners", "bind", "connect")},
        },
        "memory": {},
    }
    if sight == "unknown":
        error = reason or answer.get("table") or "?"
        seen["reason"] = ["port_unseen", {"port": spec["port"], "error": error}]
    return seen


def _free(addresses: Sequence[str], answer: Mapping[str, Any]) -> tuple[str, str]:
    """Return what is known of a port that shall be free, and why nothing is.

    1. A listener in the table, an address in use, an answer to a connection: held.
    2. Every bind was made and no table shows a listener: free. Without a table the
       bind was a strict one, and every connection must have been refused too.
    3. A bind that was not permitted, or cannot be tried at all, leaves it to the table.
    """
    listeners, binds = answer["listeners"], answer["bind"]
    bound = {address for address, said in binds.items() if said == _OK}
    unproved = [address for address in addresses if address not in bound]
    connects = answer["connect"]
    if _taken(unproved, listeners) or _exact(addresses, listeners):
        return "held", ""
    if "EADDRINUSE" in binds.values() or _OK in connects.values():
        return "held", ""
    there = {a: said for a, said in binds.items() if said not in _NO_SUCH_FAMILY}
    if listeners is None:
        refused = all(connects.get(address) == "ECONNREFUSED" for address in there)
        if there and refused and set(there.values()) == {_OK}:
            return "released", ""
        return "unknown", _first([*there.values(), *connects.values()])
    wrong = [said for said in there.values() if said not in {_OK, "EACCES"}]
    wrong += ["EAFNOSUPPORT"] if binds and not there else []
    return ("unknown", _first(wrong)) if wrong else ("released", "")


def _open(addresses: Sequence[str], answer: Mapping[str, Any]) -> tuple[str, str]:
    """Return what is known of a port that shall be open, and why nothing is.

    A listener on all addresses counts for those that every machine has: that another
    one answers is shown by a connection alone.
    """
    listeners, connects = answer["listeners"], answer["connect"]
    if _listened(addresses, listeners) or _OK in connects.values():
        return "released", ""
    tried = [said for said in connects.values() if said not in _NO_SUCH_FAMILY]
    if tried:
        wrong = _first(said for said in tried if said != "ECONNREFUSED")
        return ("unknown", wrong) if wrong else ("held", "")
    told = listeners is not None and all(map(_is_own, addresses))
    return ("held" if told and not _taken(addresses, listeners) else "unknown"), ""


def _first(said: Iterable[str]) -> str:
    return next((one for one in said if one != _OK), "")


def _means(answer: Mapping[str, Any]) -> str:
    tried = [name for name in ("bind", "connect") if answer[name]]
    table = [] if answer["listeners"] is None else [str(answer["table"])]
    return ", ".join([*table, *tried]) or "socket"


# -- who listens ----------------------------------------------------------------


def _exact(addresses: Iterable[str], listeners: Sequence[str] | None) -> bool:
    """Say whether somebody listens on one of these very addresses, or on any at all.

    Of the whole machine ("0.0.0.0", "::") every address of its family is part.
    """
    return any(
        listener == _plain(address)
        or (address in _ANY and _family(listener) == _family(address))
        for address in addresses
        for listener in listeners or ()
    )


def _taken(addresses: Iterable[str], listeners: Sequence[str] | None) -> bool:
    """Say whether somebody listens on one of these, as far as a table tells."""
    return any(
        _exact([address], listeners)
        or "::" in (listeners or ())
        or (_family(address) == socket.AF_INET and "0.0.0.0" in (listeners or ()))  # noqa: S104
        for address in addresses
    )


def _listened(addresses: Sequence[str], listeners: Sequence[str] | None) -> bool:
    """Say whether a table alone shows that a connection would be taken."""
    own = [address for address in addresses if _is_own(address)]
    sure = _taken(own, listeners) and not _unsure(own, listeners)
    return sure or _exact(addresses, listeners)


def _unsure(addresses: Sequence[str], listeners: Sequence[str] | None) -> bool:
    """Say whether it hangs on a listener of "::", which may be for IPv6 alone."""
    narrower = [one for one in listeners or () if one != "::"]
    six = any(_family(address) == socket.AF_INET6 for address in addresses)
    return not six and not _taken(addresses, narrower)


def _is_own(address: str) -> bool:
    """Say whether an address is of whatever machine looks at it; of a name, no."""
    try:
        return address in _ANY or ipaddress.ip_address(_plain(address)).is_loopback
    except ValueError:
        return False


def _plain(address: str) -> str:
    """Return an address without the zone that no table shows."""
    return address.partition("%")[0]


def _family(address: str) -> int:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _table(port: int) -> dict[str, Any]:
    """Return who listens by Linux's table of sockets; None where there is none."""
    listeners: list[str] = []
    try:
        with open(_TABLES[0], encoding="ascii") as four:
            listeners += listening(four, port)
        if os.path.exists(_TABLES[1]):  # not where IPv6 is switched off
            with open(_TABLES[1], encoding="ascii") as six:
                listeners += listening(six, port)
    except OSError as error:
        return {"listeners": None, "table": _name(error)}
    return {"listeners": listeners, "table": _TABLES[0]}


def listening(lines: Iterable[str], port: int, order: str = sys.byteorder) -> list[str]:
    """Return the addresses that listen on a port, from lines as in proc_net_tcp(5).

    Args:
        lines: of the table, its heading too.
        port: the local port.
        order: bytes of the machine that wrote the table.
    """
    wanted = f":{port:04X}"
    found: list[str] = []
    for line in lines:
        words = line.split(None, 4)
        if len(words) > 3 and words[3] == _LISTENS and words[1].endswith(wanted):
            address = _address(words[1].partition(":")[0], order)
            if address not in found:
                found.append(address)
    return found


def _address(digits: str, order: str) -> str:
    """Return an address from the hexadecimal words of the kernel's table."""
    width = "<I" if order == "little" else ">I"
    words = [int(digits[at : at + 8], 16) for at in range(0, len(digits), 8)]
    raw = b"".join(struct.pack(width, word) for word in words)
    if len(raw) == 4:
        return str(ipaddress.IPv4Address(raw))
    six = ipaddress.IPv6Address(raw)
    return str(six.ipv4_mapped or six)


# -- what can be tried ----------------------------------------------------------


def _name(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, "EIO")


def _socket(address: str) -> socket.socket:
    """Return a socket of the address's family; IPv6 is for itself alone."""
    made = socket.socket(_family(address), socket.SOCK_STREAM)
    if made.family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    return made


def _where(address: str, port: int) -> Any:
    """Return a literal address as the socket takes it, its zone as a number."""
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    kind = socket.SOCK_STREAM
    found = socket.getaddrinfo(address, port, _family(address), kind, flags=flags)
    return found[0][4]


def _bind(address: str, port: int, *, reuse: bool) -> str:
    """Return "ok" where the port could be bound, and give it back at once.

    Args:
        address: a literal one.
        port: 0 for any.
        reuse: leave connections that linger aside (TIME_WAIT), as a server does.
    """
    try:
        with _socket(address) as tried:
            if reuse:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(_where(address, port))
    except OSError as error:
        if address == "::" and error.errno == errno.EADDRNOTAVAIL:
            return "EAFNOSUPPORT"  # IPv6 is compiled in, and switched off
        return _name(error)
    return _OK


def is_here(address: str) -> bool:
    """Say whether this machine has an address; also where that cannot be told."""
    return _bind(address, 0, reuse=False) != "EADDRNOTAVAIL"


def _connect(address: str, port: int) -> str:
    """Return "ok" where somebody takes a connection, which is closed at once.

    A name may mean several addresses: one that answers is enough.
    """
    target = _ANY.get(address, address)
    try:
        found = _addresses_of(target, port)
    except OSError as error:
        return str(error.strerror or error)
    said = [_call(one, port) for one in found]
    if _OK in said:
        return _OK
    return next((one for one in said if one != "ECONNREFUSED"), "ECONNREFUSED")


def _addresses_of(target: str, port: int) -> list[str]:
    """Return the literal addresses that a name has; of a literal one itself.

    Raises:
        OSError: the name cannot be looked up.
    """
    if ":" in target or target.replace(".", "").isdigit():
        return [target]
    found = socket.getaddrinfo(target, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


def _call(target: str, port: int) -> str:
    try:
        with _socket(target) as tried:
            tried.settimeout(CONNECT_LIMIT_S)
            tried.connect(_where(target, port))
            return "ECONNREFUSED" if met_itself(tried) else _OK
    except socket.timeout:  # before Python 3.10 it is no TimeoutError
        return "ETIMEDOUT"
    except OSError as error:
        if target == "::1" and error.errno == errno.EADDRNOTAVAIL:
            return "EAFNOSUPPORT"
        return _name(error)


def met_itself(tried: socket.socket) -> bool:
    """Say whether a connection has found nobody but its own socket.

    TCP lets one meet itself where its own port was drawn to be the one it calls.
    """
    return bool(tried.getsockname()[:2] == tried.getpeername()[:2])
