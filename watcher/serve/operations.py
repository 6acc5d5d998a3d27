"""What the API does: a method an operation, each reads its request and answers."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from policies.codec import outcome_record, phrase_record
from policies.shapes import check_object, outcome_object
from policies.target import is_session, says_nothing
from policies.wording import phrase
from watcher import __version__, store, views
from watcher.config import differences, settings_of
from watcher.errors import StoreError, UsageError
from watcher.hosted import Order
from watcher.serve import asking, metrics
from watcher.serve.bodies import Arm, Check, Flush, Remove, Renew
from watcher.serve.callers import caller_pid
from watcher.serve.guard import is_local
from watcher.serve.hosting import Hosting
from watcher.serve.overview import Overview
from watcher.serve.overview import json_answer as _answer
from watcher.serve.problems import Kind, ProblemError, not_found
from watcher.serve.tokens import ONCE_S, Tokens


@dataclass(frozen=True, slots=True)
class Front:
    """Where the service answers over TCP, and to whom."""

    url: str
    tokens: Tokens

    def page_address(self) -> str:
        """Return an address that opens the page once, and soon."""
        return f"{self.url}/?token={self.tokens.once.make()}"


class Api(Overview):
    """Speaks for what is hosted."""

    def __init__(self, hosting: Hosting, front: Front | None) -> None:
        """Answer nothing yet."""
        super().__init__(hosting)
        self._front = front

    async def health(self, request: Request) -> Response:  # noqa: ARG002
        """Say that the service lives, and what is not as it should be."""
        degraded = self._service.degraded
        return _answer(
            {
                "status": "degraded" if degraded else "ok",
                "now": views.rfc3339(self._now()),
                "version": __version__,
                "armed": self._service.armed_count,
                "degraded": phrase_record(degraded),
                "detail": degraded.render(self._config.lang) if degraded else None,
                "on_demand": self._hosting.on_demand,
            }
        )

    async def metrics(self, request: Request) -> Response:  # noqa: ARG002
        """Return what the service has counted, in the text format of Prometheus."""
        return await metrics.answer(self._hosting)

    async def settings(self, request: Request) -> Response:  # noqa: ARG002
        """Return the settings in which commands should agree; no secret in them."""
        return _answer(settings_of(self._config))

    async def arm(self, request: Request) -> Response:
        """Arm a watch, or join the one of the same condition."""
        body = await asking.body_of(request, Arm)
        launcher = body.launcher or await caller_pid(request.client)
        order = self._order(body, launcher)
        watch_id, number, new = await self._service.arm(order)
        shape = self._hosting.watch_object(watch_id)
        shape["waiter"] = number
        shape["differs"] = differences(self._config, body.settings)
        shape["notes"] = []
        if body.detach:
            notes = await self._service.detaching.start(watch_id)
            shape["notes"] = [phrase_record(note) for note in notes]
            shape["detached"] = True
        return _answer(shape, status=201 if new else 200)

    def _order(self, body: Arm, launcher: int) -> Order:
        """Check what argparse cannot have checked for a program.

        Raises:
            UsageError: a value will not do.
        """
        if body.label is not None and says_nothing(body.label):
            raise UsageError(phrase("bad_label", label=body.label))
        if body.session is not None and not is_session(body.session):
            raise UsageError(phrase("bad_session", session=body.session))
        return Order(
            target=store.from_text(body.target),
            ttl_s=body.ttl_s,
            every_s=body.every_s,
            lang=body.lang or self._config.lang,
            label=_odd(body.label),
            resume=_odd(body.resume),
            session=body.session,
            start_within_s=body.start_within_s,
            launcher=launcher,
            takes=body.take,
            nonce=body.nonce,
            project=_odd(body.project),
            detach=body.detach,
            log_only=body.log_only,
        )

    async def list_watches(self, request: Request) -> Response:
        """Return the armed watches; with `all=1` those of the last day too."""
        ended_after_s = views.NEVER
        if asking.wants_all(request):
            ended_after_s = self._now() - views.DAY_S
        rows = self._read(lambda c: views.watch_rows(c, ended_after_s=ended_after_s))
        return _answer([views.watch_object(row) for row in rows])

    async def show(self, request: Request) -> Response:
        """Return one watch, with its waiters and what was done to it."""
        watch_id = self._find(request)
        shape = self._hosting.watch_object(watch_id)
        return _answer(shape | self._company(watch_id))

    async def outcome(self, request: Request) -> Response:
        """Wait for the outcome as the first waiter is told it; 204 when none came."""
        watch_id = self._find(request)
        news = await self._service.follow(
            watch_id,
            asking.number_of(request, asking.WAITER),
            after=1 << 30,
            wait_s=asking.wait_of(request),
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
            asking.waiter_of(request),
            after=asking.number_of(request, asking.AFTER),
            knows_waiting=request.query_params.get(asking.KNOWS.name) == "waiting",
            wait_s=asking.wait_of(request),
            read=self._hosting.read,
        )
        if news is None:
            raise ProblemError(Kind.NOT_FOUND, not_found(request))
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
        await asking.no_body(request)
        watch_id, number = request.path_params["id"], asking.waiter_of(request)
        if not await self._service.life.leave(watch_id, number):
            raise ProblemError(Kind.NOT_FOUND, not_found(request))
        return Response(status_code=204)

    async def renew(self, request: Request) -> Response:
        """Set a new deadline."""
        watch_id = self._find(request)
        body = await asking.body_of(request, Renew)
        await self._service.life.renew(
            watch_id, body.ttl_s, body.why, self._hosting.reading()
        )
        self._service.detaching.renewed(watch_id)
        return _answer(self._hosting.watch_object(watch_id))

    async def remove(self, request: Request) -> Response:
        """End a watch, with the reason that is announced."""
        watch_id = self._find(request)
        body = await asking.body_of(request, Remove)
        if not body.why.strip():
            raise UsageError(phrase("no_why"))
        if not await self._service.life.remove(
            watch_id, phrase("said", text=store.from_text(body.why))
        ):
            raise UsageError(phrase("not_armed", id=watch_id))
        return _answer(self._hosting.watch_object(watch_id))

    async def acknowledge(self, request: Request) -> Response:
        """Mark a watch's outcomes as read."""
        await asking.no_body(request)
        watch_id = self._find(request)
        await self._service.life.acknowledge(watch_id)
        return _answer(self._hosting.watch_object(watch_id))

    async def check(self, request: Request) -> Response:
        """Look at a target once, now."""
        body = await asking.body_of(request, Check)
        text = store.from_text(body.target)
        caller = await caller_pid(request.client)
        target, seen = await self._hosting.checking.check(text, caller)
        zone = self._service.clock.zone()
        return _answer(check_object(target, seen, self._config.lang, zone))

    async def on_host(self, request: Request) -> Response:
        """Return what is detached on a host; `why` where that gives no answer."""
        name, read = request.path_params["host"], self._hosting.reading()
        watches, why = await self._service.detaching.listing(name, read)
        return _answer({"watches": watches, "why": phrase_record(why)})

    async def pings(self, request: Request) -> Response:
        """Return the outbox; of one watch, once its first attempts are made."""
        watch_id = request.query_params.get(asking.OF_WATCH.name)
        wait_s = asking.wait_of(request)
        if watch_id is not None:
            await self._hosting.first_attempts(watch_id, wait_s)
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
        body = await asking.body_of(request, Flush)
        return _answer({"tried": await self._hosting.flush(dead=body.dead)})

    async def events(self, request: Request) -> Response:
        """Stream what happens: server-sent events.

        Named armed, renewed, released, ended, expired, removed and unseen, with the
        watch; ping, with the ping; reset, where events behind the last known one are
        gone, so that everything has to be asked for anew.
        """
        last_id = request.headers.get(asking.LAST_EVENT.name)
        stream = self._hosting.events.listen(last_id)
        return StreamingResponse(stream, media_type="text/event-stream")

    async def page_token(self, request: Request) -> Response:
        """Make an address that opens the page once; by the unix socket only."""
        await asking.no_body(request)
        if not is_local(request.scope):
            raise ProblemError(Kind.NOT_HERE, phrase("api_only_local"))
        if self._front is None:
            raise ProblemError(Kind.NOT_SO_RUN, phrase("no_page"))
        return _answer({"url": self._front.page_address(), "expires_in_s": int(ONCE_S)})

    async def hand_over(self, request: Request) -> Response:
        """Make room for a service that a person or systemd runs (C5.1b)."""
        await asking.no_body(request)
        if not self._hosting.on_demand:
            raise ProblemError(Kind.NOT_SO_RUN, phrase("api_not_so_run"))
        self._hosting.stop()
        return Response(status_code=202)

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
            raise ProblemError(Kind.NOT_FOUND, phrase("no_watch", id=prefix))
        if len(found) > 1:
            shown = ", ".join(found[:_MOST_SHOWN])
            raise ProblemError(
                Kind.AMBIGUOUS, phrase("ambiguous", id=prefix, found=shown)
            )
        return found[0]


_MOST_SHOWN = 10  # ids that a prefix may mean


def _odd(text: str | None) -> str | None:
    """Return a text with the bytes that were no UTF-8, as a command quotes them."""
    return None if text is None else store.from_text(text)
