"""Watches armed, released, expired and renewed while everything is killed at random."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.unreliable import UnreliableServer

COMMAND = [sys.executable, "-P", "-m", "watcher"]


@dataclass
class Armed:
    """One waiting command and where its words went."""

    slug: str
    process: subprocess.Popen[bytes]
    out: Path
    err: Path
    killed: bool = False

    @property
    def said_armed(self) -> bool:
        return "armado:" in self.err.read_text()

    @property
    def alone(self) -> bool:
        """Every service that it asked was killed: it did the work itself."""
        return "sem serviço" in self.err.read_text()

    @property
    def lines(self) -> list[str]:
        return self.out.read_text().splitlines()


class Storm:
    """One state directory in bad weather."""

    def __init__(self, folder: Path, server: UnreliableServer, seed: int) -> None:
        self._folder = folder
        self._server = server
        self._random = random.Random(seed)
        self.state = folder / "state"
        self.locks = folder / "locks"
        self.locks.mkdir()
        self._env = {
            **os.environ,
            "HOME": str(folder),
            "KODER_MONITOR_STATE": str(self.state),
            "KODER_MONITOR_LOCKS_DIR": str(self.locks),
            "KODER_MONITOR_NOTIFY_URL": server.url,
            "KODER_MONITOR_FLOOR": "1s",
            "KODER_MONITOR_SETTLE": "20ms",
        }
        self.commands: list[Armed] = []
        self._held: list[Path] = []
        self.slugs: list[str] = []

    def rage(self, rounds: int) -> None:
        """Do something bad or good, over and over."""
        for number in range(rounds):
            self._arm(f"r{number}")
            if self._random.random() < 0.3:
                self._arm(self._random.choice(self.slugs))  # a second one joins
            if self._held and self._random.random() < 0.7:
                self._held.pop(self._random.randrange(len(self._held))).unlink()
            if self._random.random() < 0.4:
                self._kill_service()
            if self.commands and self._random.random() < 0.4:
                victim = self._random.choice(self.commands)
                victim.killed |= victim.process.poll() is None
                victim.process.kill()
            if self._random.random() < 0.15:
                self._renew()
            time.sleep(self._random.random() * 0.3)

    def calm(self, limit_s: float) -> None:
        """Let everything end, with one service that nobody kills."""
        self._server.reliable = True
        for path in self._held:
            path.unlink()
        until = time.monotonic() + limit_s
        while time.monotonic() < until and (self._waiting() or self._open()):
            # Any command that sees armed watches without a service starts one.
            self._run("list")
            self._run("outbox", "flush")
            time.sleep(0.2)
        for command in self.commands:
            command.process.wait(timeout=30)

    def rows(self, query: str) -> list[sqlite3.Row]:
        """Ask the store."""
        if not (self.state / "monitor.db").exists():
            return []  # every service so far was killed before it got there
        connection = sqlite3.connect(self.state / "monitor.db")
        connection.row_factory = sqlite3.Row
        try:
            return connection.execute(query).fetchall()
        except sqlite3.OperationalError:
            return []  # made, but killed before it had its tables
        finally:
            connection.close()

    def end(self) -> None:
        """Leave nothing running."""
        for command in self.commands:
            command.process.kill()
            command.process.wait()
        self._kill_service(signal.SIGTERM)

    def _arm(self, slug: str) -> None:
        path = self.locks / f"lock-{slug}.md"
        if not path.exists() and slug not in self.slugs:
            path.touch()
            self._held.append(path)
            self.slugs.append(slug)
        ttl = self._random.choice(["2s", "3s", "60s", "60s"])
        number = len(self.commands)
        out, err = self._folder / f"{number}.out", self._folder / f"{number}.err"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(
                [*COMMAND, "lock", slug, "--ttl", ttl],
                env=self._env,
                stdout=stdout,
                stderr=stderr,
            )
        self.commands.append(Armed(slug, process, out, err))

    def _renew(self) -> None:
        rows = self.rows("SELECT id FROM watches WHERE state = 'armed'")
        if rows:
            watch_id = self._random.choice(rows)["id"]
            self._run("renew", watch_id, "--ttl", "5s", "--why", "tempestade")

    def _run(self, *words: str) -> None:
        subprocess.run(
            [*COMMAND, *words],
            env=self._env,
            capture_output=True,
            timeout=60,
            check=False,
        )

    def _kill_service(self, number: signal.Signals = signal.SIGKILL) -> None:
        try:
            pid = json.loads((self.state / "service.lock").read_text())["pid"]
            if b"watcher" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, number)
        except (OSError, ValueError, KeyError):
            return

    def _waiting(self) -> bool:
        """Say whether a command is under way: the last may only be arming."""
        return any(command.process.poll() is None for command in self.commands)

    def _open(self) -> int:
        rows = self.rows(
            "SELECT (SELECT count(*) FROM watches WHERE state = 'armed')"
            " + (SELECT count(*) FROM pings WHERE state = 'pending') AS n"
        )
        return int(rows[0]["n"]) if rows else 1
