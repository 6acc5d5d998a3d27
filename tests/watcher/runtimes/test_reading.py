"""Stdin of a hook: bounded, with a time limit, and only a JSON object counts."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from watcher.runtimes.reading import MOST_BYTES, read_payload


@contextmanager
def pipe(content: bytes = b"", *, left_open: bool = False) -> Iterator[int]:
    """Give the reading end of a pipe into which a thread writes."""
    reading, writing = os.pipe()

    def write() -> None:
        rest = memoryview(content)
        try:
            while rest:
                rest = rest[os.write(writing, rest) :]
        except OSError:
            return  # the reader has gone
        finally:
            if not left_open:
                os.close(writing)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield reading
    finally:
        os.close(reading)
        writer.join(20)
        if left_open:
            os.close(writing)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        pytest.param(b'{"a": 1}', {"a": 1}, id="an-object"),
        pytest.param(b'  {"a": 1}\n\n', {"a": 1}, id="with-space-around"),
        pytest.param(b'\xef\xbb\xbf{"a": 1}', {"a": 1}, id="with-a-BOM"),
        pytest.param('{"a": "ç"}'.encode(), {"a": "ç"}, id="UTF-8"),
        pytest.param(b"", None, id="nothing"),
        pytest.param(b"null", None, id="null"),
        pytest.param(b"[1]", None, id="a-list"),
        pytest.param(b"42", None, id="a-number"),
        pytest.param(b'"text"', None, id="a-text"),
        pytest.param(b"{", None, id="half-an-object"),
        pytest.param(b"{}}", None, id="more-than-an-object"),
        pytest.param(b'{"a": "\xff"}', None, id="invalid-UTF-8"),
        pytest.param('{"a": 1}'.encode("utf-16"), None, id="UTF-16"),
        pytest.param(b'{"a":' * 100_000, None, id="nested-too-deep"),
        pytest.param(b"[" * 100_000 + b"}", None, id="nested-and-ended"),
        pytest.param(b'{"a": ' + b"9" * 5000 + b"}", None, id="a-number-too-long"),
        pytest.param(b"\0" * 1000, None, id="NUL"),
    ],
)
def test_only_one_json_object_counts(
    content: bytes, found: dict[str, object] | None
) -> None:
    with pipe(content) as fd:
        assert read_payload(fd, limit_s=20) == found


def test_an_object_that_comes_in_pieces_is_read_whole() -> None:
    content = b'{"a": {"b": "' + b"x" * 300_000 + b'"}}'
    with pipe(content) as fd:
        found = read_payload(fd, limit_s=20)
    assert found == {"a": {"b": "x" * 300_000}}


def test_b143_a_writer_that_keeps_its_end_open_is_not_waited_for() -> None:
    with pipe(b'{"a": 1}', left_open=True) as fd:
        assert read_payload(fd, limit_s=3600) == {"a": 1}


@pytest.mark.parametrize("content", [b"", b'{"a": '])
def test_b143_what_never_comes_is_given_up(content: bytes) -> None:
    with pipe(content, left_open=True) as fd:
        assert read_payload(fd, limit_s=0.05) is None


def test_b133_megabytes_are_read_to_their_end_and_count_as_nothing() -> None:
    content = b'{"a": "' + b"x" * (5 * MOST_BYTES) + b'"}'
    with pipe(content) as fd:
        assert read_payload(fd, limit_s=20) is None
        assert os.read(fd, 1) == b""


def test_a_descriptor_that_cannot_be_read_is_nothing(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        assert read_payload(fd, limit_s=20) is None
    finally:
        os.close(fd)


def test_a_pipe_that_has_nothing_after_all_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    really, refused = os.read, iter([True])

    def read(fd: int, size: int) -> bytes:
        if next(refused, False):
            raise BlockingIOError
        return really(fd, size)

    monkeypatch.setattr(os, "read", read)
    with pipe(b"{}") as fd:
        assert read_payload(fd, limit_s=20) == {}
