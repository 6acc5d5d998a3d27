"""Ports by POSIX sh: the table of sockets, since a shell can bind nothing.

Linux shows it in /proc, in the byte order of the machine; elsewhere `netstat` does. An
address of another machine is called by `nc`, where there is one.
"""

import re
import shlex
from typing import cast

from policies.model import Json
from watcher.onhost.port import listening
from watcher.transport import Answer, Request

_CONNECT_LIMIT_S = 2
_NETSTAT = re.compile(r"tcp(\d*)\s+\d+\s+\d+\s+(\S+)[.:](\d+)\s.*\bLISTEN\b", re.ASCII)

# A table counts once its own end was written: behind a read that did not fail.
_TABLE = """\
if [ -e /proc/net/tcp ]; then
  printf 'order %s\\n' "$(printf '\\1\\0' | od -A n -t u2 | tr -d ' ')"
  sed -n '/ 0A /p' /proc/net/tcp 2>/dev/null && {
    [ ! -e /proc/net/tcp6 ] || sed -n '/ 0A /p' /proc/net/tcp6 2>/dev/null
  } && echo 'end proc'
elif [ "$(sysctl -n security.bsd.see_other_uids 2>/dev/null)" != 0 ]; then
  netstat -a -n -f inet 2>/dev/null && {
    netstat -a -n -f inet6 2>/dev/null || :
  } && echo 'end netstat'
fi
"""


def script(request: Request) -> str:
    """Return what shows the table, and calls whoever shall answer."""
    if request["awaits"] != "open":
        return _TABLE
    port = int(cast("int", request["port"]))
    addresses = cast("list[str]", request["addresses"])
    return (
        _TABLE
        + "".join(
            f"nc -z -w {_CONNECT_LIMIT_S} {shlex.quote(address)} {port}"
            f" </dev/null >/dev/null 2>&1 && echo {shlex.quote(f'open {address}')}\n"
            for address in addresses
        )
        + ":\n"
    )


def answer(request: Request, output: bytes) -> Answer:
    """Return who listens, as the part says it; no bind was made."""
    lines = output.decode("ascii", "replace").splitlines()
    port = int(cast("int", request["port"]))
    open_ones: dict[str, Json] = {
        line.partition(" ")[2]: "ok" for line in lines if line.startswith("open ")
    }
    found: dict[str, Json] = {"listeners": None, "table": "ENOENT"}
    if "end proc" in lines and "order 1" in lines:
        found = {
            "listeners": listening(lines, port, "little"),
            "table": "/proc/net/tcp",
        }
    elif "end proc" in lines and "order 256" in lines:
        found = {"listeners": listening(lines, port, "big"), "table": "/proc/net/tcp"}
    elif "end netstat" in lines:
        found = {"listeners": _by_netstat(lines, port), "table": "netstat"}
    return {**found, "bind": {}, "connect": open_ones}


def _by_netstat(lines: list[str], port: int) -> list[str]:
    """Return the addresses that listen on a port, from BSD's `netstat -a -n`."""
    found = []
    for line in lines:
        match = _NETSTAT.match(line)
        if match is not None and int(match[3]) == port:
            any_one = "0.0.0.0" if match[1] == "4" else "::"  # noqa: S104 - a name for it
            address = any_one if match[2] == "*" else match[2].partition("%")[0]
            found.append(address)
    return found
