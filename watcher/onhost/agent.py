"""What runs on a host behind one channel: it looks when asked, and tells ends at once.

    asked:  {"number": n, "requests": [...], "follow": [[pid, start], ...]}
    told:   {"number": n, "about": {...}, "answers": [...]}
            {"exit": [pid, start, wait status or null]}

Either may stand alone: a `follow` without a number asks nothing, and a first message
with only `about` says that the agent is there. It ends with its channel, leaves nothing
behind, and waits without using the processor.
"""

from __future__ import annotations

import collections
import json
import os
import select
import signal
import sys
from typing import Any

from watcher.onhost import frames
from watcher.onhost.exits import Exits
from watcher.onhost.rounds import STEP_S, Looks, Round

_PIECE = 65536
_ROOM = 256  # bytes of a reply that are not answers, and of each answer's error


class Agent:
    """One agent on its two descriptors."""

    def __init__(self, nonce: str, source: int, sink: int) -> None:
        """Hold nothing yet."""
        self._source = source
        self._sink = sink
        self._frames = frames.Frames(frames.asking(nonce))
        self._mark = frames.telling(nonce)
        self._about = about()
        self._asked: collections.deque[dict[str, Any]] = collections.deque()
        self._number: Any = None
        self._round: Round | None = None
        self._looks = Looks()
        self._exits = Exits()
        self._gone: set[tuple[int, int]] = set()

    def serve(self) -> None:
        """Answer until the channel ends."""
        try:
            self._tell(json.dumps({"about": self._about}))
            while self._turn():
                pass
        except (BrokenPipeError, ConnectionError):
            pass  # nobody listens any more
        finally:
            self._exits.close()
            self._looks.close()

    def _turn(self) -> bool:
        """Wait for whatever comes first; say whether the channel is still there."""
        ready = self._wait()
        if self._sink in ready or (self._source in ready and not self._read()):
            return False
        if self._looks.fd in ready:
            self._looks.heard()
        for pid, start, status in self._exits.poll():
            self._tell(json.dumps({"exit": [pid, start, status]}))
        self._go_on(stalled=not ready)
        return True

    def _wait(self) -> set[int]:
        poll = select.poll()
        for fd in (self._source, self._looks.fd, *self._exits.fds()):
            poll.register(fd, select.POLLIN)
        poll.register(self._sink, 0)  # ready when nobody reads it any more
        return {fd for fd, _ in poll.poll(STEP_S * 1000 if self._round else None)}

    def _read(self) -> bool:
        data = os.read(self._source, _PIECE)
        for message in self._frames.feed(data):
            if "follow" in message:
                self._follow([(pid, start) for pid, start in message["follow"]])
            if "number" in message:
                self._asked.append(message)
        return bool(data)

    def _go_on(self, *, stalled: bool) -> None:
        """Finish the round that is over, and begin the next."""
        if self._round is not None and stalled:
            self._round.step()
        while self._begun() and self._round is not None and self._round.over():
            self._tell(self._reply(self._number, self._round.answers()))
            self._round = None

    def _begun(self) -> bool:
        """Begin the next round unless there is one; say whether there is one now."""
        if self._round is None and self._asked:
            message = self._asked.popleft()
            self._number = message["number"]
            self._round = self._looks.begin(message["requests"])
        return self._round is not None

    def _follow(self, ends: list[tuple[int, int]]) -> None:
        """Hold these and no others; tell at once what has ended before."""
        self._exits.keep_only(ends)
        self._gone.intersection_update(ends)
        for end in ends:
            if end not in self._gone and self._exits.hold(*end) is False:
                self._gone.add(end)
                self._tell(json.dumps({"exit": [*end, None]}))

    def _reply(self, number: int, answers: list[dict[str, Any]]) -> str:
        """Return the reply as text; an answer that no longer fits is an error."""
        left = frames.MOST - _ROOM * (len(answers) + 16)
        texts = []
        for found in answers:
            text = _text_of(found)
            if len(text) > left:
                text = json.dumps({"error": {"errno": "EFBIG", "text": "too long"}})
            left -= len(text)
            texts.append(text)
        head = json.dumps({"number": number, "about": self._about})
        return f'{head[:-1]}, "answers": [{", ".join(texts)}]}}'

    def _tell(self, text: str) -> None:
        data = memoryview(frames.frame(self._mark, text))
        while data:
            data = data[os.write(self._sink, data) :]


def _text_of(found: dict[str, Any]) -> str:
    try:
        return json.dumps(found)
    except (TypeError, ValueError) as error:
        return json.dumps({"error": {"errno": "", "text": f"no JSON: {error}"}})


def about() -> dict[str, Any]:
    """Return what tells one host, and one boot of it, from another."""
    return {
        "boot_id": _read_text("/proc/sys/kernel/random/boot_id"),
        "pid_namespace": _link("/proc/self/ns/pid"),
        "system": os.uname().sysname,
        "hostname": os.uname().nodename,
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "home": os.path.expanduser("~"),
        "means": "agent",
    }


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def main(nonce: str) -> None:
    """Be the agent of this process; never returns.

    The channel gets descriptors of its own, so that nothing that is started here can
    read what is meant for us, or write between our frames.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    os.umask(0o077)
    os.chdir("/")
    source, sink = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    os.close(nowhere)
    for fd in (source, sink):
        os.set_blocking(fd, True)
    try:
        Agent(nonce, source, sink).serve()
    finally:
        os._exit(0)  # a look that hangs must not keep us
