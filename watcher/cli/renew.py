"""`koder-monitor renew ID --ttl D [--why TEXT]`."""

import argparse

from policies.duration import format_minutes, parse_duration
from policies.wording import phrase
from watcher.cli.lifecycle import add_id, ask, told
from watcher.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the new deadline and its reason."""
    add_id(parser)
    parser.add_argument(
        "--ttl", metavar="DURATION", required=True, help="the new deadline, from now"
    )
    parser.add_argument(
        "--why",
        metavar="TEXT",
        help="why to go on; needed when the last assessment showed no progress",
    )


def run(options: argparse.Namespace) -> int:
    """Give everybody who still waits more time; revive a watch just expired."""
    try:
        ttl_s = parse_duration(options.ttl)
    except ValueError as error:
        name, value = "--ttl", options.ttl
        raise UsageError(phrase("bad_duration", name=name, value=value)) from error
    body = {"ttl_s": ttl_s, "why": options.why}
    watch = ask("POST", options.id, "/renew", body)
    done = phrase("renewed", id=str(watch["id"]), ttl=format_minutes(ttl_s))
    return told(options, done)
