"""Renew, remove or ask: what the evidence about a watch says (C9.2, C9.3).

A verdict only advises. Age alone never proves that a lock is stale, and one look never
that a process hangs; whatever could not be seen speaks for neither side.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import cast

import msgspec

from policies.codec import Record
from policies.duration import format_minutes
from policies.evidence import (
    Found,
    Life,
    LockEvidence,
    ProcessEvidence,
    WorkEvidence,
    lock_since,
    work_since,
)
from policies.model import Json, Sight
from policies.text import clean
from policies.wording import Lang, Phrase, phrase

RECENT_S = 1800
"""A lock file written, or a commit made, within half an hour is a sign of life."""

HUNG_AFTER_S = 600
"""Seconds awake without CPU and log growth after which a process counts as hung."""

MOST_IDLE = 3
"""Renewals in a row without progress after which a person must decide (C9.3)."""

_SHOWN = 3  # processes that a reason names


class Advice(StrEnum):
    """What to do with a watch."""

    RENEW = "renew"
    REMOVE = "remove"
    ASK = "ask"


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict with its reasons, and what the next one is compared with.

    Attributes:
        progress: something moved that shows the holder or the work going on.
        idle_renewals: renewals in a row without progress, as they count from now on.
    """

    verdict: Advice
    reasons: tuple[Phrase, ...]
    progress: bool
    evidence: Found
    idle_renewals: int = 0

    def to_record(self) -> Record:
        """Return it whole, as `from_record` reads it."""
        return cast("Record", msgspec.to_builtins(self))

    @staticmethod
    def from_record(record: Json) -> "Assessment":
        """Return the assessment of a record.

        Raises:
            ValueError: it is none.
        """
        try:
            return msgspec.convert(record, Assessment)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from error


def assess(
    evidence: Found, previous: Assessment | None, idle_renewals: int
) -> Assessment:
    """Return what to do with a watch, and why; nothing is done (C9.2, C9.3).

    1. What is over already needs no renewal: remove.
    2. A dead holder without any other sign, a stopped process, and one that is proved
       to have stood still: remove, with what to propose.
    3. Signs of life or progress: renew.
    4. Signs that contradict each other, or none at all: ask.
    5. After three renewals without progress only a person can tell: ask.

    Args:
        evidence: of now; what changed since `previous` is worked out here.
        previous: the last assessment of the same watch.
        idle_renewals: renewals in a row without progress so far.
    """
    before = None if previous is None else previous.evidence
    if isinstance(evidence, LockEvidence):
        lock = lock_since(evidence, before)
        found: Found = lock
        judged = _judge_lock(lock)
    else:
        work = work_since(evidence, before)
        found = work
        judged = _judge_work(work)
    idle = 0 if judged.progress else idle_renewals
    verdict, reasons = judged.verdict, judged.reasons
    if idle and found.sight is not Sight.RELEASED:
        reasons += (phrase("assess_idle", count=idle),)
        verdict = Advice.ASK if idle >= MOST_IDLE else verdict
    return Assessment(
        verdict=verdict,
        reasons=reasons,
        progress=judged.progress,
        evidence=found,
        idle_renewals=idle,
    )


def may_renew(last: Assessment | None, why: str | None) -> Phrase | None:
    """Return why a watch must not be renewed, or None when it may (C9.3).

    Once the last assessment showed no progress, renewing needs a reason.
    """
    given = why is not None and why.strip() != ""
    if last is None or last.progress or given:
        return None
    return phrase("renew_blind")


def count_renewal(
    last: Assessment | None, idle_renewals: int, *, renewed_at: datetime | None
) -> int:
    """Return the renewals in a row without progress, this one included (C9.3).

    One renewal rests on one assessment that showed progress: the next needs another,
    and one without any assessment is blind too.

    Args:
        last: the last assessment.
        idle_renewals: those so far.
        renewed_at: when the watch was renewed before this, if it was.
    """
    if last is None or not last.progress:
        return idle_renewals + 1
    spent = renewed_at is not None and last.evidence.at <= renewed_at
    return idle_renewals + 1 if spent else 0


def assessment_object(
    assessment: Assessment, *, target: str, renewals: int, lang: Lang
) -> Record:
    """Return the object of `assess --json`, every foreign text in it cleaned."""
    reason = assessment.evidence.reason
    evidence = cast("Record", msgspec.to_builtins(assessment.evidence))
    return {
        "target": clean(target),
        "verdict": assessment.verdict,
        "reasons": [item.render(lang) for item in assessment.reasons],
        "evidence": {
            **{name: _cleaned(value) for name, value in evidence.items()},
            "reason": None if reason is None else reason.render(lang),
        },
        "renewals": renewals,
        "idle_renewals": assessment.idle_renewals,
        "progress": assessment.progress,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judgement:
    """A verdict before it is known how often the watch was renewed."""

    verdict: Advice
    reasons: tuple[Phrase, ...]
    progress: bool = False


def _judge_lock(lock: LockEvidence) -> _Judgement:
    """Weigh a lock; a commit counts as progress at the first look too."""
    if lock.sight is Sight.RELEASED:
        gone = (phrase("assess_lock_gone"),)
        return _Judgement(verdict=Advice.REMOVE, reasons=gone)
    if lock.sight is Sight.UNKNOWN:
        return _Judgement(verdict=Advice.ASK, reasons=_unseen(lock.reason))
    moves = _lock_moves(lock)
    facts = (*moves, *_holder_facts(lock), *_age_facts(lock), *_commit_facts(lock))
    committed = _recent(lock.commit_age_s)
    progress = bool(moves) or (committed and lock.new_commits is None)
    if lock.life is Life.DEAD:
        if progress or committed:
            verdict, close = Advice.ASK, "assess_conflict"
        else:
            verdict, close = Advice.REMOVE, "assess_take_over"
        facts += (phrase(close),)
    else:
        alive = lock.life is Life.ALIVE or committed or _recent(lock.age_s)
        verdict = Advice.RENEW if alive or progress else Advice.ASK
    return _Judgement(verdict=verdict, reasons=facts, progress=progress)


def _lock_moves(lock: LockEvidence) -> tuple[Phrase, ...]:
    """Return what moved since the last assessment."""
    moves: list[Phrase] = []
    if lock.updated:
        moves.append(phrase("assess_updated"))
    if lock.new_commits:
        moves.append(phrase("assess_new_commits", count=lock.new_commits))
    return tuple(moves)


def _holder_facts(lock: LockEvidence) -> tuple[Phrase, ...]:
    named = lock.session or lock.host or lock.pid
    if named is None:
        return (phrase("assess_no_holder"),)
    if lock.pid is None or lock.life is Life.UNKNOWN:
        return (phrase("assess_holder_unseen", holder=named),)
    key = "orphan" if lock.life is Life.DEAD else "assess_holder_alive"
    return (phrase(key, pid=lock.pid),)


def _age_facts(lock: LockEvidence) -> tuple[Phrase, ...]:
    if lock.future_mtime:
        return (phrase("assess_future"),)
    if lock.age_s is None:
        return ()
    return (phrase("assess_age", ago=_span(lock.age_s)),)


def _commit_facts(lock: LockEvidence) -> tuple[Phrase, ...]:
    if lock.commits is None:
        return (phrase("assess_commits_unseen"),) if lock.paths else ()
    if lock.commit_age_s is None:
        return (phrase("assess_no_commits"),)
    ago = _span(lock.commit_age_s)
    return (phrase("assess_commits", count=lock.commits, ago=ago),)


def _judge_work(work: WorkEvidence) -> _Judgement:
    """Weigh work; a stopped process hangs even if it got on until it was stopped."""
    living = work.living
    if work.sight is Sight.RELEASED:
        return _Judgement(verdict=Advice.REMOVE, reasons=_over_facts(work))
    moves = _work_moves(work)
    triage = (phrase("assess_triage"),)
    if living and all(item.stopped for item in living):
        verdict, facts = Advice.REMOVE, _state_facts(living) + triage
    elif moves:
        verdict, facts = Advice.RENEW, moves + _state_facts(living)
    else:
        verdict, facts = Advice.ASK, _still_facts(work) + _state_facts(living)
        if living and work.quiet_s >= HUNG_AFTER_S:
            verdict, facts = Advice.REMOVE, facts + triage
    return _Judgement(verdict=verdict, reasons=facts, progress=bool(moves))


def _work_moves(work: WorkEvidence) -> tuple[Phrase, ...]:
    """Return what shows the work going on; being on a CPU does so at one look."""
    moves: list[Phrase] = []
    if work.log_growth:
        moves.append(phrase("assess_log", bytes=work.log_growth))
    for item in work.living:
        used_s = item.cpu_progress_s
        if used_s is not None and used_s > 0:
            moves.append(phrase("assess_cpu", pid=item.pid, used=f"{used_s:.2f}"))
        elif used_s:
            moves.append(phrase("assess_children", pid=item.pid))
        elif item.on_cpu:
            moves.append(phrase("assess_on_cpu", pid=item.pid))
    return tuple(moves[: _SHOWN + 1])


def _over_facts(work: WorkEvidence) -> tuple[Phrase, ...]:
    zombies = [item for item in work.processes if item.state == "Z"]
    return (phrase("assess_over"), *_each("assess_zombie", zombies))


def _state_facts(living: Sequence[ProcessEvidence]) -> tuple[Phrase, ...]:
    """Name the processes that are stopped or wait inside the kernel: proc(5)."""
    stopped = [item for item in living if item.stopped]
    blocked = [item for item in living if item.state == "D"]
    return _each("assess_stopped", stopped) + _each("assess_blocked", blocked)


def _still_facts(work: WorkEvidence) -> tuple[Phrase, ...]:
    """Return what is known of work that was not seen to move."""
    if not work.living and work.log is None:
        return _unseen(work.reason)
    blind = [item for item in work.living if item.cpu_s is None]
    facts = _each("assess_cpu_unseen", blind)
    if work.log is not None and work.log_size is None:
        facts += (phrase("assess_log_unseen", path=work.log),)
    if work.quiet_s:
        key = "assess_quiet" if work.log is None else "assess_quiet_log"
        return (*facts, phrase(key, span=_span(work.quiet_s)))
    return (*facts, phrase("assess_one_look"))


def _unseen(reason: Phrase | None) -> tuple[Phrase, ...]:
    if reason is None:
        return (phrase("assess_nothing"),)
    return (phrase("assess_unseen", reason=reason),)


def _each(key: str, items: Sequence[ProcessEvidence]) -> tuple[Phrase, ...]:
    return tuple(phrase(key, pid=item.pid) for item in items[:_SHOWN])


def _recent(age_s: float | None) -> bool:
    return age_s is not None and age_s <= RECENT_S


def _span(seconds: float) -> str:
    """Return a span as `format_minutes` does, a long one in whole hours or days."""
    hours = int(seconds // 3600)
    if hours < 2:
        return format_minutes(seconds)
    return f"{hours}h" if hours < 48 else f"{hours // 24}d"


def _cleaned(value: Json) -> Json:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list | tuple):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {name: _cleaned(item) for name, item in value.items()}
    return value
