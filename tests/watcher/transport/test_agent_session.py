import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from policies.wording import phrase
from tests.fakes import settle, until
from tests.watcher.onhost.others import child_of_another, state_of
from tests.watcher.transport.channels import FakeChannel, LoginShells
from tests.watcher.transport.toy import look, toy
from watcher.errors import TransportError
from watcher.onhost import frames
from watcher.transport import Answer, agent_session, bundle
from watcher.transport.agent_session import AgentSession

__all__ = ["toy"]

NONCE = "ef" * 16
LIMIT_S = 60.0
ABOUT = {"boot_id": "b", "means": "agent"}


def told(**message: object) -> bytes:
    return frames.frame(frames.telling(NONCE), json.dumps(message))


def asked(channel: FakeChannel) -> list[dict[str, object]]:
    return frames.Frames(frames.asking(NONCE)).feed(bytes(channel.written))


@asynccontextmanager
async def played(
    answer: Callable[[bytes], bytes] = lambda _: b"",
) -> AsyncIterator[tuple[AgentSession, FakeChannel]]:
    """Give a session whose far side a test plays."""
    channel = FakeChannel()
    session = AgentSession(channel, NONCE)
    channel.say(told(about=ABOUT))
    await session.start(b"", LIMIT_S)
    channel.answer = answer
    yield session, channel
    await session.close()
    assert channel.closed


class Real:
    """A session with an agent that runs on this machine."""

    def __init__(self, shells: LoginShells) -> None:
        self.shells = shells

    async def start(self) -> AgentSession:
        command, program = bundle.agent(NONCE)
        self.channel = await self.shells.run(command)
        session = AgentSession(self.channel, NONCE)
        await session.start(program, LIMIT_S)
        return session

    @property
    def pid(self) -> int:
        return self.channel.process.pid

    def ticks(self) -> int:
        """Return the time on the processor, in clock ticks."""
        with open(f"/proc/{self.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])


@pytest.fixture
async def shells(tmp_path: Path) -> AsyncIterator[LoginShells]:
    shells = LoginShells(tmp_path)
    shells.put_python()
    yield shells
    await shells.close()


async def test_an_agent_answers_round_after_round(
    shells: LoginShells, toy: None
) -> None:
    session = await Real(shells).start()
    for number in range(3):
        requests = [look(f"{number} {one}") for one in range(3)]
        reply = await session.ask([*requests, look(do="deny"), {"op": "nothing"}])
        *said, denied, unknown = reply.answers
        assert said == [{"said": request["name"]} for request in requests]
        assert denied["error"] == {"errno": "EACCES", "text": "[Errno 13] no"}
        assert "error" in unknown
        assert reply.about["means"] == "agent"
        assert reply.about["hostname"] == os.uname().nodename
    assert not session.lost
    await session.close()
    assert session.lost


async def test_rounds_that_are_asked_at_once_come_one_after_the_other(
    shells: LoginShells, toy: None
) -> None:
    session = await Real(shells).start()
    replies = await asyncio.gather(
        *(session.ask([look(str(number))]) for number in range(10))
    )
    said = [reply.answers[0]["said"] for reply in replies]
    assert said == [str(number) for number in range(10)]
    await session.close()


async def test_what_runs_there_carries_no_secret_and_keeps_nothing(
    shells: LoginShells, toy: None
) -> None:
    real = Real(shells)
    session = await real.start()
    (first,) = (await session.ask([look(do="where")])).answers
    assert NONCE not in str(first["argv"])
    assert first["cwd"] == "/"
    assert first["umask"] == 0o077
    assert first["fds"] == [os.devnull] * 3
    for _ in range(3):
        (last,) = (await session.ask([look(do="where")])).answers
        assert last == first
    await session.close()
    assert list(shells.bin.iterdir()) == [shells.bin / "python3"]


async def test_a_look_can_neither_read_nor_write_what_is_ours(
    shells: LoginShells, toy: None
) -> None:
    session = await Real(shells).start()
    for _ in range(3):
        reply = await session.ask([look("a", do="spoil"), look("b")])
        assert reply.answers == [{"said": "a"}, {"said": "b"}]
    await session.close()


@pytest.mark.slow
async def test_a_look_that_hangs_there_is_one_answer_of_many(
    shells: LoginShells, toy: None
) -> None:
    session = await Real(shells).start()
    well: Answer = {}
    for _ in range(10):  # a busy machine may be late for the other, too
        hung, well = (await session.ask([look(do="hang"), look("well")])).answers
        assert "ETIMEDOUT" in str(hung)
        if "said" in well:
            break
    assert well == {"said": "well"}
    await session.close()


async def test_the_end_of_a_followed_process_wakes_at_once(
    shells: LoginShells, toy: None
) -> None:
    session = await Real(shells).start()
    woken: list[str] = []
    with child_of_another() as child, child_of_another() as other:
        session.follow(child.pid, child.start, lambda: woken.append("a"))
        session.follow(child.pid, child.start, lambda: woken.append("b"))
        stop = session.follow(other.pid, other.start, lambda: woken.append("c"))
        await session.ask([])
        stop()
        stop()
        other.end("exit 0")
        await session.ask([])
        child.end("exit 0")
        await until(lambda: woken)
        await settle()
        assert woken == ["a", "b"]
    await session.close()


async def test_whom_it_follows_is_told_without_a_round(
    shells: LoginShells, toy: None
) -> None:
    session = await Real(shells).start()
    woken = asyncio.Event()
    with child_of_another() as child:
        child.end("exit 0")
        child.reap()
        session.follow(child.pid, child.start, woken.set)
        async with asyncio.timeout(20):
            await woken.wait()
    await session.close()


async def test_an_agent_that_waits_uses_no_processor_and_few_bytes(
    shells: LoginShells, toy: None
) -> None:
    real = Real(shells)
    session = await real.start()
    with child_of_another() as child:
        session.follow(child.pid, child.start, lambda: None)
        await session.ask([look("warm")])
        await until(lambda: state_of(real.pid) == "S")
        before, received = real.ticks(), real.channel.received
        with child_of_another() as other:
            # Somebody else's whole life long, nothing is asked.
            other.end("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
            await until(lambda: state_of(other.pid) == "Z")
        assert real.ticks() - before <= 2
        assert real.channel.received == received
        await session.ask([look("again")])
        assert real.channel.received - received < 4096
    await session.close()


async def test_an_agent_ends_with_its_channel(shells: LoginShells, toy: None) -> None:
    real = Real(shells)
    session = await real.start()
    await session.close()
    assert real.channel.process.returncode == 0


async def test_a_term_signal_ends_the_agent(shells: LoginShells, toy: None) -> None:
    real = Real(shells)
    session = await real.start()
    os.kill(real.pid, signal.SIGTERM)
    await until(lambda: session.lost)
    with pytest.raises(TransportError):
        await session.ask([])
    await session.close()


async def test_a_kill_in_the_middle_of_a_frame_is_no_answer(
    shells: LoginShells, toy: None
) -> None:
    real = Real(shells)
    session = await real.start()
    before = real.channel.received
    big = look(do="long", size=30_000_000)
    asking = asyncio.ensure_future(session.ask([look("a"), big]))
    await until(lambda: real.channel.received - before > 100_000)
    os.kill(real.pid, signal.SIGKILL)
    with pytest.raises(TransportError):
        await asking
    assert session.lost
    await session.close()


async def test_a_long_answer_comes_whole(shells: LoginShells, toy: None) -> None:
    session = await Real(shells).start()
    (said,) = (await session.ask([look(do="long", size=5_000_000)])).answers
    assert said == {"said": "x" * 5_000_000}
    await session.close()


async def test_a_noisy_profile_is_skipped_however_much_it_says(
    shells: LoginShells, toy: None
) -> None:
    noisy = shells.put(
        "login",
        "yes 'Welcome to the host' | head -c 20000000\n"
        "(while sleep 0.01; do echo you have mail || exit; done) &\n"
        'eval "$1"',
    )
    shells.shell = [str(noisy)]
    session = await Real(shells).start()
    for number in range(5):
        reply = await session.ask([look(str(number))])
        assert reply.answers == [{"said": str(number)}]
    await session.close()


async def test_noise_before_between_and_after_frames_is_no_answer() -> None:
    async with played() as (session, channel):
        channel.say(b"motd\n<<<")
        asking = asyncio.ensure_future(session.ask([look("a")]))
        await until(lambda: asked(channel))
        reply = told(number=1, about=ABOUT, answers=[{"said": "a"}])
        for data in (b"\x00noise", reply[:7], reply[7:50], reply[50:], b"tail"):
            channel.say(data)
            await settle()
        assert (await asking).answers == [{"said": "a"}]
        assert not session.lost


@pytest.mark.parametrize(
    "reply",
    [
        {"number": 2, "about": ABOUT, "answers": [{}]},
        {"number": 1, "about": ABOUT, "answers": []},
        {"number": 1, "about": ABOUT, "answers": [{}, {}]},
        {"number": 1, "about": ABOUT, "answers": ["held"]},
        {"number": 1, "about": ABOUT},
        {"number": 1, "answers": [{}]},
        {"exit": [1]},
        {"other": 1},
    ],
)
async def test_a_reply_that_does_not_fit_is_none(reply: dict[str, object]) -> None:
    async with played(lambda _: told(**reply)) as (session, _):
        with pytest.raises(TransportError) as caught:
            await session.ask([look("a")])
        assert caught.value.phrase == phrase("session_garbled")
        assert session.lost


async def test_a_frame_that_lacks_its_end_is_no_answer() -> None:
    whole = told(number=1, about=ABOUT, answers=[{"said": "a"}])
    async with played(lambda _: whole[:-1]) as (session, channel):
        asking = asyncio.ensure_future(session.ask([look("a")]))
        await until(lambda: asked(channel))
        await settle()
        assert not asking.done()
        channel.say(b"")
        with pytest.raises(TransportError) as caught:
            await asking
        assert caught.value.phrase == phrase("session_ended")


async def test_bytes_that_bear_the_mark_and_are_no_frame_lose_the_session() -> None:
    async with played() as (session, channel):
        channel.say(frames.telling(NONCE) + b"99999999\n")
        await until(lambda: session.lost)
        with pytest.raises(TransportError):
            await session.ask([])


async def test_the_loss_of_the_connection_is_told_with_its_reason() -> None:
    why = phrase("host_silent", host="box")
    async with played() as (session, channel):
        asking = asyncio.ensure_future(session.ask([look("a")]))
        await until(lambda: asked(channel))
        channel.say(TransportError(why))
        with pytest.raises(TransportError) as caught:
            await asking
        assert caught.value.phrase == why
        with pytest.raises(TransportError) as caught:
            await session.ask([])
        assert caught.value.phrase == why


async def test_a_fault_of_the_channel_loses_the_session() -> None:
    async with played() as (session, channel):
        channel.say(RuntimeError("a fault"))
        await until(lambda: session.lost)


async def test_a_silent_agent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_session, "ROUND_LIMIT_S", 0.05)
    async with played() as (session, _):
        with pytest.raises(TransportError) as caught:
            await session.ask([look("a")])
        assert caught.value.phrase.key == "session_silent"
        assert session.lost


async def test_a_reply_to_a_round_that_was_given_up_is_not_taken_for_the_next() -> None:
    async with played() as (session, channel):
        first = asyncio.ensure_future(session.ask([look("a")]))
        await until(lambda: asked(channel))
        first.cancel()
        await settle()
        assert not session.lost
        second = asyncio.ensure_future(session.ask([look("b")]))
        await until(lambda: len(asked(channel)) == 2)
        channel.say(told(number=1, about=ABOUT, answers=[{"said": "a"}]))
        await settle()
        assert not second.done()
        channel.say(told(number=2, about=ABOUT, answers=[{"said": "b"}]))
        assert (await second).answers == [{"said": "b"}]


async def test_a_round_given_up_while_it_was_written_ends_the_session() -> None:
    async with played() as (session, channel):
        channel.stuck.clear()
        asking = asyncio.ensure_future(session.ask([look("a")]))
        await settle()
        asking.cancel()
        await settle()
        assert session.lost
        channel.stuck.set()


async def test_only_a_change_of_whom_to_follow_is_told() -> None:
    def echo(data: bytes) -> bytes:
        (message,) = frames.Frames(frames.asking(NONCE)).feed(data)
        if "number" not in message:
            return b""
        return told(number=message["number"], about=ABOUT, answers=[])

    async with played(echo) as (session, channel):
        await session.ask([])
        stop = session.follow(2, 20, lambda: None)
        session.follow(1, 10, lambda: None)
        await settle()
        await session.ask([])
        stop()
        await session.ask([])
        await settle()
        follows = [message.get("follow") for message in asked(channel)]
        assert follows == [None, [[1, 10], [2, 20]], None, [[1, 10]]]


async def test_after_a_round_that_was_not_sent_the_next_tells_whom_to_follow() -> None:
    async with played() as (session, channel):
        asking = asyncio.ensure_future(session.ask([]))
        session.follow(1, 10, lambda: None)
        await until(lambda: asked(channel))
        asking.cancel()
        await settle()
        asking = asyncio.ensure_future(session.ask([]))
        await until(lambda: len(asked(channel)) >= 2)
        assert asked(channel)[-1].get("follow") == [[1, 10]]
        asking.cancel()


async def test_following_on_a_lost_session_is_harmless() -> None:
    async with played() as (session, channel):
        channel.say(b"")
        await until(lambda: session.lost)
        session.follow(1, 10, lambda: None)()
        await settle()
        assert asked(channel) == []


async def test_a_channel_that_fails_when_it_is_told_whom_to_follow_is_lost() -> None:
    def fail(data: bytes) -> bytes:
        raise TransportError(phrase("session_ended"))

    async with played(fail) as (session, _):
        session.follow(1, 10, lambda: None)
        await until(lambda: session.lost)
        with pytest.raises(TransportError):
            await session.ask([])


async def test_exits_that_nobody_follows_any_more_wake_nobody() -> None:
    async with played() as (session, channel):
        channel.say(told(exit=[1, 10, None]))
        await settle()
        assert not session.lost


async def test_a_channel_that_will_not_close_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    channel = FakeChannel()

    async def refuse() -> None:
        raise TransportError(phrase("session_ended"))

    monkeypatch.setattr(channel, "close", refuse)
    session = AgentSession(channel, NONCE)
    await session.close()
    assert session.lost


async def test_the_python_of_the_account_runs_it_whatever_shell_it_has(
    shells: LoginShells, toy: None
) -> None:
    stub = shells.put(
        "restricted",
        "case $1 in\n*=*|*'$('*|*'&&'*) echo refused; exit 127;;\nesac\neval \"$1\"",
    )
    shells.shell = [str(stub)]
    session = await Real(shells).start()
    assert (await session.ask([look("a")])).answers == [{"said": "a"}]
    await session.close()
