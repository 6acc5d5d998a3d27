"""Addresses and groups of targets: their one canonical text (C1.4)."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.model import Target
from policies.target import (
    ANY_SUCCESS,
    canonical_status,
    canonical_url,
    http_target,
    lock_target,
    match_target,
    wait_target,
)
from tests.policies.samples import ALWAYS

ADDRESSES = st.builds(
    "{}://{}{}{}".format,
    st.sampled_from(["http", "HTTPS"]),
    st.sampled_from(["a", "Example.ORG", "127.0.0.1", "[::1]", "é.com"]),
    st.sampled_from(["", ":", ":80", ":443", ":8080"]),
    st.text(st.sampled_from("/?#=&%aZ.-"), max_size=12).map(lambda text: "/" + text),
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("http://a", "http://a/"),
        ("HTTP://Example.ORG:80/A?B#C", "http://example.org/A?B"),
        ("https://[::1]:443", "https://[::1]/"),
        ("https://a:80/", "https://a:80/"),
        ("http://a:/x", "http://a/x"),
        ("http://a?x", "http://a/?x"),
        ("http://A..b_c/%20", "http://a..b_c/%20"),
    ],
)
def test_an_address_has_one_form(text: str, canonical: str) -> None:
    assert canonical_url(text) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "//a/",
        "ftp://a/",
        "file:///etc/passwd",
        "http:///x",
        "http://u:p@a/",
        "http://@a/",
        "http://a:0/",
        "http://a:65536/",
        "http://a:x/",
        "http://a b/",
        "http://a/b c",
        "http://a\n/",
        "http://a/\x1b[2J",
        "http://a/\u202e",
        "http://a\udcff/",
        "http://[::1",
        "http://[fe80::1%25lo]/",
        "http://a;b/",
        "http://a/" + "x" * 4096,
    ],
)
def test_what_is_no_address_to_look_at_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whoever refuses it
        canonical_url(text)


@ALWAYS
@given(ADDRESSES)
def test_the_form_of_an_address_is_its_own(text: str) -> None:
    once = canonical_url(text)
    assert canonical_url(once) == once
    assert "#" not in once


@ALWAYS
@given(st.text())
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        found = canonical_url(text)
    except ValueError:
        return
    assert canonical_url(found) == found


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("200", "200"), ("599", "599"), ("2xx", "2xx"), ("4XX", "4xx")],
)
def test_a_status_is_a_code_or_a_class(text: str, canonical: str) -> None:
    assert canonical_status(text) == canonical


@pytest.mark.parametrize(
    "text", ["", "1xx", "100", "600", "20", "2000", "2x", "xxx", "²00", "200\n"]
)
def test_what_is_no_status_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whoever refuses it
        canonical_status(text)


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (ANY_SUCCESS, None, "http http://a/"),
        ("404", None, "http http://a/ --status 404"),
        (ANY_SUCCESS, "a b", "http http://a/ --body 'a b'"),
        ("3xx", "-x", "http http://a/ --status 3xx --body=-x"),
    ],
)
def test_the_target_of_an_address_names_what_is_awaited(
    status: str, body: str | None, text: str
) -> None:
    target = http_target("http://a/", status, body)
    assert (target.kind, target.text, target.label) == ("http", text, "http://a/")
    assert not target.far


A, B = lock_target("/l/lock-a.md", "/l"), match_target("x y")
FAR = Target(kind="process", text="process --pid 7 --host box", label="x", host="box")


def test_a_group_is_sorted_and_names_each_target_once() -> None:
    target = wait_target("any", [B, A, A])
    assert target == wait_target("any", [A, B])
    assert shlex.split(target.text) == ["wait", "--any", A.text, B.text]
    assert (target.kind, target.label) == ("wait", "any(lock a, process --match 'x y')")
    assert wait_target("all", [A]).text == "wait --all 'lock a'"


def test_a_group_reaches_as_far_as_its_farthest_target() -> None:
    assert not wait_target("any", [A, B]).far
    assert wait_target("any", [A, FAR]).far
    assert wait_target("any", [A, FAR]).host is None
    assert FAR.far
