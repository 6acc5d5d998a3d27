"""What a request says: its body and its query, read within limits."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request

from policies.wording import phrase
from watcher.past import MOST_DAYS, USUAL_DAYS
from watcher.serve.problems import Kind, ProblemError, not_found

T = TypeVar("T")

BODY_LIMIT: Final = 1 << 20
"""Bytes; the longest command line that is an order is far shorter."""

WAIT_LIMIT_S: Final = 300.0

_DIGITS = 12  # of a number in a query
_SWITCH = {"": False, "0": False, "false": False, "1": True, "true": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A parameter of the query, or a header, as the document describes it."""

    name: str
    about: str
    schema: Mapping[str, object]
    where: str = "query"


ALL: Final = Asked(
    name="all",
    about="1: those that ended within a day, too",
    schema={"type": "string", "enum": [*_SWITCH]},
)
WAIT: Final = Asked(
    name="wait_s",
    about=f"how long to wait for anything new; {WAIT_LIMIT_S:.0f} seconds at most",
    schema={"type": "number", "default": 0},
)
WAITER: Final = Asked(
    name="waiter",
    about="the waiter that is meant, by its number",
    schema={"type": "integer", "minimum": 0, "maximum": 10**_DIGITS - 1, "default": 1},
)
AFTER: Final = Asked(
    name="after",
    about="how many notes are known already",
    schema={"type": "integer", "minimum": 0, "maximum": 10**_DIGITS - 1, "default": 0},
)
KNOWS: Final = Asked(
    name="knows",
    about='"waiting": that the watch waits is no news',
    schema={"type": "string"},
)
OF_WATCH: Final = Asked(
    name="watch",
    about="only the pings of the watch with this whole id, once each was tried",
    schema={"type": "string"},
)
DAYS: Final = Asked(
    name="days",
    about=f"how many days, today among them; {MOST_DAYS} at most",
    schema={
        "type": "integer",
        "minimum": 1,
        "maximum": MOST_DAYS,
        "default": USUAL_DAYS,
    },
)
LAST_EVENT: Final = Asked(
    name="Last-Event-ID",
    about="the last event that is known; those behind it come first",
    schema={"type": "string"},
    where="header",
)


async def body_of(request: Request, kind: type[T]) -> T:
    """Read a JSON body of bounded size.

    Raises:
        ProblemError: it is none, of another type, too long, or says what is not known.
    """
    check_json(request)
    body = await _read(request, needed=True)
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(error) from error


async def no_body(request: Request) -> None:
    """Take a write that has nothing to say: no body, or an empty object.

    Raises:
        ProblemError: it is no JSON, or says something.
    """
    check_json(request)
    body = await _read(request, needed=False)
    try:
        if body and msgspec.json.decode(body) != {}:
            raise msgspec.ValidationError("{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(error) from error


def check_json(request: Request) -> None:
    """Let no form of a web page write anything.

    Raises:
        ProblemError: the content type is another one, or there are two.
    """
    kinds = request.headers.getlist("content-type")
    kind = kinds[0].partition(";")[0] if len(kinds) == 1 else ""
    if kind.strip().lower() != "application/json":
        raise ProblemError(Kind.NO_JSON, phrase("api_no_json"))


async def _read(request: Request, *, needed: bool) -> bytes:
    """Read the body, and no further than its limit, whatever it says of its length."""
    length = request.headers.get("content-length")
    if needed and length is None and "transfer-encoding" not in request.headers:
        raise ProblemError(Kind.NO_LENGTH, phrase("api_no_length"))
    if length is not None and length.isdecimal() and int(length[:_DIGITS]) > BODY_LIMIT:
        raise _too_large()
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > BODY_LIMIT:
                raise _too_large()
    except ClientDisconnect as error:  # nobody reads what we say
        raise _malformed(error) from error
    return bytes(body)


def _too_large() -> ProblemError:
    return ProblemError(Kind.TOO_LARGE, phrase("api_too_large", limit=BODY_LIMIT))


def _malformed(error: Exception) -> ProblemError:
    return ProblemError(Kind.MALFORMED, phrase("api_bad_body", error=str(error)))


def wants_all(request: Request) -> bool:
    """Return whether what has ended is wanted, too.

    Raises:
        ProblemError: that is neither yes nor no.
    """
    text = request.query_params.get(ALL.name, "")
    if text not in _SWITCH:
        raise _bad_value(ALL, text)
    return _SWITCH[text]


def number_of(request: Request, asked: Asked) -> int:
    """Return a whole number of the query.

    Raises:
        ProblemError: it is none.
    """
    text = request.query_params.get(asked.name, str(asked.schema["default"]))
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS:
        raise _bad_value(asked, text)
    return int(text)


def waiter_of(request: Request) -> int:
    """Return the number of the waiter in the path.

    Raises:
        ProblemError: none has such a number, which the store could not even hold.
    """
    number = int(request.path_params["number"])
    if number >= 10**_DIGITS:
        raise ProblemError(Kind.NOT_FOUND, not_found(request))
    return number


def days_of(request: Request) -> int:
    """Return how many days are wanted.

    Raises:
        ProblemError: that is no number of days, or too many.
    """
    days = number_of(request, DAYS)
    if not 1 <= days <= MOST_DAYS:
        raise _bad_value(DAYS, str(days))
    return days


def wait_of(request: Request) -> float:
    """Return the seconds for which somebody waits, within the limit.

    Raises:
        ProblemError: it is no number.
    """
    text = request.query_params.get(WAIT.name, "0")
    try:
        wait_s = float(text)
    except ValueError:
        wait_s = math.nan
    if math.isnan(wait_s):
        raise _bad_value(WAIT, text)
    return min(max(wait_s, 0.0), WAIT_LIMIT_S)


def _bad_value(asked: Asked, text: str) -> ProblemError:
    why = phrase("api_bad_query", name=asked.name, value=text, about=asked.about)
    return ProblemError(Kind.MALFORMED, why)
