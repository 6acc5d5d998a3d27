"""`koder-monitor ack ID`."""

import argparse

from policies.wording import phrase
from watcher.cli.lifecycle import add_id, ask, told


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the watch that is meant."""
    add_id(parser)


def run(options: argparse.Namespace) -> int:
    """Mark the outcomes of a watch as read (C9.4)."""
    watch = ask("POST", options.id, "/ack")
    return told(options, phrase("acknowledged", id=str(watch["id"])))
