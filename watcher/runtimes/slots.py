"""What of ours goes into each file of a runtime (C11.1)."""

import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from policies.edits import entries, sections
from policies.edits.ours import PROGRAM, Edited, Entry
from policies.model import Json
from watcher.runtimes.registry import (
    LIMIT_S,
    RUNTIMES,
    Hooks,
    Line,
    Runtime,
    Server,
    folders,
    heard,
)

_HERE: Final = os.path.dirname(__file__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where to register, and what.

    Attributes:
        runtime: its name.
        user: the person's home folder.
        project: the project's folder, or None to register for the person.
        program: our command, as an absolute path.
        plugin: what the runtime calls our plugin, where that is switched on: it brings
            everything but the status line.
    """

    runtime: str
    user: str
    project: str | None
    program: str
    env: dict[str, str]
    plugin: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One file of a runtime.

    Attributes:
        name: which, whatever folder it lies in.
        wanted: what it shall hold of ours; its whole content if that is text.
        leave: registers nothing there, and takes out what is there of ours.
        must_exist: it is not ours to begin.
    """

    name: str
    path: str
    wanted: entries.Wanted | sections.Wanted | str
    leave: bool = False
    must_exist: bool = False

    @property
    def whole(self) -> bool:
        """Say whether the file is ours alone."""
        return isinstance(self.wanted, str)

    def install(self, text: str) -> Edited:
        """Return the file with ours in it.

        Raises:
            UnreadableError: it cannot be changed.
        """
        if self.leave:
            return self.uninstall(text)
        match self.wanted:
            case str():
                return Edited(text=self.wanted)
            case sections.Wanted():
                return sections.install(text, self.wanted)
            case entries.Wanted():
                return entries.install(text, self.wanted)

    def uninstall(
        self,
        text: str,
        *,
        made: Sequence[Sequence[str | int]] = (),
        former: str | None = None,
    ) -> Edited:
        """Return the file without ours; one that is ours alone is left to the caller.

        Raises:
            UnreadableError: it cannot be changed.
        """
        match self.wanted:
            case str():
                return Edited(text=text)
            case sections.Wanted():
                return sections.uninstall(text, self.wanted)
            case entries.Wanted():
                paths = [tuple(path) for path in made]
                return entries.uninstall(text, self.wanted, made=paths, former=former)

    def snippet(self) -> str:
        """Return what a person has to add by hand."""
        if isinstance(self.wanted, str):
            return self.wanted
        begun = "" if isinstance(self.wanted, sections.Wanted) else "{}\n"
        return self.install(begun).text


def slots(site: Site) -> list[Slot]:
    """Return the files of a runtime, with what each shall hold of ours."""
    runtime = RUNTIMES[site.runtime]
    known: dict[str, list[Hooks | Server | Line]] = {}
    for part in (runtime.hooks, runtime.server, runtime.line):
        template = part and (part.local if site.project else part.user)
        if part and template:
            known.setdefault(template, []).append(part)
    found = [_slot(site, template, parts) for template, parts in known.items()]
    return [*found, *_texts(site, runtime)]


def _slot(site: Site, template: str, parts: Sequence[Hooks | Server | Line]) -> Slot:
    runtime = RUNTIMES[site.runtime]
    path = _path(site, template)
    brought = site.plugin is not None
    hooks = next((part for part in parts if isinstance(part, Hooks)), None)
    server = next((part for part in parts if isinstance(part, Server)), None)
    line = next((part for part in parts if isinstance(part, Line)), None)
    events = {} if hooks is None or brought else _events(site, runtime, hooks)
    served = None if server is None else _server(site, server)
    if path.endswith(".toml"):
        key = "hooks" if hooks is not None else None
        wanted = sections.Wanted(hooks=key, events=events, server=served)
        return Slot(name=template, path=path, wanted=wanted)
    named = hooks is not None and hooks.shape == "named"
    where = entries.Wanted(
        hooks=None if hooks is None else ((PROGRAM,) if named else ("hooks",)),
        events=events,
        base=(hooks and hooks.base) or {},
        server=served,
        line=None if line is None else _line(site, line),
    )
    if hooks is not None and hooks.whole:
        text = entries.install("{}\n", where).text
        return Slot(name=template, path=path, wanted=text)
    return Slot(
        name=template,
        path=path,
        wanted=where,
        leave=brought and line is None,
        must_exist=line is not None and line.must_exist,
    )


def _texts(site: Site, runtime: Runtime) -> list[Slot]:
    if site.plugin is not None:
        return []
    found = []
    for text in runtime.texts:
        template = text.local if site.project else text.user
        if template:
            path = _path(site, template)
            content = _packaged(text.source, site.program)
            found.append(Slot(name=template, path=path, wanted=content))
    return found


def skill() -> str:
    """Return the text that teaches an agent to wait."""
    return _packaged("skill/SKILL.md", PROGRAM)


def _packaged(source: str, program: str) -> str:
    with open(f"{_HERE}/{source}", encoding="utf-8", newline="") as file:
        return file.read().replace('"@PROGRAM@"', json.dumps(program))


def _path(site: Site, template: str) -> str:
    places = folders(
        site.runtime, env=site.env, user=site.user, project=site.project or ""
    )
    path = template.format_map(places)
    with_comments = f"{path}c"  # OpenCode and Kilo take either
    if path.endswith(".json") and not os.path.lexists(path):
        return with_comments if os.path.lexists(with_comments) else path
    return path


def _events(site: Site, runtime: Runtime, hooks: Hooks) -> dict[str, Entry]:
    name = runtime.speaks or site.runtime
    found: dict[str, Entry] = {}
    for event, native in heard(hooks).items():
        words = [site.program, "hook", event, "--runtime", name]
        matcher = hooks.guarded if event == "pre-tool-use" else ""
        found[native] = _hook(hooks, native, shlex.join(words), matcher)
    return found


def _hook(hooks: Hooks, native: str, command: str, matcher: str) -> Entry:
    limit = LIMIT_S * hooks.per_s
    matched: dict[str, Json] = {"matcher": matcher} if matcher else {}
    handler: dict[str, Json] = {"command": command, "timeout": limit}
    typed: dict[str, Json] = {"type": "command", **handler}
    match hooks.shape:
        case "grouped":
            return {**matched, "hooks": [typed]}
        case "copilot":
            return {"type": "command", "bash": command, "timeoutSec": limit}
        case "kimi":
            return {"event": native, **matched, **handler}
        case "named":
            return typed
        case "flat":
            return {**handler, **matched}


def _server(site: Site, server: Server) -> tuple[tuple[str, ...], Entry]:
    more = server.more or {}
    path = (*server.at, PROGRAM)
    if server.form == "listed":
        return path, {**more, "command": [site.program, "mcp"]}
    return path, {**more, "command": site.program, "args": ["mcp"]}


def _line(site: Site, line: Line) -> tuple[tuple[str, ...], Entry]:
    command = shlex.join([site.program, "statusline", "--runtime", site.runtime])
    more = line.more or {}
    return line.at, {"type": "command", "command": command, **more}
