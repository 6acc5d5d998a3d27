"""Commands that wait without a loop: a log that is followed, one event of a file."""

import re
import shlex
from dataclasses import replace
from typing import Final

from policies.loops.aim import Aim, says_lock
from policies.loops.altered import is_altered
from policies.loops.around import HERE, Around
from policies.loops.compose import Wanted, from_aim
from policies.loops.expressions import Leaf
from policies.loops.kept import check_text
from policies.loops.lexing import ShellError
from policies.loops.patterns import from_basic, grep_pattern, sorted_out, to_python
from policies.loops.shell import parse
from policies.loops.tree import Group, Loop, Node, Pipeline, Simple, Substitution, Word
from policies.loops.words import Scope, loose, operand
from policies.loops.wrappers import Inner, inner_script, unwrap

_GONE: Final = frozenset({"delete_self", "delete", "move_self", "moved_from"})
_COMES: Final = frozenset({"create", "moved_to"})
_FOLLOWING: Final = re.compile(r"-[a-zA-Z0-9]*[fF][a-zA-Z0-9]*|--follow(=\w+)?")
_LOG_TOOLS: Final = frozenset(
    {"docker", "podman", "docker-compose", "kubectl", "oc", "journalctl"}
)
_LONGEST: Final = 500  # characters of a loop that reads lines
_QUIET_S: Final = "30s"


def streamed(
    node: Node, scope: Scope, host: str | None, around: Around
) -> Wanted | None:
    """Return what a command waits for that ends by itself at an event."""
    aim: Aim | Wanted | None = None
    if isinstance(node, Pipeline) and len(node.commands) >= 2:
        aim = _followed(node, scope, around)
    elif isinstance(node, Simple):
        name = loose(node.words[0], scope).rpartition("/")[2]
        aim = _event(node, name, scope, host)
    if isinstance(aim, Aim) and aim.host and host:
        return None
    if isinstance(aim, Aim):
        placed = aim if aim.host else around.placed(aim)
        return from_aim(replace(placed, host=aim.host or host))
    return aim


# a log that is followed until a line matches


def _followed(node: Pipeline, scope: Scope, around: Around) -> Aim | Wanted | None:
    first = _follower(node.commands[0])
    if first is None or not first.words:
        return None
    inside = unwrap(first, scope) or first
    if any(is_altered(_texts(each, scope)) for each in (first, inside)):
        return None
    return _followed_by(node, inside, scope, around)


def _texts(node: Simple, scope: Scope) -> list[str]:
    return [loose(word, scope) for word in node.words]


def _followed_by(
    node: Pipeline, first: Simple, scope: Scope, around: Around
) -> Aim | Wanted | None:
    inner = inner_script(first, scope)
    if inner is not None and inner.host is not None:
        return _followed_there(node, inner, scope)
    name = loose(first.words[0], scope).rpartition("/")[2]
    texts = [loose(word, scope) for word in first.words[1:]]
    if not any(_FOLLOWING.fullmatch(text) for text in texts):
        return None
    pattern = _ending(node.commands[-1], scope)
    if pattern is not None and name == "tail":
        return _tailed(first, pattern, scope)
    if (
        pattern is not None
        and name in _LOG_TOOLS
        and ("logs" in texts or name == "journalctl")
    ):
        return _asked(first, pattern, scope, around)
    return None


def _asked(first: Simple, pattern: str, scope: Scope, around: Around) -> Wanted:
    """Return the command that asks a tool for its log, and does not follow it."""
    words = [
        _not_following(operand(word, scope), loose(word, scope)) for word in first.words
    ]
    look = " ".join(filter(None, words))
    check_text(Leaf(first, wanted=True, scope=scope))
    text = f"{look} 2>&1 | grep -qE {shlex.quote(pattern)}"
    text = around.command(text, simple=True)
    return Wanted(kind="command", text=f"command -- sh -c {shlex.quote(text)}")


def _followed_there(node: Pipeline, inner: Inner, scope: Scope) -> Aim | Wanted | None:
    """Read `ssh HOST tail -f LOG | grep -m1 X`."""
    try:
        items = parse(inner.text).items
    except ShellError:
        return None
    if len(items) != 1 or not isinstance(items[0][0], Simple):
        return None
    there = replace(node, commands=(items[0][0], *node.commands[1:]))
    aim = _followed(there, scope, HERE)
    return replace(aim, host=inner.host) if isinstance(aim, Aim) else None


def _not_following(shown: str, text: str) -> str:
    """Return an option without its `f`, or nothing."""
    if not _FOLLOWING.fullmatch(text):
        return shown
    rest = "" if text.startswith("--") else text[1:].replace("f", "", 1)
    return f"-{rest}" if rest else ""


def _follower(node: Node) -> Simple | None:
    """Return the command that follows, also in `( tail -f x & )`."""
    if isinstance(node, Group) and len(node.script.items) == 1:
        node = node.script.items[0][0]
    return node if isinstance(node, Simple) else None


def _tailed(first: Simple, pattern: str, scope: Scope) -> Aim | None:
    files: list[Word] = []
    whole = skip = False
    for word in first.words[1:]:
        text = loose(word, scope)
        whole = whole or bool(re.fullmatch(r"(-n ?|--lines=)?\+[01]", text))
        if skip:
            skip = False
        elif text in {"-n", "-c", "-s", "--lines", "--sleep-interval"}:
            skip = True
        elif not text.startswith(("-", "+")):
            files.append(word)
    if len(files) != 1:
        return None
    passes, fails = sorted_out(pattern, bad=False)
    return Aim(
        kind="log",
        words=(operand(files[0], scope),),
        passes=tuple(passes),
        fails=tuple(fails),
        whole=whole,
    )


def _ending(node: Node, scope: Scope) -> str | None:
    """Return the pattern at which the end of a pipeline stops reading."""
    if isinstance(node, Loop):
        return _read_loop(node)
    if not isinstance(node, Simple) or not node.words:
        return None
    texts = [loose(word, scope) for word in node.words]
    name = texts[0].rpartition("/")[2]
    if name in {"grep", "egrep", "fgrep", "rg"}:
        return _first_match(name, texts[1:])
    if name == "sed":
        return _sed_quits(texts)
    if name in {"awk", "gawk", "mawk"}:
        match = re.fullmatch(r"/(.+?)/\s*\{[^{}]*exit[^{}]*\}.*", texts[-1])
        return to_python(match[1]) if match else None
    return None


def _first_match(name: str, texts: list[str]) -> str | None:
    ends = any(re.fullmatch(r"-[a-zA-Z]*(m ?1|q[a-zA-Z]*)", text) for text in texts)
    ends = ends or bool({"--max-count=1", "--quiet"} & {*texts})
    ends = ends or re.search(r"(^| )-[a-zA-Z]*m 1( |$)", " ".join(texts)) is not None
    plain = [text for text in texts if not text.startswith("-") and text != "1"]
    if not ends or len(plain) != 1:
        return None
    return grep_pattern(name, texts, plain[0])


def _sed_quits(texts: list[str]) -> str | None:
    match = re.fullmatch(r"/(.+?)/\s*(?:q|\{[^{}]*q[^{}]*\})", texts[-1])
    if match is None:
        return None
    extended = any(text in {"-E", "-r", "-nE", "-En"} for text in texts)
    return to_python(match[1] if extended else from_basic(match[1]))


def _read_loop(node: Loop) -> str | None:
    """Read `| while read l; do [[ $l == *X* ]] && break; done`."""
    body = node.body.raw
    if not node.condition.raw.startswith(("read", "IFS=")) or len(body) > _LONGEST:
        return None
    match = re.search(
        r"(?:==?\s*\*[\"']?|=~\s*[\"']?|\bin\s+\*[\"']?)([^*\"';|)\]]+?)[\"']?(?:\*|\s*\]\])"
        r"[^;]*(?:&&\s*\{?|then|\))\s*(?:echo[^;]*;\s*)?(?:break|exit)",
        body,
    )
    return re.escape(match[1].strip()) if match else None


# one event


def _event(node: Simple, name: str, scope: Scope, host: str | None) -> Aim | None:
    texts = [loose(word, scope) for word in node.words[1:]]
    if name == "tail":
        return _tail_pid(node, texts, scope)
    if name in {"grep", "egrep", "rg"}:
        return _grep_of_tail(node, scope)
    if name == "inotifywait" and not _stays_on(texts):
        return _inotify(node, scope, host)
    if name == "fswatch" and {"-1", "--one-event"} & {*texts}:
        return _changes(node.words[-1], scope, host)
    return None


def _tail_pid(node: Simple, texts: list[str], scope: Scope) -> Aim | None:
    for place, text in enumerate(texts):
        if text.startswith("--pid="):
            value = text.removeprefix("--pid=")
            if match := re.fullmatch(r"\$\(cat ([\w./-]+)\)", value):
                return Aim(kind="process", words=("--pidfile", match[1]))
            if value == "$!":
                return None
            shown = value if value.isdigit() else f'"{value}"'
            return Aim(kind="process", words=("--pid", shown))
        if text == "--pid" and place + 1 < len(texts):
            return Aim(
                kind="process", words=("--pid", operand(node.words[place + 2], scope))
            )
    return None


def _grep_of_tail(node: Simple, scope: Scope) -> Aim | None:
    """Read `grep -m1 X <(tail -f LOG)`."""
    last = node.words[-1]
    piece = last.pieces[0] if len(last.pieces) == 1 else None
    if not isinstance(piece, Substitution) or not last.raw.startswith("<("):
        return None
    first = piece.script.items[0][0] if len(piece.script.items) == 1 else None
    if not isinstance(first, Simple) or "tail" not in first.words[0].raw:
        return None
    texts = [loose(word, scope) for word in node.words[:-1]]
    pattern = _first_match(texts[0], texts[1:])
    return _tailed(first, pattern, scope) if pattern else None


def _stays_on(texts: list[str]) -> bool:
    return any(re.fullmatch(r"-[a-z]*m[a-z]*|--monitor|-d|--daemon", t) for t in texts)


def _inotify(node: Simple, scope: Scope, host: str | None) -> Aim | None:
    events, paths = _listens(node, scope)
    if len(paths) != 1:
        return None
    path = operand(paths[0], scope)
    if events and events <= _GONE:
        if host is None and says_lock(loose(paths[0], scope)):
            return _lock(paths[0], scope)
        return Aim(kind="file", words=(path, "--gone"))
    if events and events <= _COMES:
        return Aim(kind="file", words=(path, "--exists"))
    return _changes(paths[0], scope, host)


def _listens(node: Simple, scope: Scope) -> tuple[set[str], list[Word]]:
    """Return the events and the paths that an inotifywait is given."""
    events: set[str] = set()
    paths: list[Word] = []
    takes = ""
    for word in node.words[1:]:
        text = loose(word, scope)
        if takes:
            events |= {*text.lower().split(",")} if takes == "-e" else set()
            takes = ""
        elif text in {"-e", "--event"} or re.fullmatch(r"-[a-z]*e", text):
            takes = "-e"
        elif text in {"-t", "--timeout", "--exclude", "--include", "--format"}:
            takes = text
        elif text.startswith("--event="):
            events |= {*text.removeprefix("--event=").split(",")}
        elif not text.startswith("-"):
            paths.append(word)
    return events, paths


def _changes(word: Word, scope: Scope, host: str | None) -> Aim:
    if host is None and says_lock(loose(word, scope)):
        return _lock(word, scope)
    return Aim(kind="file", words=(operand(word, scope), "--quiet", _QUIET_S))


def _lock(word: Word, scope: Scope) -> Aim:
    prefix = "" if "/" in loose(word, scope) else "./"
    return Aim(kind="lock", words=(operand(word, scope, prefix),))
