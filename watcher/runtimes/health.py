"""Whether what was installed is still there, and whether its hooks ever ran (C9.5)."""

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from policies.wording import Phrase, phrase
from watcher.errors import StoreError
from watcher.runtimes import manifest
from watcher.runtimes.heartbeat import Beat, last_beats
from watcher.runtimes.manifest import Install
from watcher.runtimes.plan import plan_install
from watcher.runtimes.registry import RUNTIMES
from watcher.runtimes.slots import Site

_SLACK_S = 1.0  # between the clock and the times of files


class Health(NamedTuple):
    """How one registration is, and what to do where it is not well."""

    name: str
    ok: bool
    detail: Phrase
    mend: Phrase | None


def health(state: str, env: dict[str, str]) -> Iterator[Health]:
    """Give how each registration is; a hook that is registered may never have run."""
    try:
        installs = manifest.load(state)
    except StoreError as error:
        yield Health("manifest", ok=False, detail=error.phrase, mend=None)
        return
    beats = last_beats(state)
    for install in installs:
        where = f" {install.project}" if install.project else ""
        ok, detail, mend = _judged(install, installs, beats, env)
        yield Health(f"{install.runtime}{where}", ok, detail, mend)


def _judged(
    install: Install,
    installs: Sequence[Install],
    beats: Sequence[Beat],
    env: dict[str, str],
) -> tuple[bool, Phrase, Phrase | None]:
    name = install.runtime
    again = phrase("mend_install", runtime=name)
    if not os.access(install.program, os.X_OK):
        return False, phrase("program_gone", program=install.program), again
    site = Site(
        runtime=name,
        user=os.path.expanduser("~"),
        project=install.project,
        program=install.program,
        env=env,
    )
    plan = plan_install(site, installs)
    odd = [step.slot.path for step in plan.steps if step.refused or not step.idle]
    if odd:
        return False, phrase("install_gone", paths=", ".join(odd)), again
    since_s = install.at_s - _SLACK_S
    ran = [b for b in beats if b.runtime == name and b.at.timestamp() >= since_s]
    beat = next(iter(ran), None)
    if beat is not None:
        at = f"{beat.at.astimezone():%Y-%m-%d %H:%M:%S}"
        return True, phrase("hook_ran", at=at, event=beat.event), None
    gate = RUNTIMES[name].gate
    mend = phrase(f"gate_{gate}") if gate else phrase("mend_never")
    at = f"{datetime.fromtimestamp(install.at_s, UTC).astimezone():%Y-%m-%d %H:%M:%S}"
    return False, phrase("hook_never", at=at), mend
