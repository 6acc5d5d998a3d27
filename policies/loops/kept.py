"""What a suggestion cannot keep of a look: then nothing is said at all."""

from policies.loops.aim import GREPS, NotAWaitError
from policies.loops.expressions import Expression, Leaf, Match, leaves
from policies.loops.expressions import Test as Comparison
from policies.loops.tree import (
    Arithmetic,
    Piece,
    Pipeline,
    Simple,
    Substitution,
    Variable,
    Word,
)
from policies.loops.words import Scope, is_lost, loose, nested, words_in


def leaf_words(leaf: Leaf) -> list[Word]:
    """Return the words of a look, and those of the commands in them."""
    node = leaf.node
    if isinstance(node, Comparison):
        words = [word for word in (node.left, node.right) if word]
    elif isinstance(node, Match):
        words = [node.word, *node.patterns]
    else:
        return list(words_in(node))
    return [inner for word in words for inner in nested(word)]


def check_processes(expression: Expression) -> None:
    """See that no list of processes goes through several greps.

    Raises:
        NotAWaitError: it does; the text would find the monitor itself.
    """
    for leaf in leaves(expression):
        if any(_is_sifted(node, leaf.scope) for node in _pipelines(leaf)):
            raise NotAWaitError


def _pipelines(leaf: Leaf) -> list[Pipeline]:
    pieces = [piece for word in leaf_words(leaf) for piece in word.pieces]
    scripts = [piece.script for piece in pieces if isinstance(piece, Substitution)]
    nodes = [leaf.node, *(node for script in scripts for node, _ in script.items)]
    return [node for node in nodes if isinstance(node, Pipeline)]


def _is_sifted(node: Pipeline, scope: Scope) -> bool:
    commands = [c for c in node.commands if isinstance(c, Simple) and c.words]
    names = [loose(command.words[0], scope).rpartition("/")[2] for command in commands]
    return (
        names[:1] == ["ps"]
        and sum(
            name in GREPS and not drops_grep(command, scope)
            for name, command in zip(names, commands, strict=True)
        )
        > 1
    )


def drops_grep(command: Simple, scope: Scope) -> bool:
    """Say whether a command is `grep -v grep`."""
    texts = [loose(word, scope) for word in command.words]
    return (
        texts[0].rpartition("/")[2] in GREPS
        and any(text in {"-v", "--invert-match"} for text in texts)
        and texts[-1] in {"grep", "[g]rep"}
    )


def check_text(expression: Expression) -> None:
    """See that another shell can be given the text of the looks.

    Raises:
        NotAWaitError: it holds a variable that this other shell does not have.
    """
    for leaf in leaves(expression):
        for word in leaf_words(leaf):
            if any(_is_missing(piece, leaf.scope) for piece in word.pieces):
                raise NotAWaitError


def _is_missing(piece: Piece, scope: Scope) -> bool:
    return isinstance(piece, Variable | Arithmetic) and is_lost(piece, scope)
