"""What the service logs (C10.1)."""

import json
import logging
import sys
from collections.abc import Iterator
from datetime import datetime

import pytest

from notify.secret import Secret
from watcher.serve.logs import JsonLines, log_to_stderr


@pytest.fixture
def levels() -> Iterator[None]:
    """Put back what the service sets for its whole process."""
    loggers = [logging.getLogger(n) for n in ("", "apscheduler", "httpx", "uvicorn")]
    kept = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, kept, strict=True):
        logger.setLevel(level)


def line(message: str = "look.failed", *words: object, **more: object) -> str:
    record = logging.getLogger("watcher.engine").makeRecord(
        "watcher.engine", logging.WARNING, __file__, 1, message, words, None, extra=more
    )
    return JsonLines().format(record)


def test_a_line_is_an_object_with_what_it_is_about() -> None:
    said = json.loads(line(watch_id="ab12", attempts=3))
    at = datetime.fromisoformat(said.pop("ts"))
    assert at.utcoffset() is not None
    assert said == {
        "level": "warning",
        "event": "look.failed",
        "logger": "watcher.engine",
        "watch_id": "ab12",
        "attempts": 3,
    }


def test_what_others_log_is_filled_in() -> None:
    assert json.loads(line("%s of %d", "one", 2))["event"] == "one of 2"


def test_nothing_foreign_breaks_a_line_or_hides_what_it_is() -> None:
    text = line(sentence="a\nb\x1b[31m\u2028\udcff", level="debug", ts="never")
    assert text.isascii()
    assert text.isprintable()
    said = json.loads(text)
    assert said["level"] == "warning"
    assert said["ts"] != "never"


def test_a_secret_stays_one_wherever_it_is_put() -> None:
    text = line("sent %s", Secret("hush-hush"), key=Secret("hush-hush"))
    assert "hush" not in text
    assert json.loads(text)["key"] == "***"


def test_an_error_keeps_its_traceback_in_the_one_line() -> None:
    try:
        _ = 1 / 0
    except ZeroDivisionError:
        record = logging.LogRecord(
            "x", logging.ERROR, __file__, 1, "it.failed", (), sys.exc_info()
        )
    text = JsonLines().format(record)
    assert "\n" not in text
    assert "ZeroDivisionError" in json.loads(text)["error"]


@pytest.mark.usefixtures("levels")
def test_the_service_logs_to_stderr_and_lets_libraries_say_less(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's own
    log_to_stderr()
    for name in ("apscheduler.scheduler", "httpx", "uvicorn.error"):
        logging.getLogger(name).info("chatter")
    logging.getLogger("watcher.serve.main").info("service.ready", extra={"armed": 2})
    [said] = capsys.readouterr().err.splitlines()
    assert json.loads(said)["event"] == "service.ready"
    assert json.loads(said)["armed"] == 2
