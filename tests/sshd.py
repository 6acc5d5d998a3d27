"""A private OpenSSH server on loopback, with its own keys, and a client's home."""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from getpass import getuser
from pathlib import Path

import psutil
import pytest

from tests.fakes import until

_SSHD = "/usr/sbin/sshd"
_LIMIT_S = 30.0  # of what takes milliseconds
_PRIVSEP = Path("/run/sshd")  # which a container without an init lacks

needs_sshd = pytest.mark.skipif(
    not os.access(_SSHD, os.X_OK), reason=f"there is no {_SSHD} here"
)


def make_key(path: Path, *, passphrase: str = "") -> Path:
    """Make a key pair; the public one beside it has `.pub`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(path)]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return path


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


class Sshd:
    """One server; its options are read when it starts."""

    def __init__(self, folder: Path, *keys: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.port = free_port()
        self.options: dict[str, str] = {}
        self.log = folder / "log"
        self._authorized = folder / "authorized_keys"
        self._server: subprocess.Popen[bytes] | None = None
        make_key(folder / "host_key")
        self.allow(*keys)

    def allow(self, *keys: Path) -> None:
        """Let in whoever has one of these keys."""
        texts = [Path(f"{key}.pub").read_text("utf-8") for key in keys]
        self._authorized.write_text("".join(texts), "utf-8")

    def change_host_key(self) -> None:
        """Be another machine from the next start on."""
        for name in ("host_key", "host_key.pub"):
            (self.folder / name).unlink()
        make_key(self.folder / "host_key")

    def known_hosts_line(self) -> str:
        """Return what a client knows it by."""
        kind, key, *_ = (self.folder / "host_key.pub").read_text("utf-8").split()
        return f"[127.0.0.1]:{self.port} {kind} {key}\n"

    def force_command(self, text: str) -> None:
        """Let a program have every command, in SSH_ORIGINAL_COMMAND."""
        program = self.folder / "login"
        program.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
        program.chmod(0o755)
        self.options["ForceCommand"] = str(program)

    def start(self) -> None:
        """Start, and return when it listens."""
        if os.geteuid() == 0:
            _PRIVSEP.mkdir(mode=0o755, exist_ok=True)
        self.log.write_bytes(b"")
        config = self.folder / "sshd_config"
        config.write_text(self._config(), "utf-8")
        self._server = subprocess.Popen(
            [_SSHD, "-D", "-f", str(config), "-E", str(self.log)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._until("Server listening on", self._server)

    @property
    def pid(self) -> int:
        """The PID of what listens."""
        assert self._server is not None
        return self._server.pid

    def said(self) -> str:
        """Return its log so far."""
        return self.log.read_text("utf-8", "replace")

    def logins(self) -> int:
        """Return how often it let somebody in."""
        return self.said().count("Accepted publickey for")

    async def let_in(self) -> None:
        """Return when it has let somebody in."""
        await until(self.logins)

    def kill(self) -> None:
        """Kill it with all connections."""
        self._signal(signal.SIGKILL)
        if self._server is not None:
            self._server.wait(_LIMIT_S)
            self._server = None

    def freeze(self) -> None:
        """Stop it with all connections, in mid-work."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let all of it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        """Send a signal to the server, then to what serves its connections."""
        if self._server is None:
            return
        listener = self._server.pid
        found = _children(listener)
        with suppress(ProcessLookupError):
            os.kill(listener, number)
        for process in {*found, *_children(listener)}:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def _config(self) -> str:
        options = {
            "Port": str(self.port),
            "ListenAddress": "127.0.0.1",
            "HostKey": str(self.folder / "host_key"),
            "PidFile": "none",
            "AuthorizedKeysFile": str(self._authorized),
            "PermitRootLogin": "yes",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "UsePAM": "no",
            "StrictModes": "no",
            "UseDNS": "no",
            "PrintMotd": "no",
            "LogLevel": "VERBOSE",
            **self.options,
        }
        return "".join(f"{name} {value}\n" for name, value in options.items())

    def _until(self, text: str, server: subprocess.Popen[bytes]) -> None:
        end_s = time.monotonic() + _LIMIT_S
        while text not in self.said():
            assert server.poll() is None, self.said()
            assert time.monotonic() < end_s, self.said()
            time.sleep(0.01)


def _children(pid: int) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).children(recursive=True)
    return []


class Client:
    """The home of somebody who uses ssh; `HOME` must name it."""

    def __init__(self, home: Path) -> None:
        self.folder = home / ".ssh"
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.key = make_key(self.folder / "id_ed25519")
        self.config = self.folder / "config"
        self.known_hosts = self.folder / "known_hosts"

    def know(self, *servers: Sshd) -> None:
        """Trust the keys that servers have now."""
        lines = [server.known_hosts_line() for server in servers]
        self.known_hosts.write_text("".join(lines), "utf-8")

    def write_config(self, *lines: str) -> None:
        """Write ~/.ssh/config."""
        self.config.write_text("".join(f"{line}\n" for line in lines), "utf-8")


@contextmanager
def agent_with(*keys: Path) -> Iterator[str]:
    """Run an agent that holds keys; gives its socket, whose path must be short."""
    folder = tempfile.mkdtemp()
    path = f"{folder}/agent"
    agent = subprocess.Popen(
        ["ssh-agent", "-D", "-a", path],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end_s = time.monotonic() + _LIMIT_S
        while not os.path.exists(path):
            assert time.monotonic() < end_s, "no agent"
            time.sleep(0.01)
        for key in keys:
            subprocess.run(
                ["ssh-add", "-q", str(key)],
                check=True,
                env={**os.environ, "SSH_AUTH_SOCK": path},
                stdin=subprocess.DEVNULL,
                capture_output=True,
            )
        yield path
    finally:
        agent.kill()
        agent.wait(_LIMIT_S)
        shutil.rmtree(folder)


def me() -> str:
    """Return the user that a server of ours lets in."""
    return getuser()


def relay(program: str = sys.executable) -> str:
    """Return a ProxyCommand that joins its standard streams with `%h:%p`."""
    if shutil.which("nc"):
        return "nc %h %p"
    code = (
        "import os,socket,sys,threading as t;"
        "s=socket.create_connection((sys.argv[1],int(sys.argv[2])));"
        "u=lambda:[s.sendall(d) for d in iter(lambda:os.read(0,65536),b'')];"
        "t.Thread(target=u,daemon=True).start();"
        "[os.write(1,d) for d in iter(lambda:s.recv(65536),b'')]"
    )
    return shlex.join([program, "-c", code]) + " %h %p"
