"""The git repository of a project: looked at, and committed to by path (C11.3).

Nothing here asks a person or the network, and nothing waits for ever: every call has a
limit and neither terminal nor stdin, and no call knows a remote. A commit takes along
exactly what it names; whatever else is staged stays staged, whatever happens.
"""

import contextlib
import os
import signal
import subprocess  # noqa: TID251 - a command or hook that does this alone
import tempfile
import time
from collections.abc import Sequence
from typing import NamedTuple

from policies.handoff_text import Tree, against_commit
from policies.text import clean
from policies.wording import Phrase, phrase

_LOOK_LIMIT_S = 10.0
_GRACE_S = 2.0  # for git to take its locks away when it is told to end
_MOST_BYTES = 1 << 20  # of an answer
_MOST_COMMITS = 5

_UNDER_WAY = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}

_KEPT = ("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM")
_KEPT_ALSO = frozenset({"GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES"})
_ASKS = frozenset({"GPG_TTY", "SSH_ASKPASS"})
"""What would let a program that signs ask somebody."""


class Said(NamedTuple):
    """What a call of git came to; `failed` says why there is no good answer."""

    out: bytes
    failed: Phrase | None


class State(NamedTuple):
    """How a path stands: as in `git status --porcelain=v2`, a dot for unchanged."""

    staged: str
    changed: str

    @property
    def is_new(self) -> bool:
        """Say whether git does not know it yet."""
        return self.staged == "?"

    @property
    def is_ignored(self) -> bool:
        """Say whether git is told not to see it."""
        return self.staged == "!"


class Repository:
    """The repository that a folder lies in, if it does."""

    def __init__(self, folder: str, *, limit_s: float) -> None:
        """Ask nothing yet.

        Args:
            folder: absolute path of a folder.
            limit_s: for all that is done here together.
        """
        self.folder = folder
        self._end_s = _boot() + limit_s
        self._look_s = min(_LOOK_LIMIT_S, limit_s)
        self._stuck = False

    def tree(self) -> Tree | Phrase:
        """Return what git says of the folder, or why it says nothing."""
        inside = self._look("rev-parse", "--is-inside-work-tree")
        if inside.failed is not None:
            return inside.failed
        if inside.out.strip() != b"true":
            return phrase("handoff_bare")
        status = self._look(
            "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=normal"
        )
        if status.failed is not None:
            return status.failed
        log = self._look("log", f"-{_MOST_COMMITS}", "-z", "--format=%h %s")
        return _tree(_parts(status.out), _parts(log.out))

    def obstacle(self, tree: Tree) -> Phrase | None:
        """Return why nothing should be committed by itself here, if anything."""
        if self._path("--show-superproject-working-tree"):
            return phrase("handoff_submodule")
        own, common = self._path("--absolute-git-dir"), self._path("--git-common-dir")
        if os.path.realpath(own) != os.path.realpath(os.path.join(self.folder, common)):
            return phrase("handoff_worktree")
        for name, what in _UNDER_WAY.items():
            if os.path.lexists(f"{own}/{name}"):
                return phrase("handoff_under_way", name=what)
        if os.path.lexists(f"{own}/index.lock"):
            return phrase("handoff_index_locked")
        return against_commit(tree)

    def states(self, names: Sequence[str]) -> dict[str, State] | Phrase:
        """Return how files of the folder stand; one that is unchanged is left out."""
        prefix = self._path("--show-prefix")
        said = self._look(
            *("status", "--porcelain=v2", "-z", "--untracked-files=all"),
            *("--ignored=matching", "--no-renames", "--", *names),
        )
        if said.failed is not None:
            return said.failed
        found = {}
        for staged, changed, path in _entries(_parts(said.out)):
            for name in names:
                whole = prefix + name
                if whole == path or (path[-1:] == "/" and whole.startswith(path)):
                    found[name] = State(staged, changed)
        return found

    def ignores(self, name: str) -> bool:
        """Say whether a new file of this name would be ignored."""
        # Literal paths are the one thing that this command does not know.
        words = ("--no-literal-pathspecs", "check-ignore", "--quiet", "--", name)
        return self._look(*words).failed is None

    def commit(
        self, names: Sequence[str], new: Sequence[str], message: str
    ) -> Phrase | None:
        """Commit files of the folder and nothing else; return why not, if not.

        What was staged before stays staged and uncommitted. When it fails, the index
        is put back: only `new` names were added to it.

        Args:
            names: the files, all with changes.
            new: those of them that git does not know yet.
            message: of the commit.
        """
        failed = None
        if new:
            failed = self._change("add", "--", *new).failed
        if failed is None:
            words = ("commit", "--quiet", f"--message={message}", "--only", "--")
            failed = self._change(*words, *names).failed
        if failed is None or self._is_committed(names):
            return None
        back = ("rm", "--cached", "--quiet", "--force", "--ignore-unmatch", "--")
        if new and self._change(*back, *new, limit_s=self._look_s).failed:
            return phrase("handoff_not_restored", names=" ".join(new))
        return failed

    def _is_committed(self, names: Sequence[str]) -> bool:
        """Say whether a commit that did not end well was made all the same."""
        in_head = self._look("ls-tree", "-z", "--name-only", "HEAD", "--", *names)
        changed = self._look("diff", "--quiet", "HEAD", "--", *names)
        known = {
            part.decode("utf-8", "surrogateescape") for part in in_head.out.split(b"\0")
        }
        return changed.failed is None and known >= set(names)

    def _path(self, option: str) -> str:
        """Return a path that git tells, empty when it does not."""
        said = self._look("rev-parse", option).out
        return said.removesuffix(b"\n").decode("utf-8", "surrogateescape")

    def _look(self, *words: str) -> Said:
        """Ask git without letting it write anything, not even a fresher index.

        Where it was too slow once, it is not asked again.
        """
        if self._stuck:
            return Said(b"", phrase("handoff_git_slow"))
        more = {"GIT_OPTIONAL_LOCKS": "0"}
        plain = ("-c", "core.fsmonitor=false", "-c", "log.showSignature=false")
        said = self._run((*plain, *words), self._look_s, more)
        self._stuck = said.failed == phrase("handoff_git_slow")
        return said

    def _change(self, *words: str, limit_s: float | None = None) -> Said:
        """Have git write; what its settings would do behind that is left out."""
        quiet = ("-c", "gc.auto=0", "-c", "maintenance.auto=false", *words)
        left_s = max(self._end_s - _boot(), 0.0)
        return self._run(quiet, left_s if limit_s is None else limit_s, {})

    def _run(self, words: Sequence[str], limit_s: float, more: dict[str, str]) -> Said:
        call = ["git", "--no-pager", "--literal-pathspecs", "-C", self.folder, *words]
        try:
            with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
                child = subprocess.Popen(  # noqa: S603 - no shell; foreign paths stand behind --
                    call,
                    env=_environment() | more,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,  # no terminal to ask on
                )
                status = _wait(child, limit_s)
                out.seek(0)
                err.seek(0)
                return _said(status, out.read(_MOST_BYTES), err.read(_MOST_BYTES))
        except OSError as error:
            why = error.strerror or str(error)
            return Said(b"", phrase("handoff_git_missing", error=why))


def _boot() -> float:
    """Return the time since boot; the clock's module would load asyncio."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def _wait(child: "subprocess.Popen[bytes]", limit_s: float) -> int | None:
    """Wait for an end within a limit, then make one; None when it was made."""
    for number, wait_s in ((0, limit_s), (signal.SIGTERM, _GRACE_S)):
        with contextlib.suppress(ProcessLookupError):
            if number:  # it and what it started: hooks, and programs that sign
                os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = child.wait(wait_s)
            return None if number else status
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(_GRACE_S)
    return None


def _said(status: int | None, out: bytes, err: bytes) -> Said:
    if status is None:
        return Said(out, phrase("handoff_git_slow"))
    if status == 0:
        return Said(out, None)
    lines = [line for line in err.decode("utf-8", "replace").splitlines() if line]
    why = clean(lines[0], 200) if lines else f"exit {status}"
    return Said(out, phrase("handoff_git_failed", error=why))


def _environment() -> dict[str, str]:
    """Return our environment without what points to another repository: git(1).

    The list of allowed protocols names none that exists: git can reach no network.
    """
    kept = {
        name: text
        for name, text in os.environ.items()
        if name not in _ASKS
        and (
            not name.startswith("GIT_") or name.startswith(_KEPT) or name in _KEPT_ALSO
        )
    }
    return kept | {
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_ASKPASS": "",
        "GIT_EDITOR": ":",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "SSH_ASKPASS_REQUIRE": "never",
    }


def _parts(answer: bytes) -> list[str]:
    """Return the whole parts of an answer; the last one may have been cut."""
    return [part.decode("utf-8", "surrogateescape") for part in answer.split(b"\0")][
        : -1 if len(answer) >= _MOST_BYTES or answer.endswith(b"\0") else None
    ]


def _entries(parts: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return index state, work tree state and path of what git status lists."""
    found = []
    rest = iter(parts)
    for part in rest:
        kind, _, about = part.partition(" ")
        if kind in {"?", "!"}:
            found.append((kind, kind, about))
        elif kind in _FIELDS:
            fields = about.split(" ", _FIELDS[kind])
            states = "uu" if kind == "u" else fields[0]
            found.append((states[:1], states[1:], fields[-1]))
            if kind == "2":
                next(rest, None)  # what it was called before
    return found


_FIELDS = {"1": 7, "2": 8, "u": 9}
"""Fields in front of the path, by the kind of the entry."""


def _tree(status: Sequence[str], commits: Sequence[str]) -> Tree:
    heads = dict(
        part[2:].partition(" ")[::2] for part in status if part.startswith("# ")
    )
    branch, oid = heads.get("branch.head"), heads.get("branch.oid", "(initial)")
    ahead = heads.get("branch.ab", "").partition(" ")[0]
    entries = _entries(status)
    return Tree(
        branch=None if branch == "(detached)" else branch,
        head=None if oid == "(initial)" else oid[:10],
        ahead=int(ahead) if ahead.startswith("+") and ahead[1:].isdigit() else None,
        staged=tuple(path for staged, _, path in entries if staged not in ".?!u"),
        changed=tuple(path for _, _, path in entries),
        conflicts=tuple(path for staged, _, path in entries if staged == "u"),
        commits=tuple(commit for commit in commits if commit),
    )
