"""What the socket says: HTTP and JSON over the service's operations (appendix, API)."""

import logging
import math
import sqlite3
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TypeVar, cast

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from policies.codec import Record, dumps, outcome_record, phrase_record
from policies.model import Json
from policies.shapes import outcome_object
from policies.target import is_session, says_nothing
from policies.wording import Lang, Phrase, phrase
from watcher import __version__, store, views
from watcher.config import differences, settings_of
from watcher.errors import StoreError, UsageError
from watcher.hosted import Order
from watcher.ownership import LostError
from watcher.serve.hosting import Hosting

T = TypeVar("T")

_BODY_LIMIT = 1 << 20  # bytes
_WAIT_LIMIT_S = 300.0
_YEAR_S = 365 * 86400
_DIGITS = 12  # of a number in a query

_log = logging.getLogger(__name__)


class ArmBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`POST /v1/watches`; spans in seconds."""

    target: str
    ttl_s: int = 3600
    every_s: int | None = None
    label: str | None = None
    resume: str | None = None
    session: str | None = None
    lang: Lang | None = None
    start_within_s: int = 0
    take: bool = False
    launcher: int = 0
    nonce: str | None = None
    settings: dict[str, str] = {}


class RenewBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`POST /v1/watches/{id}/renew`."""

    ttl_s: int
    why: str | None = None


class RemoveBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`DELETE /v1/watches/{id}`."""

    why: str


class FlushBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`POST /v1/outbox/flush`."""

    dead: bool = False


def build_api(hosting: Hosting) -> Starlette:
    """Return the application that answers on the socket."""
    api = Api(hosting)
    waiter = "/v1/watches/{id}/waiters/{number:int}"
    return Starlette(
        routes=[
            Route("/healthz", api.health),
            Route("/v1/settings", api.settings),
            Route("/v1/watches", api.arm, methods=["POST"]),
            Route("/v1/watches", api.list_watches),
            Route("/v1/watches/{id}", api.show),
            Route("/v1/watches/{id}", api.remove, methods=["DELETE"]),
            Route("/v1/watches/{id}/outcome", api.outcome),
            Route("/v1/watches/{id}/renew", api.renew, methods=["POST"]),
            Route("/v1/watches/{id}/ack", api.acknowledge, methods=["POST"]),
            Route(waiter, api.follow),
            Route(waiter, api.leave, methods=["DELETE"]),
            Route("/v1/pings", api.pings),
            Route("/v1/outbox/flush", api.flush, methods=["POST"]),
            Route("/v1/handover", api.hand_over, methods=["POST"]),
        ],
        exception_handlers={
            HTTPException: _http_problem,
            UsageError: _usage_problem,
            StoreError: _store_problem,
            sqlite3.Error: _store_problem,
            LostError: _lost_problem,
            Exception: _internal_problem,
        },
    )


class Api:
    """One method an operation; each reads its request and writes its answer."""

    def __init__(self, hosting: Hosting) -> None:
        """Speak for what is hosted."""
        self._hosting = hosting
        self._service = hosting.service
        self._config = hosting.service.config

    async def health(self, request: Request) -> Response:  # noqa: ARG002
        """Say that the service lives, and what is not as it should be."""
        return _answer(
            {
                "status": "degraded" if self._service.degraded else "ok",
                "version": __version__,
                "armed": self._service.armed_count,
                "degraded": phrase_record(self._service.degraded),
                "on_demand": self._hosting.on_demand,
            }
        )

    async def settings(self, request: Request) -> Response:  # noqa: ARG002
        """Return the settings in which commands should agree; no secret in them."""
        return _answer(settings_of(self._config))

    async def arm(self, request: Request) -> Response:
        """Arm a watch, or join the one of the same condition."""
        body = await _body(request, ArmBody)
        order = self._order(body)
        watch_id, number, new = await self._service.arm(order)
        shape = self._shape(watch_id)
        shape["waiter"] = number
        shape["differs"] = differences(self._config, body.settings)
        return _answer(shape, status=201 if new else 200)

    def _order(self, body: ArmBody) -> Order:
        """Check what argparse cannot have checked for a program.

        Raises:
            UsageError: a value will not do.
        """
        floor_s = int(self._config.cadence.floor_local)
        every_s = body.every_s
        if every_s is None:
            every_s = int(self._config.cadence.local)
        for name, span in (("ttl_s", body.ttl_s), ("every_s", every_s)):
            _check_span(name, span)
        if body.start_within_s:
            _check_span("start_within_s", body.start_within_s)
        if body.label is not None and says_nothing(body.label):
            raise UsageError(phrase("bad_label", label=body.label))
        if body.session is not None and not is_session(body.session):
            raise UsageError(phrase("bad_session", session=body.session))
        return Order(
            target=store.from_text(body.target),
            ttl_s=body.ttl_s,
            every_s=max(every_s, floor_s),
            lang=body.lang or self._config.lang,
            label=_odd(body.label),
            resume=_odd(body.resume),
            session=body.session,
            start_within_s=body.start_within_s,
            launcher=body.launcher,
            takes=body.take,
            nonce=body.nonce,
        )

    async def list_watches(self, request: Request) -> Response:
        """Return the armed watches; with `all=1` those of the last day too."""
        since = views.NEVER
        if request.query_params.get("all"):
            since = self._now() - views.DAY_S
        rows = self._read(lambda c: views.watch_rows(c, ended_after_s=since))
        return _answer([views.watch_object(row) for row in rows])

    async def show(self, request: Request) -> Response:
        """Return one watch."""
        watch_id = self._find(request)
        return _answer(self._shape(watch_id))

    async def outcome(self, request: Request) -> Response:
        """Wait for the outcome as the first waiter is told it; 204 when none came."""
        watch_id = self._find(request)
        number = _number_of(request, "waiter", 1)
        news = await self._service.follow(
            watch_id,
            number,
            after=1 << 30,
            wait_s=_wait_of(request),
            read=self._hosting.read,
        )
        if news is None or news.outcome is None:
            return Response(status_code=204)
        zone = self._service.clock.zone()
        return _answer(outcome_object(news.outcome, self._config.lang, zone))

    async def follow(self, request: Request) -> Response:
        """Return what is new for one waiting command, as soon as anything is."""
        news = await self._service.follow(
            request.path_params["id"],
            request.path_params["number"],
            after=_number_of(request, "after", 0),
            knows_waiting=request.query_params.get("knows") == "waiting",
            wait_s=_wait_of(request),
            read=self._hosting.read,
        )
        if news is None:
            raise HTTPException(404)
        return _answer(
            {
                "waiting": news.waiting,
                "notes": [phrase_record(note) for note in news.notes],
                "deadline_at": news.deadline_at,
                "outcome": outcome_record(news.outcome) if news.outcome else None,
            }
        )

    async def leave(self, request: Request) -> Response:
        """Take one waiter out."""
        watch_id, number = request.path_params["id"], request.path_params["number"]
        _check_json(request)
        if not await self._service.life.leave(watch_id, number):
            raise HTTPException(404)
        return Response(status_code=204)

    async def renew(self, request: Request) -> Response:
        """Set a new deadline."""
        watch_id = self._find(request)
        body = await _body(request, RenewBody)
        _check_span("ttl_s", body.ttl_s)
        await self._service.life.renew(
            watch_id, body.ttl_s, body.why, self._hosting.reading()
        )
        return _answer(self._shape(watch_id))

    async def remove(self, request: Request) -> Response:
        """End a watch, with the reason that is announced."""
        watch_id = self._find(request)
        body = await _body(request, RemoveBody)
        if not body.why.strip():
            raise UsageError(phrase("no_why"))
        if not await self._service.life.remove(
            watch_id, phrase("said", text=store.from_text(body.why))
        ):
            raise UsageError(phrase("not_armed", id=watch_id))
        return _answer(self._shape(watch_id))

    async def acknowledge(self, request: Request) -> Response:
        """Mark a watch's outcomes as read."""
        _check_json(request)
        watch_id = self._find(request)
        await self._service.life.acknowledge(watch_id)
        return _answer(self._shape(watch_id))

    async def pings(self, request: Request) -> Response:
        """Return the outbox; of one watch, once its first attempts are made."""
        watch_id = request.query_params.get("watch")
        if watch_id is not None:
            await self._hosting.first_attempts(watch_id, _wait_of(request))
        since = self._now() - views.DAY_S
        rows = self._read(lambda c: views.ping_rows(c, delivered_after_s=since))
        return _answer(
            [
                views.ping_object(row) | {"logged_at": row["logged_at"]}
                for row in rows
                if watch_id in {None, row["watch_id"]}
            ]
        )

    async def flush(self, request: Request) -> Response:
        """Try every pending ping now, the dead ones too if asked."""
        body = await _body(request, FlushBody)
        count = await self._hosting.flush(dead=body.dead)
        return _answer({"tried": count})

    async def hand_over(self, request: Request) -> Response:
        """Make room for a service that a person or systemd runs (C5.1b)."""
        _check_json(request)
        if not self._hosting.on_demand:
            raise HTTPException(409, "this service was not started on demand")
        self._hosting.stop()
        return Response(status_code=202)

    def _now(self) -> float:
        return self._service.clock.wall().timestamp()

    def _read(self, look: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return look(self._hosting.reading())
        except sqlite3.Error as error:
            why = phrase("store_unusable", path="monitor.db", error=str(error))
            raise StoreError(why) from error

    def _find(self, request: Request) -> str:
        """Return the id that the path's unique prefix means."""
        prefix = request.path_params["id"]
        at_hand = self._service.known(prefix)
        try:
            found = self._read(lambda c: views.matching(c, prefix))
        except StoreError:
            if not at_hand:
                raise
            found = []
        found = list(dict.fromkeys([*found, *at_hand]))
        if prefix in found:
            return str(prefix)
        if not found:
            raise HTTPException(404)
        if len(found) > 1:
            raise UsageError(phrase("ambiguous", id=prefix, found=", ".join(found)))
        return found[0]

    def _shape(self, watch_id: str) -> views.Object:
        """Return the watch object; of a watch that the store could not take, its id."""
        try:
            row = self._read(lambda c: views.watch_row(c, watch_id))
        except StoreError:
            row = None
        return {"id": watch_id} if row is None else views.watch_object(row)


async def _body(request: Request, kind: type[T]) -> T:
    """Read a JSON body of bounded size.

    Raises:
        HTTPException: 413, 415, or 400 with what is wrong.
    """
    _check_json(request)
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _BODY_LIMIT:
            raise HTTPException(413, f"at most {_BODY_LIMIT} bytes")
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HTTPException(400, str(error)) from error


def _check_json(request: Request) -> None:
    """Let no form of a web page write anything.

    Raises:
        HTTPException: 415, the content type is another one.
    """
    kind = request.headers.get("content-type", "").partition(";")[0]
    if kind.strip().lower() != "application/json":
        raise HTTPException(415, "Content-Type: application/json, please")


def _number_of(request: Request, name: str, default: int) -> int:
    """Return a whole number of the query.

    Raises:
        HTTPException: 400, it is none.
    """
    text = request.query_params.get(name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS:
        raise HTTPException(400, f"{name} is a whole number")
    return int(text)


def _odd(text: str | None) -> str | None:
    """Return a text with the bytes that were no UTF-8, as a command quotes them."""
    return None if text is None else store.from_text(text)


def _wait_of(request: Request) -> float:
    try:
        wait_s = float(request.query_params.get("wait_s", "0"))
    except ValueError:
        wait_s = math.nan
    if math.isnan(wait_s):
        raise HTTPException(400, "wait_s is a number of seconds")
    return min(max(wait_s, 0.0), _WAIT_LIMIT_S)


def _check_span(name: str, span: int) -> None:
    if not 0 < span <= _YEAR_S:
        raise UsageError(phrase("bad_duration", name=name, value=span))


async def _http_problem(request: Request, error: Exception) -> Response:  # noqa: ARG001
    assert isinstance(error, HTTPException)  # noqa: S101 - as it is registered
    return _problem(error.status_code, error.detail, headers=error.headers)


async def _usage_problem(request: Request, error: Exception) -> Response:  # noqa: ARG001
    sentence = error.phrase if isinstance(error, UsageError) else None
    return _problem(400, str(error), sentence)


async def _store_problem(request: Request, error: Exception) -> Response:  # noqa: ARG001
    sentence = error.phrase if isinstance(error, StoreError) else None
    return _problem(503, str(error), sentence)


async def _lost_problem(request: Request, error: Exception) -> Response:  # noqa: ARG001
    return _problem(503, "another service owns the watches now; ask that one")


async def _internal_problem(request: Request, error: Exception) -> Response:
    _log.error("request.failed", exc_info=error, extra={"path": request.url.path})
    return _problem(500, "a fault of ours; the log of the service has it")


def _answer(value: object, status: int = 200) -> Response:
    """Return JSON in ASCII: bytes that were no UTF-8 stay what they are."""
    return Response(dumps(cast("Json", value)), status, media_type="application/json")


def _problem(
    status: int,
    detail: str,
    sentence: Phrase | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a problem document (RFC 9457); programs of ours get the sentence too."""
    document: Record = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": sentence.render(Lang.EN) if sentence else detail,
        "phrase": phrase_record(sentence),
    }
    return Response(
        dumps(document), status, headers, media_type="application/problem+json"
    )
