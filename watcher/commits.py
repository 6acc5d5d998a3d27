"""Which commits touched a component, asked of git without letting it do anything."""

import os
import subprocess  # noqa: TID251 - asked on a thread that waits for this alone
from collections.abc import Sequence
from typing import NamedTuple

from watcher.limited import LOOK_LIMIT_S, within

GIT_LIMIT_S = 3.0
"""So long may git walk the history."""

_MOST_COMMITS = 1000
_MOST_PATHS = 50  # of one lock


class Commit(NamedTuple):
    """A commit, and when it was made in whole seconds since the epoch."""

    made_s: int
    id: str


def commits_since(
    folder: str, paths: Sequence[str], from_s: float
) -> list[Commit] | None:
    """Return the commits that touched the paths of a project, or None for unknown.

    `git rev-list` walks as `git log` does, without its settings: no pager, no program
    that checks signatures. All local branches count: a session may have its own.

    Args:
        folder: of the project, where git's own folder must be.
        paths: globs relative to it; a folder covers what is in it (C11.2).
        from_s: seconds since the epoch.
    """
    specs = [spec for path in paths[:_MOST_PATHS] for spec in _pathspecs(path)]
    if not specs:
        return None
    call = ["git", "-c", "core.fsmonitor=false", "-C", folder, "rev-list"]
    call += [f"--max-age={int(from_s)}", f"--max-count={_MOST_COMMITS}", "--timestamp"]
    call += ["--branches", "HEAD", "--", *specs]
    try:
        # The outer limit is for a git that cannot even be killed.
        said = within(GIT_LIMIT_S + LOOK_LIMIT_S, lambda: _ask(call, folder))
        words = [line.split() for line in said.decode("ascii").splitlines()]
        return [Commit(int(made), name) for made, name in words]
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def _ask(call: Sequence[str], folder: str) -> bytes:
    return subprocess.run(  # noqa: S603 - no shell; foreign paths stand behind --
        call,
        check=True,
        env=_environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=GIT_LIMIT_S,
    ).stdout


def _environment(folder: str) -> dict[str, str]:
    """Return our environment with git's variables replaced: git(1).

    The list of allowed protocols names none that exists, so that git cannot even fetch
    what a partial clone left out; the ceiling keeps it from taking a repository further
    up for this project's.
    """
    kept = {name: v for name, v in os.environ.items() if not name.startswith("GIT_")}
    return kept | {
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_CEILING_DIRECTORIES": folder.rpartition("/")[0] or "/",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }


def _pathspecs(path: str) -> tuple[str, ...]:
    """Return what git calls a path and all that is in it; none for one outside."""
    parts = [part for part in path.split("/") if part not in {"", "."}]
    if path.startswith("/") or ".." in parts or "\0" in path or not parts:
        return ()
    inside = "/".join(parts)
    return f":(glob){inside}", f":(glob){inside}/**"
