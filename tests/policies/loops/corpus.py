"""Reads the corpus of `tests/data/loops`."""

from pathlib import Path

DATA = Path(__file__).parents[2] / "data" / "loops"


def blocks(name: str) -> list[tuple[str, str]]:
    """Return each command of a file, and what is behind its `=>`, if anything."""
    found: list[tuple[str, str]] = []
    for line in (DATA / name).read_text("utf-8").splitlines():
        if line.startswith("=> "):
            found[-1] = (found[-1][0], line.removeprefix("=> "))
        elif line.startswith("|"):
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", "")
        elif line and not line.startswith("# "):
            found.append((line, ""))
    return found


WAITS = blocks("waits.txt")
LOOKALIKES = [command for command, _ in blocks("lookalikes.txt")]
PLAIN = [command for command, _ in blocks("plain.txt")]
