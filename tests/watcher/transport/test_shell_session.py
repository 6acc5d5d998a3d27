import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from policies.wording import phrase
from tests.fakes import settle, until
from tests.watcher.transport.channels import FakeChannel, LoginShells
from tests.watcher.transport.toy import look, raw, toy
from watcher.errors import TransportError
from watcher.onhost import PARTS
from watcher.transport import Answer, Request, scripts, shell_session
from watcher.transport.shell_session import SHELL, ShellSession

__all__ = ["toy"]

NONCE = "0a" * 16
LIMIT_S = 60.0

BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text().strip()

SHELLS = {
    "dash": "exec dash",
    "bash": "exec bash --posix",
    "busybox": "exec busybox sh",
    "bare": "PATH=$PATH_OF_FEW; export PATH; exec /bin/sh",
}
FEW = ("sh", "printf", "uname", "cat", "sleep")
"""All that a bare host has: neither timeout nor head nor readlink."""


@pytest.fixture
async def shells(tmp_path: Path) -> AsyncIterator[LoginShells]:
    shells = LoginShells(tmp_path)
    yield shells
    await shells.close()


def command(name: str, shells: LoginShells) -> str:
    """Return what starts a shell; skip where this machine has none of it."""
    if name in {"dash", "bash", "busybox"} and shutil.which(name) is None:
        pytest.skip(f"no {name} here")
    few = shells.bin.parent / "few"
    few.mkdir()
    for tool in FEW:
        found = shutil.which(tool)
        assert found is not None
        (few / tool).symlink_to(found)
    return SHELLS[name].replace("$PATH_OF_FEW", str(few))


@pytest.fixture(params=list(SHELLS))
async def session(
    request: pytest.FixtureRequest, shells: LoginShells, toy: None
) -> AsyncIterator[ShellSession]:
    """Give a session with each shell that is here."""
    channel = await shells.run(command(request.param, shells))
    session = ShellSession(channel, NONCE)
    await session.start(LIMIT_S)
    yield session
    await session.close()
    await channel.process.wait()


async def test_a_shell_answers_round_after_round(session: ShellSession) -> None:
    names = ["", "it's", 'a "b" $(c) `d` \\ % %s', "two\nlines\n", "x" * 70_000]
    for number in range(3):
        requests = [look(f"{number}{name}") for name in names]
        reply = await session.ask(requests)
        assert reply.answers == [{"said": request["name"]} for request in requests]
        assert reply.about["means"] == "sh"
        assert reply.about["system"] == os.uname().sysname
        assert reply.about["hostname"] == os.uname().nodename
        assert reply.about["boot_id"] == BOOT_ID


async def test_a_round_of_nothing_has_no_answers(session: ShellSession) -> None:
    assert (await session.ask([])).answers == []


async def test_rounds_that_are_asked_at_once_come_one_after_the_other(
    session: ShellSession,
) -> None:
    replies = await asyncio.gather(
        *(session.ask([look(str(number))]) for number in range(5))
    )
    said = [reply.answers[0]["said"] for reply in replies]
    assert said == [str(number) for number in range(5)]


async def test_no_script_can_break_another(session: ShellSession) -> None:
    broken = [
        raw("exit 3"),
        raw("if ("),
        raw("cat"),
        raw("cd /nowhere; set -e; false"),
        raw("mark() { :; }; within() { :; }; exec >/dev/null"),
        raw("echo noise >&2; unset PATH"),
        raw("printf '\\000\\377'"),
        raw("echo 'not the end"),
    ]
    requests: list[Request] = []
    for one in broken:
        requests += [one, look("well")]
    reply = await session.ask(requests)
    assert reply.answers[1::2] == [{"said": "well"}] * len(broken)
    assert reply.answers[0] == {"said": ""}
    assert reply.answers[12] == {"said": "\x00\xff"}
    assert not session.lost


async def test_a_script_that_is_killed_or_missing_has_not_looked(
    session: ShellSession,
) -> None:
    killed = raw("sh -c 'kill -TERM $$'")
    reply = await session.ask([killed, raw("no-such-program-here")])
    for one in reply.answers:
        assert "status" in str(one["error"])


async def test_a_part_that_fails_on_our_side_costs_the_others_nothing(
    session: ShellSession,
) -> None:
    failing: list[Request] = [look(do="no script"), look(do="no answer")]
    reply = await session.ask([*failing, {"op": "nothing"}, look("well")])
    assert all("error" in one for one in reply.answers[:3])
    assert reply.answers[3] == {"said": "well"}


async def test_scripts_know_their_side_and_leave_it_clean(
    session: ShellSession, shells: LoginShells
) -> None:
    said = raw('echo "$session $LC_ALL $(umask)"; pwd')
    reply = await session.ask([said])
    pid = shells.channels[0].process.pid
    (answer,) = reply.answers
    assert str(answer["said"]).split() == [str(pid), "C", "0077", "/"]


async def test_a_shell_follows_nobody(session: ShellSession) -> None:
    session.follow(os.getpid(), 1, lambda: None)()


@pytest.fixture
async def plain(shells: LoginShells, toy: None) -> AsyncIterator[ShellSession]:
    session = ShellSession(await shells.run(SHELL), NONCE)
    await session.start(LIMIT_S)
    yield session
    await session.close()


async def test_output_without_a_bound_is_an_error_and_the_others_stay(
    shells: LoginShells, toy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripts, "_MOST_OUTPUT", 100_000)
    session = ShellSession(await shells.run(SHELL), NONCE)
    await session.start(LIMIT_S)
    endless = raw("while echo more and more; do :; done")
    reply = await session.ask([look("a"), endless, look("b"), endless])
    assert reply.answers[0::2] == [{"said": "a"}, {"said": "b"}]
    assert all("EFBIG" in str(one) for one in reply.answers[1::2])
    await session.close()


async def test_a_shell_ends_with_its_channel(
    plain: ShellSession, shells: LoginShells
) -> None:
    await plain.close()
    assert plain.lost
    assert shells.channels[0].process.returncode == 0


async def test_a_shell_that_is_killed_in_a_round_gives_no_answer(
    plain: ShellSession,
) -> None:
    with pytest.raises(TransportError):
        await plain.ask([look("a"), raw("kill -9 $session; sleep 0.1")])
    assert plain.lost
    with pytest.raises(TransportError):
        await plain.ask([])


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("timeout") is None, reason="no timeout(1)")
async def test_a_look_that_hangs_there_is_one_answer_of_many(
    shells: LoginShells, toy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripts, "SCRIPT_LIMIT_S", 1)
    monkeypatch.setattr(shell_session, "ROUND_LIMIT_S", LIMIT_S)
    session = ShellSession(await shells.run(SHELL), NONCE)
    await session.start(LIMIT_S)
    well: Answer = {}
    for _ in range(20):  # a busy machine may be late for the other, too
        looks = [raw("sleep 600 | cat"), look("well")]
        hung, well = (await session.ask(looks)).answers
        assert "ETIMEDOUT" in str(hung)
        if "said" in well:
            break
    assert well == {"said": "well"}
    await session.close()


class HalfRound:
    """A far side that begins a round of three, ends its first look, and hangs."""

    def __init__(self) -> None:
        self.round = 1
        self.channel = FakeChannel(self.answer)

    def mark(self, word: object, output: str = "") -> str:
        return f"\n{NONCE} {self.round} {word}\n{output}"

    def looks(self, *outputs: str) -> str:
        return "".join(
            self.mark(number, output) + self.mark(f"{number} 0")
            for number, output in enumerate(outputs)
        )

    def answer(self, text: bytes) -> bytes:
        if self.round == 1:
            said = self.looks("boot\nns\nLinux\nbox\n/home/u\n") + self.mark("end")
        elif self.round == 2:
            said = self.looks("first") + self.mark(1)
        else:
            said = self.looks(*["late"] * text.count(b"bound\n")) + self.mark("end")
        data = (self.mark("begin") + said).encode()
        self.round += 1
        return data


async def test_what_had_come_of_a_round_that_hung_is_its_reply(
    toy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = HalfRound()
    session = ShellSession(far.channel, NONCE)
    await session.start(LIMIT_S)
    monkeypatch.setattr(shell_session, "ROUND_LIMIT_S", 0.2)
    first, second, third = (
        await session.ask([look("a"), look("b"), look("c")])
    ).answers
    assert first == {"said": "first"}
    assert "ETIMEDOUT" in str(second)
    assert "ETIMEDOUT" in str(third)
    assert not session.lost
    monkeypatch.setattr(shell_session, "ROUND_LIMIT_S", LIMIT_S)
    reply = await session.ask([look("a"), look("b"), look("c")])
    assert reply.answers == [{"said": "late"}] * 3
    await session.close()


async def test_looks_that_hang_are_taken_one_a_round_in_turns(toy: None) -> None:
    far = HalfRound()
    session = ShellSession(far.channel, NONCE)
    await session.start(LIMIT_S)
    taken: list[str] = []

    def hang(text: bytes) -> bytes:
        names = re.findall(r"printf %s (\w+)", text.decode())
        taken.append("".join(names))
        said = "".join(
            far.mark(number, name) + far.mark(f"{number} {137 if name in 'abc' else 0}")
            for number, name in enumerate(names)
        )
        data = (far.mark("begin") + said + far.mark("end")).encode()
        far.round += 1
        return data

    far.channel.answer = hang
    for _ in range(5):
        *hung, well = (await session.ask([look(name) for name in "abcd"])).answers
        assert all("ETIMEDOUT" in str(one) for one in hung)
        assert well == {"said": "d"}
    assert (await session.ask([look("c")])).answers != [{"said": "c"}]
    assert taken == ["abcd", "ad", "bd", "cd", "ad", "c"]
    await session.close()


async def test_a_shell_of_which_nothing_came_is_given_up(
    toy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = HalfRound()
    session = ShellSession(far.channel, NONCE)
    await session.start(LIMIT_S)
    far.channel.answer = lambda _: b""
    monkeypatch.setattr(shell_session, "ROUND_LIMIT_S", 0.05)
    with pytest.raises(TransportError) as caught:
        await session.ask([look("a")])
    assert caught.value.phrase.key == "session_silent"
    assert session.lost
    await session.close()


async def test_a_round_given_up_is_not_taken_for_the_next(plain: ShellSession) -> None:
    first = asyncio.ensure_future(plain.ask([raw("sleep 0.2; echo old")]))
    await settle()
    first.cancel()
    await settle()
    assert (await plain.ask([look("new")])).answers == [{"said": "new"}]


async def test_what_is_no_shell_is_told_with_its_own_words(
    shells: LoginShells, toy: None
) -> None:
    shells.shell = [str(shells.put("nologin", "echo This account is closed.; exit 1"))]
    session = ShellSession(await shells.run(SHELL), NONCE)
    with pytest.raises(TransportError) as caught:
        await session.start(LIMIT_S)
    assert caught.value.phrase == phrase("session_said", said="This account is closed.")
    await session.close()


async def test_what_ends_without_a_word_is_told_so(toy: None) -> None:
    channel = FakeChannel(lambda _: b"")
    session = ShellSession(channel, NONCE)
    channel.say(b"")
    with pytest.raises(TransportError) as caught:
        await session.start(LIMIT_S)
    assert caught.value.phrase == phrase("session_ended")
    await session.close()


async def test_a_shell_that_cannot_say_where_it_is_is_none(toy: None) -> None:
    far = HalfRound()

    def odd(text: bytes) -> bytes:
        return (far.mark("begin") + far.looks("one line") + far.mark("end")).encode()

    far.channel.answer = odd
    session = ShellSession(far.channel, NONCE)
    with pytest.raises(TransportError) as caught:
        await session.start(LIMIT_S)
    assert caught.value.phrase == phrase("session_garbled")
    await session.close()


async def test_noise_of_a_profile_is_skipped(shells: LoginShells, toy: None) -> None:
    noisy = shells.put("login", 'yes noise | head -c 20000000\neval "$1"')
    shells.shell = [str(noisy)]
    session = ShellSession(await shells.run(SHELL), NONCE)
    await session.start(LIMIT_S)
    many = [look(str(number)) for number in range(100)]
    reply = await session.ask(many)
    assert [one["said"] for one in reply.answers] == [one["name"] for one in many]
    await until(lambda: not session.lost)
    await session.close()


def test_the_toy_stands_in_for_a_part() -> None:
    assert "command" in PARTS
