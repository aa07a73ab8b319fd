from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from kreassign.report import charts


def bars(svg: str) -> list[tuple[str, str, str]]:
    """Class, left and width of every bar; the text must be well-formed XML."""
    rects = [element for element in ET.fromstring(svg) if element.tag == "rect"]
    return [(rect.get("class", ""), rect.get("x", ""), rect.get("width", "")) for rect in rects]


def test_bars_are_parts_of_the_largest_value() -> None:
    assert bars(charts.paired_bars(50, 200, 200, "x")) == [("before", "0", "25%"), ("after", "0", "100%")]


def test_little_is_a_sliver_nothing_is_nothing_and_unknown_has_no_bar() -> None:
    assert bars(charts.paired_bars(1, 0, 1e9, "x")) == [("before", "0", "0.4%"), ("after", "0", "0%")]
    assert bars(charts.paired_bars(None, None, 10, "x")) == []
    assert bars(charts.paired_bars(0, 0, 0, "x")) == [("before", "0", "0%"), ("after", "0", "0%")]


def test_labels_are_escaped() -> None:
    (title,) = [element for element in ET.fromstring(charts.paired_bars(1, 1, 1, "<b>&")) if element.text]
    assert title.text == "<b>&"


def test_a_mark_stands_at_its_value() -> None:
    line = ET.fromstring(charts.marked_bar(5, 10, 20, "x")).find("line")
    assert line is not None
    assert (line.get("x1"), line.get("x2")) == ("50.0%", "50.0%")
    assert ET.fromstring(charts.marked_bar(5, None, 20, "x")).find("line") is None


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (5.0, 10.0, ("after", "25%", "25%")),
        (5.0, None, ("open", "25%", "75%")),
        (0.0, 0.0, ("after", "0%", "0.5%")),
        (20.0, 20.0, ("after", "99.5%", "0.5%")),
    ],
)
def test_a_span_is_a_part_of_the_whole_time(start: float, end: float | None, expected: tuple[str, str, str]) -> None:
    assert bars(charts.span_bar(start, end, 20.0, "x"))[1:] == [expected]


def test_what_never_began_has_no_span() -> None:
    assert [kind for kind, _, _ in bars(charts.span_bar(None, None, 20.0, "x"))] == ["track"]


def points(chart: str, shape: str) -> list[tuple[float, float]]:
    (found,) = re.findall(rf'class="{shape}" points="([^"]*)"', chart)
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in found.split())]


def test_a_daily_curve_has_a_point_per_hour_and_gaps_if_unknown() -> None:
    whole = points(charts.daily_curve([float(hour) for hour in range(24)], 24.0, "t"), "curve")
    assert len(whole) == 24
    assert [x for x, _ in whole] == sorted(x for x, _ in whole)
    assert whole[0][1] == charts.PLOT_HEIGHT
    broken = charts.daily_curve([1.0, 1.0, None, 2.0, None, *[None] * 19], 2.0, "t")
    assert len(points(broken, "curve")) == 2
    assert broken.count('class="dot"') == 1
    assert "polyline" not in charts.daily_curve([None] * 24, 0.0, "t")


def test_a_history_goes_on_in_a_band_from_the_present_to_the_horizon() -> None:
    chart = charts.history_and_band([(9.0, 1.0), (0.0, 2.0)], 3.0, (9.5, 6.0, 4.0, 8.0), 8.0, "t")
    line = points(chart, "curve")
    assert line == [(0, 105), (473.7, 90), (500, 75)]
    band = points(chart, "band")
    assert band[0] == line[-1]
    assert band[1:] == [(1000, 0), (1000, 60)]
    assert points(chart, "ahead")[-1] == (1000, 30)
    alone = charts.history_and_band([], 3.0, None, 4.0, "t")
    assert 'class="dot"' in alone
    assert "band" not in alone
    assert "band" not in charts.history_and_band([(0.0, 1.0)], None, (30.0, 1.0, 1.0, 1.0), 1.0, "t")


def test_columns_show_little_as_little_and_nothing_as_nothing() -> None:
    chart = charts.columns([0, 1, 10**9], 10**9, "t")
    assert re.findall(r' height="([\d.]+)"', chart) == ["2.0", "120.0"]
    assert charts.columns([], 0, "t").count("rect") == 0
