"""What the house rules demand of a wait: R4, R5, T1.1 and T1.5, as pure decisions."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.assess import Advice, Assessment, assess, count_renewal, may_renew
from policies.cadence import next_look
from policies.evidence import Life, LockEvidence, ProcessEvidence, WorkEvidence
from policies.lines import cleared_ending, outcome_line
from policies.model import Ending, Observation, Outcome, Result, Severity, Sight, Target
from policies.shapes import outcome_ping
from policies.target import lock_target, pid_target
from policies.verdict import Progress, Rules, Verdict, decide
from policies.wording import Lang, phrase

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
RULES = Rules(armed_s=0.0, deadline_s=3600.0, settle_s=0.25)
HELD, RELEASED, UNKNOWN = Sight.HELD, Sight.RELEASED, Sight.UNKNOWN
LOCK = lock_target("/locks/lock-meta.md", "/locks")


def run(*looks: tuple[float, Sight], rules: Rules = RULES) -> list[Verdict]:
    """Give the verdict of each look, up to the one that ends the watch."""
    verdicts: list[Verdict] = []
    progress = Progress()
    for now_s, sight in looks:
        seen = Observation(sight=sight, at=START + timedelta(seconds=now_s))
        decision = decide(rules, progress, seen, now_s=now_s)
        progress = decision.progress
        verdicts.append(decision.verdict)
        if decision.verdict not in {Verdict.WAIT, Verdict.LOOK_AGAIN}:
            break
    return verdicts


WAIT, AGAIN = Verdict.WAIT, Verdict.LOOK_AGAIN
CLEARED, EXPIRED = Verdict.CLEARED, Verdict.EXPIRED


@pytest.mark.parametrize(
    ("looks", "verdicts"),
    [
        pytest.param(
            [(0, HELD), (30, RELEASED), (30.25, RELEASED)],
            [WAIT, AGAIN, CLEARED],
            id="R4: no wake-up before a second look",
        ),
        pytest.param(
            [(0, HELD), (30, RELEASED), (30.25, HELD), (60, HELD)],
            [WAIT, AGAIN, WAIT, WAIT],
            id="R4: it came back, so the watch goes on",
        ),
        pytest.param(
            [(0, HELD), (30, RELEASED), (30.1, HELD), (60, RELEASED), (60.1, RELEASED)],
            [WAIT, AGAIN, WAIT, AGAIN, AGAIN],
            id="R4: a second release settles anew",
        ),
        pytest.param(
            [(0, HELD), (30, RELEASED), (30.25, UNKNOWN), (60, UNKNOWN)],
            [WAIT, AGAIN, WAIT, WAIT],
            id="R4: a last look that fails wakes nobody",
        ),
        pytest.param(
            [(0, HELD), (3600, RELEASED), (3600.25, RELEASED)],
            [WAIT, AGAIN, CLEARED],
            id="R4: a release in the last interval is no expiry",
        ),
        pytest.param(
            [(0, HELD), (3600, RELEASED), (3600.25, HELD)],
            [WAIT, AGAIN, EXPIRED],
            id="R4: it came back at the deadline",
        ),
    ],
)
def test_r4_a_wake_up_is_looked_at_again(
    looks: list[tuple[float, Sight]], verdicts: list[Verdict]
) -> None:
    assert run(*looks) == verdicts


@settings(deadline=None)  # a busy machine is no fault
@given(st.lists(st.sampled_from([HELD, UNKNOWN]), max_size=20))
def test_r4_nobody_is_woken_by_anything_but_a_release_that_was_seen(
    sights: list[Sight],
) -> None:
    looks = [(30.0 * turn, sight) for turn, sight in enumerate(sights)]
    assert CLEARED not in run(*looks)


def outcome(target: Target, ending: Ending, result: Result | None = None) -> Outcome:
    return Outcome(
        ending=ending,
        watch_id="w1",
        target=target,
        label=target.label,
        armed_at=START,
        ended_at=START + timedelta(hours=1),
        waited_s=3600.0,
        ttl_s=3600,
        result=result,
        resume="merge the branch",
    )


@pytest.mark.parametrize(
    ("result", "state"),
    [
        pytest.param(None, None, id="R4: an end that says nothing"),
        *[pytest.param(result, f"[{result}]", id=f"R4: {result}") for result in Result],
    ],
)
def test_r4_a_line_claims_no_success_that_was_not_seen(
    result: Result | None, state: str | None
) -> None:
    ended = outcome(pid_target(7), cleared_ending("process"), result)
    for lang in Lang:
        line = outcome_line(ended, lang, UTC)
        assert line.startswith("✅ TERMINOU: PID 7 ")
        if state is None:
            assert "[" not in line
        else:
            assert f" {state} " in line


def lock_at(minute: int, *, pid: int, life: Life, mark: str = "1:1.0") -> LockEvidence:
    return LockEvidence(
        at=START + timedelta(minutes=minute),
        sight=HELD,
        mark=mark,
        age_s=86400.0 + 60 * minute,
        host="box",
        pid=pid,
        life=life,
    )


def work_at(minute: int, *, cpu_s: float, state: str = "S") -> WorkEvidence:
    return WorkEvidence(
        at=START + timedelta(minutes=minute),
        sight=HELD,
        awake_s=60.0 * minute,
        processes=(
            ProcessEvidence(
                boot_id="b",
                pid=7,
                start_ticks=1,
                life=Life.ALIVE,
                state=state,
                cpu_s=cpu_s,
            ),
        ),
    )


@pytest.mark.parametrize(
    ("history", "verdict", "proposes"),
    [
        pytest.param(
            [lock_at(0, pid=7, life=Life.ALIVE)],
            Advice.RENEW,
            None,
            id="R5: a holder that lives",
        ),
        pytest.param(
            [lock_at(0, pid=7, life=Life.DEAD)],
            Advice.REMOVE,
            "take-over",
            id="R5: a stale lock is to be taken over by a person",
        ),
        pytest.param(
            [work_at(0, cpu_s=1.0), work_at(60, cpu_s=9.0)],
            Advice.RENEW,
            None,
            id="R5: work that gets on",
        ),
        pytest.param(
            [work_at(0, cpu_s=1.0), work_at(60, cpu_s=1.0)],
            Advice.REMOVE,
            "triage",
            id="R5: hung work is for triage",
        ),
        pytest.param(
            [work_at(0, cpu_s=1.0, state="T")],
            Advice.REMOVE,
            "triage",
            id="R5: stopped work is for triage",
        ),
        pytest.param(
            [work_at(0, cpu_s=1.0)], Advice.ASK, None, id="R5: one look does not tell"
        ),
        pytest.param(
            [lock_at(0, pid=7, life=Life.UNKNOWN)],
            Advice.ASK,
            None,
            id="R5: a holder on another host",
        ),
    ],
)
def test_r5_an_assessment_advises_with_reasons(
    history: list[LockEvidence | WorkEvidence],
    verdict: Advice,
    proposes: str | None,
) -> None:
    last: Assessment | None = None
    for evidence in history:
        last = assess(evidence, last, 0)
    assert last is not None
    assert last.verdict == verdict
    told = "; ".join(reason.render(Lang.EN) for reason in last.reasons)
    assert told
    assert ("take-over" in told) == (proposes == "take-over")
    assert ("triage" in told) == (proposes == "triage")


def renewals(evidence: list[LockEvidence]) -> list[Advice]:
    """Assess and renew, over and over, giving a reason each time it is asked for."""
    last: Assessment | None = None
    idle, renewed_at = 0, None
    verdicts = []
    for now in evidence:
        last = assess(now, last, idle)
        verdicts.append(last.verdict)
        assert (may_renew(last, None) is None) == last.progress
        assert may_renew(last, "the holder answered by mail") is None
        idle = count_renewal(last, last.idle_renewals, renewed_at=renewed_at)
        renewed_at = now.at + timedelta(seconds=5)
    return verdicts


@pytest.mark.parametrize(
    ("marks", "verdicts"),
    [
        pytest.param(
            ["a", "a", "a", "a", "a"],
            [Advice.RENEW] * 3 + [Advice.ASK] * 2,
            id="R5: a frozen target is asked about at the fourth",
        ),
        pytest.param(
            ["a", "b", "c", "d", "e"],
            [Advice.RENEW] * 5,
            id="R5: one that moves is renewed on",
        ),
        pytest.param(
            ["a", "a", "a", "a", "b", "b", "b", "b", "b"],
            [*[Advice.RENEW] * 3, Advice.ASK, *[Advice.RENEW] * 4, Advice.ASK],
            id="R5: progress starts the count anew",
        ),
    ],
)
def test_r5_no_watch_is_renewed_blindly(
    marks: list[str], verdicts: list[Advice]
) -> None:
    evidence = [
        lock_at(60 * turn, pid=7, life=Life.ALIVE, mark=mark)
        for turn, mark in enumerate(marks)
    ]
    assert renewals(evidence) == verdicts


@pytest.mark.parametrize(
    "lang", [pytest.param(lang, id=f"T1.1: {lang}") for lang in Lang]
)
def test_t1_1_the_armed_line_tells_who_yields_what_is_watched_and_until_when(
    lang: Lang,
) -> None:
    armed = phrase("armed", target=LOCK.text, until="13:00:00", ttl="60min")
    assert run((0.0, HELD)) == [WAIT]
    assert "lock meta " in armed.render(lang)
    assert "13:00:00" in armed.render(lang)
    assert "60min" in armed.render(lang)


@settings(deadline=None)  # a busy machine is no fault
@given(
    now_s=st.floats(0, 3600),
    every_s=st.floats(0.01, 1e6),
    start_due_s=st.none() | st.floats(0, 1e6),
)
def test_t1_1_once_armed_the_next_look_is_always_due_by_the_deadline(
    now_s: float, every_s: float, start_due_s: float | None
) -> None:
    due_s = next_look(
        now_s=now_s, every_s=every_s, deadline_s=3600.0, start_due_s=start_due_s
    )
    assert due_s <= 3600.0


@pytest.mark.parametrize(
    "sight",
    [pytest.param(sight, id=f"T1.5: {sight}") for sight in (HELD, UNKNOWN)],
)
@pytest.mark.parametrize("late_s", [0.0, 0.5, 86400.0])
def test_t1_5_a_deadline_never_passes_without_an_end(
    sight: Sight, late_s: float
) -> None:
    assert run((0, HELD), (3600.0 + late_s, sight))[-1] is EXPIRED


@pytest.mark.parametrize(
    ("target", "line"),
    [
        pytest.param(
            LOCK,
            "⏰ EXPIROU: lock meta ainda ativo após 60min — renovar prazo ou remover "
            "monitor?",
            id="T1.5: a lock",
        ),
        pytest.param(
            pid_target(7),
            "⏰ EXPIROU: PID 7 ainda rodando após 60min — renovar ou remover?",
            id="T1.5: work",
        ),
    ],
)
def test_t1_5_an_expiry_is_a_line_and_a_warning_to_the_operator(
    target: Target, line: str
) -> None:
    expired = outcome(target, Ending.EXPIRED)
    ping = outcome_ping(expired, Lang.PT, UTC)
    assert outcome_line(expired, Lang.PT, UTC) == line
    assert (ping.message, ping.severity) == (line, Severity.WARNING)
    assert "EXPIROU" in ping.title
    assert ping.idempotency_key
