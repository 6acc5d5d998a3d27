"""A command: until it exits with 0 (C1.2).

It is run with each look, so it must only look, and bear being run twice in a row.
"""

import argparse
from collections.abc import Sequence
from typing import cast

from policies.model import Target
from policies.target import (
    absolute,
    command_target,
    is_possible_path,
    is_possible_word,
    path_on_host,
)
from policies.wording import phrase
from watcher.conditions import Condition, Place, add_host, host_of
from watcher.errors import UsageError

_SLACK_S = 1.5  # a run that is cut short at the deadline has shown nothing (C3.7)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what a command is named by: behind `--`, all words are its own."""
    parser.add_argument(
        "--in",
        dest="folder",
        metavar="DIR",
        help="run it there (default: the current folder; on a host the home folder)",
    )
    add_host(parser)
    parser.add_argument(
        "argv",
        metavar="-- ARGV",
        nargs=argparse.REMAINDER,
        help="the program and its arguments, run without a shell",
    )


def target_of(options: argparse.Namespace, place: Place) -> Target:
    """Return the target of a command."""
    host = host_of(options)
    argv = _argv(options.argv, host, place)
    return command_target(argv, host, _folder(options.folder, host, place))


def build(options: argparse.Namespace, place: Place) -> Condition:
    """Return the condition of a command."""
    from watcher.looked import Looked, Part, looked_at  # noqa: PLC0415 - asyncio
    from watcher.onhost import command as part  # noqa: PLC0415 - whoever looks needs it

    target = target_of(options, place)
    argv = _argv(options.argv, target.host, place)
    limit_s = part.LIMIT_S if target.host is None else part.FAR_LIMIT_S
    folder = _folder(options.folder, target.host, place)
    usual = "/" if target.host is None else "~/."
    what = Looked(
        target=target,
        part=cast("Part", part),
        spec={"argv": argv, "limit_s": limit_s, "cwd": folder or usual},
        last_limit_s=limit_s + _SLACK_S,
    )
    return looked_at(what, place)


def _folder(named: str | None, host: str | None, place: Place) -> str | None:
    """Return where it runs; None for what needs no mention.

    Raises:
        UsageError: it can be no folder.
    """
    if named is not None and not is_possible_path(named):
        raise UsageError(phrase("bad_path", name="--in", path=named))
    if host is not None:
        return None if named in {None, "~", "."} else path_on_host(str(named))
    folder = absolute(named or "", place.cwd)
    return None if folder == "/" else folder


def _argv(words: Sequence[str], host: str | None, place: Place) -> list[str]:
    """Return the argument list; a relative program is that of this directory.

    Raises:
        UsageError: there is none, or it cannot be one.
    """
    mark, program, *rest = [*words, "", ""][: max(len(words), 2)]
    if mark != "--" or not program:
        raise UsageError(phrase("no_command"))
    if not all(map(is_possible_word, words)):
        raise UsageError(phrase("bad_command", program=program))
    if "/" in program:
        found = path_on_host(program) if host else absolute(program, place.cwd)
        return [found, *rest]
    return [program, *rest]
