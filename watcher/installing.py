"""Registers us with a coding agent: plan it, then carry out exactly that (C11.1).

A plan reads and changes nothing. What it cannot do to one file it says, with what a
person has to add there; then nothing at all is done. A file that changed since it was
read is planned anew.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from policies.edits import UnreadableError, jsonc
from policies.edits.ours import PROGRAM, part_of
from policies.wording import Phrase, phrase
from watcher.clock import SystemClock
from watcher.errors import StoreError, UsageError, WatcherError
from watcher.file_lock import locked
from watcher.placing import (
    Placed,
    back_up,
    hash_of,
    make_folder,
    place,
    taken,
)
from watcher.runtimes import chained, manifest
from watcher.runtimes.manifest import Install, Record
from watcher.runtimes.plan import Plan, Step, data_of, plan_install
from watcher.runtimes.registry import RUNTIMES
from watcher.runtimes.slots import Site, slots

_TRIES = 3  # for a file that others write at the same time
_TURN_LIMIT_S = 15.0  # a whole installation takes less than one


class ChangedError(WatcherError):
    """A file is no longer what it was when it was read."""


def program_path(called: str, executable: str) -> str:
    """Return our command as an absolute path, for others to call.

    That by which we were called, which may be a link that outlives versions; else the
    one on PATH; else the one beside the interpreter.

    Raises:
        UsageError: there is none.
    """
    beside = os.path.join(os.path.dirname(executable), PROGRAM)
    tried = [called] if os.path.basename(called) == PROGRAM else []
    for path in (*tried, shutil.which(PROGRAM) or "", beside):
        if path and os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path)
    raise UsageError(phrase("not_installed", program=PROGRAM))


def install(
    site: Site,
    state: str,
    *,
    forced: bool = False,
    planned: Callable[[Plan], None] = lambda _: None,
) -> Plan:
    """Register us; do nothing where the plan has something that cannot be done.

    Args:
        site: where.
        state: the state directory.
        forced: see `plan_install`; also goes on beside what cannot be done.
        planned: told each plan before it is carried out.

    Raises:
        StoreError: what is installed cannot be kept, or a file cannot be written.
        ChangedError: a file does not stop changing.
    """
    with alone(state):
        for _ in range(_TRIES - 1):
            with contextlib.suppress(ChangedError):
                return _tried(site, state, forced=forced, planned=planned)
        return _tried(site, state, forced=forced, planned=planned)


def _tried(
    site: Site, state: str, *, forced: bool, planned: Callable[[Plan], None]
) -> Plan:
    plan = plan_install(site, manifest.load(state), forced=forced)
    planned(plan)
    if plan.refused and not forced:
        return plan
    _carry_out(plan, state)
    copies = _copies(plan, manifest.load(state))
    return replace(plan, notes=(*copies, *plan.notes))


def _copies(plan: Plan, installs: Sequence[Install]) -> Iterator[Phrase]:
    """Say where copies of what was changed are."""
    known = manifest.find(installs, plan.site.runtime, plan.site.project)
    changed = {step.slot.path for step in plan.steps if not step.idle}
    for record in known.files if known else ():
        if record.path in changed:
            yield from (phrase("backup_kept", path=path) for path in record.backups)


def _carry_out(plan: Plan, state: str) -> None:
    """Do what is planned, and keep of each file beforehand what is needed to undo it.

    Raises:
        ChangedError: a file is no longer as planned.
        StoreError: something cannot be written.
    """
    site = plan.site
    installs = manifest.load(state)
    known = manifest.find(installs, site.runtime, site.project)
    records = {record.path: record for record in (known.files if known else ())}
    others = [install for install in installs if install is not known]
    idle = all(step.idle for step in plan.steps)
    at_s = known.at_s if known and idle else SystemClock().wall().timestamp()
    for step in plan.steps:
        if step.refused is not None:
            continue
        try:
            record = _prepared(step, records.get(step.slot.path))
            records[record.path] = record
            ours = Install(
                runtime=site.runtime,
                project=site.project,
                program=site.program,
                at_s=at_s,
                files=tuple(records.values()),
            )
            manifest.save(state, [*others, ours])
            if step.edited.former is not None:
                chained.keep(site.runtime, step.edited.former)
            write(step)
        except OSError as error:
            said = phrase("file_failed", path=step.slot.path, error=str(error))
            raise StoreError(said) from error
    outer = _line_of_person(site)
    if outer is not None and chained.previous(site.runtime) is None:
        chained.keep(site.runtime, outer)


def _line_of_person(site: Site) -> str | None:
    """Return the person's own status line, which ours hides in one project."""
    line = RUNTIMES[site.runtime].line
    if site.project is None or line is None or line.local is None:
        return None
    slot = next(s for s in slots(replace(site, project=None)) if s.name == line.user)
    try:
        there = taken(slot.path)
        root = jsonc.read(there.data.decode("utf-8") if there else "{}")
    except (OSError, UnreadableError, UnicodeDecodeError):
        return None
    found = jsonc.find(root, (*line.at, "command"))
    command = None if found is None else found.value
    ours = part_of(command) == "statusline"
    return command if isinstance(command, str) and not ours else None


def _prepared(step: Step, known: Record | None) -> Record:
    """Return what to keep of a file, after a copy of it is made and its folder."""
    before, edited = step.before, step.edited
    after = hash_of(step.after or b"")
    now = None if before is None else hash_of(before.data)
    if known is not None and now != known.before and (now == known.after or step.idle):
        return replace(
            known,
            after=after if now == known.after else known.after,
            made=(*known.made, *edited.made),
            former=known.former if edited.former is None else edited.former,
        )
    path = step.slot.path
    fresh = known is None or now == known.before
    earlier = () if known is None else known.backups
    backups = earlier
    if before is not None and not step.idle:
        backups = tuple(dict.fromkeys([*earlier, back_up(path, before)]))
    folders = make_folder(os.path.dirname(os.path.realpath(path)))
    return Record(
        slot=step.slot.name,
        path=path,
        before=now,
        after=after,
        exact=fresh and not step.had_ours,
        backups=backups,
        made=(*(known.made if known and not fresh else ()), *edited.made),
        former=edited.former or (known.former if known else None),
        folders=(*(known.folders if known else ()), *folders),
    )


def write(step: Step) -> None:
    """Put a file in its place, if it is still what was read, and read it again.

    Raises:
        ChangedError: it is not, or somebody wrote it at the same time.
        OSError: it cannot be written.
    """
    path = step.slot.path
    there = taken(path)
    if data_of(there) != data_of(step.before):
        raise ChangedError(phrase("file_changes", path=path))
    if step.idle or step.after is None:
        return
    place(path, Placed(step.after, None if there is None else there.status))
    if data_of(taken(path)) != step.after:
        raise ChangedError(phrase("file_changes", path=path))


@contextlib.contextmanager
def alone(state: str) -> Iterator[None]:
    """Let one at a time change what is installed.

    Raises:
        StoreError: the state directory cannot be written, or another keeps its turn.
    """
    try:
        os.makedirs(state, mode=0o700, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        lock = os.open(f"{state}/installed.lock", flags, 0o600)
    except OSError as error:
        raise StoreError(phrase("write_failed", error=str(error))) from error
    try:
        if not locked(lock, limit_s=_TURN_LIMIT_S):
            raise StoreError(phrase("install_busy", path=f"{state}/installed.lock"))
        yield
    finally:
        os.close(lock)
