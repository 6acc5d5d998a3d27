"""Who asks: its own command line may carry the pattern of its target (C3.3)."""

import asyncio
import socket
import struct
import sys

from starlette.datastructures import Address

_BY_PID = "pid:"
_CREDENTIALS = struct.Struct("3i")  # ucred of unix(7): PID, user, group


def peer_of(connection: socket.socket) -> tuple[str, int] | None:
    """Return what stands for the address of whoever is behind a unix socket."""
    if connection.family != socket.AF_UNIX or sys.platform != "linux":
        return None
    size = _CREDENTIALS.size
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return f"{_BY_PID}{_CREDENTIALS.unpack(raw)[0]}", 0


async def caller_pid(client: Address | None) -> int:
    """Return the PID of a client of this machine, 0 where that cannot be told."""
    if client is None:
        return 0
    if client.host.startswith(_BY_PID):
        return int(client.host.removeprefix(_BY_PID))
    return await asyncio.to_thread(_owner_of, client.host, client.port)


def _owner_of(host: str, port: int) -> int:
    """Return the PID that holds a TCP connection's other end."""
    import psutil  # noqa: PLC0415 - programs over TCP are few

    try:
        connections = psutil.net_connections("tcp")
    except (psutil.Error, OSError):
        return 0
    return next((one.pid or 0 for one in connections if one.laddr == (host, port)), 0)
