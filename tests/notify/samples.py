"""Pings to send."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone

from policies.model import Json, Ping, Severity

AT = datetime(2026, 3, 1, 12, 0, 5, 250_000, tzinfo=UTC)
ZONE = timezone(timedelta(hours=-3))


def a_ping(
    message: str = "✅ LIBERADO: lock demo em 12:00:05 — retomar o deploy",
    *,
    key: str = "4f1c-1-released",
    title: str = "lock demo liberado",
    severity: Severity = Severity.INFO,
    watch: Mapping[str, Json] | None = None,
) -> Ping:
    return Ping(
        idempotency_key=key,
        title=title,
        message=message,
        severity=severity,
        occurred_at=AT,
        watch=watch,
    )
