"""What is wrong with a request, as a problem document (RFC 9457)."""

import logging
import sqlite3
from collections.abc import Mapping
from enum import Enum
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ExceptionHandler

from policies.codec import Record, dumps, phrase_record
from policies.wording import Lang, Phrase, phrase
from watcher.errors import StoreError, UsageError
from watcher.ownership import LostError

_log = logging.getLogger(__name__)


class Kind(Enum):
    """The kinds of problem: the end of `type`, which never changes, and the status."""

    MALFORMED = ("malformed", 400)
    REFUSED = ("refused", 400)
    NO_TOKEN = ("no-token", 401)
    FOREIGN_ORIGIN = ("foreign-origin", 403)
    NOT_HERE = ("not-here", 403)
    NOT_FOUND = ("not-found", 404)
    NO_SUCH_METHOD = ("no-such-method", 405)
    AMBIGUOUS = ("ambiguous", 409)
    NOT_SO_RUN = ("not-so-run", 409)
    NO_LENGTH = ("no-length", 411)
    TOO_LARGE = ("too-large", 413)
    NO_JSON = ("no-json", 415)
    FOREIGN_HOST = ("foreign-host", 421)
    OUR_FAULT = ("our-fault", 500)
    NO_STORE = ("no-store", 503)
    NOT_OWNER = ("not-owner", 503)
    BUSY = ("busy", 503)

    @property
    def type(self) -> str:
        """The URI of the kind."""
        return f"urn:koder-monitor:problem:{self.value[0]}"

    @property
    def status(self) -> int:
        """The status of the answer."""
        return self.value[1]


class ProblemError(Exception):
    """Raised by whoever cannot go on with a request."""

    def __init__(
        self, kind: Kind, why: Phrase, headers: Mapping[str, str] | None = None
    ) -> None:
        """Keep what the answer says."""
        super().__init__(kind, why)
        self.kind = kind
        self.why = why
        self.headers = headers


def problem(
    kind: Kind, why: Phrase, lang: Lang, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the document; programs of ours get the sentence in any language."""
    document: Record = {
        "type": kind.type,
        "title": HTTPStatus(kind.status).phrase,
        "status": kind.status,
        "detail": why.render(lang),
        "phrase": phrase_record(why),
    }
    return Response(
        dumps(document), kind.status, headers, media_type="application/problem+json"
    )


def problem_of(error: Exception, request: Request, lang: Lang) -> Response:
    """Return what the answer to a request that failed says."""
    if isinstance(error, ProblemError):
        return problem(error.kind, error.why, lang, error.headers)
    headers = error.headers if isinstance(error, HTTPException) else None
    kind, why = _kind_of(error, request)
    if kind is Kind.OUR_FAULT:
        extra = {"path": request.url.path}
        _log.error("request.failed", exc_info=error, extra=extra)
    return problem(kind, why, lang, headers)


def _kind_of(error: Exception, request: Request) -> tuple[Kind, Phrase]:
    kind, why = Kind.OUR_FAULT, phrase("api_fault")
    match error:
        case UsageError():
            kind, why = Kind.REFUSED, error.phrase
        case StoreError():
            kind, why = Kind.NO_STORE, error.phrase
        case sqlite3.Error():
            kind = Kind.NO_STORE
            why = phrase("store_unusable", path="monitor.db", error=str(error))
        case LostError():
            kind, why = Kind.NOT_OWNER, phrase("api_not_owner")
        case HTTPException(status_code=405):
            allowed = dict(error.headers or {}).get("Allow", "")
            kind = Kind.NO_SUCH_METHOD
            why = phrase("api_no_method", method=request.method, allowed=allowed)
        case HTTPException():  # the framework's only other one
            kind, why = Kind.NOT_FOUND, not_found(request)
        case _:
            pass
    return kind, why


def not_found(request: Request) -> Phrase:
    """Say that there is nothing at the address of a request."""
    return phrase("api_not_found", path=request.url.path)


def problem_handlers(lang: Lang) -> dict[int | type[Exception], ExceptionHandler]:
    """Return what turns errors into problem documents."""

    async def handle(request: Request, error: Exception) -> Response:
        return problem_of(error, request, lang)

    kinds = (
        ProblemError,
        UsageError,
        StoreError,
        sqlite3.Error,
        LostError,
        HTTPException,
        Exception,
    )
    return dict.fromkeys(kinds, handle)
