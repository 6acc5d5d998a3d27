"""The command line. Only the command that is called is imported (C1.1 to C1.5)."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import Final, NoReturn, Protocol, cast

from policies.wording import Lang, phrase
from watcher import __version__
from watcher.errors import UsageError

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "lock": ("watcher.cli.lock", "wait until a lock file is gone"),
    "process": ("watcher.cli.process", "wait until processes have ended"),
}
"""Command to its module and its one line of help."""

_DESCRIPTION = """\
Wait for something that clears by itself, say once how it ended, and ping the operator.
Every watch has a deadline. Run it in the background; it ends with one line on stdout.
"""


class Command(Protocol):
    """A module of `watcher.cli` that is a command."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Carry it out and return the exit status."""


class Parser(argparse.ArgumentParser):
    """Tells a wrong call by an exception, in one line, and takes no abbreviations."""

    def __init__(self, **kwargs: object) -> None:
        """Pass everything on."""
        super().__init__(allow_abbrev=False, **kwargs)  # type: ignore[arg-type]  # argparse's own keywords, passed through

    def error(self, message: str) -> NoReturn:
        """Refuse the call.

        Raises:
            UsageError: always.
        """
        raise UsageError(phrase("see_help", what=message, program=self.prog))


def parse(argv: Sequence[str]) -> tuple[Command, argparse.Namespace]:
    """Return the command that is called and its options.

    Raises:
        UsageError: the call is wrong.
    """
    parser = Parser(prog="koder-monitor", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    called = next((word for word in argv if not word.startswith("-")), "")
    module: Command | None = None
    for name, (path, help_text) in COMMANDS.items():
        sub = commands.add_parser(name, help=help_text, description=help_text)
        if name == called:
            module = cast("Command", import_module(path))
            module.add_arguments(sub)
    options = parser.parse_args(argv)
    if module is None:  # argparse has refused it already
        raise UsageError(phrase("see_help", what=called, program=parser.prog))
    return module, options


def language_of(argv: Sequence[str]) -> Lang:
    """Return the language that a call asks for, even one that is wrong otherwise."""
    english = "--lang=en" in argv or ("--lang", "en") in pairwise(argv)
    return Lang.EN if english else Lang.PT


def arguments() -> list[str]:
    """Return the words of the call without the program's name."""
    return sys.argv[1:]
