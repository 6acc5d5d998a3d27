"""`koder-monitor log` as a user meets it: which line decides, and what is said."""

import json
import os
from pathlib import Path

import pytest

from tests.e2e.command import Place, Running, outcome, until
from tests.watcher.onhost.logs import append

BOTH = ["--pass", "PASS", "--fail", "FAIL"]


@pytest.fixture
def log(place: Place) -> Path:
    """Give a log that holds the marker of an earlier run."""
    path = place.folder / "x.log"
    path.write_bytes(b"PASS\n")
    return path


def watching(place: Place, *words: str) -> Running:
    """Start a watch and wait until the first look has been taken."""
    running = place.start("log", "x.log", *words)
    running.armed()
    return running


def was_read(place: Place, log: Path) -> None:
    """Wait until a look has read all that the log holds, and that is stored."""

    def look() -> bool:
        (row,) = place.rows("SELECT memory FROM watches")
        memory, found = json.loads(row["memory"]), log.stat()
        seen = memory.get("inode"), memory.get("size")
        return seen == (found.st_ino, found.st_size)

    until(look)


def test_a_line_that_comes_later_ends_it_and_one_from_before_does_not(
    place: Place, log: Path
) -> None:
    """B69."""
    running = watching(place, *BOTH)
    assert f"{log}: leio só o que vier depois de agora (byte 5)" in running.said("byte")
    append(log, b"begun\n")
    was_read(place, log)
    assert running.process.poll() is None
    append(log, b"all done, PASS\n")
    ended = running.end()
    assert outcome(
        "✅ TERMINOU: x.log em HH:MM:SS [PASS] «all done, PASS» — retomar a atividade "
        "bloqueada"
    ).fullmatch(ended.line)
    assert ended.status == 0
    assert place.ping("terminou").endswith(ended.line)


def test_a_failure_has_its_own_exit_status(place: Place, log: Path) -> None:
    running = watching(place, *BOTH, "--exit-codes", "--json")
    append(log, b"1 FAIL\nPASS\n")
    ended = running.end()
    assert ended.status == 3
    found = ended.object
    assert (found["outcome"], found["result"]) == ("ended", "FAIL")
    evidence = found["evidence"]
    assert isinstance(evidence, dict)
    assert (evidence["path"], evidence["line"]) == (str(log), "1 FAIL")
    assert (evidence["inode"], evidence["offset"]) == (log.stat().st_ino, 5)
    assert found["target"] == f"log {log} --pass PASS --fail FAIL"


def test_half_a_line_decides_nothing(place: Place, log: Path) -> None:
    """B75."""
    running = watching(place, "--pass", "PASS", "--fail", "^FAIL$")
    append(log, b"FAIL")
    was_read(place, log)
    append(log, b"OVER ok\nPA")
    was_read(place, log)
    assert running.process.poll() is None
    append(log, b"SS\n")
    assert "[PASS] «PASS»" in running.end().line


def test_silence_is_an_end_too(place: Place, log: Path) -> None:
    ended = place.run("log", "x.log", "--stalled", "1s", "--exit-codes")
    assert ended.status == 3
    assert "[STALLED] «nada novo há 1s»" in ended.line


def test_with_from_start_a_line_that_is_there_counts(place: Place, log: Path) -> None:
    line = place.run("log", "x.log", "--pass", "PASS", "--from-start").line
    assert "[PASS] «PASS»" in line
    assert line.endswith(" — já não rodava ao armar")


def test_a_log_that_does_not_exist_yet_is_awaited(place: Place) -> None:
    running = watching(place, "--pass", "PASS")
    assert "ainda não existe" in running.said("x.log ainda")
    (place.folder / "x.log").write_bytes(b"PASS\n")
    assert "[PASS]" in running.end().line


def test_it_is_followed_through_rotation_and_truncation(
    place: Place, log: Path
) -> None:
    """B71, B73."""
    running = watching(place, *BOTH)
    with log.open("ab", buffering=0) as writer:
        log.rename(log.with_name("x.log.1"))
        writer.write(b"still here\n")
        log.write_bytes(b"begun\n" * 100)
        was_read(place, log)
        os.truncate(log, 0)
        append(log, b"PASS\n")
    assert "[PASS] «PASS»" in running.end().line


def test_what_a_log_holds_steers_no_terminal(place: Place, log: Path) -> None:
    """B77, B104: `end` refuses whatever could."""
    running = watching(place, "--pass", "PASS")
    append(log, b"\x1b]0;x\a\x1b[2J\xca\xfe\xe2\x80\xae PASS " + b"y" * 400 + b"\r\n")
    line = running.end().line
    assert r"«\x1b]0;x\x07\x1b[2J\xca\xfe\u202e PASS yyy" in line
    assert len(line) < 500


def test_a_service_that_was_killed_reads_on_where_it_was(
    place: Place, log: Path
) -> None:
    running = watching(place, *BOTH)
    place.end_service()
    log.rename(log.with_name("x.log.1"))
    append(log.with_name("x.log.1"), b"1 FAIL\n")
    log.write_bytes(b"PASS\n")
    assert "[FAIL] «1 FAIL»" in running.end().line


def test_a_dry_run_tells_which_lines_would_match(place: Place, log: Path) -> None:
    """B79."""
    append(log, b"+ echo waiting for PASS\nPASSWORD=x\n")
    found = place.run("check", r"log x.log --pass '^PASS\b'", "--json").object
    evidence = found["evidence"]
    assert isinstance(evidence, dict)
    assert [one["line"] for one in evidence["would_match"]] == ["PASS"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--pass REGEX, --fail REGEX ou --stalled"),
        (["--pass", "("], "expressão regular inválida em --pass"),
        (["--stalled", "1h30"], "--stalled 1h30"),
    ],
)
def test_what_cannot_be_watched_is_refused(
    place: Place, words: list[str], said: str
) -> None:
    ended = place.run("log", "x.log", *words)
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err[-1]


def test_a_folder_is_no_log(place: Place) -> None:
    ended = place.run("log", ".", "--pass", "x")
    assert ended.status == 2
    assert "não é um arquivo comum" in ended.err[-1]
