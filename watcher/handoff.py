"""Hands a session over: gathers, writes the file, commits that file and no other.

The steps of a handoff (C11.3): what git says, what is open in the store, what kind of
work it is; the file, in one piece or not at all; then, unless something stands against
it, a commit of exactly that file and the project's notes. Never a push.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from policies.handoff import (
    NOTES,
    Kind,
    archived_name,
    file_name,
    is_fresh,
    is_handoff,
    is_ours,
    kind_of,
)
from policies.handoff_text import (
    MOST_SHOWN,
    Facts,
    Tree,
    Wait,
    commit_message,
    handoff_text,
    next_steps,
    opening_prompt,
)
from policies.usage import Used
from policies.wording import Lang, Phrase, phrase
from watcher.database import NAME, open_for_reading
from watcher.repository import Repository, State

if TYPE_CHECKING:
    import sqlite3

COMMAND_LIMIT_S = 40.0
HOOK_LIMIT_S = 5.0
"""How long git may take in all: for the command, and for the hook.

A runtime ends a hook after 10 s, as we register it; to put the index right takes time
too.
"""

_PLANS = (".planning/STATE.md", ".planning/PROJECT.md", ".planning/ROADMAP.md")
_MANIFESTS = (
    ".claude-plugin/plugin.json",
    "pyproject.toml",
    "package.json",
    "Cargo.toml",
    "go.mod",
)
_LONGEST_HEAD = 4096  # bytes of an older file that are read to see whose it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A handoff that is wanted.

    Attributes:
        folder: the project's; the file is written there.
        cwd: where work went on.
        used: the percentage that asks for it; None when a person does.
        state: the state directory, whose store holds the open watches.
        zone: local time; None for the machine's own.
        dry: nothing at all is written.
        commit: commit the file, unless something stands against it.
        confirm: asks a person whether these names are to be committed.
        limit_s: for git.
    """

    folder: str
    cwd: str
    topic: str | None
    session: str | None
    used: Used | None
    state: str
    at: datetime
    lang: Lang
    zone: tzinfo | None = None
    dry: bool = False
    commit: bool = True
    confirm: Callable[[str], bool] | None = None
    limit_s: float = COMMAND_LIMIT_S


@dataclass(slots=True, kw_only=True)
class Report:
    """What came of it: the fields of the JSON, and whether the file is there."""

    facts: Facts
    message: str
    steps: list[str]
    opening: str
    written: bool = False
    committed: bool = False
    actions: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def hand_over(order: Order) -> Report:
    """Hand a session over; whatever goes wrong is in the report."""
    repository = Repository(order.folder, limit_s=order.limit_s)
    tree = repository.tree()
    facts = _facts(order, tree)
    report = Report(
        facts=facts,
        message=commit_message(order.topic, order.lang),
        steps=next_steps(facts, order.lang),
        opening=opening_prompt(facts.path, order.lang),
    )
    names = [os.path.basename(facts.path), *facts.notes]
    if order.dry:
        _rehearse(order, repository, report, names)
    elif _is_fresh(facts.path, tree, order.at):
        report.written = True
        report.actions.append(_say(order, "handoff_fresh", path=facts.path))
    else:
        _write(order, report)
        if report.written:
            _commit(order, repository, report, names)
    return report


def report_object(report: Report) -> dict[str, object]:
    """Return the JSON object of a handoff (facts on the pipeline's interface)."""
    tree = report.facts.tree if isinstance(report.facts.tree, Tree) else None
    return {
        "handoff_type": report.facts.kind.value,
        "evidence": report.facts.evidence,
        "write_dir": report.facts.project,
        "artifact_path": report.facts.path,
        "next_steps": report.steps,
        "git_status": None
        if tree is None
        else {"branch": tree.branch, "dirty": tree.dirty, "ahead": tree.ahead},
        "commit_message": report.message,
        "open_watches": [wait.id for wait in report.facts.waits or ()],
        "opening_prompt": report.opening,
        "committed": report.committed,
        "actions_taken": report.actions,
        "errors": report.errors,
    }


def _say(order: Order, key: str, **values: str | int | Phrase) -> str:
    return phrase(key, **values).render(order.lang)


def _facts(order: Order, tree: Tree | Phrase) -> Facts:
    waits, more = _open_waits(order)
    kind, evidence = _kind(order)
    return Facts(
        at=order.at.astimezone(order.zone).isoformat(timespec="seconds"),
        project=order.folder,
        path=os.path.join(order.folder, file_name(order.topic)),
        topic=order.topic,
        session=order.session,
        used=order.used,
        kind=kind,
        evidence=evidence,
        tree=_without_handoffs(tree) if isinstance(tree, Tree) else tree,
        notes=tuple(n for n in NOTES if _is_plain(os.path.join(order.folder, n))),
        waits=waits,
        more_waits=more,
    )


def _without_handoffs(tree: Tree) -> Tree:
    """Leave out the handoffs themselves: they are not the work."""

    def kept(paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(p for p in paths if not is_handoff(p.rpartition("/")[2]))

    return replace(tree, staged=kept(tree.staged), changed=kept(tree.changed))


def _kind(order: Order) -> tuple[Kind, str | None]:
    """Look which files tell the kind of work, from the current folder to the root."""
    folder = order.folder.rstrip("/")
    plan = next((p for p in _PLANS if os.path.isfile(f"{folder}/{p}")), None)
    inside = os.path.relpath(order.cwd, folder or "/")
    parts = [] if inside == "." or inside.startswith("..") else inside.split("/")
    for depth in range(len(parts), 0, -1):
        part = "/".join(parts[:depth])
        for name in _MANIFESTS:
            if os.path.isfile(f"{folder}/{part}/{name}"):
                return kind_of(plan, f"{part}/{name}")
    own = f"{folder}/{_MANIFESTS[0]}"
    return kind_of(plan, _MANIFESTS[0] if os.path.isfile(own) else None)


def _open_waits(order: Order) -> tuple[tuple[Wait, ...] | None, int]:
    """Return the open watches of the session or project, and how many more there are.

    Only a look: nothing is made or brought back for it.
    """
    import sqlite3  # noqa: PLC0415 - start-up time of the hook that asks first

    connection = open_for_reading(order.state)
    if connection is None:
        return (None if os.path.exists(f"{order.state}/{NAME}") else ()), 0
    try:
        rows = _rows(connection, order)
    except sqlite3.Error:
        return None, 0
    finally:
        connection.close()
    waits = [_wait(row, order) for row in rows[:MOST_SHOWN]]
    return tuple(waits), max(len(rows) - MOST_SHOWN, 0)


def _rows(connection: "sqlite3.Connection", order: Order) -> list["sqlite3.Row"]:
    from watcher.store import to_text  # noqa: PLC0415

    return connection.execute(
        "SELECT w.id, w.target, t.label, t.resume, t.deadline_at, w.observation"
        " FROM watches w JOIN waiters t ON t.watch_id = w.id"
        " WHERE w.state = 'armed' AND t.state = 'waiting'"
        " AND (t.session = ? OR t.project = ?)"
        " GROUP BY w.id HAVING t.number = min(t.number) ORDER BY w.armed_at, w.id",
        (order.session, to_text(order.folder)),
    ).fetchall()


def _wait(row: "sqlite3.Row", order: Order) -> Wait:
    from watcher.views import optional, rfc3339, shown  # noqa: PLC0415

    return Wait(
        id=row["id"],
        target=shown(row["target"]),
        label=shown(row["label"]),
        resume=optional(row["resume"]),
        until=rfc3339(row["deadline_at"], order.zone) or "",
        seen=row["observation"] != "unknown",
    )


def _is_fresh(path: str, tree: Tree | Phrase, at: datetime) -> bool:
    """Say whether it was written a moment ago, and nothing at all is uncommitted."""
    clean = isinstance(tree, Tree) and not tree.dirty
    try:
        age_s = at.timestamp() - os.lstat(path).st_mtime
        return is_fresh(age_s, clean=clean) and _is_ours(path)
    except OSError:
        return False


def _rehearse(
    order: Order, repository: Repository, report: Report, names: list[str]
) -> None:
    """Say what would be done."""
    path = report.facts.path
    report.actions.append(_say(order, "handoff_would_write", path=path))
    reason = _against(order, repository, report.facts)
    if reason is None and repository.ignores(names[0]):
        reason = _left_out(names[0], phrase("handoff_ignored"))
    if reason is None:
        states = repository.states(names)
        assumed = {names[0]: State("?", "?")}
        chosen = _chosen(
            names, assumed | ({} if isinstance(states, Phrase) else states)
        )
        taken = [name for name, state in chosen.items() if isinstance(state, State)]
        shown = ", ".join(taken)
        report.actions.append(_say(order, "handoff_would_commit", names=shown))
    else:
        report.actions.append(_say(order, "handoff_uncommitted", reason=reason))


def _write(order: Order, report: Report) -> None:
    path = report.facts.path
    try:
        if not _is_ours(path):
            aside = set_aside(path)
            report.actions.append(
                _say(order, "handoff_set_aside", path=path, aside=aside)
            )
    except FileNotFoundError:
        pass  # the first one
    except OSError:
        report.errors.append(_say(order, "handoff_not_plain", path=path))
        return
    try:
        _put(path, handoff_text(report.facts, order.lang))
    except OSError as error:
        why = error.strerror or str(error)
        report.errors.append(_say(order, "handoff_unwritten", path=path, error=why))
        return
    report.written = True
    report.actions.append(_say(order, "handoff_wrote", path=path))


def _is_ours(path: str) -> bool:
    """Say whether a handoff was written by us.

    Raises:
        FileNotFoundError: there is none.
        OSError: it is no plain file, or cannot be read.
    """
    return is_ours(read_plain(path, _LONGEST_HEAD).decode("utf-8", "replace"))


def read_plain(path: str, most: int) -> bytes:
    """Return the beginning of a plain file, without waiting for anything.

    Raises:
        OSError: it is none, is a link to one, or cannot be read.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise PermissionError(path)
        return os.read(fd, most)
    finally:
        os.close(fd)


def _is_plain(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def set_aside(path: str) -> str:
    """Give a handoff the name of an archived one that nothing has; return that name.

    The name is claimed first, so that two of us never write over each other.

    Raises:
        FileNotFoundError: somebody else was quicker.
        OSError: the folder does not allow it.
    """
    folder, name = os.path.split(path)
    times = 1
    while True:
        archived = archived_name(name, times)
        aside = os.path.join(folder, archived)
        try:
            os.close(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            break
        except FileExistsError:
            times += 1
    try:
        os.rename(path, aside)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        raise
    return archived


def put_back(archived: str, path: str) -> None:
    """Give an archived handoff its name back, unless there is a newer one by now.

    Raises:
        FileExistsError: there is.
        OSError: the folder does not allow it; it stays archived.
    """
    os.link(archived, path, follow_symlinks=False)
    os.unlink(archived)


def _put(path: str, text: str) -> None:
    """Write a file in one piece or not at all.

    Raises:
        OSError: it cannot be written.
    """
    folder, name = os.path.split(path)
    beside = os.path.join(folder, f".{name}.{os.urandom(6).hex()}")
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
            file.flush()
            os.fsync(fd)
        os.replace(beside, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def _against(order: Order, repository: Repository, facts: Facts) -> Phrase | None:
    """Return why there is no commit, if anything stands against one."""
    if not order.commit:
        return phrase("handoff_not_wanted")
    if not isinstance(facts.tree, Tree):
        return facts.tree
    return repository.obstacle(facts.tree)


def _commit(
    order: Order, repository: Repository, report: Report, names: list[str]
) -> None:
    reason = _against(order, repository, report.facts)
    if reason is None:
        states = repository.states(names)
        if isinstance(states, Phrase):
            reason = states
        else:
            reason = _commit_some(order, repository, report, _chosen(names, states))
    if reason is not None:
        report.actions.append(_say(order, "handoff_uncommitted", reason=reason))


def _commit_some(
    order: Order,
    repository: Repository,
    report: Report,
    chosen: Mapping[str, State | Phrase],
) -> Phrase | None:
    """Commit what can be; return why nothing was, if it was not.

    The file itself decides: where it stays out, nothing else is committed either.
    """
    (name, own), *notes = chosen.items()
    if isinstance(own, Phrase):
        return _left_out(name, own)
    taken = {name: own}
    for note, state in notes:
        if isinstance(state, Phrase):
            report.actions.append(_left_out(note, state).render(order.lang))
        else:
            taken[note] = state
    shown = ", ".join(taken)
    if order.confirm is not None and not order.confirm(shown):
        return phrase("handoff_declined")
    new = [name for name, state in taken.items() if state.is_new]
    failed = repository.commit([*taken], new, report.message)
    if failed is not None:
        report.errors.append(failed.render(order.lang))
        return failed
    report.committed = True
    report.actions.append(_say(order, "handoff_committed", names=shown))
    return None


def _left_out(name: str, reason: Phrase) -> Phrase:
    return phrase("handoff_left_out", name=name, reason=reason)


def _chosen(names: list[str], states: Mapping[str, State]) -> dict[str, State | Phrase]:
    """Return for each name how it stands, or why it is not committed."""
    own, *notes = names
    chosen: dict[str, State | Phrase] = {}
    for name in [own, *(note for note in notes if note in states)]:
        state = states.get(name)
        if state is None:
            chosen[name] = phrase("handoff_unchanged")
        elif state.is_ignored:
            chosen[name] = phrase("handoff_ignored")
        elif name != own and state.staged not in ".?":
            chosen[name] = phrase("handoff_half_staged")
        else:
            chosen[name] = state
    return chosen
