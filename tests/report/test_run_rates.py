"""Preparation of a drawn run: rates by slot, growth, throttles; and the pictures of the largest runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.model.run import InSync, RunTrail, ThrottleStep, Timeline
from kreassign.report.run_page import render_run, report_view
from kreassign.report.run_pictures import copy_rates, run_pictures, throttle_over_time
from tests.approved import approve
from tests.report.eventful import EVENTFUL, TRAIL, arrival, at, huge_run
from tests.report.plans import huge
from tests.report.runs import MB, STARTED_MS, a_move, a_run
from tests.report.test_html import Page, markup

NOTHING = RunTrail(EVENTFUL)


def test_bytes_between_two_looks_came_evenly() -> None:
    arrivals = (arrival(at(0), 0, 3, 1, 0), arrival(at(4), 0, 3, 1, 8 * MB), arrival(at(10), 0, 3, 1, 8 * MB))
    rates = copy_rates(arrivals, (), STARTED_MS, end_s=10, slots=5)
    assert rates.slot_s == 2
    assert rates.received == {3: [4 * MB, 4 * MB, 0, 0, 0]}
    assert rates.sent == {1: [4 * MB, 4 * MB, 0, 0, 0]}
    assert rates.busiest(rates.received) == [2 * MB, 2 * MB, 0, 0, 0]
    assert rates.flows == {(1, 3): 8 * MB}


def test_what_goes_beyond_the_size_of_before_is_growth() -> None:
    move = replace(a_move("orders", 0, (1, 2), (3, 2)), size_bytes=5 * MB)
    arrivals = (arrival(at(0), 0, 3, 1, 0), arrival(at(2), 0, 3, 1, 4 * MB), arrival(at(4), 0, 3, 1, 8 * MB))
    rates = copy_rates(arrivals, (move,), STARTED_MS, end_s=4, slots=2)
    assert rates.growth == pytest.approx([0, 3 * MB])
    assert sum(rates.total) == 8 * MB


def test_a_copy_that_was_begun_again_adds_from_nothing() -> None:
    arrivals = (arrival(at(1), 0, 3, 1, 6 * MB), arrival(at(2), 0, 3, 1, 2 * MB))
    rates = copy_rates(arrivals, (), STARTED_MS, end_s=4, slots=4)
    assert sum(rates.total) == 8 * MB


def test_the_throttle_is_the_lowest_and_highest_of_brokers() -> None:
    steps = (
        ThrottleStep(at(1), 1, 10),
        ThrottleStep(at(1), 2, 10),
        ThrottleStep(at(3), 2, 20),
        ThrottleStep(at(5), 1, None),
        ThrottleStep(at(5), 2, None),
    )
    lowest, highest = throttle_over_time(steps, STARTED_MS, 8)
    # Each rate is drawn to the time at which it ends.
    assert lowest == [(1, 10), (3, 10), (5, 10), (5, None), (8, None)]
    assert highest == [(1, 10), (3, 20), (5, 20), (5, None), (8, None)]


def test_pictures_say_in_words_what_they_show() -> None:
    charts = run_pictures(EVENTFUL, TRAIL).charts
    approve((f"{chart.name}: {chart.says}" for chart in charts), "run-pictures-in-words")


def test_a_run_of_which_little_is_known_has_the_pictures_that_can_be_made() -> None:
    assert [chart.name for chart in run_pictures(EVENTFUL, NOTHING).charts] == ["timeline"]
    assert run_pictures(a_run(()), NOTHING).charts == ()


def test_a_run_of_a_second_has_columns_that_can_be_distinguished() -> None:
    run = a_run((a_move("orders", 0, (1, 2), (3, 2), ended_ms=at(1)),), ended_ms=at(1))
    arrivals = (arrival(at(0), 0, 3, 1, 0), arrival(at(1), 0, 3, 1, MB))
    trail = RunTrail(run, arrivals, timeline=Timeline(in_sync=(InSync(at(0), 0),)))
    for chart in run_pictures(run, trail).charts:
        for trace in chart.figure["data"]:
            if trace["type"] == "heatmap":
                names = trace["customdata"][0]
                assert len(set(names)) == len(names)
                assert trace.get("dx", 1) > 0


@pytest.mark.thorough
def test_a_run_of_a_hundred_thousand_moves_stays_readable() -> None:
    """Bars become colours, and what would be too many rows is put together."""
    trail = huge_run()
    view = report_view(trail.history, None, None, {}, trail, huge()[0])
    for chart in view.pictures.charts:
        assert chart.height_px < 1_100, chart.name
        assert all(len(trace["y"]) <= 130 for trace in chart.figure["data"]), chart.name
    timeline = view.pictures.charts[0]
    assert timeline.figure["data"][0]["y"][-1] == "most of 960 others"
    assert timeline.says == "How many copies each broker received at a time; 100,000 copies to 1,000 brokers."
    text = markup(render_run(view))
    shown = Page(text).words
    assert "The 200 longest of 100,000." in shown
    assert "The 40 that received most, of 1,000." in shown
    assert shown.count("a copy goes from broker") == 200
    assert len(text) < 500_000
