"""`koder-monitor lock` as a user meets it: names, deadlines, truth, lines, pings."""

import json
import os
import re
import signal
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.e2e.command import TIME, Place, outcome, until
from tests.servers import Server

NOBODY = 4194304  # one more than the largest PID of any Linux


# What a lock is named by: C1.2


@pytest.mark.parametrize(
    ("words", "subject"),
    [
        pytest.param(["demo"], "demo", id="a slug"),
        pytest.param(["A1._-z"], "A1._-z", id="a slug of every kind of character"),
        pytest.param(["s" * 120], "s" * 120, id="a long slug"),
        pytest.param(["./locks/lock-demo.md"], "demo", id="the lock directory's file"),
        pytest.param(["locks//./lock-demo.md"], "demo", id="the same, oddly written"),
        pytest.param(["./other.lock"], "other.lock", id="any other file"),
        pytest.param(["locks/plain.md"], "plain.md", id="no lock file's name"),
        pytest.param(["./lock-demo.md"], "lock-demo.md", id="another directory"),
        pytest.param(["./two words.lock"], "two words.lock", id="a space"),
    ],
)
def test_a_lock_file_of_the_lock_directory_is_its_slug_any_other_its_file_name(
    place: Place, words: list[str], subject: str
) -> None:
    ended = place.run("lock", *words)
    assert outcome(
        f"✅ LIBERADO: lock {subject} em HH:MM:SS — retomar a atividade bloqueada"
        " — já estava livre ao armar"
    ).fullmatch(ended.line)
    assert ended.status == 0


def test_a_slug_and_the_path_of_its_file_have_the_same_target(place: Place) -> None:
    by_slug = place.run("lock", "demo", "--json").object
    path = str(place.locks / "lock-demo.md")
    by_path = place.run("lock", path, "--json").object
    assert by_slug["target"] == by_path["target"] == "lock demo"


def test_a_lock_file_is_its_slug_also_where_the_lock_directory_is_a_link(
    place: Place,
) -> None:
    link = place.folder / "link"
    link.symlink_to(place.locks)
    env = {"KODER_MONITOR_LOCKS_DIR": str(link)}
    real = place.run("lock", str(place.locks / "lock-demo.md"), "--json", env=env)
    assert real.object["target"] == "lock demo"


def test_a_path_is_relative_to_where_the_command_runs(place: Place) -> None:
    inner = place.folder / "inner"
    inner.mkdir()
    (inner / "x.lock").touch()
    running = place.start("lock", "./x.lock", cwd=inner)
    assert "lock " + str(inner / "x.lock") in running.armed()
    (inner / "x.lock").unlink()
    assert running.end().line.startswith("✅ LIBERADO: lock x.lock em ")


def test_without_a_setting_the_lock_directory_is_the_project_s_own(
    place: Place,
) -> None:
    active = place.folder / "project/context/notices/active"
    inner = place.folder / "project/src/deep"
    for folder in (active, inner, place.folder / "project/.git"):
        folder.mkdir(parents=True)
    lock = active / "lock-demo.md"
    lock.touch()
    env = {"KODER_MONITOR_LOCKS_DIR": None}
    running = place.start("lock", "demo", env=env, cwd=inner)
    running.armed()
    lock.unlink()
    assert running.end().line.startswith("✅ LIBERADO: lock demo em ")


@pytest.mark.parametrize("kind", ["link", "dangling link", "directory", "fifo"])
def test_whatever_stands_under_the_name_holds_it(place: Place, kind: str) -> None:
    path = place.locks / "lock-demo.md"
    match kind:
        case "link":
            path.symlink_to(place.locks)
        case "dangling link":
            path.symlink_to("ana@laptop.123:1")
        case "directory":
            path.mkdir()
        case _:
            os.mkfifo(path)
    running = place.start("lock", "demo")
    running.armed()
    path.rmdir() if kind == "directory" else path.unlink()
    assert running.end().line.startswith("✅ LIBERADO: lock demo em ")


# Deadlines and cadence: C1.3, C4.1


def test_the_armed_line_says_target_local_time_of_the_deadline_and_ttl(
    place: Place,
) -> None:
    place.hold()
    zone = {"TZ": "XYZ-9"}
    before = datetime.now(UTC) + timedelta(hours=9, seconds=45)
    armed = place.start("lock", "demo", "--ttl", "45s", env=zone).armed()
    match = re.fullmatch(rf"armado: lock demo até ({TIME}) \(TTL 45s\)", armed)
    assert match is not None
    hour, minute, second = map(int, match[1].split(":"))
    until_at = before.replace(hour=hour, minute=minute, second=second)
    late = (until_at - before) % timedelta(days=1)
    assert late < timedelta(seconds=20) or late > timedelta(days=1, seconds=-2)


def test_in_english_the_armed_line_is_english(place: Place) -> None:
    place.hold()
    running = place.start("lock", "demo", "--lang", "en", "--ttl", "60m")
    armed = running.said("armed: ")
    assert outcome("armed: lock demo until HH:MM:SS (TTL 60min)").fullmatch(armed)


@pytest.mark.parametrize(
    ("env", "every", "warning"),
    [
        pytest.param(
            {"KODER_MONITOR_FLOOR": None},
            "2s",
            "--every 2s é menor que o piso; usando 30s",
            id="the floor is 30 s",
        ),
        pytest.param(
            {"KODER_MONITOR_FLOOR": "1m"},
            "59s",
            "--every 59s é menor que o piso; usando 60s",
            id="another floor",
        ),
        pytest.param({"KODER_MONITOR_FLOOR": None}, "30s", None, id="the floor itself"),
        pytest.param({"KODER_MONITOR_FLOOR": "1s"}, "2m", None, id="above the floor"),
    ],
)
def test_a_cadence_below_the_floor_is_raised_with_a_warning(
    place: Place, env: dict[str, str | None], every: str, warning: str | None
) -> None:
    ended = place.run("lock", "demo", "--every", every, env=env)
    assert [line for line in ended.err if "--every" in line] == (
        [] if warning is None else [warning]
    )
    assert ended.line.startswith("✅ LIBERADO: ")


@pytest.mark.slow
def test_a_deadline_far_beyond_any_timer_waits_and_still_ends(place: Place) -> None:
    """B87: waiting for 1e7 seconds at once raises OverflowError in some timers."""
    path = place.hold()
    running = place.start("lock", "demo", "--ttl", "365d")
    assert "(TTL 525600min)" in running.armed()
    path.unlink()
    assert running.end().line.startswith("✅ LIBERADO: ")


# Lines: C2.1 to C2.3


def test_a_released_lock_ends_with_one_line_and_one_ping(place: Place) -> None:
    path = place.hold()
    running = place.start("lock", "demo", "--resume", "migrar a API", "--exit-codes")
    running.armed()
    path.unlink()
    ended = running.end()
    assert outcome(
        "✅ LIBERADO: lock demo em HH:MM:SS — retomar migrar a API"
    ).fullmatch(ended.line)
    assert ended.status == 0
    assert place.ping("lock demo liberado: ").endswith(ended.line)


def test_in_english_everything_behind_the_first_colon_is_english(place: Place) -> None:
    line = place.run("lock", "demo", "--lang", "en").line
    assert outcome(
        "✅ LIBERADO: lock demo at HH:MM:SS — resume the blocked activity"
        " — was already free when armed"
    ).fullmatch(line)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status", "line"),
    [
        pytest.param(
            ["--exit-codes"],
            124,
            "⏰ EXPIROU: lock demo ainda ativo após 1s"
            " — renovar prazo ou remover monitor?",
            id="with exit codes",
        ),
        pytest.param(
            ["--lang", "en"],
            0,
            "⏰ EXPIROU: lock demo still held after 1s"
            " — renew the deadline or remove the watch?",
            id="in English, without exit codes",
        ),
    ],
)
def test_a_held_lock_expires_once_with_one_line_and_one_ping(
    place: Place, words: list[str], status: int, line: str
) -> None:
    place.hold()
    ended = place.run("lock", "demo", "--ttl", "1s", *words)
    assert (ended.line, ended.status) == (line, status)
    ping = place.ping("lock demo EXPIR")
    assert " warning " in ping
    assert ping.endswith(line)


@pytest.mark.slow
def test_an_expiry_tells_when_and_for_how_long_the_lock_could_not_be_seen(
    place: Place,
) -> None:
    ended = place.run("lock", "./missing/x.lock", "--ttl", "1s", "--json")
    found = ended.object
    assert found["outcome"] == "expired"
    assert found["ttl_s"] == 1
    assert re.fullmatch(
        r"⏰ EXPIROU: lock x\.lock sem leitura há \d+s \(.+/missing não existe\)"
        r" — renovar prazo ou remover monitor\?",
        str(found["line"]),
    )
    assert isinstance(found["unknown_s"], float)
    assert 0.9 < found["unknown_s"] < 5
    assert any("sem leitura de x.lock" in line for line in ended.err)


def test_a_lock_with_a_near_name_is_named_where_the_lock_is_free(place: Place) -> None:
    place.hold("meta-context")
    line = place.run("lock", "meta-contxt").line
    assert line.startswith("✅ LIBERADO: lock meta-contxt em ")
    assert line.endswith("existe um lock de nome parecido: meta-context")


# The truth of it: C3, C4


@pytest.mark.slow
def test_a_dead_holder_is_told_at_the_expiry_and_its_lock_is_left_alone(
    place: Place,
) -> None:
    """B09: nobody was told that the holder of a lock had crashed."""
    hosts = {"here": socket.gethostname(), "there": "another-host.example"}
    texts = {slug: f"{NOBODY}\n{host}\n" for slug, host in hosts.items()}
    paths = {slug: place.hold(slug, text) for slug, text in texts.items()}
    running = {slug: place.start("lock", slug, "--ttl", "1s") for slug in hosts}
    lines = {slug: command.end().line for slug, command in running.items()}
    claim = f"dono (PID {NOBODY}) não existe neste host: lock abandonado?"
    for slug, line in lines.items():
        assert line.startswith(f"⏰ EXPIROU: lock {slug} ainda ativo após 1s")
        assert (claim in line) == (slug == "here")
        assert paths[slug].read_text() == texts[slug]


def replace(path: Path, content: str) -> None:
    """Write a lock as an editor does: beside it, then renamed over it."""
    beside = path.with_name("beside")
    beside.write_text(content)
    beside.replace(path)


def take_back(path: Path, content: str) -> None:
    """Give the lock back and take it again at once."""
    path.unlink()
    path.write_text(content)


@pytest.mark.parametrize("change", [replace, take_back])
def test_a_lock_that_is_back_within_the_settle_time_is_still_waited_for(
    place: Place, change: Callable[[Path, str], None]
) -> None:
    """B03, B05: a rename over the path and a quick retake looked like a release."""
    path = place.hold(content='{"session": "first"}')
    env = {"KODER_MONITOR_SETTLE": "10s"}
    running = place.start("lock", "demo", "--json", env=env)
    running.armed()
    change(path, '{"session": "second"}')
    assert "second" in running.said("retomado por")
    assert running.process.poll() is None
    running.send(signal.SIGTERM)
    assert running.end().out == ""


def test_who_took_the_lock_meanwhile_is_evidence(place: Place) -> None:
    path = place.hold(content='{"session": "first"}')
    running = place.start("lock", "demo", "--json")
    running.armed()
    take_back(path, '{"session": "second"}')
    running.said("retomado por second")
    path.unlink()
    found = running.end().object
    assert found["outcome"] == "released"
    evidence = json.dumps(found["evidence"])
    assert "second" in evidence


@pytest.mark.slow
def test_a_lock_gone_for_less_than_the_settle_time_is_no_release(place: Place) -> None:
    """C3.5: it is looked at once more before the line."""
    path = place.hold(content='{"session": "first"}')
    env = {"KODER_MONITOR_SETTLE": "1s"}
    running = place.start("lock", "demo", "--json", env=env)
    running.armed()
    path.unlink()
    gone_s = time.monotonic()
    until(lambda: time.monotonic() > gone_s + 0.2)
    path.write_text('{"session": "second"}')
    running.said("retomado por second")
    assert running.process.poll() is None


@pytest.mark.slow
def test_a_lock_released_in_the_very_last_interval_is_a_release(place: Place) -> None:
    """C3.7: the command is stopped before its deadline and goes on after it."""
    path = place.hold()
    running = place.start("lock", "demo", "--ttl", "1s")
    running.armed()
    running.send(signal.SIGSTOP)
    armed_s = time.monotonic()
    path.unlink()
    until(lambda: time.monotonic() > armed_s + 1.1)
    running.send(signal.SIGCONT)
    assert running.end().line.startswith("✅ LIBERADO: lock demo em ")


@pytest.mark.slow
def test_a_lock_directory_that_was_deleted_takes_its_locks_with_it(
    place: Place,
) -> None:
    path = place.hold()
    running = place.start("lock", "demo")
    running.armed()
    path.unlink()
    place.locks.rmdir()
    assert running.end().line.startswith("✅ LIBERADO: lock demo em ")


def test_a_name_that_is_no_utf_8_is_shown_escaped_everywhere(
    place: Place, server: Server
) -> None:
    """B17: its surrogates made the JSON or the log raise, and the event was lost."""
    name = os.fsdecode(b"x\xff.lock")
    path = place.folder / name
    path.touch()
    url = {"KODER_MONITOR_NOTIFY_URL": server.url()}
    running = place.start("lock", f"./{name}", env=url)
    assert r"x\xff.lock" in running.armed()
    path.unlink()
    line = running.end().line
    assert line.startswith(r"✅ LIBERADO: lock x\xff.lock em ")
    assert server.request().object["message"] == line


def test_the_line_of_a_name_that_is_no_utf_8_is_in_the_fallback_log(
    place: Place,
) -> None:
    line = place.run("lock", b"./x\xff.lock").line
    assert line in place.ping(r"x\xff.lock")


# What the operator reads: C6


def test_a_ping_is_a_post_to_the_notify_server_and_then_not_in_the_log(
    place: Place, server: Server
) -> None:
    path = place.hold()
    key = "key-of-this-test"
    env = {
        "KODER_MONITOR_NOTIFY_URL": server.url(),
        "KODER_MONITOR_NOTIFY_KEY": key,
    }
    words = ["--resume", "migração ☕", "--session", "s-1"]
    running = place.start("lock", "demo", *words, env=env)
    running.armed()
    path.unlink()
    ended = running.end()
    until(lambda: server.requests)
    request = server.request()
    assert request.headers["authorization"] == f"Bearer {key}"
    assert request.headers["content-type"].startswith("application/json")
    assert request.headers["user-agent"].startswith("koder-monitor/")
    body = request.object
    assert {*body} == {
        "channel",
        "title",
        "message",
        "severity",
        "source",
        "idempotency_key",
        "occurred_at",
        "watch",
    }
    assert body["title"] == "lock demo liberado"
    assert body["message"] == ended.line
    assert body["severity"] == "info"
    assert body["idempotency_key"] == request.headers["idempotency-key"]
    watch = body["watch"]
    assert isinstance(watch, dict)
    assert watch["target"] == "lock demo"
    assert place.pings() == []
    assert key not in ended.out + "".join(ended.err)


def test_a_server_that_is_down_leaves_the_ping_in_the_log(place: Place) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        ended = place.run("lock", "demo", env={"KODER_MONITOR_NOTIFY_URL": url})
    assert place.ping("lock demo liberado").endswith(ended.line)
    assert any(str(place.log) in line for line in ended.err)


def test_a_key_file_that_others_can_read_is_not_used_and_arming_goes_on(
    place: Place, server: Server
) -> None:
    key = place.folder / "key"
    key.write_text("key-of-this-test")
    key.chmod(0o644)
    place.hold()
    env = {
        "KODER_MONITOR_NOTIFY_URL": server.url(),
        "KODER_MONITOR_NOTIFY_KEY_FILE": str(key),
    }
    running = place.start("lock", "demo", env=env)
    assert "chmod 600" in running.said(str(key))
    running.armed()
    (place.locks / "lock-demo.md").unlink()
    line = running.end().line
    assert place.ping("lock demo liberado").endswith(line)
    assert server.requests == []


def test_the_ping_is_in_the_outbox_before_the_line_is_printed(place: Place) -> None:
    path = place.hold()
    read, write = os.pipe()
    with os.fdopen(read, "rb") as reader:
        with os.fdopen(write, "wb") as writer:
            running = place.start("lock", "demo", stdout=writer)
        running.armed()
        path.unlink()
        line = reader.readline().decode()
        assert line
        (row,) = place.rows("SELECT body FROM pings")
        assert json.loads(row["body"])["message"] + "\n" == line
        assert reader.read() == b""
    assert place.ping("lock demo liberado") + "\n" == place.pings()[0]
    assert place.pings()[0].endswith(line)
