"""Leaves no service behind: a command under test may have started one."""

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_LIMIT_S = 10.0


def service_pid(state: Path) -> int | None:
    """Return the PID of the service of a state directory, if one runs."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        pid = int(json.loads((state / "service.lock").read_text())["pid"])
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        if b"watcher" in command and b"serve" in command:
            return pid
    return None


def stop_services(below: Path) -> None:
    """Stop every service whose state directory lies below a folder."""
    for lock in below.rglob("service.lock"):
        pid = service_pid(lock.parent)
        if pid is None:
            continue
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, signal.SIGTERM)
        end_s = time.monotonic() + _LIMIT_S
        while Path(f"/proc/{pid}").exists() and time.monotonic() < end_s:
            time.sleep(0.01)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
