"""What the commands that change a watch share: find it, ask the service, show it."""

import argparse
import os
from collections.abc import Mapping
from typing import cast

from policies.codec import phrase_of
from policies.model import Json
from policies.wording import Lang, Phrase, phrase
from watcher.cli.output import tell
from watcher.cli.reading import add_lang, language
from watcher.client import Client, NotThereError, start_service
from watcher.config import load_config
from watcher.errors import ServiceError, UsageError

_HOST_LIMIT_S = 30.0  # a host may have to be reached first


def add_id(parser: argparse.ArgumentParser) -> None:
    """Add the watch that is meant, and the language."""
    parser.add_argument("id", metavar="ID", help="the watch; any unique prefix")
    add_lang(parser)


def ask(
    method: str,
    watch_id: str,
    action: str = "",
    body: Mapping[str, object] | None = None,
) -> Mapping[str, Json]:
    """Ask the service, started where there is none, to do something to a watch.

    Raises:
        UsageError: there is no such watch, or it refuses and says why.
        ServiceError: there is none to be had.
    """
    config = load_config(os.environ)
    if not watch_id.isalnum() or not watch_id.isascii():
        raise UsageError(phrase("no_watch", id=watch_id))
    client, path = Client(config.state), f"/v1/watches/{watch_id}{action}"
    try:
        try:
            _, answer = client.request(method, path, body)
        except NotThereError:
            raise
        except ServiceError:
            start_service(config.state, wait=True)
            _, answer = client.request(method, path, body)
    except NotThereError as error:
        raise UsageError(phrase("no_watch", id=watch_id)) from error
    return cast("Mapping[str, Json]", answer)


def detached_on(host: str) -> tuple[list[Mapping[str, Json]], Phrase | None]:
    """Return what is detached on a host, and why it gave no answer, if so.

    Raises:
        UsageError: it can never be asked as it stands.
        ServiceError: there is no service to be had.
    """
    from urllib.parse import quote  # noqa: PLC0415 - start-up time

    config = load_config(os.environ)
    start_service(config.state, wait=True)
    path = f"/v1/hosts/{quote(host, safe='')}/watches"
    _, answer = Client(config.state).request("GET", path, limit_s=_HOST_LIMIT_S)
    found = cast("Mapping[str, Json]", answer)
    watches = cast("list[Mapping[str, Json]]", found["watches"])
    return watches, phrase_of(found["why"])


def told(options: argparse.Namespace, note: Phrase) -> int:
    """Say on stderr what was done, and return the exit status."""
    lang: Lang = language(options.lang, os.environ)
    tell(note.render(lang))
    return 0
