"""`koder-monitor lock SLUG|PATH`."""

import argparse
import os

from policies.target import absolute, is_possible_path, is_slug, lock_file, lock_target
from policies.wording import phrase
from watcher.cli.common import add_common, order_of, working_directory
from watcher.cli.waiting import wait_for
from watcher.clock import SystemClock
from watcher.conditions.lock import LockCondition
from watcher.config import Config, load_config
from watcher.errors import UsageError
from watcher.paths import project_directory

DEFAULT_LOCK_DIR = "context/notices/active"
"""Below the project folder: where sessions of this house announce their locks."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what a lock is named by."""
    parser.add_argument(
        "lock",
        metavar="SLUG|PATH",
        help="a slug means lock-<slug>.md in the lock directory; "
        "anything with a '/' is a path",
    )
    add_common(parser)


def run(options: argparse.Namespace) -> int:
    """Wait until the lock is gone."""
    config = load_config(os.environ)
    order = order_of(options, config, os.environ)
    path, directory = locate(options.lock, config, working_directory())
    condition = LockCondition(lock_target(path, directory), path, clock=SystemClock())
    return wait_for(condition, order, config)


def locate(text: str, config: Config, cwd: str) -> tuple[str, str]:
    """Return the absolute path that a slug or path means, and the lock directory.

    Raises:
        UsageError: it is neither, or there is no directory to look for a slug in.
    """
    directory = lock_directory(config, cwd)
    if "/" in text:
        if text.endswith("/"):
            raise UsageError(phrase("is_directory", path=text))
        if not is_possible_path(text):
            raise UsageError(phrase("bad_path", name="lock", path=text))
        return absolute(text, cwd), directory
    if not is_slug(text):
        raise UsageError(phrase("bad_slug", slug=text))
    if config.locks.dir is None and not os.path.isdir(directory):
        raise UsageError(phrase("no_lock_dir", path=directory))
    return f"{directory.rstrip('/')}/{lock_file(text)}", directory


def lock_directory(config: Config, cwd: str) -> str:
    """Return the absolute lock directory; a relative one is the project folder's."""
    chosen = os.path.expanduser(config.locks.dir or DEFAULT_LOCK_DIR)
    return absolute(chosen, project_directory(cwd))
