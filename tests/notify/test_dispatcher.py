"""From the outbox to the channels, whatever they do (C6.1, C6.2, C6.4, C6.7)."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import httpx
import pytest
import respx

from notify import outbox
from notify.channels.fallback import FallbackLog, LogChannel
from notify.dispatcher import MOST_AT_ONCE, Dispatcher
from notify.errors import DeliveryError, PermanentDeliveryError
from policies.delivery import GIVE_UP_S, MESSAGE_LIMIT
from policies.model import Ping
from policies.text import CUT_MARK
from policies.wording import Lang, Phrase, phrase
from tests.fakes import START, FakeChannel
from tests.notify.rig import Play, Rig, a_ping, a_store, koder, serve
from watcher.database import NAME

T = TypeVar("T")

ROOT = Path(__file__).parent.parent.parent

LEASE_S = 16.0
"""Seconds after which a claim of a dispatcher with the usual limit is void."""


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with a_store(tmp_path / "state") as store:
        yield Rig(store=store, log=tmp_path / "release-pings.log")


class Refusing(FakeChannel):
    """Refuses what it is told to; counts how many attempts run at once."""

    def __init__(self, refuse: Callable[[Ping], bool] = lambda _: False) -> None:
        super().__init__()
        self.refuse = refuse
        self.now = self.most = 0

    async def send(self, ping: Ping) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.001)
        self.now -= 1
        await super().send(ping)
        if self.refuse(ping):
            raise PermanentDeliveryError("HTTP 400")


class Hanging:
    """A channel that never answers, or not before it is let go."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go = asyncio.Event()

    async def send(self, ping: Ping) -> None:
        self.begun.set()
        await self.go.wait()


async def until(true: Callable[[], bool], limit_s: float = 10.0) -> None:
    async with asyncio.timeout(limit_s):
        while not true():  # noqa: ASYNC110 - whatever a test waits for
            await asyncio.sleep(0.005)


def key_of(row: int) -> str:
    return f"key-{row}"


# delivered


async def test_what_is_due_is_delivered_once_and_never_again(rig: Rig) -> None:
    await rig.store.add("a", "b")
    channel = FakeChannel()
    dispatcher = rig.dispatcher(koder=channel)
    for _ in range(3):
        await dispatcher.drain()
        await rig.clock.advance(3600)
    assert sorted(ping.idempotency_key for ping in channel.sent) == ["a", "b"]
    assert rig.store.states() == ["delivered", "delivered"]
    assert rig.logged() == []


async def test_a_row_is_settled_only_after_the_answer(rig: Rig) -> None:
    await rig.store.add("a")
    channel = Hanging()
    sending = asyncio.ensure_future(rig.dispatcher(koder=channel).drain())
    await channel.begun.wait()
    assert rig.store.states() == ["pending"]
    channel.go.set()
    await sending
    assert rig.store.states() == ["delivered"]


async def test_a_channel_has_few_attempts_at_once(rig: Rig) -> None:
    await rig.store.add(*map(key_of, range(20)))
    channel = Refusing()
    dispatcher = rig.dispatcher(koder=channel)
    await asyncio.gather(*(dispatcher.drain() for _ in range(3)))
    assert channel.most == MOST_AT_ONCE
    assert len(channel.sent) == len({ping.idempotency_key for ping in channel.sent})
    assert rig.store.states() == ["delivered"] * 20


async def test_a_text_that_was_cut_when_sent_is_whole_in_the_log(rig: Rig) -> None:
    long = "x" * MESSAGE_LIMIT + "the end"
    await rig.store.put(a_ping("long", long))
    with serve() as server:
        await rig.dispatcher(koder=koder(server.url)).drain()
    ((_, body),) = server.received
    assert str(body["message"]).endswith(CUT_MARK)
    assert rig.store.states() == ["delivered"]
    (line,) = rig.logged()
    assert long in line


async def test_a_text_that_was_cut_needs_no_log_to_be_delivered(
    rig: Rig, tmp_path: Path
) -> None:
    rig.log = tmp_path
    await rig.store.put(a_ping("long", "x" * 9999))
    await rig.dispatcher(koder=FakeChannel()).drain()
    assert (rig.store.row()["state"], rig.store.row()["logged_at"]) == (
        "delivered",
        None,
    )
    assert rig.notices == []


# tried again


async def test_b90_a_retry_after_is_obeyed(rig: Rig) -> None:
    await rig.store.add("a")
    with serve(Play(status=429, headers={"Retry-After": "3"}), Play()) as server:
        dispatcher = rig.dispatcher(koder=koder(server.url))
        await dispatcher.drain()
        await rig.clock.advance(2.9)
        await dispatcher.drain()
        assert len(server.received) == 1
        assert "HTTP 429" in str(rig.store.row()["last_error"])
        await rig.clock.advance(0.1)
        await dispatcher.drain()
    assert server.keys == ["a", "a"]
    assert rig.store.states() == ["delivered"]
    assert len(rig.logged()) == 1


@pytest.mark.parametrize("answered", [True, False], ids=["its clock", "our clock"])
async def test_b90_a_retry_after_may_be_a_date(rig: Rig, answered: bool) -> None:
    await rig.store.add("a")
    headers = {"Retry-After": "Sun, 01 Mar 2026 12:02:00 GMT"}
    if answered:
        headers["Date"] = "Sun, 01 Mar 2026 12:01:30 GMT"
    with serve(Play(status=503, headers=headers), Play()) as server:
        channel = koder(server.url, now=rig.clock.wall)
        await rig.dispatcher(koder=channel).drain()
    expected = "12:00:30" if answered else "12:02:00"
    assert rig.store.row()["next_attempt_at"] == f"2026-03-01T{expected}.000+00:00"


@pytest.mark.parametrize(
    "play",
    [Play(close=True), Play(reset=True), Play(hang=True)],
    ids=["closed", "reset", "silent"],
)
async def test_b92_a_lost_answer_is_an_unknown_result_and_the_key_stays(
    rig: Rig, play: Play
) -> None:
    await rig.store.add("a")
    with serve(play, Play()) as server:
        dispatcher = rig.dispatcher(koder=koder(server.url, limit_s=0.5))
        await dispatcher.drain()
        row = rig.store.row()
        assert row["state"] == "pending"
        assert str(row["last_error"]).startswith("resultado desconhecido (")
        assert str(row["last_error"]).endswith(
            "pode chegar mais de uma vez, com a mesma chave"
        )
        await rig.clock.advance(10)
        await dispatcher.drain()
    first, second = server.received
    assert first[0]["idempotency-key"] == second[0]["idempotency-key"] == "a"
    assert first[1] == second[1]
    assert rig.store.row()["last_error"] is None


async def test_b92_a_server_that_was_never_reached_is_no_unknown_result(
    rig: Rig,
) -> None:
    await rig.store.add("a")
    with serve() as server:
        url = server.url
    await rig.dispatcher(koder=koder(url)).drain()
    assert str(rig.store.row()["last_error"]).startswith("não entregue: ConnectError")


@pytest.mark.parametrize(
    ("kind", "unknown"),
    [
        (httpx.ConnectError, False),
        (httpx.ConnectTimeout, False),
        (httpx.ProxyError, False),
        (httpx.LocalProtocolError, False),
        (httpx.ReadError, True),
        (httpx.ReadTimeout, True),
        (httpx.WriteError, True),
        (httpx.WriteTimeout, True),
        (httpx.RemoteProtocolError, True),
    ],
)
async def test_b92_only_what_may_have_arrived_is_an_unknown_result(
    kind: type[Exception], unknown: bool
) -> None:
    with respx.mock:
        respx.post("http://127.0.0.1:9/").mock(side_effect=kind("it broke"))
        with pytest.raises(DeliveryError) as caught:
            await koder("http://127.0.0.1:9/").send(a_ping())
    assert caught.value.unknown is unknown


async def test_b92_a_proxy_that_says_no_has_sent_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serve(Play(status=403)) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url)
        with pytest.raises(DeliveryError) as caught:
            await koder("https://notify.example.invalid/").send(a_ping())
    assert not caught.value.unknown


@pytest.mark.parametrize(
    "play",
    [
        *[Play(status=status) for status in (408, 500, 502, 503, 504)],
        Play(reset=True),
    ],
    ids=["408", "500", "502", "503", "504", "reset"],
)
async def test_b112_what_may_pass_is_tried_with_growing_waits(
    rig: Rig, play: Play
) -> None:
    await rig.store.add("a")
    waits_s: list[float] = []
    with serve(play, play, play, Play()) as server:
        dispatcher = rig.dispatcher(koder=koder(server.url))
        for expected in (1, 2, 3, 4):
            await dispatcher.drain()
            assert len(server.received) == expected
            wait_s = 0
            while expected < 4 and len(server.received) == expected:
                wait_s += 1
                await rig.clock.advance(1)
                await dispatcher.drain()
            waits_s.append(wait_s)
    assert waits_s == [5, 10, 20, 0]
    assert set(server.keys) == {"a"}
    assert rig.store.states() == ["delivered"]
    assert len(rig.logged()) == 1, "at the first failure alone"


@pytest.mark.parametrize("status", [307, 400, 401, 404, 410, 422])
async def test_b112_what_is_refused_is_dead_and_in_the_log(
    rig: Rig, status: int
) -> None:
    await rig.store.add("a")
    with serve(Play(status=status)) as server:
        dispatcher = rig.dispatcher(koder=koder(server.url))
        for _ in range(3):
            await dispatcher.drain()
            await rig.clock.advance(3600)
    assert server.keys == ["a"]
    row = rig.store.row()
    assert (row["state"], row["attempts"]) == ("dead", 1)
    assert str(row["last_error"]).startswith(f"recusado: HTTP {status}")
    (line,) = rig.logged()
    assert f"(recusado: HTTP {status})" in line
    assert a_ping().message in line


async def test_a_flush_brings_a_dead_row_back_without_a_second_line_in_the_log(
    rig: Rig,
) -> None:
    await rig.store.add("a")
    refusal = PermanentDeliveryError("HTTP 401")
    dispatcher = rig.dispatcher(koder=FakeChannel(refusal, refusal, None))
    for expected in ("dead", "dead", "delivered"):
        await dispatcher.drain()
        assert rig.store.states() == [expected]
        await rig.store.writer.submit(
            lambda db: outbox.flush(db, dead=True, now_s=rig.clock.wall().timestamp())
        )
    assert len(rig.logged()) == 1


async def test_after_a_day_it_is_given_up(rig: Rig) -> None:
    await rig.store.add("a")
    channel = FakeChannel(*(DeliveryError("HTTP 502") for _ in range(200)))
    dispatcher = rig.dispatcher(koder=channel)
    tried_at: list[float] = []
    while rig.store.states() == ["pending"]:
        await dispatcher.drain()
        tried_at.append((rig.clock.wall() - START).total_seconds())
        at = rig.store.row()["next_attempt_at"]
        await rig.clock.advance(0 if at is None else 1)
        while at is not None and rig.clock.wall().isoformat() < str(at):
            await rig.clock.advance(60)
    assert GIVE_UP_S <= tried_at[-1] <= GIVE_UP_S + 60
    assert 80 <= len(channel.sent) == len(tried_at) <= 106
    row = rig.store.row()
    assert (row["state"], row["attempts"]) == ("dead", len(channel.sent))
    assert str(row["last_error"]).startswith("desistência após ")
    assert len(rig.logged()) == 1


async def test_a_row_found_after_its_day_is_still_tried_once(rig: Rig) -> None:
    await rig.store.add("late", "later")
    await rig.clock.advance(10 * GIVE_UP_S)
    channel = FakeChannel(None, DeliveryError("HTTP 502"))
    await rig.dispatcher(koder=channel).drain()
    assert sorted(map(str, rig.store.states())) == ["dead", "delivered"]
    assert len(rig.logged()) == 1


async def test_the_jitter_is_drawn_for_each_wait(rig: Rig) -> None:
    await rig.store.add("a")
    rig.jitter = 0.5
    await rig.dispatcher(koder=FakeChannel(DeliveryError("x"))).drain()
    expected = "2026-03-01T12:00:07.500+00:00"
    assert rig.store.row()["next_attempt_at"] == expected


# nobody holds up anybody


async def test_a_channel_that_hangs_holds_up_no_other(rig: Rig) -> None:
    await rig.store.add(*map(key_of, range(9)), channel="slow")
    await rig.store.add("a")
    slow, quick = Hanging(), FakeChannel()
    dispatcher = rig.dispatcher(slow=slow, koder=quick)
    first = asyncio.ensure_future(dispatcher.drain())
    await until(lambda: len(quick.sent) == 1)
    await rig.store.add("b")
    await asyncio.wait_for(dispatcher.drain(), 10)
    assert [ping.idempotency_key for ping in quick.sent] == ["a", "b"]
    assert not first.done()
    slow.go.set()
    await first
    assert rig.store.states() == ["delivered"] * 11


async def test_a_channel_without_an_end_is_left_at_the_limit(rig: Rig) -> None:
    await rig.store.add("a")
    start_s = time.monotonic()
    await rig.dispatcher(koder=Hanging(), limit_s=0.0).drain()
    assert time.monotonic() - start_s < 5
    error = str(rig.store.row()["last_error"])
    assert error.startswith("resultado desconhecido (no answer within 1 s)")


async def test_a_channel_that_fails_holds_up_no_other(rig: Rig) -> None:
    await rig.store.add("a", channel="bad")
    await rig.store.add("a")
    good = FakeChannel()
    bad = FakeChannel(PermanentDeliveryError("HTTP 410"))
    await rig.dispatcher(bad=bad, koder=good).drain()
    assert rig.store.states() == ["dead", "delivered"]


async def test_b110_rows_that_are_always_refused_hold_up_no_good_one(rig: Rig) -> None:
    await rig.store.add(*map(key_of, range(50)))
    await rig.store.add("good")
    channel = Refusing(lambda ping: ping.idempotency_key != "good")
    start_s = time.monotonic()
    await rig.dispatcher(koder=channel).drain()
    assert time.monotonic() - start_s < 10
    assert rig.store.states() == ["dead"] * 50 + ["delivered"]
    assert len(rig.logged()) == 50


async def test_b110_rows_that_nobody_can_read_hold_up_no_good_one(rig: Rig) -> None:
    await rig.store.add(*map(key_of, range(50)))
    await rig.store.run("UPDATE pings SET body = '{'")
    await rig.store.add("good")
    channel = FakeChannel()
    await rig.dispatcher(koder=channel, lang=Lang.EN).drain()
    assert [ping.idempotency_key for ping in channel.sent] == ["good"]
    assert rig.store.states() == ["dead"] * 50 + ["delivered"]
    assert str(rig.store.rows()[0]["last_error"]).startswith("unreadable row: ")


async def test_b110_each_row_is_sent_by_one_of_two_dispatchers(
    rig: Rig, tmp_path: Path
) -> None:
    begun: set[FakeChannel] = set()

    class Meeting(FakeChannel):
        async def send(self, ping: Ping) -> None:
            begun.add(self)
            await until(lambda: len(begun) == 2)
            await super().send(ping)

    await rig.store.add(*map(key_of, range(100)))
    ours, theirs = Meeting(), Meeting()
    with a_store(tmp_path / "state") as other:
        second = Rig(store=other, log=rig.log, clock=rig.clock)
        await asyncio.gather(
            rig.dispatcher(koder=ours).drain(), second.dispatcher(koder=theirs).drain()
        )
    sent = [ping.idempotency_key for ping in ours.sent + theirs.sent]
    assert sorted(sent) == sorted(map(key_of, range(100)))
    assert ours.sent
    assert theirs.sent
    assert rig.store.states() == ["delivered"] * 100


async def test_a_fault_in_a_channel_costs_no_ping_and_tells_no_secret(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    class Faulty(FakeChannel):
        async def send(self, ping: Ping) -> None:
            await super().send(ping)
            if len(self.sent) == 1:
                raise ZeroDivisionError("s3cr3t")

    await rig.store.add("a")
    dispatcher = rig.dispatcher(koder=Faulty())
    await dispatcher.drain()
    row = rig.store.row()
    assert row["state"] == "pending"
    assert "ZeroDivisionError" in str(row["last_error"])
    assert "s3cr3t" not in str(row) + "".join(rig.logged())
    (record,) = caplog.records
    assert (record.message, record.levelname) == ("attempt.failed", "ERROR")
    await rig.clock.advance(5)
    await dispatcher.drain()
    assert rig.store.states() == ["delivered"]


async def test_rows_of_a_channel_that_is_gone_are_told_and_wait_for_its_return(
    rig: Rig,
) -> None:
    await rig.store.add("a", channel="apprise:json#1")
    await rig.dispatcher(koder=FakeChannel()).drain()
    row = rig.store.row()
    assert row["state"] == "pending"
    said = "o canal apprise:json#1 não está mais configurado"
    assert row["last_error"] == f"não entregue: {said}"
    (line,) = rig.logged()
    assert said in line
    await rig.clock.advance(5)
    await rig.over({"apprise:json#1": FakeChannel()}).drain()
    assert rig.store.states() == ["delivered"]


# interrupted


async def test_what_a_sender_was_killed_over_is_sent_again_under_the_same_key(
    rig: Rig,
) -> None:
    await rig.store.add("done")
    await rig.dispatcher(koder=FakeChannel()).drain()
    await rig.store.add("cut")
    channel = Hanging()
    sending = asyncio.ensure_future(rig.dispatcher(koder=channel).drain())
    await channel.begun.wait()
    sending.cancel()
    await asyncio.wait({sending})
    heir = FakeChannel()
    dispatcher = rig.dispatcher(koder=heir)
    await rig.clock.advance(LEASE_S - 0.1)
    await dispatcher.drain()
    assert heir.sent == []
    await rig.clock.advance(0.1)
    await dispatcher.drain()
    assert [ping.idempotency_key for ping in heir.sent] == ["cut"]
    assert rig.store.states() == ["delivered", "delivered"]


SENDER = """
import asyncio, sys
from pathlib import Path
sys.path.append(sys.argv.pop())  # last, so that the packages are the installed ones
from tests.notify.rig import Rig, a_store, koder

async def main(state, url):
    with a_store(Path(state)) as store:
        rig = Rig(store=store, log=Path(state) / "log")
        await rig.dispatcher(koder=koder(url, limit_s=60), limit_s=60).drain()

asyncio.run(main(*sys.argv[1:]))
"""


def a_sender(state: Path, url: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SENDER, str(state), url, str(ROOT)])


async def test_a_real_kill_between_claim_and_answer_loses_nothing(
    rig: Rig, tmp_path: Path
) -> None:
    await rig.store.add("cut")
    with serve(Play(hang=True), Play()) as server:
        child = a_sender(tmp_path / "state", server.url)
        try:
            assert await asyncio.to_thread(server.arrived.acquire, timeout=30)
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait(10)
        assert rig.store.states() == ["pending"]
        dispatcher = rig.dispatcher(koder=koder(server.url))
        await dispatcher.drain()
        assert server.keys == ["cut"]
        await rig.clock.advance(120)
        await dispatcher.drain()
        await dispatcher.drain()
    assert server.keys == ["cut", "cut"]
    assert rig.store.states() == ["delivered"]


async def test_a_sender_that_was_paused_settles_nothing_that_is_anothers(
    rig: Rig,
) -> None:
    await rig.store.add("a")
    channel = Hanging()
    paused = asyncio.ensure_future(rig.dispatcher(koder=channel).drain())
    await channel.begun.wait()
    await rig.clock.advance(LEASE_S)
    await rig.dispatcher(koder=FakeChannel(PermanentDeliveryError("HTTP 410"))).drain()
    channel.go.set()
    await paused
    assert rig.store.states() == ["dead"]


# the store


@pytest.mark.slow
async def test_b108_a_locked_database_loses_nothing(tmp_path: Path) -> None:
    """One other process sits on the file for longer than anybody waits for it."""
    with a_store(tmp_path, busy_ms=50) as store, a_store(tmp_path, busy_ms=50) as more:
        rig = Rig(store=store, log=tmp_path / "log")
        channel = FakeChannel()
        dispatcher = rig.dispatcher(koder=channel)
        hog = sqlite3.connect(tmp_path / NAME, isolation_level=None)
        hog.execute("BEGIN IMMEDIATE")
        adding = [
            asyncio.ensure_future((store, more)[number % 2].add(key_of(number)))
            for number in range(20)
        ]
        draining = asyncio.ensure_future(dispatcher.drain())
        await asyncio.sleep(0.6)
        assert not any(task.done() for task in [*adding, draining])
        hog.execute("ROLLBACK")
        hog.close()
        await asyncio.gather(*adding, draining)
        await dispatcher.drain()
        assert rig.store.states() == ["delivered"] * 20
        sent = sorted(ping.idempotency_key for ping in channel.sent)
        assert sent == sorted(map(key_of, range(20)))


async def test_what_the_store_cannot_take_is_raised_once_all_channels_are_drained(
    rig: Rig,
) -> None:
    await rig.store.add("a", channel="first")
    await rig.store.add("a")
    calls = 0

    async def submit(change: Callable[[sqlite3.Connection], T], /) -> T:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError("no more")
        return await rig.store.writer.submit(change)

    channel = FakeChannel()
    dispatcher = Dispatcher(
        {"first": FakeChannel(), "koder": channel},
        FallbackLog(str(rig.log), rig.clock.zone()),
        lang=Lang.PT,
        submit=submit,
        now=rig.clock.wall,
        jitter=lambda: 0.0,
        notice=rig.notices.append,
    )
    with pytest.raises(OSError, match="no more"):
        await dispatcher.drain()
    assert sorted(map(str, rig.store.states())) == ["delivered", "pending"]
    await dispatcher.drain()
    assert rig.store.states() == ["delivered", "delivered"]


# the fallback log


async def test_without_a_channel_the_log_is_the_channel(rig: Rig) -> None:
    dispatcher = rig.dispatcher()
    assert (dispatcher.names, dispatcher.needs_network) == (("log",), False)
    await rig.store.add("a", channel="log")
    await dispatcher.drain()
    row = rig.store.row()
    assert row["state"] == "delivered"
    assert row["logged_at"] == row["delivered_at"] == "2026-03-01T12:00:00.000+00:00"
    (line,) = rig.logged()
    assert "(nenhum canal configurado ([notify] url))" in line


async def test_the_log_says_why_there_is_no_other_channel(rig: Rig) -> None:
    reason = phrase("key_open", path="/k")
    log = LogChannel(FallbackLog(str(rig.log), rig.clock.zone()), reason, Lang.EN)
    await rig.store.add("a", channel="log")
    dispatcher = rig.over({"log": log, "apprise:json#1": FakeChannel()})
    assert dispatcher.needs_network
    await dispatcher.drain()
    (line,) = rig.logged()
    assert reason.render(Lang.EN) in line


async def test_rows_for_the_log_go_there_when_there_is_a_channel_by_now(
    rig: Rig,
) -> None:
    await rig.store.add("a", channel="log")
    channel = FakeChannel()
    dispatcher = rig.dispatcher(koder=channel)
    assert dispatcher.names == ("koder",)
    await dispatcher.drain()
    assert (rig.store.states(), channel.sent, len(rig.logged())) == (
        ["delivered"],
        [],
        1,
    )


@pytest.mark.parametrize("name", ["koder", "log"])
@pytest.mark.parametrize("dead", [True, False], ids=["refused", "failed"])
async def test_b106_a_full_log_is_said_once_and_mended_when_there_is_space(
    rig: Rig, name: str, dead: bool, tmp_path: Path
) -> None:
    rig.log.symlink_to("/dev/full")
    kind = PermanentDeliveryError if dead else DeliveryError
    channel = FakeChannel(*(kind("HTTP 999") for _ in range(4)))
    other = FakeChannel()
    dispatcher = rig.dispatcher(koder=channel, other=other)
    await rig.store.add("a", channel=name)
    for turn in range(3):
        await rig.store.add(key_of(turn), channel="other")
        await dispatcher.drain()
        await rig.clock.advance(1800)
    row = rig.store.rows()[0]
    assert (row["state"], row["attempts"], row["logged_at"]) == ("pending", 3, None)
    (notice,) = rig.notices
    said = notice.render(Lang.PT)
    assert said.startswith("PING NÃO ENTREGUE NEM GRAVADO (")
    assert "No space left on device" in said
    assert a_ping().message in said
    assert len(other.sent) == 3
    rig.log.unlink()
    await dispatcher.drain()
    row = rig.store.rows()[0]
    expected = {"log": "delivered", "koder": "dead" if dead else "pending"}
    assert row["state"] == expected[name]
    assert row["logged_at"] is not None
    assert len(rig.logged()) == 1
    assert len(rig.notices) == 1


async def test_a_ping_that_is_nowhere_is_tried_past_its_day(rig: Rig) -> None:
    rig.log.symlink_to("/dev/full")
    await rig.store.add("a")
    await rig.clock.advance(3 * GIVE_UP_S)
    dispatcher = rig.dispatcher(koder=FakeChannel(DeliveryError("HTTP 502")))
    await dispatcher.drain()
    assert rig.store.states() == ["pending"]
    await rig.clock.advance(5)
    await dispatcher.drain()
    assert rig.store.states() == ["delivered"]


async def test_a_loss_is_said_anew_for_a_row_that_was_delivered_meanwhile(
    rig: Rig,
) -> None:
    rig.log.symlink_to("/dev/full")
    await rig.store.add("a")
    dispatcher = rig.dispatcher(koder=FakeChannel(DeliveryError("x")))
    await dispatcher.drain()
    await rig.clock.advance(5)
    await dispatcher.drain()
    assert rig.store.states() == ["delivered"]
    assert dispatcher._told == set()


# past the outbox


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, None),
        (DeliveryError("HTTP 502"), "não entregue: HTTP 502"),
        (PermanentDeliveryError("HTTP 400"), "recusado: HTTP 400"),
        (
            DeliveryError("ReadError", unknown=True),
            "resultado desconhecido (ReadError): pode chegar mais de uma vez, com a "
            "mesma chave",
        ),
    ],
    ids=["delivered", "failed", "refused", "unknown"],
)
async def test_a_direct_send_is_one_attempt_and_then_the_log(
    rig: Rig, answer: DeliveryError | None, said: str | None
) -> None:
    channel, other = FakeChannel(answer), FakeChannel()
    note = await rig.dispatcher(koder=channel, other=other).send(a_ping())
    assert len(channel.sent) == len(other.sent) == 1
    if said is None:
        assert (note, rig.logged()) == (None, [])
        return
    assert note is not None
    assert note.render(Lang.PT) == f"ping gravado em {rig.log}: {said}"
    (line,) = rig.logged()
    assert f"({said})" in line


async def test_a_direct_send_without_a_channel_writes_the_reason_down(rig: Rig) -> None:
    note = await rig.dispatcher().send(a_ping())
    assert note is not None
    assert "nenhum canal configurado" in note.render(Lang.PT)
    assert len(rig.logged()) == 1


async def test_a_direct_send_of_a_long_text_writes_it_down_whole(rig: Rig) -> None:
    note = await rig.dispatcher(koder=FakeChannel()).send(a_ping("k", "x" * 9999))
    assert note is not None
    assert "texto cortado no envio" in note.render(Lang.PT)
    assert "x" * 9999 in rig.logged()[0]


async def test_a_direct_send_that_no_log_takes_returns_the_ping_itself(
    rig: Rig,
) -> None:
    rig.log.symlink_to("/dev/full")
    failing = FakeChannel(DeliveryError("HTTP 502"))
    note = await rig.dispatcher(koder=failing).send(a_ping())
    assert isinstance(note, Phrase)
    assert note.key == "ping_lost"
    assert a_ping().message in note.render(Lang.PT)


async def test_without_a_store_there_is_nothing_to_drain(rig: Rig) -> None:
    channel = FakeChannel()
    dispatcher = Dispatcher(
        {"koder": channel},
        FallbackLog(str(rig.log), rig.clock.zone()),
        lang=Lang.PT,
        submit=None,
        now=rig.clock.wall,
        jitter=lambda: 0.0,
        notice=rig.notices.append,
    )
    await dispatcher.drain()
    assert await dispatcher.send(a_ping()) is None
    assert len(channel.sent) == 1
