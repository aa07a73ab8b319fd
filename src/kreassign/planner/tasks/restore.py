"""Bring back a given assignment, such as that before a run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kreassign.model.plan import Plan
from kreassign.planner.problem.partitions import Assignment
from kreassign.planner.problem.problem import Problem, RackRule, Rules
from kreassign.planner.results.plans import assignment_of


def restore(problem: Problem, wanted: Plan) -> tuple[Problem, Assignment]:
    """The lists of a plan, as they are; nothing is searched.

    Returns the problem that the assignment is judged by: factors are those of the plan, and racks are the plan's own
    affair. Raises IllegalPlan for partitions, brokers and log directories that are not there.
    """
    assignment = assignment_of(problem, wanted)
    rules = Rules(racks=RackRule.NONE, between_log_dirs=True)
    factors = np.diff(assignment.offsets).astype(np.int32)
    return replace(problem, rules=rules, partitions=replace(problem.partitions, wanted_factors=factors)), assignment
