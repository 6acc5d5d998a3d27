"""An address: released when a GET answers as it should (C1.2).

No answer is unknown, never a release; a wrong one is held. A redirect is an answer like
any other: it is not followed.
"""

import argparse
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from policies.model import Json, Memory, Observation, Sight, Target
from policies.sight import released, unknown
from policies.target import (
    ANY_SUCCESS,
    canonical_status,
    canonical_url,
    http_target,
)
from policies.wording import Phrase, phrase
from watcher.conditions import Hint, LocalCondition, Place
from watcher.errors import UsageError
from watcher.expressions import fault_of

if TYPE_CHECKING:
    from watcher.fetching import Page

_REGEX_LIMIT_S = 1.0  # for a body
_SHOWN = 120  # characters of what matched, in the evidence

Match = Callable[[str], str | None]
"""Finds what is awaited in a text; TimeoutError when that takes too long."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what is awaited of an address."""
    parser.add_argument("url", metavar="URL", help="asked by GET; http or https")
    parser.add_argument(
        "--status",
        metavar="CODE",
        default=ANY_SUCCESS,
        help="a code, or a class such as 2xx (the default); no redirect is followed",
    )
    parser.add_argument(
        "--body", metavar="REGEX", help="a Python expression that the body must match"
    )


def target_of(options: argparse.Namespace, place: Place) -> Target:  # noqa: ARG001 - an address is one everywhere
    """Return the target of an address; an expression is compiled to check it."""
    try:
        url = canonical_url(options.url)
    except ValueError as error:
        raise UsageError(phrase("bad_url")) from error
    try:
        status = canonical_status(options.status)
    except ValueError as error:
        raise UsageError(phrase("bad_status", status=options.status)) from error
    if options.body is not None:
        _check(options.body)
    return http_target(url, status, options.body)


def build(options: argparse.Namespace, place: Place) -> LocalCondition:
    """Return the condition of an address."""
    target = target_of(options, place)
    return HttpCondition(
        target,
        canonical_url(options.url),
        status=canonical_status(options.status),
        body=options.body,
    )


class HttpCondition:
    """One address, and the answer that is awaited."""

    settle = False

    def __init__(
        self, target: Target, url: str, *, status: str, body: str | None
    ) -> None:
        """Ask nothing yet.

        Args:
            target: names it.
            url: canonical.
            status: a code, or a class such as `2xx`.
            body: the expression that the body must match, if any.

        Raises:
            UsageError: the expression is none.
        """
        self.target = target
        self._url = url
        self._status = status
        self._expression = body
        self._match = None if body is None else _matcher(body)

    @property
    def group(self) -> str:
        """One address, whatever is awaited: a slow one holds up no other."""
        return f"http {self._url}"

    def looker(self) -> None:
        """Let a thread take the looks."""

    def joined(self, launcher: int) -> None:
        """Whoever waits makes no difference."""

    def refusal(self) -> Phrase | None:
        """Refuse an address that no client takes."""
        from watcher.fetching import is_address  # noqa: PLC0415 - start-up time

        return None if is_address(self._url) else phrase("bad_url")

    def unchanged(self, memory: Memory) -> bool:  # noqa: ARG002
        """Say no: only the answer tells."""
        return False

    def hung(self, memory: Memory, at: datetime) -> Observation:
        """Say that no answer came."""
        reason = phrase("hung", what=self._url)
        return unknown(memory, at, reason, {"means": "GET", "hung": True})

    def hints(self) -> Sequence[Hint]:
        """Nothing tells but the next look."""
        return ()

    def close(self) -> None:
        """Nothing to give back: no connection outlives its look."""

    def look(self, memory: Memory, at: datetime) -> Observation:
        """Ask, and weigh the answer; a wrong status needs no body."""
        from watcher.fetching import FetchError, fetch  # noqa: PLC0415 - start-up time

        wants_body = self._match is not None
        try:
            page = fetch(self._url, body_of=self._fits if wants_body else None)
        except FetchError as error:
            evidence: dict[str, Json] = {"means": "GET", "error": error.error}
            return unknown(memory, at, error.phrase, evidence)
        return self._weigh(page, memory, at)

    def _fits(self, status: int) -> bool:
        """Say whether a status is the one that is awaited."""
        return self._status in {str(status), f"{status // 100}xx"}

    def _weigh(self, page: "Page", memory: Memory, at: datetime) -> Observation:
        evidence: dict[str, Json] = {"means": "GET", "status": page.status}
        if not self._fits(page.status):
            answer = phrase("http_answer", status=page.status)
            return _held(memory, at, evidence, answer)
        if self._match is None or page.text is None:
            return released(at, evidence, memory)
        evidence["read"] = len(page.text)
        try:
            found = self._match(page.text)
        except TimeoutError:
            reason = phrase("slow_regex", regex=str(self._expression))
            return unknown(memory, at, reason, evidence)
        if found is None:
            answer = phrase("http_no_match", status=page.status)
            return _held(memory, at, evidence, answer)
        return released(at, {**evidence, "matched": found[:_SHOWN]}, memory)


def _held(
    memory: Memory, at: datetime, evidence: dict[str, Json], answer: Phrase
) -> Observation:
    return Observation(
        sight=Sight.HELD, at=at, evidence=evidence, memory=memory, remarks=(answer,)
    )


def _check(expression: str) -> None:
    if not expression:
        raise UsageError(phrase("bad_regex", error="it is empty"))
    fault = fault_of(expression)
    if fault is not None:
        raise UsageError(phrase("bad_regex", error=fault))


def _matcher(expression: str) -> Match:
    """Return what finds an expression, searched in the whole text within a limit."""
    import regex  # noqa: PLC0415 - start-up time

    try:
        compiled = regex.compile(expression)
    except regex.error as error:
        raise UsageError(phrase("bad_regex", error=str(error))) from error

    def find(text: str) -> str | None:
        found = compiled.search(text, timeout=_REGEX_LIMIT_S, concurrent=True)
        return None if found is None else found[0]

    return find
