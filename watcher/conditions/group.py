"""`wait`: several conditions, of which any or all must clear (C1.2, C3.6)."""

import argparse
from collections.abc import Sequence

from policies.model import Target
from policies.target import wait_target
from policies.together import Need
from policies.wording import phrase
from watcher.conditions import Condition, Place
from watcher.errors import UsageError
from watcher.targets import condition_of
from watcher.targets import target_of as member_of

_MOST = 64  # members: each may cost a thread


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how many of what must clear."""
    need = parser.add_mutually_exclusive_group(required=True)
    for name, help_text in (
        (Need.ANY, "until the first of them is clear"),
        (Need.ALL, "until all of them are clear at the same look"),
    ):
        need.add_argument(
            f"--{name}", dest="need", action="store_const", const=name, help=help_text
        )
    parser.add_argument(
        "targets",
        metavar="TARGET",
        nargs="+",
        help="a watch's own command line as one argument, such as 'lock a'",
    )


def target_of(options: argparse.Namespace, place: Place) -> Target:
    """Return the target of several; the errors are those of its members."""
    return wait_target(options.need, _members(options.targets, place))


def build(options: argparse.Namespace, place: Place) -> Condition:
    """Return the condition that looks at all members."""
    from watcher.grouped import Grouped  # noqa: PLC0415 - start-up time

    members = {member.text: member for member in _members(options.targets, place)}
    target = wait_target(options.need, members.values())
    return Grouped(
        target,
        options.need,
        [condition_of(text, place) for text in sorted(members)],
    )


def _members(texts: Sequence[str], place: Place) -> list[Target]:
    if len(texts) > _MOST:
        why = phrase("too_many_targets", count=len(texts), most=_MOST)
        raise UsageError(why)
    members = [member_of(text, place) for text in texts]
    for member in members:
        if member.kind == "wait":
            raise UsageError(phrase("nested_wait", target=member.text))
    return members
