"""`koder-monitor report`: the history as one file, or as JSON (C10.1)."""

import json
import time

import pytest

from tests.e2e.command import Place
from tests.rows import add_watch, opened


def filled(place: Place) -> None:
    store, now = opened(place.state), time.time()
    add_watch(
        store, "a1", at=now - 60, label="api <b>", state="released", ended_at=now - 1
    )
    store.close()


def test_it_writes_one_page_to_stdout(place: Place) -> None:
    filled(place)
    ended = place.run("report", "--lang", "en", "--days", "7")
    assert (ended.status, ended.err) == (0, ())
    assert ended.out.startswith("<!DOCTYPE html>")
    assert ended.out.count("</html>") == 1
    assert "koder-monitor: 7 days until " in ended.out
    assert "api &lt;b&gt;" in ended.out


def test_it_writes_a_file_for_its_owner_only_and_says_where(place: Place) -> None:
    filled(place)
    path = place.folder / "report.html"
    path.write_text("the one before")
    ended = place.run("report", "--output", str(path))
    assert (ended.status, ended.out) == (0, "")
    assert str(path) in ended.err[0]
    assert path.read_text("utf-8").endswith("</html>\n")
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in place.folder.glob("report*")] == ["report.html"]


def test_as_json_it_says_the_same_in_numbers(place: Place) -> None:
    filled(place)
    shape = json.loads(place.run("report", "--json").line)
    assert shape["days"] == len(shape["history"]["days"]) == 30
    assert shape["history"]["endings"] == {"released": 1}
    assert [watch["label"] for watch in shape["ended"]] == ["api <b>"]


def test_without_a_store_there_is_nothing_to_say(place: Place) -> None:
    shape = json.loads(place.run("report", "--json", "--days", "1").line)
    assert shape["ended"] == []
    assert [day["hours"] for day in shape["history"]["days"]] == [0.0]
    assert not place.state.exists()


@pytest.mark.parametrize("days", ["0", "367", "-1", "x", "1.5", "٣", "99999999"])
def test_what_is_no_number_of_days_is_a_usage_error(days: str, place: Place) -> None:
    ended = place.run("report", f"--days={days}")
    assert (ended.status, ended.out) == (2, "")
    assert "366" in ended.err[0]


def test_where_it_cannot_be_written_it_says_so_and_leaves_nothing(
    place: Place,
) -> None:
    for path in (place.folder / "no" / "r.html", place.folder):
        ended = place.run("report", "--output", str(path))
        assert (ended.status, len(ended.err)) == (2, 1)
        assert str(path) in ended.err[0]
    assert not list(place.folder.glob("*.new"))
    assert not list(place.folder.parent.glob("*.new"))
