"""`koder-monitor page`: the address that opens the page in a browser, once (C10.3)."""

import argparse
import os
from collections.abc import Mapping
from typing import cast

from policies.model import Json
from watcher.cli.output import say
from watcher.cli.reading import add_lang
from watcher.client import Client, start_service
from watcher.config import load_config
from watcher.errors import ServiceError

_PATH = "/v1/page-token"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the language of what is said."""
    add_lang(parser)


def run(options: argparse.Namespace) -> int:  # noqa: ARG001 - as every command's
    """Print an address with a token that is good once, for some minutes."""
    config = load_config(os.environ)
    client = Client(config.state)
    try:
        _, answer = client.request("POST", _PATH)
    except ServiceError:
        start_service(config.state, wait=True)
        _, answer = client.request("POST", _PATH)
    say(str(cast("Mapping[str, Json]", answer)["url"]))
    return 0
