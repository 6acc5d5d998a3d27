"""A lock is had, or given up in time."""

import os
import subprocess
import sys
import time
from pathlib import Path

from watcher.file_lock import locked


def opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def test_it_is_ours_until_it_is_closed(tmp_path: Path) -> None:
    first, second = opened(tmp_path / "lock"), opened(tmp_path / "lock")
    try:
        assert locked(first, limit_s=0.0)
        assert not locked(second, limit_s=0.0)
        os.close(first)
        assert locked(second, limit_s=0.0)
    finally:
        os.close(second)


def test_it_is_had_once_another_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    program = (
        "import fcntl, sys, time; f = open(sys.argv[1], 'w');"
        " fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); time.sleep(0.3)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-S", "-c", program, path], stdout=subprocess.PIPE
    )
    mine = opened(path)
    try:
        assert holder.stdout
        holder.stdout.readline()
        assert not locked(mine, limit_s=0.0)
        assert locked(mine, limit_s=60.0)
    finally:
        os.close(mine)
        holder.communicate(timeout=60)


def test_it_is_not_waited_for_without_end(tmp_path: Path) -> None:
    kept, mine = opened(tmp_path / "lock"), opened(tmp_path / "lock")
    try:
        assert locked(kept, limit_s=0.0)
        began_s = time.monotonic()
        assert not locked(mine, limit_s=0.1)
        assert time.monotonic() - began_s >= 0.1
    finally:
        os.close(kept)
        os.close(mine)
