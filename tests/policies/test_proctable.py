"""The process table, and who in it carries a pattern only because he waits (C3.3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.proctable import (
    Row,
    hides_processes,
    is_watch,
    lineage,
    matching,
    own_side,
    parse_stat,
)
from tests.policies.samples import ALWAYS

PF_KTHREAD = 0x00200000


def stat_of(name: str, *, state: str = "S", threads: int = 1, flags: int = 0) -> str:
    zeros = " 0" * 8
    return (
        f"42 ({name}) {state} 7 42 42 0 -1 {flags}{zeros} 20 0 {threads} 0 987654 0 0\n"
    )


@pytest.mark.parametrize(
    "name",
    [
        "sleep",
        "a b",
        "a) R 1 (b",
        "(sd-pam)",
        "x\ny",
        "",
        "averyveryverylo",
        "é",
        ") S",
    ],
)
def test_a_stat_is_read_whatever_the_name_holds(name: str) -> None:
    assert parse_stat(stat_of(name)) == Row(
        pid=42, ppid=7, start=987654, state="S", argv=(f"[{name}]",)
    )


def test_the_oldest_stat_has_all_that_is_read() -> None:
    assert parse_stat("42 (a) S" + " 7" * 19).start == 7


@pytest.mark.parametrize(
    "text",
    [
        "",
        "42",
        "42 (a) S" + " 7" * 18,
        ")",
        "42 (a",
        "42 (a) S 7",
        "x (a) S 7" + " 0" * 30,
        "42 (a) S" + " x" * 30,
        stat_of("a").replace(" 0 987654 0 0", ""),
    ],
)
def test_a_stat_that_was_cut_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - its text is that of the file
        parse_stat(text)


numbers = st.lists(st.integers(-9, 10**20).map(str) | st.text(max_size=2), max_size=24)


@ALWAYS
@given(st.text() | numbers.map(lambda words: f"42 (a) S {' '.join(words)}"))
def test_a_stat_is_read_or_a_value_error(text: str) -> None:
    try:
        row = parse_stat(text)
    except ValueError:
        return
    fields = text.rpartition(")")[2].split()
    assert row == Row(
        pid=42,
        ppid=int(fields[1]),
        start=int(fields[19]),
        state="S",
        threads=int(fields[17]),
        flags=int(fields[6]),
        argv=("[a]",),
    )


@pytest.mark.parametrize(
    ("state", "threads", "finished"),
    [
        pytest.param("R", 1, False, id="running"),
        pytest.param("S", 1, False, id="sleeping"),
        pytest.param("D", 1, False, id="waits-for-a-disk"),
        pytest.param("T", 1, False, id="stopped"),
        pytest.param("Z", 1, True, id="B28-zombie"),
        pytest.param("X", 0, True, id="B28-dead"),
        pytest.param("x", 1, True, id="B28-dead-of-old"),
        pytest.param("Z", 3, False, id="its-other-threads-still-run"),
    ],
)
def test_a_zombie_has_ended(
    state: str,
    threads: int,
    finished: bool,
) -> None:
    row = parse_stat(stat_of("a", state=state, threads=threads))
    assert row.finished is finished
    assert bool(matching({42: row}, (), lambda _: True)) is not finished


def test_a_kernel_thread_is_told_from_a_program_b36() -> None:
    assert parse_stat(stat_of("kworker/0:1", flags=PF_KTHREAD | 0x40)).kernel_thread
    assert not parse_stat(stat_of("sleep", flags=0x00400001)).kernel_thread


def test_a_command_is_the_whole_command_line_b34() -> None:
    long = "./averyveryverylongname-worker"
    row = Row(pid=1, ppid=0, start=1, state="S", argv=(long, "60"))
    assert row.command == f"{long} 60"
    assert matching({1: row}, (), lambda command: "longname-worker 6" in command) == [
        row
    ]


@pytest.mark.parametrize(
    "argv",
    [
        ("koder-monitor", "lock", "a"),
        ("/usr/bin/koder-monitor",),
        ("/v/bin/python3.11", "/v/bin/koder-monitor", "process", "--match", "x"),
        (
            "python",
            "-u",
            "-X",
            "dev",
            "-W",
            "error",
            "/v/bin/koder-monitor",
            "lock",
            "a",
        ),
        ("pypy3", "-I", "-m", "watcher", "process", "--match", "x"),
        ("python3", "--check-hash-based-pycs", "never", "-m", "watcher"),
    ],
    ids=" ".join,
)
def test_a_watch_is_known_by_its_command_line(argv: tuple[str, ...]) -> None:
    assert is_watch(argv)


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("",),
        ("bash", "-c", "koder-monitor process --match x"),
        ("vim", "/src/koder-monitor"),
        ("python3",),
        ("python3", "-m"),
        ("python3", "-X"),
        ("python3", "-m", "pytest", "-m", "watcher"),
        ("python3", "train.py", "-m", "watcher"),
        ("python3", "train.py", "/v/bin/koder-monitor"),
        ("python3", "-c", "pass", "koder-monitor"),
        ("koder-monitor-build",),
    ],
    ids=str,
)
def test_other_work_is_no_watch(argv: tuple[str, ...]) -> None:
    assert not is_watch(argv)


def table(*rows: tuple[int, int, str]) -> dict[int, Row]:
    return {
        pid: Row(pid=pid, ppid=ppid, start=pid, state="S", argv=tuple(command.split()))
        for pid, ppid, command in rows
    }


def test_a_line_goes_up_to_the_first_process() -> None:
    rows = table((1, 0, "init"), (10, 1, "bash"), (20, 10, "python3"), (30, 1, "cron"))
    assert lineage(20, rows) == {20, 10, 1}
    assert lineage(99, rows) == set()


def test_a_line_that_runs_in_a_circle_ends() -> None:
    rows = table((10, 20, "a"), (20, 10, "b"), (30, 30, "c"))
    assert lineage(10, rows) == {10, 20}
    assert lineage(30, rows) == {30}


WAIT = "koder-monitor process --match job77"


@pytest.mark.parametrize(
    ("rows", "launchers", "found"),
    [
        pytest.param(
            table((1, 0, "init"), (5, 1, f"bash -c {WAIT}"), (6, 5, f"python {WAIT}")),
            {1, 5, 6},
            [],
            id="B24-itself-and-the-shell-that-launched-it",
        ),
        pytest.param(
            table((5, 1, "bash job77.sh"), (6, 5, "bash job77.sh"), (7, 6, WAIT)),
            {5, 7},
            [],
            id="a-subshell-of-its-launcher",
        ),
        pytest.param(
            table(
                (5, 1, "bash job77.sh"),
                (6, 5, "bash job77.sh"),
                (8, 6, "bash job77.sh"),
            ),
            {5},
            [],
            id="a-subshell-of-a-subshell",
        ),
        pytest.param(
            table((5, 1, "bash w.sh"), (6, 5, "job77 --all"), (7, 5, WAIT)),
            {5, 7},
            [6],
            id="a-child-of-its-launcher-with-a-command-line-of-its-own",
        ),
        pytest.param(
            table((8, 1, f"sh -c {WAIT}"), (9, 8, WAIT), (10, 1, "job77")),
            set(),
            [10],
            id="B24-another-watch-and-its-shell",
        ),
        pytest.param(
            table((8, 1, "make job77"), (9, 8, "koder-monitor lock a")),
            set(),
            [8],
            id="work-that-only-launched-a-watch",
        ),
        pytest.param(
            table((8, 1, f"sh -c {WAIT}"), (9, 8, "sleep 5")),
            set(),
            [8],
            id="a-shell-that-names-it-but-runs-no-watch",
        ),
        pytest.param(
            table((10, 1, "job77")), {4, 5}, [10], id="launchers-that-are-gone"
        ),
        pytest.param(
            table((10, 1, "job77"), (11, 1, "job77"), (12, 1, "other")),
            set(),
            [10, 11],
            id="all-that-match",
        ),
    ],
)
def test_a_pattern_never_matches_those_who_wait_for_it(
    rows: dict[int, Row], launchers: set[int], found: list[int]
) -> None:
    own = own_side(rows, launchers)
    matches = matching(rows, own, lambda command: "job77" in command)
    assert [row.pid for row in matches] == found


commands = st.sampled_from(
    [
        "job77",
        WAIT,
        f"bash -c {WAIT}",
        f"/v/bin/python3 /v/bin/{WAIT}",
        "bash run.sh",
        "",
    ]
)


@ALWAYS
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12), commands)),
    st.sets(st.integers(0, 12)),
)
def test_no_table_lets_the_monitor_match_itself(
    drawn: list[tuple[int, int, str]], launchers: set[int]
) -> None:
    rows = table(*drawn)
    own = own_side(rows, launchers)
    assert launchers & rows.keys() <= own <= rows.keys()
    found = {row.pid for row in matching(rows, own, lambda _: True)}
    assert found == rows.keys() - own
    assert not any(is_watch(rows[pid].argv) for pid in found)


def mounted(options: str, *, at: str = "/proc", kind: str = "proc") -> str:
    return f"22 1 0:20 / {at} rw,nosuid shared:5 - {kind} {kind} rw{options}"


@pytest.mark.parametrize(
    ("mounts", "uid", "gids", "hides"),
    [
        pytest.param([mounted("")], 1000, {1000}, False, id="nothing-set"),
        pytest.param([mounted(",hidepid=2")], 1000, {1000}, True, id="B30-hidepid-2"),
        pytest.param([mounted(",hidepid=1")], 1000, {1000}, True, id="B30-hidepid-1"),
        pytest.param(
            [mounted(",hidepid=invisible")], 1000, {1000}, True, id="B30-by-its-word"
        ),
        pytest.param([mounted(",hidepid=0")], 1000, {1000}, False, id="switched-off"),
        pytest.param([mounted(",hidepid=off")], 1000, {1000}, False, id="off-by-word"),
        pytest.param([mounted(",hidepid=2")], 0, {26}, False, id="B30-root-sees-all"),
        pytest.param(
            ["22 1 0:20 / /proc - proc proc rw,hidepid=2"],
            1000,
            {1000},
            True,
            id="B30-without-mount-options",
        ),
        pytest.param(
            [mounted(",hidepid=2")], 65533, {0}, False, id="B30-group-0-exempt"
        ),
        pytest.param(
            [mounted(",gid=26,hidepid=2")], 1000, {26}, False, id="the-group-exempt"
        ),
        pytest.param(
            [mounted(",gid=26,hidepid=2")], 1000, {0}, True, id="then-not-group-0"
        ),
        pytest.param(
            [mounted(",hidepid=2", at="/jail/proc")],
            1000,
            {1000},
            False,
            id="elsewhere",
        ),
        pytest.param(
            [mounted(",hidepid=2", kind="tmpfs")], 1000, {1000}, False, id="no-proc"
        ),
        pytest.param(
            [mounted(",hidepid=2"), mounted("")],
            1000,
            {1000},
            False,
            id="covered-by-one",
        ),
        pytest.param(
            [mounted(""), mounted(",hidepid=2")], 1000, {1000}, True, id="covering-one"
        ),
        pytest.param(
            ["", "nonsense", "1 2 3 4 - proc p hidepid=2"],
            1000,
            {1000},
            False,
            id="odd-lines",
        ),
    ],
)
def test_a_proc_that_hides_processes_is_known(
    mounts: list[str],
    uid: int,
    gids: set[int],
    hides: bool,
) -> None:
    assert hides_processes(mounts, uid, gids) is hides


def test_what_looks_on_a_host_never_matches_nor_the_session_that_carries_it() -> None:
    agent = ("python3", "-I", "-S", "-c", "import os", "341", "koder-monitor-agent")
    titles = {
        1: ("sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups",),
        2: ("sshd: ana [priv]",),
        3: ("sshd: ana@notty",),
        4: agent,
        5: ("sshd: eve@notty",),
        6: ("/bin/sh", "-s", "koder-monitor-agent"),
    }
    parents = {1: 0, 2: 1, 3: 2, 4: 3, 5: 1, 6: 5}
    rows = {
        pid: Row(pid=pid, ppid=parents[pid], start=pid, state="S", argv=argv)
        for pid, argv in titles.items()
    }
    assert own_side(rows, ()) == {2, 3, 4, 5, 6}
