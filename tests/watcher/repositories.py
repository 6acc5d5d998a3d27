"""Real git repositories in a folder of the test, with settings of the test's own."""

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

LIMIT_S = 60.0
"""Seconds until a test gives up on a git that takes milliseconds."""

REAL_GIT = next(
    f"{folder}/git"
    for folder in os.environ["PATH"].split(":")
    if os.access(f"{folder}/git", os.X_OK)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """A folder with a home, a state directory, and git's settings for its tests."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    @classmethod
    def below(cls, folder: Path) -> "Rig":
        """Make the folders, and a person for the commits."""
        home = folder / "git-home"
        home.mkdir()
        (home / "gitconfig").write_text(
            "[user]\nname = Ana\nemail = ana@example.org\n"
            '[init]\ndefaultBranch = main\n[protocol "file"]\nallow = always\n'
        )
        env = {
            "GIT_CEILING_DIRECTORIES": str(folder),
            "GIT_CONFIG_GLOBAL": str(home / "gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "HOME": str(home),
            "KODER_MONITOR_CONFIG": str(home / "config.toml"),
            "KODER_MONITOR_STATE": str(folder / "state"),
        }
        (home / "config.toml").write_text("")
        return cls(folder=folder, env=env)

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def repository(self, name: str = "project", *, commits: int = 1) -> "Repo":
        """Make a repository with some commits."""
        repo = Repo(path=self.folder / name, env={**os.environ, **self.env})
        repo.path.mkdir(parents=True)
        repo.git("init", "--quiet")
        for number in range(commits):
            repo.write("kept.txt", f"{number}\n")
            repo.git("add", "kept.txt")
            repo.git("commit", "--quiet", "-m", f"commit {number}")
        return repo


@dataclass(frozen=True, slots=True, kw_only=True)
class Repo:
    """A repository, asked by git itself."""

    path: Path
    env: dict[str, str]

    def git(self, *words: str, check: bool = True) -> str:
        """Run git in it and return what it prints."""
        done = subprocess.run(
            [REAL_GIT, *words],
            cwd=self.path,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout.decode("utf-8", "surrogateescape")

    def write(self, name: str, text: str = "x\n") -> Path:
        """Write a file of it."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def hook(self, name: str, script: str) -> None:
        """Put a hook into it."""
        path = self.path / ".git/hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def committed(self) -> list[str]:
        """Return the paths that the last commit changed."""
        shown = self.git("show", "--no-renames", "--name-only", "-z", "--format=")
        return sorted(filter(None, shown.split("\0")))

    def staged(self) -> list[str]:
        """Return the paths whose index differs from the last commit."""
        shown = self.git("diff", "--cached", "--no-renames", "--name-only", "-z")
        return sorted(filter(None, shown.split("\0")))

    def count(self) -> int:
        """Return the number of commits."""
        return int(self.git("rev-list", "--count", "--all") or 0)

    def entries(self) -> str:
        """Return the whole index as git lists it."""
        return self.git("ls-files", "--stage", "-z")


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return every file below a folder with its mode and content, byte for byte."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted(folder.rglob("*"))
    }


def recording_git(folder: Path, *, before: str = "") -> Path:
    """Make a folder for PATH whose git writes down each call, then is the real one.

    Args:
        folder: where it is made.
        before: shell to run first, such as a wait.
    """
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    script = bin_folder / "git"
    script.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$*" >> "{folder}/calls"\n{before}\n'
        f'exec {REAL_GIT} "$@"\n'
    )
    script.chmod(0o755)
    return bin_folder
