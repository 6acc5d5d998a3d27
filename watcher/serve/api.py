"""The routes of the API: what answers, and what the document says of it (appendix)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from policies.codec import dumps
from watcher.serve import asking, bodies
from watcher.serve.asking import Asked
from watcher.serve.guard import Guard
from watcher.serve.hosting import Hosting
from watcher.serve.operations import Api, Front
from watcher.serve.overview import MEDIA
from watcher.serve.problems import problem_handlers

_WATCH = "/v1/watches/{id}"
_WAITER = "/v1/watches/{id}/waiters/{number:int}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path.

    Attributes:
        call: does it.
        gives: status to the type of its JSON, one media type or some, or None for no
            content.
        takes: the type of its JSON body.
        asks: what its query and headers may say.
    """

    method: str
    path: str
    call: Callable[[Api, Request], Awaitable[Response]]
    gives: Mapping[int, object]
    takes: type | None = None
    asks: Sequence[Asked] = field(default=())


async def _document(api: Api, request: Request) -> Response:  # noqa: ARG001
    """Return this description."""
    return Response(_document_text(), media_type="application/json")


@cache
def _document_text() -> str:
    """Build the document with the first request for it: the start does not pay."""
    from watcher.serve.openapi import document_of  # noqa: PLC0415 - as it says

    return dumps(document_of(OPERATIONS))


OPERATIONS: Final[Sequence[Operation]] = (
    Operation(method="GET", path="/", call=Api.home, gives={200: "text/html"}),
    Operation(
        method="GET",
        path="/page/{file}",
        call=Api.page_file,
        gives={200: (MEDIA["css"], MEDIA["js"], MEDIA["svg"])},
    ),
    Operation(
        method="GET", path="/v1/words", call=Api.words, gives={200: bodies.Words}
    ),
    Operation(
        method="GET", path="/healthz", call=Api.health, gives={200: bodies.Health}
    ),
    Operation(
        method="GET",
        path="/v1/settings",
        call=Api.settings,
        gives={200: dict[str, str]},
    ),
    Operation(
        method="POST",
        path="/v1/watches",
        call=Api.arm,
        takes=bodies.Arm,
        gives={201: bodies.Armed, 200: bodies.Armed},
    ),
    Operation(
        method="GET",
        path="/v1/watches",
        call=Api.list_watches,
        asks=[asking.ALL],
        gives={200: list[bodies.Watch]},
    ),
    Operation(method="GET", path=_WATCH, call=Api.show, gives={200: bodies.Detail}),
    Operation(
        method="DELETE",
        path=_WATCH,
        call=Api.remove,
        takes=bodies.Remove,
        gives={200: bodies.Watch},
    ),
    Operation(
        method="GET",
        path=f"{_WATCH}/outcome",
        call=Api.outcome,
        asks=[asking.WAIT, asking.WAITER],
        gives={200: bodies.Outcome, 204: None},
    ),
    Operation(
        method="POST",
        path=f"{_WATCH}/renew",
        call=Api.renew,
        takes=bodies.Renew,
        gives={200: bodies.Watch},
    ),
    Operation(
        method="POST",
        path=f"{_WATCH}/ack",
        call=Api.acknowledge,
        gives={200: bodies.Watch},
    ),
    Operation(
        method="GET",
        path=_WAITER,
        call=Api.follow,
        asks=[asking.WAIT, asking.AFTER, asking.KNOWS],
        gives={200: bodies.News},
    ),
    Operation(method="DELETE", path=_WAITER, call=Api.leave, gives={204: None}),
    Operation(
        method="POST",
        path="/v1/check",
        call=Api.check,
        takes=bodies.Check,
        gives={200: bodies.Checked},
    ),
    Operation(
        method="GET",
        path="/v1/outcomes",
        call=Api.outcomes,
        gives={200: list[bodies.Told]},
    ),
    Operation(
        method="GET",
        path="/v1/history",
        call=Api.history,
        asks=[asking.DAYS],
        gives={200: bodies.Past},
    ),
    Operation(
        method="GET", path="/v1/hosts", call=Api.hosts, gives={200: list[bodies.Host]}
    ),
    Operation(
        method="GET",
        path="/v1/hosts/{host}/watches",
        call=Api.on_host,
        gives={200: bodies.OnHost},
    ),
    Operation(
        method="GET",
        path="/v1/pings",
        call=Api.pings,
        asks=[asking.OF_WATCH, asking.WAIT],
        gives={200: list[bodies.Ping]},
    ),
    Operation(
        method="GET",
        path="/v1/events",
        call=Api.events,
        asks=[asking.LAST_EVENT],
        gives={200: "text/event-stream"},
    ),
    Operation(
        method="POST",
        path="/v1/outbox/flush",
        call=Api.flush,
        takes=bodies.Flush,
        gives={200: bodies.Flushed},
    ),
    Operation(
        method="POST",
        path="/v1/page-token",
        call=Api.page_token,
        gives={200: bodies.PageAddress},
    ),
    Operation(
        method="POST", path="/v1/handover", call=Api.hand_over, gives={202: None}
    ),
    Operation(
        method="GET", path="/metrics", call=Api.metrics, gives={200: "text/plain"}
    ),
    Operation(
        method="GET",
        path="/openapi.json",
        call=_document,
        gives={200: dict[str, object]},
    ),
)


def build_api(hosting: Hosting, front: Front | None = None) -> ASGIApp:
    """Return the application that answers on the sockets.

    Args:
        hosting: what it speaks for.
        front: where and to whom it answers over TCP, if it does.
    """
    api, lang = Api(hosting, front), hosting.service.config.lang
    paths: dict[str, dict[str, Operation]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = operation
    routes = [
        Route(path, _endpoint(api, methods), methods=sorted(methods))
        for path, methods in paths.items()
    ]
    app = Starlette(routes=routes, exception_handlers=problem_handlers(lang))
    app.router.redirect_slashes = False
    return Guard(app, tokens=front.tokens if front else None, lang=lang)


def _endpoint(
    api: Api, methods: Mapping[str, Operation]
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        head = request.method == "HEAD"
        operation = methods["GET" if head else request.method]
        if head and operation.gives[200] == "text/event-stream":
            return Response(media_type="text/event-stream")
        return await operation.call(api, request)

    return endpoint
