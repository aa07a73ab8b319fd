from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kreassign import __version__
from kreassign.model.load import Expected, History, LoadAccount, ReasonCount
from kreassign.operations.tables import load_page
from kreassign.report.page import largest_of, quality_view
from tests.approved import approve
from tests.pipeline.load_tables import DAY_MS, TAKEN_MS, a_cluster, fill, forecast_rows, load_row, quality, skew_row
from tests.report.test_html import Page

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    data = tmp_path_factory.mktemp("load")
    fill(data, **a_cluster())
    return load_page(data)


def test_the_page_tells_totals_curves_forecast_skew_doubts_and_quality(text: str) -> None:
    shown = Page(text)
    assert shown.open == []
    approve(shown.lines, "load-page", VERSION=__version__)


@pytest.mark.parametrize(("sampled_s", "title"), [
    (7.4, "Last 7 s"), (750.0, "Last 12 min"), (6 * 3600.0, "Last 6 h"), (86_400.0, "Last 1 day"),
    (3 * 86_400.0, "Last 3 days"), (7 * 86_400.0, "Last week"),
])  # fmt: skip
def test_the_recent_rate_says_how_long_was_sampled(tmp_path: Path, sampled_s: float, title: str) -> None:
    loads = [load_row("t", 0, 5.0, span_s=sampled_s), load_row("t", 1, 5.0, span_s=sampled_s / 2)]
    fill(tmp_path, loads, forecast=forecast_rows(loads), load_quality=quality(5))
    shown = Page(load_page(tmp_path)).words
    assert f"{title} 10 B/s" in shown
    assert "less than a day was measured, so that this is a guess: in 30 days" in shown


def test_it_is_self_contained_and_fits_phones_and_dark_mode(text: str) -> None:
    names = {name for name, _ in Page(text).attributes}
    assert not names & {"src", "href", "srcset", "onload", "onclick"}
    assert not [each for each in ("url(", "@import", "<script", "http") if each in text]
    assert text.startswith("<!doctype html>")
    assert 'name="viewport" content="width=device-width' in text
    assert "prefers-color-scheme: dark" in text


def test_every_class_of_a_chart_has_its_colour(text: str) -> None:
    """Without one a shape is black: invisible in the dark."""
    style = text.partition("</style>")[0]
    drawn = {value for name, value in Page(text).attributes if name == "class" and f"<{value} " not in style}
    shapes = {"curve", "ahead", "band", "column", "tick", "after", "mark"}
    assert shapes <= drawn
    assert not [shape for shape in shapes if f"svg .{shape} {{" not in style]


def test_names_from_outside_are_text_not_markup(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\x1b[8m"
    loads = [load_row(evil, 0, 5.0, verdict=evil)]
    told = [row | {"reason": row["reason"] and evil, "table_name": evil} for row in quality(5)]
    fill(tmp_path, loads, skew=[skew_row(evil, 3.5, 9.0, verdict=evil)], load_quality=told)
    page = load_page(tmp_path)
    assert "<script" not in page
    assert "\x1b" not in page
    assert Page(page).open == []
    assert page.count("&lt;script&gt;") >= 6


def test_a_load_of_nothing_has_a_page_that_says_what_to_do(tmp_path: Path) -> None:
    fill(tmp_path, [load_row("t", 0)])
    shown = Page(load_page(tmp_path))
    approve(shown.lines, "page-of-a-load-of-nothing", VERSION=__version__)


def test_clusters_of_one_directory_share_a_page(tmp_path: Path) -> None:
    fill(tmp_path, [load_row("t", 0, 1.0), load_row("u", 0, 2.0) | {"cluster_id": "c.2"}])
    assert "Load of cluster c.1" in load_page(tmp_path)
    assert "Load of cluster c.2" in load_page(tmp_path)
    assert "Load of cluster c.1" not in load_page(tmp_path, "c.2")


def account(number: int, **quarantined: int) -> LoadAccount:
    reasons = tuple(ReasonCount("samples", "quarantined", reason, count) for reason, count in quarantined.items())
    counts = {"good": 1, "quarantined": sum(quarantined.values()), "late": 0, "counted": 0, "skipped": 0}
    return LoadAccount(TAKEN_MS + number * DAY_MS, {"samples": counts}, reasons)


def test_charts_cover_many_loads_and_reasons_come_first() -> None:
    loads = [account(number, odd=number, far=100 - number) for number in range(100)]
    found = quality_view(loads)
    assert [(chart.treatment, len(chart.counts)) for chart in found.charts] == [("quarantined", 60)]
    assert [load.load_ms for load in found.told] == [load.load_ms for load in loads[-10:]]
    assert [(line.reason, line.counts[0], line.counts[-1]) for line in found.reasons] == [
        ("odd", 90, 99), ("far", 10, 1),
    ]  # fmt: skip
    many = [account(0, **{f"file-{number}": 1 for number in range(50)})]
    assert (len(quality_view(many).reasons), quality_view(many).more) == (30, 20)


def test_the_scale_of_a_history_holds_its_days_the_present_and_the_band() -> None:
    history = History("t-0", ((1, 5.0), (0, 7.0)), 6.0, 30.0, Expected(8.0, 4.0, 10.0))
    assert largest_of(history) == 10.5
    assert largest_of(replace(history, expected=None)) == pytest.approx(7.35)
    assert largest_of(replace(history, expected=None, days=(), now=None)) == 0
