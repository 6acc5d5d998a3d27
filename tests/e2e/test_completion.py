"""`koder-monitor completion`: what a shell completes our words by (C1.5)."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.command import LIMIT_S, Place
from tests.e2e.test_startup import env_of, imported
from watcher.cli.parser import COMMANDS, WATCHES

SHELLS = ("bash", "zsh", "tcsh")


def completed(script: Path, *words: str) -> list[str]:
    """Return what bash offers for the last word of a command line."""
    typed = " ".join(shlex.quote(word) for word in ("koder-monitor", *words))
    asked = f"""
        source {shlex.quote(str(script))}
        function=$(complete -p koder-monitor | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
        COMP_WORDS=({typed})
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        "$function" koder-monitor
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", asked],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    assert done.stderr == ""
    return [word.strip() for word in done.stdout.split("\n") if word.strip()]


@pytest.fixture
def script(place: Place) -> Path:
    path = place.folder / "completion.bash"
    path.write_text(place.run("completion", "bash").out, "utf-8")
    return path


def test_bash_completes_commands(script: Path) -> None:
    assert set(completed(script, "")) >= {*WATCHES, *COMMANDS}
    assert completed(script, "comp") == ["completion"]
    assert set(completed(script, "l")) >= {"lock", "list"}


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["lock", "--ta"], ["--take"]),
        (["process", "--pid"], ["--pid", "--pidfile"]),
        (["http", "--st"], ["--status"]),
        (["wait", "--a"], ["--any", "--all"]),
        (["lock", "--exit"], ["--exit-codes"]),
        (["list", "--wa"], ["--watch"]),
    ],
)
def test_bash_completes_the_options_of_each_command(
    script: Path, words: list[str], offered: list[str]
) -> None:
    assert sorted(completed(script, *words)) == sorted(offered)


def test_bash_completes_what_an_option_may_be(script: Path) -> None:
    assert completed(script, "lock", "demo", "--lang", "p") == ["pt"]
    assert sorted(completed(script, "completion", "")) == sorted(SHELLS)


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_a_script_that_names_our_commands(
    place: Place, shell: str
) -> None:
    ended = place.run("completion", shell)
    assert ended.status == 0
    assert ended.err == ()
    for name in ("koder-monitor", "lock", "wait", "outbox"):
        assert name in ended.out
    program = shutil.which(shell)
    if program is not None and shell != "tcsh":  # tcsh has no dry run
        read = [program, "-n"]
        subprocess.run(read, input=ended.out, text=True, check=True, timeout=LIMIT_S)


@pytest.mark.parametrize("words", [[], ["fish"], ["bash", "zsh"]])
def test_another_shell_is_refused(place: Place, words: list[str]) -> None:
    ended = place.run("completion", *words)
    assert (ended.status, ended.out) == (2, "")
    assert "--help" in ended.err[0]


@pytest.mark.parametrize("words", [["--help"], ["list"], ["outbox"]])
def test_no_other_command_imports_what_makes_the_script(
    place: Place, words: list[str]
) -> None:
    names = imported(place.start(*words, env=env_of(place)).end().err)
    assert "argparse" in names
    assert "shtab" not in names
    made = place.start("completion", "bash", env=env_of(place)).end().err
    assert "shtab" in imported(made)
