"""Lines and markers, whatever the bytes are and wherever they are cut (C3.4)."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies import logscan
from policies.logscan import (
    LIMIT,
    PRINTED,
    Found,
    Marker,
    Scanned,
    fingerprint,
    for_many_lines,
    line_start,
    matching_lines,
    scan,
)
from tests.policies.samples import ALWAYS

BY_BLOCK = [
    "PASS",
    "^PASS$",
    r"\bPASS\b",
    "(?i)pass",
    "A|P",
    "(P|S)+$",
    "(?:PA)?S",
    "[A-Z]+ ",
    r"[\w.-]+A",
    ".*S",
    "P{2,3}",
    r"1\.0 \[ok\]",
    "^",
    "$",
    "é",
    "^$",
    r"\d\d",
    "A.S",
    "PASS(?! )",
    "PASS(?!$)",
    "S(?!.)",
    r"S(?!\W)",
    r"(?<!\S)P",
    "(?<=A)S",
    "(?<![^A])S",
    r"\APASS",
    r"PASS\Z",
    "[^A]S",
    r"[^\d]S",
    r"P\sA",
    r"S\s*P",
    r"\WP",
    r"\DP",
    "(?P<a>P)A(?P=a)?",
    r"(A)\1",
    "(?>P|PA)S",
    r"[\S]P",
    "(?i:p)A",
]
BY_LINE = [
    "P\nA",
    r"P\nA",
    r"[\s]P",
    r"[^\n]P",
    "[^]A]S",
    "(?s)P.A",
    "(?x)P",
    "(?m)^P",
    "[\x01-z]P",
    r"\x50",
    r"\Bx",
    "(P)?(?(1)A|S)",
    "P{e}",
]


def marker(
    result: str, pattern: str, slow: Callable[[str], bool] = lambda _: False
) -> Marker:
    """Return a marker by `re`; `slow` says for which texts that takes too long."""
    line, many = re.compile(pattern), for_many_lines(pattern)
    block = re.compile(many or "", re.MULTILINE)

    def find(text: str, behind: int) -> tuple[int, int] | None:
        if slow(text):
            raise TimeoutError
        spans = (match.span() for match in line.finditer(text))
        return next((span for span in spans if span[1] > behind), None)

    def seek(text: str) -> bool:
        if slow(text):
            raise TimeoutError
        return block.search(text) is not None

    return Marker(result, find, seek if many else None)


PASS, FAIL = marker("PASS", "PASS"), marker("FAIL", "FAIL")
BOTH = [FAIL, PASS]


@contextmanager
def lines_of_at_most(limit: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logscan, "LIMIT", limit)
        yield


def naive(data: bytes, patterns: dict[str, str], limit: int) -> Found | None:
    """Go line by line, over a file that nothing follows."""
    offset = 0
    for raw in data.split(b"\n"):
        line = raw.lstrip(b"\0")
        begin = offset + len(raw) - len(line)
        offset += len(raw) + 1
        if offset > len(data) + 1 or (offset == len(data) + 1 and not line):
            return None
        whole = line.removesuffix(b"\r") if len(line) <= limit else line[:limit]
        text = whole.decode("utf-8", "surrogateescape")
        text += "…" if len(line) > limit else ""
        matches = {r: re.search(p, text) for r, p in patterns.items()}
        found = {r: match.start() for r, match in matches.items() if match}
        if found:
            result = min(found, key=lambda r: (found[r], r))
            shown = text.encode("utf-8", "surrogateescape")
            return Found(result, begin, shown.decode("utf-8", "backslashreplace"))
    return None


@pytest.mark.parametrize("pattern", BY_BLOCK)
def test_an_expression_is_looked_for_in_many_lines_at_once(pattern: str) -> None:
    assert for_many_lines(pattern)


@pytest.mark.parametrize("pattern", BY_LINE)
def test_one_that_may_ask_for_a_line_end_goes_line_by_line(pattern: str) -> None:
    assert for_many_lines(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "many"),
    [
        (r"^a.b$", r"^a.b$"),
        (r"a\s+b", r"a[^\S\n]+b"),
        (r"\A[^ x]\W\D\Z", r"^[^\n x][^\w\n][^\d\n]$"),
    ],
)
def test_what_would_match_a_line_end_is_written_otherwise(
    pattern: str, many: str
) -> None:
    assert for_many_lines(pattern) == many


logs = st.lists(
    st.sampled_from(
        [
            *(b"PASS FAIL A S P 12".split()),
            b" ",
            b"\n",
            b"\n",
            b"\r\n",
            b"\r",
            b"\0",
            b"\0\0\0",
            b"\xca\xfe",
            "é".encode(),
            b"\xc3",
            b"1.0 [ok]",
        ]
    ),
    max_size=30,
).map(b"".join)


@ALWAYS
@given(
    data=logs,
    cuts=st.lists(st.integers(0, 60), max_size=6),
    fail=st.sampled_from(BY_BLOCK + BY_LINE),
    good=st.sampled_from(BY_BLOCK + BY_LINE),
    limit=st.sampled_from([1, 2, 5, 12, 1000]),
)
def test_bytes_cut_anywhere_are_decided_as_line_by_line(
    data: bytes, cuts: list[int], fail: str, good: str, limit: int
) -> None:
    """What a reader reads again and again decides as if it had read all at once."""
    markers = [marker("FAIL", fail), marker("PASS", good)]
    ends = [*sorted({min(cut, len(data)) for cut in cuts}), len(data)]
    offset, skips, found = 0, False, None
    with lines_of_at_most(limit):
        for number, end in enumerate(ends, 1):
            final = number == len(ends)
            part = data[offset:end]
            seen = scan(part, offset, markers, skips=skips, final=final)
            offset, skips, found = offset + seen.done, seen.skips, seen.found
            assert not seen.slow
            if found is not None:
                break
    assert found == naive(data, {"FAIL": fail, "PASS": good}, limit)
    assert found is not None or offset == len(data)


def compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, RecursionError):
        return False
    return True


TOKENS = (
    *("P", "A", ".", "^", "$", "|", "*", "+", "?", "(", "(", ")", ")", " ", "{0,2}"),
    *(r"\b", r"\s", r"\S", r"\W", r"\D", r"\A", r"\Z", "[^A]", r"[^\s]", "[PA]"),
    *("(?:", "(?!", "(?=", "(?<!", "(?<="),
)
expressions = st.lists(st.sampled_from(TOKENS), min_size=1, max_size=9).map("".join)


@ALWAYS
@given(pattern=expressions, lines=st.lists(st.text("PA x", max_size=4), max_size=4))
def test_what_is_found_in_no_block_is_found_in_none_of_its_lines(
    pattern: str, lines: list[str]
) -> None:
    if not compiles(pattern):
        return
    many = for_many_lines(pattern)
    assert many is not None
    if re.search(many, "\n".join(lines) + "\n", re.MULTILINE) is None:
        assert not any(re.search(pattern, line) for line in lines)


@pytest.mark.parametrize(
    ("data", "result", "offset"),
    [
        (b"a\nPASS\nFAIL\n", "PASS", 2),
        (b"a\nFAIL\nPASS\n", "FAIL", 2),
        (b"x PASS FAIL\n", "PASS", 0),
        (b"x FAIL PASS\n", "FAIL", 0),
        (b"\0\0\0\nPA\0\0PASS\r\n", "PASS", 4),
        (b"\0\0\0\0PASS\n", "PASS", 4),
    ],
)
def test_the_first_marker_in_file_order_decides(
    data: bytes, result: str, offset: int
) -> None:
    found = scan(data, 100, BOTH).found
    assert found is not None
    assert (found.result, found.offset) == (result, 100 + offset)


def test_at_one_place_a_failure_decides() -> None:
    found = scan(b"x\n", 0, [marker("FAIL", "x"), marker("PASS", ".")]).found
    assert found is not None
    assert found.result == "FAIL"


def test_half_a_line_decides_nothing_until_nothing_follows() -> None:
    assert scan(b"a\nPASS", 0, BOTH) == Scanned(2)
    assert scan(b"a\nPASS", 0, BOTH, final=True).found == Found("PASS", 2, "PASS")
    assert scan(b"a\n", 0, BOTH, final=True) == Scanned(2)


def test_a_line_that_ends_in_crlf_ends_there_for_an_anchor() -> None:
    markers = [marker("PASS", "^PASS$")]
    for piece in (b"x\r\nPASS\r\n", b"\0\r\nPASS\r\n"):
        found = scan(piece, 0, markers).found
        assert found is not None
        assert found.line == "PASS"


def test_the_beginning_of_an_endless_line_decides_and_its_rest_is_skipped() -> None:
    first = scan(b"x" * (LIMIT - 3) + b"PASS", 0, BOTH)
    assert first == Scanned(LIMIT + 1, skips=True)
    assert scan(b"PASS" * 99, 7, BOTH, skips=True) == Scanned(396, skips=True)
    rest = scan(b"PASS\nb\nPASS\n", 7, BOTH, skips=True)
    assert rest.found == Found("PASS", 14, "PASS")
    assert scan(b"PASS" + b"x" * LIMIT, 0, BOTH).found is not None


def test_a_line_that_is_cut_at_the_limit_does_not_end_there() -> None:
    data = b"x" * (LIMIT - 4) + b"FAIL" + b"OVER\n"
    assert scan(data, 0, [marker("FAIL", "FAIL$")]).found is None
    assert scan(data, 0, [marker("FAIL", "FAIL")]).found is not None
    whole = b"x" * (LIMIT - 4) + b"FAIL\n"
    assert scan(whole, 0, [marker("FAIL", "FAIL$")]).found is not None


@pytest.mark.parametrize(
    ("line", "fresh", "decides"),
    [
        (b"PASS\n", 4, False),  # all of it stood there at arming
        (b"PASS\n", 3, True),
        (b"PASS PASS\n", 4, True),
        (b"\xc3\xa9PASS\n", 6, False),
        (b"old\nPASS\n", 3, True),
    ],
)
def test_what_stood_in_an_unfinished_line_before_the_watch_does_not_count(
    line: bytes, fresh: int, decides: bool
) -> None:
    seen = scan(line, 10, [PASS], fresh=10 + fresh)
    assert (seen.found is not None) is decides


def test_an_expression_that_is_too_slow_leaves_what_was_done_before_it() -> None:
    slow = marker("PASS", "PASS", lambda text: "slow" in text)
    assert scan(b"slow\n", 0, [slow]) == Scanned(0, slow=True)
    assert scan(b"a\nb\nslow\nPASS\n", 0, [slow]) == Scanned(4, slow=True)
    assert scan(b"a\nslow", 0, [slow], final=True) == Scanned(2, slow=True)


def test_one_that_is_too_slow_for_many_lines_goes_line_by_line() -> None:
    slow = marker("PASS", "PASS", lambda text: "\n" in text)
    found = scan(b"a\nb\nPASS\n", 0, [slow]).found
    assert found == Found("PASS", 4, "PASS")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"PASS \xca\xfe", "PASS \\xca\\xfe"),
        (b"PASS \xc3\xa9", "PASS é"),
        (b"PASS" + b"x" * 300, "PASS" + "x" * 196 + "…"),
        (b"x" * 300 + b"PASS" + b"y" * 300, "…" + "x" * 40 + "PASS" + "y" * 156 + "…"),
        (b"x" * 300 + b"PASS", "…" + "x" * 40 + "PASS"),
    ],
)
def test_a_line_is_kept_so_that_it_can_be_shown(line: bytes, shown: str) -> None:
    found = scan(line + b"\n", 0, [PASS]).found
    assert found is not None
    assert found.line == shown


def test_whoever_tries_an_expression_sees_the_last_lines_that_match() -> None:
    data = b"+ echo PASS\n\0PASSWORD=1\nx\n\nFAIL\nPASS"
    assert matching_lines(data, 100, BOTH, 3) == [
        Found("PASS", 113, "PASSWORD=1"),
        Found("FAIL", 127, "FAIL"),
        Found("PASS", 132, "PASS"),
    ]


@pytest.mark.parametrize(
    ("tail", "size", "begin"),
    [
        (b"", 0, (0, False)),
        (b"a\nb\n", 4, (4, False)),
        (b"a\nbc", 104, (102, False)),
        (b"abc", 3, (0, False)),
        (b"a\n\0\0", 4, (4, False)),
        (b"\0" * (LIMIT + 9), 1 << 40, (1 << 40, False)),
        (b"x" * (LIMIT + 1), 1 << 40, (1 << 40, True)),
        (b"\n" + b"x" * LIMIT, LIMIT + 1, (1, False)),
    ],
)
def test_a_file_is_taken_up_where_its_last_line_begins(
    tail: bytes, size: int, begin: tuple[int, bool]
) -> None:
    assert line_start(tail, size) == begin


def test_a_fingerprint_is_of_the_last_bytes_only() -> None:
    assert fingerprint(b"") == ""
    assert fingerprint(b"a") != fingerprint(b"b")
    assert fingerprint(b"a" + b"x" * PRINTED) == fingerprint(b"b" + b"x" * PRINTED)
