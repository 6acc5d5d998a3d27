"""Watching on a host: whole commands against a real OpenSSH server (C7.1, C7.2)."""

import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command import Place, outcome, unique, until
from tests.e2e.hosts import box, without_python
from tests.sshd import Client, Sshd, needs_sshd

pytestmark = [needs_sshd, pytest.mark.slow]

NOBODY = 4194304


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    with box(tmp_path) as server:
        yield server


@pytest.fixture(params=["agent", "sh"])
def by(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Run a host with a Python, and one without."""
    options: dict[str, str] = {}
    if request.param == "sh":
        path, home = without_python(tmp_path), tmp_path / "there"
        options["SetEnv"] = f"HOME={home} PATH={path}"
    with box(tmp_path, **options):
        yield request.param


# each kind, by the agent and by sh


def test_a_process_is_followed_to_its_end_and_how_it_ended(
    place: Place, by: str
) -> None:
    work = place.work()
    running = place.start(
        "process",
        "--pid",
        str(work.pid),
        "--host",
        "box",
        "--label",
        "o build",
        "--json",
    )
    running.armed()
    work.end()
    found = running.end().object
    assert found["outcome"] == "ended"
    assert found["host"] == "box"
    line = str(found["line"])
    assert line.startswith("✅ TERMINOU: o build no box em ")
    if found["result"] is not None:  # where the kernel told it
        assert (found["result"], "«código 0»" in line) == ("PASS", True)
    evidence = found["evidence"]
    assert isinstance(evidence, dict)
    assert (evidence["host"], evidence["by"]) == ("box", by)


def test_a_pattern_is_matched_here_and_never_matches_what_looks(
    place: Place, by: str
) -> None:
    word = unique()
    ended = place.run("process", "--match", word, "--host", "box", "--exit-codes")
    assert ended.status == 6
    assert ended.line.startswith(f"❓ NÃO VISTO: nada casa com {word} no box")
    work = place.work(word)
    running = place.start("process", "--match", word, "--host", "box")
    running.armed()
    running.said(f"PID {work.pid}")
    other = place.start("process", "--regex", f"{word}$", "--host", "box")
    other.armed()
    work.end()
    assert outcome(rf"✅ TERMINOU: {word} no box").match(running.end().line)
    assert other.end().status == 0


def test_a_log_is_followed_by_a_path_that_needs_quoting(
    place: Place, by: str, tmp_path: Path
) -> None:
    folder = tmp_path / "there" / "a b"
    folder.mkdir()
    log = folder / "x 'y' $HOME.log"
    log.write_text("PASS of an earlier run\n")
    running = place.start(
        "log", "a b/x 'y' $HOME.log", "--pass", "PASS", "--host", "box"
    )
    running.armed()
    with log.open("a") as file:
        file.write("FAILOVER ok\nALL PASS\n")
    line = running.end().line
    assert " no box em " in line
    assert "[PASS] «ALL PASS»" in line


def test_files_ports_and_commands(place: Place, by: str, tmp_path: Path) -> None:
    home = tmp_path / "there"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        started = [
            place.start("file", "run/END", "--exists", "--host", "box"),
            place.start("port", f"127.0.0.1:{port}", "--free", "--host", "box"),
            place.start("command", "--host", "box", "--", "test", "-e", f"{home}/ok"),
        ]
        for running in started:
            running.armed()
    (home / "run").mkdir()
    (home / "run" / "END").touch()
    (home / "ok").touch()
    file, free, command = (running.end().line for running in started)
    assert file.startswith("✅ LIBERADO: END no box em ")
    assert free.startswith(f"✅ LIBERADO: port 127.0.0.1:{port} no box em ")
    assert command.startswith("✅ TERMINOU: test -e ")
    assert " no box em " in command


def test_check_looks_there_once(place: Place, by: str) -> None:
    work = place.work()
    for target, seen in (
        (f"process --pid {work.pid} --host box", "held"),
        (f"process --pid {NOBODY} --host box", "released"),
        ("file /nowhere/at/all --gone --host box", "unknown"),
        ("command --host box -- true", "released"),
        ("log /nowhere.log --pass x --host box", "held"),
    ):
        found = place.run("check", target, "--json").object
        if seen == "held" and target.startswith("log"):
            assert found["observation"] != "released"
        else:
            assert (target, found["observation"]) == (target, seen)


# what goes wrong with the way there


def test_a_server_that_is_gone_for_a_while_ends_nothing(
    place: Place, sshd: Sshd
) -> None:
    work = place.work()
    running = place.start("process", "--pid", str(work.pid), "--host", "box")
    running.armed()
    sshd.kill()
    running.said("box")
    assert running.process.poll() is None
    sshd.start()
    until(sshd.logins)
    assert running.process.poll() is None
    work.end()
    assert running.end().line.startswith("✅ TERMINOU: ")


def test_a_server_that_is_frozen_is_no_end_either(place: Place, sshd: Sshd) -> None:
    work = place.work()
    words = ["process", "--pid", str(work.pid), "--host", "box", "--ttl", "12s"]
    running = place.start(*words, "--exit-codes")
    running.armed()
    sshd.freeze()
    try:
        work.end()
        ended = running.end(limit_s=60)
    finally:
        sshd.thaw()
    assert ended.status == 124
    assert re.match(
        r"⏰ EXPIROU: PID \d+ sem resposta de box há \d+s \(.+\) — renovar", ended.line
    )


def test_a_port_where_nobody_listens_is_unknown_until_the_deadline(
    place: Place, sshd: Sshd
) -> None:
    sshd.kill()
    running = place.start(
        "process", "--pid", "1", "--host", "box", "--ttl", "4s", "--json"
    )
    running.armed()
    found = running.end().object
    assert found["outcome"] == "expired"
    assert "sem resposta de box há " in str(found["line"])
    assert float(str(found["unknown_s"])) > 0


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("unknown key", "chave"),
        ("changed key", "chave"),
        ("no login", "box"),
        ("no such host", "nowhere.invalid"),
        ("an option", "-oProxyCommand"),
        ("shell syntax", "$("),
    ],
)
def test_what_never_works_is_said_at_once(
    what: str, said: str, place: Place, sshd: Sshd, tmp_path: Path
) -> None:
    host = "box"
    match what:
        case "unknown key":
            (Path(os.environ["HOME"]) / ".ssh/known_hosts").write_text("")
        case "changed key":
            sshd.kill()
            sshd.change_host_key()
            sshd.start()
        case "no login":
            sshd.allow()
        case "no such host":
            host = "nowhere.invalid"
        case "an option":
            host = f"-oProxyCommand=touch {tmp_path}/pwned"
        case _:
            host = f"$(touch {tmp_path}/pwned)"
    ended = place.run("process", "--pid", "1", f"--host={host}")
    assert (ended.status, ended.out) == (2, ""), ended
    assert said in ended.err[-1]
    assert place.watches() == []
    assert not (tmp_path / "pwned").exists()


def test_many_watches_share_one_login(place: Place, sshd: Sshd) -> None:
    works = [place.work() for _ in range(6)]
    started = [
        place.start("process", "--pid", str(work.pid), "--host", "box")
        for work in works
    ]
    for running in started:
        running.armed()
    for work in works:
        work.end()
    assert {running.end().status for running in started} == {0}
    assert sshd.logins() == 1


def test_stdin_is_nobodys(place: Place, sshd: Sshd) -> None:
    script = f"""
    printf '1\\n2\\n3\\n' | while read n
    do koder-monitor process --pid {NOBODY} --host box --label "n$n"
    done
    """
    said = place.shell(script).end()
    assert [line.split()[2] for line in said.out.splitlines()] == ["n1", "n2", "n3"]


def test_a_service_that_is_killed_takes_a_host_up_again(
    place: Place, sshd: Sshd
) -> None:
    work = place.work()
    running = place.start("process", "--pid", str(work.pid), "--host", "box")
    running.armed()
    place.end_service(signal.SIGKILL)
    until(lambda: sshd.logins() >= 2)
    work.end()
    assert running.end().line.startswith("✅ TERMINOU: ")
    until(lambda: len(place.pings()) == 1)


def test_without_a_service_the_command_asks_the_host_itself(
    place: Place, sshd: Sshd
) -> None:
    place.state.parent.joinpath("blocked").write_text("")
    work = place.work()
    env = {"KODER_MONITOR_STATE": str(place.folder / "blocked" / "state")}
    running = place.start("process", "--pid", str(work.pid), "--host", "box", env=env)
    running.armed()
    work.end()
    assert running.end().line.startswith("✅ TERMINOU: ")


def test_a_host_that_a_program_names_is_checked_likewise(place: Place) -> None:
    Client(Path(os.environ["HOME"]))
    place.hold()
    place.start("lock", "demo").armed()
    place.service()
    ended = place.run("check", "process --pid 1 --host '-oProxyCommand=x'", "--json")
    assert (ended.status, ended.out) == (2, "")
