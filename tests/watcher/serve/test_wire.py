"""What comes over the wire, as clients that mean no good send it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.watcher.house import House
from tests.watcher.serve.test_events import served
from watcher.serve.asking import BODY_LIMIT

LIMIT_S = 20.0
POST = b"POST /v1/watches HTTP/1.1\r\nHost: l\r\nContent-Type: application/json\r\n"


@pytest.fixture
async def path(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[str]:
    monkeypatch.chdir(tmp_path)
    async with served(house, Path("s")):
        yield "s"


async def said(path: str, *sent: bytes) -> bytes:
    """Send what the server takes of it, and return the head of its answer.

    Nothing, where it hung up on us with that in our way: the system then may throw away
    what it said.
    """
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        async with asyncio.timeout(LIMIT_S):
            for piece in sent:
                writer.write(piece)
                await writer.drain()
            return await reader.readuntil(b"\r\n\r\n")
    except ConnectionError:
        return b""
    finally:
        writer.transport.abort()


def is_refused(answer: bytes, status: int) -> bool:
    return not answer or f" {status} ".encode() in answer


async def test_a_body_that_says_it_is_too_long_is_refused(
    house: House, path: str
) -> None:
    length = f"Content-Length: {BODY_LIMIT + 1}\r\n\r\n".encode()
    assert b" 413 " in await said(path, POST + length)
    assert house.service.armed_count == 0


async def test_a_chunked_body_is_read_to_the_limit_and_no_further(
    house: House, path: str
) -> None:
    chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    head = POST + b"Transfer-Encoding: chunked\r\n\r\n"
    count = BODY_LIMIT // 0x4000 + 1
    assert is_refused(await said(path, head, *[chunk] * count), 413)
    assert house.service.armed_count == 0


async def test_a_chunked_body_of_fair_length_is_taken(house: House, path: str) -> None:
    body = b'{"target": "lock a"}'
    head = POST + b"Transfer-Encoding: chunked\r\n\r\n"
    answer = await said(path, head, b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
    assert b" 201 " in answer
    assert b"nosniff" in answer
    assert b"\r\nserver:" not in answer.lower()


async def test_a_write_without_a_body_is_told_that_it_needs_one(path: str) -> None:
    assert b" 411 " in await said(path, POST + b"\r\n")


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /healthz HTTP/1.1\r\nHost: l\r\nX: " + b"x" * (1 << 20) + b"\r\n\r\n",
        b"GET /" + b"x" * (1 << 20) + b" HTTP/1.1\r\nHost: l\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"POST /v1/watches HTTP/1.1\r\nHost: l\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/watches HTTP/1.1\r\nHost: l\r\nContent-Length: 1\r\n"
        b"Content-Length: 2\r\n\r\n",
    ],
    ids=["a header", "an address", "no HTTP", "no host", "less than none", "two"],
)
async def test_what_is_no_request_is_refused_and_the_service_lives(
    sent: bytes, house: House, path: str
) -> None:
    assert is_refused(await said(path, sent), 400)
    ask = b"GET /healthz HTTP/1.1\r\nHost: l\r\n\r\n"
    assert b" 200 " in await said(path, ask)
    assert house.service.armed_count == 0


async def test_who_connects_and_says_nothing_holds_nobody_up(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.setblocking(False)
        silent.connect(path)
        ask = b"GET /healthz HTTP/1.1\r\nHost: l\r\n\r\n"
        assert b" 200 " in await said(path, ask)
