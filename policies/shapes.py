"""An outcome as programs read it: `--json` and the ping (C2.5, C6.2)."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, tzinfo

from policies.delivery import idempotency_key
from policies.duration import format_minutes
from policies.lines import outcome_line, severity, title
from policies.model import Ending, Json, Observation, Outcome, Ping, Target
from policies.text import clean
from policies.wording import Lang, phrase


def outcome_object(outcome: Outcome, lang: Lang, zone: tzinfo) -> dict[str, Json]:
    """Return the object of `--json`: times RFC 3339 with offset, spans in seconds."""
    return {
        "outcome": outcome.ending,
        "result": outcome.result,
        "target": clean(outcome.target.text),
        "label": clean(outcome.label),
        "host": _cleaned(outcome.target.host),
        "watch_id": outcome.watch_id,
        "armed_at": rfc3339(outcome.armed_at, zone),
        "ended_at": rfc3339(outcome.ended_at, zone),
        "waited_s": round(outcome.waited_s, 3),
        "ttl_s": outcome.ttl_s,
        "observations": outcome.observations,
        "unknown_s": round(outcome.unknown_s, 3),
        "resume": _cleaned(outcome.resume),
        "line": outcome_line(outcome, lang, zone),
        "evidence": _cleaned(outcome.evidence),
    }


def outcome_ping(
    outcome: Outcome, lang: Lang, zone: tzinfo, *, waiter: int = 1
) -> Ping:
    """Return the ping of an outcome, as its waiter number `waiter` is told it.

    Raises:
        ValueError: for a removal: a person did it, nobody is pinged (C6.1, C9.3).
    """
    if outcome.ending is Ending.REMOVED:
        msg = "a removal is told by no ping"
        raise ValueError(msg)
    return Ping(
        idempotency_key=idempotency_key(outcome.watch_id, waiter, outcome.ending),
        title=title(outcome, lang),
        message=outcome_line(outcome, lang, zone),
        severity=severity(outcome),
        occurred_at=outcome.ended_at,
        watch={
            "id": outcome.watch_id,
            "kind": outcome.target.kind,
            "target": clean(outcome.target.text),
            "label": clean(outcome.label),
            "host": _cleaned(outcome.target.host),
            "state": outcome.ending,
            "result": outcome.result,
            "armed_at": rfc3339(outcome.armed_at, zone),
            "ended_at": rfc3339(outcome.ended_at, zone),
            "waited_s": round(outcome.waited_s, 3),
            "ttl_s": outcome.ttl_s,
            "resume": _cleaned(outcome.resume),
            "session": _cleaned(outcome.session),
        },
    )


def reminder_ping(
    outcome: Outcome, lang: Lang, zone: tzinfo, *, waiter: int, grace_s: float
) -> Ping:
    """Return the second ping of an outcome that nobody acknowledged (C9.4)."""
    first = outcome_ping(outcome, lang, zone, waiter=waiter)
    why = phrase("no_sign_of_life", span=format_minutes(grace_s)).render(lang)
    return replace(
        first,
        idempotency_key=f"{first.idempotency_key}-again",
        message=f"{first.message} — {why}",
    )


def check_object(
    target: Target, seen: Observation, lang: Lang, zone: tzinfo
) -> dict[str, Json]:
    """Return the object of `check --json` (appendix)."""
    reason = seen.reason or phrase("seen_by", means=str(seen.evidence.get("means")))
    return {
        "target": clean(target.text),
        "observation": seen.sight,
        "result": seen.result,
        "detail": reason.render(lang),
        "evidence": _cleaned(seen.evidence),
        "at": rfc3339(seen.at, zone),
    }


def rfc3339(at: datetime, zone: tzinfo) -> str:
    """Return a time with its offset, to the millisecond."""
    return at.astimezone(zone).isoformat(timespec="milliseconds")


def _cleaned(value: Json) -> Json:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(name): _cleaned(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(item) for item in value]
    return value
