"""The rows of the store as programs and people read them (appendix; C9.3)."""

import json
import sqlite3
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notify.marker import Marker
from policies.text import clean
from policies.wording import TEXTS, Lang
from tests.rows import HOUR_S, add, add_ping, add_waiter, add_watch, opened
from watcher import views
from watcher.cli import tables

T = datetime(2026, 3, 1, 12, 0, 0, 250000, tzinfo=UTC).timestamp()
LISBON = timezone(timedelta(hours=1))
NASTY = "a\x1b[2J\u202eb\nc"
CLEANED = "a\\x1b[2J\\u202eb\\nc"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = opened(tmp_path)
    yield connection
    connection.close()


def one(db: sqlite3.Connection, watch_id: str = "w1") -> views.Watch:
    row = views.watch_row(db, watch_id)
    assert row is not None
    return row


# The appendix, word for word.
WATCH_FIELDS = """
    id target kind label host state observation result armed_at deadline ended_at
    last_probe_at unknown_s every_s ttl_s renewals session resume waiters detached
    acknowledged holder evidence line
"""
PING_FIELDS = """
    id channel state attempts next_attempt_at message idempotency_key created_at
    delivered_at last_error
"""
JOB_FIELDS = "id label state started_at ended_at notify_after_s session"


def test_a_watch_has_the_fields_of_the_appendix(db: sqlite3.Connection) -> None:
    add_watch(db, "w1", at=T)
    assert set(WATCH_FIELDS.split()) <= set(views.watch_object(one(db)))


def test_a_ping_has_the_fields_of_the_appendix(db: sqlite3.Connection) -> None:
    add_ping(db, "k1", at=T)
    (row,) = views.ping_rows(db)
    assert list(views.ping_object(row)) == PING_FIELDS.split()


def test_a_marker_has_the_fields_of_the_appendix() -> None:
    marker = Marker("j1", "job", "running", T, None, None, None, None)
    assert set(JOB_FIELDS.split()) <= set(views.marker_object(marker))


def test_an_armed_watch_is_shown_whole(db: sqlite3.Connection) -> None:
    add_watch(
        db,
        "w1",
        at=T,
        target="process --pid 7 --host box",
        kind="process",
        label="PID 7",
        host="box",
        observation="unknown",
        last_probe_at=T + 30,
        looks=2,
        unknown_s=1.23456,
        renewals=1,
        evidence={"means": "ps"},
    )
    add_waiter(db, "w1", at=T, session="s-1", resume="the API")
    assert views.watch_object(one(db), LISBON) == {
        "id": "w1",
        "target": "process --pid 7 --host box",
        "kind": "process",
        "label": "PID 7",
        "host": "box",
        "state": "armed",
        "observation": "unknown",
        "result": None,
        "armed_at": "2026-03-01T13:00:00.250+01:00",
        "deadline": "2026-03-01T14:00:00.250+01:00",
        "ended_at": None,
        "last_probe_at": "2026-03-01T13:00:30.250+01:00",
        "unknown_s": 1.235,
        "every_s": 30,
        "ttl_s": 3600,
        "renewals": 1,
        "session": "s-1",
        "resume": "the API",
        "waiters": 1,
        "detached": False,
        "acknowledged": None,
        "holder": None,
        "evidence": {"means": "ps"},
        "line": None,
        "observations": 2,
    }


def test_an_ended_watch_tells_how_and_who_held_the_lock(db: sqlite3.Connection) -> None:
    add_watch(
        db,
        "w1",
        at=T,
        state="ended",
        result="FAIL",
        ended_at=T + 90,
        memory={"holder": {"pid": 7, "session": NASTY}},
        line="✅ TERMINOU: x",
    )
    shown = views.watch_object(one(db), UTC)
    assert (shown["state"], shown["result"]) == ("ended", "FAIL")
    assert shown["ended_at"] == "2026-03-01T12:01:30.250+00:00"
    assert shown["holder"] == {"pid": 7, "session": CLEANED}
    assert shown["line"] == "✅ TERMINOU: x"


@pytest.mark.parametrize(
    ("watch", "waiters", "expected"),
    [
        pytest.param("armed", ["waiting"], (1, "s1", "r1"), id="one waits"),
        pytest.param("armed", ["waiting"] * 3, (3, "s1", "r1"), id="three wait"),
        pytest.param("armed", ["left", "waiting"], (1, "s2", "r2"), id="one left"),
        pytest.param("armed", ["told", "waiting"], (1, "s2", "r2"), id="one expired"),
        pytest.param("armed", ["left"], (0, "s1", "r1"), id="all left"),
        pytest.param("armed", [], (0, None, None), id="none came"),
        pytest.param("released", ["told", "told"], (2, "s1", "r1"), id="two told"),
        pytest.param("released", ["left", "told"], (1, "s2", "r2"), id="told or left"),
        pytest.param("removed", ["left", "left"], (0, "s1", "r1"), id="none to tell"),
    ],
)
def test_a_watch_counts_its_waiters_and_names_the_first(
    db: sqlite3.Connection,
    watch: str,
    waiters: list[str],
    expected: tuple[int, str | None, str | None],
) -> None:
    add_watch(db, "w1", at=T, state=watch)
    add_watch(db, "w2", at=T)
    add_waiter(db, "w2", at=T, session="other", resume="other")
    for number, state in enumerate(waiters, 1):
        own = {"session": f"s{number}", "resume": f"r{number}", "state": state}
        add_waiter(db, "w1", number, at=T, **own)
    shown = views.watch_object(one(db))
    assert (shown["waiters"], shown["session"], shown["resume"]) == expected


@pytest.mark.parametrize(
    ("watch", "acknowledged", "expected"),
    [
        pytest.param("armed", [None], None, id="armed: nothing to acknowledge"),
        pytest.param("armed", [T], None, id="armed, one was told of its own expiry"),
        pytest.param("released", [None], False, id="unread"),
        pytest.param("released", [T, None], False, id="one of two"),
        pytest.param("expired", [T, T], True, id="all"),
        pytest.param("removed", [], True, id="nobody was told"),
    ],
)
def test_a_watch_is_acknowledged_when_every_waiter_has_done_it(
    db: sqlite3.Connection,
    watch: str,
    acknowledged: list[float | None],
    expected: bool | None,
) -> None:
    add_watch(db, "w1", at=T, state=watch)
    for number, at in enumerate(acknowledged, 1):
        add_waiter(db, "w1", number, at=T, state="told", acknowledged_at=at)
    add_waiter(db, "w1", 9, at=T, state="left")
    assert views.watch_object(one(db))["acknowledged"] is expected


def test_what_is_listed_follows_the_bound_and_stands_in_order(
    db: sqlite3.Connection,
) -> None:
    add_watch(db, "armed-2", at=T + 2)
    add_watch(db, "armed-1", at=T + 1)
    for name, ended_at in (("late", T + 9), ("early", T + 5), ("earlier", T + 4)):
        add_watch(db, name, at=T, state="released", ended_at=ended_at)

    def listed(since: float) -> list[str]:
        return [watch.id for watch in views.watch_rows(db, ended_after_s=since)]

    assert listed(views.NEVER) == ["armed-1", "armed-2"]
    assert listed(T + 5) == ["early", "late", "armed-1", "armed-2"]
    assert listed(views.ALWAYS) == ["earlier", "early", "late", "armed-1", "armed-2"]
    assert views.watch_rows(db) == views.watch_rows(db, ended_after_s=views.NEVER)


def test_the_columns_of_a_watch_are_its_fields(db: sqlite3.Connection) -> None:
    queries: list[str] = []
    db.set_trace_callback(queries.append)
    views.watch_rows(db, ended_after_s=T)
    db.set_trace_callback(None)
    columns = [column[0] for column in db.execute(queries[-1]).description]
    assert tuple(columns) == views.Watch._fields


def test_a_long_history_is_not_read_for_what_is_armed(db: sqlite3.Connection) -> None:
    plans: list[str] = []
    db.set_trace_callback(plans.append)
    views.watch_rows(db, ended_after_s=T)
    db.set_trace_callback(None)
    steps = [row["detail"] for row in db.execute(f"EXPLAIN QUERY PLAN {plans[-1]}")]
    assert [step for step in steps if step.startswith("SCAN watches")] == [
        "SCAN watches USING INDEX watches_armed"
    ]


def test_a_watch_is_found_by_the_beginning_of_its_id(db: sqlite3.Connection) -> None:
    for number, name in enumerate(("ab", "abc", "abd", "b*")):
        add_watch(db, name, at=T + number)
    assert views.matching(db, "abc") == ["abc"]
    assert views.matching(db, "a") == ["abd", "abc", "ab"]
    assert views.matching(db, "ab") == ["ab"]
    assert views.matching(db, "b*") == ["b*"]
    assert views.matching(db, "*") == []
    assert views.watch_row(db, "a") is None


def test_the_details_have_the_waiters_in_order_and_the_trail(
    db: sqlite3.Connection,
) -> None:
    add_watch(db, "w1", at=T)
    add_waiter(db, "w1", 2, at=T, takes=1, session=None, resume=None)
    outcome = {"ending": "expired"}
    own = {"state": "told", "outcome": outcome, "acknowledged_at": T + 60}
    add_waiter(db, "w1", 1, at=T, label=NASTY, session="s-1", resume="the API", **own)
    for event, detail in (("joined", 2), ("renewed", {"why": NASTY}), ("odd", "{")):
        add(db, "trail", watch_id="w1", at=T, event=event, detail=json.dumps(detail))
    add(db, "trail", watch_id="w1", at=T, event="torn", detail="{")
    shown = views.detail_object(
        one(db), views.waiter_rows(db, "w1"), views.trail_rows(db, "w1"), UTC
    )
    at = "2026-03-01T12:00:00.250+00:00"
    waiters = shown["waiter_list"]
    assert isinstance(waiters, list)
    first, second = waiters
    assert first == {
        "number": 1,
        "label": CLEANED,
        "resume": "the API",
        "session": "s-1",
        "state": "told",
        "outcome": "expired",
        "armed_at": at,
        "deadline": "2026-03-01T13:00:00.250+00:00",
        "ttl_s": 3600,
        "takes": False,
        "acknowledged_at": "2026-03-01T12:01:00.250+00:00",
    }
    assert (second["number"], second["outcome"], second["takes"]) == (2, None, True)
    assert shown["trail"] == [
        {"at": at, "event": "joined", "detail": 2},
        {"at": at, "event": "renewed", "detail": {"why": CLEANED}},
        {"at": at, "event": "odd", "detail": "{"},
        {"at": at, "event": "torn", "detail": None},
    ]


@pytest.mark.parametrize(
    "evidence",
    [
        pytest.param('{"means": "stat", "inode": 7}', id="plain"),
        pytest.param(json.dumps({"line": NASTY, NASTY: [1, NASTY]}), id="to clean"),
        pytest.param(json.dumps({"path": "\udc80"}), id="a byte that was no UTF-8"),
        pytest.param('{"path": "\x9b\u2028"}', id="to clean, and not escaped"),
        pytest.param(json.dumps({"path": "ação"}), id="accents"),
        pytest.param('{"torn', id="damaged"),
        pytest.param("[1]", id="no object"),
    ],
)
def test_the_text_of_a_watch_is_its_object(
    db: sqlite3.Connection, evidence: str
) -> None:
    add_watch(db, "w1", at=T, evidence=evidence)
    text = views.watch_text(one(db), UTC)
    assert text.isprintable()
    assert json.loads(text) == views.watch_object(one(db), UTC)


@pytest.mark.parametrize(
    ("memory", "holder"),
    [
        pytest.param("{}", None, id="none"),
        pytest.param('{"holder": null}', None, id="not known"),
        pytest.param('{"holder": {"pid": 7}}', {"pid": 7}, id="plain"),
        pytest.param(
            '{"holder": {"host": "\\u001b"}}', {"host": "\\x1b"}, id="to clean"
        ),
        pytest.param('{"holder": "{"}', None, id="no object"),
        pytest.param('{"holder": ""}', None, id="empty"),
        pytest.param('{"holder": {', None, id="damaged"),
        pytest.param("[]", None, id="no memory"),
    ],
)
def test_the_holder_is_taken_from_what_is_remembered(
    db: sqlite3.Connection, memory: str, holder: object
) -> None:
    add_watch(db, "w1", at=T, memory=memory)
    assert views.watch_object(one(db))["holder"] == holder
    assert json.loads(views.watch_text(one(db)))["holder"] == holder


@pytest.mark.parametrize(
    "field", ["target", "label", "host", "session", "resume", "line"]
)
def test_no_text_of_a_watch_steers_a_terminal(
    db: sqlite3.Connection, field: str
) -> None:
    own = {field: NASTY} if field in {"target", "label", "host", "line"} else {}
    add_watch(db, "w1", at=T, **own)
    add_waiter(db, "w1", at=T, session=NASTY, resume=NASTY)
    assert views.watch_object(one(db))[field] == CLEANED


def test_bytes_that_were_no_utf8_show_as_everywhere_else(
    db: sqlite3.Connection,
) -> None:
    add_watch(db, "w1", at=T, target="lock /a\\udcff/b")
    assert views.watch_object(one(db))["target"] == clean("lock /a\udcff/b")


def test_only_a_pending_ping_has_a_next_attempt(db: sqlite3.Connection) -> None:
    add_ping(db, "k1", at=T, attempts=2, last_error=NASTY)
    add_ping(db, "k2", at=T, state="dead")
    add_ping(db, "k3", at=T, state="delivered", delivered_at=T + 1)
    rows = views.ping_rows(db, delivered_after_s=T)
    first, dead, delivered = (views.ping_object(row, UTC) for row in rows)
    assert first == {
        "id": 1,
        "channel": "koder",
        "state": "pending",
        "attempts": 2,
        "next_attempt_at": "2026-03-01T12:00:05.250+00:00",
        "message": "✅ LIBERADO: lock x",
        "idempotency_key": "k1",
        "created_at": "2026-03-01T12:00:00.250+00:00",
        "delivered_at": None,
        "last_error": CLEANED,
    }
    assert (dead["state"], dead["next_attempt_at"]) == ("dead", None)
    assert delivered["next_attempt_at"] is None
    assert delivered["delivered_at"] == "2026-03-01T12:00:01.250+00:00"


def test_delivered_pings_are_listed_from_the_bound_on(db: sqlite3.Connection) -> None:
    add_ping(db, "new", at=T - 9, state="delivered", delivered_at=T)
    add_ping(db, "old", at=T - 9, state="delivered", delivered_at=T - 1)
    add_ping(db, "dead", at=T - 10, state="dead")
    add_ping(db, "pending", at=T)
    keys = [row["key"] for row in views.ping_rows(db, delivered_after_s=T)]
    assert keys == ["dead", "new", "pending"]
    assert [row["key"] for row in views.ping_rows(db)] == ["dead", "pending"]


@pytest.mark.parametrize("body", ["{", "[1]", "null", '{"title": "x"}', NASTY])
def test_a_poisoned_ping_shows_what_is_there(db: sqlite3.Connection, body: str) -> None:
    add_ping(db, "k1", at=T, body=body)
    (row,) = views.ping_rows(db)
    assert views.ping_object(row)["message"] == clean(body)


def test_a_watch_among_the_markers_tells_its_own_state() -> None:
    watch = Marker("w1", NASTY, "done", T, T + 60, None, "s-1", "released")
    assert views.marker_object(watch, UTC) == {
        "id": "w1",
        "label": CLEANED,
        "state": "done",
        "started_at": "2026-03-01T12:00:00.250+00:00",
        "ended_at": "2026-03-01T12:01:00.250+00:00",
        "notify_after_s": None,
        "session": "s-1",
        "watch_state": "released",
    }


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    views._offset.cache_clear()
    yield
    monkeypatch.undo()
    time.tzset()
    views._offset.cache_clear()


@pytest.mark.parametrize(
    ("utc", "local"),
    [
        pytest.param((2026, 1, 1, 12), "2026-01-01T13:00:00.000+01:00", id="winter"),
        pytest.param((2026, 7, 1, 12), "2026-07-01T14:00:00.000+02:00", id="summer"),
        pytest.param(
            (2026, 3, 29, 0, 59, 59), "2026-03-29T01:59:59.000+01:00", id="-1"
        ),
        pytest.param((2026, 3, 29, 1), "2026-03-29T03:00:00.000+02:00", id="spring"),
        pytest.param((2026, 10, 25, 0, 30), "2026-10-25T02:30:00.000+02:00", id="fold"),
        pytest.param(
            (2026, 10, 25, 1, 30), "2026-10-25T02:30:00.000+01:00", id="fold 2"
        ),
    ],
)
@pytest.mark.usefixtures("berlin")
def test_an_instant_has_the_offset_that_was_in_force(
    utc: tuple[int, ...], local: str
) -> None:
    instant = datetime(*utc, tzinfo=UTC)  # type: ignore[arg-type, misc]  # numbers only
    assert views.rfc3339(instant.timestamp()) == local


@given(st.floats(min_value=0, max_value=4e9))
def test_the_local_time_of_an_instant_is_that_instant(at_s: float) -> None:
    text = views.rfc3339(at_s)
    assert text is not None
    assert abs(datetime.fromisoformat(text).timestamp() - at_s) < 0.001
    assert text == views.rfc3339(at_s, UTC)  # the zone of the tests


@given(st.text())
def test_a_printable_text_needs_no_cleaning(text: str) -> None:
    assert views.shown(text) == clean(views._ESCAPED.sub(r"\\x\1", text))


# --- tables


def lines(table: tables.Table) -> list[list[str]]:
    """Return the words of each line, parted where two blanks are."""
    return [
        [word.strip() for word in line.split("  ") if word.strip()]
        for line in table.lines()
    ]


def test_the_table_of_watches(db: sqlite3.Connection) -> None:
    add_watch(db, "0123456789ab", at=T, target="lock a", label="a")
    add_waiter(db, "0123456789ab", at=T)
    own = {"observation": "unknown", "kind": "process", "label": "the soak"}
    add_watch(db, "11", at=T - 90, target="process --pid 7", **own)
    add_watch(db, "22", at=T - 60, observation="released")
    table = tables.watch_table(views.watch_rows(db), T + 60, Lang.PT)
    assert lines(table) == [
        ["ID", "ALVO", "ESTADO", "HÁ", "FALTA", "ESPERAM", "RÓTULO"],
        ["11", "process --pid 7", "sem leitura", "2m30s", "57:30", "0", "the soak"],
        ["22", "lock 22", "livre", "2m00s", "58:00", "0", "22"],
        ["01234567", "lock a", "ativo", "1m00s", "59:00", "1", "a"],
    ]


def test_the_table_of_watches_in_english(db: sqlite3.Connection) -> None:
    add_watch(db, "11", at=T)
    done = {"state": "ended", "result": "PASS", "ended_at": T + 45}
    add_watch(db, "22", at=T, **done)
    table = tables.watch_table(
        views.watch_rows(db, ended_after_s=T), T + HOUR_S + 1, Lang.EN
    )
    assert lines(table) == [
        ["ID", "TARGET", "STATE", "AGE", "LEFT", "WAITERS", "LABEL"],
        ["22", "lock 22", "ended [PASS]", "45s", "-", "0", "22"],
        ["11", "lock 11", "held", "1h00m", "00:00", "0", "11"],
    ]


@pytest.mark.parametrize(
    ("state", "pt", "en"),
    [
        ("released", "liberado", "released"),
        ("ended", "terminou", "ended"),
        ("expired", "expirou", "expired"),
        ("removed", "removido", "removed"),
        ("unseen", "não visto", "never seen"),
    ],
)
def test_each_state_has_its_word(
    db: sqlite3.Connection, state: str, pt: str, en: str
) -> None:
    add_watch(db, "w1", at=T, state=state, ended_at=T)
    assert tables.state_text(one(db), Lang.PT) == pt
    assert tables.state_text(one(db), Lang.EN) == en


def test_the_table_of_history(db: sqlite3.Connection) -> None:
    add_watch(db, "11", at=T, state="expired", ended_at=T + 90061)
    add_watch(db, "22", at=T)
    rows = views.watch_rows(db, ended_after_s=0)
    armed = "2026-03-01 12:00:00"
    assert lines(tables.history_table(rows, T + 5, Lang.EN)) == [
        ["ID", "ARMED", "ENDED", "TOOK", "STATE", "TARGET", "LABEL"],
        ["11", armed, "2026-03-02 13:01:01", "1d1h", "expired", "lock 11", "11"],
        ["22", armed, "-", "5s", "held", "lock 22", "22"],
    ]


def test_the_table_of_pings(db: sqlite3.Connection) -> None:
    add_ping(db, "k1", at=T, message="first", attempts=3, last_error="refused")
    add_ping(db, "k2", at=T, message="m" * 500, state="dead", last_error="e" * 500)
    add_ping(db, "k3", at=T, message="third", state="delivered", delivered_at=T)
    rows = views.ping_rows(db, delivered_after_s=0)
    head, first, dead, third = lines(tables.ping_table(rows, Lang.PT))
    assert head == ["ID", "CANAL", "ESTADO", "TENTATIVAS", "PRÓXIMA", "MENSAGEM"]
    due = "2026-03-01 12:00:05"
    assert first == ["1", "koder", "pendente", "3", due, "first — refused"]
    assert dead[:5] == ["2", "koder", "não entregue", "0", "-"]
    assert dead[5] == f"{'m' * 159}… — {'e' * 159}…"
    assert third == ["3", "koder", "entregue", "0", "-", "third"]


def test_the_table_of_markers() -> None:
    markers = [
        Marker("11", "soak", "running", T, None, 5400, "s-1", None),
        Marker("22", "build", "failed", T, T + 5, None, None, None),
        Marker("33", "lock a", "running", T, None, None, None, "armed"),
        Marker("44", "lock b", "done", T, T + 5, None, None, "released"),
    ]
    assert lines(tables.marker_table(markers, T + 60, Lang.PT)) == [
        ["ID", "ESTADO", "HÁ", "AVISAR APÓS", "SESSÃO", "RÓTULO"],
        ["11", "em curso", "1m00s", "1h30m", "s-1", "soak"],
        ["22", "falhou", "5s", "-", "-", "build"],
        ["33", "espera", "1m00s", "-", "-", "lock a"],
        ["44", "concluído", "5s", "-", "-", "lock b"],
    ]


@pytest.mark.parametrize("lang", list(Lang))
@pytest.mark.parametrize(
    ("heads", "columns"),
    [
        ("list_heads", 7),
        ("history_heads", 7),
        ("ping_heads", 6),
        ("job_heads", 6),
        ("waiter_heads", 6),
        ("show_fields", 18),
        ("show_parts", 3),
    ],
)
def test_a_table_has_a_head_for_each_column(
    heads: str, columns: int, lang: Lang
) -> None:
    assert len(tables.heads(heads, lang)) == columns


def test_columns_are_aligned_by_what_a_terminal_shows() -> None:
    rows: list[tables.Cells] = [
        ("ação", "1"),
        ("漢字", "2"),
        ("e\u0301", "3"),
        ("abcde", "4"),
    ]
    table = tables.Table(("HEAD", "N"), rows)
    starts = {tables.width(line[:-1]) for line in table.lines()}
    assert starts == {len("abcde  ")}


def test_a_table_without_rows_has_no_lines() -> None:
    assert tables.Table(("HEAD",), []).lines() == []


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        pytest.param("abc", 3, "abc", id="fits"),
        pytest.param("abcd", 3, "ab…", id="cut"),
        pytest.param("漢字", 3, "漢…", id="wide"),
        pytest.param("漢字", 2, "…", id="wide, and no room for half of it"),
        pytest.param("e\u0301e\u0301", 2, "e\u0301e\u0301", id="marks take none"),
    ],
)
def test_a_line_is_cut_to_what_a_terminal_shows(
    text: str, columns: int, shown: str
) -> None:
    assert tables.fit(text, columns) == shown


@given(st.text(), st.integers(min_value=1, max_value=20))
def test_a_line_that_was_cut_fits(text: str, columns: int) -> None:
    assert tables.width(tables.fit(text, columns)) <= columns


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0s"),
        (0.9, "0s"),
        (59, "59s"),
        (60, "1m00s"),
        (3599, "59m59s"),
        (3600, "1h00m"),
        (86399, "23h59m"),
        (86400, "1d0h"),
        (2 * 86400 + 4 * 3600, "2d4h"),
    ],
)
def test_a_span_shows_its_two_largest_units(seconds: float, text: str) -> None:
    assert tables.span(seconds) == text


def test_ids_are_shown_as_long_as_they_must_be() -> None:
    assert tables.id_length(["0123456789ab", "ffff"]) == 8
    assert tables.id_length(["0123456789ab", "0123456789cd"]) == 11
    assert tables.id_length(["a", "a"]) == 8
    assert tables.id_length([]) == 8


def test_every_word_of_the_tables_is_there_in_both_languages() -> None:
    wanted = [
        *(f"state_seen_{sight}" for sight in ("held", "released", "unknown")),
        *(f"waiter_{state}" for state in ("waiting", "told", "left")),
        *(f"ping_{state}" for state in ("pending", "delivered", "dead")),
        *(f"job_{state}" for state in ("running", "watch", "done", "failed")),
    ]
    assert [key for key in wanted if not all(TEXTS.get(key, ()))] == []
