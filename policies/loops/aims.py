"""A look of a loop as the target that koder-monitor watches instead."""

import re
import shlex
from dataclasses import replace
from typing import Final

from policies.loops.aim import (
    GREPS,
    NAME_LOOKS,
    Aim,
    NotAWaitError,
    span,
    split_options,
)
from policies.loops.around import HERE
from policies.loops.expressions import Leaf, Match, Test
from policies.loops.kept import drops_grep
from policies.loops.lexing import ShellError
from policies.loops.names import names
from policies.loops.patterns import (
    alternatives,
)
from policies.loops.shell import parse
from policies.loops.things import Things, process_pattern
from policies.loops.tree import (
    Arithmetic,
    Node,
    Pipeline,
    Simple,
    Word,
)
from policies.loops.words import (
    Scope,
    command_of,
    expanded,
)
from policies.loops.wrappers import inner_script

_EXISTS: Final = names(
    """
    -e -f -s -S -d -r -L -h -p -b -c
    """
)
_SIZES: Final = frozenset(
    {"stat", "wc", "du", "md5sum", "sha1sum", "sha256sum", "cksum"}
)


def aim_of(leaf: Leaf, pause_s: float) -> Aim | None:
    """Return what to watch for a look, or None: then the look itself is watched.

    Args:
        pause_s: between two looks of the loop: how long a file was quiet.
    """
    look = _Look(
        leaf.scope, leaf.host, wanted=leaf.wanted, bad=leaf.bad, pause_s=pause_s
    )
    aim = look.at(leaf.node)
    if aim is None:
        return None
    # a host is gone to by the look itself, and starts in its own folder
    around = leaf.around if aim.host in {None, leaf.host} else HERE
    return around.placed(replace(aim, host=aim.host or leaf.host))


class _Look(Things):
    def at(self, node: Node) -> Aim | None:
        if isinstance(node, Test):
            return self._test(node)
        if isinstance(node, Pipeline):
            return self._pipeline(node)
        if isinstance(node, Match):
            return self._match(node)
        return self._simple(node) if isinstance(node, Simple) else None

    def _turned(self, *, wanted: bool) -> "_Look":
        return _Look(
            self._scope, self._host, wanted=wanted, bad=self._bad, pause_s=self._pause_s
        )

    # pipelines

    def _pipeline(self, node: Pipeline) -> Aim | None:
        commands = [item for item in node.commands if isinstance(item, Simple)]
        if len(commands) != len(node.commands) or any(not c.words for c in commands):
            return None
        commands = [item for item in commands if not drops_grep(item, self._scope)]
        if len(commands) != 2:
            return self._simple(commands[0]) if len(commands) == 1 else None
        first, last = commands
        name = self._loose(first.words[0]).rpartition("/")[2]
        if self._loose(last.words[0]).rpartition("/")[2] not in GREPS:
            return None
        if name in NAME_LOOKS | {"lsof", "fuser"}:
            return self._simple(first)
        found = self._grepped(last)
        if found is None or found[1]:
            return None
        return self._filtered(first, name, found[0])

    def _filtered(self, first: Simple, name: str, pattern: str) -> Aim | None:
        if name == "ps":
            if aim := self._ps(first):
                return aim
            return None if self._wanted else process_pattern(_unescaped(pattern))
        if name in {"ss", "netstat"}:
            port = re.search(r"([0-9]{2,5})", pattern)
            return self._port(port[1]) if port else None
        if name in {"cat", "tail", "head", "tac"} and self._wanted:
            plain, _ = split_options(first.words[1:], frozenset({"-n", "-c"}))
            plain = [w for w in plain if not re.fullmatch(r"[0-9]+", w.raw)]
            return self._log(plain[0], pattern) if len(plain) == 1 else None
        if name in {"curl", "wget", "http", "https", "xh"} and self._wanted:
            url = self._url(first)
            return self._to(url, "--body", shlex.quote(pattern)) if url else None
        return None

    # tests

    def _test(self, node: Test) -> Aim | None:
        if node.operator in _EXISTS and node.left is None:
            negated_size = node.operator == "-s" and not self._wanted
            return None if negated_size else self._file(node.right)
        if node.left is None:
            return self._output(node)
        return self._compared(node, node.left)

    def _output(self, node: Test) -> Aim | None:
        """Read `[ -n "$(pgrep X)" ]` and `[ -z ... ]`."""
        if node.operator not in {"-n", "-z"}:
            return None
        return self._any_output(
            node.right, wanted=self._wanted == (node.operator == "-n")
        )

    def _any_output(self, word: Word, *, wanted: bool) -> Aim | None:
        inner = command_of(word, self._scope)
        inner, host = _remote(inner, self._scope) or (inner, self._host)
        if inner is None:
            return None
        look = _Look(
            self._scope, host, wanted=wanted, bad=self._bad, pause_s=self._pause_s
        )
        aim = look.at(_uncounted(inner))
        return replace(aim, host=host) if aim and aim.kind != "http" else None

    def _compared(self, node: Test, left: Word) -> Aim | None:
        if aim := self._quiet(node, left):
            return aim
        right = self._loose(node.right)
        positive = _ABOVE_ZERO.get(f"{node.operator} {right}")
        inner = command_of(left, self._scope)
        counted, _ = _remote(inner, self._scope) or (inner, None)
        if positive is not None and _counts(counted):
            return self._any_output(left, wanted=self._wanted == positive)
        same = {
            "=": True,
            "==": True,
            "-eq": True,
            "!=": False,
            "-ne": False,
            "=~": True,
        }
        if node.operator not in same or same[node.operator] != self._wanted:
            return None
        if right == "" and inner is not None:
            return self._turned(wanted=False).at(_uncounted(inner))
        return self._said(node, inner, right)

    def _said(self, node: Test, inner: Node | None, right: str) -> Aim | None:
        """Read a comparison of what an address or a log says."""
        if not isinstance(inner, Simple) or not inner.words:
            return None
        name = self._loose(inner.words[0])
        pattern = _contained(node, right)
        if name == "curl" and "http_code" in inner.raw:
            url = self._url(inner)
            return self._to(url, "--status", right) if url and right.isdigit() else None
        if name in {"curl", "wget"}:
            url = self._url(inner)
            body = pattern or f"^{re.escape(right)}$"
            return self._to(url, "--body", shlex.quote(body)) if url else None
        if name in {"tail", "cat"} and pattern:
            return self._logged(inner, pattern)
        return None

    def _logged(self, inner: Simple, pattern: str) -> Aim | None:
        plain, _ = split_options(inner.words[1:], frozenset({"-n", "-c"}))
        return self._log(plain[0], pattern) if len(plain) == 1 else None

    def _quiet(self, node: Test, left: Word) -> Aim | None:
        """Read a comparison of two sizes of one file, or of its age."""
        sized = self._sized(left) or self._sized(node.right)
        if sized is None:
            return None
        same = node.operator in {"=", "==", "-eq"}
        different = node.operator in {"!=", "-ne"}
        if (same and self._wanted) or (different and not self._wanted):
            return self._stays(sized, self._pause_s)
        older = {"-gt", "-ge", ">"}
        aged = any(isinstance(p, Arithmetic) for p in expanded(left, self._scope))
        if aged and (node.operator in older) == self._wanted:
            right = self._loose(node.right)
            return self._stays(
                sized, float(right) if re.fullmatch(r"[0-9]{1,8}", right) else 0
            )
        return None

    def _stays(self, sized: str, quiet_s: float) -> Aim:
        return Aim(kind="file", words=(sized, "--quiet", span(max(1, quiet_s) or 30)))

    def _sized(self, word: Word) -> str | None:
        """Return the file whose size, time or sum a word is."""
        pieces = expanded(word, self._scope)
        if len(pieces) != 1:
            return None
        if isinstance(pieces[0], Arithmetic):
            match = re.search(
                r"stat (?:-c|-f) ?[\"']?%[Ym][\"']? ([^\s)]+)", pieces[0].text
            )
            return match[1] if match else None
        inner = command_of(word, self._scope)
        while isinstance(inner, Pipeline):
            inner = inner.commands[0]
        if not isinstance(inner, Simple) or not inner.words:
            return None
        if self._loose(inner.words[0]).rpartition("/")[2] not in _SIZES:
            return None
        plain, _ = split_options(
            inner.words[1:], frozenset({"-c", "-f", "--format", "--printf"})
        )
        plain = plain or [r.target for r in inner.redirections if r.operator == "<"]
        if len(plain) != 1 or plain[0].globs:
            return None
        return self._operand(plain[0])

    def _match(self, node: Match) -> Aim | None:
        """Read `case "$(tail -1 LOG)" in *OK*) ...`."""
        inner = command_of(node.word, self._scope)
        texts = [self._loose(pattern) for pattern in node.patterns]
        if not isinstance(inner, Simple) or not inner.words or not self._wanted:
            return None
        name = self._loose(inner.words[0])
        if name not in {"tail", "cat", "curl"}:
            return None
        if name == "curl":
            url = self._url(inner)
            body = "|".join(re.escape(text.strip("*")) for text in texts)
            coded = "http_code" in inner.raw
            return (
                self._to(url, "--body", shlex.quote(body))
                if url and not coded
                else None
            )
        if not all(text.startswith("*") and text.endswith("*") for text in texts):
            return None
        return self._logged(
            inner, "|".join(re.escape(text.strip("*")) for text in texts)
        )


_ABOVE_ZERO: Final = {
    "-gt 0": True,
    "-ne 0": True,
    "!= 0": True,
    "-ge 1": True,
    "> 0": True,
    "-eq 0": False,
    "= 0": False,
    "== 0": False,
    "-lt 1": False,
    "-le 0": False,
}


def _unescaped(pattern: str) -> str:
    return pattern.removeprefix("(?i)")


def _remote(node: Node | None, scope: Scope) -> tuple[Node, str] | None:
    """Return the one command that an ssh runs, and where.

    Raises:
        NotAWaitError: it cannot be read.
    """
    if not isinstance(node, Simple) or not node.words:
        return None
    inner = inner_script(node, scope)
    if inner is None or inner.host is None:
        return None
    try:
        items = parse(inner.text).items
    except ShellError:
        raise NotAWaitError from None
    return (items[0][0], inner.host) if len(items) == 1 else None


def _counts(node: Node | None) -> bool:
    return node is not None and _uncounted(node) is not node


def _uncounted(node: Node) -> Node:
    """Return what is counted by `wc -l`, `grep -c` and `pgrep -c`."""
    if isinstance(node, Pipeline) and isinstance(node.commands[-1], Simple):
        last = node.commands[-1]
        if last.words and last.words[0].raw == "wc":
            rest = node.commands[:-1]
            return rest[0] if len(rest) == 1 else replace(node, commands=rest)
        if re.search(r"\s-[a-zA-Z]*c", last.raw):
            return replace(node)
    if isinstance(node, Simple) and re.search(r"^\w+ -[a-zA-Z]*c", node.raw):
        return replace(node)
    return node


def _contained(node: Test, right: str) -> str | None:
    """Return the pattern that `== *text*` or `=~ text` asks for."""
    if node.operator == "=~":
        return right
    if node.double and node.right.globs and right.startswith("*"):
        return "|".join(re.escape(part) for part in alternatives(right.strip("*")))
    return None
