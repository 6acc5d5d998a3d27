"""Rights as another user has them, for a test that may itself run as root."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65533
"""A user and group id that nothing belongs to."""


@contextmanager
def as_another_user() -> Iterator[None]:
    """Let root give its rights up meanwhile, in all threads; others have none."""
    root = os.geteuid() == 0
    groups = os.getgroups()
    if root:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, 0)
        os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        if root:
            os.setresuid(0, 0, 0)
            os.setresgid(0, 0, 0)
            os.setgroups(groups)


@contextmanager
def closed_to_others(folder: Path) -> Iterator[None]:
    """Take every right on a folder away from whoever looks at it meanwhile."""
    folder.chmod(0)
    try:
        with as_another_user():
            yield
    finally:
        folder.chmod(0o755)


@contextmanager
def open_folder() -> Iterator[Path]:
    """Give a folder that every user can reach; those of pytest are its user's own."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def open_files() -> int:
    """Return how many descriptors this process has open."""
    return len(os.listdir("/proc/self/fd"))
