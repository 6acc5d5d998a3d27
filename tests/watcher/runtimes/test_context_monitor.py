"""The context monitor as a hook calls it: sequences, resets, silence (C11.3, B139)."""

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from policies.context import FRESH_S, Reading, Spoken
from policies.values import Json
from policies.wording import Lang
from tests.rows import add_waiter, add_watch, opened
from watcher.runtimes import HANDLERS, HookCall
from watcher.runtimes.context_monitor import advise
from watcher.runtimes.metrics import found, leave, spoken

TABLES = [
    pytest.param([30] * 12, "W----W----W-", id="every fifth call"),
    pytest.param([30, 30, *[20] * 6], "W-C----C", id="worse speaks at once"),
    pytest.param([20, *[30] * 6], "C----W-", id="better waits its turn"),
    pytest.param([30, 50, 50, 30, 30], "W--W-", id="cleared starts anew"),
    pytest.param([20, 80, 20], "C-C", id="B139"),
]


class Session:
    """One session whose window is measured and whose events are handed over."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.cwd = self.project / "deep" / "er"
        self.cwd.mkdir(parents=True)
        self.state = folder / "state"
        self.now_s = float(int(time.time()))
        self.id: str | None = "abc"
        self.config = folder / "config.toml"
        self.env = {
            "KODER_MONITOR_STATE": str(self.state),
            "KODER_MONITOR_CONFIG": str(self.config),
            "TMPDIR": str(folder),
        }

    def measured(self, remaining: float, *, ago_s: float = 0) -> None:
        reading = Reading(remaining, self.now_s - ago_s)
        leave(str(self.state), self.env, "abc", reading, self.now_s)

    def hears(self, event: str = "post-tool-use", **payload: Json) -> str:
        """Return what the session is told at an event, nothing as an empty text."""
        call = HookCall(
            event=event,
            runtime="claude-code",
            payload=payload,
            session=self.id,
            cwd=str(self.cwd),
            project=str(self.project),
            tool="Bash",
            tool_input={},
            env=self.env,
            at=datetime.fromtimestamp(self.now_s, UTC),
            lang=Lang.EN,
        )
        advice = advise(call)
        if advice is None:
            return ""
        assert advice.hold is None
        return advice.context or ""

    def level(self, remaining: float | None = None) -> str:
        """Return W, C or - for what is said at the next tool call."""
        if remaining is not None:
            self.measured(remaining)
        text = self.hears()
        if not text:
            return "-"
        return "C" if "nearly used up" in text else "W"

    def compacted(self) -> None:
        """Have the window emptied, and the time pass until figures are believed."""
        assert self.hears("pre-compact", trigger="auto") == ""
        self.now_s += FRESH_S + 1


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def test_it_hears_tools_compactions_and_starts() -> None:
    events = {event for event, names in HANDLERS.items() if "context_monitor" in names}
    assert events == {"post-tool-use", "pre-compact", "session-start"}


@pytest.mark.parametrize(("figures", "said"), TABLES)
def test_what_a_sequence_of_tool_calls_hears(
    session: Session, figures: list[float], said: str
) -> None:
    assert "".join(session.level(remaining) for remaining in figures) == said


# silence


def test_without_a_figure_it_is_silent_and_leaves_nothing(session: Session) -> None:
    assert session.level() == "-"
    assert not session.state.exists()


def test_above_the_threshold_it_leaves_nothing(session: Session) -> None:
    assert session.level(36) == "-"
    assert not (session.state / "context/told").exists()


def test_without_a_session_it_is_silent(session: Session) -> None:
    session.measured(20)
    session.id = None
    assert session.level() == "-"


def test_a_subagent_hears_nothing_of_its_parents_window(session: Session) -> None:
    session.measured(20)
    assert session.hears(agent_id="a-1", agent_type="explorer") == ""
    assert session.hears("pre-compact", agent_id="a-1") == ""
    assert session.level() == "C"


@pytest.mark.parametrize(("ago_s", "said"), [(59, "W"), (60, "W"), (61, "-")])
def test_an_old_figure_says_nothing(session: Session, ago_s: float, said: str) -> None:
    session.measured(30, ago_s=ago_s)
    assert session.level() == said


def test_a_figure_of_the_far_future_says_nothing(session: Session) -> None:
    session.measured(30, ago_s=-86400)
    assert session.level() == "-"


def test_the_compatible_place_is_read_where_ours_says_nothing(session: Session) -> None:
    metrics = {"remaining_percentage": 30, "timestamp": session.now_s}
    path = Path(session.env["TMPDIR"], "claude-ctx-abc.json")
    path.write_text(json.dumps(metrics))
    assert session.level() == "W"
    session.measured(90)
    path.write_text(json.dumps(metrics))
    assert session.level() == "-"


# resets


def test_after_a_compaction_it_speaks_anew(session: Session) -> None:
    assert session.level(20) == "C"
    session.compacted()
    assert session.level(30) == "W"
    assert session.level(20) == "C"


def test_a_line_drawn_during_a_compaction_says_nothing(session: Session) -> None:
    assert session.level(20) == "C"
    session.hears("pre-compact")
    assert [*found(str(session.state), session.env, "abc")] == []
    session.now_s += FRESH_S
    assert session.level(20) == "-"
    session.now_s += 1
    assert session.level(20) == "C"


@pytest.mark.parametrize("source", ["clear", "compact"])
def test_a_start_with_an_empty_window_starts_anew(
    session: Session, source: str
) -> None:
    assert session.level(20) == "C"
    assert session.hears("session-start", source=source) == ""
    assert session.level() == "-"
    session.now_s += FRESH_S + 1
    assert session.level(20) == "C"


def test_a_resumed_session_hears_it_at_once(session: Session) -> None:
    session.compacted()
    compacted_at_s = spoken(str(session.state), "abc").compacted_at_s
    assert session.level(20) + session.level(20) == "C-"
    assert session.hears("session-start", source="resume") == ""
    assert spoken(str(session.state), "abc") == Spoken(compacted_at_s=compacted_at_s)
    assert session.level(20) == "C"


@pytest.mark.parametrize("source", ["startup", "fork", None, 5, ["clear"]])
def test_any_other_start_changes_nothing(session: Session, source: Json) -> None:
    assert session.level(20) == "C"
    assert session.hears("session-start", source=source) == ""
    assert session.level(20) == "-"


def test_a_first_start_writes_nothing(session: Session) -> None:
    for source in ("startup", "resume"):
        session.hears("session-start", source=source)
    assert not session.state.exists()


def test_resets_happen_with_warnings_switched_off(session: Session) -> None:
    assert session.level(20) == "C"
    session.config.write_text("[context]\nwarnings = false\n")
    session.compacted()
    assert session.level(20) == "-"
    session.config.unlink()
    assert session.level(20) == "C"


# settings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("[context]\nwarnings = false\n", "--"),
        ("[context]\nwarnings = true\n", "-W"),
        ("[context]\nwarning = 50\n", "WW"),
        ("[context]\nwarning = 50\ncritical = 45\n", "WC"),
        ("[context]\nwarning = 20\n", "-W"),
        ('[context]\nwarning = "50"\n', "-W"),
        ('[context]\nwarnings = "false"\n', "-W"),
        ("context = 5\n", "-W"),
        ("[context\n", "-W"),
        ('lang = "en"\n', "-W"),
        ("context = \xff", "-W"),
    ],
)
def test_its_settings_and_what_will_not_do_in_them(
    session: Session, settings: str, said: str
) -> None:
    session.config.write_bytes(settings.encode("latin-1"))
    heard = session.level(46)
    session.hears("session-start", source="resume")
    assert heard + session.level(34) == said


def test_a_configuration_that_is_a_pipe_holds_nobody_up(session: Session) -> None:
    os.mkfifo(session.config)
    assert session.level(30) == "W"


@pytest.mark.parametrize(
    ("hooks", "said"),
    [
        ({"context_warnings": False}, "-"),
        ({"context_warnings": "false"}, "W"),
        ({"context_warning_threshold": 20, "context_critical_threshold": 10}, "-"),
        ({"context_critical_threshold": 31}, "C"),
        ({"context_critical_threshold": 60}, "W"),
        ([], "W"),
    ],
)
def test_a_projects_own_file_is_found_from_below(
    session: Session, hooks: object, said: str
) -> None:
    folder = session.project / ".planning"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"hooks": hooks}))
    assert session.level(30) == said


def test_the_nearest_of_two_such_files_goes_first(session: Session) -> None:
    for folder, on in ((session.project, False), (session.cwd, True)):
        (folder / ".planning").mkdir()
        hooks = {"hooks": {"context_warnings": on}}
        (folder / ".planning/config.json").write_text(json.dumps(hooks))
    assert session.level(30) == "W"


def test_what_lies_above_the_project_is_not_its_own(session: Session) -> None:
    folder = session.project.parent / ".planning"
    folder.mkdir()
    (folder / "config.json").write_text('{"hooks": {"context_warnings": false}}')
    assert session.level(30) == "W"


# what is said


def watch(session: Session, name: str, waiter: str) -> None:
    db = opened(session.state)
    add_watch(db, name, at=session.now_s)
    add_waiter(db, name, at=session.now_s, session=waiter)
    db.close()


def trail(session: Session) -> list[tuple[str, str, str]]:
    db = opened(session.state)
    rows = db.execute("SELECT watch_id, event, detail FROM trail").fetchall()
    db.close()
    return [tuple(row) for row in rows]


def test_watches_of_the_session_are_named_and_get_a_note_once(session: Session) -> None:
    session.env["KODER_MONITOR_SESSION"] = "alias"
    for name, waiter in (("mine", "abc"), ("too", "alias"), ("foreign", "other")):
        watch(session, name, waiter)
    session.measured(30)
    assert "Watches that this session has armed: 2;" in session.hears()
    assert trail(session) == []
    for _ in range(7):
        session.level(20)
    assert trail(session) == [
        ("mine", "context_low", '{"used_pct": 80}'),
        ("too", "context_low", '{"used_pct": 80}'),
    ]
    session.compacted()
    session.level(20)
    assert len(trail(session)) == 4


def test_without_watches_there_is_nothing_to_say_of_them(session: Session) -> None:
    watch(session, "foreign", "other")
    session.measured(20)
    text = session.hears()
    assert "nearly used up: 80 % used, 20 % left" in text
    assert "armed" not in text
    assert trail(session) == []


@pytest.mark.parametrize("content", [b"no database", b""])
def test_a_store_that_cannot_be_read_is_no_reason_for_silence(
    session: Session, content: bytes
) -> None:
    session.state.mkdir()
    (session.state / "monitor.db").write_bytes(content)
    assert session.level(20) == "C"


def test_a_store_without_its_tables_is_no_reason_for_silence(session: Session) -> None:
    watch(session, "mine", "abc")
    db = opened(session.state)
    db.execute("DROP TABLE trail")
    assert session.level(20) == "C"
    db.execute("DROP TABLE waiters")
    session.hears("session-start", source="resume")
    assert session.level(20) == "C"
    db.close()


def test_a_store_that_is_locked_is_no_reason_for_silence(session: Session) -> None:
    watch(session, "mine", "abc")
    db = opened(session.state)
    db.execute("BEGIN IMMEDIATE")
    assert session.level(20) == "C"
    db.execute("ROLLBACK")
    db.close()
    assert trail(session) == []


def test_a_handoff_that_was_just_written_is_named(session: Session) -> None:
    path = session.project / "NEXT-SESSION-PROMPT.local.md"
    path.write_text("go on")
    session.measured(20)
    text = session.hears()
    assert str(path) in text
    assert "koder-monitor handoff" not in text
    os.utime(path, (session.now_s - 4000,) * 2)
    session.hears("session-start", source="resume")
    assert "koder-monitor handoff" in session.hears()


def test_what_was_spoken_cannot_be_kept_is_an_error_of_the_hook(
    session: Session,
) -> None:
    """Else it would speak at every call; the hook turns an error into silence."""
    session.measured(30)
    (session.state / "context/told").write_text("no folder")
    with pytest.raises(OSError, match="told"):
        session.hears()
