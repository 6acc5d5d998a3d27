"""Outcome lines, the titles of their pings, and what they weigh (C2)."""

from datetime import datetime, tzinfo
from typing import assert_never

from policies.duration import format_minutes
from policies.model import Ending, Outcome, Result, Severity
from policies.text import clean
from policies.wording import Lang, Phrase, phrase

LABEL_LIMIT = 200  # characters; a line must stay readable on a phone
RESUME_LIMIT = 300  # characters

_RELEASED_KINDS = frozenset({"lock", "port", "file", "http", "wait"})


def cleared_ending(kind: str) -> Ending:
    """Return how a cleared watch ends: resources are released, work ends (C2.1)."""
    return Ending.RELEASED if kind in _RELEASED_KINDS else Ending.ENDED


def subject(outcome: Outcome) -> str:
    """Return what a line is about: `lock <slug>`, else the label."""
    if outcome.target.kind == "lock":
        return f"lock {clean(outcome.target.label, LABEL_LIMIT)}"
    return clean(outcome.label, LABEL_LIMIT)


def outcome_line(outcome: Outcome, lang: Lang, zone: tzinfo) -> str:
    """Return the one line that says how a watch ended (C2.1, C2.2, C2.3).

    It holds no control character, whatever the label, the activity or the file said.

    Args:
        outcome: how it ended.
        lang: with `EN` everything behind the first colon changes, nothing before it.
        zone: the local time zone of the command.
    """
    portuguese = lang is Lang.PT
    what = subject(outcome) + _where(outcome, lang)
    match outcome.ending:
        case Ending.RELEASED:
            head, body = "✅ LIBERADO", _cleared(outcome, lang, zone)
        case Ending.ENDED:
            head, body = "✅ TERMINOU", _cleared(outcome, lang, zone)
        case Ending.EXPIRED:
            head, body = "⏰ EXPIROU", _expired(outcome, lang)
        case Ending.REMOVED:
            why = outcome.reason.render(lang) if outcome.reason else ""
            head, body = "🚫 REMOVIDO", f"{what} — {why}"
        case Ending.UNSEEN:
            head = "❓ NÃO VISTO"
            body = (
                f"nada casa com {what} — confira o padrão"
                if portuguese
                else f"nothing matches {what} — check the pattern"
            )
        case _ as never:
            assert_never(never)
    remarks = "".join(f" — {remark.render(lang)}" for remark in _remarks(outcome))
    return f"{head}: {body}{remarks}"


def title(outcome: Outcome, lang: Lang) -> str:
    """Return the short form of the line, which is the title of its ping (C6.2)."""
    what = subject(outcome)
    portuguese = lang is Lang.PT
    where = _where(outcome, lang)
    match outcome.ending:
        case Ending.RELEASED:
            return (
                f"{what} liberado{where}" if portuguese else f"{what} released{where}"
            )
        case Ending.ENDED:
            return f"{what} terminou{where}" if portuguese else f"{what} ended{where}"
        case Ending.EXPIRED:
            return f"monitor {what} EXPIROU" if portuguese else f"watch {what} EXPIRED"
        case Ending.REMOVED:
            return f"monitor {what} removido" if portuguese else f"watch {what} removed"
        case Ending.UNSEEN:
            return (
                f"{what} não visto{where}" if portuguese else f"{what} not seen{where}"
            )
        case _ as never:
            assert_never(never)


def severity(outcome: Outcome) -> Severity:
    """Return how urgent its ping is: an expiry warns, a bad end is an error (C6.2)."""
    if outcome.result in {Result.FAIL, Result.STALLED, Result.DIED}:
        return Severity.ERROR
    if outcome.ending is Ending.EXPIRED:
        return Severity.WARNING
    return Severity.INFO


def local_time(at: datetime, zone: tzinfo) -> str:
    """Return `HH:MM:SS` in a time zone."""
    return f"{at.astimezone(zone):%H:%M:%S}"


def _where(outcome: Outcome, lang: Lang) -> str:
    if outcome.target.host is None:
        return ""
    word = "no" if lang is Lang.PT else "on"
    return f" {word} {clean(outcome.target.host, LABEL_LIMIT)}"


def _cleared(outcome: Outcome, lang: Lang, zone: tzinfo) -> str:
    portuguese = lang is Lang.PT
    at = local_time(outcome.ended_at, zone)
    what = subject(outcome) + _where(outcome, lang)
    state = _state(outcome, lang)
    activity = _activity(outcome.resume, lang)
    tail = ""
    if outcome.already_clear:
        tail = {
            (Ending.RELEASED, True): " — já estava livre ao armar",
            (Ending.RELEASED, False): " — was already free when armed",
            (Ending.ENDED, True): " — já não rodava ao armar",
            (Ending.ENDED, False): " — was already over when armed",
        }[outcome.ending, portuguese]
    if portuguese:
        return f"{what} em {at}{state} — retomar {activity}{tail}"
    return f"{what} at {at}{state} — resume {activity}{tail}"


def _state(outcome: Outcome, lang: Lang) -> str:
    """Return how work ended and, behind the brackets, what told so (C2.1)."""
    if outcome.result is None:
        return ""
    if outcome.decided is None:
        return f" [{outcome.result}]"
    return f" [{outcome.result}] «{outcome.decided.render(lang)}»"


def _activity(resume: str | None, lang: Lang) -> str:
    if resume:
        return clean(resume, RESUME_LIMIT)
    return "a atividade bloqueada" if lang is Lang.PT else "the blocked activity"


def _expired(outcome: Outcome, lang: Lang) -> str:
    portuguese = lang is Lang.PT
    what, where = subject(outcome), _where(outcome, lang)
    after = format_minutes(outcome.ttl_s)
    if outcome.unknown_since is not None:
        state = _without_sight(outcome, lang)
    elif cleared_ending(outcome.target.kind) is Ending.RELEASED:
        state = (
            f"ainda ativo{where} após {after}"
            if portuguese
            else f"still held{where} after {after}"
        )
    else:
        state = (
            f"ainda rodando{where} após {after}"
            if portuguese
            else f"still running{where} after {after}"
        )
    if cleared_ending(outcome.target.kind) is Ending.RELEASED:
        choice = (
            "renovar prazo ou remover monitor?"
            if portuguese
            else "renew the deadline or remove the watch?"
        )
    else:
        choice = "renovar ou remover?" if portuguese else "renew or remove?"
    return f"{what} {state} — {choice}"


def _without_sight(outcome: Outcome, lang: Lang) -> str:
    since = outcome.unknown_since or outcome.armed_at
    span = format_minutes((outcome.ended_at - since).total_seconds())
    reason = outcome.reason.render(lang) if outcome.reason else "?"
    where = _where(outcome, lang)
    host = clean(outcome.target.host or "", LABEL_LIMIT)
    if lang is Lang.PT:
        if outcome.out_of_reach:
            return f"sem resposta de {host} há {span} ({reason})"
        return f"sem leitura{where} há {span} ({reason})"
    if outcome.out_of_reach:
        return f"no answer from {host} for {span} ({reason})"
    return f"could not be seen{where} for {span} ({reason})"


def _remarks(outcome: Outcome) -> tuple[Phrase, ...]:
    if outcome.ending is Ending.EXPIRED and outcome.suspended_s >= 1:
        span = format_minutes(outcome.suspended_s)
        return (*outcome.tail, phrase("asleep", span=span))
    return outcome.tail
