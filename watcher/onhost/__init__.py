"""What runs where the thing is: here, or sent to a host and run there from memory.

Standard library only, Python 3.9 or newer, and no import of ours but of these modules
and of those of `policies` that `watcher.transport.bundle` names. `tests` hold that.

A module here is a *part*: how one kind of condition is looked at and what that means.

    ask(spec, memory) -> list of requests     JSON; `op` is the name of the part to read
    read(request) -> answer                   looks, on the machine itself; may raise
                                              OSError, which becomes an answer
    judge(spec, memory, answers, now) -> seen JSON, see below
    follows(spec, memory) -> list of [pid, start]   processes whose end means: look now

`spec` is what the target names, `memory` what the look before remembered (or empty),
`now` has `up_s`, a clock that nobody sets, and `at`, seconds since the epoch; both of
the machine that judges, which may be another than the one that was looked at. A log
that is judged together with its writer is told more: `final` is 1 when the writer is
gone (its unfinished last line counts), `busy` is 1 when it has used the processor.

    seen = {"sight": "held" | "released" | "unknown" | "absent",
            "evidence": {"means": ...}, "memory": {...},
            # and, each where there is something to say, sentences as [key, values]:
            "reason": [...], "notes": [[...]], "remarks": [[...]],
            "result": "PASS" | "FAIL" | "STALLED" | "DIED", "decided": [...],
            "again_in_s": seconds}

"absent" is what was never there: `policies.model.Observation.absent`. A failure to look
is "unknown" and leaves the memory as it was.
"""

from __future__ import annotations

import errno as _errno
import importlib
from collections.abc import Callable, Mapping
from typing import Any

PARTS = ("process", "log", "port", "file", "command")
"""The parts that a host may be asked for: modules of this package."""

_READERS = {**{name: name for name in PARTS}, "detached": "yard"}
"""What `op` may be, and the module that answers; only parts can be judged."""


def part(name: str) -> Any:
    """Return the module that answers for a part, or for what is detached.

    Raises:
        KeyError: there is none of this name.
    """
    return importlib.import_module(f"watcher.onhost.{_READERS[name]}")


def answer(
    request: dict[str, Any],
    read: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return what a part reads; a failure to look is an answer too.

    Args:
        request: what is asked.
        read: reads it instead of the part's own `read`.
    """
    try:
        found: dict[str, Any] = (read or part(request["op"]).read)(request)
    except OSError as error:
        name = _errno.errorcode.get(error.errno or 0, "EIO")
        return {"error": {"errno": name, "text": str(error)}}
    except Exception as error:  # noqa: BLE001 - one must not cost the others their answer
        return {"error": {"errno": "", "text": f"{type(error).__name__}: {error}"}}
    return found


def at_home(request: Mapping[str, Any], home: str) -> dict[str, Any]:
    """Return a request with the paths that begin with `~/` below a home folder."""
    found = dict(request)
    for name in ("path", "pidfile", "cwd"):
        if isinstance(found.get(name), str):
            found[name] = _below(home, found[name])
    if found.get("argv"):
        found["argv"] = [_below(home, found["argv"][0]), *found["argv"][1:]]
    return found


def _below(home: str, path: str) -> str:
    return home.rstrip("/") + path[1:] if path.startswith("~/") else path


def unknown(
    memory: dict[str, Any], means: str, error: dict[str, Any]
) -> dict[str, Any]:
    """Return what it means that a part could not look."""
    return {
        "sight": "unknown",
        "evidence": {"means": means, **error},
        "memory": memory,
        "reason": ["probe_failed", {"error": str(error.get("text", ""))}],
    }
