"""Processes: by PID, by pidfile, or by what their command lines say (C3.3)."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from policies.clock import Clock
from policies.duration import parse_duration
from policies.model import Json, Memory, Target
from policies.target import (
    MAX_PID,
    absolute,
    is_possible_path,
    log_options,
    match_target,
    path_on_host,
    pid_target,
    pidfile_target,
    regex_target,
)
from policies.wording import phrase
from watcher.conditions import Condition, Place, host_of
from watcher.errors import UsageError
from watcher.expressions import fault_of

if TYPE_CHECKING:
    from watcher.looked import Spec
    from watcher.transport import Answer, Request

_REGEX_LIMIT_S = 0.5  # for one command line; on a host for all of a look
_ONLY_WITH_LOG = {
    "passes": "--pass",
    "fails": "--fail",
    "stalled": "--stalled",
    "from_start": "--from-start",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what processes are named by, and the log that they write."""
    named = parser.add_mutually_exclusive_group(required=True)
    named.add_argument("--pid", metavar="N", help="one process")
    named.add_argument(
        "--pidfile", metavar="FILE", help="the process whose PID a file holds"
    )
    named.add_argument(
        "--match", metavar="TEXT", help="all whose command line holds this very text"
    )
    named.add_argument(
        "--regex", metavar="RE", help="all whose command line a Python expression finds"
    )
    parser.add_argument(
        "--host", metavar="HOST", help="where they run, as ssh knows it"
    )
    log = parser.add_argument_group("the log that they write")
    log.add_argument("--log", metavar="FILE", help="judge them together with this file")
    log.add_argument(
        "--pass", metavar="RE", dest="passes", help="a line of it that means success"
    )
    log.add_argument(
        "--fail", metavar="RE", dest="fails", help="a line of it that means failure"
    )
    log.add_argument(
        "--stalled",
        metavar="DURATION",
        help="STALLED when it has not grown for this long, and no CPU was used",
    )
    log.add_argument(
        "--from-start", action="store_true", help="what it holds already counts too"
    )


def target_of(options: argparse.Namespace, place: Place) -> Target:
    """Return the target of processes; an expression is compiled to check it."""
    host = host_of(options)
    log = _log_words(options, place)
    if options.pid is not None:
        return pid_target(_pid(options.pid), log=log, host=host)
    if options.pidfile is not None:
        path = _path("--pidfile", options.pidfile, options, place)
        return pidfile_target(path, log=log, host=host)
    if options.match is not None:
        _check_text(options.match)
        return match_target(options.match, log=log, host=host)
    _check_expression(options.regex)
    return regex_target(options.regex, log=log, host=host)


def build(options: argparse.Namespace, place: Place) -> Condition:
    """Return the condition of processes."""
    from watcher.looked import Looked, looked_at  # noqa: PLC0415 - start-up time
    from watcher.processes import MatchingProcesses, OneProcess  # noqa: PLC0415
    from watcher.procfs import process_table  # noqa: PLC0415

    target, spec = target_of(options, place), spec_of(options, place)
    if target.host is not None:
        part = FarProcesses(options.regex, place.clock)
        return looked_at(Looked(target=target, part=part, spec=spec), place)
    table, launcher, clock = process_table(), place.launcher, place.clock
    if options.pid is not None or options.pidfile is not None:
        return OneProcess(target, spec, table=table, launcher=launcher, clock=clock)
    matches = (
        literal(options.match)
        if options.match is not None
        else expression(options.regex)
    )
    return MatchingProcesses(
        target, spec, matches, table=table, launcher=launcher, clock=clock
    )


def spec_of(options: argparse.Namespace, place: Place) -> "Spec":
    """Return what the part is told: how processes are named, and their log."""
    spec: dict[str, Json] = {}
    if options.pid is not None:
        spec["pid"] = _pid(options.pid)
    elif options.pidfile is not None:
        spec["pidfile"] = _path("--pidfile", options.pidfile, options, place)
    else:
        name = "match" if options.match is not None else "regex"
        spec[name] = getattr(options, name)
    if options.log is not None:
        spec["log"] = {
            "path": _path("--log", options.log, options, place),
            "pass": options.passes,
            "fail": options.fails,
            "stalled_s": _stalled_s(options.stalled),
            "from_start": options.from_start,
        }
    return spec


class FarProcesses:
    """The part of processes on a host; its expressions run here, within a limit."""

    def __init__(self, regex: str | None, clock: Clock) -> None:
        """Match by `regex`, if there is one, else by the text of the target."""
        self._regex = regex
        self._clock = clock

    def ask(self, spec: "Spec", memory: Memory) -> list["Request"]:
        """Return what to read."""
        from watcher.onhost import process as part  # noqa: PLC0415 - start-up time

        return list(part.ask(spec, memory))

    def judge(
        self,
        spec: "Spec",
        memory: Memory,
        answers: Sequence["Answer"],
        now: Mapping[str, float],
    ) -> Mapping[str, Json]:
        """Return what was seen."""
        from watcher.onhost import process as part  # noqa: PLC0415 - start-up time

        matches = (
            part.matcher(spec)
            if self._regex is None
            else quick(self._regex, self._clock)
        )
        seen: Mapping[str, Json] = part.judged(spec, memory, answers, now, matches)
        return seen

    def follows(self, spec: "Spec", memory: Memory) -> list[list[int]]:
        """Return the processes whose end is a reason to look."""
        from watcher.onhost import process as part  # noqa: PLC0415 - start-up time

        return part.follows(spec, memory)


def literal(text: str) -> Callable[[str], bool]:
    """Return a matcher of literal text.

    Raises:
        UsageError: the text is empty, which would match everything.
    """
    _check_text(text)
    return lambda command: text in command


def expression(pattern: str) -> Callable[[str], bool]:
    """Return a matcher of a Python regular expression, searched in the command line.

    The module `re` says whether it is one; `regex` runs it, since it can be given a
    time limit and lets other threads run meanwhile.

    Raises:
        UsageError: it does not compile, or it is empty.
    """
    _check_expression(pattern)
    import regex  # noqa: PLC0415 - only for --regex, 16 ms

    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        raise UsageError(phrase("bad_regex", error=str(error))) from error
    return lambda command: (
        compiled.search(command, timeout=_REGEX_LIMIT_S, concurrent=True) is not None
    )


def quick(pattern: str, clock: Clock) -> Callable[[str], bool]:
    """Return a matcher with a time limit for all its searches together.

    The table of a host is judged on the event loop, which others need too.
    """
    import regex  # noqa: PLC0415 - only for --regex, 16 ms

    compiled = regex.compile(pattern)
    end_s = clock.awake() + _REGEX_LIMIT_S

    def matches(command: str) -> bool:
        left_s = end_s - clock.awake()
        if left_s <= 0:
            raise TimeoutError
        return compiled.search(command, timeout=left_s) is not None

    return matches


def _log_words(options: argparse.Namespace, place: Place) -> list[str]:
    """Return the canonical words of the log, having checked them."""
    if options.log is None:
        for name, option in _ONLY_WITH_LOG.items():
            if getattr(options, name) not in {None, False}:
                raise UsageError(phrase("log_idle", name=option))
        return []
    if (options.passes, options.fails, options.stalled) == (None, None, None):
        raise UsageError(phrase("log_needs_marker"))
    for pattern in (options.passes, options.fails):
        if pattern is not None:
            _check_expression(pattern)
    return log_options(
        _path("--log", options.log, options, place),
        passes=options.passes,
        fails=options.fails,
        stalled_s=_stalled_s(options.stalled),
        from_start=options.from_start,
    )


def _stalled_s(text: str | None) -> int | None:
    try:
        return None if text is None else parse_duration(text)
    except ValueError as error:
        why = phrase("bad_duration", name="--stalled", value=text or "''")
        raise UsageError(why) from error


def _pid(text: str) -> int:
    digits = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_PID))
    if not digits or not 0 < int(text) <= MAX_PID:
        raise UsageError(phrase("bad_pid", pid=text))
    return int(text)


def _path(name: str, text: str, options: argparse.Namespace, place: Place) -> str:
    if not is_possible_path(text):
        raise UsageError(phrase("bad_path", name=name, path=text))
    return absolute(text, place.cwd) if options.host is None else path_on_host(text)


def _check_text(text: str) -> None:
    if not text.strip():
        raise UsageError(phrase("empty_pattern"))


def _check_expression(pattern: str) -> None:
    if not pattern:
        raise UsageError(phrase("empty_pattern"))
    fault = fault_of(pattern)
    if fault is not None:
        raise UsageError(phrase("bad_regex", error=fault))
