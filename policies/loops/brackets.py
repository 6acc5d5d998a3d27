"""Tests: `[ ... ]`, `test`, `[[ ... ]]` and `(( ... ))`, and the limits in them."""

import re
from dataclasses import dataclass
from typing import Final

from policies.loops.aim import NotAWaitError
from policies.loops.around import HERE, Around
from policies.loops.expressions import (
    NO,
    YES,
    Expression,
    Leaf,
    Limit,
    Test,
    both,
    either,
    opposite,
)
from policies.loops.names import names
from policies.loops.tree import (
    Node,
    Simple,
    Word,
)
from policies.loops.words import Scope, fixed, loose

_UNARY: Final = names(
    """
    -e -f -d -s -r -w -x -L -h -S -p -b -c -n -z -t -O -G
    """
)
_BINARY: Final = names(
    """
    = == != =~ -eq -ne -lt -le -gt -ge < > -nt -ot -ef
    """
)
_COMPARES: Final = names(
    """
    -eq -ne -lt -le -gt -ge < > = == !=
    """
)


@dataclass(eq=False, repr=False)
class Brackets:
    """Reads tests.

    Attributes:
        scope: variables, as far as the command tells; grows while reading.
        counters: variables that count or keep the time.
        host: where the tests run, if not here.
        around: what was set up before them.
    """

    scope: Scope
    counters: frozenset[str] = frozenset()
    host: str | None = None
    around: Around = HERE

    def _leaf(self, node: Node) -> Expression:
        return Leaf(
            node,
            wanted=True,
            scope=self.scope,
            host=self.host,
            around=self.around,
        )

    # tests

    def _test(self, node: Simple) -> Expression:
        double = node.words[0].raw == "[["
        words = list(node.words[1:])
        if words and words[-1].raw in {"]", "]]"}:
            words.pop()
        if not words:
            raise NotAWaitError
        said, rest = self._either_of(node, words, double=double)
        if rest:
            raise NotAWaitError
        return said

    def _either_of(
        self, node: Simple, words: list[Word], *, double: bool
    ) -> tuple[Expression, list[Word]]:
        said, rest = self._both_of(node, words, double=double)
        while rest and rest[0].raw in {"||", "-o"}:
            more, rest = self._both_of(node, rest[1:], double=double)
            said = either(said, more)
        return said, rest

    def _both_of(
        self, node: Simple, words: list[Word], *, double: bool
    ) -> tuple[Expression, list[Word]]:
        said, rest = self._primary(node, words, double=double)
        while rest and rest[0].raw in {"&&", "-a"}:
            more, rest = self._primary(node, rest[1:], double=double)
            said = both(said, more)
        return said, rest

    def _primary(
        self, node: Simple, words: list[Word], *, double: bool
    ) -> tuple[Expression, list[Word]]:
        if not words:
            raise NotAWaitError
        first = words[0].raw
        if len(words) >= 3 and words[1].raw in _BINARY:
            return self._comparison(node, words[:3], double=double), words[3:]
        if first == "!":
            said, rest = self._primary(node, words[1:], double=double)
            return opposite(said), rest
        if first in {"(", "\\("}:
            said, rest = self._either_of(node, words[1:], double=double)
            if not rest:
                raise NotAWaitError
            return said, rest[1:]
        if first in _UNARY and len(words) > 1:
            said = self._compare(node, first, words[:2], double=double)
            return said, words[2:]
        text = fixed(words[0], self.scope)
        if text is not None:
            return YES if text else NO, words[1:]
        return self._compare(node, "-n", words[:1], double=double), words[1:]

    def _compare(
        self, node: Simple, operator: str, words: list[Word], *, double: bool
    ) -> Expression:
        """Return the look of a comparison: of two words, or of the last one alone."""
        test = Test(
            source=node.source,
            start=words[0].start,
            end=words[-1].end,
            operator=operator,
            left=words[0] if len(words) == 3 else None,
            right=words[-1],
            double=double,
        )
        return self._leaf(test)

    def _comparison(
        self, node: Simple, words: list[Word], *, double: bool
    ) -> Expression:
        left, operator, right = words
        if operator.raw in _COMPARES:
            limit = self._limit(left, right) or self._limit(right, left)
            if limit:
                return limit
        return self._compare(node, operator.raw, words, double=double)

    # counters and clocks

    def _limit(self, side: Word, other: Word) -> Limit | None:
        text = self._spelled(side)
        number = self._number(other)
        if "stat " in text or "stat\t" in text:
            return None
        if "SECONDS" in text or "date +%s" in text:
            return Limit(seconds=number)
        names = set(re.findall(r"[A-Za-z_]\w*", text))
        counts = re.fullmatch(r"[\s$\w{}()+*/-]*", text) and names & self.counters
        return Limit(turns=number) if counts else None

    def _spelled(self, word: Word) -> str:
        """Return a word with what the names in its sums were set to, behind it."""
        text = loose(word, self.scope)
        names = re.findall(r"[A-Za-z_]\w*", text) if "((" in text else []
        known = [self.scope[name] for name in names if name in self.scope]
        return " ".join([text, *(loose(value, self.scope) for value in known)])

    def _number(self, word: Word) -> int:
        """Return the number that a word holds: `30`, `$((SECONDS + 600))`."""
        text = fixed(word, self.scope)
        if text is None:
            text = loose(word, self.scope)
            for name in re.findall(r"[A-Za-z_]\w*", text):
                known = self.scope.get(name)
                value = fixed(known, self.scope) if known else None
                if value is not None and value.isascii() and value.isdigit():
                    text = re.sub(rf"\$?\b{name}\b", value, text)
        return _span(text)

    def _count(self, text: str) -> Expression:
        """Read `(( ... ))`: a comparison limits, anything else counts."""
        if match := re.fullmatch(r"\s*([01])\s*", text):
            return YES if match[1] == "1" else NO
        match = re.search(r"(.*?)([<>]=?|==|!=)(.*)", text)
        if match is None:
            return YES
        right = match[3]
        for name in re.findall(r"[A-Za-z_]\w*", right):
            known = self.scope.get(name)
            value = fixed(known, self.scope) if known else None
            if known is not None:
                right = re.sub(
                    rf"\$?\b{name}\b", value or loose(known, self.scope), right
                )
        number = _span(right)
        if "SECONDS" in text or "date +%s" in text:
            return Limit(seconds=number)
        return Limit(turns=number)


def _span(text: str) -> int:
    """Return the number at the end of a sum, the product where there is one."""
    if match := re.search(r"\b([0-9]{1,6})\s*\*\s*([0-9]{1,6})\b", text):
        return int(match[1]) * int(match[2])
    if match := re.search(r"(?:^|[+<>=])\s*([0-9]{1,8})\b", text):
        return int(match[1])
    return 0
