"""What a detached watcher says is what the service would say (C2, C7.4)."""

import ast
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.lines import outcome_line, title
from policies.model import Ending, Json, Target
from policies.shapes import outcome_ping
from policies.verdict import Rules
from policies.wording import TEXTS, Lang
from tests.watcher.toys import file
from watcher import errand
from watcher.config import Config, Notify
from watcher.engine import Watch
from watcher.errand import Sender, order_of, outcome_from, program, shown
from watcher.hosted import Hosted, for_waiter
from watcher.looked import Looked
from watcher.onhost import words
from watcher.store import WaiterRow

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LISBON = timezone(timedelta(hours=1))
TEXT = st.text(min_size=1, max_size=30)


class Nowhere:
    """Stands where a condition would be: only its target is asked for."""

    settle = True

    def __init__(self, target: Target) -> None:
        self.target = target


def waiter(number: int, label: str = "x", **values: object) -> WaiterRow:
    row = WaiterRow(
        number=number,
        label=label,
        resume=None,
        session="s-1",
        lang="pt",
        ttl_s=3600,
        armed_at=NOW.timestamp(),
        deadline_at=NOW.timestamp() + 3600,
        deadline_boot_s=4600.0,
        boot_id="b",
        takes=False,
        nonce=None,
    )
    return replace(row, **values)  # type: ignore[arg-type]  # a test's own


def hosted(*rows: WaiterRow, kind: str = "file") -> Hosted:
    target = Target(kind=kind, text=f"{kind} /x --host box", label="x", host="box")
    watch = Watch(
        id="a1",
        condition=Nowhere(target),  # type: ignore[arg-type]  # see there
        rules=Rules(armed_s=1000, deadline_s=4600, settle_s=0.25),
        every_s=60,
        ttl_s=3600,
        label="x",
        armed_at=NOW,
        armed_awake_s=0.0,
        memory={"a": 1},
    )
    return Hosted(watch=watch, waiters={r.number: r for r in rows}, last_number=9)


def sender(*, with_url: bool = True) -> Sender:
    return Sender(
        config=Config(notify=Notify(url="http://127.0.0.1:1/")),
        now_s=1000.0,
        now=NOW,
        zone=LISBON,
        with_url=with_url,
    )


def order(what: Hosted) -> dict[str, Any]:
    target = what.watch.condition.target
    looked = Looked(target=target, part=file, spec={"path": "/x"})  # type: ignore[arg-type]  # a toy's plain types
    return {**order_of(what, looked, sender()), "id": "a1"}


def record(ending: str, **values: object) -> dict[str, Any]:
    made: dict[str, Any] = {
        "ending": ending,
        "waiter": 1,
        "ended_at": NOW.timestamp() + 1234.5,
        "result": None,
        "decided": None,
        "reason": None,
        "tail": [],
        "already_clear": False,
        "unknown_since": None,
        "observations": 3,
        "unknown_s": 0.0,
        "evidence": {"means": "toy"},
    }
    return made | values


def said(text: str) -> list[object]:
    return ["said", {"text": text}]


ENDS = [
    record("released"),
    record("released", already_clear=True),
    record("released", result="PASS"),
    record("released", result="FAIL", decided=said("x\x1b[2J {y}")),
    record("released", tail=[said("one"), said("two{}")]),
    record("expired", waiter=2),
    record("expired", waiter=2, unknown_since=NOW.timestamp(), reason=said("a (b)")),
    record("expired", waiter=2, unknown_since=NOW.timestamp() + 1200),
    record("unseen"),
]


@pytest.mark.parametrize("kind", ["file", "process"])
@pytest.mark.parametrize("end", ENDS, ids=range(len(ENDS)))
@pytest.mark.parametrize("lang", ["pt", "en", "xx"])
@given(label=TEXT, resume=TEXT | st.none())
def test_line_title_and_ping_are_those_of_the_service(
    kind: str, end: dict[str, Any], lang: str, label: str, resume: str | None
) -> None:
    if end["ending"] == "released" and kind == "process":
        end = end | {"ending": "ended"}
    rows = [
        waiter(1, label, resume=resume, lang=lang, ttl_s=600),
        waiter(2, f"{label}2", lang="en", deadline_boot_s=9000.0, ttl_s=9000),
    ]
    what = hosted(*rows, kind=kind)
    sent = order(what)
    outcome, number = outcome_from(what, end, LISBON)
    row = what.waiters[number]
    shown_in = Lang(lang) if lang in set(Lang) else Lang.PT
    mine = for_waiter(outcome, row)
    made = words.ping(sent, end)
    assert made["message"] == outcome_line(mine, shown_in, LISBON)
    assert made["title"] == title(mine, shown_in)
    ping = outcome_ping(mine, shown_in, LISBON, waiter=number)
    assert made["idempotency_key"] == ping.idempotency_key
    assert made["severity"] == ping.severity
    assert made["occurred_at"] == ping.occurred_at.isoformat()
    if number == 1:
        assert made["watch"] == ping.watch


def test_it_is_sent_off_with_spans_and_no_secret() -> None:
    sent = order(hosted(waiter(1), waiter(2, deadline_boot_s=9000.0)))
    assert sent["spans"] == {
        "armed_ago_s": 0.0,
        "left_s": 8000.0,
        "settle_s": 0.25,
        "start_within_s": 0.0,
    }
    assert (sent["part"], sent["spec"]) == ("file", {"path": "/x"})
    assert sent["zone_s"] == 3600.0
    assert sent["notify"]["url"] == "http://127.0.0.1:1/"
    assert "key" not in sent
    assert sent["texts"] == {key: pair[0] for key, pair in TEXTS.items()}
    looked = Looked(
        target=Target(kind="file", text="file /x --host box", label="x", host="box"),
        part=file,  # type: ignore[arg-type]  # a toy's plain types
        spec={},
    )
    silent = order_of(hosted(waiter(1)), looked, sender(with_url=False))
    assert silent["notify"] is None


def test_its_shape_changes_with_who_waits() -> None:
    one = errand.shape_of(hosted(waiter(1)))
    assert one == errand.shape_of(hosted(waiter(1)))
    for other in (
        hosted(waiter(1), waiter(2)),
        hosted(waiter(1, deadline_at=1.0)),
        hosted(waiter(1, "y")),
        hosted(waiter(1, resume="r")),
    ):
        assert errand.shape_of(other) != one


def test_an_outcome_is_taken_with_all_that_it_says() -> None:
    end = record(
        "released",
        result="FAIL",
        decided=said("it broke"),
        tail=[said("a")],
        unknown_s=7.0,
    )
    outcome, number = outcome_from(hosted(waiter(1)), end, UTC)
    assert number == 1
    assert (outcome.ending, outcome.result) == (Ending.RELEASED, "FAIL")
    assert outcome.decided is not None
    assert outcome.decided.render(Lang.EN) == "it broke"
    assert [one.render(Lang.EN) for one in outcome.tail] == ["a"]
    assert (outcome.unknown_s, outcome.observations) == (7.0, 3)
    assert outcome.evidence == {"means": "toy"}
    assert outcome.ended_at == NOW + timedelta(seconds=1234.5)


@pytest.mark.parametrize(
    "words_of_another_version",
    [
        {"decided": ["no_such_key", {}], "tail": [["gone", {}]], "reason": "x"},
        {"decided": ["said", {"wrong": "value"}]},
        {"tail": [["said", {}]]},
    ],
)
def test_words_that_are_not_known_here_hide_no_outcome(
    words_of_another_version: dict[str, Json],
) -> None:
    end = record("released", result="PASS", **words_of_another_version)
    outcome, _ = outcome_from(hosted(waiter(1)), end, UTC)
    assert "[PASS]" in outcome_line(outcome, Lang.EN, UTC)


@pytest.mark.parametrize(
    "key", sorted(set(record("released")) - {"result"}), ids=lambda key: key
)
def test_what_lacks_a_field_is_no_outcome(key: str) -> None:
    end = record("released")
    del end[key]
    with pytest.raises((KeyError, TypeError, ValueError)):
        outcome_from(hosted(waiter(1)), end, UTC)


def test_the_program_holds_what_it_needs_and_nothing_else() -> None:
    ast.parse(program(), feature_version=(3, 9))
    modules = program().rpartition("from watcher.onhost.detached import")[0]
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-"],
        input=f"{modules}import watcher.onhost.yard, watcher.onhost.detached\n",
        text=True,
        capture_output=True,
        check=False,
        cwd="/",
    )
    assert ran.returncode == 0, ran.stderr


def test_what_a_host_says_of_a_watch_is_shown_clean() -> None:
    watch: dict[str, Json] = {"target": "file \x1b[2J", "kind": "file", "label": "x"}
    entry: dict[str, Json] = {
        "id": "b1",
        "watch": watch,
        "deadline_at": NOW.timestamp(),
        "ended_at": "soon",
        "alive": True,
    }
    one = shown(entry, "box", mine=False, zone=UTC)
    assert one["target"] == "file \\x1b[2J"
    assert one["deadline"] == "2026-03-01T12:00:00.000+00:00"
    assert (one["ended_at"], one["state"]) == (None, "armed")
    assert shown({"watch": 7}, "box", mine=False, zone=UTC)["target"] is None
