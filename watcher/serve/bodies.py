"""What the API takes and gives, as types.

Requests are decoded by them, and the OpenAPI document is derived from them. Spans are
seconds, instants RFC 3339 with offset.
"""

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from policies.delivery import PingState
from policies.history import History
from policies.model import Ending, Result, Sight
from policies.wording import Lang

_YEAR_S = 365 * 86400
_LAST_PID = (1 << 31) - 1

Span = Annotated[int, Meta(ge=1, le=_YEAR_S)]
SpanOrNone = Annotated[int, Meta(ge=0, le=_YEAR_S)]
Id = Annotated[str, Meta(description="of a watch; paths take any unique prefix")]
Target = Annotated[
    str,
    Meta(
        description="a command line without the common options",
        examples=["lock payments-api", "process --pid 4711"],
    ),
]
Sentence = Annotated[
    dict[str, object] | None, Meta(description="a message's key and its values")
]
State = Literal["armed", "released", "ended", "expired", "removed", "unseen"]


class Arm(Struct, forbid_unknown_fields=True, kw_only=True):
    """What to arm. A program gives `nonce` so that asking again arms nothing twice."""

    target: Target
    ttl_s: Span = 3600
    every_s: Span | None = None
    label: str | None = None
    resume: str | None = None
    session: str | None = None
    lang: Lang | None = None
    start_within_s: SpanOrNone = 0
    take: bool = False
    launcher: Annotated[int, Meta(ge=0, le=_LAST_PID)] = 0
    nonce: str | None = None
    project: Annotated[
        str | None, Meta(description="folder in which the session works")
    ] = None
    log_only: Annotated[
        bool, Meta(description="a test: its ping goes to the fallback log alone")
    ] = False
    detach: Annotated[
        bool, Meta(description="leave a watcher on the host of the target, too")
    ] = False
    settings: dict[str, str] = {}


class Renew(Struct, forbid_unknown_fields=True, kw_only=True):
    """The new deadline, from now on."""

    ttl_s: Span
    why: str | None = None


class Remove(Struct, forbid_unknown_fields=True, kw_only=True):
    """The reason, which is announced to everybody who waits."""

    why: Annotated[str, Meta(examples=["cancelled by hand"])]


class Check(Struct, forbid_unknown_fields=True, kw_only=True):
    """What to look at, once."""

    target: Target


class Flush(Struct, forbid_unknown_fields=True, kw_only=True):
    """Which pings to try."""

    dead: Annotated[bool, Meta(description="those that were given up, too")] = False


class Watch(Struct, kw_only=True):
    """A watch; `session` and `resume` are those of its first waiter."""

    id: Id
    target: str
    kind: str
    label: str
    host: str | None
    state: State
    observation: Sight
    result: Result | None
    armed_at: datetime
    deadline: datetime
    ended_at: datetime | None
    last_probe_at: datetime | None
    unknown_s: float
    every_s: int
    ttl_s: int
    renewals: int
    session: str | None
    resume: str | None
    waiters: int
    detached: bool
    acknowledged: bool | None
    holder: dict[str, object] | None
    evidence: dict[str, object]
    line: str | None
    observations: int


class Waiter(Struct, kw_only=True):
    """Somebody who waits for a watch, or did."""

    number: Annotated[int, Meta(description="in the order they came")]
    label: str
    resume: str | None
    session: str | None
    state: Literal["waiting", "told", "left"]
    outcome: Ending | None
    armed_at: datetime
    deadline: datetime
    ttl_s: int
    takes: Annotated[bool, Meta(description="wants the lock itself")]
    acknowledged_at: datetime | None


class Step(Struct, kw_only=True):
    """What was done to a watch."""

    at: datetime
    event: str
    detail: object


class Detail(Watch, kw_only=True):
    """A watch with those who wait, in their order, and what was done to it."""

    waiter_list: list[Waiter]
    trail: list[Step]


class Armed(Watch, kw_only=True):
    """The watch that was armed or joined, and what is whose in it."""

    waiter: Annotated[int, Meta(description="the caller's number in the watch")]
    differs: Annotated[
        list[str], Meta(description="the `settings` that the service has otherwise")
    ]
    notes: Annotated[
        list[dict[str, object]], Meta(description="how a detached watcher lives")
    ]


class OnHost(Struct, kw_only=True):
    """What is detached on a host, of this state directory and of others."""

    watches: list[dict[str, object]]
    why: Annotated[Sentence, Meta(description="why the host gave no answer")]


class Outcome(Struct, kw_only=True):
    """How a watch ended, as `--json` prints it."""

    outcome: Ending
    result: Result | None
    target: str
    label: str
    host: str | None
    watch_id: Id
    armed_at: datetime
    ended_at: datetime
    waited_s: float
    ttl_s: int
    observations: int
    unknown_s: float
    resume: str | None
    line: str
    evidence: dict[str, object]


class Checked(Struct, kw_only=True):
    """What one look saw."""

    target: str
    observation: Sight
    result: Result | None
    detail: str
    evidence: dict[str, object]
    at: datetime


class Ping(Struct, kw_only=True):
    """A message to the operator, on one channel."""

    id: int
    channel: str
    state: PingState
    attempts: int
    next_attempt_at: datetime | None
    message: str
    idempotency_key: str
    created_at: datetime
    delivered_at: datetime | None
    last_error: str | None


class Told(Struct, kw_only=True):
    """An outcome that nobody has acknowledged (C9.4)."""

    watch_id: Id
    waiter: int
    target: str
    label: str
    host: str | None
    session: str | None
    outcome: Ending | None
    line: str | None
    told_at: datetime | None
    read_at: Annotated[
        datetime | None, Meta(description="when it was handed to its session")
    ]
    reminded_at: Annotated[
        datetime | None, Meta(description="when the operator was pinged once more")
    ]


class Host(Struct, kw_only=True):
    """A machine that is reached over ssh, and how it answers."""

    name: str
    means: Annotated[
        str, Meta(description="by what it answers: agent, sh, or nothing yet")
    ]
    reached_at: datetime | None
    silent_since: datetime | None
    last_error: str | None
    armed: Annotated[int, Meta(description="watches that wait there")]


class Past(Struct, kw_only=True):
    """The last days in numbers, and the watches that ended last, the newest first."""

    days: int
    history: History
    ended: list[Watch]


class Words(Struct, kw_only=True):
    """The words of the page; `{name}` in one stands for a value."""

    lang: Lang
    words: dict[str, str]


class News(Struct, kw_only=True):
    """What a waiting command does not know yet."""

    waiting: bool
    notes: list[dict[str, object]]
    deadline_at: float | None
    outcome: dict[str, object] | None


class Health(Struct, kw_only=True):
    """Whether all is as it should be."""

    status: Literal["ok", "degraded"]
    version: str
    armed: Annotated[int, Meta(description="watches that wait")]
    degraded: Sentence
    detail: Annotated[str | None, Meta(description="the same in words")]
    now: Annotated[datetime, Meta(description="by the clock of the service")]
    on_demand: bool


class Flushed(Struct, kw_only=True):
    """How many pings are tried."""

    tried: int


class PageAddress(Struct, kw_only=True):
    """Where a person opens the page, once and soon."""

    url: str
    expires_in_s: int


class Problem(Struct, kw_only=True):
    """A problem document (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    phrase: Sentence
