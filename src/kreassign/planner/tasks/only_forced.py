"""Do what must be done and nothing else."""

from __future__ import annotations

import numpy as np

from kreassign.planner.check.legality import rack_excess
from kreassign.planner.problem.arrays import BoolArray
from kreassign.planner.problem.partitions import NOWHERE, Assignment
from kreassign.planner.problem.problem import Problem
from kreassign.planner.tasks.rebalance import movable_only


def only_forced(problem: Problem) -> Problem:
    """The same task with every partition fixed that it does not demand to change.

    The others go where they serve the goals best, but no further bytes are spent on the goals.
    """
    return movable_only(problem, forced(problem))


def forced(problem: Problem) -> BoolArray:
    """Partitions that must change, (P,): hosts drained or dead, copies lost, leaders, directories, factors, racks."""
    partitions, brokers = problem.partitions, problem.brokers
    must: BoolArray = partitions.wanted_factors != partitions.factors
    must |= ~brokers.may_lead[partitions.replicas[partitions.offsets[:-1]]]
    leaving = ~brokers.staying[partitions.replicas] | partitions.is_lost
    if problem.log_dirs is not None:
        leaving |= (partitions.log_dirs != NOWHERE) & problem.log_dirs.must_empty[partitions.log_dirs]
    must |= np.logical_or.reduceat(leaving, partitions.offsets[:-1])
    if problem.rules.repair_racks:
        must |= rack_excess(problem, Assignment.current(partitions)) > 0
    return must
