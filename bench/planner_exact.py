"""Distance of the bound from the possible: the linear relaxation of small random clusters, solved by HiGHS.

A partition may be on parts of brokers there, led by parts of replicas; all bands, racks and brokers that take nothing
count. So no plan that meets all bands copies less. Needs `pip install highspy`, which nothing else does.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from bench.planner_random import judge
from bench.random_clusters import random_cluster
from kreassign.planner import Problem
from kreassign.planner.check.cost import bytes_bound

MOST_PAIRS = 14_000
MOST_S = 15.0


class Row(NamedTuple):
    """A constraint: the sum of values of these columns is from `low` to `high`."""

    low: float
    high: float
    columns: list[int]
    values: list[float]


def measure(count: int = 130) -> None:
    """The gaps of the clusters of seeds 0, 1, … that are small, by the bound and by the relaxation."""
    highs = importlib.import_module("highspy")
    found: list[tuple[float, float]] = []
    for seed in range(count):
        judged = judge(random_cluster(seed))
        problem = judged.cluster.problem
        if judged.misses or judged.gap is None or len(problem.partitions) * len(problem.brokers) > MOST_PAIRS:
            continue
        bound = bytes_bound(problem).total
        relaxed = _solved(highs, problem)
        if relaxed is not None:
            found.append((judged.gap, bound * (1 + judged.gap) / max(bound, relaxed) - 1))
    by_bound, by_relaxation = (median(gaps) for gaps in zip(*found, strict=True))
    closer = sum(one - other > 0.005 for one, other in found)
    print(f"{len(found)} clusters solved: median above the bound {by_bound:.1%}, above the relaxation", end=" ")
    print(f"{by_relaxation:.1%}, which is the higher one for {closer}")


def _solved(highs: Any, problem: Problem) -> float | None:
    """Bytes of the relaxation; None if it was not solved in time."""
    cost, rows = _program(problem)
    program = highs.HighsLp()
    program.num_col_, program.num_row_ = len(cost), len(rows)
    program.col_cost_ = np.array(cost)
    program.col_lower_, program.col_upper_ = np.zeros(len(cost)), np.ones(len(cost))
    program.row_lower_, program.row_upper_ = (np.array([row[end] for row in rows]) for end in (0, 1))
    program.a_matrix_.format_ = highs.MatrixFormat.kRowwise
    program.a_matrix_.start_ = np.cumsum([0, *(len(row.columns) for row in rows)]).astype(np.int32)
    program.a_matrix_.index_ = np.concatenate([row.columns for row in rows]).astype(np.int32)
    program.a_matrix_.value_ = np.concatenate([row.values for row in rows])
    solver = highs.Highs()
    for name, value in (("output_flag", False), ("threads", 1), ("time_limit", MOST_S)):
        solver.setOptionValue(name, value)
    solver.passModel(program)
    solver.run()
    if solver.getModelStatus() != highs.HighsModelStatus.kOptimal:
        return None
    return float(solver.getInfo().objective_function_value) * float(problem.partitions.size_bytes.sum())


def _program(problem: Problem) -> tuple[list[float], list[Row]]:
    """Costs of the columns, two for each partition and broker (holds it, leads it), and the constraints."""
    partitions, brokers, limits = problem.partitions, problem.brokers, problem.limits
    goals = [(band.goal.leader(partitions), band.goal.follower(partitions)) for band in problem.bands]
    reached = partitions.within_reach(brokers.is_live)
    total = float(partitions.size_bytes.sum()) or 1.0
    cost: list[float] = []
    rows: list[Row] = []
    loads: list[list[tuple[list[int], list[float]]]] = [[([], []) for _ in goals] for _ in range(len(brokers))]
    fixed = np.zeros((len(brokers), len(goals)))
    for partition in range(len(partitions)):
        present = partitions.list_of(partition).tolist()
        if not partitions.may_move[partition] or not reached[partition]:
            for place, broker in enumerate(present):
                fixed[broker] += [one[0 if place == 0 else 1][partition] for one in goals]
            continue
        hosts = list(_hosts(problem, partition))
        held = [len(cost) + 2 * place for place in range(len(hosts))]
        for column, broker in zip(held, hosts, strict=True):
            cost += [0.0 if broker in present else partitions.size_bytes[partition] / total, 0.0]
            rows.append(Row(0.0, np.inf, [column, column + 1], [1.0, -1.0]))
            if not brokers.may_lead[broker]:
                rows.append(Row(0.0, 0.0, [column + 1], [1.0]))
            for goal, (leading, following) in enumerate(goals):
                columns, values = loads[broker][goal]
                columns += [column, column + 1]
                values += [following[partition], leading[partition] - following[partition]]
        ones = [1.0] * len(held)
        wanted = float(partitions.wanted_factors[partition])
        rows.append(Row(wanted, wanted, held, ones))
        rows.append(Row(1.0, 1.0, [column + 1 for column in held], ones))
        rows += _racks(problem, partition, dict(zip(hosts, held, strict=True)))
    for broker in np.flatnonzero(brokers.staying).tolist():
        for goal, (columns, values) in enumerate(loads[broker]):
            unit = max(float(limits.mean[:, goal].max()), 1e-9)
            low, high = ((ends[broker, goal] - fixed[broker, goal]) / unit for ends in (limits.low, limits.high))
            rows.append(Row(low - 1e-9, high + 1e-9, columns, [value / unit for value in values]))
    return cost, rows


def _hosts(problem: Problem, partition: int) -> Iterator[int]:
    partitions, brokers = problem.partitions, problem.brokers
    places = slice(partitions.offsets[partition], partitions.offsets[partition + 1])
    present, lost = partitions.replicas[places], partitions.is_lost[places]
    wanted = partitions.broker_sets[partition]
    for broker in np.flatnonzero(brokers.staying).tolist():
        fits = wanted < 0 or brokers.broker_sets[broker] == wanted
        if fits and broker not in present[lost] and (broker in present or brokers.receiving[broker]):
            yield broker


def _racks(problem: Problem, partition: int, columns: dict[int, int]) -> Iterator[Row]:
    """Constraint that no rack gets more than its limit, or than it has now."""
    racks = problem.rack_of_broker
    present = racks[problem.partitions.list_of(partition)]
    for rack in np.unique(racks[list(columns)]).tolist():
        inside = [column for broker, column in columns.items() if racks[broker] == rack]
        most = int(problem.rack_limits.most[partition])
        most = most if problem.rules.repair_racks else max(most, int((present == rack).sum()))
        if most < len(inside):
            yield Row(0.0, float(most), inside, [1.0] * len(inside))
