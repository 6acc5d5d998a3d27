"""What the read-only commands share: the store, the language, the whole output.

They run all day, from hooks and prompts: nothing here loads asyncio, the network, or
the settings with all that checks them.
"""

import gc
import json
import os
import select
import sqlite3
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from policies.lang import Lang
from watcher.cli.output import tell
from watcher.database import NAME, is_older, open_for_reading
from watcher.errors import StoreError
from watcher.paths import config_file, state_directory

if TYPE_CHECKING:
    import argparse  # which hooks do without, as they do without the sentences

    from policies.wording import Phrase

T = TypeVar("T")


def add_lang(parser: "argparse.ArgumentParser") -> None:
    """Add the language, which is the same for every command."""
    parser.add_argument(
        "--lang", choices=["pt", "en"], help="language of tables and messages"
    )


def read(
    look: Callable[[sqlite3.Connection], T],
    *,
    looked_after: Callable[[sqlite3.Connection], bool] = lambda _: False,
) -> "tuple[T | None, Phrase | None]":
    """Return what `look` finds, at one instant, and what a person must know of it.

    Nothing is found in a store that is not there, nor in one that cannot be read, which
    comes with a note; putting it right is the work of whoever writes (C5.6).

    Args:
        look: at the store, which is open and does not change meanwhile.
        looked_after: tells by the store that a service is there, so that it need not
            be asked.
    """
    state = state_directory(os.environ)
    path = f"{state}/{NAME}"
    connection = open_for_reading(state)
    if connection is None:
        if is_older(state):  # of before an update: a service makes it ours (C5.3)
            _bring_back(state)
            return None, _note("store_older", path)
        return None, _unread(path) if _is_there(path) else None
    try:
        connection.execute("BEGIN")
        found = look(connection)
        if not looked_after(connection) and _is_left_alone(connection):
            _bring_back(state)
    except sqlite3.Error:
        return None, _unread(path)
    else:
        return found, None
    finally:
        connection.close()


def _unread(path: str) -> "Phrase":
    return _note("store_unread", path)


def _note(key: str, path: str) -> "Phrase":
    from policies.wording import phrase  # noqa: PLC0415 - start-up time

    return phrase(key, path=path)


def _is_left_alone(connection: sqlite3.Connection) -> bool:
    """Say whether there is work in the store for a service."""
    (work,) = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM watches WHERE state = 'armed')"
        " OR EXISTS (SELECT 1 FROM pings WHERE state = 'pending')"
        " OR EXISTS (SELECT 1 FROM jobs WHERE state = 'running'"
        " AND notify_after_s IS NOT NULL AND notified_at IS NULL)"
        " OR EXISTS (SELECT 1 FROM detached JOIN watches ON id = watch_id"
        " WHERE gone_at IS NULL AND deadline_at > CAST(strftime('%s') AS REAL))"
    ).fetchone()
    return bool(work)


def _bring_back(state: str) -> None:
    """Have a service on its way where there is none; nobody waits for it (C5.3)."""
    from watcher.socket_path import service_answers  # noqa: PLC0415 - only with work

    if not service_answers(state):
        from watcher.client import start_service_if_needed  # noqa: PLC0415

        start_service_if_needed(state)


def read_and_tell(
    look: Callable[[sqlite3.Connection], T], lang: Lang, program: str = "koder-monitor"
) -> T | None:
    """Return what `look` finds; say on stderr when the store could not be read.

    For commands that end behind it: the collector, which they do not live to need,
    would walk through all that was found.
    """
    gc.disable()
    found, note = read(look)
    if note is not None:
        tell(f"{program}: {note.render(lang)}")
    return found


def language(asked: str | None, env: Mapping[str, str]) -> Lang:
    """Return the language of a call: as asked, else as set, else Portuguese.

    A configuration file that will not do is the matter of the commands that need it.
    """
    if asked is not None:
        return Lang(asked)
    try:
        with open(config_file(env), "rb") as file:
            content = file.read().decode("utf-8")
        if "lang" not in content:
            return Lang.PT
        import tomllib  # noqa: PLC0415 - start-up time: most have no such file

        return Lang(tomllib.loads(content).get("lang", Lang.PT))
    except (OSError, ValueError):
        return Lang.PT


def now() -> float:
    """Return the wall-clock time in seconds since the epoch.

    Not `SystemClock.wall`, whose module loads asyncio: 40 ms in each of these commands.
    """
    return time.time()  # noqa: TID251 - see above


def put(text: str) -> None:
    """Write all of a text to stdout as UTF-8, however long its reader takes.

    A pager that is shown page by page may read again in an hour; one that was left
    with `q` has seen enough, which is no error.

    Raises:
        StoreError: it cannot be written, as on a full disk.
    """
    data = memoryview(text.encode("utf-8", "backslashreplace"))
    try:
        while data:
            try:
                data = data[os.write(1, data) :]
            except BlockingIOError:
                select.select([], [1], [])
    except BrokenPipeError:
        return
    except OSError as error:
        from policies.wording import phrase  # noqa: PLC0415 - start-up time

        raise StoreError(phrase("output_failed", error=str(error))) from error


def put_lines(lines: list[str]) -> None:
    """Write lines to stdout."""
    put("".join(f"{line}\n" for line in lines))


def put_json(value: object) -> None:
    """Write one JSON value to stdout, on one line."""
    put(json.dumps(value, ensure_ascii=False) + "\n")


def put_array(items: list[str]) -> None:
    """Write an array of values that are JSON already."""
    put(f"[{', '.join(items)}]\n")


def _is_there(path: str) -> bool:
    """Say whether there is something to read; an empty file is being made."""
    try:
        return os.stat(path).st_size > 0
    except FileNotFoundError:
        return False
    except OSError:
        return True
