"""Reads a shell command into a tree: POSIX sh, and what bash, zsh and fish add to it.

A recursive descent of our own. bashlex is under the GPL. tree-sitter-bash was measured
and not taken: a pipeline of 60 KB takes it two minutes, it knows neither fish nor the
short loops of zsh, which the guard must read, and its import costs a hook more than
the interpreter's own start. This one reads a text in a time that grows with its length
and gives up on deep nesting.
"""

from policies.loops.lexing import (
    ASSIGNMENT,
    ENDS_WORD,
    NAME,
    REDIRECTION,
    Lexer,
    ShellError,
)
from policies.loops.tree import (
    Branch,
    Case,
    Chain,
    Count,
    Each,
    Function,
    Group,
    Loop,
    Node,
    Piece,
    Pipeline,
    Redirection,
    Sequence,
    Simple,
    Source,
    Word,
)


def parse(text: str) -> Sequence:
    """Return the tree of a command.

    Raises:
        ShellError: it cannot be read.
    """
    return _Parser(Source(text)).whole()


class _Parser(Lexer):
    def whole(self) -> Sequence:
        script = self._sequence(frozenset())
        if self._at < len(self._text):
            raise ShellError(self._text[self._at :][:20])
        return script

    def _inner(self, text: str) -> Sequence:
        return _Parser(Source(text), self._depth).whole()

    # lists

    def _sequence(self, stops: frozenset[str]) -> Sequence:
        """Read commands up to a closing bracket, `;;`, or one of the words `stops`."""
        self._deeper()
        self._newlines(";")
        start = end = self._at
        items: list[tuple[Node, bool]] = []
        while self._at < len(self._text):
            if self._text[self._at] == ")" or self._peek(";;") or self._peek(";&"):
                break
            bare = self._bare()
            if bare in stops and (items or bare != "{"):
                break
            node = self._chain()
            end = self._at
            self._blank()
            detached = self._peek("&") and not self._peek("&&")
            self._at += detached
            items.append((node, detached))
            before = self._at
            self._newlines(";")
            if not (detached or self._at > before or self._closes(stops)):
                raise ShellError(self._text[self._at :][:20])
        self._depth -= 1
        return Sequence(source=self._source, start=start, end=end, items=tuple(items))

    def _closes(self, stops: frozenset[str]) -> bool:
        return (
            self._at >= len(self._text)
            or self._text[self._at] == ")"
            or self._peek(";;")
            or self._peek(";&")
            or ("{" in stops and self._peek("{"))
            or self._bare() in stops & {"}"}
        )

    def _chain(self) -> Node:
        start = self._at
        items = [("", self._pipeline())]
        while True:
            end = self._at
            self._blank()
            operator = self._text[self._at : self._at + 2]
            if operator not in {"&&", "||"}:
                self._at = end
                break
            self._at += 2
            self._newlines()
            items.append((operator, self._pipeline()))
        if len(items) == 1:
            return items[0][1]
        return Chain(source=self._source, start=start, end=end, items=tuple(items))

    def _pipeline(self) -> Node:
        start = self._at
        negated = False
        while self._bare() in {"!", "not"}:
            negated = not negated
            self._at += len(self._bare())
            self._blank()
        commands = [self._command()]
        while True:
            end = self._at
            self._blank()
            if not self._peek("|") or self._peek("||"):
                self._at = end
                break
            self._at += 2 if self._peek("|&") else 1
            self._newlines()
            commands.append(self._command())
        if len(commands) == 1 and not negated:
            return commands[0]
        return Pipeline(
            source=self._source,
            start=start,
            end=end,
            commands=tuple(commands),
            negated=negated,
        )

    # commands

    def _command(self) -> Node:
        word = self._bare()
        if self._peek("(("):
            count = self._count()
            if count is not None:
                return count
        if self._peek("("):
            self._at += 1
            return self._closed(self._at - 1, ")")
        if word == "{":
            self._at += 1
            return self._closed(self._at - 1, "}")
        reader = {
            "while": self._loop,
            "until": self._loop,
            "for": self._for,
            "select": self._for,
            "repeat": self._repeat,
            "if": self._if,
            "case": self._case,
            "function": self._function,
            "begin": self._begin,
        }.get(word)
        if reader is None:
            return self._simple()
        start = self._at
        self._at += len(word)
        self._deeper()
        node = reader(start, word)
        self._depth -= 1
        return node

    def _closed(self, start: int, bracket: str) -> Group:
        script = self._sequence(frozenset({bracket} - {")"}))
        self._newlines(";")
        self._take(bracket)
        redirections = self._redirections()
        return Group(
            source=self._source,
            start=start,
            end=self._at,
            redirections=redirections,
            script=script,
        )

    def _redirections(self) -> tuple[Redirection, ...]:
        found: list[Redirection] = []
        while True:
            end = self._at
            self._blank()
            redirection = self._redirection()
            if redirection is None:
                self._at = end
                return tuple(found)
            found.append(redirection)

    def _redirection(self) -> Redirection | None:
        match = REDIRECTION.match(self._text, self._at)
        if match is None or self._text.startswith("(", match.end()):
            return None
        start = self._at
        self._at = match.end()
        self._blank()
        target = self._word()
        redirection = Redirection(
            operator=match[1] or match[0], target=target, start=start, end=self._at
        )
        if match[1] in {"<<", "<<-"}:
            delimiter = target.fixed or target.raw
            self._heredocs.append((redirection, delimiter, match[1] == "<<-"))
        return redirection

    def _count(self) -> Count | None:
        """Read `(( ... ))`, or nothing where it is a subshell in a subshell."""
        start = self._at
        end = self._arithmetic_end(start + 2)
        if end is None:
            return None
        self._at = end + 2
        redirections = self._redirections()
        return Count(
            source=self._source,
            start=start,
            end=self._at,
            redirections=redirections,
            text=self._text[start + 2 : end],
        )

    def _body(self) -> Sequence:
        """Read `do ... done`, or `{ ... }` as zsh has it."""
        self._newlines(";")
        if self._peek("{"):
            self._at += 1
            self._short += 1
            body = self._closed(self._at - 1, "}").script
            self._short -= 1
            return body
        self._keyword("do")
        body = self._sequence(frozenset({"done"}))
        self._keyword("done")
        return body

    def _loop(self, start: int, word: str) -> Loop:
        self._blank()
        condition = self._sequence(frozenset({"do", "end", "{"}))
        if self._bare() == "end" or not condition.items:
            condition, body = self._fish_block(condition)
        else:
            body = self._body()
        redirections = self._redirections()
        return Loop(
            source=self._source,
            start=start,
            end=self._at,
            redirections=redirections,
            until=word == "until",
            condition=condition,
            body=body,
        )

    def _fish_block(self, script: Sequence) -> tuple[Sequence, Sequence]:
        """Read the `end` of a block of fish, whose first command is its condition."""
        self._keyword("end")
        items = _fish_chains(script)
        if not items:
            raise ShellError("end")
        first, rest = items[0][0], items[1:]
        return _part(script, first.start, first.end, items[:1]), _part(
            script, rest[0][0].start if rest else script.end, script.end, rest
        )

    def _for(self, start: int, word: str) -> Each:
        self._blank()
        header, name, words = "", "", list[Word]()
        if self._peek("(("):
            end = self._arithmetic_end(self._at + 2, header=True)
            if end is None:
                raise ShellError(word)
            header = self._text[self._at + 2 : end]
            self._at = end + 2
        else:
            match = NAME.match(self._text, self._at)
            if match is None:
                raise ShellError(word)
            name, self._at = match[0], match.end()
            self._newlines()
            if self._bare() == "in":
                self._at += 2
                words = self._words()
        return self._each(start, name, words, header)

    def _repeat(self, start: int, _word: str) -> Each:
        self._blank()
        return self._each(start, "", [self._word()], "repeat")

    def _each(self, start: int, name: str, words: list[Word], header: str) -> Each:
        self._newlines(";")
        if self._bare() == "do" or self._peek("{"):
            body = self._body()
        else:
            script = self._sequence(frozenset({"end"}))
            self._keyword("end")
            body = _part(script, script.start, script.end, _fish_chains(script))
        redirections = self._redirections()
        return Each(
            source=self._source,
            start=start,
            end=self._at,
            redirections=redirections,
            name=name,
            words=tuple(words),
            header=header,
            body=body,
        )

    def _words(self) -> list[Word]:
        found: list[Word] = []
        while True:
            self._blank()
            if self._peek("("):  # a command substitution of fish
                found.append(self._fish_word())
            elif self._at >= len(self._text) or self._text[self._at] in ENDS_WORD:
                return found
            else:
                found.append(self._word())

    def _fish_word(self) -> Word:
        start = self._at
        self._at += 1
        piece = self._substitution(start, ")", quoted=False)
        return self._finished(start, [piece])

    def _if(self, start: int, _word: str) -> Branch:
        self._blank()
        condition = self._sequence(frozenset({"then", "else", "end"}))
        if self._bare() == "then":
            self._at += 4
            then = self._sequence(frozenset({"elif", "else", "fi"}))
            other, closing = self._else("fi")
        else:
            script = condition
            other = self._empty()
            if self._bare() == "else":
                self._at += 4
                rest = self._sequence(frozenset({"end"}))
                other = _part(rest, rest.start, rest.end, _fish_chains(rest))
            condition, then = self._fish_block(script)
            closing = True
        redirections = self._redirections() if closing else ()
        return Branch(
            source=self._source,
            start=start,
            end=self._at,
            redirections=redirections,
            condition=condition,
            then=then,
            other=other,
        )

    def _else(self, closing: str) -> tuple[Sequence, bool]:
        """Return the other branch, and whether the `fi` was read here."""
        found = self._keyword("elif", "else", closing)
        if found == closing:
            return self._empty(), True
        if found == "else":
            other = self._sequence(frozenset({closing}))
            self._keyword(closing)
            return other, True
        start = self._at
        self._deeper()
        branch = self._if(start, "elif")
        self._depth -= 1
        return (
            Sequence(
                source=self._source,
                start=start,
                end=branch.end,
                items=((branch, False),),
            ),
            False,
        )

    def _empty(self) -> Sequence:
        return Sequence(source=self._source, start=self._at, end=self._at, items=())

    def _begin(self, start: int, _word: str) -> Group:
        script = self._sequence(frozenset({"end"}))
        self._keyword("end")
        return Group(
            source=self._source,
            start=start,
            end=self._at,
            script=_part(script, script.start, script.end, _fish_chains(script)),
        )

    def _case(self, start: int, _word: str) -> Case:
        self._blank()
        word = self._word()
        self._keyword("in")
        arms: list[tuple[tuple[Word, ...], Sequence]] = []
        while True:
            self._newlines(";")
            if self._bare() == "esac":
                self._at += 4
                break
            arms.append(self._arm())
        redirections = self._redirections()
        return Case(
            source=self._source,
            start=start,
            end=self._at,
            redirections=redirections,
            word=word,
            arms=tuple(arms),
        )

    def _arm(self) -> tuple[tuple[Word, ...], Sequence]:
        if self._peek("("):
            self._at += 1
        patterns: list[Word] = []
        while True:
            self._blank()
            patterns.append(self._word())
            self._blank()
            if not self._peek("|"):
                break
            self._at += 1
        self._take(")")
        script = self._sequence(frozenset({"esac"}))
        self._newlines()
        for end in (";;&", ";;", ";&"):
            if self._peek(end):
                self._at += len(end)
                break
        return tuple(patterns), script

    def _function(self, start: int, _word: str) -> Function:
        self._blank()
        name = self._bare()
        self._at += len(name)
        self._blank()
        if self._peek("("):
            self._at += 1
            self._blank()
            self._take(")")
        return self._defined(start, name)

    def _defined(self, start: int, name: str) -> Function:
        self._newlines()
        if not (name and (self._bare() == "{" or self._peek("("))):
            raise ShellError("function")
        body = self._command()
        return Function(
            source=self._source, start=start, end=self._at, name=name, body=body
        )

    def _simple(self) -> Node:
        start = end = self._at
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirections: list[Redirection] = []
        while True:
            self._blank()
            redirection = self._redirection()
            if redirection is not None:
                redirections.append(redirection)
            elif self._at >= len(self._text) or self._ends_simple():
                if self._peek("(") and len(words) == 1 and end == self._at:
                    return self._called(start, words[0])
                break
            elif not words and self._bare() == "[[":
                words.extend(self._test())
                end = self._at
                redirections.extend(self._redirections())
                end = self._at
                break
            elif not words and (match := ASSIGNMENT.match(self._text, self._at)):
                assignments.append((match[1], self._assigned(match.end())))
            else:
                words.append(self._word())
            end = self._at
        self._at = end
        if end == start:
            raise ShellError(self._text[start:][:20])
        return Simple(
            source=self._source,
            start=start,
            end=end,
            redirections=tuple(redirections),
            assignments=tuple(assignments),
            words=tuple(words),
        )

    def _ends_simple(self) -> bool:
        substitutes = self._peek("<(") or self._peek(">(")
        if self._short and self._bare() == "}":
            return True
        return self._text[self._at] in ENDS_WORD and not substitutes

    def _called(self, start: int, name: Word) -> Function:
        self._take("(")
        self._blank()
        self._take(")")
        return self._defined(start, name.raw)

    def _assigned(self, start: int) -> Word:
        """Read what a variable is set to: a word, an array, or nothing."""
        self._at = start
        if self._peek("("):
            self._at += 1
            while True:
                self._newlines()
                if self._peek(")"):
                    break
                self._word()
            self._at += 1
            return self._finished(start, [self._opaque(start)])
        if self._at >= len(self._text) or self._text[self._at] in ENDS_WORD:
            return self._finished(start, [])
        return self._word()

    def _test(self) -> list[Word]:
        """Read `[[ ... ]]` as words, its operators too."""
        words: list[Word] = []
        while True:
            self._newlines()
            start = self._at
            for operator in ("&&", "||", "(", ")", "<", ">"):
                if self._peek(operator):
                    self._at += len(operator)
                    break
            if self._at == start:
                words.append(
                    self._regex() if words and words[-1].raw == "=~" else self._word()
                )
            else:
                words.append(self._finished(start, [self._letters(start)]))
            if words[-1].raw == "]]":
                return words

    def _regex(self) -> Word:
        """Read the right side of `=~`, where brackets and bars are letters."""
        start = self._at
        pieces: list[Piece] = []
        depth = 0
        while self._at < len(self._text):
            char = self._text[self._at]
            if char in "(|<>" or (char == ")" and depth):
                depth += (char == "(") - (char == ")")
                self._at += 1
                pieces.append(self._letters(self._at - 1))
            elif char in " \t" and depth:
                self._at += 1
                pieces.append(self._letters(self._at - 1))
            elif char in ENDS_WORD:
                break
            else:
                pieces.extend(self._word().pieces)
        return self._finished(start, pieces)


def _part(
    script: Sequence, start: int, end: int, items: tuple[tuple[Node, bool], ...]
) -> Sequence:
    return Sequence(source=script.source, start=start, end=end, items=items)


def _fish_chains(script: Sequence) -> tuple[tuple[Node, bool], ...]:
    """Join what fish writes as commands of their own: `test -f a; and break`."""
    items: list[tuple[Node, bool]] = []
    for node, detached in script.items:
        operator = _fish_operator(node)
        if operator and items and isinstance(node, Simple):
            before = items.pop()[0]
            rest = Simple(
                source=node.source,
                start=node.words[1].start,
                end=node.end,
                redirections=node.redirections,
                words=node.words[1:],
            )
            old = before.items if isinstance(before, Chain) else (("", before),)
            chain = Chain(
                source=script.source,
                start=before.start,
                end=node.end,
                items=(*old, (operator, rest)),
            )
            items.append((chain, detached))
        else:
            items.append((node, detached))
    return tuple(items)


def _fish_operator(node: Node) -> str:
    if isinstance(node, Simple) and len(node.words) > 1:
        return {"and": "&&", "or": "||"}.get(node.words[0].raw, "")
    return ""
