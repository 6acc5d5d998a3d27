"""A watch as the service has it in mind, where the store could not take it (C5.6)."""

from collections.abc import Mapping

from policies.clock import Clock
from policies.codec import dumps
from policies.lines import outcome_line
from policies.model import Memory, Sight
from policies.wording import Lang
from watcher import views
from watcher.hosted import Hosted


def remembered(hosted: Hosted, clock: Clock, lang: Lang) -> views.Watch:
    """Return the row that the store would have."""
    watch, target = hosted.watch, hosted.watch.condition.target
    rows = hosted.waiting() or [*hosted.waiters.values()]
    told = [] if hosted.waiting() else [*hosted.told.values()]
    outcome = told[0] if told else None
    sight, memory = hosted.saved or (Sight.UNKNOWN, {})
    now_s = clock.wall().timestamp()
    seen_at = now_s - (clock.boot() - watch.last_look_s) if watch.looks else None
    return views.Watch(
        id=watch.id,
        target=target.text,
        kind=target.kind,
        label=watch.label,
        host=target.host,
        state=outcome.ending if outcome else "armed",
        observation=Sight.UNKNOWN if watch.blind else sight,
        result=outcome.result if outcome else None,
        armed_at=watch.armed_at.timestamp(),
        deadline_at=max(row.deadline_at for row in rows),
        ended_at=outcome.ended_at.timestamp() if outcome else None,
        last_probe_at=seen_at,
        looks=watch.looks,
        unknown_s=watch.unknown_s,
        every_s=int(watch.every_s),
        ttl_s=watch.ttl_s,
        renewals=hosted.renewals,
        session=rows[0].session,
        resume=rows[0].resume,
        waiters=len(told or rows),
        unread=len(told),
        detached=0,
        holder=_holder(memory),
        evidence=dumps(outcome.evidence) if outcome else "{}",
        sound=1,
        line=outcome_line(outcome, lang, clock.zone()) if outcome else None,
    )


def _holder(memory: Memory) -> str | None:
    holder = memory.get("holder")
    return dumps(holder) if isinstance(holder, Mapping) else None
