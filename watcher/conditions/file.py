"""A file: until it is there, gone, or has not changed for a while (C1.2)."""

import argparse
from typing import cast

from policies.duration import parse_duration
from policies.model import Json, Target
from policies.target import absolute, file_target, is_possible_path, path_on_host
from policies.wording import phrase
from watcher.conditions import (
    Condition,
    DirectoryHint,
    Hint,
    Place,
    add_host,
    host_of,
)
from watcher.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what a file is named by."""
    parser.add_argument("path", metavar="PATH", help="the file; absolute with --host")
    awaited = parser.add_mutually_exclusive_group(required=True)
    awaited.add_argument("--exists", action="store_true", help="until it is there")
    awaited.add_argument("--gone", action="store_true", help="until it is not")
    awaited.add_argument(
        "--quiet",
        metavar="DURATION",
        help="until it is there and has not changed for so long",
    )
    add_host(parser)


def target_of(options: argparse.Namespace, place: Place) -> Target:
    """Return the target of a file."""
    awaits, quiet_s = _awaits(options)
    host = host_of(options)
    return file_target(_path(options.path, host, place), awaits, quiet_s, host)


def build(options: argparse.Namespace, place: Place) -> Condition:
    """Return the condition of a file."""
    from watcher.looked import Looked, Part, looked_at  # noqa: PLC0415 - asyncio
    from watcher.onhost import file as part  # noqa: PLC0415 - whoever looks needs it

    target = target_of(options, place)
    awaits, quiet_s = _awaits(options)
    path = _path(options.path, target.host, place)
    directory, _, name = path.rpartition("/")
    spec: dict[str, Json] = {"path": path, "awaits": awaits}
    hints: tuple[Hint, ...] = (DirectoryHint(directory or "/", name),)
    if quiet_s is not None:
        spec["quiet_s"] = quiet_s
        hints = ()  # whatever changes it only makes the wait longer
    what = Looked(
        target=target,
        part=cast("Part", part),
        spec=spec,
        settle=quiet_s is None,
        group=directory or "/",
        hints=hints,
    )
    return looked_at(what, place)


def _awaits(options: argparse.Namespace) -> tuple[str, int | None]:
    """Return what is awaited of it, and the seconds of quiet.

    Raises:
        UsageError: they are no duration.
    """
    if options.quiet is None:
        return ("exists" if options.exists else "gone"), None
    try:
        return "quiet", parse_duration(options.quiet)
    except ValueError as error:
        why = phrase("bad_duration", name="--quiet", value=options.quiet)
        raise UsageError(why) from error


def _path(text: str, host: str | None, place: Place) -> str:
    """Return the absolute path.

    Raises:
        UsageError: it names no file, or is a relative one of a host.
    """
    path = absolute(text, place.cwd)
    if not text or not is_possible_path(path) or path == "/":
        raise UsageError(phrase("bad_path", name="file", path=text))
    return path if host is None else path_on_host(text)
