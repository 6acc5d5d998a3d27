"""How much of a session's context window is used, by the best source there is (C11.2).

The payload itself; the figure that the status line left; the usage of the newest
answer in the transcript; an estimate from the size of the transcript. Each is left for
the next only when it says nothing.
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from typing import NamedTuple, cast

from policies.context import is_usable
from policies.usage import Source, Used, direct, number, of_size, of_tokens
from policies.values import Json
from watcher.paths import state_directory
from watcher.runtimes import HookCall

_MOST_BYTES = 8 << 20
"""So much of a transcript is read at most, from its end."""

_CHUNK = 256 << 10
_MAYBE = (b'"usage"', b"compact_boundary", b"isCompactSummary")
_NO_ANSWER = "<synthetic>"  # the model of lines that the runtime wrote itself


class Transcript(NamedTuple):
    """What the end of a transcript tells.

    Attributes:
        tokens: in the window at the newest answer; None without one.
        model: that gave it.
        size: of the whole transcript in bytes; None when it must not be used, since
            the window was emptied after the newest answer.
    """

    tokens: float | None
    model: str | None
    size: int | None


def used_share(call: HookCall) -> Used | None:
    """Return how much is used, None when nothing tells."""
    window = _object(call.payload.get("context_window"))
    return direct(window) or _bridge(call) or _from_transcript(call, window)


def _bridge(call: HookCall) -> Used | None:
    if call.session is None:
        return None
    from watcher.runtimes import metrics  # noqa: PLC0415 - start-up time

    state, now_s = state_directory(call.env), call.at.timestamp()
    emptied_s = metrics.spoken(state, call.session).compacted_at_s
    for reading in metrics.found(state, call.env, call.session):
        if is_usable(reading, now_s, emptied_s):
            return Used(100 - reading.remaining, Source.BRIDGE)
    return None


def _from_transcript(call: HookCall, window: Mapping[str, Json]) -> Used | None:
    path = call.payload.get("transcript_path")
    if not isinstance(path, str) or not path:
        return None
    try:
        seen = read_transcript(os.path.expanduser(path))
    except (OSError, ValueError):  # a zero byte is no path at all
        return None
    model = _model(call.payload) or seen.model
    if seen.tokens is not None:
        return of_tokens(seen.tokens, window, model)
    return None if seen.size is None else of_size(seen.size, window, model)


def read_transcript(path: str) -> Transcript:
    """Read a transcript from its end to the newest answer of its main line.

    Lines of sub-agents and errors of the service count as nothing.

    Raises:
        OSError: it is no plain file, or cannot be read.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            raise PermissionError(path)
        for line in _lines_backwards(fd, about.st_size):
            if not any(word in line for word in _MAYBE):
                continue
            entry = _entry(line)
            if entry.get("isSidechain") is True:
                continue
            if _empties(entry):
                return Transcript(None, None, None)
            tokens, model = _answer(entry)
            if tokens is not None:
                return Transcript(tokens, model, about.st_size)
        return Transcript(None, None, about.st_size)
    finally:
        os.close(fd)


def _lines_backwards(fd: int, size: int) -> Iterator[bytes]:
    """Give the lines from the last one on; one that is cut off at the limit is left."""
    start, pieces = size, [b""]
    least = max(0, size - _MOST_BYTES)
    while start > least:
        chunk_from = max(least, start - _CHUNK)
        chunk = os.pread(fd, start - chunk_from, chunk_from)
        start = chunk_from
        *whole, last = (chunk.split(b"\n"))[::-1]
        if not whole:
            pieces.append(last)
            continue
        yield whole[0] + b"".join(reversed(pieces))
        yield from whole[1:]
        pieces = [last]
    if start == 0:
        yield b"".join(reversed(pieces))


def _entry(line: bytes) -> Mapping[str, Json]:
    try:
        return _object(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def _empties(entry: Mapping[str, Json]) -> bool:
    """Say whether the window was emptied at this line."""
    return (
        entry.get("subtype") == "compact_boundary"
        or entry.get("isCompactSummary") is True
    )


def _answer(entry: Mapping[str, Json]) -> tuple[float | None, str | None]:
    """Return the tokens in the window at an answer, and its model."""
    message = _object(entry.get("message"))
    model = message.get("model")
    if (
        entry.get("type") != "assistant"
        or entry.get("isApiErrorMessage") is True
        or model == _NO_ANSWER
    ):
        return None, None
    usage = _object(message.get("usage"))
    counts = [
        number(usage.get(name))
        for name in (
            "input_tokens",
            "cache_creation_input_tokens",
            "cache_read_input_tokens",
        )
    ]
    tokens = sum(count for count in counts if count is not None and count > 0)
    return tokens or None, model if isinstance(model, str) else None


def _model(payload: Mapping[str, Json]) -> str | None:
    """Return the id of the model, which some runtimes put into an object."""
    model = payload.get("model")
    if isinstance(model, Mapping):
        model = model.get("id")
    return model if isinstance(model, str) else None


def _object(value: Json) -> Mapping[str, Json]:
    return cast("Mapping[str, Json]", value) if isinstance(value, dict) else {}
