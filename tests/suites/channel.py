"""What every channel promises about answers, failures and its secret (C6.2)."""

import logging
import time
import traceback
from abc import ABC, abstractmethod
from dataclasses import replace
from urllib.parse import quote

import pytest

from notify.channels import Channel
from notify.errors import DeliveryError, PermanentDeliveryError
from tests.e2e.command import steering
from tests.notify.samples import a_ping
from tests.servers import Answer, serve

SECRET = "s3cr3t/Key+with=signs-0123456789"
"""The key of every channel under test; `/` and `+` change their looks in an echo."""

LIMIT_S = 0.4
"""Seconds that a channel under test gives one attempt."""

SLACK_S = 2.0
"""Seconds beyond which an attempt has not kept its limit."""

LONGEST_ERROR = 300  # characters

DELIVERED = (200, 201, 202, 204, 206, 226, 299)
TRIED_AGAIN = (408, 425, 429, 500, 501, 502, 503, 504, 507, 511, 599)
REFUSED = (*range(400, 408), *range(409, 425), *range(426, 429), 431, 451, 499)
REDIRECTS = (300, 301, 302, 303, 304, 305, 307, 308)

FAILURES = {
    "closed without answer": Answer(close=True),
    "reset": Answer(reset=True),
    "no HTTP": Answer(raw=b"SSH-2.0-OpenSSH_9.2\r\n"),
    "half a head": Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Le"),
    "endless head": Answer(raw=b"HTTP/1.1 200 OK\r\n" + b"X-Y: z\r\n" * 50_000),
    "bad length": Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n"),
    "nothing but blanks": Answer(raw=b"\r\n" * 5),
    "silence": Answer(delay_s=60),
    "trickling head": Answer(trickle_s=0.05),
}

BROKEN_BODIES = {
    "cut short": Answer(body=b"so", length=1000),
    "trickling": Answer(body=b"slow" * 100, body_trickle_s=0.05),
    "no chunks": Answer(headers={"Transfer-Encoding": "chunked"}, body=b"zz\r\nzz"),
    "no gzip": Answer(headers={"Content-Encoding": "gzip"}, body=b"no gzip at all"),
    "endless": Answer(body=b"x" * 5_000_000),
    "not UTF-8": Answer(body=b"\xff\xfe\x80" * 10),
    "control characters": Answer(body=b"\x1b]0;x\x07\x1b[2J\xc2\x9b31m\xe2\x80\xae"),
}

ECHOES = {
    "plain": "invalid token {key}",
    "whole header": "Authorization: Bearer {key}\r\nX-API-Key: {key}",
    "at the very front": "{key}",
    "behind a lot of blanks": " " * 8180 + "{key}",
    "before 5 MB of text": "no: {key}\n" + "x" * 5_000_000,
    "twice": "{key}{key} {key}",
    "as JSON of PHP": '{"error":"bad {php}"}',
    "as an address": "see /login?token={quoted}",
}


class ChannelSuite(ABC):
    """Subclass it in a test module with a name that begins with `Test`."""

    @abstractmethod
    def channel(self, url: str) -> Channel:
        """Return a channel to `url` with `SECRET` as key and `LIMIT_S` as limit."""

    @pytest.mark.parametrize("status", DELIVERED)
    async def test_an_answer_of_success_is_a_delivery(self, status: int) -> None:
        with serve(Answer(status=status)) as server:
            await self.channel(server.url()).send(a_ping())
        assert len(server.requests) == 1

    @pytest.mark.parametrize("status", TRIED_AGAIN)
    async def test_an_answer_that_may_change_is_tried_again(self, status: int) -> None:
        with serve(Answer(status=status, body=b"later")) as server:
            error = await self.failure(server.url())
        assert not isinstance(error, PermanentDeliveryError)
        assert str(error) == f"HTTP {status} later"
        assert len(server.requests) == 1, "the next attempt is the outbox's"

    @pytest.mark.parametrize("status", [*REFUSED, *REDIRECTS])
    async def test_any_other_answer_is_final(self, status: int) -> None:
        with serve(Answer(status=status)) as server:
            error = await self.failure(server.url())
        assert isinstance(error, PermanentDeliveryError)
        assert str(error) == f"HTTP {status}"
        assert len(server.requests) == 1

    @pytest.mark.parametrize("answer", FAILURES.values(), ids=FAILURES)
    async def test_without_an_answer_it_is_tried_again(self, answer: Answer) -> None:
        with serve(answer) as server:
            start_s = time.monotonic()
            error = await self.failure(server.url())
            took_s = time.monotonic() - start_s
        assert not isinstance(error, PermanentDeliveryError)
        assert took_s < LIMIT_S + SLACK_S
        self.check_text(error)

    async def test_a_port_that_nobody_listens_on_is_tried_again(self) -> None:
        with serve() as server:
            url = server.url()
        error = await self.failure(url)
        assert not isinstance(error, PermanentDeliveryError)
        self.check_text(error)

    async def test_an_attempt_ends_at_its_limit(self) -> None:
        with serve(Answer(delay_s=60)) as server:
            start_s = time.monotonic()
            error = await self.failure(server.url())
            took_s = time.monotonic() - start_s
        assert LIMIT_S <= took_s < LIMIT_S + SLACK_S
        assert str(error) == f"no answer within {LIMIT_S} s"

    @pytest.mark.parametrize("answer", BROKEN_BODIES.values(), ids=BROKEN_BODIES)
    @pytest.mark.parametrize("status", [200, 401, 503])
    async def test_the_status_decides_whatever_becomes_of_the_rest(
        self, status: int, answer: Answer
    ) -> None:
        with serve(replace(answer, status=status)) as server:
            start_s = time.monotonic()
            if status == 200:
                await self.channel(server.url()).send(a_ping())
            else:
                error = await self.failure(server.url())
                assert str(error).startswith(f"HTTP {status}")
                assert isinstance(error, PermanentDeliveryError) == (status == 401)
                self.check_text(error)
            assert time.monotonic() - start_s < LIMIT_S + SLACK_S

    @pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
    @pytest.mark.parametrize("status", [401, 503])
    async def test_the_key_that_a_server_echoes_is_told_nowhere(
        self, status: int, echo: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        text = echo
        for name, form in forms_of(SECRET).items():
            text = text.replace(f"{{{name}}}", form)
        with serve(Answer(status=status, body=text.encode())) as server:
            error = await self.failure(server.url())
        self.check_text(error)
        said = everything_in(error) + caplog.text
        assert [form for form in forms_of(SECRET).values() if form[:8] in said] == []

    @pytest.mark.parametrize(
        "answer",
        [Answer(status=400), Answer(close=True), Answer(delay_s=60), Answer(raw=b"?")],
        ids=["refused", "closed", "silent", "no HTTP"],
    )
    async def test_no_error_leads_to_the_key(
        self, answer: Answer, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        with serve(answer) as server:
            error = await self.failure(server.url())
        assert SECRET not in everything_in(error) + caplog.text

    async def test_the_key_is_no_part_of_what_a_channel_shows(self) -> None:
        channel = self.channel("http://127.0.0.1:9/notify")
        assert SECRET not in f"{channel} {channel!r} {vars(channel)}"

    async def test_a_duplicate_can_be_recognised(self) -> None:
        with serve(Answer(close=True), Answer()) as server:
            await self.failure(server.url())
            await self.channel(server.url()).send(a_ping())
        first, second = server.requests
        assert first.body == second.body

    async def failure(self, url: str) -> DeliveryError:
        """Send a ping and return the error that must come of it."""
        try:
            await self.channel(url).send(a_ping())
        except DeliveryError as error:
            return error
        pytest.fail("delivered")

    def check_text(self, error: DeliveryError) -> None:
        """Check that an error can stand in a line on a terminal."""
        text = str(error)
        assert text == text.strip() != ""
        assert len(text) <= LONGEST_ERROR
        assert steering(text) == []


def forms_of(secret: str) -> dict[str, str]:
    """Return the ways in which a server writes the key that it got."""
    return {
        "key": secret,
        "php": secret.replace("/", "\\/"),
        "quoted": quote(secret, safe=""),
    }


def everything_in(error: BaseException) -> str:
    """Return all that a log could ever show of an error, its chain and its frames."""
    said: list[str] = []
    ahead: list[BaseException | None] = [error]
    while ahead:
        found = ahead.pop()
        if found is None:
            continue
        told = traceback.TracebackException.from_exception(found, capture_locals=True)
        said += [*told.format(), repr(found), repr(vars(found))]
        ahead += [found.__cause__, found.__context__]
    return "\n".join(said)
