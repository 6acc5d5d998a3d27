"""The command line. Only the command that is called is imported (C1.1 to C1.5)."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import Final, NoReturn, Protocol, cast

from policies.wording import Lang, phrase
from watcher import __version__
from watcher.cli.output import write_line
from watcher.errors import UsageError

WATCHES: Final[dict[str, str]] = {
    "lock": "wait until a lock file is gone",
    "process": "wait until processes have ended",
}
"""Kind of condition to the one line of help of the command that waits for it."""

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "list": ("watcher.cli.list", "show what is armed"),
    "show": ("watcher.cli.show", "show one watch with its evidence"),
    "history": ("watcher.cli.history", "show every watch there was"),
    "check": ("watcher.cli.check", "look once, now"),
    "assess": ("watcher.cli.assess", "weigh whether to renew or remove a watch"),
    "renew": ("watcher.cli.renew", "give a watch a new deadline"),
    "remove": ("watcher.cli.remove", "end a watch and say why"),
    "ack": ("watcher.cli.ack", "mark an outcome as read"),
    "serve": ("watcher.cli.serve", "run the service in the foreground"),
    "doctor": ("watcher.cli.doctor", "say what is not as it should be, and the cure"),
    "outbox": ("watcher.cli.outbox", "show the pings that are not delivered"),
}
"""Command to its module and its one line of help."""

_DESCRIPTION = """\
Wait for something that clears by itself, say once how it ended, and ping the operator.
Every watch has a deadline. Run it in the background; it ends with one line on stdout.
"""


class Command(Protocol):
    """A command: a module of `watcher.cli`, or a watch command."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""

    def run(self, options: argparse.Namespace) -> int:
        """Carry it out and return the exit status."""


class _Help(argparse.HelpFormatter):
    """Lines of a fixed width: to ask the terminal costs every command an import."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=80)


class Parser(argparse.ArgumentParser):
    """Tells a wrong call by an exception, in one line, and takes no abbreviations."""

    def __init__(self, **kwargs: object) -> None:
        """Pass everything on."""
        super().__init__(allow_abbrev=False, formatter_class=_Help, **kwargs)  # type: ignore[arg-type]  # argparse's own keywords, passed through

    def error(self, message: str) -> NoReturn:
        """Refuse the call.

        Raises:
            UsageError: always.
        """
        raise UsageError(phrase("see_help", what=message, program=self.prog))

    def _print_message(self, message: str, file: object = None) -> None:  # noqa: ARG002
        """Write help and version; whoever has stopped reading leaves no traceback."""
        write_line(1, message.rstrip("\n"))


def parse(argv: Sequence[str]) -> tuple[Command, argparse.Namespace]:
    """Return the command that is called and its options.

    Raises:
        UsageError: the call is wrong.
    """
    parser = Parser(prog="koder-monitor", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    called = next((word for word in argv if not word.startswith("-")), "")
    command: Command | None = None
    known = (*WATCHES, *COMMANDS)
    for name in (called,) if called in known else known:
        help_text = WATCHES[name] if name in WATCHES else COMMANDS[name][1]
        sub = commands.add_parser(name, help=help_text, description=help_text)
        if name == called:
            command = _command(name)
            command.add_arguments(sub)
    options = parser.parse_args(argv)
    if command is None:  # argparse has refused it already
        raise UsageError(phrase("see_help", what=called, program=parser.prog))
    return command, options


def _command(name: str) -> Command:
    if name in WATCHES:
        watch = import_module("watcher.cli.watch")
        return cast("Command", watch.WatchCommand(name))
    return cast("Command", import_module(COMMANDS[name][0]))


def language_of(argv: Sequence[str]) -> Lang:
    """Return the language that a call asks for, even one that is wrong otherwise."""
    english = "--lang=en" in argv or ("--lang", "en") in pairwise(argv)
    return Lang.EN if english else Lang.PT


def arguments() -> list[str]:
    """Return the words of the call without the program's name."""
    return sys.argv[1:]
