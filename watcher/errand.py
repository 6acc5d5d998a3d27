"""What a detached watcher is sent off with, and what its outcome means here (C7.3).

Words that only this side can make go along ready; what the host must add stands between
two halves that are found by rendering twice.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from functools import cache
from typing import cast

from policies.codec import dumps, instant
from policies.lines import cleared_ending, outcome_line, title
from policies.model import Ending, Json, Outcome
from policies.shapes import outcome_ping, rfc3339
from policies.wording import TEXTS, Lang, phrase
from watcher import __version__, views
from watcher.config import Config
from watcher.hosted import Hosted, for_waiter
from watcher.looked import Looked, observation_of
from watcher.store import WaiterRow
from watcher.transport import bundle

_START = "from watcher.onhost.detached import run_program\nrun_program()"
_BLIND_MIN = (11111, 22222)  # minutes whose every digit differs


@cache
def program() -> str:
    """Return the program of a detached watcher: one file, nothing to install."""
    return bundle.program(_START)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Who sends a watcher off, at which instant.

    Attributes:
        now_s: `Clock.boot`, by which the part's memory counts.
    """

    config: Config
    now_s: float
    now: datetime
    zone: tzinfo
    with_url: bool


def order_of(hosted: Hosted, what: Looked, sender: Sender) -> dict[str, Json]:
    """Return what a detached watcher is to do and to say; no secret in it."""
    rows, watch = hosted.waiting(), hosted.watch
    first, last = rows[0], max(rows, key=lambda row: row.deadline_boot_s)
    lang = Lang(first.lang) if first.lang in set(Lang) else sender.config.lang
    cleared = cleared_ending(what.target.kind)
    ended = hosted.ended(cleared, sender.now)
    ping = outcome_ping(
        for_waiter(ended, first), lang, sender.zone, waiter=first.number
    )
    offset = sender.now.astimezone(sender.zone).utcoffset() or timedelta()
    return {
        "target": what.target.text,
        "host": what.target.host,
        "part": what.target.kind,
        "spec": what.spec,
        "memory": watch.memory,
        "up_s": sender.now_s,
        "every_s": watch.every_s,
        "spans": {
            "armed_ago_s": sender.now_s - watch.rules.armed_s,
            "left_s": last.deadline_boot_s - sender.now_s,
            "settle_s": watch.rules.settle_s,
            "start_within_s": watch.rules.start_within_s,
        },
        "armed_at": first.armed_at,
        "deadline_at": last.deadline_at,
        "zone_s": offset.total_seconds(),
        "cleared": cleared,
        "waiters": {
            "cleared": first.number,
            "unseen": first.number,
            "expired": last.number,
        },
        "words": _words(hosted, first, last, lang, sender),
        "texts": {
            key: pair[0 if lang is Lang.PT else 1] for key, pair in TEXTS.items()
        },
        "watch": ping.watch,
        "notify": _notify(sender.config) if sender.with_url else None,
    }


def shape_of(hosted: Hosted) -> object:
    """Return what tells whether a host still has the right order."""
    return tuple(
        (row.number, row.deadline_at, row.label, row.resume) for row in hosted.waiting()
    )


def outcome_from(
    hosted: Hosted, record: Mapping[str, Json], zone: tzinfo
) -> tuple[Outcome, int]:
    """Return the outcome that a host has reached, and the waiter in its key.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    kind = hosted.watch.condition.target.kind
    ending = Ending(str(record["ending"]))
    if ending not in {cleared_ending(kind), Ending.EXPIRED, Ending.UNSEEN}:
        raise ValueError(ending)
    ended_at = instant(record["ended_at"])
    since, waiter = record["unknown_since"], record["waiter"]
    if not isinstance(waiter, int):
        raise TypeError(waiter)
    plain = replace(
        hosted.ended(ending, ended_at),
        already_clear=bool(record["already_clear"]),
        unknown_since=None if since is None else instant(since),
        observations=int(cast("int", record["observations"])),
        unknown_s=float(cast("float", record["unknown_s"])),
        evidence=dict(cast("Mapping[str, Json]", record["evidence"])),
    )
    seen = observation_of(_judgement(record, plain), ended_at)
    whole = replace(
        plain,
        result=seen.result,
        decided=seen.decided,
        reason=seen.reason,
        tail=seen.remarks,
    )
    try:
        for lang in Lang:
            outcome_line(whole, lang, zone)
    except (LookupError, ValueError):  # words of another version
        return replace(plain, result=seen.result, reason=phrase("see_log")), waiter
    return whole, waiter


def _judgement(record: Mapping[str, Json], plain: Outcome) -> dict[str, Json]:
    """Return an outcome's sentences as of a judgement; those that we lack left out."""

    def known(said: Json) -> bool:
        return isinstance(said, Sequence) and bool(said) and said[0] in TEXTS

    decided, reason = record["decided"], record["reason"]
    tail = cast("Sequence[Json]", record["tail"])
    return {
        "sight": "unknown",
        "evidence": plain.evidence,
        "memory": {},
        "result": record["result"],
        "decided": decided if known(decided) else None,
        "reason": reason if known(reason) else None,
        "remarks": [said for said in tail if known(said)],
    }


def _notify(config: Config) -> dict[str, Json]:
    return {
        "url": config.notify.url,
        "auth": config.notify.auth,
        "channel": config.notify.channel,
        "timeout_s": float(config.notify.timeout),
        "give_up_s": float(config.notify.give_up_after),
        "user_agent": f"koder-monitor/{__version__}",
    }


def _words(
    hosted: Hosted, first: WaiterRow, last: WaiterRow, lang: Lang, sender: Sender
) -> dict[str, Json]:
    """Return the lines of every end, in two halves each, and their titles."""
    zone = sender.zone
    cleared = cleared_ending(hosted.watch.condition.target.kind)

    def told(ending: Ending, row: WaiterRow) -> Outcome:
        return for_waiter(hosted.ended(ending, sender.now), row)

    released, expired = told(cleared, first), told(Ending.EXPIRED, last)
    unseen = told(Ending.UNSEEN, first)

    def at(already: bool) -> Callable[[int], Outcome]:
        return lambda number: replace(
            released,
            already_clear=already,
            ended_at=_midnight(zone)
            + number * timedelta(hours=11, minutes=11, seconds=11),
        )

    def blind(number: int) -> Outcome:
        since = expired.ended_at - timedelta(minutes=_BLIND_MIN[number])
        reason = phrase("said", text="ab"[number])
        return replace(expired, unknown_since=since, reason=reason)

    def halves(make: Callable[[int], Outcome]) -> Json:
        lines = [outcome_line(make(number), lang, zone) for number in (0, 1)]
        return list(_halves(*lines))

    return {
        "cleared": halves(at(already=False)),
        "already": halves(at(already=True)),
        "blind": halves(blind),
        "expired": [outcome_line(expired, lang, zone), ""],
        "unseen": [outcome_line(unseen, lang, zone), ""],
        "titles": {
            "cleared": title(released, lang),
            "expired": title(expired, lang),
            "unseen": title(unseen, lang),
        },
    }


def _halves(one: str, other: str) -> tuple[str, str]:
    """Return what two texts begin with and end with alike."""
    pairs = list(zip(one, other, strict=True))
    differing = [place for place, (a, b) in enumerate(pairs) if a != b]
    return one[: differing[0]], one[differing[-1] + 1 :]


def _midnight(zone: tzinfo) -> datetime:
    return datetime(2026, 1, 1, tzinfo=zone)


def shown(
    entry: Mapping[str, Json], name: str, *, mine: bool, zone: tzinfo
) -> views.Object:
    """Return what a host says of a watch, in the shape of a watch (appendix)."""
    watch = entry.get("watch")
    watch = watch if isinstance(watch, Mapping) else {}
    told: dict[str, Json] = {
        "id": entry.get("id"),
        "target": watch.get("target"),
        "kind": watch.get("kind"),
        "label": watch.get("label"),
        "host": name,
        "state": entry.get("ending") or "armed",
        "observation": entry.get("sight"),
        "result": entry.get("result"),
        "armed_at": watch.get("armed_at"),
        "deadline": _when(entry.get("deadline_at"), zone),
        "ended_at": _when(entry.get("ended_at"), zone),
        "last_probe_at": None,
        "unknown_s": None,
        "every_s": entry.get("every_s"),
        "ttl_s": watch.get("ttl_s"),
        "renewals": None,
        "session": watch.get("session"),
        "resume": watch.get("resume"),
        "waiters": None,
        "detached": True,
        "acknowledged": None,
        "holder": None,
        "evidence": {},
        "line": entry.get("line"),
        "mine": mine,
        "alive": entry.get("alive"),
    }
    return views.json_object(dumps(told))  # whatever the host says is foreign text


def _when(value: Json, zone: tzinfo) -> str | None:
    return rfc3339(instant(value), zone) if isinstance(value, int | float) else None
