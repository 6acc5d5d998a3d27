"""What ps(1) prints, and how much CPU processes have used."""

from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.proctable import (
    PS_FIELDS,
    UNKNOWN_START,
    Row,
    below,
    cpu_ticks,
    is_watch,
    parse_ps,
    row_of,
    used_by,
)

DATA = Path(__file__).parent.parent / "data" / "ps"


def shown(system: str) -> dict[int, tuple[Row, int]]:
    rows = parse_ps((DATA / f"{system}.txt").read_text("utf-8"))
    return {row.pid: (row, used) for row, used in rows}


def at(text: str) -> int:
    return int(datetime.fromisoformat(f"{text}+00:00").timestamp())


def test_the_rows_of_a_mac_are_read() -> None:
    rows = shown("macos")
    assert len(rows) == 8
    row, used = rows[60100]
    assert (row.ppid, row.state) == (1, "R")
    assert row.start == at("2026-11-30T22:15:59")
    assert row.command == r"python3 soak.py --name a\012b"
    assert used == (103 * 60 + 7) * 100 + 91
    assert rows[60107][0].finished
    assert not row.finished


def test_the_rows_of_a_freebsd_are_read() -> None:
    rows = shown("freebsd")
    assert len(rows) == 8
    assert rows[11][1] == ((9 * 24 + 2) * 3600 + 3 * 60 + 4) * 100 + 5
    assert rows[9200][1] == (3600 + 2 * 60 + 3) * 100 + 50
    assert rows[9201][0].start == UNKNOWN_START
    assert rows[9201][0].finished
    assert rows[801][0].command.endswith("startups (sshd)")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param((DATA / "busybox.txt").read_text("utf-8"), id="other fields"),
        pytest.param("  PID  PPID S TIME STARTED COMMAND\n", id="a heading"),
        pytest.param("1 0 S 0:00.01 Mon Foo 23 08:00:01 2026 x\n", id="no month"),
        pytest.param("1 0 S 1 Mon Nov 23 08:00:01 2026 x\n", id="no time"),
        pytest.param("1 0 S 0:01 Mon Nov 31 08:00:01 2026 x\n", id="no day"),
        pytest.param("half a l", id="cut short"),
    ],
)
def test_a_line_that_is_none_of_it_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever says that it is none
        parse_ps("1 0 S 0:00.01 Mon Nov 23 08:00:01 2026 init\n" + text)


def test_a_command_line_may_be_empty_and_lines_too() -> None:
    text = "1 0 S 00:00:01 Mon Nov 23 08:00:01 2026\n\n"
    ((row, used),) = parse_ps(text)
    assert row.argv == ("[]",)
    assert used == 100


def test_each_field_that_is_asked_for_is_there() -> None:
    assert PS_FIELDS == ("pid", "ppid", "state", "time", "lstart", "args")


@given(st.text(max_size=200))
def test_any_other_text_is_read_or_refused(text: str) -> None:
    try:
        rows = parse_ps(text)
    except ValueError:
        return
    assert len(rows) == sum(bool(line.strip()) for line in text.splitlines())


def test_cpu_counts_children_that_have_ended_too() -> None:
    text = "7 (a) b) S 1 1 1 0 -1 0 0 0 0 0 10 20 3 4 20 0 1 0 4711 0 0"
    assert cpu_ticks(text) == 37


@pytest.mark.parametrize(
    "text", ["", "7 (x) S 1 1", "7 (x) S 1 1 1 0 -1 0 0 0 0 0 a b c d"]
)
def test_what_is_no_stat_tells_no_cpu(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever says that it is none
        cpu_ticks(text)


def test_a_row_survives_json() -> None:
    row = Row(7, 1, 99, "S", 2, 64, ("a", "b c"), readable=False)
    assert row_of([*row[:6], list(row.argv), row.readable]) == row


@pytest.mark.parametrize("values", [[], [1, 2], [1, 2, 3, "S", 1, 0, None, True], None])
def test_what_is_no_row_is_refused(values: list[object]) -> None:
    with pytest.raises((TypeError, ValueError)):
        row_of(values)


TREE = [(1, 0, 5), (10, 1, 7), (11, 10, 30), (12, 11, 100), (20, 1, 1000), (9, 9, 2)]


@pytest.mark.parametrize(
    ("pids", "used"),
    [
        ([10], 137),
        ([11], 130),
        ([10, 11], 137),
        ([12, 20], 1100),
        ([1], 1142),
        ([9], 2),
        ([4711], None),
        ([], None),
    ],
)
def test_a_process_uses_what_those_below_it_use(
    pids: list[int], used: int | None
) -> None:
    assert used_by(pids, TREE) == used


def test_those_below_a_process_are_found_and_a_circle_ends() -> None:
    pairs = [(1, 0), (10, 1), (11, 10), (12, 11), (20, 1), (30, 31), (31, 30)]
    rows = {pid: Row(pid, ppid, 0, "S") for pid, ppid in pairs}
    assert below(10, rows) == {11, 12}
    assert below(30, rows) == {31}
    assert below(99, rows) == set()


@pytest.mark.parametrize(
    "argv",
    [
        ("python3", "-I", "-S", "-c", "exec(koder-monitor-detached)"),
        ("python3", "/home/ana/.cache/koder-monitor-detached/4711.py"),
        ("sh", "koder-monitor-detached-4711"),
    ],
)
def test_a_detached_watcher_is_ours(argv: tuple[str, ...]) -> None:
    assert is_watch(argv)
