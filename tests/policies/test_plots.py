"""Plots as SVG: well formed, escaped, in proportion."""

from collections.abc import Callable, Sequence
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.plots import Bar, columns, rows
from tests.policies.samples import ALWAYS

Plot = Callable[[str, Sequence[Bar]], str]
EVIL = "</title><script>alert(1)</script>\"'&"
TEXTS = st.text(st.characters(exclude_categories=("Cc", "Cs", "Cn")), max_size=40)


def parts(svg: str, tag: str) -> list[ET.Element]:
    return [item for item in ET.fromstring(svg).iter() if item.tag == tag]


@pytest.mark.parametrize("plot", [columns, rows])
@pytest.mark.parametrize("bars", [[], [Bar("a", 0.0, "0 h")]])
def test_where_there_is_nothing_there_is_no_plot(plot: Plot, bars: list[Bar]) -> None:
    assert plot("t", bars) == ""


@pytest.mark.parametrize(("plot", "side"), [(columns, "height"), (rows, "width")])
def test_a_bar_is_as_long_as_its_value(plot: Plot, side: str) -> None:
    bars = [Bar("a", 4.0, "4 h"), Bar("b", 1.0, "1 h"), Bar("c", 0.0, "0 h")]
    long, short, none = (float(r.attrib[side]) for r in parts(plot("t", bars), "rect"))
    assert long == pytest.approx(4 * short, abs=0.2)
    assert none == 0


@pytest.mark.parametrize("plot", [columns, rows])
def test_what_others_wrote_is_text(plot: Plot) -> None:
    svg = plot(EVIL, [Bar(EVIL, 1.0, EVIL)])
    assert parts(svg, "script") == []
    assert ET.fromstring(svg).attrib["aria-label"] == EVIL
    assert parts(svg, "title")[0].text == f"{EVIL}: {EVIL}"


def test_a_long_name_is_cut_in_its_row_and_whole_in_its_title() -> None:
    name = "n" * 60
    svg = rows("t", [Bar(name, 1.0, "1")])
    assert parts(svg, "text")[0].text == "n" * 25 + "…"
    assert parts(svg, "title")[0].text == f"{name}: 1"


def test_the_first_and_last_column_are_named_and_the_highest_is_measured() -> None:
    bars = [Bar("mon", 1.0, "1 h"), Bar("tue", 3.0, "3 h"), Bar("wed", 2.0, "2 h")]
    said = [item.text for item in parts(columns("t", bars), "text")]
    assert said == ["3 h", "mon", "wed"]


@ALWAYS
@given(st.lists(st.builds(Bar, TEXTS, st.floats(0, 1e9), TEXTS), max_size=9), TEXTS)
def test_every_plot_is_well_formed_and_within_its_frame(
    bars: list[Bar], title: str
) -> None:
    for plot in (columns, rows):
        svg = plot(title, bars)
        if not svg:
            continue
        _, _, width, height = map(float, ET.fromstring(svg).attrib["viewBox"].split())
        found = parts(svg, "rect")
        assert len(found) == len(bars)
        for rect in found:
            x, y, w, h = (float(rect.attrib[n]) for n in ("x", "y", "width", "height"))
            assert 0 <= x <= x + w <= width + 0.2
            assert 0 <= y <= y + h <= height + 0.2
