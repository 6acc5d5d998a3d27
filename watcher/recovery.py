"""From the rows of a store to the watches that they mean (C5.3)."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from policies.clock import Clock
from policies.codec import instant
from policies.model import Memory
from policies.verdict import Progress, Rules
from policies.wording import Phrase, phrase
from watcher.conditions import Condition, Place
from watcher.config import Config
from watcher.engine import Watch
from watcher.errors import UsageError
from watcher.hosted import Hosted
from watcher.store import WaiterRow, WatchRow
from watcher.targets import condition_of
from watcher.transport import Hosts
from watcher.unwatchable import Unwatchable

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Takes watches up on this boot's clock."""

    config: Config
    clock: Clock
    boot_id: str
    hosts: Hosts | None

    def watch_of(
        self, row: WatchRow, waiters: list[WaiterRow], last_number: int
    ) -> Hosted:
        """Return the watch of a row, with its original deadline.

        Without a waiter, which cannot be by the store's own rules, it ends at once.
        """
        if not waiters:
            _log.error("watch.without_waiters", extra={"watch_id": row.id})
        memory = self._memory_of(row, waiters)
        armed_ago_s = self._armed_ago_s(row, waiters)
        for waiter in waiters:
            self._restore_deadline(waiter)
        watch = Watch(
            id=row.id,
            condition=self._condition_of(row),
            rules=Rules(armed_s=0, deadline_s=0, settle_s=0),
            every_s=row.every_s,
            ttl_s=row.ttl_s,
            label=row.label,
            armed_at=instant(row.armed_at),
            armed_awake_s=self.clock.awake() - armed_ago_s,
            progress=Progress(ever_blocked=row.looks > 0),
            memory=memory,
            looks=row.looks,
            unknown_s=row.unknown_s,
        )
        hosted = Hosted(
            watch=watch,
            waiters={waiter.number: waiter for waiter in waiters},
            last_number=last_number,
            renewals=row.renewals,
        )
        if waiters:
            watch.rules = hosted.rules(
                self.config.cadence.settle,
                armed_s=self.clock.boot() - armed_ago_s,
                start_within_s=row.start_within_s,
            )
        return hosted

    def _condition_of(self, row: WatchRow) -> Condition:
        """Return what looks; what cannot be built is unknown until its deadline."""
        why: Phrase
        try:
            place = Place(
                config=self.config,
                cwd="/",
                launcher=0,
                clock=self.clock,
                hosts=self.hosts,
            )
            return condition_of(row.target, place)
        except UsageError as error:
            why = error.phrase
        except Exception as error:  # noqa: BLE001 - one row must not stop the others
            _log.exception("watch.unreadable", extra={"watch_id": row.id})
            why = phrase("probe_failed", error=f"{type(error).__name__}: {error}")
        return Unwatchable(row.kind, row.target, row.label, row.host, why)

    def _memory_of(self, row: WatchRow, waiters: list[WaiterRow]) -> Memory:
        """Return what it remembers; device numbers are handed out at each boot."""
        if all(waiter.boot_id == self.boot_id for waiter in waiters):
            return row.memory
        return _without_device(row.memory)

    def _armed_ago_s(self, row: WatchRow, waiters: list[WaiterRow]) -> float:
        """Return how long ago it was armed, by this boot's clock where that can be."""
        for waiter in waiters:
            if waiter.boot_id == self.boot_id:
                joined_s = waiter.deadline_boot_s - waiter.ttl_s
                earlier_s = max(waiter.armed_at - row.armed_at, 0.0)
                return max(self.clock.boot() - joined_s + earlier_s, 0.0)
        ago_s = self.clock.wall().timestamp() - row.armed_at
        return min(max(ago_s, 0.0), float(row.ttl_s))

    def _restore_deadline(self, waiter: WaiterRow) -> None:
        """Give a waiter its deadline on this boot's clock (C4.3).

        Within one boot that clock decides, whatever the wall clock was set to. After
        another boot only the wall clock is left; however it was set, nobody waits
        longer than the TTL from now.
        """
        if waiter.boot_id == self.boot_id:
            return
        left_s = waiter.deadline_at - self.clock.wall().timestamp()
        left_s = min(max(left_s, 0.0), float(waiter.ttl_s))
        waiter.deadline_boot_s = self.clock.boot() + left_s
        waiter.boot_id = self.boot_id


def _without_device(memory: Memory) -> Memory:
    """Return a memory without its device number, and without those of its members."""
    kept = {name: value for name, value in memory.items() if name != "device"}
    members = kept.get("members")
    if isinstance(members, Mapping):
        kept["members"] = {
            text: _without_device(member) if isinstance(member, Mapping) else member
            for text, member in members.items()
        }
    return kept
