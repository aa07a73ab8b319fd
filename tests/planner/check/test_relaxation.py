"""The program of `bench planner-exact`: what it says of a placement is what the check says."""

from __future__ import annotations

import numpy as np
import pytest

from bench.planner_exact import hosts_of, program_of, unit_of
from kreassign.planner import Band, Problem, evaluate
from kreassign.planner.goals import DISK, LEADERS
from kreassign.planner.problem.problem import Assignment
from tests.planner.small_problems import brokers, partition, posed

BANDS = (Band(DISK, 0.1), Band(LEADERS, 0.1))


def columns_of(problem: Problem, found: Assignment) -> list[float]:
    """Values of the columns of the program for this placement: who holds and who leads each partition."""
    values = []
    for number in range(len(problem.partitions)):
        chosen = found.list_of(number).tolist()
        for broker in hosts_of(problem, number):
            values += [float(broker in chosen), float(broker == chosen[0])]
    return values


@pytest.mark.parametrize("goal", range(len(BANDS)))
def test_what_a_placement_misses_of_a_goal_is_its_cost(goal: int) -> None:
    loads = [partition(number, 1, 2, gigabytes=size) for number, size in enumerate((10, 20, 70))]
    problem = posed(brokers(1, 2, 3), loads, bands=BANDS)
    found = Assignment.current(problem.partitions)
    cost, rows = program_of(problem, goal)
    values = np.zeros(len(cost))
    placed = columns_of(problem, found)
    values[: len(placed)] = placed
    bands = [row for row in rows if max(row.columns) >= len(placed)]
    assert len(bands) == len(problem.brokers)
    for low, high, columns, weights in bands:
        load = float(values[columns] @ weights)
        below, above = columns[-2:]
        values[below], values[above] = max(0.0, low - load), max(0.0, load - high)
    assert all(low - 1e-9 <= float(values[columns] @ weights) <= high + 1e-9 for low, high, columns, weights in rows)
    judged = evaluate(problem, found)
    off = sum(abs(one.amount) for one in judged.misses() if one.goal == BANDS[goal].goal.name)
    assert off > 0
    assert float(values @ cost) == pytest.approx(off / unit_of(problem, goal), rel=1e-6)
