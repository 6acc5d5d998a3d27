"""The part that reads a log: whole lines, each once, through every rotation (C3.4).

    spec = {"path": absolute, "pass": regex | None, "fail": regex | None,
            "stalled_s": seconds | None, "from_start": bool}

    ask(spec, memory) -> at most one request; none once it is decided
    judge(spec, memory, answers, now) -> "held", "unknown" or "released"; then `result`
        is PASS, FAIL or STALLED, and `decided` the line that decided

`memory` is this part's own: whoever judges a log together with something else keeps it
under a key of its own and hands over just that, empty at first. The first look takes
the end of the file as the place to begin, so take it when the watch begins.

`again_in_s` 0 means that there is more to read: with `now["final"]` too, so ask again
before you conclude that no marker came. With `now["busy"]` nothing is STALLED.
Here a `watcher.onhost.logfile.Reader`, which keeps files open, reads instead of `read`.
"""

from __future__ import annotations

import base64
import functools
import importlib
import os
import re
import time
import zlib
from typing import Any, Callable

from policies.logscan import (
    PRINTED,
    Found,
    Marker,
    fingerprint,
    for_many_lines,
    line_start,
    matching_lines,
    scan,
)
from watcher.onhost import unknown
from watcher.onhost.logfile import Reader

_MOST_THERE = 1 << 20  # bytes, of which few cross the channel: logs compress well
_BUDGET_S = 0.5  # of processor time, for the expressions of one look
_MOST_NEXT = 16  # files that took the path while the one before was still read
_MOST_TRIED = 20  # lines of the end that are said to match

Values = dict[str, Any]


def ask(spec: Values, memory: Values) -> list[Values]:
    """Ask for what is new; at first for the end of the file, or its beginning."""
    if "decided" in memory:
        return []
    request: Values = {"op": "log", "path": spec["path"]}
    if not _expressions(spec):
        return [{**request, "measure": True}]
    if memory or spec["from_start"]:
        request["offset"] = 0
    names = ("inode", "offset", "print", "next", "size")
    return [{**request, **{name: memory[name] for name in names if name in memory}}]


def follows(spec: Values, memory: Values) -> list[list[int]]:  # noqa: ARG001
    """Follow no process."""
    return []


def read(request: Values) -> Values:
    """Return what `Reader.read` does, its bytes packed for a channel."""
    reader = Reader(_MOST_THERE)
    try:
        answer = reader.read(request)
    finally:
        reader.close()
    return {**answer, "data": packed(answer["data"])}


def packed(data: bytes) -> str:
    """Return bytes as text for a channel; none are no text."""
    return base64.b64encode(zlib.compress(data, 1)).decode("ascii") if data else ""


def judge(spec: Values, memory: Values, answers: list[Values], now: Values) -> Values:
    """Return what the new lines mean."""
    if "decided" in memory:
        return _ended(memory)
    (answer,) = answers
    if "error" in answer:
        return _blind(spec, memory, answer["error"])
    if _elsewhere(memory, answer):
        return _unmounted(spec, memory)
    return _Look(spec, memory, answer, now).seen()


class _Look:
    """What is made of one answer."""

    def __init__(
        self, spec: Values, memory: Values, answer: Values, now: Values
    ) -> None:
        self.spec = spec
        self.before = memory
        self.memory = {**memory, "device": answer["device"]}
        self.answer = answer
        self.now = now
        self.markers = _markers(spec)

    def seen(self) -> Values:
        """Return what was seen; what it means comes to one of these."""
        if self.answer["there"] is None and "inode" not in self.memory:
            return self.waits_for_file()
        if not self.markers:
            return self.measured()
        if not self.before and not self.spec["from_start"]:
            return self.begins_at_end()
        file, there = self.answer["file"], self.answer["there"]
        at_path = file is not None and there is not None and file[0] == there[0]
        if file is None or not (self.answer["same"] or at_path):
            return self.lost()
        if not self.answer["same"]:
            return self.written_anew()
        return self.nothing_new() if self.answer["unread"] else self.goes_on()

    def waits_for_file(self) -> Values:
        """There is none so far; it will be new, and be read from its beginning."""
        notes = [] if self.before else [["log_awaited", {"path": self.spec["path"]}]]
        return self._held({"errno": "ENOENT"}, notes=notes)

    def measured(self) -> Values:
        """Nobody wants its lines, only that it grows."""
        if self.answer["file"] is not None:
            self.memory["inode"], self.memory["size"] = self.answer["file"][:2]
        return self._held({})

    def begins_at_end(self) -> Values:
        """Begin with the line that is unfinished now; what it holds so far is old.

        The evidence tells which lines of the end would have matched.
        """
        data, begin = _data(self.answer), self.answer["offset"]
        size = begin + len(data)
        offset, skips = line_start(data, size)
        self._place(self.answer["file"][0], offset, data[: offset - begin], size)
        if skips:
            self.memory["skips"] = True
        elif offset < size:
            self.memory["fresh"] = size
        note = ["log_from_end", {"path": self.spec["path"], "offset": size}]
        return self._held({"would_match": self._tried(data, begin)}, notes=[note])

    def written_anew(self) -> Values:
        """It was truncated, or written anew in place: read it from its beginning."""
        self._place(self.answer["file"][0], 0, b"", None)
        return self._held({"written_anew": True}, again_in_s=0)

    def lost(self) -> Values:
        """The file followed is nowhere to be found: go on with the next, if any."""
        later = self._later()
        if not later:
            return self._held({"lost": True})
        if self.answer["copied"] and len(later) == 1:
            return self._continues_in_copy()
        self.memory["lost"] = True
        return self._switches(later, [["log_lost", {"path": self.spec["path"]}]])

    def nothing_new(self) -> Values:
        """Its size is the known one; an unfinished line may be wanted all the same."""
        rest = self.answer["file"][1] > self.memory["offset"]
        if self._over(self._later()) or (rest and self.now.get("final")):
            self.memory.pop("size", None)  # so that the rest is read once more
            return self._held({}, again_in_s=0)
        return self._held({})

    def goes_on(self) -> Values:
        """Look for markers in what is new, then go on to the next file, if any.

        1. A next file that holds something tells that nobody writes to this one any
           more. Then its unfinished last line counts, unless the next one is a copy,
           in which that line may still be finished.
        2. The next file is begun once all of this one is read; a copy where this one
           was, since all before that has been read.
        """
        answer, later = self.answer, self._later()
        data, before, offset = _data(answer), answer["before"], answer["offset"]
        end = offset + len(data) - before
        more, over = end < answer["file"][1], self._over(later)
        scanned = scan(
            data[before:],
            offset,
            self.markers,
            skips=self.memory.get("skips", False),
            fresh=self.memory.get("fresh", 0),
            final=not more
            and not answer["copied"]
            and bool(over or self.now.get("final")),
        )
        if scanned.found is not None:
            return self._decided(scanned.found)
        if scanned.slow and not scanned.done:
            return _slow(self.spec, self.before)
        reading = more or scanned.slow
        if over and not reading and answer["copied"] and len(later) == 1:
            return self._continues_in_copy()
        known = None if reading or over else end
        done = data[: before + scanned.done]
        inode, place = answer["file"][0], offset + scanned.done
        self._place(inode, place, done, known, skips=scanned.skips)
        if reading or not over:
            return self._held({}, again_in_s=0 if reading else None)
        return self._switches(later, [])

    def _over(self, later: list[int]) -> bool:
        """Say whether somebody writes to a later file already."""
        there = self.answer["there"]
        return len(later) > 1 or (bool(later) and there is not None and there[1] > 0)

    def _later(self) -> list[int]:
        """Return the files that took the path since, the oldest first; note them.

        There are none where the one followed has its name again.
        """
        later: list[int] = list(self.memory.get("next", ()))
        there = self.answer["there"]
        if there is not None and there[0] == self._followed():
            self.memory.pop("next", None)
            return []
        if there is not None and there[0] not in later:
            later = [*later, there[0]][-_MOST_NEXT:]
            self.memory["next"] = later
        return later

    def _followed(self) -> Any:
        file = self.answer["file"]
        return self.memory.get("inode") if file is None else file[0]

    def _switches(self, later: list[int], notes: list[Any]) -> Values:
        self._place(later[0], 0, b"", None)
        if later[1:]:
            self.memory["next"] = later[1:]
        return self._held({}, again_in_s=0, notes=notes)

    def _continues_in_copy(self) -> Values:
        self.memory["inode"] = self.answer["there"][0]
        self.memory.pop("size", None)
        self.memory.pop("next", None)
        return self._held({"copied": True}, again_in_s=0)

    def _place(
        self,
        inode: int,
        offset: int,
        before: bytes,
        size: int | None,
        *,
        skips: bool = False,
    ) -> None:
        """Remember where to read on.

        Args:
            inode: of the file.
            offset: in it.
            before: what stands before that, at least as much as is printed.
            size: of the file, where nothing is to be read until that changes.
            skips: the rest of the line is to be skipped.
        """
        memory = self.memory
        same = memory.get("inode") == inode
        later = memory.get("next") if same else None
        fresh = memory.get("fresh", 0) if same and offset else 0
        for name in ("next", "size", "skips", "fresh"):
            memory.pop(name, None)
        memory.update(inode=inode, offset=offset, print=fingerprint(before[-PRINTED:]))
        if later:
            memory["next"] = later
        if size is not None:
            memory["size"] = size
        if skips:
            memory["skips"] = True
        if offset < fresh:
            memory["fresh"] = fresh

    def _tried(self, data: bytes, begin: int) -> list[Values]:
        try:
            found = matching_lines(data, begin, self.markers, _MOST_TRIED)
        except TimeoutError:
            return []
        return [one._asdict() for one in found]

    def _decided(self, found: Found) -> Values:
        file = self.answer["file"]
        evidence = {**_means(self.spec), "inode": file[0], "device": file[2]}
        self.memory["decided"] = {
            "result": found.result,
            "line": found.line,
            "evidence": {**evidence, "offset": found.offset, "line": found.line},
        }
        return _ended(self.memory)

    def _held(
        self,
        evidence: Values,
        *,
        again_in_s: float | None = None,
        notes: list[Any] | None = None,
    ) -> Values:
        """Return that nothing has decided so far, unless the log has stalled."""
        if notes is None and not self.before and self.spec["from_start"]:
            notes = [["log_from_start", {"path": self.spec["path"]}]]
        seen = {
            "sight": "held",
            "evidence": {**_means(self.spec), **self._seen(), **evidence},
            "memory": self.memory,
            "notes": notes or [],
        }
        if self.spec["stalled_s"] is None or self._is_awaited():
            return {**seen, "again_in_s": again_in_s}
        left_s = self.spec["stalled_s"] - self._quiet_s(reading=again_in_s == 0)
        if left_s > 0:
            again = left_s if again_in_s is None else again_in_s
            return {**seen, "again_in_s": again}
        span = _span(self.spec["stalled_s"])
        decided = ["log_quiet", {"span": span}]
        return {**seen, "sight": "released", "result": "STALLED", "decided": decided}

    def _is_awaited(self) -> bool:
        """Say whether it has yet to be made: only its writer can be silent then."""
        if self.answer["file"] is not None:
            self.memory["existed"] = True
        return "existed" not in self.memory and "busy" not in self.now

    def _seen(self) -> Values:
        file = self.answer["file"]
        names = ("inode", "offset", "lost")
        seen = {name: self.memory[name] for name in names if name in self.memory}
        return seen if file is None else {**seen, "size": file[1], "device": file[2]}

    def _quiet_s(self, *, reading: bool) -> float:
        """Return for how long it has not grown, nor been replaced.

        A clock that has gone back is another boot's: then that begins anew.
        """
        up_s: float = self.now["up_s"]
        before: list[Any] | None = self.memory.get("grown")
        size = self.answer["file"][1] if self.answer["file"] is not None else 0
        state = [self.memory.get("inode"), size]
        same = before is not None and before[:2] == state and before[2] <= up_s
        if before is None or not same or reading or self.now.get("busy"):
            self.memory["grown"] = [*state, up_s]
            return 0.0
        return float(up_s - before[2])


def _expressions(spec: Values) -> list[tuple[str, str]]:
    """Return results and their expressions; what stands first counts at one place."""
    names = (("FAIL", "fail"), ("PASS", "pass"))
    return [(result, spec[name]) for result, name in names if spec[name] is not None]


def _data(answer: Values) -> bytes:
    data = answer["data"]
    return data if isinstance(data, bytes) else unpacked(data)


def unpacked(text: str) -> bytes:
    """Return the bytes that a channel brought, no more than a look may read."""
    if not text:
        return b""
    most = _MOST_THERE + PRINTED
    return zlib.decompressobj().decompress(base64.b64decode(text), most)


def _means(spec: Values) -> Values:
    return {"means": "log", "path": spec["path"]}


def _ended(memory: Values) -> Values:
    """Return the decision, as often as it is asked for."""
    decided = memory["decided"]
    return {
        "sight": "released",
        "evidence": decided["evidence"],
        "memory": memory,
        "result": decided["result"],
        "decided": ["said", {"text": decided["line"]}],
    }


def _elsewhere(memory: Values, answer: Values) -> bool:
    """Say whether the directory is on another file system and the file was lost."""
    known, device = memory.get("device"), answer["device"]
    if known is None or device is None or known == device:
        return False
    return "inode" not in memory or answer["file"] is None


def _blind(spec: Values, memory: Values, error: Values) -> Values:
    """Return that it could not be seen, and why, as exactly as that is known."""
    seen = unknown(memory, "log", error)
    path, name = spec["path"], error.get("errno")
    if name == "ENOENT":
        seen["reason"] = ["directory_missing", {"path": os.path.dirname(path)}]
    elif name == "EACCES":
        seen["reason"] = ["denied", {"path": path}]
    elif name == "EINVAL":
        seen["reason"] = ["no_log_file", {"path": path}]
    return seen


def _unmounted(spec: Values, memory: Values) -> Values:
    reason = ["unmounted", {"path": os.path.dirname(spec["path"])}]
    return {**unknown(memory, "log", {"errno": "EXDEV"}), "reason": reason}


def _slow(spec: Values, memory: Values) -> Values:
    regexes = ", ".join(regex for _, regex in _expressions(spec))
    reason = ["slow_regex", {"regex": regexes}]
    return {**unknown(memory, "log", {"slow": True}), "reason": reason}


def _span(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{seconds}s" if rest else f"{minutes}min"


def _markers(spec: Values) -> list[Marker]:
    """Return the markers of a look, whose expressions share its budget."""
    left = _budget()
    return [_marker(result, regex, left) for result, regex in _expressions(spec)]


def _budget() -> Callable[[], float]:
    """Return what says how many seconds are left; the first to ask has them all.

    It raises TimeoutError when there are none.
    """
    end: list[float] = []

    def left() -> float:
        now = time.thread_time()
        if not end:
            end.append(now + _BUDGET_S)
        if now >= end[0]:
            raise TimeoutError
        return end[0] - now

    return left


def _marker(result: str, regex: str, left: Callable[[], float]) -> Marker:
    line, block, timed = _compiled(regex)

    def options(share: float) -> Values:
        limit_s = left() * share
        return {"timeout": limit_s, "concurrent": True} if timed else {}

    def find(text: str, behind: int) -> tuple[int, int] | None:
        if behind < 0:
            match = line.search(text, **options(1))
            return None if match is None else (match.start(), match.end())
        for match in line.finditer(text, **options(1)):
            if match.end() > behind:
                return match.start(), match.end()
        return None

    def seek(text: str) -> bool:
        return block.search(text, **options(0.5)) is not None

    return Marker(result, find, None if block is None else seek)


@functools.lru_cache(maxsize=256)
def _compiled(regex: str) -> tuple[Any, Any, bool]:
    """Return an expression for one line, one for many, and whether both can be timed.

    Here the module `regex` runs them, which takes a limit and lets other threads run.
    """
    many = for_many_lines(regex)
    try:
        timed = importlib.import_module("regex")
        return timed.compile(regex), many and timed.compile(many, timed.M), True
    except Exception:  # noqa: BLE001 - not there, or not its dialect: `re` has it
        return re.compile(regex), many and re.compile(many, re.MULTILINE), False
