"""`koder-monitor mcp`: the six operations for a coding agent, by MCP (C11.4)."""

import argparse
import fcntl
import importlib.util
import os

from policies.wording import phrase
from watcher.cli.output import debugging
from watcher.cli.reading import add_lang
from watcher.errors import UsageError

_ABOVE_STANDARD = 3  # the first descriptor that is none of stdin, stdout, stderr


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the language, which is all there is to say."""
    add_lang(parser)


def run(options: argparse.Namespace) -> int:
    """Serve the client on stdin and stdout until it closes stdin."""
    if importlib.util.find_spec("mcp") is None:
        raise UsageError(phrase("extra_missing", extra="mcp"))
    reading, writing = take_over()
    import asyncio  # noqa: PLC0415 - behind the descriptors, whatever imports print
    import logging  # noqa: PLC0415

    from watcher.runtimes.mcp_server import serve  # noqa: PLC0415 - an extra

    logging.basicConfig(level=logging.DEBUG if debugging() else logging.WARNING)
    asyncio.run(serve(reading, writing, options.lang))
    return 0


def take_over() -> tuple[int, int]:
    """Return stdin and stdout under numbers of our own, which no child inherits.

    What is printed from now on goes to stderr, and who reads stdin finds nothing.
    """
    reading = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, _ABOVE_STANDARD)
    writing = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, _ABOVE_STANDARD)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return reading, writing
