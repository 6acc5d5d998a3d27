"""What the commands that change a watch share: find it, ask the service, show it."""

import argparse
import os
from collections.abc import Mapping
from typing import cast

from policies.model import Json
from policies.wording import Lang, Phrase, phrase
from watcher.cli.output import tell
from watcher.cli.reading import add_lang, language
from watcher.client import Client, NotThereError, start_service
from watcher.config import load_config
from watcher.errors import ServiceError, UsageError


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


def told(options: argparse.Namespace, note: Phrase) -> int:
    """Say on stderr what was done, and return the exit status."""
    lang: Lang = language(options.lang, os.environ)
    tell(note.render(lang))
    return 0
