"""Values as JSON and back, for the store and the socket."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import cast

from policies.model import (
    Ending,
    Evidence,
    Json,
    Outcome,
    Ping,
    Result,
    Severity,
    Target,
)
from policies.wording import Phrase

Record = dict[str, Json]


def dumps(value: Json) -> str:
    """Return compact JSON; bytes that were no UTF-8 survive as escapes."""
    return json.dumps(value, separators=(",", ":"))


def phrase_record(phrase: Phrase | None) -> Json:
    """Return a sentence as JSON."""
    if phrase is None:
        return None
    values: Record = {
        name: phrase_record(value) if isinstance(value, Phrase) else value
        for name, value in phrase.values.items()
    }
    return {"key": phrase.key, "values": values}


def phrase_of(value: Json) -> Phrase | None:
    """Return the sentence that a JSON value holds."""
    if not isinstance(value, Mapping):
        return None
    values = cast("Mapping[str, Json]", value["values"])
    return Phrase(
        str(value["key"]),
        {
            name: phrase_of(item) or "" if isinstance(item, Mapping) else _plain(item)
            for name, item in values.items()
        },
    )


def _plain(value: Json) -> str | int:
    return value if isinstance(value, int) else str(value)


def outcome_record(outcome: Outcome) -> Record:
    """Return an outcome whole, as `outcome_of` reads it."""
    return {
        "ending": outcome.ending,
        "watch_id": outcome.watch_id,
        "target": {
            "kind": outcome.target.kind,
            "text": outcome.target.text,
            "label": outcome.target.label,
            "host": outcome.target.host,
        },
        "label": outcome.label,
        "armed_at": outcome.armed_at.timestamp(),
        "ended_at": outcome.ended_at.timestamp(),
        "waited_s": outcome.waited_s,
        "ttl_s": outcome.ttl_s,
        "result": outcome.result,
        "already_clear": outcome.already_clear,
        "unknown_since": outcome.unknown_since.timestamp()
        if outcome.unknown_since
        else None,
        "out_of_reach": outcome.out_of_reach,
        "decided": phrase_record(outcome.decided),
        "reason": phrase_record(outcome.reason),
        "tail": [phrase_record(item) for item in outcome.tail],
        "resume": outcome.resume,
        "session": outcome.session,
        "observations": outcome.observations,
        "unknown_s": outcome.unknown_s,
        "suspended_s": outcome.suspended_s,
        "evidence": outcome.evidence,
    }


def outcome_of(record: Mapping[str, Json]) -> Outcome:
    """Return the outcome of a record.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    target = cast("Mapping[str, str | None]", record["target"])
    result, since = record["result"], record["unknown_since"]
    tail = [phrase_of(item) for item in cast("list[Json]", record["tail"])]
    return Outcome(
        ending=Ending(str(record["ending"])),
        watch_id=str(record["watch_id"]),
        target=Target(
            kind=str(target["kind"]),
            text=str(target["text"]),
            label=str(target["label"]),
            host=target["host"],
        ),
        label=str(record["label"]),
        armed_at=instant(record["armed_at"]),
        ended_at=instant(record["ended_at"]),
        waited_s=cast("float", record["waited_s"]),
        ttl_s=cast("int", record["ttl_s"]),
        result=Result(str(result)) if result else None,
        already_clear=bool(record["already_clear"]),
        unknown_since=instant(since) if since is not None else None,
        out_of_reach=bool(record.get("out_of_reach")),
        decided=phrase_of(record.get("decided")),
        reason=phrase_of(record["reason"]),
        tail=tuple(item for item in tail if item is not None),
        resume=cast("str | None", record["resume"]),
        session=cast("str | None", record["session"]),
        observations=cast("int", record["observations"]),
        unknown_s=cast("float", record["unknown_s"]),
        suspended_s=cast("float", record["suspended_s"]),
        evidence=cast("Evidence", record["evidence"]),
    )


def ping_record(ping: Ping) -> Record:
    """Return a ping whole, as `ping_of` reads it."""
    return {
        "idempotency_key": ping.idempotency_key,
        "title": ping.title,
        "message": ping.message,
        "severity": ping.severity,
        "occurred_at": ping.occurred_at.timestamp(),
        "watch": ping.watch,
    }


def ping_of(record: Mapping[str, Json]) -> Ping:
    """Return the ping of a record.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    return Ping(
        idempotency_key=str(record["idempotency_key"]),
        title=str(record["title"]),
        message=str(record["message"]),
        severity=Severity(str(record["severity"])),
        occurred_at=instant(record["occurred_at"]),
        watch=cast("Mapping[str, Json] | None", record["watch"]),
    )


def instant(seconds: Json) -> datetime:
    """Return the UTC time of seconds since the epoch.

    Raises:
        TypeError: it is no number.
    """
    if not isinstance(seconds, int | float):
        raise TypeError(seconds)
    return datetime.fromtimestamp(seconds, UTC)
