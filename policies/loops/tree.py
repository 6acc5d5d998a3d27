"""A shell command as a small tree: what was read, and where it stands in the text."""

from dataclasses import dataclass

from policies.loops.record import record


@dataclass(eq=False, repr=False)
class Source:
    """The text that spans point into."""

    text: str


@record
class Span:
    """A piece of a source."""

    source: Source
    start: int
    end: int

    @property
    def raw(self) -> str:
        """The text as it stands."""
        return self.source.text[self.start : self.end]


@record
class Literal(Span):
    """Characters of a word that stand for themselves once quotes are taken away."""

    text: str
    quoted: bool


@record
class Variable(Span):
    """`$name` or `${name}`; `name` is empty for a form that is more than a name."""

    name: str
    quoted: bool


@record
class Substitution(Span):
    """`$(...)`, backquotes or `<(...)`."""

    script: "Sequence"
    quoted: bool


@record
class Arithmetic(Span):
    """`$((...))`."""

    text: str


Piece = Literal | Variable | Substitution | Arithmetic


@record
class Word(Span):
    """A word of a command."""

    pieces: tuple[Piece, ...]

    @property
    def fixed(self) -> str | None:
        """What it stands for, or None where the shell has to expand it first."""
        if all(isinstance(piece, Literal) for piece in self.pieces):
            return "".join(p.text for p in self.pieces if isinstance(p, Literal))
        return None

    @property
    def globs(self) -> bool:
        """Whether the shell may take it for a pattern of file names."""
        return any(
            isinstance(piece, Literal)
            and not piece.quoted
            and any(char in piece.text for char in "*?[{")
            for piece in self.pieces
        )


@record
class Redirection:
    """`2>/dev/null`; the body of a heredoc comes with the next line."""

    operator: str
    target: Word
    start: int
    end: int
    body: str | None = None


@record
class Node(Span):
    """A command of any kind."""

    redirections: tuple[Redirection, ...] = ()


@record
class Simple(Node):
    """Assignments and words; `[[ ... ]]` is one too."""

    assignments: tuple[tuple[str, Word], ...] = ()
    words: tuple[Word, ...] = ()


@record
class Count(Node):
    """`(( ... ))`."""

    text: str


@record
class Pipeline(Node):
    """Commands joined by `|`, or one that is negated."""

    commands: tuple[Node, ...]
    negated: bool


@record
class Chain(Node):
    """Commands joined by `&&` and `||`; the operator stands before its command."""

    items: tuple[tuple[str, Node], ...]


@record
class Sequence(Node):
    """Commands one after the other; each says whether an `&` ends it."""

    items: tuple[tuple[Node, bool], ...]


@record
class Group(Node):
    """`{ ... }` or `( ... )`."""

    script: Sequence


@record
class Loop(Node):
    """`while` and `until`."""

    until: bool
    condition: Sequence
    body: Sequence


@record
class Each(Node):
    """`for`, `select` and zsh's `repeat`.

    Attributes:
        name: of the variable, or empty.
        words: it goes over.
        header: the text between `((` and `))`.
    """

    name: str
    words: tuple[Word, ...]
    header: str
    body: Sequence


@record
class Branch(Node):
    """`if`; an `elif` is one in the other branch."""

    condition: Sequence
    then: Sequence
    other: Sequence


@record
class Case(Node):
    """`case`: the patterns of each arm and what it does."""

    word: Word
    arms: tuple[tuple[tuple[Word, ...], Sequence], ...]


@record
class Function(Node):
    """A function that is defined."""

    name: str
    body: Node
