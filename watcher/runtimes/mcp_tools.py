"""The six tools of the MCP server, without its protocol (C11.4).

They do what the commands of the same names do, by the same service and the same rules.
A wait ends before a client's limit and is taken up again by `check`: the watch is the
service's, and needs nobody who waits.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple, cast

from policies.codec import instant
from policies.duration import format_minutes, parse_duration
from policies.lines import local_time
from policies.model import Json, Outcome, Sight
from policies.shapes import check_object, outcome_object, rfc3339
from policies.wording import Lang, Phrase, phrase
from watcher.cli.assess import verdict_line, weigh
from watcher.cli.check import look_at, show_life
from watcher.cli.lifecycle import ask
from watcher.cli.reading import language, now, read
from watcher.clock import SystemClock
from watcher.config import Config, load_config
from watcher.errors import UsageError
from watcher.runtimes.mcp_asked import (
    WAIT_LIMIT_S,
    Arm,
    Assess,
    Check,
    List,
    Order,
    Remove,
    Renew,
    folder,
    order_for,
)
from watcher.runtimes.mcp_waits import (
    FIRST_S,
    News,
    Object,
    Progress,
    Waiter,
    follow,
    news_of,
    off,
    request,
    stands,
    watch_of,
)
from watcher.views import DAY_S, NEVER, matching, watch_object, watch_row, watch_rows

_MOST = 100  # watches that `list` returns: an agent reads all of it


class Said(NamedTuple):
    """What a tool answers: the object, and a short text."""

    shape: Object
    text: str


class Tools:
    """The calls of one client, and what it has armed."""

    def __init__(self, lang: str | None = None) -> None:
        """Arm nothing yet.

        Args:
            lang: of lines and errors; None for that of the configuration.
        """
        self._asked_lang = lang
        self._clock = SystemClock()
        self._waiters: dict[tuple[object, ...], Waiter] = {}
        self._arming: dict[tuple[object, ...], asyncio.Lock] = {}

    @property
    def lang(self) -> Lang:
        """The language of lines and errors."""
        return language(self._asked_lang, os.environ)

    async def arm(self, asked: Arm, progress: Progress) -> Said:
        """Arm a watch, or join that of the same condition; wait if that is asked."""
        until_s = self._clock.awake() + min(asked.wait_s, WAIT_LIMIT_S)
        config = load_config(os.environ)
        order = order_for(asked, config, self._asked_lang)
        async with self._arming.setdefault(order.key, asyncio.Lock()):
            waiter, news, notes = await self._armed(order, config)
        if news.outcome is None and self._clock.awake() < until_s:
            notes += news.notes
            wait_s = until_s - self._clock.awake()
            news = await follow(config.state, waiter, wait_s=wait_s, progress=progress)
        watch = await watch_of(config.state, waiter.watch_id)
        return self._told(watch, waiter, news, notes)

    async def _armed(
        self, order: Order, config: Config
    ) -> tuple[Waiter, News, tuple[Phrase, ...]]:
        """Return the waiter of an order and what is known of it at once.

        That of the same order before, unless its outcome is no answer to this one.
        """
        while True:
            known = self._waiters.get(order.key)
            waiter = known or self._waiters.setdefault(order.key, Waiter())
            body = {**order.body, "nonce": waiter.nonce}
            answer = await request(config.state, "POST", "/v1/watches", body)
            watch = cast("Mapping[str, Json]", answer)
            waiter.watch_id = str(watch["id"])
            waiter.number = cast("int", watch["waiter"])
            news = await news_of(
                config.state, waiter, wait_s=FIRST_S, knows_waiting=False
            )
            if (
                known is None
                or news.outcome is None
                or await self._stands(news.outcome, waiter, config)
            ):
                break
            del self._waiters[order.key]
        notes = order.notes
        differs = cast("Sequence[str]", watch["differs"])
        if differs:
            notes += (phrase("differs", names=", ".join(differs)),)
        if known is None and waiter.number > 1:
            notes += (phrase("joined", id=waiter.watch_id),)
        return waiter, news, notes

    async def _stands(self, outcome: Outcome, waiter: Waiter, config: Config) -> bool:
        age_s = (self._clock.wall() - outcome.ended_at) / timedelta(seconds=1)

        def seen() -> Sight:
            return look_at(outcome.target.text, config, cwd="/")[1].sight

        return await off(
            lambda: stands(outcome.ending, told=waiter.told, age_s=age_s, seen=seen)
        )

    def _told(
        self, watch: Object, waiter: Waiter, news: News, notes: tuple[Phrase, ...]
    ) -> Said:
        """Return how it stands with a waiter: its outcome, or until when it waits."""
        lang, zone = self.lang, self._clock.zone()
        shape: Object = {**watch, "waiting": news.outcome is None, "outcome": None}
        if news.outcome is not None:
            outcome = outcome_object(news.outcome, lang, zone)
            shape |= {"outcome": outcome, "line": outcome["line"]}
            waiter.told = True
            text = str(outcome["line"])
        else:
            deadline = instant(news.deadline_s)
            shape["deadline"] = rfc3339(deadline, zone)
            text = phrase(
                "mcp_waiting",
                id=waiter.watch_id,
                target=str(watch.get("target")),  # a broken store knows but the id
                until=local_time(deadline, zone),
            ).render(lang)
        remarks = [note.render(lang) for note in (*notes, *news.notes)]
        return Said({**shape, "notes": remarks}, "\n".join([text, *remarks]))

    async def list(self, asked: List, _: Progress) -> Said:
        """Return what is armed, the newest last."""
        since_s = now() - DAY_S if asked.all else NEVER
        rows, note = await off(
            lambda: read(lambda db: watch_rows(db, ended_after_s=since_s))
        )
        found = rows or []
        watches = [watch_object(row) for row in found[-_MOST:]]
        lines = [_listed(watch, self.lang) for watch in watches]
        if note is not None:
            lines.append(note.render(self.lang))
        elif not lines:
            lines.append(phrase("nothing_armed").render(self.lang))
        shape: Object = {"watches": watches, "omitted": len(found) - len(watches)}
        return Said(shape, "\n".join(lines))

    async def check(self, asked: Check, progress: Progress) -> Said:
        """Look once, now; or wait on for the outcome of a watch."""
        config = load_config(os.environ)
        if asked.wait_s > 0:
            wait_s = min(asked.wait_s, WAIT_LIMIT_S)
            return await self._wait(config, asked.what, wait_s, progress)
        target, seen = await off(lambda: look_at(asked.what, config, cwd=folder()))
        watch = await off(lambda: _stored(asked.what))
        shape = check_object(target, seen, self.lang, self._clock.zone())
        text = f"{shape['target']}: {shape['observation']} — {shape['detail']}"
        if watch is not None and watch["line"] is not None:
            text = f"{watch['line']}\n{text}"
        return Said({**shape, "watch": watch}, text)

    async def _wait(
        self, config: Config, what: str, wait_s: float, progress: Progress
    ) -> Said:
        """Take a wait up again, and return it in the form of `check`."""
        until_s = self._clock.awake() + wait_s
        await off(lambda: show_life(config, os.environ))
        watch = await watch_of(config.state, what)
        waiter = self._waiter_of(str(watch["id"]))
        left_s = until_s - self._clock.awake()
        news = await follow(config.state, waiter, wait_s=left_s, progress=progress)
        watch = await watch_of(config.state, waiter.watch_id)
        told, text = self._told(watch, waiter, news, ())
        shape: Object = {
            "target": watch["target"],
            "observation": watch["observation"],
            "result": watch["result"],
            "detail": text,
            "evidence": watch["evidence"],
            "at": watch["ended_at"] or watch["last_probe_at"],
            "watch": watch,
            **{name: told[name] for name in ("waiting", "outcome", "notes")},
        }
        return Said(shape, text)

    def _waiter_of(self, watch_id: str) -> Waiter:
        """Return the waiter that this client armed last, else the watch's first."""
        ours = [w for w in self._waiters.values() if w.watch_id == watch_id]
        return ours[-1] if ours else Waiter(watch_id=watch_id)

    async def assess(self, asked: Assess, _: Progress) -> Said:
        """Weigh whether to renew or to remove."""
        config, lang = load_config(os.environ), self.lang
        shape = await off(lambda: weigh(asked.what, config, lang, cwd=folder()))
        return Said({**shape}, verdict_line(shape, lang))

    async def renew(self, asked: Renew, _: Progress) -> Said:
        """Set a new deadline."""
        try:
            ttl_s = parse_duration(asked.ttl)
        except ValueError as error:
            why = phrase("bad_duration", name="ttl", value=asked.ttl)
            raise UsageError(why) from error
        body = {"ttl_s": ttl_s, "why": asked.why or None}
        watch = await off(lambda: ask("POST", asked.id, "/renew", body))
        done = phrase("renewed", id=str(watch["id"]), ttl=format_minutes(ttl_s))
        return Said({**watch}, done.render(self.lang))

    async def remove(self, asked: Remove, _: Progress) -> Said:
        """End a watch and say why."""
        watch = await off(lambda: ask("DELETE", asked.id, body={"why": asked.why}))
        done = phrase("removed", id=str(watch["id"]))
        return Said({**watch}, done.render(self.lang))


def _stored(what: str) -> Object | None:
    """Return the watch that `check` found by its id, if that is what it was given."""
    found, _ = read(lambda db: [watch_row(db, i) for i in matching(db, what)[:2]])
    rows = found or []
    return watch_object(rows[0]) if len(rows) == 1 and rows[0] is not None else None


def _listed(watch: Object, lang: Lang) -> str:
    """Return a watch in one line: how it ended, or until when it waits."""
    if watch["line"] is not None:
        return f"{watch['id']} {watch['line']}"
    return phrase(
        "mcp_listed",
        id=str(watch["id"]),
        state=str(watch["observation"]),
        target=str(watch["target"]),
        until=str(watch["deadline"]),
    ).render(lang)
