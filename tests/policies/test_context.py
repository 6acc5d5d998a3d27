"""Percentages, thresholds, debounce, staleness and what is said (C11.3, B139)."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.context import (
    CLEAR_MARGIN,
    Level,
    Reading,
    Spoken,
    Thresholds,
    advice,
    compact_point,
    emptied,
    heard,
    is_usable,
    metrics_of,
    percentage,
    reading_of,
    rounded,
    spoken_object,
    spoken_of,
    thresholds,
    window_reading,
)
from policies.wording import Lang

NOW_S = 1_800_000_000.0
DEFAULT = Thresholds()
ODD: list[object] = [None, True, "30", [], {}, math.nan, math.inf, -1, 100.5, 10**400]
COMMANDS = re.compile(
    r"\b(must|stop|never|immediately|do not|don't|save now|pare|salve|deve|nunca"
    r"|imediatamente|não faça)\b",
    re.IGNORECASE,
)
ENV: dict[str, str] = {}


def spoken_at(figures: list[float], limits: Thresholds = DEFAULT) -> str:
    """Return what is said at each figure: W, C, or - for nothing."""
    told, said = Spoken(), ""
    for remaining in figures:
        told, level = heard(told, remaining, limits)
        said += {None: "-", Level.WARNING: "W", Level.CRITICAL: "C"}[level]
    return said


# when something is said


@pytest.mark.parametrize(
    ("remaining", "said"),
    [(100, "-"), (36, "-"), (35.1, "-"), (35, "W"), (26, "W"), (25.1, "W"), (25, "C")],
)
def test_both_thresholds_count_what_remains_and_are_part_of_it(
    remaining: float, said: str
) -> None:
    assert spoken_at([remaining]) == said


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        pytest.param([30] * 12, "W----W----W-", id="every fifth call"),
        pytest.param([30, 30, *[20] * 6], "W-C----C", id="worse speaks at once"),
        pytest.param([20, *[30] * 6], "C----W-", id="better waits its turn"),
        pytest.param([30, 50, 50, 30, 30], "W--W-", id="cleared starts anew"),
        pytest.param([30, 40, 40, 30, 30], "W----", id="nearly cleared does not"),
        pytest.param([20, 80, 20], "C-C", id="B139"),
        pytest.param([20, 30, 20, 20], "C---", id="critical again is not worse"),
        pytest.param([30, 36, 30, 36, *[30] * 4], "W------W", id="counts calls below"),
    ],
)
def test_what_a_sequence_of_calls_hears(figures: list[float], said: str) -> None:
    assert spoken_at(figures) == said


@given(st.lists(st.floats(0, 100)))
def test_between_two_warnings_of_a_level_lie_four_silent_calls_or_a_recovery(
    figures: list[float],
) -> None:
    said = spoken_at(figures)
    for first in range(len(said)):
        if said[first] != "-":
            following = said[first + 1 : first + 5]
            repeated = following.find(said[first])
            between = figures[first + 1 : first + 1 + max(0, repeated)]
            changed = {*following[: max(0, repeated)]} - {"-"}
            cleared = any(f >= DEFAULT.warning + CLEAR_MARGIN for f in between)
            assert repeated < 0 or cleared or changed


def test_a_warning_near_the_top_can_clear_too() -> None:
    assert spoken_at([95, 100, 95], Thresholds(95, 50)) == "W-W"


def test_an_emptied_window_is_spoken_of_anew() -> None:
    told, _ = heard(Spoken(), 20, DEFAULT)
    told, level = heard(told, 20, DEFAULT)
    assert level is None
    told, level = heard(emptied(NOW_S), 20, DEFAULT)
    assert level is Level.CRITICAL
    assert told.compacted_at_s == NOW_S


def test_a_recovery_forgets_what_was_noted_and_keeps_when_it_was_emptied() -> None:
    told = Spoken(Level.CRITICAL, 3, NOW_S, noted=True)
    assert heard(told, 90, DEFAULT) == (Spoken(compacted_at_s=NOW_S), None)


# thresholds


@pytest.mark.parametrize(
    ("warning", "critical", "expected"),
    [
        (None, None, (35, 25)),
        (50, 10, (50, 10)),
        (50, None, (50, 25)),
        (None, 30.5, (35, 30.5)),
        (20, None, (35, 25)),
        (None, 40, (35, 25)),
        (30, 30, (35, 25)),
        (0, 0, (35, 25)),
        (100, 100, (35, 25)),
        (100, 0, (100, 0)),
        ("30", True, (35, 25)),
        (math.nan, 10, (35, 10)),
        (40, -1, (40, 25)),
    ],
)
def test_a_pair_of_thresholds_that_will_not_do_is_the_default(
    warning: object, critical: object, expected: tuple[float, float]
) -> None:
    assert thresholds(warning, critical, DEFAULT) == expected


@given(
    st.one_of(st.none(), st.booleans(), st.text(), st.floats(), st.integers()),
    st.one_of(st.none(), st.booleans(), st.text(), st.floats(), st.integers()),
)
def test_thresholds_are_percentages_the_critical_one_below(
    warning: object, critical: object
) -> None:
    found = thresholds(warning, critical, DEFAULT)
    assert 0 <= found.critical < found.warning <= 100


@pytest.mark.parametrize("value", ODD)
def test_only_finite_numbers_from_0_to_100_are_percentages(value: object) -> None:
    assert percentage(value) is None


@pytest.mark.parametrize(("percent", "whole"), [(72.5, 73), (71.5, 72), (0.4, 0)])
def test_percentages_are_rounded_half_up(percent: float, whole: int) -> None:
    assert rounded(percent) == whole


# how long a figure is believed


@pytest.mark.parametrize(
    ("age_s", "usable"),
    [(0, True), (59, True), (60, True), (61, False), (-5, True), (-6, False)],
)
def test_a_figure_is_believed_for_a_minute_and_not_from_the_future(
    age_s: float, usable: bool
) -> None:
    assert is_usable(Reading(30, NOW_S - age_s), NOW_S, None) is usable


def test_a_figure_is_believed_for_whole_seconds() -> None:
    assert is_usable(Reading(30, NOW_S), NOW_S + 60.9, None)


@pytest.mark.parametrize("at_s", [0, -1, NOW_S + 86400])
def test_a_figure_without_a_time_of_its_own_is_not_believed(at_s: float) -> None:
    assert not is_usable(Reading(30, at_s), NOW_S, None)
    assert not is_usable(Reading(30, at_s), 30.0, None)


@pytest.mark.parametrize(
    ("compacted_s_ago", "usable"),
    [(0, False), (60, False), (61, True), (-5, False), (-6, True)],
)
def test_after_a_compaction_no_figure_is_believed_for_a_minute(
    compacted_s_ago: float, usable: bool
) -> None:
    """A line drawn during it stamps the old figure with a new time."""
    found = is_usable(Reading(30, NOW_S), NOW_S, NOW_S - compacted_s_ago)
    assert found is usable


# what stands in the files


def test_metrics_survive_their_file() -> None:
    for reading in (Reading(29, NOW_S), Reading(28, NOW_S, 120_000, 167_000)):
        assert reading_of(metrics_of(reading, "abc"), "abc") == reading


def test_the_names_in_the_file_are_those_that_others_read() -> None:
    assert metrics_of(Reading(28.5, NOW_S + 0.7, 1, 2), "abc") == {
        "session_id": "abc",
        "remaining_percentage": 28.5,
        "used_pct": 72,
        "timestamp": int(NOW_S),
        "used_tokens": 1,
        "threshold_tokens": 2,
    }


def test_metrics_of_an_older_writer_are_read() -> None:
    old = {"session_id": "abc", "remaining_percentage": 30, "used_pct": 70}
    assert reading_of({**old, "timestamp": 7}, "abc") == Reading(30, 7)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"remaining_percentage": 30},
        {"timestamp": 7},
        {"session_id": "abc1", "remaining_percentage": 30, "timestamp": 7},
        *({"remaining_percentage": odd, "timestamp": 7} for odd in ODD),
        {"remaining_percentage": 30, "timestamp": "7"},
    ],
)
def test_metrics_that_say_nothing_of_the_session_say_nothing(value: object) -> None:
    assert reading_of(value, "abc") is None


@pytest.mark.parametrize("tokens", [None, True, -1, "5", 10**18])
def test_tokens_that_are_no_count_are_left_out(tokens: object) -> None:
    metrics = {"remaining_percentage": 30, "timestamp": 7, "used_tokens": tokens}
    assert reading_of({**metrics, "threshold_tokens": 9}, "abc") == Reading(30, 7)


def test_what_was_spoken_survives_its_file() -> None:
    for told in (Spoken(), Spoken(Level.CRITICAL, 3, NOW_S, noted=True)):
        assert spoken_of(spoken_object(told)) == told


@pytest.mark.parametrize(
    "value",
    [None, [], {}, {"level": "loud"}, {"level": 5, "calls": -1, "noted": "yes"}],
)
def test_a_file_that_names_no_level_counts_as_nothing_spoken(value: object) -> None:
    assert spoken_of(value) == Spoken()


# the figure of a runtime


def tokens(count: int) -> dict[str, int]:
    return {"input_tokens": count, "output_tokens": 5000}


@pytest.mark.parametrize(
    "window",
    [
        None,
        [],
        {},
        {"used_percentage": None, "current_usage": None},
        {"used_percentage": None, "context_window_size": 200_000},
        {"used_percentage": "40", "context_window_size": 200_000},
        {"context_window_size": 200_000, "current_usage": {}},
        {"context_window_size": 0, "current_usage": tokens(5)},
    ],
)
def test_null_figures_are_unknown(window: object) -> None:
    assert window_reading(window, NOW_S, ENV, []) is None
    assert window_reading(window, NOW_S, ENV, None) is None


def test_without_a_size_the_runtimes_own_percentage_is_shown_as_it_is() -> None:
    assert window_reading({"used_percentage": 72.5}, NOW_S, ENV, []) == Reading(
        27.5, NOW_S
    )
    found = window_reading({"remaining_percentage": 27.5}, NOW_S, ENV, [])
    assert found is not None
    assert found.used == 73


@pytest.mark.parametrize(("used", "left"), [(104, 0), (-3, 100), (100, 0), (0, 100)])
def test_a_percentage_beyond_its_bounds_is_at_them(used: float, left: float) -> None:
    assert window_reading({"used_percentage": used}, NOW_S, ENV, None) == Reading(
        left, NOW_S
    )


def test_where_a_runtime_compacts_it_is_measured_against_that_point() -> None:
    usage = {
        "input_tokens": 100_000,
        "cache_creation_input_tokens": 8_070,
        "cache_read_input_tokens": 330_000,
        "output_tokens": 90_000,
    }
    window = {"context_window_size": 1_000_000, "current_usage": usage}
    env = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "650_000"}
    assert window_reading(window, NOW_S, env, []) == Reading(
        29, NOW_S, 438_070, 617_000
    )


def test_tokens_are_recovered_from_the_percentage() -> None:
    window = {"context_window_size": 200_000, "used_percentage": 60}
    assert window_reading(window, NOW_S, ENV, []) == Reading(
        28, NOW_S, 120_000, 167_000
    )


def test_more_than_is_usable_is_all_of_it() -> None:
    window = {"context_window_size": 200_000, "current_usage": tokens(190_000)}
    assert window_reading(window, NOW_S, ENV, []) == Reading(0, NOW_S, 190_000, 167_000)


def test_of_a_runtime_that_nobody_knows_the_window_itself_is_the_measure() -> None:
    told = {"context_window_size": 200_000, "used_percentage": 60}
    assert window_reading(told, NOW_S, ENV, None) == Reading(40, NOW_S)
    number = {"context_window_size": 200_000, "current_usage": 50_000}
    assert window_reading(number, NOW_S, ENV, None) == Reading(75, NOW_S)
    beyond = {"context_window_size": 200_000, "current_usage": 500_000}
    assert window_reading(beyond, NOW_S, ENV, None) == Reading(0, NOW_S)


@pytest.mark.parametrize(
    ("window", "env", "settings", "point"),
    [
        (200_000, {}, [], 167_000),
        (1_000_000, {}, [], 967_000),
        (1_000_000, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "650000"}, [], 617_000),
        (1_000_000, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "400,000"}, [], 367_000),
        (1_000_000, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "5"}, [], 67_000),
        (1_000_000, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "0"}, [], 967_000),
        (1_000_000, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "-5"}, [], 967_000),
        (1_000_000, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "9" * 5000}, [], 967_000),
        (200_000, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "9000000"}, [], 167_000),
        (200_000, {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50"}, [], 90_000),
        (200_000, {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "100"}, [], 167_000),
        (200_000, {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "0"}, [], 167_000),
        (200_000, {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "nan"}, [], 167_000),
        (200_000, {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "half"}, [], 167_000),
        (200_000, {"DISABLE_AUTO_COMPACT": " Yes "}, [], 200_000),
        (200_000, {"DISABLE_COMPACT": "1"}, [], 200_000),
        (200_000, {"DISABLE_COMPACT": "0"}, [], 167_000),
        (200_000, {}, [{"autoCompactEnabled": False}], 200_000),
        (200_000, {}, [None, {}, {"autoCompactEnabled": False}], 200_000),
        (
            200_000,
            {},
            [{"autoCompactEnabled": True}, {"autoCompactEnabled": False}],
            167_000,
        ),
        (200_000, {}, [{"autoCompactEnabled": "no"}], 167_000),
        (1_000_000, {}, [{"autoCompactWindow": 400_000}], 367_000),
        (1_000_000, {}, [{"autoCompactWindow": "auto"}], 967_000),
        (1_000_000, {}, [{"autoCompactWindow": 5}], 967_000),
        (33_000, {}, [], 33_000),
        (33_001, {}, [], 1),
        (32_999, {}, [], 32_999),
    ],
)
def test_the_point_at_which_a_window_is_compacted(
    window: int, env: dict[str, str], settings: list[object], point: int
) -> None:
    assert compact_point(window, env, settings) == point


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "used_percentage",
                    "remaining_percentage",
                    "context_window_size",
                    "current_usage",
                    "input_tokens",
                ]
            ),
            inner,
        )
    ),
    max_leaves=12,
)


@given(JSON, st.lists(JSON, max_size=2) | st.none())
def test_whatever_a_runtime_hands_over_the_figure_is_a_percentage_or_none(
    window: object, settings: list[object] | None
) -> None:
    reading = window_reading(window, NOW_S, ENV, settings)
    if reading is not None:
        assert 0 <= reading.remaining <= 100
        assert 0 <= reading.used <= 100


# what is said


def said(level: Level, lang: Lang, **values: object) -> str:
    usable = Reading(28, NOW_S, 120_000, 167_000)
    asked: dict[str, object] = {"waits": 0, "handoff": None, **values}
    reading = asked.pop("reading", usable)
    sentences = advice(level, reading, **asked)  # type: ignore[arg-type]  # as given
    return " ".join(sentence.render(lang) for sentence in sentences)


def test_a_warning_in_words() -> None:
    assert said(Level.WARNING, Lang.EN) == (
        "The context of this session is getting short: 72 % used, 28 % left (120000 of "
        "167000 tokens until it is compacted by itself). New and large work fits "
        "better into a new session; `koder-monitor handoff` writes down where this one "
        "stands, whenever the user likes."
    )
    assert said(Level.WARNING, Lang.PT) == (
        "O contexto desta sessão está ficando curto: 72 % usado, 28 % livre (120000 de "
        "167000 tokens até a compactação automática). Trabalho novo e extenso cabe "
        "melhor numa sessão nova; `koder-monitor handoff` deixa por escrito onde este "
        "está, quando o usuário quiser."
    )


def test_a_critical_warning_in_words() -> None:
    whole = Reading(24.6, NOW_S)
    assert said(Level.CRITICAL, Lang.EN, reading=whole, waits=2) == (
        "The context of this session is nearly used up: 75 % used, 25 % left (of the "
        "whole window). The user may not know yet, and it is up to them whether to "
        "pause here. `koder-monitor handoff` keeps the state for the next session; "
        "nothing is saved unless they ask for it. Watches that this session has armed: "
        "2; they and their pings go on without it."
    )
    assert said(Level.CRITICAL, Lang.PT, reading=whole, waits=2) == (
        "O contexto desta sessão está quase esgotado: 75 % usado, 25 % livre (da "
        "janela inteira). O usuário pode ainda não saber disso: cabe a ele decidir se "
        "pausa aqui. `koder-monitor handoff` registra o estado para a próxima sessão; "
        "nada se salva sem o pedido dele. Monitores armados por esta sessão: 2; eles e "
        "seus pings continuam sem ela."
    )


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("lang", Lang)
def test_a_handoff_that_is_written_is_named_instead_of_its_command(
    level: Level, lang: Lang
) -> None:
    text = said(level, lang, handoff="/p/NEXT-\x1bSESSION.md")
    assert "/p/NEXT-\\x1bSESSION.md" in text
    assert "koder-monitor handoff" not in text


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("lang", Lang)
@pytest.mark.parametrize("handoff", [None, "/p/x.md"])
def test_what_is_said_commands_nothing(
    level: Level, lang: Lang, handoff: str | None
) -> None:
    text = said(level, lang, handoff=handoff, waits=3)
    assert COMMANDS.search(text) is None
