"""Hands a session over by itself when its context window fills up (C11.2, C11.3).

It neither holds the stop nor adds to the conversation, which would make the turn go on:
the person is told, and the model hears of it from the context monitor.
"""

import contextlib
import signal
from collections.abc import Mapping

from policies.context import percentage, rounded
from policies.usage import THRESHOLD, Used, triggers
from watcher.paths import config_file, state_directory
from watcher.runtimes import Advice, HookCall
from watcher.runtimes.dialects import is_active
from watcher.runtimes.handoff_once import begin, finish, is_done, rearm
from watcher.runtimes.percentage import used_share

_HOOK_S = 9.0
"""Once a session the hook may take so long: less than the 10 s of its registration."""


def advise(call: HookCall) -> Advice | None:
    """Write the handoff once a session, at the threshold; say where it lies."""
    session, own = call.session, not call.payload.get("agent_id")
    if session is None or not own or is_active(call.runtime, call.payload):
        return None
    state, now_s = state_directory(call.env), call.at.timestamp()
    used = None if is_done(state, session, now_s) else used_share(call)
    if used is None or not triggers(used, _threshold(call.env)):
        return None
    if not begin(state, session, now_s):
        return None
    _take_longer()
    path = None
    try:
        path = _hand_over(call, state, used)
    finally:
        if path is None:
            rearm(state, session)
    if path is None:
        return None
    with contextlib.suppress(OSError):
        finish(state, session, path)
    from policies.wording import phrase  # noqa: PLC0415 - once a session

    said = phrase(
        "handoff_notice",
        percent=rounded(used.percent),
        source=used.source.value,
        path=path,
    )
    return Advice(notice=said.render(call.lang))


def _take_longer() -> None:
    """Put off the alarm that ends a hook that hangs, where one is set."""
    if signal.getitimer(signal.ITIMER_REAL)[0] > 0:
        signal.setitimer(signal.ITIMER_REAL, _HOOK_S)


def _threshold(env: Mapping[str, str]) -> float:
    """Return the one that is set, without what checks all settings: it costs too much.

    A file that will not do is the matter of the commands that need it.
    """
    from watcher.runtimes.metrics import read_small  # noqa: PLC0415 - start-up time

    data = read_small(config_file(env))
    if data is None or b"handoff" not in data:
        return THRESHOLD
    import tomllib  # noqa: PLC0415 - start-up time: most have no such file

    try:
        section = tomllib.loads(data.decode("utf-8")).get("handoff", {})
        found = percentage(section.get("threshold"))
    except (ValueError, AttributeError):
        return THRESHOLD
    return THRESHOLD if found is None else found


def _hand_over(call: HookCall, state: str, used: Used) -> str | None:
    """Return where the handoff was written, None when it could not be."""
    from watcher.handoff import HOOK_LIMIT_S, Order, hand_over  # noqa: PLC0415

    report = hand_over(
        Order(
            folder=call.project,
            cwd=call.cwd,
            topic=None,
            session=call.session,
            used=used,
            state=state,
            at=call.at,
            lang=call.lang,
            limit_s=HOOK_LIMIT_S,
        )
    )
    return report.facts.path if report.written else None
