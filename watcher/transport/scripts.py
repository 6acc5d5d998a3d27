"""Rounds of scripts for a POSIX shell as text, and what a shell wrote about them.

Marks that nobody else can know stand around a round and around the output of each of
its scripts: what lies outside is noise, and output without its end is no answer.
"""

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

SCRIPT_LIMIT_S = 3
"""Of one script, where the host has timeout(1)."""

_MOST = 64 * 1024 * 1024  # bytes of a round
_MOST_OUTPUT = 16 * 1024 * 1024  # bytes of one script's output
_TAIL = 400  # bytes of noise that are kept: what a login shell said
_TIMED_OUT = frozenset({124, 137})  # of timeout(1), or its SIGKILL

# The nonce comes in halves: a terminal that echoes this must not look like an answer.
# Without head -c nothing bounds the output there; without timeout(1) a look that hangs
# holds up the round.
_SETUP = """\
LC_ALL=C; export LC_ALL; umask 077; cd /; exec 2>/dev/null
session=$$; export session
mark() {{ printf '\\n%s%s %s\\n' {first} {second} "$*"; }}
if printf x | head -c 1 >/dev/null
then bound() {{ head -c {most}; }}; else bound() {{ cat; }}; fi
if timeout -s KILL {limit} true
then within() {{ timeout -s KILL {limit} /bin/sh -c "$1"; }}
else within() {{ (eval "$1"); }}; fi
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a shell wrote in a round.

    Attributes:
        whole: the round came to its end.
        begun: the numbers of the scripts that began.
        ended: status and output of those that also ended, within their bounds.
    """

    whole: bool
    begun: Collection[int]
    ended: Mapping[int, tuple[int, bytes]]

    def slow(self, number: int) -> bool:
        """Say whether a script took longer than it may."""
        if number in self.ended:
            return self.ended[number][0] in _TIMED_OUT
        return number in self.begun and not self.whole


class Rounds:
    """Makes the text of each round, and takes what comes back for the last one."""

    def __init__(self, nonce: str) -> None:
        """Expect nothing yet."""
        self._noise = b""
        self._nonce = nonce
        self._number = 0
        self._buffer = bytearray()
        self._inside = False

    def setup(self) -> str:
        """Return what a shell has to read first."""
        half = len(self._nonce) // 2
        return _SETUP.format(
            first=shlex.quote(self._nonce[:half]),
            second=shlex.quote(self._nonce[half:]),
            most=_MOST_OUTPUT,
            limit=SCRIPT_LIMIT_S,
        )

    def begin(self, scripts: Sequence[str]) -> str:
        """Return the text of a new round; what still comes of others is noise now."""
        self._number += 1
        self._inside = False
        return "".join(self._lines(scripts))

    def feed(self, data: bytes) -> Said | None:
        """Return what was said once the round is whole.

        Raises:
            ValueError: it has no end.
        """
        searched = len(self._buffer) if self._inside else 0
        self._buffer += data
        if not self._inside:
            self._enter()
        end = self._mark("end")
        at = self._buffer.find(end, max(searched - len(end), 0)) if self._inside else -1
        if at < 0:
            if len(self._buffer) > _MOST:
                raise ValueError("more than a round may say")
            return None
        said = self._said(at, whole=True)
        del self._buffer[: at + len(end)]
        self._inside = False
        return said

    def noise(self) -> str:
        """Return the last of what came before the round: why there is none."""
        last = self._noise if self._inside else self._noise + self._buffer
        return last.decode("utf-8", "replace").strip()

    def part(self) -> Said | None:
        """Return what was said of a round that is not over; None when nothing was."""
        return self._said(len(self._buffer), whole=False) if self._inside else None

    def _lines(self, scripts: Sequence[str]) -> Iterator[str]:
        yield f"mark {self._number} begin\n"
        for number, script in enumerate(scripts):
            name = f"{self._number} {number}"
            run = f"within {shlex.quote(script)} </dev/null; mark {name} $?"
            yield f"mark {name}; {{ {run}; }} | bound\n"
        yield f"mark {self._number} end\n"

    def _enter(self) -> None:
        """Drop what comes before the round."""
        begin = self._mark("begin")
        at = self._buffer.find(begin)
        self._inside = at >= 0
        end = at if self._inside else max(len(self._buffer) - len(begin), 0)
        self._noise = (self._noise + bytes(self._buffer[:end][-_TAIL:]))[-_TAIL:]
        del self._buffer[: end + len(begin) if self._inside else end]

    def _said(self, end: int, *, whole: bool) -> Said:
        said = bytes(self._buffer[:end])
        marks = re.compile(rb"\n%s %d (\d+)( \d+)?\n" % self._names())
        begun: dict[int, int] = {}
        ended: dict[int, tuple[int, bytes]] = {}
        for mark in marks.finditer(said):
            number = int(mark[1])
            if mark[2] is None:
                begun[number] = mark.end()
            elif number in begun:
                ended[number] = int(mark[2]), said[begun[number] : mark.start()]
        return Said(whole=whole, begun=set(begun), ended=ended)

    def _mark(self, word: str) -> bytes:
        return b"\n%s %d %s\n" % (*self._names(), word.encode())

    def _names(self) -> tuple[bytes, int]:
        return self._nonce.encode(), self._number
