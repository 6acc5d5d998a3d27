"""A log that is watched, read in one of the ways there are."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from watcher.onhost import answer, log
from watcher.onhost.logfile import Reader
from watcher.transport.shell import log as shell

Values = dict[str, Any]

SHELLS = {
    name: argv
    for name, argv in {
        "dash": ["dash"],
        "bash": ["bash", "--posix"],
        "busybox": ["busybox", "sh"],
    }.items()
    if shutil.which(argv[0])
}


class Way(Protocol):
    """How a request is answered."""

    def read(self, request: Values) -> Values: ...

    def close(self) -> None: ...


class Here:
    """By a reader that keeps files open."""

    def __init__(self) -> None:
        self.reader = Reader()

    def read(self, request: Values) -> Values:
        return answer(request, self.reader.read)

    def close(self) -> None:
        self.reader.close()


class There:
    """As a host answers: everything crosses a channel as JSON."""

    def read(self, request: Values) -> Values:
        found: Values = json.loads(json.dumps(answer(json.loads(json.dumps(request)))))
        return found

    def close(self) -> None:
        return


class Shell:
    """By a POSIX shell."""

    def __init__(self, argv: list[str]) -> None:
        self.argv = argv

    def output(self, request: Values) -> bytes:
        script = os.fsencode(shell.script(request))
        ran = subprocess.run(
            self.argv, input=script, capture_output=True, check=True, timeout=60
        )
        assert ran.stderr == b""
        return ran.stdout

    def read(self, request: Values) -> Values:
        found: Values = json.loads(
            json.dumps(shell.answer(request, self.output(request)))
        )
        return found

    def close(self) -> None:
        return


WAYS: dict[str, Callable[[], Way]] = {
    "here": Here,
    "host": There,
    **{name: partial(Shell, argv) for name, argv in SHELLS.items()},
}


class Watched:
    """A watch on a log: what it remembers, and what each look saw."""

    def __init__(self, path: Path | str, way: Way, **spec: object) -> None:
        self.spec = {
            "path": str(path),
            "pass": "PASS",
            "fail": "FAIL",
            "stalled_s": None,
            "from_start": False,
            **spec,
        }
        self.way = way
        self.memory: Values = {}
        self.up_s = 1000.0
        self.asked: list[Values] = []
        self.notes: list[list[Any]] = []
        self.looks = 0

    def once(self, **now: float) -> Values:
        """Take one look; its memory is stored and read again."""
        requests = log.ask(self.spec, self.memory)
        self.asked += requests
        answers = [self.way.read(dict(request)) for request in requests]
        time = {"up_s": self.up_s, "at": 0.0, **now}
        seen = log.judge(self.spec, self.memory, answers, time)
        self.memory = json.loads(json.dumps(seen["memory"]))
        self.notes += seen.get("notes", [])
        self.looks += 1
        return seen

    def look(self, **now: float) -> Values:
        """Look until there is no more to read."""
        for _ in range(10_000):
            seen = self.once(**now)
            if seen.get("again_in_s") != 0:
                return seen
        msg = "it never comes to an end"
        raise AssertionError(msg)

    def decided(self, **now: float) -> tuple[str, str] | None:
        """Return result and line, None while nothing has decided."""
        seen = self.look(**now)
        assert seen["sight"] != "unknown", seen
        if seen["sight"] == "held":
            return None
        again = self.look(**now)
        assert (again["sight"], again["result"]) == ("released", seen["result"])
        return seen["result"], seen["decided"][1]["text"]


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)
