"""Sentences for a model; most hooks have none to say, and do without all of them."""

from watcher.runtimes import HookCall


def said(call: HookCall, key: str, **values: str | int) -> str:
    """Return a sentence in the language of the call, foreign values cleaned."""
    from policies.wording import phrase  # noqa: PLC0415 - start-up time

    return phrase(key, **values).render(call.lang)
