"""The arguments of the six MCP tools, and what those of `arm` come to (C11.4).

The schemas are made of these types. An optional text is empty where there is none: a
plain type is understood by every client, a union with null is not.
"""

import argparse
import os
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from policies.wording import Phrase
from watcher.cli.common import order_of, working_directory
from watcher.conditions import KINDS, Place
from watcher.config import Config, settings_of
from watcher.paths import project_directory
from watcher.store import to_text
from watcher.targets import target_of

WAIT_LIMIT_S: Final = 45.0
"""A call waits no longer: several clients give up after 60 s."""

_TARGET = (
    "What to wait for: a koder-monitor command line without its common options, such"
    " as 'lock payments-api', 'process --pid 4711', \"process --match 'make test'\"."
    f" Kinds: {', '.join(KINDS)}."
)
_WHAT = "A watch's id (a unique prefix will do), or a target such as 'lock a'."
_ID = "The watch; a unique prefix will do."
_WAIT = (
    f"Seconds to wait for the outcome before this returns: 0 to {WAIT_LIMIT_S:g}, more"
    " counts as that."
)


class _Asked(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Arguments of a tool."""


class Arm(_Asked):
    """Arguments of `arm`."""

    target: Annotated[str, Meta(description=_TARGET)]
    ttl: Annotated[
        str,
        Meta(description="Deadline from now: 45s, 30m, 1h30m, 2d; an hour if none."),
    ] = ""
    every: Annotated[
        str, Meta(description="Look this often beside events, such as 30s.")
    ] = ""
    label: Annotated[
        str, Meta(description="What is awaited, in specific words, for people.")
    ] = ""
    resume: Annotated[
        str, Meta(description="The blocked activity to take up again.")
    ] = ""
    session: Annotated[
        str, Meta(description="Id of the session that waits, if not of this one.")
    ] = ""
    wait_s: Annotated[float, Meta(description=_WAIT)] = 0.0


class List(_Asked):
    """Arguments of `list`."""

    all: Annotated[bool, Meta(description="Also what ended within a day.")] = False


class Check(_Asked):
    """Arguments of `check`."""

    what: Annotated[str, Meta(description=_WHAT)]
    wait_s: Annotated[
        float, Meta(description=f"{_WAIT} Above 0 needs an id; at 0 it looks, now.")
    ] = 0.0


class Assess(_Asked):
    """Arguments of `assess`."""

    what: Annotated[str, Meta(description=_WHAT)]


class Renew(_Asked):
    """Arguments of `renew`."""

    id: Annotated[str, Meta(description=_ID)]
    ttl: Annotated[str, Meta(description="The new deadline, from now, such as 30m.")]
    why: Annotated[
        str, Meta(description="Why to go on; needed where assess saw no progress.")
    ] = ""


class Remove(_Asked):
    """Arguments of `remove`."""

    id: Annotated[str, Meta(description=_ID)]
    why: Annotated[str, Meta(description="Told to everybody who waits.")]


class Order(NamedTuple):
    """What `arm` asks of the service, and what to say of it."""

    key: tuple[object, ...]
    """Two orders with the same one are the same."""
    body: dict[str, object]
    notes: tuple[Phrase, ...]


def order_for(asked: Arm, config: Config, lang: str | None) -> Order:
    """Return an order, by the rules of the watch commands.

    Raises:
        UsageError: an argument will not do.
    """
    cwd = folder()
    place = Place(config=config, cwd=cwd, launcher=os.getpid())
    target = target_of(asked.target, place)
    options = argparse.Namespace(
        ttl=asked.ttl or None,
        every=asked.every or None,
        label=asked.label or None,
        resume=asked.resume,
        session=asked.session or None,
        lang=lang,
        detach=True,
        json=True,
        exit_codes=False,
    )
    order = order_of(options, config, os.environ, far=target.host is not None)
    same: dict[str, object] = {
        "target": to_text(target.text),
        "ttl_s": order.ttl_s,
        "every_s": order.every_s,
        "label": order.label and to_text(order.label),
        "resume": order.resume and to_text(order.resume),
        "session": order.session,
        "lang": order.lang,
        "project": to_text(project_directory(cwd)),
    }
    return Order(
        key=tuple(same.values()),
        body={**same, "launcher": os.getpid(), "settings": settings_of(config)},
        notes=() if order.raised is None else (order.raised,),
    )


def folder() -> str:
    """Return where relative paths start: the client's project, else our directory."""
    project = os.environ.get("CLAUDE_PROJECT_DIR", "")
    if os.path.isabs(project) and os.path.isdir(project):
        return project
    return working_directory()
