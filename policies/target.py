"""What a target names and how it is written canonically (C1.2, C1.4)."""

import re
import shlex

from policies.model import Target

_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_LOCK_FILE = re.compile(r"lock-([A-Za-z0-9][A-Za-z0-9._-]{0,127})\.md")
_SESSION = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
_LONGEST_NAME = 255  # bytes, NAME_MAX of every file system we know
_LONGEST_PATH = 4095  # bytes, PATH_MAX less its end
MAX_PID = 4194304
"""The largest PID of any Linux: `PID_MAX_LIMIT` of its threads.h."""

_OUTSIDE_WORDS = re.compile(r"^[\s.…!?_:-]+|[\s.…!?_:-]+$")
_SAYS_NOTHING = frozenset(
    """
    aguardando aguardar aguarde espera esperando esperar teste testes testando
    wait waiting test tests testing monitor watch label rotulo rótulo
    """.split()  # noqa: SIM905 - a list of words reads best as one
)


def is_slug(text: str) -> bool:
    """Say whether this is a slug, which means the file `lock-<slug>.md`."""
    return _SLUG.fullmatch(text) is not None


def is_session(text: str) -> bool:
    """Say whether this can be a session id (C11.2)."""
    return _SESSION.fullmatch(text) is not None


def says_nothing(label: str) -> bool:
    """Say whether a label is too generic to tell one watch from another (C2.4)."""
    return _OUTSIDE_WORDS.sub("", label).casefold() in _SAYS_NOTHING | {""}


def lock_file(slug: str) -> str:
    """Return the name of the lock file that a slug means."""
    return f"lock-{slug}.md"


def slug_of(name: str) -> str | None:
    """Return the slug of a lock file's name, or None for any other name."""
    match = _LOCK_FILE.fullmatch(name)
    return match[1] if match else None


def is_possible_path(path: str) -> bool:
    """Say whether a file of this path could exist at all."""
    try:
        raw = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return (
        0 < len(raw) <= _LONGEST_PATH
        and b"\0" not in raw
        and all(len(part) <= _LONGEST_NAME for part in raw.split(b"/"))
    )


def absolute(path: str, cwd: str) -> str:
    """Return the absolute form of `path` without looking at the disk.

    `..` is taken away only at the front, where it leaves the physical `cwd`; behind a
    name it stays, since that name may be a link and `a/../b` another file than `b`.
    """
    if path.startswith("/"):
        parts: list[str] = []
    else:
        parts = [part for part in cwd.split("/") if part]
    plain = not path.startswith("/")
    for part in path.split("/"):
        if part in {"", "."}:
            continue
        if part == ".." and plain:
            if parts:
                parts.pop()
            continue
        plain = False
        parts.append(part)
    return "/" + "/".join(parts)


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


def pid_target(pid: int) -> Target:
    """Return the target of one PID."""
    return Target(kind="process", text=f"process --pid {pid}", label=f"PID {pid}")


def pidfile_target(path: str) -> Target:
    """Return the target of an absolute pidfile."""
    return Target(
        kind="process",
        text=shlex.join(["process", "--pidfile", path]),
        label=path.rpartition("/")[2],
    )


def match_target(text: str) -> Target:
    """Return the target of literal text of a command line."""
    return Target(
        kind="process",
        text=shlex.join(["process", *_option("--match", text)]),
        label=text,
    )


def regex_target(regex: str) -> Target:
    """Return the target of a regular expression over command lines."""
    return Target(
        kind="process",
        text=shlex.join(["process", *_option("--regex", regex)]),
        label=regex,
    )


def _option(name: str, value: str) -> list[str]:
    """Return an option's words: a value that looks like an option is tied to it."""
    return [f"{name}={value}"] if value.startswith("-") else [name, value]
