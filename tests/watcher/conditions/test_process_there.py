"""Processes on a host, by the same judgement, and together with their log."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import cast

import pytest

from policies.model import Memory, Observation, Result, Sight
from policies.wording import phrase
from tests.fakes import START, FakeClock, FakeHost, FakeHosts
from tests.suites.condition import closing, remembered
from tests.watcher.transport.channels import LoginShells
from tests.watcher.work import Work, working
from watcher.conditions import CallHint, LocalCondition, Look, Place
from watcher.conditions import process as module
from watcher.config import Config
from watcher.errors import UsageError
from watcher.looked import AskHost
from watcher.onhost.table import ProcFs
from watcher.targets import condition_of, target_of
from watcher.transport import Host, Reply, Request, bundle
from watcher.transport.agent_session import AgentSession
from watcher.transport.session import Session
from watcher.transport.shell_session import SHELL, ShellSession

NONCE = "c4" * 16
LIMIT_S = 60.0
BOOT_ID = ProcFs().boot_id()
NO_LAUNCHER = 4194305


def unique() -> str:
    """Return a word that no other command line holds."""
    return f"work-{uuid.uuid4().hex}"


class SessionHost(FakeHost):
    """A host that is asked by a real session."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session

    async def ask(self, requests: Sequence[Request], *, last: bool = False) -> Reply:
        return await self._session.ask(requests)


class Looks:
    """Asks a host as an engine does, and hands the memory on."""

    def __init__(
        self,
        host: FakeHost,
        *words: str,
        launcher: int = NO_LAUNCHER,
        memory: Memory | None = None,
    ) -> None:
        self.clock = FakeClock()
        place = Place(
            config=Config(),
            cwd="/",
            launcher=launcher,
            clock=self.clock,
            hosts=FakeHosts(host),
        )
        self.condition = condition_of(["process", *words, "--host", "box"], place)
        self.memory: Memory = memory or {}
        self._looker = AskHost(cast("Host", host))

    async def take(self) -> Observation:
        (seen,) = await self._looker.take([Look(self.condition, self.memory)], START)
        assert seen is not None
        self.memory = remembered(seen)
        return seen

    async def sight(self) -> Sight:
        return (await self.take()).sight


def words_of(form: str, work: Work, folder: Path) -> list[str]:
    """Return how a process is named in one of the four forms."""
    match form:
        case "--pid":
            return [form, str(work.pid)]
        case "--pidfile":
            (folder / "pid").write_text(f"{work.pid}\n")
            return [form, str(folder / "pid")]
        case _:
            return [form, work.word]


FORMS = ["--pid", "--pidfile", "--match", "--regex"]


@pytest.fixture(params=["part", "agent", "sh"])
async def host(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[FakeHost]:
    """Give a host by each way to look: in this process, by agent, and by a shell."""
    if request.param == "part":
        yield FakeHost()
        return
    shells = LoginShells(tmp_path)
    shells.put_python()
    session: AgentSession | ShellSession
    if request.param == "agent":
        command, program = bundle.agent(NONCE)
        session = agent = AgentSession(await shells.run(command), NONCE)
        await agent.start(program, LIMIT_S)
    else:
        session = shell = ShellSession(await shells.run(SHELL), NONCE)
        await shell.start(LIMIT_S)
    yield SessionHost(session)
    await session.close()
    await shells.close()


@pytest.mark.parametrize("form", FORMS)
async def test_a_process_is_held_until_it_has_ended(
    host: FakeHost, tmp_path: Path, form: str
) -> None:
    with working(unique()) as work:
        looks = Looks(host, *words_of(form, work, tmp_path))
        held = await looks.take()
        assert held.sight is Sight.HELD, held
        assert [note.values["pid"] for note in held.notes] == [work.pid]
        assert held.evidence["host"] == "box"
        assert await looks.sight() is Sight.HELD
        work.end_as_zombie()
        assert await looks.sight() is Sight.RELEASED
        work.end()
        assert await looks.sight() is Sight.RELEASED


@pytest.mark.parametrize("form", ["--match", "--regex"])
async def test_b24_a_pattern_that_matches_nothing_was_never_seen(
    host: FakeHost, form: str
) -> None:
    looks = Looks(host, form, unique())
    for _ in range(3):
        seen = await looks.take()
        assert seen.absent
        assert seen.reason == phrase("nothing_matches")


async def test_who_waits_never_matches_where_the_host_is_this_machine(
    host: FakeHost,
) -> None:
    word = unique()
    with working("wait for", word) as shell, working("and", word) as second:
        looks = Looks(host, "--match", word, launcher=shell.pid)
        looks.condition.joined(second.pid)
        assert (await looks.take()).absent
        with working("the job", word) as work:
            held = await looks.take()
            assert [note.values["pid"] for note in held.notes] == [work.pid]
        again = Looks(host, "--match", word, memory=looks.memory)
        assert await again.sight() is Sight.RELEASED, "noted for after a restart"


async def test_the_log_is_read_in_the_same_round(
    host: FakeHost, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    log.write_text("ALL OK of yesterday\n")
    with working(unique()) as work:
        words = ["--pid", str(work.pid), "--log", str(log), "--pass", "ALL OK"]
        looks = Looks(host, *words)
        assert await looks.sight() is Sight.HELD
        assert await looks.sight() is Sight.HELD
        with log.open("a") as file:
            file.write("ALL OK at last")
        work.end()
    seen = await looks.take()
    while seen.again_in_s == 0:
        seen = await looks.take()
    assert seen.sight is Sight.RELEASED
    assert seen.result is Result.PASS
    assert seen.decided is not None


async def test_silence_without_work_is_stalled(host: FakeHost, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    with working(unique()) as work:
        words = ["--pid", str(work.pid), "--log", str(log), "--stalled", "60"]
        looks = Looks(host, *words)
        clock = looks.clock
        seen = await looks.take()
        assert seen.sight is Sight.HELD
        for _ in range(4):
            await clock.advance(50)
            seen = await looks.take()
        assert seen.sight is Sight.RELEASED
        assert seen.result is Result.STALLED


async def test_a_host_that_gives_no_answer_is_unknown_and_forgets_nothing() -> None:
    host = FakeHost()
    with working(unique()) as work:
        looks = Looks(host, "--pid", str(work.pid))
        assert await looks.sight() is Sight.HELD
        memory = looks.memory
        host.silent = phrase("host_silent", host="box")
        seen = await looks.take()
        assert (seen.sight, seen.out_of_reach) == (Sight.UNKNOWN, True)
        assert looks.memory == memory
        host.silent = None
        assert await looks.sight() is Sight.HELD


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"error": {"errno": "EIO", "text": "no"}},
        {"boot_id": BOOT_ID, "row": [1]},
        {"boot_id": BOOT_ID, "rows": "x", "hidden": False},
    ],
)
@pytest.mark.parametrize("form", ["--pid", "--match"])
async def test_an_answer_that_is_none_is_unknown(
    answer: dict[str, object], form: str, tmp_path: Path
) -> None:
    host = FakeHost()
    with working(unique()) as work:
        looks = Looks(host, *words_of(form, work, tmp_path))
        assert await looks.sight() is Sight.HELD
        memory = looks.memory
        host.answers["process"] = answer  # type: ignore[assignment] # that is the point
        seen = await looks.take()
        assert seen.sight is Sight.UNKNOWN
        assert not seen.absent
        looks.memory = memory
        del host.answers["process"]
        assert await looks.sight() is Sight.HELD


async def test_all_patterns_of_a_host_share_one_table() -> None:
    host = FakeHost()
    one, other = Looks(host, "--match", unique()), Looks(host, "--regex", unique())
    looks = [Look(each.condition, {}) for each in (one, other)]
    await AskHost(cast("Host", host)).take(looks, START)
    assert host.asked == [[{"op": "process", "table": 1}]]


async def test_the_ends_of_what_was_seen_are_followed() -> None:
    host = FakeHost()
    with working(unique()) as work:
        looks = Looks(host, "--match", work.word)
        await looks.take()
        (hint,) = looks.condition.hints()
        assert isinstance(hint, CallHint)
        stop = hint.subscribe(lambda: None)
        assert [followed[0] for followed in host.followed] == [work.pid]
        stop()


async def test_an_expression_that_never_ends_holds_the_loop_up_for_a_moment_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_REGEX_LIMIT_S", 0.1)
    host = FakeHost()
    rows = [[pid, 1, 9, "S", 1, 0, ["a" * 5000 + "b"], True] for pid in (7, 8)]
    table = {"boot_id": "b", "rows": rows, "hidden": False}
    host.answers["process"] = table  # type: ignore[assignment] # JSON of lists
    looks = Looks(host, "--regex", "(a+)+$")
    seen = await looks.take()
    assert seen.sight is Sight.UNKNOWN
    assert seen.reason == phrase("slow_regex", regex="(a+)+$")


def test_the_time_of_all_searches_counts() -> None:
    clock = FakeClock()
    matches = module.quick("a", clock)
    assert matches("a")
    asyncio.run(clock.advance(1))
    with pytest.raises(TimeoutError):
        matches("a")


class TestNames:
    WHERE = Place(config=Config(), cwd="/run", launcher=NO_LAUNCHER)

    def test_all_options_are_in_the_target_in_their_order(self) -> None:
        written = (
            "process --from-start --host box --stalled 1800 --fail Y --pass X "
            "--log /p --pid 1234"
        )
        target = target_of(written, self.WHERE)
        assert target.text == (
            "process --pid 1234 --log /p --pass X --fail Y --stalled 30m --from-start "
            "--host box"
        )
        assert target.host == "box"
        assert target_of(target.text, self.WHERE) == target

    def test_a_log_of_this_machine_may_be_relative(self) -> None:
        target = target_of("process --pid 1 --log x --fail y", self.WHERE)
        assert target.text == "process --pid 1 --log /run/x --fail y"

    @pytest.mark.parametrize(
        ("words", "key"),
        [
            ("--pass x", "log_idle"),
            ("--fail x", "log_idle"),
            ("--stalled 5m", "log_idle"),
            ("--from-start", "log_idle"),
            ("--log x", "log_needs_marker"),
            ("--log x --from-start", "log_needs_marker"),
            ("--log x --pass (", "bad_regex"),
            ("--log x --fail ''", "empty_pattern"),
            ("--log x --stalled 0", "bad_duration"),
            ("--log x --stalled ''", "bad_duration"),
            ("--log '' --pass x", "bad_path"),
            ("--host=-x", "bad_host"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, words: str, key: str) -> None:
        with pytest.raises(UsageError) as caught:
            target_of(f"process --pid 1 {words}", self.WHERE)
        assert caught.value.phrase.key == key

    def test_what_is_relative_on_a_host_is_below_the_home_folder_there(self) -> None:
        words = "process --pidfile x --log l/y --pass z --host box"
        target = target_of(words, self.WHERE)
        assert target.text == (
            "process --pidfile '~/x' --log '~/l/y' --pass z --host box"
        )


class TestLogHere:
    """On this machine the log stays open from look to look."""

    def condition(self, *words: str) -> LocalCondition:
        place = Place(config=Config(), cwd="/", launcher=NO_LAUNCHER, clock=FakeClock())
        return cast("LocalCondition", condition_of(["process", *words], place))

    @pytest.mark.parametrize("form", FORMS)
    def test_what_it_wrote_before_it_ended_decides(
        self, tmp_path: Path, form: str
    ) -> None:
        log = tmp_path / "log"
        log.write_text("BAD of yesterday\n")
        with working(unique()) as work:
            options = ["--log", str(log), "--fail", "BAD", "--stalled", "1h"]
            condition = self.condition(*words_of(form, work, tmp_path), *options)
            with closing(condition):
                memory = remembered(condition.look({}, START))
                assert not condition.unchanged(memory)
                assert len(condition.hints()) >= 2
                log.rename(tmp_path / "log.1")
                with (tmp_path / "log.1").open("a") as file:
                    file.write("BAD thing")
                work.end()
                seen = condition.look(memory, START)
                while seen.again_in_s == 0:
                    seen = condition.look(remembered(seen), START)
                assert (seen.sight, seen.result) == (Sight.RELEASED, Result.FAIL)
                assert seen.decided is not None

    @pytest.mark.parametrize("form", FORMS)
    def test_one_without_a_marker_has_died(self, tmp_path: Path, form: str) -> None:
        with working(unique()) as work:
            options = ["--log", str(tmp_path / "log"), "--pass", "OK"]
            condition = self.condition(*words_of(form, work, tmp_path), *options)
            with closing(condition):
                memory = remembered(condition.look({}, START))
                work.kill()
                work.end()
                for _ in range(2):
                    seen = condition.look(memory, START)
                    memory = remembered(seen)
                    assert (seen.sight, seen.result) == (Sight.RELEASED, Result.DIED)
