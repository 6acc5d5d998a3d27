"""What a server's answer to a ping means, and how its words may be shown (C6.2)."""

from enum import StrEnum

from policies.text import clean

MESSAGE_LIMIT = 4000
"""Characters of a message; chat services refuse more than 4096."""

FIELD_LIMIT = 1000
"""Characters of any other text in a request, which stays below 64 KB in all."""

EXCERPT_LIMIT = 200
"""Characters of a server's words that an error may quote."""

_TRANSIENT = frozenset({408, 425, 429})


class Answer(StrEnum):
    """What became of one attempt."""

    DELIVERED = "delivered"
    TRY_LATER = "try_later"
    REFUSED = "refused"


def classify(status: int) -> Answer:
    """Return what a status code means for the ping (C6.2, RFC 9110 section 15).

    2xx is delivered; 408, 425, 429 and 5xx are tried again under the same key; all
    else is final, a redirect too, which is never followed: it would carry the key to
    another server.
    """
    if 200 <= status < 300:
        return Answer.DELIVERED
    if status in _TRANSIENT or status >= 500:
        return Answer.TRY_LATER
    return Answer.REFUSED


def excerpt(body: str, secret: str) -> str:
    """Return a short piece of a server's answer without the secret it may echo."""
    redacted = body.replace(secret, "***") if secret else body
    return clean(" ".join(redacted.split()), EXCERPT_LIMIT)


def idempotency_key(watch_id: str, waiter: int, ending: str) -> str:
    """Return the key of a ping: it follows from watch, waiter and outcome (C6.2).

    So even an outcome told while nothing could be stored keeps its key.
    """
    return f"{watch_id}-{waiter}-{ending}"
