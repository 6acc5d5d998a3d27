"""What the documents say is what the product does."""

import argparse
import json
import os
import re
import select
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import IO

import pytest

import watcher
from notify.channels.fallback import FallbackLog
from policies.delivery import Answer, classify
from policies.lines import outcome_line
from policies.model import Ending, Outcome, Result
from policies.shapes import outcome_object, outcome_ping
from policies.target import lock_target, match_target, pid_target
from policies.wording import Lang, Phrase, phrase
from watcher.cli import EXIT_INTERNAL, EXIT_USAGE, job, notify_release
from watcher.cli.common import exit_status
from watcher.cli.parser import COMMANDS, WATCHES, parse
from watcher.cli.watch import WatchCommand
from watcher.conditions import KINDS, kind_of
from watcher.config import Config, load_config
from watcher.database import NAME
from watcher.socket_path import LOCK_NAME, SOCKET_NAME

ROOT = Path(__file__).parent.parent
READMES = ("README.md", "README.pt-BR.md")
OF_KINDS = {kind: f"docs/conditions/{kind}.md" for kind in KINDS}
PAGES = (
    *READMES,
    "CHANGELOG.md",
    "docs/adding-a-condition.md",
    "docs/agents.md",
    "docs/architecture.md",
    "docs/page.md",
    "docs/operating.md",
    *OF_KINDS.values(),
)
TEXTS = {page: (ROOT / page).read_text("utf-8") for page in PAGES}
LIMIT_S = 30.0  # for one line of a command; it takes milliseconds

FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TO_COME = re.compile(
    r"^## (?:Not yet|Ainda não)\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL
)
REDIRECTION = re.compile(r"\d?(?:>>|>|<<|<)&?\s*\S+")
CRON_TIME = re.compile(r"^(?:[\d*/,-]+\s+){5}")
PROGRAMS = ("koder-monitor", "koder-job", "notify-release")


def blocks(page: str, language: str) -> list[str]:
    return [text for found, text in FENCED.findall(TEXTS[page]) if found == language]


def calls(script: str) -> Iterator[list[str]]:
    """Give the words of each call of ours in a script, a quoted one too."""
    for line in script.replace("\\\n", " ").splitlines():
        told = REDIRECTION.sub(" ", CRON_TIME.sub("", line))
        lexer = shlex.shlex(told, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if not set(word) <= set("();<>|&"):
                words.append(word)
                continue
            while words and words[0] in {"setsid", "nohup"}:
                del words[0]
            if words and Path(words[0]).name in PROGRAMS:
                yield [Path(words[0]).name, *words[1:]]
            for quoted in words:
                if " " in quoted and quoted.startswith(PROGRAMS):
                    yield from calls(quoted)
            words = []


def calls_of(page: str) -> Iterator[list[str]]:
    for language in ("sh", "crontab"):
        for block in blocks(page, language):
            yield from calls(block)
    for block in blocks(page, "console"):
        typed = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
        yield from calls("\n".join(typed))
    for block in blocks(page, "yaml"):
        yield from calls("\n".join(re.findall(r"run: (.*)", block)))
    for block in blocks(page, "json"):
        yield from calls(json.loads(block).get("command", ""))


CALLS = [(page, words) for page in READMES for words in calls_of(page)]


@pytest.mark.parametrize(
    ("page", "words"), CALLS, ids=[f"{page}: {shlex.join(w)}" for page, w in CALLS]
)
def test_a_command_that_a_readme_shows_is_one_that_can_be_called(
    page: str, words: list[str]
) -> None:
    program, *argv = words
    if argv == ["--version"]:
        with pytest.raises(SystemExit, match=r"^0$"):
            parse(argv)
    elif program == "koder-monitor":
        parse(argv)
    elif program == "koder-job":
        job._parser().parse_args(argv)
    else:
        notify_release._parse(argv)


@pytest.mark.parametrize("page", READMES)
def test_a_readme_shows_every_command(page: str) -> None:
    shown = [words for where, words in CALLS if where == page]
    assert {words[0] for words in shown} == set(PROGRAMS)
    called = {words[1] for words in shown if words[0] == "koder-monitor"}
    assert called >= {*WATCHES, *COMMANDS}
    jobs = {words[1] for words in shown if words[0] == "koder-job"}
    assert jobs >= {"start", "done", "list"}


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("a & koder-monitor lock x >>f 2>&1 </dev/null &", [["lock", "x"]]),
        ("setsid nohup koder-monitor lock 'x y' &", [["lock", "x y"]]),
        (
            "koder-monitor lock x && koder-monitor lock y",
            [["lock", "x"], ["lock", "y"]],
        ),
        ('tmux new -d "koder-monitor lock x | tee f"', [["lock", "x"]]),
        ("5 4 * * 1-5  $HOME/bin/koder-monitor lock x", [["lock", "x"]]),
        (
            "koder-monitor process --pid $! \\\n --ttl 4h",
            [["process", "--pid", "$!", "--ttl", "4h"]],
        ),
        ("python3 -m venv lib/koder-monitor  # koder-monitor lock x", []),
    ],
)
def test_calls_are_found_in_scripts(script: str, found: list[list[str]]) -> None:
    assert list(calls(script)) == [["koder-monitor", *words] for words in found]


# Options, commands and names


def options() -> set[str]:
    """Give the options of every command, but those that a person is not told of."""
    parser = argparse.ArgumentParser(add_help=False, conflict_handler="resolve")
    for name in WATCHES:
        WatchCommand(name).add_arguments(parser)
    for module, _ in COMMANDS.values():
        import_module(module).add_arguments(parser)
    inner = [action.choices for action in job._parser()._actions if action.choices]
    parsers = [parser, *(sub for names in inner for sub in dict(names).values())]
    return {
        name
        for one in parsers
        for action in one._actions
        for name in action.option_strings
        if action.help != argparse.SUPPRESS and name.startswith("--")
    } - {"--help"}


@pytest.mark.parametrize("option", sorted(options()))
def test_the_readme_names_every_option(option: str) -> None:
    assert re.search(rf"`{option}[ `]", TEXTS["README.md"])


@pytest.mark.parametrize("page", READMES)
def test_a_readme_names_no_option_that_does_not_exist(page: str) -> None:
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", TO_COME.sub("", TEXTS[page])))
    assert named <= options() | {"--version"}


@pytest.mark.parametrize("page", READMES)
def test_a_readme_names_no_command_that_does_not_exist(page: str) -> None:
    told = TO_COME.sub("", TEXTS[page])
    named = set(re.findall(r"`koder-monitor\s+([a-z][\w-]*)", told))
    assert named <= {*WATCHES, *COMMANDS}


@pytest.mark.parametrize("page", READMES)
def test_a_readme_says_what_is_still_to_come(page: str) -> None:
    assert TO_COME.search(TEXTS[page])


@pytest.mark.parametrize("page", PAGES)
def test_what_make_is_told_to_make_is_in_the_makefile(page: str) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"`make ([a-z]+)`", TEXTS[page]):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_readme_names_the_variables_that_the_code_reads() -> None:
    name = re.compile(r"KODER_MONITOR_[A-Z_]+")
    package = Path(watcher.__file__).parent
    sources = (path.read_text("utf-8") for path in package.rglob("*.py"))
    read = {found for source in sources for found in name.findall(source)}
    assert set(name.findall(TEXTS["README.md"])) == read
    assert set(name.findall(TEXTS["README.pt-BR.md"])) <= read


def test_the_readme_lists_every_exit_status() -> None:
    table = re.findall(r"^\| ((?:`\d+` )+)\|", TEXTS["README.md"], re.MULTILINE)
    listed = {int(number) for cell in table for number in re.findall(r"\d+", cell)}
    ends = [replace(LOCK, ending=ending) for ending in Ending]
    told = {exit_status(end) for end in [*ends, replace(LOCK, result=Result.FAIL)]}
    signals = {129, 130, 143}
    assert listed | {3} == told | signals | {EXIT_USAGE, EXIT_INTERNAL}


def test_the_readme_says_of_every_status_code_what_follows() -> None:
    pings = TEXTS["README.md"].partition("\n## Pings\n")[2]
    row = re.compile(r"^\| ((?:`\dxx` |`\d{3}` )+)\| ([^|]+) \|", re.MULTILINE)
    said = {
        code: text
        for codes, text in row.findall(pings)
        for code in re.findall(r"\d\w\w", codes)
    }
    words = {
        Answer.DELIVERED: "delivered",
        Answer.TRY_LATER: "tried again",
        Answer.REFUSED: "dead",
    }
    for status in range(200, 600):  # what begins with 1 is no answer yet
        text = said.get(str(status)) or said[f"{status // 100}xx"]
        assert text.startswith(words[classify(status)]), status


def test_the_readme_names_the_files_that_the_service_keeps() -> None:
    for name in (NAME, SOCKET_NAME, LOCK_NAME, "service.log", "release-pings.log"):
        assert f"| `{name}`" in TEXTS["README.md"]


# A page a condition


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_of_a_condition_names_its_options(kind: str) -> None:
    page = TEXTS[OF_KINDS[kind]]
    assert page.startswith(f"# {kind}: ")
    assert f"\n    koder-monitor {kind} " in page
    parser = argparse.ArgumentParser(add_help=False)
    kind_of(kind).add_arguments(parser)
    for action in parser._actions:
        for option in action.option_strings:
            assert re.search(rf"{option}\b", page), option


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_a_condition_prints_what_its_page_shows(
    kind: str, programs: dict[str, str], tmp_path: Path
) -> None:
    [script], [shown] = blocks(OF_KINDS[kind], "sh"), blocks(OF_KINDS[kind], "text")
    python = tmp_path / "bin" / "python3"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    ran = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", script],
        check=False,
        cwd=tmp_path,
        env={**programs, "KODER_MONITOR_FLOOR": "1s"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=100,
    )
    # A machine that is busy may come to it only when it has cleared already; and not
    # every system tells by which exit status a process ended.
    varies = r" — já (estava livre|não rodava) ao armar| \[PASS\] «código 0»"
    printed = re.sub(varies, "", ran.stdout)
    assert alike(printed.strip()) == alike(shown.strip()), ran.stderr


# Settings


def settings(text: str, folder: Path) -> Config:
    path = folder / "config.toml"
    path.write_text(text, "utf-8")
    loaded = load_config({"KODER_MONITOR_CONFIG": str(path)})
    return replace(loaded, state="")


@pytest.mark.parametrize("page", READMES)
def test_the_settings_that_a_readme_shows_can_be_loaded(
    page: str, tmp_path: Path
) -> None:
    [text] = blocks(page, "toml")
    assert settings(text, tmp_path).notify.url == "https://notify.example.org/v1/notify"


def test_the_readme_shows_every_setting() -> None:
    [text] = blocks("README.md", "toml")
    shown = tomllib.loads(text)
    wanted: dict[str, set[str] | None] = {}
    for item in fields(Config):
        section = getattr(Config(), item.name)
        inner = {f.name for f in fields(section)} if is_dataclass(section) else None
        wanted[item.name] = inner
    for name in ("state", "notify_key", "token"):  # of the environment only
        del wanted[name]
    assert wanted == {
        name: set(value) if isinstance(value, dict) else None
        for name, value in shown.items()
    }


def test_what_the_readme_shows_as_a_default_is_the_default(tmp_path: Path) -> None:
    [text] = blocks("README.md", "toml")
    kept = [line for line in text.splitlines() if "default" not in line]
    assert len(kept) > len(fields(Config))
    assert settings("\n".join(kept), tmp_path) == Config()


# Lines, JSON and the log

AT = datetime(2026, 11, 30, 14, 3, 21, 874000, tzinfo=UTC)
LOCK = Outcome(
    ending=Ending.RELEASED,
    watch_id="ec28c874b465",
    target=lock_target("/srv/locks/lock-payments-api.md", "/srv/locks"),
    label="payments-api",
    armed_at=AT - timedelta(minutes=2),
    ended_at=AT,
    waited_s=120.0,
    ttl_s=3600,
    resume="the migration",
)
WORK = replace(
    LOCK,
    ending=Ending.ENDED,
    target=pid_target(4711),
    label="API build",
    resume=None,
)
DENIED: Phrase = phrase("denied", path="/srv/locks/lock-payments-api.md")
BLIND = replace(
    LOCK,
    ending=Ending.EXPIRED,
    unknown_since=AT - timedelta(minutes=12),
    reason=DENIED,
)
IMPORT = match_target("nightly-import")
SHOWN = {
    "README.md": [
        LOCK,
        replace(LOCK, already_clear=True),
        WORK,
        replace(WORK, already_clear=True),
        replace(LOCK, ending=Ending.EXPIRED),
        replace(WORK, ending=Ending.EXPIRED),
        BLIND,
        replace(WORK, ending=Ending.UNSEEN, target=IMPORT, label=IMPORT.label),
        replace(
            WORK,
            ending=Ending.REMOVED,
            reason=phrase("said", text="cancelled by hand"),
        ),
    ],
    "README.pt-BR.md": [
        replace(LOCK, resume="a migração"),
        replace(WORK, label="build da API"),
        replace(LOCK, ending=Ending.EXPIRED),
        replace(WORK, ending=Ending.EXPIRED, label="build da API"),
        BLIND,
        replace(WORK, ending=Ending.UNSEEN, target=IMPORT, label=IMPORT.label),
        replace(
            WORK,
            ending=Ending.REMOVED,
            label="build da API",
            reason=phrase("said", text="cancelado à mão"),
        ),
    ],
}


@pytest.mark.parametrize("page", READMES)
def test_the_lines_that_a_readme_shows_are_those_that_are_printed(page: str) -> None:
    shown = blocks(page, "text")[0].splitlines()
    assert shown == [outcome_line(outcome, Lang.PT, UTC) for outcome in SHOWN[page]]


def test_the_object_that_the_readme_shows_has_the_names_of_the_real_one() -> None:
    shown = json.loads(blocks("README.md", "json")[-1])
    real = outcome_object(LOCK, Lang.PT, UTC)
    assert list(shown) == list(real)
    same = ("outcome", "target", "label", "watch_id", "ended_at", "resume", "line")
    assert {name: shown[name] for name in same} == {name: real[name] for name in same}


def test_the_log_line_that_the_readme_shows_is_the_one_that_is_written(
    tmp_path: Path,
) -> None:
    log = tmp_path / "release-pings.log"
    reason = phrase("no_channel").render(Lang.PT)
    FallbackLog(str(log), UTC).append(outcome_ping(LOCK, Lang.PT, UTC), reason)
    assert log.read_text("utf-8") == blocks("README.md", "text")[1]


# Links and places


def anchors(text: str) -> set[str]:
    """Give what a heading can be linked by, as GitHub makes it."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    for path, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", TEXTS[page]):
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.is_file(), path
        if anchor:
            assert anchor in anchors(target.read_text("utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_is_there(page: str) -> None:
    named = re.findall(
        r"`((?:deploy|docs|notify|policies|tests|watcher)/[\w./]*)`", TEXTS[page]
    )
    assert [path for path in named if not (ROOT / path).exists()] == []


# For real


@dataclass(frozen=True, slots=True)
class Shell:
    """A shell that is typed into, whose output is read a line at a time."""

    stdin: IO[bytes]
    stdout: IO[bytes]

    def type(self, line: str) -> None:
        self.stdin.write(line.encode() + b"\n")
        self.stdin.flush()

    def line(self) -> str:
        """Return the next line, or what there is of it when the time is up."""
        data = b""
        limit_at = time.monotonic() + LIMIT_S
        while not data.endswith(b"\n"):
            left_s = max(limit_at - time.monotonic(), 0)
            if not select.select([self.stdout], [], [], left_s)[0]:
                break
            char = self.stdout.read(1)
            if not char:
                break
            data += char
        return data.decode().rstrip("\n")


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, str]:
    """Put our commands on a PATH, as they are under test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    modules = {
        "koder-monitor": "cli",
        "koder-job": "cli.job",
        "notify-release": "cli.notify_release",
    }
    for name, module in modules.items():
        run = f"import sys; from watcher.{module} import main; sys.exit(main())"
        script = shlex.join([sys.executable, "-c", run])
        (folder / name).write_text(f'#!/bin/sh\nexec {script} "$@"\n')
        (folder / name).chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "TMPDIR": str(tmp_path),
    }


def alike(line: str, home: str = "/home/ana") -> str:
    """Return a line without what differs from one run to the next."""
    line = line.replace(home, "/home/ana")
    for pattern, mark in (
        (r"\S*/tmp\.\w{10}", "/tmp/tmp.X"),
        (r"\d{4}-\d\d-\d\dT", "DATE "),
        (r"\b\d?\d:\d\d:\d\d", "TIME"),
        (r" \[PASS\] «[^»]* 0»", ""),  # only some kernels tell it
        (r"(PID|--pid) \d+", r"\1 N"),
        (r"\b[0-9a-f]{12,16}\b", "KEY"),
        (r"^[0-9a-f]{8} ", "ID "),
        (r" {2,}\d+s? {2,}", "  SOME  "),  # how long ago, in a table
        (r" {2,}", "  "),
    ):
        line = re.sub(pattern, mark, line)
    return line


@pytest.mark.slow
@pytest.mark.parametrize("page", READMES)
def test_what_a_readme_has_people_type_prints_what_it_shows(
    page: str, programs: dict[str, str], tmp_path: Path
) -> None:
    script = [line for text in blocks(page, "console") for line in text.splitlines()]
    with subprocess.Popen(
        ["bash", "--noprofile", "--norc"],
        bufsize=0,
        cwd=tmp_path,
        env=programs,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        shell = Shell(child.stdin, child.stdout)
        try:
            for line in script:
                if line.startswith("$ "):
                    shell.type(line[2:])
                else:
                    seen = alike(shell.line(), programs["HOME"])
                    assert seen == alike(line)
            shell.type("exit")
            assert shell.line() == ""
        finally:
            child.kill()


@pytest.mark.slow
def test_the_demo_goes_as_it_promises(programs: dict[str, str]) -> None:
    demo = subprocess.run(
        [sys.executable, str(ROOT / "deploy/demo.py")],
        check=False,
        env=programs,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=100,
    )
    assert (demo.returncode, demo.stderr) == (0, "")
    assert "== 6/6 Nothing is left running" in demo.stdout
