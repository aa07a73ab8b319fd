"""How a plan is shown: its figures with their units, and its distance from the bound."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from kreassign.cli.planning.show import brokers_table, narrow_table, shown_gap, wide_table
from kreassign.planner import Band, Problem, evaluate
from kreassign.planner.goals import CPU, LEADERS, NET_OUT
from kreassign.planner.problem.cluster import Assignment
from kreassign.planner.results.outcome import Origin, outcome_of
from tests.planner.small_problems import brokers, partition, posed


@pytest.mark.parametrize(
    ("gap", "words"), [(-0.0004, "+0.0%"), (-1e-12, "+0.0%"), (0.0, "+0.0%"), (-0.02, "-2.0%"), (0.375, "+37.5%")]
)
def test_what_rounding_takes_below_the_bound_is_at_it(gap: float, words: str) -> None:
    assert shown_gap(gap) == words


def shown(table) -> str:
    out = io.StringIO()
    Console(file=out, width=200).print(table)
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
        every = (narrow_table(facts), wide_table(facts), brokers_table(evaluate(given, present)))
        assert [shown(table).count(most) for table in every] == [2, 2, 2]
        assert [shown(table).count("3 MB/s") for table in every] == [0, 2, 2]
