"""Finds the hand-made wait in a command, through whatever it is wrapped in."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from policies.loops.aim import NotAWaitError
from policies.loops.altered import is_altered
from policies.loops.around import HERE, UNKNOWN, Around
from policies.loops.compose import Wanted, from_aim, wanted
from policies.loops.expressions import (
    YES,
    Expression,
    either,
    leaves,
    limits,
    opposite,
    without_limits,
)
from policies.loops.kept import leaf_words
from policies.loops.lexing import ShellError
from policies.loops.programs import LANGUAGES, program_wait
from policies.loops.record import record
from policies.loops.release import (
    Reader,
    counters_of,
)
from policies.loops.shell import parse
from policies.loops.streams import streamed
from policies.loops.tree import (
    Branch,
    Case,
    Chain,
    Each,
    Function,
    Group,
    Literal,
    Loop,
    Node,
    Pipeline,
    Sequence,
    Simple,
    Variable,
    Word,
)
from policies.loops.words import Scope, fixed, loose, remember_once
from policies.loops.wrappers import (
    SHELLS,
    inner_script,
    unwrap,
    wrapped_limit_s,
)

_MOST_NESTED: Final = 12
_MOST_ENTERED: Final = 50
"""Functions and scripts that are read for one command."""
_STARTS: Final = re.compile(
    r"\b(up|run|start|restart|serve|rollout|apply|launch|create)\b.*"
)
_GOES: Final = frozenset({"cd", "pushd", "popd", "chdir"})
_OWN: Final = frozenset({"!", "$", "PPID"})  # a child, or the shell itself
_PRINTS_ONLY: Final = re.compile(
    r"(?:\s*(?:echo|printf|date|true|:|exit|done)\b[^;&|`$]*(?:;|&&|$))+\s*"
)


@record
class Found:
    """A wait that was found, and what is around it.

    Attributes:
        pause_s: between two looks.
        ttl_s: the deadline it has, zero for none.
        tail: what is to follow it.
        chained: the tail follows only a success (`&&`).
    """

    target: Wanted
    pause_s: float = 0.0
    ttl_s: int = 0
    tail: str = ""
    chained: bool = False


@dataclass(eq=False, repr=False)
class Finder:
    """Walks over a command once; what it has read so far tells what names mean."""

    scope: Scope = field(default_factory=dict)
    host: str | None = None
    functions: dict[str, Node] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    around: Around = HERE
    started: bool = False
    nested: int = 0
    entered: int = 0

    def in_text(self, text: str) -> Found | None:
        """Return the wait in a script, or None; one that cannot be read holds none."""
        try:
            script = parse(text)
        except ShellError:
            return None
        return self.in_script(script)

    def in_script(self, script: Sequence) -> Found | None:
        """Return the first wait in a list of commands, with what follows it."""
        for place, (node, detached) in enumerate(script.items):
            found = self.at(node)
            if found is None:
                self.started = self.started or detached
                continue
            rest = script.items[place + 1 :]
            if rest and not (detached or found.tail):
                text = script.source.text[rest[0][0].start : script.end]
                found = replace(found, tail=self._tail(text))
            return found
        return None

    def at(self, node: Node) -> Found | None:
        """Return the wait that a command is or holds."""
        self.nested += 1
        found = self._at(node) if self.nested <= _MOST_NESTED else None
        self.nested -= 1
        return found

    def _at(self, node: Node) -> Found | None:
        found: Found | None = None
        match node:
            case Loop() | Each():
                found = self._loop(node)
            case Chain():
                found = self._chain(node)
            case Group():
                found = self._group(node)
            case Branch():
                found = self._one_of(node.condition, node.then, node.other)
            case Pipeline():
                found = self._pipeline(node)
            case Simple():
                found = self._simple(node)
            case Function():
                self.functions[node.name] = node.body
            case Case():
                found = self._one_of(*(script for _, script in node.arms))
            case _:
                pass
        return found

    def _chain(self, node: Chain) -> Found | None:
        surely = self.around
        for place, (operator, item) in enumerate(node.items):
            before = self.around
            found = self.at(item)
            if operator == "||" and self.around is not before:
                self.around = UNKNOWN
            if found is None:
                surely = surely if place else self.around
                continue
            rest = node.items[place + 1 :]
            if rest and rest[0][0] == "&&" and not found.tail:
                tail = self._tail(node.source.text[rest[0][1].start : node.end])
                found = replace(found, tail=tail, chained=bool(tail))
            return found
        self._sure(surely)
        return None

    def _sure(self, around: Around) -> None:
        """Keep what is around, unless something that may not run changed it."""
        if self.around is not around:
            self.around = UNKNOWN

    def _one_of(self, *scripts: Sequence) -> Found | None:
        kept = self.around
        found = next(filter(None, map(self.in_script, scripts)), None)
        self._sure(kept)
        return found

    def _group(self, node: Group) -> Found | None:
        kept = self.around
        found = self.in_script(node.script)
        if node.raw.startswith("("):
            self.around = kept
        return found

    def _tail(self, text: str) -> str:
        """Return what is to follow a wait, in the folder where it would have run.

        Raises:
            NotAWaitError: only the shell knows it.
        """
        tail = _tail(text)
        return self.around.command(tail, simple=False) if tail else ""

    # loops

    def _loop(self, node: Loop | Each) -> Found | None:
        counters = counters_of(node)
        if isinstance(node, Each):
            counters |= {node.name}
        unknown = counters | {"SECONDS"}
        reader = Reader(
            scope={
                name: word for name, word in self.scope.items() if name not in unknown
            },
            functions=self.functions,
            counters=counters,
            host=self.host,
            around=self.around,
        )
        try:
            released, turns = (
                self._while(node, reader)
                if isinstance(node, Loop)
                else self._for(node, reader)
            )
        except NotAWaitError:
            return None
        look = without_limits(released)
        if look is None or not _waits(node, reader, look):
            return None
        pause_s = sum(reader.pauses)
        try:
            target = wanted(look, pause_s)
        except NotAWaitError:
            return None
        if self._is_own(target, look):
            return None
        ttl_s = _deadline(released, turns, pause_s)
        return Found(target=target, pause_s=pause_s, ttl_s=ttl_s)

    def _while(self, node: Loop, reader: Reader) -> tuple[Expression, int]:
        reader.check(node.redirections)
        said = reader.last(node.condition)
        left = reader.leaving(node.body, YES)
        return either(said if node.until else opposite(said), left), 0

    def _for(self, node: Each, reader: Reader) -> tuple[Expression, int]:
        turns = _turns(node, self.scope)
        reader.check(node.redirections)
        left = reader.leaving(node.body, YES)
        return left, turns

    def _is_own(self, target: Wanted, look: Expression) -> bool:
        """Say whether it waits for what it has started itself: a server, a child."""
        if self.started and target.kind in {"http", "port", "command"}:
            return True
        return any(
            isinstance(piece, Variable) and piece.name in _OWN
            for leaf in leaves(look)
            for word in leaf_words(leaf)
            for piece in [
                *word.pieces,
                *(
                    inner
                    for variable in word.pieces
                    if isinstance(variable, Variable) and variable.name in leaf.scope
                    for inner in leaf.scope[variable.name].pieces
                ),
            ]
        )

    # commands

    def _pipeline(self, node: Pipeline) -> Found | None:
        first = node.commands[0]
        ttl_s = wrapped_limit_s(first, self.scope) if isinstance(first, Simple) else 0
        if found := streamed(node, self.scope, self.host, self.around):
            return Found(target=found, ttl_s=ttl_s)
        last = node.commands[-1]
        if isinstance(last, Simple) and last.words:
            fed = self._fed(node.commands[0], last)
            if fed is not None:
                return fed
        for command in node.commands:
            if found_in := self.at(command):
                return found_in
        return None

    def _fed(self, first: Node, last: Simple) -> Found | None:
        """Read `cat <<X | bash` and `echo '...' | ssh HOST sh`."""
        name = loose(last.words[0], self.scope).rpartition("/")[2]
        if name not in SHELLS | {"ssh"} or not isinstance(first, Simple):
            return None
        bodies = [r.body for r in first.redirections if r.body is not None]
        if not bodies and first.words and first.words[0].raw in {"echo", "printf"}:
            bodies = [loose(first.words[-1], self.scope)]
        if not bodies or is_altered([loose(word, self.scope) for word in last.words]):
            return None
        inner = inner_script(last, self.scope)
        host = inner.host if inner else None
        return self._inside(bodies[0], host)

    def _inside(self, text: str, host: str | None = None) -> Found | None:
        self.entered += 1
        if self.entered > _MOST_ENTERED:
            return None
        if host and self.host:
            return None
        kept = self.host, self.around
        if host:
            self.host, self.around = host, HERE
        found = self.in_text(text)
        self.host, self.around = kept
        return found

    def _simple(self, node: Simple) -> Found | None:
        self._remember(node)
        kept = self.around
        around = self.around = kept.with_assigned(node, self.scope)
        found = self._command(node)
        if self.around is around:
            self.around = kept
        if node.words and node.words[0].raw in _GOES:
            self.around = kept.gone_to(node, self.scope)
        return found

    def _command(self, node: Simple) -> Found | None:
        words = [loose(word, self.scope) for word in node.words]
        if not words or is_altered(words):
            return None
        name = words[0].rpartition("/")[2]
        if found := streamed(node, self.scope, self.host, self.around):
            return Found(target=found)
        readers: dict[str, Callable[[Simple], Found | None]] = {
            **dict.fromkeys(LANGUAGES, self._program),
            **dict.fromkeys(("tmux", "screen", "systemd-run"), self._elsewhere),
        }
        reader = readers.get(name, self._wrapped)
        if node.words[0].raw in self.functions:
            reader = self._called
        if inner := inner_script(node, self.scope):
            found_in = self._inside(inner.text, inner.host)
            return found_in or (self._program(node) if name in _POWER else None)
        if path := self._script_run(node, name):
            return self._inside(self.files[path])
        return reader(node)

    def _called(self, node: Simple) -> Found | None:
        """Read a function with what it is called with as `$1`, `$2`."""
        self.entered += 1
        if self.entered > _MOST_ENTERED:
            return None
        kept = self.scope
        given = {str(place): word for place, word in enumerate(node.words) if place}
        self.scope = {**kept, **given}
        found = self.at(self.functions[node.words[0].raw])
        self.scope = kept
        return found

    def _wrapped(self, node: Simple) -> Found | None:
        inside = unwrap(node, self.scope)
        if inside is None:
            self.started = self.started or bool(_STARTS.search(node.raw))
            return None
        found = self.at(inside)
        if found is None:
            return None
        ttl_s = wrapped_limit_s(node, self.scope) or found.ttl_s
        return replace(found, ttl_s=ttl_s)

    def _elsewhere(self, node: Simple) -> Found | None:
        """Read what is run in a session of tmux or screen, or as a unit."""
        for place, word in enumerate(node.words[1:], 1):
            text = loose(word, self.scope)
            if text.rpartition("/")[2] in SHELLS:
                inside = replace(node, start=word.start, words=node.words[place:])
                found = self.at(inside)
            else:
                found = self._inside(text) if " " in text else None
            if found is not None:
                return found
        return None

    def _program(self, node: Simple) -> Found | None:
        words = [loose(word, self.scope) for word in node.words]
        body = next((r.body for r in node.redirections if r.body is not None), None)
        found = program_wait(words, body)
        if found is None:
            return None
        aim, pause_s, ttl_s = found
        aim = self.around.placed(replace(aim, host=self.host))
        return Found(target=from_aim(aim), pause_s=pause_s, ttl_s=ttl_s)

    def _remember(self, node: Simple) -> None:
        """Keep what variables are set to and what is written to files."""
        assigned = node.assignments
        if not node.words:
            for name, word in assigned:
                remember_once(self.scope, name, word)
        elif node.words[0].raw in {"export", "readonly", "local", "declare"}:
            for name, word in _exported(node).items():
                value = fixed(word, self.scope)
                remember_once(self.scope, name, word)
                if node.words[0].raw == "export":
                    self.around = self.around.exporting(name, value)
        for redirection in node.redirections:
            if redirection.operator in {">", ">|", ">>"}:
                text = self._written(node)
                path = fixed(redirection.target, self.scope)
                if text is not None and path is not None:
                    self.files[path.removeprefix("./")] = text

    def _written(self, node: Simple) -> str | None:
        for redirection in node.redirections:
            if redirection.body is not None:
                return redirection.body
        if node.words and node.words[0].raw in {"echo", "printf"}:
            return loose(node.words[-1], self.scope)
        return None

    def _script_run(self, node: Simple, name: str) -> str | None:
        words = [fixed(word, self.scope) or "" for word in node.words]
        place = 1 if name in SHELLS | {".", "source"} else 0
        path = words[place].removeprefix("./") if place < len(words) else ""
        return path if path in self.files else None


_POWER: Final = frozenset({"pwsh", "powershell"})


def _exported(node: Simple) -> Scope:
    """Return the variables of `export P=7`, whose words hold their values."""
    scope: Scope = {}
    for word in node.words[1:]:
        name, equals, _ = word.raw.partition("=")
        if equals and word.pieces:
            first = word.pieces[0]
            if not isinstance(first, Literal):
                continue
            text = first.text.partition("=")[2]
            pieces = (replace(first, text=text), *word.pieces[1:])
            scope[name] = Word(
                source=word.source, start=word.start, end=word.end, pieces=pieces
            )
    return scope


def _tail(text: str) -> str:
    """Return what follows a wait, unless it only tells that it is over."""
    text = " ".join(text.split())
    return "" if _PRINTS_ONLY.fullmatch(text) else text


def _waits(node: Loop | Each, reader: Reader, look: Expression) -> bool:
    """Say whether a loop that only looks waits, rather than searches or counts."""
    if not reader.pauses and (isinstance(node, Each) or reader.assigns):
        return False
    if isinstance(node, Loop):
        return True
    return not any(
        isinstance(piece, Variable) and piece.name == node.name
        for leaf in leaves(look)
        for word in leaf_words(leaf)
        for piece in word.pieces
    )


def _deadline(released: Expression, turns: int, pause_s: float) -> int:
    found = [
        limit.seconds or round(limit.turns * pause_s) for limit in limits(released)
    ]
    if turns:
        found.append(max(1, round(turns * pause_s)))
    known = [seconds for seconds in found if seconds > 0]
    return min(known) if known else 0


def _turns(node: Each, scope: Scope) -> int:
    """Return how often a loop over numbers turns.

    Raises:
        NotAWaitError: it goes over things.
    """
    if node.header and node.header != "repeat":
        middle = node.header.split(";")[1] if node.header.count(";") == 2 else ""
        match = re.search(r"[<>]=?\s*([0-9]{1,6})", middle)
        return int(match[1]) if match else 0
    texts = [loose(word, scope) for word in node.words]
    if node.header:
        return int(texts[0]) if re.fullmatch(r"[0-9]{1,6}", texts[0]) else 0
    joined = " ".join(texts)
    if match := re.fullmatch(
        r"[$`(]*seq (?:-\w )?(?:[0-9]+ )??(?:[0-9]+ )?([0-9]{1,6})[)`]*", joined
    ):
        return int(match[1])
    if match := re.fullmatch(r"\{[0-9]+\.\.([0-9]{1,6})\}", joined):
        return int(match[1])
    if re.fullmatch(r"[0-9]{1,6}(?: [0-9]{1,6})+", joined):
        return len(texts)
    if re.fullmatch(r"[$`(]*seq .*|\{[0-9]+\.\..*\}", joined):
        return 0
    raise NotAWaitError
