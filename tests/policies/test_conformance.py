"""The policy's own clauses, each as a test of its name.

R1 what a watch may wait for; R2 the watcher; R3 the ping; R5 the deadline; T1.2 it ends
only on the real condition; T1.4 every watch has a deadline.
"""

import argparse
import shlex
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notify.channels import Channel
from notify.channels.fallback import FallbackLog, LogChannel
from notify.dispatcher import LOG, Dispatcher
from notify.errors import DeliveryError, PermanentDeliveryError
from policies.cadence import next_look
from policies.duration import parse_duration
from policies.lines import cleared_ending, outcome_line
from policies.model import Ending, Observation, Outcome, Result, Severity, Sight, Target
from policies.proctable import Row, matching, own_side
from policies.shapes import outcome_ping
from policies.target import (
    absolute,
    lock_file,
    lock_target,
    match_target,
    pid_target,
    pidfile_target,
    regex_target,
    says_nothing,
)
from policies.verdict import Progress, Rules, Verdict, decide
from policies.wording import Lang, Phrase, phrase
from tests.fakes import START, FakeChannel
from tests.policies.samples import (
    ABSENT,
    ALWAYS,
    HELD,
    LOCK,
    RELEASED,
    UNKNOWN,
    WORK,
    ZONE,
    observations,
    simulate,
)
from watcher.cli.common import DEFAULT_TTL_S, Order, order_of
from watcher.cli.parser import parse
from watcher.conditions import KINDS
from watcher.config import Config
from watcher.errors import UsageError

HOUR = Rules(armed_s=0, deadline_s=3600, settle_s=0.25)
YEAR_S = 365 * 86400


def directly(
    channels: Mapping[str, Channel], log: FallbackLog, lang: Lang
) -> Dispatcher:
    """Return a dispatcher without an outbox."""
    return Dispatcher(
        channels,
        log,
        lang=lang,
        submit=None,
        now=lambda: START,
        jitter=lambda: 0.0,
        notice=lambda _: None,
    )


def order(*options: str, ttl: str | None = None) -> Order:
    """Read a command's common options as the command does."""
    arguments: argparse.Namespace = parse(["lock", "api", *options])[1]
    return order_of(arguments, Config(), {} if ttl is None else {"TTL": ttl}, far=False)


# R1: what a watch may wait for


@pytest.mark.parametrize("kind", ["lock", "process"])
def test_r1_a_watch_may_wait_for_a_lock_and_for_work(kind: str) -> None:
    assert kind in KINDS


@pytest.mark.parametrize(
    ("target", "ending"),
    [
        pytest.param(lock_target("/l/lock-api.md", "/l"), Ending.RELEASED, id="lock"),
        pytest.param(pid_target(7), Ending.ENDED, id="process"),
        pytest.param(pidfile_target("/run/a.pid"), Ending.ENDED, id="process-by-file"),
        pytest.param(match_target("pytest tests/"), Ending.ENDED, id="test"),
        pytest.param(match_target("make build"), Ending.ENDED, id="build"),
        pytest.param(
            regex_target("soak|emulator"), Ending.ENDED, id="soak-or-emulator"
        ),
    ],
)
def test_r1_a_resource_is_given_back_and_work_ends(
    target: Target, ending: Ending
) -> None:
    assert cleared_ending(target.kind) is ending


def test_r1_a_lock_is_awaited_by_its_slug_whoever_holds_it() -> None:
    """What the file says never decides: no part of the target names a holder."""
    assert lock_target("/l/lock-api.md", "/l").text == "lock api"


@pytest.mark.parametrize(
    "parent",
    [
        pytest.param(1, id="of-the-system"),
        pytest.param(50, id="of-another-session"),
        pytest.param(10, id="of-this-session"),
    ],
)
def test_r1_work_is_awaited_whoever_owns_it(parent: int) -> None:
    rows = {
        pid: Row(pid=pid, ppid=ppid, start=pid, state="S", argv=tuple(argv.split()))
        for pid, ppid, argv in (
            (10, 1, "claude"),
            (11, 10, "koder-monitor process --match job77"),
            (50, 1, "other-agent"),
            (60, parent, "job77 --all"),
        )
    }
    own = own_side(rows, {11, 10})
    assert [row.pid for row in matching(rows, own, lambda c: "job77" in c)] == [60]


@pytest.mark.parametrize("settle_s", [0, 0.25])
def test_r1_what_is_clear_already_is_not_waited_for(settle_s: float) -> None:
    rules = replace(HOUR, settle_s=settle_s)
    ran = simulate(lambda _: RELEASED, rules=rules)
    assert (ran.verdict, ran.at_s) == (Verdict.CLEARED, settle_s)
    assert not ran.progress.ever_blocked


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        pytest.param(LOCK, "já estava livre ao armar", id="lock"),
        pytest.param(WORK, "já não rodava ao armar", id="work"),
    ],
)
def test_r1_and_the_line_says_that_nothing_had_to_be_waited_for(
    outcome: Outcome, words: str
) -> None:
    line = outcome_line(replace(outcome, already_clear=True), Lang.PT, ZONE)
    assert line.startswith("✅ ")
    assert line.endswith(f" — {words}")


def test_r1_a_pattern_that_matches_nothing_is_no_release_b24() -> None:
    ran = simulate(lambda _: ABSENT, rules=HOUR)
    assert (ran.verdict, ran.at_s) == (Verdict.UNSEEN, 0)


# R2: the watcher


def test_r2_cadence_is_30_s_here_and_60_s_on_a_host_and_never_below() -> None:
    cadences = Config().cadence
    assert [cadences.local, cadences.floor_local] == [30.0, 30.0]
    assert [cadences.remote, cadences.floor_remote] == [60.0, 60.0]


@pytest.mark.parametrize(
    ("options", "every_s", "warned"),
    [
        pytest.param([], 30, False, id="default"),
        pytest.param(["--every", "1s"], 30, True, id="below-the-floor"),
        pytest.param(["--every", "30s"], 30, False, id="at-the-floor"),
        pytest.param(["--every", "5m"], 300, False, id="above"),
    ],
)
def test_r2_cadence_below_the_floor_is_raised_with_a_warning(
    options: list[str], every_s: int, warned: bool
) -> None:
    ordered = order(*options)
    assert ordered.every_s == every_s
    assert (ordered.raised is not None) is warned


def test_r2_cadence_is_kept_up_to_the_deadline() -> None:
    looked: list[float] = []

    def see(now_s: float) -> Observation:
        looked.append(now_s)
        return HELD

    simulate(see, rules=replace(HOUR, deadline_s=100))
    assert looked == [0, 30, 60, 90, 100]


@pytest.mark.parametrize("state", ["Z", "X"])
def test_r2_death_ends_the_watch_as_success_does_b28(state: str) -> None:
    row = Row(pid=7, ppid=1, start=1, state=state, argv=("job77",))
    assert row.finished
    assert matching({7: row}, (), lambda _: True) == []


@pytest.mark.parametrize("result", [*Result, None])
def test_r2_death_and_success_have_the_same_first_words_and_their_state(
    result: Result | None,
) -> None:
    line = outcome_line(replace(WORK, result=result), Lang.PT, ZONE)
    assert line.startswith("✅ TERMINOU: treino em ")
    assert ("[" in line) is (result is not None)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("/l/lock-api.md", "/l//./lock-api.md", id="double-slash-and-dot"),
        pytest.param("/l/lock-api.md", "lock-api.md", id="from-the-lock-directory"),
        pytest.param("/l/lock-api.md", "../l/lock-api.md", id="by-way-of-its-parent"),
        pytest.param("/m/x.lock", "../m/x.lock", id="another-path"),
        pytest.param("/m/x.lock", "/m/x.lock/", id="slash-behind"),
    ],
)
def test_r2_one_condition_is_one_watch_however_its_path_is_spelt(
    one: str, other: str
) -> None:
    targets = {lock_target(absolute(path, "/l"), "/l").text for path in (one, other)}
    assert len(targets) == 1


def test_r2_one_condition_is_one_watch_by_slug_and_by_path() -> None:
    by_slug = lock_target(f"/l/{lock_file('api')}", "/l")
    assert by_slug == lock_target(absolute("./lock-api.md", "/l"), "/l")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("process --match 'a b'", 'process --match "a b"'),
        ("process --match=a", "process --match a"),
        ("process '--regex=^a'", "process --regex ^a"),
    ],
)
def test_r2_one_condition_is_one_watch_however_its_pattern_is_quoted(
    one: str, other: str
) -> None:
    def text_of(command: str) -> str:
        options = parse(shlex.split(command))[1]
        if options.match is not None:
            return match_target(options.match).text
        return regex_target(options.regex).text

    assert text_of(one) == text_of(other)


@pytest.mark.parametrize("label", ["aguardando", "waiting", "wait", "teste", " ", ""])
def test_r2_a_generic_label_is_refused_with_a_hint(label: str) -> None:
    with pytest.raises(UsageError) as error:
        order("--label", label)
    assert error.value.phrase == phrase("bad_label", label=label)
    assert "diga o que é esperado" in error.value.phrase.render(Lang.PT)


@pytest.mark.parametrize(
    ("target", "label"),
    [
        (lock_target("/l/lock-api.md", "/l"), "api"),
        (lock_target("/m/x.lock", "/l"), "x.lock"),
        (pid_target(7), "PID 7"),
        (pidfile_target("/run/build.pid"), "build.pid"),
        (match_target("make build"), "make build"),
        (regex_target("soak|emu"), "soak|emu"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_r2_a_label_follows_from_the_condition(target: Target, label: str) -> None:
    assert target.label == label
    assert not says_nothing(target.label)


# R3: the ping

ENDINGS = [
    pytest.param(LOCK, Severity.INFO, id="released"),
    pytest.param(WORK, Severity.INFO, id="ended"),
    pytest.param(
        replace(LOCK, ending=Ending.EXPIRED), Severity.WARNING, id="lock-expired"
    ),
    pytest.param(
        replace(WORK, ending=Ending.EXPIRED), Severity.WARNING, id="work-expired"
    ),
    pytest.param(replace(WORK, ending=Ending.UNSEEN), Severity.INFO, id="unseen"),
    pytest.param(replace(WORK, result=Result.FAIL), Severity.ERROR, id="FAIL"),
    pytest.param(replace(WORK, result=Result.STALLED), Severity.ERROR, id="STALLED"),
    pytest.param(replace(WORK, result=Result.DIED), Severity.ERROR, id="DIED"),
]


@pytest.mark.parametrize("lang", Lang)
@pytest.mark.parametrize(("outcome", "severity"), ENDINGS)
def test_r3_every_outcome_is_pinged_with_its_line_and_its_weight(
    outcome: Outcome, severity: Severity, lang: Lang
) -> None:
    ping = outcome_ping(outcome, lang, ZONE)
    assert ping.message == outcome_line(outcome, lang, ZONE)
    assert ping.title
    assert ping.idempotency_key == f"a1b2c3-1-{outcome.ending}"
    assert ping.severity is severity


def test_r3_a_removal_is_not_pinged_since_a_person_did_it() -> None:
    with pytest.raises(ValueError, match="removal"):
        outcome_ping(replace(LOCK, ending=Ending.REMOVED), Lang.PT, ZONE)


@pytest.mark.parametrize("lang", Lang)
@pytest.mark.parametrize(
    ("dispatcher", "reason"),
    [
        pytest.param(
            lambda log, lang: directly({}, log, lang),
            phrase("no_channel"),
            id="no-channel",
        ),
        pytest.param(
            lambda log, lang: directly(
                {LOG: LogChannel(log, phrase("key_open", path="/k"), lang)}, log, lang
            ),
            phrase("key_open", path="/k"),
            id="a-key-that-others-can-read",
        ),
        pytest.param(
            lambda log, lang: directly(
                {"fake": FakeChannel(DeliveryError("HTTP 503"))}, log, lang
            ),
            phrase("not_delivered", error="HTTP 503"),
            id="not-delivered",
        ),
        pytest.param(
            lambda log, lang: directly(
                {"fake": FakeChannel(PermanentDeliveryError("HTTP 401"))}, log, lang
            ),
            phrase("refused", error="HTTP 401"),
            id="refused",
        ),
        pytest.param(
            lambda log, lang: directly(
                {"fake": FakeChannel(DeliveryError(""))}, log, lang
            ),
            phrase("not_delivered", error=""),
            id="for-no-known-reason",
        ),
    ],
)
async def test_r3_the_fallback_is_never_silent(
    dispatcher: Callable[[FallbackLog, Lang], Dispatcher],
    reason: Phrase,
    lang: Lang,
    tmp_path: Path,
) -> None:
    path = tmp_path / "release-pings.log"
    ping = outcome_ping(LOCK, lang, ZONE)
    note = await dispatcher(FallbackLog(str(path), ZONE), lang).send(ping)
    assert note == phrase("ping_logged", path=str(path), reason=reason)
    line = path.read_text("utf-8")
    assert line.count("\n") == 1
    assert f"({reason.render(lang)})" in line
    assert reason.render(lang).strip() != ""
    assert ping.message in line


# R5: the deadline


def test_r5_a_watch_expires_at_its_deadline_and_not_before() -> None:
    ran = simulate(lambda _: HELD, rules=HOUR)
    assert (ran.verdict, ran.at_s) == (Verdict.EXPIRED, 3600)


@pytest.mark.parametrize("ttl", ["19h", "2d", "365d"])
def test_r5_a_long_wait_that_is_known_may_be_asked_for(ttl: str) -> None:
    assert order("--ttl", ttl).ttl_s == parse_duration(ttl)


@pytest.mark.parametrize("lang", Lang)
@pytest.mark.parametrize("outcome", [LOCK, WORK], ids=["lock", "work"])
def test_r5_release_and_expiry_differ_in_their_first_words(
    outcome: Outcome, lang: Lang
) -> None:
    cleared = outcome_line(outcome, lang, ZONE)
    expired = outcome_line(replace(outcome, ending=Ending.EXPIRED), lang, ZONE)
    assert cleared[0] == "✅" != expired[0] == "⏰"
    assert cleared.split()[1].isupper()
    assert cleared.split()[1] != expired.split()[1] == "EXPIROU:"


def test_r5_an_expiry_that_could_not_see_does_not_say_still_held_b01() -> None:
    blind = replace(
        LOCK,
        ending=Ending.EXPIRED,
        unknown_since=LOCK.armed_at,
        reason=phrase("denied", path="/l"),
    )
    line = outcome_line(blind, Lang.PT, ZONE)
    assert "ainda ativo" not in line
    assert "sem leitura há 60min (sem permissão: /l)" in line


@pytest.mark.parametrize(
    "cleared_s",
    [
        pytest.param(3600, id="at-the-deadline"),
        pytest.param(3599.9, id="just-before"),
        pytest.param(3571, id="in-the-last-interval"),
        pytest.param(3599.8, id="settles-behind-it"),
    ],
)
def test_r5_release_wins_when_both_are_true_at_the_same_look(cleared_s: float) -> None:
    ran = simulate(lambda now_s: RELEASED if now_s >= cleared_s else HELD, rules=HOUR)
    assert ran.verdict is Verdict.CLEARED
    assert ran.at_s <= 3600.25


def test_r5_what_clears_behind_the_deadline_is_an_expiry() -> None:
    ran = simulate(lambda now_s: RELEASED if now_s > 3600 else HELD, rules=HOUR)
    assert ran.verdict is Verdict.EXPIRED


# T1.2: ends only on the real condition

blocked = st.sampled_from([HELD, UNKNOWN, ABSENT])


@ALWAYS
@given(
    st.lists(blocked, min_size=1, max_size=20),
    st.integers(1, YEAR_S),
    st.integers(1, 86400),
    st.sampled_from([0, 0.25, 60]),
)
def test_t1_2_no_time_alone_makes_a_success(
    sights: list[Observation], ttl_s: int, start_within_s: int, settle_s: float
) -> None:
    rules = Rules(
        armed_s=0, deadline_s=ttl_s, settle_s=settle_s, start_within_s=start_within_s
    )
    upcoming = iter(sights)
    ran = simulate(
        lambda _: next(upcoming, sights[-1]), rules=rules, every_s=max(30, ttl_s // 99)
    )
    assert ran.verdict in {Verdict.EXPIRED, Verdict.UNSEEN}


@ALWAYS
@given(
    observations,
    st.builds(
        Progress,
        candidate_s=st.none() | st.floats(0, 1e6),
        unknown_s=st.none() | st.floats(0, 1e6),
        ever_blocked=st.booleans(),
        ever_seen=st.booleans(),
    ),
    st.floats(0, 1e9),
)
def test_t1_2_no_history_and_no_instant_makes_a_success_of_what_is_not_clear_now(
    observation: Observation, progress: Progress, now_s: float
) -> None:
    decision = decide(HOUR, progress, observation, now_s=now_s)
    if decision.verdict is Verdict.CLEARED:
        assert observation.sight is Sight.RELEASED
        assert progress.candidate_s is not None


@pytest.mark.parametrize(
    "ttl_s", [1, 60, 3600, 68400, YEAR_S], ids=lambda ttl_s: f"{ttl_s}s"
)
def test_t1_2_a_frozen_condition_can_only_expire(ttl_s: int) -> None:
    rules = replace(HOUR, deadline_s=ttl_s)
    ran = simulate(lambda _: HELD, rules=rules, every_s=max(30, ttl_s // 99))
    assert (ran.verdict, ran.at_s) == (Verdict.EXPIRED, ttl_s)


@pytest.mark.parametrize("start_within_s", [0, 600])
def test_t1_2_work_that_never_began_has_not_ended_b42(start_within_s: int) -> None:
    rules = replace(HOUR, start_within_s=start_within_s)
    ran = simulate(lambda _: ABSENT, rules=rules)
    assert (ran.verdict, ran.at_s) == (Verdict.UNSEEN, start_within_s)


# T1.4: every watch has a deadline


def test_t1_4_no_rules_without_a_deadline() -> None:
    deadline = next(field for field in fields(Rules) if field.name == "deadline_s")
    assert deadline.default is MISSING
    assert deadline.default_factory is MISSING
    assert deadline.type is float


def test_t1_4_a_watch_that_names_no_deadline_has_one_of_an_hour() -> None:
    assert order().ttl_s == DEFAULT_TTL_S == 3600
    assert order(ttl="").ttl_s == 3600


@pytest.mark.parametrize(
    ("options", "ttl", "ttl_s"),
    [
        pytest.param([], "5", 5, id="environment-in-seconds"),
        pytest.param([], "90m", 5400, id="environment-as-a-duration"),
        pytest.param(["--ttl", "2h"], "5", 7200, id="option-before-environment"),
    ],
)
def test_t1_4_the_deadline_is_the_options_or_the_environments(
    options: list[str], ttl: str, ttl_s: int
) -> None:
    assert order(*options, ttl=ttl).ttl_s == ttl_s


ENDLESS = [
    "0",
    "-1",
    "-5m",
    "inf",
    "nan",
    "never",
    "none",
    "366d",
    "9999999999s",
    "1e30s",
]


@pytest.mark.parametrize("text", [*ENDLESS, ""])
def test_t1_4_no_option_arms_without_a_deadline_b85_b87(text: str) -> None:
    with pytest.raises(UsageError):
        order(f"--ttl={text}")


@pytest.mark.parametrize("text", ENDLESS)
def test_t1_4_no_environment_arms_without_a_deadline_b85_b87(text: str) -> None:
    with pytest.raises(UsageError):
        order(ttl=text)


@ALWAYS
@given(
    st.lists(observations, min_size=1),
    st.integers(1, 100_000),
    st.integers(0, 100_000),
    st.integers(1, 100_000),
)
def test_t1_4_no_look_is_planned_behind_the_deadline(
    seen: list[Observation], ttl_s: int, passed_s: int, every_s: int
) -> None:
    rules = replace(HOUR, deadline_s=ttl_s)
    progress = Progress()
    for observation in seen:
        decision = decide(rules, progress, observation, now_s=passed_s)
        progress = decision.progress
        if decision.verdict is Verdict.WAIT:
            assert passed_s < ttl_s
            look_s = next_look(
                now_s=passed_s, every_s=every_s, deadline_s=ttl_s, start_due_s=None
            )
            assert look_s <= ttl_s
        if decision.verdict is Verdict.LOOK_AGAIN:
            assert passed_s + decision.again_in_s <= max(ttl_s, passed_s) + 0.25
