"""`koder-monitor uninstall RUNTIME`: take out what install has put in (C11.1)."""

import argparse
import os
import sys

from policies.edits.ours import PROGRAM
from policies.wording import Phrase, phrase
from watcher.cli.install import EXIT_REFUSED, add_runtime, show, site_of, told
from watcher.cli.reading import add_lang, language
from watcher.errors import UsageError
from watcher.installing import program_path
from watcher.paths import state_directory
from watcher.runtimes import manifest
from watcher.runtimes.plan import Plan
from watcher.runtimes.registry import RUNTIMES
from watcher.uninstalling import plan_uninstall, uninstall


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the runtime."""
    add_runtime(parser)
    add_lang(parser)


def run(options: argparse.Namespace) -> int:
    """Take us out, or say where that could not be done."""
    lang = language(options.lang, os.environ)
    site = site_of(options, _program())
    state = state_directory(os.environ)
    if options.dry_run:
        plan = plan_uninstall(site, manifest.load(state))
    else:
        plan = uninstall(site, state)
    show([_headline(plan, dry=options.dry_run), *told(plan, adding=False)], lang)
    return EXIT_REFUSED if plan.refused else 0


def _program() -> str:
    """Return our command, which may be gone by now."""
    try:
        return program_path(sys.argv[0], sys.executable)
    except UsageError:
        return PROGRAM


def _headline(plan: Plan, *, dry: bool) -> Phrase:
    title = RUNTIMES[plan.site.runtime].title
    if dry:
        return phrase("install_dry", runtime=title)
    if plan.refused:
        return phrase("uninstall_partly", runtime=title)
    idle = all(step.idle for step in plan.steps)
    return phrase("uninstall_none" if idle else "uninstall_done", runtime=title)
