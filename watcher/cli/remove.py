"""`koder-monitor remove ID --why TEXT`."""

import argparse

from policies.wording import phrase
from watcher.cli.lifecycle import add_id, ask, told


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the reason, which is announced."""
    add_id(parser)
    parser.add_argument(
        "--why", metavar="TEXT", required=True, help="told to everybody who waits"
    )


def run(options: argparse.Namespace) -> int:
    """End a watch; its waiters say why, nobody is pinged (C9.3)."""
    watch = ask("DELETE", options.id, body={"why": options.why})
    return told(options, phrase("removed", id=str(watch["id"])))
