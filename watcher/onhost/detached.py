"""The watcher that stays on a host: looks, writes down how it ended, sends the ping.

One process a watch, stdlib only. It owes its life to nobody's session; whether it lives
is told by the lock on its folder. What may hang, a look or an attempt to send, is done
by a child with a limit.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import select
import signal
import sys
import time
from datetime import datetime, timezone
from typing import Any

from watcher.onhost import answer, at_home, part, post, verdict, words
from watcher.onhost import folder as folders
from watcher.onhost.limited import HungError, limited

LOOK_LIMIT_S = 15.0
"""A look that takes longer has seen nothing."""

_ATTEMPT_SPARE_S = 1.0  # behind the time-out of an attempt, for the name look-up
_LONGEST_PAUSE_S = 30.0  # between two looks into the folder, should `wake` fail
_CONTACT_PAUSE_S = 2.0  # between two looks whether the laptop is still there
_LEAST_GRACE_S = 10.0  # a laptop that is busy may take seconds to deliver
_MOST_GRACE_S = 180.0
_CONTACT_FRESH_S = 180.0
_FOLLOWED = 64  # processes whose end wakes us; the others are looked at in rounds
_TAKE_LIMIT_S = 3.0


class StoppedError(Exception):
    """Somebody wants it gone."""


def main(folder: str, *, apart: bool) -> int:
    """Watch until the end; return the exit status.

    Args:
        folder: of the watch, see `watcher.onhost.folder`.
        apart: leave the process that started us.
    """
    os.umask(0o077)
    if apart and os.fork():
        os._exit(0)
    alive = folders.hold(folder, _TAKE_LIMIT_S)
    if alive is None:
        return 0
    watcher = Watcher(folder, alive)
    signal.signal(signal.SIGTERM, _stop)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        watcher.run()
    except StoppedError:
        watcher.stopped()
    return 0


def up() -> float:
    """Return seconds since boot, suspend included where the system can tell."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def boot_id() -> str:
    """Return what tells one boot from another; empty where there is nothing."""
    return (folders.read("/proc/sys/kernel/random/boot_id") or "").strip()


class Watcher:
    """One watch."""

    def __init__(self, folder: str, alive: int) -> None:
        """Take up what the folder holds."""
        self._folder = folder
        self._alive = alive
        self._order: dict[str, Any] = {}
        self._order_is: tuple[int, int] | None = None
        state = folders.read_json(folder, "state.json") or {}
        self._state: dict[str, Any] = state
        self._due = 0.0
        self._attempt_due = 0.0
        self._ends: dict[tuple[int, int], int] = {}
        self._ended: set[tuple[int, int]] = set()
        self._wake = self._open_wake()

    def run(self) -> None:
        """Look, end, send, and leave one file.

        Raises:
            StoppedError: somebody wants it gone.
        """
        while True:
            if os.path.exists(os.path.join(self._folder, "stop")):
                raise StoppedError
            if not self._read_order():
                return
            outcome = folders.read_json(self._folder, "outcome.json")
            pause_s = self._watch() if outcome is None else self._deliver(outcome)
            if pause_s is None:
                self._tidy()
                return
            self._pause(pause_s)

    def stopped(self) -> None:
        """Remove everything, but an outcome that nobody else may know yet."""
        asked = os.path.exists(os.path.join(self._folder, "stop"))
        outcome = folders.read_json(self._folder, "outcome.json")
        if outcome is not None and not asked:
            self._tidy()
        else:
            folders.clear(self._folder)

    # -- the folder ---------------------------------------------------------------

    def _read_order(self) -> bool:
        """Read the order where it is new; False where there is none to follow."""
        try:
            found = os.stat(os.path.join(self._folder, "order.json"))
        except FileNotFoundError:
            return False  # the folder was removed
        known = (found.st_ino, found.st_mtime_ns)
        if known == self._order_is:
            return True
        order = folders.read_json(self._folder, "order.json")
        if order is None or order["boot_id"] != boot_id():
            return False  # its instants are of another boot: it is ordered anew
        if not self._state or self._state["number"] != order["number"]:
            self._state = {
                "number": order["number"],
                "memory": order["memory"],
                "progress": {},
                "looks": 0,
                "unknown_s": 0.0,
                "blind": False,
                "looked_up": 0.0,
            }
        self._order, self._order_is, self._due = order, known, up()
        return True

    def _open_wake(self) -> int | None:
        path = os.path.join(self._folder, "wake")
        try:
            with contextlib.suppress(FileExistsError):
                os.mkfifo(path, 0o600)
            # For both, so that it never is at its end.
            return os.open(path, os.O_RDWR | os.O_NONBLOCK)
        except OSError:
            return None  # the pause is limited anyway

    def _tidy(self) -> None:
        """Leave the outcome alone, for the laptop to fetch."""
        outcome = folders.read_json(self._folder, "outcome.json")
        folders.sweep(time.time())
        folders.clear(self._folder, but=("outcome.json",) if outcome else ())

    def _pause(self, seconds: float) -> None:
        """Wait, but not past a sign: of the folder, or of a process that ended."""
        poll = select.poll()
        for fd in (*([] if self._wake is None else [self._wake]), *self._ends.values()):
            poll.register(fd, select.POLLIN)
        ready = dict(poll.poll(max(min(seconds, _LONGEST_PAUSE_S), 0.0) * 1000))
        if self._wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake or 0, 4096)
        for one, fd in list(self._ends.items()):
            if fd in ready:
                os.close(self._ends.pop(one))
                self._ended.add(one)
                if not self._settling():
                    self._due = 0.0

    # -- looking ------------------------------------------------------------------

    def _watch(self) -> float:
        """Look if that is due; return the seconds until the next look."""
        now = up()
        if now < self._due:
            return self._due - now
        seen = self._look()
        now, order, state = up(), self._order, self._state
        if state["blind"]:
            state["unknown_s"] += now - state["looked_up"]
        state["blind"] = seen["sight"] == "unknown"
        state["looked_up"], state["looks"] = now, state["looks"] + 1
        said, progress, again_s = verdict.decide(
            order["rules"], state["progress"], seen["sight"], now
        )
        changed = (state["memory"], state["progress"]) != (seen["memory"], progress)
        state["memory"], state["progress"] = seen["memory"], progress
        if said in {"cleared", "expired", "unseen"}:
            self._end(said, seen, now)
            return 0.0
        if changed:
            folders.write_json(self._folder, "state.json", state)
        self._due = now + again_s
        if said == "wait":
            self._due = self._next_due(now, seen)
            self._follow()
        return max(float(self._due - now), 0.0)

    def _next_due(self, now: float, seen: dict[str, Any]) -> float:
        rules = self._order["rules"]
        due: float = min(now + self._order["every_s"], rules["deadline_up"])
        if seen["sight"] == "absent" and not self._state["progress"]["seen"]:
            due = min(due, rules["armed_up"] + rules["start_within_s"])
        again_s = seen.get("again_in_s")
        return due if again_s is None else min(due, now + again_s)

    def _settling(self) -> bool:
        return (self._state["progress"] or verdict.START)["candidate"] is not None

    def _look(self) -> dict[str, Any]:
        """Return what was seen; whatever keeps us from seeing is unknown."""
        order, memory = self._order, self._state["memory"]

        def look() -> dict[str, Any]:
            reader = part(order["part"])
            home = os.path.expanduser("~")
            asked = reader.ask(order["spec"], memory)
            answers = [answer(at_home(one, home)) for one in asked]
            now = {"up_s": up() + order["clock_ahead_s"], "at": time.time()}
            seen: dict[str, Any] = reader.judge(order["spec"], memory, answers, now)
            return seen

        try:
            return _sound(limited(look, LOOK_LIMIT_S, shut=self._own()))
        except (HungError, KeyError):
            return {
                "sight": "unknown",
                "evidence": {"means": "look", "hung": True},
                "memory": memory,
                "reason": ["hung", {"what": order["target"]}],
            }

    def _follow(self) -> None:
        """Let the ends of processes wake us; each at most once."""
        opener = getattr(os, "pidfd_open", None)
        if opener is None:
            return
        try:
            found = part(self._order["part"]).follows(
                self._order["spec"], self._state["memory"]
            )
        except Exception:  # noqa: BLE001 - the rounds go on underneath
            return
        wanted = {(pid, start) for pid, start in found[:_FOLLOWED]} - self._ended
        for one in self._ends.keys() - wanted:
            os.close(self._ends.pop(one))
        for one in wanted - self._ends.keys():
            with contextlib.suppress(OSError):
                self._ends[one] = opener(one[0])

    def _own(self) -> list[int]:
        """Return the descriptors that no child may keep."""
        wake = [] if self._wake is None else [self._wake]
        return [self._alive, *wake, *self._ends.values()]

    # -- the end --------------------------------------------------------------------

    def _end(self, said: str, seen: dict[str, Any], now: float) -> None:
        """Write down how it ended, before anybody is told (C6.1)."""
        order, state = self._order, self._state
        at = time.time()
        since = state["progress"]["unknown"] if state["blind"] else None
        ending = order["cleared"] if said == "cleared" else said
        outcome: dict[str, Any] = {
            "id": order["id"],
            "ending": ending,
            "waiter": order["waiters"][words.kind(order, ending)],
            "ended_at": at,
            "ended_up": now,
            "boot_id": order["boot_id"],
            "result": seen.get("result"),
            "decided": seen.get("decided"),
            "reason": seen.get("reason"),
            "tail": list(seen.get("remarks") or []),
            "already_clear": not state["progress"]["blocked"],
            "unknown_since": None if since is None else at - (now - since),
            "observations": state["looks"],
            "unknown_s": state["unknown_s"],
            "evidence": {
                **seen["evidence"],
                "host": order["host"],
                "boot_id": order["boot_id"],
                "watcher": "detached",
                "seen_at": datetime.fromtimestamp(at, timezone.utc).isoformat(),
            },
            "attempts": 0,
            "delivered_at": None,
            "dead": False,
            "error": None,
        }
        outcome["ping"] = words.ping(order, outcome)
        outcome["line"] = outcome["ping"]["message"]
        folders.write_json(self._folder, "outcome.json", outcome)

    def _deliver(self, outcome: dict[str, Any]) -> float | None:
        """Send the ping if that is due; return the seconds to wait, None at the end.

        A laptop that is in contact has a while to deliver it, and then has us removed:
        the operator is pinged once (C7.4).
        """
        notify, now = self._order["notify"], up()
        if notify is None or outcome["delivered_at"] or outcome["dead"]:
            return None
        if now < self._attempt_due:
            return self._attempt_due - now
        grace_s = max(2 * self._order["every_s"], _LEAST_GRACE_S)
        grace_s = min(grace_s, _MOST_GRACE_S)
        left_s = outcome["ended_up"] + grace_s - now
        if left_s > 0 and folders.in_contact(self._folder, _CONTACT_FRESH_S):
            return float(min(left_s, _CONTACT_PAUSE_S))
        key = folders.read(os.path.join(self._folder, "key")) or ""
        made = self._attempt(notify, key, outcome["ping"])
        outcome["attempts"] += 1
        outcome["error"] = made["error"] or None
        wait_s = self._settle(outcome, made, notify)
        folders.write_json(self._folder, "outcome.json", outcome)
        if wait_s is None:
            folders.remove(os.path.join(self._folder, "key"))
            return None
        self._attempt_due = up() + wait_s
        return wait_s

    def _attempt(
        self, notify: dict[str, Any], key: str, ping: dict[str, Any]
    ) -> dict[str, Any]:
        limit_s = notify["timeout_s"] + _ATTEMPT_SPARE_S
        try:
            return limited(
                lambda: post.send(notify, key, ping), limit_s, shut=self._own()
            )
        except HungError:
            said = f"no answer within {limit_s:g} s"
            return {"answer": "try_later", "error": said, "retry_after_s": None}

    def _settle(
        self, outcome: dict[str, Any], made: dict[str, Any], notify: dict[str, Any]
    ) -> float | None:
        """Note what became of an attempt; return the seconds until the next one."""
        if made["answer"] == "delivered":
            outcome["delivered_at"] = time.time()
            return None
        wait_s = None
        if made["answer"] == "try_later":
            wait_s = post.next_wait(
                outcome["attempts"],
                left_s=outcome["ended_up"] + notify["give_up_s"] - up(),
                jitter=random.random(),  # noqa: S311 - no secret hangs on it
                retry_after_s=made["retry_after_s"],
            )
        outcome["dead"] = wait_s is None
        return wait_s


def _sound(seen: dict[str, Any]) -> dict[str, Any]:
    """Return a judgement that has what every one must have.

    Raises:
        KeyError: it has not.
    """
    if seen["sight"] not in {"held", "released", "unknown", "absent"}:
        raise KeyError(seen["sight"])
    return {**seen, "memory": seen["memory"], "evidence": seen["evidence"]}


def _stop(number: int, frame: object) -> None:  # noqa: ARG001 - as signal asks
    raise StoppedError


def run_program() -> None:
    """Be the program of a folder, whose name is the first word of the call."""
    try:
        sys.exit(main(sys.argv[1], apart=sys.argv[2:] == ["apart"]))
    except OSError as error:
        if error.errno != errno.ENOENT:  # its folder was removed under it
            raise
