"""Change how many replicas topics have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kreassign.errors import InputError
from kreassign.planner.problem.problem import Problem
from kreassign.planner.tasks.topic_choice import TopicChoice


def change_factors(problem: Problem, factor: int, topics: TopicChoice | None = None) -> Problem:
    """Every partition of the topics shall have `factor` replicas.

    Raises InputError when that is less than 1 or more than there are brokers to hold them.
    """
    partitions, hosts = problem.partitions, int(problem.brokers.staying.sum())
    if not 1 <= factor <= hosts:
        raise InputError(f"a replication factor of {factor} needs as many live brokers; there are {hosts}")
    chosen = (topics or TopicChoice()).of(partitions)
    wanted = np.where(chosen, factor, partitions.wanted_factors).astype(np.int32)
    return replace(problem, partitions=replace(partitions, wanted_factors=wanted))
