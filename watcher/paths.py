"""Where koder-monitor keeps things: the platform's user directories (C5.1).

By hand, since platformdirs would cost every hook and status line more than this.
Sources: XDG Base Directory Specification 0.8; Apple's File System Programming Guide.
"""

import os
import sys
from collections.abc import Mapping

_NAME = "koder-monitor"


def _user_directory(env: Mapping[str, str], variable: str, default: str) -> str:
    home = os.path.expanduser("~")
    if sys.platform == "darwin":
        return f"{home}/Library/Application Support/{_NAME}"
    base = env.get(variable, "")
    # The specification has relative paths ignored.
    return f"{base}/{_NAME}" if base.startswith("/") else f"{home}/{default}/{_NAME}"


def state_directory(env: Mapping[str, str]) -> str:
    """Return the state directory; `KODER_MONITOR_STATE` overrides it."""
    asked = env.get("KODER_MONITOR_STATE", "")
    return (
        os.path.abspath(asked)
        if asked
        else _user_directory(env, "XDG_STATE_HOME", ".local/state")
    )


def config_file(env: Mapping[str, str]) -> str:
    """Return the configuration file; `KODER_MONITOR_CONFIG` overrides it."""
    asked = env.get("KODER_MONITOR_CONFIG", "")
    return asked or _user_directory(env, "XDG_CONFIG_HOME", ".config") + "/config.toml"


def project_directory(cwd: str) -> str:
    """Return the git root of a folder, else the folder itself."""
    folder = cwd
    while folder != "/":
        if os.path.exists(f"{folder}/.git"):
            return folder
        folder = folder.rpartition("/")[0] or "/"
    return cwd
