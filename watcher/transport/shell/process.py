"""Processes by POSIX sh: /proc where there is one, else ps(1).

Each line begins with a word that says what it is, and holds no line break of anybody
else's: those of command lines are turned into bytes that no command line has.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from policies.proctable import (
    PS_FIELDS,
    UNKNOWN_START,
    Row,
    below,
    cpu_ticks,
    hides_processes,
    lineage,
    parse_ps,
    parse_stat,
)
from watcher.onhost.process import pid_in
from watcher.onhost.table import unseen_row

_COMMAND_LIMIT = 65536  # characters of a command line that are kept
_TICKS_A_SECOND = 100  # of a system without getconf(1): Linux has no other
_STATUS = 49  # field 52 of proc(5), counted from behind the name

# one PID: its stat without forks, and its command line where it can have one.
# seen PID: whether the kernel knows a process that /proc does not show.
_FUNCTIONS = r"""
told() {
  s=
  while IFS= read -r l; do s="$s$l "; done <"/proc/$1/stat"
  [ -n "$s" ] && printf 'stat %s %s\n' "$1" "$s"
}
one() {
  if ! told "$1"; then [ ! -e "/proc/$1" ] || printf 'unseen %s\n' "$1"; return; fi
  set -- "$1" ${s##*)}
  [ "$2" = Z ] || [ $(($8 & 2097152)) -ne 0 ] && return
  printf 'args %s ' "$1"
  tr '\000\n' '\002\001' <"/proc/$1/cmdline" ||
    { [ ! -e "/proc/$1/stat" ] || printf '\nunread %s' "$1"; }
  printf '\n'
}
seen() {
  if e=$(kill -0 "$1" 2>&1); then printf 'kill alive\n'
  else set -f; set -- $e; printf 'kill %s\n' "$*"; fi
}
pid() {
  if [ -z "$boot" ]; then seen "$1"; return; fi
  one "$1"; [ -e "/proc/$1/stat" ] || seen "$1"
}
boot=; read -r boot </proc/sys/kernel/random/boot_id
if [ -n "$boot" ]; then
  printf 'proc %s\nnamespace %s\n' "$boot" "$(readlink /proc/self/ns/pid)"
else
  printf 'ps %s\n' "$(sysctl -n kern.bootsessionuuid || sysctl -n kern.boot_id)"
  printf 'others %s\n' "$(sysctl -n security.bsd.see_other_uids)"
fi
printf 'session %s\nid %s %s\n' "${session:-$$}" "$(id -u)" "$(id -G)"
"""

_TABLE = r"""
if [ -n "$boot" ]; then
  while IFS= read -r l; do
    case $l in *' /proc '*) printf 'mount %s\n' "$l";; esac
  done </proc/self/mountinfo
  for d in /proc/[0-9]*; do one "${d#/proc/}"; done
fi
"""

_CPU = r"""
[ -z "$boot" ] || for d in /proc/[0-9]*; do told "${d#/proc/}"; done
"""

_PIDFILE = r"""
if [ -f "$f" ] && [ -r "$f" ]; then
  printf 'written %s\n' "$(stat -c %Y "$f" || stat -f %m "$f")"
  printf 'hz %s\n' "$(getconf CLK_TCK)"
  grep '^btime ' /proc/stat
  set -f; set -- $(dd if="$f" bs=64 count=1); set +f
  printf 'named %s\n' "$1"
  case $1 in ''|*[!0-9]*) ;; *) pid "$1";; esac
elif [ -f "$f" ]; then echo problem denied
elif [ -e "$f" ]; then echo problem no_pid_in
else
  d=$f
  while [ -n "$d" ] && [ ! -d "$d" ]; do d=${d%/*}; done
  if [ -x "${d:-/}" ]; then echo problem pidfile_missing; else echo problem denied; fi
fi
"""

_PS = r"""
if [ -z "$boot" ]; then echo list; TZ=UTC ps -A -ww FIELDS || echo failed; fi
"""


def script(request: Mapping[str, Any]) -> str:
    """Return what a shell has to do for a request."""
    steps = [_FUNCTIONS]
    if "table" in request:
        steps.append(_TABLE)
    elif "pidfile" in request:
        steps += [f"f={shlex.quote(request['pidfile'])}\n", _PIDFILE]
    else:
        steps.append(f"pid {int(request['pid'])}\n")
    if request.get("cpu") and "table" not in request:
        steps.append(_CPU)
    fields = " ".join(f"-o {name}=" for name in PS_FIELDS)
    return "".join([*steps, _PS.replace("FIELDS", fields)])


def answer(request: Mapping[str, Any], output: bytes) -> dict[str, Any]:
    """Return what a shell's output says, as `watcher.onhost.process.read` would.

    Raises:
        ValueError: it says something else.
    """
    said = _Said(output.decode("utf-8", "surrogateescape"))
    found: dict[str, Any] = {"boot_id": said.boot, "means": said.means}
    if said.means != "ps":
        found["pid_namespace"] = said.one("namespace")
    if "table" in request:
        rows = said.rows()
        found.update(
            rows=[row for row in rows.values() if not row.kernel_thread],
            hidden=said.hidden(),
            own=sorted(lineage(said.session, rows) | below(said.session, rows)),
        )
    else:
        found.update(_of_one(request, said), own=[said.session])
    if request.get("cpu"):
        found["cpu"] = said.cpu()
    return found


def _of_one(request: Mapping[str, Any], said: "_Said") -> dict[str, Any]:
    """Return what was said of one process, or of the one that a pidfile names."""
    pid, found = request.get("pid"), dict[str, Any]()
    if "pidfile" in request:
        found["pidfile"] = said.pidfile()
        pid = found["pidfile"].get("pid")
    if pid is None:
        return found
    row = found["row"] = said.row(pid)
    if row is not None and "pidfile" in request:
        found["started_at"] = said.started_at(row)
    if row is not None and row.finished and row.start == request.get("start"):
        found["status"] = said.status(pid)
    return found


class _Said:
    """The lines that a shell wrote."""

    def __init__(self, text: str) -> None:
        """Sort the lines by their words."""
        text, _, self._list = text.partition("\nlist\n")
        self._lines: dict[str, list[str]] = {}
        for line in text.split("\n"):
            word, _, rest = line.partition(" ")
            self._lines.setdefault(word, []).append(rest)
        self.means = "/proc" if "proc" in self._lines else "ps"
        self.boot = self.one("proc" if self.means == "/proc" else "ps")
        self.session = int(self.one("session"))
        self._stats = dict(self._pairs("stat"))

    def one(self, word: str) -> str:
        """Return the first line of a word.

        Raises:
            ValueError: there is none.
        """
        lines = self._lines.get(word)
        if not lines:
            msg = f"nothing is said of {word}"
            raise ValueError(msg)
        return lines[0].strip()

    def rows(self) -> dict[int, Row]:
        """Return all rows; those that could not be read are marked.

        Raises:
            ValueError: the shell itself is not among them.
        """
        rows = self._rows()
        if self.session not in rows:
            msg = "a list of processes without the shell that made it"
            raise ValueError(msg)
        return rows

    def _rows(self) -> dict[int, Row]:
        if self.means == "ps":
            return {row.pid: row for row, _ in self._listed()}
        args, unread = dict(self._pairs("args")), set(self._lines.get("unread", ()))
        found = {}
        for pid, stat in self._stats.items():
            row = parse_stat(stat)
            words = args.get(pid, "")[:_COMMAND_LIMIT].rstrip("\2").replace("\1", "\n")
            argv = tuple(words.split("\2")) if words else row.argv
            found[row.pid] = row._replace(argv=argv, readable=pid not in unread)
        for pid in self._lines.get("unseen", ()):
            found[int(pid)] = unseen_row(int(pid))
        return found

    def row(self, pid: int) -> Row | None:
        """Return the row of a process, None where the kernel says that there is none.

        Raises:
            ValueError: it says neither.
        """
        rows = self._rows() if self.means == "/proc" else self.rows()
        row = rows.get(pid)
        if row is not None:
            return row
        said = self.one("kill").lower()
        if "no such process" in said:
            return None
        if said == "alive" or "permi" in said:
            return unseen_row(pid)
        raise ValueError(said)

    def hidden(self) -> bool:
        """Say whether other users' processes are hidden from us."""
        uid, *gids = map(int, self.one("id").split())
        if self.means == "ps":
            return self.one("others") == "0" and uid != 0
        return hides_processes(self._lines.get("mount", ()), uid, gids)

    def pidfile(self) -> dict[str, Any]:
        """Return the PID that a pidfile names, or the problem with it."""
        if "problem" in self._lines:
            return {"problem": self.one("problem")}
        written = self.one("written")
        found = pid_in(self.one("named").encode("utf-8", "surrogateescape"))
        return {**found, "written_at": float(written) if written else None}

    def started_at(self, row: Row) -> float | None:
        """Return when a process started, in seconds since the epoch."""
        if row.start == UNKNOWN_START or self.means == "ps":
            return None if row.start == UNKNOWN_START else float(row.start)
        if "btime" not in self._lines:
            return None
        ticks = self.one("hz")
        return int(self.one("btime")) + row.start / int(ticks or _TICKS_A_SECOND)

    def status(self, pid: int) -> int | None:
        """Return the wait status of a zombie; 0 is also what others are shown."""
        fields = self._stats.get(str(pid), "").rpartition(")")[2].split()
        return int(fields[_STATUS]) or None if len(fields) > _STATUS else None

    def cpu(self) -> list[Sequence[int]]:
        """Return PID, parent and CPU of every process."""
        if self.means == "ps":
            return [(row.pid, row.ppid, used) for row, used in self._listed()]
        rows = ((parse_stat(stat), cpu_ticks(stat)) for stat in self._stats.values())
        return [(row.pid, row.ppid, used) for row, used in rows]

    def _listed(self) -> list[tuple[Row, int]]:
        return parse_ps(self._list)

    def _pairs(self, word: str) -> Iterable[tuple[str, str]]:
        for line in self._lines.get(word, ()):
            pid, _, rest = line.partition(" ")
            yield pid, rest
