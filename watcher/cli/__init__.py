"""The command `koder-monitor`."""

from policies.wording import Phrase, phrase
from watcher.cli.output import fail, secure_descriptors
from watcher.cli.parser import arguments, language_of, parse
from watcher.errors import UsageError, WatcherError

EXIT_USAGE = 2
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130


def main() -> int:
    """Run one command and return its exit status (C1.6)."""
    secure_descriptors()
    argv = arguments()
    try:
        command, options = parse(argv)
        return command.run(options)
    except UsageError as error:
        return _fail(error.phrase, argv, EXIT_USAGE)
    except WatcherError as error:
        return _fail(error.phrase, argv, EXIT_INTERNAL)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last net: one line, never a traceback
        what = f"{type(error).__name__}: {error}"
        return _fail(phrase("internal", error=what), argv, EXIT_INTERNAL)


def _fail(what: Phrase, argv: list[str], status: int) -> int:
    fail("koder-monitor: " + phrase("error", what=what).render(language_of(argv)))
    return status
