"""What the service logs: a JSON object a line, on stderr (C10.1)."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final

_OWN: Final = frozenset(
    {*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"}
)
"""What every record has; all else was handed over as `extra`."""


class JsonLines(logging.Formatter):
    """Writes `ts`, `level`, `event` and `logger`, then what the event is about.

    In ASCII, so that nothing in a foreign text breaks a line or steers a terminal.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        at = datetime.fromtimestamp(record.created, UTC)
        fields: dict[str, object] = {
            "ts": at.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "logger": record.name,
        }
        for name, value in record.__dict__.items():
            if name not in _OWN:
                fields.setdefault(name, value)
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=repr)


def log_to_stderr() -> None:
    """Have everything logged from here on written there."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    # It warns of each round that finds the one before still at work: as is meant.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    # What it says of its start and end is said by us, once it is so.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
