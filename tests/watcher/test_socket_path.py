"""Whether a service is there, as far as its lock file tells."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from watcher.socket_path import service_runs


def test_a_service_runs_while_its_process_does(tmp_path: Path) -> None:
    lock = tmp_path / "service.lock"
    assert not service_runs(str(tmp_path))
    lock.write_text(json.dumps({"pid": os.getpid(), "on_demand": True}))
    assert service_runs(str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    lock.write_text(json.dumps({"pid": ended.pid}))
    assert not service_runs(str(tmp_path))


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", *(f'{{"pid": {odd}}}' for odd in ('"5"', 0, -1, 1e9, 2**80))],
)
def test_a_lock_file_that_names_no_process_tells_of_none(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "service.lock").write_text(content)
    assert not service_runs(str(tmp_path))
