"""What words stand for once the variables of the same command are filled in."""

import re
import shlex
from collections.abc import Iterator
from typing import Final

from policies.loops.record import record
from policies.loops.tree import (
    Arithmetic,
    Chain,
    Group,
    Literal,
    Node,
    Piece,
    Pipeline,
    Sequence,
    Simple,
    Substitution,
    Variable,
    Word,
)

Scope = dict[str, Word]
"""Variable to what it was last set to, as far as the command itself tells."""


@record
class Output(Word):
    """What a variable was set to once: the output of a command, never run again."""


_FILLED: Final = 40
"""Variables that are replaced in one word; more stay as they are."""
_LONGEST: Final = 500
"""Characters of a value that is kept: nobody waits for anything longer."""


def remember(scope: Scope, name: str, word: Word) -> None:
    """Keep what a variable is set to, or that this is no longer known."""
    if word.end - word.start <= _LONGEST:
        scope[name] = word
    else:
        scope.pop(name, None)


def remember_once(scope: Scope, name: str, word: Word) -> None:
    """Keep what a variable is set to before the wait; a command ran just there."""
    if any(isinstance(piece, Substitution) for piece in expanded(word, scope)):
        word = Output(
            source=word.source, start=word.start, end=word.end, pieces=word.pieces
        )
    remember(scope, name, word)


def _known_as(piece: Piece, scope: Scope) -> Word | None:
    """Return what may stand in a variable's place."""
    known = scope.get(piece.name) if isinstance(piece, Variable) else None
    return None if isinstance(known, Output) else known


def expanded(word: Word, scope: Scope) -> tuple[Piece, ...]:
    """Return the pieces of a word with known variables replaced by theirs."""
    pieces: list[Piece] = []
    left = _FILLED
    waiting = [*reversed(word.pieces)]
    while waiting:
        piece = waiting.pop()
        known = _known_as(piece, scope)
        if known is None or not left:
            pieces.append(piece)
        else:
            left -= 1
            waiting.extend(reversed(known.pieces))
    return tuple(pieces)


def fixed(word: Word, scope: Scope) -> str | None:
    """Return the text that a word stands for, or None where only the shell can tell."""
    return _joined(expanded(word, scope))


def _joined(pieces: tuple[Piece, ...]) -> str | None:
    texts = [piece.text for piece in pieces if isinstance(piece, Literal)]
    return "".join(texts) if len(texts) == len(pieces) else None


def loose(word: Word, scope: Scope) -> str:
    """Return a word without its quotes, with what only the shell knows as it stands."""
    return "".join(
        piece.text if isinstance(piece, Literal) else piece.raw
        for piece in expanded(word, scope)
    )


def operand(word: Word, scope: Scope, prefix: str = "") -> str:
    """Return a word as one argument for a shell: quoted, its variables kept (`"$P"`).

    Args:
        prefix: stands before it in the same argument.
    """
    pieces = expanded(word, scope)
    text = _joined(pieces)
    if text is not None:
        home = not prefix and word.raw.startswith("~/")
        return "~/" + shlex.quote(text[2:]) if home else shlex.quote(prefix + text)
    inside = "".join(
        _for_double_quotes(piece.text) if isinstance(piece, Literal) else piece.raw
        for piece in pieces
    )
    return f'"{_for_double_quotes(prefix)}{inside}"'


def command_of(word: Word, scope: Scope) -> Node | None:
    """Return the one command whose output a word is, if it is no more than that."""
    pieces = expanded(word, scope)
    if len(pieces) == 1 and isinstance(pieces[0], Substitution):
        items = pieces[0].script.items
        if len(items) == 1:
            return items[0][0]
    return None


def text_of(node: Node, scope: Scope, *, whole: bool = False) -> str:
    """Return a command's text with the variables that are known.

    Args:
        whole: with redirections to nowhere at its end, too.
    """
    end = node.end if whole else _clean_end(node)
    return _filled(words_in(node), node, scope, node.start, end)


def span_text(node: Node, first: Word, last: Word, scope: Scope) -> str:
    """Return the text from one word of a command to another."""
    words = (inner for word in (first, last) for inner in nested(word))
    return _filled(words, node, scope, first.start, last.end)


def _clean_end(node: Node) -> int:
    """Leave out redirections to nowhere at the end."""
    end = node.end
    for redirection in reversed(node.redirections):
        if redirection.end == end and _is_noise(redirection.target):
            end = redirection.start
            while node.source.text[end - 1] in " \t":
                end -= 1
    return end


def _is_noise(target: Word) -> bool:
    return target.raw in {"/dev/null", "&1", "1", "2"}


def _filled(
    words: Iterator[Word], node: Node, scope: Scope, start: int, end: int
) -> str:
    spans = sorted(
        (piece.start, piece.end, text)
        for piece, text in _known(words, scope)
        if piece.source is node.source and start <= piece.start and piece.end <= end
    )
    parts: list[str] = []
    at = start
    for first, last, text in spans:
        if first < at:
            continue
        parts += [node.source.text[at:first], text]
        at = last
    return "".join([*parts, node.source.text[at:end]]).strip()


def _known(words: Iterator[Word], scope: Scope) -> Iterator[tuple[Variable, str]]:
    for word in words:
        for piece in word.pieces:
            if isinstance(piece, Variable) and _known_as(piece, scope):
                yield piece, _value(piece, scope)


def _value(variable: Variable, scope: Scope) -> str:
    word = scope[variable.name]
    pieces = expanded(word, scope)
    text = _joined(pieces)
    if text is not None:
        return _for_double_quotes(text) if variable.quoted else shlex.quote(text)
    if all(isinstance(piece, Substitution | Literal) for piece in pieces):
        return "".join(
            _for_double_quotes(piece.text) if isinstance(piece, Literal) else piece.raw
            for piece in pieces
        )
    return variable.raw


def is_lost(piece: Variable | Arithmetic, scope: Scope) -> bool:
    """Say whether a shell of its own lacks what a piece of a text needs."""
    if isinstance(piece, Variable) and piece.name:
        if _known_as(piece, scope):
            return _value(piece, scope) == piece.raw
        return piece.name in scope or not piece.name.isidentifier()
    return any(name in scope for name in re.findall(r"[A-Za-z_]\w*", piece.raw))


def words_in(node: Node) -> Iterator[Word]:
    """Walk over the words of a command and of the commands in it."""
    for word in _own_words(node):
        yield from nested(word)
    for child in _children(node):
        yield from words_in(child)


def nested(word: Word) -> Iterator[Word]:
    """Walk over a word and the words of the commands in it."""
    yield word
    for piece in word.pieces:
        if isinstance(piece, Substitution):
            yield from words_in(piece.script)


def _own_words(node: Node) -> Iterator[Word]:
    if isinstance(node, Simple):
        yield from (word for _, word in node.assignments)
        yield from node.words
    yield from (redirection.target for redirection in node.redirections)


def _children(node: Node) -> Iterator[Node]:
    if isinstance(node, Pipeline):
        yield from node.commands
    elif isinstance(node, Chain):
        yield from (item for _, item in node.items)
    elif isinstance(node, Sequence):
        yield from (item for item, _ in node.items)
    elif isinstance(node, Group):
        yield node.script


def _for_double_quotes(text: str) -> str:
    return "".join("\\" + char if char in '"\\$`' else char for char in text)
