"""Waits in Python, Perl, Node, Ruby and PowerShell: one look and a sleep, no more.

These languages are not parsed. The look is found by what it calls; every other call
must be one that does nothing, so that a program which works is left alone.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from policies.loops.aim import Aim, says_lock
from policies.loops.names import names
from policies.loops.patterns import sorted_out

_LONGEST: Final = 4000  # characters of a program that may only wait
LANGUAGES: Final = names(
    """
    python python2 python3 perl node nodejs ruby deno bun pwsh powershell
    """
)
_GIVEN: Final = re.compile(r"-\w*[ceE]|--eval|-Command|-command|-p")
_LOOP: Final = re.compile(r"\b(while|until|unless|for|loop|setInterval|do)\b")
_SLEEPS: Final = re.compile(
    r"(?i)(?:\bsleep|start-sleep)\b\s*(?:\(\s*)?(?:-s(?:econds)?\s+)?([0-9.]{1,9})?"
)
_INTERVAL: Final = re.compile(
    r"set(?:Interval|Timeout)\(.{0,4000},\s*([0-9]{1,9})\s*\)", re.DOTALL
)
_TURNS: Final = re.compile(
    r"\brange\(([0-9]{1,6})\)|([0-9]{1,6})\.times|1\.\.([0-9]{1,6})"
)
_CALL: Final = re.compile(r"([A-Za-z_$][\w.:$]*[?!]?)\s*\(|\b([A-Z][a-z]+-[A-Z]\w+)")
_HARMLESS: Final = names(
    """
    while until if unless for do loop sleep time.sleep exit sys.exit process.exit
    print console.log puts printf say str int len range open read os.path.exists
    os.path.isfile os.path.isdir os.kill os.path.lexists psutil.pid_exists
    pathlib.Path Path exists is_file read_text existsSync fs.existsSync File.exist?
    File.exists? File.file? File.read include? includes readFileSync fs.readFileSync
    setInterval process.kill Process.kill socket.create_connection socket.socket
    s.connect_ex connect_ex require urllib.request.urlopen urlopen requests.get
    httpx.get close clearInterval Date.now time.time time.monotonic flush
    sys.stdout.flush and or not in kill select catch except Test-Path Get-Process
    Start-Sleep Write-Host Write-Output Get-Date Out-Null Test-NetConnection
    Select-String Invoke-WebRequest Get-NetTCPConnection elif Test-Connection
    ErrorAction Promise setTimeout async await
    """
)
_Q: Final = r"['\"`]([^'\"`]+)['\"`]"
_EXISTS: Final = re.compile(
    rf"(?:os\.path\.\w+|\bexistsSync|File\.\w+\?|Path)\s*\(?\s*{_Q}\)?(?:\.(?:exists|is_file)\(\))?"
    rf"|(?<![\w-])-[efs]\s*\(?{_Q}|Test-Path\s+(?:-\w+\s+)?['\"]?([^\s'\")]+)"
)
_PID: Final = re.compile(
    r"(?:os\.kill|pid_exists|process\.kill)\(\s*([1-9][0-9]{0,6})|Process\.kill\(0,\s*([1-9][0-9]{0,6})"
    r"|\bkill\s*\(?\s*0\s*(?:,|=>)\s*([1-9][0-9]{0,6})|Get-Process\s+-Id\s+([1-9][0-9]{0,6})"
)
_NAME: Final = re.compile(r"Get-Process\s+(?:-Name\s+)?['\"]?(\w[\w.-]*)")
_PORT: Final = re.compile(
    rf"(?:create_connection|connect_ex)\(\(\s*{_Q}\s*,\s*([0-9]+)"
    r"|Test-NetConnection\s+(?:-ComputerName\s+)?([\w.-]+)\s+-Port\s+([0-9]+)"
)
_URL: Final = re.compile(
    r"(?:urlopen|requests\.get|httpx\.get|Invoke-WebRequest\s+(?:-\w+\s+)*)\(?\s*"
    r"['\"]?(https?://[^'\"\s)]+)"
)
_MARKER: Final = re.compile(
    rf"{_Q}\s+(?:not\s+)?in\s+(?:open|Path|pathlib\.Path)\(\s*{_Q}"
)
_READ: Final = re.compile(
    rf"(?:File\.read|readFileSync)\(\s*{_Q}[^)]*\)\.include\w*\??\(\s*{_Q}"
)
_SELECTED: Final = re.compile(
    r"Select-String\s+-Path\s+['\"]?([^\s'\"]+)['\"]?\s+-Pattern\s+['\"]?([^\s'\")]+)"
)


@dataclass(eq=False, repr=False)
class _Seen:
    """A look: where it stands in the program, and what it looks at."""

    start: int
    end: int
    aim: Aim
    settled: bool  # it is waited for in one direction only


def program_wait(
    words: Sequence[str], body: str | None
) -> tuple[Aim, float, int] | None:
    """Return the target of a program that only waits, its pause and its deadline.

    Args:
        words: of the command that runs it.
        body: of a heredoc it reads.
    """
    text = next(
        (
            words[place + 1]
            for place, word in enumerate(words[:-1])
            if _GIVEN.fullmatch(word)
        ),
        body,
    )
    return script_wait(text) if text else None


def script_wait(text: str) -> tuple[Aim, float, int] | None:
    """Return what the text of a program waits for."""
    if len(text) > _LONGEST:
        return None
    loop = _LOOP.search(text)
    pause_s = _pause_s(text)
    if loop is None or pause_s is None or _works(text):
        return None
    seen = _seen(text)
    if seen is None:
        return None
    aim = (
        seen.aim if seen.settled else _turned(seen.aim, wanted=_is_awaited(text, seen))
    )
    turns = _TURNS.search(text)
    count = int(turns[1] or turns[2] or turns[3]) if turns else 0
    return aim, pause_s, round(count * pause_s)


def _pause_s(text: str) -> float | None:
    if match := _INTERVAL.search(text):
        return int(match[1]) / 1000
    match = _SLEEPS.search(text)
    if match is None:
        return None
    return float(match[1]) if re.fullmatch(r"\d+(\.\d+)?", match[1] or "") else 0.0


def _works(text: str) -> bool:
    """Say whether a program calls anything but looks, pauses and prints."""
    bare = re.sub(r"(['\"])(?:(?!\1).)*\1", "''", text)
    names = {name or cmdlet for name, cmdlet in _CALL.findall(bare)}
    names = {name.lstrip(".") for name in names}
    unknown = {
        name
        for name in names
        if name not in _HARMLESS and name.rpartition(".")[2] not in _HARMLESS
    }
    return bool(unknown) or re.search(r"\bopen\([^)]*,\s*['\"][wax]", text) is not None


def _seen(text: str) -> _Seen | None:
    if match := _MARKER.search(text):
        return _log(match, match[2], match[1])
    if match := _READ.search(text) or _SELECTED.search(text):
        return _log(match, match[1], match[2])
    return _seen_apart(text)


def _seen_apart(text: str) -> _Seen | None:
    """Return a look at anything but a log."""
    found: _Seen | None = None
    if match := _PID.search(text):
        found = _at(match, _aim("process", "--pid", _first(match)))
    elif match := _PORT.search(text):
        host, port = (match[1], match[2]) if match[1] else (match[3], match[4])
        found = _at(match, _aim("port", f"{host}:{port}", "--open"))
    elif match := _URL.search(text):
        found = _at(match, _aim("http", match[1]))
    elif match := _EXISTS.search(text):
        found = _at(match, _aim("file", _first(match)), settled=False)
    elif match := _NAME.search(text):
        found = _at(match, _aim("process", "--match", match[1]))
    return found


def _first(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group)


def _aim(kind: str, *words: str) -> Aim:
    return Aim(kind=kind, words=tuple(shlex.quote(word) for word in words))


def _log(match: re.Match[str], path: str, marker: str) -> _Seen:
    passes, fails = sorted_out(re.escape(marker).replace("\\ ", " "), bad=False)
    aim = Aim(
        kind="log",
        words=(shlex.quote(path),),
        passes=tuple(passes),
        fails=tuple(fails),
        whole=True,
    )
    return _at(match, aim)


def _at(match: re.Match[str], aim: Aim, *, settled: bool = True) -> _Seen:
    return _Seen(match.start(), match.end(), aim, settled)


def _is_awaited(text: str, seen: _Seen) -> bool:
    """Say whether the loop ends when the look says yes."""
    before, after = text[: seen.start], text[seen.end :]
    negated = re.search(r"(?:\bnot|!|-not)\s*\(?\s*(?:\w+\.)*$", before) is not None
    leaves = re.match(
        r"[\s)]*(?::|\{|then|;)?\s*(?:print\([^)]*\);?\s*)?(?:break|exit|process\.exit|sys\.exit)",
        after,
    )
    leaves_if = leaves or re.search(r"\b(?:break|exit)\s+if\s*\(?$", before)
    until = re.search(r"\buntil\b\s*\(?[^;{}]*$", before) is not None
    unless = re.search(r"\bunless\b\s*\(?$", before) is not None
    ends_on_yes = bool(leaves_if) or until or unless
    return ends_on_yes != negated


def _turned(aim: Aim, *, wanted: bool) -> Aim:
    path = aim.words[0]
    if wanted:
        return Aim(kind="file", words=(path, "--exists"))
    if match := re.fullmatch(r"/proc/([0-9]+)", path):
        return Aim(kind="process", words=("--pid", match[1]))
    if says_lock(path.strip("'")):
        return Aim(kind="lock", words=(path if "/" in path else f"./{path}",))
    return Aim(kind="file", words=(path, "--gone"))
