"""Logs: a line that says how it went, or silence (C3.4)."""

import argparse
import os
import stat
from typing import TYPE_CHECKING, cast

from policies.duration import parse_duration
from policies.model import Json, Target
from policies.target import absolute, is_possible_path, log_target, path_on_host
from policies.wording import Phrase, phrase
from watcher.conditions import Condition, Place, add_host, host_of
from watcher.errors import UsageError
from watcher.expressions import fault_of

if TYPE_CHECKING:
    pass


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add which log, and what its lines say."""
    parser.add_argument("file", metavar="FILE", help="the log; it may not exist yet")
    parser.add_argument(
        "--pass",
        dest="passes",
        metavar="REGEX",
        help="a line that has this means success: 'PASS' is in PASSWORD too, "
        r"'^PASS$' or '\bPASS\b' is not",
    )
    parser.add_argument(
        "--fail", dest="fails", metavar="REGEX", help="a line that has this: failure"
    )
    parser.add_argument(
        "--stalled", metavar="DURATION", help="the log has not grown for so long"
    )
    parser.add_argument(
        "--from-start", action="store_true", help="lines that are there already count"
    )
    add_host(parser)


def target_of(options: argparse.Namespace, place: Place) -> Target:
    """Return the target of a log; expressions are compiled to check them."""
    if (options.passes, options.fails, options.stalled) == (None, None, None):
        raise UsageError(phrase("log_needs_marker"))
    _check_expression("--pass", options.passes)
    _check_expression("--fail", options.fails)
    return log_target(
        _path(options, place),
        passes=options.passes,
        fails=options.fails,
        stalled_s=_stalled_s(options.stalled),
        from_start=options.from_start,
        host=host_of(options),
    )


def build(options: argparse.Namespace, place: Place) -> Condition:
    """Return the condition of a log."""
    from watcher.logs import LogReader  # noqa: PLC0415
    from watcher.looked import Looked, Part, looked_at  # noqa: PLC0415 - asyncio
    from watcher.onhost import log, logfile  # noqa: PLC0415 - who only asks needs none

    target = target_of(options, place)
    path = _path(options, place)
    spec: dict[str, Json] = {
        "path": path,
        "pass": options.passes,
        "fail": options.fails,
        "stalled_s": _stalled_s(options.stalled),
        "from_start": options.from_start,
    }
    what = Looked(
        target=target,
        part=cast("Part", log),
        spec=spec,
        refuse=lambda: _no_log(path),
        readers={"log": LogReader(path, logfile.Reader())},
    )
    return looked_at(what, place)


def _path(options: argparse.Namespace, place: Place) -> str:
    path = str(options.file)
    if not is_possible_path(path):
        raise UsageError(phrase("bad_path", name="FILE", path=path))
    return absolute(path, place.cwd) if host_of(options) is None else path_on_host(path)


def _stalled_s(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError:
        why = phrase("bad_duration", name="--stalled", value=text)
        raise UsageError(why) from None


def _check_expression(name: str, regex: str | None) -> None:
    if regex is None:
        return
    if not regex:
        raise UsageError(phrase("log_regex_empty", name=name))
    fault = fault_of(regex)
    if fault is not None:
        raise UsageError(phrase("log_regex", name=name, error=fault))


def _no_log(path: str) -> Phrase | None:
    """Refuse what is there and is no file; the first look says what else is wrong."""
    try:
        regular = stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return None
    return None if regular else phrase("no_log_file", path=path)
