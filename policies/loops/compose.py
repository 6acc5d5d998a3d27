"""From what a loop waits for to the one koder-monitor command that waits for it."""

import re
import shlex
from dataclasses import replace
from typing import Final

from policies.loops.aim import GREPS, Aim, NotAWaitError, span
from policies.loops.aims import aim_of
from policies.loops.around import HERE
from policies.loops.expressions import (
    All,
    AnyOf,
    Expression,
    Leaf,
    Match,
    Test,
    leaves,
)
from policies.loops.kept import check_processes, check_text, drops_grep
from policies.loops.names import names
from policies.loops.patterns import unselfed
from policies.loops.record import record
from policies.loops.tree import Node, Pipeline, Simple
from policies.loops.words import Scope, fixed, loose, operand, span_text, text_of

_FLIPPED: Final = {
    "=": "!=",
    "==": "!=",
    "!=": "=",
    "-eq": "-ne",
    "-ne": "-eq",
    "-lt": "-ge",
    "-ge": "-lt",
    "-gt": "-le",
    "-le": "-gt",
    "-z": "-n",
    "-n": "-z",
}
_BUILTINS: Final = names(
    """
    command compgen type test [ [[ : echo printf cat read kill
    """
)
_BASH: Final = re.compile(r"\[\[|\(\(|/dev/tcp/|<\(|<<<|\bcompgen\b|=~")
FLOOR_S: Final = 30
REMOTE_FLOOR_S: Final = 60


@record
class Wanted:
    """A target, as a shell takes it, and what is said along with it.

    Attributes:
        remote: looked at on a host, whose floor is higher.
        by_pattern: a pattern that matches nothing is never seen (C2.2).
    """

    kind: str
    text: str
    remote: bool = False
    by_pattern: bool = False
    quiet: bool = False


def wanted(expression: Expression, pause_s: float) -> Wanted:
    """Return the target that an expression of looks is."""
    if isinstance(expression, Leaf):
        aim = aim_of(expression, pause_s)
        return from_aim(aim) if aim else _command(expression)
    parts = expression.parts if isinstance(expression, All | AnyOf) else ()
    aims = (
        _merged(
            [
                aim_of(part, pause_s) if isinstance(part, Leaf) else None
                for part in parts
            ]
        )
        if isinstance(expression, AnyOf)
        else [
            aim_of(part, pause_s) if isinstance(part, Leaf) else None for part in parts
        ]
    )
    if len(aims) == 1 and aims[0]:
        return from_aim(aims[0])
    nested = any(not isinstance(part, Leaf) for part in parts)
    if nested or all(aim is None for aim in aims):
        return _command(expression)
    kind = "--all" if isinstance(expression, All) else "--any"
    targets = (
        [
            from_aim(aim) if aim else _command(part)
            for aim, part in zip(aims, parts, strict=False)
        ]
        if len(aims) == len(parts)
        else [from_aim(aim) for aim in aims if aim]
    )
    return Wanted(
        kind="wait",
        text=" ".join(["wait", kind, *(_argument(target.text) for target in targets)]),
        remote=any(target.remote for target in targets),
        by_pattern=any(target.by_pattern for target in targets),
    )


def _argument(text: str) -> str:
    """Return a target as one argument; a variable in it is left to the shell."""
    if "$" not in text.replace("'$'", "") or "'" in text:
        if "$" in re.sub(r"'[^']*'", "", text):
            raise NotAWaitError
        return shlex.quote(text)
    inside = text.replace("\\", "\\\\").replace('"', '\\"').replace("`", "\\`")
    return f'"{inside}"'


def _merged(aims: list[Aim | None]) -> list[Aim | None]:
    """Join markers of one log, and a log with the end of the process that writes it."""
    merged: list[Aim | None] = []
    for aim in aims:
        for place, other in enumerate(merged):
            joined = _joined(other, aim)
            if joined is not None:
                merged[place] = joined
                break
        else:
            merged.append(aim)
    return merged


def _joined(one: Aim | None, two: Aim | None) -> Aim | None:
    if one is None or two is None or one.host != two.host:
        return None
    if one.kind == two.kind == "log" and one.words == two.words:
        return replace(one, passes=one.passes + two.passes, fails=one.fails + two.fails)
    if {one.kind, two.kind} == {"log", "process"}:
        log, process = (one, two) if one.kind == "log" else (two, one)
        if process.passes or process.fails:
            return None
        return replace(
            process,
            words=(*process.words, "--log", *log.words),
            passes=log.passes,
            fails=log.fails,
        )
    return None


def from_aim(aim: Aim) -> Wanted:
    """Return the target of an aim as a shell takes it."""
    words = [aim.kind, *aim.words]
    for option, markers in (("--pass", aim.passes), ("--fail", aim.fails)):
        if markers:
            words += _option(option, "|".join(markers))
    if aim.whole and aim.kind == "log":
        words.append("--from-start")
    if aim.host:
        words += ["--host", _host(aim.host)]
    return Wanted(
        kind=aim.kind,
        text=" ".join(words),
        remote=aim.host is not None,
        by_pattern=aim.words[0] in {"--match", "--regex"},
        quiet="--quiet" in aim.words,
    )


def _option(name: str, value: str) -> list[str]:
    if value.startswith("-"):
        return [shlex.quote(f"{name}={value}")]
    return [name, shlex.quote(value)]


def _host(host: str) -> str:
    return f'"{host}"' if "$" in host else shlex.quote(host)


def _command(expression: Expression) -> Wanted:
    """Return a `command` that asks just what the loop asked."""
    hosts = {leaf.host for leaf in leaves(expression)}
    host = hosts.pop() if len(hosts) == 1 else None
    words = ["command", *(["--host", _host(host)] if host else []), "--"]
    check_processes(expression)
    around = next(
        (leaf.around for leaf in leaves(expression) if leaf.host == host), HERE
    )
    plain = None if around.sets_up() else _plain(expression)
    if plain is None:
        check_text(expression)
        text = said(expression, host)
        text = around.command(text, simple=_succeeds(expression))
        words += ["bash" if _BASH.search(text) else "sh", "-c", shlex.quote(text)]
    else:
        words.append(plain)
    return Wanted(kind="command", text=" ".join(words), remote=host is not None)


def _succeeds(expression: Expression) -> bool:
    return isinstance(expression, Leaf) and expression.wanted


def _plain(expression: Expression) -> str | None:
    """Return the words of a command that needs no shell, or None."""
    if not isinstance(expression, Leaf) or not expression.wanted:
        return None
    node, scope = expression.node, expression.scope
    if not isinstance(node, Simple) or node.assignments or not node.words:
        return None
    noise = node.source.text[node.words[-1].end : node.end]
    if re.sub(r"[0-9]*[<>&]+\s*(/dev/null|&?[12-])|\s", "", noise):
        return None
    if any(word.globs for word in node.words) or fixed(node.words[0], scope) is None:
        return None
    if fixed(node.words[0], scope) in _BUILTINS or _has_script(node, scope):
        return None
    return " ".join(_safe(node, scope))


def _has_script(node: Simple, scope: Scope) -> bool:
    return any(
        "$(" in operand(word, scope) or "`" in word.raw or "<(" in word.raw
        for word in node.words
    )


def _safe(node: Simple, scope: Scope) -> list[str]:
    """Return the words; a pattern of `pgrep -f` must not find the monitor itself."""
    words = [operand(word, scope) for word in node.words]
    name = words[0].rpartition("/")[2]
    if name in {"pgrep", "pkill"} and any("f" in w for w in words if w[0] == "-"):
        text = fixed(node.words[-1], scope)
        if text:
            words[-1] = shlex.quote(unselfed(text))
    return words


def said(expression: Expression, host: str | None) -> str:
    """Return the text of an expression for a shell on that host."""
    if isinstance(expression, Leaf):
        text = _leaf_text(expression)
        if expression.host != host and expression.host:
            return f"ssh {_host(expression.host)} {shlex.quote(text)}"
        return text
    parts = expression.parts if isinstance(expression, All | AnyOf) else ()
    operator = " && " if isinstance(expression, All) else " || "
    texts = [
        said(part, host) if isinstance(part, Leaf) else f"{{ {said(part, host)}; }}"
        for part in parts
    ]
    return operator.join(texts)


def _leaf_text(leaf: Leaf) -> str:
    node = leaf.node
    if isinstance(node, Test):
        return _test_text(node, leaf)
    if isinstance(node, Match):
        patterns = "|".join(pattern.raw for pattern in node.patterns)
        word = operand(node.word, leaf.scope)
        yes, no = (":", "false") if leaf.wanted else ("false", ":")
        return f"case {word} in {patterns}) {yes};; *) {no};; esac"
    text = _look_text(node, leaf.scope)
    return text if leaf.wanted else f"! {text}"


def _look_text(node: Node, scope: Scope) -> str:
    if isinstance(node, Simple) and node.words:
        safe = _safe(node, scope)
        if safe != [operand(word, scope) for word in node.words]:
            return " ".join(safe)
    if isinstance(node, Pipeline):
        return _pipeline_text(node, scope)
    return text_of(node, scope)


def _pipeline_text(node: Pipeline, scope: Scope) -> str:
    last = len(node.commands) - 1
    parts = [
        text_of(command, scope, whole=place < last)
        for place, command in enumerate(node.commands)
    ]
    if parts[0].startswith(("ps ", "pgrep ")):
        for place, command in enumerate(node.commands[1:], 1):
            sifting = _sifting(command, scope)
            if sifting is not None and isinstance(command, Simple):
                end = command.words[-1].end
                rest = node.source.text[end : command.end if place < last else end]
                parts[place] = sifting + rest
    return " | ".join(parts)


def _sifting(command: Node, scope: Scope) -> str | None:
    """Return a grep whose pattern, its last operand, does not find itself."""
    if not isinstance(command, Simple) or not command.words:
        return None
    texts = [loose(word, scope) for word in command.words]
    if texts[0] not in GREPS or drops_grep(command, scope):
        return None
    options = "".join(text for text in texts[1:-1] if text.startswith("-"))
    if texts[-1].startswith("-") or texts[0] == "fgrep" or "F" in options:
        raise NotAWaitError
    words = [operand(word, scope) for word in command.words]
    text = fixed(command.words[-1], scope)
    if text:
        words[-1] = shlex.quote(unselfed(text))
    return " ".join(words)


def _test_text(node: Test, leaf: Leaf) -> str:
    first = node.left or node.right
    operator = node.operator
    left, right = "", span_text(node, node.right, node.right, leaf.scope)
    if node.left is not None:
        left = span_text(node, first, first, leaf.scope) + " "
    negated = not leaf.wanted
    if negated and operator in _FLIPPED:
        operator, negated = _FLIPPED[operator], False
    opening, closing = ("[[", "]]") if node.double else ("[", "]")
    return f"{'! ' if negated else ''}{opening} {left}{operator} {right} {closing}"


def options(
    target: Wanted, *, pause_s: float, ttl_s: int, exit_codes: bool, resume: str
) -> str:
    """Return the whole command.

    A pause below the floor is dropped, a longer one becomes `--every`.
    """
    words = ["koder-monitor"]
    kind, _, rest = target.text.partition(" ")
    more: list[str] = []
    floor = REMOTE_FLOOR_S if target.remote else FLOOR_S
    if pause_s > floor and not target.quiet:
        more += ["--every", span(pause_s)]
    if ttl_s:
        more += ["--ttl", span(ttl_s)]
    if exit_codes:
        more.append("--exit-codes")
    if resume:
        more += _option("--resume", resume)
    if kind == "command":
        before, _, argv = rest.partition("-- ")
        return " ".join([*words, kind, *before.split(), *more, "--", argv])
    return " ".join([*words, target.text, *more])
