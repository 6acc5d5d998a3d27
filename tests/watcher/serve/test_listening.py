"""The sockets of the service: where they lie, who may use them, what is left alone."""

import socket
from pathlib import Path

import pytest

from watcher.errors import ConfigError
from watcher.serve.listening import listen_at, listening
from watcher.socket_path import service_answers


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir()
    return folder


def test_the_socket_lies_in_the_state_directory_for_its_owner(state: Path) -> None:
    with listening(str(state), None):
        path = state / "monitor.sock"
        assert path.is_socket()
        assert path.stat().st_mode & 0o777 == 0o600
        assert service_answers(str(state))
    assert list(state.iterdir()) == []


@pytest.mark.parametrize("depth", [0, 12])
def test_a_socket_elsewhere_is_found_by_its_link(
    depth: int, state: Path, tmp_path: Path
) -> None:
    folder = tmp_path.joinpath(*["a-long-name"] * depth)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "own.sock"
    with listening(str(state), str(path)):
        assert (state / "monitor.sock").readlink() == path
        assert path.stat().st_mode & 0o777 == 0o600
        assert service_answers(str(state))
    assert not path.exists()
    assert list(state.iterdir()) == []


def test_what_a_service_that_was_killed_left_is_taken_away(
    state: Path, tmp_path: Path
) -> None:
    path = tmp_path / "own.sock"
    for left in (state / "monitor.sock", path):
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(left))
    with listening(str(state), str(path)):
        assert service_answers(str(state))


def test_a_file_of_somebody_s_is_left_alone(state: Path, tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text("mine")
    with pytest.raises(ConfigError), listening(str(state), str(path)):
        pytest.fail("it listens")
    assert path.read_text() == "mine"
    assert list(state.iterdir()) == []


def test_a_socket_at_which_somebody_answers_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(ConfigError), listening(str(tmp_path), str(path)):
            pytest.fail("it listens")
        assert path.is_socket()


def test_a_socket_of_which_it_cannot_be_told_whose_it_is_is_left_alone(
    state: Path, tmp_path: Path
) -> None:
    path = tmp_path / "other.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(str(path))
        with pytest.raises(ConfigError), listening(str(state), str(path)):
            pytest.fail("it listens")
        assert path.is_socket()


@pytest.mark.parametrize("place", ["no/such/folder/s", "file/s"])
def test_a_socket_that_cannot_be_made_is_said(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ConfigError) as caught,
        listening(str(tmp_path), str(tmp_path / place)),
    ):
        pytest.fail("it listens")
    assert caught.value.phrase.key == "listen_failed"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2"])
def test_over_tcp_it_listens_where_it_says(host: str) -> None:
    listener, url = listen_at(f"{host}:0")
    with listener:
        bound, port = listener.getsockname()
        assert bound == host.replace("localhost", "127.0.0.1")
        assert url == f"http://{host}:{port}"
        with socket.create_connection((bound, port)):
            pass


def test_a_port_that_is_taken_is_said() -> None:
    listener, url = listen_at("127.0.0.1:0")
    with listener, pytest.raises(ConfigError) as caught:
        listen_at(url.removeprefix("http://"))
    assert caught.value.phrase.key == "listen_failed"


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_over_ipv6_too() -> None:
    try:
        listener, url = listen_at("[::1]:0")
    except ConfigError:
        pytest.skip("no IPv6 loopback here")
    with listener:
        assert url == f"http://[::1]:{listener.getsockname()[1]}"
