"""The one command to run instead of a hand-made wait."""

from typing import Final

from policies.loops.aim import NotAWaitError
from policies.loops.compose import from_aim, options
from policies.loops.find import Finder, Found
from policies.loops.glance import may_wait
from policies.loops.programs import script_wait
from policies.loops.record import record
from policies.wording import Lang, phrase

_LONGEST: Final = 2000  # characters of a command that still helps anybody


@record
class Suggestion:
    """What to run instead, and what is worth knowing about it.

    Attributes:
        command: for a shell, complete.
        bounded: the wait has a deadline of its own.
        tail: what was to follow it.
        chained: only after a success.
        may_be_unseen: a pattern that matches nothing gives NÃO VISTO (C2.2).
    """

    command: str
    bounded: bool
    tail: str
    chained: bool
    may_be_unseen: bool


def suggestion(command: str) -> Suggestion | None:
    """Return what to run instead of the wait in a command, or None for no wait."""
    if not may_wait(command):
        return None
    try:
        found = Finder().in_text(command) or _powershell(command)
        composed = _composed(found) if found else None
    except NotAWaitError:
        return None
    except RecursionError:  # deeper than any person writes
        return None
    return composed if composed and len(composed.command) <= _LONGEST else None


def _powershell(command: str) -> Found | None:
    if "Start-Sleep" not in command:
        return None
    found = script_wait(command)
    if found is None:
        return None
    aim, pause_s, ttl_s = found
    return Found(target=from_aim(aim), pause_s=pause_s, ttl_s=ttl_s)


def _composed(found: Found) -> Suggestion:
    return Suggestion(
        command=options(
            found.target,
            pause_s=found.pause_s,
            ttl_s=found.ttl_s,
            exit_codes=found.chained,
            resume=found.tail,
        ),
        bounded=found.ttl_s > 0,
        tail=found.tail,
        chained=found.chained,
        may_be_unseen=found.target.by_pattern,
    )


def told(found: Suggestion, lang: Lang) -> str:
    """Return what the agent is told: facts, and the one command on its own line."""
    why = phrase("loop_bounded") if found.bounded else phrase("loop_unbounded")
    notes = [phrase("loop_background")]
    if found.chained:
        notes.append(phrase("loop_exit_codes"))
    if found.tail and found.may_be_unseen:
        notes.append(phrase("loop_unseen"))
    more = " ".join(note.render(lang) for note in notes)
    return f"{why.render(lang)}\n\n    {found.command}\n\n{more}"
