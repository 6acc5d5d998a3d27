"""Work that may hang, done by a child that is killed when it takes too long."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

Work = Callable[[], "dict[str, Any]"]

_SPARE_S = 5  # a child whose parent was killed ends by itself so long after its limit


class HungError(Exception):
    """It took too long, or the child ended without a word."""


def limited(work: Work, limit_s: float, *, shut: Sequence[int]) -> dict[str, Any]:
    """Return what `work` returns in a child.

    Args:
        work: may do anything; a fault of it is told on stderr.
        limit_s: what it gets.
        shut: descriptors that the child must not keep open.

    Raises:
        HungError: it gave no answer.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:  # no one returns from here
        os.close(reading)
        _work(work, limit_s, writing, shut)
    os.close(writing)
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)  # it does so, too; whoever is first
    try:
        answer = json.loads(_read(reading, limit_s))
    except ValueError as error:
        raise HungError from error
    finally:
        os.close(reading)
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
        _reap(pid)
    if not isinstance(answer, dict):
        raise HungError
    return answer


def _work(work: Work, limit_s: float, writing: int, shut: Sequence[int]) -> None:
    status = 1
    try:
        for fd in shut:
            os.close(fd)
        os.setpgid(0, 0)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        signal.alarm(int(limit_s) + _SPARE_S)
        data = json.dumps(work()).encode()
        while data:
            data = data[os.write(writing, data) :]
        status = 0
    except BaseException:  # noqa: BLE001 - whatever it is, it ends here
        with contextlib.suppress(BaseException):
            traceback.print_exc()
    finally:
        os._exit(status)


def _read(fd: int, limit_s: float) -> bytes:
    """Return what comes until its end; empty where that takes too long."""
    until, found = time.monotonic() + limit_s, b""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while True:
        left_s = until - time.monotonic()
        if left_s <= 0 or not poll.poll(left_s * 1000):
            return b""
        chunk = os.read(fd, 65536)
        if not chunk:
            return found
        found += chunk


def _reap(pid: int) -> None:
    """Collect a child; one that even SIGKILL does not end is left behind."""
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        done, _ = os.waitpid(pid, os.WNOHANG)
        if done:
            return
        time.sleep(0.001)
