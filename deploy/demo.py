"""The main job at work, for `make demo`: real locks, a real process, real pings.

Everything happens in a temporary folder and on loopback, with the commands as installed
and the cadence floors as they are. The commands start a service of their own, which is
killed in the middle and stopped at the end. Exits 1 when anything is not as promised.
"""

import fcntl
import io
import json
import os
import queue
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO

LIMIT_S = 45.0
"""For anything that is waited for: one poll of 30 s where a system tells no events."""

KEY = "a-key-for-this-demo-only"
SLUG = "payments-api"
LOCK = """\
---
session: another-session
paths: [services/payments]
---
"""


class DemoError(Exception):
    """Something was not as it should be."""


def check(as_expected: bool, what: str) -> None:
    """Go on only with what was promised.

    Raises:
        DemoError: it was not so.
    """
    if not as_expected:
        raise DemoError(what)


class Ping:
    """One request as the receiver got it."""

    def __init__(self, headers: Mapping[str, str], body: bytes) -> None:
        """Take the request apart."""
        self.headers = headers
        self.body: dict[str, object] = json.loads(body)


class Receiver(BaseHTTPRequestHandler):
    """A koder-notify server that takes every ping and keeps it."""

    received: "queue.SimpleQueue[Ping]" = queue.SimpleQueue()

    def do_POST(self) -> None:
        """Keep a ping and say that it is delivered."""
        length = int(self.headers.get("Content-Length", "0"))
        self.received.put(Ping(dict(self.headers.items()), self.rfile.read(length)))
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Leave the terminal to the demo."""


class Waiting:
    """A koder-monitor command that is under way."""

    def __init__(self, child: "subprocess.Popen[bytes]") -> None:
        """Read what it says as it says it."""
        self._child = child
        self._stderr = _lines_of(child.stderr)
        self._stdout = _lines_of(child.stdout)

    def says(self, beginning: str) -> None:
        """Return once its next line on stderr is there, and begins like this."""
        line = self._next(self._stderr, "stderr")
        check(line is not None and line.startswith(beginning), f"{beginning}...")

    def outcome(self) -> str:
        """Return its one line on stdout, once it is there."""
        line = self._next(self._stdout, "stdout")
        if line is None:
            raise DemoError("it ended without an outcome line")
        return line

    def end(self) -> int:
        """Show what else it says and return its exit status."""
        while self._next(self._stderr, "stderr") is not None:
            pass
        check(self._next(self._stdout, "stdout") is None, "one line on stdout only")
        return self._child.wait(LIMIT_S)

    def _next(self, lines: "queue.SimpleQueue[str | None]", name: str) -> str | None:
        try:
            line = lines.get(timeout=LIMIT_S)
        except queue.Empty:
            raise DemoError(f"nothing on {name} for {LIMIT_S:g} s") from None
        if line is not None:
            print(f"    {name} | {line}", flush=True)
        return line


def _lines_of(stream: IO[bytes] | None) -> "queue.SimpleQueue[str | None]":
    """Return a queue of the lines of a pipe, closed by None."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        for line in stream or ():
            lines.put(line.decode().rstrip("\n"))
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines


class Service:
    """The service of one state directory, as far as it can be seen from outside."""

    def __init__(self, state: Path) -> None:
        """Know where it would be; it starts with the first command."""
        self._lock = state / "service.lock"

    def pid(self) -> int | None:
        """Return its PID, or None where there is no service."""
        try:
            with open(self._lock, encoding="utf-8") as file:
                return int(json.loads(file.read())["pid"]) if _is_held(file) else None
        except (OSError, ValueError, KeyError):
            return None  # not there, or being written

    def wait_for(self, *, other_than: int | None) -> int:
        """Return the PID of a service, once it runs.

        Raises:
            DemoError: none comes.
        """
        until = time.monotonic() + LIMIT_S
        while time.monotonic() < until:
            pid = self.pid()
            if pid is not None and pid != other_than:
                return pid
            time.sleep(0.02)
        raise DemoError("a service that runs")

    def stop(self) -> None:
        """Ask it to end, and wait until it has.

        Raises:
            DemoError: it does not end.
        """
        pid = self.pid()
        if pid is None:
            return
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + LIMIT_S
        while self.pid() == pid:
            check(time.monotonic() < until, "a service that ends when asked")
            time.sleep(0.02)


def _is_held(file: IO[str]) -> bool:
    """Say whether a process holds the lock on a file; its end frees it."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


class Demo:
    """The steps, each of which leaves things as it found them."""

    def __init__(self, program: str, folder: Path, url: str) -> None:
        """Set up a lock directory, two state directories and a key for the receiver."""
        self._program = program
        self._folder = folder
        self._lock = folder / "locks" / f"lock-{SLUG}.md"
        self._log = folder / "offline" / "release-pings.log"
        self._service = Service(folder / "state")
        self._offline_service = Service(self._log.parent)
        self._lock.parent.mkdir()
        key = folder / "notify.key"
        key.touch(mode=0o600)
        key.write_text(KEY + "\n", "utf-8")
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("KODER_MONITOR_", "XDG_")) and name != "TTL"
        }
        # A service has the settings of the command that started it: so two of them.
        self._offline = kept | {
            "HOME": str(folder),
            "KODER_MONITOR_STATE": str(self._log.parent),
            "KODER_MONITOR_LOCKS_DIR": str(self._lock.parent),
        }
        self._online = self._offline | {
            "KODER_MONITOR_STATE": str(folder / "state"),
            "KODER_MONITOR_NOTIFY_URL": url,
            "KODER_MONITOR_NOTIFY_KEY_FILE": str(key),
        }

    def lock_is_given_back(self) -> None:
        """Show the line and the ping of a removed lock."""
        words = ["lock", SLUG, "--ttl", "5m", "--resume", "the migration"]
        self._hold()
        with self._watch(words, self._online) as waiting:
            waiting.says(f"armado: lock {SLUG} até ")
            removed_at = self._give_back()
            line = waiting.outcome()
            _took(removed_at)
            check(waiting.end() == 0, "exit status 0")
        pattern = rf"✅ LIBERADO: lock {SLUG} em {_TIME} — retomar the migration"
        check(re.fullmatch(pattern, line) is not None, "the LIBERADO line")
        self._pinged(title=f"lock {SLUG} liberado", message=line)

    def service_is_killed(self) -> None:
        """Show that a wait survives the service: it is back with the same watch."""
        words = ["lock", SLUG, "--ttl", "5m", "--resume", "the migration"]
        pid = self._service.wait_for(other_than=None)
        self._hold()
        with self._watch(words, self._online) as waiting:
            waiting.says(f"armado: lock {SLUG} até ")
            before = self._listed()
            print(f"    $ kill -9 {pid}  # the service", flush=True)
            os.kill(pid, signal.SIGKILL)
            back = self._service.wait_for(other_than=pid)
            print(f"    the command has started it again: PID {back}", flush=True)
            after = self._listed()
            check(len(before) == len(after) == 2, "one armed watch, still")
            check(before[1].split()[0] == after[1].split()[0], "the same watch")
            self._give_back()
            line = waiting.outcome()
            check(waiting.end() == 0, "exit status 0")
        check(line.startswith(f"✅ LIBERADO: lock {SLUG} em "), "the LIBERADO line")
        self._pinged(title=f"lock {SLUG} liberado", message=line)

    def process_ends(self) -> None:
        """Show what `--json` tells about a process that ended."""
        print("    $ sleep 600 &", flush=True)
        with _child(["sleep", "600"], self._offline) as work:
            words = ["process", "--pid", str(work.pid), "--label", "API build"]
            with self._watch([*words, "--json"], self._online) as waiting:
                waiting.says(f"armado: process --pid {work.pid} até ")
                waiting.says(f"casou: PID {work.pid}: sleep 600")
                print(f"    $ kill {work.pid}", flush=True)
                killed_at = time.monotonic()
                work.send_signal(signal.SIGTERM)
                work.wait(LIMIT_S)
                seen = json.loads(waiting.outcome())
                _took(killed_at)
                check(waiting.end() == 0, "exit status 0")
        print("    its evidence:")
        print(_indented(seen["evidence"]))
        check(seen["outcome"] == "ended", "the outcome `ended`")
        check(seen["evidence"]["identity"]["pid"] == work.pid, "the PID as evidence")
        how = r"(?: \[DIED\] «sinal SIGTERM»)?"  # where the kernel tells
        rest = " — retomar a atividade bloqueada"
        pattern = rf"✅ TERMINOU: API build em {_TIME}{how}{rest}"
        check(re.fullmatch(pattern, seen["line"]) is not None, "the TERMINOU line")
        severity = "error" if seen["result"] == "DIED" else "info"
        self._pinged(
            title="API build terminou", message=seen["line"], severity=severity
        )

    def nobody_takes_the_ping(self) -> None:
        """Show the fallback log, which takes the ping where no channel is set."""
        check(not self._log.exists(), "no fallback log while pings were delivered")
        self._hold()
        with self._watch(["lock", SLUG, "--ttl", "5m"], self._offline) as waiting:
            waiting.says(f"armado: lock {SLUG} até ")
            self._give_back()
            line = waiting.outcome()
            check(waiting.end() == 0, "exit status 0")
        logged = self._logged()
        check(len(logged) == 1 and logged[0].endswith(line), "the ping in the log")
        mode = stat.S_IMODE(self._log.stat().st_mode)
        check(mode == 0o600, "a log that only its owner reads")

    def deadline_passes(self) -> None:
        """Show the line and the exit status of an expiry, which is no release."""
        words = ["lock", SLUG, "--ttl", "2s", "--exit-codes"]
        self._hold()
        with self._watch(words, self._offline) as waiting:
            waiting.says(f"armado: lock {SLUG} até ")
            line = waiting.outcome()
            status = waiting.end()
        print(f"    exit status {status}", flush=True)
        check(status == 124, "exit status 124")
        wanted = (
            f"⏰ EXPIROU: lock {SLUG} ainda ativo após 2s — "
            "renovar prazo ou remover monitor?"
        )
        check(line == wanted, "the EXPIROU line")
        check(self._lock.exists(), "a lock that nobody removed")
        logged = self._logged()
        check(len(logged) == 2 and " warning " in logged[1], "a warning in the log")

    def nothing_is_left(self) -> None:
        """Stop both services; what is armed would go on with the next one."""
        check(self._listed() == [], "nothing armed any more")
        self.stop_services()
        for service in (self._service, self._offline_service):
            check(service.pid() is None, "no service any more")
        check(Receiver.received.empty(), "no ping twice")
        print("    both services have ended", flush=True)

    def stop_services(self) -> None:
        """Leave nothing running, however far the steps came."""
        for service in (self._service, self._offline_service):
            service.stop()

    @contextmanager
    def _watch(self, words: list[str], env: Mapping[str, str]) -> Iterator[Waiting]:
        print(f"    $ koder-monitor {shlex.join(words)} &", flush=True)
        with _child([self._program, *words], env) as child:
            yield Waiting(child)

    def _listed(self) -> list[str]:
        """Show `koder-monitor list`, and return its lines."""
        print("    $ koder-monitor list", flush=True)
        listed = subprocess.run(
            [self._program, "list"],
            check=True,
            env=self._online,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT_S,
        )
        lines = listed.stdout.decode().splitlines()
        for line in lines:
            print(f"    {line}", flush=True)
        return lines

    def _hold(self) -> None:
        self._lock.write_text(LOCK, "utf-8")
        print(f"    another session holds {self._shown(self._lock)}", flush=True)

    def _give_back(self) -> float:
        print(f"    $ rm {self._shown(self._lock)}", flush=True)
        self._lock.unlink()
        return time.monotonic()

    def _pinged(self, *, title: str, message: str, severity: str = "info") -> None:
        """Show the one ping that the receiver got, but not its key."""
        try:
            ping = Receiver.received.get(timeout=LIMIT_S)
        except queue.Empty:
            raise DemoError("no ping came") from None
        print("    the receiver got:")
        for name in ("Authorization", "Idempotency-Key", "User-Agent"):
            shown = ping.headers.get(name, "-").replace(KEY, "***")
            print(f"      {name}: {shown}")
        print(_indented({name: ping.body.get(name) for name in _SHOWN}), flush=True)
        key = ping.headers.get("Idempotency-Key")
        check(Receiver.received.empty(), "one ping only")
        check(ping.headers.get("Authorization") == f"Bearer {KEY}", "the key")
        check(bool(key) and ping.body["idempotency_key"] == key, "one key all over")
        check(ping.body["title"] == title, f"the title {title!r}")
        check(ping.body["message"] == message, "the line as the message")
        check(ping.body["severity"] == severity, f"the severity `{severity}`")

    def _logged(self) -> list[str]:
        print(f"    $ cat {self._shown(self._log)}")
        check(self._log.exists(), "a fallback log")
        lines = self._log.read_text("utf-8").splitlines()
        for line in lines:
            print(f"    {line}", flush=True)
        return lines

    def _shown(self, path: Path) -> str:
        return str(path.relative_to(self._folder))


_TIME = r"\d\d:\d\d:\d\d"
_SHOWN = ("channel", "title", "message", "severity")


@contextmanager
def _child(
    argv: list[str], env: Mapping[str, str]
) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a program for as long as the block lasts, never longer."""
    child = subprocess.Popen(
        argv,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with child:
        try:
            yield child
        finally:
            with suppress(ProcessLookupError):
                child.kill()


@contextmanager
def _receiver() -> Iterator[str]:
    """Run the receiver on loopback and give its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/notify"
    finally:
        server.shutdown()
        server.server_close()


def _took(since: float) -> None:
    """Say how long the line took; `make bench` measures it properly."""
    print(f"    ({time.monotonic() - since:.3f} s later)", flush=True)


def _indented(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return "\n".join(f"      {line}" for line in text.splitlines())


def main() -> int:
    """Go through the steps and return the exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    program = shutil.which("koder-monitor")
    if program is None:
        print("demo: koder-monitor is not on PATH; run 'make demo'", file=sys.stderr)
        return 1
    began_at = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, _receiver() as url:
        demo = Demo(program, Path(folder), url)
        try:
            _go_through(demo)
        except (DemoError, subprocess.SubprocessError) as error:
            print(f"demo: not as promised: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130
        finally:
            demo.stop_services()
    print(f"\nAll as promised, in {time.monotonic() - began_at:.1f} s.")
    return 0


def _go_through(demo: Demo) -> None:
    steps = (
        ("A lock is given back: one line, one ping", demo.lock_is_given_back),
        ("The service is killed: the wait survives", demo.service_is_killed),
        ("A process ends: the evidence of --json", demo.process_ends),
        ("No channel: the fallback log takes the ping", demo.nobody_takes_the_ping),
        ("The deadline passes: a line of its own", demo.deadline_passes),
        ("Nothing is left running", demo.nothing_is_left),
    )
    for number, (heading, step) in enumerate(steps, 1):
        print(f"\n== {number}/{len(steps)} {heading}", flush=True)
        step()


if __name__ == "__main__":
    sys.exit(main())
