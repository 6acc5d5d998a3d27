"""`koder-monitor hook EVENT`: what an agent's runtime calls at its events (C11.2).

Whatever goes wrong is silence and success, with one line in the log: only a person at a
terminal is told of a wrong call. It starts anew at every tool call of every session, so
that even argparse, which costs as much as all the rest, is left to `--help`.
"""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from watcher.cli.output import was_closed, write_line
from watcher.cli.reading import language, now
from watcher.paths import state_directory
from watcher.runtimes import EVENTS, HANDLERS, Advice, HookCall, log
from watcher.runtimes.calls import call_of
from watcher.runtimes.dialects import (
    DEFAULT,
    DIALECTS,
    printed,
    recognised,
    speaks_before_tools,
)
from watcher.runtimes.reading import read_payload

if TYPE_CHECKING:
    import argparse

_LIMIT_S = 5.0  # for everything; a lock directory may hang

_HOLD_THE_STORE: Final = frozenset({"inbox", "stop_check"})
_BEFORE: Final = "pre-tool-use"
_AFTER: Final = "post-tool-use"


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    """Add the event and who calls."""
    parser.add_argument(
        "event", metavar="EVENT", choices=EVENTS, help=", ".join(EVENTS)
    )
    parser.add_argument(
        "--runtime",
        metavar="NAME",
        choices=sorted(DIALECTS),
        help=f"who calls: {', '.join(sorted(DIALECTS))} (default: by what it says)",
    )


def run(options: "argparse.Namespace") -> int:
    """Answer one event."""
    return answer(options.event, options.runtime)


def quick(words: Sequence[str]) -> int | None:
    """Answer one event without the parser; None where that has to say something."""
    try:
        event, runtime = _parsed(words)
    except ValueError as error:
        if os.isatty(0) or {"-h", "--help"} & set(words):
            return None
        log.note(state_directory(os.environ), f"hook: {error}")
        return 0
    try:
        _limit(event, runtime)
        answer(event, runtime)
    except Exception as error:  # noqa: BLE001 - no hook may break its agent
        _note(os.environ, "hook", error)
        _say_nothing(event, runtime)
    os._exit(0)  # all is written; to take the interpreter apart costs a tenth more


def _parsed(words: Sequence[str]) -> tuple[str, str | None]:
    """Return event and runtime.

    Raises:
        ValueError: the words are something else.
    """
    events: list[str] = []
    runtime: str | None = None
    rest = iter(words)
    for word in rest:
        if word == "--runtime":
            runtime = next(rest, "")
        elif word.startswith("--runtime="):
            runtime = word.removeprefix("--runtime=")
        else:
            events.append(word)
    if len(events) != 1 or events[0] not in EVENTS:
        raise ValueError(" ".join(words))
    if runtime is not None and runtime not in DIALECTS:
        raise ValueError(" ".join(words))
    return events[0], runtime


def _limit(event: str, runtime: str | None) -> None:
    """Give up in silence when the time is over, whatever hangs."""

    def give_up(*_: object) -> None:
        _say_nothing(event, runtime)
        os._exit(0)

    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, _LIMIT_S)


def _say_nothing(event: str, runtime: str | None) -> None:
    """Print what a runtime has to be told where there is nothing to say."""
    quiet = DIALECTS[runtime or DEFAULT].quiet.get(event)
    if quiet:
        write_line(1, quiet)


def answer(event: str, runtime: str | None) -> int:
    """Read the payload, ask the handlers, and print what they have to say.

    What is told once counts as told only now that it is printed.
    """
    env = os.environ
    payload = read_payload()
    known = runtime or recognised(payload or {}, env)
    call = call_of(
        event, known, payload or {}, env=env, now_s=now(), lang=language(None, env)
    )
    advices: list[Advice] = []
    _run(call, "heartbeat", "beat")
    if payload is None:
        log.note(state_directory(env), f"{known} {event}: no JSON object on stdin")
    else:
        _run(call, "signs", "show_life")
        advices = _asked(call)
    if event == "session-start":
        _run(call, "tried", "sweep")
    name = call.payload.get("hook_event_name")
    text, whole = printed(known, event, advices, name)
    taken = bool(text) and not was_closed(1) and write_line(1, text)
    for advice in advices:
        if advice.after is not None:
            _settle(call, advice.after, taken=taken and advice in whole)
    return 0


def _asked(call: HookCall) -> list[Advice]:
    """Return what the handlers of an event have to say, in their order.

    Those that hold the store until all is printed are asked last: another handler may
    take its time.
    """
    names = _handlers(call)
    said = {
        name: _run(call, name, "advise")
        for name in sorted(names, key=_HOLD_THE_STORE.__contains__)
    }
    return [found for name in names if isinstance(found := said[name], Advice)]


def _handlers(call: HookCall) -> tuple[str, ...]:
    """Return who hears an event.

    A runtime that tells its model nothing before a tool runs hears the guards behind
    it: late, but before the next.
    """
    names = HANDLERS[call.event]
    if speaks_before_tools(call.runtime):
        return names
    if call.event == _BEFORE:
        return ()
    return names + HANDLERS[_BEFORE] if call.event == _AFTER else names


def _run(call: HookCall, module: str, function: str) -> object:
    """Call a function of a module of `watcher.runtimes`; its errors stop here."""
    try:
        # Not by importlib, which costs an import of its own.
        found = __import__(f"watcher.runtimes.{module}", fromlist=[function])
        return cast("object", getattr(found, function)(call))
    except Exception as error:  # noqa: BLE001 - one handler's error is not another's
        _note(call.env, f"{call.runtime} {call.event} {module}", error)
        return None


def _settle(call: HookCall, after: Callable[[bool], None], *, taken: bool) -> None:
    try:
        after(taken)
    except Exception as error:  # noqa: BLE001 - what is printed is printed
        _note(call.env, f"{call.runtime} {call.event} after", error)


def _note(env: Mapping[str, str], where: str, error: Exception) -> None:
    state = state_directory(env)
    log.note(state, f"{where}: {type(error).__name__}: {error}")
