"""The command line. Only the command that is called is imported (C1.1 to C1.5)."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import Final, NoReturn, Protocol, TypeAlias, cast

from policies.wording import Lang, phrase
from watcher import __version__
from watcher.cli.output import write_line
from watcher.errors import UsageError

WATCHES: Final[dict[str, str]] = {
    "lock": "wait until a lock file is gone",
    "process": "wait until processes have ended",
    "port": "wait until a TCP port is free, or open",
    "file": "wait until a file is there, gone, or unchanged for a while",
    "command": "wait until a command exits with 0",
    "http": "wait until an address answers as it should",
    "wait": "wait for several conditions: any or all of them",
    "log": "wait until a log has a line that says how it went",
}
"""Kind of condition to the one line of help of the command that waits for it."""

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "list": ("watcher.cli.list", "show what is armed"),
    "show": ("watcher.cli.show", "show one watch with its evidence"),
    "history": ("watcher.cli.history", "show every watch there was"),
    "check": ("watcher.cli.check", "look once, now"),
    "report": ("watcher.cli.report", "write the history as one page, or as JSON"),
    "assess": ("watcher.cli.assess", "weigh whether to renew or remove a watch"),
    "renew": ("watcher.cli.renew", "give a watch a new deadline"),
    "remove": ("watcher.cli.remove", "end a watch and say why"),
    "ack": ("watcher.cli.ack", "mark an outcome as read"),
    "handoff": ("watcher.cli.handoff", "leave the state for the next session"),
    "hook": ("watcher.cli.hook", "answer an event of a coding agent"),
    "serve": ("watcher.cli.serve", "run the service in the foreground"),
    "page": ("watcher.cli.page", "print the address that opens the page, once"),
    "doctor": ("watcher.cli.doctor", "say what is not as it should be, and the cure"),
    "selftest": ("watcher.cli.selftest", "try the whole way, and say how long it took"),
    "mcp": ("watcher.cli.mcp", "offer it all to a coding agent, as an MCP server"),
    "statusline": ("watcher.cli.statusline", "print a coding agent's status line"),
    "outbox": ("watcher.cli.outbox", "show the pings that are not delivered"),
    "install": ("watcher.cli.install", "register with a coding agent"),
    "uninstall": ("watcher.cli.uninstall", "take out what install has put in"),
    "completion": ("watcher.cli.completion", "print the completion of a shell"),
}
"""Command to its module and its one line of help."""

_BUILT_IN = (*WATCHES, *COMMANDS)
_FOREIGN = "wait for a condition that another package brings"

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
    called = next((word for word in argv if not word.startswith("-")), "")
    parser, commands = _program()
    command: Command | None = None
    for name in _offered(called, argv):
        sub = _add(commands, name)
        if name == called:
            command = _command(name)
            command.add_arguments(sub)
    options = parser.parse_args(argv)
    if command is None:  # argparse has refused it already
        raise UsageError(phrase("see_help", what=called, program=parser.prog))
    return command, options


def whole_parser() -> Parser:
    """Return the parser of every command with all arguments, which costs its time."""
    parser, commands = _program()
    for name in (*_BUILT_IN, *_foreign_names()):
        _command(name).add_arguments(_add(commands, name))
    return parser


_Commands: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001 - a type


def _program() -> tuple[Parser, _Commands]:
    parser = Parser(prog="koder-monitor", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=__version__)
    return parser, parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True
    )


def _add(commands: _Commands, name: str) -> Parser:
    told = COMMANDS[name][1] if name in COMMANDS else WATCHES.get(name, _FOREIGN)
    return commands.add_parser(name, help=told, description=told)


def _offered(called: str, argv: Sequence[str]) -> Sequence[str]:
    """Return the commands that a call may mean; all where it means none or asks.

    What other distributions add is looked up only for a name that we do not have, and
    for help: it costs more than to start.
    """
    if called in _BUILT_IN:
        return (called,)
    if not called and not {"-h", "--help"}.intersection(argv):
        return _BUILT_IN
    foreign = _foreign_names()
    return (called,) if called in foreign else (*_BUILT_IN, *foreign)


def _foreign_names() -> list[str]:
    from watcher.conditions import kind_names  # noqa: PLC0415 - start-up time

    return [name for name in kind_names() if name not in _BUILT_IN]


def _command(name: str) -> Command:
    if name in COMMANDS:
        return cast("Command", import_module(COMMANDS[name][0]))
    watch = import_module("watcher.cli.watch")
    return cast("Command", watch.WatchCommand(name))


def language_of(argv: Sequence[str]) -> Lang:
    """Return the language that a call asks for, even one that is wrong otherwise."""
    english = "--lang=en" in argv or ("--lang", "en") in pairwise(argv)
    return Lang.EN if english else Lang.PT


def arguments() -> list[str]:
    """Return the words of the call without the program's name."""
    return sys.argv[1:]
