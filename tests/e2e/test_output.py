"""What goes where, in every locale, to every kind of reader (C1.7, C2.4, C2.5)."""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.e2e.command import (
    LIMIT_S,
    Place,
    outcome,
    steering,
    unique,
    until,
)
from tests.e2e.screen import stop_on_ctrl_s, terminal
from tests.servers import Server

# In every locale: B113

UNSETTLED = {"LC_ALL": None, "LC_CTYPE": None, "LANG": None}
ASCII_ONLY = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture
def latin_1(tmp_path: Path) -> dict[str, str]:
    """Give the environment of a locale that knows no emoji."""
    charmap = Path("/usr/share/i18n/charmaps/ISO-8859-1.gz")
    if shutil.which("localedef") is None or not charmap.exists():
        pytest.skip("needs the Debian package locales")
    plain = tmp_path / "ISO-8859-1"
    plain.write_bytes(gzip.decompress(charmap.read_bytes()))
    folder = tmp_path / "locale" / "pt_BR.ISO-8859-1"
    folder.parent.mkdir()
    subprocess.run(
        ["localedef", "-i", "pt_BR", "-f", str(plain), str(folder)],
        check=True,
        capture_output=True,
        timeout=LIMIT_S,
    )
    return {"LOCPATH": str(folder.parent), "LC_ALL": "pt_BR.ISO-8859-1"}


@pytest.mark.parametrize(
    ("env", "form"),
    [
        pytest.param({**UNSETTLED, "LANG": "C"}, [], id="LANG=C"),
        pytest.param({**UNSETTLED, "LC_ALL": "POSIX"}, [], id="POSIX"),
        pytest.param({"PYTHONIOENCODING": "ascii"}, [], id="ascii"),
        pytest.param({"PYTHONIOENCODING": "ascii"}, ["--json"], id="ascii, JSON"),
        pytest.param({"PYTHONIOENCODING": "latin-1"}, [], id="latin-1"),
        pytest.param({**UNSETTLED, **ASCII_ONLY}, [], id="C for good"),
        pytest.param({**UNSETTLED, **ASCII_ONLY}, ["--json"], id="C for good, JSON"),
        pytest.param({**UNSETTLED, "LC_ALL": "no_SUCH.locale"}, [], id="unknown"),
    ],
)
def test_the_line_is_utf_8_in_every_locale(
    place: Place, env: dict[str, str | None], form: list[str]
) -> None:
    path = place.hold()
    running = place.start("lock", "demo", *form, env=env)
    assert "até" in running.armed()
    path.unlink()
    ended = running.end()
    assert "✅ LIBERADO: lock demo em " in ended.line
    assert ended.status == 0
    assert "✅ LIBERADO: lock demo em " in place.ping("lock demo liberado")


def test_the_line_is_utf_8_in_a_latin_1_locale(
    place: Place, latin_1: dict[str, str]
) -> None:
    env = {**UNSETTLED, **latin_1}
    ended = place.run("lock", "demo", b"--resume=migra\xe7\xe3o", env=env)
    assert ended.line.startswith("✅ LIBERADO: lock demo em ")
    assert "— retomar migração —" in ended.line
    assert ended.status == 0


@pytest.mark.parametrize(
    "env",
    [
        pytest.param({**UNSETTLED, "LANG": "C"}, id="LANG=C"),
        pytest.param({**UNSETTLED, **ASCII_ONLY}, id="C for good"),
    ],
)
def test_what_a_user_wrote_in_utf_8_is_shown_in_utf_8(
    place: Place, env: dict[str, str | None]
) -> None:
    path = place.folder / "café.lock"
    path.touch()
    running = place.start("lock", "./café.lock", "--resume", "migração ☕", env=env)
    running.armed()
    path.unlink()
    assert outcome(
        "✅ LIBERADO: lock café.lock em HH:MM:SS — retomar migração ☕"
    ).fullmatch(running.end().line)


# Readers: B115, B117, B119


def test_stdout_carries_only_the_line_and_stderr_a_line_each(place: Place) -> None:
    path = place.hold()
    env = {"KODER_MONITOR_FLOOR": "2s"}
    running = place.start("lock", "demo", "--every", "1s", env=env)
    running.armed()
    path.unlink()
    ended = running.end()
    assert ended.line.startswith("✅ LIBERADO: ")
    warning, armed, *rest = ended.err
    assert "--every 1s" in warning
    assert outcome("armado: lock demo até HH:MM:SS (TTL 60min)").fullmatch(armed)
    assert all("ping" in line for line in rest)


def test_a_line_to_a_pipe_is_there_at_once_and_the_only_one(place: Place) -> None:
    path = place.hold()
    running = place.start("lock", "demo", stdout=subprocess.PIPE)
    running.armed()
    path.unlink()
    out, _ = running.process.communicate(timeout=LIMIT_S)
    text = out.decode("utf-8")
    assert text.startswith("✅ LIBERADO: ")
    assert text.count("\n") == 1
    assert running.end().status == 0


@pytest.mark.parametrize("closing", ["<&-", ">&-", "<&- >&-"])
def test_closed_descriptors_lose_neither_the_ping_nor_the_status(
    place: Place, closing: str
) -> None:
    path = place.hold(content="whoever holds it")
    running = place.shell(f"koder-monitor lock demo --exit-codes {closing}")
    running.armed()
    path.unlink()
    ended = running.end()
    assert ended.status == 0
    assert "✅ LIBERADO: lock demo em " in place.ping("lock demo liberado")
    assert (ended.out == "") == (">&-" in closing)


@pytest.mark.slow
def test_where_everything_is_closed_the_ping_and_the_status_still_come(
    place: Place,
) -> None:
    path = place.hold(content="whoever holds it")
    script = "koder-monitor lock demo --ttl 1s --exit-codes <&- >&- 2>&-"
    ended = place.shell(script).end()
    assert (ended.status, ended.out, ended.err) == (124, "", ())
    assert "⏰ EXPIROU: lock demo ainda ativo" in place.ping("lock demo EXPIROU")
    assert path.read_text() == "whoever holds it"


def test_a_closed_stdout_never_lets_the_line_into_another_file(place: Place) -> None:
    """The next file opened would take the number 1."""
    running = place.shell("koder-monitor lock demo >&-")
    assert running.end().status == 0
    (ping,) = place.pings()
    assert ping.count("LIBERADO") == 1
    assert [p for p in place.locks.iterdir() if p.stat().st_size] == []


@pytest.mark.parametrize("where", ["2>&1 | head -1", "| true"])
def test_a_reader_that_has_gone_loses_no_ping(place: Place, where: str) -> None:
    """B115: BrokenPipeError, a traceback, exit 120, and what came after not done."""
    path = place.hold()
    running = place.shell(
        f"set -o pipefail; koder-monitor lock demo {where}; echo status $? >&2"
    )
    if "head" in where:
        until(lambda: "armado: " in _text(place.folder / "out-1"))
    else:
        running.armed()
    path.unlink()
    assert "✅ LIBERADO: lock demo em " in place.ping("lock demo liberado")
    ended = running.end()
    assert "LIBERADO" not in ended.out
    (status,) = [line for line in ended.err if line.startswith("status ")]
    assert status not in {"status 1", "status 70", "status 120"}


def test_a_pipe_whose_reader_is_closed_later_loses_no_ping(place: Place) -> None:
    """B119: the output of a living watcher went nowhere."""
    path = place.hold()
    running = place.start("lock", "demo", stdout=subprocess.PIPE)
    running.armed()
    assert running.process.stdout is not None
    running.process.stdout.close()
    path.unlink()
    assert "✅ LIBERADO: lock demo em " in place.ping("lock demo liberado")
    assert running.end().status not in {1, 70, 120}


@pytest.mark.parametrize("reader", ["| cat", ""])
def test_a_parent_that_was_killed_loses_no_ping(place: Place, reader: str) -> None:
    """B117: whoever armed it is gone, and what it waits for still matters."""
    path = place.hold()
    shell = place.shell(f"koder-monitor lock demo {reader} & wait")
    shell.armed()
    shell.process.kill()
    shell.process.wait(LIMIT_S)
    path.unlink()
    assert "✅ LIBERADO: lock demo em " in place.ping("lock demo liberado")


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["", "| cat"], ids=["alone", "in a pipe"])
def test_a_command_whose_parent_was_killed_ends_soon_and_the_ping_still_comes(
    place: Place, reader: str
) -> None:
    """B117: observers lived on for ever, each with polls and sessions of its own."""
    path = place.hold()
    script = f"sh -c 'echo $$ > pid; exec koder-monitor lock demo' {reader} & wait"
    shell = place.shell(script)
    shell.armed()
    command = Path(f"/proc/{(place.folder / 'pid').read_text().strip()}")
    assert command.exists()
    shell.process.kill()
    shell.process.wait(LIMIT_S)
    until(lambda: not command.exists(), limit_s=10)
    assert place.watch()["state"] == "armed"
    path.unlink()
    assert "✅ LIBERADO: lock demo em " in place.ping("lock demo liberado")


@pytest.mark.slow
def test_a_command_whose_reader_is_gone_ends_soon_and_the_ping_still_comes(
    place: Place,
) -> None:
    path = place.hold()
    running = place.start("lock", "demo", stdout=subprocess.PIPE)
    running.armed()
    assert running.process.stdout is not None
    running.process.stdout.close()
    ended = running.end(limit_s=10)
    assert ended.status == 128 + signal.SIGHUP
    assert place.watch()["state"] == "armed"
    path.unlink()
    assert "✅ LIBERADO: lock demo em " in place.ping("lock demo liberado")


@pytest.fixture
def full_pipe() -> Iterator[int]:
    """Give the writing end of a pipe that is full and that nobody reads."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    for chunk in (b"x" * 4096, b"x"):
        try:
            while os.write(write, chunk):
                pass
        except BlockingIOError:
            continue
    os.set_blocking(write, True)
    yield write
    os.close(read)
    os.close(write)


@pytest.mark.slow
def test_a_full_pipe_that_nobody_reads_costs_patience_only_once(
    place: Place, full_pipe: int
) -> None:
    """Six lines for stderr would hold the deadline up six times."""
    mark = unique()
    for _ in range(5):
        place.work(mark)
    path = place.hold()
    with os.fdopen(os.dup(full_pipe), "wb") as pipe:
        mute = place.start("lock", "demo", "--exit-codes", stdout=pipe)
        words = ["process", "--match", mark, "--ttl", "1s"]
        silent = place.start(*words, stderr=pipe)
    mute.armed()
    path.unlink()
    assert mute.end(limit_s=15).status == 0
    assert silent.end(limit_s=15).line.startswith(f"⏰ EXPIROU: {mark} ainda rodando")
    until(lambda: len(place.pings()) == 2)
    assert "lock demo liberado" in "".join(place.pings())
    assert f"monitor {mark} EXPIROU" in "".join(place.pings())


def test_a_full_disk_under_stdout_loses_no_ping(place: Place) -> None:
    with open("/dev/full", "wb") as full:
        running = place.start("lock", "demo", stdout=full)
        assert running.end().status not in {1, 120}
    assert "✅ LIBERADO: lock demo em " in place.ping("lock demo liberado")


@pytest.mark.parametrize(
    "script",
    [
        "koder-monitor --help > /dev/full",
        "koder-monitor lock --help > /dev/full",
        "koder-monitor --version > /dev/full",
        "set -o pipefail; koder-monitor --help | true",
        "koder-monitor --version >&-",
    ],
)
def test_help_that_nobody_can_read_is_no_error_of_python(
    place: Place, script: str
) -> None:
    """The buffer was flushed at exit: "Exception ignored in ...", exit 120."""
    ended = place.shell(script).end()
    assert (ended.status, ended.out, ended.err) == (0, "", ())


def test_help_and_version_go_to_stdout(place: Place) -> None:
    version = place.run("--version", env=ASCII_ONLY)
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*\n", version.out)
    assert (version.status, version.err) == (0, ())
    text = place.run("--help", env=ASCII_ONLY)
    assert text.out.startswith("usage: koder-monitor ")
    assert text.out.endswith("\n")
    assert not text.out.endswith("\n\n")
    assert (text.status, text.err) == (0, ())
    for command in ("lock", "process"):
        assert f"usage: koder-monitor {command} " in place.run(command, "-h").out


# Terminals


@pytest.mark.slow
def test_on_a_terminal_a_countdown_is_shown_and_taken_away_again(place: Place) -> None:
    path = place.hold()
    with terminal() as screen:
        running = place.start("lock", "demo", "--ttl", "59m", stderr=screen.slave)
        until(lambda: re.search(r"lock demo — faltam 5[89]:\d\d", screen.written()))
        armed, countdown = screen.rows()
        assert outcome("armado: lock demo até HH:MM:SS (TTL 59min)").fullmatch(armed)
        assert re.fullmatch(r"⏳ lock demo — faltam 5[89]:\d\d", countdown)
        path.unlink()
        assert running.end().line.startswith("✅ LIBERADO: ")
        assert [row for row in screen.rows() if "faltam" in row] == []
        assert screen.rows()[0] == armed


@pytest.mark.slow
def test_on_a_terminal_the_line_stands_alone_on_its_row(place: Place) -> None:
    path = place.hold()
    with terminal() as screen:
        words = ["lock", "demo", "--lang", "en"]
        running = place.start(*words, stdout=screen.slave, stderr=screen.slave)
        until(lambda: "left" in screen.written())
        path.unlink()
        assert running.end().status == 0
        armed, *rest = screen.rows()
        assert armed.startswith("armed: lock demo until ")
        assert any(
            outcome(
                "✅ LIBERADO: lock demo at HH:MM:SS — resume the blocked activity"
            ).fullmatch(row)
            for row in rest
        )
        assert "left" not in "".join(rest)


@pytest.mark.slow
def test_a_countdown_keeps_to_one_row_and_shows_the_time_left(place: Place) -> None:
    """Characters that take two columns made it wrap, and never go away again."""
    text = unique()[:12] + "日本語" * 20
    work = place.work(text)
    with terminal(columns=60) as screen:
        running = place.start("process", "--match", text, stderr=screen.slave)
        until(lambda: screen.written().count("faltam") > 1)
        (countdown,) = [row for row in screen.rows() if "⏳" in row]
        assert re.fullmatch(
            r"⏳ process --match .+日本.*….* — faltam 59:\d\d", countdown
        )
        work.end()
        assert running.end().status == 0
        assert "⏳" not in "".join(screen.rows())


@pytest.mark.slow
def test_a_terminal_that_was_stopped_holds_no_watch_up(
    place: Place, server: Server
) -> None:
    """Ctrl-S stops the output; a write then blocks until Ctrl-Q."""
    path = place.hold()
    url = {"KODER_MONITOR_NOTIFY_URL": server.url()}
    with terminal() as screen:
        stop_on_ctrl_s(screen.slave)
        running = place.start("lock", "demo", env=url, stderr=screen.slave)
        until(lambda: "faltam" in screen.written())
        screen.type(b"\x13")
        path.unlink()
        line = running.end(limit_s=10).line
    assert line.startswith("✅ LIBERADO: ")
    assert server.request().object["message"] == line


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("setsid") is None, reason="needs util-linux")
def test_behind_an_ampersand_no_countdown_is_written_over_the_prompt(
    place: Place,
) -> None:
    path = place.hold()
    script = "set -m; koder-monitor lock demo & sleep 1.5; echo 'user types'; wait"
    with terminal() as screen:
        shell = place.start(
            "setsid",
            "--ctty",
            "--wait",
            "bash",
            "-c",
            script.replace("koder-monitor", '"$PYTHON" -m watcher'),
            program=(),
            stdin=screen.slave,
            stdout=screen.slave,
            stderr=screen.slave,
        )
        until(lambda: "user types" in screen.written())
        path.unlink()
        until(lambda: "LIBERADO" in screen.written())
        assert shell.process.wait(LIMIT_S) == 0
        assert "⏳" not in screen.written()


@pytest.mark.slow
def test_a_dumb_terminal_gets_no_escape_sequences(place: Place) -> None:
    place.hold()
    with terminal() as screen:
        words = ["lock", "demo", "--ttl", "2s"]
        running = place.start(*words, env={"TERM": "dumb"}, stderr=screen.slave)
        assert running.end().line.startswith("⏰ EXPIROU: ")
        assert "armado: " in screen.written()
        assert "\x1b" not in screen.written()


# JSON: C2.5

FIELDS = {
    "outcome",
    "result",
    "target",
    "label",
    "host",
    "watch_id",
    "armed_at",
    "ended_at",
    "waited_s",
    "ttl_s",
    "observations",
    "unknown_s",
    "resume",
    "line",
    "evidence",
}
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["lock", "demo"], "released", id="released"),
        pytest.param(["process", "--pid", "4194304"], "ended", id="ended"),
        pytest.param(
            ["process", "--match", f"no-{'such'}-work"], "unseen", id="unseen"
        ),
    ],
)
def test_the_json_object_has_exactly_its_fields(
    place: Place, words: list[str], expected: str
) -> None:
    env = {"TZ": "XYZ-9"}
    found = place.run(*words, "--json", "--resume", "x", env=env).object
    assert {*found} == FIELDS
    assert found["outcome"] == expected
    assert found["result"] is None
    assert found["host"] is None
    assert found["resume"] == "x"
    assert found["target"]
    assert found["label"]
    assert found["watch_id"]
    assert found["ttl_s"] == 3600
    assert isinstance(found["observations"], int)
    assert found["observations"] >= 1
    evidence = found["evidence"]
    assert isinstance(evidence, dict)
    assert evidence
    times = [str(found[name]) for name in ("armed_at", "ended_at")]
    assert all(RFC3339.fullmatch(text) for text in times)
    armed_at, ended_at = map(datetime.fromisoformat, times)
    assert armed_at.utcoffset() == timedelta(hours=9)
    waited_s = found["waited_s"]
    assert isinstance(waited_s, float)
    assert (ended_at - armed_at).total_seconds() == pytest.approx(waited_s, abs=0.1)
    assert expected == "unseen" or times[1][11:19] in str(found["line"])


def test_the_json_s_line_is_the_line_and_is_what_the_operator_reads(
    place: Place,
) -> None:
    found = place.run("lock", "demo", "--json", "--lang", "en").object
    line = str(found["line"])
    assert line.startswith("✅ LIBERADO: lock demo at ")
    assert place.ping(line)


# Hostile text: C2.4, B104

CONTROLS = "a".join(
    [
        "",
        "\x1b[2J",
        "\x1b]0;title\x07",
        "\x9b31m",
        "\x7f",
        "\a",
        "\n✅ LIBERADO: forged",
        "\r✅ LIBERADO: forged",
        "\u202egnp.exe",
        "\u2066b",
        "\u2028b\u2029c",
        os.fsdecode(b"\xff\xfe"),
        "",
    ]
)


def harmless(value: object) -> bool:
    """Say whether no text in a JSON value could steer who shows it."""
    if isinstance(value, dict):
        return all(harmless(key) and harmless(value[key]) for key in value)
    if isinstance(value, list):
        return all(map(harmless, value))
    return not (isinstance(value, str) and steering(value))


@pytest.mark.parametrize("text", [CONTROLS, "ação" * 20000], ids=["controls", "100 KB"])
def test_a_hostile_label_and_activity_reach_nobody_raw(
    place: Place, server: Server, text: str
) -> None:
    """`Running.end` checks stdout and stderr of every command for raw controls."""
    work = place.work(mark := unique())
    url = {"KODER_MONITOR_NOTIFY_URL": server.url()}
    words = ["--label", text, "--resume", text, "--json"]
    running = place.start("process", "--match", mark, *words, env=url)
    running.armed()
    work.end()
    found = running.end().object
    assert harmless(found)
    assert len(str(found["line"])) < 1000
    until(lambda: server.requests)
    request = server.request()
    assert harmless(request.object)
    assert len(request.body) < 65536
    assert request.object["message"] == found["line"]


@pytest.mark.parametrize("text", [CONTROLS, "ab " * 3000], ids=["controls", "9 KB"])
def test_hostile_text_reaches_the_fallback_log_as_one_harmless_line(
    place: Place, text: str
) -> None:
    mark = unique()
    words = ["--label", f"{mark} {text}", "--resume", text]
    line = place.run("process", "--pid", "4194304", *words).line
    assert line.startswith(f"✅ TERMINOU: {mark} ")
    assert place.ping(mark).endswith(line)


def test_the_command_line_of_a_hostile_process_is_shown_harmless(
    place: Place,
) -> None:
    work = place.work(mark := unique(), CONTROLS)
    running = place.start("process", "--match", mark, "--json")
    running.armed()
    matched = running.said(f"PID {work.pid}")
    assert mark in matched
    work.end()
    assert harmless(running.end().object)


def test_a_hostile_file_name_is_shown_harmless(place: Place) -> None:
    path = place.folder / CONTROLS
    path.touch()
    running = place.start("lock", f"./{CONTROLS}", "--json")
    running.armed()
    path.unlink()
    assert harmless(running.end().object)


@pytest.mark.parametrize("text", [CONTROLS, "ab " * 3000], ids=["controls", "9 KB"])
def test_a_hostile_holder_of_a_lock_is_shown_harmless(place: Place, text: str) -> None:
    def entry(session: str) -> str:
        return json.dumps({"session": session, "host": text, "since": text})

    path = place.hold(content=entry(text))
    running = place.start("lock", "demo", "--json")
    running.armed()
    beside = path.with_name("beside")
    beside.write_text(entry("b" + text))
    beside.replace(path)
    running.said("retomado por b")
    path.unlink()
    found = running.end().object
    assert harmless(found)
    assert len(json.dumps(found)) < 100_000


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\0" * 100_000, id="zeros"),
        pytest.param(b"---\nsession: \x1b[2J\xff\n---\n", id="front matter"),
        pytest.param(b'{"session": ' + b"[" * 60_000, id="deep JSON"),
        pytest.param(b"\n" * 60_000 + b"x", id="blank lines"),
        pytest.param(b"999999\n\x1b]0;x\x07\n", id="two lines"),
    ],
)
def test_whatever_a_lock_file_says_only_its_existence_decides(
    place: Place, content: bytes
) -> None:
    """B11: odd content broke the reader."""
    path = place.hold(content=content)
    running = place.start("lock", "demo", "--json")
    running.armed()
    path.unlink()
    found = running.end(limit_s=5).object
    assert found["outcome"] == "released"
    assert harmless(found)


def _text(path: Path) -> str:
    return path.read_text("utf-8")


@pytest.mark.parametrize("zone", ["UTC+24", "UTC-99", ":bogus", ""])
def test_no_time_zone_costs_the_line(place: Place, zone: str) -> None:
    """B130: POSIX allows a zone that Python cannot say."""
    ended = place.run("lock", "free", env={"TZ": zone})
    assert (ended.status, ended.line[:10]) == (0, "✅ LIBERADO")
    assert place.run("history", env={"TZ": zone}).status == 0
