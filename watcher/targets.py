"""From the text of a target to what it names (C1.4)."""

import shlex
from argparse import Namespace
from collections.abc import Sequence
from functools import cache

from policies.model import Target
from policies.wording import phrase
from watcher.cli.parser import Parser
from watcher.conditions import Condition, Kind, Place, kind_names, kind_of
from watcher.errors import UsageError


def parse_target(words: str | Sequence[str]) -> tuple[Kind, Namespace]:
    """Return the kind and the options that a target's words mean.

    Raises:
        UsageError: they are no target.
    """
    if isinstance(words, str):
        try:
            words = shlex.split(text := words)
        except ValueError as error:
            why = phrase("bad_target", target=text, error=str(error))
            raise UsageError(why) from error
    name = words[0] if words else ""
    try:
        kind = kind_of(name)
    except KeyError:
        known = ", ".join(kind_names())
        raise UsageError(phrase("unknown_kind", kind=name, known=known)) from None
    return kind, _parser(name).parse_args(words[1:])


@cache
def _parser(name: str) -> Parser:
    """Build a kind's parser once: argparse looks for translations on the disk."""
    # No --help in a target: argparse would end whoever reads it, the service too.
    parser = Parser(prog=f"koder-monitor {name}", add_help=False)
    kind_of(name).add_arguments(parser)
    return parser


def target_of(words: str | Sequence[str], place: Place) -> Target:
    """Return the canonical target.

    Raises:
        UsageError: the words name nothing that can be watched.
    """
    kind, options = parse_target(words)
    return kind.target_of(options, place)


def condition_of(words: str | Sequence[str], place: Place) -> Condition:
    """Return the condition that looks at a target; errors as `target_of`."""
    kind, options = parse_target(words)
    return kind.build(options, place)
