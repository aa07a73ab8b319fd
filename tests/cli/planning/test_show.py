"""Display of a plan: its figures with their units, and its distance from the bound."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from kreassign.cli.plan_text import evaluated_tables, plan_tables, shown_gap
from kreassign.model.text import format_load
from kreassign.planner import Band, Problem, evaluate
from kreassign.planner.goals import CPU, DISK, GOALS, LEADERS, NET_OUT, POTENTIAL_NET_OUT
from kreassign.planner.problem.problem import Assignment
from kreassign.planner.results import Origin, outcome_of
from tests.planner.small_problems import brokers, partition, posed

EVERY_GOAL = (*GOALS, POTENTIAL_NET_OUT)


@pytest.mark.parametrize(
    ("gap", "words"), [(-0.0004, "+0.0%"), (-1e-12, "+0.0%"), (0.0, "+0.0%"), (-0.02, "-2.0%"), (0.375, "+37.5%")]
)
def test_what_rounding_takes_below_the_bound_is_at_it(gap: float, words: str) -> None:
    assert shown_gap(gap) == words


def shown(*parts, width: int = 200) -> str:
    out = io.StringIO()
    for part in parts:
        Console(file=out, width=width).print(part)
    return out.getvalue()


def problem(*goals, **changes) -> Problem:
    """Broker 1 leads twice, broker 2 once, broker 3 nothing."""
    busy = {"read_bytes_per_s": 1_500_000.0, "leader_cpu": 0.125}
    loads = [partition(number, leader, **busy) for number, leader in enumerate((1, 1, 2))]
    return posed(brokers(1, 2, 3), loads, bands=tuple(Band(goal, None) for goal in goals), **changes)


def test_every_load_of_every_table_has_its_unit() -> None:
    for unit, most in (("estimated", "200% of the mean"), ("of a CPU", "0.25 of a CPU"), ("cores", "0.25 cores")):
        given = problem(CPU, NET_OUT, LEADERS, cpu_unit=unit)
        present = Assignment.current(given.partitions)
        facts = outcome_of(given, present, Origin("rebalance")).facts
        found = evaluate(given, present)
        every = [plan_tables(facts, is_wide=wide) for wide in (False, True)]
        every += [evaluated_tables(found, is_wide=wide) for wide in (False, True)]
        texts = [shown(*tables) for tables in every]
        assert [text.count(most) for text in texts] == [2, 2, 2, 2]
        assert [text.count("3 MB/s") for text in texts] == [0, 2, 0, 2]


@pytest.mark.parametrize("first", EVERY_GOAL, ids=lambda goal: goal.name)
def test_at_80_columns_every_broker_has_one_row_with_the_first_goal(first) -> None:
    given = problem(first, *(goal for goal in EVERY_GOAL if goal is not first))
    present = Assignment.current(given.partitions)
    facts = outcome_of(given, present, Origin("rebalance")).facts
    for parts in (plan_tables(facts, is_wide=False), evaluated_tables(evaluate(given, present), is_wide=False)):
        title, head, *rows = shown(*parts, width=80).splitlines()
        assert title.startswith(f"{facts.means[0].goal} of brokers")
        assert head.split()[:3] == ["broker", "before", "after"]
        assert [row.split()[0] for row in rows] == ["1", "2", "3"]
        assert not [row for row in (head, *rows) if "…" in row or len(row) > 80]
        for row, broker in zip(rows, facts.brokers, strict=True):
            loads = (broker.before, broker.after)
            mean = facts.means[0]
            before, after = (format_load(one[mean.goal], mean.unit, mean.before) for one in loads)
            assert f"{before} " in row
            assert f"→ {after}" in row


@pytest.mark.parametrize(("count", "is_wide", "rows"), [(40, False, 40), (50, False, 40), (50, True, 50)])
def test_of_many_brokers_the_largest_are_shown_and_the_rest_counted(count: int, is_wide: bool, rows: int) -> None:
    ids = range(1, count + 1)
    loads = [partition(broker, broker, gigabytes=broker) for broker in ids]
    given = posed(brokers(*ids), loads, bands=(Band(DISK, None),))
    present = Assignment.current(given.partitions)
    facts = outcome_of(given, present, Origin("rebalance")).facts
    for parts in (plan_tables(facts, is_wide=is_wide), evaluated_tables(evaluate(given, present), is_wide=is_wide)):
        lines = shown(*parts).splitlines()
        told = [int(line.split()[0]) for line in lines if line.split()[0].isdigit()]
        assert len(told) == rows
        assert (told[0] == count) is (rows < count)
        assert lines[-1].startswith("and 10 brokers more") is (rows < count)
        assert "--wide shows all" in lines[-1] or rows == count
