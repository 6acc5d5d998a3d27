"""Files by POSIX sh: `stat` of GNU, busybox or BSD, inside the directory itself.

From within, so that what is missing is missing in that very directory; and by what
`stat` says in the C locale, since the shell's own tests hide why they fail.
"""

import shlex
from typing import cast

from policies.model import Json
from watcher.transport import Answer, Request

_MISSING = "No such file or directory"
_ERRORS = {
    _MISSING: "ENOENT",
    "Permission denied": "EACCES",
    "Not a directory": "ENOTDIR",
    "Stale file handle": "ESTALE",
    "Input/output error": "EIO",
}

_SCRIPT = """\
(
LC_ALL=C; export LC_ALL
if stat -c %d / >/dev/null 2>&1; then
  look() {{ stat $1 -c '%d %i %f %s %y %z' "$2" 2>&1; }}
else
  look() {{ stat $1 -f '%d %i %p %z %Fm %Fc' "$2" 2>&1; }}
fi
if cd -P {folder} 2>/dev/null; then
  printf 'directory %s\\n' "$(look -L .)"
  printf 'entry %s\\n' "$(look {follow} {name})"
else
  printf 'missing %s\\n' "$(look -L {folder})"
  printf 'entry %s\\n' "$(look {follow} {path})"
fi
)
"""


def script(request: Request) -> str:
    """Return what looks at the file of a request."""
    folder, name = _parts(request)
    follow = "-L" if request["follow"] else "''"
    return _SCRIPT.format(
        folder=shlex.quote(folder),
        name=shlex.quote(f"./{name}"),
        path=shlex.quote(cast("str", request["path"])),
        follow=follow,
    )


def answer(request: Request, output: bytes) -> Answer:
    """Return what the path shows, as the part says it; mounts are not told."""
    folder, _ = _parts(request)
    said: dict[str, str] = {}
    for line in output.decode("utf-8", "surrogateescape").splitlines():
        word, _, text = line.partition(" ")
        said.setdefault(word, text)
    depth = folder.rstrip("/").count("/")
    above: list[Json] = [None] * depth
    found: dict[str, Json] = {"entry": None, "near": [], "missing": False}
    if said.get("missing", "").endswith(_MISSING):
        return {**found, "chain": above, "missing": True}
    directory, entry = said.get("directory", ""), said.get("entry", "")
    words = directory.split()
    if "missing" in said:  # it is there, and not to be entered
        return _error(entry or said["missing"])
    if len(words) < 6 or not words[0].isdigit() or not words[1].isdigit():
        return _error(directory)
    chain: list[Json] = [*above, [int(words[0]), int(words[1]), None]]
    if entry.endswith(_MISSING):
        return {**found, "chain": chain}
    if len(entry.split()) < 6 or not entry.split()[0].isdigit():
        return _error(entry)
    return {**found, "entry": entry.split(), "chain": chain}


def _parts(request: Request) -> tuple[str, str]:
    folder, _, name = cast("str", request["path"]).rpartition("/")
    return folder or "/", name


def _error(said: str) -> Answer:
    name = next((n for text, n in _ERRORS.items() if said.endswith(text)), "EIO")
    return {"error": {"errno": name, "text": said}}
