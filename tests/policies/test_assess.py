"""What evidence says about a watch: renew, remove or ask (C9.2, C9.3, R5)."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.assess import (
    HUNG_AFTER_S,
    MOST_IDLE,
    RECENT_S,
    Advice,
    Assessment,
    assess,
    assessment_object,
    count_renewal,
    may_renew,
)
from policies.evidence import Found, Life, LockEvidence, ProcessEvidence, WorkEvidence
from policies.model import Json, Sight
from policies.wording import Lang, Phrase, phrase

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DAY_S = 86400.0
HERE = "box"

ALIVE, DEAD, UNKNOWN = Life.ALIVE, Life.DEAD, Life.UNKNOWN


def held_lock(
    *,
    age_s: float | None = 3 * DAY_S,
    pid: int | None = None,
    life: Life = UNKNOWN,
    mark: str | None = "7:1.5",
    paths: tuple[str, ...] = (),
    commits: int | None = None,
    new_commits: int | None = None,
    commit_age_s: float | None = None,
    future_mtime: bool = False,
    session: str | None = None,
    at: datetime = NOW,
) -> LockEvidence:
    return LockEvidence(
        at=at,
        sight=Sight.HELD,
        mark=mark,
        age_s=age_s,
        future_mtime=future_mtime,
        session=session,
        host=HERE if pid else None,
        pid=pid,
        life=life,
        paths=paths,
        commits=commits,
        new_commits=new_commits,
        commit_age_s=commit_age_s,
    )


def worker(
    *,
    pid: int = 10,
    state: str = "S",
    life: Life = ALIVE,
    on_cpu: bool = False,
    cpu_s: float | None = 4.0,
) -> ProcessEvidence:
    return ProcessEvidence(
        boot_id="b",
        pid=pid,
        start_ticks=99,
        life=life,
        state=state,
        running_s=DAY_S,
        on_cpu=on_cpu,
        cpu_s=cpu_s,
    )


def running_work(
    *processes: ProcessEvidence,
    awake_s: float = 1000.0,
    sight: Sight = Sight.HELD,
    reason: Phrase | None = None,
    log: str | None = None,
    log_size: int | None = None,
) -> WorkEvidence:
    return WorkEvidence(
        at=NOW,
        sight=sight,
        reason=reason,
        awake_s=awake_s,
        processes=processes,
        log=log,
        log_size=log_size,
    )


def keys(assessment: Assessment) -> list[str]:
    return [reason.key for reason in assessment.reasons]


def said(assessment: Assessment, lang: Lang) -> str:
    return "; ".join(reason.render(lang) for reason in assessment.reasons)


@pytest.mark.parametrize(
    ("lock", "verdict", "progress", "reasons"),
    [
        pytest.param(
            held_lock(pid=9, life=ALIVE),
            Advice.RENEW,
            False,
            ["assess_holder_alive", "assess_age"],
            id="old lock of a living holder",
        ),
        pytest.param(
            held_lock(pid=9, life=DEAD),
            Advice.REMOVE,
            False,
            ["orphan", "assess_age", "assess_take_over"],
            id="B09: dead holder",
        ),
        pytest.param(
            held_lock(pid=9, life=DEAD, age_s=1.0),
            Advice.REMOVE,
            False,
            ["orphan", "assess_age", "assess_take_over"],
            id="dead holder of a lock that was just written",
        ),
        pytest.param(
            held_lock(pid=9, life=DEAD, paths=("src",), commits=0),
            Advice.REMOVE,
            False,
            ["orphan", "assess_age", "assess_no_commits", "assess_take_over"],
            id="dead holder and no commit",
        ),
        pytest.param(
            held_lock(pid=9, life=DEAD, paths=("src",), commits=2, commit_age_s=DAY_S),
            Advice.REMOVE,
            False,
            ["orphan", "assess_age", "assess_commits", "assess_take_over"],
            id="dead holder whose commits are old",
        ),
        pytest.param(
            held_lock(pid=9, life=DEAD, paths=("src",), commits=2, commit_age_s=60.0),
            Advice.ASK,
            True,
            ["orphan", "assess_age", "assess_commits", "assess_conflict"],
            id="dead holder and yet a commit just now",
        ),
        pytest.param(
            held_lock(
                pid=9,
                life=DEAD,
                paths=("src",),
                commits=2,
                new_commits=0,
                commit_age_s=60.0,
            ),
            Advice.ASK,
            False,
            ["orphan", "assess_age", "assess_commits", "assess_conflict"],
            id="dead holder and a commit that was known before",
        ),
        pytest.param(
            held_lock(),
            Advice.ASK,
            False,
            ["assess_no_holder", "assess_age"],
            id="age alone never proves a lock stale",
        ),
        pytest.param(
            held_lock(age_s=RECENT_S),
            Advice.RENEW,
            False,
            ["assess_no_holder", "assess_age"],
            id="written lately",
        ),
        pytest.param(
            held_lock(age_s=RECENT_S + 1),
            Advice.ASK,
            False,
            ["assess_no_holder", "assess_age"],
            id="not written lately",
        ),
        pytest.param(
            held_lock(age_s=None, future_mtime=True),
            Advice.ASK,
            False,
            ["assess_no_holder", "assess_future"],
            id="written in the future",
        ),
        pytest.param(
            held_lock(age_s=None),
            Advice.ASK,
            False,
            ["assess_no_holder"],
            id="of unknown age",
        ),
        pytest.param(
            held_lock(session="s-1"),
            Advice.ASK,
            False,
            ["assess_holder_unseen", "assess_age"],
            id="a session without a process",
        ),
        pytest.param(
            held_lock(pid=9, life=UNKNOWN),
            Advice.ASK,
            False,
            ["assess_holder_unseen", "assess_age"],
            id="a process of another host",
        ),
        pytest.param(
            held_lock(paths=("src",), commits=3, commit_age_s=60.0),
            Advice.RENEW,
            True,
            ["assess_no_holder", "assess_age", "assess_commits"],
            id="old lock, commits lately",
        ),
        pytest.param(
            held_lock(paths=("src",), commits=3, new_commits=0, commit_age_s=60.0),
            Advice.RENEW,
            False,
            ["assess_no_holder", "assess_age", "assess_commits"],
            id="commits lately that were known before are no progress",
        ),
        pytest.param(
            held_lock(paths=("src",), commits=3, commit_age_s=DAY_S),
            Advice.ASK,
            False,
            ["assess_no_holder", "assess_age", "assess_commits"],
            id="commits long ago",
        ),
        pytest.param(
            held_lock(paths=("src",), commits=0),
            Advice.ASK,
            False,
            ["assess_no_holder", "assess_age", "assess_no_commits"],
            id="old lock, no commits",
        ),
        pytest.param(
            held_lock(paths=("src",)),
            Advice.ASK,
            False,
            ["assess_no_holder", "assess_age", "assess_commits_unseen"],
            id="commits that cannot be read",
        ),
        pytest.param(
            LockEvidence(at=NOW, sight=Sight.RELEASED),
            Advice.REMOVE,
            False,
            ["assess_lock_gone"],
            id="a lock that is gone",
        ),
        pytest.param(
            LockEvidence(
                at=NOW, sight=Sight.UNKNOWN, reason=phrase("denied", path="/l")
            ),
            Advice.ASK,
            False,
            ["assess_unseen"],
            id="a lock that cannot be seen",
        ),
    ],
)
def test_a_lock_is_judged_at_the_first_look(
    lock: LockEvidence, verdict: Advice, progress: bool, reasons: list[str]
) -> None:
    found = assess(lock, None, 0)
    assert (found.verdict, found.progress) == (verdict, progress)
    assert keys(found) == reasons


@pytest.mark.parametrize(
    ("before", "now", "verdict", "updated", "reason"),
    [
        pytest.param(
            held_lock(),
            held_lock(mark="7:2.5"),
            Advice.RENEW,
            True,
            "assess_updated",
            id="rewritten",
        ),
        pytest.param(
            held_lock(),
            held_lock(),
            Advice.ASK,
            False,
            "assess_no_holder",
            id="untouched",
        ),
        pytest.param(
            held_lock(),
            held_lock(paths=("src",), commits=9, new_commits=2, commit_age_s=DAY_S),
            Advice.RENEW,
            False,
            "assess_new_commits",
            id="new commits",
        ),
        pytest.param(
            held_lock(),
            held_lock(mark=None),
            Advice.ASK,
            None,
            "assess_no_holder",
            id="not to be compared",
        ),
        pytest.param(
            held_lock(),
            held_lock(mark="7:2.5", pid=9, life=DEAD),
            Advice.ASK,
            True,
            "assess_conflict",
            id="rewritten by a dead holder",
        ),
        pytest.param(
            running_work(),
            held_lock(),
            Advice.ASK,
            None,
            "assess_no_holder",
            id="evidence of another kind is no history",
        ),
    ],
)
def test_a_lock_is_judged_by_what_changed(
    before: Found,
    now: LockEvidence,
    verdict: Advice,
    updated: bool | None,
    reason: str,
) -> None:
    found = assess(now, assess(before, None, 0), 0)
    assert found.verdict == verdict
    assert found.progress == (verdict is Advice.RENEW or reason == "assess_conflict")
    assert isinstance(found.evidence, LockEvidence)
    assert found.evidence.updated == updated
    assert reason in keys(found)


@pytest.mark.parametrize(
    ("work", "verdict", "progress", "reasons"),
    [
        pytest.param(
            running_work(worker()),
            Advice.ASK,
            False,
            ["assess_one_look"],
            id="a sleeping process at one look",
        ),
        pytest.param(
            running_work(worker(state="R", on_cpu=True)),
            Advice.RENEW,
            True,
            ["assess_on_cpu"],
            id="busy",
        ),
        pytest.param(
            running_work(worker(state="T")),
            Advice.REMOVE,
            False,
            ["assess_stopped", "assess_triage"],
            id="stopped",
        ),
        pytest.param(
            running_work(worker(state="t")),
            Advice.REMOVE,
            False,
            ["assess_stopped", "assess_triage"],
            id="stopped by a debugger",
        ),
        pytest.param(
            running_work(worker(state="T", on_cpu=True)),
            Advice.RENEW,
            True,
            ["assess_on_cpu"],
            id="stopped, but a child works",
        ),
        pytest.param(
            running_work(worker(state="T"), worker(pid=11)),
            Advice.ASK,
            False,
            ["assess_one_look", "assess_stopped"],
            id="one of two stopped",
        ),
        pytest.param(
            running_work(worker(state="D")),
            Advice.ASK,
            False,
            ["assess_one_look", "assess_blocked"],
            id="in the kernel at one look",
        ),
        pytest.param(
            running_work(worker(state="Z", life=DEAD), sight=Sight.RELEASED),
            Advice.REMOVE,
            False,
            ["assess_over", "assess_zombie"],
            id="zombie",
        ),
        pytest.param(
            running_work(sight=Sight.RELEASED),
            Advice.REMOVE,
            False,
            ["assess_over"],
            id="ended",
        ),
        pytest.param(
            running_work(sight=Sight.UNKNOWN, reason=phrase("proc_hidden")),
            Advice.ASK,
            False,
            ["assess_unseen"],
            id="hidden",
        ),
        pytest.param(
            running_work(), Advice.ASK, False, ["assess_nothing"], id="on another host"
        ),
        pytest.param(
            running_work(worker(life=DEAD)),
            Advice.ASK,
            False,
            ["assess_nothing"],
            id="all that is known has ended, but it was seen to run",
        ),
        pytest.param(
            running_work(worker(life=UNKNOWN, state="?", cpu_s=None)),
            Advice.ASK,
            False,
            ["assess_cpu_unseen", "assess_one_look"],
            id="CPU that cannot be read",
        ),
        pytest.param(
            running_work(worker(), log="/l/x.log"),
            Advice.ASK,
            False,
            ["assess_log_unseen", "assess_one_look"],
            id="log that cannot be read",
        ),
        pytest.param(
            running_work(log="/l/x.log", log_size=4),
            Advice.ASK,
            False,
            ["assess_one_look"],
            id="only a log",
        ),
    ],
)
def test_work_is_judged_at_the_first_look(
    work: WorkEvidence, verdict: Advice, progress: bool, reasons: list[str]
) -> None:
    found = assess(work, None, 0)
    assert (found.verdict, found.progress) == (verdict, progress)
    assert keys(found) == reasons


LATER_S = 1000.0 + HUNG_AFTER_S
LOG = "/l/x.log"


@pytest.mark.parametrize(
    ("before", "now", "verdict", "reasons"),
    [
        pytest.param(
            running_work(worker()),
            running_work(worker(cpu_s=4.01), awake_s=LATER_S),
            Advice.RENEW,
            ["assess_cpu"],
            id="used some CPU",
        ),
        pytest.param(
            running_work(worker()),
            running_work(worker(cpu_s=3.0), awake_s=LATER_S),
            Advice.RENEW,
            ["assess_children"],
            id="a child left with its share",
        ),
        pytest.param(
            running_work(worker()),
            running_work(worker(), awake_s=LATER_S),
            Advice.REMOVE,
            ["assess_quiet", "assess_triage"],
            id="no CPU for the whole span",
        ),
        pytest.param(
            running_work(worker()),
            running_work(worker(), awake_s=LATER_S - 1),
            Advice.ASK,
            ["assess_quiet"],
            id="no CPU for less than the span",
        ),
        pytest.param(
            running_work(worker()),
            running_work(worker(state="D"), awake_s=LATER_S),
            Advice.REMOVE,
            ["assess_quiet", "assess_blocked", "assess_triage"],
            id="stuck in the kernel for the whole span",
        ),
        pytest.param(
            running_work(worker()),
            running_work(worker(state="R", on_cpu=True), awake_s=LATER_S),
            Advice.RENEW,
            ["assess_on_cpu"],
            id="ready to run, though no CPU was counted",
        ),
        pytest.param(
            running_work(worker()),
            running_work(worker(cpu_s=9.0, state="T"), awake_s=LATER_S),
            Advice.REMOVE,
            ["assess_stopped", "assess_triage"],
            id="worked and was then stopped",
        ),
        pytest.param(
            running_work(worker(), worker(pid=11)),
            running_work(worker(cpu_s=5.0), worker(pid=11, state="T"), awake_s=LATER_S),
            Advice.RENEW,
            ["assess_cpu", "assess_stopped"],
            id="one works, one is stopped",
        ),
        pytest.param(
            running_work(worker(), log=LOG, log_size=4),
            running_work(worker(), awake_s=LATER_S, log=LOG, log_size=9),
            Advice.RENEW,
            ["assess_log"],
            id="the log grew",
        ),
        pytest.param(
            running_work(worker(), log=LOG, log_size=9),
            running_work(worker(), awake_s=LATER_S, log=LOG, log_size=0),
            Advice.RENEW,
            ["assess_log"],
            id="the log began anew",
        ),
        pytest.param(
            running_work(worker(), log=LOG, log_size=4),
            running_work(worker(), awake_s=LATER_S, log=LOG, log_size=4),
            Advice.REMOVE,
            ["assess_quiet_log", "assess_triage"],
            id="neither CPU nor log",
        ),
        pytest.param(
            running_work(worker(), log=LOG, log_size=4),
            running_work(worker(), awake_s=LATER_S, log=LOG),
            Advice.ASK,
            ["assess_log_unseen", "assess_one_look"],
            id="no CPU, but a log that may have grown",
        ),
        pytest.param(
            running_work(worker(), log="/l/y.log", log_size=4),
            running_work(worker(), awake_s=LATER_S, log=LOG, log_size=4),
            Advice.ASK,
            ["assess_one_look"],
            id="another log",
        ),
        pytest.param(
            running_work(worker()),
            running_work(worker(cpu_s=None), awake_s=LATER_S),
            Advice.ASK,
            ["assess_cpu_unseen", "assess_one_look"],
            id="CPU that cannot be read any more",
        ),
        pytest.param(
            running_work(worker()),
            running_work(worker(), worker(pid=11), awake_s=LATER_S),
            Advice.ASK,
            ["assess_one_look"],
            id="a process that was not there before",
        ),
        pytest.param(
            running_work(log=LOG, log_size=4),
            running_work(awake_s=LATER_S, log=LOG, log_size=4),
            Advice.ASK,
            ["assess_quiet_log"],
            id="a log alone may be quiet",
        ),
        pytest.param(
            running_work(sight=Sight.UNKNOWN),
            running_work(awake_s=LATER_S),
            Advice.ASK,
            ["assess_nothing"],
            id="nothing seen twice",
        ),
        pytest.param(
            held_lock(),
            running_work(worker(), awake_s=LATER_S),
            Advice.ASK,
            ["assess_one_look"],
            id="evidence of another kind is no history",
        ),
    ],
)
def test_work_is_judged_by_what_moved(
    before: Found, now: WorkEvidence, verdict: Advice, reasons: list[str]
) -> None:
    found = assess(now, assess(before, None, 0), 0)
    assert (found.verdict, keys(found)) == (verdict, reasons)


def test_quiet_spans_of_many_assessments_add_up() -> None:
    last = assess(running_work(worker()), None, 0)
    verdicts = []
    for minute in range(1, 11):
        now = running_work(worker(), awake_s=1000.0 + 60 * minute)
        last = assess(now, last, 0)
        verdicts.append(last.verdict)
    assert verdicts == [Advice.ASK] * 9 + [Advice.REMOVE]


@pytest.mark.parametrize(
    ("cpu_s", "on_cpu"),
    [pytest.param(5.0, False, id="CPU"), pytest.param(4.0, True, id="ready to run")],
)
def test_a_quiet_span_ends_with_the_first_sign(cpu_s: float, on_cpu: bool) -> None:
    quiet = assess(running_work(worker()), None, 0)
    quiet = assess(running_work(worker(), awake_s=1500.0), quiet, 0)
    sign = running_work(worker(cpu_s=cpu_s, on_cpu=on_cpu), awake_s=1600.0)
    busy = assess(sign, quiet, 0)
    again = assess(running_work(worker(cpu_s=cpu_s), awake_s=1700.0), busy, 0)
    assert isinstance(again.evidence, WorkEvidence)
    assert again.evidence.quiet_s == 100.0
    assert again.verdict is Advice.ASK


def test_a_clock_of_another_boot_proves_no_quiet_span() -> None:
    before = assess(running_work(worker(), awake_s=90000.0), None, 0)
    found = assess(running_work(worker(), awake_s=5.0), before, 0)
    assert isinstance(found.evidence, WorkEvidence)
    assert found.evidence.quiet_s == 0.0


def test_reasons_name_only_the_first_of_many_processes() -> None:
    crowd = [worker(pid=pid, state="R", on_cpu=True) for pid in range(1, 50)]
    assert len(assess(running_work(*crowd), None, 0).reasons) == 4


@pytest.mark.parametrize(
    ("evidence", "idle", "verdict"),
    [
        pytest.param(held_lock(pid=9, life=ALIVE), 2, Advice.RENEW, id="two"),
        pytest.param(held_lock(pid=9, life=ALIVE), 3, Advice.ASK, id="three"),
        pytest.param(held_lock(pid=9, life=ALIVE), 7, Advice.ASK, id="many"),
        pytest.param(held_lock(pid=9, life=DEAD), 3, Advice.ASK, id="dead holder"),
        pytest.param(running_work(worker(state="T")), 3, Advice.ASK, id="stopped"),
        pytest.param(
            LockEvidence(at=NOW, sight=Sight.RELEASED), 3, Advice.REMOVE, id="gone"
        ),
        pytest.param(
            running_work(worker(state="R", on_cpu=True)), 3, Advice.RENEW, id="busy"
        ),
    ],
)
def test_three_renewals_without_progress_leave_it_to_a_person(
    evidence: Found, idle: int, verdict: Advice
) -> None:
    found = assess(evidence, None, idle)
    assert found.verdict == verdict
    assert found.idle_renewals == (0 if found.progress else idle)
    told = [item.values for item in found.reasons if item.key == "assess_idle"]
    waits = evidence.sight is not Sight.RELEASED
    assert told == ([{"count": idle}] if waits and not found.progress else [])


@pytest.mark.parametrize(
    ("last", "why", "refused"),
    [
        pytest.param(None, None, False, id="never assessed"),
        pytest.param(assess(held_lock(), None, 0), None, True, id="no progress"),
        pytest.param(assess(held_lock(), None, 0), "  ", True, id="an empty reason"),
        pytest.param(assess(held_lock(), None, 0), "CI runs late", False, id="reason"),
        pytest.param(
            assess(running_work(worker(on_cpu=True)), None, 0),
            None,
            False,
            id="progress",
        ),
    ],
)
def test_renewing_needs_a_reason_once_there_was_no_progress(
    last: Assessment | None, why: str | None, refused: bool
) -> None:
    refusal = may_renew(last, why)
    assert (refusal is not None) == refused
    if refusal is not None:
        assert "--why" in refusal.render(Lang.PT)
        assert "--why" in refusal.render(Lang.EN)


@pytest.mark.parametrize(
    ("last", "renewed_at", "count"),
    [
        pytest.param(None, None, 3, id="without any assessment"),
        pytest.param(assess(held_lock(), None, 0), None, 3, id="without progress"),
        pytest.param(
            assess(running_work(worker(on_cpu=True)), None, 0),
            None,
            0,
            id="on progress",
        ),
        pytest.param(
            assess(running_work(worker(on_cpu=True)), None, 0),
            NOW - timedelta(hours=1),
            0,
            id="on progress after the last renewal",
        ),
        pytest.param(
            assess(running_work(worker(on_cpu=True)), None, 0),
            NOW + timedelta(seconds=1),
            3,
            id="twice on the same progress",
        ),
    ],
)
def test_a_renewal_counts_as_idle_unless_progress_was_seen_since_the_last(
    last: Assessment | None, renewed_at: datetime | None, count: int
) -> None:
    assert count_renewal(last, 2, renewed_at=renewed_at) == count


@pytest.mark.parametrize(
    ("evidence", "portuguese", "english"),
    [
        pytest.param(held_lock(pid=9, life=DEAD), "assumi-lo", "take-over", id="stale"),
        pytest.param(running_work(worker(state="T")), "triagem", "triage", id="hung"),
        pytest.param(held_lock(age_s=100.0), "há 1min40s", "1min40s ago", id="recent"),
        pytest.param(held_lock(age_s=3 * 3600), "há 3h", "3h ago", id="hours"),
        pytest.param(held_lock(age_s=3 * DAY_S), "há 3d", "3d ago", id="days"),
        pytest.param(held_lock(pid=9, life=DEAD), "PID 9", "PID 9", id="who"),
    ],
)
def test_reasons_say_what_to_propose_in_both_languages(
    evidence: Found, portuguese: str, english: str
) -> None:
    found = assess(evidence, None, 0)
    assert portuguese in said(found, Lang.PT)
    assert english in said(found, Lang.EN)


def test_assess_json_has_the_shape_that_others_rely_on() -> None:
    work = running_work(
        worker(), sight=Sight.UNKNOWN, reason=phrase("proc_hidden"), log="/l/\x1b[2J"
    )
    found = assess(work, None, 1)
    shape = assessment_object(
        found, target="process --match a\nb", renewals=4, lang=Lang.EN
    )
    shown = json.loads(json.dumps(shape))
    assert list(shown)[:5] == ["target", "verdict", "reasons", "evidence", "renewals"]
    assert shown["target"] == "process --match a\\nb"
    assert (shown["verdict"], shown["renewals"]) == ("ask", 4)
    assert all(isinstance(reason, str) for reason in shown["reasons"])
    evidence = shown["evidence"]
    assert evidence["log"] == "/l/\\x1b[2J"
    assert evidence["reason"] == "/proc of this host hides processes"
    assert evidence["processes"][0]["cpu_s"] == 4.0


def test_evidence_without_a_reason_shows_none() -> None:
    found = assess(held_lock(), None, 0)
    shape = assessment_object(found, target="lock a", renewals=0, lang=Lang.PT)
    evidence = shape["evidence"]
    assert isinstance(evidence, dict)
    assert evidence["reason"] is None
    assert evidence["kind"] == "lock"


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(None, id="nothing"),
        pytest.param({}, id="empty"),
        pytest.param({"verdict": "renew", "reasons": []}, id="half"),
        pytest.param(
            {**assess(held_lock(), None, 0).to_record(), "verdict": "maybe"},
            id="a verdict that there is not",
        ),
        pytest.param(
            {**assess(held_lock(), None, 0).to_record(), "evidence": {"kind": "x"}},
            id="evidence of no kind",
        ),
    ],
)
def test_a_record_that_is_no_assessment_is_refused(record: Json) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        Assessment.from_record(record)


seconds = st.none() | st.floats(0, 1e9)
counts = st.none() | st.integers(0, 1000)
foreign = st.none() | st.text(max_size=30)
locks = st.builds(
    LockEvidence,
    at=st.just(NOW),
    sight=st.sampled_from(Sight),
    reason=st.none() | st.builds(lambda text: phrase("denied", path=text), st.text()),
    mark=st.none() | st.sampled_from(["1:1.0", "1:2.0"]),
    age_s=seconds,
    future_mtime=st.booleans(),
    session=foreign,
    host=foreign,
    pid=st.none() | st.integers(1, 4194304),
    since=foreign,
    paths=st.lists(st.text(max_size=20), max_size=3).map(tuple),
    life=st.sampled_from(Life),
    commits=counts,
    new_commits=counts,
    commit_age_s=seconds,
    newest=foreign,
)
process_evidence = st.builds(
    ProcessEvidence,
    boot_id=st.sampled_from(["a", "b"]),
    pid=st.integers(1, 3),
    start_ticks=st.integers(0, 1),
    life=st.sampled_from(Life),
    state=st.none() | st.sampled_from(list("RSDTtZ")),
    running_s=seconds,
    on_cpu=st.booleans(),
    cpu_s=seconds,
)
works = st.builds(
    WorkEvidence,
    at=st.just(NOW),
    sight=st.sampled_from(Sight),
    reason=st.none() | st.just(phrase("proc_hidden")),
    awake_s=st.floats(0, 1e9),
    processes=st.lists(process_evidence, max_size=4).map(tuple),
    log=st.none() | st.sampled_from(["/l", "/m"]),
    log_size=counts,
)
found_evidence = locks | works


@settings(deadline=None)  # a busy machine is no fault
@given(found_evidence, found_evidence, st.integers(0, 9))
def test_what_is_stored_comes_back_whole(before: Found, now: Found, idle: int) -> None:
    found = assess(now, assess(before, None, 0), idle)
    stored = json.dumps(found.to_record())
    assert Assessment.from_record(json.loads(stored)) == found


@settings(deadline=None)  # a busy machine is no fault
@given(found_evidence, found_evidence, st.integers(MOST_IDLE, 99))
def test_no_renewal_is_advised_blindly(before: Found, now: Found, idle: int) -> None:
    found = assess(now, assess(before, None, 0), idle)
    assert found.progress or found.verdict is not Advice.RENEW


@settings(deadline=None)  # a busy machine is no fault
@given(found_evidence, found_evidence)
def test_a_verdict_always_has_reasons(before: Found, now: Found) -> None:
    found = assess(now, assess(before, None, 0), 0)
    assert all(said(found, lang) for lang in Lang)


@settings(deadline=None)  # a busy machine is no fault
@given(locks, locks)
def test_a_held_lock_is_given_up_only_for_a_dead_holder(
    before: LockEvidence, now: LockEvidence
) -> None:
    found = assess(now, assess(before, None, 0), 0)
    if found.verdict is Advice.REMOVE and now.sight is not Sight.RELEASED:
        assert now.life is Life.DEAD
        assert not found.progress


@settings(deadline=None)  # a busy machine is no fault
@given(works)
def test_one_look_gives_work_up_only_when_it_is_over_or_stopped(
    now: WorkEvidence,
) -> None:
    found = assess(now, None, 0)
    if found.verdict is Advice.REMOVE and now.sight is not Sight.RELEASED:
        assert now.living
        assert all(item.stopped for item in now.living)
