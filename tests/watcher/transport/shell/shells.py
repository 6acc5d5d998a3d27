"""Every POSIX shell of this machine, to run a script in."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

SHELLS = [
    words
    for words in (["/bin/sh"], ["dash"], ["bash", "--posix"], ["busybox", "sh"])
    if shutil.which(words[0])
]
NAMES = [" ".join(words) for words in SHELLS]


def run(
    shell: list[str],
    part: ModuleType,
    request: Mapping[str, Any],
    path: Path | None = None,
) -> dict[str, Any]:
    """Return what the script of a part answers; it may say nothing on stderr.

    Args:
        shell: the words that start it; it reads the script as a session does.
        part: a module of `watcher.transport.shell`.
        request: as a part asks.
        path: where programs are looked for first.
    """
    first = f"{path}:" if path else ""
    ended = subprocess.run(
        [*shell, "-s"],
        input=part.script(request).encode("utf-8", "surrogateescape"),
        capture_output=True,
        env={**os.environ, "PATH": f"{first}{os.environ['PATH']}", "LANG": "pt_BR"},
        timeout=60,
        check=True,
    )
    assert ended.stderr == b""
    found: dict[str, Any] = part.answer(request, ended.stdout)
    return found


def program(folder: Path, name: str, script: str) -> None:
    """Put a program of our own where it is found first."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
