"""`koder-monitor serve`: the service in the foreground, or on demand behind it all."""

import argparse
import contextlib
import os
from dataclasses import replace

from policies.target import is_possible_path
from policies.wording import phrase
from watcher.config import Config, load_config
from watcher.errors import UsageError
from watcher.loopback import parse_listen

_LOG_LIMIT = 1 << 20  # bytes of a log that is kept beside a new one
_NOT_OURS = (
    "CLAUDE_CODE_SESSION_ID",
    "KODER_MONITOR_SESSION",
    "NOTIFY_SOCKET",
    "TTL",
    "TZ",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add where it listens; `[serve]` says it for good."""
    parser.add_argument("--socket", metavar="PATH", help="where its socket lies")
    parser.add_argument(
        "--listen",
        metavar="127.0.0.1:PORT",
        help="answer over HTTP too, to whoever has the token",
    )
    parser.add_argument("--on-demand", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    """Host watches until told to stop."""
    if options.on_demand and os.fork():
        os._exit(0)  # our parent goes on; we are nobody's child (C5.3)
    config = _asked(load_config(os.environ), options)
    if options.on_demand:
        _let_go(keep=options.ready_fd)
        _settle_down(config)
    from watcher.serve.main import serve  # noqa: PLC0415 - behind the fork

    serve(config, on_demand=options.on_demand, ready_fd=options.ready_fd)
    return 0


def _asked(config: Config, options: argparse.Namespace) -> Config:
    """Return the settings with what the command line says of `[serve]`.

    Raises:
        UsageError: it is no path, or no address of this machine.
    """
    asked = {}
    if options.socket is not None:
        if not options.socket or not is_possible_path(options.socket):
            raise UsageError(phrase("bad_path", name="--socket", path=options.socket))
        asked["socket"] = os.path.abspath(options.socket)
    if options.listen is not None:
        parse_listen(options.listen, "--listen")
        asked["listen"] = options.listen
    return replace(config, serve=replace(config.serve, **asked))


def _let_go(keep: int | None) -> None:
    """Close what was inherited, but for one descriptor.

    Else a pipe of whoever started us would never end, and a lock of theirs (`flock 9`)
    would be held for as long as we live.
    """
    for fd in map(int, os.listdir("/dev/fd")):
        if fd > 2 and fd != keep:
            with contextlib.suppress(OSError):  # the listing's own is closed by now
                os.close(fd)


def _settle_down(config: Config) -> None:
    """Keep nothing of whoever started us: not its folder, session, zone or output."""
    for name in _NOT_OURS:
        os.environ.pop(name, None)
    os.chdir("/")
    os.makedirs(config.state, mode=0o700, exist_ok=True)
    path = f"{config.state}/service.log"
    if os.path.exists(path) and os.path.getsize(path) > _LOG_LIMIT:
        os.replace(path, f"{path}.1")
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
