"""Distance of the bound from the possible: the linear relaxation of small random clusters, solved by HiGHS.

A partition may be on parts of brokers there, led by parts of replicas; all bands, racks and brokers that take nothing
count. So no plan that meets all bands copies less. Where a plan misses bands, the relaxation says goal by goal how far
from its bands any plan is, whatever that costs. Needs `pip install highspy`, which nothing else does.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from bench.planner_random import judge
from bench.random_clusters import random_cluster
from kreassign.planner import Budget, Problem, evaluate, solve
from kreassign.planner.check.cost import bytes_bound

MOST_PAIRS = 14_000
MOST_S = 15.0
NEAR = 1e-6


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
    missed: list[tuple[float, float]] = []
    for seed in range(count):
        judged = judge(random_cluster(seed))
        problem = judged.cluster.problem
        if judged.infeasible or len(problem.partitions) * len(problem.brokers) > MOST_PAIRS:
            continue
        if judged.misses and problem.budget == Budget():
            missed += _misses(highs, problem)
        if judged.misses or judged.gap is None:
            continue
        bound = bytes_bound(problem).total
        relaxed = _solved(highs, problem)
        if relaxed is not None:
            relaxed *= float(problem.partitions.size_bytes.sum())
            found.append((judged.gap, bound * (1 + judged.gap) / max(bound, relaxed) - 1))
    by_bound, by_relaxation = (median(gaps) for gaps in zip(*found, strict=True))
    closer = sum(one - other > 0.005 for one, other in found)
    print(f"{len(found)} clusters solved: median above the bound {by_bound:.1%}, above the relaxation", end=" ")
    print(f"{by_relaxation:.1%}, which is the higher one for {closer}")
    if missed:
        forced = [one / least for one, least in missed if least > NEAR]
        print(f"{len(missed)} goals missed, {len(forced)} of them by any plan", end="")
        print(f", and by the plans {median(forced):.2f} times as far in the middle" if forced else "")


def _misses(highs: Any, problem: Problem) -> Iterator[tuple[float, float]]:
    """For each goal that the plan misses, its brokers' distance from their bands, and the least of any plan.

    Both in shares of a broker.
    """
    found = evaluate(problem, solve(problem).assignment)
    off = np.maximum(np.maximum(found.after - found.high, found.low - found.after), 0.0)
    for goal in sorted({found.goals.index(miss.goal) for miss in found.misses()}):
        least = _solved(highs, problem, goal)
        if least is not None:
            yield float(off[problem.brokers.staying, goal].sum()) / unit_of(problem, goal), least


def unit_of(problem: Problem, goal: int) -> float:
    """The largest share of any broker of a goal."""
    return max(float(problem.limits.mean[:, goal].max()), 1e-9)


def _solved(highs: Any, problem: Problem, missed: int | None = None) -> float | None:
    """Objective of the relaxation; None if it was not solved in time."""
    cost, rows = program_of(problem, missed)
    program = highs.HighsLp()
    program.num_col_, program.num_row_ = len(cost), len(rows)
    program.col_cost_ = np.array(cost)
    slack = 0 if missed is None else 2 * int(problem.brokers.staying.sum())
    program.col_lower_ = np.zeros(len(cost))
    program.col_upper_ = np.append(np.ones(len(cost) - slack), np.full(slack, np.inf))
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
    return float(solver.getInfo().objective_function_value)


def program_of(problem: Problem, missed: int | None = None) -> tuple[list[float], list[Row]]:
    """Costs of the columns, two for each partition and broker (holds it, leads it), and the constraints.

    The costs are the parts of all bytes that are copied. With the index of a goal that is `missed` only its bands
    count; the last columns, two for each broker that stays, are how far it is below and above, and are all that costs.
    """
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
        hosts = list(hosts_of(problem, partition))
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
    if missed is not None:
        cost = [0.0] * len(cost)
    for broker in np.flatnonzero(brokers.staying).tolist():
        for goal, (columns, values) in enumerate(loads[broker]):
            if missed not in {None, goal}:
                continue
            unit = unit_of(problem, goal)
            low, high = ((ends[broker, goal] - fixed[broker, goal]) / unit for ends in (limits.low, limits.high))
            row = Row(low - 1e-9, high + 1e-9, [*columns], [value / unit for value in values])
            if missed is not None:
                row.columns.extend((len(cost), len(cost) + 1))
                row.values.extend((1.0, -1.0))
                cost += [1.0, 1.0]
            rows.append(row)
    return cost, rows


def hosts_of(problem: Problem, partition: int) -> Iterator[int]:
    """Brokers that may hold a partition in the end, ascending."""
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
