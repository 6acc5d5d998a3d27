"""`koder-monitor file` as a user meets it."""

import json
import os

import pytest

from tests.e2e.command import Place, outcome, until

RESUME = " em HH:MM:SS — retomar a atividade bloqueada"
EVENTS_ALONE = {"KODER_MONITOR_FLOOR": "5m"}
"""No poll comes in time: what is seen is seen by an event."""


def test_a_file_that_comes_is_a_release_at_once(place: Place) -> None:
    running = place.start("file", "out.bin", "--exists", env=EVENTS_ALONE)
    assert f"file {place.folder}/out.bin --exists até " in running.armed()
    (place.folder / "out.bin").touch()
    ended = running.end()
    assert outcome(f"✅ LIBERADO: out.bin{RESUME}").fullmatch(ended.line)
    assert place.ping("out.bin liberado: ").endswith(ended.line)


def test_a_file_that_goes_is_a_release_at_once_and_a_rewrite_is_none(
    place: Place,
) -> None:
    """B03."""
    path = place.folder / "run.pid"
    path.touch()
    env = EVENTS_ALONE | {"KODER_MONITOR_SETTLE": "300ms"}
    running = place.start("file", "run.pid", "--gone", "--json", env=env)
    running.armed()
    path.with_name("new").touch()
    path.with_name("new").rename(path)
    until(lambda: entry_of(place)[1:2] == [path.stat().st_ino])
    path.unlink()
    found = running.end().object
    assert found["outcome"] == "released"
    evidence = found["evidence"]
    assert isinstance(evidence, dict)
    assert evidence["errno"] == "ENOENT"
    assert evidence["path"] == str(path)
    folder = place.folder.stat()
    assert evidence["directory"][:2] == [folder.st_dev, folder.st_ino]


def entry_of(place: Place) -> list[int]:
    """Return what the latest look saw of the file, as `list` says it."""
    found = (place.watch()["evidence"] or {}).get("entry") or []
    assert isinstance(found, list)
    return found


@pytest.mark.slow
def test_a_file_that_is_quiet_for_long_enough_is_a_release(place: Place) -> None:
    path = place.folder / "soak.log"
    path.write_text("x")
    running = place.start("file", "soak.log", "--quiet", "1s", env=EVENTS_ALONE)
    running.armed()
    ended = running.end()
    assert outcome(f"✅ LIBERADO: soak.log{RESUME}").fullmatch(ended.line)


@pytest.mark.parametrize("awaited", ["--exists", "--gone"])
def test_what_is_so_already_says_so(place: Place, awaited: str) -> None:
    name = "there" if awaited == "--exists" else "away"
    (place.folder / "there").touch()
    line = place.run("file", name, awaited).line
    assert outcome(f"✅ LIBERADO: {name}{RESUME} — já estava livre ao armar").fullmatch(
        line
    )


def test_a_near_name_is_named(place: Place) -> None:
    """B15."""
    (place.folder / "X.LOCK").touch()
    line = place.run("file", "x.lock", "--gone").line
    assert line.endswith("existe um arquivo de nome parecido: X.LOCK")


@pytest.mark.slow
def test_a_file_that_stays_expires(place: Place) -> None:
    (place.folder / "there").touch()
    ended = place.run("file", "there", "--gone", "--ttl", "1s", "--exit-codes")
    assert ended.status == 124
    assert ended.line == (
        "⏰ EXPIROU: there ainda ativo após 1s — renovar prazo ou remover monitor?"
    )


@pytest.mark.slow
def test_a_directory_that_is_not_there_is_said_and_no_release(place: Place) -> None:
    running = place.start("file", "no/such/file", "--gone", "--ttl", "1s")
    said = running.said("sem leitura de file: ")
    assert f"{place.folder}/no/such não existe" in said
    assert running.end().line.startswith("⏰ EXPIROU: file sem leitura há ")


def test_a_name_that_is_no_utf_8_ends_as_any_other(place: Place) -> None:
    """B17."""
    name = b"x\xff\x1b[31m.lock"
    path = os.fsencode(place.folder) + b"/" + name
    with open(path, "w"):
        pass
    running = place.start("file", name, "--gone", "--json")
    running.armed()
    os.unlink(path)
    found = running.end().object
    assert found["label"] == "x\\xff\\x1b[31m.lock"
    assert str(found["line"]).startswith("✅ LIBERADO: x\\xff\\x1b[31m.lock em ")


def test_a_look_says_what_is_there(place: Place) -> None:
    (place.folder / "a b").touch()
    target = f"file '{place.folder}/a b' --gone"
    found = json.loads(place.run("check", target, "--json").line)
    assert (found["target"], found["observation"]) == (target, "held")
    assert found["evidence"]["means"] == "lstat"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["x"], "veja 'koder-monitor file --help'"),
        (["x", "--gone", "--exists"], "veja 'koder-monitor file --help'"),
        (["", "--gone"], "não é um caminho possível; confira"),
        (["x", "--quiet", "1h30"], "--quiet 1h30 não é uma duração; use"),
        (["/x", "--gone", "--host=-x"], "não é um host; use"),
    ],
)
def test_a_wrong_call_ends_with_one_line_that_says_what_to_do(
    place: Place, words: list[str], said: str
) -> None:
    ended = place.run("file", *words)
    assert (ended.status, ended.out) == (2, "")
    (line,) = ended.err
    assert line.startswith("koder-monitor: erro: ")
    assert said in line
