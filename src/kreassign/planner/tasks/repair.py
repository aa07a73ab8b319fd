"""Bring back what is missing: replicas on dead brokers, replicas too few, racks with too many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kreassign.planner.problem.arrays import IntArray
from kreassign.planner.problem.partitions import Partitions
from kreassign.planner.problem.problem import Problem


def repair(problem: Problem, *, racks: bool = True, factors: bool = True) -> Problem:
    """Every replica on a dead broker, or lost with a log directory, is made anew elsewhere.

    `racks` also mends partitions that break the rack rule, `factors` gives partitions with fewer replicas than most
    of their topic as many as those.
    """
    partitions = problem.partitions
    wanted = np.maximum(partitions.wanted_factors, usual_factors(partitions)) if factors else partitions.wanted_factors
    return replace(
        problem,
        rules=replace(problem.rules, repair_racks=racks),
        partitions=replace(partitions, wanted_factors=wanted.astype(np.int32)),
    )


def usual_factors(partitions: Partitions) -> IntArray:
    """The most frequent replication factor of each partition's topic (of equally frequent ones the larger), (P,)."""
    factors = partitions.factors
    counts = np.zeros((len(partitions.topic_names), int(factors.max(initial=0)) + 1), np.int64)
    np.add.at(counts, (partitions.topics, factors), 1)
    largest_of_equals = counts.shape[1] - 1 - np.argmax(counts[:, ::-1], axis=1)
    usual: IntArray = largest_of_equals[partitions.topics].astype(np.int32)
    return usual
