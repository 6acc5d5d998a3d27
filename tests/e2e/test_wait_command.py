"""`koder-monitor wait` as a user meets it (C1.2, C3.6)."""

import signal

import pytest

from tests.e2e.command import Place, outcome, until
from tests.servers import Answer, serve


def test_any_ends_with_the_first_and_names_it(place: Place) -> None:
    place.hold("a")
    place.hold("b")
    running = place.start("wait", "--any", "lock b", "lock a", "--ttl", "1m")
    armed = running.armed()
    assert "armado: wait --any 'lock a' 'lock b' até " in armed
    (place.locks / "lock-b.md").unlink()
    line = running.end().line
    assert outcome(
        "✅ LIBERADO: any(lock a, lock b) em HH:MM:SS — retomar a atividade bloqueada"
        " — decidiu: lock b"
    ).fullmatch(line)
    assert line in place.ping("any(lock a, lock b)")


def test_all_waits_for_every_one_of_them(place: Place) -> None:
    work = place.work("--", "x")
    place.hold("a")
    words = ["wait", "--all", "lock a", f"process --pid {work.pid}"]
    running = place.start(*words, "--ttl", "1m", "--label", "release day", "--json")
    assert f"process --pid {work.pid}: casou: PID {work.pid}" in running.said("casou")
    work.end()

    def looked() -> bool:
        checked = place.run("check", f"process --pid {work.pid}").line
        return "released" in checked

    until(looked)
    assert running.process.poll() is None
    (place.locks / "lock-a.md").unlink()
    ended = running.end().object
    assert (ended["outcome"], ended["label"]) == ("released", "release day")
    evidence = ended["evidence"]
    assert isinstance(evidence, dict)
    assert [one["sight"] for one in evidence["members"].values()] == ["released"] * 2


def test_what_was_clear_already_says_so_and_which(place: Place) -> None:
    place.hold("a")
    line = place.run("wait", "--any", "lock a", "lock free", "--lang", "en").line
    assert line.endswith(" — was already free when armed — decided: lock free")


def test_at_the_deadline_the_line_names_who_still_holds(place: Place) -> None:
    place.hold("a")
    words = ["wait", "--all", "lock a", "lock b", "--ttl", "2s", "--exit-codes"]
    ended = place.run(*words)
    assert ended.status == 124
    assert "EXPIROU: all(lock a, lock b) ainda ativo após 2s" in ended.line
    assert ended.line.endswith(" — ainda ativo: lock a")


def test_a_member_that_cannot_be_seen_is_said_and_holds_no_other_up(
    place: Place,
) -> None:
    place.hold("a")
    with serve(Answer(close=True)) as server:
        words = ["wait", "--any", "lock a", f"http {server.url('/')}", "--ttl", "1m"]
        running = place.start(*words)
        assert server.url("/") in running.said("sem leitura de http")
        (place.locks / "lock-a.md").unlink()
        assert running.end().line.endswith(" — decidiu: lock a")


def test_patterns_that_match_nothing_were_never_seen(place: Place) -> None:
    missing = "process --match no-such-work-anywhere"
    ended = place.run("wait", "--all", missing, "--exit-codes")
    assert ended.status == 6
    assert ended.line.startswith("❓ NÃO VISTO: nada casa com ")


def test_it_outlives_the_service_and_forgets_no_member(place: Place) -> None:
    work = place.work("--", "x")
    place.hold("a")
    target = f"process --pid {work.pid}"
    running = place.start("wait", "--all", "lock a", target, "--ttl", "1m")
    running.armed()
    place.end_service(signal.SIGKILL)
    work.end()
    (place.locks / "lock-a.md").unlink()
    line = running.end().line
    assert line.startswith("✅ LIBERADO: all(lock a, ")
    assert "já estava livre" not in line


def test_both_orders_are_one_watch(place: Place) -> None:
    place.hold("a")
    first = place.start("wait", "--any", "lock a", "lock a", "--ttl", "1m")
    first.armed()
    second = place.start("wait", "--any", "lock 'a'", "--ttl", "1m")
    second.said("já monitorado")
    assert place.watch()["target"] == "wait --any 'lock a'"
    (place.locks / "lock-a.md").unlink()
    for running in (first, second):
        assert running.end().line.startswith("✅ LIBERADO: any(lock a) em ")


def test_it_is_done_alone_where_there_is_no_service(place: Place) -> None:
    place.hold("a")
    place.state.write_text("in the way")
    running = place.start("wait", "--any", "lock a", "lock a", "--ttl", "1m")
    running.armed()
    (place.locks / "lock-a.md").unlink()
    assert running.end().line.endswith(" — decidiu: lock a")


@pytest.mark.parametrize(
    ("free", "observation", "status"),
    [(False, "held", 1), (True, "released", 0)],
)
def test_check_looks_at_all_once(
    place: Place, free: bool, observation: str, status: int
) -> None:
    place.hold("a")
    if free:
        (place.locks / "lock-a.md").unlink()
    words = ["check", "wait --all 'lock a' 'lock b'", "--exit-codes"]
    ended = place.run(*words, "--json")
    assert (ended.object["observation"], ended.status) == (observation, status)
    if not free:
        assert place.run(*words).line.endswith("held — ainda ativo: lock a")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lock a"], "--any --all"),
        (["--any"], "TARGET"),
        (["--any", "--all", "lock a"], "not allowed"),
        (["--any", "lock", "a"], "SLUG|PATH"),
        (["--any", "lock a", "teleport x"], "'teleport'"),
        (["--any", "lock a", "wait --any 'lock a'"], "use os alvos dele"),
        (["--any", "lock a", "http http://-é.com/"], "http 'http://-é.com/': "),
    ],
)
def test_what_can_never_be_watched_is_refused(
    place: Place, words: list[str], said: str
) -> None:
    ended = place.run("wait", *words)
    assert (ended.status, ended.out) == (2, "")
    (line,) = ended.err
    assert said in line
    assert place.watches("--all") == []
