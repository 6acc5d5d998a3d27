"""`list --host`: asked of the host by the service (C7.4)."""

import json

from tests.e2e.command import Place


def test_a_host_out_of_reach_is_told(place: Place) -> None:
    # Nobody listens there, and nobody could without being root.
    ended = place.run("list", "--host", "127.0.0.1:1", "--json", "--lang", "en")
    assert ended.status == 0
    assert json.loads(ended.out) == []
    assert "no contact with 127.0.0.1:1" in " ".join(ended.err)


def test_what_is_no_host_is_a_wrong_call(place: Place) -> None:
    ended = place.run("list", "--host=-oProxyCommand=x", "--lang", "en")
    assert ended.status == 2
    assert "is no name of a host" in " ".join(ended.err)
