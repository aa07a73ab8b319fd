"""Comments of pull requests: what they say, that nothing in them is active, and that they fit."""

from __future__ import annotations

from dataclasses import replace

from kreassign.model import TopicPartition
from kreassign.model.placement import Drift, DriftKind
from kreassign.model.plan_facts import PlanFacts, Totals
from kreassign.report.plan_page import MOST_CHARACTERS, drift_markdown, escaped, plan_markdown
from tests.approved import approve
from tests.report.plans import FACTS, TARGETS, huge


def test_a_comment_says_what_a_plan_costs_brings_and_why() -> None:
    approve([plan_markdown(FACTS, TARGETS)], "plan-comment")


def test_a_plan_of_nothing_says_so() -> None:
    assert plan_markdown(PlanFacts("1", "2", "repair", Totals(0, 0, 0)), {}) == "### Plan: repair\n\nNothing to do."


def test_a_comment_on_the_largest_plan_fits_and_counts_the_rest() -> None:
    facts, targets = huge()
    text = plan_markdown(facts, targets)
    assert MOST_CHARACTERS * 0.9 < len(text) < 65_536
    assert "more |" in text
    assert text.endswith("</details>")
    shown = sum(line.startswith("| topic-") for line in text.splitlines())
    assert f"| … {100_000 - shown:,} more |" in text


def test_nothing_that_a_cluster_names_is_active() -> None:
    named = replace(FACTS, task="import [a](http://x) <img src=x>\n| # @all `b`")
    (title, *_) = plan_markdown(named, TARGETS).splitlines()
    assert title == "### Plan: import \\[a\\](http://x) \\<img src=x\\> \\| \\# @\u200ball \\`b\\`"
    assert escaped("a_b*c") == "a\\_b\\*c"


def test_drift_is_a_row_for_each_partition() -> None:
    found = (Drift(TopicPartition("orders", 0), DriftKind.MISSING, (1, 2), None, "is declared on 1,2, but gone"),)
    approve([drift_markdown(found, 12)], "drift-comment")
    assert drift_markdown((), 12) == "### Placement\n\nAll 12 declared partitions are as declared."
