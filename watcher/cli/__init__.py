"""The command `koder-monitor`.

What it needs is imported inside `main`, so that Ctrl-C meanwhile leaves no traceback.
"""

import gc
import sys

EXIT_USAGE = 2
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130

_QUICK = {"hook": "watcher.cli.hook", "statusline": "watcher.cli.statusline"}
"""Commands that agents run all day, to the modules that answer without argparse.

Their `quick(words)` returns the exit status, or None where the parser is needed.
"""


def main() -> int:
    """Run one command and return its exit status (C1.6)."""
    try:
        return _run()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _run() -> int:
    from watcher.cli.output import secure_descriptors, secure_zone  # noqa: PLC0415

    secure_descriptors()
    secure_zone()
    if sys.argv[1:2] and sys.argv[1] in _QUICK:
        status = _quick(sys.argv[1], sys.argv[2:])
        if status is not None:
            return status
    from watcher.cli.parser import arguments, parse  # noqa: PLC0415

    argv = arguments()
    try:
        command, options = parse(argv)
        return command.run(options)
    except Exception as error:  # noqa: BLE001 - the last net: one line, never a traceback
        return _failed(error, argv)


def _quick(command: str, words: list[str]) -> int | None:
    gc.disable()  # most end before anything could be worth collecting
    try:
        module = __import__(_QUICK[command], fromlist=["quick"])
        status: int | None = module.quick(words)
    finally:
        gc.enable()
    return status


def _failed(error: Exception, argv: list[str]) -> int:
    from policies.wording import phrase  # noqa: PLC0415
    from watcher.cli.output import fail  # noqa: PLC0415
    from watcher.cli.parser import language_of  # noqa: PLC0415
    from watcher.errors import UsageError, WatcherError  # noqa: PLC0415

    if isinstance(error, WatcherError):
        what = error.phrase
    else:
        what = phrase("internal", error=f"{type(error).__name__}: {error}")
    fail("koder-monitor: " + phrase("error", what=what).render(language_of(argv)))
    return EXIT_USAGE if isinstance(error, UsageError) else EXIT_INTERNAL
