"""`port`: what names one, and its looks here and on a host."""

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from policies.model import Sight
from policies.wording import phrase
from tests.fakes import START, FakeHost
from tests.suites.condition import ConditionSuite, Scene
from tests.watcher.ports import free_port, listening, own_address, port_of
from tests.watcher.there import Far
from watcher.conditions import LocalCondition, Place
from watcher.config import Config
from watcher.errors import UsageError
from watcher.looked import Here
from watcher.onhost import port as part
from watcher.targets import condition_of, target_of

WHERE = Place(config=Config(), cwd="/cwd", launcher=0)


def build(words: str) -> LocalCondition:
    condition = condition_of(words, WHERE)
    assert isinstance(condition, Here)
    return condition


@contextmanager
def without_sockets(error: int, table: str = "/nowhere/tcp") -> Iterator[None]:
    """Let neither the table nor a socket be had."""

    def fail(address: str) -> socket.socket:
        raise OSError(error, "not to be had")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(part, "_TABLES", (table, table))
        patched.setattr(part, "_socket", fail)
        yield


class PortSuite(ConditionSuite):
    HINTED = False
    awaits = "free"

    @contextmanager
    def there(self, address: str) -> Iterator[tuple[int, list[socket.socket]]]:
        """Make the port that is held, and what clears it."""
        with listening(address) as server:
            yield port_of(server), [server]

    @pytest.fixture
    def scene(self) -> Iterator[Scene]:
        address = own_address()
        with self.there(address) as (port, sockets):

            def release() -> None:
                if self.awaits == "free":
                    sockets[0].close()
                else:
                    sockets[0].bind((address, port))
                    sockets[0].listen()

            yield Scene(
                build=lambda: build(f"port {address}:{port} --{self.awaits}"),
                release=release,
                blind={
                    "unreachable": lambda: without_sockets(errno.ENETDOWN),
                    "denied": lambda: without_sockets(errno.EPERM),
                    "vanished": lambda: without_sockets(errno.EMFILE, "/dev"),
                },
            )


class TestFree(PortSuite):
    pass


class TestOpen(PortSuite):
    awaits = "open"

    @contextmanager
    def there(self, address: str) -> Iterator[tuple[int, list[socket.socket]]]:
        with socket.socket() as server:
            yield free_port(address), [server]


# What names one


@pytest.mark.parametrize(
    ("words", "text", "label"),
    [
        ("port 5432 --free", "port 5432 --free", "5432"),
        ("port --open 5432", "port 5432 --open", "5432"),
        ("port 05432 --free", "port 5432 --free", "5432"),
        ("port '*:5432' --free", "port 5432 --free", "5432"),
        ("port 127.0.0.1:1 --free", "port 127.0.0.1:1 --free", "127.0.0.1:1"),
        ("port localhost:65535 --open", "port localhost:65535 --open", None),
        ("port LOCALHOST:1 --open", "port localhost:1 --open", "localhost:1"),
        ("port 0.0.0.0:1 --open", "port 0.0.0.0:1 --open", "0.0.0.0:1"),
        ("port [::1]:1 --free", "port '[::1]:1' --free", "[::1]:1"),
        ("port [0:0::0001]:1 --free", "port '[::1]:1' --free", "[::1]:1"),
        ("port [::ffff:127.0.0.1]:1 --free", "port 127.0.0.1:1 --free", None),
        ("port [fe80::1%eth0]:1 --open", "port '[fe80::1%eth0]:1' --open", None),
        ("port DB2:3306 --open", "port db2:3306 --open", "db2:3306"),
        ("port db.example.org:1 --open", "port db.example.org:1 --open", None),
    ],
)
def test_a_port_has_one_canonical_text(
    words: str, text: str, label: str | None
) -> None:
    target = target_of(words, WHERE)
    assert (target.kind, target.text, target.host) == ("port", text, None)
    assert target.label == f"port {label or text.split()[1].strip(chr(39))}"
    assert target_of(text, WHERE) == target
    there = target_of(f"{words} --host box", WHERE)
    assert (there.text, there.host) == (f"{text} --host box", "box")
    assert target_of(there.text, WHERE) == there


def test_a_name_can_only_be_called() -> None:
    with pytest.raises(UsageError) as caught:
        target_of("port db2:3306 --free", WHERE)
    assert caught.value.phrase == phrase("not_own_address", address="db2")


@pytest.mark.parametrize(
    "named",
    [
        *("", "x", "0", "65536", "123456", "-1", "1.5", "٣", ":1", "*", "5432/tcp"),
        *(
            "127.1:1",
            "-x:1",
            "a b:1",
            "a..:x",
            "127.0.0.01:1",
            "256.0.0.1:1",
            "::1:80",
            "::1",
        ),
        *("[::1]", "[::1]80", "[]:1", "[127.0.0.1]:1", "[::1]]:1", "[x]:1", "[*]:1"),
        *("[localhost]:1", "[fe80::1%a b]:1", "[fe80::1%]:1", "[:::]:1"),
        *("1 2", "1\n", "127.0.0.1:", "localhost"),
    ],
)
def test_what_is_no_port_is_refused(named: str) -> None:
    with pytest.raises(UsageError) as caught:
        target_of(["port", "--free", "--", named], WHERE)
    assert caught.value.phrase == phrase("bad_port", port=named)


@pytest.mark.parametrize("words", ["port 1", "port 1 --free --open", "port --free"])
def test_one_of_free_and_open_is_wanted(words: str) -> None:
    with pytest.raises(UsageError) as caught:
        target_of(words, WHERE)
    assert caught.value.phrase.key == "see_help"


@pytest.mark.parametrize("host", ["-oProxyCommand=x", "a b", "$(x)", "`x`", "a\nb", ""])
def test_what_could_be_more_than_a_host_is_refused(host: str) -> None:
    """B66."""
    with pytest.raises(UsageError) as caught:
        target_of(["port", "1", "--free", f"--host={host}"], WHERE)
    assert caught.value.phrase == phrase("bad_host", host=host)


# What can be watched


def test_that_a_port_of_another_machine_is_free_cannot_be_watched_from_here() -> None:
    why = build("port 203.0.113.7:1 --free").refusal()
    assert why == phrase("not_own_address", address="203.0.113.7")
    for words in (
        "port 203.0.113.7:1 --open",
        "port 1 --free",
        "port localhost:1 --free",
    ):
        assert build(words).refusal() is None


def test_calls_to_other_machines_hold_no_look_up_but_their_own() -> None:
    groups = {
        build(words).group
        for words in ("port 1 --free", "port 2 --open", "port 192.0.2.1:1 --open")
    }
    assert groups == {"port", "port 192.0.2.1"}


def test_localhost_is_free_where_both_of_its_addresses_are() -> None:
    port = free_port("127.0.0.1")
    assert build(f"port localhost:{port} --free").look({}, START).sight is (
        Sight.RELEASED
    )
    with listening("127.0.0.1") as server:
        words = f"port localhost:{port_of(server)}"
        assert build(f"{words} --free").look({}, START).sight is Sight.HELD
        assert build(f"{words} --open").look({}, START).sight is Sight.RELEASED


def test_a_port_that_cannot_be_seen_says_why(tmp_path: Path) -> None:
    with without_sockets(errno.EPERM, str(tmp_path / "tcp")):
        seen = build("port 5432 --free").look({}, START)
    assert seen.sight is Sight.UNKNOWN
    assert seen.reason == phrase("port_unseen", port=5432, error="EPERM")


# On a host


async def test_a_port_of_a_host_is_looked_at_there() -> None:
    address = own_address()
    with listening(address) as server:
        port = port_of(server)
        far = Far(f"port {address}:{port} --free --host box", FakeHost())
        seen = await far.take()
        assert seen.sight is Sight.HELD
        assert seen.evidence["host"] == "box"
        assert far.request()["addresses"] == [address]
    assert (await far.take()).sight is Sight.RELEASED
    assert far.condition.hints() == []


async def test_a_host_that_is_silent_or_lies_releases_nothing() -> None:
    far = Far(f"port {free_port('127.0.0.1')} --free --host box", FakeHost())
    assert (await far.take()).sight is Sight.RELEASED
    far.host.silent = phrase("host_silent", host="box")
    seen = await far.take()
    assert (seen.sight, seen.out_of_reach) == (Sight.UNKNOWN, True)
    far.host.silent = None
    lies: list[dict[str, object]] = [{}, {"listeners": []}, {"listeners": 1, "bind": 2}]
    for lie in lies:
        far.host.answers["port"] = lie  # type: ignore[assignment]  # a lie is of any type
        assert (await far.take()).sight is Sight.UNKNOWN
