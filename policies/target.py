"""What a target names and how it is written canonically (C1.2, C1.4)."""

import re
import shlex
from collections.abc import Iterable, Sequence

from policies.duration import format_duration
from policies.model import Target
from policies.names import MAX_PID as MAX_PID  # noqa: PLC0414 - it is found here too
from policies.names import absolute as absolute  # noqa: PLC0414 - it is found here too
from policies.names import is_possible_path as is_possible_path  # noqa: PLC0414 - it is found here too
from policies.names import is_session as is_session  # noqa: PLC0414 - it is found here too
from policies.names import is_slug as is_slug  # noqa: PLC0414 - it is found here too
from policies.names import lock_file as lock_file  # noqa: PLC0414 - it is found here too
from policies.names import slug_of as slug_of  # noqa: PLC0414 - it is found here too

_HOST = re.compile(
    r"(?!.{256})"  # characters in all
    r"(?:[A-Za-z0-9_][A-Za-z0-9_.+-]*@)?"
    r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]*)|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9_.-]+)?\]"
    r"|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)"
    r"(?::(?P<port>[0-9]{1,5}))?"
)
_LAST_PORT = 65535
_LONGEST_URL = 4096  # characters; servers and proxies take little more
_DEFAULT_PORTS = {"http": 80, "https": 443}
_URL_HOST = re.compile(r"[\w.-]+|\[[0-9a-f:.]+\]")
_STATUS = re.compile(r"[2-5](?:[0-9][0-9]|[xX][xX])")
ANY_SUCCESS = "2xx"
"""The status that is awaited where none is named."""

_OUTSIDE_WORDS = re.compile(r"^[\s.…!?_:-]+|[\s.…!?_:-]+$")
_SAYS_NOTHING = frozenset(
    """
    aguardando aguardar aguarde espera esperando esperar teste testes testando
    wait waiting test tests testing monitor watch label rotulo rótulo
    """.split()  # noqa: SIM905 - a list of words reads best as one
)


def says_nothing(label: str) -> bool:
    """Say whether a label is too generic to tell one watch from another (C2.4)."""
    return _OUTSIDE_WORDS.sub("", label).casefold() in _SAYS_NOTHING | {""}


def canonical_url(text: str) -> str:
    """Return an address in the form that makes two of them the same condition.

    Scheme and host in lower case, no default port, no fragment, `/` for no path.

    Raises:
        ValueError: it is no http or https address, or holds a user, a password, a
            space or what cannot be printed: it is stored and shown.
    """
    from urllib.parse import urlsplit, urlunsplit  # noqa: PLC0415 - start-up time

    if len(text) > _LONGEST_URL or not text.isprintable() or " " in text:
        raise ValueError(text)
    parts = urlsplit(text)
    host, port = parts.hostname or "", parts.port
    if parts.scheme not in _DEFAULT_PORTS or "@" in parts.netloc:
        raise ValueError(text)
    if ":" in host:
        host = f"[{host}]"
    if not _URL_HOST.fullmatch(host) or port == 0:
        raise ValueError(text)
    own = port is not None and port != _DEFAULT_PORTS[parts.scheme]
    netloc = f"{host}:{port}" if own else host
    return urlunsplit((parts.scheme, netloc, parts.path or "/", parts.query, ""))


def canonical_status(text: str) -> str:
    """Return a status code, or a class of them such as `2xx`.

    Raises:
        ValueError: it is neither; what begins with 1 is no answer yet.
    """
    if not _STATUS.fullmatch(text):
        raise ValueError(text)
    return text.lower()


def http_target(url: str, status: str, body: str | None) -> Target:
    """Return the target of an address; all but the body are canonical already."""
    words = ["http", url]
    if status != ANY_SUCCESS:
        words += ["--status", status]
    if body is not None:
        words += _option("--body", body)
    return Target(kind="http", text=shlex.join(words), label=url)


def wait_target(need: str, members: Iterable[Target]) -> Target:
    """Return the target of several: sorted, each once, since no order matters.

    Args:
        need: "any" or "all" of them.
        members: canonical.
    """
    by_text = {member.text: member for member in members}
    texts = sorted(by_text)
    return Target(
        kind="wait",
        text=shlex.join(["wait", f"--{need}", *texts]),
        label=f"{need}({', '.join(texts)})",
        on_hosts=any(member.far for member in by_text.values()),
    )


def lock_target(path: str, lock_dir: str | None) -> Target:
    """Return the target of a lock file, by its slug where it has one.

    Args:
        path: absolute.
        lock_dir: absolute; a lock file in it is named by its slug.
    """
    directory, _, name = path.rpartition("/")
    slug = slug_of(name) if (directory or "/") == lock_dir else None
    return Target(
        kind="lock",
        text=shlex.join(["lock", slug or path]),
        label=slug or name,
    )


def is_possible_word(word: str) -> bool:
    """Say whether a program could be given this argument at all."""
    try:
        return "\0" not in word and word.encode("utf-8", "surrogateescape") is not None
    except UnicodeEncodeError:
        return False


def port_target(
    port: int, awaits: str, address: str | None, host: str | None
) -> Target:
    """Return the target of a TCP port.

    Args:
        port: its number.
        awaits: "free" or "open".
        address: canonical; None for any.
        host: whose port it is; None for this machine.
    """
    shown = f"[{address}]" if address and ":" in address else address
    named = f"{shown}:{port}" if shown else str(port)
    text = on_host(["port", named, f"--{awaits}"], host)
    return Target(kind="port", text=text, label=f"port {named}", host=host)


def file_target(
    path: str, awaits: str, quiet_s: int | None, host: str | None
) -> Target:
    """Return the target of an absolute path.

    Args:
        path: of the file.
        awaits: "exists", "gone", or "quiet" for `quiet_s` seconds.
        quiet_s: None but for "quiet".
        host: where it is; None for this machine.
    """
    quiet = [] if quiet_s is None else [f"{quiet_s}s"]
    text = on_host(["file", path, f"--{awaits}", *quiet], host)
    return Target(kind="file", text=text, label=path.rpartition("/")[2], host=host)


def command_target(
    argv: Sequence[str], host: str | None, folder: str | None = None
) -> Target:
    """Return the target of a command, whose words stand behind all options.

    Args:
        argv: the program and its arguments.
        host: where it runs; None for this machine.
        folder: canonical; None for `/` here, and for the home folder on a host.
    """
    where = [*(["--in", folder] if folder else []), *(["--host", host] if host else [])]
    text = shlex.join(["command", *where, "--", *argv])
    return Target(kind="command", text=text, label=shlex.join(argv), host=host)


def pid_target(pid: int, *, log: Sequence[str] = (), host: str | None = None) -> Target:
    """Return the target of one PID."""
    return process_target(["--pid", str(pid)], f"PID {pid}", log=log, host=host)


def pidfile_target(
    path: str, *, log: Sequence[str] = (), host: str | None = None
) -> Target:
    """Return the target of an absolute pidfile."""
    label = path.rpartition("/")[2]
    return process_target(["--pidfile", path], label, log=log, host=host)


def match_target(
    text: str, *, log: Sequence[str] = (), host: str | None = None
) -> Target:
    """Return the target of literal text of a command line."""
    return process_target(_option("--match", text), text, log=log, host=host)


def regex_target(
    regex: str, *, log: Sequence[str] = (), host: str | None = None
) -> Target:
    """Return the target of a regular expression over command lines."""
    return process_target(_option("--regex", regex), regex, log=log, host=host)


def process_target(
    words: Sequence[str],
    label: str,
    *,
    log: Sequence[str] = (),
    host: str | None = None,
) -> Target:
    """Return the target of processes on a host, or judged together with their log.

    Args:
        words: how they are named, as `--pid 1234`.
        label: what they are called.
        log: the words of `log_options`.
        host: where they run.
    """
    text = on_host(["process", *words, *log], host)
    return Target(kind="process", text=text, label=label, host=host)


def log_options(
    path: str,
    *,
    passes: str | None = None,
    fails: str | None = None,
    stalled_s: int | None = None,
    from_start: bool = False,
) -> list[str]:
    """Return the words of a log that is judged together with its writer (C3.4).

    Args:
        path: absolute.
        passes, fails: expressions of its markers.
        stalled_s: for how long it may be silent.
        from_start: what it holds already counts.
    """
    words = ["--log", path]
    for name, value in (("--pass", passes), ("--fail", fails)):
        words += _option(name, value) if value is not None else []
    if stalled_s is not None:
        words += ["--stalled", format_duration(stalled_s)]
    return words + (["--from-start"] if from_start else [])


def log_target(
    path: str,
    *,
    passes: str | None = None,
    fails: str | None = None,
    stalled_s: int | None = None,
    from_start: bool = False,
    host: str | None = None,
) -> Target:
    """Return the target of an absolute log and what is waited for in it."""
    words = ["log", path]
    if passes is not None:
        words += _option("--pass", passes)
    if fails is not None:
        words += _option("--fail", fails)
    if stalled_s is not None:
        words += ["--stalled", format_duration(stalled_s)]
    if from_start:
        words.append("--from-start")
    label = path.rpartition("/")[2]
    return Target(kind="log", text=on_host(words, host), label=label, host=host)


def is_host(text: str) -> bool:
    """Say whether this can name a host: `host`, `user@host`, with `:port` (C7.1).

    What could be an option or shell syntax is refused: it may reach a person's own
    `ProxyCommand ... %h`.
    """
    found = _HOST.fullmatch(text)
    return found is not None and 0 < int(found["port"] or 22) <= _LAST_PORT


def path_on_host(path: str) -> str:
    """Return the canonical form of a path on a host.

    A relative one is relative to the home folder there, as `ssh HOST test -e PATH` has
    it: that is written with `~/` in front, whatever the home folder is.
    """
    if path.startswith("/"):
        return absolute(path, "/")
    return "~" + absolute("/" + path.removeprefix("~/"), "/")


def on_host(words: Sequence[str], host: str | None) -> str:
    """Return the text of a target from its words, quoted, its host last."""
    return shlex.join([*words, "--host", host] if host is not None else words)


def _option(name: str, value: str) -> list[str]:
    """Return an option's words: a value that looks like an option is tied to it."""
    return [f"{name}={value}"] if value.startswith("-") else [name, value]
