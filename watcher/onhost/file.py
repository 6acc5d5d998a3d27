"""A file: there, gone, or unchanged for a while (C1.2, C3.1).

That a file is gone counts only in a directory that is positively the one where it was
seen, or below one from which that directory was deleted: "no such file" is also what a
file system that is not mounted says.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from watcher.onhost import unknown

_DIRECTORY = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_MOST_NAMES = 10000  # of a directory that are compared with the one that is missing
_MOST_NEAR = 3
_DENIED = frozenset({"EACCES", "EPERM"})


def ask(spec: Mapping[str, Any], memory: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the one thing to read; near names count only where nothing was seen."""
    near = spec["awaits"] == "gone" and "entry" not in memory
    quiet = spec["awaits"] == "quiet"
    return [{"op": "file", "path": spec["path"], "near": near, "follow": quiet}]


def follows(spec: Mapping[str, Any], memory: Mapping[str, Any]) -> list[list[int]]:  # noqa: ARG001
    """Return none: it is no process that is waited for."""
    return []


def read(request: dict[str, Any]) -> dict[str, Any]:
    """Return what the path shows.

    Returns:
        `entry`, what changes with the file, or None where there is none; `chain`, what
        the directories above it are, from the root, and `missing`, whether it is cut
        short where the next one does not exist; `near`, names that differ in their form
        only.

    Raises:
        OSError: whatever else kept it from being seen.
    """
    path = _raw(request["path"])
    folders, name = _folders(path)
    chain: list[list[Any]] = []
    answer: dict[str, Any] = {"entry": None, "chain": chain, "near": []}
    answer["missing"] = True
    for folder in folders:
        try:
            handle = os.open(folder, _DIRECTORY)
        except FileNotFoundError:
            return answer
        try:
            chain.append(_identity(handle))
            if len(chain) == len(folders):
                answer["entry"] = _entry(handle, name, follow=bool(request["follow"]))
        finally:
            os.close(handle)
    answer["missing"] = False
    if answer["entry"] is None and request["near"]:
        answer["near"] = _near(folders[-1], name)
    return answer


def _raw(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def _folders(path: bytes) -> tuple[list[bytes], bytes]:
    """Return every directory above an absolute path, from the root, and its name."""
    *parts, name = path[1:].split(b"/")
    return [b"/" + b"/".join(parts[:count]) for count in range(len(parts) + 1)], name


def _identity(handle: int) -> list[Any]:
    """Return device, inode and mount of an open directory; no mount but on Linux."""
    seen = os.fstat(handle)
    try:
        with open(f"/proc/self/fdinfo/{handle}", encoding="ascii") as info:
            mount = next(
                (w[1] for w in map(str.split, info) if w[0] == "mnt_id:"), None
            )
    except OSError:
        mount = None
    return [seen.st_dev, seen.st_ino, mount]


def _entry(handle: int, name: bytes, *, follow: bool) -> list[Any] | None:
    """Return what changes whenever a file does, None where there is no such entry.

    Args:
        handle: of its directory.
        name: of the entry.
        follow: look at what a link leads to.
    """
    try:
        seen = os.stat(name, dir_fd=handle, follow_symlinks=follow)
    except FileNotFoundError:
        return None
    return [
        seen.st_dev,
        seen.st_ino,
        stat.S_IFMT(seen.st_mode),
        seen.st_size,
        seen.st_mtime_ns,
        seen.st_ctime_ns,
    ]


def _near(folder: bytes, name: bytes) -> list[str]:
    """Return the names there that differ from one in case or Unicode form only."""
    wanted = _folded(name)
    found: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for count, entry in enumerate(entries):
                if count == _MOST_NAMES or len(found) == _MOST_NEAR:
                    break
                if _folded(entry.name) == wanted and entry.name != name:
                    found.append(entry.name.decode("utf-8", "surrogateescape"))
    except OSError:
        return []  # it may be searched, and not be read
    return sorted(found)


def _folded(name: bytes) -> str:
    text = name.decode("utf-8", "surrogateescape")
    return unicodedata.normalize("NFC", text).casefold()


def judge(
    spec: Mapping[str, Any],
    memory: Mapping[str, Any],
    answers: Sequence[Mapping[str, Any]],
    now: Mapping[str, float],
) -> dict[str, Any]:
    """Return whether what is awaited of the file has come; a failure is unknown."""
    answer, path = answers[0], str(spec["path"])
    if "error" in answer:
        return _failed(path, memory, answer["error"])
    awaits = spec["awaits"]
    if answer["entry"] is None:
        missing = bool(answer["missing"])
        if awaits == "gone":
            return _gone(path, memory, answer, missing=missing)
        if missing:
            return _unseen(path, memory, answer, "directory_missing")
        return _seen("held", path, {}, answer)
    if awaits == "quiet":
        return _quiet(path, float(spec["quiet_s"]), memory, answer, now["up_s"])
    kept = {"entry": answer["entry"], "chain": answer["chain"]}
    return _seen("released" if awaits == "exists" else "held", path, kept, answer)


def _gone(
    path: str, memory: Mapping[str, Any], answer: Mapping[str, Any], *, missing: bool
) -> dict[str, Any]:
    """Return what it means that there is no such file.

    1. Its directory is the one where it was seen, or is looked at for the first time:
       gone.
    2. Another directory took the place of that one, on the same mount: it was deleted
       or renamed, and the file with it.
    3. The directory is missing, and the one above from which it is missing is the one
       that was there before, on the same mount: it was deleted or renamed.
    4. Anything else may be a file system that is not mounted: unknown.

    A device without a mount tells too little for 2 and 3: a bind mount has the device
    of what it hides.
    """
    chain = answer["chain"]
    before = memory.get("chain")
    if before is None:
        if missing:
            return _unseen(path, memory, answer, "directory_missing")
        before = chain
    if not _proved(before, chain, missing=missing):
        why = "directory_vanished" if missing else "unmounted"
        return _unseen(path, memory, answer, why)
    seen = _seen("released", path, {**memory, "chain": before}, answer)
    seen["remarks"] = [["near_file", {"name": name}] for name in answer["near"]]
    return seen


def _proved(
    before: Sequence[Sequence[Any]], chain: Sequence[Sequence[Any]], *, missing: bool
) -> bool:
    """Say whether what is seen now of the directories can be believed."""
    known, last = before[-1], chain[-1] if chain else None
    if not missing and last is not None and last[:2] == known[:2]:
        return True
    if last is None or last[2] is None or _mount(last) != _mount(known):
        return False
    return not missing or last == before[len(chain) - 1]


def _mount(identity: Sequence[Any]) -> list[Any]:
    return [identity[0], identity[2]]


def _quiet(
    path: str,
    quiet_s: float,
    memory: Mapping[str, Any],
    answer: Mapping[str, Any],
    up_s: float,
) -> dict[str, Any]:
    """Return whether it has not changed for long enough, by our own clock alone.

    The time of the file is another's, and may be wrong or set; so it counts from the
    first look that shows the file as it is now. A restart of the machine in between
    makes the wait longer, never shorter.
    """
    since_s = memory.get("since_s")
    if since_s is None or since_s > up_s or memory.get("entry") != answer["entry"]:
        since_s = up_s
    left_s = quiet_s - (up_s - since_s)
    kept = {"entry": answer["entry"], "since_s": since_s}
    seen = _seen("held" if left_s > 0 else "released", path, kept, answer)
    seen["evidence"]["quiet_s"] = round(up_s - since_s, 3)
    if left_s > 0:
        seen["again_in_s"] = left_s
    return seen


def _evidence(path: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    chain, entry = answer["chain"], answer["entry"]
    found = {"means": "lstat", "path": path, "directory": chain[-1] if chain else None}
    return {**found, "errno": "ENOENT"} if entry is None else {**found, "entry": entry}


def _seen(
    sight: str, path: str, memory: dict[str, Any], answer: Mapping[str, Any]
) -> dict[str, Any]:
    evidence = _evidence(path, answer)
    return {"sight": sight, "evidence": evidence, "memory": memory}


def _unseen(
    path: str, memory: Mapping[str, Any], answer: Mapping[str, Any], why: str
) -> dict[str, Any]:
    """Return that the directory is not to be seen, or not the one that was."""
    seen = _seen("unknown", path, dict(memory), answer)
    seen["reason"] = [why, {"path": os.path.dirname(path)}]
    return seen


def _failed(
    path: str, memory: Mapping[str, Any], error: Mapping[str, Any]
) -> dict[str, Any]:
    """Return that it could not be looked at, and by what error."""
    name = str(error.get("errno", ""))
    if not name:
        return unknown(dict(memory), "lstat", {**error, "path": path})
    reason: list[Any] = ["errno", {"name": name, "path": path}]
    return {
        "sight": "unknown",
        "evidence": {"means": "lstat", "errno": name, "path": path},
        "memory": dict(memory),
        "reason": ["denied", {"path": path}] if name in _DENIED else reason,
    }
