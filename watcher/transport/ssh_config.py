"""What the user's own OpenSSH files say about a host (C7.1).

asyncssh reads them: Host, Match (exec too), Include, HostName, User, Port, algorithms,
CanonicalizeHostname. What it reads otherwise than OpenSSH is put right here: which host
keys are trusted, keys that are missing or locked or those of the agent, the shell of a
ProxyCommand, jump hosts with their own settings. What it does not know is never used:
ControlMaster, StrictHostKeyChecking (host keys are always checked), KnownHostsCommand,
VerifyHostKeyDNS.
"""

import getpass
import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast

import asyncssh
from asyncssh.public_key import (
    get_default_certificate_algs,
    get_default_public_key_algs,
)

from policies.target import is_host
from policies.wording import phrase
from watcher.config import Ssh
from watcher.errors import AuthError

asyncssh.set_log_level(logging.CRITICAL)  # all it has to say comes as an exception

_SYSTEM_CONFIG = "/etc/ssh/ssh_config"
_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
_SYSTEM_KNOWN_HOSTS = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk", "id_dsa")
_PORT = 22
Trusted: TypeAlias = tuple[
    Sequence[asyncssh.SSHKey], Sequence[asyncssh.SSHKey], Sequence[asyncssh.SSHKey]
]
_ADDRESS = re.compile(
    r"(?:(?P<user>[^@]*)@)?"
    r"(?:\[(?P<bare>[^\]]*)\](?::(?P<port>\d+))?"
    r"|(?P<six>[^@\[\]]*:[^@\[\]]*:[^@\[\]]*)"
    r"|(?P<host>[^@:\[\]]*)(?::(?P<port2>\d+))?)"
)


class _Said(Protocol):
    """The values of a host in the files, as asyncssh found them."""

    def get(self, option: str, default: object = None) -> object:
        """Return one, or the default where the files have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """What stands in `user@host:port`."""

    host: str
    user: str | None = None
    port: int | None = None


def address_of(text: str) -> Address:
    """Take a host text apart.

    Raises:
        AuthError: it can name no host, or would reach a shell as more than a name.
    """
    found = _ADDRESS.fullmatch(text) if is_host(text) else None
    if found is None:
        raise AuthError(phrase("host_text", host=text))
    port = found["port"] or found["port2"]
    return Address(
        host=found["bare"] or found["six"] or found["host"],
        user=found["user"],
        port=int(port) if port else None,
    )


class KnownHosts:
    """The host keys that the user trusts; lines that make no sense are passed over."""

    def __init__(self, files: Sequence[str]) -> None:
        """Read what is there of the files."""
        self._hosts = asyncssh.SSHKnownHosts()
        self._files = files
        self.name = ""
        """What was looked up, as `ssh-keygen -R` takes it."""
        self.known = False
        """Whether a key of it was there."""
        for file in files:
            self._load(file)

    @property
    def file(self) -> str:
        """The file that a person would mend."""
        return self._files[0] if self._files else ""

    def match(self, host: str, _address: str, port: int | None) -> Trusted:
        """Return the keys of a host, for asyncssh: trusted ones, authorities, revoked.

        Only by its name, as OpenSSH does without CheckHostIP: behind a jump host the
        address would be the jump host's. Where a port has no keys, the bare name's do.
        """
        host = host.lower()
        self.name = f"[{host}]:{port}" if port else host
        keys, authorities, revoked, *_ = self._hosts.match(self.name, "", None)
        if port and not (keys or authorities):
            keys, authorities, more, *_ = self._hosts.match(host, "", None)
            revoked = [*revoked, *more]
        self.known = bool(keys or authorities)
        return keys, authorities, revoked

    def algorithms(self, host: str, port: int) -> list[str]:
        """Return the kinds of key to ask a host for: first those that are known.

        The others follow, so that a host which has changed its key says so by it.
        """
        keys, authorities, _ = self.match(host, "", port if port != _PORT else None)
        first = get_default_certificate_algs() if authorities else []
        known = [algorithm for key in keys for algorithm in key.sig_algorithms]
        names = dict.fromkeys([*first, *known, *get_default_public_key_algs()])
        return [name.decode("ascii") for name in names]

    def _load(self, file: str) -> None:
        try:
            with open(file, encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    self._add(line)
        except OSError:
            return  # one that cannot be read trusts nobody

    def _add(self, line: str) -> None:
        try:
            self._hosts.load(line)
        except ValueError:
            return


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """How one host is reached.

    Attributes:
        text: the host as it was named.
        host: the name or address behind it.
        jumps: the hosts to go through, the nearest first.
        proxy: the ProxyCommand, as it was written.
        known: the host keys that are trusted.
        locked: key files that have a passphrase.
        unusable: key files that cannot be read, and why.
        command: what a person types to reach it once by hand.
        options: for `asyncssh.connect`.
    """

    text: str
    host: str
    port: int
    user: str
    jumps: Sequence[str]
    proxy: str | None
    known: KnownHosts
    locked: Sequence[str]
    unusable: Mapping[str, str]
    command: Sequence[str]
    options: Mapping[str, Any]


def read_route(text: str, ssh: Ssh) -> Route:
    """Read all files about a host; blocks, for as long as a `Match exec` likes.

    Raises:
        AuthError: the name is none, or the files cannot be used.
    """
    address = address_of(text)
    named: dict[str, Any] = {"host": address.host, "config": _files(ssh)}
    if address.user is not None:
        named["username"] = address.user
    if address.port is not None:
        named["port"] = address.port
    try:
        said = asyncssh.SSHClientConnectionOptions(
            **named, client_keys=None, x509_trusted_certs=None, known_hosts=b""
        )
    except (OSError, ValueError, KeyError, asyncssh.Error) as error:
        raise AuthError(phrase("ssh_config", host=text, error=str(error))) from error
    keys = _Keys(said.config, _tokens(said, address))
    known = KnownHosts(_known_hosts_files(said.config, _tokens(said, address)))
    proxy = cast("str | None", said.config.get("ProxyCommand"))
    algorithms: Sequence[str] = ()
    if said.config.get("HostKeyAlgorithms") is None:
        algorithms = known.algorithms(said.host_key_alias or said.host, said.port)
    return Route(
        text=text,
        host=said.host,
        port=said.port,
        user=said.username,
        jumps=_jumps(said.config),
        proxy=proxy,
        known=known,
        locked=keys.locked,
        unusable=keys.unusable,
        command=_by_hand(address, ssh),
        options={
            **named,
            **keys.options(),
            **_strict(said.config, ssh),
            "known_hosts": known.match,
            "server_host_key_algs": algorithms,
            "proxy_command": _in_shell(proxy),
        },
    )


def _files(ssh: Ssh) -> list[str]:
    """Return the configuration files that are there, as `ssh` and `ssh -F` would."""
    own = os.path.expanduser(ssh.config_file)
    files = [own]
    if ssh.config_file == Ssh().config_file:
        files.append(_SYSTEM_CONFIG)
    return [file for file in files if os.path.lexists(file)]


def _strict(config: _Said, ssh: Ssh) -> dict[str, Any]:
    """Return what holds for every host: no question, no forwarding, limits."""
    gss = bool(config.get("GSSAPIAuthentication", False))
    return {
        "password": None,
        "password_auth": False,
        "kbdint_auth": False,
        "host_based_auth": False,
        "gss_auth": gss,
        "gss_kex": False,
        "gss_host": () if gss else None,
        "pkcs11_provider": None,
        "x509_trusted_certs": None,
        "agent_forwarding": False,
        "x11_forwarding": False,
        "env": None,
        "send_env": None,
        "request_pty": False,
        "command": None,
        "connect_timeout": float(ssh.connect_timeout),
        "login_timeout": float(ssh.connect_timeout),
        "keepalive_interval": float(ssh.keepalive),
        "keepalive_count_max": 3,
    }


def _by_hand(address: Address, ssh: Ssh) -> list[str]:
    words: list[str] = []
    if ssh.config_file != Ssh().config_file:
        words += ["-F", ssh.config_file]
    if address.port is not None:
        words += ["-p", str(address.port)]
    at = f"{address.user}@" if address.user else ""
    return [*words, f"{at}{address.host}"]


def _jumps(config: _Said) -> list[str]:
    jumps = cast("str | None", config.get("ProxyJump")) or ""
    return [jump.strip().removeprefix("ssh://") for jump in jumps.split(",") if jump]


def _in_shell(command: str | None) -> list[str] | None:
    """Return how OpenSSH runs a ProxyCommand: by the user's own shell.

    What it complains of must not mix with what it transports; its end of that pipe
    stays open, since asyncssh takes the end of any pipe for the end of all.
    """
    if command is None:
        return None
    shell = os.environ.get("SHELL") or "/bin/sh"
    quiet = 'exec "$0" -c "$1" 9>&2 2>/dev/null'
    return ["/bin/sh", "-c", quiet, shell, f"exec {command}"]


def _tokens(
    said: asyncssh.SSHClientConnectionOptions, address: Address
) -> dict[str, str]:
    return {
        "%": "%",
        "d": os.path.expanduser("~"),
        "h": said.host,
        "i": str(os.getuid()),
        "k": said.host_key_alias or address.host,
        "n": address.host,
        "p": str(said.port),
        "r": said.username,
        "u": getpass.getuser(),
    }


def _path(text: str, tokens: Mapping[str, str]) -> str:
    """Return a path with what stands for something else in it; unknown signs stay."""
    expanded = re.sub(r"%(.)", lambda sign: tokens.get(sign[1], sign[0]), text)
    return os.path.expanduser(expanded)


def _known_hosts_files(config: _Said, tokens: Mapping[str, str]) -> list[str]:
    user = cast("list[str]", config.get("UserKnownHostsFile", _KNOWN_HOSTS))
    system = cast("list[str]", config.get("GlobalKnownHostsFile", _SYSTEM_KNOWN_HOSTS))
    return [_path(file, tokens) for file in (*user, *system)]


class _Keys:
    """The keys to offer: those that can be read, and those that the agent may have."""

    def __init__(self, config: _Said, tokens: Mapping[str, str]) -> None:
        named = cast("list[str] | None", config.get("IdentityFile"))
        own = [f"~/.ssh/{name}" for name in _KEYS]
        self._files = [
            _path(file, tokens) for file in (own if named is None else named)
        ]
        self._only = bool(config.get("IdentitiesOnly", False))
        self._agent = _agent_path(config, tokens)
        self._certificates = [
            _path(file, tokens)
            for file in cast("list[str]", config.get("CertificateFile", []))
        ]
        self.locked: list[str] = []
        self.unusable: dict[str, str] = {}
        self._pairs = [pair for file in self._files for pair in self._pairs_of(file)]

    def options(self) -> dict[str, Any]:
        """Return what asyncssh is told of them."""
        agent: str = self._agent
        identities: list[bytes] | None = None
        if self._only:
            identities = [blob for file in self._files for blob in _blobs_of(file)]
            agent = agent if identities else ""
        return {
            "client_keys": self._pairs,
            "agent_path": agent,
            "agent_identities": identities,
        }

    def _pairs_of(self, file: str) -> Sequence[asyncssh.SSHKeyPair]:
        if not os.path.lexists(file):
            return []
        certificates = [name for name in self._certificates if os.path.exists(name)]
        try:
            return asyncssh.load_keypairs([file], None, certificates)
        except (OSError, ValueError) as error:
            if str(error).startswith("Passphrase"):
                self.locked.append(file)
            elif not _blobs_of(file):  # a public key alone names one of the agent's
                self.unusable[file] = getattr(error, "strerror", None) or str(error)
            return []


def _agent_path(config: _Said, tokens: Mapping[str, str]) -> str:
    """Return the agent's socket; IdentityAgent may name it, a variable, or none."""
    usual = os.environ.get("SSH_AUTH_SOCK", "")
    named = config.get("IdentityAgent", "SSH_AUTH_SOCK")
    if named is None:
        return ""
    text = str(named)
    if text == "SSH_AUTH_SOCK":
        return usual
    if text.startswith("$"):
        return os.environ.get(text[1:], "")
    return _path(text, tokens)


def _blobs_of(file: str) -> list[bytes]:
    """Return the public keys that a file names, itself or by those beside it."""
    blobs: list[bytes] = []
    for name in (file, f"{file}.pub", f"{file}-cert.pub"):
        for read in (asyncssh.read_certificate, asyncssh.read_public_key):
            try:
                blobs.append(read(name).public_data)
            except (OSError, ValueError):
                continue
    return blobs
