"""The kind `file` of these tests: `file PATH [--host HOST]`."""

import argparse
import os

from policies.model import Target
from policies.target import on_host
from tests.watcher.toys import file
from watcher.conditions import Condition, Place
from watcher.looked import Looked, looked_at


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path")
    parser.add_argument("--host")


def target_of(options: argparse.Namespace, place: Place) -> Target:
    text = on_host(["file", options.path], options.host)
    label = os.path.basename(options.path)
    return Target(kind="file", text=text, label=label, host=options.host)


def build(options: argparse.Namespace, place: Place) -> Condition:
    spec = {"path": options.path}
    looked = Looked(target=target_of(options, place), part=file, spec=spec)  # type: ignore[arg-type]  # a toy's plain types
    return looked_at(looked, place)
