"""Takes us out of a coding agent again (C11.1).

A file that nobody has changed since gets the very bytes that it had before; out of any
other only what is ours is taken, known by the command that it calls.
"""

import contextlib
import os
from collections.abc import Sequence
from dataclasses import replace

from policies.edits import UnreadableError
from policies.edits.ours import Edited
from policies.wording import phrase
from watcher.errors import StoreError
from watcher.installing import alone, write
from watcher.placing import Placed, back_up, hash_of, obstacle, remove, taken
from watcher.runtimes import chained, manifest
from watcher.runtimes.manifest import Install, Record
from watcher.runtimes.plan import Plan, Step, odd, refused
from watcher.runtimes.slots import Site, Slot, slots


def plan_uninstall(site: Site, installs: Sequence[Install]) -> Plan:
    """Return what has to be done to be gone, where it was said and where it may be."""
    known = manifest.find(installs, site.runtime, site.project)
    steps = []
    for slot in slots(site):
        for record in _records(slot, known):
            there = slot if record is None else replace(slot, path=record.path)
            if slot.whole and _shared(there.path, known, installs) is not None:
                continue
            step = _step(site, there, record)
            if step is not None:
                steps.append(step)
    return Plan(site=site, steps=tuple(steps))


def _records(slot: Slot, known: Install | None) -> Sequence[Record | None]:
    """Return where one file was put: in several places, if its folder has moved."""
    files = known.files if known else ()
    return [record for record in files if record.slot == slot.name] or [None]


def uninstall(site: Site, state: str) -> Plan:
    """Take us out of a runtime's files; what cannot be done to one is said.

    Raises:
        StoreError: what is installed cannot be read or kept, or a file not written.
        ChangedError: a file changed under way.
    """
    with alone(state):
        installs = manifest.load(state)
        plan = plan_uninstall(site, installs)
        known = manifest.find(installs, site.runtime, site.project)
        records = {record.path: record for record in (known.files if known else ())}
        for step in plan.steps:
            if step.refused is None:
                _carry_out(step, records.get(step.slot.path))
        _keep(plan, installs, known, state)
        _remove_empty([folder for r in records.values() for folder in r.folders])
    copies = [path for record in records.values() for path in record.backups]
    notes = [phrase("backup_kept", path=p) for p in copies if os.path.exists(p)]
    return replace(plan, notes=tuple(notes))


def _step(site: Site, slot: Slot, record: Record | None) -> Step | None:
    """Return what to do to a file, or None where nothing of ours can be."""
    try:
        before = taken(slot.path)
    except OSError as error:
        text = str(error.strerror or error)
        return refused(slot, None, phrase("file_unread", path=slot.path, error=text))
    if before is None:
        return None
    unchanged = record is not None and hash_of(before.data) == record.after
    if record is not None and record.exact and unchanged:
        had = _had(record)
        if had is not None or record.before is None:
            return _planned(slot, before, had)
    if not slot.whole:
        return _without(site, slot, before, record)
    ours = record is not None or before.data == str(slot.wanted).encode()
    return _planned(slot, before, None) if ours else None


def _without(site: Site, slot: Slot, before: Placed, record: Record | None) -> Step:
    """Return how to take only what is ours out of a file."""
    made = () if record is None else record.made
    former = chained.previous(site.runtime) if record is None else record.former
    try:
        text = before.data.decode("utf-8")
        edited = slot.uninstall(text, made=made, former=former)
    except UnicodeDecodeError:
        return refused(slot, before, phrase("file_no_text", path=slot.path))
    except UnreadableError as error:
        return refused(slot, before, odd(slot.path, error))
    empty = edited.text.strip("\ufeff \t\r\n") in {"", "{}"}
    new = record is not None and record.exact and record.before is None
    return _planned(
        slot, before, None if empty and new else edited.text.encode(), edited
    )


def _planned(
    slot: Slot, before: Placed, after: bytes | None, edited: Edited | None = None
) -> Step:
    if edited is None:
        text = before.data.decode("utf-8", "replace")
        with contextlib.suppress(UnreadableError):
            edited = slot.uninstall(text)
    step = Step(slot=slot, before=before, after=after, edited=edited or Edited(text=""))
    hindered = None if step.idle else obstacle(slot.path, before, forced=False)
    if hindered is not None:
        said = phrase("file_kept", path=slot.path, reason=hindered)
        return refused(slot, before, said)
    return step


def _had(record: Record) -> bytes | None:
    """Return what a file held before us, if its copy is still that."""
    for path in record.backups:
        with contextlib.suppress(OSError):
            there = taken(path)
            if there is not None and hash_of(there.data) == record.before:
                return there.data
    return None


def _shared(
    path: str, known: Install | None, installs: Sequence[Install]
) -> Install | None:
    """Return another runtime that still needs a file that is ours alone."""
    for other in installs:
        if other is not known and any(file.path == path for file in other.files):
            return other
    return None


def _carry_out(step: Step, record: Record | None) -> None:
    path = step.slot.path
    try:
        if step.after is None:
            if _is_edited(step, record) and step.before is not None:
                back_up(path, step.before)
            remove(os.path.realpath(path))
        else:
            write(step)
        if record is not None:
            _tidy(step, record)
    except OSError as error:
        said = phrase("file_failed", path=path, error=str(error))
        raise StoreError(said) from error


def _is_edited(step: Step, record: Record | None) -> bool:
    """Say whether a file that is ours alone holds what somebody else wrote."""
    if not step.slot.whole or step.before is None:
        return False
    return record is not None and hash_of(step.before.data) != record.after


def _tidy(step: Step, record: Record) -> None:
    """Remove the copies that are of no more use."""
    for backup in record.backups:
        there = taken(backup)
        if there is not None and there.data == step.after:
            remove(backup)


def _remove_empty(folders: Sequence[str]) -> None:
    """Remove the folders that we made, if nothing else is in them now."""
    for folder in sorted(folders, key=len, reverse=True):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _keep(
    plan: Plan, installs: Sequence[Install], known: Install | None, state: str
) -> None:
    """Keep what could not be undone; hand on what somebody else still needs."""
    left = {step.slot.path for step in plan.steps if step.refused is not None}
    site = plan.site
    others = [_inheriting(other, known) for other in installs if other is not known]
    if known is not None and left:
        files = tuple(record for record in known.files if record.path in left)
        others.append(replace(known, files=files))
    if others != list(installs):
        manifest.save(state, others)
    if not any(other.runtime == site.runtime for other in others):
        try:
            chained.forget(site.runtime)
        except OSError as error:
            raise StoreError(phrase("write_failed", error=str(error))) from error


def _inheriting(other: Install, known: Install | None) -> Install:
    """Return another install that now knows how a shared file came to be."""
    ours = {record.path: record for record in (known.files if known else ())}
    files = tuple(_inherited(record, ours) for record in other.files)
    return replace(other, files=files)


def _inherited(record: Record, ours: dict[str, Record]) -> Record:
    older = ours.get(record.path)
    if older is None or not older.exact:
        return record
    return replace(older, slot=record.slot, after=record.after)
