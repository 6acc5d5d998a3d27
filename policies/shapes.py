"""An outcome as programs read it: `--json` and the ping (C2.5, C6.2)."""

from collections.abc import Mapping
from datetime import datetime, tzinfo

from policies.delivery import idempotency_key
from policies.lines import outcome_line, severity, title
from policies.model import Json, Outcome, Ping
from policies.text import clean
from policies.wording import Lang


def outcome_object(outcome: Outcome, lang: Lang, zone: tzinfo) -> dict[str, Json]:
    """Return the object of `--json`: times RFC 3339 with offset, spans in seconds."""
    return {
        "outcome": outcome.ending,
        "result": outcome.result,
        "target": clean(outcome.target.text),
        "label": clean(outcome.label),
        "host": outcome.target.host,
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
    """Return the ping of an outcome, as its waiter number `waiter` is told it."""
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
            "host": outcome.target.host,
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
