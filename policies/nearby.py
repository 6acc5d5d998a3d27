"""Names that a misspelt slug may have meant (C2.2)."""

import unicodedata
from collections.abc import Iterable

_CLOSE = 0.75  # ratio of equal characters; one slip in a name of five and more
_MOST = 3


def near_names(wanted: str, present: Iterable[str]) -> list[str]:
    """Return up to three of the names present that `wanted` may have meant.

    A name that differs only in case or Unicode form comes first, then the closest.
    `wanted` itself does not count.
    """
    from difflib import SequenceMatcher  # noqa: PLC0415 - needed only at a free lock

    folded = _fold(wanted)
    matcher = SequenceMatcher(b=folded, autojunk=False)
    ranked: list[tuple[float, str]] = []
    for name in present:
        if name == wanted:
            continue
        matcher.set_seq1(_fold(name))
        if matcher.real_quick_ratio() >= _CLOSE and matcher.quick_ratio() >= _CLOSE:
            ratio = matcher.ratio()
            if ratio >= _CLOSE:
                ranked.append((-ratio, name))
    return [name for _, name in sorted(ranked)[:_MOST]]


def same_but_form(wanted: str, present: Iterable[str]) -> list[str]:
    """Return the names that differ from `wanted` in case or Unicode form only."""
    folded = _fold(wanted)
    return [name for name in present if name != wanted and _fold(name) == folded]


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold().removesuffix(".lock")
