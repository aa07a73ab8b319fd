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


def test_a_stair_goes_up_and_down_at_its_steps() -> None:
    svg = charts.step_area([(0.0, 10.0), (5.0, 20.0), (10.0, 0.0)], 20.0, 20.0, "x")
    (points,) = re.findall(r'points="([^"]*)"', svg)
    assert points.split() == [
        "0,120", "0.0,120.0", "0.0,60.0", "250.0,60.0", "250.0,0.0", "500.0,0.0", "500.0,120.0",
        "1000,120.0", "1000,120",
    ]  # fmt: skip
