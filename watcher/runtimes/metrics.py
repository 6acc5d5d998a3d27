"""The files in which the status line leaves how full a context window is (C8.2).

Two places, one file a session. Ours is in the state directory. The compatible one is
in the folder of temporary files, where other tools look and leave theirs: anybody may
write there, so nothing is followed, and only plain files of our own user count.
"""

import contextlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Final

from policies.context import (
    Reading,
    Spoken,
    metrics_of,
    reading_of,
    spoken_object,
    spoken_of,
)
from policies.names import is_session

SWEPT_S: Final = 7 * 86400.0
"""Seconds after which the files of a session that is over are removed."""

_LONGEST = 64 * 1024  # bytes of a file that is read
_PRIVATE, _PRIVATE_FOLDER = 0o600, 0o700


def leave(
    state: str, env: Mapping[str, str], session: str, reading: Reading, now_s: float
) -> None:
    """Leave a figure in both places; what cannot be written is left out.

    The first one of a session also removes what old sessions left behind.
    """
    if not is_session(session):
        return
    data = _encoded(metrics_of(reading, session))
    path = _ours(state, session)
    if not os.path.exists(path):
        _sweep(state, env, now_s)
    with contextlib.suppress(OSError):
        _make_folder(state, path)
        _replace(path, data)
    with contextlib.suppress(OSError):
        _replace(_compatible(env, session), data)


def found(state: str, env: Mapping[str, str], session: str) -> Iterator[Reading]:
    """Give the figures of a session: ours, then the compatible one."""
    if not is_session(session):
        return
    for path in (_ours(state, session), _compatible(env, session)):
        reading = reading_of(_object(path), session)
        if reading is not None:
            yield reading


def forget(state: str, env: Mapping[str, str], session: str) -> None:
    """Remove the figures of a session whose window is being emptied."""
    if not is_session(session):
        return
    for path in (_ours(state, session), _compatible(env, session)):
        _remove(path)


def spoken(state: str, session: str) -> Spoken:
    """Return what a session was told so far."""
    return spoken_of(_object(_told(state, session)) if is_session(session) else None)


def remember(state: str, session: str, told: Spoken) -> None:
    """Keep what a session was told.

    Raises:
        OSError: it cannot be written.
    """
    if not is_session(session):
        return
    path = _told(state, session)
    _make_folder(state, path)
    _replace(path, _encoded(spoken_object(told)))


def read_small(path: str, *, ours: bool = False) -> bytes | None:
    """Return what a plain file of a sensible size holds, without waiting for anything.

    Args:
        path: of the file.
        ours: only one that belongs to our user, and no link to one.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (os.O_NOFOLLOW if ours else 0)
    try:
        fd = os.open(path, flags)
    except (OSError, ValueError):  # a zero byte is no path at all
        return None
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_size > _LONGEST:
            return None
        if ours and about.st_uid != os.geteuid():
            return None
        return os.read(fd, _LONGEST)
    except OSError:
        return None
    finally:
        os.close(fd)


def json_of(data: bytes | None) -> object:
    """Return the value of a JSON text, None where there is none."""
    if not data:
        return None
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value


def _ours(state: str, session: str) -> str:
    return f"{state}/context/metrics/{session}.json"


def _told(state: str, session: str) -> str:
    return f"{state}/context/told/{session}.json"


def _compatible(env: Mapping[str, str], session: str) -> str:
    """Return the place that other tools know; `TMPDIR` moves it."""
    asked = (env.get(name, "") for name in ("TMPDIR", "TEMP", "TMP"))
    folder = next((one for one in asked if one.startswith("/")), "/tmp")  # noqa: S108 - the place is not ours to choose
    return f"{folder.rstrip('/')}/claude-ctx-{session}.json"


def _object(path: str) -> object:
    return json_of(read_small(path, ours=True))


def _encoded(value: Mapping[str, object]) -> bytes:
    return json.dumps(value).encode()


def _make_folder(state: str, path: str) -> None:
    """Make the folders of a file of ours, each for our user alone."""
    for folder in (state, f"{state}/context", os.path.dirname(path)):
        os.makedirs(folder, mode=_PRIVATE_FOLDER, exist_ok=True)


def _replace(path: str, data: bytes) -> None:
    """Put a file in the place of whatever plain file of ours is there.

    Raises:
        OSError: something else is there, or it cannot be written.
    """
    _refuse_foreign(path)
    beside = f"{path}.{os.urandom(6).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(beside, flags, _PRIVATE)
    try:
        os.write(fd, data)
    except OSError:
        os.unlink(beside)
        raise
    finally:
        os.close(fd)
    os.rename(beside, path)


def _refuse_foreign(path: str) -> None:
    try:
        about = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
        raise PermissionError(path)


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        _refuse_foreign(path)
        os.unlink(path)


def _sweep(state: str, env: Mapping[str, str], now_s: float) -> None:
    """Remove what sessions left that nobody has heard of for days."""
    for folder in ("metrics", "told"):
        with contextlib.suppress(OSError):
            for entry in [*os.scandir(f"{state}/context/{folder}")]:
                if entry.stat(follow_symlinks=False).st_mtime < now_s - SWEPT_S:
                    _remove(entry.path)
                    _sweep_compatible(env, entry.name.removesuffix(".json"), now_s)


def _sweep_compatible(env: Mapping[str, str], session: str, now_s: float) -> None:
    path = _compatible(env, session)
    with contextlib.suppress(OSError):
        if os.lstat(path).st_mtime < now_s - SWEPT_S:
            _remove(path)
