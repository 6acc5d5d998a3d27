"""What the commands say of detached watches (C7.3, C7.4)."""

import argparse
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from policies.codec import phrase_record
from policies.model import Json, Target
from policies.wording import Lang, Phrase, phrase
from watcher.cli import lifecycle, watch
from watcher.cli import list as listing
from watcher.cli.common import Order
from watcher.config import Config
from watcher.errors import UsageError


def entry(**values: Json) -> Mapping[str, Json]:
    deadline = datetime.now(UTC) + timedelta(hours=1, minutes=30)
    made: dict[str, Json] = {
        "id": "a1b2c3d4e5f6",
        "target": "process --pid 1 --host box",
        "label": "PID 1",
        "state": "armed",
        "observation": "held",
        "result": None,
        "deadline": deadline.isoformat(),
        "mine": True,
        "alive": True,
    }
    return made | values


def call(
    monkeypatch: pytest.MonkeyPatch,
    watches: list[Mapping[str, Json]],
    why: Phrase | None = None,
    **options: object,
) -> int:
    monkeypatch.setattr(lifecycle, "detached_on", lambda host: (watches, why))
    given = {"host": "box", "lang": "en", "json": False, "watch": False, "all": False}
    return listing.run(argparse.Namespace(**given | options))


def test_the_table_says_whose_and_whether_alive(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    watches = [
        entry(),
        entry(id="b" * 12, mine=False, observation=None, deadline=None, label=None),
        entry(id="c" * 12, state="ended", result="FAIL", alive=False, target=None),
        entry(id="d" * 12, alive=None),
    ]
    assert call(monkeypatch, watches) == 0
    out, err = capfd.readouterr()
    rows = [line.split("  ") for line in out.splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert cells[0] == ["ID", "TARGET", "STATE", "LEFT", "ALIVE", "WHOSE", "LABEL"]
    assert cells[1][0] == "a1b2c3d4"
    assert cells[1][2] == "held"
    assert cells[1][3].startswith("1:2")
    assert cells[1][4:] == ["yes", "ours", "PID 1"]
    assert cells[2][2:] == ["unknown", "-", "yes", "another", "-"]
    assert cells[3][1:] == ["-", "ended [FAIL]", "-", "no", "ours", "PID 1"]
    assert cells[4][4] == "?"
    assert err == ""


def test_without_contact_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    why = phrase("host_silent", host="box")
    assert call(monkeypatch, [entry(alive=None)], why, json=True) == 0
    out, err = capfd.readouterr()
    assert [one["id"] for one in json.loads(out)] == ["a1b2c3d4e5f6"]
    assert err.startswith("no contact with box (")
    assert call(monkeypatch, [], why) == 0
    assert "nothing" not in capfd.readouterr().err


def test_where_nothing_is_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, []) == 0
    assert capfd.readouterr() == ("", "nothing is detached on box\n")


def test_a_live_table_is_of_what_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="host_not_live"):
        call(monkeypatch, [], watch=True)


class FakeClient:
    """Answers an arming as a service does."""

    bodies: list[Mapping[str, object]]

    def __init__(self, state: str) -> None:
        self.state = state

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        limit_s: float = 0.0,
    ) -> tuple[int, Json]:
        if body is None:
            return 200, {"outcome": None}
        FakeClient.bodies.append(body)
        notes = [phrase_record(phrase("detached_unknown", host="box"))]
        answer: dict[str, Json] = {"id": "a1", "waiter": 1, "differs": []}
        return 201, answer | ({"notes": notes} if body["detach"] else {})


@pytest.mark.parametrize("host", ["box", None])
def test_detach_says_the_id_and_how_it_lives_and_ends(
    host: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    FakeClient.bodies = []
    monkeypatch.setattr(watch, "Client", FakeClient)
    order = Order(
        ttl_s=60,
        every_s=60,
        raised=None,
        label=None,
        resume=None,
        session=None,
        detach=True,
        json=False,
        exit_codes=False,
        lang=Lang.EN,
    )
    target = Target(kind="process", text="process --pid 1", label="PID 1", host=host)
    waiting = watch.Waiting(
        target, order, Config(), start_within_s=0, takes=False, cwd="/"
    )
    assert waiting.run() == 0
    assert FakeClient.bodies[0]["detach"] == (host is not None)
    out, err = capfd.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[1] == "id: a1"
    assert len(lines) == (3 if host else 2)
    assert all("survives logout is not known" in line for line in lines[2:])
