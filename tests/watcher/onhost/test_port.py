"""Ports: who listens, whether one could be bound, whether anybody answers."""

import errno
import socket
import struct
import sys
from contextlib import closing
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.watcher.ports import (
    bound,
    free_port,
    has_ipv6,
    listening,
    own_address,
    port_of,
)
from watcher.onhost import port as part

NOW = {"up_s": 100.0, "at": 0.0}
REUSE_ADDR = (socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
REUSE_PORT = (socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
DUAL = (socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
ONLY_SIX = (socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
ALL = ("0.0.0.0", "::")
needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on this machine")


def look(port: int, awaits: str, *addresses: str) -> dict[str, Any]:
    """Read and judge once."""
    spec = {"port": port, "addresses": addresses, "awaits": awaits}
    return judged(spec, *map(part.read, part.ask(spec, {})))


def judged(spec: dict[str, Any], *answers: dict[str, Any]) -> dict[str, Any]:
    found = part.judge(spec, {}, answers, NOW)
    assert ("reason" in found) is (found["sight"] == "unknown")
    return found


def without_table(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let the table be missing, as where there is no /proc."""
    monkeypatch.setattr(part, "_TABLES", (str(folder / "tcp"), str(folder / "tcp6")))


# Free


def test_a_port_on_which_nobody_listens_is_free_and_left_as_it_was() -> None:
    address = own_address()
    port = free_port(address)
    found = look(port, "free", address)
    assert found["sight"] == "released"
    assert found["evidence"] == {
        "means": "/proc/net/tcp, bind",
        "port": port,
        "listeners": [],
        "bind": {address: "ok"},
        "connect": {},
    }
    with closing(socket.socket()) as server:  # without SO_REUSEADDR
        server.bind((address, port))
        server.listen()


@pytest.mark.parametrize("options", [[], [REUSE_ADDR], [REUSE_ADDR, REUSE_PORT]])
def test_a_listener_holds_a_port_whatever_it_shares(
    options: list[tuple[int, int, int]],
) -> None:
    address = own_address()
    with listening(address, socket.AF_INET, *options) as server:
        found = look(port_of(server), "free", address)
    assert found["sight"] == "held"
    assert found["evidence"]["listeners"] == [address]


def test_a_listener_that_no_table_shows_is_found_by_the_bind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "tcp").write_text("  sl  local_address\n")
    without_table(monkeypatch, tmp_path)
    address = own_address()
    with listening(address, socket.AF_INET, REUSE_ADDR, REUSE_PORT) as server:
        found = look(port_of(server), "free", address)
    assert found["sight"] == "held"
    assert found["evidence"]["bind"] == {address: "EADDRINUSE"}


def test_a_listener_on_one_address_holds_the_port_of_the_whole_machine() -> None:
    with listening(own_address()) as server:
        assert look(port_of(server), "free", *ALL)["sight"] == "held"
        assert look(port_of(server), "free", "0.0.0.0")["sight"] == "held"
        assert look(port_of(server), "free", own_address())["sight"] == "released"


def test_a_listener_on_all_addresses_holds_the_port_of_each() -> None:
    with listening("0.0.0.0") as server:
        found = look(port_of(server), "free", own_address())
    assert found["sight"] == "held"
    assert found["evidence"]["listeners"] == ["0.0.0.0"]


def test_a_port_that_is_bound_by_somebody_who_does_not_listen_is_held() -> None:
    address = own_address()
    with bound(address) as other:
        found = look(port_of(other), "free", address)
    assert found["sight"] == "held"
    assert found["evidence"]["bind"] == {address: "EADDRINUSE"}


def lingering(address: str) -> int:
    """Leave a closed connection behind (TIME_WAIT) and return its server's port."""
    with listening(address, socket.AF_INET, REUSE_ADDR) as server:
        port = port_of(server)
        with closing(socket.create_connection((address, port), 20)) as client:
            taken, _ = server.accept()
            taken.close()  # first, so that what lingers is the server's
            assert client.recv(1) == b""
    return port


def test_a_connection_that_lingers_is_no_listener() -> None:
    address = own_address()
    assert look(lingering(address), "free", address)["sight"] == "released"


@needs_ipv6
def test_a_listener_of_ipv6_alone_leaves_ipv4_free() -> None:
    with listening("::", socket.AF_INET6, ONLY_SIX) as server:
        port = port_of(server)
        assert look(port, "free", own_address())["sight"] == "released"
        assert look(port, "free", "::1")["sight"] == "held"
        assert look(port, "free", *ALL)["sight"] == "held"


@needs_ipv6
def test_a_listener_of_both_families_holds_ipv4_too() -> None:
    with listening("::", socket.AF_INET6, DUAL, REUSE_ADDR, REUSE_PORT) as server:
        found = look(port_of(server), "free", own_address())
    assert found["sight"] == "held"
    assert found["evidence"]["listeners"] == ["::"]


@needs_ipv6
def test_a_port_of_both_families_is_bound_one_after_the_other() -> None:
    port = free_port("::", socket.AF_INET6)
    found = look(port, "free", *ALL)
    assert found["sight"] == "released"
    assert found["evidence"]["bind"] == {"0.0.0.0": "ok", "::": "ok"}


def test_an_address_of_another_machine_is_never_free() -> None:
    found = look(free_port("127.0.0.1"), "free", "203.0.113.7")
    assert found["sight"] == "unknown"
    assert found["reason"][1]["error"] == "EADDRNOTAVAIL"


def test_without_a_table_a_strict_bind_and_a_refusal_show_that_a_port_is_free(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without_table(monkeypatch, tmp_path)
    address = own_address()
    found = look(free_port(address), "free", address)
    assert found["sight"] == "released"
    assert found["evidence"]["means"] == "bind, connect"
    assert found["evidence"]["connect"] == {address: "ECONNREFUSED"}
    assert look(lingering(address), "free", address)["sight"] == "held"
    with listening(address) as server:
        assert look(port_of(server), "free", address)["sight"] == "held"


def test_a_table_that_cannot_be_read_and_no_socket_are_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def no_socket(address: str) -> socket.socket:
        raise OSError(errno.EMFILE, "no more")

    address = own_address()
    port = free_port(address)
    monkeypatch.setattr(part, "_socket", no_socket)
    assert look(port, "free", address)["reason"][1]["error"] == "EMFILE"
    without_table(monkeypatch, tmp_path)
    for awaits in ("free", "open"):
        assert look(port, awaits, address)["sight"] == "unknown"


# Open


def test_a_port_is_open_when_somebody_listens_on_it() -> None:
    address = own_address()
    with listening(address) as server:
        port = port_of(server)
        for addresses in ([address], ALL, ["0.0.0.0"]):
            found = look(port, "open", *addresses)
            assert found["sight"] == "released"
            assert found["evidence"]["means"] == "/proc/net/tcp"
        assert look(port, "open", own_address())["sight"] == "held"


def test_a_listener_on_all_addresses_opens_those_of_loopback() -> None:
    with listening("0.0.0.0") as server:
        found = look(port_of(server), "open", own_address())
    assert found["sight"] == "released"
    assert found["evidence"]["means"] == "/proc/net/tcp"


def test_a_port_that_refuses_is_held() -> None:
    address = own_address()
    found = look(free_port(address), "open", address)
    assert found["sight"] == "held"
    assert found["evidence"]["connect"] == {address: "ECONNREFUSED"}


def test_a_port_of_any_address_that_refuses_on_loopback_is_held() -> None:
    assert look(free_port("0.0.0.0"), "open", *ALL)["sight"] == "held"


@needs_ipv6
def test_a_listener_of_ipv6_alone_does_not_open_ipv4() -> None:
    with listening("::", socket.AF_INET6, ONLY_SIX) as server:
        assert look(port_of(server), "open", "127.0.0.1")["sight"] == "held"
        assert look(port_of(server), "open", "::1")["sight"] == "released"
    with listening("::", socket.AF_INET6, DUAL) as server:
        assert look(port_of(server), "open", "127.0.0.1")["sight"] == "released"


def test_a_port_is_open_when_it_takes_a_connection_that_no_table_shows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without_table(monkeypatch, tmp_path)
    address = own_address()
    with listening(address) as server:
        found = look(port_of(server), "open", address)
        server.settimeout(20)
        server.accept()[0].close()
    assert found["sight"] == "released"
    assert found["evidence"]["connect"] == {address: "ok"}


def test_a_listener_on_all_addresses_here_opens_no_other_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its own table says nothing of whoever has the address."""
    monkeypatch.setattr(part, "_connect", lambda address, port: "EHOSTUNREACH")
    with listening("0.0.0.0") as server:
        found = look(port_of(server), "open", "203.0.113.7")
    assert found["sight"] == "unknown"
    assert found["reason"][1]["error"] == "EHOSTUNREACH"


def test_a_connection_that_nobody_takes_in_time_shows_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(part, "CONNECT_LIMIT_S", 0.05)
    address = own_address()
    with bound(address) as server:
        server.listen(0)
        clients = [socket.socket() for _ in range(4)]
        for client in clients:  # more than its queue takes
            client.setblocking(False)
            client.connect_ex((address, port_of(server)))
        assert part._connect(address, port_of(server)) == "ETIMEDOUT"
        for client in clients:
            client.close()


def test_a_connection_that_meets_itself_is_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """TCP allows it, where the port that is drawn is the one that is called."""
    address = own_address()
    port = free_port(address)
    plain = part._socket

    def with_that_port(target: str) -> socket.socket:
        made = plain(target)
        made.bind((target, port))
        return made

    monkeypatch.setattr(part, "_socket", with_that_port)
    assert part._connect(address, port) == "ECONNREFUSED"


# What the answers mean


def answer(
    listeners: list[str] | None,
    bind: dict[str, str] | None = None,
    connect: dict[str, str] | None = None,
) -> dict[str, Any]:
    table = "ENOENT" if listeners is None else "table"
    found = {"listeners": listeners, "table": table}
    return {**found, "bind": bind or {}, "connect": connect or {}}


A, SIX = "127.0.0.1", "::1"


@pytest.mark.parametrize(
    ("addresses", "said", "sight"),
    [
        pytest.param([A], answer([], {A: "EACCES"}), "released", id="table alone"),
        pytest.param([A], answer([]), "released", id="by a shell"),
        pytest.param(["::"], answer([]), "released", id="by a shell, IPv6"),
        pytest.param([A], answer(["::"]), "held", id="maybe for IPv6 alone"),
        pytest.param([A], answer(["::"], {A: "EACCES"}), "held", id="may not bind"),
        pytest.param([A], answer([SIX]), "released", id="another family"),
        pytest.param([SIX], answer(["0.0.0.0"]), "released", id="IPv4 alone"),
        pytest.param([A], answer([], {A: "EIO"}), "unknown", id="no bind"),
        pytest.param([SIX], answer([], {SIX: "EAFNOSUPPORT"}), "unknown", id="no IPv6"),
        pytest.param(
            ALL, answer([], {"0.0.0.0": "ok", "::": "EAFNOSUPPORT"}), "released", id="4"
        ),
        pytest.param([A], answer(None), "unknown", id="nothing"),
        pytest.param([A], answer(None, {A: "ok"}), "unknown", id="no connection"),
        pytest.param(
            [A], answer(None, {A: "ok"}, {A: "ETIMEDOUT"}), "unknown", id="silence"
        ),
        pytest.param(
            [A],
            answer(None, {A: "EACCES"}, {A: "ECONNREFUSED"}),
            "unknown",
            id="neither table nor bind",
        ),
        pytest.param([A], answer(None, {A: "ok"}, {A: "ok"}), "held", id="an answer"),
    ],
)
def test_a_port_is_free_only_where_that_was_seen(
    addresses: list[str], said: dict[str, Any], sight: str
) -> None:
    spec = {"port": 1, "addresses": addresses, "awaits": "free"}
    assert judged(spec, said)["sight"] == sight


@pytest.mark.parametrize(
    ("addresses", "said", "sight"),
    [
        pytest.param([A], answer([]), "held", id="by a shell"),
        pytest.param([A], answer([A]), "released", id="a listener, by a shell"),
        pytest.param([A], answer(["::"]), "unknown", id="maybe for IPv6 alone"),
        pytest.param([A], answer(None), "unknown", id="nothing"),
        pytest.param(["192.0.2.1"], answer([]), "unknown", id="another machine"),
        pytest.param(
            ["192.0.2.1"], answer(["192.0.2.1"]), "released", id="its own address"
        ),
        pytest.param(
            [A, SIX],
            answer([], connect={A: "ECONNREFUSED", SIX: "EAFNOSUPPORT"}),
            "held",
            id="no IPv6",
        ),
        pytest.param(
            [A, SIX],
            answer([], connect={A: "ECONNREFUSED", SIX: "ETIMEDOUT"}),
            "unknown",
            id="silence",
        ),
        pytest.param(
            [A, SIX],
            answer([], connect={A: "ETIMEDOUT", SIX: "ok"}),
            "released",
            id="one answers",
        ),
        pytest.param(
            ["fe80::1%eth0"], answer(["fe80::1"]), "released", id="a zone is not shown"
        ),
    ],
)
def test_a_port_is_open_only_where_that_was_seen(
    addresses: list[str], said: dict[str, Any], sight: str
) -> None:
    spec = {"port": 1, "addresses": addresses, "awaits": "open"}
    assert judged(spec, said)["sight"] == sight


NAMES = st.sampled_from(["ok", "EACCES", "EADDRINUSE", "ECONNREFUSED", "EIO"])
SOME = st.sampled_from([A, SIX, "0.0.0.0", "::", "192.0.2.1"])


@given(
    addresses=st.lists(SOME, min_size=1, max_size=2, unique=True),
    listeners=st.none() | st.lists(SOME, max_size=3),
    said=st.lists(NAMES, min_size=4, max_size=4),
)
def test_a_port_with_a_listener_or_without_any_proof_is_never_free(
    addresses: list[str], listeners: list[str] | None, said: list[str]
) -> None:
    binds = dict(zip(addresses, said[:2], strict=False))
    connects = dict(zip(addresses, said[2:], strict=False))
    spec = {"port": 1, "addresses": addresses, "awaits": "free"}
    found = judged(spec, answer(listeners, binds, connects))
    if found["sight"] == "released":
        assert "EADDRINUSE" not in binds.values()
        assert "ok" not in connects.values()
        assert not set(addresses) & set(listeners or ())
        assert listeners is not None or set(binds.values()) == {"ok"}


@pytest.mark.parametrize("awaits", ["free", "open"])
def test_a_failure_to_look_is_unknown(awaits: str) -> None:
    spec = {"port": 1, "addresses": [A], "awaits": awaits}
    error = {"errno": "EIO", "text": "broken"}
    found = judged(spec, {"error": error})
    assert found["sight"] == "unknown"
    assert found["evidence"] == {"means": "socket", **error}
    assert part.follows(spec, {}) == []


def test_of_loopback_every_address_is_ours() -> None:
    assert part.is_here(own_address())
    assert not part.is_here("203.0.113.7")


@needs_ipv6
def test_an_ipv6_that_is_switched_off_is_no_family_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Off:
        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            return

        def fail(self, *_: object) -> None:
            raise OSError(errno.EADDRNOTAVAIL, "off")

        bind = connect = fail
        settimeout = setsockopt = lambda *_: None

    monkeypatch.setattr(part, "_socket", lambda address: Off())
    assert part._bind("::", 1, reuse=True) == "EAFNOSUPPORT"
    assert part._bind("::1", 1, reuse=True) == "EADDRNOTAVAIL"
    assert part._connect("::", 1) == "EAFNOSUPPORT"
    assert part._connect("127.0.0.1", 1) == "EADDRNOTAVAIL"


# The table


def line(address: IPv4Address | IPv6Address, port: int, state: str, order: str) -> str:
    """Write a line as the kernel does."""
    width = "<I" if order == "little" else ">I"
    words = struct.iter_unpack(width, address.packed)
    shown = "".join(f"{word:08X}" for (word,) in words)
    rest = "00000000:00000000 00:00000000 00000000     0        0 75 1 0 100 0 0 10 0"
    return f"   0: {shown}:{port:04X} {'0' * len(shown)}:0000 {state} {rest}\n"


@given(
    address=st.ip_addresses(),
    port=st.integers(1, 65535),
    order=st.sampled_from(["little", "big"]),
)
def test_an_address_is_read_from_the_table_of_any_machine(
    address: IPv4Address | IPv6Address, port: int, order: str
) -> None:
    lines = ["  sl  local_address rem_address   st\n", line(address, port, "0A", order)]
    (found,) = part.listening([*lines, lines[1]], port, order)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    assert ip_address(found) == (mapped or address)
    assert part.listening(lines, port % 65535 + 1, order) == []
    assert part.listening([line(address, port, "06", order)], port, order) == []


def test_a_machine_without_ipv6_has_one_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without_table(monkeypatch, tmp_path)
    own = sys.byteorder
    (tmp_path / "tcp").write_text(line(IPv4Address(A), 80, "0A", own))
    assert part._table(80) == {"listeners": [A], "table": str(tmp_path / "tcp")}
    (tmp_path / "tcp6").write_text(line(IPv6Address(SIX), 80, "0A", own))
    assert part._table(80)["listeners"] == [A, SIX]
    (tmp_path / "tcp6").unlink()
    (tmp_path / "tcp6").mkdir()
    assert part._table(80) == {"listeners": None, "table": "EISDIR"}


def test_a_name_is_open_where_one_of_its_addresses_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number = listener.getsockname()[1]
        addresses = ["127.0.0.2", "127.0.0.1"]

        def look_up(name: str, port: int, **kind: object) -> list[object]:
            if name != "db2":
                raise socket.gaierror(-2, "Name or service not known")
            return [(2, 1, 6, "", (address, port)) for address in addresses]

        real = socket.getaddrinfo
        monkeypatch.setattr(
            socket,
            "getaddrinfo",
            lambda name, *rest, **kind: (
                real(name, *rest, **kind)
                if name[0].isdigit()
                else look_up(name, *rest, **kind)
            ),
        )
        for name, sight in (("db2", "released"), ("nowhere", "unknown")):
            spec = {"port": number, "addresses": [name], "awaits": "open"}
            (request,) = part.ask(spec, {})
            seen = part.judge(spec, {}, [part.read(request)], NOW)
            assert (name, seen["sight"]) == (name, sight)
        addresses.remove("127.0.0.1")
        spec = {"port": number, "addresses": ["db2"], "awaits": "open"}
        (request,) = part.ask(spec, {})
        assert part.judge(spec, {}, [part.read(request)], NOW)["sight"] == "held"
