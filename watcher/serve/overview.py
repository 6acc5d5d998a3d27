"""What the page shows: its files and words, history, hosts, open outcomes (C10.1)."""

import json
import os
import sqlite3
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Final, TypeVar, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from policies.codec import dumps, outcome_of
from policies.lines import outcome_line
from policies.model import Json
from policies.wording import TEXTS, Lang, phrase
from watcher import past, views
from watcher.errors import StoreError
from watcher.serve import asking
from watcher.serve.hosting import Hosting
from watcher.serve.problems import Kind, ProblemError, not_found
from watcher.serve.words import WORDS

T = TypeVar("T")

HOME: Final = "index.html"
MEDIA: Final = {
    "css": "text/css",
    "html": "text/html",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}
"""The kinds of file that the page is made of."""

_FOLDER = os.path.join(os.path.dirname(__file__), "page")
_MOST_OUTCOMES = 200
_MOST_ENDED = 200


class Overview:
    """Tells what is there to be seen, and changes nothing."""

    def __init__(self, hosting: Hosting) -> None:
        """Answer nothing yet."""
        self._hosting = hosting
        self._service = hosting.service
        self._config = hosting.service.config

    async def home(self, request: Request) -> Response:  # noqa: ARG002
        """Return the page."""
        return Response(_file(HOME), media_type=MEDIA["html"])

    async def page_file(self, request: Request) -> Response:
        """Return a file of the page."""
        name = request.path_params["file"]
        if name not in page_files():
            raise ProblemError(Kind.NOT_FOUND, not_found(request))
        return Response(_file(name), media_type=MEDIA[name.rpartition(".")[2]])

    async def words(self, request: Request) -> Response:  # noqa: ARG002
        """Return the words of the page, in the language of the service."""
        lang = self._config.lang
        words = {key: TEXTS[key][lang is Lang.EN] for key in WORDS}
        return json_answer({"lang": lang, "words": words})

    async def history(self, request: Request) -> Response:
        """Return the last days in numbers, and the watches that ended last."""
        days = asking.days_of(request)
        now_s = self._now()
        found = self._read(lambda c: past.history(c, now_s=now_s, days=days))
        ended = self._read(lambda c: views.newest_rows(c, _MOST_ENDED))
        return json_answer(
            {
                "days": days,
                "history": msgspec.to_builtins(found),
                "ended": [views.watch_object(row) for row in ended],
            }
        )

    async def outcomes(self, request: Request) -> Response:  # noqa: ARG002
        """Return the outcomes that nobody has acknowledged, the newest first."""
        rows = self._read(lambda c: views.open_rows(c, _MOST_OUTCOMES))
        return json_answer([self._told(row) for row in rows])

    def _told(self, row: sqlite3.Row) -> views.Object:
        return {
            "watch_id": row["watch_id"],
            "waiter": row["number"],
            "target": views.shown(row["target"]),
            "label": views.shown(row["label"]),
            "host": views.optional(row["host"]),
            "session": views.optional(row["session"]),
            "outcome": views.told(row),
            "line": self._line(row),
            "told_at": views.rfc3339(row["told_at"]),
            "read_at": views.rfc3339(row["read_at"]),
            "reminded_at": views.rfc3339(row["reminded_at"]),
        }

    def _line(self, row: sqlite3.Row) -> str | None:
        """Return the line as this waiter was told it, its own expiry too."""
        try:
            outcome = outcome_of(json.loads(row["outcome"]))
        except (TypeError, ValueError, KeyError):
            return views.optional(row["line"])  # damaged
        return outcome_line(outcome, self._config.lang, self._service.clock.zone())

    async def hosts(self, request: Request) -> Response:  # noqa: ARG002
        """Return the hosts that were reached for, and how they answer."""
        hosts = self._service.hosts
        counts = self._read(
            lambda c: c.execute(
                "SELECT host, count(*) FROM watches"
                " WHERE state = 'armed' AND host IS NOT NULL GROUP BY host"
            ).fetchall()
        )
        armed = {views.shown(host): count for host, count in counts}
        return json_answer(
            [
                {
                    "name": views.shown(state.name),
                    "means": state.means,
                    "reached_at": _instant(state.reached_at),
                    "silent_since": _instant(state.silent_since),
                    "last_error": state.last_error.render(self._config.lang)
                    if state.last_error
                    else None,
                    "armed": armed.get(views.shown(state.name), 0),
                }
                for state in (hosts.states() if hosts is not None else ())
            ]
        )

    def _company(self, watch_id: str) -> views.Object:
        """Return the waiters of a watch and what was done to it, if they are stored."""
        try:
            return self._read(
                lambda c: views.company_object(
                    views.waiter_rows(c, watch_id), views.trail_rows(c, watch_id)
                )
            )
        except StoreError:
            return views.company_object((), ())

    def _now(self) -> float:
        return self._service.clock.wall().timestamp()

    def _read(self, look: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return look(self._hosting.reading())
        except sqlite3.Error as error:
            why = phrase("store_unusable", path="monitor.db", error=str(error))
            raise StoreError(why) from error


def json_answer(value: object, status: int = 200) -> Response:
    """Return JSON in ASCII: bytes that were no UTF-8 stay what they are."""
    return Response(dumps(cast("Json", value)), status, media_type="application/json")


@cache
def page_files() -> frozenset[str]:
    """Return the names of the files that the page loads."""
    names = frozenset(os.listdir(_FOLDER)) - {HOME}
    return frozenset(name for name in names if name.rpartition(".")[2] in MEDIA)


@cache
def _file(name: str) -> bytes:
    with open(os.path.join(_FOLDER, name), "rb") as file:
        return file.read()


def _instant(at: datetime | None) -> str | None:
    return None if at is None else views.rfc3339(at.timestamp())
