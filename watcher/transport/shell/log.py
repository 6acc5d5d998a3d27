r"""A log read by a POSIX shell: the answers of `watcher.onhost.logfile.Reader`.

Between two looks nothing is kept open there, so a file that was renamed is looked for
by its inode under the names that rotation gives, `FILE.*` and `FILE-*`.
"""

import shlex
from collections.abc import Iterator, Mapping
from string import Template
from typing import cast

from policies.logscan import LIMIT, PRINTED, fingerprint
from policies.model import Json
from watcher.onhost.log import packed
from watcher.transport import Answer, Request

_MOST = 1 << 20  # bytes a look reads at most
_TAIL = LIMIT + 1 + PRINTED  # enough to tell a line that is too long
_BLOCK = 65536  # bytes; dd(1) skips whole blocks without reading them

# `bytes FILE OFFSET COUNT` reads a part of a file; `about FILE` sets inode and size,
# the first and the sixth column of ls(1).
_SCRIPT = Template("""\
LC_ALL=C; export LC_ALL
p=$path; d=$folder
about() { set -f; set -- $$(ls -dinL "$$1" 2>/dev/null); set +f; i=$$1; s=$$6; }
bytes() {
dd if="$$1" bs=$block skip=$$(($$2 / $block)) 2>/dev/null |
tail -c +$$(($$2 % $block + 1)) | head -c "$$3"
}
look() {
[ -d "$$d" ] || { echo "error ? $$(ls -dL "$$d/." 2>&1 | tr '\\n' ' ')"; return; }
[ -x "$$d" ] || { echo "error EACCES"; return; }
echo "device $$(stat -L -c %d "$$d" 2>/dev/null)"
o=; now=
if [ -e "$$p" ]; then
[ -f "$$p" ] || { echo "error EINVAL"; return; }
[ -r "$$p" ] || { echo "error EACCES"; return; }
about "$$p"; now=$$i
[ -n "$$s" ] || { echo "error ?"; return; }
echo "there $$i $$s"
[ "$$i" != "$${want:-$$i}" ] || o=$$p
else
e=$$(ls -dL "$$p" 2>&1 >/dev/null)
case $$e in
*"No such file or directory") ;;
*) echo "error ? $$e" | tr '\\n' ' '; echo; return;;
esac
fi
[ -z "$$measure" ] || { [ -z "$$now" ] || echo "file $$i $$s"; return; }
if [ -z "$$o" ] && [ -n "$$want" ]; then
for f in "$$p".* "$$p"-*; do
[ -f "$$f" ] && [ -r "$$f" ] || continue
about "$$f"
[ "$$i" != "$$want" ] || { o=$$f; break; }
done
fi
if [ -n "$$now" ] && [ "$$now" != "$${want:-$$now}" ] && [ $before -gt 0 ]; then
echo "copy $$(bytes "$$p" $begin $before | od -An -v -tx1 | tr -d ' \\n')"
fi
[ -n "$$o" ] || return
about "$$o"
[ -n "$$s" ] || { echo "error ?"; return; }
echo "file $$i $$s"
if [ -n "$tail" ]; then
n=$$((s - $keep)); [ $$n -gt 0 ] || n=0
echo "data $$n"
bytes "$$o" $$n $$((s - n))
elif [ "$$s" = "$known" ]; then
echo "data $begin"
bytes "$$o" $begin $before
else
echo "data $begin"
bytes "$$o" $begin $most
fi
}
want=$want; measure=$measure
look || :
""")


def script(request: Request) -> str:
    """Return what reads a log there."""
    path = str(request["path"])
    offset = int(cast("int", request.get("offset", 0)))
    before = min(PRINTED, offset)
    return _SCRIPT.substitute(
        path=shlex.quote(path),
        folder=shlex.quote(path.rpartition("/")[0] or "/"),
        want=_number(request.get("inode")),
        measure="1" if request.get("measure") else "",
        tail="" if "offset" in request else "1",
        keep=_TAIL,
        known=_number(request.get("size")),
        begin=offset - before,
        before=before,
        most=before + _MOST,
        block=_BLOCK,
    )


def answer(request: Request, output: bytes) -> Answer:
    """Return the answer that the script's output means.

    Raises:
        ValueError: it is none.
    """
    said, data = _parted(output)
    if "error" in said:
        return {"error": _error(request, said["error"].strip())}
    offset = int(cast("int", request.get("offset", 0)))
    file = _pair(said.get("file"))
    found: dict[str, Json] = {
        "device": int(said["device"]) if said["device"].isdigit() else None,
        "there": _pair(said.get("there")),
        "file": None if file is None else [*file, None],
        "same": True,
        "unread": True,
        "offset": offset,
        "before": 0,
        "data": "",
        "copied": _is_copy(request, said.get("copy", "")),
    }
    if file is None or request.get("measure"):
        return found
    if "offset" not in request:
        begin = int(said["data"])
        return {**found, "unread": False, "offset": begin, "data": packed(data)}
    before = min(PRINTED, offset)
    if not _same(request, data[:before]):
        return {**found, "same": False}
    if request.get("size") == file[1]:
        return found
    return {**found, "unread": False, "before": before, "data": packed(data)}


def _error(request: Request, said: str) -> Mapping[str, Json]:
    name, _, text = said.partition(" ")
    if text.endswith("No such file or directory"):
        name = "ENOENT"
    return {"errno": name.strip("?"), "text": text or request["path"]}


def _parted(output: bytes) -> tuple[Mapping[str, str], bytes]:
    """Part the lines that say something from the bytes of the log behind them."""
    said: dict[str, str] = {}
    for name, text, rest in _lines(output):
        said[name] = text
        if name == "data":
            return said, rest
    return said, b""


def _lines(output: bytes) -> Iterator[tuple[str, str, bytes]]:
    rest = output
    while rest:
        line, end, rest = rest.partition(b"\n")
        name, _, text = line.decode("utf-8", "replace").partition(" ")
        if not end or name not in {"error", "device", "there", "copy", "file", "data"}:
            raise ValueError(line)
        yield name, text, rest


def _pair(text: str | None) -> list[int] | None:
    if text is None:
        return None
    inode, size = text.split()
    return [int(inode), int(size)]


def _number(value: Json) -> str:
    return "" if value is None else str(int(cast("int", value)))


def _same(request: Request, before: bytes) -> bool:
    offset = int(cast("int", request["offset"]))
    whole = len(before) == min(PRINTED, offset)
    return whole and fingerprint(before) == request.get("print", "")


def _is_copy(request: Request, digits: str) -> bool:
    return digits != "" and _same(request, bytes.fromhex(digits))
