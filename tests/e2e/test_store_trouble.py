"""The state cannot be kept as it should be: the line and the ping come all the same.

C5.6, C4.3: full, read-only, damaged, foreign, locked, far too deep, or gone.
"""

import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.e2e.command import COMMAND, Ended, Place, outcome, until
from tests.e2e.test_service_life import mute, notifying, one_ping, settled
from tests.servers import Server
from watcher.database import VERSION, open_database

RELEASED = outcome("✅ LIBERADO: lock demo em HH:MM:SS — retomar a atividade bloqueada")
NOBODY_S_UID = 65533


def released(place: Place) -> Ended:
    """Arm a watch of a lock that is held, release it, and return how it ended."""
    path = place.hold()
    running = place.start("lock", "demo")
    running.armed()
    path.unlink()
    ended = running.end()
    assert RELEASED.fullmatch(ended.line)
    assert ended.status == 0
    return ended


def doctor(place: Place, check: str) -> str:
    """Return what doctor says of one part."""
    ended = place.run("doctor")
    assert ended.status == 0
    return "\n".join(line for line in ended.out.splitlines() if f" {check}: " in line)


# A file that is no good: B125


def garbage(path: Path) -> None:
    path.write_bytes(b"\x00\xffnot a database" * 500)


def text(path: Path) -> None:
    path.write_text('{"watches": []}')


def torn(path: Path) -> None:
    """Make a database of ours whose later pages a crash of the machine tore."""
    connection, _ = open_database(str(path.parent))
    connection.close()
    content = bytearray(path.read_bytes())
    content[8192:] = os.urandom(len(content) - 8192)
    path.write_bytes(content)


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE of_another_program (x)")
        connection.commit()


def foreign_of_our_number(path: Path) -> None:
    foreign(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.commit()


def newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE of_the_future (x)")
        connection.execute("PRAGMA user_version = 999")
        connection.commit()


def cut(path: Path) -> None:
    """Make a database that was cut in its first page."""
    newer(path)
    path.write_bytes(path.read_bytes()[:50])


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [garbage, text, torn, newer, cut, foreign, foreign_of_our_number]
)
def test_a_file_that_is_no_good_is_set_aside_whole_and_said_once(
    place: Place, make: Callable[[Path], None]
) -> None:
    place.state.mkdir(mode=0o700)
    make(place.database)
    before = place.database.read_bytes()
    said = [line for line in released(place).err if "posto de lado" in line]
    assert len(said) == 1
    (aside,) = place.state.glob("monitor.db.*-1")
    assert aside.read_bytes() == before
    assert str(aside) in said[0]
    assert str(aside) in doctor(place, "store")
    assert not any("posto de lado" in line for line in released(place).err)
    assert [*place.state.glob("monitor.db.*-2")] == []
    until(lambda: len(place.pings()) == 2)


def test_an_empty_file_is_a_new_store(place: Place) -> None:
    """A crash between truncate and write, or `: > monitor.db`."""
    place.state.mkdir(mode=0o700)
    place.database.touch()
    assert not any("posto de lado" in line for line in released(place).err)
    assert place.watch("--all")["state"] == "released"


@pytest.mark.slow
def test_a_file_that_cannot_be_set_aside_either_leaves_the_command_to_itself(
    place: Place,
) -> None:
    """A directory in its place: whatever that is, it is not ours to move."""
    place.database.mkdir(parents=True)
    (place.database / "kept").write_text("x")
    ended = released(place)
    assert any("sem serviço" in line for line in ended.err)
    assert (place.database / "kept").read_text() == "x"
    assert "⚠️" in doctor(place, "store")
    place.ping("lock demo liberado")


@pytest.mark.slow
def test_a_damaged_file_is_set_aside_also_under_a_service_s_feet(place: Place) -> None:
    """The next service finds it; what the old one hosts it tells all the same."""
    path = place.hold("first")
    running = place.start("lock", "first")
    running.armed()
    place.end_service(signal.SIGKILL)
    for name in ("monitor.db-wal", "monitor.db-shm"):
        (place.state / name).unlink(missing_ok=True)
    garbage(place.database)
    path.unlink()
    ended = running.end(limit_s=40)
    assert ended.line.startswith("✅ LIBERADO: lock first em ")
    place.ping("lock first liberado")


# A directory that cannot be written


def as_nobody(*words: str) -> tuple[str, ...]:
    """Return a command line by which root runs a command as somebody else."""
    if os.geteuid() != 0:
        return (*COMMAND, *words)
    ids = (f"--reuid={NOBODY_S_UID}", f"--regid={NOBODY_S_UID}", "--clear-groups")
    return ("setpriv", *ids, *COMMAND, *words)


@pytest.fixture
def readable() -> Iterator[Place]:
    """Give a place that anybody may read, with a state directory nobody may write.

    Beside pytest's own folders, into which nobody else may look.
    """
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("needs setpriv (Debian: util-linux)")
    probe = as_nobody("--version")
    if subprocess.run(probe, capture_output=True, check=False, timeout=20).returncode:
        pytest.skip("the package is where only root may read it")
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    # Nobody may write where coverage is kept, so it is not measured.
    measured = {name for name in os.environ if name.startswith("COVERAGE_")}
    env = {name: os.environ[name] for name in os.environ if name not in measured}
    place = Place.below(folder, {**env, "HOME": "/nonexistent"})
    place.locks.chmod(0o777)
    place.state.mkdir()
    place.state.chmod(0o555)
    yield place
    place.clear()
    place.state.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.slow
def test_a_read_only_state_directory_leaves_the_command_to_do_the_work_itself(
    readable: Place, server: Server
) -> None:
    place = readable
    notifying(place, server)
    path = place.hold()
    running = place.start(program=as_nobody("lock", "demo", "--resume", "x"))
    said = running.said("sem serviço")
    assert "Permission denied" in said
    running.armed()
    path.unlink()
    ended = running.end()
    assert ended.line.endswith(" — retomar x")
    assert one_ping(server) == ended.line
    assert sum("sem serviço" in line for line in ended.err) == 1
    assert [*place.state.iterdir()] == []
    found = place.start(program=as_nobody("doctor")).end()
    (line,) = [line for line in found.out.splitlines() if " state: " in line]
    assert "não pode ser gravado" in line


def test_where_there_is_no_service_nothing_can_be_detached(readable: Place) -> None:
    """Waiting here would hold up a script that was told that it need not wait."""
    place = readable
    place.hold()
    ended = place.start(program=as_nobody("lock", "demo", "--detach")).end()
    assert (ended.status, ended.out, len(ended.err)) == (70, "", 1)
    assert "Permission denied" in ended.err[0]


@pytest.mark.slow
def test_alone_a_deadline_holds_and_a_signal_says_that_the_wait_ends_here(
    readable: Place, server: Server
) -> None:
    place = readable
    notifying(place, server)
    place.hold()
    expiring = place.start(program=as_nobody("lock", "demo", "--ttl", "2s"))
    stopped = place.start(program=as_nobody("lock", "demo"))
    stopped.armed()
    stopped.send(signal.SIGTERM)
    ended = stopped.end(limit_s=10)
    assert ended.status == 143
    assert any("acaba aqui" in line for line in ended.err)
    line = expiring.end().line
    assert line.startswith("⏰ EXPIROU: lock demo ainda ativo após 2s")
    assert one_ping(server) == line


@pytest.mark.slow
def test_alone_the_lock_is_taken_too(readable: Place) -> None:
    place = readable
    path = place.hold()
    words = ("lock", "demo", "--take", "--session", "sess-a")
    running = place.start(program=as_nobody(*words))
    running.armed()
    path.unlink()
    assert RELEASED.fullmatch(running.end().line)
    assert "sess-a" in path.read_text()


# A full disk


@pytest.fixture(scope="session")
def mounts() -> tuple[str, ...]:
    """Give what runs a shell script where it may mount."""
    own = ("-m",) if os.geteuid() == 0 else ("-rm",)
    program = shutil.which("unshare")
    if program is None:
        pytest.skip("needs unshare (Debian: util-linux)")
    command = (program, *own, "sh", "-c")
    probe = [*command, "mount -t tmpfs none /mnt"]
    if subprocess.run(probe, capture_output=True, check=False, timeout=20).returncode:
        pytest.skip("needs root or user namespaces to mount")
    return command


FULL = """
set -e
mount -t tmpfs -o size=256k none "$STATE"
cat /dev/zero >"$STATE/filler" 2>/dev/null || :
exec "$@"
"""

FILLED_LATER = """
set -e
mount -t tmpfs -o size=1m none "$STATE"
"$@" & pid=$!
until grep -q 'armado: ' "$STDERR"; do sleep 0.05; done
cat /dev/zero >"$STATE/filler" 2>/dev/null || :
sleep 0.1
rm "$LOCK"
wait $pid
"""


@pytest.mark.slow
def test_on_a_full_disk_the_command_waits_by_itself_and_pings(
    place: Place, mounts: tuple[str, ...], server: Server
) -> None:
    notifying(place, server)
    place.state.mkdir()
    path = place.hold()
    running = place.start(
        program=(*mounts, FULL, "sh", *COMMAND, "lock", "demo"),
        env={"STATE": str(place.state)},
    )
    running.armed()
    path.unlink()
    ended = running.end()
    assert RELEASED.fullmatch(ended.line)
    assert one_ping(server) == ended.line
    assert any("sem serviço" in line for line in ended.err)


@pytest.mark.slow
def test_a_disk_that_fills_up_while_a_service_waits_costs_neither_line_nor_ping(
    place: Place, mounts: tuple[str, ...], server: Server
) -> None:
    notifying(place, server)
    place.state.mkdir()
    path = place.hold()
    running = place.start(
        program=(*mounts, FILLED_LATER, "sh", *COMMAND, "lock", "demo"),
        env={
            "STATE": str(place.state),
            "STDERR": str(place.folder / "err-1"),
            "LOCK": str(path),
        },
    )
    ended = running.end(limit_s=40)
    assert RELEASED.fullmatch(ended.line)
    assert one_ping(server) == ended.line


ROOM_AGAIN = """
set -e
mount -t tmpfs -o size=1m none "$STATE"
"$@" & pid=$!
until grep -q 'armado: ' "$STDERR"; do sleep 0.05; done
cat /dev/zero >"$STATE/filler" 2>/dev/null || :
sleep 0.1
rm "$LOCK"
wait $pid
rm "$STATE/filler"
turns=0
until grep -q LIBERADO "$STATE/release-pings.log" || [ $turns = 900 ]; do
  sleep 0.1
  turns=$((turns + 1))
done
cat "$STATE/release-pings.log" >"$KEPT"
"""


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_without_a_channel_a_full_disk_only_delays_the_ping(
    place: Place, mounts: tuple[str, ...]
) -> None:
    """Neither log nor store took it: it was forgotten when there was room again."""
    place.state.mkdir()
    path = place.hold()
    kept = place.folder / "kept"
    running = place.start(
        program=(*mounts, ROOM_AGAIN, "sh", *COMMAND, "lock", "demo"),
        env={
            "STATE": str(place.state),
            "STDERR": str(place.folder / "err-1"),
            "LOCK": str(path),
            "KEPT": str(kept),
        },
    )
    ended = running.end(limit_s=120)
    assert RELEASED.fullmatch(ended.line)
    assert any("NEM GRAVADO" in line for line in ended.err)
    assert kept.read_text().count(ended.line) == 1


# A database that somebody else locks: B108


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Hold the write lock of a database."""
    with closing(sqlite3.connect(database, timeout=20)) as connection:
        connection.isolation_level = None
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


@pytest.mark.slow
def test_a_database_that_is_locked_for_8_s_costs_neither_line_nor_ping(
    place: Place, server: Server
) -> None:
    notifying(place, server)
    path = place.hold()
    other = place.hold("other")
    running = place.start("lock", "demo")
    running.armed()
    with locked(place.database):
        start_s = time.monotonic()
        armed_meanwhile = place.start("lock", "other")
        path.unlink()
        ended = running.end(limit_s=8)
        assert RELEASED.fullmatch(ended.line)
        assert any("banco de estado está ocupado" in line for line in ended.err)
        armed_meanwhile.armed()
        assert "não consegue gravar" in doctor(place, "service")
        until(lambda: time.monotonic() > start_s + 8)
    other.unlink()
    line = armed_meanwhile.end().line
    assert line.startswith("✅ LIBERADO: lock other em ")
    until(lambda: settled(place))
    states = {w["target"]: w["state"] for w in place.watches("--all")}
    assert states == {"lock demo": "released", "lock other": "released"}
    messages = [str(r.object["message"]) for r in server.requests]
    assert sorted(messages) == sorted([ended.line, line])


@pytest.mark.slow
def test_a_command_that_starts_a_service_on_a_locked_database_waits_for_it(
    place: Place,
) -> None:
    place.run("lock", "demo")  # the database is there now
    place.end_service(signal.SIGTERM, limit_s=5)
    path = place.hold()
    with locked(place.database):
        running = place.start("lock", "demo")
        start_s = time.monotonic()
        until(lambda: time.monotonic() > start_s + 3)
    running.armed()
    path.unlink()
    assert RELEASED.fullmatch(running.end().line)


# A place that is odd


@pytest.mark.slow
def test_a_state_path_longer_than_a_socket_s_address_is_as_good_as_any(
    place: Place,
) -> None:
    """sun_path holds 108 bytes on Linux: unix(7)."""
    deep = place.folder
    while len(str(deep)) < 300:
        deep = deep / ("d" * 40)
    place.env["KODER_MONITOR_STATE"] = str(deep)
    path = place.hold()
    pair = [place.start("lock", "demo") for _ in range(2)]
    for command in pair:
        command.armed()
    assert place.watch()["waiters"] == 2
    path.unlink()
    for command in pair:
        ended = command.end()
        assert RELEASED.fullmatch(ended.line)
        assert not any("sem serviço" in line for line in ended.err)
    assert (deep / "release-pings.log").exists()


@pytest.mark.slow
def test_a_state_directory_deleted_while_a_watch_waits_costs_neither_line_nor_ping(
    place: Place, server: Server
) -> None:
    notifying(place, server)
    path = place.hold()
    running = place.start("lock", "demo")
    running.armed()
    shutil.rmtree(place.state)
    path.unlink()
    ended = running.end()
    assert RELEASED.fullmatch(ended.line)
    assert one_ping(server) == ended.line


@pytest.mark.slow
def test_a_state_directory_deleted_with_its_service_killed_costs_no_line(
    place: Place, server: Server
) -> None:
    """The new service knows nothing of the watch: the command goes on by itself."""
    notifying(place, server)
    path = place.hold()
    running = place.start("lock", "demo", "--ttl", "1h")
    running.armed()
    place.end_service()
    shutil.rmtree(place.state, ignore_errors=True)
    running.said("sem serviço")
    path.unlink()
    ended = running.end()
    assert RELEASED.fullmatch(ended.line)
    assert one_ping(server) == ended.line


def test_commands_that_only_read_say_what_they_could_not_read_and_change_nothing(
    place: Place,
) -> None:
    place.state.mkdir(mode=0o700)
    garbage(place.database)
    before = place.database.read_bytes()
    for words in (["list"], ["history"], ["outbox"], ["list", "--json"]):
        ended = place.run(*words)
        assert ended.status == 0
        assert any(str(place.database) in line for line in ended.err)
    assert place.database.read_bytes() == before
    assert "⚠️" in doctor(place, "store")


# Another boot: C4.3


def rebooted(place: Place, *, wall_s: float) -> None:
    """Make the store one of an earlier boot, its clocks as if so much later."""
    place.rows(
        "UPDATE waiters SET boot_id = '00000000-0000-4000-8000-000000000000',"
        " deadline_boot_s = deadline_boot_s + 1e6, deadline_at = deadline_at - ?,"
        " armed_at = armed_at - ?",
        wall_s,
        wall_s,
    )
    place.rows(
        "UPDATE watches SET deadline_at = deadline_at - ?, armed_at = armed_at - ?",
        wall_s,
        wall_s,
    )


@pytest.mark.slow
def test_after_a_reboot_the_deadline_is_kept_by_the_wall_clock(
    place: Place, server: Server
) -> None:
    notifying(place, server)
    place.hold()
    place.run("lock", "demo", "--ttl", "1h", "--detach")
    place.end_service()
    rebooted(place, wall_s=3597)
    assert place.watch()["state"] == "armed"
    message = one_ping(server)
    assert message.startswith("⏰ EXPIROU: lock demo ainda ativo após 60min")
    assert place.watch("--all")["state"] == "expired"


@pytest.mark.slow
def test_a_wall_clock_set_back_at_a_reboot_lets_nobody_wait_longer_than_the_ttl(
    place: Place, server: Server
) -> None:
    notifying(place, server)
    place.hold()
    place.run("lock", "demo", "--ttl", "2s", "--detach")
    place.end_service()
    rebooted(place, wall_s=-86400)
    place.run("list")
    assert one_ping(server).startswith("⏰ EXPIROU: lock demo ainda ativo após 2s")


@pytest.mark.slow
def test_a_process_of_an_earlier_boot_has_ended(place: Place, server: Server) -> None:
    """Its PID and start ticks may well be somebody else's now: here the very same."""
    notifying(place, server)
    work = place.work()
    place.run("process", "--pid", str(work.pid), "--detach")
    place.end_service()
    (boot,) = Path("/proc/sys/kernel/random/boot_id").read_text().split()
    rebooted(place, wall_s=60)
    place.rows(
        "UPDATE watches SET memory = replace(memory, ?, ?)",
        boot,
        "00000000-0000-4000-8000-000000000000",
    )
    place.run("list")
    assert one_ping(server).startswith(f"✅ TERMINOU: PID {work.pid} em ")
    assert work.process.poll() is None


@pytest.mark.slow
def test_a_wall_clock_that_is_stepped_within_a_boot_moves_no_deadline(
    place: Place,
) -> None:
    """The rows say so: their wall-clock deadline is long past, their boot's is not."""
    path = place.hold()
    running = place.start("lock", "demo", "--ttl", "1h")
    running.armed()
    place.end_service()
    until(lambda: running.process.poll() is None)
    place.rows("UPDATE waiters SET deadline_at = deadline_at - 86400")
    place.service()
    until(lambda: place.rows("SELECT 1 FROM watches WHERE looks > 1"))
    assert running.process.poll() is None
    path.unlink()
    assert RELEASED.fullmatch(running.end().line)


@pytest.mark.slow
def test_the_outbox_outlives_a_channel_that_hangs_and_a_kill(place: Place) -> None:
    with mute() as url:
        place.env["KODER_MONITOR_NOTIFY_URL"] = url
        running = place.start("lock", "demo")
        until(lambda: running.stdout().endswith("\n"))
        place.end_service()
        assert RELEASED.match(running.end().line)
    (row,) = place.rows("SELECT state, body FROM pings")
    assert row["state"] == "pending"
    assert "lock demo" in row["body"]
