"""What a laptop asks of the watchers that stay on this host: the `op` "detached".

    {"do": "start", "owner", "id", "program", "key", "order", "anew"} -> how it lives
    {"do": "contact", "owner", "ids"} -> {"watches": {id: {"alive", "outcome"}}}
    {"do": "stop", "owner", "ids"} -> {"stopped": [id]}
    {"do": "list"} -> {"watches": [...]}, of every laptop of this user

No answer holds a key. `order` is what `watcher.onhost.detached` reads, but that spans
take the place of its instants.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from typing import Any
from urllib.request import getproxies_environment

from watcher.onhost import detached, survival
from watcher.onhost import folder as folders

_STOP_LIMIT_S = 1.5  # for a watcher to go by itself
_TURN_S = 0.01
_SAID_MOST = 300  # characters of a log, for a watcher that does not start

_one_by_one = threading.Lock()
"""An agent may read on many threads."""

_contacts: dict[str, int] = {}
"""By owner: what shows that this agent is there."""


def read(request: dict[str, Any]) -> dict[str, Any]:
    """Carry out what is asked.

    Raises:
        OSError: the folder cannot be used.
    """
    with _one_by_one:
        folders.sweep(time.time())
        done: dict[str, Any] = _DOES[request["do"]](request)
        return done


def let_go() -> None:
    """Let the watchers know that no laptop is there any more."""
    for fd in _contacts.values():
        os.close(fd)
    _contacts.clear()


def _start(request: dict[str, Any]) -> dict[str, Any]:
    """Start a watcher, or give one that lives a new order; a known end stays.

    1. Make the folder, and say that the laptop is there.
    2. Return the outcome, if there is one that the laptop has not refused.
    3. Write program, key and order; start what does not live.
    """
    owner, watch_id = request["owner"], request["id"]
    folder = folders.of_watch(owner, watch_id)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    for made in (folders.root(), folders.of_owner(owner), folder):
        os.chmod(made, 0o700)
    _touch(owner)
    if request.get("anew"):
        _stop_one(folder, watch_id)
        os.makedirs(folder, mode=0o700, exist_ok=True)
    outcome = folders.read_json(folder, "outcome.json")
    if outcome is not None:
        return {"alive": folders.is_alive(folder), "outcome": outcome}
    before = folders.read_json(folder, "order.json")
    alive = folders.is_alive(folder)
    folders.write(os.path.join(folder, folders.PROGRAM), request["program"])
    if request["key"]:
        folders.write(os.path.join(folder, "key"), request["key"])
    order = _instants(request["order"])
    order |= {"id": watch_id, "owner": owner, "number": os.urandom(6).hex()}
    if alive and before is not None:
        # What it knows by its own looks is newer than what the laptop knew.
        order["number"] = before["number"]
        folders.write_json(folder, "order.json", order)
        folders.wake(folder)
        how = _how(folder)
        return {"alive": True, "outcome": None, "how": how, "fate": survival.fate(how)}
    for name in ("stop", "state.json", "log"):
        folders.remove(os.path.join(folder, name))
    folders.write_json(folder, "order.json", order)
    return _spawn(folder, watch_id)


def _spawn(folder: str, watch_id: str) -> dict[str, Any]:
    how = survival.spawn(folder, watch_id)
    if not survival.comes_alive(folder):
        folders.remove(os.path.join(folder, "key"))
        said = folders.read(os.path.join(folder, "log")) or ""
        return {"alive": False, "outcome": None, "said": said[-_SAID_MOST:]}
    with contextlib.suppress(OSError):  # it may have ended, and be gone, by now
        folders.write(os.path.join(folder, "how"), how)
    return {"alive": True, "outcome": None, "how": how, "fate": survival.fate(how)}


def _how(folder: str) -> str:
    return folders.read(os.path.join(folder, "how")) or "session"


def _instants(order: dict[str, Any]) -> dict[str, Any]:
    """Return an order with the instants of this host in place of spans (C4.3)."""
    now, spans = detached.up(), order["spans"]
    notify = order["notify"]
    if notify is not None:
        notify = {**notify, "proxies": getproxies_environment()}
    return {
        **{name: value for name, value in order.items() if name != "spans"},
        "notify": notify,
        "boot_id": detached.boot_id(),
        "clock_ahead_s": order["up_s"] - now,
        "rules": {
            "armed_up": now - spans["armed_ago_s"],
            "deadline_up": now + spans["left_s"],
            "settle_s": spans["settle_s"],
            "start_within_s": spans["start_within_s"],
        },
    }


def _contact(request: dict[str, Any]) -> dict[str, Any]:
    """Say how the watches of a laptop stand, whose agent this is."""
    owner, found = request["owner"], {}
    if os.path.isdir(folders.of_owner(owner)):
        _touch(owner)
    for watch_id in request["ids"]:
        folder = folders.of_watch(owner, watch_id)
        # In this order: one that ends between the two has left its outcome.
        alive = folders.is_alive(folder)
        outcome = folders.read_json(folder, "outcome.json")
        found[watch_id] = {"alive": alive, "outcome": outcome}
    return {"watches": found}


def _stop(request: dict[str, Any]) -> dict[str, Any]:
    """Remove watches with all that is theirs; say which are gone."""
    owner = request["owner"]
    gone = [
        watch_id
        for watch_id in request["ids"]
        if _stop_one(folders.of_watch(owner, watch_id), watch_id)
    ]
    _leave(owner)
    return {"stopped": gone}


def _stop_one(folder: str, watch_id: str) -> bool:
    """Stop a watcher, by force if it must be, and remove its folder."""
    if not os.path.isdir(folder):
        return True
    how = _how(folder)
    if folders.is_alive(folder):
        folders.write(os.path.join(folder, "stop"), "")
        folders.wake(folder)
        if not _ends(folder):
            if how == "unit":
                survival.stop_unit(watch_id)
            pid = folders.pid_of(folder)
            if pid is not None:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            _ends(folder)
    folders.clear(folder)
    return not os.path.isdir(folder)


def _ends(folder: str) -> bool:
    until = time.monotonic() + _STOP_LIMIT_S
    while folders.is_alive(folder):
        if time.monotonic() > until:
            return False
        time.sleep(_TURN_S)
    return True


def _list(request: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - as the others
    """Say what runs here, or has left an outcome that nobody has fetched."""
    return {
        "watches": [
            _shown(owner, watch_id)
            for owner in folders.names(folders.root())
            for watch_id in folders.names(folders.of_owner(owner))
        ]
    }


def _shown(owner: str, watch_id: str) -> dict[str, Any]:
    folder = folders.of_watch(owner, watch_id)
    alive = folders.is_alive(folder)
    outcome = folders.read_json(folder, "outcome.json") or {}
    order = folders.read_json(folder, "order.json") or {}
    state = folders.read_json(folder, "state.json")
    watch = order.get("watch") or (outcome.get("ping") or {}).get("watch") or {}
    return {
        "id": watch_id,
        "owner": owner,
        "alive": alive,
        "watch": watch,
        "deadline_at": order.get("deadline_at"),
        "every_s": order.get("every_s"),
        "sight": None if state is None else "unknown" if state["blind"] else "held",
        **{
            name: outcome.get(name)
            for name in ("ending", "result", "ended_at", "delivered_at", "line")
        },
    }


def _leave(owner: str) -> None:
    """Leave nothing behind of a laptop that has nothing here any more."""
    if folders.names(folders.of_owner(owner)):
        return
    fd = _contacts.pop(owner, None)
    if fd is not None:
        os.close(fd)
    folders.remove_owner(owner)


def _touch(owner: str) -> None:
    """Show, as long as this agent lives, that the laptop is in contact (C7.4)."""
    if owner in _contacts and not folders.is_contact(owner, _contacts[owner]):
        os.close(_contacts.pop(owner))  # another agent of this laptop has left
    if owner not in _contacts:
        fd = folders.hold_contact(owner)
        if fd is None:
            return
        _contacts[owner] = fd
    folders.touch_contact(owner)


_DOES = {"start": _start, "contact": _contact, "stop": _stop, "list": _list}
