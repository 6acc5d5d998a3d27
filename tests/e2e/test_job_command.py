"""`koder-job` as scripts and sessions use it (C8.1)."""

import json
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from notify import marker
from policies.wording import phrase
from tests.e2e.child import JOB, Done, environment, run
from tests.rows import HOUR_S, add, add_waiter, add_watch, answering, opened
from watcher.cli import job as job_command
from watcher.database import open_database
from watcher.errors import ServiceError

ID = re.compile(r"[0-9a-f]{12}\n")


class Jobs:
    """A state directory, and the command that keeps its markers."""

    def __init__(self, state: Path) -> None:
        self.state = state

    def run(self, *words: str | bytes, expect: int = 0, **env: str) -> Done:
        return run(JOB, *words, env=environment(self.state, **env), expect=expect)

    def start(self, label: str, *words: str) -> str:
        done = self.run("start", label, *words)
        assert ID.fullmatch(done.out)
        assert done.err == ()
        return done.out.strip()

    def states(self) -> dict[object, object]:
        """Return the label and state of what is listed."""
        found = self.run("list", "--json").objects
        return {item["label"]: item["state"] for item in found}

    def fill(self, **labels: str) -> sqlite3.Connection:
        """Return a connection; jobs of these ids and labels run already."""
        db = opened(self.state)
        for number, (job_id, label) in enumerate(labels.items()):
            add(db, "jobs", id=job_id, label=label, started_at=time.time() + number)
        return db


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    state = tmp_path / "state"
    with answering(state):
        opened(state).close()
        yield Jobs(state)


# --- start


def test_start_prints_the_id_and_nothing_else(jobs: Jobs) -> None:
    before = time.time()
    job_id = jobs.start("API build")
    (found,) = jobs.run("list", "--json").objects
    started_at = found.pop("started_at")
    assert found == {
        "id": job_id,
        "label": "API build",
        "state": "running",
        "ended_at": None,
        "notify_after_s": None,
        "session": None,
        "watch_state": None,
    }
    assert isinstance(started_at, str)
    assert started_at[:10] >= time.strftime("%Y-%m-%d", time.gmtime(before))
    assert started_at.endswith("+00:00")


def test_start_json_prints_what_list_will_show(jobs: Jobs) -> None:
    done = jobs.run("start", "API build", "--session", "s-1", "--json")
    assert [json.loads(done.out)] == jobs.run("list", "--json").objects


def test_the_store_is_for_its_user_alone(tmp_path: Path) -> None:
    state = tmp_path / "state"
    Jobs(state).start("API build")
    assert state.stat().st_mode & 0o777 == 0o700
    assert (state / "monitor.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("words", "env", "session"),
    [
        pytest.param([], {}, None, id="none"),
        pytest.param(["--session", "s-1"], {}, "s-1", id="asked"),
        pytest.param([], {"KODER_MONITOR_SESSION": "s-2"}, "s-2", id="ours"),
        pytest.param([], {"CLAUDE_CODE_SESSION_ID": "s-3"}, "s-3", id="the runtime's"),
        pytest.param(
            [],
            {"KODER_MONITOR_SESSION": "s-2", "CLAUDE_CODE_SESSION_ID": "s-3"},
            "s-2",
            id="ours first",
        ),
        pytest.param(
            ["--session", "s-1"],
            {"KODER_MONITOR_SESSION": "s-2"},
            "s-1",
            id="asked 1st",
        ),
        pytest.param([], {"KODER_MONITOR_SESSION": "../x"}, None, id="no session id"),
    ],
)
def test_a_job_belongs_to_a_session(
    jobs: Jobs, words: list[str], env: dict[str, str], session: str | None
) -> None:
    environ = environment(jobs.state, **env)
    done = run(JOB, "start", "API build", "--json", *words, env=environ)
    assert json.loads(done.out)["session"] == session


def test_a_label_cannot_steer_a_terminal(jobs: Jobs) -> None:
    jobs.run("start", b"a\x1b[2J\xff\nb")
    assert list(jobs.states()) == ["a\\x1b[2J\\xff\\nb"]
    assert "a\\x1b[2J\\xff\\nb" in jobs.run("list").out
    assert jobs.run("done", b"a\x1b[2J\xff\nb").status == 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        pytest.param(["start", "teste"], "'teste'", id="a label that says nothing"),
        pytest.param(["start", " "], "' '", id="an empty label"),
        pytest.param(["start"], "label", id="no label"),
        pytest.param(["start", "x1", "--session", "../x"], "'../x'", id="session"),
        pytest.param(
            ["start", "x1", "--notify-after", "1h30"], "--notify-after 1h30", id="time"
        ),
        pytest.param(
            ["start", "x1", "--notify-after", "0"], "--notify-after 0", id="0"
        ),
        pytest.param(["done", "--session", "../x"], "'../x'", id="session of done"),
        pytest.param(["stop"], "stop", id="no such command"),
        pytest.param([], "COMMAND", id="nothing"),
    ],
)
def test_a_wrong_call_is_refused_in_one_line_and_leaves_nothing(
    jobs: Jobs, words: list[str], reason: str
) -> None:
    done = jobs.run(*words, expect=2)
    (line,) = done.err
    assert (done.out, line[:17]) == ("", "koder-job: erro: ")
    assert reason in line
    assert jobs.run("list", "--json").objects == []


# --- done and fail


def test_a_job_is_done_or_has_failed_by_its_id(jobs: Jobs) -> None:
    jobs.fill(a1="one", b234="two").close()
    jobs.run("done", "a1")
    jobs.run("fail", "b23")
    assert jobs.states() == {"one": "done", "two": "failed"}


def test_a_job_is_ended_by_its_label_and_the_person_is_told(jobs: Jobs) -> None:
    job_id = jobs.start("API build")
    done = jobs.run("done", "API build", "--lang", "en")
    assert done.out == ""
    assert done.err == (f"koder-job: API build ({job_id}): done after 0s",)


def test_without_a_name_the_only_job_of_the_session_is_meant(jobs: Jobs) -> None:
    db = jobs.fill(a1="mine", b2="other", c3="nobody's")
    for job_id, session in (("a1", "s-1"), ("b2", "s-2")):
        db.execute("UPDATE jobs SET session = ? WHERE id = ?", (session, job_id))
    db.close()
    jobs.run("done", KODER_MONITOR_SESSION="s-1")
    assert jobs.states() == {"mine": "done", "other": "running", "nobody's": "running"}
    jobs.run("fail")
    assert jobs.states()["nobody's"] == "failed"
    jobs.run("fail", "--session", "s-2")
    assert jobs.states()["other"] == "failed"


def test_a_watch_is_never_the_only_job(jobs: Jobs) -> None:
    db = jobs.fill(a1="mine")
    add_watch(db, "aa11", at=time.time())
    db.close()
    jobs.run("done")
    assert jobs.states() == {"mine": "done", "aa11": "running"}


@pytest.mark.parametrize(
    ("words", "named"),
    [
        pytest.param(["done"], ["one", "two", "two"], id="no name"),
        pytest.param(["fail"], ["one", "two", "two"], id="no name to fail"),
        pytest.param(["done", "two"], ["two", "two"], id="a label of two"),
        pytest.param(["done", "zz"], ["'zz'", "one", "two"], id="unknown"),
        pytest.param(["done", ""], ["''", "one"], id="empty, as of an unset variable"),
        pytest.param(["done", "--session", "s-9"], [": -"], id="no job of the session"),
    ],
)
def test_a_name_that_is_not_one_job_is_refused_with_what_it_may_be(
    jobs: Jobs, words: list[str], named: list[str]
) -> None:
    jobs.fill(a1="one", b2="two", c3="two").close()
    (line,) = jobs.run(*words, expect=2).err
    assert line.startswith("koder-job: erro: ")
    rest = line
    for name in named:
        before, found, rest = rest.partition(name)
        assert found, (before, line)
    assert set(jobs.states().values()) == {"running"}


def test_only_a_few_of_many_candidates_are_named(jobs: Jobs) -> None:
    jobs.fill(**{f"j{number}": f"job {number}" for number in range(7)}).close()
    (line,) = jobs.run("done", expect=2).err
    assert line.endswith("j4 (job 4), …")


def test_a_watch_is_not_ended_by_hand(jobs: Jobs) -> None:
    db = jobs.fill()
    add_watch(db, "aa11", at=time.time())
    db.close()
    (line,) = jobs.run("done", "aa", expect=2).err
    assert "koder-monitor remove aa11 --why" in line
    assert jobs.states() == {"aa11": "running"}


def test_to_end_a_job_twice_the_same_way_is_no_error(jobs: Jobs) -> None:
    jobs.fill(a1="API build").close()
    jobs.run("done", "a1")
    again = jobs.run("done", "a1", "--lang", "en")
    assert again.err == ("koder-job: job a1 is over already: done",)


def test_to_end_a_job_the_other_way_is_refused(jobs: Jobs) -> None:
    jobs.fill(a1="API build").close()
    jobs.run("fail", "a1")
    (line,) = jobs.run("done", "a1", "--lang", "en", expect=2).err
    assert line.endswith("job a1 is over already: failed")
    assert jobs.states() == {"API build": "failed"}


# --- list


def test_list_shows_what_runs_and_what_ended_within_a_day(jobs: Jobs) -> None:
    db = jobs.fill()
    now = time.time()
    job = {"state": "done"}
    add(
        db,
        "jobs",
        id="old",
        label="old",
        started_at=1,
        ended_at=now - 25 * HOUR_S,
        **job,
    )
    add(
        db,
        "jobs",
        id="new",
        label="new",
        started_at=2,
        ended_at=now - 23 * HOUR_S,
        **job,
    )
    add(db, "jobs", id="long", label="long", started_at=3, session="s-1")
    add_watch(db, "aa11", at=now - 60, label="the lock")
    add_waiter(db, "aa11", at=now - 60, session="s-2")
    ended = {"state": "expired", "ended_at": now - 5}
    add_watch(db, "bb22", at=now - 50, label="the soak", **ended)
    db.close()
    done = jobs.run("list", "--json")
    assert done.ids == ["new", "long", "aa11", "bb22"]
    watch, expired = done.objects[2:]
    assert (watch["label"], watch["state"], watch["session"], watch["watch_state"]) == (
        "the lock",
        "running",
        "s-2",
        "armed",
    )
    assert (expired["state"], expired["watch_state"]) == ("failed", "expired")
    rows = jobs.run("list", "--lang", "en").rows
    assert rows[0] == ["ID", "STATE", "AGE", "NOTIFY AFTER", "SESSION", "LABEL"]
    assert [(row[0], row[1]) for row in rows[1:]] == [
        ("new", "done"),
        ("long", "running"),
        ("aa11", "waiting"),
        ("bb22", "failed"),
    ]


def test_an_empty_list_says_so_to_the_person(jobs: Jobs) -> None:
    done = jobs.run("list", "--lang", "en")
    assert (done.out, len(done.err)) == ("", 1)
    assert jobs.run("list", "--json").objects == []


# --- a store that cannot be written


@pytest.fixture
def no_store(tmp_path: Path) -> Jobs:
    """Give a state directory that can never be made: its place is taken by a file."""
    (tmp_path / "taken").write_text("")
    return Jobs(tmp_path / "taken" / "state")


def test_a_job_that_cannot_be_stored_does_not_stop_its_script(no_store: Jobs) -> None:
    done = no_store.run("start", "API build", "--lang", "en")
    assert ID.fullmatch(done.out)
    (line,) = done.err
    assert line.startswith("koder-job: marker not stored: ")
    done = no_store.run("done", done.out.strip())
    assert (done.out, len(done.err)) == ("", 1)
    assert no_store.run("list", "--json").objects == []


def test_a_store_that_stays_locked_does_not_stop_a_script(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    db = jobs.fill()
    db.execute("BEGIN EXCLUSIVE")
    monkeypatch.setattr(
        "watcher.cli.job.open_database",
        lambda state: open_database(state, busy_ms=20),
    )
    assert call(jobs, monkeypatch, "start", "API build") == 0
    db.close()
    out, err = capfd.readouterr()
    assert ID.fullmatch(out)
    assert err.startswith("koder-job: marcador não gravado: ")
    assert "locked" in err
    assert jobs.states() == {}


def test_a_change_that_fails_is_taken_back(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    jobs.start("API build")

    def torn(connection: sqlite3.Connection, job: marker.Marker) -> None:
        connection.execute("UPDATE jobs SET state = 'done'")
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(marker, "start", torn)
    assert call(jobs, monkeypatch, "start", "other") == 0
    assert "disk I/O error" in capfd.readouterr().err
    assert jobs.states() == {"API build": "running"}


def test_a_damaged_store_is_set_aside_and_said(jobs: Jobs) -> None:
    (jobs.state / "monitor.db").write_bytes(b"no database at all" * 500)
    done = jobs.run("start", "API build")
    assert ID.fullmatch(done.out)
    (line,) = done.err
    assert "monitor.db.corrupt-1" in line
    assert jobs.states() == {"API build": "running"}


# --- notify-after


def call(
    jobs: Jobs,
    monkeypatch: pytest.MonkeyPatch,
    *words: str,
    start_service: job_command.StartService | None = None,
) -> int:
    """Run the command in this process, to hand it something that starts a service."""
    monkeypatch.setenv("KODER_MONITOR_STATE", str(jobs.state))
    monkeypatch.setattr("sys.argv", ["koder-job", *words])
    return job_command.main(start_service)


def test_the_time_to_ping_is_kept_and_somebody_is_there_to_notice(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    seen: list[dict[object, object]] = []
    words = ("start", "the soak", "--notify-after", "1h30m")
    status = call(
        jobs, monkeypatch, *words, start_service=lambda: seen.append(jobs.states())
    )
    out, err = capfd.readouterr()
    assert (status, err) == (0, "")
    assert ID.fullmatch(out)
    assert seen == [{"the soak": "running"}]  # it was stored before
    (found,) = jobs.run("list", "--json").objects
    assert found["notify_after_s"] == 5400
    db = jobs.fill()
    assert [item.id for item in marker.due(db, time.time() + 5401)] == [found["id"]]
    db.close()


def test_a_service_that_is_there_already_will_notice(jobs: Jobs) -> None:
    jobs.start("the soak", "--notify-after", "10m")
    assert jobs.run("list", "--json").objects[0]["notify_after_s"] == 600
    assert sorted(path.name for path in jobs.state.glob("*.log")) == []


def test_no_service_is_started_for_a_mere_marker(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden() -> None:
        raise AssertionError

    assert call(jobs, monkeypatch, "start", "x1", start_service=forbidden) == 0


def test_it_is_said_when_nobody_will_notice(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def none() -> None:
        raise ServiceError(phrase("write_failed", error="no room"))

    words = ("start", "the soak", "--notify-after", "10m", "--lang", "en")
    assert call(jobs, monkeypatch, *words, start_service=none) == 0
    out, err = capfd.readouterr()
    assert ID.fullmatch(out)
    assert err.startswith("koder-job: --notify-after 10m00s will ping only while")
    assert err.count("\n") == 1
    assert jobs.states() == {"the soak": "running"}


@pytest.mark.parametrize(
    ("error", "status"),
    [
        pytest.param(RuntimeError("odd"), 70, id="a bug"),
        pytest.param(KeyboardInterrupt(), 130, id="Ctrl-C"),
    ],
)
def test_whatever_else_goes_wrong_is_one_line(
    jobs: Jobs,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    error: BaseException,
    status: int,
) -> None:
    def broken() -> None:
        raise error

    words = ("start", "the soak", "--notify-after", "10m")
    assert call(jobs, monkeypatch, *words, start_service=broken) == status
    err = capfd.readouterr().err
    assert "Traceback" not in err
    assert err.count("\n") == bool(str(error))
    assert str(error) in err


def test_an_id_that_cannot_be_printed_is_an_error(jobs: Jobs) -> None:
    with open("/dev/full", "wb") as full:
        process = os.posix_spawn(
            JOB[0],
            [*JOB, "start", "API build"],
            environment(jobs.state),
            file_actions=[(os.POSIX_SPAWN_DUP2, full.fileno(), fd) for fd in (1, 2)],
        )
        _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 70


# --- many at once


def test_jobs_that_start_at_the_same_moment_are_all_kept(tmp_path: Path) -> None:
    """Even the first ones, which make the store."""
    jobs = Jobs(tmp_path / "new")
    processes = [
        os.posix_spawn(
            JOB[0],
            [*JOB, "start", f"job {number}"],
            environment(jobs.state),
            file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
        )
        for number in range(8)
    ]
    ends = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in processes]
    assert ends == [0] * 8
    assert len(jobs.states()) == 8
