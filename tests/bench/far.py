"""What watching on a host costs, over a real OpenSSH server on loopback.

The server, its keys and the client's home lie in a scratch folder.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.bench import many
from tests.sshd import Client, Sshd

EXIT_BOUND = "issue: 50 ms"
CPU_BOUND = "issue: below 1/20"

WATCHES = 100
_EVERY_S = 2  # short, so that the bench is
_POLLS = 10  # of what people type instead; each is one login
_TTL_S = 3600


@contextmanager
def box(folder: Path) -> Iterator[tuple[Sshd, Mapping[str, str]]]:
    """Run a server that `box` means for whoever has the environment that this gives."""
    home = folder / "home"
    home.mkdir(parents=True)
    client = Client(home)
    server = Sshd(folder / "sshd", client.key)
    client.know(server)
    client.write_config("Host box", " HostName 127.0.0.1", f" Port {server.port}")
    server.start()
    try:
        yield server, {"HOME": str(home)}
    finally:
        server.kill()


def exits(koder: str, env: Mapping[str, str], rounds: int) -> list[float]:
    """Return the seconds from the end of a process on the host to the line."""
    taken = []
    for _ in range(rounds):
        work = subprocess.Popen(["sleep", "600"])
        words = [koder, "process", "--pid", str(work.pid), "--host", "box"]
        with subprocess.Popen(
            words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as command:
            assert command.stderr is not None
            assert command.stdout is not None
            while not command.stderr.readline().startswith(b"armado: "):
                pass
            time.sleep(0.3)
            since = time.perf_counter()
            work.kill()
            work.wait()
            if not command.stdout.readline():
                sys.exit("bench: no line")
            taken.append(time.perf_counter() - since)
    return taken


def measure(koder: str, folder: Path, env: Mapping[str, str], rounds: int) -> None:
    """Print what it costs, beside one login a look."""
    print("\na host over ssh, on loopback")
    if not os.access("/usr/sbin/sshd", os.X_OK):
        print("  needs an OpenSSH server, which is not here")
        return
    with box(folder / "far") as (server, home):
        mine = {**env, **home, "KODER_MONITOR_FLOOR": f"{_EVERY_S}s"}
        with many.service(koder, folder / "far" / "one", mine) as hosted:
            state = {"KODER_MONITOR_STATE": str(hosted.state)}
            found = exits(koder, {**mine, **state}, rounds)
            median = f"{1000 * statistics.median(found):.1f} ms"
            _row("process ends -> line", median, EXIT_BOUND)
        ours = _watched(koder, folder, mine, server)
        theirs = _polled(home, server)
        _row(f"{WATCHES} watches, CPU of the server a round", f"{1000 * ours:.1f} ms")
        _row(f"{WATCHES} logins with pgrep", f"{1000 * theirs:.0f} ms")
        _row("ratio", f"1/{theirs / ours:.0f}", CPU_BOUND)


def _watched(koder: str, folder: Path, env: Mapping[str, str], server: Sshd) -> float:
    """Return the CPU seconds of the server for one round of many watches."""
    works = [subprocess.Popen(["sleep", "600"]) for _ in range(WATCHES)]
    logins = server.logins()
    try:
        with many.service(koder, folder / "far" / "many", env) as hosted:
            for work in works:
                target = f"process --pid {work.pid} --host box"
                body = {"target": target, "ttl_s": _TTL_S}
                hosted.client.request("POST", "/v1/watches", body)
            time.sleep(2 * _EVERY_S)
            rounds = 10
            used_s = _cpu_s(server)
            time.sleep(rounds * _EVERY_S)
            used_s = _cpu_s(server) - used_s
            _row(
                f"{WATCHES} watches, logins", str(server.logins() - logins), "issue: 1"
            )
            return used_s / rounds
    finally:
        for work in works:
            work.kill()
            work.wait()


def _polled(home: Mapping[str, str], server: Sshd) -> float:
    """Return the CPU seconds of the server for as many logins with pgrep."""
    config = f"{home['HOME']}/.ssh/config"
    words = ["ssh", "-F", config, "-i", f"{home['HOME']}/.ssh/id_ed25519"]
    words += ["-o", f"UserKnownHostsFile={home['HOME']}/.ssh/known_hosts", "box"]
    used_s = _cpu_s(server)
    for _ in range(_POLLS):
        subprocess.run(
            [*words, "pgrep -f 'no such work here'"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    time.sleep(0.5)  # the server waits for its children
    return (_cpu_s(server) - used_s) * WATCHES / _POLLS


def _cpu_s(server: Sshd) -> float:
    """Return the CPU time of a server, of its connections, and of those that ended."""
    used_s = 0.0
    listener = psutil.Process(server.pid)
    for process in (listener, *listener.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            used_s += sum(process.cpu_times()[:4])
    return used_s


def _row(name: str, value: str, bound: str = "") -> None:
    print(f"  {name:<44} {value:>9}  {bound}".rstrip(), flush=True)
