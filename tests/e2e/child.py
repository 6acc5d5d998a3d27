"""A command that reads or marks the store and ends at once, as a child process."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LIMIT_S = 20.0
"""Seconds until a test gives up on something that takes milliseconds."""

MONITOR = (sys.executable, "-m", "watcher")
JOB = (sys.executable, "-m", "watcher.cli.job")


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a command left behind."""

    status: int
    out: str
    err: tuple[str, ...]

    @property
    def objects(self) -> list[dict[str, object]]:
        """The one JSON array on stdout."""
        found = json.loads(self.out)
        assert isinstance(found, list)
        assert self.out.count("\n") == 1
        return found

    @property
    def ids(self) -> list[object]:
        return [item["id"] for item in self.objects]

    @property
    def rows(self) -> list[list[str]]:
        """The cells of the lines on stdout, parted where two blanks are."""
        return [
            [cell.strip() for cell in line.split("  ") if cell.strip()]
            for line in self.out.splitlines()
        ]


def environment(state: Path, **more: str) -> dict[str, str]:
    """Return an environment with a state directory of its own."""
    return {**os.environ, "KODER_MONITOR_STATE": str(state), **more}


def run(
    program: tuple[str, ...],
    *words: str | bytes,
    env: Mapping[str, str],
    expect: int = 0,
) -> Done:
    """Run a command to its end; whatever it wrote is UTF-8 and no traceback."""
    done = subprocess.run(
        [*program, *words],
        env=dict(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    out, err = done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
    assert "Traceback" not in out + err, err
    assert done.returncode == expect, (done.returncode, err)
    return Done(status=done.returncode, out=out, err=tuple(err.splitlines()))
