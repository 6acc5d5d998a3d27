"""A host called `box`: a real OpenSSH server on this machine, for whole commands."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.sshd import Client, Sshd

_TOOLS = (
    "awk base64 basename cat cut dd df dirname echo env expr false find grep head "
    "id kill ls mkdir nc od printf ps pwd readlink rm sed sh sleep sort stat tail test "
    "timeout touch tr true uname wc"
)


@contextmanager
def box(folder: Path, **options: str) -> Iterator[Sshd]:
    """Run the server that `--host box` means; its home folder is `folder/there`."""
    client = Client(Path(os.environ["HOME"]))
    server = Sshd(folder / "sshd", client.key)
    home = folder / "there"
    home.mkdir()
    (home / ".bashrc").write_text("echo noise; echo noise >&2\n")
    server.options |= {"SetEnv": f"HOME={home}", **options}
    client.know(server)
    client.write_config("Host box", " HostName 127.0.0.1", f" Port {server.port}")
    server.start()
    try:
        yield server
    finally:
        server.kill()


def without_python(folder: Path) -> str:
    """Return a PATH with what a small server has, and no Python in it."""
    tools = folder / "tools"
    tools.mkdir()
    for name in _TOOLS.split():
        found = shutil.which(name)
        if found is not None:
            (tools / name).symlink_to(found)
    return str(tools)
