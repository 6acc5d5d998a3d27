"""What is sent to a host: one text of standard-library Python, run from memory."""

import functools
from collections.abc import Mapping
from importlib import resources

_ALSO = ("logscan", "proctable", "text")
"""Modules of `policies` that those of `watcher.onhost` may import."""

# No word here means anything to a shell, csh, fish and restricted ones included: one
# line, no quote, no backslash, and none of `! = $ &`. Byte by byte, since whatever
# buffers would swallow what follows; the text that comes so is short.
NAME = "koder-monitor-agent"
"""By this word in its command line any monitor knows it for one of us (C3.3)."""

_BOOT = 'import os,sys;exec(b"".join(os.read(0,1)for _ in range(int(sys.argv[1]))))'

# For any Python since 2.7: an old one has to say so.
_FIRST = """\
import os, sys
def take(count):
    taken = b""
    while len(taken) < count:
        piece = os.read(0, count - len(taken))
        if not piece:
            sys.exit(0)
        taken += piece
    return taken
if sys.version_info < (3, 9):
    sys.exit("Python 3.9 or newer is needed")
exec(compile(take({length}), "<koder-monitor>", "exec"))
"""


@functools.cache
def sources() -> Mapping[str, str]:
    """Return the modules that are sent, by their names, from the installed package."""
    found = {"watcher": "", "policies": ""}
    for file in resources.files("watcher.onhost").iterdir():
        module, dot, ending = file.name.rpartition(".")
        if dot and ending == "py":
            name = f"watcher.onhost.{module}".removesuffix(".__init__")
            found[name] = file.read_text("utf-8")
    for module in _ALSO:
        file = resources.files("policies") / f"{module}.py"
        if file.is_file():
            found[f"policies.{module}"] = file.read_text("utf-8")
    return dict(sorted(found.items()))


def program(start: str) -> str:
    """Return a whole program that can import what is sent, and then runs `start`."""
    table = dict(sources())
    loader = table.pop("watcher.onhost.sent")
    return f"{loader}\n\ninstall({table!r})\n{start}\n"


def agent(nonce: str) -> tuple[str, bytes]:
    """Return the command that a login shell is given, and what its input begins with.

    Args:
        nonce: marks the frames of this session; it is in no command line.
    """
    text = program(f"from watcher.onhost.agent import main\nmain({nonce!r})")
    body = text.encode("utf-8")
    first = _FIRST.format(length=len(body)).encode("ascii")
    return f"exec python3 -I -S -c '{_BOOT}' {len(first)} {NAME}", first + body
