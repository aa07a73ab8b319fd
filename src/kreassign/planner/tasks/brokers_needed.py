"""Right-sizing: how many brokers a load needs, none of them used above a given part of its limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from kreassign.errors import Infeasible, InputError
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.problem.brokers import Brokers
from kreassign.planner.problem.problem import Band, Problem
from kreassign.planner.search.search import solve
from kreassign.planner.tasks.drain_brokers import drain_brokers
from kreassign.planner.tasks.what_if import with_new_brokers

TRIES = 10


@dataclass(frozen=True, slots=True)
class Need:
    """What one resource asks for: `total` load, `limit` per broker (already lessened to the part used), brokers."""

    goal: str
    unit: str
    total: float
    limit: float
    brokers: int


@dataclass(frozen=True, slots=True)
class RightSize:
    """`brokers` carry the load, shown by a placement that was found; `needs` has the least of each resource alone."""

    brokers: int
    present: int
    at_most: float
    needs: tuple[Need, ...]


def brokers_needed(problem: Problem, at_most: float = 0.7) -> RightSize:
    """The fewest brokers like those that are there, none above `at_most` of any limit.

    Begins with what every resource needs alone and adds brokers until a placement is found. Raises InputError without
    any limit, Infeasible when even `TRIES` more brokers than the resources ask for do not suffice.
    """
    if not 0 < at_most <= 1:
        raise InputError(f"brokers cannot be used at {at_most:.0%} of their limits; give more than 0 and at most 100 %")
    lessened = _lessened(problem, at_most)
    needs = _needs(lessened)
    if not needs:
        raise InputError("no limit of the brokers is known; name some in the goals file, under [capacity]")
    least = max(*(need.brokers for need in needs), int(problem.partitions.wanted_factors.max(initial=1)), 1)
    for count in range(least, least + TRIES + 1):
        if _fits(lessened, count):
            return RightSize(count, int(problem.brokers.staying.sum()), at_most, needs)
    raise Infeasible(
        f"no placement was found on {least} to {least + TRIES} brokers; some partition is too large for one"
    )


def _lessened(problem: Problem, at_most: float) -> Problem:
    brokers: Brokers = problem.brokers
    capacity = {name: limits * at_most for name, limits in brokers.capacity.items()}
    bands = tuple(Band(band.goal, None) for band in problem.bands)
    free = replace(problem.partitions, may_move=np.ones(len(problem.partitions), bool))
    return replace(problem, brokers=replace(brokers, capacity=capacity), bands=bands, partitions=free)


def _needs(problem: Problem) -> tuple[Need, ...]:
    found = []
    for band, total in zip(problem.bands, problem.totals.tolist(), strict=True):
        limit = float(np.median(problem.brokers.capacity_of(band.goal.name)))
        if math.isfinite(limit) and limit > 0:
            found.append(Need(band.goal.name, band.goal.unit, total, limit, math.ceil(total / limit - 1e-9)))
    return tuple(found)


def _fits(problem: Problem, count: int) -> bool:
    sized = _with_brokers(problem, count)
    try:
        return evaluate(sized, solve(sized).assignment).legal
    except Infeasible:
        return False


def _with_brokers(problem: Problem, count: int) -> Problem:
    present = problem.brokers.ids[problem.brokers.staying].tolist()
    if count > len(present):
        return with_new_brokers(problem, count - len(present))
    return drain_brokers(problem, present[count:]) if count < len(present) else problem
