"""Where koder-monitor keeps things: the platform's user directories (C5.1).

By hand, since platformdirs would cost every hook and status line more than this.
Sources: XDG Base Directory Specification 0.8; Apple's File System Programming Guide.
"""

import os
import sys
from collections.abc import Mapping

from watcher.errors import UsageError

_NAME = "koder-monitor"


def _user_directory(env: Mapping[str, str], variable: str, default: str) -> str:
    home = os.path.expanduser("~")
    if sys.platform == "darwin":
        return f"{home}/Library/Application Support/{_NAME}"
    base = env.get(variable, "")
    # The specification has relative paths ignored.
    return f"{base}/{_NAME}" if base.startswith("/") else f"{home}/{default}/{_NAME}"


def state_directory(env: Mapping[str, str]) -> str:
    """Return the state directory; `KODER_MONITOR_STATE` overrides it.

    Raises:
        UsageError: it is relative to a current directory that was deleted.
    """
    asked = env.get("KODER_MONITOR_STATE", "")
    if not asked:
        return _user_directory(env, "XDG_STATE_HOME", ".local/state")
    try:
        return os.path.abspath(asked)
    except OSError as error:
        from policies.wording import phrase  # noqa: PLC0415 - start-up time

        raise UsageError(phrase("no_cwd")) from error


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
