"""Where the service may listen: on this machine, and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watcher.errors import ConfigError
from watcher.loopback import is_loopback, parse_listen


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("127.0.0.1:8765", ("127.0.0.1", 8765)),
        ("127.1.2.3:1", ("127.1.2.3", 1)),
        ("localhost:65535", ("localhost", 65535)),
        ("[::1]:80", ("[::1]", 80)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
    ],
)
def test_addresses_of_the_loopback_are_taken(text: str, found: tuple[str, int]) -> None:
    assert parse_listen(text, "--listen") == found


@pytest.mark.parametrize(
    "text",
    [
        "0.0.0.0:80",
        "[::]:80",
        "::1:80",
        ":80",
        "10.0.0.1:80",
        "128.0.0.1:80",
        "[::ffff:127.0.0.1]:80",
        "[127.0.0.1]:80",
        "[fe80::1]:80",
        "[0:0:0:0:0:0:0:1]:80",
        "example.org:80",
        "localhost.:80",
        "LOCALHOST:80",
        "127.1:80",
        "0x7f.0.0.1:80",
    ],
)
def test_addresses_that_others_may_reach_are_refused(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_listen(text, "--listen")
    assert str(caught.value.phrase.values["error"]).find("listen_far") > 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "127.0.0.1",
        "8765",
        "127.0.0.1:",
        "localhost:x",
        "localhost:-1",
        "localhost:65536",
        "localhost:9999999",
        "localhost:٣",
        "localhost:8 ",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_listen(text, "--listen")
    assert str(caught.value.phrase.values["error"]).find("listen_shape") > 0


@given(st.text())
def test_a_name_is_loopback_only_if_it_looks_like_one(name: str) -> None:
    if is_loopback(name):
        assert name in {"localhost", "[::1]"} or name.startswith("127.")
