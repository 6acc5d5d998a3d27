"""Ports by POSIX sh: the table of sockets, and a connection where one can be made."""

from pathlib import Path
from typing import Any

import pytest

from tests.watcher.ports import free_port, listening, own_address, port_of
from tests.watcher.transport.shell.shells import NAMES, SHELLS, program, run
from watcher.onhost import port as part
from watcher.transport.shell import port as shell_part

each_shell = pytest.mark.parametrize("shell", SHELLS, ids=NAMES)
ALL = ("0.0.0.0", "::")


def request(port: int, awaits: str, *addresses: str) -> dict[str, Any]:
    return {"op": "port", "port": port, "addresses": list(addresses), "awaits": awaits}


def sight(wanted: dict[str, Any], found: dict[str, Any]) -> str:
    return str(part.judge(wanted, {}, [found], {"up_s": 0, "at": 0})["sight"])


@each_shell
@pytest.mark.parametrize("awaits", ["free", "open"])
def test_a_shell_sees_what_the_part_sees(shell: list[str], awaits: str) -> None:
    address = own_address()
    wanted = request(free_port(address), awaits, address)
    found = run(shell, shell_part, wanted)
    assert found["table"] == "/proc/net/tcp"
    assert sight(wanted, found) == sight(wanted, part.read(wanted))
    with listening(address) as server:
        for addresses in ([address], ALL):
            wanted = request(port_of(server), awaits, *addresses)
            found = run(shell, shell_part, wanted)
            assert found["listeners"] == [address]
            assert sight(wanted, found) == sight(wanted, part.read(wanted))


@each_shell
@pytest.mark.parametrize(("answers", "seen"), [(0, "released"), (1, "unknown")])
def test_another_machine_is_called_where_that_is_possible(
    shell: list[str], tmp_path: Path, answers: int, seen: str
) -> None:
    program(tmp_path, "nc", f'echo "$@" >"{tmp_path}/called"; exit {answers}')
    wanted = request(7, "open", "203.0.113.7")
    found = run(shell, shell_part, wanted, tmp_path)
    assert sight(wanted, found) == seen
    assert (tmp_path / "called").read_text() == "-z -w 2 203.0.113.7 7\n"


TABLE = """\
order {order}
   0: {address}:1538 00000000:0000 0A 0 0 0
   1: 00000000:0050 00000000:0000 06 0 0 0
end proc
"""
NETSTAT = """\
Active Internet connections (including servers)
Proto Recv-Q Send-Q  Local Address          Foreign Address        (state)
tcp4       0      0  127.0.0.1.5432         *.*                    LISTEN
tcp4       0      0  *.22                   *.*                    LISTEN
tcp46      0      0  *.8080                 *.*                    LISTEN
tcp4       0      0  127.0.0.1.80           127.0.0.1.49152        ESTABLISHED
tcp6       0      0  fe80::1%lo0.443        *.*                    LISTEN
tcp6       0      0  ::1.5432               *.*                    LISTEN
udp4       0      0  *.80                   *.*
end netstat
"""


@pytest.mark.parametrize(
    ("port", "said", "listeners"),
    [
        (5432, TABLE.format(order=1, address="0100007F"), ["127.0.0.1"]),
        (5432, TABLE.format(order=256, address="7F000001"), ["127.0.0.1"]),
        (80, TABLE.format(order=1, address="0100007F"), []),
        (5432, NETSTAT, ["127.0.0.1", "::1"]),
        (22, NETSTAT, ["0.0.0.0"]),
        (8080, NETSTAT, ["::"]),
        (443, NETSTAT, ["fe80::1"]),
        (80, NETSTAT, []),
        (5432, TABLE.format(order="", address="0100007F"), None),
        (5432, "order 1\n", None),
        (5432, NETSTAT.replace("end netstat", ""), None),
        (5432, "", None),
    ],
)
def test_the_table_is_that_of_linux_or_of_bsd_and_whole(
    port: int, said: str, listeners: list[str] | None
) -> None:
    wanted = request(port, "free", *ALL)
    found = dict(shell_part.answer(wanted, said.encode()))
    assert found["listeners"] == listeners
    expected = "unknown" if listeners is None else "held" if listeners else "released"
    assert sight(wanted, found) == expected
