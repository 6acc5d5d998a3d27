"""Commands by POSIX sh: in the background, with a limit; what they say is dropped.

Where there is a `setsid`, all that a command has started ends with it.
"""

import shlex
from typing import cast

from watcher.transport import Answer, Request

_SIGNALS = range(129, 193)  # a shell says 128 + n of what signal n has ended

# The timer sleeps in steps, so that what is left of it when it is ended is short. It
# cannot be ended once it has begun to end the command: SIGKILL follows SIGTERM. Nor
# does it end with this script, which a limit of the session may cut short. Under job
# control `setsid` would leave its place to a child, and say at once that all is well.
_SCRIPT = """\
(
set +m
cd {cwd} || exit
own=
if command -v setsid >/dev/null 2>&1; then own=setsid; fi
( exec $own {argv} ) </dev/null >/dev/null 2>&1 &
run=$!
$own /bin/sh -c {timer} sh "$run" </dev/null >/dev/null 2>&1 &
timer=$!
wait "$run"
code=$?
kill "$timer"
if wait "$timer"; then echo slow; else echo "exit $code"; fi
) 2>/dev/null
"""
_TIMER = """\
left={limit}
while [ "$left" -gt 0 ]; do sleep 1; left=$((left - 1)); done
trap '' TERM
stop() {{ kill "-$2" "-$1" || kill "-$2" "$1"; }}
stop "$1" TERM
sleep 1
stop "$1" KILL
exit 0
"""


def script(request: Request) -> str:
    """Return what runs the command of a request; it is quoted word by word."""
    argv = cast("list[str]", request["argv"])
    limit = int(cast("float", request["limit_s"]))
    timer = shlex.quote(_TIMER.format(limit=limit))
    cwd = shlex.quote(cast("str", request.get("cwd", "/")))
    return _SCRIPT.format(argv=shlex.join(argv), cwd=cwd, timer=timer)


def answer(request: Request, output: bytes) -> Answer:  # noqa: ARG001
    """Return how it ended, as the part says it."""
    words = output.decode("ascii", "replace").split()
    ended: dict[str, int | None] = {"exit": None, "signal": None}
    if words == ["slow"]:
        return {**ended, "slow": True, "output": ""}
    if len(words) != 2 or words[0] != "exit" or not words[1].isdigit():
        return {"error": {"errno": "EIO", "text": " ".join(words)}}
    code = int(words[1])
    if code in _SIGNALS:
        return {**ended, "signal": code - 128, "slow": False, "output": ""}
    return {**ended, "exit": code, "slow": False, "output": ""}
