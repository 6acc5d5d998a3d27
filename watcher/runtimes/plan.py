"""What would be done to a runtime's files: read everything, change nothing (C11.1)."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec

from policies.edits import UnreadableError, jsonc
from policies.edits.ours import PROGRAM, Change, Edited
from policies.model import Json
from policies.wording import Phrase, phrase
from watcher.placing import Placed, obstacle, taken
from watcher.runtimes.manifest import Install
from watcher.runtimes.registry import RUNTIMES
from watcher.runtimes.slots import Site, Slot, slots


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is done to one file.

    Attributes:
        before: what it holds, or None where there is none.
        after: what it shall hold, or None where it goes.
        edited: how that came about.
        had_ours: something of ours is in it already.
        refused: why nothing can be done to it.
        warned: what to know of it.
    """

    slot: Slot
    before: Placed | None
    after: bytes | None
    edited: Edited
    had_ours: bool = False
    refused: Phrase | None = None
    warned: tuple[Phrase, ...] = ()

    @property
    def changes(self) -> Sequence[Change]:
        """What is done in it, thing by thing."""
        return self.edited.changes

    @property
    def idle(self) -> bool:
        """Say whether the file stays as it is."""
        return self.after == (None if self.before is None else self.before.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is done, file by file, and what else there is to know."""

    site: Site
    steps: tuple[Step, ...]
    notes: tuple[Phrase, ...] = ()

    @property
    def refused(self) -> bool:
        """Say whether something cannot be done."""
        return any(step.refused for step in self.steps)


def plan_install(
    site: Site, installs: Sequence[Install], *, forced: bool = False
) -> Plan:
    """Return what has to be done to be registered.

    Args:
        site: where.
        installs: what is installed already.
        forced: also what is read-only.
    """
    plugin = None if forced else _plugin(site)
    site = replace(site, plugin=plugin)
    steps = [step for slot in slots(site) if (step := _step(site, slot, forced=forced))]
    notes = [*_notes(site), *_doubled(site, installs)]
    if plugin is not None:
        notes.insert(0, phrase("plugin_active", name=plugin))
    return Plan(site=site, steps=tuple(steps), notes=tuple(notes))


def _step(site: Site, slot: Slot, *, forced: bool) -> Step | None:
    """Return what to do to a file, or None where it is not ours to begin."""
    try:
        before = taken(slot.path)
    except OSError as error:
        said = phrase("file_unread", path=slot.path, error=str(error.strerror or error))
        return refused(slot, None, said)
    if before is None and (slot.must_exist or slot.leave):
        return None
    text, had_ours = "", False
    if before is not None:
        try:
            text = before.data.decode("utf-8")
            edited = slot.install(text)
            had_ours = _has_ours(slot, text)
        except UnicodeDecodeError:
            said = phrase("file_no_text", path=slot.path)
            return refused(slot, before, said)
        except UnreadableError as error:
            return refused(slot, before, odd(slot.path, error))
    else:
        edited = slot.install(text)
    after = edited.text.encode("utf-8")
    step = Step(slot=slot, before=before, after=after, edited=edited, had_ours=had_ours)
    hindered = obstacle(slot.path, before, forced=forced)
    if hindered is not None and not step.idle:
        said = phrase("file_kept", path=slot.path, reason=hindered)
        return replace(step, after=data_of(before), refused=said)
    return replace(step, warned=tuple(_warned(site, slot, text, edited)))


def _has_ours(slot: Slot, text: str) -> bool:
    """Say whether something of ours is in a file already.

    Raises:
        UnreadableError: it could not be taken out again.
    """
    return text == slot.wanted if slot.whole else bool(slot.uninstall(text).changes)


def refused(slot: Slot, before: Placed | None, said: Phrase) -> Step:
    """Return that nothing can be done to a file, and why."""
    nothing = Edited(text="")
    kept = data_of(before)
    return Step(slot=slot, before=before, after=kept, edited=nothing, refused=said)


def odd(path: str, error: UnreadableError) -> Phrase:
    """Return what is wrong with a file."""
    return phrase("file_odd", path=path, error=error.what, line=error.line)


def _warned(site: Site, slot: Slot, text: str, edited: Edited) -> Iterator[Phrase]:
    for where in edited.foreign:
        yield phrase("entry_foreign", where=where, path=slot.path)
    if edited.former is not None:
        yield phrase("line_kept", command=edited.former)
    strict = RUNTIMES[site.runtime].strict
    if os.path.basename(slot.path) in strict and not _is_strict(text):
        yield phrase("file_strict", path=slot.path)


def _is_strict(text: str) -> bool:
    if jsonc.is_blank(text):
        return True
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _plugin(site: Site) -> str | None:
    """Return the name of our plugin where it is switched on (Claude Code)."""
    if site.runtime != "claude-code":
        return None
    for scope in (site, replace(site, project=None)):
        for slot in slots(scope):
            if os.path.basename(slot.path) in RUNTIMES[site.runtime].strict:
                for name, on in _enabled(slot.path).items():
                    if on is True and name.partition("@")[0] == PROGRAM:
                        return name
    return None


def _enabled(path: str) -> Mapping[str, Json]:
    """Return which plugins a settings file switches on or off."""
    try:
        there = taken(path)
        root = jsonc.read(there.data.decode("utf-8") if there else "{}").value
    except (OSError, UnreadableError, UnicodeDecodeError):
        return {}
    enabled = root.get("enabledPlugins") if isinstance(root, dict) else None
    return enabled if isinstance(enabled, dict) else {}


def _notes(site: Site) -> Iterator[Phrase]:
    runtime = RUNTIMES[site.runtime]
    if runtime.gate is not None:
        yield phrase(f"gate_{runtime.gate}")
    for note in runtime.notes:
        yield phrase(f"note_{note}")
    if runtime.server is not None and find_spec("mcp") is None:
        yield phrase("no_mcp_extra")
    if shutil.which(PROGRAM, path=site.env.get("PATH")) is None:
        yield phrase("not_on_path", program=site.program)


def _doubled(site: Site, installs: Sequence[Install]) -> Iterator[Phrase]:
    """Say that hooks run twice where two runtimes read the same file, or two scopes."""
    for other in installs:
        if other.runtime == site.runtime:
            if other.project != site.project and None in {other.project, site.project}:
                where = other.project or "~"
                yield phrase("installed_too", runtime=other.runtime, where=where)
        elif _reads_both(
            {other.runtime, site.runtime}, local=bool(site.project or other.project)
        ):
            yield phrase("runs_twice", runtime=other.runtime)


def _reads_both(pair: set[str], *, local: bool) -> bool:
    """Say whether one of two runtimes also runs the hooks of the other."""
    return pair == {"claude-code", "cursor"} or (
        local and pair == {"claude-code", "copilot"}
    )


def data_of(placed: Placed | None) -> bytes | None:
    """Return what a file holds, if there is one."""
    return None if placed is None else placed.data
