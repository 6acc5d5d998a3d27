"""Reads the words of a shell command: quotes, variables, substitutions."""

import re
from abc import ABC, abstractmethod
from typing import Final

from policies.loops.tree import (
    Arithmetic,
    Literal,
    Piece,
    Redirection,
    Sequence,
    Source,
    Substitution,
    Variable,
    Word,
)

MAX_DEPTH: Final = 30
"""Nested constructs: some frames each, far from Python's own limit."""

ENDS_WORD = frozenset(" \t\n;&|<>()")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9!?$@#*-]")
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[^\]\n]*\])?\+?=")
REDIRECTION = re.compile(r"(?:[0-9]+|\{\w+\})?(<<<|<<-|<<|<>|<&|>>|>&|>\||<|>)|&>>?")
_BARE = re.compile(r"[^\s;&|<>()\\'\"$`]+")
_BLANK = re.compile(r"(?:[ \t\r]|\\\r?\n)+")
_COMMENT = re.compile(r"#[^\n]*")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "e": "\x1b"}


class ShellError(ValueError):
    """This is no shell, or nested too deep."""


class Lexer(ABC):
    """What is left of a text, and how its next word is read."""

    def __init__(self, source: Source, depth: int = 0) -> None:
        self._source = source
        self._text = source.text
        self._at = 0
        self._depth = depth
        self._short = 0  # short loops of zsh that are open: a `}` may end a command
        self._heredocs: list[tuple[Redirection, str, bool]] = []

    # what comes next

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _blank(self) -> None:
        if match := _BLANK.match(self._text, self._at):
            self._at = match.end()
        if self._peek("#"):
            match = _COMMENT.match(self._text, self._at)
            self._at = match.end() if match else self._at

    def _newlines(self, also: str = "") -> None:
        """Skip blanks, comments, lines that end, and the characters in `also`."""
        self._blank()
        while self._at < len(self._text) and self._text[self._at] in "\n" + also:
            if also and (self._peek(";;") or self._peek(";&")):
                return
            self._at += 1
            if self._text[self._at - 1] == "\n":
                self._read_heredocs()
            self._blank()

    def _bare(self) -> str:
        """Return the unquoted word that comes next without reading it."""
        match = _BARE.match(self._text, self._at)
        if match is None:
            return ""
        after = self._text[match.end() : match.end() + 1]
        return "" if after in {*"\\'\"$`"} and after else match[0]

    def _take(self, text: str) -> None:
        if not self._peek(text):
            raise ShellError(text)
        self._at += len(text)

    def _keyword(self, *words: str) -> str:
        self._newlines(";")
        found = self._bare()
        if found not in words:
            raise ShellError(" ".join(words))
        self._at += len(found)
        return found

    def _read_heredocs(self) -> None:
        for redirection, delimiter, strips in self._heredocs:
            lines: list[str] = []
            while self._at < len(self._text):
                end = self._text.find("\n", self._at)
                end = len(self._text) if end < 0 else end
                line = self._text[self._at : end]
                self._at = min(end + 1, len(self._text))
                line = line.lstrip("\t") if strips else line
                if line == delimiter:
                    break
                lines.append(line)
            redirection.body = "\n".join(lines)
        self._heredocs.clear()

    def _arithmetic_end(self, at: int, *, header: bool = False) -> int | None:
        """Return where the `))` stands that closes what begins at `at`.

        Args:
            header: of a `for`, which holds semicolons; a sum holds none.
        """
        depth = 0
        for index in range(at, len(self._text)):
            char = self._text[index]
            if char == "(":
                depth += 1
            elif char == ")" and depth:
                depth -= 1
            elif char == ")":
                return index if self._text.startswith("))", index) else None
            elif char in ";\n" and not header:
                return None
        return None

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ShellError("deep")

    # words

    def _finished(self, start: int, pieces: list[Piece]) -> Word:
        return Word(
            source=self._source, start=start, end=self._at, pieces=tuple(pieces)
        )

    def _letters(self, start: int, text: str | None = None) -> Literal:
        return Literal(
            source=self._source,
            start=start,
            end=self._at,
            text=self._text[start : self._at] if text is None else text,
            quoted=text is not None,
        )

    def _opaque(self, start: int) -> Variable:
        return Variable(
            source=self._source, start=start, end=self._at, name="", quoted=False
        )

    def _word(self) -> Word:
        start = self._at
        pieces: list[Piece] = []
        while self._at < len(self._text):
            char = self._text[self._at]
            if match := _BARE.match(self._text, self._at):
                self._at = match.end()
                pieces.append(self._letters(match.start()))
            elif self._peek("<(") or self._peek(">("):
                self._at += 2
                pieces.append(self._substitution(self._at - 2, ")", quoted=False))
            elif char == "(" and pieces and self._text[self._at - 1] in "?*+@!=":
                pieces.append(self._pattern_list())
            elif char in ENDS_WORD:
                break
            else:
                pieces.extend(self._quoted_or_dollar(char))
        if self._at == start:
            raise ShellError(self._text[start:][:20])
        return self._finished(start, pieces)

    def _pattern_list(self) -> Piece:
        """Read the `(a|b)` of an extended pattern, or the values of an array."""
        start = self._at
        depth = 0
        while self._at < len(self._text):
            char = self._text[self._at]
            self._at += 1
            depth += (char == "(") - (char == ")")
            if not depth:
                return self._opaque(start)
        raise ShellError("(")

    def _quoted_or_dollar(self, char: str) -> list[Piece]:
        start = self._at
        if char == '"' or self._peek('$"'):
            self._at += char == "$"
            return self._double()
        if char == "\\":
            self._at = min(start + 2, len(self._text))
            escaped = self._text[start + 1 : self._at]
            piece: Piece = self._letters(start, "" if escaped == "\n" else escaped)
        elif char == "'":
            piece = self._single(start, start + 1)
        elif char == "`":
            piece = self._backquoted(quoted=False)
        elif self._peek("$'"):
            piece = self._ansi(start)
        else:
            piece = self._dollar(quoted=False)
        return [piece]

    def _single(self, start: int, inside: int) -> Literal:
        end = self._text.find("'", inside)
        if end < 0:
            raise ShellError("'")
        self._at = end + 1
        return self._letters(start, self._text[inside:end])

    def _ansi(self, start: int) -> Literal:
        self._at += 2
        chars: list[str] = []
        while not self._peek("'"):
            if self._at >= len(self._text):
                raise ShellError("'")
            char = self._text[self._at]
            self._at += 1
            if char == "\\":
                escaped = self._text[self._at : self._at + 1]
                self._at += len(escaped)
                char = _ESCAPES.get(escaped, escaped)
            chars.append(char)
        self._at += 1
        return self._letters(start, "".join(chars))

    def _double(self) -> list[Piece]:
        opened = self._at
        self._at += 1
        pieces: list[Piece] = []
        while not self._peek('"'):
            if self._at >= len(self._text):
                raise ShellError('"')
            pieces.append(self._inside_double())
        self._at += 1
        return pieces or [self._letters(opened, "")]

    def _inside_double(self) -> Piece:
        start = self._at
        char = self._text[start]
        if char == "\\":
            self._at = min(start + 2, len(self._text))
            escaped = self._text[start + 1 : self._at]
            if escaped == "\n":
                return self._letters(start, "")
            kept = escaped if escaped in '$`"\\' else "\\" + escaped
            return self._letters(start, kept)
        if char == "`":
            return self._backquoted(quoted=True)
        if char == "$":
            return self._dollar(quoted=True)
        while self._at < len(self._text) and self._text[self._at] not in '"\\`$':
            self._at += 1
        return self._letters(start, self._text[start : self._at])

    def _dollar(self, *, quoted: bool) -> Piece:
        start = self._at
        if self._peek("$(("):
            end = self._arithmetic_end(start + 3)
            if end is not None:
                self._at = end + 2
                return Arithmetic(
                    source=self._source,
                    start=start,
                    end=self._at,
                    text=self._text[start + 3 : end],
                )
        if self._peek("$("):
            self._at += 2
            return self._substitution(start, ")", quoted=quoted)
        if self._peek("${"):
            return self._braced(quoted=quoted)
        self._at += 1
        if match := _VARIABLE.match(self._text, self._at):
            self._at = match.end()
            return Variable(
                source=self._source,
                start=start,
                end=self._at,
                name=match[0],
                quoted=quoted,
            )
        return self._letters(start, "$")

    def _braced(self, *, quoted: bool) -> Variable:
        start = self._at
        end = self._text.find("}", start)
        if end < 0:
            raise ShellError("${")
        self._at = end + 1
        inside = self._text[start + 2 : end]
        match = _VARIABLE.fullmatch(inside)
        return Variable(
            source=self._source,
            start=start,
            end=self._at,
            name=inside if match else "",
            quoted=quoted,
        )

    def _substitution(self, start: int, bracket: str, *, quoted: bool) -> Substitution:
        kept, self._heredocs = self._heredocs, []
        script = self._sequence(frozenset())
        self._newlines(";")
        self._take(bracket)
        self._heredocs = kept
        return Substitution(
            source=self._source,
            start=start,
            end=self._at,
            script=script,
            quoted=quoted,
        )

    @abstractmethod
    def _sequence(self, stops: frozenset[str]) -> Sequence:
        """Read commands up to a closing bracket, `;;`, or one of the words `stops`."""

    @abstractmethod
    def _inner(self, text: str) -> Sequence:
        """Read a text of its own, as deep as this one."""

    def _backquoted(self, *, quoted: bool) -> Substitution:
        start = self._at
        self._at += 1
        chars: list[str] = []
        while not self._peek("`"):
            if self._at >= len(self._text):
                raise ShellError("`")
            if self._peek("\\") and self._text[self._at + 1 : self._at + 2] in "\\`$":
                self._at += 1
            chars.append(self._text[self._at : self._at + 1])
            self._at += 1
        self._at += 1
        self._deeper()
        inner = self._inner("".join(chars))
        self._depth -= 1
        return Substitution(
            source=self._source,
            start=start,
            end=self._at,
            script=inner,
            quoted=quoted,
        )
