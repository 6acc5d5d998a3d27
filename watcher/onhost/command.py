"""A command that is run until it exits with 0 (C1.2, C3.1).

It gets nothing to read, a session of its own, the folder named by `cwd` to run in, and
a time limit; what it says is read and dropped but for the end. It may leave a program
behind that holds its output open: nobody waits for that one.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any

from watcher.onhost import unknown

LIMIT_S = 8.0
"""What one run gets here; a look is given up after ten."""

FAR_LIMIT_S = 2.5
"""What it gets on a host, where a look is given up after 4, by a shell after 3."""

_GRACE_S = 1.0  # between SIGTERM and SIGKILL
_REAP_S = 0.5  # behind SIGKILL, which takes no time, or for ever
_KEPT = 2048  # bytes of output
_CHUNK = 65536
_SOONEST_S, _LATEST_S = 0.005, 0.05  # how often its end is asked for
_MARK = "KODER_MONITOR_"
_SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD")
_NOT_RUN = frozenset({126, 127})  # by which a shell, or env, says that it could not


def ask(spec: Mapping[str, Any], memory: Mapping[str, Any]) -> list[dict[str, Any]]:  # noqa: ARG001
    """Return the one thing to run."""
    wanted = {name: spec[name] for name in ("argv", "limit_s")}
    if spec.get("cwd", "/") != "/":
        wanted["cwd"] = spec["cwd"]
    return [{"op": "command", **wanted}]


def follows(spec: Mapping[str, Any], memory: Mapping[str, Any]) -> list[list[int]]:  # noqa: ARG001
    """Return none: each run is over when it is judged."""
    return []


def read(request: dict[str, Any]) -> dict[str, Any]:
    """Run it, and return how that ended.

    Returns:
        `exit`, its status, or `signal`, the number of what ended it, else None; `slow`,
        whether it was ended for the time it took; `output`, the end of what it said.

    Raises:
        OSError: it could not be run.
    """
    argv = [word.encode("utf-8", "surrogateescape") for word in request["argv"]]
    child = subprocess.Popen(  # noqa: S603 - to run it is what was asked for
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=request.get("cwd", "/"),
        env=environment(os.environ),
        start_new_session=True,
    )
    tail = Tail(child)
    try:
        slow = not tail.ended_within(float(request["limit_s"]))
        if slow:
            _end(child, tail)
        code = child.returncode
        return {
            "exit": code if code is not None and code >= 0 else None,
            "signal": -code if code is not None and code < 0 else None,
            "slow": slow,
            "output": shown(tail.read()),
        }
    finally:
        tail.close()


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return what it may know: everything but our own secrets."""
    return {
        name: value
        for name, value in env.items()
        if not (name.startswith(_MARK) and any(word in name for word in _SECRET))
    }


def _end(child: subprocess.Popen[bytes], tail: Tail) -> None:
    """End a command with all that it has started in its session."""
    _signal(child, signal.SIGTERM)
    tail.ended_within(_GRACE_S)
    _signal(child, signal.SIGKILL)  # also what outlived it
    tail.ended_within(_REAP_S)


def _signal(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(child.pid, number)
    except (ProcessLookupError, PermissionError):
        return  # nobody is left in it; or it has taken other rights, and runs on


class Tail:
    """The end of what a command says, read so that it never has to wait."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        """Read nothing yet; `child` writes to a pipe."""
        if child.stdout is None:
            msg = "a command without a pipe"
            raise ValueError(msg)
        self._child, self._pipe = child, child.stdout
        self._kept = b""
        self._open = True
        os.set_blocking(self._pipe.fileno(), False)
        self._ready = selectors.DefaultSelector()
        self._ready.register(self._pipe, selectors.EVENT_READ)

    def close(self) -> None:
        """Let go of the pipe, whoever still holds its other end."""
        self._ready.close()
        self._pipe.close()

    def ended_within(self, limit_s: float) -> bool:
        """Say whether it ended in time; take what it says meanwhile."""
        end_s, pause_s = time.monotonic() + limit_s, _SOONEST_S
        while not self._ended():
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                return False
            self._take(min(pause_s, left_s))
            pause_s = min(pause_s * 2, _LATEST_S)
        return True

    def _ended(self) -> bool:
        """Take its status once it has one.

        Not by `Popen.poll`, which makes a success of a status that the system threw
        away: where SIGCHLD is ignored, as whoever started us may have left it.

        Raises:
            ChildProcessError: it was thrown away.
        """
        if self._child.returncode is None:
            pid, status = os.waitpid(self._child.pid, os.WNOHANG)
            if pid:
                self._child.returncode = os.waitstatus_to_exitcode(status)
        return self._child.returncode is not None

    def read(self) -> bytes:
        """Return the end of what it said until now."""
        self._take(0)
        return self._kept

    def _take(self, wait_s: float) -> None:
        """Take one piece; without any to come, wait all the same."""
        if not self._open:
            time.sleep(wait_s)
        elif self._ready.select(wait_s):
            piece = os.read(self._pipe.fileno(), _CHUNK)
            self._kept = (self._kept + piece)[-_KEPT:]
            self._open = bool(piece)


def shown(output: bytes) -> str:
    """Return output as text in which nothing steers a terminal."""
    text = output.decode("utf-8", "replace").strip()
    return "".join(
        char
        if char.isprintable()
        else char.encode("unicode_escape", "backslashreplace").decode("ascii")
        for char in text
    )


def judge(
    spec: Mapping[str, Any],
    memory: Mapping[str, Any],
    answers: Sequence[Mapping[str, Any]],
    now: Mapping[str, float],  # noqa: ARG001
) -> dict[str, Any]:
    """Return whether it has exited with 0; what did not run to its end is unknown."""
    answer = answers[0]
    if "error" in answer:
        error = answer["error"]
        seen = unknown(dict(memory), "exec", error)
        said = error.get("errno") or error.get("text", "")
        late = said == "ETIMEDOUT"  # whoever ran it did not come back
        return {**seen, "reason": _slow(spec) if late else _not_run(spec, said)}
    sight, reason = _sight(spec, answer)
    seen = {
        "sight": sight,
        "evidence": {
            "means": "exec",
            "exit": answer["exit"],
            "signal": answer["signal"],
            "output": answer["output"],
        },
        "memory": dict(memory),
    }
    return seen if reason is None else {**seen, "reason": reason}


def _sight(
    spec: Mapping[str, Any], answer: Mapping[str, Any]
) -> tuple[str, list[Any] | None]:
    code, number = answer["exit"], answer["signal"]
    if answer["slow"]:
        return "unknown", _slow(spec)
    if number is not None:
        killed = {"program": str(spec["argv"][0]), "signal": number}
        return "unknown", ["command_killed", killed]
    if code is None or code in _NOT_RUN:
        return "unknown", _not_run(spec, f"exit {code}")
    return ("released" if code == 0 else "held"), None


def _slow(spec: Mapping[str, Any]) -> list[Any]:
    values = {"program": str(spec["argv"][0]), "limit": f"{spec['limit_s']:g}"}
    return ["command_slow", values]


def _not_run(spec: Mapping[str, Any], error: str) -> list[Any]:
    return ["command_not_run", {"program": str(spec["argv"][0]), "error": str(error)}]
