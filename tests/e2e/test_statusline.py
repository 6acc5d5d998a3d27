"""`koder-monitor statusline` as a runtime calls it (C8.2, B137, B143, B145)."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.e2e.child import MONITOR
from tests.e2e.command import LIMIT_S, Place, until
from tests.e2e.test_startup import HEAVY, env_of, foreign, imported
from tests.rows import HOUR_S, add_waiter, add_watch, answering, fill, opened
from watcher.runtimes.metrics import found

DATA = Path(__file__).parents[1] / "data/hooks"
RECORDED = sorted(DATA.glob("*/statusline*.json"))
PAYLOAD = {
    "session_id": "abc",
    "model": {"display_name": "Opus"},
    "workspace": {"current_dir": "/home/ana/api", "project_dir": "/home/ana/api"},
    "context_window": {"context_window_size": 200_000, "used_percentage": 60},
}
HEAD = "Opus │ api │ ███████░░░ 72%"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Runtime:
    """What calls the status line, with folders of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.env = {
            **os.environ,
            "KODER_MONITOR_STATE": str(self.state),
            "TMPDIR": str(folder),
            "NO_COLOR": "1",
            "COLUMNS": "200",
        }

    def draws(
        self,
        payload: object = PAYLOAD,
        *words: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> str:
        """Return the line; anything else on stdout or stderr fails the test."""
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        done = subprocess.run(
            [*MONITOR, "statusline", *words],
            input=data,
            env={**self.env, **(env or {})},
            cwd=cwd or self.folder,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return one_line(done.stdout)

    def measured(self, session: str = "abc") -> list[float]:
        return [
            reading.remaining for reading in found(str(self.state), self.env, session)
        ]


def unmeasured(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what measures coverage, which hangs with us."""
    return {name: env[name] for name in env if not name.startswith("COVERAGE_")}


def one_line(data: bytes, encoding: str = "utf-8") -> str:
    text = data.decode(encoding)
    assert text.endswith("\n")
    assert text.count("\n") == 1
    assert len(text) > 1
    return text[:-1]


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    return Runtime(tmp_path)


# what it shows


@pytest.mark.parametrize(
    "path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_what_each_runtime_hands_over_is_drawn(runtime: Runtime, path: Path) -> None:
    recorded = json.loads(path.read_text("utf-8"))
    name = path.parent.name
    assert recorded["source"]
    assert runtime.draws(recorded["payload"], "--runtime", name) == recorded["line"]
    session = recorded["payload"]["session_id"]
    assert len(runtime.measured(session)) == (2 if "%" in recorded["line"] else 0)


def test_the_line_leaves_the_metrics_in_both_places(runtime: Runtime) -> None:
    assert runtime.draws() == HEAD
    (runtime.folder / "home/.claude").mkdir()
    settings = runtime.folder / "home/.claude/settings.json"
    settings.write_text('{"autoCompactEnabled": false}')
    assert runtime.draws() == "Opus │ api │ ██████░░░░ 60%"
    assert runtime.measured() == [40, 40]


def test_without_a_session_no_metrics_are_left(runtime: Runtime) -> None:
    assert runtime.draws({**PAYLOAD, "session_id": None}) == HEAD
    assert not list(runtime.folder.glob("claude-ctx*"))


def test_another_settings_folder_is_honoured(runtime: Runtime) -> None:
    (runtime.folder / "settings.json").write_text('{"autoCompactEnabled": false}')
    env = {"CLAUDE_CONFIG_DIR": str(runtime.folder)}
    assert runtime.draws(env=env) == "Opus │ api │ ██████░░░░ 60%"


def test_each_session_is_shown_its_own_figures(runtime: Runtime) -> None:
    """Also where one id begins like another's (B137)."""
    sessions = {"abc1234": 10, "abc123": 50}
    for session, used in sessions.items():
        window = {"used_percentage": used}
        payload = {**PAYLOAD, "session_id": session, "context_window": window}
        assert runtime.draws(payload).endswith(f" {used}%")
    for session, used in sessions.items():
        assert runtime.measured(session) == [100 - used] * 2


def test_a_session_id_that_is_none_leaves_no_file(runtime: Runtime) -> None:
    for session in ("../../x", "/tmp/victim", "..", "a/b", "a\0b", "x" * 5000):
        assert runtime.draws({**PAYLOAD, "session_id": session}) == HEAD
    assert not list(runtime.folder.glob("claude-ctx*"))
    assert not runtime.state.exists()


@pytest.fixture
def waiting(runtime: Runtime) -> Iterator[Runtime]:
    """Give a runtime whose store has waits of two sessions in one project."""
    db, now_s = opened(runtime.state), time.time()
    add_watch(db, "api", at=now_s - 312)
    add_waiter(
        db, "api", at=now_s - 312, session="abc", deadline_at=now_s + HOUR_S - 10
    )
    add_watch(db, "soak", at=now_s - 90, kind="log", host="box", observation="unknown")
    add_waiter(
        db,
        "soak",
        at=now_s - 90,
        session="other",
        project="/home/ana/api",
        label="soak\x1b[2J 🚀",
    )
    add_watch(db, "done", at=now_s, state="released", ended_at=now_s)
    add_waiter(
        db,
        "done",
        at=now_s - 90,
        session="abc",
        state="told",
        told_at=now_s - 60.5,
        outcome={"ending": "released"},
    )
    with answering(runtime.state):
        yield runtime
    db.close()


def test_each_wait_has_a_light_and_outcomes_stay(waiting: Runtime) -> None:
    assert waiting.draws() == (
        f"{HEAD} │ ⏳ lock api 5m -59m │ ❓ log soak\\x1b[2J 🚀 @box 1m -58m"
        " │ ✅ lock done 1m"
    )


def test_without_a_payload_the_waits_are_those_of_the_environment(
    waiting: Runtime,
) -> None:
    env = {"CLAUDE_CODE_SESSION_ID": "abc"}
    name = waiting.folder.name
    line = f"{name[:31]}… " if len(name) > 32 else f"{name} "
    assert waiting.draws(b"", env=env) == (
        f"{line}│ ⏳ lock api 5m -59m │ ✅ lock done 1m"
    )
    env = {"KODER_MONITOR_SESSION": "other"}
    assert "❓ log soak" in waiting.draws(b"", env=env)


def test_the_language_of_the_machine_makes_no_difference(waiting: Runtime) -> None:
    assert waiting.draws(env={"LC_ALL": "C"}) == waiting.draws()


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("columns", ["20", "200"])
def test_a_console_of_few_signs_gets_others(
    waiting: Runtime, encoding: str, columns: str
) -> None:
    """B145."""
    done = subprocess.run(
        [*MONITOR, "statusline"],
        input=json.dumps(PAYLOAD).encode(),
        env={**waiting.env, "PYTHONIOENCODING": encoding, "COLUMNS": columns},
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    line = one_line(done.stdout, encoding)
    assert len(line) <= int(columns)
    assert ".. lock api" in line
    if columns == "200":
        assert line.startswith("Opus | api | #######--- 72% | .. lock api 5m -59m | ??")


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        ("45", "72% │ ⏳ lock api 5m -59m │ +2"),
        ("5", "⏳ l…"),
        ("none", None),
        ("0", None),
        ("", None),
    ],
)
def test_the_line_is_as_wide_as_the_runtime_says(
    waiting: Runtime, columns: str, line: str | None
) -> None:
    drawn = waiting.draws(env={"COLUMNS": columns})
    if line is None:
        assert drawn.startswith("Opus │ api │ 72% │ ⏳ lock api 5m -59m │ ❓ log soak")
        assert drawn.endswith("… @box 1m -58m │ +1")
    else:
        assert drawn == line


def test_else_it_is_as_wide_as_the_terminal(waiting: Runtime) -> None:
    ours, theirs = pty.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 45, 0, 0))
        done = subprocess.run(
            [*MONITOR, "statusline"],
            input=json.dumps(PAYLOAD).encode(),
            env={**waiting.env, "COLUMNS": ""},
            stdout=subprocess.PIPE,
            stderr=theirs,
            timeout=LIMIT_S,
            check=True,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert one_line(done.stdout) == "72% │ ⏳ lock api 5m -59m │ +2"


@pytest.mark.parametrize(
    ("env", "coloured"),
    [
        ({"NO_COLOR": ""}, True),
        ({"NO_COLOR": "", "TERM": "xterm"}, True),
        ({"NO_COLOR": "", "TERM": "dumb"}, False),
        ({"NO_COLOR": "1", "TERM": "xterm"}, False),
    ],
)
def test_colour_is_for_those_who_want_it(
    waiting: Runtime, env: dict[str, str], coloured: bool
) -> None:
    drawn = waiting.draws(env=env)
    assert ("\x1b" in drawn) is coloured
    assert COLOUR.sub("", drawn) == waiting.draws()


# whatever goes wrong


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"null",
        b"[1]",
        b"42",
        b"{",
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"session_id":5,"model":[],"workspace":7,"context_window":[]}',
        b'{"context_window": {"used_percentage": 1e999}}',
        b'{"cwd": "/home/\\ud800\\u0000"}',
        b" " * (5 << 20),
    ],
    ids=lambda payload: repr(payload[:20]),
)
def test_whatever_comes_there_is_one_line(runtime: Runtime, payload: bytes) -> None:
    assert runtime.draws(payload)


def test_a_byte_order_mark_is_no_matter(runtime: Runtime) -> None:
    assert runtime.draws(b"\xef\xbb\xbf" + json.dumps(PAYLOAD).encode()) == HEAD


def test_a_folder_that_was_deleted_is_left_out(runtime: Runtime) -> None:
    gone = runtime.folder / "gone"
    gone.mkdir()
    process = subprocess.Popen(
        ["sh", "-c", f'rmdir {gone}; exec "$@"', "sh", *MONITOR, "statusline"],
        env=runtime.env,
        cwd=gone,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, err) == (0, b"")
    assert one_line(out) == "koder-monitor"


@pytest.mark.parametrize("content", [b"no database", b""])
def test_a_store_that_cannot_be_read_has_no_lights(
    runtime: Runtime, content: bytes
) -> None:
    runtime.state.mkdir()
    (runtime.state / "monitor.db").write_bytes(content)
    assert runtime.draws() == HEAD


def test_a_state_directory_that_cannot_be_made_is_no_matter(runtime: Runtime) -> None:
    runtime.state.write_text("no folder")
    assert runtime.draws() == HEAD


def test_what_went_wrong_is_told_to_who_asks_for_it(runtime: Runtime) -> None:
    chained(runtime, "a\0b")
    assert runtime.draws() == HEAD
    done = subprocess.run(
        [*MONITOR, "statusline"],
        input=json.dumps(PAYLOAD).encode(),
        env={**runtime.env, "KODER_MONITOR_DEBUG": "1"},
        capture_output=True,
        timeout=LIMIT_S,
        check=True,
    )
    assert one_line(done.stdout) == HEAD
    assert b"ValueError: " in done.stderr


def test_nobody_who_does_not_read_holds_it_up(runtime: Runtime) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            try:
                os.write(writer, b"x" * 65536)
            except BlockingIOError:
                break
        os.set_blocking(writer, True)
        process = subprocess.Popen(
            [*MONITOR, "statusline"],
            env=runtime.env,
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=subprocess.PIPE,
        )
        assert process.communicate(timeout=LIMIT_S)[1] == b""
        assert process.returncode == 0
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize(
    "came", [b"", b'{"session_id":"s"}', json.dumps(PAYLOAD).encode(), b'{"session_id']
)
def test_a_stdin_that_stays_open_holds_nobody_up(runtime: Runtime, came: bytes) -> None:
    """B143; whoever opens it never closes it, and no process is left."""
    reader, writer = os.pipe()
    os.write(writer, came)
    process = subprocess.Popen(
        [*MONITOR, "statusline"],
        env=runtime.env,
        cwd=runtime.folder,
        stdin=reader,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        out, err = process.communicate(timeout=LIMIT_S)
    finally:
        os.close(reader)
        os.close(writer)
    assert (process.returncode, err) == (0, b"")
    line = one_line(out)
    assert (line == HEAD) is (b"Opus" in came)


def test_a_closed_stdin_and_stdout_are_no_matter(runtime: Runtime) -> None:
    process = subprocess.Popen(
        ["sh", "-c", 'exec "$@" <&- >&-', "sh", *MONITOR, "statusline"],
        env=runtime.env,
        stderr=subprocess.PIPE,
    )
    assert process.communicate(timeout=LIMIT_S)[1] == b""
    assert process.returncode == 0


def test_what_hangs_is_given_up_with_a_shorter_line(runtime: Runtime) -> None:
    """Anything on a dead mount; here it is the store."""
    patch = runtime.folder / "sitecustomize.py"
    patch.write_text(
        "import sqlite3, select\n"
        "sqlite3.connect = lambda *a, **k: select.select([], [], [], 3600)\n"
    )
    opened(runtime.state).close()
    path = f"{runtime.folder}:{os.environ.get('PYTHONPATH', '')}"
    runtime.env = {**unmeasured(runtime.env), "PYTHONPATH": path}
    assert runtime.draws() == "koder-monitor"


# the service


def test_a_service_that_is_missing_is_on_its_way(place: Place) -> None:
    place.hold()
    place.start("lock", "demo").armed()
    place.end_service()
    running = place.start("statusline", env={"NO_COLOR": "1"})
    assert "lock demo" in running.end().line
    place.service()


def test_without_work_no_service_is_started(place: Place) -> None:
    opened(place.state).close()
    assert place.run("statusline", env={"NO_COLOR": "1"}).line
    assert [path.name for path in place.state.iterdir() if "lock" in path.name] == []


def test_a_service_that_looks_is_not_asked(waiting: Runtime) -> None:
    """It would wake at each prompt."""
    (waiting.state / "service.lock").write_text(json.dumps({"pid": os.getpid()}))
    db = opened(waiting.state)
    db.execute("UPDATE watches SET last_probe_at = ?", (time.time(),))
    db.close()
    done = subprocess.run(
        [*MONITOR, "statusline"],
        input=json.dumps(PAYLOAD).encode(),
        env={**unmeasured(waiting.env), "PYTHONPROFILEIMPORTTIME": "1"},
        capture_output=True,
        timeout=LIMIT_S,
        check=True,
    )
    names = imported(done.stderr.decode().splitlines())
    assert "sqlite3" in names
    assert "_socket" not in names


# the line that was there before


def chained(runtime: Runtime, command: str) -> None:
    runtime.state.mkdir(exist_ok=True)
    (runtime.state / "statusline.json").write_text(
        json.dumps({"claude-code": {"command": command}})
    )


def test_the_line_that_was_there_before_stands_in_front(runtime: Runtime) -> None:
    chained(runtime, "cat >seen; printf '\\033[31mmain\\033[0m'; echo; echo more")
    # It is left out where it takes too long, as anything may on a loaded machine.
    until(lambda: runtime.draws() == f"main │ {HEAD}")
    assert json.loads((runtime.folder / "seen").read_bytes()) == PAYLOAD
    until(lambda: "\x1b[31mmain\x1b[0m" in runtime.draws(env={"NO_COLOR": ""}))


@pytest.mark.parametrize("command", ["exit 3", "exec sleep 300", "/no/such/program"])
def test_one_that_fails_or_is_slow_is_left_out(runtime: Runtime, command: str) -> None:
    chained(runtime, command)
    assert runtime.draws() == HEAD


def test_a_line_that_is_ours_is_not_drawn_for_ever(runtime: Runtime) -> None:
    program = " ".join(MONITOR)
    chained(runtime, f"echo x >>runs; exec {program} statusline")
    drawn = runtime.draws()
    assert drawn in {HEAD, f"{HEAD} │ {HEAD}"}
    assert (runtime.folder / "runs").read_text() == "x\n"


# how it is called


@pytest.mark.parametrize(
    "words", [["--runtime", "gemini"], ["--runtime=gemini"], ["--runtime", "none"]]
)
def test_of_other_runtimes_the_whole_window_is_the_measure(
    runtime: Runtime, words: list[str]
) -> None:
    assert runtime.draws(PAYLOAD, *words) == "Opus │ api │ ██████░░░░ 60%"


def test_its_help_is_that_of_a_command(place: Place) -> None:
    assert "--runtime NAME" in place.run("statusline", "--help").out


def test_it_imports_nothing_that_costs_more_than_the_interpreter(place: Place) -> None:
    db, now_s = opened(place.state), time.time()
    fill(db, 20, at=now_s)
    db.execute("UPDATE waiters SET project = ?", (str(place.folder),))
    db.close()
    place.state.joinpath("service.lock").write_text(json.dumps({"pid": os.getpid()}))
    payload = place.folder / "payload"
    payload.write_text(json.dumps({**PAYLOAD, "cwd": str(place.folder)}))
    with payload.open("rb") as stdin:
        ended = place.start(
            "statusline", env={**env_of(place), "NO_COLOR": "1"}, stdin=stdin
        ).end()
    names = imported(ended.err)
    assert "policies.statusline" in names
    assert foreign(place, names) == set()
    assert names & {*HEAVY, "argparse", "inspect", "dataclasses", "_socket"} == set()


def test_nothing_of_it_is_left_running(runtime: Runtime) -> None:
    """B143: they piled up where stdin was never closed."""
    reader, writer = os.pipe()
    processes = [
        subprocess.Popen(
            [*MONITOR, "statusline"],
            env=runtime.env,
            stdin=reader,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(3)
    ]
    try:
        until(lambda: all(process.poll() == 0 for process in processes))
    finally:
        os.close(reader)
        os.close(writer)
        for process in processes:
            process.send_signal(signal.SIGKILL)
