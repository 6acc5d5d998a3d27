"""File-system events: how many are followed, and how to lose them."""

from contextlib import suppress
from pathlib import Path


def followed(pid: int | str = "self") -> int:
    """Return how many directories the kernel watches for a process."""
    count = 0
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        with suppress(FileNotFoundError):  # the one that lists them
            count += info.read_text("ascii").count("inotify wd:")
    return count


def overflow(folder: Path) -> None:
    """Make more events than the kernel keeps for somebody who does not read."""
    longest = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text("ascii"))
    noise = [folder / "a", folder / "b"]
    noise[0].touch()
    for _ in range(longest // 2 + 100):
        noise[0].rename(noise[1])
        noise.reverse()
