"""`koder-monitor statusline`: one line for the runtime that asks for it (C8.2).

Drawn at every prompt, so it is all about time: nothing is imported that can wait, no
network is asked, and whatever is late or wrong is left out of the line.
"""

import _thread
import contextlib
import json
import os
import select
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from policies.statusline import Facts, Light, View, facts_of, status_line
from watcher.cli.output import debugging

if TYPE_CHECKING:
    import argparse  # which the fast way does without

    from watcher.runtimes.former import Former

T = TypeVar("T")

RUNTIME: Final = "claude-code"
"""The runtime that is meant where none is named."""

_FORMER_S = 0.9  # from our start, for the line that stands in front
_LAST_S = 2.5  # from our start, for everything: a dead mount must not pile us up
_PATIENCE_MS = 500  # for a reader that has stopped reading
_COLUMNS = 80  # of a terminal that does not say
_MOST_COLUMNS = 1000
_CHAINED = "STATUSLINE_CHAINED_BY"  # as in watcher.runtimes.former
_COMPACTS = frozenset({"claude-code"})  # those of which is known when they compact
_SET_SESSION, _OWN_SESSION = "KODER_MONITOR_SESSION", "CLAUDE_CODE_SESSION_ID"


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    """Add the runtime that asks."""
    parser.add_argument(
        "--runtime",
        metavar="NAME",
        default=RUNTIME,
        help=f"the coding agent that asks (default {RUNTIME})",
    )


def run(options: "argparse.Namespace") -> int:
    """Print the line."""
    return show(options.runtime)


def quick(words: Sequence[str]) -> int | None:
    """Print the line for a call that needs no parser; None for any other call."""
    if not words:
        show(RUNTIME)
    elif len(words) == 2 and words[0] == "--runtime":
        show(words[1])
    else:
        return None
    os._exit(0)  # all is written; to take the interpreter apart costs a tenth more


def show(runtime: str) -> int:
    """Print one line, whatever happens; the status is always 0."""
    started_s = _now_s()
    view = _view(os.environ)
    once = _thread.allocate_lock()

    def put(line: str) -> None:
        if once.acquire(blocking=False):
            _put(line.encode(view.encoding, "replace") + b"\n")

    def late() -> None:
        select.select([], [], [], _LAST_S)
        put(_short(view))
        os._exit(0)

    _thread.start_new_thread(late, ())
    put(_or_none(lambda: _line(runtime, view, started_s)) or _short(view))
    return 0


def _line(runtime: str, view: View, started_s: float) -> str:
    from watcher.runtimes.reading import read_payload  # noqa: PLC0415 - last of all

    env = os.environ
    payload = _or_none(read_payload)
    facts = facts_of(payload)
    now_s = time.time()  # noqa: TID251 - a command of a moment
    former = _or_none(lambda: _former(runtime, payload, env))
    sessions = _sessions(facts, env)
    folder = facts.folder or _or_none(os.getcwd)
    used = _or_none(lambda: _used(runtime, facts, folder, now_s))
    lights = _or_none(lambda: _lights(facts, sessions, folder, now_s))
    before = None if former is None else _or_none(lambda: _ended(former, started_s))
    return status_line(
        model=facts.model,
        folder=folder,
        used=used,
        lights=lights or [],
        before=before,
        view=view,
    )


def _put(data: bytes) -> None:
    """Write the line; whoever does not read holds nobody up."""
    room = select.poll()
    room.register(1, select.POLLOUT)
    with contextlib.suppress(OSError):
        if room.poll(_PATIENCE_MS):
            os.write(1, data)


def _short(view: View) -> str:
    """Return the line of when nothing else can be had."""
    return status_line(
        model=None, folder=None, used=None, lights=[], before=None, view=view
    )


def _sessions(facts: Facts, env: Mapping[str, str]) -> list[str]:
    """Return the ids under which this session may have armed something (C11.2).

    Its own, and the one that its environment sets for all that it arms.
    """
    from policies.names import is_session  # noqa: PLC0415

    own = facts.session or env.get(_OWN_SESSION)
    names = dict.fromkeys([own, env.get(_SET_SESSION)])
    return [name for name in names if name is not None and is_session(name)]


def _used(runtime: str, facts: Facts, folder: str | None, now_s: float) -> int | None:
    """Return the percent used, and leave it for the context monitor."""
    if facts.window is None:
        return None
    from policies.context import window_reading  # noqa: PLC0415
    from watcher.paths import state_directory  # noqa: PLC0415
    from watcher.runtimes.metrics import leave  # noqa: PLC0415

    env = os.environ
    settings = _settings(facts.project or folder, env) if runtime in _COMPACTS else None
    reading = window_reading(facts.window, now_s, env, settings)
    if reading is None:
        return None
    if facts.session is not None:
        leave(state_directory(env), env, facts.session, reading, now_s)
    return reading.used


def _settings(project: str | None, env: Mapping[str, str]) -> list[object]:
    """Return the runtime's settings files, the one that goes first in front."""
    from watcher.runtimes.metrics import json_of, read_small  # noqa: PLC0415

    home = env.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")
    folders = [home] if project is None else [f"{project}/.claude", home]
    names = ("settings.local.json", "settings.json")
    return [
        json_of(read_small(f"{folder}/{name}")) for folder in folders for name in names
    ]


def _lights(
    facts: Facts, sessions: Sequence[str], folder: str | None, now_s: float
) -> list[Light]:
    from watcher.cli.reading import read  # noqa: PLC0415
    from watcher.lights import is_looked_at, lights  # noqa: PLC0415
    from watcher.paths import project_directory, state_directory  # noqa: PLC0415
    from watcher.socket_path import service_runs  # noqa: PLC0415

    projects = [project_directory(folder)] if folder else []
    projects += [facts.project] if facts.project else []
    # To be asked at each prompt whether it is there would wake the service each time.
    running = service_runs(state_directory(os.environ))
    found, _ = read(
        lambda db: lights(db, sessions, projects, now_s),
        looked_after=lambda db: running and is_looked_at(db, now_s),
    )
    return found or []


def _former(runtime: str, payload: object, env: Mapping[str, str]) -> "Former | None":
    """Start what the user had before us, if anything."""
    from watcher.runtimes.chained import previous  # noqa: PLC0415

    command = previous(runtime)
    if command is None or _CHAINED in env:
        return None
    from watcher.runtimes.former import Former  # noqa: PLC0415 - most have none

    data = b"" if payload is None else json.dumps(payload).encode()
    return Former(command, data, env)


def _ended(former: "Former", started_s: float) -> str | None:
    return former.line(_FORMER_S - (_now_s() - started_s))


def _view(env: Mapping[str, str]) -> View:
    return View(
        columns=_columns(env),
        colour=not env.get("NO_COLOR") and env.get("TERM") != "dumb",
        encoding=(sys.stdout.encoding if sys.stdout else None) or "utf-8",
    )


def _columns(env: Mapping[str, str]) -> int:
    """Return the width: as the runtime says, else of a terminal of ours."""
    asked = env.get("COLUMNS", "")
    if asked.isascii() and asked.isdecimal() and int(asked[:9]) > 0:
        return min(int(asked[:9]), _MOST_COLUMNS)
    for fd in (2, 0):
        try:
            return os.get_terminal_size(fd).columns or _COLUMNS
        except OSError:
            continue
    return _COLUMNS


def _or_none(look: Callable[[], T]) -> T | None:
    """Return what a part of the line is, None where it fails: the rest is shown."""
    try:
        return look()
    except Exception:  # noqa: BLE001 - a shorter line, never a traceback
        if debugging():
            import traceback  # noqa: PLC0415

            traceback.print_exc()
        return None


def _now_s() -> float:
    return time.clock_gettime(time.CLOCK_MONOTONIC)
