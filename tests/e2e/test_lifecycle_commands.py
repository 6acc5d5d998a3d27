"""Look once, weigh, renew, remove, read: the commands around a watch (C7.3, C9)."""

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import Place, Running, outcome, until
from tests.e2e.test_service_life import notifying, one_ping, settled
from tests.servers import Answer, Server, serve

NOBODY = 4194304  # one more than the largest PID of any Linux
IDLE = json.dumps({"pid": NOBODY, "host": socket.gethostname()})
"""A lock whose holder is dead: no progress, whatever else."""


def armed(place: Place, *words: str) -> tuple[Running, str]:
    """Arm a watch of a lock that is held, and return it with its id."""
    place.hold()
    running = place.start("lock", "demo", *words)
    running.armed()
    return running, str(place.watch()["id"])


# check: C9.1


def test_check_says_held_released_or_unknown_once_and_now(place: Place) -> None:
    path = place.hold()
    missing = place.folder / "missing" / "x.lock"
    for what, seen, status in (
        ("lock demo", "held", 1),
        ("lock free", "released", 0),
        (f"lock {missing}", "unknown", 5),
        (f"process --pid {NOBODY}", "released", 0),
        (f"process --pid {place.work().pid}", "held", 1),
    ):
        found = place.run("check", what, "--json").object
        assert {*found} >= {"target", "observation", "result", "detail", "evidence"}
        assert (found["target"], found["observation"]) == (what, seen)
        assert found["evidence"]
        assert place.run("check", what).status == 0
        assert place.run("check", what, "--exit-codes").status == status
    assert path.exists()
    assert place.watches("--all") == []


def test_check_of_a_watch_by_a_prefix_of_its_id_looks_at_its_condition(
    place: Place,
) -> None:
    running, watch_id = armed(place)
    assert "held" in place.run("check", watch_id[:6]).line
    assert running.process.poll() is None


@pytest.mark.parametrize("what", ["lock", "nothing x", "process --regex (", "zz"])
def test_check_of_what_cannot_be_watched_is_a_wrong_call(
    place: Place, what: str
) -> None:
    ended = place.run("check", what)
    assert (ended.status, ended.out, len(ended.err)) == (2, "", 1)


# assess: C9.2


def test_assess_gives_a_verdict_with_reasons_and_does_nothing(place: Place) -> None:
    running, watch_id = armed(place)
    (place.locks / "lock-demo.md").write_text(IDLE)
    found = place.run("assess", watch_id, "--json").object
    assert {*found} >= {"target", "verdict", "reasons", "evidence", "renewals"}
    assert found["target"] == "lock demo"
    assert found["verdict"] in {"renew", "remove", "ask"}
    assert isinstance(found["reasons"], list)
    assert found["reasons"]
    assert running.process.poll() is None
    assert place.watch()["renewals"] == 0


@pytest.mark.slow
def test_renew_needs_a_reason_after_an_assessment_without_progress(
    place: Place,
) -> None:
    """R5: no blind renewals."""
    running, watch_id = armed(place, "--ttl", "30m")
    (place.locks / "lock-demo.md").write_text(IDLE)
    for _ in range(2):  # the second compares with the first: nothing moved
        place.run("assess", watch_id)
    before = place.watch()["deadline"]
    refused = place.run("renew", watch_id, "--ttl", "2h")
    assert (refused.status, refused.out, len(refused.err)) == (2, "", 1)
    assert "--why" in refused.err[0]
    assert place.watch()["deadline"] == before
    done = place.run("renew", watch_id, "--ttl", "2h", "--why", "o dono confirmou")
    assert done.status == 0
    assert place.watch()["deadline"] > before
    assert place.watch()["renewals"] == 1
    assert running.process.poll() is None


@pytest.mark.slow
def test_three_renewals_without_progress_turn_the_verdict_to_ask(place: Place) -> None:
    _, watch_id = armed(place)
    (place.locks / "lock-demo.md").write_text(IDLE)
    place.run("assess", watch_id)
    for _ in range(3):
        ended = place.run("renew", watch_id, "--ttl", "1h", "--why", "ainda preciso")
        assert ended.status == 0
    found = place.run("assess", watch_id, "--json").object
    assert found["verdict"] == "ask"
    assert found["renewals"] == 3


# renew: C9.3


@pytest.mark.slow
def test_renew_moves_the_deadline_of_every_waiter(place: Place) -> None:
    first, watch_id = armed(place, "--ttl", "6s")
    second = place.start("lock", "demo", "--ttl", "5s", "--json")
    second.armed()
    assert place.run("renew", watch_id, "--ttl", "1h").status == 0
    start_s = time.monotonic()
    until(lambda: time.monotonic() > start_s + 6.5)
    assert [c.process.poll() for c in (first, second)] == [None, None]
    (place.locks / "lock-demo.md").unlink()
    assert "LIBERADO" in first.end().line
    assert second.end().object["ttl_s"] == pytest.approx(3603, abs=5)


@pytest.mark.slow
def test_a_renewal_outlives_the_service(place: Place) -> None:
    running, watch_id = armed(place, "--ttl", "4s")
    assert place.run("renew", watch_id, "--ttl", "1h").status == 0
    deadline = place.watch()["deadline"]
    place.end_service()
    place.service()
    start_s = time.monotonic()
    until(lambda: time.monotonic() > start_s + 4)
    assert place.watch()["deadline"] == deadline
    assert running.process.poll() is None


@pytest.mark.slow
def test_a_shorter_deadline_is_kept_too(place: Place) -> None:
    running, watch_id = armed(place, "--ttl", "1h")
    assert place.run("renew", watch_id, "--ttl", "1s").status == 0
    assert "EXPIROU" in running.end().line


@pytest.mark.slow
def test_renew_revives_a_watch_that_has_just_expired_for_its_ping(
    place: Place, server: Server
) -> None:
    notifying(place, server)
    running, watch_id = armed(place, "--ttl", "1s")
    assert "EXPIROU" in running.end().line
    expiry = one_ping(server)
    assert place.run("renew", watch_id, "--ttl", "1h").status == 0
    after = place.watch()
    assert (after["id"], after["state"]) == (watch_id, "armed")
    (place.locks / "lock-demo.md").unlink()
    until(lambda: len(server.requests) == 2)
    messages = [str(r.object["message"]) for r in server.requests]
    assert messages[0] == expiry
    assert messages[1].startswith("✅ LIBERADO: lock demo em ")
    assert len({r.headers["idempotency-key"] for r in server.requests}) == 2


@pytest.mark.slow
def test_a_watch_that_was_revived_can_be_joined(place: Place) -> None:
    running, watch_id = armed(place, "--ttl", "1s")
    running.end()
    place.run("renew", watch_id, "--ttl", "1h")
    second = place.start("lock", "demo")
    assert watch_id in second.said("já monitorado como ")
    (place.locks / "lock-demo.md").unlink()
    assert "LIBERADO" in second.end().line


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["renew", "ID"], id="renew without --ttl"),
        pytest.param(["renew", "ID", "--ttl", "1h30"], id="renew for no duration"),
        pytest.param(["renew", "beef", "--ttl", "1h"], id="renew of nothing"),
        pytest.param(["remove", "ID"], id="remove without --why"),
        pytest.param(["remove", "ID", "--why", " "], id="remove for no reason"),
        pytest.param(["remove", "beef", "--why", "x"], id="remove of nothing"),
        pytest.param(["remove", "../x", "--why", "x"], id="no id"),
        pytest.param(["ack", "beef"], id="ack of nothing"),
        pytest.param(["show", "beef"], id="show of nothing"),
        pytest.param(["outbox", "--dead"], id="--dead without flush"),
    ],
)
def test_a_wrong_call_is_refused_in_one_line_and_changes_nothing(
    place: Place, words: list[str]
) -> None:
    _, watch_id = armed(place)
    before = place.watch()
    ended = place.run(*[watch_id if word == "ID" else word for word in words])
    assert (ended.status, ended.out, len(ended.err)) == (2, "", 1), ended
    after = place.watch()
    assert (after["state"], after["deadline"]) == ("armed", before["deadline"])


def test_a_watch_that_was_released_is_not_renewed(place: Place) -> None:
    running, watch_id = armed(place)
    (place.locks / "lock-demo.md").unlink()
    running.end()
    ended = place.run("renew", watch_id, "--ttl", "1h")
    assert (ended.status, len(ended.err)) == (2, 1)
    assert place.watch("--all")["state"] == "released"


# remove: C9.3


def test_remove_is_announced_on_every_waiter_s_line_and_nobody_is_pinged(
    place: Place, server: Server
) -> None:
    notifying(place, server)
    first, watch_id = armed(place, "--exit-codes")
    second = place.start("lock", "demo", "--lang", "en")
    second.said("armed: ")
    why = "lock velho \x1b[2J de ontem"
    assert place.run("remove", watch_id[:8], "--why", why).status == 0
    ended = first.end()
    assert ended.status == 4
    assert ended.line.startswith("🚫 REMOVIDO: ")
    assert "lock velho" in ended.line
    assert "de ontem" in ended.line
    assert second.end().line.startswith("🚫 REMOVIDO: lock demo — lock velho")
    assert place.watch("--all")["state"] == "removed"
    (place.locks / "lock-demo.md").unlink()
    # A watch armed behind it shows that the outbox has had its turn.
    place.run("lock", "other")
    assert "lock other" in one_ping(server)


def test_a_watch_is_removed_once(place: Place) -> None:
    running, watch_id = armed(place)
    assert place.run("remove", watch_id, "--why", "um").status == 0
    assert running.end().line.endswith(" — um")
    assert place.run("remove", watch_id, "--why", "dois").status == 2
    assert "um" in place.watch("--all")["line"]


@pytest.mark.slow
def test_remove_works_while_no_service_runs(place: Place) -> None:
    place.hold()
    place.run("lock", "demo", "--detach")
    watch_id = place.watch()["id"]
    place.end_service()
    assert place.run("remove", watch_id, "--why", "fim").status == 0
    assert place.watches() == []


# list, show, history: C9.3


def test_list_shows_what_is_armed_and_with_all_what_has_ended_too(
    place: Place,
) -> None:
    running, watch_id = armed(place, "--session", "s-1", "--resume", "migrar")
    place.run("lock", "free")
    assert [w["target"] for w in place.watches()] == ["lock demo"]
    states = {w["target"]: w["state"] for w in place.watches("--all")}
    assert states == {"lock demo": "armed", "lock free": "released"}
    text = place.run("list").out
    assert watch_id[:8] in text
    assert "lock free" not in text
    history = place.run("history").out
    assert "lock demo" in history
    assert "lock free" in history
    assert running.process.poll() is None


def test_show_gives_evidence_waiters_and_what_was_done(place: Place) -> None:
    running, watch_id = armed(place, "--session", "s-1", "--resume", "migrar a API")
    place.run("renew", watch_id, "--ttl", "2h", "--why", "demora")
    text = place.run("show", watch_id[:5]).out
    for part in ("lock demo", "s-1", "migrar a API", "demora"):
        assert part in text
    found = place.run("show", watch_id, "--json").object
    assert (found["id"], found["renewals"], found["session"]) == (watch_id, 1, "s-1")
    (place.locks / "lock-demo.md").unlink()
    line = running.end().line
    found = place.run("show", watch_id, "--json").object
    assert found["state"] == "released"
    assert found["evidence"]
    assert line.partition(" — ")[0] in place.run("show", watch_id).out


def test_the_line_that_is_kept_is_the_one_that_was_printed(place: Place) -> None:
    running, watch_id = armed(place, "--resume", "migrar a API")
    (place.locks / "lock-demo.md").unlink()
    line = running.end().line
    found = place.run("show", watch_id, "--json").object
    assert found["line"] == line


def test_an_outcome_stays_unacknowledged_until_ack(place: Place) -> None:
    running, watch_id = armed(place)
    (place.locks / "lock-demo.md").unlink()
    running.end()
    assert place.watch("--all")["acknowledged"] is False
    assert place.run("ack", watch_id[:7]).status == 0
    assert place.watch("--all")["acknowledged"] is True
    assert place.run("ack", watch_id).status == 0


# --detach: C7.3


def test_detach_arms_it_says_the_id_on_stderr_and_ends_at_once(
    place: Place, server: Server
) -> None:
    notifying(place, server)
    path = place.hold()
    ended = place.run("lock", "demo", "--detach", "--ttl", "1h")
    assert (ended.status, ended.out) == (0, "")
    watch = place.watch()
    assert f"id: {watch['id']}" in ended.err
    assert any(line.startswith("armado: lock demo até ") for line in ended.err)
    path.unlink()
    assert outcome(
        "✅ LIBERADO: lock demo em HH:MM:SS — retomar a atividade bloqueada"
    ).fullmatch(one_ping(server))


def test_a_command_joins_what_was_detached(place: Place, server: Server) -> None:
    notifying(place, server)
    path = place.hold()
    place.run("lock", "demo", "--detach")
    running = place.start("lock", "demo")
    running.said("já monitorado como ")
    running.armed()
    path.unlink()
    line = running.end().line
    until(lambda: settled(place))
    assert one_ping(server) == line


# outbox: C6.7


@pytest.mark.slow
def test_flush_tries_now_what_would_wait_and_the_key_stays_the_same(
    place: Place,
) -> None:
    busy = Answer(status=503, headers={"Retry-After": "3000"})
    with serve(busy, Answer()) as server:
        notifying(place, server)
        line = place.run("lock", "demo").line
        (row,) = _outbox(place)
        assert (row["state"], row["attempts"]) == ("pending", 1)
        assert row["message"] == line
        assert place.run("outbox", "flush").status == 0
        until(lambda: _outbox(place)[0]["state"] == "delivered")
        place.run("outbox", "flush")
        keys = {r.headers["idempotency-key"] for r in server.requests}
        assert (len(server.requests), keys) == (2, {row["idempotency_key"]})


@pytest.mark.slow
def test_a_refused_ping_is_dead_until_flush_with_dead(place: Place) -> None:
    with serve(Answer(status=400), Answer()) as server:
        notifying(place, server)
        line = place.run("lock", "demo").line
        (row,) = _outbox(place)
        assert row["state"] == "dead"
        assert "400" in row["last_error"]
        assert line in place.ping("lock demo liberado")
        assert "mortos" in place.run("doctor").out
        place.run("outbox", "flush")
        place.run("lock", "other")  # the server has heard of this one alone
        messages = [str(r.object["message"]) for r in server.requests]
        assert ["demo" in text for text in messages] == [True, False]
        assert place.run("outbox", "flush", "--dead").status == 0
        until(lambda: len(server.requests) == 3)
        assert server.requests[2].object["message"] == line
        until(lambda: settled(place))


# doctor: C9.5


def test_doctor_says_of_every_part_whether_it_is_well_and_how_to_mend_it(
    place: Place, tmp_path: Path
) -> None:
    armed(place)
    found = json.loads(place.run("doctor", "--json").line)
    assert {*found[0]} == {"check", "ok", "detail", "mend"}
    checks = {item["check"]: item for item in found}
    assert {"config", "state", "store", "service", "notify", "outbox", "locks"} <= {
        *checks
    }
    assert checks["service"]["ok"] is True
    assert "1" in checks["service"]["detail"]
    assert checks["notify"]["ok"] is False
    assert "[notify] url" in checks["notify"]["mend"]
    assert all(item["mend"] for item in found if not item["ok"])
    broken = tmp_path / "config.toml"
    broken.write_text("[notify]\nurls = 'x'\n")
    env = {"KODER_MONITOR_CONFIG": str(broken)}
    ended = place.run("doctor", env=env)
    assert ended.status == 0
    assert any("notify.urls" in line for line in ended.out.splitlines())


def test_doctor_starts_no_service_and_makes_nothing(place: Place) -> None:
    ended = place.run("doctor")
    assert ended.status == 0
    assert not place.state.exists()
    assert place.processes() == []


def _outbox(place: Place) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(place.run("outbox", "--json").line)
    return found
