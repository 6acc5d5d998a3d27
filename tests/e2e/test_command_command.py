"""`koder-monitor command` as a user meets it."""

import json
from pathlib import Path

import pytest

from tests.e2e.command import Place, outcome

RESUME = " em HH:MM:SS — retomar a atividade bloqueada"


def program(place: Place, script: str) -> Path:
    """Make a program in the place's folder."""
    path = place.folder / "look"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.slow
def test_a_command_that_succeeds_at_last_has_ended(place: Place) -> None:
    ready = place.folder / "it is ready"
    words = ["command", "--resume", "publicar", "--", "test", "-e", str(ready)]
    running = place.start(*words)
    assert running.armed().startswith(
        f"armado: command --in {place.folder} -- test -e '{ready}' até "
    )
    ready.touch()
    ended = running.end()
    label = f"test -e '{ready}'"
    assert outcome(f"✅ TERMINOU: {label} em HH:MM:SS — retomar publicar").fullmatch(
        ended.line
    )
    assert place.ping(f"{label} terminou: ").endswith(ended.line)


def test_a_command_that_succeeds_at_once_says_so(place: Place) -> None:
    program(place, f'test "$1" = --ttl && test "$PWD" = {place.folder}')
    ended = place.run("command", "--label", "pronto", "--", "./look", "--ttl")
    assert outcome(f"✅ TERMINOU: pronto{RESUME} — já não rodava ao armar").fullmatch(
        ended.line
    )


@pytest.mark.slow
def test_what_it_said_and_how_it_ended_is_evidence(place: Place) -> None:
    program(place, "echo still at work; exit 3")
    ended = place.run("command", "--json", "--ttl", "1s", "--", "./look")
    found = ended.object
    assert (found["outcome"], found["result"]) == ("expired", None)
    assert found["target"] == f"command --in {place.folder} -- {place.folder}/look"
    evidence = found["evidence"]
    assert isinstance(evidence, dict)
    assert evidence["output"] == "still at work"
    assert evidence["exit"] == 3
    assert found["line"] == (
        f"⏰ EXPIROU: {place.folder}/look ainda rodando após 1s — renovar ou remover?"
    )


@pytest.mark.slow
def test_one_that_cannot_be_run_is_said_and_no_end_of_anything(place: Place) -> None:
    words = ["command", "--ttl", "1s", "--exit-codes", "--", "no-such-program-of-ours"]
    running = place.start(*words)
    running.said("não pôde ser executado: ENOENT")
    ended = running.end()
    assert ended.status == 124
    assert ended.line.startswith("⏰ EXPIROU: no-such-program-of-ours sem leitura há ")


@pytest.mark.slow
def test_a_run_under_way_at_the_deadline_still_counts(place: Place) -> None:
    """C3.7: what comes up in the last interval is a release."""
    program(place, "sleep 2; exit 0")
    ended = place.run("command", "--ttl", "1s", "--", "./look")
    assert ended.line.startswith(f"✅ TERMINOU: {place.folder}/look em ")


def test_it_knows_no_secret_of_ours(place: Place) -> None:
    program(place, f"env >{place.folder}/seen")
    env = {"KODER_MONITOR_NOTIFY_KEY": "hidden", "KODER_MONITOR_TOKEN": "hidden"}
    place.start("command", "--", "./look", env=env).end()
    seen = (place.folder / "seen").read_text()
    assert "hidden" not in seen
    assert f"KODER_MONITOR_STATE={place.state}" in seen


def test_a_look_runs_it_once(place: Place) -> None:
    program(place, f"echo run >>{place.folder}/runs; exit 1")
    target = f"command --in {place.folder} -- {place.folder}/look"
    found = json.loads(place.run("check", target, "--json").line)
    assert (found["target"], found["observation"]) == (target, "held")
    assert (place.folder / "runs").read_text() == "run\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "use koder-monitor command -- PROGRAMA"),
        (["--"], "use koder-monitor command -- PROGRAMA"),
        (["true"], "use koder-monitor command -- PROGRAMA"),
        (["--ttl", "1h30", "--", "true"], "--ttl 1h30 não é uma duração; use"),
        (["--nope", "--", "true"], "--nope; veja 'koder-monitor --help'"),
        (["--host=-x", "--", "true"], "não é um host; use"),
    ],
)
def test_a_wrong_call_ends_with_one_line_that_says_what_to_do(
    place: Place, words: list[str], said: str
) -> None:
    ended = place.run("command", *words)
    assert (ended.status, ended.out) == (2, "")
    (line,) = ended.err
    assert line.startswith("koder-monitor: erro: ")
    assert said in line


@pytest.mark.slow
def test_a_relative_operand_is_that_of_the_folder_it_was_typed_in(place: Place) -> None:
    (place.folder / "s.txt").write_text("RUNNING\n")
    words = ["--ttl", "1s", "--exit-codes", "--", "sh", "-c", "! grep -q RUNNING s.txt"]
    assert place.run("command", *words).status == 124
    (place.folder / "s.txt").write_text("DONE\n")
    assert place.run("command", *words).status == 0
    elsewhere = ["--in", str(place.locks), *words]
    assert place.run("command", *elsewhere, cwd=place.folder).line
    gone = place.run("command", "--in", "/no/such/folder", *words)
    assert gone.status == 124
    assert "sem leitura" in gone.line
