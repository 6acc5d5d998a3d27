"""What a runtime writes to a hook's stdin: bounded, and with a time limit (C11.2).

Some hosts keep the pipe open, some write nothing, some tens of megabytes, and one calls
it an error when a hook ends before it has read all.
"""

import json
import os
import select
import time
from collections.abc import Mapping
from typing import cast

from policies.values import Json

LIMIT_S = 0.6
"""For all of it; the whole hook has to answer within a second."""

MOST_BYTES = 4 << 20
"""What is longer is read to its end and counts as nothing."""

_CHUNK = 1 << 16


def read_payload(fd: int = 0, *, limit_s: float = LIMIT_S) -> Mapping[str, Json] | None:
    """Return the JSON object that comes, or None for anything else.

    Ends with the object: whether the writer closes its end makes no difference.
    """
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    end_s = time.clock_gettime(time.CLOCK_MONOTONIC) + limit_s
    content, size = bytearray(), 0
    while True:
        left_s = end_s - time.clock_gettime(time.CLOCK_MONOTONIC)
        if left_s <= 0 or not poll.poll(left_s * 1000):
            break
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            continue
        except OSError:
            break
        if not chunk:
            break
        size += len(chunk)
        if size > MOST_BYTES:
            content.clear()  # read on, so that its writer is not cut off
            continue
        content += chunk
        if chunk.rstrip().endswith(b"}"):
            found = _object_of(content)
            if found is not None:
                return found
    return _object_of(content)


def _object_of(content: bytes | bytearray) -> Mapping[str, Json] | None:
    try:
        value = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return cast("Mapping[str, Json]", value) if isinstance(value, dict) else None
