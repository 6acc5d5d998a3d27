"""`koder-monitor install RUNTIME`: register with a coding agent (C11.1)."""

import argparse
import os
import sys
from collections.abc import Iterator

from policies.text import clean
from policies.wording import Lang, Phrase, phrase
from watcher.cli.common import working_directory
from watcher.cli.output import say
from watcher.cli.reading import add_lang, language
from watcher.errors import UsageError
from watcher.installing import install, program_path
from watcher.paths import project_directory, state_directory
from watcher.runtimes import manifest
from watcher.runtimes.plan import Plan, Step, plan_install
from watcher.runtimes.registry import RUNTIMES
from watcher.runtimes.slots import Site, skill, slots

EXIT_REFUSED = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the runtime, and how far to go."""
    add_runtime(parser)
    parser.add_argument(
        "--force",
        action="store_true",
        help="also what is read-only; do the rest where something cannot be done; bring"
        " everything beside an active plugin",
    )
    add_lang(parser)


def add_runtime(parser: argparse.ArgumentParser) -> None:
    """Add the runtime and what install and uninstall have in common."""
    parser.add_argument(
        "runtime",
        metavar="RUNTIME",
        choices=sorted(RUNTIMES),
        help=", ".join(sorted(RUNTIMES)),
    )
    parser.add_argument(
        "--local", action="store_true", help="for this project, not for the person"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be done, and do nothing"
    )


def run(options: argparse.Namespace) -> int:
    """Register, or say what stands in the way."""
    lang = language(options.lang, os.environ)
    site = site_of(options, program_path(sys.argv[0], sys.executable))
    if RUNTIMES[site.runtime].by_hand:
        show(_by_hand(site), lang)
        return 0
    state = state_directory(os.environ)
    if options.dry_run:
        known = manifest.load(state)
        plan = plan_install(site, known, forced=options.force)
    else:
        plan = install(site, state, forced=options.force)
    done = options.force or not plan.refused
    show(
        [_headline(plan, dry=options.dry_run, done=done), *told(plan, adding=True)],
        lang,
    )
    return EXIT_REFUSED if plan.refused else 0


def site_of(options: argparse.Namespace, program: str) -> Site:
    """Return where to register.

    Raises:
        UsageError: the runtime has no files of a project.
    """
    runtime = RUNTIMES[options.runtime]
    project = project_directory(working_directory()) if options.local else None
    if project is not None and runtime.hooks is not None and not runtime.hooks.local:
        raise UsageError(phrase("no_local", runtime=runtime.title))
    return Site(
        runtime=options.runtime,
        user=os.path.expanduser("~"),
        project=project,
        program=program,
        env=dict(os.environ),
    )


def show(lines: "list[Phrase | str]", lang: Lang) -> None:
    """Write lines to stdout."""
    for line in lines:
        say(line if isinstance(line, str) else line.render(lang))


def told(plan: Plan, *, adding: bool) -> "list[Phrase | str]":
    """Return what is done to each file, and what else there is to know."""
    lines: list[Phrase | str] = []
    for step in plan.steps:
        lines += _told(step, adding=adding)
    return [*lines, *plan.notes]


def _told(step: Step, *, adding: bool) -> Iterator[Phrase | str]:
    path = clean(step.slot.path)
    if step.refused is not None:
        yield step.refused
        if adding:
            yield phrase("add_this", path=step.slot.path)
            yield step.slot.snippet().rstrip("\n")
    elif step.slot.whole and not step.idle:
        sign = "~" if step.before else "+"
        yield f"{'-' if step.after is None else sign} {path}"
    else:
        yield f"{'=' if step.idle else '~' if step.before else '+'} {path}"
        for change in step.changes:
            yield f"  {change.sign} {change.where}: {clean(change.command)}"
    yield from step.warned


def _headline(plan: Plan, *, dry: bool, done: bool) -> Phrase:
    title = RUNTIMES[plan.site.runtime].title
    if dry:
        return phrase("install_dry", runtime=title)
    if not done:
        return phrase("install_not", runtime=title)
    if plan.refused:
        return phrase("install_partly", runtime=title)
    idle = all(step.idle for step in plan.steps)
    return phrase("install_same" if idle else "install_done", runtime=title)


def _by_hand(site: Site) -> "list[Phrase | str]":
    """Return what goes where, for a runtime whose files we do not change."""
    runtime = RUNTIMES[site.runtime]
    source, read_on = runtime.source, runtime.read_on
    lines: list[Phrase | str] = [
        phrase("by_hand", runtime=runtime.title, read_on=read_on, source=source)
    ]
    for slot in slots(site):
        lines += [phrase("add_this", path=slot.path), slot.snippet().rstrip("\n")]
    if runtime.instructions is not None:
        body = skill().partition("---\n")[2].partition("---\n")[2]
        lines += [phrase("add_text", path=runtime.instructions), body.strip("\n")]
    return lines
