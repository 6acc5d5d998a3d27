"""`koder-monitor completion SHELL`: the script that a shell completes our words by."""

import argparse

from watcher.cli.output import say
from watcher.cli.parser import whole_parser

_SHELLS = ("bash", "zsh", "tcsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the shell."""
    parser.add_argument("shell", choices=_SHELLS, help="whose script is wanted")


def run(options: argparse.Namespace) -> int:
    """Print the script; it is made from the very parser of all commands."""
    import shtab  # noqa: PLC0415 - start-up time of whoever imports all commands

    say(shtab.complete(whole_parser(), shell=options.shell))
    return 0
