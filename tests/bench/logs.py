"""What following a log costs: a huge one at arming, and one that grows fast."""

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench import many

ARMED_BOUND = "issue: 2 s"
MEMORY_BOUND = "issue: 100 MiB"
CPU_BOUND = "issue: below 1 core"

HUGE = 20 << 30  # bytes, of which the disk holds none
_RATE = 50_000_000  # bytes a second
_FOR_S = 10.0
_LINE = b"2026-01-01 12:00:00 INFO worker 17: batch 000123 done in 41 ms, 0 errors\n"
_PIECE_S = 0.02


def measure(koder: str, folder: Path, env: Mapping[str, str]) -> None:
    """Print what both cost."""
    print("\nlogs")
    with many.service(koder, folder / "logs", env) as hosted:
        state = {**env, "KODER_MONITOR_STATE": str(hosted.state)}
        huge = folder / "huge.log"
        with huge.open("wb") as file:
            file.truncate(HUGE)
        words = [koder, "log", str(huge), "--pass", "ALL PASS"]
        since = time.perf_counter()
        with _running(words, state) as command:
            _armed(command)
            _row("20 GB, armed in", f"{time.perf_counter() - since:.2f} s", ARMED_BOUND)
            with huge.open("ab") as file:
                file.write(b"\nALL PASS\n")
            _line(command)
        peak = _peak_mib(hosted.pid)
        _row("memory of the service, at most", f"{peak:.0f} MiB", MEMORY_BOUND)
        _grow(koder, folder / "fast.log", state, hosted)


def _grow(koder: str, path: Path, env: Mapping[str, str], hosted: many.Service) -> None:
    path.touch()
    piece = _LINE * round(_RATE * _PIECE_S / len(_LINE))
    words = [koder, "log", str(path), "--pass", "ALL PASS", "--fail", r"\bFATAL\b"]
    with _running(words, env) as command:
        _armed(command)
        used_s, since = hosted.cpu_s(), time.perf_counter()
        written = 0
        with path.open("ab", buffering=0) as file:
            while time.perf_counter() - since < _FOR_S:
                written += file.write(piece)
                ahead_s = written / _RATE - (time.perf_counter() - since)
                time.sleep(max(ahead_s, 0.0))
            took_s = time.perf_counter() - since
            file.write(b"ALL PASS\n")
        ended = time.perf_counter()
        _line(command)
        late_s = time.perf_counter() - ended
        cores = (hosted.cpu_s() - used_s) / (took_s + late_s)
    rate = f"{written / took_s / 1e6:.0f} MB/s"
    _row(f"one that grows at {rate}", f"{cores:.2f} cores", CPU_BOUND)
    _row("its marker -> line", f"{late_s:.2f} s")
    _row("memory of the service, at most", f"{_peak_mib(hosted.pid):.0f} MiB")
    path.unlink()


def _running(words: Sequence[str], env: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        words,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _armed(command: "subprocess.Popen[bytes]") -> None:
    assert command.stderr is not None
    while line := command.stderr.readline():
        if line.startswith(b"armado: "):
            return
    sys.exit("bench: not armed")


def _line(command: "subprocess.Popen[bytes]") -> None:
    assert command.stdout is not None
    if not command.stdout.readline():
        sys.exit("bench: no line")


def _peak_mib(pid: int) -> float:
    """Return the most memory that a process ever had (VmHWM of proc(5))."""
    for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def _row(name: str, value: str, bound: str = "") -> None:
    print(f"  {name:<44} {value:>10}  {bound}".rstrip(), flush=True)
