"""`koder-monitor port` as a user meets it."""

import json
import socket
from pathlib import Path

import pytest

from tests.e2e.command import Place, outcome
from tests.watcher.ports import free_port, listening, own_address, port_of

ALREADY = " — já estava livre ao armar"


@pytest.fixture
def address() -> str:
    """Give a loopback address of our own."""
    return own_address()


@pytest.mark.slow
def test_a_port_that_is_given_back_is_a_release_with_one_line_and_one_ping(
    place: Place, address: str
) -> None:
    with listening(address) as server:
        named = f"{address}:{port_of(server)}"
        running = place.start("port", named, "--free", "--resume", "subir a API")
        assert running.armed().startswith(f"armado: port {named} --free até ")
    ended = running.end()
    assert outcome(
        f"✅ LIBERADO: port {named} em HH:MM:SS — retomar subir a API"
    ).fullmatch(ended.line)
    assert place.ping(f"port {named} liberado: ").endswith(ended.line)


@pytest.mark.slow
def test_a_port_that_opens_is_a_release(place: Place, address: str) -> None:
    port = free_port(address)
    running = place.start("port", f"{address}:{port}", "--open", "--json")
    running.armed()
    with socket.socket() as server:
        server.bind((address, port))
        server.listen()
        found = running.end().object
    assert (found["outcome"], found["result"]) == ("released", None)
    evidence = found["evidence"]
    assert isinstance(evidence, dict)
    assert evidence["listeners"] == [address]
    assert evidence["port"] == port
    assert "seen_at" in evidence


def test_a_port_that_is_free_already_says_so(place: Place, address: str) -> None:
    named = f"{address}:{free_port(address)}"
    line = place.run("port", named, "--free").line
    assert outcome(
        f"✅ LIBERADO: port {named} em HH:MM:SS — "
        f"retomar a atividade bloqueada{ALREADY}"
    ).fullmatch(line)


@pytest.mark.slow
def test_a_port_that_stays_taken_expires(place: Place, address: str) -> None:
    with listening(address) as server:
        named = f"{address}:{port_of(server)}"
        ended = place.run("port", named, "--free", "--ttl", "1s", "--exit-codes")
    assert ended.status == 124
    assert ended.line == (
        f"⏰ EXPIROU: port {named} ainda ativo após 1s — "
        "renovar prazo ou remover monitor?"
    )


def test_a_look_says_who_listens(place: Place, address: str) -> None:
    with listening(address) as server:
        target = f"port {address}:{port_of(server)} --free"
        found = json.loads(place.run("check", target, "--json").line)
    assert (found["target"], found["observation"]) == (target, "held")
    assert found["evidence"]["listeners"] == [address]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["http", "--free"], "não é uma porta; use PORTA"),
        (["example.com:80", "--free"], "não é um endereço desta máquina"),
        (["80"], "veja 'koder-monitor port --help'"),
        (["80", "--free", "--open"], "veja 'koder-monitor port --help'"),
        (["203.0.113.7:80", "--free"], "não é um endereço desta máquina"),
        (["80", "--free", "--host=-oProxyCommand=touch pwned"], "não é um host; use"),
    ],
)
def test_a_wrong_call_ends_with_one_line_that_says_what_to_do(
    place: Place, words: list[str], said: str
) -> None:
    ended = place.run("port", *words)
    assert (ended.status, ended.out) == (2, "")
    (line,) = ended.err
    assert line.startswith("koder-monitor: erro: ")
    assert said in line
    assert not Path(place.folder / "pwned").exists()
