from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from kreassign import __version__
from kreassign.model import TopicPartition
from kreassign.model.plan_facts import PlanFacts, Prediction, Reason, Totals, reason_sentences
from kreassign.report.plan_page import render_plan
from tests.approved import approve
from tests.report.plans import FACTS, GB, TARGETS, huge, partition
from tests.report.test_html import Page


def words(facts: PlanFacts) -> str:
    page = Page(render_plan(facts, TARGETS, "plan.json"))
    assert page.open == []
    return page.words


def figures(text: str) -> dict[str, Any]:
    """Figures that the page has plotly draw."""
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    charts: dict[str, Any] = json.loads(found[1])
    return charts


def test_the_page_says_what_a_plan_brings_costs_and_leaves_undone() -> None:
    page = Page(render_plan(FACTS, TARGETS, "plan.json"))
    assert page.open == []
    approve(page.lines, "plan-page", VERSION=__version__)


def test_every_change_has_its_reasons_and_the_largest_come_first() -> None:
    shown = words(
        replace(FACTS, partitions=(partition(0, (1, 2), Reason("drain", 1, 3), size_bytes=5), *FACTS.partitions[1:]))
    )
    assert "orders-1 1,3 → 3,2 1 GB a copy goes from broker 1 to broker 2: brings disk" in shown
    assert "leading goes from broker 1 to broker 3: brings leaders 1 leaders closer to balance" in shown
    assert "a copy goes from broker 1 to broker 3: broker 1 is to be emptied" in shown
    assert shown.index("orders-1 1,3") < shown.index("orders-0 1,2")


def test_the_matrix_has_leaders_as_rows_and_new_brokers_as_columns() -> None:
    trace = figures(render_plan(FACTS, TARGETS, "plan.json"))["matrix"]["data"][0]
    # Broker 1 leads orders-0 and orders-1, broker 2 leads orders-2.
    assert (trace["y"], trace["x"]) == (["from 1", "from 2"], ["to 2", "to 3"])
    assert trace["z"] == [[GB, GB], [None, GB]]


def test_the_heat_maps_share_their_brokers_and_colours() -> None:
    before, after = (
        figures(render_plan(FACTS, TARGETS, "p"))[name]["data"][0] for name in ("heat-before", "heat-after")
    )
    assert before["y"] == after["y"] == ["broker 1", "broker 2", "broker 3"]
    assert [row[0] for row in before["z"]] == pytest.approx([2.35, 0.65, 0.0])
    assert [row[0] for row in after["z"]] == pytest.approx([1.1, 1.0, 0.9])
    assert (before["zmin"], before["zmax"]) == (after["zmin"], after["zmax"])
    # The mean has the colour in between.
    assert before["colorscale"] == after["colorscale"] == [[0, "--cool"], [1 / before["zmax"], "--even"], [1, "--hot"]]


def test_a_plan_that_never_ends_says_so() -> None:
    assert "never ends at 1 MB/s per broker" in words(
        replace(FACTS, prediction=Prediction(1e6, float("inf"), float("inf")))
    )


def test_plans_of_an_earlier_kreassign_have_a_page_without_heat_maps() -> None:
    shown = words(replace(FACTS, means=(), prediction=None, loads=None))
    assert "The facts file does not say how loaded the brokers are" in shown
    assert "no rate was given" in shown


def test_a_plan_of_nothing_has_a_page() -> None:
    shown = Page(render_plan(PlanFacts("id", "hash", "rebalance", Totals(0, 0, 0)), {}, "plan.json"))
    assert "Nothing changes." in shown.words
    assert "nothing has to be copied" in shown.words


def test_text_from_outside_stays_text_in_pictures_too() -> None:
    evil = "</script><script>alert(1)</script><b>"
    facts = replace(
        FACTS, task=evil, partitions=(replace(FACTS.partitions[0], topic_partition=TopicPartition(evil, 0)),)
    )
    text = render_plan(facts, {TopicPartition(evil, 0): (3, 2)}, evil)
    assert "<script>alert" not in text
    assert Page(text).open == []


def test_a_thousand_brokers_and_a_hundred_thousand_moves_stay_readable() -> None:
    """Long lists are combined, and the page names what it leaves out."""
    facts, targets = huge(1_000, 100_000)
    text = render_plan(facts, targets, "plan.json")
    shown = Page(text).words
    charts = figures(text)
    assert all(len(chart["data"][0]["y"]) <= 41 for chart in charts.values())
    assert charts["heat-before"]["data"][0]["y"][-1] == "most of 960 others"
    assert charts["matrix"]["data"][0]["y"][-1] == "from 976 others"
    assert "The 300 largest of 100,000; the facts file has all." in shown
    assert len(json.dumps(charts)) < 100_000


def test_absent_values_of_a_plan_are_said_to_be_unknown_or_left_out() -> None:
    bare = replace(FACTS, prediction=None, cluster_id=None, snapshot_id=None, loads=None)
    shown = words(bare)
    assert "Predicted time unknown no rate was given: plan with --rate, or rehearse the plan" in shown
    assert not re.search(r" - | – |not named", shown.partition("Plan: ")[2])


def test_a_plan_that_copies_nothing_counts_changes_by_cause() -> None:
    leads = partition(0, (1, 2), Reason("leaders", 1, 2, 1.0, "leaders", leading=True))
    facts = replace(FACTS, partitions=(leads,), totals=Totals(0, 0, 1))
    page = render_plan(facts, {TopicPartition("orders", 0): (2, 1)}, "plan.json")
    assert "Lower bound 0 B nothing has to be copied" in Page(page).words
    (trace,) = figures(page)["causes"]["data"]
    assert (trace["name"], trace["x"]) == ("changes", [1])


def test_the_goals_that_one_move_balances_are_one_sentence() -> None:
    reasons = (Reason("disk", 1, 2, 2e9, "B"), Reason("drain", 1, 2), Reason("leaders", 1, 2, 1.0, ""))
    assert reason_sentences(reasons) == (
        "a copy goes from broker 1 to broker 2: brings disk 2 GB, leaders 1 closer to balance",
        "a copy goes from broker 1 to broker 2: broker 1 is to be emptied",
    )
