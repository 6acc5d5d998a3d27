"""How large a regular expression becomes once its repetitions are written out.

The module `regex` writes `x{1000}` out as a thousand items and `(x{1000}){1000}` as a
million: a slip of the finger would take all memory.
"""

import re

MOST = 100_000
"""Items that an expression may have, repetitions written out."""

_REPEAT = re.compile(r"\{(\d*)(?:,\d*)?\}")


def items(pattern: str) -> int:
    """Return about how many items a valid expression has, repetitions written out.

    What may but need not be repeated counts once; sets and escapes count as one.
    """
    sums, last, at = [0], 0, 0
    while at < len(pattern):
        char = pattern[at]
        repeat = _REPEAT.match(pattern, at)
        if repeat is not None:
            times = int(repeat[1] or 0)
            sums[-1] += last * max(times - 1, 0)
            last *= max(times, 1)
            at = repeat.end()
            continue
        if char == "(":
            sums.append(0)
        elif char == ")" and len(sums) > 1:
            last = max(sums.pop(), 1)
            sums[-1] += last
        else:
            at = _end_of_item(pattern, at)
            last = 1
            sums[-1] += 1
            continue
        at += 1
    return sum(sums)


def _end_of_item(pattern: str, at: int) -> int:
    """Return where the escape, set or character ends that begins here."""
    if pattern[at] == "\\":
        return at + 2
    if pattern[at] != "[":
        return at + 1
    at += 2 if pattern[at + 1 : at + 2] == "^" else 1
    first = at
    while at < len(pattern) and (pattern[at] != "]" or at == first):
        at += 2 if pattern[at] == "\\" else 1
    return at + 1
