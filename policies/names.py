"""What may be the name of a lock, a session or a file; it costs hooks nothing more."""

import re

_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_LOCK_FILE = re.compile(r"lock-([A-Za-z0-9][A-Za-z0-9._-]{0,127})\.md")
_SESSION = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
_LONGEST_NAME = 255  # bytes, NAME_MAX of every file system we know
_LONGEST_PATH = 4095  # bytes, PATH_MAX less its end
MAX_PID = 4194304
"""The largest PID of any Linux: `PID_MAX_LIMIT` of its threads.h."""


def is_slug(text: str) -> bool:
    """Say whether this is a slug, which means the file `lock-<slug>.md`."""
    return _SLUG.fullmatch(text) is not None


def is_session(text: str) -> bool:
    """Say whether this can be a session id (C11.2)."""
    return _SESSION.fullmatch(text) is not None


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
