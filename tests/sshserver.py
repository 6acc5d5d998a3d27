"""The SSH library's own server on loopback, for faults that OpenSSH does not have."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh

Program = Callable[["asyncssh.SSHServerProcess[bytes]"], Awaitable[None]]


class Doorman(asyncssh.SSHServer):
    """Lets everybody in; a subclass does not."""

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self.connection = conn

    def begin_auth(self, username: str) -> bool:
        return False


@asynccontextmanager
async def ssh_server(
    program: Program, known_hosts: Path, *, doorman: type[Doorman] = Doorman
) -> AsyncIterator[str]:
    """Run such a server, whose every command is `program`; gives its host text."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[key],
        server_factory=doorman,
        process_factory=program,
        encoding=None,
    )
    port = server.get_port()
    public = key.export_public_key().decode()
    _write(known_hosts, f"[127.0.0.1]:{port} {public}")
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.close()
        await server.wait_closed()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
