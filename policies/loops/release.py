"""What a loop waits for: its conditions and breaks as one expression of looks."""

import re
from dataclasses import dataclass, field, replace
from typing import Final

from policies.loops.aim import NotAWaitError
from policies.loops.altered import is_altered
from policies.loops.around import HERE
from policies.loops.brackets import Brackets
from policies.loops.commands import Does, does, pause_s
from policies.loops.expressions import (
    NO,
    YES,
    Always,
    Expression,
    Leaf,
    Match,
    bad,
    both,
    either,
    opposite,
)
from policies.loops.lexing import ShellError
from policies.loops.shell import parse
from policies.loops.tree import (
    Branch,
    Case,
    Chain,
    Count,
    Group,
    Node,
    Pipeline,
    Redirection,
    Sequence,
    Simple,
    Substitution,
)
from policies.loops.words import fixed, loose, remember
from policies.loops.wrappers import Inner, inner_script, unwrap

_NOWHERE: Final = re.compile(
    r"/dev/(null|tty|stdout|stderr|fd/\d+)|&?[0-9-]+|/dev/tcp/.*"
)
_MOST_ENTERED: Final = 20
"""Functions and scripts that are read for one loop."""
_MOST_ITEMS: Final = 100
"""Commands of one list: more is a program."""


@dataclass(eq=False, repr=False)
class Reader(Brackets):
    """Reads the commands of a loop: what they say, and that they do nothing else.

    Attributes:
        functions: that the command defines.
        pauses: the seconds of each pause of a turn.
    """

    functions: dict[str, Node] = field(default_factory=dict)
    pauses: list[float] = field(default_factory=list)
    assigns: bool = False
    _entered: int = 0

    # what a command says

    def value(self, node: Node) -> Expression:
        """Return what it means that a command succeeds.

        Raises:
            NotAWaitError: it does more than look.
        """
        self.check(node.redirections)
        match node:
            case Simple():
                return self._simple(node)
            case Pipeline():
                return self._pipeline(node)
            case Chain():
                return self._chain(node)
            case Group():
                return self.last(node.script)
            case Count():
                return self._count(node.text)
            case _:
                raise NotAWaitError

    def last(self, script: Sequence) -> Expression:
        """Return what it means that the last command of a list succeeds."""
        value: Expression = YES
        for node, detached in script.items:
            if detached:
                raise NotAWaitError
            value = self.value(node)
        return value

    def _chain(self, node: Chain) -> Expression:
        value: Expression = YES
        if len(node.items) > _MOST_ITEMS:
            raise NotAWaitError
        for operator, item in node.items:
            said = self.value(item)
            value = either(value, said) if operator == "||" else both(value, said)
        return value

    def check(self, redirections: tuple[Redirection, ...]) -> None:
        """See that nothing is written to a file.

        Raises:
            NotAWaitError: it is.
        """
        for redirection in redirections:
            if redirection.operator.startswith("<"):
                continue
            if not _NOWHERE.fullmatch(loose(redirection.target, self.scope)):
                raise NotAWaitError

    def _pipeline(self, node: Pipeline) -> Expression:
        if len(node.commands) == 1:
            return opposite(self.value(node.commands[0]))
        for command in node.commands:
            self.value(command)
        leaf = self._leaf(replace(node, negated=False, start=node.commands[0].start))
        return opposite(leaf) if node.negated else leaf

    def _simple(self, node: Simple) -> Expression:
        self._check_substitutions(node)
        if not node.words:
            self._assign(node)
            return self._leaf(node) if _reads_network(node) else YES
        words = [loose(word, self.scope) for word in node.words]
        if is_altered(words) or any(
            fixed(word, self.scope) is None for _, word in node.assignments
        ):
            raise NotAWaitError
        name = words[0].rpartition("/")[2]
        if name in {"[", "[[", "test"}:
            return self._test(node)
        if name in {"export", "local", "declare", "readonly", "typeset"}:
            return YES
        return self._named(node, name, words)

    def _named(self, node: Simple, name: str, words: list[str]) -> Expression:
        if name in self.functions:
            return self._inside(self.functions[name])
        if inner := inner_script(node, self.scope):
            return self._inner(inner)
        kind = does(words)
        if kind is Does.PAUSE:
            self.pauses.append(pause_s(words) or 0.0)
            return YES
        if kind is Does.LOOK or _reads_network(node):
            return self._leaf(node)
        if kind is Does.PRINT:
            return NO if name == "false" else YES
        return self._wrapped(node)

    def _wrapped(self, node: Simple) -> Expression:
        """Read `sudo X` and `timeout 5 X`: it says what X says, and is kept whole."""
        inside = unwrap(node, self.scope)
        if inside is None:
            raise NotAWaitError
        said = self.value(replace(inside, redirections=()))
        whole = isinstance(said, Leaf) and said.node.source is node.source
        if isinstance(said, Leaf) and whole and isinstance(said.node, Simple):
            return replace(said, node=node)
        return said

    def _inner(self, inner: "Inner") -> Expression:
        """Read what a shell is given to run, here or on a host."""
        try:
            script = parse(inner.text)
        except ShellError:
            raise NotAWaitError from None
        kept = self.host, self.around
        if inner.host and self.host:
            raise NotAWaitError
        if inner.host:
            self.host, self.around = inner.host, HERE
        said = self._inside(
            Group(
                source=script.source, start=script.start, end=script.end, script=script
            )
        )
        if isinstance(said, Always) and inner.host:
            node = parse("true").items[0][0]  # can it be reached at all?
            said = self._leaf(node)
        self.host, self.around = kept
        return said

    def _inside(self, node: Node) -> Expression:
        self._entered += 1
        if self._entered > _MOST_ENTERED:
            raise NotAWaitError
        return self.value(node)

    def _assign(self, node: Simple) -> None:
        self.assigns = True
        for name, word in node.assignments:
            if name not in self.counters:
                remember(self.scope, name, word)

    def _check_substitutions(self, node: Simple) -> None:
        """See that the commands whose output is used only look, too."""
        words = [*node.words, *(word for _, word in node.assignments)]
        for word in words:
            for piece in word.pieces:
                if isinstance(piece, Substitution):
                    self.last(piece.script)

    # what a body does

    def leaving(self, script: Sequence, path: Expression) -> Expression:
        """Return when the commands of a body leave the loop.

        Args:
            path: what was seen already where the body is entered.

        Raises:
            NotAWaitError: the body does more than look, or always leaves.
        """
        return self._block(script, path)[0]

    def _block(
        self, script: Sequence, path: Expression
    ) -> tuple[Expression, Expression]:
        """Return when a block leaves the loop, and when what follows it is reached."""
        released: Expression = NO
        for node, detached in script.items:
            if detached or len(script.items) > _MOST_ITEMS:
                raise NotAWaitError
            more, path = self._statement(node, path)
            released = either(released, more)
            if path is NO:
                break
        return released, path

    def _statement(self, node: Node, path: Expression) -> tuple[Expression, Expression]:
        if isinstance(node, Branch | Case):
            return self._branches(node, path)
        if isinstance(node, Simple) and _leaves(node):
            return self._leave(node, path)
        if isinstance(node, Chain) and _leaves(node):
            return self._chained(node, path)
        if isinstance(node, Group) and _leaves(node):
            return self._block(node.script, path)
        self.value(node)
        return NO, path

    def _leave(self, node: Simple, path: Expression) -> tuple[Expression, Expression]:
        word = node.words[0].raw
        if word == "continue":
            return NO, NO
        if path is YES:
            raise NotAWaitError
        code = node.words[1].raw if len(node.words) > 1 else "0"
        fails = word != "break" and code != "0"
        return (bad(path) if fails else path), NO

    def _chained(self, node: Chain, path: Expression) -> tuple[Expression, Expression]:
        released: Expression = NO
        said: Expression = YES
        after = path
        if len(node.items) > _MOST_ITEMS:
            raise NotAWaitError
        for operator, item in node.items:
            runs = opposite(said) if operator == "||" else said
            if _leaves(item):
                more, reached = self._statement(item, both(path, runs))
                released = either(released, more)
                if reached is NO:
                    after = both(path, opposite(runs))
            else:
                value = self.value(item)
                said = either(said, value) if operator == "||" else both(said, value)
        continues = "continue" in node.raw
        return released, after if continues else path

    def _branches(
        self, node: Branch | Case, path: Expression
    ) -> tuple[Expression, Expression]:
        arms = (
            [
                (self.last(node.condition), node.then),
            ]
            if isinstance(node, Branch)
            else self._arms(node)
        )
        released: Expression = NO
        reached: Expression = NO
        untold: Expression = YES
        for said, script in arms:
            more, alive = self._block(script, both(path, both(untold, said)))
            released = either(released, more)
            reached = either(reached, alive)
            untold = both(untold, opposite(said))
        rest = node.other if isinstance(node, Branch) else None
        alive = both(path, untold)
        if rest is not None and alive is not NO:
            more, alive = self._block(rest, alive)
            released = either(released, more)
        reached = either(reached, alive)
        return released, reached if "continue" in node.raw else path

    def _arms(self, node: Case) -> list[tuple[Expression, Sequence]]:
        for piece in node.word.pieces:
            if isinstance(piece, Substitution):
                self.last(piece.script)
        arms: list[tuple[Expression, Sequence]] = []
        for patterns, script in node.arms:
            if any(pattern.raw == "*" for pattern in patterns):
                arms.append((YES, script))
                continue
            match = Match(
                source=node.source,
                start=node.start,
                end=node.word.end,
                word=node.word,
                patterns=patterns,
            )
            arms.append((self._leaf(match), script))
        return arms


def counters_of(node: Node) -> frozenset[str]:
    """Return the variables that a loop counts with."""
    found = re.findall(
        r"\b([A-Za-z_]\w*)(?:\+\+|--(?=[\s);])|\+=|-=)"
        r"|(?:\+\+|(?<=\()--)([A-Za-z_]\w*)\b"
        r"|\b([A-Za-z_]\w*)=\"?(?:\$\(\(|\$\(expr|`expr)|\blet [\"']?([A-Za-z_]\w*)",
        node.raw,
    )
    return frozenset(name for names in found for name in names if name)


def _reads_network(node: Simple) -> bool:
    return any("/dev/tcp/" in item.target.raw for item in node.redirections)


def _leaver(node: Node) -> str | None:
    if isinstance(node, Simple) and node.words:
        word = node.words[0].raw
        if word in {"break", "exit", "return", "continue"}:
            return word
    return None


def _leaves(node: Node) -> bool:
    """Say whether a `break` or the like stands anywhere in a command."""
    if isinstance(node, Simple):
        return _leaver(node) is not None
    if isinstance(node, Chain):
        return any(_leaves(item) for _, item in node.items)
    if isinstance(node, Group):
        return any(_leaves(item) for item, _ in node.script.items)
    if isinstance(node, Branch):
        return any(
            _leaves(item)
            for script in (node.condition, node.then, node.other)
            for item, _ in script.items
        )
    if isinstance(node, Case):
        return any(_leaves(item) for _, script in node.arms for item, _ in script.items)
    return False
