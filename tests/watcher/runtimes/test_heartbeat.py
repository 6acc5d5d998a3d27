"""The mark of each run."""

import os
from datetime import timedelta
from pathlib import Path

from tests.watcher.runtimes.calling import a_call
from watcher.runtimes.heartbeat import beat, last_beats


def test_each_run_leaves_the_time_of_its_event(tmp_path: Path) -> None:
    state = tmp_path / "deep" / "state"
    state.parent.mkdir()
    call = a_call(state, "stop")
    later = call._replace(event="session-start", at=call.at + timedelta(minutes=5))
    latest = call._replace(runtime="gemini", at=call.at + timedelta(minutes=9))
    for one in (call, later, call, latest):
        beat(one)
    beats = last_beats(str(state))
    assert [(one.runtime, one.event) for one in beats] == [
        ("gemini", "stop"),
        ("claude-code", "session-start"),
        ("claude-code", "stop"),
    ]
    assert abs((beats[0].at - latest.at).total_seconds()) < 0.001
    assert os.stat(state).st_mode & 0o777 == 0o700


def test_before_the_first_run_there_is_none(tmp_path: Path) -> None:
    assert last_beats(str(tmp_path)) == []
