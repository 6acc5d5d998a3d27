"""The words of a detached watcher: all but what only the end tells came rendered.

    words = {"cleared": [before, after], "already": ..., "expired": ..., "blind": ...,
             "unseen": ..., "titles": {"cleared", "expired", "unseen"}}

Between the two halves stands what only the end tells. `texts` has the sentences of one
language by their keys. `waiters` has the number of the waiter whom each end is told to:
an expiry to the last one, all else to the first.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from policies.text import clean

_VALUE_LIMIT = 300  # characters of one foreign value inside a sentence
_BAD_ENDS = ("FAIL", "STALLED", "DIED")


def ping(order: dict[str, Any], outcome: dict[str, Any]) -> dict[str, Any]:
    """Return the ping of an outcome, all but its delivery."""
    zone = timezone(timedelta(seconds=order["zone_s"]))
    ended = datetime.fromtimestamp(outcome["ended_at"], zone)
    key = f"{order['id']}-{outcome['waiter']}-{outcome['ending']}"
    return {
        "idempotency_key": key,
        "title": order["words"]["titles"][kind(order, outcome["ending"])],
        "message": line(order, outcome),
        "severity": severity(outcome),
        "occurred_at": ended.astimezone(timezone.utc).isoformat(),
        "watch": {
            **order["watch"],
            "state": outcome["ending"],
            "result": outcome["result"],
            "ended_at": ended.isoformat(timespec="milliseconds"),
            "waited_s": round(max(outcome["ended_at"] - order["armed_at"], 0.0), 3),
        },
    }


def kind(order: dict[str, Any], ending: str) -> str:
    """Return under what an ending's words stand."""
    return "cleared" if ending == order["cleared"] else ending


def line(order: dict[str, Any], outcome: dict[str, Any]) -> str:
    """Return the one line that says how a watch ended, as the laptop would say it."""
    words, texts = order["words"], order["texts"]
    if outcome["ending"] == order["cleared"]:
        before, after = words["already" if outcome["already_clear"] else "cleared"]
        zone = timezone(timedelta(seconds=order["zone_s"]))
        at = datetime.fromtimestamp(outcome["ended_at"], zone)
        fill = f"{at:%H:%M:%S}{_state(outcome, texts)}"
    elif outcome["ending"] == "expired" and outcome["unknown_since"] is not None:
        before, after = words["blind"]
        blind_s = outcome["ended_at"] - outcome["unknown_since"]
        reason = sentence(outcome["reason"], texts) if outcome["reason"] else "?"
        fill = f"{minutes(blind_s)} ({reason}"
    else:
        before, after = words[outcome["ending"]]
        fill = ""
    remarks = [sentence(remark, texts) for remark in outcome["tail"]]
    return "".join([before, fill, after, *(f" — {remark}" for remark in remarks)])


def severity(outcome: dict[str, Any]) -> str:
    """Return how urgent it is: an expiry warns, a bad end is an error (C6.2)."""
    if outcome["result"] in _BAD_ENDS:
        return "error"
    return "warning" if outcome["ending"] == "expired" else "info"


def sentence(said: list[Any], texts: dict[str, str]) -> str:
    """Return a sentence of a part, every foreign value cleaned and kept short."""
    key, values = said
    shown = {name: clean(str(value), _VALUE_LIMIT) for name, value in values.items()}
    try:
        return texts[key].format_map(shown)
    except (LookupError, ValueError):
        return ", ".join(shown.values()) or clean(str(key), _VALUE_LIMIT)


def minutes(seconds: float) -> str:
    """Return a time span as outcome lines write it: `45s`, `60min`, `1min30s`."""
    whole = max(0, round(seconds))
    full, rest = divmod(whole, 60)
    if not full:
        return f"{rest}s"
    return f"{full}min" if whole >= 3600 or not rest else f"{full}min{rest}s"


def _state(outcome: dict[str, Any], texts: dict[str, str]) -> str:
    if not outcome["result"]:
        return ""
    if not outcome["decided"]:
        return f" [{outcome['result']}]"
    return f" [{outcome['result']}] «{sentence(outcome['decided'], texts)}»"
