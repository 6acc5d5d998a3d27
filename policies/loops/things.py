"""What one command looks at: processes, files, ports, addresses."""

import re
import shlex
from collections.abc import Callable
from itertools import pairwise
from typing import Final

from policies.loops.aim import (
    GREPS,
    NAME_LOOKS,
    Aim,
    network_of,
    says_lock,
    split_options,
)
from policies.loops.names import names
from policies.loops.patterns import (
    grep_pattern,
    literal,
    sorted_out,
    to_python,
)
from policies.loops.tree import (
    Simple,
    Substitution,
    Variable,
    Word,
)
from policies.loops.words import (
    Scope,
    command_of,
    expanded,
    fixed,
    loose,
    operand,
)
from policies.loops.wrappers import unwrap

_PROC: Final = re.compile(r"/proc/([^/]+)/?(?:[a-z]+)?")
_FAILS: Final = re.compile(r"-[sSkvgiINqlaBjMRZ0-9#]*f[a-zA-Z]*|--fail(-with-body)?")
_GREP_VALUES: Final = frozenset({"-A", "-B", "-C", "-m", "--max-count", "-t", "-g"})
_PGREP_VALUES: Final = names(
    """
    -u -U -g -G -t -d -s -r -F -P
    """
)


class Things:
    """Reads one command as the target that it looks at."""

    def __init__(
        self, scope: Scope, host: str | None, *, wanted: bool, bad: bool, pause_s: float
    ) -> None:
        self._scope = scope
        self._host = host
        self._wanted = wanted
        self._bad = bad
        self._pause_s = pause_s

    def _fixed(self, word: Word) -> str | None:
        return fixed(word, self._scope)

    def _loose(self, word: Word) -> str:
        return loose(word, self._scope)

    def _operand(self, word: Word, prefix: str = "") -> str:
        return operand(word, self._scope, prefix)

    # one command

    def _simple(self, node: Simple) -> Aim | None:
        address = network_of(node)
        if address is not None:
            return self._address(*address)
        name = self._loose(node.words[0]).rpartition("/")[2]
        readers: dict[str, Callable[[Simple], Aim | None]] = {
            "kill": self._kill,
            "ps": self._ps,
            "ls": self._listed,
            "stat": self._listed,
            "nc": self._nc,
            "ncat": self._nc,
            "netcat": self._nc,
            "lsof": self._lsof,
            "fuser": self._fuser,
            "curl": self._http,
            "wget": self._http,
            "http": self._http,
            "https": self._http,
            "xh": self._http,
        }
        if name in NAME_LOOKS:
            return self._named(node)
        if name in GREPS:
            return self._grep(node)
        if name in readers:
            return readers[name](node)
        inside = unwrap(node, self._scope)
        return self._simple(inside) if inside is not None else None

    def _named(self, node: Simple) -> Aim | None:
        if self._wanted:
            return None
        words = node.words[1:]
        if any(word.raw in {"-P", "-F", "--parent"} for word in words):
            return None
        plain, _ = split_options(words, _PGREP_VALUES)
        if len(plain) != 1:
            return None
        return self._pattern(plain[0])

    def _pattern(self, word: Word) -> Aim:
        pattern = self._fixed(word)
        if pattern is None:
            return Aim(kind="process", words=("--match", self._operand(word)))
        return process_pattern(pattern)

    def _kill(self, node: Simple) -> Aim | None:
        plain = [word for word in node.words[1:] if not word.raw.startswith("-")]
        plain = [word for word in plain if word.raw != "0"]
        return self._pid(plain[0]) if len(plain) == 1 else None

    def _pid(self, word: Word, prefix: str = "") -> Aim | None:
        """Return a wait for the end of a PID, or of the one that a file names."""
        if self._wanted:
            return None
        pieces = expanded(word, self._scope)
        if any(isinstance(piece, Variable) and piece.name == "!" for piece in pieces):
            return None
        inner = command_of(word, self._scope)
        if isinstance(inner, Simple):
            return self._pid_from(inner)
        text = self._fixed(word)
        if text is not None:
            text = text.removeprefix(prefix)
            return (
                Aim(kind="process", words=("--pid", text))
                if re.fullmatch(r"0*[1-9][0-9]{0,6}", text)
                else None
            )
        return Aim(kind="process", words=("--pid", self._operand(word)))

    def _pid_from(self, inner: Simple) -> Aim | None:
        """Read `$(cat FILE)`, `$(< FILE)` and `$(pgrep TEXT)`."""
        words = inner.words
        if len(words) == 2 and self._loose(words[0]) == "cat":
            return Aim(kind="process", words=("--pidfile", self._operand(words[1])))
        if not words and len(inner.redirections) == 1:
            target = inner.redirections[0].target
            return Aim(kind="process", words=("--pidfile", self._operand(target)))
        if words and self._loose(words[0]) in NAME_LOOKS:
            return self._named(inner)
        return None

    def _ps(self, node: Simple) -> Aim | None:
        for place, word in enumerate(node.words[1:], 1):
            after = node.words[place + 1 : place + 2]
            text = self._loose(word)
            if re.fullmatch(r"-[a-z]*p|--pid|-q", text) and after:
                return self._pid(after[0])
            if match := re.fullmatch(r"(?:-[a-z]*p|--pid=)([0-9]+)", text):
                return self._pid_text(match[1])
            if re.fullmatch(r"-[a-z]*C", text) and after and not self._wanted:
                return self._pattern(after[0])
            if place == 1 and text.isdigit():
                return self._pid_text(text)
        return None

    def _pid_text(self, text: str) -> Aim | None:
        if self._wanted:
            return None
        return Aim(kind="process", words=("--pid", text))

    def _listed(self, node: Simple) -> Aim | None:
        plain, _ = split_options(node.words[1:], frozenset({"-c", "-f"}))
        return self._file(plain[0]) if len(plain) == 1 else None

    def _file(self, word: Word) -> Aim | None:
        if word.globs:
            return None
        if aim := self._proc(word):
            return aim
        path = self._operand(word)
        if self._wanted:
            return Aim(kind="file", words=(path, "--exists"))
        if self._host is None and says_lock(self._loose(word)):
            return Aim(kind="lock", words=(self._lock(word),))
        return Aim(kind="file", words=(path, "--gone"))

    def _lock(self, word: Word) -> str:
        text = self._loose(word)
        return self._operand(word, "" if "/" in text or text[:1] == "$" else "./")

    def _proc(self, word: Word) -> Aim | None:
        """Read `/proc/PID`: the end of a process, never of a file."""
        text = self._loose(word)
        if not text.startswith("/proc/") or self._wanted:
            return None
        pieces = expanded(word, self._scope)
        rest = [piece for piece in pieces if piece.raw not in {"/proc/", '"/proc/'}]
        for piece in rest:
            if isinstance(piece, Substitution):
                items = piece.script.items
                inner = items[0][0] if len(items) == 1 else None
                return self._pid_from(inner) if isinstance(inner, Simple) else None
            if isinstance(piece, Variable):
                return Aim(kind="process", words=("--pid", f'"{piece.raw}"'))
        match = _PROC.fullmatch(text)
        return self._pid_text(match[1]) if match and match[1].isdigit() else None

    # ports

    def _nc(self, node: Simple) -> Aim | None:
        plain, _ = split_options(
            node.words[1:], frozenset({"-w", "-G", "-s", "-p", "-i"})
        )
        if len(plain) != 2:
            return None
        return self._address(plain[0], plain[1])

    def _address(self, host: Word | str, port: Word | str) -> Aim | None:
        texts = [
            item if isinstance(item, str) else self._loose(item)
            for item in (host, port)
        ]
        known = all(isinstance(item, str) or self._fixed(item) for item in (host, port))
        if known and not texts[1].isdigit():
            return None
        texts[0] = re.sub(r"^\[(.*)\]$", r"\1", texts[0])
        address = f"[{texts[0]}]" if ":" in texts[0] else texts[0]
        joined = f"{address}:{texts[1]}"
        shown = shlex.quote(joined) if known and "$" not in joined else f'"{joined}"'
        return self._port(shown)

    def _port(self, shown: str) -> Aim:
        state = "--open" if self._wanted else "--free"
        return Aim(kind="port", words=(shown, state))

    def _lsof(self, node: Simple) -> Aim | None:
        text = " ".join(self._loose(word) for word in node.words[1:])
        match = re.search(
            r"-[a-zA-Z]*i\s*(?:[46]?(?:tcp|TCP))?(?:@?([\w.-]+))?:(\S+)", text
        )
        if match is None:
            return None
        port = match[2]
        if port.isdigit():
            return self._port(port)
        return self._port(f'"{port}"') if "$" in port else None

    def _fuser(self, node: Simple) -> Aim | None:
        for word in node.words[1:]:
            text = self._loose(word)
            if match := re.fullmatch(r"([0-9]+)/tcp", text):
                return self._port(match[1])
        words = [self._loose(word) for word in node.words[1:]]
        if "-n" in words and words[-1].isdigit():
            return self._port(words[-1])
        return None

    # addresses

    def _http(self, node: Simple) -> Aim | None:
        if self._loose(node.words[0]).rpartition("/")[2] == "curl" and not any(
            _FAILS.fullmatch(self._loose(word)) for word in node.words
        ):
            return None  # any answer will do
        url = self._url(node)
        return self._to(url) if url and self._wanted else None

    def _to(self, url: str, *more: str) -> Aim | None:
        if self._host is not None:
            return None  # seen from that host, which http cannot
        return Aim(kind="http", words=(url, *more))

    def _url(self, node: Simple) -> str | None:
        """Return the address of a plain look, None for one that says more."""
        words = node.words[1:]
        for word in words:
            text = self._loose(word)
            if re.match(
                r"-[a-zA-Z]*[HubkExAL]|--(location|header|user|cookie|insecure|cert|key"
                r"|unix|resolve|proxy|cacert|auth|no-check|connect-to)",
                text,
            ):
                return None
        plain, _ = split_options(words, _CURL_VALUES)
        plain = [word for word in plain if self._loose(word) not in {"GET", "HEAD"}]
        if len(plain) != 1:
            return None
        text = self._loose(plain[0])
        bare = re.match(r"https?://|\$", text) is None
        if text.startswith(":"):
            return self._operand(plain[0], "http://localhost")
        return self._operand(plain[0], "http://" if bare else "")

    # logs

    def _grep(self, node: Simple) -> Aim | None:
        found = self._grepped(node)
        if found is None or not self._wanted:
            return None
        pattern, files = found
        if not files:
            files = [r.target for r in node.redirections if r.operator == "<"]
        if len(files) != 1 or files[0].globs or files[0].raw.startswith("<("):
            return None
        return self._log(files[0], pattern)

    def _grepped(self, node: Simple) -> tuple[str, list[Word]] | None:
        """Return the pattern and the files of a grep that asks for a match."""
        name = self._loose(node.words[0]).rpartition("/")[2]
        plain, options = split_options(
            node.words[1:], _GREP_VALUES | {"-e", "--regexp"}
        )
        texts = [self._loose(word) for word in options]
        letters = "".join(t[1:] for t in texts if re.fullmatch(r"-[a-zA-Z]+", t))
        if set("vrRLf") & {*letters}:
            return None
        patterns = [
            self._fixed(word)
            for option, word in pairwise(options)
            if self._loose(option) in {"-e", "--regexp"}
            or re.fullmatch(r"-[a-zA-Z]*e", self._loose(option))
        ]
        if not patterns and plain:
            patterns, plain = [self._fixed(plain[0])], plain[1:]
        if not patterns or None in patterns:
            return None
        each = [grep_pattern(name, texts, pattern) for pattern in patterns if pattern]
        return ("|".join(each), plain) if each else None

    def _log(self, path: Word, pattern: str, *, whole: bool = True) -> Aim | None:
        passes, fails = sorted_out(pattern, bad=self._bad)
        return Aim(
            kind="log",
            words=(self._operand(path),),
            passes=tuple(passes),
            fails=tuple(fails),
            whole=whole,
        )


_CURL_VALUES: Final = names(
    """
    -o --output -w --write-out -m --max-time --connect-timeout -X --request --retry
    -T --timeout -t --tries -O --retry-delay
    """
)


def process_pattern(pattern: str) -> Aim:
    """Return a wait for the end of what a pattern finds."""
    text = literal(pattern)
    option, value = ("--match", text) if text else ("--regex", to_python(pattern))
    if value.startswith("-"):
        return Aim(kind="process", words=(shlex.quote(f"{option}={value}"),))
    return Aim(kind="process", words=(option, shlex.quote(value)))
