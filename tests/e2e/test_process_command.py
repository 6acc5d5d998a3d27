"""`koder-monitor process` as a user meets it: what is watched, and how it ends."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.command import Place, Work, outcome, unique

LINUX = sys.platform == "linux"


def named_by(form: str, work: Work, mark: str, folder: Path) -> list[str]:
    """Return how a process is named in one of the four forms."""
    match form:
        case "--pid":
            return [form, str(work.pid)]
        case "--pidfile":
            (folder / "work.pid").write_text(f"{work.pid}\n")
            return [form, "work.pid"]
        case _:
            return [form, mark]


FORMS = ["--pid", "--pidfile", "--match", "--regex"]


def well_ended(pattern: str) -> re.Pattern[str]:
    """Return a pattern of a line; `<HOW>` is the exit status, where a kernel tells."""
    return re.compile(
        outcome(pattern).pattern.replace("<HOW>", r"(?: \[PASS\] «código 0»)?")
    )


@pytest.mark.parametrize("form", FORMS)
def test_the_end_of_a_process_is_one_line_that_says_what_was_watched(
    place: Place, form: str
) -> None:
    mark = unique()
    work = place.work(mark)
    running = place.start("process", *named_by(form, work, mark, place.folder))
    running.armed()
    matched = running.said("casou: ")
    assert f"PID {work.pid}" in matched
    assert mark in matched
    work.end()
    label = {"--pid": f"PID {work.pid}", "--pidfile": "work.pid"}.get(form, mark)
    assert well_ended(
        f"✅ TERMINOU: {label} em HH:MM:SS<HOW> — retomar a atividade bloqueada"
    ).fullmatch(running.end().line)


def test_label_and_activity_are_in_the_line_and_the_ping(place: Place) -> None:
    work = place.work()
    words = ["--label", "build da API", "--resume", "os testes", "--exit-codes"]
    running = place.start("process", "--pid", str(work.pid), *words)
    running.armed()
    work.end()
    ended = running.end()
    assert well_ended(
        "✅ TERMINOU: build da API em HH:MM:SS<HOW> — retomar os testes"
    ).fullmatch(ended.line)
    assert ended.status == 0
    assert place.ping("build da API terminou: ").endswith(ended.line)


@pytest.mark.skipif(not LINUX, reason="reads /proc")
@pytest.mark.parametrize("form", FORMS)
def test_a_zombie_has_ended(place: Place, form: str) -> None:
    """B28: to kill and pgrep it is still there."""
    mark = unique()
    work = place.work(mark)
    running = place.start("process", *named_by(form, work, mark, place.folder))
    running.said("casou: ")
    running.armed()
    work.end_as_zombie()
    assert running.end().line.startswith("✅ TERMINOU: ")


@pytest.mark.skipif(not LINUX, reason="reads /proc")
@pytest.mark.parametrize("form", ["--pid", "--pidfile"])
def test_a_zombie_at_arming_was_already_over(place: Place, form: str) -> None:
    work = place.work()
    work.end_as_zombie()
    words = named_by(form, work, "", place.folder)
    line = place.run("process", *words).line
    assert line.startswith("✅ TERMINOU: ")
    assert line.endswith(" — já não rodava ao armar")


@pytest.mark.parametrize(
    ("words", "tail"),
    [
        ([], " — já não rodava ao armar"),
        (["--lang", "en"], " — was already over when armed"),
    ],
)
def test_a_pid_that_is_gone_was_already_over(
    place: Place, words: list[str], tail: str
) -> None:
    work = place.work()
    work.end()
    line = place.run("process", "--pid", str(work.pid), *words).line
    assert line.startswith(f"✅ TERMINOU: PID {work.pid} ")
    assert line.endswith(tail)
    assert place.ping(line)


def test_a_pattern_waits_for_the_last_of_its_processes(place: Place) -> None:
    mark = unique()
    first, second = place.work(mark, "first"), place.work(mark, "second")
    running = place.start("process", "--match", mark, "--json")
    running.armed()
    running.said(f"PID {first.pid}:")
    running.said(f"PID {second.pid}:")
    first.end()
    second.end()
    ended = running.end()
    assert ended.object["outcome"] == "ended"
    assert str(second.pid) in json.dumps(ended.object["evidence"])


@pytest.mark.slow
def test_while_one_of_its_processes_runs_a_pattern_has_not_ended(place: Place) -> None:
    mark = unique()
    first, second = place.work(mark), place.work(mark)
    running = place.start("process", "--match", mark, "--ttl", "1s", "--exit-codes")
    running.armed()
    first.end()
    ended = running.end()
    assert ended.line == (
        f"⏰ EXPIROU: {mark} ainda rodando após 1s — renovar ou remover?"
    )
    assert ended.status == 124
    assert place.ping(f"monitor {mark} EXPIROU: ").endswith(ended.line)
    second.end()


@pytest.mark.parametrize(
    ("form", "words", "status", "line"),
    [
        (
            "--match",
            ["--exit-codes"],
            6,
            "❓ NÃO VISTO: nada casa com {} — confira o padrão",
        ),
        (
            "--regex",
            ["--lang", "en"],
            0,
            "❓ NÃO VISTO: nothing matches {} — check the pattern",
        ),
    ],
)
def test_a_pattern_that_matches_nothing_is_unseen_at_once(
    place: Place, form: str, words: list[str], status: int, line: str
) -> None:
    """B42: never seen is not ended."""
    mark = unique()
    ended = place.run("process", form, mark, *words)
    assert (ended.line, ended.status) == (line.format(mark), status)
    assert place.ping(mark).endswith(ended.line)


@pytest.mark.slow
def test_work_that_begins_later_is_waited_for_and_then_watched(place: Place) -> None:
    """B42: the first look came before the job."""
    mark = unique()
    running = place.start("process", "--match", mark, "--start-within", "1m")
    running.armed()
    running.said("espero o começo")
    work = place.work(mark)
    running.said(f"casou: PID {work.pid}")
    work.end()
    assert running.end().line.startswith(f"✅ TERMINOU: {mark} em ")


@pytest.mark.slow
def test_a_pidfile_that_comes_later_is_waited_for(place: Place) -> None:
    running = place.start("process", "--pidfile", "work.pid", "--start-within", "1m")
    running.armed()
    work = place.work()
    beside = place.folder / "beside"
    beside.write_text(str(work.pid))
    beside.rename(place.folder / "work.pid")
    running.said(f"casou: PID {work.pid}")
    work.end()
    assert running.end().line.startswith("✅ TERMINOU: work.pid em ")


@pytest.mark.slow
def test_work_that_never_begins_is_unseen_when_its_start_is_overdue(
    place: Place,
) -> None:
    mark = unique()
    words = ["--start-within", "1s", "--exit-codes"]
    ended = place.run("process", "--match", mark, *words)
    assert ended.line.startswith(f"❓ NÃO VISTO: nada casa com {mark}")
    assert ended.status == 6


def test_a_literal_text_may_look_like_a_broken_expression(place: Place) -> None:
    mark = f"train(1 * [ a\\b {unique()}"
    work = place.work(mark)
    running = place.start("process", "--match", mark)
    running.armed()
    work.end()
    assert running.end().line.startswith("✅ TERMINOU: train(1 * [ a\\b ")


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("exec koder-monitor process --match {}", id="itself"),
        pytest.param("koder-monitor process --match {}; true", id="the shell"),
        pytest.param("koder-monitor process --regex {}; true", id="for --regex too"),
        pytest.param("(koder-monitor process --match {}; true); true", id="a subshell"),
        pytest.param("koder-monitor process --match {} & wait", id="behind &"),
        pytest.param("koder-monitor process --match {} | cat", id="a pipeline"),
        pytest.param(
            "koder-monitor process --match {} | while read -r x; do echo $x; done",
            id="a fork of the shell beside it",
        ),
    ],
)
def test_who_carries_the_pattern_only_to_wait_for_it_never_matches(
    place: Place, script: str
) -> None:
    """B24: the shell of the wait held the pattern, so it waited for itself."""
    ended = place.shell(script.format(unique())).end()
    assert ended.line.startswith("❓ NÃO VISTO: ")


def test_another_watch_of_the_same_pattern_never_matches(place: Place) -> None:
    mark = unique()
    work = place.work(mark)
    place.start("process", "--match", mark).armed()
    second = place.shell(f"koder-monitor process --match {mark}; true")
    second.armed()
    work.end()
    assert second.end().line.startswith(f"✅ TERMINOU: {mark} em ")


def test_a_pidfile_of_the_monitor_itself_is_refused(place: Place) -> None:
    """B38: in containers PIDs repeat, so a stale pidfile holds the reader's own."""
    script = "echo $$ > p.pid; exec koder-monitor process --pidfile p.pid"
    ended = place.shell(script).end()
    assert (ended.status, ended.out) == (2, "")
    (error,) = ended.err
    assert "pidfile aponta para o próprio monitor" in error


def test_the_pid_of_the_monitor_itself_is_refused(place: Place) -> None:
    ended = place.shell("exec koder-monitor process --pid $$").end()
    assert (ended.status, ended.out) == (2, "")
    (error,) = ended.err
    assert "é o próprio monitor" in error


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs util-linux")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a PID namespace")
def test_a_pidfile_of_the_monitor_itself_is_refused_where_it_is_pid_1(
    place: Place,
) -> None:
    script = (
        "exec unshare -p -f --mount-proc bash -c "
        "'echo $$ > p.pid; exec koder-monitor process --pidfile p.pid'"
    )
    ended = place.shell(script).end()
    assert (ended.status, ended.out) == (2, "")
    (error,) = ended.err
    assert "pidfile aponta para o próprio monitor (PID 1)" in error


def test_a_process_that_ends_by_a_signal_has_died_where_the_kernel_tells(
    place: Place,
) -> None:
    work = place.work()
    running = place.start("process", "--pid", str(work.pid), "--json")
    running.armed()
    os.kill(work.pid, signal.SIGKILL)
    work.end()
    found = running.end().object
    assert (found["outcome"], found["result"]) in [("ended", "DIED"), ("ended", None)]
    told = "[DIED] «sinal SIGKILL»" in str(found["line"])
    assert told is (found["result"] == "DIED")


def test_an_exit_status_is_told_of_a_process_that_is_no_child_of_ours(
    place: Place,
) -> None:
    """While its parent has not taken it, every Linux shows it to the same user."""
    script = "read line; exit 3"
    child = subprocess.Popen(
        ["bash", "-c", script], stdin=subprocess.PIPE, cwd=place.folder
    )
    try:
        running = place.start("process", "--pid", str(child.pid), "--exit-codes")
        running.armed()
        assert child.stdin is not None
        child.stdin.close()
        ended = running.end()
    finally:
        child.kill()
        child.wait()
    assert ended.status == 3
    assert "[FAIL] «código 3»" in ended.line


LOGGED = """
import sys
log = open(sys.argv[1], "a", buffering=1)
for line in sys.stdin:
    log.write(line)
sys.exit(4)
"""


@pytest.mark.parametrize(
    ("lines", "how", "status"),
    [
        pytest.param("one\nALL OK\n", "[PASS] «ALL OK»", 0, id="its marker"),
        pytest.param("FAILED x\nALL OK\n", "[FAIL] «FAILED x»", 3, id="the first one"),
        pytest.param("ALL OK", "[PASS] «ALL OK»", 0, id="no line end"),
        pytest.param("one\n", "[DIED]", 3, id="none"),
    ],
)
def test_a_process_and_its_log_are_judged_together(
    place: Place, lines: str, how: str, status: int
) -> None:
    work = subprocess.Popen(
        [sys.executable, "-S", "-c", LOGGED, "soak.log"],
        stdin=subprocess.PIPE,
        cwd=place.folder,
    )
    (place.folder / "soak.log").write_text("ALL OK of yesterday\n")
    try:
        words = ["--log", "soak.log", "--pass", "^ALL OK", "--fail", "FAILED"]
        pid = str(work.pid)
        running = place.start("process", "--pid", pid, *words, "--exit-codes")
        running.armed()
        running.said("soak.log")
        work.communicate(lines.encode())
        ended = running.end()
    finally:
        work.kill()
        work.wait()
    assert how in ended.line
    assert ended.status == status


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--pass", "x"], "--log FILE"),
        (["--stalled", "5m"], "--log FILE"),
        (["--from-start"], "--log FILE"),
        (["--log", "x"], "--pass REGEX"),
        (["--log", "x", "--pass", "("], "expressão"),
        (["--log", "x", "--stalled", "1h30"], "--stalled"),
        (["--host", "-oProxyCommand=x"], "host"),
    ],
)
def test_options_that_say_nothing_are_refused_with_a_hint(
    place: Place, words: list[str], hint: str
) -> None:
    tied = [f"{words[0]}={words[1]}"] if words[0] == "--host" else None
    said = [*tied, *words[2:]] if tied else words
    ended = place.run("process", "--pid", "1", *said)
    assert (ended.status, ended.out) == (2, "")
    assert re.search(hint, ended.err[-1])


def test_what_is_over_while_it_is_armed_is_told_with_detach_too(place: Place) -> None:
    word = unique()
    ended = place.run("process", "--match", word, "--detach", "--exit-codes")
    assert (ended.status, ended.line.partition(":")[0]) == (6, "❓ NÃO VISTO")
    ended = place.run("process", "--pid", "4194304", "--detach")
    assert ended.status == 0
    assert ended.line.endswith("já não rodava ao armar")
    work = place.work()
    ended = place.run("process", "--pid", str(work.pid), "--detach")
    assert (ended.status, ended.out) == (0, "")
