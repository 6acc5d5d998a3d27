"""The status line: what stands in it, how wide it is, and what is kept out (C8.2)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.statusline import (
    Facts,
    Light,
    View,
    clipped,
    columns,
    facts_of,
    span,
    status_line,
)
from tests.policies.samples import ALWAYS, unfit

FAMILY = "👨‍👩‍👧‍👦"
PLAIN = View(columns=80, colour=False, encoding="utf-8")
WIDE = View(columns=300, colour=False, encoding="utf-8")
COLOURED = View(columns=300, colour=True, encoding="utf-8")
COLOUR = re.compile(r"\x1b\[[0-9;:]*m")

LOCK = Light("lock", "api", None, "held", None, 312, 3290)
SOAK = Light("process", "soak.py", "box", "unknown", None, 4000, 90_000)
OTHER = LOCK._replace(label="docs", ours=False)


def line(
    *lights: Light,
    view: View = PLAIN,
    model: str | None = "Opus",
    folder: str | None = "/home/ana/api",
    used: int | None = 42,
    before: str | None = None,
) -> str:
    return status_line(
        model=model, folder=folder, used=used, lights=lights, before=before, view=view
    )


# what stands in it


def test_model_folder_and_context_bar_stand_first() -> None:
    assert line() == "Opus │ api │ ████░░░░░░ 42%"


def test_each_wait_has_a_light_with_its_age_and_the_time_to_its_deadline() -> None:
    assert line(LOCK, SOAK, view=WIDE) == (
        "Opus │ api │ ████░░░░░░ 42% │ ⏳ lock api 5m -54m"
        " │ ❓ process soak.py @box 1h06m -1d1h"
    )


def test_what_waits_on_the_host_itself_is_marked() -> None:
    light = SOAK._replace(detached=True)
    assert "soak.py @box ⇅ 1h06m" in line(light, view=WIDE)


@pytest.mark.parametrize(
    ("state", "result", "shown"),
    [
        ("released", None, "✅ lock api 5m"),
        ("ended", "PASS", "✅ [PASS] lock api 5m"),
        ("ended", "FAIL", "❌ [FAIL] lock api 5m"),
        ("ended", "DIED", "❌ [DIED] lock api 5m"),
        ("ended", "STALLED", "❌ [STALLED] lock api 5m"),
        ("expired", None, "⏰ lock api 5m"),
        ("removed", None, "🚫 lock api 5m"),
        ("unseen", None, "❓ lock api 5m"),
    ],
)
def test_an_outcome_says_how_it_ended_and_how_long_ago(
    state: str, result: str | None, shown: str
) -> None:
    light = LOCK._replace(state=state, result=result, left_s=None)
    assert line(light).endswith(f" │ {shown}")


def test_a_label_that_names_its_kind_does_not_have_it_twice() -> None:
    light = LOCK._replace(kind="port", label="port 5432")
    assert line(light).endswith("⏳ port 5432 5m -54m")


def test_what_is_not_known_is_left_out() -> None:
    assert line(model=None, used=None) == "api"
    assert line(folder=None, used=None) == "Opus"
    assert line(model=None, folder=None) == "████░░░░░░ 42%"
    assert line(LOCK, model=None, folder=None, used=None) == ("⏳ lock api 5m -54m")


def test_a_line_is_never_empty() -> None:
    assert line(model=None, folder=None, used=None) == "koder-monitor"
    assert line(folder="/", model=None, used=None) == "/"
    narrow = PLAIN._replace(columns=3)
    assert line(model=None, folder=None, used=None, view=narrow) == "ko…"
    assert line(view=narrow) == "42%"
    assert line(folder=None, used=None, view=narrow) == "Op…"


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        ("Opus 4.7 (1M context)", "Opus 4.7 1M"),
        ("Opus (context)", "Opus"),
        ("Opus (beta)", "Opus (beta)"),
        ("Opus", "Opus"),
        ("x" * 50, "x" * 31 + "…"),
    ],
)
def test_of_the_size_of_a_context_a_models_name_says_only_the_size(
    model: str, shown: str
) -> None:
    assert line(model=model, folder=None, used=None) == shown


@pytest.mark.parametrize(
    ("used", "bar"),
    [
        (0, "░░░░░░░░░░"),
        (9, "░░░░░░░░░░"),
        (10, "█░░░░░░░░░"),
        (99, "█████████░"),
        (100, "██████████"),
        (250, "██████████"),
        (-5, "░░░░░░░░░░"),
    ],
)
def test_the_bar_has_a_full_cell_for_each_whole_ten_percent(
    used: int, bar: str
) -> None:
    assert line(model=None, folder=None, used=used) == f"{bar} {used}%"


@pytest.mark.parametrize(
    ("used", "style"),
    [(49, "32"), (50, "33"), (64, "33"), (65, "38;5;208"), (79, "38;5;208"), (80, "1")],
)
def test_the_bar_grows_warmer_with_what_is_used(used: int, style: str) -> None:
    shown = line(model=None, folder=None, used=used, view=COLOURED)
    assert shown.startswith(f"\x1b[{style}")
    assert shown.endswith("\x1b[0m")


@pytest.mark.parametrize(
    ("light", "style"),
    [
        (LOCK, ""),
        (OTHER, "\x1b[2m"),
        (SOAK, "\x1b[33m"),
        (LOCK._replace(state="released", left_s=None), "\x1b[32m"),
        (LOCK._replace(state="expired", left_s=None), "\x1b[33m"),
        (LOCK._replace(state="ended", result="FAIL", left_s=None), "\x1b[1;31m"),
        (OTHER._replace(state="removed", left_s=None), "\x1b[2m"),
    ],
)
def test_a_light_has_the_colour_of_what_it_says(light: Light, style: str) -> None:
    shown = line(light, view=COLOURED, model=None, folder=None, used=None)
    assert shown.startswith(style or "⏳")
    assert shown.endswith("\x1b[0m" if style else "54m")


def test_a_line_without_colour_holds_no_escape() -> None:
    assert "\x1b" not in line(LOCK, SOAK, before="\x1b[31mred\x1b[0m")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (0, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (3599, "59m"),
        (3600, "1h00m"),
        (86399, "23h59m"),
        (86400 * 2 + 3600 * 5, "2d5h"),
    ],
)
def test_a_span_is_short(seconds: float, text: str) -> None:
    assert span(seconds) == text


# how wide it is


@pytest.mark.parametrize(
    ("text", "wide"),
    [
        ("abc", 3),
        ("é", 1),
        ("e\u0301", 1),
        ("日本", 4),
        ("ｱ", 1),
        ("⏳", 2),
        ("❤", 1),
        ("❤\ufe0f", 2),
        ("1\ufe0f\u20e3", 2),
        ("👍🏽", 2),
        (FAMILY, 2),
        ("🏳\ufe0f\u200d🌈", 2),
        ("🇧🇷", 2),
        ("🇧🇷🇵🇹", 4),
        ("🇧", 1),
        ("क\u094d\u200dष", 2),
        ("\u1112\u1161\u11ab", 2),
        ("한", 2),
        ("\u0301", 0),
        ("", 0),
    ],
)
def test_columns_are_those_of_a_terminal(text: str, wide: int) -> None:
    assert columns(text) == wide


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd…"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        (f"a{FAMILY}b", 3, "a…"),
        (f"a{FAMILY}b", 4, f"a{FAMILY}b"),
        ("ab", 1, "…"),
        ("ab", 0, ""),
        ("ab", -1, ""),
    ],
)
def test_a_text_is_cut_between_what_belongs_together(
    text: str, limit: int, cut: str
) -> None:
    assert clipped(text, limit) == cut


def test_labels_are_cut_before_a_light_is_left_out() -> None:
    long = LOCK._replace(label="a-very-long-name-of-a-lock")
    view = PLAIN._replace(columns=60)
    assert line(long, view=view) == (
        "Opus │ api │ ████░░░░░░ 42% │ ⏳ lock a-very-l… 5m -54m"
    )


def test_lights_that_do_not_fit_are_counted() -> None:
    assert line(*[LOCK] * 20) == (
        "Opus │ api │ ████░░░░░░ 42% │ ⏳ lock api 5m -54m │ ⏳ lock api 5m -54m │ +18"
    )
    assert line(*[LOCK] * 20, view=WIDE).endswith("⏳ lock api 5m -54m │ +8")


def test_what_does_not_fit_goes_by_rank() -> None:
    shown = [
        line(LOCK, OTHER, SOAK, view=PLAIN._replace(columns=wide))
        for wide in (120, 80, 60, 50, 40, 25, 20)
    ]
    assert shown == [
        "Opus │ api │ ████░░░░░░ 42% │ ⏳ lock api 5m -54m │ ⏳ lock docs 5m -54m"
        " │ ❓ process soak.py @box 1h06m -1d1h",
        "Opus │ api │ ████░░░░░░ 42% │ ⏳ lock api 5m -54m │ ⏳ lock docs 5m -54m │ +1",
        "Opus │ 42% │ ⏳ lock api 5m -54m │ ⏳ lock docs 5m -54m │ +1",
        "42% │ ⏳ lock api 5m -54m │ +2",
        "42% │ ⏳ lock api 5m -54m │ +2",
        "⏳ lock api 5m -54m │ +2",
        "⏳ lock api 5m -54m…",
    ]


texts = st.text(max_size=40) | st.sampled_from(
    [FAMILY * 5, "日本" * 20, "e\u0301" * 300, "\x1b[2J", "a\nb", "\u202eabc", "\udc80"]
)
lights = st.builds(
    Light,
    kind=texts,
    label=texts,
    host=st.none() | texts,
    state=st.sampled_from(["held", "unknown", "released", "expired", "removed", "?"]),
    result=st.none() | texts,
    age_s=st.floats(-10, 1e9),
    left_s=st.none() | st.floats(-10, 1e9),
    detached=st.booleans(),
    ours=st.booleans(),
)
views = st.builds(
    View,
    columns=st.integers(-3, 130),
    colour=st.booleans(),
    encoding=st.sampled_from(["utf-8", "ascii", "cp1252", "latin-1"]),
)


@st.composite
def lines(draw: st.DrawFn) -> tuple[str, View]:
    """Give a line of whatever there may be, and where it is to be shown."""
    view = draw(views)
    text = status_line(
        model=draw(st.none() | texts),
        folder=draw(st.none() | texts),
        used=draw(st.none() | st.integers(0, 100)),
        lights=draw(st.lists(lights, max_size=15)),
        before=draw(
            st.none()
            | texts
            | st.just("\x1b[1;31mred \x1b[0mplain \x1b]0;title\x07 end")
        ),
        view=view,
    )
    return text, view


@ALWAYS
@given(lines())
def test_whatever_comes_it_is_one_line_that_fits_and_steers_nothing(
    drawn: tuple[str, View],
) -> None:
    text, view = drawn
    if view.colour:
        text = COLOUR.sub("", text)
    assert text
    assert unfit(text) == set()
    assert columns(text) <= max(1, view.columns)
    text.encode(view.encoding)


# where it is written


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_signs_that_cannot_be_written_have_others_in_their_place(encoding: str) -> None:
    view = WIDE._replace(encoding=encoding)
    released = LOCK._replace(state="released", left_s=None, label="🚀 日本")
    shown = line(LOCK, SOAK, released, view=view)
    bar = "####------ 42%"
    assert shown == (
        f"Opus | api | {bar} | .. lock api 5m -54m"
        " | ?? process soak.py @box 1h06m -1d1h | OK lock ? ?? 5m"
    )


def test_a_letter_that_can_be_written_stays() -> None:
    view = PLAIN._replace(encoding="cp1252")
    assert line(model="Ópera", folder=None, used=None, view=view) == "Ópera"
    cut = line(model="Ó" * 50, folder=None, used=None, view=view)
    assert cut == "Ó" * 31 + "…"


# another program's line in front


def test_another_programs_line_stands_in_front() -> None:
    assert line(before="main ✓") == "main ✓ │ Opus │ api │ ████░░░░░░ 42%"


@pytest.mark.parametrize("before", ["", " \n\t", "\x1b[31m\x1b[0m"])
def test_another_programs_line_that_says_nothing_is_left_out(before: str) -> None:
    assert line(before=before) == "Opus │ api │ ████░░░░░░ 42%"


def test_of_several_lines_the_first_that_says_something_is_taken() -> None:
    assert line(before="\n  one\ntwo").startswith("one │ Opus")


def test_its_colours_stay_and_whatever_else_steers_goes() -> None:
    before = (
        "\x1b[1m\x1b[31mred\x1b[0m \x1b[38;2;1;2;3mrgb\x1b[m\x1b[2J\x1b]8;;http://x\x07"
        "link\x1b]8;;\x1b\\\x1b(B\tend\x07\x1b]0;open"
    )
    shown = line(before=before, model=None, folder=None, used=None, view=COLOURED)
    assert shown == ("\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3mrgb\x1b[0mlink end\\x07")


def test_both_lines_have_room() -> None:
    """Ours is never pushed out, and theirs has half of the line at least."""
    shown = line(*[LOCK] * 9, before="x" * 500, view=PLAIN._replace(columns=100))
    theirs, _, ours = shown.partition("… │ ")
    assert theirs == "x" * 49
    assert ours == "42% │ ⏳ lock api 5m -54m │ +8"


def test_a_line_full_of_colours_takes_no_time() -> None:
    before = "".join(f"\x1b[38;5;{n % 256}mx" for n in range(100_000))
    assert "xxxx" in line(before=before)


# what the runtime says


def test_facts_are_taken_from_where_the_runtimes_have_them() -> None:
    payload = {
        "session_id": "abc",
        "cwd": "/x",
        "model": {"id": "opus-4-7", "display_name": "Opus"},
        "workspace": {"current_dir": "/p/sub", "project_dir": "/p"},
        "context_window": {"used_percentage": 5},
    }
    assert facts_of(payload) == Facts(
        "Opus", "abc", "/p/sub", "/p", {"used_percentage": 5}
    )


@pytest.mark.parametrize(
    ("payload", "facts"),
    [
        (None, Facts(None, None, None, None, None)),
        ([1], Facts(None, None, None, None, None)),
        (
            {"session_id": 5, "cwd": [], "model": 7, "workspace": "x"},
            Facts(None, None, None, None, None),
        ),
        ({"model": "gpt", "cwd": "/x"}, Facts("gpt", None, "/x", None, None)),
        ({"model": {"id": "o"}}, Facts("o", None, None, None, None)),
        ({"model": {"display_name": ""}}, Facts(None, None, None, None, None)),
    ],
)
def test_of_a_payload_of_another_shape_what_can_be_told_is(
    payload: object, facts: Facts
) -> None:
    assert facts_of(payload) == facts
