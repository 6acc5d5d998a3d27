"""Values, strategies and checks that the tests of policies share."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from string import Formatter

from hypothesis import settings
from hypothesis import strategies as st

from policies.cadence import next_look
from policies.model import Ending, Json, Observation, Outcome, Result, Sight, Target
from policies.target import lock_target, match_target
from policies.verdict import Progress, Rules, Verdict, decide
from policies.wording import TEXTS, Phrase, phrase

ALWAYS = settings(deadline=None)  # a loaded machine is no fault of the code
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ZONE = timezone(timedelta(hours=-3))
WHY = phrase("denied", path="/l")

LOCK = Outcome(
    ending=Ending.RELEASED,
    watch_id="a1b2c3",
    target=lock_target("/l/lock-meta-context.md", "/l"),
    label="meta-context",
    armed_at=START,
    ended_at=START + timedelta(hours=1),
    waited_s=3600.0,
    ttl_s=3600,
)
WORK = Outcome(
    ending=Ending.ENDED,
    watch_id="a1b2c3",
    target=match_target("train.py"),
    label="treino",
    armed_at=START,
    ended_at=START + timedelta(hours=1),
    waited_s=3600.0,
    ttl_s=3600,
)


def seen(sight: Sight, *, absent: bool = False) -> Observation:
    reason = WHY if sight is Sight.UNKNOWN else None
    return Observation(sight=sight, at=START, absent=absent, reason=reason)


HELD = seen(Sight.HELD)
RELEASED = seen(Sight.RELEASED)
UNKNOWN = seen(Sight.UNKNOWN)
ABSENT = seen(Sight.UNKNOWN, absent=True)
observations = st.sampled_from([HELD, RELEASED, UNKNOWN, ABSENT])


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a simulated watch ended."""

    verdict: Verdict
    at_s: float
    looks: list[Observation]
    progress: Progress


def simulate(
    see: Callable[[float], Observation],
    *,
    rules: Rules,
    every_s: float = 30.0,
    look_s: float = 0.0,
) -> Ran:
    """Wait as the engine does, in no time; a look takes `look_s`."""
    now_s, progress, looks = rules.armed_s, Progress(), list[Observation]()
    while True:
        looks.append(see(now_s))
        now_s += look_s
        decision = decide(rules, progress, looks[-1], now_s=now_s)
        progress = decision.progress
        if decision.verdict is Verdict.LOOK_AGAIN:
            now_s += decision.again_in_s
        elif decision.verdict is Verdict.WAIT:
            now_s = next_look(
                now_s=now_s,
                every_s=every_s,
                deadline_s=rules.deadline_s,
                start_due_s=rules.armed_s + rules.start_within_s
                if looks[-1].absent and not progress.ever_seen
                else None,
            )
        else:
            return Ran(
                verdict=decision.verdict, at_s=now_s, looks=looks, progress=progress
            )


# What steers a terminal or breaks a line, listed apart from the product's own rule.
UNFIT = frozenset(
    chr(code)
    for codes in (
        range(0x20),  # C0
        range(0x7F, 0xA0),  # DEL, C1
        (0x061C, 0x200E, 0x200F, 0x2028, 0x2029),  # marks and separators
        range(0x202A, 0x202F),  # bidi embeddings and overrides
        range(0x2066, 0x206A),  # bidi isolates
        range(0xD800, 0xE000),  # lone surrogates
    )
    for code in codes
)


def unfit(text: str) -> set[str]:
    """Return what must not be in a text that people see."""
    return set(text) & UNFIT


def strings(value: Json) -> Iterator[str]:
    """Walk all texts in a JSON value, names too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield name
            yield from strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings(item)


# Any character at all, the dangerous ones far more often than chance has them.
characters = st.sampled_from(sorted(UNFIT)) | st.characters(exclude_categories=())
foreign = st.text(characters, max_size=60) | st.text(
    characters, min_size=1, max_size=9
).map(lambda text: text * 100)


def placeholders(template: str) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(template) if name is not None]


@st.composite
def phrases(draw: st.DrawFn, depth: int = 1) -> Phrase:
    key = draw(st.sampled_from(sorted(TEXTS)))
    values: st.SearchStrategy[str | int | Phrase] = foreign | st.integers()
    if depth:
        values |= phrases(depth - 1)
    return phrase(key, **{name: draw(values) for name in placeholders(TEXTS[key][0])})


targets = st.builds(
    Target,
    kind=st.sampled_from(["lock", "process", "port", "log", "wait"]),
    text=foreign,
    label=foreign,
    host=st.none() | foreign,
)
json_values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | foreign,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(foreign, inner, max_size=3)
    ),
    max_leaves=6,
)
instants = st.datetimes(
    datetime(2000, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
    datetime(2099, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
outcomes = st.builds(
    Outcome,
    ending=st.sampled_from(Ending),
    watch_id=st.just("a1b2c3"),
    target=targets,
    label=foreign,
    armed_at=instants,
    ended_at=instants,
    waited_s=st.floats(0, 1e8),
    ttl_s=st.integers(1, 31536000),
    result=st.none() | st.sampled_from(Result),
    already_clear=st.booleans(),
    unknown_since=st.none() | instants,
    reason=st.none() | phrases(),
    tail=st.lists(phrases(), max_size=3).map(tuple),
    resume=st.none() | foreign,
    session=st.none() | foreign,
    observations=st.integers(0, 10**6),
    unknown_s=st.floats(0, 1e8),
    suspended_s=st.floats(0, 1e8),
    evidence=st.dictionaries(foreign, json_values, max_size=3),
)
