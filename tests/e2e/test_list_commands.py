"""`list`, `show`, `history` and `outbox` as a user sees them (C1.5, C9.3)."""

import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from fcntl import ioctl
from pathlib import Path

import pytest

from tests.e2e.child import JOB, LIMIT_S, MONITOR, Done, environment, run
from tests.rows import (
    HOUR_S,
    add,
    add_ping,
    add_waiter,
    add_watch,
    answering,
    fill,
    opened,
)

NASTY = "a\x1b[2J\u202eb"
CLEANED = "a\\x1b[2J\\u202eb"
READING = [("list",), ("show", "a"), ("history",), ("outbox",)]


class Store:
    """A store that a service looks after, and commands that read it."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.db = opened(state)
        self.now = time.time()

    def run(self, *words: str, expect: int = 0, **env: str) -> Done:
        return run(MONITOR, *words, env=environment(self.state, **env), expect=expect)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    state = tmp_path / "state"
    with answering(state):
        store = Store(state)
        yield store
        store.db.close()


@pytest.fixture
def watches(store: Store) -> Store:
    """Two armed, one that ended an hour ago, one that ended two days ago."""
    now = store.now
    add_watch(store.db, "aa11", at=now - 60, target="lock api", label="api")
    add_waiter(store.db, "aa11", at=now - 60, session="s-1", resume="the API")
    add_watch(store.db, "ab22", at=now - 30, observation="unknown")
    ended = {"state": "released", "observation": "released"}
    add_watch(store.db, "bb33", at=now - 2 * HOUR_S, ended_at=now - HOUR_S, **ended)
    add_watch(
        store.db, "cc44", at=now - 60 * HOUR_S, ended_at=now - 48 * HOUR_S, **ended
    )
    return store


# --- list


def test_list_shows_what_is_armed(watches: Store) -> None:
    done = watches.run("list")
    assert done.err == ()
    head, *rows = done.rows
    assert head == ["ID", "ALVO", "ESTADO", "HÁ", "FALTA", "ESPERAM", "RÓTULO"]
    assert [[*row[:3], *row[5:]] for row in rows] == [
        ["aa11", "lock api", "ativo", "1", "api"],
        ["ab22", "lock ab22", "sem leitura", "0", "ab22"],
    ]


def test_list_speaks_english_when_asked(watches: Store) -> None:
    head, first, _ = watches.run("list", "--lang", "en").rows
    assert head == ["ID", "TARGET", "STATE", "AGE", "LEFT", "WAITERS", "LABEL"]
    assert first[2] == "held"


@pytest.mark.parametrize(
    ("content", "head"),
    [
        pytest.param(b'lang = "en"\n', "TARGET", id="English"),
        pytest.param(b'lang = "pt"\n', "ALVO", id="Portuguese"),
        pytest.param(b'[notify]\nurl = "http://127.0.0.1/"\n', "ALVO", id="not said"),
        pytest.param(b'[locks]\ndir = "lang"\n', "ALVO", id="said elsewhere"),
        pytest.param(b'lang = "fr"\n', "ALVO", id="unknown"),
        pytest.param(b"lang = [\n", "ALVO", id="no TOML"),
        pytest.param(b"lang = '\xff'\n", "ALVO", id="no UTF-8"),
    ],
)
def test_list_speaks_the_language_of_the_settings(
    watches: Store, tmp_path: Path, content: bytes, head: str
) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(content)
    done = watches.run("list", KODER_MONITOR_CONFIG=str(path))
    assert done.rows[0][1] == head


def test_list_all_shows_what_ended_within_a_day_too(watches: Store) -> None:
    rows = watches.run("list", "--all").rows[1:]
    assert [row[0] for row in rows] == ["bb33", "aa11", "ab22"]
    assert rows[0][2:5] == ["liberado", "1h00m", "-"]


def test_list_json_is_an_array_of_the_same(watches: Store) -> None:
    assert watches.run("list", "--json").ids == ["aa11", "ab22"]
    everything = watches.run("list", "--json", "--all")
    assert everything.ids == ["bb33", "aa11", "ab22"]
    ended, armed, _ = everything.objects
    assert (armed["session"], armed["resume"], armed["waiters"]) == (
        "s-1",
        "the API",
        1,
    )
    assert (armed["acknowledged"], ended["acknowledged"]) == (None, True)


def test_no_text_of_the_store_steers_the_terminal(store: Store) -> None:
    own = {"target": f"lock /{NASTY}", "label": NASTY, "line": NASTY}
    add_watch(store.db, "aa11", at=store.now, **own, evidence={NASTY: NASTY})
    add_waiter(store.db, "aa11", at=store.now, label=NASTY, session=NASTY)
    add(store.db, "trail", watch_id="aa11", at=store.now, event=NASTY, detail=[NASTY])
    add_ping(store.db, NASTY, at=store.now, message=NASTY, last_error=NASTY)
    for words in READING:
        for form in ((), ("--json",)):
            done = store.run(*words, *form)
            assert CLEANED in done.out.replace("\\\\", "\\")
            assert done.out.replace("\n", "").isprintable()


# --- where there is nothing, or nothing to be read


@pytest.mark.parametrize("words", READING[:1] + READING[2:])
def test_an_absent_store_reads_as_empty(tmp_path: Path, words: tuple[str]) -> None:
    env = environment(tmp_path / "none")
    assert run(MONITOR, *words, "--json", env=env).objects == []
    done = run(MONITOR, *words, env=env)
    assert (done.out, len(done.err)) == ("", 1)
    assert not (tmp_path / "none").exists()


def damaged(state: Path) -> None:
    (state / "monitor.db").write_bytes(b"no database at all" * 500)


def newer(state: Path) -> None:
    db = opened(state)
    db.execute("PRAGMA user_version = 99")
    db.close()


def torn(state: Path) -> None:
    """Leave a head that opens and pages that do not."""
    db = opened(state)
    fill(db, 200, at=1.0)
    db.close()
    path = state / "monitor.db"
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)


def folder(state: Path) -> None:
    (state / "monitor.db").mkdir(parents=True)


@pytest.mark.parametrize("words", READING)
@pytest.mark.parametrize("spoil", [damaged, newer, torn, folder])
def test_a_store_that_cannot_be_read_reads_as_empty_and_says_so(
    tmp_path: Path, words: tuple[str, ...], spoil: Callable[[Path], None]
) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    spoil(state)
    env = environment(state)
    shows = words[0] == "show"
    done = run(MONITOR, *words, "--json", env=env, expect=2 if shows else 0)
    assert done.out == ("" if shows else "[]\n")
    assert "monitor.db" in done.err[0]
    assert "koder-monitor doctor" in done.err[0]
    assert len(done.err) == 1 + shows
    assert [path.name for path in state.iterdir()] == ["monitor.db"]


def test_a_store_that_is_just_being_made_reads_as_empty(tmp_path: Path) -> None:
    (tmp_path / "monitor.db").touch()
    done = run(MONITOR, "list", "--json", env=environment(tmp_path))
    assert (done.objects, done.err) == ([], ())


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs util-linux")
def test_a_store_of_somebody_else_reads_as_empty_and_says_so(tmp_path: Path) -> None:
    opened(tmp_path).close()
    (tmp_path / "monitor.db").chmod(0)
    powerless = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", *MONITOR)
    command = powerless if os.geteuid() == 0 else MONITOR
    done = run(command, "list", "--json", env=environment(tmp_path))
    assert (done.objects, len(done.err)) == ([], 1)


def test_a_writer_at_work_does_not_hold_a_reader_up(watches: Store) -> None:
    watches.db.execute("BEGIN IMMEDIATE")
    add_watch(watches.db, "dd55", at=watches.now)
    assert watches.run("list", "--json").ids == ["aa11", "ab22"]
    watches.db.execute("COMMIT")
    assert watches.run("list", "--json").ids == ["aa11", "ab22", "dd55"]


# --- history


def test_history_shows_everything_and_the_newest_last(watches: Store) -> None:
    done = watches.run("history")
    assert [row[0] for row in done.rows] == ["ID", "cc44", "bb33", "aa11", "ab22"]
    assert watches.run("history", "--json").ids == ["cc44", "bb33", "aa11", "ab22"]


# --- show


def test_show_tells_all_of_a_watch(watches: Store) -> None:
    holder = {"session": "s-9", "host": "box", "pid": 7, "since": None, "paths": []}
    add_watch(
        watches.db,
        "ee55",
        at=watches.now,
        state="expired",
        ended_at=watches.now,
        renewals=2,
        memory={"holder": holder},
        evidence={"means": "lstat", "inode": 7, "gone": None},
        line="⏰ EXPIROU: lock ee55",
    )
    told = {"state": "told", "outcome": {"ending": "expired"}}
    add_waiter(watches.db, "ee55", 2, at=watches.now, resume="second", **told)
    add_waiter(watches.db, "ee55", 1, at=watches.now, session="s-2", state="left")
    at = watches.now
    add(watches.db, "trail", watch_id="ee55", at=at, event="joined", detail="2")
    add(watches.db, "trail", watch_id="ee55", at=at, event="x", detail={"why": "y"})
    done = watches.run("show", "ee", "--lang", "en")
    fields = [row for row in done.rows if len(row) == 2]
    for expected in (
        ["id", "ee55"],
        ["state", "expired"],
        ["renewals", "2"],
        ["acknowledged", "no"],
        ["line", "⏰ EXPIROU: lock ee55"],
        ["means", "lstat"],
        ["inode", "7"],
    ):
        assert expected in fields
    assert '"session": "s-9"' in done.out
    text = done.out.splitlines()
    waiters = text[text.index("waiters:") + 2 : text.index("evidence:")]
    assert [line.split()[:2] for line in waiters] == [["1", "left"], ["2", "expired"]]
    trail = text[text.index("trail:") + 1 :]
    assert [line.split(maxsplit=2)[2] for line in trail] == [
        "joined  2",
        'x       {"why": "y"}',
    ]


def test_show_leaves_out_what_is_not_there(watches: Store) -> None:
    names = [row[0] for row in watches.run("show", "ab22", "--lang", "en").rows]
    assert "id" in names
    assert not {"host", "session", "resume", "holder", "line", "evidence:"} & {*names}


def test_show_json_has_evidence_waiters_and_trail(watches: Store) -> None:
    add(watches.db, "trail", watch_id="aa11", at=watches.now, event="joined")
    found = json.loads(watches.run("show", "aa", "--json").out)
    assert (found["id"], found["waiters"]) == ("aa11", 1)
    assert [item["number"] for item in found["waiter_list"]] == [1]
    assert [item["event"] for item in found["trail"]] == ["joined"]
    assert found["evidence"] == {}


@pytest.mark.parametrize(
    ("prefix", "named"),
    [
        pytest.param("a", ["'a'", "aa11", "ab22"], id="of two"),
        pytest.param("zz", ["'zz'", "aa11 (lock api)", "ab22 (lock ab22)"], id="none"),
        pytest.param("", ["''", "aa11"], id="empty"),
        pytest.param("\x1b", ["'\\x1b'"], id="a control character"),
    ],
)
def test_an_id_that_is_not_one_is_refused_with_what_it_may_be(
    watches: Store, prefix: str, named: list[str]
) -> None:
    done = watches.run("show", prefix, "--lang", "en", expect=2)
    (line,) = done.err
    assert line.startswith("koder-monitor: error: ")
    assert [name for name in named if name not in line] == []


def test_an_id_of_odd_bytes_is_refused(watches: Store) -> None:
    env = environment(watches.state)
    done = run(MONITOR, "show", b"\xff", env=env, expect=2)
    assert "'\\xff'" in done.err[0]


def test_only_a_few_of_many_candidates_are_named(store: Store) -> None:
    for number in range(8):
        add_watch(store.db, f"a{number}", at=store.now + number)
    (line,) = store.run("show", "a", expect=2).err
    assert "a7, a6, a5, a4, a3, …" in line
    assert "a2" not in line


# --- outbox


def test_outbox_shows_what_waits_what_is_dead_and_what_went_today(store: Store) -> None:
    now = store.now
    add_ping(store.db, "k1", at=now - 50 * HOUR_S, state="dead", last_error="refused")
    went = {"state": "delivered"}
    add_ping(
        store.db, "k2", at=now - 49 * HOUR_S, delivered_at=now - 48 * HOUR_S, **went
    )
    add_ping(store.db, "k3", at=now - 3, delivered_at=now - 2, **went)
    add_ping(store.db, "k4", at=now - 1, attempts=2)
    done = store.run("outbox", "--json")
    assert [item["idempotency_key"] for item in done.objects] == ["k1", "k3", "k4"]
    states = [row[2] for row in store.run("outbox", "--lang", "en").rows[1:]]
    assert states == ["dead", "delivered", "pending"]


# --- the output


def test_the_output_is_utf8_whatever_the_locale(watches: Store) -> None:
    done = watches.run("list", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.rows[0][3] == "HÁ"


def test_a_reader_that_has_seen_enough_is_no_error(store: Store) -> None:
    fill(store.db, 300, at=store.now)
    process = subprocess.Popen(
        [*MONITOR, "list", "--json"],
        env=environment(store.state),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.read(10)
    process.stdout.close()
    _, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, err) == (0, b"")


def test_a_reader_may_take_its_time_and_still_gets_all(store: Store) -> None:
    fill(store.db, 300, at=store.now)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    process = subprocess.Popen(
        [*MONITOR, "list", "--json"],
        env=environment(store.state),
        stdout=writing,
    )
    os.close(writing)
    with open(reading, "rb") as pipe:
        select.select([pipe], [], [], LIMIT_S)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)  # the pipe is full
        content = pipe.read()
    assert process.wait(LIMIT_S) == 0
    assert content.count(b'"id"') == 300


def test_a_full_disk_is_an_error_that_says_so(watches: Store) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*MONITOR, "list", "--lang", "en"],
            env=environment(watches.state),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=LIMIT_S,
            check=False,
        )
    assert done.returncode == 70
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("koder-monitor: error: the output could not be written")


# --- the live table


class Screen:
    """`list --watch` on a terminal of its own."""

    def __init__(
        self, store: Store, *words: str, rows: int = 24, columns: int = 100
    ) -> None:
        self._main, terminal = pty.openpty()
        ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            [*MONITOR, "list", "--watch", *words],
            env=environment(store.state),
            stdin=subprocess.DEVNULL,
            stdout=terminal,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        os.close(terminal)
        self.text = ""

    def until(self, text: str) -> str:
        """Read on until the screen holds `text`; return all up to there."""
        end_s = time.monotonic() + LIMIT_S
        while text not in self.text:
            left_s = end_s - time.monotonic()
            assert left_s > 0, self.text
            assert self._read(left_s), self.text
        before, _, self.text = self.text.partition(text)
        return before

    def end(self, number: signal.Signals) -> int:
        """Send a signal, read the rest and return the exit status."""
        self.process.send_signal(number)
        while self._read(LIMIT_S):
            pass
        assert self.process.stderr is not None
        assert self.process.stderr.read() == b""
        return self.process.wait(LIMIT_S)

    def close(self) -> None:
        os.close(self._main)
        self.process.kill()
        self.process.wait(LIMIT_S)
        assert self.process.stderr is not None
        self.process.stderr.close()

    def _read(self, limit_s: float) -> bool:
        ready, _, _ = select.select([self._main], [], [], limit_s)
        try:
            found = os.read(self._main, 65536) if ready else b""
        except OSError:  # the other end is closed
            return False
        self.text += found.decode()
        return bool(found)


ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
def test_the_live_table_leaves_the_terminal_as_it_was(
    watches: Store, number: signal.Signals, status: int
) -> None:
    screen = Screen(watches)
    try:
        screen.until(ENTER)
        screen.until("lock api")
        assert screen.end(number) == status
        screen.until("\x1b[?25h")
        screen.until(LEAVE)
        assert screen.text == ""
    finally:
        screen.close()


def test_the_live_table_follows_what_happens(watches: Store) -> None:
    screen = Screen(watches)
    try:
        screen.until("lock api")
        add_watch(watches.db, "dd55", at=watches.now)
        screen.until("lock dd55")
        watches.db.execute("UPDATE watches SET state = 'removed', ended_at = 1")
        screen.until("nada armado")
        os.unlink(watches.state / "monitor.db")
        (watches.state / "monitor.db").write_bytes(b"x" * 9000)
        screen.until("não pôde")
        assert screen.end(signal.SIGINT) == 130
    finally:
        screen.close()


def test_the_live_table_keeps_to_the_screen(watches: Store) -> None:
    for number in range(9):
        add_watch(watches.db, f"f{number}", at=watches.now + number, label="x" * 90)
    screen = Screen(watches, "--all", "--lang", "en", rows=6, columns=40)
    try:
        screen.until(ENTER)
        screen.until("\x1b[H")
        frame = screen.until("\x1b[J").split("\r\n")
        assert screen.end(signal.SIGINT) == 130
    finally:
        screen.close()
    lines = [line.rstrip("\r").removesuffix("\x1b[K") for line in frame]
    assert [len(line) <= 40 for line in lines] == [True] * 6
    assert lines[1].startswith("bb33")
    assert lines[5] == "… 8 more"


def test_a_terminal_that_does_not_say_its_size_gets_a_table(watches: Store) -> None:
    screen = Screen(watches, rows=0, columns=0)
    try:
        screen.until("lock ab22")
        assert screen.end(signal.SIGINT) == 130
    finally:
        screen.close()


@pytest.mark.parametrize("words", [("--watch",), ("--watch", "--json")])
def test_the_live_table_is_for_terminals(watches: Store, words: tuple[str]) -> None:
    done = watches.run("list", *words, expect=2)
    assert done.out == ""
    assert len(done.err) == 1


# --- what it costs

HEAVY = {
    "asyncio",
    "concurrent.futures",
    "dataclasses",
    "httpx",
    "inspect",
    "logging",
    "msgspec",
    "policies.codec",
    "policies.model",
    "psutil",
    "ssl",
    "subprocess",
    "watcher.client",
    "watcher.config",
}
"""Each costs at least a fifth of the interpreter's own start."""

ENTRIES: dict[tuple[str, ...], str] = {
    MONITOR: "import sys; from watcher.cli import main; sys.exit(main())",
    JOB: "import sys; from watcher.cli.job import main; sys.exit(main())",
}
"""What the installed scripts do."""

COSTS = [
    pytest.param(MONITOR, ("list",), id="list"),
    pytest.param(MONITOR, ("list", "--json"), id="list --json"),
    pytest.param(MONITOR, ("history",), id="history"),
    pytest.param(MONITOR, ("show", "000000000000"), id="show"),
    pytest.param(MONITOR, ("outbox",), id="outbox"),
    pytest.param(JOB, ("list",), id="koder-job list"),
    pytest.param(JOB, ("list", "--json"), id="koder-job list --json"),
]


def bare(env: dict[str, str], bytecode: Path) -> dict[str, str]:
    """Return an environment as users have it: byte-compiled and not measured."""
    dropped = ("COVERAGE_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: text for name, text in env.items() if not name.startswith(dropped)}
    return {**kept, "PYTHONPYCACHEPREFIX": str(bytecode)}


@pytest.mark.parametrize(("program", "words"), COSTS)
def test_a_reading_command_imports_nothing_heavy(
    watches: Store, tmp_path: Path, program: tuple[str, ...], words: tuple[str, ...]
) -> None:
    add_watch(watches.db, "000000000000", at=watches.now)
    env = bare(environment(watches.state), tmp_path / "bytecode")
    words = (sys.executable, "-X", "importtime", "-c", ENTRIES[program], *words)
    done = run(words[:1], *words[1:], env=env)
    imported = {line.rpartition("|")[2].strip() for line in done.err}
    assert {"sqlite3", "watcher.views"} <= imported
    assert sorted(HEAVY & imported) == []


def test_a_reader_leaves_the_store_as_it_was(store: Store) -> None:
    add_watch(store.db, "aa11", at=store.now)
    before = sorted(path.name for path in store.state.iterdir())
    assert store.run("list", "--json").ids == ["aa11"]
    assert sorted(path.name for path in store.state.iterdir()) == before
