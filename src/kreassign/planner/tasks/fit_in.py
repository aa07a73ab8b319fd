"""A plan that is finished in time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kreassign.errors import InputError
from kreassign.planner.problem.problem import Problem
from kreassign.planner.tasks.only_forced import forced
from kreassign.planner.tasks.rebalance import movable_only


def fit_in(problem: Problem, seconds: float, rate_bytes_per_s: float) -> Problem:
    """What fits into a time at a rate that each broker may send and receive.

    Partitions of which a single copy takes longer stay where they are, unless the task forces them. Raises InputError
    for a time or rate that is not above 0.
    """
    if not (seconds > 0 and rate_bytes_per_s > 0):
        raise InputError(f"nothing fits into {seconds:g} s at {rate_bytes_per_s:g} bytes/s; give more than 0 of both")
    partitions = problem.partitions
    rest = np.maximum(rate_bytes_per_s - partitions.write_bytes_per_s, 0.0)
    problem = movable_only(problem, (partitions.size_bytes <= rest * seconds) | forced(problem))
    most = int(rate_bytes_per_s * seconds)
    budget = replace(
        problem.budget, bytes_in_per_broker=most, bytes_out_per_broker=most, rate_bytes_per_s=rate_bytes_per_s
    )
    return replace(problem, budget=budget)
