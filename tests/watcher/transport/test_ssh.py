"""Hosts over a real OpenSSH server on loopback (C7.1, C4.4, C3.1)."""

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from policies.wording import Lang
from tests.fakes import FakeClock, until
from tests.sshd import (
    Client,
    Sshd,
    agent_with,
    free_port,
    make_key,
    me,
    needs_sshd,
    relay,
)
from tests.watcher.transport.conftest import MakeHost
from tests.watcher.transport.sessions import Opener
from watcher.clock import SystemClock
from watcher.config import Seconds, Ssh
from watcher.errors import AuthError, TransportError
from watcher.transport.ssh import SshHost

pytestmark = needs_sshd

ONE = [{"op": "hello"}]


async def says(host: SshHost, *, last: bool = False) -> str:
    """Ask one thing and return what came back."""
    reply = await host.ask(ONE, last=last)
    return str(reply.answers[0]["said"])


async def refusal(host: SshHost) -> str:
    """Return why it can never be used, in English."""
    told = await host.reach()
    assert told is not None
    return told.render(Lang.EN)


async def silence(host: SshHost, *, last: bool = False) -> str:
    """Return why it gives no answer, in English."""
    with pytest.raises(TransportError) as caught:
        await host.ask(ONE, last=last)
    return caught.value.phrase.render(Lang.EN)


def address(server: Sshd) -> str:
    return f"{me()}@127.0.0.1:{server.port}"


async def test_a_host_is_reached_by_user_and_port_and_answers(
    server: Sshd, make_host: MakeHost
) -> None:
    server.start()
    host = make_host(address(server))
    assert await host.reach() is None
    assert await says(host) == "hello"
    assert host.state.means == "sh"
    assert host.state.reached_at is not None
    assert host.state.silent_since is None


async def test_c4_4_all_who_ask_share_one_connection(
    server: Sshd, opener: Opener, make_host: MakeHost
) -> None:
    server.start()
    host = make_host(address(server))
    await asyncio.gather(host.reach(), *(says(host) for _ in range(20)))
    assert await says(host) == "hello"
    assert server.logins() == 1
    assert len(opener.sessions) == 1


async def test_requests_of_a_round_are_answered_in_their_order(
    server: Sshd, make_host: MakeHost
) -> None:
    server.start()
    requests = [{"op": f"word{number}"} for number in range(50)]
    reply = await make_host(address(server)).ask(requests)
    assert [answer["said"] for answer in reply.answers] == [
        request["op"] for request in requests
    ]


async def test_an_alias_of_the_config_file_is_what_it_says(
    client: Client, server: Sshd, make_host: MakeHost
) -> None:
    server.start()
    client.write_config("Include hosts/*.conf", "Host *", "  User nobody-at-all")
    folder = client.folder / "hosts"
    folder.mkdir()
    (folder / "box.conf").write_text(
        f"Host box\n  HostName 127.0.0.1\n  Port {server.port}\n  User {me()}\n"
        "  RemoteCommand tmux attach\n  RequestTTY force\n  ForwardAgent yes\n"
    )
    assert await says(make_host("box")) == "hello"


async def test_another_config_file_may_be_named_or_be_missing(
    client: Client, server: Sshd, tmp_path: Path, make_host: MakeHost
) -> None:
    server.start()
    client.write_config("Host box", "  HostName 127.0.0.1", "  Port 1")
    other = tmp_path / "other"
    other.write_text(f"Host box\n  HostName 127.0.0.1\n  Port {server.port}\n")
    assert await says(make_host("box", config_file=str(other))) == "hello"
    missing = make_host(address(server), config_file=str(tmp_path / "missing"))
    assert await says(missing) == "hello"


@pytest.mark.parametrize("how", ["Host *", "Host inner"])
async def test_a_host_is_reached_through_a_jump_host(
    client: Client, server: Sshd, tmp_path: Path, make_host: MakeHost, how: str
) -> None:
    server.start()
    jump = Sshd(tmp_path / "jump", client.key)
    client.know(server, jump)
    client.write_config(
        *("Host outer", "  HostName 127.0.0.1", f"  Port {jump.port}"),
        *("Host inner", "  HostName 127.0.0.1", f"  Port {server.port}"),
        *(how, f"  User {me()}", "  ProxyJump outer"),
    )
    jump.start()
    try:
        host = make_host("inner")
        assert await says(host) == "hello"
        assert (jump.logins(), server.logins()) == (1, 1)
        await host.close()
    finally:
        jump.kill()


async def test_two_jump_hosts_are_taken_one_through_the_other(
    client: Client, server: Sshd, tmp_path: Path, make_host: MakeHost
) -> None:
    first, second = (Sshd(tmp_path / name, client.key) for name in ("a", "b"))
    client.know(server, first, second)
    via = ",".join(f"{me()}@127.0.0.1:{jump.port}" for jump in (first, second))
    client.write_config("Host inner", "  HostName 127.0.0.1", f"  ProxyJump {via}")
    try:
        for one in (server, first, second):
            one.start()
        host = make_host(f"{me()}@inner:{server.port}")
        assert await says(host) == "hello"
        assert [one.logins() for one in (server, first, second)] == [1, 1, 1]
        await host.close()
    finally:
        first.kill()
        second.kill()


async def test_a_jump_host_whose_key_is_unknown_is_named(
    client: Client, server: Sshd, tmp_path: Path, make_host: MakeHost
) -> None:
    jump = Sshd(tmp_path / "jump", client.key)
    client.write_config(
        *("Host outer", "  HostName 127.0.0.1", f"  Port {jump.port}"),
        *("Host inner", "  HostName 127.0.0.1", "  ProxyJump outer"),
    )
    jump.start()
    try:
        said = await refusal(make_host("inner"))
    finally:
        jump.kill()
    assert said == (
        "unknown host key: outer; check it and accept it once with: ssh outer"
    )


async def test_a_jump_host_that_does_not_reach_it_is_no_refusal(
    client: Client, tmp_path: Path, make_host: MakeHost
) -> None:
    jump = Sshd(tmp_path / "jump", client.key)
    client.know(jump)
    client.write_config(
        *("Host outer", "  HostName 127.0.0.1", f"  Port {jump.port}"),
        *("Host inner", "  HostName 127.0.0.1", f"  Port {free_port()}"),
        "  ProxyJump outer",
    )
    jump.start()
    try:
        host = make_host("inner")
        assert await host.reach() is None
        assert "inner is out of reach" in await silence(host, last=True)
        await host.close()
    finally:
        jump.kill()


@pytest.mark.parametrize("jumps", ["a,a", "b"])
async def test_jumps_in_a_circle_are_refused(
    client: Client, server: Sshd, make_host: MakeHost, jumps: str
) -> None:
    server.start()
    client.write_config(
        *("Host inner", "  HostName 127.0.0.2", f"  ProxyJump {jumps}"),
        *("Host a", "  HostName 127.0.0.3", "  ProxyJump b"),
        *("Host b", "  HostName 127.0.0.4", "  ProxyJump a"),
    )
    assert "runs in a circle" in await refusal(make_host("inner"))


async def test_a_proxy_command_runs_in_the_users_shell(
    client: Client, server: Sshd, make_host: MakeHost
) -> None:
    server.start()
    client.write_config(
        "Host box",
        f"  Port {server.port}",
        "  HostName 127.0.0.1",
        f"""  ProxyCommand sh -c 'echo noise >&2; exec "$0" "$@"' {relay()}""",
    )
    assert await says(make_host("box")) == "hello"


async def test_a_proxy_command_that_fails_is_named(
    client: Client, make_host: MakeHost
) -> None:
    client.write_config("Host box", "  ProxyCommand no-such-program-at-all")
    host = make_host("box")
    assert await host.reach() is None
    assert "ended without a connection: no-such-program" in await silence(
        host, last=True
    )


async def test_b46_an_unknown_host_key_is_refused_with_the_command_to_run(
    client: Client, server: Sshd, make_host: MakeHost
) -> None:
    server.start()
    client.known_hosts.unlink()
    host = make_host(address(server))
    assert await refusal(host) == (
        f"unknown host key: {address(server)}; check it and accept it once with: "
        f"ssh -p {server.port} {me()}@127.0.0.1"
    )
    assert not client.known_hosts.exists()
    assert server.logins() == 0


@pytest.mark.parametrize(
    "lax",
    [
        ["StrictHostKeyChecking no"],
        ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"],
        ["UserKnownHostsFile none"],
        ["UserKnownHostsFile ~/.ssh/missing", "GlobalKnownHostsFile none"],
    ],
)
async def test_no_setting_switches_the_check_of_host_keys_off(
    client: Client, server: Sshd, make_host: MakeHost, lax: list[str]
) -> None:
    server.start()
    client.known_hosts.unlink()
    client.write_config("Host *", *lax)
    assert "unknown host key" in await refusal(make_host(address(server)))
    assert server.logins() == 0


async def test_a_changed_host_key_is_refused_with_the_command_that_forgets_it(
    client: Client, server: Sshd, make_host: MakeHost
) -> None:
    server.change_host_key()
    server.start()
    said = await refusal(make_host(address(server)))
    name = f"'[127.0.0.1]:{server.port}'"
    assert said.endswith(f"ssh-keygen -f {client.known_hosts} -R {name}")
    assert "may be an attack" in said


async def test_a_revoked_host_key_is_refused(
    client: Client, server: Sshd, make_host: MakeHost
) -> None:
    server.start()
    client.known_hosts.write_text(f"@revoked {server.known_hosts_line()}")
    assert "revoked" in await refusal(make_host(address(server)))


async def test_a_host_key_of_another_kind_than_the_known_one_has_changed(
    client: Client, server: Sshd, tmp_path: Path, make_host: MakeHost
) -> None:
    server.start()
    other = tmp_path / "other"
    words = ["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", str(other)]
    made = await asyncio.create_subprocess_exec(*words)
    await made.wait()
    key = other.with_suffix(".pub").read_text().rsplit(" ", 1)[0]
    client.known_hosts.write_text(f"[127.0.0.1]:{server.port} {key}\n")
    assert "has changed" in await refusal(make_host(address(server)))


async def test_known_hosts_are_found_hashed_by_alias_and_behind_broken_lines(
    client: Client, server: Sshd, make_host: MakeHost
) -> None:
    server.start()
    line = server.known_hosts_line()
    elsewhere = client.folder / "hosts of box"
    elsewhere.write_text(f"nonsense\n@odd marker x\n{line.replace('[', 'x,[', 1)}")
    client.write_config(
        "Host box",
        "  HostName 127.0.0.1",
        f"  Port {server.port}",
        '  UserKnownHostsFile /missing "%d/.ssh/hosts of %n"',
    )
    client.known_hosts.unlink()
    assert await says(make_host("box")) == "hello"
    hashed = client.known_hosts
    hashed.write_text(line)
    words = ["ssh-keygen", "-q", "-H", "-f", str(hashed)]
    made = await asyncio.create_subprocess_exec(
        *words, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    assert await made.wait() == 0
    assert "127.0.0.1" not in hashed.read_text()
    assert await says(make_host(address(server))) == "hello"


async def test_a_refused_key_is_said_with_the_command_that_tests_it(
    client: Client, server: Sshd, make_host: MakeHost
) -> None:
    server.allow()
    server.start()
    assert await refusal(make_host(address(server))) == (
        f"{address(server)} refuses the user {me()}: no key fits; test with: "
        f"ssh -o BatchMode=yes -p {server.port} {me()}@127.0.0.1"
    )


async def test_a_key_with_a_passphrase_is_never_asked_for(
    client: Client, server: Sshd, tmp_path: Path, make_host: MakeHost
) -> None:
    locked = make_key(tmp_path / "locked", passphrase="open sesame")
    server.allow(locked)
    server.start()
    client.write_config("Host *", f"  IdentityFile {locked}")
    said = await refusal(make_host(address(server)))
    assert f"ssh-add {locked}" in said
    assert "sesame" not in said


@pytest.mark.parametrize("content", ["", "-----BEGIN OPENSSH PRIVATE KEY-----\nx\n"])
async def test_a_broken_key_is_named_once_nothing_else_lets_us_in(
    client: Client, server: Sshd, tmp_path: Path, make_host: MakeHost, content: str
) -> None:
    broken = tmp_path / "broken"
    broken.write_text(content)
    server.start()
    client.write_config(
        *("Host *", f"  IdentityFile {broken}", f"  IdentityFile {tmp_path}/missing"),
        f"  IdentityFile {client.key}",
    )
    assert await says(make_host(address(server))) == "hello"
    client.write_config("Host *", f"  IdentityFile {broken}")
    client.key.unlink()
    assert f"the key {broken} cannot be used" in await refusal(
        make_host(address(server))
    )


@pytest.fixture
def full_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """Run an agent with seven keys that no server wants."""
    keys = [make_key(tmp_path / f"key{number}") for number in range(7)]
    with agent_with(*keys) as path:
        monkeypatch.setenv("SSH_AUTH_SOCK", path)
        yield keys


@pytest.mark.usefixtures("full_agent")
async def test_b62_too_many_keys_of_the_agent_are_named(
    client: Client, server: Sshd, make_host: MakeHost
) -> None:
    server.options["MaxAuthTries"] = "3"
    server.start()
    assert "too many keys" in await refusal(make_host(address(server)))
    client.write_config(
        *("Host *", f"  IdentityFile {client.key}", "  IdentitiesOnly yes")
    )
    assert await says(make_host(address(server))) == "hello"


@pytest.mark.parametrize("named", ["private", "public"])
async def test_b62_an_identity_that_only_the_agent_can_use_is_the_only_one_offered(
    client: Client,
    server: Sshd,
    full_agent: list[Path],
    make_host: MakeHost,
    named: str,
) -> None:
    last = full_agent[-1]
    server.allow(last)
    server.options["MaxAuthTries"] = "3"
    server.start()
    last.unlink()
    if named == "private":
        make_key(last.with_name("locked"), passphrase="secret")
        last.with_name("locked").rename(last)
    name = last if named == "private" else f"{last}.pub"
    client.write_config("Host *", f"  IdentityFile {name}", "  IdentitiesOnly yes")
    assert await says(make_host(address(server))) == "hello"


@pytest.mark.parametrize("way", ["none", "$NO_SUCH_VARIABLE", "~/missing"])
@pytest.mark.usefixtures("full_agent")
async def test_an_agent_that_the_config_file_excludes_is_not_asked(
    client: Client, server: Sshd, make_host: MakeHost, way: str
) -> None:
    server.options["MaxAuthTries"] = "3"
    server.start()
    client.write_config("Host *", f"  IdentityAgent {way}")
    assert await says(make_host(address(server))) == "hello"


async def test_a_host_that_does_not_exist_is_refused_at_once(
    make_host: MakeHost,
) -> None:
    host = make_host("no-such-host.invalid")
    assert "does not exist" in await refusal(host)
    with pytest.raises(AuthError):
        await host.ask(ONE, last=True)


@pytest.mark.parametrize("name", ["a..b", "x" * 64])
async def test_a_name_that_cannot_be_asked_for_does_not_exist(
    make_host: MakeHost, name: str
) -> None:
    assert "does not exist" in await refusal(make_host(name))


@pytest.mark.parametrize(
    "name",
    [
        *("-oProxyCommand=touch /tmp/x", "-l", "a b", "a;b", "$(id)", "`id`", "a\nb"),
        *("-x@host", "a@b@c", "host:0", "host:65536", "", "a'b", "a|b", "a&b", "~"),
    ],
)
async def test_b66_what_could_be_an_option_or_shell_syntax_is_refused(
    client: Client, tmp_path: Path, make_host: MakeHost, name: str
) -> None:
    touched = tmp_path / "touched"
    client.write_config("Host *", f"  ProxyCommand touch {touched}; echo %h %n %r")
    host = make_host(name)
    assert "no acceptable host name" in await refusal(host)
    with pytest.raises(AuthError):
        await host.ask(ONE)
    assert not touched.exists()


@pytest.mark.parametrize(
    "line", ["Port many", "Include 'open", "ProxyJump -oProxyCommand=x"]
)
async def test_a_config_file_that_cannot_be_used_is_named(
    client: Client, make_host: MakeHost, line: str
) -> None:
    client.write_config("Host *", f"  {line}")
    said = await refusal(make_host("box"))
    assert str(client.config) in said or "no acceptable host name" in said


async def test_a_config_file_that_cannot_be_read_is_named(
    client: Client, make_host: MakeHost
) -> None:
    client.config.mkdir()
    assert str(client.config) in await refusal(make_host("box"))


async def test_a_closed_port_is_no_refusal_but_silence(
    make_host: MakeHost,
) -> None:
    port = free_port()
    host = make_host(f"127.0.0.1:{port}")
    assert await host.reach() is None
    assert await silence(host) == f"127.0.0.1:{port} refuses connections to port {port}"
    assert host.state.silent_since is not None
    assert host.state.last_error is not None


async def test_a_server_that_says_nothing_is_given_up_after_the_limit(
    make_host: MakeHost,
) -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        host = make_host(f"127.0.0.1:{mute.getsockname()[1]}", limit_s=0.3)
        assert await host.reach() is None
        assert "did not answer within 0.3 s" in await silence(host, last=True)


async def test_b44_a_server_that_is_killed_and_comes_back_is_reached_again(
    server: Sshd, opener: Opener, make_host: MakeHost
) -> None:
    server.start()
    clock = FakeClock()
    host = make_host(address(server), clock=clock)
    assert await says(host) == "hello"
    server.kill()
    assert await silence(host)
    first = host.state.silent_since
    await clock.advance(60)
    assert "refuses connections" in await silence(host)
    assert host.state.silent_since == first
    server.start()
    await clock.advance(60)
    assert await says(host) == "hello"
    assert host.state.silent_since is None
    assert len(opener.sessions) == 2


async def test_while_a_host_is_silent_it_is_left_alone_but_for_last_looks(
    server: Sshd, make_host: MakeHost
) -> None:
    clock = FakeClock()
    host = make_host(address(server), clock=clock)
    assert "refuses connections" in await silence(host)
    server.start()
    assert "refuses connections" in await silence(host)
    assert server.logins() == 0
    assert await says(host, last=True) == "hello"


async def test_a_frozen_server_costs_no_more_than_the_limit_and_is_found_again(
    server: Sshd, make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.start()
    clock = FakeClock()
    host = make_host(address(server), clock=clock)
    assert await says(host) == "hello"
    server.freeze()
    monkeypatch.setattr("watcher.transport.ssh.ANSWER_LIMIT_S", 0.5)
    patient, host._config = host._config, Ssh(connect_timeout=Seconds(0.5))
    try:
        assert "did not answer" in await silence(host)
        await clock.advance(60)
        assert "did not answer" in await silence(host)
    finally:
        server.thaw()
    monkeypatch.setattr("watcher.transport.ssh.ANSWER_LIMIT_S", 20.0)
    host._config = patient
    end = asyncio.get_running_loop().time() + 60
    while True:
        await clock.advance(60)
        try:
            assert await says(host) == "hello"
            break
        except TransportError:  # a loaded machine
            assert asyncio.get_running_loop().time() < end


async def test_a_connection_that_dies_unheard_is_noticed_by_keepalives(
    server: Sshd, opener: Opener, make_host: MakeHost
) -> None:
    server.start()
    host = make_host(address(server), keepalive_s=1.0)
    assert await says(host) == "hello"
    reading = asyncio.create_task(opener.sessions[0].channel.read(1))
    server.freeze()
    try:
        done, _ = await asyncio.wait({reading}, timeout=30)
    finally:
        server.thaw()
    assert done
    with pytest.raises(TransportError) as caught:
        reading.result()
    assert "was lost" in caught.value.phrase.render(Lang.EN)


@pytest.mark.parametrize("asleep", [True, False])
async def test_b52_after_a_sleep_a_dead_connection_is_replaced_in_the_same_look(
    server: Sshd,
    opener: Opener,
    make_host: MakeHost,
    monkeypatch: pytest.MonkeyPatch,
    asleep: bool,
) -> None:
    server.start()
    monkeypatch.setattr("watcher.transport.ssh._CHECK_LIMIT_S", 0.2)
    clock = FakeClock()
    host = make_host(address(server), clock=clock)
    assert await says(host) == "hello"
    mute = asyncio.Event()

    async def hang(requests: object) -> object:
        await mute.wait()
        return None

    monkeypatch.setattr(opener.sessions[0], "ask", hang)
    await clock.advance(600, asleep=asleep)
    assert await says(host) == "hello"
    assert len(opener.sessions) == 2
    assert host.state.silent_since is None


async def test_after_a_sleep_a_living_connection_goes_on(
    server: Sshd,
    opener: Opener,
    make_host: MakeHost,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("watcher.transport.ssh._CHECK_LIMIT_S", 30.0)
    server.start()
    clock = FakeClock()
    host = make_host(address(server), clock=clock)
    assert await says(host) == "hello"
    await clock.advance(600, asleep=True)
    assert await says(host) == "hello"
    assert len(opener.sessions) == 1


async def test_b52_the_first_failures_after_a_sleep_do_not_hold_up_the_next_try(
    server: Sshd, make_host: MakeHost
) -> None:
    clock = FakeClock()
    host = make_host(address(server), clock=clock)
    for _ in range(8):
        await silence(host, last=True)
    await clock.advance(50, asleep=True)
    for _ in range(4):
        await silence(host)
        await clock.advance(2)
    server.start()
    assert await says(host) == "hello"


async def test_b60_a_server_that_hangs_up_before_the_login_is_left_alone_for_longer(
    make_host: MakeHost,
) -> None:
    met = 0

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal met
        met += 1
        writer.close()

    banning = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with banning:
        port = banning.sockets[0].getsockname()[1]
        clock = FakeClock()
        host = make_host(f"127.0.0.1:{port}", clock=clock)
        for _ in range(20):
            assert "MaxStartups" in await silence(host)
            await clock.advance(60)
        assert met < 12
        await silence(host, last=True)
        tried = met
        assert await host.reach() is None
        assert met == tried
        assert "MaxStartups" in await silence(host, last=True)
        assert met == tried + 1


async def test_max_startups_is_silence_and_passes(
    server: Sshd, make_host: MakeHost
) -> None:
    server.options["MaxStartups"] = "1:100:1"
    server.start()
    clock = FakeClock()
    with socket.create_connection(("127.0.0.1", server.port)) as first:
        assert first.recv(4) == b"SSH-"
        host = make_host(address(server), clock=clock)
        assert await host.reach() is None
        assert "MaxStartups" in await silence(host)
    end = asyncio.get_running_loop().time() + 60
    while True:
        await clock.advance(60)
        try:
            assert await says(host) == "hello"
            break
        except TransportError:  # the server has yet to notice that the first one left
            assert asyncio.get_running_loop().time() < end
            await asyncio.sleep(0.05)


async def test_a_session_too_many_is_silence(server: Sshd, make_host: MakeHost) -> None:
    server.options["MaxSessions"] = "0"
    server.start()
    host = make_host(address(server))
    assert await host.reach() is None
    assert "opens no further session" in await silence(host)


async def test_a_noisy_login_does_not_disturb(
    server: Sshd, make_host: MakeHost
) -> None:
    server.force_command(
        'echo Welcome to box; echo "$(date)" >&2; eval "$SSH_ORIGINAL_COMMAND"'
    )
    server.start()
    assert await says(make_host(address(server))) == "hello"


async def test_b54_a_login_shell_that_knows_no_posix_syntax_will_do(
    server: Sshd, opener: Opener, make_host: MakeHost
) -> None:
    server.force_command(
        'case "$SSH_ORIGINAL_COMMAND" in *\\$\\(*|*=*|*"&&"*) exit 127;; esac\n'
        'eval "$SSH_ORIGINAL_COMMAND"'
    )
    server.start()
    assert await says(make_host(address(server))) == "hello"
    opener.command = "exec /bin/sh -c $(true)"
    await silence(make_host(address(server)))


async def test_b48_the_socket_of_a_control_master_is_never_used(
    client: Client, server: Sshd, tmp_path: Path, make_host: MakeHost
) -> None:
    server.start()
    path = tmp_path / "master"
    client.write_config("Host *", "  ControlMaster auto", f"  ControlPath {path}")
    before = client.config.read_bytes()
    with socket.socket(socket.AF_UNIX) as stale:
        os.chdir(tmp_path)
        stale.bind("master")
        stale.listen()
        stale.setblocking(False)
        assert await says(make_host(address(server))) == "hello"
        with pytest.raises(BlockingIOError):
            stale.accept()
    assert client.config.read_bytes() == before


async def test_a_program_that_ends_is_silence_and_the_next_look_starts_another(
    server: Sshd, opener: Opener, make_host: MakeHost
) -> None:
    server.start()
    host = make_host(address(server))
    opener.command = "exec true"
    await silence(host)
    opener.command = "exec /bin/sh"
    assert await says(host, last=True) == "hello"


async def test_a_look_that_is_given_up_ends_the_connection_it_asked_over(
    server: Sshd, opener: Opener, make_host: MakeHost
) -> None:
    server.start()
    host = make_host(address(server))
    assert await says(host) == "hello"
    server.freeze()
    try:
        look = asyncio.create_task(host.ask(ONE))
        rounds = opener.sessions[0]
        await until(lambda: rounds.rounds == 2)
        look.cancel()
        with pytest.raises(asyncio.CancelledError):
            await look
    finally:
        server.thaw()
    assert host.state.last_error is not None
    assert await says(host, last=True) == "hello"
    assert len(opener.sessions) == 2
    await until(lambda: rounds.closed)


async def test_a_look_given_up_while_connecting_leaves_the_attempt_to_the_next(
    server: Sshd, opener: Opener, make_host: MakeHost
) -> None:
    server.start()
    opener.gate = asyncio.Event()
    host = make_host(address(server))
    look = asyncio.create_task(host.ask(ONE))
    await server.let_in()
    look.cancel()
    with pytest.raises(asyncio.CancelledError):
        await look
    opener.gate.set()
    assert await says(host) == "hello"
    assert server.logins() == 1


async def test_a_far_side_that_cannot_be_opened_is_silence(
    server: Sshd, opener: Opener, make_host: MakeHost
) -> None:
    server.start()
    host = make_host(address(server))
    opener.error = RuntimeError("no luck")
    assert await host.reach() is None
    assert "no luck" in await silence(host, last=True)


async def test_a_session_with_a_fault_of_its_own_is_silence(
    server: Sshd, opener: Opener, make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.start()
    host = make_host(address(server))
    assert await says(host) == "hello"

    async def fail(requests: object) -> object:
        raise RuntimeError("odd")

    monkeypatch.setattr(opener.sessions[0], "ask", fail)
    assert "odd" in await silence(host)
    assert await says(host, last=True) == "hello"


async def test_who_follows_a_process_follows_it_over_a_new_connection_too(
    server: Sshd, opener: Opener, make_host: MakeHost
) -> None:
    server.start()
    host = make_host(address(server))
    woken: list[int] = []
    end_first = host.follow(7, 70, lambda: woken.append(7))
    assert await says(host) == "hello"
    end_second = host.follow(8, 80, lambda: woken.append(8))
    assert [entry[:2] for entry in opener.sessions[0].followed] == [(7, 70), (8, 80)]
    server.kill()
    await silence(host)
    host.follow(9, 90, lambda: None)()
    server.start()
    assert await says(host, last=True) == "hello"
    assert [entry[:2] for entry in opener.sessions[1].followed] == [(7, 70), (8, 80)]
    opener.sessions[1].followed[0][2]()
    assert woken == [7]
    end_first()
    end_first()
    assert [entry[:2] for entry in opener.sessions[1].followed] == [(8, 80)]
    end_second()
    assert opener.sessions[1].followed == []


async def test_a_closed_host_ends_what_ran_and_opens_nothing_again(
    server: Sshd, opener: Opener, make_host: MakeHost
) -> None:
    server.start()
    host = make_host(address(server))
    assert await says(host) == "hello"
    await host.close()
    assert opener.sessions[0].closed
    assert "was lost" in await silence(host)
    assert await host.reach() is None
    assert server.logins() == 1


async def test_a_host_closed_while_it_connects_lets_those_who_ask_go(
    server: Sshd, opener: Opener, make_host: MakeHost
) -> None:
    server.start()
    opener.gate = asyncio.Event()
    host = make_host(address(server))
    look = asyncio.create_task(host.ask(ONE))
    await server.let_in()
    await host.close()
    with pytest.raises(TransportError):
        await look


async def test_closing_does_not_wait_for_a_frozen_server(
    server: Sshd, make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watcher.transport.ssh._CLOSE_LIMIT_S", 0.2)
    server.start()
    host = make_host(address(server))
    assert await says(host) == "hello"
    server.freeze()
    try:
        async with asyncio.timeout(30):
            await host.close()
    finally:
        server.thaw()


async def test_a_match_exec_that_never_ends_costs_one_look_and_no_exit(
    client: Client, tmp_path: Path, make_host: MakeHost
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    client.write_config(f"Match exec 'cat {pipe}'")
    host = make_host("box", limit_s=0.5)
    assert await host.reach() is None
    assert "did not answer within 0.5 s" in (await silence(host))
    assert "no answer: ~/.ssh/config" in await silence(host, last=True)
    fd = os.open(pipe, os.O_WRONLY)
    os.close(fd)


async def test_nothing_of_the_library_reaches_the_terminal(
    client: Client,
    server: Sshd,
    make_host: MakeHost,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    server.start()
    host = make_host(address(server))
    assert await says(host) == "hello"
    server.kill()
    await silence(host)
    client.known_hosts.unlink()
    server.start()
    assert "unknown host key" in await refusal(host)
    assert capfd.readouterr() == ("", "")
    assert not [r for r in caplog.records if r.name.startswith("asyncssh")]


async def test_b64_standard_input_is_never_read(client: Client, server: Sshd) -> None:
    server.start()
    program = (
        "import asyncio, sys\n"
        f"sys.path.append({str(Path(__file__).parents[3])!r})\n"
        "from tests.watcher.transport.sessions import Opener\n"
        "from watcher.clock import SystemClock\n"
        "from watcher.config import Ssh\n"
        "from watcher.transport.ssh import SshHost\n"
        "assert 'asyncssh' not in sys.modules\n"
        "async def main():\n"
        "    host = SshHost(sys.argv[1], Ssh(), clock=SystemClock(),\n"
        "                   open_session=Opener())\n"
        "    reply = await host.ask([{'op': 'hello'}])\n"
        "    await host.close()\n"
        "    print(reply.answers[0]['said'], sys.stdin.read())\n"
        "asyncio.run(main())\n"
    )
    ran = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, address(server)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await ran.communicate(b"all of it")
    assert (out, err) == (b"hello all of it\n", b"")


async def test_those_who_queue_behind_a_failure_do_not_try_once_more_each(
    server: Sshd, opener: Opener, make_host: MakeHost
) -> None:
    server.start()
    opener.error = RuntimeError("no luck")
    host = make_host(address(server), clock=FakeClock())
    looks = [host.ask(ONE) for _ in range(5)]
    told = await asyncio.gather(*looks, return_exceptions=True)
    assert {type(error) for error in told} == {TransportError}
    assert server.logins() == 1


async def test_who_waits_too_long_for_a_turn_has_no_answer(
    server: Sshd,
    opener: Opener,
    make_host: MakeHost,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server.start()
    host = make_host(address(server))
    assert await says(host) == "hello"
    host._config = Ssh(connect_timeout=Seconds(0.1))
    server.freeze()
    try:
        first = asyncio.create_task(host.ask(ONE))
        await until(lambda: opener.sessions[0].rounds == 2)
        monkeypatch.setattr("watcher.transport.ssh.ANSWER_LIMIT_S", 0.1)
        assert "within 0.2 s" in await silence(host)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
    finally:
        server.thaw()


async def test_a_session_that_ended_is_replaced(
    server: Sshd, opener: Opener, make_host: MakeHost
) -> None:
    server.start()
    host = make_host(address(server))
    assert await says(host) == "hello"
    opener.sessions[0].lost = True
    assert await says(host) == "hello"
    assert len(opener.sessions) == 2
    await until(lambda: opener.sessions[0].closed)


async def test_the_far_side_is_opened_by_its_own_module(
    server: Sshd, opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.start()
    module = ModuleType("watcher.transport.opening")
    monkeypatch.setattr(module, "open_session", opener, raising=False)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    host = SshHost(address(server), Ssh(), clock=SystemClock())
    assert await says(host) == "hello"
    await host.close()
    assert len(opener.sessions) == 1


async def test_a_connection_may_be_found_dead_while_a_look_still_hopes(
    server: Sshd, opener: Opener, make_host: MakeHost
) -> None:
    server.start()
    host = make_host(address(server))
    assert await says(host) == "hello"
    server.freeze()
    try:
        look = asyncio.create_task(host.ask(ONE))
        await until(lambda: opener.sessions[0].rounds == 2)
        opener.sessions[0].lost = True
        host.follow(1, 2, lambda: None)
        with pytest.raises(TransportError):
            await look
    finally:
        server.thaw()
    assert await says(host, last=True) == "hello"
    assert opener.sessions[1].followed[0][:2] == (1, 2)
