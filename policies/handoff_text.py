"""What a handoff says: Markdown with fixed sections, all of it from facts (C11.3).

No environment, no command line of another process, no remote: what stands here is
committed, and read by whoever reads the repository.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from policies.context import rounded
from policies.handoff import Kind, front_matter
from policies.text import clean
from policies.usage import Used
from policies.wording import Lang, Phrase, phrase

MOST_SHOWN: Final = 30
"""Files, commits or watches in one list."""

_RUNS = re.compile("`+")
_UNREAD: Final = phrase("store_unread", path="monitor.db")
_SHOWN = 200  # characters of one foreign value


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """An open watch, as the next session needs it.

    Attributes:
        until: its deadline as a local time.
        seen: it could be seen at the last look.
    """

    id: str
    target: str
    label: str
    resume: str | None
    until: str
    seen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """What git says of a project.

    Attributes:
        branch: None with a detached HEAD.
        head: short id of the last commit; None before the first.
        ahead: commits that the upstream does not have; None without an upstream.
        staged: paths with changes in the index.
        changed: paths that are changed or new, the staged ones too.
        conflicts: paths that are not merged.
        commits: subjects of the latest commits, the newest first.
    """

    branch: str | None
    head: str | None
    ahead: int | None
    staged: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()

    @property
    def dirty(self) -> bool:
        """Say whether anything is not committed."""
        return bool(self.changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that a handoff is made of.

    Attributes:
        at: the time, as RFC 3339.
        project: absolute path of its folder.
        path: where the handoff is written.
        used: the percentage that asked for it; None when a person did.
        evidence: the file that tells its kind.
        tree: what git says, or why it says nothing.
        notes: files of the project that the next session should read.
        waits: open watches; None when the store could not be read.
        more_waits: open ones that are not in `waits`.
    """

    at: str
    project: str
    path: str
    topic: str | None
    session: str | None
    used: Used | None
    kind: Kind
    evidence: str | None
    tree: Tree | Phrase
    notes: tuple[str, ...]
    waits: tuple[Wait, ...] | None
    more_waits: int = 0


def against_commit(tree: Tree) -> Phrase | None:
    """Return what of a tree stands against a commit by itself, if anything."""
    if tree.conflicts:
        return phrase("handoff_conflicts")
    return phrase("handoff_detached") if tree.branch is None else None


def commit_message(topic: str | None, lang: Lang) -> str:
    """Return the message, in the form of Conventional Commits."""
    if topic:
        return phrase("handoff_commit_topic", topic=topic).render(lang)
    return phrase("handoff_commit").render(lang)


def opening_prompt(path: str, lang: Lang) -> str:
    """Return what a person can paste to open the next session."""
    return phrase("handoff_open_with", path=path).render(lang)


def next_steps(facts: Facts, lang: Lang) -> list[str]:
    """Return what is to be done next, in that order."""
    return [step.render(lang) for step in _steps(facts)]


def handoff_text(facts: Facts, lang: Lang) -> str:
    """Return the whole file."""
    tree = facts.tree if isinstance(facts.tree, Tree) else None
    lines = front_matter(
        created_at=facts.at,
        type=facts.kind,
        branch=clean(tree.branch, _SHOWN) if tree and tree.branch else None,
        head=tree.head if tree else None,
        session=facts.session,
    )
    lines += ["", f"# {phrase('handoff_title').render(lang)}"]
    sections: Sequence[tuple[Phrase, Iterator[Phrase | str]]] = (
        (phrase("handoff_why"), _why(facts)),
        (phrase("handoff_status"), _status(facts)),
        (phrase("handoff_continue"), iter(_steps(facts))),
        (phrase("handoff_waits"), _waits(facts)),
        (phrase("handoff_push"), _push(facts)),
        (phrase("handoff_verify"), _verification(facts)),
        (phrase("handoff_traps"), _traps(facts)),
    )
    for title, items in sections:
        lines += ["", f"## {title.render(lang)}", ""]
        lines += [_item(item, lang) for item in items]
    lines += ["", f"## {phrase('handoff_opening').render(lang)}", ""]
    lines += [f"> {opening_prompt(facts.path, lang)}"]
    return "\n".join(lines) + "\n"


def code(text: str) -> str:
    """Return foreign text as code, which Markdown leaves as it is."""
    shown = clean(text, _SHOWN)
    fence = "`" * (max(map(len, _RUNS.findall(shown)), default=0) + 1)
    pad = " " if "`" in (shown[:1], shown[-1:]) else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _item(item: Phrase | str, lang: Lang) -> str:
    """Return a line of a list; what is text already belongs to the line above."""
    return f"  - {item}" if isinstance(item, str) else f"- {item.render(lang)}"


def _steps(facts: Facts) -> list[Phrase]:
    steps = [phrase("handoff_next_note", name=code(name)) for name in facts.notes]
    if isinstance(facts.tree, Tree):
        steps += _tree_steps(facts.tree)
    steps += [
        phrase("handoff_next_wait", label=code(wait.label), activity=_activity(wait))
        for wait in facts.waits or ()
    ]
    return steps or [phrase("handoff_next_ask")]


def _activity(wait: Wait) -> str | Phrase:
    return code(wait.resume) if wait.resume else phrase("handoff_blocked_activity")


def _tree_steps(tree: Tree) -> list[Phrase]:
    steps = []
    if tree.conflicts:
        steps.append(phrase("handoff_next_conflicts", count=len(tree.conflicts)))
    if tree.changed:
        steps.append(phrase("handoff_next_changes", count=len(tree.changed)))
    if tree.ahead:
        steps.append(phrase("handoff_next_push", count=tree.ahead))
    return steps


def _why(facts: Facts) -> Iterator[Phrase]:
    if facts.used is None:
        yield phrase("handoff_by_hand")
    else:
        percent = rounded(facts.used.percent)
        yield phrase(
            "handoff_by_context", percent=percent, source=facts.used.source.value
        )
    if facts.topic:
        yield phrase("handoff_topic", topic=facts.topic)
    if facts.evidence is None:
        yield phrase("handoff_single_task")
    else:
        planned = facts.kind is Kind.MULTI_SESSION
        key = "handoff_multi_session" if planned else "handoff_component_work"
        yield phrase(key, evidence=code(facts.evidence))


def _status(facts: Facts) -> Iterator[Phrase | str]:
    yield phrase("handoff_project", path=code(facts.project))
    tree = facts.tree
    if not isinstance(tree, Tree):
        yield phrase("handoff_no_git", reason=tree)
        return
    head = code(tree.head) if tree.head else phrase("handoff_none_yet")
    if tree.branch is None:
        yield phrase("handoff_on_no_branch", head=head)
    else:
        yield phrase("handoff_on_branch", branch=code(tree.branch), head=head)
    yield _ahead(tree)
    if tree.commits:
        yield phrase("handoff_commits")
        yield from _listed(tree.commits)
    if not tree.changed:
        yield phrase("handoff_clean")
        return
    yield phrase("handoff_changes", count=len(tree.changed))
    yield from _listed(tree.changed)


def _ahead(tree: Tree) -> Phrase:
    if tree.ahead is None:
        return phrase("handoff_no_upstream")
    return phrase("handoff_ahead", count=tree.ahead)


def _listed(texts: Sequence[str]) -> Iterator[Phrase | str]:
    yield from (code(text) for text in texts[:MOST_SHOWN])
    if len(texts) > MOST_SHOWN:
        yield phrase("handoff_more", count=len(texts) - MOST_SHOWN)


def _waits(facts: Facts) -> Iterator[Phrase]:
    if facts.waits is None:
        yield _UNREAD
    elif not facts.waits:
        yield phrase("handoff_no_waits")
    else:
        yield phrase("handoff_waits_live_on")
        for wait in facts.waits:
            yield phrase(
                "handoff_wait",
                id=wait.id,
                target=code(wait.target),
                until=wait.until,
                activity=_activity(wait),
                command=code(f"koder-monitor show {wait.id}"),
            )
        if facts.more_waits:
            yield phrase("handoff_more", count=facts.more_waits)


def _push(facts: Facts) -> Iterator[Phrase]:
    yield phrase("handoff_never_pushed")
    if isinstance(facts.tree, Tree):
        yield _ahead(facts.tree)


def _verification(facts: Facts) -> Iterator[Phrase]:
    if isinstance(facts.tree, Tree):
        changes = "handoff_expect_changes" if facts.tree.changed else "handoff_clean"
        yield _expected("git status --short", phrase(changes))
        for subject in facts.tree.commits[:1]:
            yield _expected("git log -3 --oneline", code(subject))
    if facts.waits is None:
        yield _expected("koder-monitor doctor", _UNREAD)
    else:
        count = len(facts.waits) + facts.more_waits
        waits = phrase("handoff_expect_waits", count=count)
        yield _expected("koder-monitor list", waits)


def _expected(command: str, expected: str | Phrase) -> Phrase:
    return phrase("handoff_expect", command=code(command), expected=expected)


def _traps(facts: Facts) -> Iterator[Phrase]:
    yield phrase("handoff_trap_old", at=facts.at)
    if isinstance(facts.tree, Tree):
        if facts.tree.staged:
            yield phrase("handoff_trap_staged", count=len(facts.tree.staged))
        if facts.tree.conflicts:
            yield phrase("handoff_conflicts")
        if facts.tree.branch is None:
            yield phrase("handoff_detached")
    for wait in facts.waits or ():
        if not wait.seen:
            yield phrase("handoff_trap_unseen", label=code(wait.label))
