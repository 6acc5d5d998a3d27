"""`--detach` with `--host` over a real sshd on this machine (C7.3, C7.4)."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command import Place, until
from tests.servers import Answer, Server
from tests.sshd import Client, Sshd
from tests.watcher.detached import Base, end_all, pids


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    home = tmp_path / "host-state"
    home.mkdir()
    yield Base(home)
    end_all(home)


@pytest.fixture
def sshd(tmp_path: Path, base: Base) -> Iterator[Sshd]:
    client = Client(Path(os.environ["HOME"]))
    server = Sshd(tmp_path / "sshd", client.key)
    server.options["SetEnv"] = f"XDG_STATE_HOME={base.home}"
    client.know(server)
    client.write_config("Host box", " HostName 127.0.0.1", f" Port {server.port}")
    server.start()
    yield server
    server.kill()


@pytest.fixture
def work(place: Place, server: Server, tmp_path: Path) -> Path:
    key = tmp_path / "notify.key"
    key.touch(0o600)
    key.write_text("s3cr3t")
    place.env["KODER_MONITOR_NOTIFY_URL"] = server.url()
    place.env["KODER_MONITOR_NOTIFY_KEY_FILE"] = str(key)
    path = tmp_path / "work"
    path.write_text("x")
    return path


def detach(place: Place, work: Path) -> str:
    words = ("file", str(work), "--gone", "--host", "box", "--detach", "--lang", "en")
    ended = place.run(*words)
    assert ended.status == 0, ended
    assert ended.out == ""
    assert any("survives logout" in line for line in ended.err), ended
    (watch_id,) = (line[4:] for line in ended.err if line.startswith("id: "))
    return watch_id


def keys(server: Server) -> list[str]:
    return [one.headers["idempotency-key"] for one in server.requests]


@pytest.mark.slow
def test_r3_detached_with_everything_dead_here_the_ping_comes_from_the_host_once(
    place: Place, server: Server, sshd: Sshd, work: Path, base: Base
) -> None:
    watch_id = detach(place, work)
    base.secret_is_nowhere("s3cr3t")
    place.end_service(signal.SIGKILL)
    sshd.kill()
    work.unlink()
    until(lambda: server.requests)
    until(lambda: not pids(base.root))
    assert keys(server) == [f"{watch_id}-1-released"]
    assert os.listdir(base.folder) == ["outcome.json"]
    sshd.start()
    place.run("list")
    until(lambda: not base.root.exists())
    until(lambda: "released" in place.run("list", "--all", "--lang", "en").out)
    assert keys(server) == [f"{watch_id}-1-released"]


@pytest.mark.slow
def test_r3_detached_with_both_alive_there_is_one_ping(
    place: Place, server: Server, sshd: Sshd, work: Path, base: Base
) -> None:
    watch_id = detach(place, work)
    there = place.run("list", "--host", "box", "--lang", "en")
    assert watch_id[:8] in there.out
    work.unlink()
    until(lambda: server.requests)
    until(lambda: not base.root.exists())
    assert keys(server) == [f"{watch_id}-1-released"]


@pytest.mark.slow
def test_a_removal_reaches_the_host(
    place: Place, server: Server, sshd: Sshd, work: Path, base: Base
) -> None:
    watch_id = detach(place, work)
    place.run("remove", watch_id, "--why", "done with it")
    until(lambda: not base.root.exists())
    until(lambda: not pids(base.root))
    assert keys(server) == []


@pytest.mark.slow
def test_r3_detached_a_notify_server_that_is_down_for_a_while_gets_the_ping(
    place: Place, server: Server, sshd: Sshd, work: Path, base: Base
) -> None:
    watch_id = detach(place, work)
    server._answers[:] = [Answer(status=503), Answer()]
    place.end_service(signal.SIGKILL)
    sshd.kill()
    work.unlink()
    until(lambda: len(server.requests) > 1, limit_s=60)
    until(lambda: not pids(base.root))
    assert set(keys(server)) == {f"{watch_id}-1-released"}
