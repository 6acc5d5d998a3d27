"""What lives on when a person logs out of this host, and how to start something so.

Measured on systemd 252 with logind: with `KillUserProcesses=yes` only a unit of a user
who lingers survives; without it a session of its own does. A unit of a user who does
not linger dies with the last session. Lingering is the user's to turn on, not ours.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time

from watcher.onhost import folder as folders

_SYSTEMD = "/run/systemd/system"  # sd_booted(3)
_ASK_LIMIT_S = 1.0
_ALIVE_LIMIT_S = 3.0  # a healthy host takes 50 ms; a later one is found by a contact
_TURN_S = 0.02


def spawn(folder: str, watch_id: str) -> str:
    """Start the program of a folder: as a user unit where that survives, else apart.

    Returns:
        `unit` or `session`; whether it lives is the folder's to say.
    """
    program = os.path.join(folder, folders.PROGRAM)
    command = [_python(), "-I", "-S", program, folder]
    if has_systemd() and lingers() and _started_unit(command, watch_id):
        return "unit"
    with open(os.path.join(folder, "log"), "ab") as log:
        os.chmod(log.fileno(), 0o600)
        child = subprocess.Popen(  # noqa: S603 - its words are ours
            [*command, "apart"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd="/",
            start_new_session=True,
        )
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(_ALIVE_LIMIT_S)  # it forks at once and ends
    return "session"


def comes_alive(folder: str) -> bool:
    """Wait until the watcher of a folder is alive, or has ended already."""
    until = time.monotonic() + _ALIVE_LIMIT_S
    while time.monotonic() < until:
        if folders.is_alive(folder) or folders.read_json(folder, "outcome.json"):
            return True
        time.sleep(_TURN_S)
    return False


def fate(how: str) -> str:
    """Return what becomes of what was started so: `lives`, `dies` or `unknown`."""
    if how == "unit" or not has_systemd():
        return "lives"
    kills = kills_user_processes()
    if kills is None:
        return "unknown"
    return "dies" if kills else "lives"


def stop_unit(watch_id: str) -> None:
    """Stop a unit, so that systemd does not start it again."""
    _said(["systemctl", "--user", "stop", unit_of(watch_id)])


def has_systemd() -> bool:
    """Say whether systemd, and with it most likely logind, runs this host."""
    return os.path.isdir(_SYSTEMD)


def lingers() -> bool:
    """Say whether what belongs to this user runs on without a session."""
    said = _said(["loginctl", "show-user", str(os.getuid()), "-p", "Linger"])
    return said == "Linger=yes"


def kills_user_processes() -> bool | None:
    """Say whether logind ends what a session leaves behind; None where it is silent."""
    said = _said(
        [
            "busctl",
            "get-property",
            "org.freedesktop.login1",
            "/org/freedesktop/login1",
            "org.freedesktop.login1.Manager",
            "KillUserProcesses",
        ]
    )
    return {"b true": True, "b false": False}.get(said or "")


def unit_of(watch_id: str) -> str:
    """Return the name of a watch's unit."""
    return f"koder-monitor-{watch_id}"


def _started_unit(command: list[str], watch_id: str) -> bool:
    # A bus that is not there makes it fail, and the other way is taken.
    said = _said(
        [
            "systemd-run",
            "--user",
            "--collect",
            "--quiet",
            f"--unit={unit_of(watch_id)}",
            "--property=Restart=on-failure",
            "--property=RestartSec=5",
            "--",
            *command,
        ]
    )
    return said is not None


def _said(command: list[str]) -> str | None:
    """Return what a program prints, None where it fails, hangs or is not there."""
    if shutil.which(command[0]) is None:
        return None
    env = dict(os.environ)
    env.setdefault("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    try:
        done = subprocess.run(  # noqa: S603 - its words are ours
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=env,
            timeout=_ASK_LIMIT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _python() -> str:
    return sys.executable or shutil.which("python3") or "python3"
