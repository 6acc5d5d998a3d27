"""What a host text and the user's files come to (C7.1)."""

from pathlib import Path

import pytest

from policies.target import is_host
from tests.sshd import Client, make_key
from watcher.config import Seconds, Ssh
from watcher.errors import AuthError
from watcher.transport.ssh_config import Address, address_of, read_route


@pytest.mark.parametrize(
    ("text", "user", "host", "port"),
    [
        ("box", None, "box", None),
        ("me@box", "me", "box", None),
        ("me@box.example:2222", "me", "box.example", 2222),
        ("box:22", None, "box", 22),
        ("::1", None, "::1", None),
        ("me@fe80::1", "me", "fe80::1", None),
        ("[::1]", None, "::1", None),
        ("me@[fe80::1%eth0]:22", "me", "fe80::1%eth0", 22),
    ],
)
def test_a_host_text_is_taken_apart(
    text: str, user: str | None, host: str, port: int | None
) -> None:
    assert is_host(text)
    assert address_of(text) == Address(user=user, host=host, port=port)


def test_what_is_no_host_text_is_refused() -> None:
    with pytest.raises(AuthError):
        address_of("-oProxyCommand=x")


def test_what_the_text_says_goes_before_what_the_file_says(client: Client) -> None:
    client.write_config("Host box", "  HostName 127.0.0.9", "  Port 9", "  User nine")
    route = read_route("box", Ssh())
    assert (route.user, route.host, route.port) == ("nine", "127.0.0.9", 9)
    route = read_route("me@box:22", Ssh())
    assert (route.user, route.host, route.port) == ("me", "127.0.0.9", 22)
    assert route.command == ["-p", "22", "me@box"]


def test_no_question_is_ever_asked_and_nothing_is_forwarded(client: Client) -> None:
    client.write_config(
        "Host *",
        *("  ForwardAgent yes", "  ForwardX11 yes", "  ForwardX11Trusted yes"),
        *("  PasswordAuthentication yes", "  RequestTTY force", "  SendEnv LANG"),
        *("  PKCS11Provider /x.so", "  ServerAliveInterval 900", "  ConnectTimeout 90"),
    )
    ssh = Ssh(connect_timeout=Seconds(7), keepalive=Seconds(3))
    options = read_route("box", ssh).options
    for name in ("password", "pkcs11_provider", "send_env", "env", "command"):
        assert options[name] is None
    for name in ("password_auth", "kbdint_auth", "agent_forwarding", "request_pty"):
        assert options[name] is False
    assert options["x11_forwarding"] is False
    assert options["connect_timeout"] == options["login_timeout"] == 7.0
    assert (options["keepalive_interval"], options["keepalive_count_max"]) == (3.0, 3)


def test_kerberos_is_used_only_where_the_file_says_so(client: Client) -> None:
    client.write_config("Host a", "  GSSAPIAuthentication yes", "Host b", "  User x")
    config = Ssh(config_file=str(client.config))
    assert read_route("a", config).options["gss_auth"] is True
    assert read_route("b", config).options["gss_auth"] is False
    assert read_route("b", config).options["gss_host"] is None


def test_the_command_by_hand_names_another_config_file(client: Client) -> None:
    client.write_config("Host box")
    route = read_route("box", Ssh(config_file=str(client.config)))
    assert route.command == ["-F", str(client.config), "box"]


@pytest.mark.parametrize("jumps", ["none", None])
def test_no_jump_is_no_jump(client: Client, jumps: str | None) -> None:
    client.write_config("Host *", *([f"  ProxyJump {jumps}"] if jumps else []))
    assert read_route("box", Ssh()).jumps == []


def test_jumps_may_be_written_as_addresses(client: Client) -> None:
    client.write_config("Host *", "  ProxyJump ssh://me@a:22,b")
    assert read_route("box", Ssh()).jumps == ["me@a:22", "b"]


def test_the_kinds_of_key_that_a_host_is_known_by_come_first(
    client: Client, tmp_path: Path
) -> None:
    key = Path(f"{make_key(tmp_path / 'host')}.pub").read_text("utf-8")
    client.known_hosts.write_text(f"@cert-authority *.example {key}", "utf-8")
    first = read_route("a.example", Ssh()).options["server_host_key_algs"][0]
    assert first.endswith("-cert-v01@openssh.com")
    client.known_hosts.write_text(f"a.other {key}", "utf-8")
    algorithms = read_route("a.other", Ssh()).options["server_host_key_algs"]
    assert algorithms[0] == "ssh-ed25519"
    assert len(algorithms) > 3
    client.write_config("Host *", "  HostKeyAlgorithms ssh-ed25519")
    assert read_route("a.other", Ssh()).options["server_host_key_algs"] == ()


def test_a_revoked_key_is_revoked_under_every_name(
    client: Client, tmp_path: Path
) -> None:
    key = Path(f"{make_key(tmp_path / 'host')}.pub").read_text("utf-8")
    lines = [f"box {key}", f"@revoked [box]:2222 {key}"]
    client.known_hosts.write_text("".join(lines), "utf-8")
    known = read_route("box:2222", Ssh()).known
    keys, _, revoked = known.match("Box", "192.0.2.1", 2222)
    assert list(keys) == list(revoked) != []
    assert known.known
    assert known.name == "[box]:2222"


def test_without_any_file_of_known_hosts_none_is_named(client: Client) -> None:
    client.write_config(
        "Host *", "  UserKnownHostsFile none", "  GlobalKnownHostsFile none"
    )
    known = read_route("box", Ssh()).known
    assert known.file == ""
    assert not known.known


def test_a_certificate_beside_a_key_is_offered_with_it(
    client: Client, tmp_path: Path
) -> None:
    client.write_config(
        *("Host *", f"  IdentityFile {client.key}", "  IdentitiesOnly yes"),
        f"  CertificateFile {tmp_path}/missing-cert.pub",
    )
    options = read_route("box", Ssh()).options
    assert len(options["client_keys"]) == 1
    assert len(set(options["agent_identities"])) == 1


def test_secrets_are_in_no_text_of_a_route(client: Client) -> None:
    secret = client.key.read_text("utf-8").splitlines()[2]
    assert secret not in repr(read_route("box", Ssh()))
