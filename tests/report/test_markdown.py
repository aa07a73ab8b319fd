"""Comments of pull requests: what they say, that nothing in them is active, and that they fit."""

from __future__ import annotations

from dataclasses import replace

from kreassign.model import TopicPartition
from kreassign.model.placement import Drift, DriftKind
from kreassign.model.plan_facts import PlanFacts, Totals
from kreassign.report.markdown import MOST_CHARACTERS, drift_markdown, escaped, plan_markdown
from tests.report.plans import FACTS, TARGETS, huge


def cells(text: str, first: str) -> list[str]:
    """The cells of the row that begins so."""
    (row,) = (line for line in text.splitlines() if line.startswith(f"| {first} |"))
    return [cell.strip() for cell in row.strip("|").split(" | ")]


def test_a_comment_says_what_a_plan_costs_brings_and_why() -> None:
    text = plan_markdown(FACTS, TARGETS)
    assert text.startswith("### Plan: rebalance\n\n**3 partitions to change**: 3 replicas to copy, 3 GB; 1 leader to")
    assert "- Hottest broker by disk: 2.35 × → 1.10 × the mean" in text
    assert "- Time: at 50 MB/s per broker; the longest single copy takes 0:20" in text
    assert "- Remains: broker 3: disk is 300 MB below its band" in text
    assert cells(text, "1") == ["1", "7.05 GB", "3.3 GB", "0 B", "3 GB"]
    assert "<details><summary>3 partitions</summary>\n\n| partition |" in text
    why = "a copy goes from broker 1 to broker 3: broker 1 is to be emptied"
    assert cells(text, "orders-2") == ["orders-2", "2,1", "2,3", "1 GB", why]


def test_a_plan_of_nothing_says_so() -> None:
    assert plan_markdown(PlanFacts("1", "2", "repair", Totals(0, 0, 0)), {}) == "### Plan: repair\n\nNothing to do."


def test_a_comment_on_the_largest_plan_fits_and_says_how_much_more_there_is() -> None:
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
    text = drift_markdown(found, 12)
    assert "**1 partition not as declared**, of 12." in text
    assert cells(text, "orders-0") == ["orders-0", "1,2", "–", "is declared on 1,2, but gone"]
    assert drift_markdown((), 12) == "### Placement\n\nAll 12 declared partitions are as declared."
